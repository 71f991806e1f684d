#!/usr/bin/env python3
"""overload.py BIN_DIR [--connections N]: N open connections of which 64 may run. Thousands of slow heads, slow uploads, clients
that read nothing, idle ones, while everybody else is served, byte for byte; a flood from one address; more connections than
file descriptors. At the end of each every gauge is 0, the descriptors are back, and the same process serves.
Ends with "N passed, N failed"."""
import argparse
import contextlib
import json
import os
import resource
import select
import socket
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.harness import Crowd, Stack, footprint, wait_for  # noqa: E402

CONFIG = """
admission: {{max_concurrency: 64, max_queue: 10000, queue_timeout: 5m}}
upstream: {{health_interval: 500ms}}
downstream: {{stall_timeout: 8s, buffer: 64KiB, min_upload_rate: 1KiB, min_upload_window: 6s, max_connections: {connections}}}
timeouts: {{head: {head}, keep_alive: 10m}}
drain: {{lame_duck: 0}}
"""
ENGINE = ["--ttft", "0.005", "--tps", "400"]
GAUGES = ["noren_inflight_requests", "noren_running_requests", "noren_queued_requests", "noren_client_connections",
          "noren_awaiting_first_token_requests", "noren_stalled_requests", 'noren_upstream_connections{state="active"}',
          'noren_upstream_connections{state="idle"}']
RESULTS = []


def check(what, good, detail=""):
    RESULTS.append(bool(good))
    print(("ok   " if good else "FAIL ") + what, detail, flush=True)


def load(stack, *arguments):
    command = [os.path.join(stack.bin, "noren-load"), "--url", f"http://127.0.0.1:{stack.port}", "--json", "--connect-timeout", "60s",
               "--first-byte-timeout", "5m", *arguments]
    return json.loads(subprocess.run(command, capture_output=True, text=True, timeout=550, check=False).stdout)["runs"][0]


def check_served(what, run, requests):
    good = run["ok"] == requests == run["body_checked"] and not run["bytes_altered"] and not run["bytes_extra"]
    check(f"{what}: {requests} requests are all served, every byte as the engine made it", good,
          f"{run['ok']} ok, {run['body_checked']} checked, errors {run['errors']}")


def quiet(stack):
    wait_for("every gauge to be at 0", lambda: all(stack.metrics()[gauge] == 0 for gauge in GAUGES), 60)
    return footprint(stack.noren)


def refused(stack, reason):
    return stack.metrics()[f'noren_client_connections_refused_total{{reason="{reason}"}}']


def events(stack, message):
    return [line for line in map(json.loads, stack.noren_log().splitlines()) if line.get("msg") == message]


def is_served(connection, path=b"/v1/models"):
    """One more request on this connection."""
    try:
        connection.sendall(b"GET %s HTTP/1.1\r\nHost: t\r\n\r\n" % path)
        return connection.recv(65536).startswith(b"HTTP/1.1 200 ")
    except ConnectionError:
        return False


def is_closed(connection):
    """By the other side, with nothing said."""
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


class Watch(threading.Thread):
    """Looks at the gate for as long as it is open: the most that ran and waited, and how long a scrape took."""

    def __init__(self, stack):
        super().__init__(daemon=True)
        self.stack, self.over = stack, threading.Event()
        self.running = self.waiting = self.connections = self.slowest = 0
        self.start()

    def run(self):
        while not self.over.wait(0.05):
            start = time.monotonic()
            figures = self.stack.metrics()
            self.slowest = max(self.slowest, time.monotonic() - start)
            self.running = max(self.running, figures["noren_running_requests"])
            self.waiting = max(self.waiting, figures["noren_queued_requests"])
            self.connections = max(self.connections, figures["noren_client_connections"])

    def end(self):
        self.over.set()
        self.join()


