#!/usr/bin/env python3
"""relay_corpus.py BIN_DIR [--seed N] [--rounds N] [--only CASE] [--selftest]: every answer of the corpus through a running
noren, in chunks, with a length and ended by the close, written by a scripted engine in pieces of any size. What the client
gets must be what the engine sent, to the byte, the header field and the chunk; and /metrics must have moved by exactly
what is known to be in the answer. With --selftest each answer is then altered in many ways, and each must be noticed.
Ends with "N passed, N failed"."""
import argparse
import copy
import dataclasses
import json
import os
import random
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from corpus.reference_observer import ndjson_events, parsed, sse_events  # noqa: E402
from support import expected_metrics  # noqa: E402
from support.harness import Stack  # noqa: E402
from support.scripted_engine import PATIENCE, Script, ScriptedEngine  # noqa: E402

STREAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "corpus", "streams")
FRAMINGS = ("chunked", "length", "close")
# One worker has one pool, so that it is known when a connection to the engine is a new one.
CONFIG = "workers: 1\nupstream: {health_interval: 0, idle_timeout: 1h}\n"


class Case:
    """One answer of the corpus, and the request for it."""

    def __init__(self, name):
        with open(os.path.join(STREAMS, name + ".body"), "rb") as file:
            self.body = file.read()
        with open(os.path.join(STREAMS, name + ".json"), encoding="utf-8") as file:
            told = json.load(file)
        self.name, self.api, self.expect = name, told["api"], told["expect"]
        self.request_line = f"{told['request']['method']} {told['request']['path']} HTTP/1.1"
        self.request_json = told["request"]["body"]
        self.status = told["response"]["status"]
        self.fields = [("Content-Type", told["response"]["content_type"]), *told["response"]["headers"].items()]
        self.encoding = told["response"]["headers"].get("content-encoding")
        if self.request_json is None:  # an upload, of which noren knows nothing
            self.request_type = "multipart/form-data; boundary=cut"
            self.request_body = b"--cut\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n\x00\xff\r\n--cut--\r\n"
        else:
            self.request_type = "application/json"
            self.request_body = json.dumps(self.request_json).encode()

    @property
    def choices(self):
        return (self.request_json or {}).get("n", 1)

    @property
    def unparsed_events(self):
        """Events with data that is neither a JSON object nor [DONE]."""
        if self.encoding or not self.expect["streaming"]:
            return 0
        events = sse_events(self.body) if "event-stream" in self.fields[0][1] else ndjson_events(self.body)
        data = [event.data.strip() for event in events]
        return sum(bool(text) and text != b"[DONE]" and not parsed(text).is_object for text in data)

    @property
    def hold(self):
        """Where the engine waits until the client has all so far: behind the first token event, if more follow. So that
        event comes in a read of its own, and the number of gaps is known."""
        ends = self.expect["token_event_offsets"]
        return ends[0] if len(ends) > 1 else None


# --- the engine's side: what it writes, and what must come of it

# End-to-end fields, some more than once: each must pass as it is, in this order.
PASSING = [
    ("Server", "uvicorn"), ("date", "Mon, 30 Nov 2026 07:11:24 GMT"), ("Set-Cookie", "a=1; Path=/"), ("X-Empty", ""),
    ("set-cookie", "b=2"), ("SET-COOKIE", "a=1; Path=/"), ("X-Latin", "caf\xe9"), ("Cache-Control", "no-cache"),
    ("X-Accel-Buffering", "no"), ("cache-control", "no-transform"), ("x_with_underscore", "1"), ("Vary", "Origin"),
    ("openai-processing-ms", "12"), ("Vary", "Accept"), ("Via", "1.1 inner"), ("x-inner", "two  blanks,\ttab; \"q, q\""),
    ("x-request-id", "the-engine's-own"), ("ETag", "W/\"1\""), ("Access-Control-Allow-Origin", "*")]
# Of the hop between engine and noren: none may pass.
HOP = [[("Keep-Alive", "timeout=5")], [("Connection", "keep-alive")], [("Connection", "X-Hop"), ("X-Hop", "of this hop")],
       [("Proxy-Connection", "keep-alive")]]
