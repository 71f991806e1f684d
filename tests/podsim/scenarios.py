"""What can happen to a pod, and what must become of its streams."""
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import yaml

from client import Stream, ask, is_served
from kubelet import LEAST_GRACE, POD_IP, http_get

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
OPS = 9464
ALL = []


def scenario(function):
    ALL.append(function)
    return function


def shorten(spec, config_maps):
    """The manifests' times made short enough for a test; --full leaves them as they are."""
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        if probe in spec["containers"][0]:
            spec["containers"][0][probe] |= {"periodSeconds": 1, "failureThreshold": 60 if probe == "startupProbe" else 6}
    config = yaml.safe_load(config_maps["noren-config"]["noren.yaml"])
    config["drain"] = {"lame_duck": "1s", "timeout": "20s"}
    config_maps["noren-config"] = {"noren.yaml": yaml.safe_dump(config)}
    spec["terminationGracePeriodSeconds"] = 30


def wait_for(what, condition, seconds=20.0):
    """Seconds until the condition held."""
    begin = time.monotonic()
    while time.monotonic() < begin + seconds:
        if condition():
            return time.monotonic() - begin
        time.sleep(0.005)
    raise TimeoutError(what)


def logged(container, text):
    """The log has a thread of its own, so a line comes a moment after what it tells of."""
    wait_for(f'"{text}" in the log of {container.name}', lambda: text in container.log(), 5)


def ready(pod):
    wait_for("the pod to be ready", pod.is_ready, 60)
    return pod


def metric(name):
    with urllib.request.urlopen(f"http://{POD_IP}:{OPS}/metrics", timeout=5) as page:
        found = re.search(rf"^{re.escape(name)} (\S+)$", page.read().decode(), re.M)
    return float(found[1])


def noren(pod, *command):
    return pod["noren"].exec("/usr/local/bin/noren", *command)


def said(result, status, text):
    """What a command has to end with and to say."""
    assert result.returncode == status and text in result.stdout + result.stderr, result


def expect_limit(value):
    found = metric("noren_concurrency_limit")
    assert found == value, f"the limit is {found:.0f}, expected {value}"


def without_hook(*names):
    def change(spec):
        for container in spec.get("initContainers", []) + spec["containers"]:
            if container["name"] in names:
                del container["lifecycle"]
    return change


# --- start

@scenario
def start_order(bench):
    """noren starts first, the pod is ready when the engine is"""
    pod = bench.pod(engine_env={"ENGINE_STARTUP": "2"})
    wait_for("the engine to be started", lambda: pod.when("vllm starts"))
    assert pod.when("noren is started") < pod.when("vllm starts"), "the engine started before noren"
    assert http_get("/-/healthy", OPS, 1) == 200, "noren is not healthy before the engine is up"
    assert http_get("/-/ready", OPS, 1) == 503, "noren is ready before the engine is up"
    assert not pod.is_ready(), "the pod is ready before the engine is up"
    ready(pod)
    assert http_get("/health", 8200, 1) is None, "the engine can be reached past noren"
    return f"ready {pod.when('noren is ready') - pod.begin:.1f} s after the start, the engine took 2 s"


@scenario
def hardened(bench):
    """noren runs with an arbitrary uid, no capability, a read-only root"""
    pod = ready(bench.pod())
    with open(f"/proc/{pod['noren'].process.pid}/status", encoding="utf-8") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file)
    assert status["Uid"].split()[0] == "1000730000" and status["NoNewPrivs"] == "1", status
    assert all(int(status[name], 16) == 0 for name in ("CapBnd", "CapEff", "CapPrm", "CapInh")), status
    denied = pod["noren"].exec("touch", "/usr/local/bin/x")
    assert "Read-only file system" in denied.stderr, denied
    return "uid 1000730000, CapBnd 0, NoNewPrivs 1"


# --- end

