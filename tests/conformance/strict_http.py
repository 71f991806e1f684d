"""HTTP/1.1 messages, read in the one way that RFC 9110 and RFC 9112 leave open; whatever another reader might take otherwise
is a Fault. It shares nothing with noren's own parser, which it judges."""
import re
from dataclasses import dataclass, field

TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
FIELD_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
TARGET = re.compile(rb"/[!\"$-~]*|\*")
HOST = re.compile(rb"[A-Za-z0-9._~!$&'()*+,;=%:\[\]-]*")
STATUS_LINE = re.compile(rb"HTTP/1\.1 ([1-5][0-9][0-9]) ([\t\x20-\x7e\x80-\xff]*)")
LENGTH = re.compile(rb"[0-9]{1,18}")
CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}")
BLANKS = rb"[ \t]*"
QUOTED = rb'"(?:[\t !\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t -\x7e\x80-\xff])*"'
EXTENSION = re.compile(rb"(?:%b;%b%b(?:%b=%b(?:%b|%b))?)*"
                       % (BLANKS, BLANKS, TOKEN.pattern, BLANKS, BLANKS, TOKEN.pattern, QUOTED))
NEVER_IN_TRAILERS = ("content-length", "transfer-encoding", "host")


class Fault(Exception):
    """These bytes are no message, or more than one reading of them is possible."""


class Unfinished(Exception):
    """The bytes so far may become one."""


@dataclass
class Message:
    start: tuple  # (method, target) or (status,)
    fields: list  # (lower-case name, value), in order
    framing: str = "none"  # none, length, chunked, close
    length: int = 0
    pieces: list = field(default_factory=list)  # (begin, end) of the body in what was received
    trailers: list = field(default_factory=list)
    whole: bool = False
    end: int = 0  # behind its last byte read
    source: bytearray = b""

    @property
    def body(self):
        return b"".join(bytes(self.source[begin:end]) for begin, end in self.pieces)

    @property
    def status(self):
        return self.start[0]

    def values(self, name):
        return [value for known, value in self.fields if known == name]


def take_line(data, at):
    """A line without its CRLF, and where the next one begins."""
    end = data.find(b"\n", at)
    if end < 0:
        raise Unfinished
    line = bytes(data[at:end])
    if not line.endswith(b"\r") or b"\r" in line[:-1]:
        raise Fault(f"CR and LF do not come as one pair at the end of {line[:80]!r}")
    return line[:-1], end + 1


def take_fields(data, at):
    fields = []
    while True:
        line, at = take_line(data, at)
        if not line:
            return fields, at
        name, colon, value = line.partition(b":")
        value = value.strip(b" \t")
        if not colon or not TOKEN.fullmatch(name) or not FIELD_VALUE.fullmatch(value):
            raise Fault(f"not a field line: {line[:80]!r}")
        fields.append((name.decode().lower(), value))


def settle_framing(message, without):
    """RFC 9112 6.3. without: how a message ends that has neither field."""
    codings, lengths = message.values("transfer-encoding"), message.values("content-length")
    if len(codings) + len(lengths) > 1:
        raise Fault(f"framed more than once: Transfer-Encoding {codings}, Content-Length {lengths}")
    if codings and codings[0].lower() != b"chunked":
        raise Fault(f"Transfer-Encoding {codings[0]!r}")
    if lengths and not LENGTH.fullmatch(lengths[0]):
        raise Fault(f"Content-Length {lengths[0]!r}")
    message.framing = "chunked" if codings else "length" if lengths else without
    message.length = int(lengths[0]) if lengths else 0


def take_chunks(message, data, extensions):
    while True:
        line, at = take_line(data, message.end)
        digits = CHUNK_SIZE.match(line)
        extension = line[digits.end():] if digits else None
        if extension is None or not EXTENSION.fullmatch(extension) or (extension and not extensions):
            raise Fault(f"not a chunk size line as it may be here: {line[:80]!r}")
        size = int(digits[0], 16)
        if size == 0:
            break
        message.pieces.append((at, min(at + size, len(data))))
        if len(data) < at + size + 2:
            if data[at + size:] not in (b"", b"\r"):
                raise Fault("no CRLF behind a chunk's data")
            raise Unfinished
        if data[at + size:at + size + 2] != b"\r\n":
            raise Fault("no CRLF behind a chunk's data")
        message.end = at + size + 2
    message.trailers, message.end = take_fields(data, at)
    for name, _ in message.trailers:
        if name in NEVER_IN_TRAILERS:
            raise Fault(f"{name} in a trailer section")
    message.whole = True


def take_body(message, data, ended, extensions):
    """Reads as far as the bytes go. ended: None, "closed" or "reset"."""
    begin = message.end
    if message.framing == "chunked":
        try:
            take_chunks(message, data, extensions)
        except Unfinished:
            pass
    elif message.framing == "close":
        message.pieces, message.end = [(begin, len(data))], len(data)
        message.whole = ended == "closed"
    else:
        message.end = min(begin + message.length, len(data))
        message.pieces = [(begin, message.end)]
        message.whole = message.end == begin + message.length


def read_request(data, at, extensions=False):
    """The request that begins at `at`, once its head is whole; Message.whole tells about its body. extensions: whether its
    chunks may have some, as they never may when noren has written them."""
    line, next_line = take_line(data, at)
    parts = line.split(b" ")
    if len(parts) != 3 or parts[2] != b"HTTP/1.1" or not TOKEN.fullmatch(parts[0]) or not TARGET.fullmatch(parts[1]):
        raise Fault(f"not a request line: {line[:80]!r}")
    fields, end = take_fields(data, next_line)
    message = Message((parts[0].decode(), parts[1].decode()), fields, end=end, source=data)
    hosts = message.values("host")
    if len(hosts) != 1 or not HOST.fullmatch(hosts[0]):
        raise Fault(f"Host {hosts}")
    if any(value.lower() != b"100-continue" for value in message.values("expect")):
        raise Fault(f"Expect {message.values('expect')}")
    settle_framing(message, "none")
    take_body(message, data, None, extensions)
    return message


def read_response(data, at, method, ended, extensions=False):
    """Likewise the answer to a request with this method."""
    line, next_line = take_line(data, at)
    match = STATUS_LINE.fullmatch(line)
    if not match:
        raise Fault(f"not a status line: {line[:80]!r}")
    fields, end = take_fields(data, next_line)
    message = Message((int(match[1]),), fields, end=end, source=data)
    settle_framing(message, "close")
    if message.status < 200 or message.status == 204:
        if message.framing != "close":  # RFC 9112 6.1, RFC 9110 8.6
            raise Fault(f"a framing field in a {message.status} answer")
    # Behind a 101 comes another protocol, to the connection's end.
    if (message.status < 200 and message.status != 101) or message.status in (204, 304) or method == "HEAD":
        message.framing, message.length = "none", 0
    take_body(message, data, ended, extensions)
    return message
