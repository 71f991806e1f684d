"""What is tried, client by client; each function raises or returns what it found."""
import json
import statistics
import threading
import time

import anthropic
import openai

from clients import EXACT, MODEL, WHOLE, anthropic_client, chat, native, openai_client, streamed_chat
from stack import get, wait_for

ALL = []
PROMPT = "The sea was calm, and the old keeper of the lighthouse began to write a letter to his"
USAGE = {"include_usage": True}


def behaviour(client, name, engine="llama.cpp"):
    def add(function):
        ALL.append((client, engine, name, function))
        return function
    return add


def same(what, noren, engine):
    assert noren == engine, f"{what}: noren has {noren}, expected {engine}"


def within(what, low, value, high):
    assert low <= value <= high, f"{what}: {value:.1f} is not within {low:.1f}..{high:.1f}"


def same_tokens(line, usage, timings):
    """noren's counts, the usage that the client got and the engine's timings are one and the same."""
    same("input_tokens", line["input_tokens"], usage.prompt_tokens)
    same("output_tokens", line["output_tokens"], usage.completion_tokens)
    same("usage against timings", usage.completion_tokens, timings["predicted_n"])
    same("prompt against timings", usage.prompt_tokens, timings["prompt_n"] + timings["cache_n"])


# ---- one request at a time ------------------------------------------------------------------------------------

@behaviour("openai", "models and health pass without a place")
def models(stack):
    names = [model.id for model in openai_client(stack.noren.url, stack.fresh_id()).models.list()]
    same("models", names, [MODEL])
    same("health", json.loads(get(stack.noren.url + "/health")), {"status": "ok"})
    return names[0]


@behaviour("openai", "the same answer as without noren")
def same_answer(stack):
    def volatile_removed(chunk):
        fields = chunk.model_dump()
        return {key: value for key, value in fields.items() if key not in ("id", "created", "timings")}

    direct = streamed_chat(openai_client(stack.engine.url), PROMPT, 32, stream_options=USAGE)
    through = streamed_chat(openai_client(stack.noren.url, stack.fresh_id()), PROMPT, 32, stream_options=USAGE)
    same("chunks", [volatile_removed(c) for c in through.chunks], [volatile_removed(c) for c in direct.chunks])
    plain = chat(openai_client(stack.noren.url, stack.fresh_id()), PROMPT, 32)
    same("plain text", plain.choices[0].message.content, direct.text)
    stack.before = (stack.noren.metrics(), stack.engine.metrics())
    return f"{len(direct.chunks)} chunks, {len(direct.text)} characters"


@behaviour("openai", "plain chat")
def plain_chat(stack):
    request_id = stack.fresh_id()
    start = time.perf_counter()
    answer = chat(openai_client(stack.noren.url, request_id), PROMPT, 48)
    wall_ms = (time.perf_counter() - start) * 1e3
    line, timings = stack.noren.recorded(request_id), answer.model_extra["timings"]
    same_tokens(line, answer.usage, timings)
    same("outcome", (line["outcome"], line["status"], line["stream"]), ("ok", 200, False))
    engine_ms = timings["prompt_ms"] + timings["predicted_ms"]
    within("duration_ms between the engine's and the client's", engine_ms, line["duration_ms"], wall_ms)
    return f"{line['output_tokens']} tokens, engine {engine_ms:.0f} <= noren {line['duration_ms']:.0f} " \
           f"<= client {wall_ms:.0f} ms"


@behaviour("openai", "streamed chat: counts, TTFT and TPS")
def streamed(stack):
    """Five streams of 64 tokens; the reasons for the bounds are in README.md."""
    slack, speed = [], []
    for run in range(5):
        request_id = stack.fresh_id()
        seen = streamed_chat(openai_client(stack.noren.url, request_id), f"{run}. {PROMPT}", 64,
                             stream_options=USAGE)
        line = stack.noren.recorded(request_id)
        same_tokens(line, seen.usage, seen.timings)
        same("token_events", line["token_events"], seen.events)
        same("tokens and events", seen.events, 64)
        same("ending", (line["outcome"], line["complete"], line["finish_reason"], line["output_tokens_source"]),
             ("ok", True, "length", "usage"))
        within("ttft_ms between prompt_ms and the client's", seen.timings["prompt_ms"], line["ttft_ms"], seen.first_ms)
        within("queue_ms", 0, line["queue_ms"], 5)
        slack.append(line["ttft_ms"] - seen.timings["prompt_ms"])
        # llama.cpp's predicted_ms starts at the first token: N tokens are N-1 steps, as in noren's definition.
        speed.append(line["tps"] / (63 / seen.timings["predicted_ms"] * 1e3) - 1)
        same("tps is 1000/tpot_ms", round(line["tps"] * line["tpot_ms"] / 1e3, 3), 1.0)
    within("median TTFT beyond prompt_ms", 0, statistics.median(slack), 100)
    within("median TPS off by percent", -2, statistics.median(speed) * 100, 2)
    return f"5 x 64 tokens exact; TTFT {statistics.median(slack):.1f} ms beyond prompt_ms (worst {max(slack):.1f}), " \
           f"TPS off by {statistics.median(speed):+.2%} (worst {max(speed, key=abs):+.2%})"


