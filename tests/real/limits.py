"""Waiting, leaving, refusals and errors."""
import contextlib
import threading
import time

import anthropic
import openai

from behaviour import PROMPT, USAGE, behaviour, same, same_tokens, within
from clients import MODEL, anthropic_client, chat, openai_client, streamed_chat
from stack import wait_for


@contextlib.contextmanager
def occupied(stack):
    """A client's stream that holds the only place, from its first token until the block ends by its leaving."""
    stream = chat(openai_client(stack.noren.url, stack.fresh_id()), PROMPT, 1800, stream=True)
    next(chunk for chunk in stream if chunk.choices[0].delta.content)
    try:
        yield
        same("the holder is still served", stack.engine.busy_slots() >= 1, True)
    finally:
        stream.close()
        wait_for("the engine is idle", lambda: stack.engine.busy_slots() == 0)


class InBackground(threading.Thread):
    """A streamed chat on a thread of its own; result() gives what it saw or raises what it raised."""

    def __init__(self, stack, content, max_tokens, **client_options):
        super().__init__(daemon=True)
        self.request_id = stack.fresh_id()
        self.started = threading.Event()
        self.seen = self.error = None
        self.begin, self.finish = time.perf_counter(), None
        self.request = lambda: streamed_chat(
            openai_client(stack.noren.url, self.request_id, **client_options), content, max_tokens,
            on_event=lambda seen: self.started.set(), stream_options=USAGE)
        self.start()

    def run(self):
        try:
            self.seen = self.request()
        except Exception as error:
            self.error = error
        self.finish = time.perf_counter()

    def streaming(self):
        assert self.started.wait(30), f"no first token: {self.error}"
        return self

    def result(self):
        self.join(60)
        assert not self.is_alive(), "the stream does not end"
        if self.error:
            raise self.error
        return self.seen


@behaviour("openai", "two clients at once with cap 1: the second waits, the engine sees one")
def two_clients(stack):
    waited_before = stack.noren.metrics().total("noren_queue_wait_seconds_count")
    first = InBackground(stack, PROMPT, 96).streaming()
    second = InBackground(stack, PROMPT, 16)

    def queued():
        metrics = stack.noren.metrics()
        return (metrics.total("noren_running_requests"), metrics.total("noren_queued_requests")) == (1, 1)

    wait_for("noren_running_requests 1, noren_queued_requests 1", queued)
    most = 0
    while first.is_alive() or second.is_alive():
        most = max(most, stack.engine.busy_slots())
        time.sleep(0.01)
    ahead, behind = first.result(), second.result()
    lines = [stack.noren.recorded(request.request_id) for request in (first, second)]
    for line, seen in zip(lines, (ahead, behind)):
        same_tokens(line, seen.usage, seen.timings)
    same("requests in the engine at once", most, 1)
    same("queue waits counted", stack.noren.metrics().total("noren_queue_wait_seconds_count") - waited_before, 2)
    within("queue_ms of the first", 0, lines[0]["queue_ms"], 5)
    # The second is admitted when the engine is done with the first, which the first's client sees a little later.
    overlap_ms = (first.finish - second.begin) * 1e3
    within("queue_ms of the second against the overlap", overlap_ms / 2, lines[1]["queue_ms"], overlap_ms)
    within("ttft_ms of the second", lines[1]["queue_ms"] + behind.timings["prompt_ms"], lines[1]["ttft_ms"],
           behind.first_ms)
    return f"second waited {lines[1]['queue_ms']:.0f} ms (overlap {overlap_ms:.0f} ms)"


@behaviour("openai", "a client leaves mid-stream: the engine stops, the place is free")
def leaves_streaming(stack):
    cut_before = stack.noren.metrics().total("noren_client_disconnects_total", phase="decode")
    request_id = stack.fresh_id()
    stream = chat(openai_client(stack.noren.url, request_id), PROMPT, 1800, stream=True)
    for _ in zip(range(6), stream):
        pass
    same("slots in use", stack.engine.busy_slots(), 1)
    gone = time.perf_counter()
    stream.close()
    wait_for("the engine's slot is free", lambda: stack.engine.busy_slots() == 0)
    freed_ms = (time.perf_counter() - gone) * 1e3
    line = stack.noren.recorded(request_id)
    same("outcome", (line["outcome"], line["complete"]), ("client_closed", False))
    # No usage came, so the tokens are what was seen of them.
    same("tokens", (line["output_tokens"], line["output_tokens_source"]), (line["token_events"], "events"))
    within("token_events", 5, line["token_events"], 1799)
    same("disconnects", stack.noren.metrics().total("noren_client_disconnects_total", phase="decode"), cut_before + 1)
    after = chat(openai_client(stack.noren.url, stack.fresh_id()), "Hello", 4)
    same("next answer", after.usage.completion_tokens, 4)
    within("ms until the slot is free", 0, freed_ms, 2000)
    return f"slot free after {freed_ms:.0f} ms, {line['token_events']} events seen"


@behaviour("openai", "a client leaves the queue: the engine never hears of it")
def leaves_queue(stack):
    request_id = stack.fresh_id()
    with occupied(stack):
        prompts_before = stack.engine.metrics().total("llamacpp:prompt_tokens_total")
        queued_before = stack.noren.metrics().total("noren_client_disconnects_total", phase="queued")
        impatient = openai_client(stack.noren.url, request_id).with_options(timeout=0.3)
        try:
            chat(impatient, PROMPT, 8)
            raise AssertionError("the client did not time out")
        except openai.APITimeoutError:
            line = stack.noren.recorded(request_id)
    same("outcome", line["outcome"], "client_closed")
    metrics = stack.noren.metrics()
    same("disconnects", metrics.total("noren_client_disconnects_total", phase="queued"), queued_before + 1)
    same("prompt tokens in the engine", stack.engine.metrics().total("llamacpp:prompt_tokens_total"), prompts_before)
    return f"left after {line['queue_ms']:.0f} ms of waiting"


