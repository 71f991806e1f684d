"""An observer to compare noren's with: the same rules, told another way. It holds the whole body, lets the json module
parse each event into dicts, and is written to be read beside the rules, not to be fast.

observe(body, status, content_type, headers) -> dict with the field names of the corpus' "expect"."""
import json
import re

SSE = "text/event-stream"
NDJSON = {"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"}
BOM = b"\xef\xbb\xbf"
# What surrounds a line of NDJSON without being part of it.
BLANKS = " \t\r\n\v\f\x1c\x1d\x1e\x1f"
KEPT_BYTES = 256  # of a name


class Event:
    """Bytes [start, end) of the body: an SSE event's name and data, or an NDJSON line."""

    def __init__(self, start, end, name, data):
        self.start, self.end, self.name, self.data = start, end, name, data


# --- framing

def sse_events(body):
    begin = len(BOM) if body.startswith(BOM) else 0
    start, name, data = begin, b"", []
    for line in re.compile(rb"([^\r\n]*)(\r\n|\r|\n|\Z)").finditer(body, begin):
        content, terminator = line.groups()
        if not content and terminator:
            if data:
                yield Event(start, line.end(), name, b"\n".join(data))
            start, name, data = line.end(), b"", []
            continue
        field, _, value = content.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data" and content:
            data.append(value)
        elif field == b"event":
            name = value
        if not terminator:
            break
    if data:
        yield Event(start, len(body), name, b"\n".join(data))


def ndjson_events(body):
    start = 0
    for line in re.findall(rb"[^\n]*\n|[^\n]+\Z", body):
        yield Event(start, start + len(line), b"", line.strip(BLANKS.encode()))
        start += len(line)


# --- a look at JSON that cannot fail

class Node:
    """A JSON value, or an absent one. A member of what is no object is absent."""
    ABSENT = object()

    def __init__(self, value=ABSENT):
        self.value = value

    def __getitem__(self, key):
        return Node(self.value.get(key, Node.ABSENT)) if isinstance(self.value, dict) else Node()

    def __contains__(self, key):
        return isinstance(self.value, dict) and key in self.value

    @property
    def there(self):
        """Neither absent nor null."""
        return self.value is not Node.ABSENT and self.value is not None

    @property
    def is_object(self):
        return isinstance(self.value, dict)

    def elements(self):
        return [Node(v) for v in self.value] if isinstance(self.value, list) else []

    def count(self):
        whole = isinstance(self.value, int) and not isinstance(self.value, bool)
        return self.value if whole and abs(self.value) < 2**63 else None

    def word(self):
        """A non-empty string's beginning, as it can be shown in UTF-8."""
        if not isinstance(self.value, str) or not self.value:
            return None
        paired = self.value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return paired.encode()[:KEPT_BYTES].decode("utf-8", "ignore")

    def str(self):
        return self.value if isinstance(self.value, str) else ""


def first_there(*nodes):
    return next((node for node in nodes if node.there), Node())


def first_word(*nodes):
    return next((node.word() for node in nodes if node.word() is not None), None)


def holds_text(node):
    if isinstance(node.value, str):
        return node.value != ""
    if node.is_object:
        return holds_text(node["text"]) or holds_text(node["thinking"])
    return any(holds_text(part) for part in node.elements())


def any_text(node, *keys):
    return any(holds_text(node[key]) for key in keys)


def filled_list(node):
    return bool(node.elements())


def choice_index(node):
    if "index" not in node:
        return 0
    index = node["index"].count()
    return -1 if index is None else index


# --- evidence of a generated token

def call_is_evident(function):
    arguments = function["arguments"]
    given = arguments.value != "" if isinstance(arguments.value, str) else arguments.there
    return function["name"].word() is not None or given


def message_is_evident(message):
    return (any_text(message, "content", "reasoning_content", "reasoning", "refusal")
            or call_is_evident(message["function_call"])
            or any(call_is_evident(call["function"]) for call in message["tool_calls"].elements()))


def choice_is_evident(choice):
    return (holds_text(choice["text"]) or message_is_evident(choice["delta"]) or message_is_evident(choice["message"])
            or filled_list(choice["token_ids"])
            or any(filled_list(choice["logprobs"][key]) for key in ("content", "refusal", "tokens")))


def responses_is_evident(event, kind):
    if kind.endswith(".delta"):
        return holds_text(event["delta"])
    item = event["item"]
    return (kind == "response.output_item.added" and item["type"].str().endswith("_call")
            and item["name"].word() is not None)


def block_start_is_evident(block):
    if block["type"].str().endswith("tool_use"):
        return block["name"].word() is not None
    return any_text(block, "text", "thinking")


def cohere_is_evident(event):
    message = event["delta"]["message"]
    function = message["tool_calls"]["function"]
    return (message["content"].is_object and holds_text(message["content"]) or holds_text(message["tool_plan"])
            or function["name"].word() is not None or holds_text(function["arguments"]))


