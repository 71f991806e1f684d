"""By how much each series of /metrics must move for one relayed answer of the corpus, told from what is known to be in it
(its `expect`) and the definitions of the metrics; and what in two scrapes is otherwise."""
import re

ENDPOINTS = {
    "openai.chat": "chat_completions", "ollama.chat": "chat_completions", "cohere.chat": "chat_completions",
    "openai.responses": "responses", "anthropic.messages": "messages", "openai.embeddings": "embeddings",
    "rerank": "rerank"}  # all others complete something: completions
FINISH_REASONS = {
    None: "none", "stop": "stop", "end_turn": "stop", "completed": "stop", "COMPLETE": "stop", "eos_token": "stop",
    "length": "length", "limit": "length", "tool_calls": "tool_calls", "tool_use": "tool_calls"}
TOKEN_BOUNDS = [1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144, 1048576]
STAGES = ("upload", "queue", "connect", "prefill", "decode", "stall")
GAUGES = ("noren_inflight_requests", "noren_awaiting_first_token_requests", "noren_queued_requests",
          "noren_running_requests", "noren_saturation_ratio", 'noren_upstream_connections{state="active"}')


def series(name, **labels):
    le = labels.pop("le", None)
    pairs = [f'{key}="{value}"' for key, value in sorted(labels.items())] + ([f'le="{le}"'] if le else [])
    return f"{name}{{{','.join(pairs)}}}" if pairs else name


class ModelLabels:
    """The label of a model: its own, once it has been met in an answer that was not refused."""

    def __init__(self):
        self.known = set()

    def of(self, case):
        label = self._name(case)
        if not label:
            return "unknown"
        if case.status < 300:
            self.known.add(label)
        return label if label in self.known else "other"

    @staticmethod
    def _name(case):
        """The one that was asked for; if none was, the one that the answer names by its first token event, under which that
        event is counted at once."""
        asked, named = (case.request_json or {}).get("model"), case.expect["model"] or ""
        return asked or (named if named.encode() in case.body[:case.expect["first_token_event_offset"]] else "")


class Movements(dict):
    """{series: movement}; one that is not in it must not move. Of a histogram of times only the count can be known."""

    def count(self, name, by=1, **labels):
        if by:
            key = series(name, **labels)
            self[key] = self.get(key, 0) + by

    def observe_times(self, name, samples=1, **labels):
        self.count(f"{name}_count", samples, **labels)
        self.count(f"{name}_bucket", samples, le="+Inf", **labels)

    def observe_tokens(self, name, tokens, **labels):
        if tokens:
            self.count(f"{name}_sum", tokens, **labels)
            self.observe_times(name, **labels)
            for bound in TOKEN_BOUNDS:
                if tokens <= bound:
                    self.count(f"{name}_bucket", le=bound, **labels)


def outcome_of(case):
    """An error of the engine's inside an answer that began well is its fault; the request's, if it said so by a 4xx."""
    if case.status >= 400:
        return "bad_request"
    return "upstream_error" if case.expect["error"] else "ok"


def of_relayed(case, model, new_connection):
    """model: its label; new_connection: no idle one to the engine was there."""
    expect, moved = case.expect, Movements()
    endpoint, outcome = ENDPOINTS.get(case.api, "completions"), outcome_of(case)
    moved.count("noren_requests_total", model=model, endpoint=endpoint, code=case.status, outcome=outcome)
    moved.observe_times("noren_request_duration_seconds", model=model, outcome="ok" if outcome == "ok" else "error")
    for name in ("queue_wait", "proxy_overhead", "write_stall"):
        moved.observe_times(f"noren_{name}_seconds")
    for stage in STAGES:
        moved.observe_times("noren_request_stage_seconds", stage=stage)
    if outcome == "upstream_error":
        moved.count("noren_upstream_errors_total", reason="stream_error")
    if new_connection:
        moved.count("noren_upstream_connects_total", result="ok")
        moved.observe_times("noren_upstream_connect_seconds")
    for came_from, went_to, size in (("client", "upstream", len(case.request_body)), ("upstream", "client", len(case.body))):
        moved.count("noren_received_bytes_total", size, side=came_from)
        moved.count("noren_sent_bytes_total", size, side=went_to)
    add_tokens(moved, case, model)
    if case.encoding:
        moved.count("noren_unobserved_responses_total", reason="encoding")
    elif endpoint not in ("embeddings", "rerank") and case.status < 400:
        moved.count("noren_finish_reasons_total", model=model, finish_reason=FINISH_REASONS[expect["finish_reason"]])
    moved.count("noren_stream_parse_errors_total", case.unparsed_events)
    return moved