def survive(bench, example, evicted=False, change=None):
    length = 60 if bench.full else 6
    pod = ready(bench.pod(example, change))
    stream = Stream(length).wait_for_first()
    pod.delete(evicted)
    wait_for("readiness to fail", lambda: http_get("/-/ready", OPS, 1) == 503, 1)
    assert is_served(), "refused during the lame-duck time"
    wait_for("new work to be refused", lambda: ask() == (503, "draining"), 15)
    stream.wait()
    assert stream.whole, f"cut after {stream.seconds:.1f} s ({stream.broken}, {stream.events} events)"
    assert pod.wait(pod.grace + 5), "the pod did not end"
    end = pod.when("gone") - pod.deleted_at
    assert pod.when("SIGTERM to vllm") > stream.ended_at - 0.2, "the engine was stopped before the stream's end"
    assert pod["noren"].process.returncode == 0 and not pod.when("SIGKILL"), pod.notes
    return f"{stream.events} events in {stream.seconds:.1f} s; the pod was gone {end:.1f} s after its deletion, grace {pod.grace} s"


@scenario
def stream_survives_with_kserve_hook(bench):
    """a stream survives the deletion of its pod (the hook of stacks/kserve, a line of bash)"""
    with open(os.path.join(TOP, "deploy/stacks/kserve/llminferenceserviceconfig.yaml"), encoding="utf-8") as file:
        engine = yaml.safe_load(file)["spec"]["template"]["containers"][0]
    return survive(bench, "vllm", change=lambda spec: spec["containers"][0].update(lifecycle=engine["lifecycle"]))


@scenario
def stream_survives_deletion(bench):
    """a stream survives the deletion of its pod (native sidecar)"""
    return survive(bench, "vllm")


@scenario
def stream_survives_deletion_classic(bench):
    """a stream survives the deletion of its pod (classic layout)"""
    return survive(bench, "vllm-classic")


@scenario
def stream_survives_eviction(bench):
    """a stream survives an eviction, where no probe runs any more"""
    return survive(bench, "vllm", evicted=True)


def cut(bench, change, patience):
    pod = ready(bench.pod(change=change))
    stream = Stream(20).wait_for_first()
    pod.delete()
    stream.wait()
    after = stream.ended_at - pod.deleted_at
    assert not stream.whole and stream.broken, "the stream was not cut, or ended as if it were whole"
    assert patience - 1 < after < patience + 1.5, f"cut after {after:.1f} s"
    assert pod.wait(40), "the pod did not end"
    return f"cut {after:.1f} s after the deletion; the client sees {stream.broken}"


@scenario
def no_hooks(bench):
    """without hooks the engine's SIGTERM cuts the stream at once, visibly"""
    return cut(bench, without_hook("noren", "vllm"), 0)


@scenario
def no_engine_hook(bench):
    """with noren's hook alone likewise"""
    return cut(bench, without_hook("vllm"), 0)


@scenario
def no_noren_hook(bench):
    """with the engine's hook alone it is cut when begin_within is over"""
    return cut(bench, without_hook("noren"), 5)


@scenario
def drain_timeout(bench):
    """a stream longer than drain.timeout is cut then, not by SIGKILL"""
    pod = ready(bench.pod(config="drain: {lame_duck: 1s, timeout: 3s}\n"))
    stream = Stream(20).wait_for_first()
    pod.delete()
    assert pod.wait(20), "the pod did not end"
    stream.wait()
    after = stream.ended_at - pod.deleted_at
    assert stream.broken and 3.5 < after < 5.5, f"{stream.broken} after {after:.1f} s"
    assert not pod.when("SIGKILL"), "SIGKILL, not drain.timeout"
    logged(pod["noren"], "drain.timeout is over")
    return f"cut after {after:.1f} s of lame_duck 1 s + timeout 3 s"


