"""What a conformance case expects, held against what both ends have seen so far. Each check yields what is not as expected;
nothing yielded means that the expectation holds at this moment."""
from strict_http import Fault, Unfinished, read_response


FRAMINGS = {"none": "none", "length": "cl", "chunked": "chunked", "close": "eof"}  # as cases call them


def in_range(number, expected):
    low, high = expected if isinstance(expected, list) else (expected, expected)
    return low <= number <= high


def is_status(status, allowed):
    """allowed: numbers, and classes such as "4xx"."""
    return status in allowed or f"{status // 100}xx" in allowed


def shown(data):
    return repr(bytes(data[:100])) + (f" ({len(data)} bytes)" if len(data) > 100 else "")


class Answers:
    """All answers on a client's connection, read strictly."""

    def __init__(self, wire, methods):
        self.finals, self.interims = [], []
        self.fault = None
        at, received = 0, wire.received
        while at < len(received):
            method = methods[len(self.finals)] if len(self.finals) < len(methods) else "GET"
            try:
                message = read_response(received, at, method, wire.ended)
            except Fault as fault:
                self.fault = str(fault)
                break
            except Unfinished:
                self.fault = f"bytes that are no answer: {shown(received[at:])}"
                break
            (self.interims if message.status < 200 and message.status != 101 else self.finals).append(message)
            if not message.whole:
                break
            at = message.end


def unmet_fields(message, expected, encode):
    """Clauses about a message's header and trailer fields, the same for requests and answers."""
    for name, value in expected.get("header_equals", {}).items():
        if message.values(name) != [encode(value)]:
            yield f"expected {name}: {value}, found {message.values(name)}"
    for name, allowed in expected.get("header_in", {}).items():
        found = [value.decode("latin-1") for value in message.values(name)]
        if len(found) != 1 or found[0] not in allowed:
            yield f"expected {name} one of {allowed}, found {found}"
    for name in expected.get("header_absent", []):
        if message.values(name):
            yield f"expected no {name}, found {message.values(name)}"
    for name in expected.get("header_present", []):
        if not message.values(name):
            yield f"expected {name}, found none"
    for name, text in expected.get("header_contains", {}).items():
        if not any(text.lower().encode("latin-1") in value.lower() for value in message.values(name)):
            yield f"expected {name} with {text!r}, found {message.values(name)}"
    for name, text in expected.get("header_not_contains", {}).items():
        if any(text.lower().encode("latin-1") in value.lower() for value in message.values(name)):
            yield f"expected {name} without {text!r}, found {message.values(name)}"
    for name, count in expected.get("header_count", {}).items():
        if not in_range(len(message.values(name)), count):
            yield f"expected {count} of {name}, found {len(message.values(name))}"
    for name in expected.get("trailers_absent", []):
        if any(known == name for known, _ in message.trailers):
            yield f"expected no trailer {name}, found one"


def unmet_body(message, expected, encode):
    body = message.body
    if "body" in expected and body != encode(expected["body"]):
        yield f"expected body {shown(encode(expected['body']))}, found {shown(body)}"
    if "body_repeat" in expected:
        wanted = encode(expected["body_repeat"]["s"]) * expected["body_repeat"]["n"]
        if body != wanted:
            yield f"expected body {shown(wanted)}, found {shown(body)}"
    if "body_prefix" in expected and not body.startswith(encode(expected["body_prefix"])):
        yield f"expected body to begin with {shown(encode(expected['body_prefix']))}, found {shown(body)}"
    if "body_prefix_of" in expected and not encode(expected["body_prefix_of"]).startswith(body):
        yield f"expected a part of body {shown(encode(expected['body_prefix_of']))}, found {shown(body)}"


def unmet_statuses(finals, expected):
    if "status" in expected:
        wanted = [expected["status"]]
    elif "statuses" in expected:
        wanted = expected["statuses"]
    else:
        wanted = [None]
    if not in_range(len(finals), expected.get("responses", len(wanted))):
        yield f"expected {expected.get('responses', len(wanted))} answers, found {len(finals)}"
    for message, allowed in zip(finals, wanted):
        if allowed is not None and not is_status(message.status, allowed):
            yield f"expected status {allowed}, found {message.status}"


def unmet_completeness(wire, finals, expected):
    if expected.get("complete", True):
        if not all(message.whole for message in finals):
            yield "expected whole answers, found one that is not"
    elif finals and (finals[-1].whole or not wire.ended):
        yield "expected an answer that is visibly cut, found " + ("a whole one" if finals[-1].whole else "an open one")


def unmet_interims(interims, expected):
    statuses = [message.status for message in interims]
    if len(statuses) > expected.get("max", len(statuses)):
        yield f"expected at most {expected['max']} interim answers, found {statuses}"
    if not set(expected.get("required", [])) <= set(statuses):
        yield f"expected interim answers {expected['required']}, found {statuses}"
    if "allowed" in expected and not set(statuses) <= set(expected["allowed"]):
        yield f"expected no interim answers but {expected['allowed']}, found {statuses}"


