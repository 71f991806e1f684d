"""What can happen to a noren, each with the alerts that are to fire then, and no other."""
import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

from dashboards.odd_engine import OddEngine
from support.harness import Stack, wait_for

# Long enough for the slowest alert: a window of 15 m and then for: 15 m, 30 times as fast.
HOLD_S = 45
PATIENCE_S = 120


class Scenario(Stack):
    """A noren, an engine and what happens to them. fires: the alerts that are to fire."""
    fires = frozenset()
    config = ""
    sim = ()

    def __init__(self, bin_dir, prometheus, suffix=""):
        super().__init__(bin_dir, config=self.config, sim_args=self.sim)
        self.prometheus, self.job, self.over = prometheus, type(self).__name__ + suffix, contextlib.ExitStack()

    def run(self):
        """Plays it; the set of alerts that fired."""
        with self.over, self:
            self.prometheus.watch(self.job, self.ops)
            wait_for("the first scrape", lambda: self.prometheus.query(f'noren_build_info{{job="{self.job}"}}'))
            self.start_s = time.time()
            self.act()
            deadline = time.time() + PATIENCE_S
            while time.time() < self.start_s + HOLD_S or (not self.fires <= self.fired() and time.time() < deadline):
                time.sleep(0.5)
            self.end_s = time.time()
            self.summaries = self.prometheus.summaries(self.job)
            return self.fired()

    def act(self):
        """What happens; load goes on until the scenario is over."""
        raise NotImplementedError

    def fired(self):
        return self.prometheus.fired(self.job)

    def until_fired(self, alert):
        wait_for(alert, lambda: alert in self.fired(), PATIENCE_S)

    def load(self, *arguments):
        command = [os.path.join(self.bin, "noren-load"), "--url", f"http://127.0.0.1:{self.port}", "--duration", "10m", *arguments]
        with open(self.path("load.log"), "ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        self.over.callback(process.wait)
        self.over.callback(process.kill)

    def post(self, body, headers=()):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/chat/completions", data=json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json", **dict(headers)})
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()

    def ctl(self, command):
        subprocess.run([os.path.join(self.bin, "noren"), "ctl", command, "--socket", self.control], check=True, capture_output=True)


class Healthy(Scenario):
    """A load that fits."""
    config = ("admission: {max_concurrency: 16, max_queue: 64}\nupstream: {idle_timeout: 200ms}\n"
              "engine_metrics: {figures: on}")

    def act(self):
        self.load("--rate", "6", "--max-tokens", "20:60")


class Overloaded(Scenario):
    """More than fits: refused at once."""
    fires = {"NorenQueueSaturated", "NorenRejections"}
    config = "admission: {max_concurrency: 4, max_queue: 6}\nengine_metrics: {figures: on, merge: on, add_queue: on}"

    def act(self):
        self.load("-c", "30", "--max-tokens", "20:40", "--refused-pause", "300ms")


class PatientQueue(Scenario):
    """More than fits, and everybody may wait."""
    fires = {"NorenTTFTBudgetBurnFast", "NorenTTFTBudgetBurnSlow"}
    config = "admission: {max_concurrency: 2, max_queue: 64}"

    def act(self):
        self.load("-c", "30", "--max-tokens", "20:40")


class EngineGone(Scenario):
    """The engine crashes under load."""
    fires = {"NorenEngineDown", "NorenErrorBudgetBurnFast", "NorenErrorBudgetBurnSlow"}
    config = "upstream: {health_interval: 500ms}"

    def act(self):
        self.load("-c", "4")
        time.sleep(3)
        self.processes[0].kill()


class EngineHangs(Scenario):
    """It takes requests, gives a few tokens and then nothing."""
    fires = {"NorenStalledStreams"}

    def act(self):
        self.load("-c", "4", "-H", "x-sim-fault: stall@400")


class EngineFails(Scenario):
    """One answer in sixty ends in an error event: too much over days, no reason to wake anybody."""
    fires = {"NorenErrorBudgetBurnSlow"}

    def act(self):
        self.load("-c", "6", "--max-tokens", "4", "-H", "x-sim-ttft-ms: 20", "-H", "x-sim-interval-us: 2000")
        self.load("-c", "1", "--max-tokens", "40", "-H", "x-sim-fault: error@5", "-H", "x-sim-interval-us: 40000")


class JerkyText(Scenario):
    """A slow decode."""
    fires = {"NorenInterTokenLatencyHigh"}
    sim = ("--ttft", "0.1", "--tps", "4")

    def act(self):
        self.load("-c", "8", "--max-tokens", "4:12")


class SlowClients(Scenario):
    """Long answers for clients on a train; what the kernel holds for them is not noticed."""
    fires = {"NorenSlowClients"}
    config = "downstream: {buffer: 16KiB}"
    sim = ("--max-output", "20000")

    def act(self):
        self.load("-c", "4", "--slow", "1", "--read-rate", "2000000", "--max-tokens", "4000", "--no-verify",
                  "-H", "x-sim-ttft-ms: 20", "-H", "x-sim-interval-us: 200", "-H", "x-sim-bytes: 4000")


