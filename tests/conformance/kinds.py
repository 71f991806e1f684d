#!/usr/bin/env python3
"""kinds.py NOREN_BIN: whole kinds of messages on the wire. Each byte value in the positions of a header line and of a chunk
line, and each framing of a message, as requests to noren and as an engine's answers. What the RFCs make of each is worked out
here; taken or refused, what arrives at the other end must be readable in that one way only. Ends with "N passed, M failed"."""
import asyncio
import collections
import itertools
import sys
from dataclasses import dataclass

from engine import Engine, Script, answer_with
from run_cases import start_noren, stop_noren
from strict_http import Fault, Unfinished, read_request, read_response
from wire import connect

AT_ONCE = 24
PATIENCE = 60
# How long a message that is not whole is given to be taken for one.
UNFINISHED = 0.3
# What noren adds, writes anew, or by its own choice does not send to the engine.
OF_NOREN = ("host", "via", "x-request-id", "date", "connection", "content-length", "transfer-encoding")


@dataclass
class Sample:
    kind: str
    raw: bytes
    method: str = "POST"
    body: bytes = None  # as the RFCs read it; None: it is to be refused
    fields: list = None  # end-to-end ones; None: not looked at


def end_to_end(message, drops_underscores):
    return [(name, value) for name, value in message.fields
            if name not in OF_NOREN and not (drops_underscores and "_" in name)]


# --- what there is to send

def header_lines():
    """Every byte value in front of, inside and behind each part of a header line, its CR and its LF."""
    line = b"x-name: value\r\n"
    for position in (0, 3, 6, 7, 10, 13, 14):
        for value in range(256):
            yield line[:position] + bytes([value]) + line[position:]


def chunked_bodies():
    """Likewise around a chunk's size line and the end of its data."""
    rest = b"hello\r\n0\r\n\r\n"
    for line in chunk_lines():
        yield line + rest
    for position in (5, 6, 7):
        for value in range(256):
            yield b"5\r\n" + rest[:position] + bytes([value]) + rest[position:]


def chunk_lines():
    line = b"5 ;a = \"b\\c\";d\r\n"
    for position in (0, 1, 2, 3, 4, 7, 8, 9, 10, 12, 14, 15):
        for value in range(256):
            yield line[:position] + bytes([value]) + line[position:]
    for zeros in range(18):
        yield b"0" * zeros + b"5\r\n"
    for size in ("7fffffffffffffff", "8000000000000000", "8000000000000005", "fffffffffffffffb", "10000000000000005",
                 "100000000000000000000000000000005", "-5", "+5", "0x5", "5h", "5.", ""):
        yield size.encode() + b"\r\n"
    for end in (b"\n", b"\r", b"\n\r", b"\r\r\n", b" \r\n", b"\t\r\n"):
        yield b"5" + end


LENGTHS = ([], ["15"], ["15", "15"], ["15, 15"], ["15", "5"], ["-15"], ["+15"], ["99999999999"], ["18446744073709551631"],
           [""], ["0xf"], ["015"], ["0"])
CODINGS = ([], ["chunked"], ["Chunked"], ["chunked", "chunked"], ["chunked, chunked"], ["gzip, chunked"], ["chunked, gzip"],
           ["identity"], ["unknown"], ["chunked,"], ["chunked;q=1"], [""])
# 15 bytes as they stand, 5 in their chunk.
CHUNKS = b"5\r\nhello\r\n0\r\n\r\n"


def framings():
    """(field lines, content lengths, transfer codings), in both orders."""
    for lengths, codings in itertools.product(LENGTHS, CODINGS):
        length = "".join(f"Content-Length: {value}\r\n" for value in lengths).encode()
        coding = "".join(f"Transfer-Encoding: {value}\r\n" for value in codings).encode()
        yield length + coding, lengths, codings
        if length and coding:
            yield coding + length, lengths, codings


