"""The bodies of the same question in each API."""
import json

from clients.client import PROMPT

# Sampling without chance, every prompt computed anew: llama.cpp's own fields, which others ignore.
EXACT = {"cache_prompt": False}
# No early end: the answer has exactly max_tokens tokens.
WHOLE = {**EXACT, "ignore_eos": True}
USAGE = {"include_usage": True}
MALFORMED = [{"role": "user", "content": 5}]

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ABOUT = "The weather in a city"
CALL = ("get_weather", {"city": "Paris"})
# Earlier exchanges: a small base model calls tools by example.
ASKED_BEFORE = ("Rome", "Oslo")


def question(city):
    return {"role": "user", "content": f"What is the weather in {city}?"}


class OpenAI:
    """POST /v1/chat/completions"""

    path = "/v1/chat/completions"

    @staticmethod
    def tool_messages():
        for city in ASKED_BEFORE:
            call = {"id": f"call-{city}", "type": "function",
                    "function": {"name": "get_weather", "arguments": json.dumps({"city": city})}}
            yield from (question(city), {"role": "assistant", "content": None, "tool_calls": [call]},
                        {"role": "tool", "tool_call_id": f"call-{city}", "content": "18 degrees"},
                        {"role": "assistant", "content": "It is 18 degrees."})
        yield question("Paris")

    @classmethod
    def body(cls, ask):
        """Fields of the API, and fields beside it that only engines know."""
        fields = {"model": ask.model, "messages": [{"role": "user", "content": PROMPT}], "max_tokens": ask.max_tokens,
                  "temperature": 0}
        if ask.stream:
            fields.update(stream=True, stream_options=USAGE)
        if not ask.tools:
            return fields, {**WHOLE, **({"messages": MALFORMED} if ask.malformed else {})}
        tool = {"name": "get_weather", "description": ABOUT, "parameters": CITY}
        fields.update(messages=list(cls.tool_messages()), tools=[{"type": "function", "function": tool}],
                      tool_choice="required", stop=["</tool_call>"], max_tokens=80)
        return fields, EXACT


class Anthropic:
    """POST /v1/messages"""

    path = "/v1/messages"

    @staticmethod
    def tool_messages():
        for city in ASKED_BEFORE:
            yield from (question(city),
                        {"role": "assistant", "content": [
                            {"type": "tool_use", "id": f"call-{city}", "name": "get_weather", "input": {"city": city}}]},
                        {"role": "user", "content": [
                            {"type": "tool_result", "tool_use_id": f"call-{city}", "content": "18 degrees"}]},
                        {"role": "assistant", "content": "It is 18 degrees."})
        yield question("Paris")

    @classmethod
    def body(cls, ask):
        fields = {"model": ask.model, "messages": [{"role": "user", "content": PROMPT}], "max_tokens": ask.max_tokens}
        if ask.stream:
            fields.update(stream=True)
        beside = {"temperature": 0, **WHOLE, **({"messages": MALFORMED} if ask.malformed else {})}
        if ask.tools:
            fields.update(messages=list(cls.tool_messages()), tool_choice={"type": "any"}, max_tokens=80,
                          tools=[{"name": "get_weather", "description": ABOUT, "input_schema": CITY}],
                          stop_sequences=["</tool_call>"])
            beside = {"temperature": 0, **EXACT}
        return fields, beside


class Ollama:
    """POST /api/chat"""

    path = "/api/chat"

    @staticmethod
    def body(ask):
        return {"model": ask.model, "messages": [{"role": "user", "content": PROMPT}], "stream": ask.stream,
                "options": {"num_predict": "many" if ask.malformed else ask.max_tokens, "temperature": 0}}, {}
