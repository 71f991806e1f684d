"""noren and what every process of the test has in common: started and ended by pid, asked about itself."""
import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.harness import free_port, is_listening  # noqa: E402,F401

SERIES = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def get(url, timeout=5):
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        return answer.read().decode()


def wait_for(what, condition, seconds=20.0, every=0.01):
    """Polls until condition() is true and returns its value; an AssertionError that says what was waited for."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(every)


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


class Noren(Process):
    """noren in front of an engine. Limits are changed the way an operator does it: by editing the file."""

    def __init__(self, folder, program, upstream, name="noren", drain_timeout="1s", **admission):
        self.config = folder / f"{name}.yaml"
        self.upstream = upstream
        self.listen, self.ops = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.listen}"
        self.admission = {"max_concurrency": 1, "max_queue": 8, "queue_timeout": "60s", "full_status": 429,
                          **admission}
        self.drain_timeout = drain_timeout
        self.program, self.sockets = str(program), tempfile.TemporaryDirectory(prefix="noren-real-")
        self.write_config()
        clean = {key: value for key, value in os.environ.items() if not key.startswith("NOREN_")}
        super().__init__(name, [str(program), "--config", str(self.config)], folder, env=clean)
        wait_for("noren listens", lambda: self.alive() and self.listens())

    def listens(self):
        try:
            get(f"http://127.0.0.1:{self.ops}/metrics")
            get(f"{self.url}/health")
            return True
        except OSError:
            return False

    def write_config(self):
        admission = "".join(f"  {key}: {value}\n" for key, value in self.admission.items())
        text = (f"listen: 127.0.0.1:{self.listen}\n"
                f"upstream:\n  url: {self.upstream}\n  health_interval: 200ms\n"
                f"ops:\n  listen: 127.0.0.1:{self.ops}\n"
                f"control:\n  socket: {self.sockets.name}/control\n"
                f"admission:\n{admission}"
                f"drain:\n  lame_duck: 0\n  timeout: {self.drain_timeout}\n")
        fresh = self.config.with_suffix(".new")
        fresh.write_text(text)
        fresh.replace(self.config)

    def end(self, how=signal.SIGTERM):
        super().end(how)
        self.sockets.cleanup()

    def ctl(self, *words):
        subprocess.run([self.program, "ctl", *words, "--socket", f"{self.sockets.name}/control"], check=True, timeout=10,
                       stdout=subprocess.DEVNULL)

    @contextlib.contextmanager
    def admitting(self, **admission):
        """Other limits for a while."""
        before = {key: self.admission.get(key) for key in admission}
        self.admit(**admission)
        try:
            yield
        finally:
            self.admit(**before)

    def running(self):
        return self.metrics().total("noren_running_requests")

    def ready(self):
        """What a readiness probe gets."""
        try:
            get(f"http://127.0.0.1:{self.ops}/-/ready")
            return True
        except urllib.error.HTTPError as error:
            assert error.code == 503, error
            return False

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
        """The access log's line of a request, or of its first try."""
        def entry():
            self.alive()
            return next(iter(self.tries(request_id)), None)

        return wait_for(f"noren logs {request_id}", entry)

    def tries(self, request_id):
        return [entry for entry in self.exchanges() if entry["request_id"] == request_id]