def add_tokens(moved, case, model):
    expect, events = case.expect, case.expect["token_events"]
    output = expect["output_tokens"] or 0
    moved.count("noren_prompt_tokens_total", expect["input_tokens"], model=model)
    moved.count("noren_prompt_cached_tokens_total", expect["cached_tokens"], model=model)
    moved.count("noren_reasoning_tokens_total", expect["reasoning_tokens"], model=model)
    moved.count("noren_output_tokens_total", events, model=model, source="events")
    moved.count("noren_output_tokens_total", max(0, output - events), model=model, source="usage")
    moved.observe_tokens("noren_request_prompt_tokens", expect["input_tokens"], model=model)
    moved.observe_tokens("noren_request_output_tokens", output, model=model)
    if events:
        moved.observe_times("noren_time_to_first_token_seconds", model=model)
        moved.observe_times("noren_upstream_time_to_first_token_seconds", model=model)
    # The first token event comes in a read of its own (see relay_corpus.py), so each later one ends a gap.
    if events > 1 and case.choices == 1:
        moved.observe_times("noren_inter_token_latency_seconds", events - 1, model=model)
        if outcome_of(case) == "ok":
            moved.observe_times("noren_time_per_output_token_seconds", model=model)
            moved.observe_times("noren_request_output_tokens_per_second", model=model)


# --- what two scrapes say

TIMES = re.compile(r"(noren_\w+_(?:seconds|per_second))_(count|sum|bucket)(?:\{(.*)\})?$")


def movement(before, after):
    return {key: value - before.get(key, 0) for key, value in after.items() if key.startswith("noren_")}


def is_of_the_clock(key):
    """How long something took decides on the value, except that of a histogram's last bucket, which has all."""
    times = TIMES.match(key)
    return times and (times[2] == "sum" or times[2] == "bucket" and '+Inf"' not in key)


def wrong_counts(moved, expected):
    """Each series whose movement is not the expected one."""
    wrong = [key for key in moved.keys() | expected.keys()
             if abs(moved.get(key, 0) - expected.get(key, 0)) > 1e-9 and not is_of_the_clock(key)]
    return [f"{key}: expected to move by {expected.get(key, 0):g}, found {moved.get(key, 0):g}" for key in sorted(wrong)]


def wrong_times(moved, case, model, took):
    """What must hold among the times of one exchange, whatever the clock said; took: seconds, as the client saw it."""
    def total(name, **labels):
        return moved.get(series(f"{name}_sum", **labels), 0.0)

    outcome = "ok" if outcome_of(case) == "ok" else "error"
    duration = total("noren_request_duration_seconds", model=model, outcome=outcome)
    stages = sum(total("noren_request_stage_seconds", stage=stage) for stage in STAGES)
    ttft = total("noren_time_to_first_token_seconds", model=model)
    engine_ttft = total("noren_upstream_time_to_first_token_seconds", model=model)
    gaps = total("noren_inter_token_latency_seconds", model=model)
    tpot = total("noren_time_per_output_token_seconds", model=model)
    tps = total("noren_request_output_tokens_per_second", model=model)
    intervals = (case.expect["output_tokens"] or 0) - 1
    rules = [
        ("duration is not longer than the client waited", duration <= took),
        ("the stages add up to the duration", abs(stages - duration) < 1e-6),
        ("TTFT lies within the duration, the engine's share within TTFT", 0 <= engine_ttft <= ttft <= duration + 1e-9),
        ("TPOT times the intervals is the time from first to last token", not tpot or abs(tpot * intervals - gaps) < 1e-6),
        ("TPS is 1/TPOT", not tpot or abs(tpot * tps - 1) < 1e-3)]
    return [f"{rule}: duration {duration} of {took}, stages {stages}, TTFT {ttft}, engine's {engine_ttft}, gaps {gaps}, "
            f"TPOT {tpot}, TPS {tps}" for rule, holds in rules if not holds]
