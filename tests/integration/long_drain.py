#!/usr/bin/env python3
"""long_drain.py BIN_DIR [--streams N] [--seconds S]: N streams of up to S seconds run when noren is told to end. Every one is
finished untouched, new work is refused clearly all the while, /-/drain-wait answers when the last is over and the process ends by
itself. Told a second time it ends at once. Ends with "N passed, N failed"."""
import argparse
import collections
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.harness import Stack, wait_for  # noqa: E402

TOKENS_PER_SECOND = 20
CONFIG = "admission: {{max_concurrency: {streams}}}\ndrain: {{lame_duck: {lame_duck}, timeout: 10m}}\n"
ENGINE = ["--ttft", "0.2", "--tps", str(TOKENS_PER_SECOND), "--gap", "fixed"]
CHAT = json.dumps({"model": "m", "stream": True, "max_tokens": 4, "messages": [{"role": "user", "content": "x"}]}).encode()
RESULTS = []


def check(what, good, detail=""):
    RESULTS.append(bool(good))
    print(("ok   " if good else "FAIL ") + what, detail, flush=True)


class Streams:
    """The load tool with so many clients, each of which asks once for a stream of up to so many seconds and checks every byte."""

    def __init__(self, stack, count, seconds):
        tokens = f"{TOKENS_PER_SECOND * seconds // 6}:{TOKENS_PER_SECOND * seconds}"
        self.process = subprocess.Popen([os.path.join(stack.bin, "noren-load"), "--url", f"http://127.0.0.1:{stack.port}", "-c",
                                         str(count), "-n", str(count), "--max-tokens", tokens, "--json"],
                                        stdout=subprocess.PIPE, text=True)
        wait_for("all streams to run", lambda: stack.metrics()["noren_running_requests"] == count and
                 stack.metrics()["noren_awaiting_first_token_requests"] == 0, 60)

    def result(self):
        return json.loads(self.process.communicate(timeout=600)[0])["runs"][0]


def ask_for_more(port):
    """What a new request is told: its status line and its fields; nothing if nobody listens any more."""
    try:
        with socket.create_connection(("127.0.0.1", port), 20) as client:
            client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n%s" % (len(CHAT), CHAT))
            answer = client.makefile("rb").read()
    except OSError:
        return None
    head = answer.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    return head[0], {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}


class Newcomers(threading.Thread):
    """One after the other, while the drain goes on."""

    def __init__(self, stack):
        super().__init__(daemon=True)
        self.stack, self.over, self.told, self.wrong = stack, threading.Event(), collections.Counter(), []

    def run(self):
        while not self.over.wait(0.2):
            answer = ask_for_more(self.stack.port)
            if answer is None:  # it has ended
                self.told["nobody"] += 1
                continue
            status, fields = answer
            self.told[status] += 1
            if not (status.startswith("HTTP/1.1 503 ") and fields.get("x-noren-reason") == "draining" and
                    fields.get("connection") == "close" and 1 <= int(fields.get("retry-after", 0)) <= 60):
                self.wrong.append(answer)


def drain_wait(stack):
    """What /-/drain-wait says in the end."""
    with socket.create_connection(("127.0.0.1", stack.ops), 600) as client:
        client.sendall(b"GET /-/drain-wait HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
        return client.makefile("rb").read().decode().partition("\r\n\r\n")[2]


def drain(options):
    with Stack(options.bin, config=CONFIG.format(streams=options.streams, lame_duck="0"), sim_args=ENGINE) as stack:
        begin = time.monotonic()
        check("/-/drain-wait while not draining returns at once", stack.get("/-/drain-wait") == "not draining\n",
              f"{(time.monotonic() - begin) * 1000:.0f} ms")
        idle = socket.create_connection(("127.0.0.1", stack.port), 20)
        streams = Streams(stack, options.streams, options.seconds)
        stack.noren.send_signal(signal.SIGTERM)
        told = time.monotonic()
        wait_for("the drain", lambda: json.loads(stack.get("/-/status"))["drain"] == "refusing")
        running = stack.metrics()["noren_running_requests"]
        check("every stream runs on when the drain has begun", running == options.streams, f"{running:.0f}")
        check("an idle connection is closed", idle.recv(1) == b"")
        newcomers, waited = Newcomers(stack), {}

        def wait():
            with contextlib.suppress(OSError):
                waited["said"] = drain_wait(stack)
            waited["at"] = time.monotonic()

        waiter = threading.Thread(target=wait)
        waiter.start()
        newcomers.start()
        result = streams.result()
        finished = time.monotonic()
        waiter.join(60)
        status = stack.noren.wait(60)
        newcomers.over.set()
        newcomers.join(30)
        print(f"     {result['ok']} of {result['requests']} whole, {result['bytes_altered']} bytes altered of {result['body_bytes']} in "
              f"{result['body_checked']} bodies; the last ended {finished - told:.1f} s after the signal")
        check(f"all {options.streams} streams are finished untouched", result["ok"] == options.streams == result["body_checked"] and
              result["failed"] == result["bytes_altered"] == result["bytes_extra"] == 0, result["errors"] or "")
        check("they took as long as they would have", finished - told > options.seconds * 0.8)
        refused = sum(count for what, count in newcomers.told.items() if what != "nobody")
        check("every newcomer is refused clearly: 503, draining, Retry-After, Connection: close", refused > 0 and not newcomers.wrong,
              newcomers.wrong[:3] or f"{refused} of {refused}")
        check("/-/drain-wait answers when the last stream is over, not before", waited.get("said") == "drained\n" and
              waited["at"] > finished - 5, f"{waited['at'] - finished:+.2f} s")
        check("then the process ends by itself", status == 0, f"status {status}")


def told_twice(options):
    with Stack(options.bin, config=CONFIG.format(streams=options.streams, lame_duck="5s"), sim_args=ENGINE) as stack:
        streams = Streams(stack, options.streams, options.seconds)
        stack.noren.send_signal(signal.SIGTERM)
        wait_for("the drain", lambda: json.loads(stack.get("/-/status"))["drain"] != "no")
        begin = time.monotonic()
        stack.noren.send_signal(signal.SIGTERM)
        status = stack.noren.wait(60)
        took = time.monotonic() - begin
        result = streams.result()
        # The shortest stream takes a sixth of the longest.
        check("told a second time it ends at once", status == 0 and took < options.seconds / 6, f"{took:.2f} s, status {status}")
        check("and every stream is visibly cut", result["ok"] == 0 and result["errors"].get("cut", 0) == options.streams,
              f"{result['errors']}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    drain(options)
    told_twice(options)
    print(f"{sum(RESULTS)} passed, {len(RESULTS) - sum(RESULTS)} failed")
    return 0 if all(RESULTS) else 1


if __name__ == "__main__":
    threading.excepthook = lambda args: (print("FAIL", args.exc_value, file=sys.stderr), os._exit(1))
    sys.exit(main())
