"""One request at a time, by every API and client: the answer, the token counts, the times."""
import json
import statistics
import time
import urllib.request

from behaviour import behaviour, same, same_tokens, within
from clients.anthropic_python import anthropic_client
from clients.apis import USAGE, WHOLE, OpenAI
from clients.client import PROMPT, Ask
from clients.openai_python import MODEL, chat, openai_client, streamed_chat
from stack import get


def native(url, path, body, request_id):
    """llama.cpp's own API without any SDK: the JSON objects of the answer, streamed or not."""
    request = urllib.request.Request(url + path, json.dumps(body).encode(),
                                     {"content-type": "application/json", "x-request-id": request_id})
    with urllib.request.urlopen(request, timeout=60) as answer:
        if not body.get("stream"):
            return [json.load(answer)]
        return [json.loads(line[5:]) for line in answer if line.startswith(b"data:")]


@behaviour("openai (Python)", "models and health pass without a place")
def models(stack):
    names = [model.id for model in openai_client(stack.noren.url, stack.fresh_id()).models.list()]
    same("models", names, [MODEL])
    same("health", json.loads(get(stack.noren.url + "/health")), {"status": "ok"})
    return names[0]


@behaviour("openai (Python)", "the same answer as without noren")
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


@behaviour("openai (Python)", "plain chat")
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


@behaviour("openai (Python)", "streamed chat: counts, TTFT and TPS")
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


@behaviour("openai (Python)", "streamed chat that did not ask for usage: the engine's timings are taken")
def streamed_without_usage(stack):
    request_id = stack.fresh_id()
    seen = streamed_chat(openai_client(stack.noren.url, request_id), PROMPT, 40)
    line = stack.noren.recorded(request_id)
    same("usage", seen.usage, None)
    same("input_tokens", line["input_tokens"], seen.timings["prompt_n"] + seen.timings["cache_n"])
    same("output_tokens", line["output_tokens"], seen.timings["predicted_n"])
    same("token_events", (line["token_events"], seen.events), (40, 40))
    return f"{line['output_tokens']} tokens"


@behaviour("openai (Python)", "completions, plain and streamed")
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


@behaviour("openai (Python)", "responses, plain and streamed")
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


def tool_request(client, stream=False):
    fields, beside = OpenAI.body(Ask(url="", request_id="", model=MODEL, tools=True, stream=stream))
    return client.chat.completions.create(**fields, extra_body=beside)


@behaviour("openai (Python)", "tool call, plain and streamed")
def tool_call(stack):
    request_id = stack.fresh_id()
    plain = tool_request(openai_client(stack.noren.url, request_id))
    line = stack.noren.recorded(request_id)
    call = plain.choices[0].message.tool_calls[0].function
    same("call", (call.name, json.loads(call.arguments)), ("get_weather", {"city": "Paris"}))
    same_tokens(line, plain.usage, plain.model_extra["timings"])
    same("finish_reason", line["finish_reason"], "tool_calls")

    request_id = stack.fresh_id()
    chunks = list(tool_request(openai_client(stack.noren.url, request_id), stream=True))
    line = stack.noren.recorded(request_id)
    deltas = [d for c in chunks for choice in c.choices for d in choice.delta.tool_calls or []]
    arguments = "".join(d.function.arguments or "" for d in deltas)
    same("streamed call", (deltas[0].function.name, json.loads(arguments)), ("get_weather", {"city": "Paris"}))
    same_tokens(line, chunks[-1].usage, chunks[-1].model_extra["timings"])
    same("finish_reason", line["finish_reason"], "tool_calls")
    # The engine keeps the tokens of the call's frame to itself, so there are fewer events than tokens.
    same("token_events", line["token_events"], len(deltas))
    within("ttft_ms", chunks[-1].model_extra["timings"]["prompt_ms"], line["ttft_ms"], line["duration_ms"])
    return f"get_weather(Paris), {line['output_tokens']} tokens in {line['token_events']} events, " \
           f"TPS {line['tps']:.0f}, engine {chunks[-1].model_extra['timings']['predicted_per_second']:.0f}"


@behaviour("openai (Python)", "embeddings", engine="llama.cpp --embeddings")
def embeddings(stack):
    def embed(url, request_id):
        return openai_client(url, request_id).embeddings.create(
            model=MODEL, input=["a lighthouse", "the sea at night"], encoding_format="float")

    request_id = stack.fresh_id()
    answer, direct = embed(stack.embedding().noren.url, request_id), embed(stack.embedding().engine.url, "direct")
    line = stack.embedding().noren.recorded(request_id)
    same("vectors", [e.embedding for e in answer.data], [e.embedding for e in direct.data])
    same("input_tokens", line["input_tokens"], answer.usage.prompt_tokens)
    same("endpoint", (line["endpoint"], line["outcome"]), ("embeddings", "ok"))
    return f"2 vectors of {len(answer.data[0].embedding)}, {line['input_tokens']} tokens"


@behaviour("anthropic (Python)", "messages, plain and streamed")
def messages(stack):
    def create(request_id, **options):
        return anthropic_client(stack.noren.url, request_id).messages.create(
            model=MODEL, max_tokens=32, messages=[{"role": "user", "content": PROMPT}],
            extra_body={**WHOLE, "temperature": 0}, **options)

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
    # Anthropic's input_tokens leaves out what the prompt cache gave, and noren reports usage as it is given.
    left_out = sum(line["cached_tokens"] for line in stack.noren.exchanges() if line["endpoint"] == "messages")
    same("prompt tokens", prompt, computed + cached - left_out)
    same("gauges", [noren.total(name) for name in (
        "noren_running_requests", "noren_queued_requests", "noren_inflight_requests",
        "noren_awaiting_first_token_requests")], [0, 0, 0, 0])
    return f"{output:.0f} output and {prompt:.0f} prompt tokens"
