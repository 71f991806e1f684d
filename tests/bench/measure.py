"""What the measuring scripts share: the engine, the contestants, the load, and what a process costs."""
import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.harness import free_port, is_listening, wait_for  # noqa: E402

# A GPU for lock-step decoding: every 20 ms one token for every sequence, however many there are. Requests that say their
# own pace by x-sim-* headers take no part in it.
ENGINE = ["--max-batch", "8192", "--kv-tokens", "1000000000", "--step-tokens", "1000000000", "--prefill-tps", "1e12",
          "--step-base-ms", "20", "--step-per-seq-ms", "0", "--step-per-kv-token-us", "0", "--keep-alive", "3600"]

NGINX = """daemon off; pid {dir}/nginx.pid; error_log {dir}/error.log warn;
worker_processes {workers}; worker_rlimit_nofile 20000;
events {{ worker_connections 16384; }}
http {{
    access_log off; keepalive_timeout 1h; keepalive_requests 1000000000; client_max_body_size 64m; client_body_buffer_size 1m;
    client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi;
    scgi_temp_path {dir}/scgi;
    upstream engine {{ server 127.0.0.1:{engine}; keepalive 8192; keepalive_requests 1000000000; }}
    server {{
        listen 127.0.0.1:{port} backlog=4096{reuseport};
        location / {{
            proxy_pass http://engine; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off;
            proxy_read_timeout 1h; proxy_send_timeout 1h;
        }}
    }}
}}
"""
# Without http-no-delay HAProxy holds each token back for up to 200 ms.
HAPROXY = """global
    nbthread {workers}
    maxconn 9000
defaults
    mode http
    option http-no-delay
    timeout connect 5s
    timeout client 1h
    timeout server 1h
    timeout http-keep-alive 1h
listen bench
    bind 127.0.0.1:{port} backlog 4096
    http-reuse always
    server engine 127.0.0.1:{engine} pool-purge-delay 1h
"""
NOREN = """workers: {workers}
admission: {{max_concurrency: 8192}}
control: {{socket: {dir}/control.sock}}
log: {{access: {dir}/access.jsonl}}
"""
# These drop trailers, and with them the hash of a streamed body: their bytes cannot be checked.
DROP_TRAILERS = ("nginx",)
CONTESTANTS = ("direct", "relay", "nginx", "haproxy", "noren")
# Only if it is named: the relay, and a thread that sleeps.
RELAY_OF_TWO = "relay-two-threads"


def raise_descriptor_limit():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def process_tree(pid):
    """A process and all that came of it."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                children.setdefault(int(file.read().rsplit(")", 1)[1].split()[1]), []).append(int(name))
    tree = [pid]
    for one in tree:
        tree += children.get(one, [])
    return tree


def cpu_seconds(pids):
    """User and system time of all threads, ended ones too, to the nanosecond: the process's CPU clock, whose number the
    kernel's ABI makes of the pid (clock_getcpuclockid)."""
    total = 0.0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += time.clock_gettime((~pid << 3) | 2)
    return total


def pss_kib(pids):
    """Memory: private pages, and of shared ones a share."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return total


def machine_seconds():
    """CPU time that anybody used since the machine started."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(field) for field in file.readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return answer.read().decode()


