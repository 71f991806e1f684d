"""What curl can say and the libraries do not: Expect, HTTP/1.0, an upload of unknown length, a deadline."""
import json
import os
import subprocess
import urllib.request

from behaviour import behaviour, same
from clients.apis import OpenAI
from clients.client import Ask
from clients.curl import curl
from engines import Simulator, occupied
from stack import wait_for

MEBIBYTE = 1 << 20


class Chat:
    """A question to llama.cpp and the answer it gives without noren."""

    def __init__(self, stack, stream=False, max_tokens=16, padding=0):
        self.stack, self.request_id = stack, stack.fresh_id()
        fields, beside = OpenAI.body(Ask("", self.request_id, stack.engine.model, stream=stream, max_tokens=max_tokens))
        self.body = json.dumps({**fields, **beside}).encode() + b" " * padding
        self.file = stack.folder / f"{self.request_id}.json"
        self.file.write_bytes(self.body)

    def direct_text(self):
        request = urllib.request.Request(self.stack.engine.url + OpenAI.path, self.body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return text_of(answer.read())

    def curl(self, *words, **popen):
        return curl("--max-time", "60", "-H", "content-type: application/json", "-H", f"x-request-id: {self.request_id}",
                    *words, self.stack.noren.url + OpenAI.path, **popen)


def text_of(body):
    """Of a plain answer or of a stream; a stream must have its end."""
    if not body.startswith(b"data:"):
        return json.loads(body)["choices"][0]["message"]["content"]
    lines = body.splitlines()
    assert b"data: [DONE]" in lines, "a stream without its end"
    chunks = [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


def ended(process, status=0):
    out, err = process.communicate(timeout=90)
    assert process.returncode == status, f"curl: exit {process.returncode}, {err[-300:]}"
    return out, err.decode()


@behaviour("curl", "Expect: 100-continue with 2 MiB: 100, then the body, then the answer")
def expect(stack):
    chat = Chat(stack, padding=2 * MEBIBYTE)
    # Without a 100 curl would wait for a minute, and end.
    out, trace = ended(chat.curl("-v", "-H", "Expect: 100-continue", "--expect100-timeout", "90", "--data-binary",
                                 f"@{chat.file}"))
    heads = [line[2:14] for line in trace.splitlines() if line.startswith("< HTTP/")]
    same("heads", heads, ["HTTP/1.1 100", "HTTP/1.1 200"])
    same("text", text_of(out), chat.direct_text())
    return f"100, 200, {len(chat.body)} bytes sent"


@behaviour("curl", "Expect: 100-continue while noren is full: 429 and no byte of the body")
def expect_refused(stack):
    chat = Chat(stack, padding=2 * MEBIBYTE)
    with stack.noren.admitting(max_queue=0), occupied(stack.llama):
        out, _ = ended(chat.curl("-H", "Expect: 100-continue", "--expect100-timeout", "90", "--data-binary", f"@{chat.file}",
                                 "-w", "\n%{http_code} %{size_upload}"))
    body, figures = out.rsplit(b"\n", 1)
    same("status and bytes sent", figures, b"429 0")
    same("code", json.loads(body)["error"]["code"], "queue_full")
    return "429 queue_full, 0 bytes sent"


@behaviour("curl", "--http1.0 --no-buffer: a stream without chunks, as it comes, ended by the connection")
def http10(stack):
    chat = Chat(stack, stream=True, max_tokens=24)
    with chat.curl("--http1.0", "--no-buffer", "--include", "--data-binary", f"@{chat.file}") as process:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += process.stdout.readline()
        first = process.stdout.readline()
        running = stack.noren.running()
        out = first + process.stdout.read()
        status = process.wait(60)
    same("exit status", status, 0)
    same("running at the first line", running, 1)
    assert b"transfer-encoding" not in head.lower() and b"content-length" not in head.lower(), head
    same("text", text_of(out), chat.direct_text())
    same("outcome", stack.noren.recorded(chat.request_id)["outcome"], "ok")
    return head.split(b"\r\n")[0].decode()


@behaviour("curl", "--http1.0, plain: a length and no chunks")
def http10_plain(stack):
    chat = Chat(stack)
    out, heads = ended(chat.curl("--http1.0", "--dump-header", "/dev/stderr", "--data-binary", f"@{chat.file}"))
    assert "transfer-encoding" not in heads.lower(), heads
    same("text", text_of(out), chat.direct_text())
    return heads.splitlines()[0]


@behaviour("curl", "-T - (an upload in pieces, of unknown length): no place is held while it comes")
def upload_in_pieces(stack):
    chat = Chat(stack)
    # By itself curl would ask with Expect, and a client that waits for an answer to that is not waited for.
    with chat.curl("-X", "POST", "-T", "-", "-H", "Expect:", stdin=subprocess.PIPE) as process:
        process.stdin.write(chat.body[:40])
        process.stdin.flush()
        wait_for("noren has the request", lambda: stack.noren.metrics().total("noren_inflight_requests") == 1)
        same("running while the upload waits", stack.noren.running(), 0)
        process.stdin.write(chat.body[40:])
        out, _ = ended(process)
    same("text", text_of(out), chat.direct_text())
    return f"{len(chat.body)} bytes in 2 pieces"


def fnv1a64(data):
    value = 0xcbf29ce484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return f"{value:016x}"


@behaviour("curl", "-T FILE, 1 MiB at random: every byte arrives", engine="noren-sim")
def upload(stack):
    file = stack.folder / "upload"
    file.write_bytes(os.urandom(MEBIBYTE))
    out, _ = ended(curl("--max-time", "60", "-T", str(file), stack.site(Simulator).noren.url + "/raw/sink"))
    told = json.loads(out)
    same("what arrived", (told["bytes"], told["fnv1a64"]), (MEBIBYTE, fnv1a64(file.read_bytes())))
    return f"{told['bytes']} bytes, the same hash"


@behaviour("curl", "--max-time during a silent answer: the engine's slot is free")
def deadline(stack):
    chat = Chat(stack, max_tokens=1800)
    # The last --max-time counts.
    with chat.curl("--data-binary", f"@{chat.file}", "--max-time", "3") as process:
        wait_for("the engine works on it", lambda: stack.engine.busy() == 1)
        assert process.poll() is None, "curl left too early"
        _, err = ended(process, status=28)
    assert "Operation timed out" in err, err
    # llama.cpp looks after a client that waits for a plain answer only when it has been asked nothing else for a second.
    wait_for("the engine is idle", lambda: stack.engine.busy() == 0, every=2.5)
    line = stack.noren.recorded(chat.request_id)
    same("outcome", (line["outcome"], line["stream"]), ("client_closed", False))
    return f"exit 28 after {line['duration_ms']:.0f} ms, the slot is free"
