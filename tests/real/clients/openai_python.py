"""The openai package for Python."""
import dataclasses
import time

import openai

from clients.apis import WHOLE, OpenAI
from clients.client import Client, Refused, Seen, arguments_of

MODEL = "gemma-3-270m"


def openai_client(url, request_id="direct", max_retries=0, timeout=60, **options):
    return openai.OpenAI(base_url=url + "/v1", api_key="none", timeout=timeout, max_retries=max_retries,
                         default_headers={"x-request-id": request_id}, **options)


def refused(error):
    detail = error.body if isinstance(error.body, dict) else {}
    return Refused(type(error).__name__, error.status_code, detail.get("message", str(error.body)), detail.get("type"),
                   error.response.headers.get("x-noren-reason"))


class OpenAIPython(Client):
    name = "openai (Python)"
    api = OpenAI
    errors = {400: "BadRequestError", 404: "NotFoundError", 429: "RateLimitError", 503: "InternalServerError"}
    error_types = {429: "rate_limit_error", 503: "server_error"}

    def ask(self, ask, on_event=lambda: None, on_left=lambda: None):
        client = openai_client(ask.url, ask.request_id, ask.retries, ask.timeout)
        fields, beside = OpenAI.body(ask)
        seen = Seen()
        try:
            answer = client.chat.completions.create(**fields, extra_body=beside)
            if not ask.stream:
                message, usage = answer.choices[0].message, answer.usage
                calls = [(call.function.name, call.function.arguments) for call in message.tool_calls or []]
                seen.text, seen.events = message.content or "", 1
            else:
                usage, calls = self.read(answer, ask, seen, on_event)
                if seen.left:
                    on_left()
                    return seen
            seen.input_tokens, seen.output_tokens = usage.prompt_tokens, usage.completion_tokens
            if calls:
                seen.tool = calls[0][0], arguments_of("".join(piece for _, piece in calls))
        except openai.APIStatusError as error:
            seen.refused = refused(error)
        return seen

    @staticmethod
    def read(stream, ask, seen, on_event):
        """Reads to the end, or leaves; the usage, and the pieces of a tool call."""
        usage, calls = None, []
        for chunk in stream:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                calls += [(call.function.name, call.function.arguments or "") for call in choice.delta.tool_calls or []]
                if choice.delta.content:
                    seen.text += choice.delta.content
                    seen.events += 1
                    on_event()
            if seen.events == ask.leave_after:
                stream.close()
                seen.left = True
                break
        return usage, calls


# --- for the behaviours that hold noren's account against the engine's own: the library as it is

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
