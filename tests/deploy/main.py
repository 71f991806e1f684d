#!/usr/bin/env python3
"""main.py [--update] [BIN_DIR]: the checks of tests/deploy.sh, which finds the tools."""
import difflib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

import crds
import policies
import renders
from renders import GOLDEN, TOP, objects, run

sys.path.insert(0, os.path.join(TOP, "deploy"))
import preflight  # noqa: E402

BIN = next((one for one in sys.argv[1:] if not one.startswith("--")), os.path.join(TOP, "build/release/bin"))
KUBECTL, HELM = os.environ.get("KUBECTL"), os.environ.get("HELM")
SCHEMAS, TYPES = os.environ.get("SCHEMAS"), os.environ.get("TYPES")
NATIVE_VERSIONS, CLASSIC_VERSIONS = ("1.29", "1.33", "1.37"), ("1.26", "1.28")

results = {"passed": 0, "failed": 0, "skipped": 0}


def check(what, faults, detail=""):
    faults = list(faults)
    results["failed" if faults else "passed"] += 1
    print(f"{'FAIL' if faults else 'ok  '}  {what}{': ' + detail if detail and not faults else ''}", flush=True)
    for fault in faults[:12]:
        print(f"        {fault}")


def skip(what, why):
    results["skipped"] += 1
    print(f"SKIPPED  {what}: {why}")


def fails(command, **more):
    """The output of a command that should have gone well, in lines."""
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False, **more)
    return (done.stdout + done.stderr).splitlines() if done.returncode else []


def tracked(*patterns):
    return run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]).split()


# --- lint

def lint():
    if shutil.which("yamllint"):
        check("yamllint", fails(["yamllint", "-s", "-c", "tests/deploy/yamllint.yaml", "."]))
    else:
        skip("yamllint", "not installed")
    scripts = [one for one in tracked("*.sh", ".ci/run") if os.path.exists(os.path.join(TOP, one))]
    if shutil.which("shellcheck"):
        check("shellcheck", fails(["shellcheck", "-x", *scripts]), f"{len(scripts)} scripts")
    else:
        skip("shellcheck", "not installed")
    for files in (["docker/compose.yaml"], ["docker/compose.yaml", "docker/compose.vllm.yaml"]):
        what = f"docker-compose config {files[-1]}"
        if shutil.which("docker-compose"):
            check(what, fails(["docker-compose", *(part for file in files for part in ("-f", file)), "config", "-q"]))
        else:
            skip(what, "not installed")
    if shutil.which("promtool"):
        check("promtool check config of the compose demo",
              fails(["promtool", "check", "config", "--syntax-only", "docker/compose/prometheus.yaml"]))
    else:
        skip("promtool check config of the compose demo", "not installed")


def operator_objects():
    """What the Prometheus operator gets, beside its types (custom_resources)."""
    check("the PrometheusRule has the rules and alerts of deploy/prometheus", fails(["python3", "deploy/prometheus/prometheusrule.py", "--check"]))
    named = {("ReplicaSet", "vllm-6f7d8c9b4"): "vllm", ("ReplicaSet", "chat-vllm-6f7d8c9b4"): "chat-vllm", ("StatefulSet", "vllm-0-a"): "vllm-0-a",
             ("Job", "vllm-x"): None, ("", ""): None}
    for path, one in renders.files_with_objects():
        if one["kind"] not in ("PodMonitor", "ServiceMonitor"):
            continue
        rule = one["spec"]["podMetricsEndpoints" if one["kind"] == "PodMonitor" else "endpoints"][0]["relabelings"][0]
        found = {}
        for controller in named:  # as Prometheus does it
            match = re.fullmatch(rule["regex"], ";".join(controller))
            found[controller] = match and re.sub(r"\$(\d)", lambda group, match=match: match[int(group[1])] or "", rule["replacement"])
        check(f"{path}: one job for each engine", [f"{key}: {found[key]}" for key in named if found[key] != named[key]])


