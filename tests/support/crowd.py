#!/usr/bin/env python3
"""crowd.py: thousands of clients that behave badly, in a process of their own, as the descriptors of one process do not last
for both ends. Reads one JSON object: {"port": P, "members": {KIND: COUNT}, "trickle": SECONDS}; prints {"open": N} once all
are connected and have said what they say at first; ends at the next line and prints what became of them:
{KIND: {"answered 408": N, ...}}.

  idle     one request, answered; then nothing, and one more request at the end, which must be answered too
  head     a head that never ends, a byte every `trickle` seconds
  upload   a body that never ends, likewise
  reader   asks for more than any buffer holds and reads nothing
  queued   a generation that waits for its place in the engine (a body of `body` bytes), leaves at the end
  stream   a generation of which the beginning is read; leaves at the end
"""
import collections
import json
import select
import selectors
import socket
import sys
import time

PLAIN = b"GET /health HTTP/1.1\r\nHost: t\r\n\r\n"
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
READER = b"GET /raw/chunked?n=2000&interval_ms=0&bytes=4000 HTTP/1.1\r\nHost: t\r\n\r\n"
ADDRESSES = 200  # of loopback, so that no address runs out of ports


def generation(size):
    body = b'{"model":"m","stream":true,"max_tokens":1000000,"messages":[{"role":"user","content":"%s"}]}'
    body %= b"x" * max(0, size - len(body) + 2)
    return HEAD + b"Content-Length: %d\r\nx-sim-ttft-ms: 5\r\nx-sim-interval-us: 100000000\r\n\r\n" % len(body) + body


class Member:
    def __init__(self, kind, port, number, say):
        self.kind, self.heard, self.end, self.size = kind, b"", None, 0
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if kind == "reader":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.bind((f"127.1.0.{1 + number % ADDRESSES}", 0))
        self.socket.settimeout(60)
        try:
            self.socket.connect(("127.0.0.1", port))
            self.socket.sendall(say)
        except OSError as problem:
            self.end = type(problem).__name__
        self.socket.setblocking(False)

    def read(self):
        """What there is to read, and whether that was all."""
        try:
            while data := self.socket.recv(65536):
                self.size += len(data)
                self.heard = (self.heard + data)[:4096]
            self.end = "closed"
        except BlockingIOError:
            return
        except OSError as problem:
            self.end = type(problem).__name__

    def say(self, data):
        try:
            self.socket.send(data)
        except BlockingIOError:
            pass
        except OSError as problem:
            self.end = self.end or type(problem).__name__

    def fate(self):
        status = self.heard[9:12].decode() if self.heard.startswith(b"HTTP/1.1 ") else ""
        if self.kind in ("head", "upload", "queued", "stream"):
            return f"answered {status}" if status else self.end or "open"
        if self.kind == "idle":
            return f"answered {self.heard.count(b'HTTP/1.1 200 ')} times"
        whole = self.size > 2000 * 4000 and self.heard.startswith(b"HTTP/1.1 200 ")
        return "whole" if whole else "cut" if self.end else "open"


class Crowd:
    def __init__(self, order):
        self.trickle, self.poll = order.get("trickle", 1.0), selectors.EpollSelector()
        say = {"idle": PLAIN, "head": b"GET /health HTTP/1.1\r\nHost: t\r\nX-Slow: ", "reader": READER,
               "upload": HEAD + b"Content-Length: 100000000\r\n\r\n", "queued": generation(order.get("body", 200)),
               "stream": generation(order.get("body", 200))}
        self.members = []
        for kind, count in order["members"].items():
            for _ in range(count):
                self.members.append(Member(kind, order["port"], len(self.members), say[kind]))
                if kind != "reader" and self.members[-1].end is None:
                    self.poll.register(self.members[-1].socket, selectors.EVENT_READ, self.members[-1])
        self.next = time.monotonic()

    def settled(self):
        """Those that are to be answered before they count as open have been."""
        return all(m.heard or m.end for m in self.members if m.kind in ("idle", "stream"))

    def turn(self):
        for key, _ in self.poll.select(0.05):
            key.data.read()
            if key.data.end:
                self.poll.unregister(key.fileobj)
        if time.monotonic() >= self.next:
            self.next = time.monotonic() + self.trickle
            for member in self.members:
                if member.kind in ("head", "upload") and not member.end:
                    member.say(b"x")

    def wait(self, condition):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not condition():
            self.turn()

    def finish(self):
        idle = [m for m in self.members if m.kind == "idle" and not m.end]
        for member in idle:
            member.say(PLAIN)
        self.wait(lambda: all(m.heard.count(b"HTTP/1.1 ") >= 2 or m.end for m in idle))
        readers = [m for m in self.members if m.kind == "reader" and not m.end]
        for member in readers:  # at last: what the kernel still holds, and how it ends
            self.poll.register(member.socket, selectors.EVENT_READ, member)
        self.wait(lambda: all(m.end for m in readers))
        fates = collections.defaultdict(collections.Counter)
        for member in self.members:
            fates[member.kind][member.fate()] += 1
            member.socket.close()
        return fates


def main():
    crowd = Crowd(json.loads(sys.stdin.readline()))
    while not crowd.settled():
        crowd.turn()
    print(json.dumps({"open": sum(m.end is None for m in crowd.members)}), flush=True)
    while not select.select([sys.stdin], [], [], 0)[0]:
        crowd.turn()
    print(json.dumps(crowd.finish()), flush=True)


if __name__ == "__main__":
    main()
