#!/usr/bin/env python3
"""soak.py BIN_DIR [--minutes M] [--seed N] [--tls]: load through noren while the engine is killed, restarted, frozen and made to
misbehave, the configuration is reloaded every second, clients leave, reset, stick and read slowly, and drains begin and are
called off. At the end: no byte altered, no broken stream ended as if it were whole, every gauge at 0, descriptors and memory
back where they were after the first minutes of the same. --tls: through two norens with TLS between them, whose certificate is
renewed all the time, so that both sides of it are at work. Ends with "N passed, N failed"."""
import argparse
import collections
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.harness import Stack, free_port, wait_for  # noqa: E402

CONFIG = """
admission: {{max_concurrency: {limit}, max_queue: 64, queue_timeout: 5s}}
upstream: {{health_interval: 500ms}}
downstream: {{stall_timeout: 3s}}
timeouts: {{upstream_idle: 2s, first_byte: 4s, connect: 1s}}
drain: {{lame_duck: 0}}
"""
LIMIT = 32
ENGINE = ["--ttft", "0.02", "--tps", "100"]
FAULTS = ["reset@300", "cut@500", "stall@400", "garbage", "slow-head:300", "bad-chunk", "no-final-chunk", "error@3",
          "close-before-head", "reset-before-head", "close-after"]
# Errors of a request that an engine in trouble explains: whatever is missing was seen to be missing. What the load tool
# would find in an answer that ended well but was not whole has other names (no_end_marker, wrong_answer, altered).
EXPLAINED = {"cut", "reset", "closed", "connect", "connect_timeout", "first_byte_timeout", "silence_timeout", "total_timeout",
             "status", "engine_error", "protocol"}
STATUSES = {"200", "429", "500", "502", "503", "504"}  # 500: the engine's own, of error@3
GAUGES = ["noren_inflight_requests", "noren_running_requests", "noren_queued_requests", "noren_client_connections",
          "noren_awaiting_first_token_requests", 'noren_upstream_connections{state="active"}']
RESULTS = []


def check(what, good, detail=""):
    RESULTS.append(bool(good))
    print(("ok   " if good else "FAIL ") + what, detail, flush=True)


class Totals:
    """What all the runs of the load tool found."""

    def __init__(self):
        self.sums, self.errors, self.statuses = collections.Counter(), collections.Counter(), collections.Counter()

    def add(self, run):
        for key in ("requests", "ok", "refused", "failed", "left", "slow", "body_checked", "body_bytes", "bytes_altered",
                    "bytes_extra"):
            self.sums[key] += run[key]
        self.errors.update(run["errors"])
        self.statuses.update(run["statuses"])


def load(stack, totals, over, number):
    """Round after round, each of a few seconds, of another kind."""
    rng = random.Random(number)
    while not over.is_set():
        command = [os.path.join(stack.bin, "noren-load"), "--url", f"http://127.0.0.1:{stack.client_port}", "-c", str(rng.choice([4, 24, 60])),
                   "--duration", "4s", "--api", rng.choice(["chat", "messages", "ollama", "tgi", "completions"]), "--json",
                   "--max-tokens", "4:80", "--leave", "0.1", "--slow", "0.02", "--read-rate", "20000", "--seed", str(rng.randrange(10**6)),
                   "--silence-timeout", "20s", *(["--no-stream"] if rng.random() < 0.2 else [])]
        out = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False).stdout
        totals.add(json.loads(out)["runs"][0])


class RudeClients:
    """Clients that no load tool would be: they reset in the middle, send half of what they announced, or stick."""
    HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
    BODY = json.dumps({"model": "m", "stream": True, "max_tokens": 4000, "messages": []}).encode()
    MOST_STUCK = 16

    def __init__(self, stack, seed):
        self.stack, self.rng, self.done, self.stuck = stack, random.Random(seed), collections.Counter(), []

    def run(self, over):
        while not over.wait(self.rng.uniform(0, 0.3)):
            action = self.rng.choice([self.reset_in_the_stream, self.half_a_head, self.half_a_body, self.stick])
            try:
                action()
                self.done[action.__name__] += 1
            except OSError:
                self.done["refused or cut first"] += 1
        for client in self.stuck:
            client.close()
        self.stuck.clear()

    def connect(self):
        client = socket.create_connection(("127.0.0.1", self.stack.client_port), 20)
        if self.rng.random() < 0.5:  # close() is then a reset
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return client

    def ask(self, client, length=None):
        client.sendall(self.HEAD + b"Content-Length: %d\r\n\r\n" % (length or len(self.BODY)) + self.BODY)

    def reset_in_the_stream(self):
        with self.connect() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.ask(client)
            client.recv(self.rng.randrange(1, 4096))

    def half_a_head(self):
        with self.connect() as client:
            client.sendall(self.HEAD[:self.rng.randrange(1, len(self.HEAD))])

    def half_a_body(self):
        with self.connect() as client:
            self.ask(client, 100_000)

    def stick(self):
        """Asks for much and reads nothing; noren gives up after downstream.stall_timeout."""
        client = self.connect()
        self.ask(client)
        self.stuck.append(client)
        if len(self.stuck) > self.MOST_STUCK:
            self.stuck.pop(0).close()


