"""nginx and HAProxy before noren: does what noren promises reach the client through them?

With noren-sim as the engine, which sends the same bytes to the same request and can fall silent at a given byte; and an SDK
with llama.cpp."""
import contextlib
import functools
import http.client
import json
import os
import pathlib
import re
import socket
import tempfile

from behaviour import behaviour, same, within
from clients.apis import OpenAI
from clients.openai_python import OpenAIPython
from engines import LlamaCpp, Simulator, occupied
from matrix import BEHAVIOURS, Trial
from stack import Process, free_port, is_listening, wait_for

HERE = pathlib.Path(__file__).parent
SILENT_AT = 1500  # bytes of a stream: some events in


class Balancer(Process):
    name: str

    def __init__(self, folder, noren, command, **options):
        super().__init__(f"{self.name}-{noren.name}", command, folder, **options)
        self.noren = noren
        self.url = f"http://127.0.0.1:{self.port}"
        wait_for(f"{self.name} listens", lambda: self.alive() and is_listening(self.port))


class Nginx(Balancer):
    name = "nginx"
    at_drain = "noren's own 503"

    def __init__(self, folder, noren, **changed):
        """changed: directives with other values than in nginx.conf."""
        self.port = free_port()
        prefix = pathlib.Path(tempfile.mkdtemp(prefix="nginx-", dir=folder))
        text = (HERE / "nginx.conf").read_text().replace("@NOREN@", str(noren.listen)).replace("@LISTEN@", str(self.port))
        for directive, value in changed.items():
            text, found = re.subn(rf"\b{directive} [^;]*;", f"{directive} {value};", text)
            assert found == 1, f"{directive} is not in nginx.conf"
        (prefix / "nginx.conf").write_text(text)
        super().__init__(folder, noren, ["nginx", "-p", str(prefix), "-e", "stderr", "-c", str(prefix / "nginx.conf"),
                                         "-g", "daemon off; master_process off;"])

    def sees_ready(self):
        """It asks nobody: noren answers for itself."""
        return self.noren.ready()


class Haproxy(Balancer):
    name = "HAProxy"
    at_drain = "HAProxy's 503"

    def __init__(self, folder, noren):
        self.port = free_port()
        self.stats = os.path.join(noren.sockets.name, "haproxy")
        variables = {"STATS": self.stats, "LISTEN": self.port, "NOREN": noren.listen, "OPS": noren.ops}
        super().__init__(folder, noren, ["haproxy", "-db", "-f", str(HERE / "haproxy.cfg")],
                         env={**os.environ, **{key: str(value) for key, value in variables.items()}})

    def sees_ready(self):
        """Whether its health check has noren as up."""
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(self.stats)
            control.sendall(b"show stat\n")
            rows = b"".join(iter(lambda: control.recv(65536), b"")).decode().splitlines()
        names = rows[0].removeprefix("# ").split(",")
        row = next(row.split(",") for row in rows if row.startswith("noren,noren,"))
        return row[names.index("status")].startswith("UP")


@functools.cache
def before(stack, balancer, engine):
    """That balancer before a noren of its own before that engine."""
    site = stack.site(engine, f"{balancer.name.lower()}-noren", drain_timeout="60s")
    return stack.keep(balancer(stack.folder, site.noren)), site


class Request:
    """One streamed chat through a balancer, or straight to an address; read as the test says."""

    def __init__(self, url, request_id, max_tokens=24, **fields):
        self.connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)
        body = {"model": "sim-7b", "stream": True, "max_tokens": max_tokens, "messages": [{"role": "user", "content": "Hello"}]}
        self.connection.request("POST", OpenAI.path, json.dumps(body), {
            "content-type": "application/json", "x-request-id": request_id,
            **{name.replace("_", "-"): value for name, value in fields.items()}})

    def answer(self):
        return self.connection.getresponse()

    def whole(self):
        answer = self.answer()
        same("status", answer.status, 200)
        return answer.read()

    def leave(self):
        # shutdown: the answer object holds the socket too, and a mere close would leave it open.
        self.connection.sock.shutdown(socket.SHUT_RDWR)
        self.connection.close()