@behaviour("openai", "streamed chat without usage: tokens are counted by their events")
def streamed_without_usage(stack):
    request_id = stack.fresh_id()
    seen = streamed_chat(openai_client(stack.noren.url, request_id), PROMPT, 40)
    line = stack.noren.recorded(request_id)
    same("usage", seen.usage, None)
    same("output_tokens", (line["output_tokens"], line["output_tokens_source"]), (seen.timings["predicted_n"], "events"))
    return f"{line['output_tokens']} tokens"


@behaviour("openai", "completions, plain and streamed")
def completions(stack):
    request_id = stack.fresh_id()
    plain = openai_client(stack.noren.url, request_id).completions.create(
        model=MODEL, prompt=PROMPT, max_tokens=24, temperature=0, extra_body=WHOLE)
    same_tokens(stack.noren.recorded(request_id), plain.usage, plain.model_extra["timings"])
    request_id = stack.fresh_id()
    chunks = list(openai_client(stack.noren.url, request_id).completions.create(
        model=MODEL, prompt=PROMPT, max_tokens=24, temperature=0, stream=True, stream_options=USAGE,
        extra_body=WHOLE))
    line = stack.noren.recorded(request_id)
    same_tokens(line, chunks[-1].usage, chunks[-1].model_extra["timings"])
    same("text", "".join(c.choices[0].text for c in chunks if c.choices), plain.choices[0].text)
    within("ttft_ms", chunks[-1].model_extra["timings"]["prompt_ms"], line["ttft_ms"], line["duration_ms"])
    return f"2 x {line['output_tokens']} tokens"


@behaviour("openai", "responses, plain and streamed")
def responses(stack):
    def account(request_id, usage):
        line = stack.noren.recorded(request_id)
        same("tokens", (line["input_tokens"], line["output_tokens"]), (usage.input_tokens, usage.output_tokens))
        return line

    request_id = stack.fresh_id()
    plain = openai_client(stack.noren.url, request_id).responses.create(
        model=MODEL, input=PROMPT, max_output_tokens=24, temperature=0, extra_body=WHOLE)
    account(request_id, plain.usage)
    request_id = stack.fresh_id()
    events = list(openai_client(stack.noren.url, request_id).responses.create(
        model=MODEL, input=PROMPT, max_output_tokens=24, temperature=0, stream=True, extra_body=WHOLE))
    final = events[-1]
    same("last event", final.type, "response.completed")
    line = account(request_id, final.response.usage)
    timings = final.model_extra["timings"]
    same("timings", line["output_tokens"], timings["predicted_n"])
    same("events", line["token_events"], sum(e.type == "response.output_text.delta" for e in events))
    same("text", final.response.output_text, plain.output_text)
    within("ttft_ms", timings["prompt_ms"], line["ttft_ms"], line["duration_ms"])
    return f"2 x {line['output_tokens']} tokens"