TRAILERS = [("x-engine-ms", "12.5"), ("X-Checksum", "abc"), ("x-checksum", "abc"), ("x-blank", "")]
FORBIDDEN_TRAILERS = [("Set-Cookie", "late=1"), ("content-length", "3")]
REASONS = ["OK", "", "Fine Indeed", "Tr\xe8s bien", "I am"]
EXTENSIONS = [";x", ";x=1", "; name=\"a;b \\\" c\"", " ; a = b;c"]


def cut_randomly(rng, size, at_most=200):
    """Sizes of pieces that add up to size: many small ones, a few large ones, or one."""
    typical = max(rng.choice([1, 7, 60, 500, 4000, size]), size / at_most)
    sizes = []
    while size > 0:
        sizes.append(min(size, max(1, int(rng.expovariate(1 / typical)) if typical < size else size)))
        size -= sizes[-1]
    return sizes


def field_lines(rng, fields):
    """As an engine may write them: blanks around a value mean nothing."""
    return "".join(f"{name}:{rng.choice([' ', ' ', '', '  ', chr(9)])}{value}{rng.choice(['', '', ' '])}\r\n"
                   for name, value in fields).encode("latin-1")


def plain_lines(fields):
    return "".join(f"{name}: {value}\r\n" for name, value in fields).encode("latin-1")


@dataclasses.dataclass
class Wire:
    """A body as the engine writes it and as the client must get it, and in either where the body's byte `hold` ends."""
    sent: bytes = b""
    due: bytes = b""
    sent_hold: int = 0
    due_hold: int = 0
    chunks: list = dataclasses.field(default_factory=list)


def plain_body(body, hold):
    return Wire(body, body, hold or 0, hold or 0)


def chunked_body(rng, body, hold):
    """Plain size lines pass as they came, however they are spelled; one with an extension is written anew."""
    wire, at, odd = Wire(), 0, rng.choice([0, 0, 0.3, 1])
    for size in cut_randomly(rng, len(body)):
        line = rng.choice(["{:x}", "{:x}", "{:X}", "00{:x}"]).format(size)
        extension = rng.choice(EXTENSIONS) if rng.random() < odd else ""
        wire.sent += f"{line}{extension}\r\n".encode()
        wire.due += f"{size:x}\r\n".encode() if extension else f"{line}\r\n".encode()
        if hold and at < hold <= at + size:
            wire.sent_hold, wire.due_hold = len(wire.sent) + hold - at, len(wire.due) + hold - at
        wire.sent += body[at:at + size] + b"\r\n"
        wire.due += body[at:at + size] + b"\r\n"
        wire.chunks.append(size)
        at += size
    trailers = sorted(rng.sample(TRAILERS, rng.choice([0, 0, 1, 3])))
    forbidden = rng.sample(FORBIDDEN_TRAILERS, rng.choice([0, 1])) if trailers else []
    wire.sent += rng.choice([b"0\r\n", b"000\r\n", b"0;last\r\n"]) + field_lines(rng, forbidden + trailers) + b"\r\n"
    wire.due += b"0\r\n" + plain_lines(trailers) + b"\r\n"
    return wire


class Answer:
    """One answer to one request of the client."""

    def __init__(self, rng, case, framing, request_id):
        self.case, self.framing, self.request_id = case, framing, request_id
        self.client_closes = rng.random() < 0.2
        self.closes = framing == "close" or self.client_closes
        self.engine_closes = framing == "close" or rng.random() < 0.2
        self.reason = rng.choice(REASONS)
        self.wire = chunked_body(rng, case.body, case.hold) if framing == "chunked" else plain_body(case.body, case.hold)
        self.fields = self._passing_fields(rng)
        head = self._engine_head(rng)
        self.script = Script(*self._pieces(rng, head), self.engine_closes)

    def _passing_fields(self, rng):
        passing = sorted(rng.sample(range(len(PASSING)), rng.randrange(len(PASSING))))
        fields = [PASSING[i] for i in passing]
        for field in self.case.fields:
            fields.insert(rng.randrange(len(fields) + 1), field)
        return fields

    def _engine_head(self, rng):
        fields = list(self.fields)
        extra = list(rng.choice(HOP)) if rng.random() < 0.5 else []
        version = "HTTP/1.1"
        if self.framing == "chunked":
            extra.append(("Transfer-Encoding", "chunked"))
        elif self.framing == "length":
            extra += [("Content-Length", str(len(self.case.body)))] * rng.choice([1, 1, 1, 2])
        elif rng.random() < 0.5:
            version = "HTTP/1.0"
        if self.engine_closes and (self.framing != "close" or rng.random() < 0.5):
            extra.append(("Connection", "close"))
        for field in extra:
            fields.insert(rng.randrange(len(fields) + 1), field)
        return f"{version} {self.case.status} {self.reason}\r\n".encode("latin-1") + field_lines(rng, fields) + b"\r\n"

    def _pieces(self, rng, head):
        """Head and body in pieces that know nothing of chunks, and which of them is the first behind the hold."""
        stream, pieces, hold = head + self.wire.sent, [], None
        held = len(head) + self.wire.sent_hold if self.case.hold else len(stream)
        for part in (stream[:held], stream[held:]):
            hold = len(pieces) if pieces and part else hold
            for size in cut_randomly(rng, len(part)):
                pieces.append(part[:size])
                part = part[size:]
        return pieces, hold

    def request(self):
        fields = [("Host", "engine.test"), ("x-request-id", self.request_id), ("Content-Type", self.case.request_type),
                  ("Content-Length", str(len(self.case.request_body)))]
        if self.client_closes:
            fields.append(("Connection", "close"))
        return f"{self.case.request_line}\r\n".encode() + plain_lines(fields) + b"\r\n" + self.case.request_body


