"""The processes of the test, started and ended by pid: the engine and noren, and what they tell about themselves."""
import ctypes
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.harness import free_port  # noqa: E402

SERIES = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def get(url, timeout=5):
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        return answer.read().decode()


def wait_for(what, condition, seconds=10.0):
    """Polls until condition() is true and returns its value; an AssertionError that says what was waited for."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.01)


class Metrics:
    """One scrape of a Prometheus endpoint."""

    def __init__(self, url):
        self.series = []
        for line in get(url).splitlines():
            found = SERIES.match(line)
            if found:
                self.series.append((found[1], dict(LABEL.findall(found[2] or "")), float(found[3])))

    def total(self, name, **labels):
        """Sum of all series of that name with these labels; there must be one."""
        values = [value for series, has, value in self.series
                  if series == name and labels.items() <= has.items()]
        assert values, f"no series {name} {labels or ''}"
        return sum(values)


def dies_with_its_parent():
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


class Process:
    def __init__(self, name, command, folder, **options):
        self.out_path = folder / f"{name}.out"
        self.err_path = folder / f"{name}.err"
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err, preexec_fn=dies_with_its_parent,
                                            **options)
        self.name = name

    def alive(self):
        status = self.process.poll()
        if status is not None:
            last = self.err_path.read_text(errors="replace") + self.out_path.read_text(errors="replace")
            raise AssertionError(f"{self.name} ended with status {status}: {last[-600:]}")
        return True

    def end(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Engine(Process):
    """llama.cpp with the real model."""

    def __init__(self, folder, model, embedding=False):
        command = [sys.executable, str(pathlib.Path(__file__).with_name("engine.py")), "--model", str(model)]
        super().__init__("embedding-engine" if embedding else "engine",
                         command + (["--embedding"] if embedding else []), folder, stdin=subprocess.PIPE)

    def ready(self):
        """Waits until the model is loaded; the engine's URL."""
        def address():
            self.alive()
            return re.search(r"^ready (http://\S+)$", self.out_path.read_text(errors="replace"), re.M)

        self.url = wait_for("the engine is ready", address, 60)[1]
        return self.url

    def metrics(self):
        return Metrics(self.url + "/metrics")

    def busy_slots(self):
        return sum(slot["is_processing"] for slot in json.loads(get(self.url + "/slots")))


class Noren(Process):
    """noren in front of an engine. Limits are changed the way an operator does it: by editing the file."""

    def __init__(self, folder, program, upstream, name="noren", **admission):
        self.config = folder / f"{name}.yaml"
        self.upstream = upstream
        self.listen, self.ops = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.listen}"
        self.admission = {"max_concurrency": 1, "max_queue": 8, "queue_timeout": "60s", **admission}
        self.write_config()
        clean = {key: value for key, value in os.environ.items() if not key.startswith("NOREN_")}
        super().__init__(name, [str(program), "--config", str(self.config)], folder, env=clean)
        wait_for("noren listens", lambda: self.alive() and self.listens())

    def listens(self):
        try:
            return get(f"http://127.0.0.1:{self.ops}/metrics") and get(f"{self.url}/health")
        except OSError:
            return False

    def write_config(self):
        admission = "".join(f"  {key}: {value}\n" for key, value in self.admission.items())
        text = (f"listen: 127.0.0.1:{self.listen}\n"
                f"upstream:\n  url: {self.upstream}\n  health_interval: 200ms\n"
                f"ops:\n  listen: 127.0.0.1:{self.ops}\n"
                f'control:\n  socket: ""\n'
                f"admission:\n{admission}"
                f"drain:\n  lame_duck: 0\n  timeout: 1s\n")
        fresh = self.config.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(self.config)

    def admit(self, **admission):
        """Edits the file and waits until noren has taken it over."""
        reloads = self.metrics().total("noren_config_reloads_total", result="ok")
        self.admission.update(admission)
        self.write_config()
        wait_for("noren reloads its config",
                 lambda: self.metrics().total("noren_config_reloads_total", result="ok") > reloads)

    def metrics(self):
        return Metrics(f"http://127.0.0.1:{self.ops}/metrics")

    def exchanges(self):
        """The access log so far."""
        lines = self.out_path.read_text(errors="replace").splitlines(keepends=True)
        entries = [json.loads(line) for line in lines if line.endswith("}\n")]
        return [entry for entry in entries if entry["msg"] == "exchange"]

    def recorded(self, request_id):
        """The access log's line of a request."""
        def entry():
            self.alive()
            return next((e for e in self.exchanges() if e["request_id"] == request_id), None)

        return wait_for(f"noren logs {request_id}", entry)
