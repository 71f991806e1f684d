"""LangChain's OpenAI client (langchain-openai)."""
import langchain_openai
import openai

from clients.apis import OpenAI
from clients.client import Client, Seen
from clients.openai_python import OpenAIPython, refused


class LangChain(Client):
    name = "langchain-openai"
    api = OpenAI
    errors = {400: "OpenAIInvalidRequestError", 404: "OpenAIModelNotFoundError", 429: "OpenAIRateLimitError",
              503: "OpenAIAPIError"}
    error_types = OpenAIPython.error_types

    def ask(self, ask, on_event=lambda: None, on_left=lambda: None):
        fields, beside = OpenAI.body(ask)
        model = langchain_openai.ChatOpenAI(
            model=ask.model, base_url=ask.url + "/v1", api_key="none", timeout=ask.timeout, max_retries=ask.retries, temperature=0,
            max_tokens=fields["max_tokens"], stop_sequences=fields.get("stop"), stream_usage=True, extra_body=beside,
            default_headers={"x-request-id": ask.request_id})
        if ask.tools:
            model = model.bind_tools(fields["tools"], tool_choice="required")
        seen, whole = Seen(), None
        try:
            answer = model.stream(fields["messages"]) if ask.stream else iter([model.invoke(fields["messages"])])
            for part in answer:
                whole = part if whole is None else whole + part
                if part.text:
                    seen.events += 1
                    if ask.stream:
                        on_event()
                if seen.events == ask.leave_after:
                    answer.close()
                    seen.left = True
                    on_left()
                    return seen
        except openai.APIStatusError as error:
            seen.refused = refused(error)
            return seen
        seen.text = whole.text
        seen.input_tokens, seen.output_tokens = whole.usage_metadata["input_tokens"], whole.usage_metadata["output_tokens"]
        if whole.tool_calls:
            seen.tool = whole.tool_calls[0]["name"], whole.tool_calls[0]["args"]
        return seen