def abuse(options):
    """Of the connections 4 in 10 ask, and wait in the queue for most of the time; the others are up to no good, or to nothing."""
    total = options.connections
    askers, readers = total * 4 // 10, min(total // 10, 600)
    heads = uploads = total * 2 // 10
    idle = total - askers - heads - uploads - readers - 1
    # Slow heads last until all are there, so that they are there together.
    head = max(10, total // 250)
    with Stack(options.bin, config=CONFIG.format(connections=total + 1000, head=f"{head}s"), sim_args=ENGINE) as stack:
        check_served("before", load(stack, "-c", "8", "-n", "50", "--max-tokens", "8"), 50)
        before, failures = quiet(stack), stack.metrics()
        with Crowd(stack.port, trickle=2.0, idle=idle, head=heads, upload=uploads, reader=readers) as crowd:
            check("the crowd is there", crowd.open == idle + heads + uploads + readers, f"{crowd.open} connections")
            watch = Watch(stack)
            neighbour = threading.Thread(target=lambda: watch.__setattr__("neighbour", load(
                stack, "-c", "1", "-n", "20", "--max-tokens", "8", "--no-stream")))
            neighbour.start()
            asked = load(stack, "-c", str(askers), "-n", str(askers * 2), "--max-tokens", "2:30")
            neighbour.join()
            check_served("beside the crowd", asked, askers * 2)
            check_served("a neighbour with one connection", watch.neighbour, 20)
            ended = lambda reason: stack.metrics()[f'noren_failures_total{{reason="{reason}"}}'] - failures[
                f'noren_failures_total{{reason="{reason}"}}']
            for reason, count in (("head_timeout", heads), ("body_timeout", uploads), ("stall_timeout", readers)):
                with contextlib.suppress(TimeoutError):
                    wait_for(reason, lambda r=reason, n=count: ended(r) == n, 90)
                check(f"{count} are ended for {reason}", ended(reason) == count, f"{ended(reason):.0f}")
            watch.end()
            check("never more than 64 in the engine", watch.running == 64, f"{watch.running:.0f} at most, {watch.waiting:.0f} waiting, "
                  f"{watch.connections:.0f} connections; the slowest scrape took {watch.slowest * 1000:.0f} ms")
            check("all of them were open at once", watch.connections >= total - (heads if head == 10 else 0),
                  f"{watch.connections:.0f} of {total}")
            resident = footprint(stack.noren)[1]
            fates = crowd.end()
        check("each slow head and upload was told: 408", fates["head"] == {"answered 408": heads} and
              fates["upload"] == {"answered 408": uploads}, f"{fates['head']} {fates['upload']}")
        check("who reads nothing was cut, and sees that it was", fates["reader"] == {"cut": readers}, fates["reader"])
        check("who was idle all the time is served", fates["idle"] == {"answered 2 times": idle}, fates["idle"])
        after = quiet(stack)
        check("every gauge is 0 and the descriptors are back", after[0] <= before[0] + 2, f"{before[0]} before, {after[0]} after; "
              f"{before[1]} KiB before, {resident} KiB in it, {after[1]} KiB after")
        check("the same process, no fault of its own", stack.noren.poll() is None and not any(
            value for key, value in stack.metrics().items() if 'outcome="internal_error"' in key))
        check_served("after", load(stack, "-c", "8", "-n", "50", "--max-tokens", "8"), 50)


def flood(options):
    """One address opens connections without end."""
    config = "downstream: {max_connections_per_client: 100}\nadmission: {max_concurrency: 8}\n"
    with Stack(options.bin, config=config, sim_args=ENGINE) as stack, contextlib.ExitStack() as open_ones:
        connections = [open_ones.enter_context(socket.create_connection(("127.0.0.1", stack.port), source_address=("127.0.0.2", 0)))
                       for _ in range(1100)]
        wait_for("1000 to be refused", lambda: refused(stack, "client_limit") == 1000)
        check("a client has its 100 connections, 1000 more are refused", stack.metrics()["noren_client_connections"] == 100)
        check("those it has are served", sum(is_served(c) for c in connections) == 100)
        check_served("a neighbour", load(stack, "-c", "50", "-n", "500", "--max-tokens", "4"), 500)
        line = wait_for("a line in the log", lambda: events(stack, "client connections are refused"))
        check("the log says it once, and who it was", len(line) == 1 and line[0]["client"] == "127.0.0.2" and
              line[0]["reason"] == "client_limit", line)


def few_descriptors(options):
    """1000 connections more than the process may have files: it has known so from the start."""
    limit = 600
    stack = Stack(options.bin, config="admission: {max_concurrency: 32}\n", sim_args=ENGINE,
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
    fits = limit - 128 - 32
    with stack, contextlib.ExitStack() as open_ones:
        started = wait_for("a line in the log", lambda: events(stack, "serving"))[0]
        check("the log says at the start how many connections fit", started["max_connections"] == str(fits), started["max_connections"])
        neighbour = open_ones.enter_context(socket.create_connection(("127.0.0.1", stack.port)))
        is_served(neighbour)
        crowd = [open_ones.enter_context(socket.create_connection(("127.0.0.1", stack.port))) for _ in range(fits - 1 + 1000)]
        wait_for("1000 to be refused", lambda: refused(stack, "descriptors") == 1000)
        check("1000 connections beyond the descriptors are closed", stack.metrics()["noren_client_connections"] == fits)
        check("who is inside still reaches the engine, 32 at a time", all(
            is_served(connection) for connection in [neighbour, *crowd[:50]]))
        check("health and metrics are answered", stack.get("/-/healthy") is not None)
        line = wait_for("a line in the log", lambda: events(stack, "client connections are refused"))
        check("the log says what is missing", len(line) == 1 and "ulimit -n" in line[0]["because"], line)
        open_ones.close()
        wait_for("the connections to go", lambda: stack.metrics()["noren_client_connections"] == 0)
        check_served("without a restart", load(stack, "-c", "32", "-n", "200", "--max-tokens", "4"), 200)
        over = wait_for("the end in the log", lambda: events(stack, "client connections are taken again"), 30)
        check("the log says that it is over", over[0]["refused"] == "1000", over)


def ungated(options):
    """Requests that need no permit, to an engine that does not answer: each takes a descriptor at either side."""
    limit, config = 600, "admission: {max_concurrency: 64}\nupstream: {health_interval: 0}\n"
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as engine:
        with Stack(options.bin, config=config, engine_port=engine.getsockname()[1],
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))) as stack, \
                contextlib.ExitStack() as open_ones:
            crowd = [open_ones.enter_context(socket.create_connection(("127.0.0.1", stack.port), timeout=20)) for _ in range(400)]
            for connection in crowd:
                connection.sendall(b"GET /v1/models HTTP/1.1\r\nHost: t\r\n\r\n")

            def in_all():
                """With the engine, told that there is no descriptor, and turned away before that."""
                now = stack.metrics()
                return (now["noren_inflight_requests"], now['noren_failures_total{reason="internal_error"}'],
                        refused(stack, "descriptors"))

            wait_for("each to have its place or its answer", lambda: sum(in_all()) == len(crowd))
            check("health and metrics are answered under slow requests without a permit", stack.get("/-/healthy") is not None)
            served, refusals, away = in_all()
            check("some are with the engine, the others are not", served > 0 and refusals > 0, f"{served}, {refusals}, {away}")
            told = [c.recv(4096) for c in crowd if select.select([c], [], [], 0)[0] and not is_closed(c)]
            check("who finds no descriptor is told so", len(told) == refusals and all(
                answer.startswith(b"HTTP/1.1 503 ") and b"\r\nRetry-After: " in answer for answer in told), f"{len(told)}")
            open_ones.close()
            wait_for("the connections to go", lambda: stack.metrics()["noren_client_connections"] == 0)
            check("every gauge is 0", all(stack.metrics()[gauge] == 0 for gauge in GAUGES))


