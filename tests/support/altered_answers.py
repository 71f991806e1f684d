"""What a client received, altered in the ways in which a proxy could go wrong. A check that lets one of them pass is none."""
import copy

from support import expected_metrics


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
