#!/usr/bin/env python3
"""relayed.py BIN_DIR: instructions that a worker of noren spends on an event that passes through the whole of it, for a few
shapes of stream, as lines "COUNT NAME" for instructions.sh. callgrind counts inside Worker::run; told is the difference of a
long and a short stream, so that heads and ends go. The engine sends event k+1 once the client has event k: one turn of the
loop for each write."""
import os
import re
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.harness import free_port, is_listening, wait_for  # noqa: E402

SHORT, LONG = 300, 1900  # both behind what happens only once in a stream
# Valgrind is slow, and the machine may be busy.
PATIENCE_S = 120
CHAT = ('data: {"id":"chatcmpl-0f3b9c7a51d24e6f8a","object":"chat.completion.chunk","created":1760000000,'
        '"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"delta":{"content":" %s"},"logprobs":null,'
        '"finish_reason":null}]}\n\n')
LINE = ('{"model":"llama3.2","created_at":"2026-01-01T00:00:00.000000000Z",'
        '"message":{"role":"assistant","content":" %s"},"done":false}\n')
SSE, NDJSON, PLAIN = "text/event-stream", "application/x-ndjson", "text/plain"
# name, content type, event, in chunks, events in one write
SHAPES = [("relayed chat event", SSE, CHAT, True, 1), ("relayed chat event of eight at once", SSE, CHAT, True, 8),
          ("relayed chat event, no chunks", SSE, CHAT, False, 1), ("relayed Ollama line", NDJSON, LINE, True, 1),
          ("relayed piece, not observed", PLAIN, "250 bytes of nothing, %s" + "." * 220, True, 1)]
WORDS = ["the", "a", "noren", "of", "kitchen", "soup", "and", "so"]
REQUEST = '{"model":"m","stream":true,"messages":[]}'


def write_of(shape, number):
    _, _, event, chunked, at_once = shape
    pieces = [(event % WORDS[(number * at_once + index) % len(WORDS)]).encode() for index in range(at_once)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece for piece in pieces)


def receive(connection, size):
    while size > 0:
        got = len(connection.recv(65536))
        if got == 0:
            raise RuntimeError("the stream has ended")
        size -= got


def receive_head(connection):
    text = b""
    while b"\r\n\r\n" not in text:
        text += connection.recv(65536)


def stream(listener, port, shape, writes):
    """One answer of so many writes, through noren."""
    _, content_type, _, chunked, _ = shape
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        client.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nConnection: close\r\n"
                       f"Content-Length: {len(REQUEST)}\r\n\r\n{REQUEST}".encode())
        engine, _ = listener.accept()
        with engine:
            engine.settimeout(PATIENCE_S)
            engine.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            receive_head(engine)
            engine.sendall(f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n"
                           f"{'Transfer-Encoding: chunked' if chunked else 'Connection: close'}\r\n\r\n".encode())
            receive_head(client)
            for number in range(writes):
                piece = write_of(shape, number)
                engine.sendall(piece)
                receive(client, len(piece))
            engine.sendall(b"0\r\n\r\n" if chunked else b"")
        while client.recv(65536):
            pass


def counted(bin_dir, shape, writes, folder):
    """Instructions of the worker in the life of a noren that serves one stream."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        listener.settimeout(PATIENCE_S)
        config, port, out = os.path.join(folder, "noren.yaml"), free_port(), os.path.join(folder, "counts")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"workers: 1\nupstream: {{health_interval: 0, idle_timeout: 0}}\ncontrol: {{socket: ''}}\n"
                       f"log: {{access: {folder}/access.jsonl}}\ndrain: {{lame_duck: 0}}\n")
        with open(os.path.join(folder, "log"), "wb") as log:
            noren = subprocess.Popen(
                ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=noren::proxy::Worker::run(*",
                 f"--callgrind-out-file={out}", os.path.join(bin_dir, "noren"), "--config", config,
                 "--listen", f"127.0.0.1:{port}", "--upstream", f"http://127.0.0.1:{listener.getsockname()[1]}",
                 "--ops", f"127.0.0.1:{free_port()}"],
                stdout=log, stderr=log)
        try:
            wait_for("noren", lambda: is_listening(port) or noren.poll() is not None, PATIENCE_S)
            stream(listener, port, shape, writes)
            noren.terminate()
            noren.wait(PATIENCE_S)
        finally:
            noren.kill()
            noren.wait()
    with open(out, encoding="utf-8") as file:
        return int(re.search(r"^totals: (\d+)", file.read(), re.MULTILINE)[1])


def main():
    bin_dir = os.path.abspath(sys.argv[1])
    for shape in SHAPES:
        with tempfile.TemporaryDirectory(prefix="noren-relayed-") as folder:
            short, long = (counted(bin_dir, shape, writes, folder) for writes in (SHORT, LONG))
        print((long - short) // ((LONG - SHORT) * shape[4]), shape[0], flush=True)


if __name__ == "__main__":
    main()