@scenario
def grace_too_short(bench):
    """a grace period too short: preflight warns of it, and SIGKILL cuts the stream"""
    def change(spec):
        spec["terminationGracePeriodSeconds"] = 4
    pod = ready(bench.pod(change=change))
    rendered = {"kind": "Deployment", "metadata": {"name": "vllm"}, "spec": {"template": {"spec": pod.spec, "metadata": {}}}}
    config = {"kind": "ConfigMap", "metadata": {"name": "noren-config"}, "data": pod.config_maps["noren-config"]}
    preflight = subprocess.run([sys.executable, os.path.join(HERE, "../../deploy/preflight.py"), "-"], text=True, capture_output=True,
                               input=yaml.safe_dump_all([rendered, config]), check=False)
    warning = next((line for line in preflight.stdout.splitlines() if "terminationGracePeriodSeconds" in line), "")
    assert preflight.returncode == 1 and warning, preflight
    stream = Stream(20).wait_for_first()
    pod.delete()
    assert pod.wait(20), "the pod did not end"
    stream.wait()
    after = stream.ended_at - pod.deleted_at
    assert stream.broken and 3.5 < after < 4 + LEAST_GRACE + 1, f"{stream.broken} after {after:.1f} s"
    return f"cut after {after:.1f} s; {warning.split(': ', 1)[1]}"


@scenario
def second_sigterm(bench):
    """a second SIGTERM ends noren at once"""
    pod = ready(bench.pod())
    stream = Stream(20).wait_for_first()
    pod["noren"].signal(signal.SIGTERM)
    logged(pod["noren"], "draining, then ending")
    insist_at = time.monotonic() + 0.3  # earlier it would pass for an echo of the first
    wait_for("a moment to pass", lambda: time.monotonic() > insist_at)
    pod["noren"].signal(signal.SIGTERM)
    took = wait_for("noren to end", lambda: pod.when("noren ended by itself"))
    assert stream.wait().broken, "the stream ended as if it were whole"
    return f"{took * 1e3:.0f} ms"


# --- restarts

@scenario
def engine_restart(bench):
    """an engine that its liveness probe restarts is not held by the hook"""
    pod = ready(bench.pod())
    refuse = urllib.request.Request(f"http://{POD_IP}:8000/sim/control", json.dumps({"refuse_ms": 60000, "drop": True}).encode())
    try:
        urllib.request.urlopen(refuse, timeout=5)
    except urllib.error.HTTPError:
        pass  # dropped with all other connections
    wait_for("the liveness probe to fail", lambda: pod.when("livenessProbe of vllm failed"), 90)
    hook = wait_for("the hook to end", lambda: pod.when("preStop of vllm over"), 15)
    wait_for("the engine to be back", lambda: pod["vllm"].restarts == 1 and is_served(), 30)
    ready(pod)
    assert hook < 7 and pod["noren"].restarts == 0, f"hook {hook:.1f} s, noren restarted {pod['noren'].restarts} times"
    return f"hook {hook:.1f} s, serving {time.monotonic() - pod.when('livenessProbe of vllm failed'):.1f} s after the probe gave up"


@scenario
def noren_crash(bench):
    """noren killed in the middle is back by itself; the engine stays"""
    pod = ready(bench.pod())
    stream = Stream(20).wait_for_first()
    pod["noren"].signal(signal.SIGKILL)
    assert stream.wait().broken, "the stream ended as if it were whole"
    took = wait_for("noren to serve again", lambda: pod["noren"].restarts == 1 and is_served(), 30)
    ready(pod)
    status = noren(pod, "ctl", "status")
    assert pod["vllm"].restarts == 0 and status.returncode == 0, status
    return f"serving again after {took:.1f} s, of which the kubelet took 1 s"


@scenario
def drained_by_hand(bench):
    """noren ctl drain takes a pod out of service without its engine being restarted"""
    pod = ready(bench.pod())
    said(noren(pod, "ctl", "drain"), 0, "draining")
    wait_for("new work to be refused", lambda: ask() == (503, "draining"), 15)
    wait_for("the pod not to be ready", lambda: not pod["noren"].ready, 15)
    until = time.monotonic() + (90 if bench.full else 6)
    wait_for("a while to pass", lambda: time.monotonic() > until, 100)
    assert not pod.when("livenessProbe") and pod["vllm"].ready, "the engine's own probes failed"
    said(noren(pod, "ctl", "undrain"), 0, "serving")
    wait_for("work to be taken again", is_served, 5)
    ready(pod)
    return "not ready while drained, the engine's own probes good throughout, ready after undrain"