# --- the client's side

@dataclasses.dataclass
class Received:
    """What the client got, and what else is known of the exchange when it is over."""
    head: bytes
    body: bytes  # on the wire: with its chunk lines
    closed: bool  # in order, by FIN
    request: tuple = ()  # what the engine got
    moved: dict = dataclasses.field(default_factory=dict)
    took: float = 0.0


class Client:
    """One connection to noren, by hand."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.settimeout(PATIENCE)

    def exchange(self, answer):
        self.socket.sendall(answer.request())
        got, head_end, closed = b"", 0, False
        try:
            while not head_end or answer.closes or len(got) < head_end + len(answer.wire.due):
                piece = self.socket.recv(65536)
                if not piece:
                    closed = True
                    break
                got += piece
                head_end = head_end or got.find(b"\r\n\r\n") + 4 if b"\r\n\r\n" in got else 0
                if head_end and len(got) >= head_end + answer.wire.due_hold:
                    answer.script.release()
        except OSError:  # nothing came any more, or the connection was reset: what has come tells more
            pass
        answer.script.release()
        return Received(got[:head_end], got[head_end:], closed)

    def late_bytes(self):
        """What came behind the answer on a connection that stays open, where nothing may come."""
        self.socket.setblocking(False)
        try:
            return self.socket.recv(65536)
        except BlockingIOError:
            return b""
        finally:
            self.socket.settimeout(PATIENCE)

    def close(self):
        self.socket.close()


# --- the comparison

def chunk_sizes(wire):
    sizes, at = [], 0
    while (end := wire.find(b"\r\n", at)) >= 0:
        try:
            sizes.append(int(wire[at:end], 16))
        except ValueError:
            return sizes, "then no chunk"
        at = end + 2 + sizes[-1] + 2
        if not sizes[-1]:
            return sizes[:-1], "whole"
    return sizes, "then the end"


def wrong_body(answer, received):
    due, got = answer.wire.due, received.body
    if got == due:
        return
    at = next((i for i, (a, b) in enumerate(zip(due, got)) if a != b), min(len(due), len(got)))
    yield (f"body: expected {len(due)} bytes on the wire, found {len(got)}; at {at} expected {due[at:at + 40]!r}, "
           f"found {got[at:at + 40]!r}")
    if answer.framing == "chunked" and (found := chunk_sizes(got)) != (answer.wire.chunks, "whole"):
        yield f"chunks: expected {answer.wire.chunks}, found {found}"


def wrong_head(answer, received):
    status_line, *lines = received.head.decode("latin-1").split("\r\n")[:-2] or [""]
    wanted = f"HTTP/1.1 {answer.case.status} {answer.reason}"
    if status_line != wanted:
        yield f"status line: expected {wanted!r}, found {status_line!r}"
    fields = [tuple(line.split(": ", 1)) for line in lines]
    own = {"connection", "transfer-encoding", "content-length"}
    framing = [field for field in fields if field[0].lower() in own]
    wanted = {"chunked": [("Transfer-Encoding", "chunked")], "length": [("Content-Length", str(len(answer.case.body)))],
              "close": []}[answer.framing] + [("Connection", "close")] * answer.closes
    if framing != wanted:
        yield f"framing fields: expected {wanted}, found {framing}"
    passed = [field for field in fields if field[0].lower() not in own]
    if not any(name == "x-request-id" for name, _ in answer.fields):
        wanted = ("x-request-id", answer.request_id)
        if passed.count(wanted) != 1:
            yield f"expected {wanted} once, found {passed}"
        else:
            passed.remove(wanted)
    if passed != answer.fields:
        yield f"end-to-end fields: expected {answer.fields}, found {passed}"


def problems(answer, received, expected, model):
    """All that is wrong with one exchange, each in a line."""
    yield from wrong_head(answer, received)
    yield from wrong_body(answer, received)
    if received.closed != answer.closes:
        yield f"connection: expected {'its close' if answer.closes else 'to be kept'}, found the other"
    wanted = (answer.case.request_line, answer.case.request_body)
    if received.request != wanted:
        yield f"request at the engine: expected {wanted}, found {received.request}"
    if answer.script.held_up:
        yield f"held back: the client did not get what the engine had sent up to byte {answer.case.hold} of the body"
    yield from expected_metrics.wrong_counts(received.moved, expected)
    yield from expected_metrics.wrong_times(received.moved, answer.case, model, received.took)


# --- the run

class Relay:
    """Sends the requests, one at a time, so that what moves in the metrics is known to be of one case."""

    def __init__(self, stack, engine, seed):
        self.stack, self.engine, self.seed = stack, engine, seed
        self.labels = expected_metrics.ModelLabels()
        self.client = None
        self.idle = False  # a connection to the engine waits in the pool
        self.count = 0
        self.metrics = stack.metrics()

    def run(self, case, framing, round_number):
        """(answer, what was received, expected movements, the model's label)"""
        rng = random.Random(f"{self.seed} {round_number} {framing} {case.name}")
        self.count += 1
        answer = Answer(rng, case, framing, f"relay-{self.count}")
        self.engine.scripts[answer.request_id] = answer.script
        start = time.monotonic()
        self.client = self.client or Client(self.stack.port)
        received = self.client.exchange(answer)
        model = self.labels.of(case)
        expected = expected_metrics.of_relayed(case, model, not self.idle)
        self.idle = not answer.engine_closes
        if received.closed or answer.closes:
            self.client.close()
            self.client = None
        self._expect_gauges(expected)
        received.moved = self._settled_movement(expected)
        received.took = time.monotonic() - start
        received.request = answer.script.request
        if self.client:
            received.body += self.client.late_bytes()
        return answer, received, expected, model

    def _expect_gauges(self, expected):
        values = dict.fromkeys(expected_metrics.GAUGES, 0)
        values['noren_upstream_connections{state="idle"}'] = int(self.idle)
        values["noren_client_connections"] = int(self.client is not None)
        for name, value in values.items():
            expected[name] = value - self.metrics[name]

    def _settled_movement(self, expected):
        """The client has its last byte a moment before noren writes down that the exchange is over. What would come later
        still is found with the next case, or at the end."""
        deadline = time.monotonic() + 2
        while True:
            after = self.stack.metrics()
            moved = expected_metrics.movement(self.metrics, after)
            if not expected_metrics.wrong_counts(moved, expected) or time.monotonic() > deadline:
                self.metrics = after
                return moved
            time.sleep(0.002)

    def moved_since(self):
        """Behind the last case nothing may have moved."""
        time.sleep(0.1)
        moved = expected_metrics.movement(self.metrics, self.stack.metrics())
        return {key: by for key, by in moved.items() if by}


# --- is every fault noticed?

def altered(received, **changes):
    twin = copy.copy(received)
    twin.moved = dict(received.moved)
    for name, value in changes.items():
        setattr(twin, name, value)
    return twin


def alterations(rng, answer, received):
    """(what was done to it, the altered Received): each is a fault that a proxy could have."""
    head, body, moved = received.head, received.body, received.moved
    at = rng.randrange(len(body))
    yield "a byte flipped", altered(received, body=body[:at] + bytes([body[at] ^ 1 << rng.randrange(8)]) + body[at + 1:])
    yield "a byte lost", altered(received, body=body[:at] + body[at + 1:])
    yield "a byte doubled", altered(received, body=body[:at] + body[at:at + 1] + body[at:])
    yield "the body cut", altered(received, body=body[:at])
    if answer.framing == "chunked":
        ends = body[body.rindex(b"\r\n0\r\n") + 2:]
        whole = b"%x\r\n%b\r\n" % (len(answer.case.body), answer.case.body) + ends
        if len(answer.wire.chunks) > 1:
            yield "all chunks made one", altered(received, body=whole)
        size = answer.wire.chunks[0]
        if size > 1:
            rest = body[body.index(b"\r\n") + 2:]
            yield "a chunk cut in two", altered(received, body=b"1\r\n%b\r\n%x\r\n" % (rest[:1], size - 1) + rest[1:])
        if ends != b"0\r\n\r\n":
            yield "trailers lost", altered(received, body=body[:-len(ends)] + b"0\r\n\r\n")
    status_line, *lines = head.split(b"\r\n")[:-2]
    with_lines = lambda lines: altered(received, head=b"\r\n".join([status_line, *lines, b"", b""]))  # noqa: E731
    spot = rng.randrange(len(lines))
    yield "a field lost", with_lines(lines[:spot] + lines[spot + 1:])
    yield "a field doubled", with_lines(lines[:spot + 1] + lines[spot:])
    yield "a name in capitals", with_lines([line.replace(b"ontent-", b"ONTENT-") for line in lines])
    yield "a field of the hop let through", with_lines([b"Keep-Alive: timeout=5", *lines])
    passing = [i for i, line in enumerate(lines) if line.split(b":")[0].lower() not in
               (b"connection", b"content-length", b"transfer-encoding", b"x-request-id")]
    if len(passing) > 1 and lines[passing[0]] != lines[passing[1]]:
        swapped = list(lines)
        swapped[passing[0]], swapped[passing[1]] = lines[passing[1]], lines[passing[0]]
        yield "two fields swapped", with_lines(swapped)
    yield "another status", altered(received, head=head.replace(b"HTTP/1.1 2", b"HTTP/1.1 3").replace(b" 400 ", b" 404 "))
    yield "another reason", altered(received, head=head.replace(b"\r\n", b".\r\n", 1))
    yield "kept for closed, or closed for kept", altered(received, closed=not received.closed)
    yield "the request changed", altered(received, request=(received.request[0], received.request[1] + b" "))
    counts = [key for key in moved if not expected_metrics.is_of_the_clock(key)]
    for name in rng.sample([key for key in counts if moved[key]], 5) + rng.sample(counts, 5):
        by = rng.choice([-1, 1])
        yield f"{name} by {by:+}", altered(received, moved={**moved, name: moved[name] + by})


def selftest(rng, answer, received, expected, model):
    """How many alterations there were, and a complaint for each that passes as good."""
    twins = list(alterations(rng, answer, received))
    return len(twins), [f"not noticed: {what}" for what, twin in twins if not any(problems(answer, twin, expected, model))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", help="name of one case")
    parser.add_argument("--selftest", action="store_true")
    options = parser.parse_args()
    names = sorted(file[:-5] for file in os.listdir(STREAMS) if file.endswith(".body"))
    cases = [Case(name) for name in names if options.only in (None, name)]
    rng = random.Random(options.seed)
    passed = failed = altered_ones = 0

    def report(what, found):
        print(f"FAIL {what} (seed {options.seed})", *found, sep="\n     ")

    with ScriptedEngine() as engine, Stack(options.bin, config=CONFIG, engine_port=engine.port) as stack:
        relay = Relay(stack, engine, options.seed)
        for round_number in range(options.rounds):
            plan = [(case, framing) for case in cases for framing in FRAMINGS]
            rng.shuffle(plan)
            for case, framing in plan:
                exchange = relay.run(case, framing, round_number)
                found = list(problems(*exchange))
                if options.selftest and not found:
                    count, found = selftest(rng, *exchange)
                    altered_ones += count
                if found:
                    failed += 1
                    report(f"{case.name}, {framing}, round {round_number}", found)
                else:
                    passed += 1
        if late := relay.moved_since():
            failed += 1
            report("behind the last case", [f"{key} moved by {by:g}" for key, by in late.items()])
    if options.selftest:
        print(f"{altered_ones} altered answers were looked at as well")
    print(f"{passed} passed, {failed} failed: {len(cases)} answers, each in chunks, by length and by close")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