WEATHER = [{"type": "function", "function": {
    "name": "get_weather", "description": "The weather in a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]


def asked_before(number, city):
    """An earlier exchange: a small base model calls tools by example."""
    call = {"id": f"call{number}", "type": "function",
            "function": {"name": "get_weather", "arguments": json.dumps({"city": city})}}
    return [{"role": "user", "content": f"What is the weather in {city}?"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call{number}", "content": "18 degrees"},
            {"role": "assistant", "content": "It is 18 degrees."}]


def tool_request(client, **options):
    messages = asked_before(1, "Rome") + asked_before(2, "Oslo")
    return client.chat.completions.create(
        model=MODEL, messages=messages + [{"role": "user", "content": "What is the weather in Paris?"}], tools=WEATHER,
        tool_choice="required", parallel_tool_calls=False, max_tokens=80, temperature=0, extra_body=EXACT, **options)


@behaviour("openai", "tool call, plain and streamed")
def tool_call(stack):
    request_id = stack.fresh_id()
    plain = tool_request(openai_client(stack.noren.url, request_id))
    line = stack.noren.recorded(request_id)
    call = plain.choices[0].message.tool_calls[0].function
    same("call", (call.name, json.loads(call.arguments)), ("get_weather", {"city": "Paris"}))
    same_tokens(line, plain.usage, plain.model_extra["timings"])
    same("finish_reason", line["finish_reason"], "tool_calls")

    request_id = stack.fresh_id()
    chunks = list(tool_request(openai_client(stack.noren.url, request_id), stream=True, stream_options=USAGE))
    line = stack.noren.recorded(request_id)
    deltas = [d for c in chunks for choice in c.choices for d in choice.delta.tool_calls or []]
    arguments = "".join(d.function.arguments or "" for d in deltas)
    same("streamed call", (deltas[0].function.name, json.loads(arguments)), ("get_weather", {"city": "Paris"}))
    same_tokens(line, chunks[-1].usage, chunks[-1].model_extra["timings"])
    same("finish_reason", line["finish_reason"], "tool_calls")
    # The engine keeps the tokens of the call's frame to itself, so there are fewer events than tokens.
    same("token_events", line["token_events"], len(deltas))
    within("ttft_ms", chunks[-1].model_extra["timings"]["prompt_ms"], line["ttft_ms"], line["duration_ms"])
    return f"get_weather(Paris), {line['output_tokens']} tokens in {line['token_events']} events"


@behaviour("openai", "embeddings", engine="llama.cpp --embeddings")
def embeddings(stack):
    def embed(url, request_id):
        return openai_client(url, request_id).embeddings.create(
            model=MODEL, input=["a lighthouse", "the sea at night"], encoding_format="float")

    request_id = stack.fresh_id()
    answer, direct = embed(stack.embedding_noren.url, request_id), embed(stack.embedding_engine.url, "direct")
    line = stack.embedding_noren.recorded(request_id)
    same("vectors", [e.embedding for e in answer.data], [e.embedding for e in direct.data])
    same("input_tokens", line["input_tokens"], answer.usage.prompt_tokens)
    same("endpoint", (line["endpoint"], line["outcome"]), ("embeddings", "ok"))
    return f"2 vectors of {len(answer.data[0].embedding)}, {line['input_tokens']} tokens"


@behaviour("anthropic", "messages, plain and streamed")
def messages(stack):
    def create(request_id, **options):
        return anthropic_client(stack.noren.url, request_id).messages.create(
            model=MODEL, max_tokens=32, temperature=0, messages=[{"role": "user", "content": PROMPT}],
            extra_body=WHOLE, **options)

    request_id = stack.fresh_id()
    plain = create(request_id)
    line = stack.noren.recorded(request_id)
    same("tokens", (line["input_tokens"], line["output_tokens"]), (plain.usage.input_tokens, plain.usage.output_tokens))
    request_id = stack.fresh_id()
    events = list(create(request_id, stream=True))
    line = stack.noren.recorded(request_id)
    start, texts = events[0].message, [e.delta.text for e in events if e.type == "content_block_delta"]
    end = next(e for e in events if e.type == "message_delta")
    same("last event", events[-1].type, "message_stop")
    same("tokens", (line["input_tokens"], line["output_tokens"]), (start.usage.input_tokens, end.usage.output_tokens))
    same("token_events", (line["token_events"], len(texts)), (32, 32))
    same("text", "".join(texts), plain.content[0].text)
    same("ending", (line["complete"], line["finish_reason"]), (True, "max_tokens"))
    return f"2 x {line['output_tokens']} tokens, TTFT {line['ttft_ms']:.0f} ms"


@behaviour("plain HTTP", "llama.cpp's own /completion, plain and streamed")
def completion(stack):
    for stream in (False, True):
        request_id = stack.fresh_id()
        body = {"prompt": PROMPT, "n_predict": 24, "temperature": 0, "stream": stream, **WHOLE}
        final = native(stack.noren.url, "/completion", body, request_id)[-1]
        line, timings = stack.noren.recorded(request_id), final["timings"]
        same("tokens", (line["input_tokens"], line["output_tokens"]),
             (timings["prompt_n"] + timings["cache_n"], timings["predicted_n"]))
    same("token_events", line["token_events"], 24)
    within("ttft_ms", timings["prompt_ms"], line["ttft_ms"], line["duration_ms"])
    return f"2 x {line['output_tokens']} tokens"


@behaviour("all", "noren's /metrics against the engine's /metrics so far")
def totals(stack):
    """Every request since the snapshot went through noren, and none was cut: the sums must be equal."""
    noren, engine = stack.noren.metrics(), stack.engine.metrics()

    def grown(now, before, name):
        return now.total(name) - before.total(name)

    noren_before, engine_before = stack.before
    output = grown(noren, noren_before, "noren_output_tokens_total")
    prompt = grown(noren, noren_before, "noren_prompt_tokens_total")
    same("output tokens", output, grown(engine, engine_before, "llamacpp:tokens_predicted_total"))
    computed = grown(engine, engine_before, "llamacpp:prompt_tokens_total")
    cached = grown(engine, engine_before, "llamacpp:prompt_tokens_cached_total")
    same("prompt tokens", prompt, computed + cached)
    same("gauges", [noren.total(name) for name in (
        "noren_running_requests", "noren_queued_requests", "noren_inflight_requests",
        "noren_awaiting_first_token_requests")], [0, 0, 0, 0])
    return f"{output:.0f} output and {prompt:.0f} prompt tokens"


# ---- waiting, leaving, errors ---------------------------------------------------------------------------------

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
    ahead, behind = first.result(), second.result()
    lines = [stack.noren.recorded(request.request_id) for request in (first, second)]
    for line, seen in zip(lines, (ahead, behind)):
        same_tokens(line, seen.usage, seen.timings)
    same("requests in the engine at once", most, 1)
    same("queue waits counted", stack.noren.metrics().total("noren_queue_wait_seconds_count") - waited_before, 2)
    within("queue_ms of the first", 0, lines[0]["queue_ms"], 5)
    # The second was admitted when the first had ended, so what it waited is the overlap of the two.
    overlap_ms = (first.finish - second.begin) * 1e3
    within("queue_ms of the second against the overlap", overlap_ms - 250, lines[1]["queue_ms"], overlap_ms + 250)
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
    same("disconnects", stack.noren.metrics().total("noren_client_disconnects_total", phase="decode"), cut_before + 1)
    after = chat(openai_client(stack.noren.url, stack.fresh_id()), "Hello", 4)
    same("next answer", after.usage.completion_tokens, 4)
    within("ms until the slot is free", 0, freed_ms, 2000)
    return f"slot free after {freed_ms:.0f} ms, {line['token_events']} events seen"


@behaviour("openai", "a client leaves the queue: the engine never hears of it")
def leaves_queue(stack):
    tasks_before = stack.engine.metrics().total("llamacpp:prompt_tokens_total")
    first = InBackground(stack, PROMPT, 64).streaming()
    request_id = stack.fresh_id()
    impatient = openai_client(stack.noren.url, request_id).with_options(timeout=0.3)
    try:
        chat(impatient, PROMPT, 8)
        raise AssertionError("the client did not time out")
    except openai.APITimeoutError:
        pass
    line = stack.noren.recorded(request_id)
    assert first.is_alive(), "the first stream ended too early for this test"
    same("outcome", line["outcome"], "client_closed")
    first_prompt = first.result().timings["prompt_n"]
    same("prompt tokens in the engine",
         stack.engine.metrics().total("llamacpp:prompt_tokens_total") - tasks_before, first_prompt)
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
    """What noren answers while its only place is taken."""
    first = InBackground(stack, PROMPT, 64).streaming()
    request_id = stack.fresh_id()
    try:
        make_request(request_id)
        raise AssertionError(f"no {error_type.__name__}")
    except error_type as error:
        line = stack.noren.recorded(request_id)
        same("outcome", (line["outcome"], line["status"]), ("rejected", 429))
        same("reason", line["reason"], error.response.headers["x-noren-reason"])
        within("retry-after", 1, int(error.response.headers["retry-after"]), 60)
        first.result()
        return error, error.response.headers["x-noren-reason"]


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
    first = InBackground(stack, PROMPT, 64).streaming()
    second = InBackground(stack, "Hello", 4, max_retries=10)
    first.result()
    same("tokens", second.result().usage.completion_tokens, 4)
    stack.noren.admit(max_queue=8)
    refused = sum(f'"{second.request_id}"' in text and '"rejected"' in text
                  for text in stack.noren.out_path.read_text().splitlines())
    assert refused > 0, "the first try was not refused"
    return f"{refused} refused, then answered"


@behaviour("openai", "the cap raised while clients wait: they run at once")
def raised(stack):
    first = InBackground(stack, PROMPT, 96).streaming()
    second = InBackground(stack, PROMPT, 16)
    wait_for("one waits", lambda: stack.noren.metrics().total("noren_queued_requests") == 1)
    stack.noren.admit(max_concurrency=2)
    second.result()
    assert first.is_alive(), "the second had to wait for the first"
    first.result()
    stack.noren.admit(max_concurrency=1)
    return f"second done {(first.finish - second.finish) * 1e3:.0f} ms before the first"


@behaviour("openai", "the engine dies mid-stream: no clean end, then 502, then down")
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
    try:
        chat(openai_client(stack.noren.url, stack.fresh_id()), "Hello", 4)
        raise AssertionError("an answer without an engine")
    except openai.InternalServerError as error:
        same("refusal", (error.status_code, error.response.headers["x-noren-reason"]), (502, "upstream_connect"))
    wait_for("noren_upstream_up 0", lambda: stack.noren.metrics().total("noren_upstream_up") == 0)
    return f"{kind}, then 502 upstream_connect, noren_upstream_up 0"