# --- live tuning

def limit_is(value):
    return lambda: metric("noren_concurrency_limit") == value


def through_all(pod, act):
    """Seconds that act took, with a stream running all the while that must stay whole."""
    stream = Stream(3).wait_for_first()
    took = act()
    assert stream.wait().whole, "a stream was cut by tuning"
    assert sum(one.restarts for one in pod.containers) == 0, "a container was restarted"
    return took


@scenario
def tune_by_config_map(bench):
    """limit by ConfigMap, and a pod annotation to make the kubelet look"""
    pod = ready(bench.pod())
    text = pod.config_maps["noren-config"]["noren.yaml"]

    def act():
        pod.update_config_map("noren-config", "noren.yaml", text.replace("max_concurrency: 256", "max_concurrency: 48"))
        expect_limit(256)
        begin = time.monotonic()
        pod.annotate("noren.dev/rev", "1")
        wait_for("the limit", limit_is(48))
        return time.monotonic() - begin
    took = through_all(pod, act)
    pod.update_config_map("noren-config", "noren.yaml", "admission: {max_concurrency: lots}\n")
    pod.annotate("noren.dev/rev", "2")
    wait_for("the mistake to be seen", lambda: metric("noren_config_last_reload_successful") == 0)
    expect_limit(48)
    return f"in force {took * 1e3:.0f} ms after the kubelet's sync; a ConfigMap with a mistake changed nothing"


@scenario
def tune_by_ctl(bench):
    """limit by noren ctl limit, until the next reload"""
    pod = ready(bench.pod())

    def act():
        begin = time.monotonic()
        said(noren(pod, "ctl", "limit", "48"), 0, "the limit is 48 until the next reload (configured: 256)")
        expect_limit(48)
        return time.monotonic() - begin
    took = through_all(pod, act)
    assert metric("noren_concurrency_limit_overridden") == 1, "the metric knows of no override"
    table = noren(pod, "ctl", "status").stdout
    assert re.search(r"^running +\d+ of 48 \(until the next reload; configured: 256\)$", table, re.M), table
    said(noren(pod, "ctl", "limit", "many"), 1, 'found "many", expected a whole number')
    said(noren(pod, "ctl", "limit"), 2, "a number belongs to limit")
    said(noren(pod, "ctl", "drain", "3"), 2, "a number belongs to limit")
    expect_limit(48)
    said(noren(pod, "ctl", "reload"), 0, "the config is good; the override 48 is gone, the limit is 256")
    expect_limit(256)
    assert metric("noren_concurrency_limit_overridden") == 0, "the metric still knows of an override"
    return f"in force {took * 1e3:.0f} ms after the command was typed; a reload brought 256 back"


@scenario
def tune_by_annotation(bench):
    """limit by an annotation of the pod"""
    pod = ready(bench.pod())
    key = "noren.dev/max-concurrency"

    def act():
        begin = time.monotonic()
        pod.annotate(key, "48")
        wait_for("the limit", limit_is(48))
        return time.monotonic() - begin
    took = through_all(pod, act)
    pod.annotate(key, "many")
    wait_for("the mistake to be seen", lambda: metric("noren_config_last_reload_successful") == 0)
    expect_limit(48)
    logged(pod["noren"], "/etc/podinfo/max-concurrency")
    pod.annotate(key)
    back = wait_for("the config's limit", limit_is(256))
    assert metric("noren_config_last_reload_successful") == 1, "the mended annotation does not count as good"
    return f"in force {took * 1e3:.0f} ms after the kubelet's sync; taken away again: {back:.1f} s"
