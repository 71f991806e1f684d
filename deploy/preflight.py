#!/usr/bin/env python3
"""preflight.py FILE...: reads rendered manifests (- is stdin), says what would go wrong with noren in them.

    kubectl kustomize overlay | deploy/preflight.py -
    helm template my-release deploy/helm/noren | deploy/preflight.py -
    kubectl get deployment,configmap -o yaml | deploy/preflight.py -

Exit status: 0 nothing to say, 1 something is wrong, 2 nothing with noren was found."""
import re
import sys

import yaml

OPS_PORT = 9464
LEAST_LIVENESS = 30
DRAIN_DEFAULTS = {"lame_duck": "5s", "timeout": "2m"}
UNITS = {"": 0, "ms": 0.001, "s": 1, "m": 60, "h": 3600}


def objects_in(text):
    for document in yaml.safe_load_all(text):
        if isinstance(document, dict):
            yield from document["items"] if document.get("kind", "").endswith("List") and "items" in document else [document]


def pod_templates(thing, where=""):
    """Every pod template in an object of any kind, with the path that leads to it."""
    if isinstance(thing, dict):
        if isinstance(thing.get("containers"), list) and "spec" in where:
            yield where, thing
        for key, value in thing.items():
            yield from pod_templates(value, f"{where}.{key}" if where else key)


def seconds(text):
    found = re.fullmatch(r"(\d+)(ms|s|m|h|)", str(text))
    return int(found[1]) * UNITS[found[2]] if found else 0


def drain_times(noren, spec, config_maps):
    """lame_duck and timeout of the ConfigMap that the container mounts, or None if it is not among the objects."""
    mount = next((one for one in noren.get("volumeMounts", []) if one["mountPath"] == "/etc/noren"), None)
    if mount is None:
        return DRAIN_DEFAULTS
    volume = next((one for one in spec.get("volumes", []) if one["name"] == mount["name"]), {})
    data = config_maps.get(volume.get("configMap", {}).get("name"))
    if data is None:
        return None
    return DRAIN_DEFAULTS | ((yaml.safe_load(data.get("noren.yaml", "")) or {}).get("drain") or {})


def find_noren(spec):
    for group in ("initContainers", "containers"):
        for container in spec.get(group) or []:
            if container["name"] == "noren":
                return group, container
    return None, None


def check_hooks(noren, engine):
    hook = noren.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", [])
    if hook[-2:] != ["ctl", "drain"]:
        yield "noren has no preStop hook `noren ctl drain`: nothing begins a drain before the engine gets SIGTERM"
    handlers = engine.get("lifecycle", {}).get("preStop", {})
    if len(handlers) > 1:
        yield f"the preStop hook of {engine['name']} has {' and '.join(handlers)}: Kubernetes takes one"
    asked = waits_for(handlers)
    if not asked:
        yield f"{engine['name']} has no preStop hook httpGet :{OPS_PORT}/-/drain-wait: its SIGTERM will cut every stream"
    elif "begin_within=" not in asked:
        yield f"the hook of {engine['name']} does not say begin_within: it may look before the drain has begun"


def waits_for(handlers):
    """What the hook asks noren's ops port for: by httpGet, or by a command of the engine's image."""
    get, command = handlers.get("httpGet", {}), " ".join(handlers.get("exec", {}).get("command", []))
    if get.get("port") == OPS_PORT and get.get("path", "").startswith("/-/drain-wait"):
        return get["path"]
    return command if "/-/drain-wait" in command and str(OPS_PORT) in command else ""


def check_grace(noren, spec, config_maps):
    grace = spec.get("terminationGracePeriodSeconds", 30)
    drain = drain_times(noren, spec, config_maps)
    if drain is None:
        return
    needed = seconds(drain["lame_duck"]) + seconds(drain["timeout"]) + 5
    if grace < needed:
        yield (f"terminationGracePeriodSeconds is {grace}, but lame_duck {drain['lame_duck']} + timeout {drain['timeout']} + 5s "
               f"take {needed:g}: SIGKILL will cut streams")


def check_ports(noren, engine):
    env = {one["name"]: one.get("value", "") for one in noren.get("env", [])}
    listen = env.get("NOREN_LISTEN", "").rsplit(":", 1)[-1]
    upstream = env.get("NOREN_UPSTREAM", "")
    if listen and upstream.rsplit(":", 1)[-1] == listen and not upstream.startswith("unix:"):
        yield f"noren listens on port {listen}, where it also looks for the engine"
    declared = [str(one["containerPort"]) for one in engine.get("ports", [])]
    if declared and listen and listen not in declared:
        yield f"clients know port {', '.join(declared)} of {engine['name']}, noren listens on {listen}"


def check_start(group, noren):
    if group == "initContainers" and noren.get("restartPolicy") != "Always":
        yield "noren is an init container without restartPolicy: Always: the engine would wait for its end, for ever"
    path = noren.get("startupProbe", {}).get("httpGet", {}).get("path")
    if path not in (None, "/-/healthy"):
        yield f"noren's startupProbe asks {path}: the engine starts only after noren is started, so it must be /-/healthy"
    if not noren.get("readinessProbe"):
        yield "noren has no readinessProbe: nobody notices a drain"


def check_engine_probe(engine):
    """The engine's probes go through noren, so they must outlast a restart of noren (back-off: 10 s, then 20 s)."""
    probe = engine.get("livenessProbe")
    if probe:
        patience = probe.get("periodSeconds", 10) * probe.get("failureThreshold", 3)
        if patience < LEAST_LIVENESS:
            yield (f"the livenessProbe of {engine['name']} gives up after {patience} s: a restart of noren could restart the "
                   f"engine too; give it {LEAST_LIVENESS} s")


def check_mounts(noren):
    mounts = [mount["mountPath"] for mount in noren.get("volumeMounts", [])]
    if noren.get("securityContext", {}).get("readOnlyRootFilesystem") and "/run/noren" not in mounts:
        yield "noren's root is read-only and nothing is mounted at /run/noren: `noren ctl`, and so its hook, will not work"
    for mount in noren.get("volumeMounts", []):
        if "subPath" in mount:
            yield f"{mount['mountPath']} is mounted with subPath: changes never arrive"


def complaints(spec, config_maps):
    group, noren = find_noren(spec)
    engine = next((one for one in spec["containers"] if one["name"] != "noren"), None)
    if engine is None:
        yield "noren is alone in its pod"
        return
    yield from check_hooks(noren, engine)
    yield from check_grace(noren, spec, config_maps)
    yield from check_ports(noren, engine)
    yield from check_start(group, noren)
    yield from check_engine_probe(engine)
    yield from check_mounts(noren)


def main(files):
    objects = []
    for name in files:
        with sys.stdin if name == "-" else open(name, encoding="utf-8") as file:
            objects += objects_in(file.read())
    config_maps = {one["metadata"]["name"]: one.get("data", {}) for one in objects if one.get("kind") == "ConfigMap"}
    found = wrong = 0
    for one in objects:
        for _, spec in pod_templates(one):
            if not find_noren(spec)[1]:
                continue
            found += 1
            for complaint in complaints(spec, config_maps):
                wrong += 1
                print(f"{one.get('kind', '?')}/{one.get('metadata', {}).get('name', '?')}: {complaint}")
    print(f"{found} pod templates with noren, {wrong} complaints")
    return 2 if not found else 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("--"):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