# --- renders

def compare_with_golden(name, text):
    """The objects, not their order and layout, which differ between versions of kubectl and helm."""
    if "--update" in sys.argv:
        with open(os.path.join(TOP, GOLDEN, name + ".yaml"), "w", encoding="utf-8") as file:
            file.write(text)
    golden, fresh = canonical(renders.golden(name)), canonical(text)
    check(f"{name} renders as in {GOLDEN}", difflib.unified_diff(golden, fresh, "golden", "now", lineterm="", n=1))


def canonical(text):
    by_name = sorted(objects(text), key=lambda one: (one["kind"], one["metadata"]["name"]))
    return yaml.safe_dump_all(by_name).splitlines()


def render_all():
    if KUBECTL:
        for name, folder in renders.KUSTOMIZE.items():
            compare_with_golden(name, renders.kustomize(folder))
    else:
        skip("kustomize renders", "no kubectl here, and none could be fetched")
    if not HELM:
        skip("Helm renders", "no helm here, and none could be fetched")
        return
    check("helm lint --strict", fails([HELM, "lint", "--strict", renders.CHART]))
    for name, settings in renders.HELM.items():
        compare_with_golden(name, renders.helm(*settings))
    check("Helm renders the same twice", [] if renders.helm() == renders.helm() else ["it does not"])
    for setting, expected in renders.REFUSED.items():
        try:
            renders.helm(setting)
            faults = ["it was accepted"]
        except RuntimeError as refusal:
            faults = [] if expected in str(refusal) else [str(refusal)]
        check(f"Helm refuses {setting}", faults)
    with tempfile.TemporaryDirectory() as folder:
        check("helm package", fails([HELM, "package", renders.CHART, "-d", folder]))


def all_renders():
    return {name: objects(renders.golden(name)) for name in (*renders.KUSTOMIZE, *renders.HELM)}


# --- what the renders say

def only_the_engine_changes(rendered):
    """Putting noren in changes one Deployment and adds objects; what was there stays byte for byte."""
    before = {(one["kind"], one["metadata"]["name"]): one for one in rendered["vllm-bare"]}
    after = {(one["kind"], one["metadata"]["name"]): one for one in rendered["vllm"]}
    changed = [key for key in before if before[key] != after.get(key)]
    check("the component changes the engine's Deployment alone", [] if changed == [("Deployment", "vllm")] else changed)
    untouched = [one for one in rendered["production-stack"] if one["metadata"]["name"] != "stack-qwen3-deployment-vllm"]
    with open(os.path.join(TOP, "tests/deploy/fixtures/production-stack/stack.yaml"), encoding="utf-8") as file:
        fixture = objects(file.read())
    check("router and Service of production-stack stay as they are",
          [one["metadata"]["name"] for one in fixture[1:] if one not in untouched])
    spec = after[("Deployment", "vllm")]["spec"]["template"]["spec"]
    check("noren comes first", [] if spec["initContainers"][0]["name"] == "noren" else ["it does not"])


