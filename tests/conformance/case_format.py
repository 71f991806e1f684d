"""What may stand in a conformance case. A key that nobody knows is a mistake in the case, or a clause that would be taken as
kept without being looked at: such a case fails."""

CASE = {"name", "category", "why", "strict", "strict_note", "timeout", "client", "clients", "origin", "expect"}
CLIENT = {"steps", "methods", "expect", "pause_after"}
CLIENT_STEPS = [{"send"}, {"send_hex"}, {"repeat", "n"}, {"bytewise", "gap"}, {"trickle", "n", "gap", "stop_on_response"}, {"sleep"},
                {"wait_for", "max"}, {"wait_responses", "max"}, {"wait_origin", "max"}, {"pause_reading"}, {"shutdown_wr"}, {"close"},
                {"reset"}]
ORIGIN = {"responses", "accept", "on_reuse", "listen", "fresh"}
RESPONSE = {"on", "steps", "upgrade_steps", "no_read", "close_on_violation"}
ORIGIN_STEPS = [{"send", "marker", "send_timeout"}, {"send_repeat", "n", "marker", "send_timeout"}, {"send_bytewise", "gap"}, {"sleep"},
                {"drip", "count", "gap"}, {"watch_close"}, {"stall"}, {"read_some"}, {"tunnel_echo"}, {"shutdown_wr"}, {"close"},
                {"reset"}]
# allow_...: what a case lets a proxy do that this runner never does; an alternative with it is held to the rules all the same.
FIELDS = {"header_equals", "header_in", "header_absent", "header_present", "header_contains", "header_not_contains", "header_count",
          "trailers_absent"}
OF_CLIENT = FIELDS | {"status", "statuses", "responses", "complete", "conn", "silent_close", "ignore", "interim", "incremental",
                      "max_seconds", "body", "bodies", "body_repeat", "body_prefix", "body_prefix_of", "raw_contains",
                      "raw_not_contains", "allow_violations", "allow_extra"}
OF_REQUEST = FIELDS | {"method", "target", "version", "framing", "complete", "body", "body_repeat", "no_chunk_ext"}
OF_ORIGIN = {"requests", "complete", "targets", "first", "second", "third", "each", "peer_closed_within", "total_attempts",
             "same_presence", "tunnel", "allow_violations", "allow_smuggled", "allow_partial_head"}


def as_list(expected):
    return expected if isinstance(expected, list) else [expected]


def unknown_steps(steps, known, place):
    for step in steps:
        if not any(set(step) <= keys and set(step) & keys for keys in known):
            yield f"{place}: unknown step {step}"


def unknown_keys(node, known, place):
    for key in sorted(set(node) - known):
        yield f"{place}: unknown key {key!r}"


def unknown_in_expectation(expected):
    """Of one alternative."""
    yield from unknown_keys(expected, {"client", "origin"}, "expect")
    yield from unknown_keys(expected.get("client", {}), OF_CLIENT, "expect.client")
    origin = expected.get("origin", {})
    yield from unknown_keys(origin, OF_ORIGIN, "expect.origin")
    for which in ("first", "second", "third", "each"):
        yield from unknown_keys(origin.get(which, {}), OF_REQUEST, f"expect.origin.{which}")


def unknown_in(case):
    """Every key of the case that this runner does not know."""
    yield from unknown_keys(case, CASE, "case")
    if ("client" in case) == ("clients" in case) or "expect" not in case:
        yield "case: one of client and clients, and expect, must be there"
        return
    for client in case.get("clients") or [case["client"]]:
        yield from unknown_keys(client, CLIENT, "client")
        yield from unknown_steps(client["steps"], CLIENT_STEPS, "client")
        for alternative in as_list(client.get("expect", {})):
            yield from unknown_keys(alternative, OF_CLIENT, "client.expect")
    origin = case.get("origin", {})
    yield from unknown_keys(origin, ORIGIN, "origin")
    scripts = [origin.get("on_reuse", []), *(action for action in origin.get("accept", []) if isinstance(action, list))]
    for response in origin.get("responses", []):
        yield from unknown_keys(response, RESPONSE, "origin.responses")
        scripts += [response.get("steps", []), response.get("upgrade_steps", [])]
    for steps in scripts:
        yield from unknown_steps(steps, ORIGIN_STEPS, "origin")
    for alternative in as_list(case["expect"]):
        yield from unknown_in_expectation(alternative)
