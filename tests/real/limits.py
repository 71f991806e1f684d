"""Waiting, leaving, refusals and errors."""
import threading
import time

import openai

from behaviour import behaviour, same, same_tokens, within
from clients.apis import USAGE
from clients.client import PROMPT, Background
from clients.openai_python import chat, openai_client, streamed_chat
from engines import occupied
from stack import wait_for


class StreamInBackground(Background):
    """A streamed chat on a thread of its own, and when it began and ended."""

    def __init__(self, stack, content, max_tokens):
        self.request_id = stack.fresh_id()
        self.started = threading.Event()
        self.begin, self.finish = time.perf_counter(), None
        client = openai_client(stack.noren.url, self.request_id)

        def chat_to_its_end():
            try:
                return streamed_chat(client, content, max_tokens, on_event=lambda seen: self.started.set(),
                                     stream_options=USAGE)
            finally:
                self.finish = time.perf_counter()

        super().__init__(chat_to_its_end)

    def streaming(self):
        assert self.started.wait(30), f"no first token: {self.error}"
        return self


@behaviour("openai (Python)", "two clients at once with cap 1: the second waits, the engine sees one")
def two_clients(stack):
    waited_before = stack.noren.metrics().total("noren_queue_wait_seconds_count")
    first = StreamInBackground(stack, PROMPT, 96).streaming()
    second = StreamInBackground(stack, PROMPT, 16)

    def queued():
        metrics = stack.noren.metrics()
        return (metrics.total("noren_running_requests"), metrics.total("noren_queued_requests")) == (1, 1)

    wait_for("noren_running_requests 1, noren_queued_requests 1", queued)
    most = 0
    while first.is_alive() or second.is_alive():
        most = max(most, stack.engine.busy())
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


@behaviour("openai (Python)", "a client leaves mid-stream: the engine stops, the place is free")
def leaves_streaming(stack):
    cut_before = stack.noren.metrics().total("noren_client_disconnects_total", phase="decode")
    request_id = stack.fresh_id()
    stream = chat(openai_client(stack.noren.url, request_id), PROMPT, 1800, stream=True)
    for _ in zip(range(6), stream):
        pass
    same("slots in use", stack.engine.busy(), 1)
    gone = time.perf_counter()
    stream.close()
    wait_for("the engine's slot is free", lambda: stack.engine.busy() == 0)
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


@behaviour("openai (Python)", "a client leaves the queue: the engine never hears of it")
def leaves_queue(stack):
    request_id = stack.fresh_id()
    with occupied(stack.llama):
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


@behaviour("openai (Python)", "a prompt beyond the context: the engine's own 400")
def too_long(stack):
    request_id = stack.fresh_id()
    try:
        chat(openai_client(stack.noren.url, request_id), "word " * 3000, 8)
        raise AssertionError("no BadRequestError")
    except openai.BadRequestError as error:
        assert "x-noren-reason" not in error.response.headers, "noren claims an error of the engine"
        message = error.body["message"]
    same("status", stack.noren.recorded(request_id)["status"], 400)
    assert "context" in message, message
    return f"400 {message[:40]!r}..."


@behaviour("openai (Python)", "refused by noren: waited too long")
def waited_too_long(stack):
    request_id = stack.fresh_id()
    with stack.noren.admitting(queue_timeout="200ms"), occupied(stack.llama):
        try:
            chat(openai_client(stack.noren.url, request_id), "Hello", 4)
            raise AssertionError("no RateLimitError")
        except openai.RateLimitError as error:
            headers = error.response.headers
            same("error", (error.code, error.type), ("queue_timeout", "rate_limit_error"))
    line = stack.noren.recorded(request_id)
    same("outcome", (line["outcome"], line["status"], line["reason"]), ("rejected", 429, headers["x-noren-reason"]))
    within("retry-after", 1, int(headers["retry-after"]), 60)
    within("queue_ms", 200, line["queue_ms"], 5000)
    return f"RateLimitError after {line['queue_ms']:.0f} ms, the limit edited live"


@behaviour("openai (Python)", "the cap raised while a client waits: it runs at once")
def raised(stack):
    with occupied(stack.llama):
        second = StreamInBackground(stack, PROMPT, 16)
        wait_for("one waits", lambda: stack.noren.metrics().total("noren_queued_requests") == 1)
        stack.noren.admit(max_concurrency=2)
        second.result()
    stack.noren.admit(max_concurrency=1)
    return "answered while the first still streamed"