class SlowEngine(threading.Thread):
    """Answers nobody before so many have asked, and from then on at once."""

    def __init__(self, crowd):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port, self.crowd, self.asking = self.listener.getsockname()[1], crowd, []

    def run(self):
        connections = {}
        while True:
            for one in select.select([self.listener, *connections], [], [])[0]:
                if one is self.listener:
                    peer = one.accept()[0]
                    connections[peer] = b""
                else:
                    self.take(connections, one)

    def take(self, connections, peer):
        connections[peer] += (data := peer.recv(65536))
        if not data:
            del connections[peer]
            peer.close()
        elif connections[peer].endswith(b"\r\n\r\n"):
            connections[peer] = b""
            self.asking.append(peer)
            self.crowd -= 1
            if self.crowd <= 0:
                for each in self.asking:
                    each.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                self.asking.clear()


def idle_engine_connections(options):
    """A crowd leaves idle connections to the engine behind: who comes later needs their descriptors."""
    limit, crowd, config = 600, 200, "admission: {max_concurrency: 16}\nupstream: {health_interval: 0, idle_timeout: 1h}\n"
    engine = SlowEngine(crowd)
    engine.start()
    with Stack(options.bin, config=config, engine_port=engine.port, noren_args=("--workers", "2"),
               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))) as stack, \
            contextlib.ExitStack() as open_ones:
        def connect(count):
            return [open_ones.enter_context(socket.create_connection(("127.0.0.1", stack.port), timeout=20)) for _ in range(count)]

        def idle():
            return stack.metrics()['noren_upstream_connections{state="idle"}']

        fits = limit - 128 - 16
        first = connect(crowd)
        for connection in first:
            connection.sendall(b"GET /v1/models HTTP/1.1\r\nHost: t\r\n\r\n")
        check("a crowd is served at once", all(connection.recv(4096).startswith(b"HTTP/1.1 200 ") for connection in first))
        wait_for("its connections to the engine to be kept", lambda: idle() == crowd)
        check("as many clients as fit are served beside them", all(is_served(connection) for connection in connect(fits - crowd)))
        check("health and metrics are answered", stack.get("/-/healthy") is not None)
        check("nobody was turned away", refused(stack, "descriptors") == 0)
        wait_for("a connection to the engine to be kept again", lambda: idle() > 0)