class Reloads:
    """The configuration is another one every second, now and then a broken one; the last is what everything began with."""

    def __init__(self, stack, seed):
        self.stack, self.rng, self.written = stack, random.Random(seed), 0

    def run(self, over):
        while not over.wait(1):
            self.stack.set_limit(self.rng.choice([1, 2, 8, 32, 64, 0, '"many"']))
            self.written += 1
            if self.written % 10 == 0:
                self.stack.noren.send_signal(signal.SIGHUP)
        self.stack.set_limit(LIMIT)
        wait_for("the last configuration", lambda: self.stack.metrics()["noren_concurrency_limit"] == LIMIT, 60)


class Chaos:
    """One thing after the other; each is counted."""

    def __init__(self, stack, seed):
        self.stack, self.rng, self.done = stack, random.Random(seed), collections.Counter()
        self.actions = [self.kill_engine, self.freeze_engine, self.misbehave, self.misbehave, self.misbehave, self.drain_and_back]
        if isinstance(stack, TlsSoaked):
            self.actions.append(self.renew_certificate)

    def run(self, until):
        while time.monotonic() < until:
            action = self.rng.choice(self.actions)
            action()
            self.done[action.__name__] += 1
            time.sleep(self.rng.uniform(0.2, 1.0))

    def kill_engine(self):
        engine = self.stack.processes[0]
        engine.send_signal(signal.SIGKILL)
        engine.wait()
        time.sleep(self.rng.uniform(0, 1.5))
        with open(self.stack.path("noren-sim.log"), "ab") as log:
            self.stack.processes[0] = subprocess.Popen([os.path.join(self.stack.bin, "noren-sim"), "--listen",
                                                        f"127.0.0.1:{self.stack.sim_port}", *ENGINE], stdout=log, stderr=log)

    def freeze_engine(self):
        self.stack.processes[0].send_signal(signal.SIGSTOP)
        time.sleep(self.rng.uniform(0.1, 3))
        self.stack.processes[0].send_signal(signal.SIGCONT)

    def misbehave(self):
        body = json.dumps({"faults": [self.rng.choice(FAULTS) for _ in range(self.rng.randrange(1, 20))]}).encode()
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.stack.sim_port}/sim/control", body, timeout=5).read()
        except OSError:
            pass  # it is being restarted

    def drain_and_back(self):
        self.stack.ctl("drain")
        time.sleep(self.rng.uniform(0, 0.5))
        self.stack.ctl("undrain")

    def renew_certificate(self):
        self.stack.renew()


class Soaked(Stack):
    """A stack whose limit can be set."""

    def __init__(self, bin_dir):
        super().__init__(bin_dir, config=CONFIG.format(limit=LIMIT), sim_args=ENGINE)
        self.client_port = self.port

    def config(self, limit):
        return CONFIG.format(limit=limit)

    def set_limit(self, limit):
        new = self.config_file + ".new"
        with open(new, "w", encoding="utf-8") as file:
            file.write(f"control: {{socket: {self.control}}}\nlog: {{access: {self.access_file}}}\n{self.config(limit)}")
        os.rename(new, self.config_file)

    def norens(self):
        """(what it is called, its process, its ops port)"""
        return [("noren", self.noren, self.ops)]


class TlsSoaked(Soaked):
    """Clients speak with a noren in front, which speaks TLS with the one under test."""

    def __init__(self, bin_dir):
        super().__init__(bin_dir)
        self.client_port, self.front_ops = free_port(), free_port()
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                     "-subj", "/CN=soak CA", "-keyout", self.path("ca.key"), "-out", self.path("ca.crt"))
        self.renew()
        self.write_config(self.config(LIMIT))

    def openssl(self, *arguments, **options):
        return subprocess.run(["openssl", *arguments], check=True, capture_output=True, **options).stdout

    def config(self, limit):
        return (f"tls: {{certificate: {self.path('tls.crt')}, key: {self.path('tls.key')}}}\n" + super().config(limit))

    def renew(self):
        request = self.openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                               "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.path("next.key"))
        self.openssl("x509", "-req", "-CA", self.path("ca.crt"), "-CAkey", self.path("ca.key"), "-days", "30",
                     "-copy_extensions", "copy", "-out", self.path("next.crt"), input=request)
        for kind in ("key", "crt"):  # between the two, the pair does not match and the one before stays in force
            os.rename(self.path(f"next.{kind}"), self.path(f"tls.{kind}"))

    def start_noren(self):
        front = self.path("front.yaml")
        with open(front, "w", encoding="utf-8") as file:
            file.write(f"listen: 127.0.0.1:{self.client_port}\nops: {{listen: '127.0.0.1:{self.front_ops}'}}\n"
                       f"control: {{socket: {self.path('front.sock')}}}\nlog: {{access: off}}\n"
                       "admission: {max_concurrency: 0}\ndownstream: {stall_timeout: 3s}\ndrain: {lame_duck: 0}\n"
                       f"upstream: {{url: 'https://127.0.0.1:{self.port}', tls: {{ca: {self.path('ca.crt')}}}, "
                       "health_interval: 0}\n")  # its probes would be requests of the other
        self.start([os.path.join(self.bin, "noren"), "--config", front], self.client_port)
        self.front = self.processes[-1]
        super().start_noren()

    def norens(self):
        return [*super().norens(), ("the noren in front", self.front, self.front_ops)]


