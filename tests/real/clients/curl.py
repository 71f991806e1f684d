"""curl, as in a script: the body from a file, the answer read as it comes."""
import json
import re
import subprocess

from clients.apis import OpenAI
from clients.client import Client, Refused, Seen


def curl(*words, **popen):
    """A curl process that reads no configuration of its own; stdout and stderr are pipes."""
    return subprocess.Popen(["curl", "--disable", "--silent", "--show-error", "--noproxy", "*", *words],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **popen)


class Curl(Client):
    name = "curl"
    api = OpenAI
    errors = dict.fromkeys((400, 404, 429, 503), "exit 22")
    error_types = {429: "rate_limit_error", 503: "server_error"}
    own_wait = 1.0

    def ask(self, ask, on_event=lambda: None, on_left=lambda: None):
        fields, beside = OpenAI.body(ask)
        words = ["--no-buffer", "--max-time", str(ask.timeout), "--fail" if ask.retries else "--fail-with-body",
                 "--dump-header", "/dev/stderr",
                 "--retry", str(ask.retries), "-H", "content-type: application/json", "-H", f"x-request-id: {ask.request_id}",
                 "--data-binary", json.dumps({**fields, **beside}), ask.url + OpenAI.path]
        seen = Seen()
        with curl(*words) as process:
            try:
                body = b""
                for line in process.stdout:
                    body += line
                    if ask.stream and line.startswith(b"data: {"):
                        take(json.loads(line[6:]), seen, on_event)
                    if seen.events == ask.leave_after:
                        process.terminate()
                        seen.left = True
                        on_left()
                        return seen
                status = process.wait(60)
                heads = process.stderr.read().decode()
            finally:
                process.kill()
        if status == 0 and not ask.stream:
            take(json.loads(body), seen, lambda: None)
        if seen.tool:
            seen.tool = seen.tool[0], json.loads(seen.tool[1])
        if status:
            seen.refused = refusal(status, heads, body)
        return seen


def take(document, seen, on_event):
    usage = document.get("usage")
    if usage:
        seen.input_tokens, seen.output_tokens = usage["prompt_tokens"], usage["completion_tokens"]
    for choice in document["choices"]:
        said = choice.get("delta") or choice.get("message") or {}
        for call in said.get("tool_calls") or []:
            name, text = seen.tool or (call["function"]["name"], "")
            seen.tool = name, text + (call["function"].get("arguments") or "")
        if said.get("content"):
            seen.text += said["content"]
            seen.events += 1
            on_event()


def refusal(status, heads, body):
    last = heads[heads.rindex("HTTP/1."):] if "HTTP/1." in heads else ""
    reason = re.search(r"^x-noren-reason: (\S+)", last, re.M | re.I)
    text = body.decode(errors="replace")
    detail = json.loads(text).get("error", {}) if text.startswith("{") else {}
    return Refused(f"exit {status}", int(last.split(" ", 2)[1]) if last else 0, detail.get("message", text),
                   detail.get("type"), reason and reason[1])
