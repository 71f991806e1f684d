#!/usr/bin/env python3
"""relay_corpus.py BIN_DIR [--seed N] [--rounds N] [--only CASE] [--selftest]: every answer of the corpus through a running
noren, in chunks, with a length and ended by the close, written by a scripted engine in pieces of any size. What the client
gets must be what the engine sent, to the byte, the header field and the chunk; and /metrics must have moved by exactly
what is known to be in the answer. With --selftest each answer is then altered in many ways, and each must be noticed.
Ends with "N passed, N failed"."""
import argparse
import dataclasses
import email.utils
import os
import random
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support import expected_metrics  # noqa: E402
from support.altered_answers import alterations  # noqa: E402
from support.corpus_case import corpus_cases  # noqa: E402
from support.harness import Stack  # noqa: E402
from support.scripted_answer import FRAMINGS, Answer  # noqa: E402
from support.scripted_engine import PATIENCE, ScriptedEngine  # noqa: E402

# One worker has one pool, so that it is known when a connection to the engine is a new one.
CONFIG = "workers: 1\nupstream: {health_interval: 0, idle_timeout: 1h}\n"


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
    expected = list(answer.fields)
    if not any(name.lower() == "date" for name, _ in expected):  # RFC 9110 6.6.1: that of receipt, if the engine gave none
        date = next((value for name, value in passed if name == "Date"), "Thu, 01 Jan 1970 00:00:00 GMT")
        if abs(email.utils.parsedate_to_datetime(date).timestamp() - time.time()) > PATIENCE:
            yield f"expected a Date of now, found {date}"
        expected.append(("Date", date))
    if not any(name == "x-request-id" for name, _ in expected):
        expected.append(("x-request-id", answer.request_id))
    if passed != expected:
        yield f"end-to-end fields: expected {expected}, found {passed}"


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


def selftest(rng, answer, received, expected, model):
    """How many alterations there were, and a complaint for each that passes as good."""
    twins = list(alterations(rng, answer, received))
    return len(twins), [f"not noticed: {what}" for what, twin in twins if not any(problems(answer, twin, expected, model))]


class Results:
    """How many exchanges were right, and in full what was wrong with the others."""

    def __init__(self, seed):
        self.seed, self.passed, self.failed = seed, 0, 0

    def add(self, what, wrong):
        self.passed += not wrong
        self.failed += bool(wrong)
        if wrong:
            print(f"FAIL {what} (seed {self.seed})", *wrong, sep="\n     ")

    @property
    def hopeless(self):
        """Every failed exchange is waited for: after so many nothing new is learnt."""
        return self.failed >= 30


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", help="name of one case")
    parser.add_argument("--selftest", action="store_true")
    options = parser.parse_args()
    cases = corpus_cases(options.only)
    rng = random.Random(options.seed)
    results, twins = Results(options.seed), 0
    plan = []
    for number in range(options.rounds):
        one_round = [(case, framing, number) for case in cases for framing in FRAMINGS]
        plan += rng.sample(one_round, len(one_round))
    with ScriptedEngine() as engine, Stack(options.bin, config=CONFIG, engine_port=engine.port) as stack:
        relay = Relay(stack, engine, options.seed)
        for case, framing, number in plan:
            exchange = relay.run(case, framing, number)
            wrong = list(problems(*exchange))
            if options.selftest and not wrong:
                count, wrong = selftest(rng, *exchange)
                twins += count
            results.add(f"{case.name}, {framing}, round {number}", wrong)
            if results.hopeless:
                break
        late = relay.moved_since()
        if late:
            results.add("behind the last case", [f"{key} moved by {by:g}" for key, by in late.items()])
    if options.selftest:
        print(f"{twins} altered answers were looked at as well")
    print(f"{results.passed} passed, {results.failed} failed: {len(cases)} answers, each in chunks, by length and by close")
    return 1 if results.failed or not results.passed else 0


if __name__ == "__main__":
    sys.exit(main())
