"""What the Python end-to-end tests share: starting noren-sim and noren on free ports, reading /metrics and the access log."""
import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

PORTS_LOCK, PORTS_GIVEN = threading.Lock(), set()


def free_port():
    """A port that nobody has, from below the range of which the kernel takes ports for outgoing connections: one from within
    could be taken between this look and its use. Never the same twice in one process."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        end = max(int(file.read().split()[0]), 12_000)
    while True:
        port = random.randrange(10_000, end)
        with PORTS_LOCK, socket.socket() as probe, contextlib.suppress(OSError):
            if port not in PORTS_GIVEN:
                probe.bind(("127.0.0.1", port))
                PORTS_GIVEN.add(port)
                return port


def wait_for(what, condition, seconds=20):
    """Polls until the condition holds; the result of the last look."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        result = condition()
        if result:
            return result
        time.sleep(0.01)
    raise TimeoutError(what)


def is_listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Stack:
    """noren in front of noren-sim, each a process of its own; or in front of an engine of the test's own, which listens at
    engine_port. Use as a context manager."""

    def __init__(self, bin_dir, config="", sim_args=(), noren_args=(), engine_port=None, config_name="noren.yaml",
                 **noren_popen):
        """noren_popen: how noren's process is started otherwise than with its output in a file."""
        self.bin = bin_dir
        self.folder = tempfile.TemporaryDirectory(prefix="noren-test-")
        self.with_sim = engine_port is None
        self.sim_port, self.port, self.ops = engine_port or free_port(), free_port(), free_port()
        self.truth_file = self.path("truth.jsonl")
        self.access_file = self.path("access.jsonl")
        self.config_file = self.path(os.path.join("conf", config_name))
        self.control = self.path("control.sock")
        self.sim_args, self.noren_args, self.noren_popen = list(sim_args), list(noren_args), noren_popen
        os.makedirs(os.path.dirname(self.config_file))
        self.write_config(config)
        self.processes = []

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write_config(self, extra):
        with open(self.config_file, "w", encoding="utf-8") as file:
            file.write(f"control: {{socket: {self.control}}}\nlog: {{access: {self.access_file}}}\n{extra}\n")

    def __enter__(self):
        if self.with_sim:
            self.start_engine()
        self.start_noren()
        wait_for("noren to be ready", lambda: self.get("/-/ready", ok_only=True))
        return self

    def start_engine(self):
        self.start([os.path.join(self.bin, "noren-sim"), "--listen", f"127.0.0.1:{self.sim_port}",
                    "--truth", self.truth_file, *self.sim_args], self.sim_port)

    def start_noren(self):
        self.start([os.path.join(self.bin, "noren"), "--config", self.config_file, "--listen", f"127.0.0.1:{self.port}",
                    "--upstream", f"http://127.0.0.1:{self.sim_port}", "--ops", f"127.0.0.1:{self.ops}",
                    *self.noren_args], self.port, **self.noren_popen)

    def start(self, command, port, **popen):
        with open(self.path(os.path.basename(command[0]) + ".log"), "ab") as log:
            self.processes.append(subprocess.Popen(command, **{"stdout": log, "stderr": log, **popen}))
        wait_for(command[0], lambda: is_listening(port))

    @property
    def noren(self):
        return self.processes[-1]

    def noren_log(self):
        with open(self.path("noren.log"), encoding="utf-8") as file:
            return file.read()

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGINT if process is self.noren else signal.SIGTERM)
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
        self.folder.cleanup()

    def ctl(self, *arguments):
        """What `noren ctl` says through this noren's socket."""
        return subprocess.run([os.path.join(self.bin, "noren"), "ctl", *arguments, "--socket", self.control],
                              capture_output=True, text=True, timeout=30, check=False)

    def get(self, path, ok_only=False, ops=None):
        """A page of the ops endpoint; ops: of another noren's, by its port."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{ops or self.ops}{path}", timeout=10) as answer:
                return answer.read().decode()
        except OSError:
            if ok_only:
                return None
            raise

    def metrics(self, ops=None):
        values = {}
        for line in self.get("/metrics", ops=ops).splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values[name] = float(value)
        return values

    def total(self, family, **labels):
        """Sum over all series of a family with these labels."""
        total = 0.0
        for series, value in self.metrics().items():
            if re.match(re.escape(family) + r"(\{|$)", series) and all(f'{k}="{v}"' in series for k, v in labels.items()):
                total += value
        return total

    def access_log(self):
        with open(self.access_file, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def truth(self):
        with open(self.truth_file, encoding="utf-8") as file:
            return [json.loads(line) for line in file]