def no_descriptors(options):
    """Descriptors run out unforeseen: the limit is lowered under the running process."""
    with Stack(options.bin, config="admission: {max_concurrency: 32}\n", sim_args=ENGINE) as stack, contextlib.ExitStack() as open_ones:
        neighbour = open_ones.enter_context(socket.create_connection(("127.0.0.1", stack.port)))
        is_served(neighbour)
        pid, before = stack.noren.pid, resource.prlimit(stack.noren.pid, resource.RLIMIT_NOFILE)
        room = footprint(stack.noren)[0] + 100
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (room, before[1]))
        crowd = [open_ones.enter_context(socket.create_connection(("127.0.0.1", stack.port), timeout=20)) for _ in range(1100)]
        shed = wait_for("connections to be closed", lambda: (closed := sum(is_closed(c) for c in crowd)) >= 990 and closed)
        check("of 1100 connections those beyond the descriptors are closed, so that their clients know", shed <= 1010, f"{shed}")
        answers = [is_served(neighbour) for _ in range(20)]  # on the connection to the engine that it has
        check("who is inside is served meanwhile", all(answers))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        counted = refused(stack, "descriptors")  # by now the last of them as well
        check("they are counted", shed <= counted <= 1010, f"{counted:.0f}")
        line = wait_for("a line in the log", lambda: events(stack, "client connections are refused"))
        check("the log says what is missing, once", len(line) == 1 and line[0]["reason"] == "descriptors", line)
        check_served("without a restart", load(stack, "-c", "32", "-n", "200", "--max-tokens", "4"), 200)
        open_ones.close()
        quiet(stack)
        check("every gauge is 0", True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--connections", type=int, default=1500)
    parser.add_argument("--only", help="one part")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    for part in (few_descriptors, ungated, idle_engine_connections, no_descriptors, flood, abuse):
        if options.only not in (None, part.__name__):
            continue
        print(f"     {part.__name__}", flush=True)
        part(options)
    print(f"{sum(RESULTS)} passed, {len(RESULTS) - sum(RESULTS)} failed")
    return 0 if all(RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())