@behaviour("openai", "errors of the engine arrive as the SDK's own")
def engine_errors(stack):
    def refused(**options):
        request_id = stack.fresh_id()
        try:
            chat(openai_client(stack.noren.url, request_id), PROMPT, 8, **options)
        except openai.BadRequestError as error:
            line = stack.noren.recorded(request_id)
            same("status", line["status"], 400)
            assert "x-noren-reason" not in error.response.headers, "noren claims an error of the engine"
            return error.body["message"]
        raise AssertionError("no BadRequestError")

    wrong_type = refused(extra_body={"messages": "no list"})
    same("type error", wrong_type, "Expected 'messages' to be an array")
    too_long = refused(extra_body={"messages": [{"role": "user", "content": "word " * 3000}]})
    assert "context" in too_long, too_long
    return f"400 {wrong_type!r}, 400 {too_long[:40]!r}..."


def refusal(stack, make_request, error_type):
    """What noren answers while its only place is taken: the SDK's error and noren's reason."""
    request_id = stack.fresh_id()
    with occupied(stack):
        try:
            make_request(request_id)
            raise AssertionError(f"no {error_type.__name__}")
        except error_type as error:
            refused = error
    line, headers = stack.noren.recorded(request_id), refused.response.headers
    same("outcome", (line["outcome"], line["status"]), ("rejected", 429))
    same("reason", line["reason"], headers["x-noren-reason"])
    within("retry-after", 1, int(headers["retry-after"]), 60)
    return refused, line["reason"]


@behaviour("openai", "refused by noren: queue full, waited too long")
def refused_openai(stack):
    def ask(request_id):
        chat(openai_client(stack.noren.url, request_id), "Hello", 4)

    stack.noren.admit(max_queue=0)
    error, reason = refusal(stack, ask, openai.RateLimitError)
    same("full", (reason, error.code, error.type), ("queue_full", "queue_full", "rate_limit_error"))
    stack.noren.admit(max_queue=8, queue_timeout="200ms")
    error, reason = refusal(stack, ask, openai.RateLimitError)
    same("late", (reason, error.code, error.type), ("queue_timeout", "queue_timeout", "rate_limit_error"))
    stack.noren.admit(queue_timeout="60s")
    return "RateLimitError twice, queue_full and queue_timeout, limits edited live"


@behaviour("anthropic", "refused by noren: queue full")
def refused_anthropic(stack):
    stack.noren.admit(max_queue=0)
    error, reason = refusal(stack, lambda request_id: anthropic_client(stack.noren.url, request_id).messages.create(
        model=MODEL, max_tokens=4, messages=[{"role": "user", "content": "Hello"}]), anthropic.RateLimitError)
    same("full", (reason, error.body["error"]["type"]), ("queue_full", "rate_limit_error"))
    stack.noren.admit(max_queue=8)
    return "RateLimitError, queue_full"


@behaviour("openai", "the SDK's own retry heeds Retry-After and succeeds")
def retried(stack):
    stack.noren.admit(max_queue=0)

    def refusals(request_id):
        return sum((e["request_id"], e["outcome"]) == (request_id, "rejected") for e in stack.noren.exchanges())

    with occupied(stack):
        second = InBackground(stack, "Hello", 4, max_retries=10)
        wait_for("the first try is refused", lambda: refusals(second.request_id))
    same("tokens", second.result().usage.completion_tokens, 4)
    stack.noren.admit(max_queue=8)
    return f"{refusals(second.request_id)} refused, then answered"


@behaviour("openai", "the cap raised while a client waits: it runs at once")
def raised(stack):
    with occupied(stack):
        second = InBackground(stack, PROMPT, 16)
        wait_for("one waits", lambda: stack.noren.metrics().total("noren_queued_requests") == 1)
        stack.noren.admit(max_concurrency=2)
        second.result()
    stack.noren.admit(max_concurrency=1)
    return "answered while the first still streamed"


@behaviour("openai", "the engine dies mid-stream: no clean end, then 502 or 503")
def engine_dies(stack):
    request_id = stack.fresh_id()
    stream = chat(openai_client(stack.noren.url, request_id), PROMPT, 1800, stream=True)
    for _ in zip(range(6), stream):
        pass
    stack.engine.process.kill()
    stack.engine.process.wait()
    try:
        list(stream)
        raise AssertionError("a cut stream ended as if it were whole")
    except AssertionError:
        raise
    except Exception as error:  # the SDK lets its transport's error through here
        kind = type(error).__name__
    line = stack.noren.recorded(request_id)
    same("outcome", (line["outcome"], line["reason"], line["complete"]), ("upstream_error", "upstream_reset", False))

    def refusal_of_the_next():
        try:
            chat(openai_client(stack.noren.url, stack.fresh_id()), "Hello", 4)
        except openai.InternalServerError as error:
            same("reason", error.response.headers["x-noren-reason"], "upstream_connect")
            return error
        raise AssertionError("an answer without an engine")

    # Until the next health probe noren has only this one connection's word for it: 502. Then it knows: 503.
    first = refusal_of_the_next().status_code
    assert first in (502, 503), f"status {first}"
    wait_for("noren_upstream_up 0", lambda: stack.noren.metrics().total("noren_upstream_up") == 0)
    second = refusal_of_the_next()
    same("status of an engine known to be down", second.status_code, 503)
    within("retry-after", 1, int(second.response.headers["retry-after"]), 60)
    return f"{kind}, then {first}, then 503 with Retry-After"
