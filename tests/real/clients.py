"""The real clients, each request with an id of its own, and what they see of an answer."""
import dataclasses
import json
import time
import urllib.request

import anthropic
import openai

MODEL = "gemma-3-270m"
# Sampling without chance, every prompt computed anew: llama.cpp's own fields, which the SDKs pass through.
EXACT = {"cache_prompt": False}
# No early end: the answer has exactly max_tokens tokens.
WHOLE = {**EXACT, "ignore_eos": True}


def openai_client(url, request_id="direct", **options):
    return openai.OpenAI(base_url=url + "/v1", api_key="none", timeout=60, max_retries=options.pop("max_retries", 0),
                         default_headers={"x-request-id": request_id}, **options)


def anthropic_client(url, request_id):
    return anthropic.Anthropic(base_url=url, api_key="none", timeout=60, max_retries=0,
                               default_headers={"x-request-id": request_id})


def native(url, path, body, request_id):
    """llama.cpp's own API without any SDK: the JSON objects of the answer, streamed or not."""
    request = urllib.request.Request(url + path, json.dumps(body).encode(),
                                     {"content-type": "application/json", "x-request-id": request_id})
    with urllib.request.urlopen(request, timeout=60) as answer:
        if not body.get("stream"):
            return [json.load(answer)]
        return [json.loads(line[5:]) for line in answer if line.startswith(b"data:")]


def chat(client, content, max_tokens, **options):
    options.setdefault("extra_body", WHOLE)
    return client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": content}],
                                          max_tokens=max_tokens, temperature=0, **options)


@dataclasses.dataclass
class Streamed:
    """A streamed chat as the client saw it; times in ms from the call."""

    text: str = ""
    events: int = 0
    usage: object = None
    timings: dict = None
    finish_reason: str = None
    first_ms: float = None
    last_ms: float = None
    chunks: list = dataclasses.field(default_factory=list)


def streamed_chat(client, content, max_tokens, on_event=lambda seen: None, **options):
    seen = Streamed()
    start = time.perf_counter()
    for chunk in chat(client, content, max_tokens, stream=True, **options):
        now = (time.perf_counter() - start) * 1e3
        seen.chunks.append(chunk)
        seen.usage = chunk.usage or seen.usage
        seen.timings = (chunk.model_extra or {}).get("timings") or seen.timings
        for choice in chunk.choices:
            seen.finish_reason = choice.finish_reason or seen.finish_reason
            if choice.delta.content or choice.delta.tool_calls:
                seen.text += choice.delta.content or ""
                seen.events += 1
                seen.first_ms = seen.first_ms or now
                seen.last_ms = now
                on_event(seen)
    return seen
