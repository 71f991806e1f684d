"""An answer of the corpus as some engine may write it: head, framing and pieces drawn at random; and what must reach the
client of it."""
import dataclasses

from support.scripted_engine import Script

FRAMINGS = ("chunked", "length", "close")
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
