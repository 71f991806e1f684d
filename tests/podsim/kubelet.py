"""The part of a kubelet that decides whether streams live: start order, probes, hooks, restarts and the end of a pod."""
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

from container import as_user
from volumes import Volumes

POD_IP = "127.0.0.2"  # not 127.0.0.1: what binds to loopback only is out of the kubelet's reach
RESTART_DELAY = 1.0  # until the kubelet notices that a container has ended
LEAST_GRACE = 2.0  # after hooks that took all the time
HERE = os.path.dirname(os.path.abspath(__file__))


def http_get(path, port, timeout):
    """Status, or None. Probes and hooks go to the pod's address."""
    try:
        with urllib.request.urlopen(f"http://{POD_IP}:{port}{path}", timeout=timeout) as answer:
            answer.read()
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, ValueError):
        return None


class Container:
    def __init__(self, pod, spec, sidecar):
        self.pod, self.spec, self.name, self.sidecar = pod, spec, spec["name"], sidecar
        self.process = None
        self.started = self.ready = False
        self.restarts = 0
        self.stopping = False
        self.launch = pod.programs(self)

    def start(self):
        self.started = "startupProbe" not in self.spec
        self.ready = self.started and "readinessProbe" not in self.spec
        folder = self.pod.path(f"root-{self.name}-{self.restarts}")
        os.makedirs(folder)
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", sys.executable, os.path.join(HERE, "container.py"),
                 json.dumps({**self.launch, "folder": folder})], stdout=log, stderr=log)
        self.pod.note(f"{self.name} starts")

    @property
    def log_file(self):
        return self.pod.path(f"{self.name}.log")

    def log(self):
        with open(self.log_file, encoding="utf-8") as file:
            return file.read()

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        if self.is_running():
            self.process.send_signal(number)

    def exec(self, *command, timeout=30):
        """As kubectl exec: in the container's files, as its user."""
        inside = ["nsenter", "-t", str(self.process.pid), "--mount", "--root", "--wd=/"]
        return subprocess.run([*inside, *as_user(self.launch, command)], env=self.launch["env"], capture_output=True, text=True,
                              timeout=timeout, check=False)

    def port_number(self, port):
        if isinstance(port, int):
            return port
        return next(one["containerPort"] for one in self.spec["ports"] if one.get("name") == port)

    def probe(self, kind):
        get = self.spec[kind]["httpGet"]
        status = http_get(get["path"], self.port_number(get["port"]), self.spec[kind].get("timeoutSeconds", 1))
        return status is not None and 200 <= status < 400

    def pre_stop(self, patience):
        """Seconds that the hook took."""
        hook = self.spec.get("lifecycle", {}).get("preStop")
        begin = time.monotonic()
        if hook and "exec" in hook:
            try:
                done = self.exec(*hook["exec"]["command"], timeout=patience)
                if done.returncode != 0:
                    self.pod.note(f"preStop of {self.name} failed: {done.stderr.strip()}")
            except subprocess.TimeoutExpired:
                pass
        elif hook:
            http_get(hook["httpGet"]["path"], self.port_number(hook["httpGet"]["port"]), patience)
        took = time.monotonic() - begin
        if hook:
            self.pod.note(f"preStop of {self.name} over after {took:.1f} s")
        return took

    def terminate(self, deadline):
        """SIGTERM, and SIGKILL if it is still there at the deadline."""
        self.pod.note(f"SIGTERM to {self.name}")
        self.signal(signal.SIGTERM)
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.pod.note(f"SIGKILL to {self.name}")
            self.signal(signal.SIGKILL)
            self.process.wait()
        self.pod.note(f"{self.name} ended, status {self.process.returncode}")


