#!/usr/bin/env python3
"""main.py BIN_DIR [--full] [--only WORD]: plays the kubelet for the pods that deploy/ renders, with noren and the simulated
engine as real processes. One line for each scenario, then the totals. --full: the manifests' own times and a stream of 60 s.
Started by tests/podsim.sh, in a network namespace of its own."""
import argparse
import array
import fcntl
import os
import shutil
import socket
import struct
import sys
import tempfile
import time
import traceback

import yaml

import scenarios
from kubelet import Pod

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
NOREN_UID = 1000730000  # as OpenShift gives out; no entry in any passwd


def bring_loopback_up():
    set_flags, up_and_running = 0x8914, 0x41
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, set_flags, array.array("B", struct.pack("16sh14x", b"lo", up_and_running)).tobytes())


class Bench:
    """What scenarios start pods with."""

    def __init__(self, bin_dir, full):
        self.bin, self.full = os.path.abspath(bin_dir), full
        self.folder = tempfile.mkdtemp(prefix="podsim-")
        os.chmod(self.folder, 0o755)
        self.pods = []

    def programs(self, container):
        mounts = [(container.pod.volumes.path(mount["name"]), mount["mountPath"], mount.get("readOnly", False))
                  for mount in container.spec.get("volumeMounts", [])]
        env = {one["name"]: one["value"] for one in container.spec.get("env", [])}
        if container.name != "noren":
            command = [sys.executable, os.path.join(HERE, "engine.py"), os.path.join(self.bin, "noren-sim"), *container.spec["args"]]
            return {"command": command, "env": {**os.environ, **env}, "mounts": mounts, "uid": None, "read_only_root": False}
        noren = "/usr/local/bin/noren"
        return {"command": [noren], "env": env, "mounts": [(os.path.join(self.bin, "noren"), noren, True), *mounts],
                "uid": NOREN_UID, "read_only_root": container.spec["securityContext"]["readOnlyRootFilesystem"]}

    def pod(self, example="vllm", change=None, config=None, engine_env=None):
        """change(pod spec) and config (noren.yaml) as an overlay would set them."""
        with open(os.path.join(TOP, "tests/deploy/golden", example + ".yaml"), encoding="utf-8") as file:
            objects = list(yaml.safe_load_all(file))
        template = next(one for one in objects if one["kind"] == "Deployment")["spec"]["template"]
        config_maps = {one["metadata"]["name"]: one["data"] for one in objects if one["kind"] == "ConfigMap"}
        if not self.full:
            scenarios.shorten(template["spec"], config_maps)
        if config:
            config_maps["noren-config"] = {"noren.yaml": config}
        if change:
            change(template["spec"])
        engine = template["spec"]["containers"][0]
        engine["env"] = [*engine.get("env", []), *({"name": k, "value": v} for k, v in (engine_env or {}).items())]
        folder = os.path.join(self.folder, str(len(self.pods)))
        os.makedirs(folder)
        pod = Pod(template, config_maps, folder, self.programs)
        self.pods.append(pod)
        return pod.start()

    def clean(self):
        for pod in self.pods:
            pod.destroy()


def run(scenario, bench):
    begin = time.monotonic()
    try:
        detail, good = scenario(bench), True
    except Exception as problem:  # whatever it is, the other scenarios go on
        at = traceback.extract_tb(problem.__traceback__)[-1]
        said = str(problem) or at.line  # an assertion without words shows itself
        detail, good = f"{type(problem).__name__}: {said} ({os.path.basename(at.filename)}:{at.lineno})", False
    bench.clean()
    print(f"{'ok  ' if good else 'FAIL'}  {scenario.__doc__.splitlines()[0]:<74} {time.monotonic() - begin:5.1f} s  {detail}", flush=True)
    if not good:
        for pod in bench.pods:
            for at, text in pod.notes:
                print(f"        {at - pod.begin:7.2f} s  {text}")
            for container in pod.containers:
                print("\n".join(f"        {container.name}: {line}" for line in container.log().splitlines()[-8:]))
    shutil.rmtree(bench.folder, ignore_errors=True)
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    bring_loopback_up()
    chosen = [one for one in scenarios.ALL if options.only in one.__name__]
    results = [run(one, Bench(options.bin, options.full)) for one in chosen]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
