"""One answer of the corpus, and the request for it."""
import json
import os

from corpus.reference_observer import ndjson_events, parsed, sse_events

STREAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "corpus", "streams")


def corpus_cases(only=None):
    names = sorted(file[:-5] for file in os.listdir(STREAMS) if file.endswith(".body"))
    return [Case(name) for name in names if only in (None, name)]


class Case:
    def __init__(self, name):
        with open(os.path.join(STREAMS, name + ".body"), "rb") as file:
            self.body = file.read()
        with open(os.path.join(STREAMS, name + ".json"), encoding="utf-8") as file:
            told = json.load(file)
        self.name, self.api, self.expect = name, told["api"], told["expect"]
        self.request_line = f"{told['request']['method']} {told['request']['path']} HTTP/1.1"
        self.request_json = told["request"]["body"]
        self.status = told["response"]["status"]
        self.fields = [("Content-Type", told["response"]["content_type"]), *told["response"]["headers"].items()]
        self.encoding = told["response"]["headers"].get("content-encoding")
        if self.request_json is None:  # an upload, of which noren knows nothing
            self.request_type = "multipart/form-data; boundary=cut"
            self.request_body = b"--cut\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n\x00\xff\r\n--cut--\r\n"
        else:
            self.request_type = "application/json"
            self.request_body = json.dumps(self.request_json).encode()

    @property
    def choices(self):
        """Sequences that were asked for: so many of each prompt. A list of numbers is one prompt, as tokens."""
        asked = self.request_json or {}
        prompts = asked.get("prompt")
        several = len(prompts) if isinstance(prompts, list) and prompts and not isinstance(prompts[0], int) else 1
        return several * (asked.get("n") or asked.get("sampling_params", {}).get("n") or 1)

    @property
    def unparsed_events(self):
        """Events with data that is neither a JSON object nor [DONE]."""
        if self.encoding or not self.expect["streaming"]:
            return 0
        events = sse_events(self.body) if "event-stream" in self.fields[0][1] else ndjson_events(self.body)
        data = [event.data.strip() for event in events]
        return sum(bool(text) and text != b"[DONE]" and not parsed(text).is_object for text in data)

    @property
    def hold(self):
        """Where the engine waits until the client has all so far: behind the first token event, if more follow. So that
        event comes in a read of its own, and the number of gaps is known."""
        ends = self.expect["token_event_offsets"]
        return ends[0] if len(ends) > 1 else None