def sglang_is_evident(event, counts):
    count, index = event["meta_info"]["completion_tokens"].count(), choice_index(event)
    if count is None:
        return holds_text(event["text"])
    before = counts.get(index, 0)
    counts[index] = max(count, before)
    return count > before


def ollama_is_evident(event):
    message = event["message"]
    return (any_text(message, "content", "thinking") or filled_list(message["tool_calls"])
            or any_text(event, "response", "thinking") or filled_list(event["logprobs"]))


COHERE = ("content-start", "content-delta", "tool-plan-delta", "tool-call-start", "tool-call-delta")


def is_token_event(event, counts):
    """The first row whose shape the event has decides."""
    kind = event["type"].str()
    rows = (
        ("choices" in event, lambda: any(choice_is_evident(c) for c in event["choices"].elements())),
        (kind.startswith("response."), lambda: responses_is_evident(event, kind)),
        (kind == "content_block_delta", lambda: any_text(event["delta"], "text", "thinking", "partial_json")),
        (kind == "content_block_start", lambda: block_start_is_evident(event["content_block"])),
        (kind == "transcript.text.delta", lambda: holds_text(event["delta"])),
        (kind in COHERE, lambda: cohere_is_evident(event)),
        (event["token"].is_object, lambda: isinstance(event["token"]["id"].value, int)
         and not isinstance(event["token"]["id"].value, bool)),
        (event["meta_info"].is_object, lambda: sglang_is_evident(event, counts)),
        ("text_output" in event, lambda: holds_text(event["text_output"])),
        ("stop" in event and "content" in event, lambda: holds_text(event["content"]) or filled_list(event["tokens"])),
        ("done" in event, lambda: ollama_is_evident(event)),
    )
    return next((evident() for has_shape, evident in rows if has_shape), False)


# --- counts: (output, input, cached, reasoning)

def usage_of(doc):
    meta, details, timings = doc["meta_info"], doc["details"], doc["timings"]
    if meta.is_object:
        return tuple(meta[k].count() for k in ("completion_tokens", "prompt_tokens", "cached_tokens", "reasoning_tokens"))
    if details.is_object:
        output = details["generated_tokens"].count()
        for other in details["best_of_sequences"].elements():
            output = added(output, other["generated_tokens"].count() or 0)
        return output, details["input_length"].count(), None, None
    if "eval_count" in doc or "prompt_eval_count" in doc:
        return doc["eval_count"].count(), doc["prompt_eval_count"].count(), None, None
    output, given, cached, reasoning = usage_object(
        first_there(doc["usage"], doc["response"]["usage"], doc["message"]["usage"], doc["delta"]["usage"]))
    if "tokens_predicted" in doc:
        output, given, cached, reasoning = doc["tokens_predicted"].count(), doc["tokens_evaluated"].count(), None, None
    cache_n, prompt_n = timings["cache_n"].count(), timings["prompt_n"].count()
    if output is None:
        output = timings["predicted_n"].count()
    if given is None and cache_n is not None and prompt_n is not None:
        given = cache_n + prompt_n
    return output, given, cache_n if cached is None else cached, reasoning


def added(a, b):
    """None if it is none already, or does not fit 64 bits."""
    return a + b if a is not None and b is not None and abs(a + b) < 2**63 else None


def later(old, new):
    return [a if b is None else b for a, b in zip(old, new)]


def together(one, other):
    """What two sequences count for themselves, added up: as far as the first one does."""
    return [a if a is None or b is None else added(a, b) for a, b in zip(one, other)]


def usage_object(usage):
    nested = first_there(usage["tokens"], usage["billed_units"])
    counts = nested if nested.is_object else usage
    prompt = first_there(usage["prompt_tokens_details"], usage["input_tokens_details"])
    completion = first_there(usage["completion_tokens_details"], usage["output_tokens_details"])
    output = first_there(counts["completion_tokens"], counts["output_tokens"]).count()
    given = first_there(counts["prompt_tokens"], counts["input_tokens"]).count()
    if output is None and given is None:
        given = usage["total_tokens"].count()
    if not output and not given:
        return None, None, None, None
    return (output, given,
            first_there(prompt["cached_tokens"], usage["cache_read_input_tokens"], usage["cached_tokens"]).count(),
            first_there(completion["reasoning_tokens"], usage["reasoning_tokens"]).count())


# --- names, ends, errors

def finish_reasons(doc):
    """(choice, reason) pairs."""
    if "choices" in doc:
        return [(choice_index(c), c["finish_reason"].word()) for c in doc["choices"].elements() if c.is_object]
    ended = doc["type"].value in ("response.completed", "response.incomplete", "response.failed")
    response = doc["response"] if ended else doc if doc["object"].value == "response" else Node()
    if response.is_object:
        return [(0, first_word(response["incomplete_details"]["reason"], response["status"]))]
    if doc["meta_info"].is_object:
        return [(choice_index(doc), doc["meta_info"]["finish_reason"]["type"].word())]
    if doc["details"].is_object:
        return [(0, doc["details"]["finish_reason"].word())]
    stop_type = Node() if doc["stop_type"].value == "none" else doc["stop_type"]
    return [(0, first_word(doc["done_reason"], stop_type, doc["stop_reason"], doc["finish_reason"],
                           doc["delta"]["stop_reason"], doc["delta"]["finish_reason"]))]