def footprint(process):
    """(open descriptors, resident KiB)"""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    return len(os.listdir(f"/proc/{process.pid}/fd")), resident


def quiet(stack):
    """Waits until nothing is going on in any noren; their footprints."""
    for _, _, ops in stack.norens():
        wait_for("every gauge to be at 0", lambda port=ops: all(stack.metrics(port)[gauge] == 0 for gauge in GAUGES), 60)
        # What is idle in the pool goes after upstream.idle_timeout.
        wait_for("the pool to be empty",
                 lambda port=ops: stack.metrics(port)['noren_upstream_connections{state="idle"}'] == 0, 60)
    return [footprint(process) for _, process, _ in stack.norens()]


class Round:
    """Everything at once for some minutes, then silence."""

    def __init__(self, stack, seed):
        self.stack, self.totals = stack, Totals()
        self.chaos, self.rude, self.reloads = Chaos(stack, seed), RudeClients(stack, seed), Reloads(stack, seed)
        self.seed = seed

    def run(self, minutes):
        over = threading.Event()
        threads = [threading.Thread(target=load, args=(self.stack, self.totals, over, self.seed * 10 + n), daemon=True)
                   for n in range(2)]
        threads += [threading.Thread(target=side.run, args=(over,), daemon=True) for side in (self.rude, self.reloads)]
        for thread in threads:
            thread.start()
        end = time.monotonic() + minutes * 60
        while time.monotonic() < end:
            self.chaos.run(min(end, time.monotonic() + 60))
            self.report()
        over.set()
        for thread in threads:
            thread.join()
        return quiet(self.stack)

    def report(self):
        sums = self.totals.sums
        print(f"     {sums['requests']} requests, {sums['ok']} whole, {sums['refused']} refused, {sums['left']} left, "
              f"{sums['failed']} failed; {sum(self.rude.done.values())} rude clients, {self.reloads.written} new configurations, "
              f"{sum(self.chaos.done.values())} disturbances", flush=True)


def counted(counter):
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items()))


def judge(stack, soak, minutes, before, after):
    sums, found = soak.totals.sums, soak.totals.errors
    print(f"     disturbances: {counted(soak.chaos.done)}; clients: {counted(soak.rude.done)}\n     errors: {counted(found)}; statuses: {counted(soak.totals.statuses)}")
    check("no byte altered or added", sums["bytes_altered"] == 0 and sums["bytes_extra"] == 0 and not found["altered"],
          f"{sums['bytes_altered']} altered; {sums['body_bytes']} bytes in {sums['body_checked']} bodies were compared")
    unexplained = {kind: count for kind, count in found.items() if kind not in EXPLAINED}
    check("no stream ended as if it were whole", not unexplained, unexplained or f"0 of {sums['requests']}")
    check("no status that an engine in trouble does not explain", set(soak.totals.statuses) <= STATUSES)
    check("requests were served all along", sums["ok"] > minutes * 60, f"{sums['ok']} whole answers")
    check("every gauge is at 0, permits too; idle connections are gone", True)  # or quiet() would have thrown
    for (name, process, ops), was, now in zip(stack.norens(), before, after):
        metrics = stack.metrics(ops)
        check(f"{name} is still the same process", process.poll() is None)
        check(f"{name}: as many descriptors as at the start", now[0] <= was[0] + 2, f"{was[0]} before, {now[0]} after")
        check(f"{name}: as much memory as at the start", now[1] <= was[1] * 1.1 + 4096, f"{was[1]} KiB before, {now[1]} after")
        check(f"{name}: no fault of its own", not any(value for key, value in metrics.items()
                                                      if key.startswith("noren_requests_total") and 'outcome="internal_error"' in key))
    reloads = {result: stack.metrics()[f'noren_config_reloads_total{{result="{result}"}}'] for result in ("ok", "error")}
    check("good configurations were taken over and broken ones refused", all(reloads.values()),
          ", ".join(f"{result} {count:.0f}" for result, count in reloads.items()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tls", action="store_true")
    options = parser.parse_args()
    with (TlsSoaked if options.tls else Soaked)(options.bin) as stack:
        # What the allocator keeps and the series that come up first in the chaos are there after some of it.
        before = Round(stack, options.seed + 1).run(min(options.minutes / 10, 3))
        print("     that was the start; now it counts", flush=True)
        soak = Round(stack, options.seed)
        after = soak.run(options.minutes)
        judge(stack, soak, options.minutes, before, after)
    print(f"{sum(RESULTS)} passed, {len(RESULTS) - sum(RESULTS)} failed")
    return 0 if all(RESULTS) else 1


def failed(args):
    """Of a thread that was to go on to the end: the main thread ends everything in an orderly way."""
    print("FAIL", args.exc_value, file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    threading.excepthook = failed
    sys.exit(main())