class Pod:
    """A pod of a rendered workload. programs(container) says what to run for it: command, env, mounts, uid."""

    def __init__(self, template, config_maps, folder, programs):
        self.spec = template["spec"]
        self.folder = folder
        self.begin = time.monotonic()
        self.notes = []
        self.annotations = dict(template["metadata"].get("annotations", {}))
        self.config_maps = config_maps
        self.volumes = Volumes(self.path("volumes"), self.spec.get("volumes", []), config_maps, self.annotations)
        self.programs = programs
        self.probing = True
        self.over = threading.Event()  # gone, or no longer of interest
        self.deleted_at = None
        self.sidecars = [Container(self, spec, True) for spec in self.spec.get("initContainers", [])]
        self.mains = [Container(self, spec, False) for spec in self.spec["containers"]]
        self.containers = self.sidecars + self.mains
        self.threads = []

    @property
    def living(self):
        return not self.over.is_set()

    def path(self, name):
        return os.path.join(self.folder, name)

    def note(self, text):
        self.notes.append((time.monotonic(), text))

    def when(self, text):
        """Time of the first note that begins so."""
        return next((at for at, note in self.notes if note.startswith(text)), None)

    def __getitem__(self, name):
        return next(one for one in self.containers if one.name == name)

    def spawn(self, function, *arguments):
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        thread.start()
        self.threads.append(thread)
        return thread

    # --- from nothing to running

    def start(self):
        self.spawn(self.run)
        return self

    def run(self):
        for sidecar in self.sidecars:
            self.watch(sidecar)
            while not sidecar.started and self.living:
                self.over.wait(0.02)
        for main in self.mains:
            self.watch(main)

    def watch(self, container):
        container.start()
        self.spawn(self.keep_running, container)
        for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
            if kind in container.spec:
                self.spawn(self.keep_probing, container, kind)

    def keep_running(self, container):
        while self.living:
            container.process.wait()
            if not self.living or self.deleted_at:
                return
            self.note(f"{container.name} ended by itself, status {container.process.returncode}" if not container.stopping
                      else f"{container.name} stopped")
            container.ready = False
            self.over.wait(RESTART_DELAY)
            if not self.living or self.deleted_at:
                return
            container.restarts += 1
            container.stopping = False
            container.start()

    def keep_probing(self, container, kind):
        probe = container.spec[kind]
        failures = 0
        while self.living:
            self.over.wait(probe.get("periodSeconds", 10) if kind != "startupProbe" or failures else 0.1)
            if not self.living or self.deleted_at and (kind != "readinessProbe" or not self.probing):
                return
            if container.stopping or (kind == "startupProbe") == container.started:
                continue
            good = container.probe(kind)
            failures = 0 if good else failures + 1
            if kind == "readinessProbe":
                self.set_ready(container, good, failures)
            elif kind == "startupProbe" and good:
                container.started = True
                container.ready = "readinessProbe" not in container.spec
                self.note(f"{container.name} is started")
            elif failures >= probe.get("failureThreshold", 3):
                failures = 0
                self.restart(container, kind)

    def set_ready(self, container, good, failures):
        if good != container.ready and (good or failures >= container.spec["readinessProbe"].get("failureThreshold", 3)):
            container.ready = good
            self.note(f"{container.name} is {'ready' if good else 'not ready'}")

    def restart(self, container, why):
        """A probe gave up: hook and SIGTERM, as at the end of a pod, but for this container alone."""
        self.note(f"{why} of {container.name} failed")
        container.stopping = True
        deadline = time.monotonic() + self.grace
        container.pre_stop(self.grace)
        container.terminate(deadline)

    @property
    def grace(self):
        return self.spec.get("terminationGracePeriodSeconds", 30)

    def is_ready(self):
        return all(one.ready for one in self.containers)

    # --- from running to nothing

    def delete(self, evicted=False):
        """In the background; wait() is when it is gone. evicted: no probe of any kind runs on."""
        self.probing = not evicted
        self.deleted_at = time.monotonic()
        self.note("deleted")
        self.ending = self.spawn(self.end)

    def end(self):
        deadline = self.deleted_at + self.grace
        mains = [self.spawn(self.end_one, one, deadline, None) for one in self.mains]
        after = mains
        for sidecar in reversed(self.sidecars):
            after = [self.spawn(self.end_one, sidecar, deadline, after)]
        for thread in mains + after:
            thread.join()
        self.note("gone")
        self.over.set()

    def end_one(self, container, deadline, after):
        """Hooks all begin at once; the SIGTERM of a sidecar waits for those before it."""
        container.pre_stop(max(0.0, deadline - time.monotonic()))
        for thread in after or []:
            thread.join()
        container.terminate(max(deadline, time.monotonic() + LEAST_GRACE))

    def wait(self, seconds):
        self.ending.join(seconds)
        return not self.ending.is_alive()

    def destroy(self):
        self.over.set()
        for container in self.containers:
            container.signal(signal.SIGKILL)
            if container.process:
                container.process.wait()
        for thread in self.threads:
            thread.join(15)

    # --- what a cluster's user does

    def annotate(self, key, value=None):
        """kubectl annotate pod: any change of a pod makes the kubelet sync its volumes."""
        if value is None:
            self.annotations.pop(key, None)
        else:
            self.annotations[key] = value
        self.volumes.sync()

    def update_config_map(self, name, file, text):
        self.config_maps[name] = {**self.config_maps[name], file: text}
