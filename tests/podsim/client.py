"""A client of the pod's Service."""
import http.client
import json
import threading
import time

from kubelet import POD_IP

PORT = 8000


def chat(tokens, interval=0.05):
    body = json.dumps({"model": "m", "stream": True, "max_tokens": tokens, "messages": [{"role": "user", "content": "hi"}]})
    return body, {"content-type": "application/json", "x-sim-ttft-ms": "50", "x-sim-gap": "fixed",
                  "x-sim-interval-us": str(int(interval * 1e6))}


class Stream(threading.Thread):
    """One streamed answer. whole: it came to its proper end; otherwise broken says how it did not."""

    def __init__(self, seconds, interval=0.05):
        super().__init__(daemon=True)
        self.tokens, self.interval = int(seconds / interval), interval
        self.status, self.reason, self.events = None, None, 0
        self.whole, self.broken = False, None
        self.first = threading.Event()
        self.start()

    def run(self):
        self.began = time.monotonic()
        try:
            connection = http.client.HTTPConnection(POD_IP, PORT, timeout=60)
            body, headers = chat(self.tokens, self.interval)
            connection.request("POST", "/v1/chat/completions", body, headers)
            answer = connection.getresponse()
            self.status, self.reason = answer.status, answer.getheader("x-noren-reason")
            text = b""
            # Not line by line: http.client takes a connection that breaks off for the end of the last line.
            while piece := answer.read1():
                text += piece
                self.events = (b"\n" + text).count(b"\ndata:")
                self.first.set()
            self.whole = text.endswith(b"data: [DONE]\n\n")
        except (OSError, http.client.HTTPException) as error:
            self.broken = type(error).__name__
        self.seconds = time.monotonic() - self.began
        self.ended_at = time.monotonic()
        self.first.set()

    def wait_for_first(self):
        self.first.wait(20)
        return self

    def wait(self, seconds=120):
        self.join(seconds)
        return self


def ask():
    """Status and reason of a short request."""
    stream = Stream(0.1, 0.01).wait(20)
    return stream.status, stream.reason


def is_served():
    return ask()[0] == 200