class ClientsLeave(Scenario):
    """Many do not wait for the end."""
    fires = {"NorenClientsLeave"}

    def act(self):
        self.load("-c", "6", "--leave", "0.5")


class ConfigEdited(Scenario):
    """A broken file, then a good one with a key that needs a restart."""
    fires = {"NorenReloadFailed", "NorenRestartRequired"}

    def act(self):
        self.load("-c", "3")
        self.write_config("admision: {max_concurrency: 4}")
        self.until_fired("NorenReloadFailed")
        self.write_config("workers: 3")


class DrainForgotten(Scenario):
    """Drained, and nobody says when it is over."""
    fires = {"NorenDrainForgotten"}
    config = "drain: {lame_duck: 0s}"

    def act(self):
        self.load("-c", "3")
        time.sleep(3)
        self.ctl("drain")


class CrashLoop(Scenario):
    """noren is killed again and again, at last for good."""
    fires = {"NorenRestarting", "NorenDown"}

    def act(self):
        for _ in range(4):
            time.sleep(3)
            self.end_noren()
            self.start_noren()
        self.until_fired("NorenRestarting")
        self.end_noren()

    def end_noren(self):
        noren = self.processes.pop()
        noren.send_signal(signal.SIGKILL)
        noren.wait()


class ManyConnections(Scenario):
    """Idle connections take up the descriptors."""
    fires = {"NorenFileDescriptorsLow"}

    def act(self):
        resource.prlimit(self.noren.pid, resource.RLIMIT_NOFILE, (128, 128))
        for _ in range(85):
            idle = self.over.enter_context(socket.create_connection(("127.0.0.1", self.port)))
            idle.sendall(b"GET /health HTTP/1.1\r\nHost: t\r\n\r\n")
            idle.recv(4096)
        self.load("-c", "1", "--max-tokens", "8")


class ConnectionsRefused(Scenario):
    """More clients than connections."""
    fires = {"NorenConnectionsRefused"}
    config = "downstream: {max_connections: 4}"

    def act(self):
        self.load("-c", "8")


class LogUnread(Scenario):
    """The log's pipe is full and nobody empties it."""
    fires = {"NorenLogLinesDropped"}
    sim = ("--ttft", "0", "--tps", "0")

    def __init__(self, *arguments):
        super().__init__(*arguments)
        os.mkfifo(self.access_file)
        self.over.callback(os.close, os.open(self.access_file, os.O_RDWR))

    def act(self):
        self.load("-c", "4", "--max-tokens", "1", "--no-stream")


class CertificateEnds(Scenario):
    """The certificate for clients has a day left, and the renewed one does not fit its key."""
    fires = {"NorenCertificateExpiring", "NorenCertificateReloadFailed"}

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.certify()
        self.write_config(f"tls: {{certificate: {self.path('tls.crt')}, key: {self.path('tls.key')}}}")

    def certify(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
                        "-subj", "/CN=127.0.0.1", "-keyout", self.path("new.key"), "-out", self.path("new.crt")],
                       check=True, capture_output=True)
        if not os.path.exists(self.path("tls.key")):
            os.rename(self.path("new.key"), self.path("tls.key"))
        os.rename(self.path("new.crt"), self.path("tls.crt"))

    def act(self):
        self.certify()


class Unreadable(Scenario):
    """Answers that noren relays and does not understand, for more models than it has labels."""
    fires = {"NorenParseErrors", "NorenUnobservedAnswers", "NorenModelsAsOther"}
    config = "metrics: {max_models: 1}"
    bytes_per_second, padding, pause = 0, "", 0.05

    def start_engine(self):
        engine = self.over.enter_context(OddEngine(self.bytes_per_second))
        self.sim_port = engine.port

    def act(self):
        end = time.time() + HOLD_S
        for number in range(10_000):
            if time.time() > end:
                break
            self.post({"model": f"m{number % 5}", "messages": [], "padding": self.padding})
            time.sleep(self.pause)


class SlowIntake(Unreadable):
    """The engine reads large bodies slowly, so noren is long in sending them."""
    fires = {"NorenOverheadHigh", "NorenParseErrors", "NorenUnobservedAnswers"}
    config = "downstream: {request_buffer: 16MiB}\nmetrics: {max_models: 8}"
    bytes_per_second, padding = 20_000_000, "x" * 8_000_000


ALL = (Healthy, Overloaded, PatientQueue, EngineGone, EngineHangs, EngineFails, JerkyText, SlowClients, ClientsLeave,
       ConfigEdited, DrainForgotten, CrashLoop, ManyConnections, ConnectionsRefused, LogUnread, CertificateEnds, Unreadable,
       SlowIntake)
SHORT = (Healthy, Overloaded, EngineGone, ConfigEdited)