def one_truth(rendered):
    places = {name: list(policies.find_containers(things)) for name, things in rendered.items()}
    for path in sorted(glob.glob(os.path.join(TOP, "deploy/stacks/**/*.yaml"), recursive=True)):
        with open(path, encoding="utf-8") as file:
            found = list(policies.find_containers(list(yaml.safe_load_all(file))))
        if found:
            places[os.path.relpath(path, TOP)] = found
    truth = policies.same_truth(places["vllm"][0])
    copies = [(name, one) for name, found in places.items() for one in found]
    check("Helm, kustomize and every stack have the same sidecar",
          [name for name, one in copies if policies.same_truth(one) != truth], f"{len(copies)} copies in {len(places) - 1} places")
    check("... natively or classic, never both ways", [
        name for name, one in copies if (one.get("restartPolicy") == "Always") == ("classic" in name)])
    check("... hardened, with its probes and mounts", [
        f"{name}: {fault}" for name, one in copies for fault in policies.container_faults(one)])
    check("... and the same engine hook", sorted({
        name for name, found in rendered.items() for spec in templates(found) if hook(spec) != hook(next(templates(rendered["vllm"])))}))
    configs = {name: one["data"]["noren.yaml"] for name, things in rendered.items() for one in things if one["kind"] == "ConfigMap"}
    check("... and the same config", [name for name, text in configs.items()
                                      if name != "vllm-overlay" and yaml.safe_load(text) != yaml.safe_load(configs["vllm"])])
    noren = os.path.join(BIN, "noren")
    if not os.path.exists(noren):
        skip("noren check of every rendered config with its container's variables", f"{noren} is not built")
        return
    with tempfile.TemporaryDirectory() as folder:
        def judged(name, **changed):
            """As in the pod: the rendered config, and the variables of the container."""
            path = os.path.join(folder, "noren.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(configs[name])
            for one in places[name]:
                variables = {each["name"]: each["value"] for each in one["env"]}
                variables["NOREN_CONFIG"] = path
                plain = {key: value for key, value in os.environ.items() if not key.startswith("NOREN_")}
                for line in fails([noren, "check"], env={**plain, **variables, **changed}):
                    yield f"{name}: {line}"

        names = [name for name in configs if name in places]
        check("noren check of every rendered config with its container's variables",
              [line for name in names for line in judged(name)], f"{sum(len(places[name]) for name in names)} containers")
        check("... and a wrong variable would be noticed", [] if list(judged("vllm", NOREN_UPSTREAM="8200")) else ["it is not"])


def templates(things):
    for one in things:
        for _, spec in preflight.pod_templates(one):
            if preflight.find_noren(spec)[1]:
                yield spec


def hook(spec):
    return next(one for one in spec["containers"] if one["name"] != "noren")["lifecycle"]


def no_complaints(rendered):
    for name in rendered:
        if name != "vllm-bare":
            check(f"preflight of {name}", [line for line in fails(["python3", "deploy/preflight.py", f"{GOLDEN}/{name}.yaml"])])
    check("every object keeps the rules", [
        f"{name}: {one['kind']}/{one['metadata']['name']}: {fault}"
        for name, things in [*rendered.items(), *((path, [one]) for path, one in renders.files_with_objects())]
        for one in things for fault in policies.object_faults(one)])


def preflight_complains(rendered):
    def mutate(what, change, expected):
        things = json.loads(json.dumps(rendered["vllm"]))
        template = next(one for one in things if one["kind"] == "Deployment")["spec"]["template"]["spec"]
        change(template["initContainers"][0], template["containers"][0], template)
        config_maps = {one["metadata"]["name"]: one["data"] for one in things if one["kind"] == "ConfigMap"}
        said = list(preflight.complaints(template, config_maps))
        check(f"preflight complains of {what}", [] if any(expected in one for one in said) else said or ["it does not"])

    mutate("a grace period too short", lambda n, e, t: t.update(terminationGracePeriodSeconds=60), "take 175")
    mutate("no hook on noren", lambda n, e, t: n.pop("lifecycle"), "no preStop hook `noren ctl drain`")
    mutate("no hook on the engine", lambda n, e, t: e.pop("lifecycle"), "will cut every stream")
    mutate("no begin_within", lambda n, e, t: e["lifecycle"]["preStop"]["httpGet"].update(path="/-/drain-wait"), "begin_within")
    mutate("a hook with two handlers", lambda n, e, t: e["lifecycle"]["preStop"].update(exec={"command": ["sleep", "15"]}), "takes one")
    mutate("an ordinary init container", lambda n, e, t: n.pop("restartPolicy"), "restartPolicy: Always")
    mutate("a startup probe on the engine", lambda n, e, t: n["startupProbe"]["httpGet"].update(path="/-/ready"), "must be /-/healthy")
    mutate("the engine's own port", lambda n, e, t: n["env"][2].update(value="http://127.0.0.1:8000"), "where it also looks")
    mutate("another port than clients know", lambda n, e, t: n["env"][1].update(value=":9000"), "noren listens on 9000")
    mutate("a hasty liveness probe", lambda n, e, t: e["livenessProbe"].update(periodSeconds=5, failureThreshold=2), "gives up after 10 s")
    mutate("no control socket", lambda n, e, t: n["volumeMounts"].pop(2), "nothing is mounted at /run/noren")
    mutate("subPath", lambda n, e, t: n["volumeMounts"][0].update(subPath="noren.yaml"), "subPath")


# --- schemas

def schemas(rendered):
    if not SCHEMAS:
        skip("schemas of the Kubernetes versions", "kubernetes-validate could not be fetched")
        return
    sys.path.insert(0, SCHEMAS)
    import kubernetes_validate
    core = [(name, one) for name, things in rendered.items() for one in things if one["apiVersion"] in CORE]
    core += [(path, one) for path, one in renders.files_with_objects() if one["apiVersion"] in CORE]

    def faults(version, chosen):
        for name, one in chosen:
            try:
                kubernetes_validate.validate(one, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                yield f"{name}: {one['kind']}/{one['metadata']['name']}: {error.message}"

    for version in NATIVE_VERSIONS:
        check(f"Kubernetes {version} knows every field", faults(version, core), f"{len(core)} objects")
    classic = [(name, one) for name, one in core if "classic" in name]
    for version in CLASSIC_VERSIONS:
        check(f"Kubernetes {version} knows every field of the classic layout", faults(version, classic), f"{len(classic)} objects")
    native = [(name, one) for name, one in core if name == "vllm" and one["kind"] == "Deployment"]
    check("Kubernetes 1.27 does not know native sidecars", [] if list(faults("1.27", native)) else ["it accepts them"])


CORE = ("v1", "apps/v1", "policy/v1", "networking.k8s.io/v1", "autoscaling/v2")


def round_trips():
    """kubectl decodes into Go types: a field it does not know is gone afterwards."""
    # Some installations bring a kubectl of every minor beside the one on the path.
    binaries = KUBECTL and sorted(glob.glob(os.path.realpath(KUBECTL) + ".1.*")) or [one for one in [KUBECTL] if one]
    if not binaries:
        skip("typed round trip", "no kubectl")
    for binary in binaries:
        version = json.loads(run([binary, "version", "--client", "-o", "json"]))["clientVersion"]
        minor = int("".join(filter(str.isdigit, version["minor"])))
        name = "vllm" if minor >= 29 else "vllm-classic"
        deployment = next(one for one in objects(renders.golden(name)) if one["kind"] == "Deployment")
        back = json.loads(run([binary, "set", "env", "--local", "-f", "-", "NOREN_ROUND_TRIP=1", "-o", "json"],
                              input=yaml.safe_dump(deployment)))
        check(f"kubectl 1.{minor} keeps every field of {name}", sorted(paths(deployment) - paths(back)))


def paths(thing, where=""):
    if isinstance(thing, dict):
        return {where}.union(*(paths(value, f"{where}.{key}") for key, value in thing.items()))
    if isinstance(thing, list):
        return {where}.union(*(paths(value, f"{where}[{index}]") for index, value in enumerate(thing)))
    return {where}


def custom_resources(rendered):
    """PodMonitor, ServiceMonitor and ScaledObject as literals of their TypeScript types: unknown fields are errors."""
    if not TYPES:
        skip("types of PodMonitor, ServiceMonitor and ScaledObject", "npm could not fetch them")
        return
    packages = {"monitoring.coreos.com/v1": "prometheus-operator", "keda.sh/v1alpha1": "keda"}
    found = [one for things in rendered.values() for one in things] + [one for _, one in renders.files_with_objects()]
    chosen = [one for one in found if one["apiVersion"] in packages]
    source = ""
    for index, one in enumerate(chosen):
        module = f"@kubernetes-models/{packages[one['apiVersion']]}/{one['apiVersion']}/{one['kind']}"
        source += f'import {{ I{one["kind"]} as T{index} }} from "{module}";\nexport const v{index}: T{index} = {json.dumps(one)};\n'
    path = os.path.join(TYPES, "manifests.ts")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    compiler = [os.path.join(TYPES, "node_modules/.bin/tsc"), "--noEmit", "--strict", "--skipLibCheck"]
    check("custom resources fit their types", fails([*compiler, path]), f"{len(chosen)} objects")
    with open(path, "w", encoding="utf-8") as file:
        file.write(source.replace('"podMetricsEndpoints"', '"podMetricsEndpoint"'))
    check("... and a wrong field would be noticed", [] if fails([*compiler, path]) else ["it is not"])


def other_projects(rendered):
    """KServe, LeaderWorkerSet, the inference extension and its picker."""
    if not SCHEMAS:
        skip("custom resources of other projects", "what validates them could not be fetched")
        return
    sys.path.insert(0, SCHEMAS)
    known = crds.known()
    found = [(name, one) for name, things in rendered.items() for one in things] + list(renders.files_with_objects())
    ours = {}
    for name, one in found:
        if (one["apiVersion"], one["kind"]) in known:
            ours.setdefault(one["kind"], []).append((name, one))
    for (version, kind), schema in known.items():
        check(f"{kind} {version}: every field is known", ["there is none"] if kind not in ours else [
            f"{name}: {fault}" for name, one in ours[kind] for fault in crds.faults(one, schema)])

    def misspelt(kind, change):
        one = json.loads(json.dumps(ours[kind][0][1]))
        change(one["spec"])
        return list(crds.faults(one, known[one["apiVersion"], kind]))

    check("... and a wrong field would be noticed, the project's and the pod's", [kind for kind, change in (
        ("InferencePool", lambda spec: spec.update(targetPort=8000)),
        ("LeaderWorkerSet", lambda spec: spec["leaderWorkerTemplate"].update(restartPolicy="Always")),
        ("InferenceService", lambda spec: spec["predictor"].update(initContainer=[])),
        ("InferenceService", lambda spec: spec["predictor"]["initContainers"][0].update(restartPolicies="Always")),
        ("LLMInferenceServiceConfig", lambda spec: spec["template"]["containers"][0].update(arg=[])),
    ) if not misspelt(kind, change)])
    metrics = set()
    for path in [*glob.glob(os.path.join(TOP, "metrics/**/*.cpp"), recursive=True), *glob.glob(os.path.join(TOP, "proxy/**/*.cpp"), recursive=True)]:
        with open(path, encoding="utf-8") as file:
            metrics |= set(re.findall(r'"(noren_[a-z_]+)"', file.read()))
    config = ours["EndpointPickerConfig"][0][1]
    check("... and the picker's names are those of its plugins and of noren's metrics", crds.picker_faults(config, metrics))


def kserve_merges():
    """KServe merges our template over its own, a strategic merge by names, as kustomize does it with a Deployment."""
    if not KUBECTL:
        skip("our template over that of KServe", "no kubectl")
        return
    with open(os.path.join(TOP, "deploy/stacks/kserve/llminferenceserviceconfig.yaml"), encoding="utf-8") as file:
        ours = yaml.safe_load(file)["spec"]["template"]
    with open(os.path.join(TOP, "tests/deploy/fixtures/kserve/template.yaml"), encoding="utf-8") as file:
        theirs = yaml.safe_load(file)["spec"]["template"]
    with tempfile.TemporaryDirectory() as folder:
        def write(name, thing):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                yaml.safe_dump(thing, file)

        def deployment(spec):
            return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "any"},
                    "spec": {"selector": {"matchLabels": {"app": "any"}}, "template": {"metadata": {"labels": {"app": "any"}}, "spec": spec}}}

        write("theirs.yaml", deployment(theirs))
        write("ours.yaml", deployment(ours))
        write("kustomization.yaml", {"resources": ["theirs.yaml"], "patches": [{"path": "ours.yaml"}]})
        merged = objects(renders.kustomize(folder))[0]["spec"]["template"]["spec"]
    main_container = merged["containers"][0]
    check("our template over that of KServe", [
        *preflight.complaints(merged, {}), *policies.handler_faults(merged),
        *(f"{name} is gone" for name in ("image", "command", "livenessProbe") if name not in main_container),
        *([] if main_container["args"][-2:] == ["--port", "8200"] else ["the engine keeps its port"])])


