"""The anthropic package for Python."""
import anthropic

from clients.apis import Anthropic
from clients.client import Client, Refused, Seen


def anthropic_client(url, request_id, max_retries=0, timeout=60):
    return anthropic.Anthropic(base_url=url, api_key="none", timeout=timeout, max_retries=max_retries,
                               default_headers={"x-request-id": request_id})


class AnthropicPython(Client):
    name = "anthropic (Python)"
    api = Anthropic
    errors = {400: "BadRequestError", 404: "NotFoundError", 429: "RateLimitError", 503: "ServiceUnavailableError"}
    error_types = {429: "rate_limit_error", 503: "overloaded_error"}

    def ask(self, ask, on_event=lambda: None, on_left=lambda: None):
        client = anthropic_client(ask.url, ask.request_id, ask.retries, ask.timeout)
        fields, beside = Anthropic.body(ask)
        seen = Seen()
        try:
            if not ask.stream:
                fill(seen, client.messages.create(**fields, extra_body=beside))
                seen.events = 1
                return seen
            fields.pop("stream")
            with client.messages.stream(**fields, extra_body=beside) as stream:
                for event in stream:
                    if event.type == "content_block_delta" and event.delta.type == "text_delta":
                        seen.events += 1
                        on_event()
                    if seen.events == ask.leave_after:
                        stream.close()
                        seen.left = True
                        on_left()
                        return seen
                fill(seen, stream.get_final_message())
        except anthropic.APIStatusError as error:
            detail = error.body["error"] if isinstance(error.body, dict) and "error" in error.body else {}
            seen.refused = Refused(type(error).__name__, error.status_code, detail.get("message", str(error.body)),
                                   detail.get("type"), error.response.headers.get("x-noren-reason"))
        return seen


def fill(seen, message):
    seen.text = "".join(block.text for block in message.content if block.type == "text")
    seen.input_tokens, seen.output_tokens = message.usage.input_tokens, message.usage.output_tokens
    seen.tool = next(((block.name, block.input) for block in message.content if block.type == "tool_use"), None)
