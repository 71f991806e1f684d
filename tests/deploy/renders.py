"""What deploy/ renders to: every kustomize example and every interesting set of Helm values."""
import glob
import os
import subprocess

import yaml

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHART = "deploy/helm/noren"
GOLDEN = "tests/deploy/golden"

# Golden name -> folder for kubectl kustomize.
KUSTOMIZE = {
    "vllm-bare": "deploy/kustomize/examples/vllm-bare",
    "vllm": "deploy/kustomize/examples/vllm",
    "vllm-classic": "deploy/kustomize/examples/vllm-classic",
    "vllm-meshes": "tests/deploy/fixtures/meshes",
    "vllm-overlay": "tests/deploy/fixtures/overlay",
    "engines": "deploy/kustomize/examples/engines",
    "production-stack": "tests/deploy/fixtures/production-stack",
    "leaderworkerset": "tests/deploy/fixtures/leaderworkerset",
}

# Golden name -> values that are not the default.
EVERYTHING = ("podMonitor.enabled=true", "networkPolicy.enabled=true", "autoscaling.enabled=true")
HELM = {
    "helm": (),
    "helm-everything": EVERYTHING,
    "helm-classic": ("noren-sidecar.mode=classic",),
    "helm-sglang": ("noren-sidecar.engine=sglang", "noren-sidecar.port=30000", "engine.image=lmsysorg/sglang:v0.5.6",
                    "noren-sidecar.image.digest=sha256:" + 64 * "0"),
    "helm-ollama": ("noren-sidecar.engine=ollama", "noren-sidecar.port=11434", "engine.image=ollama/ollama:0.12.10",
                    "engine.healthPath=/", "engine.args=null"),
}

# Values that must be refused -> what the refusal must say.
REFUSED = {
    "noren-sidecar.port=70000": "maximum",
    "noren-sidecar.mode=injected": "mode",
    "noren-sidecar.engine=vlm": "engine",
    "noren-sidecar.image.tag=latest": "tag",
    "noren-sidecar.terminationGracePeriodSeconds=60": "terminationGracePeriodSeconds is 60",
    "noren-sidecar.config.drain.timeout=5m": "take 315",
    "noren-sidecar.config.drain.timeout=fast": "timeout",
    "noren-sidecar.config.admision.max_queue=1": "admision",
    "engine.imag=x:1": "imag",
    "engine.image=vllm/vllm-openai": "image",
    "podMonitor.enable=true": "enable",
}


def kustomize(folder):
    return run([os.environ["KUBECTL"], "kustomize", folder])


def helm(*settings):
    arguments = [part for one in settings for part in ("--set", one)]
    return run([os.environ["HELM"], "template", "vllm", CHART, "--namespace", "llm", *arguments])


def run(command, **more):
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def objects(text):
    return [one for one in yaml.safe_load_all(text) if one]


def golden(name):
    with open(os.path.join(TOP, GOLDEN, name + ".yaml"), encoding="utf-8") as file:
        return file.read()


def files_with_objects():
    """Manifests that need no rendering."""
    for folder in ("autoscaling", "inference-extension", "stacks/kserve", "kustomize/podmonitor", "kustomize/servicemonitor",
                   "kustomize/prometheusrule"):
        for path in sorted(glob.glob(os.path.join(TOP, "deploy", folder, "*.yaml"))):
            with open(path, encoding="utf-8") as file:
                for one in objects(file.read()):
                    if "kind" in one and not one["apiVersion"].startswith("kustomize.config"):
                        yield os.path.relpath(path, TOP), one