# --- on a machine without containers

def bare_metal():
    unit_file = os.path.join(TOP, "deploy/systemd/noren.service")
    build = os.path.dirname(os.path.abspath(BIN))
    if not os.path.exists(os.path.join(build, "CMakeCache.txt")) or not os.path.exists(os.path.join(BIN, "noren")):
        skip("cmake --install", f"{build} is no build of noren")
    else:
        with tempfile.TemporaryDirectory() as root:
            faults = fails(["cmake", "--install", build, "--prefix", "/usr/local"], env={**os.environ, "DESTDIR": root})
            noren, example = (os.path.join(root, "usr/local", one) for one in ("bin/noren", "share/noren/noren.example.yaml"))
            unit = os.path.join(root, "usr/local/lib/systemd/system/noren.service")
            faults = faults or [f"{one} is missing" for one in (noren, example, unit) if not os.path.exists(one)]
            check("cmake --install: the program, its example config and the unit", faults)
            check("... and the installed noren takes the installed example", faults or fails([noren, "check", example]))
            with open(unit_file, encoding="utf-8") as file:
                text = file.read()
            for prefix in ("/usr/local", "/opt/noren"):
                faults = fails(["cmake", "--install", build, "--prefix", prefix], env={**os.environ, "DESTDIR": root})
                unit = f"{root}{prefix}/lib/systemd/system/noren.service"
                if not faults:
                    with open(unit, encoding="utf-8") as file:
                        faults = [] if file.read() == text.replace("/usr/local", prefix) else [f"{unit} is another unit"]
                check(f"... the unit under {prefix} starts the noren that is there", faults)
    if not shutil.which("systemd-analyze"):
        skip("the systemd unit", "no systemd-analyze here")
        return
    with tempfile.TemporaryDirectory() as folder:
        with open(unit_file, encoding="utf-8") as file:
            unit = file.read()
        # verify wants the program to be there, and says nothing of what it does not know but on stderr.
        tried = os.path.join(folder, "noren.service")
        with open(tried, "w", encoding="utf-8") as file:
            file.write(unit.replace("/usr/local/bin/noren", sys.executable))

        def verify():
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", tried], capture_output=True, text=True, check=False)
            return [line for line in (done.stdout + done.stderr).splitlines() if "noren" in line]

        check("systemd-analyze verify", verify())
        settings = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line and not line.startswith("#"))
        wanted = {"RuntimeDirectory": "noren", "RuntimeDirectoryMode": "0755", "LogsDirectory": "noren", "DynamicUser": "yes"}
        check("... clients reach a socket in /run/noren, and /var/log/noren can be written", [
            f"{key}={settings.get(key)}" for key, value in wanted.items() if settings.get(key) != value])
        with open(tried, "a", encoding="utf-8") as file:
            file.write("[Service]\nProtectSytem=strict\n")
        check("... and a wrong key would be noticed", [] if verify() else ["it is not"])


def main():
    lint()
    operator_objects()
    bare_metal()
    render_all()
    rendered = all_renders()
    only_the_engine_changes(rendered)
    one_truth(rendered)
    no_complaints(rendered)
    preflight_complains(rendered)
    schemas(rendered)
    round_trips()
    custom_resources(rendered)
    other_projects(rendered)
    kserve_merges()
    print(f"{results['passed']} passed, {results['failed']} failed, {results['skipped']} skipped")
    return 1 if results["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
