"""Ollama's own Python client."""
import ollama

from clients.apis import Ollama
from clients.client import Client, Refused, Seen

NO_RETRIES = "the library never tries again by itself"


class OllamaPython(Client):
    name = "ollama (Python)"
    api = Ollama
    errors = dict.fromkeys((400, 404, 429, 503), "ResponseError")
    cannot = {"retries after 429": NO_RETRIES, "retries after 503": NO_RETRIES}

    def ask(self, ask, on_event=lambda: None, on_left=lambda: None):
        seen = Seen()
        client = ollama.Client(host=ask.url, headers={"x-request-id": ask.request_id}, timeout=ask.timeout)
        fields, _ = Ollama.body(ask)
        try:
            answer = client.chat(**fields)
            for part in answer if ask.stream else [answer]:
                if part.message.content:
                    seen.text += part.message.content
                    seen.events += 1
                    if ask.stream:
                        on_event()
                if part.done:
                    seen.input_tokens, seen.output_tokens = part.prompt_eval_count, part.eval_count
                if seen.events == ask.leave_after:
                    answer.close()
                    seen.left = True
                    on_left()
                    break
        except ollama.ResponseError as error:
            seen.refused = Refused("ResponseError", error.status_code, error.error)
        return seen