class Running:
    """A server process in a folder of its own. Its children end with it."""

    def __init__(self, command, folder, port, name):
        self.port, self.name = port, name
        self.log_file = os.path.join(folder, name + ".log")
        with open(self.log_file, "wb") as log:
            self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            wait_for(name, lambda: is_listening(port) or self.process.poll() is not None)
            if self.process.poll() is not None:
                raise RuntimeError(f"{name} has ended:\n" + self.log())
        except BaseException:
            self.stop()
            raise
        self.pids = process_tree(self.process.pid)

    def log(self):
        with open(self.log_file, encoding="utf-8", errors="replace") as file:
            return file.read()

    def stop(self):
        self.process.send_signal(signal.SIGINT if self.name == "noren" else signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        self.process.kill()
        self.process.wait()


class Bench:
    """The engine runs as long as the bench; a contestant runs anew for each measurement. Use as a context manager."""

    def __init__(self, bin_dir, engine_args=()):
        raise_descriptor_limit()
        self.bin = os.path.abspath(bin_dir)
        self.folder = tempfile.TemporaryDirectory(prefix="noren-bench-")
        self.engine_args, self.engine = [*ENGINE, *engine_args], None

    def __enter__(self):
        port = free_port()
        self.engine = Running([self.program("noren-sim"), "--listen", f"127.0.0.1:{port}", *self.engine_args], self.folder.name,
                              port, "engine")
        return self

    def __exit__(self, *_):
        self.engine.stop()
        self.folder.cleanup()

    def program(self, name):
        return os.path.join(self.bin, name)

    @contextlib.contextmanager
    def contestant(self, name, workers=1, config=""):
        """Starts one in front of the engine; None for "direct". config: more of noren's."""
        if name == "direct":
            yield None
            return
        folder = tempfile.mkdtemp(prefix=name + "-", dir=self.folder.name)
        os.chmod(folder, 0o755)  # nginx's worker is another user
        values = {"dir": folder, "port": free_port(), "ops": free_port(), "engine": self.engine.port, "workers": workers,
                  "reuseport": " reuseport" if workers > 1 else ""}
        running = Running(self.command(name, values, config), folder, values["port"], name)
        running.ops, running.folder = values["ops"], folder
        try:
            wait_for("the engine behind " + name, lambda: get(values["port"], "/health") is not None)
            running.pids = process_tree(running.process.pid)
            yield running
        finally:
            running.stop()

    def command(self, name, values, config):
        file = os.path.join(values["dir"], "noren.yaml" if name == "noren" else "conf")
        text = {"nginx": NGINX, "haproxy": HAPROXY, "noren": NOREN}.get(name, "").format(**values)
        with open(file, "w", encoding="utf-8") as out:
            out.write(text + config)
        if name in ("relay", RELAY_OF_TWO):
            return [self.program("noren-bench-relay"), str(values["port"]), str(values["engine"]),
                    *(["--second-thread"] if name == RELAY_OF_TWO else [])]
        if name == "nginx":
            return ["nginx", "-e", values["dir"] + "/error.log", "-p", values["dir"], "-c", file]
        if name == "haproxy":
            return ["haproxy", "-db", "-f", file]
        return [self.program("noren"), "--config", file, "--listen", f"127.0.0.1:{values['port']}", "--upstream",
                f"http://127.0.0.1:{values['engine']}", "--ops", f"127.0.0.1:{values['ops']}"]

    def start_load(self, port, arguments):
        return subprocess.Popen([self.program("noren-load"), "--url", f"http://127.0.0.1:{port}", "--lean", "--json", *arguments],
                                stdout=subprocess.PIPE, text=True)

    def load(self, port, arguments):
        """Runs the load to its end; its report."""
        return report_of(self.start_load(port, arguments))


def report_of(load):
    out, _ = load.communicate(timeout=300)
    run = json.loads(out)["runs"][0]
    run["broken"] = run["requests"] - run["ok"]
    run["unchecked"] = run["ok"] - run["body_checked"]
    return run


def paced(tokens, interval_us, ttft_ms=0):
    """Arguments of a load: each stream for itself."""
    headers = {"x-sim-tokens": tokens, "x-sim-interval-us": interval_us, "x-sim-ttft-ms": ttft_ms}
    return [argument for name, value in headers.items() for argument in ("-H", f"{name}: {value}")]


class Scraper:
    """Reads /metrics every so often, as Prometheus would. Use as a context manager."""

    def __init__(self, port, seconds=1.0):
        self.port, self.seconds, self.over, self.count = port, seconds, threading.Event(), 0
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over.is_set():
            get(self.port, "/metrics")
            self.count += 1
            self.over.wait(self.seconds)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()


class Costs:
    """CPU seconds of everybody who takes part, and of the others, from its making to end()."""

    def __init__(self, contestant, engine):
        self.contestant_pids = contestant.pids if contestant else []
        self.engine_pids = engine.pids
        self.began, self.start = time.monotonic(), self.now()

    def now(self):
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {"contestant": cpu_seconds(self.contestant_pids), "engine": cpu_seconds(self.engine_pids),
                "load": children.ru_utime + children.ru_stime, "bench": time.process_time(), "machine": machine_seconds()}

    def end(self):
        """The load must have been waited for."""
        seconds = time.monotonic() - self.began
        used = {key: value - self.start[key] for key, value in self.now().items()}
        used["foreign"] = max(0.0, used["machine"] - sum(used[key] for key in ("contestant", "engine", "load", "bench")))
        return {"seconds": seconds, "cpu": used, "cores": {key: value / seconds for key, value in used.items()}}