def framed_body(lengths, codings, is_http10, without):
    """The body of a message with these fields in front of CHUNKS (RFC 9112 6.3), or None: refused or never whole."""
    if codings:
        is_chunked = len(codings) == 1 and codings[0].lower() == "chunked"
        return b"hello" if is_chunked and not lengths and not is_http10 else None
    if not lengths:
        return without
    if not all(value.isdecimal() for value in lengths) or len(set(map(int, lengths))) != 1:
        return None
    return CHUNKS[:int(lengths[0])] if int(lengths[0]) <= len(CHUNKS) else None


def meant(kind, raw, method, is_request):
    """A sample of bytes that the strict reader may judge itself."""
    sample = Sample(kind, raw, method)
    data = bytearray(raw)
    try:
        message = read_request(data, 0, True) if is_request else read_response(data, 0, method, "closed", True)
        if message.whole:
            sample.body, sample.fields = message.body, end_to_end(message, is_request)
    except (Fault, Unfinished):
        pass
    return sample


def requests():
    # Each has a target of its own, by which the engine's end tells them apart.
    targets = (f"/kind/{number}".encode() for number in itertools.count())
    for line in header_lines():
        yield meant("header line, request", b"POST " + next(targets) + b" HTTP/1.1\r\nHost: a\r\n" + line
                    + b"Content-Length: 2\r\n\r\nhi", "POST", True)
    for body in chunked_bodies():
        yield meant("chunk line, request", b"POST " + next(targets) + b" HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + body, "POST", True)
    for (lines, lengths, codings), method, version in itertools.product(framings(), ("GET", "POST"), ("HTTP/1.0", "HTTP/1.1")):
        head = method.encode() + b" " + next(targets) + b" " + version.encode() + b"\r\nHost: a\r\n" + lines + b"\r\n"
        # Bytes behind the message must not be taken into it, nor for a request: they are none.
        yield Sample("framing, request", head + CHUNKS, method, framed_body(lengths, codings, version == "HTTP/1.0", b""))


def answers():
    for line in header_lines():
        yield meant("header line, answer", b"HTTP/1.1 200 OK\r\n" + line + b"Content-Length: 2\r\n\r\nhi", "GET", False)
    for body in chunked_bodies():
        yield meant("chunk line, answer", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body, "GET", False)
    for (lines, lengths, codings), method, version in itertools.product(framings(), ("GET", "HEAD"), ("HTTP/1.0", "HTTP/1.1")):
        body = framed_body(lengths, codings, version == "HTTP/1.0", CHUNKS)
        if method == "HEAD":
            bad_length = any(not value.isdecimal() or int(value) >= 2 ** 63 for value in lengths) or len(set(lengths)) > 1
            bad_coding = codings and framed_body(lengths, codings, version == "HTTP/1.0", b"") is None
            body = None if bad_length or bad_coding else b""
        yield Sample("framing, answer", version.encode() + b" 200 OK\r\n" + lines + b"\r\n" + (CHUNKS if method == "GET" else b""),
                     method, body)


# --- playing it

class KindsEngine(Engine):
    """Answers with what is kept for a target, then closes; with a plain answer where nothing is kept."""

    def __init__(self):
        super().__init__()
        self.script = Script({}, "")
        self.answers = {}
        self.arrived = collections.defaultdict(list)  # by target

    async def play(self, script, asked, is_reuse):
        self.arrived[asked.message.start[1]].append(asked)
        await asked.wire.until(lambda: asked.look().whole or asked.wire.ended, PATIENCE)
        if not asked.message.whole:
            return None
        answer = self.answers.get(asked.message.start[1])
        await asked.wire.send(answer if answer is not None else answer_with(b"ok"))
        return asked.message.end if answer is None else None


def judge_request(sample, wire, arrived):
    """arrived: what reached the engine under the sample's target."""
    whole = [message for message in arrived if message.whole]
    answer = None
    if wire.received:
        answer = read_response(wire.received, 0, sample.method, wire.ended)
    if sample.body is None:
        if whole:
            return f"refused by the RFCs, but the engine got {whole[0]}"
        if answer and not (answer.status in (400, 413, 501) and answer.whole and wire.ended):
            return f"refused by the RFCs, but answered with {answer.status}, connection {wire.ended}"
        return None
    if len(arrived) != 1 or len(whole) != 1:
        return f"a request by the RFCs, but the engine got {len(arrived)}, whole {len(whole)}, the client {bytes(wire.received)}"
    if whole[0].body != sample.body:
        return f"body {sample.body}, but the engine got {whole[0].body}"
    if sample.fields is not None and end_to_end(whole[0], True) != sample.fields:
        return f"fields {sample.fields}, but the engine got {end_to_end(whole[0], True)}"
    if not answer or answer.status != 200 or not answer.whole:
        return f"a request by the RFCs, but the client got {bytes(wire.received)}"
    return None


def judge_answer(sample, wire):
    answer = read_response(wire.received, 0, sample.method, wire.ended)
    if sample.body is None:
        if answer.status == 502 and answer.whole or not answer.whole and wire.ended:
            return None
        return f"refused by the RFCs, but the client got {bytes(wire.received)}"
    if answer.status != 200 or not answer.whole or answer.body != sample.body:
        return f"body {sample.body}, but the client got {bytes(wire.received)}"
    if sample.fields is not None and end_to_end(answer, False) != sample.fields:
        return f"fields {sample.fields}, but the client got {end_to_end(answer, False)}"
    return None


def has_whole_answer(wire, method):
    try:
        return read_response(wire.received, 0, method, wire.ended).whole
    except (Fault, Unfinished):
        return False


async def send_request(port, engine, sample):
    wire = await connect(port)
    await wire.send(sample.raw)
    if sample.body is None:
        if await wire.until(lambda: wire.received or wire.ended, UNFINISHED):
            await wire.until(lambda: wire.ended, PATIENCE)
    else:
        await wire.until(lambda: wire.ended or has_whole_answer(wire, sample.method), PATIENCE)
    wire.close()
    target = sample.raw.split(b" ")[1].decode()
    return judge_request(sample, wire, [asked.look() for asked in engine.arrived[target]])


async def send_answer(port, engine, sample, target):
    engine.answers[target] = sample.raw
    wire = await connect(port)
    await wire.send(f"{sample.method} {target} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    await wire.until(lambda: wire.ended or has_whole_answer(wire, sample.method), PATIENCE)
    wire.close()
    return judge_answer(sample, wire)


async def run(binary):
    engine = KindsEngine()
    await engine.open()
    noren, port = start_noren(binary, engine.port, "kinds.yaml")
    counts = {}
    gate = asyncio.Semaphore(AT_ONCE)

    async def play(sample, sending):
        async with gate:
            try:
                complaint = await sending
            except (Fault, Unfinished) as unreadable:
                complaint = f"noren sent what cannot be read: {unreadable!r}"
        count = counts.setdefault(sample.kind, [0, 0, 0])
        count[0] += sample.body is not None
        count[1 if not complaint else 2] += 1
        if complaint and count[2] <= 5:
            print(f"FAIL {sample.kind} {sample.raw!r}:\n     {complaint}", flush=True)

    try:
        await asyncio.gather(*(play(sample, send_request(port, engine, sample)) for sample in requests()))
        await asyncio.gather(*(play(sample, send_answer(port, engine, sample, f"/answer/{number}"))
                               for number, sample in enumerate(answers())))
    finally:
        stop_noren(noren)
    for fault in engine.script.faults:
        print(f"FAIL {fault}")
    for kind, (taken, passed, failed) in counts.items():
        print(f"{kind:22} {passed:5} passed, {failed} failed ({taken} to be taken)")
    passed = sum(count[1] for count in counts.values())
    failed = sum(count[2] for count in counts.values()) + len(engine.script.faults)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(run(sys.argv[1])))