def unmet_times(client, expected):
    wire = client.wire
    if "max_seconds" in expected and wire.arrivals and wire.arrivals[-1][1] - client.began > expected["max_seconds"]:
        yield f"expected all within {expected['max_seconds']} s, found {wire.arrivals[-1][1] - client.began:.1f} s"
    relayed = expected.get("incremental", {"markers": []})
    max_lag = relayed.get("max_lag", 0.4)
    for marker in relayed["markers"]:
        sent, seen = client.script.sent_at.get(marker), wire.when_received(marker.encode("latin-1"))
        if sent is None or seen is None or seen - sent > max_lag:
            yield f"expected {marker!r} within {max_lag} s, found it sent {sent} and received {seen}"


def unmet_by_client(client, expected):
    wire, encode = client.wire, client.script.encode
    for text in expected.get("raw_contains", []):
        if encode(text) not in wire.received:
            yield f"expected {text!r} among the bytes received, found {shown(wire.received)}"
    for text in expected.get("raw_not_contains", []):
        if encode(text) in wire.received:
            yield f"expected no {text!r} among the bytes received, found it"
    if expected.get("ignore"):
        return
    answers = Answers(wire, client.methods)
    finals = answers.finals
    if expected.get("silent_close") and not finals and not answers.fault and wire.ended:
        return
    if answers.fault:
        yield f"expected valid HTTP, found {answers.fault}"
    if expected.get("silent_close") and "status" not in expected and "statuses" not in expected:
        yield f"expected a close without an answer, found {[message.status for message in finals]}"
    yield from unmet_statuses(finals, expected)
    yield from unmet_completeness(wire, finals, expected)
    yield from unmet_interims(answers.interims, expected.get("interim", {}))
    yield from unmet_times(client, expected)
    for message, body in zip(finals, expected.get("bodies", [])):
        if body is not None:
            yield from unmet_body(message, {"body": body}, encode)
    if finals:
        yield from unmet_body(finals[0], expected, encode)
        yield from unmet_fields(finals[0], expected, encode)
    if expected.get("conn") == "closed" and not wire.ended:
        yield "expected noren to close the connection, found it open"
    if expected.get("conn") == "usable" and wire.ended:
        yield "expected the connection to stay open, found it closed"


def unmet_request(message, expected, encode):
    method, target = message.start
    if expected.get("method", method) != method:
        yield f"expected method {expected['method']}, found {method}"
    if "target" in expected and encode(expected["target"]) != target.encode():
        yield f"expected target {encode(expected['target']).decode()}, found {target}"
    if expected.get("complete", message.whole) != message.whole:
        yield "expected " + ("a part of a request, found it whole" if message.whole else "a whole request, found a part")
    if expected.get("version", "HTTP/1.1") != "HTTP/1.1":
        yield f"expected {expected['version']}, found HTTP/1.1"  # the only one that is read as a request at all
    if "framing" in expected and FRAMINGS[message.framing] not in expected["framing"]:
        yield f"expected framing {expected['framing']}, found {message.framing}"
    yield from unmet_body(message, expected, encode)
    yield from unmet_fields(message, expected, encode)


def unmet_by_engine(client, expected):
    """client: the last one, which may have left."""
    script, encode = client.script, client.script.encode
    try:
        requests = [asked.look() for asked in script.asked]
    except Fault as fault:
        yield f"expected valid HTTP at the engine, found {fault}"
        return
    yield from script.faults
    targets = [message.start[1] for message in requests]
    if any(target.startswith("/smuggled") for target in targets):
        yield f"expected no smuggled request, found {targets}"
    whole = sum(message.whole for message in requests)
    if not in_range(len(requests), expected.get("requests", len(requests))):
        yield f"expected {expected['requests']} requests at the engine, found {len(requests)}"
    if not in_range(whole, expected.get("complete", whole)):
        yield f"expected {expected['complete']} whole requests at the engine, found {whole}"
    if "targets" in expected and [encode(target) for target in expected["targets"]] != [t.encode() for t in targets]:
        yield f"expected targets {expected['targets']}, found {targets}"
    for at, key in enumerate(("first", "second", "third")):
        if key in expected and at >= len(requests):
            yield f"expected a {key} request at the engine, found none"
        elif key in expected:
            yield from unmet_request(requests[at], expected[key], encode)
    for message in requests:
        yield from unmet_request(message, expected.get("each", {}), encode)
    for name in expected.get("same_presence", []):
        if len(requests) < 2 or bool(requests[0].values(name)) != bool(requests[1].values(name)):
            yield f"expected {name} in both of two requests or in neither, found otherwise"
    attempts = len(requests) + script.reuses
    if not in_range(attempts, expected.get("total_attempts", attempts)):
        yield f"expected {expected['total_attempts']} attempts at the engine, found {attempts}"
    if "tunnel" in expected and script.tunnelled != encode(expected["tunnel"]):
        yield f"expected {expected['tunnel']!r} through the tunnel, found {shown(script.tunnelled)}"
    if "peer_closed_within" in expected:
        ended = script.asked[0].wire.ended_at if script.asked else None
        if ended is None or client.left_at is None or ended - client.left_at > expected["peer_closed_within"]:
            yield f"expected the engine's connection closed within {expected['peer_closed_within']} s, found it otherwise"