def exact(stack, balancer, site):
    """The engine falls silent after so many bytes: what a balancer had held back would never come."""
    request_id = stack.fresh_id()
    reference = Request(site.engine.url, request_id, 96).whole()
    same("the whole stream", Request(balancer.url, request_id, 96).whole(), reference)
    request = Request(balancer.url, request_id, 96, x_sim_fault=f"stall@{SILENT_AT}")
    same("what came while the engine is silent", request.answer().read(SILENT_AT), reference[:SILENT_AT])
    same("in the engine", (site.noren.running(), site.engine.busy()), (1, 1))
    request.leave()
    wait_for("the engine is idle", lambda: site.engine.busy() == 0)
    return f"{len(reference)} bytes equal; silent at byte {SILENT_AT}, and all {SILENT_AT} were there"


def cancelled(stack, balancer, site):
    for phase, fields in {"prefill": {"x_sim_ttft_ms": "60000"}, "decode": {"x_sim_fault": f"stall@{SILENT_AT}"}}.items():
        request_id = stack.fresh_id()
        request = Request(balancer.url, request_id, 96, **fields)
        if phase == "decode":
            request.answer().read(SILENT_AT)
        wait_for("the engine works on it", lambda: site.engine.busy() == 1)
        request.leave()
        wait_for(f"the engine hears of it ({phase})", lambda: site.engine.busy() == 0)
        line = site.noren.recorded(request_id)
        same("outcome", (line["outcome"], line["complete"]), ("client_closed", False))
    return "in a silent prefill and in a silent stream"


def refusals(stack, balancer, site):
    for status in (429, 503):
        with site.noren.admitting(max_queue=0, full_status=status), occupied(site):
            direct, through = (Request(url, stack.fresh_id()).answer() for url in (site.noren.url, balancer.url))
            same("status", (direct.status, through.status), (status, status))
            same("body", through.read(), direct.read())
            same("x-noren-reason", through.headers["x-noren-reason"], "queue_full")
            within("retry-after", 1, int(through.headers["retry-after"]), 60)
    return "429 and 503 with their bodies, Retry-After and x-noren-reason"


@contextlib.contextmanager
def drained(noren):
    noren.ctl("drain")
    try:
        yield
    finally:
        noren.ctl("undrain")


def drain(stack, balancer, site):
    """The stream that runs ends whole; /-/ready says 503, which a balancer that asks takes noren out for."""
    request_id = stack.fresh_id()
    reference = Request(site.engine.url, request_id, 250).whole()
    wait_for("the balancer has noren as ready", balancer.sees_ready)
    request = Request(balancer.url, request_id, 250)
    answer = request.answer()
    begin = answer.read(1)
    with drained(site.noren):
        wait_for("/-/ready says 503", lambda: not site.noren.ready())
        wait_for("the balancer knows", lambda: not balancer.sees_ready())
        same("the stream still runs", site.noren.running(), 1)
        refused = Request(balancer.url, stack.fresh_id()).answer()
        reason = refused.headers["x-noren-reason"]
        same("new work", (refused.status, reason and f"noren's own {refused.status}"),
             (503, balancer.at_drain if balancer.at_drain.startswith("noren") else None))
        same("the whole stream", begin + answer.read(), reference)
    wait_for("/-/ready says 200", site.noren.ready)
    wait_for("the balancer has noren back", balancer.sees_ready)
    Request(balancer.url, stack.fresh_id()).whole()
    return f"a stream of {len(reference)} bytes ended whole, new work got {balancer.at_drain}, undrain brought noren back"


WAYS = {
    "streams are byte-exact and nothing is held back": exact,
    "a client that leaves is heard of by the engine": cancelled,
    "noren's 429 and 503 pass as they are": refusals,
    "a drain: streams end whole, readiness says 503": drain,
}
BY_SDK = ("streamed", "leaves mid-stream", "429 of noren", "retries after 503")


def through(balancer, engine, way):
    return lambda stack: way(stack, *before(stack, balancer, engine))


def by_sdk(balancer, title):
    def run(stack):
        started, site = before(stack, balancer, LlamaCpp)
        return BEHAVIOURS[title](Trial(stack, OpenAIPython(), site, started.url))
    return run


for kind in (Nginx, Haproxy):
    for words, function in WAYS.items():
        behaviour(f"HTTP by {kind.name}", words, "noren-sim")(through(kind, Simulator, function))
    for words in BY_SDK:
        behaviour(f"{OpenAIPython.name} by {kind.name}", words)(by_sdk(kind, words))