def is_error(doc):
    return (doc["error"].there and bool(doc["error"].value) or doc["object"].value == "error"
            or doc["type"].value in ("error", "response.failed")
            or doc["object"].value == "response" and doc["status"].value == "failed")


END_TYPES = ("response.completed", "response.incomplete", "response.failed", "message_stop", "message-end",
             "transcript.text.done")


def is_end(doc):
    return (doc["type"].value in END_TYPES or doc["done"].value is True
            or doc["stop"].value is True and "content" in doc
            or "token" in doc and isinstance(doc["generated_text"].value, str))


# --- the observer

def parsed(data):
    """What the data says; nothing if it is no JSON."""
    try:
        return Node(json.loads(data.decode("utf-8", "replace")))
    except (ValueError, RecursionError):
        return Node()


class Tally:
    def __init__(self):
        self.usage, self.model, self.reasons, self.last_reason, self.error = [None] * 4, None, {}, None, False
        self.by_choice, self.sequence_last = {}, False

    def read_event(self, doc):
        """Where each sequence counts for itself, the counts are those of all."""
        usage = usage_of(doc)
        if any(count is not None for count in usage) and (doc["meta_info"].is_object or "tokens_predicted" in doc):
            choice = choice_index(doc)
            self.by_choice[choice] = later(self.by_choice.get(choice, usage), usage)
            self.sequence_last, usage = True, [None] * 4
        elif any(count is not None for count in usage):
            self.sequence_last = False
        self.read(doc, usage)

    def settle(self):
        """The last account is the one that counts: of the whole answer, or of all sequences together."""
        if self.by_choice:
            total, *others = (self.by_choice[index] for index in sorted(self.by_choice))
            for other in others:
                total = together(total, other)
            self.usage = later(self.usage, total) if self.sequence_last else later(total, self.usage)

    def read(self, doc, usage):
        self.usage = later(self.usage, usage)
        self.model = self.model or first_word(doc["model"], doc["response"]["model"], doc["message"]["model"],
                                              doc["model_name"])
        for choice, reason in finish_reasons(doc):
            if reason is not None:
                self.reasons[choice] = self.last_reason = reason
        self.error = self.error or is_error(doc)


def observe_stream(tally, events, is_sse):
    """Token events as (start, end), and whether the end marker was seen."""
    tokens, complete, counts = [], False, {}
    for event in events:
        data = event.data.strip(b" \t\r\n") if is_sse else event.data
        if is_sse and data == b"[DONE]":
            complete = True
            continue
        tally.error = tally.error or event.name == b"error"
        doc = parsed(data)
        if not doc.is_object:
            continue
        if is_token_event(doc, counts):
            tokens.append((event.start, event.end))
        tally.read_event(doc)
        complete = complete or is_end(doc)
    return tokens, complete


def observe_document(tally, body):
    doc = parsed(body)
    if doc.value is Node.ABSENT:
        return False
    answers = doc.elements() or [doc]
    tally.read(answers[0], [None] * 4)
    reports = [usage for usage in map(usage_of, answers) if any(count is not None for count in usage)]
    for at, report in enumerate(reports):
        tally.usage = together(tally.usage, report) if at else report
    return True


def observe(body, status, content_type, headers):
    media_type = content_type.split(";")[0].strip(" \t").lower()
    encoding = {key.lower(): value.lower() for key, value in headers.items()}.get("content-encoding", "identity")
    streaming = media_type == SSE or media_type in NDJSON
    tally, tokens, complete = Tally(), [], False
    if encoding != "identity":
        pass
    elif streaming:
        events = sse_events(body) if media_type == SSE else ndjson_events(body)
        tokens, complete = observe_stream(tally, events, media_type == SSE)
    elif media_type == "application/json" or media_type.endswith("+json"):
        complete = observe_document(tally, body)
    tally.settle()
    output, source = tally.usage[0], "usage"
    if streaming and output is not None and output < len(tokens) and not (complete and output > 0):
        output = None
    if output is None:
        output, source = (len(tokens), "events") if tokens else (None, None)
    return {
        "streaming": streaming,
        "token_events": len(tokens),
        "first_token_event_offset": tokens[0][1] if tokens else None,
        "first_token_event_start": tokens[0][0] if tokens else None,
        "token_event_offsets": [end for _, end in tokens],
        "output_tokens": output,
        "output_tokens_source": source,
        "input_tokens": tally.usage[1],
        "cached_tokens": tally.usage[2],
        "reasoning_tokens": tally.usage[3],
        "model": tally.model,
        "finish_reason": tally.reasons.get(0, tally.last_reason),
        "error": status >= 400 or tally.error,
        "complete": complete,
    }
