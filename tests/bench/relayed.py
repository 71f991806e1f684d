#!/usr/bin/env python3
"""relayed.py BIN_DIR: instructions that a worker of noren spends on an event that passes through the whole of it, for a few
shapes of stream, and on a short request with its plain answer, as lines "COUNT NAME" for instructions.sh. callgrind counts
inside Worker::run; told is the difference of many and few of them, so that what happens once goes. The engine sends event k+1
once the client has event k: one turn of the loop for each write."""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.harness import free_port, is_listening, wait_for  # noqa: E402

SHORT, LONG = 300, 1900  # both behind what happens only once in a stream
FEW, MANY = 100, 600  # requests on one connection
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
PLAIN_REQUEST = '{"model":"m","stream":false,"messages":[{"role":"user","content":"what is for dinner?"}]}'
PLAIN_ANSWER = json.dumps({
    "id": "chatcmpl-0f3b9c7a51d24e6f8a", "object": "chat.completion", "created": 1760000000, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "soup " * 150}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 150, "total_tokens": 159}})


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
    return text


def receive_message(connection, body_size):
    receive(connection, body_size - len(receive_head(connection).split(b"\r\n\r\n", 1)[1]))


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


def short_requests(listener, port, count):
    """So many requests, one after the other, on one connection at either side."""
    request = (f"POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nUser-Agent: bench\r\nAccept: application/json\r\n"
               f"Content-Type: application/json\r\nContent-Length: {len(PLAIN_REQUEST)}\r\n\r\n{PLAIN_REQUEST}").encode()
    answer = (f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
              f"Content-Length: {len(PLAIN_ANSWER)}\r\n\r\n{PLAIN_ANSWER}").encode()
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        engine = None
        for _ in range(count):
            client.sendall(request)
            if engine is None:
                engine, _ = listener.accept()
                engine.settimeout(PATIENCE_S)
                engine.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            receive_message(engine, len(PLAIN_REQUEST))
            engine.sendall(answer)
            receive_message(client, len(PLAIN_ANSWER))
        engine.close()


def counted(bin_dir, serve, folder):
    """Instructions of the worker in the life of a noren that serves what serve(listener, port) sends."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        listener.settimeout(PATIENCE_S)
        config, port, out = os.path.join(folder, "noren.yaml"), free_port(), os.path.join(folder, "counts")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"workers: 1\nupstream: {{health_interval: 0}}\ncontrol: {{socket: ''}}\n"
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
            serve(listener, port)
            noren.terminate()
            noren.wait(PATIENCE_S)
        finally:
            noren.kill()
            noren.wait()
    with open(out, encoding="utf-8") as file:
        return int(re.search(r"^totals: (\d+)", file.read(), re.MULTILINE)[1])


def main():
    bin_dir = os.path.abspath(sys.argv[1])

    def each(serve, few, many):
        """What one more of them takes; serve(listener, port, number)."""
        with tempfile.TemporaryDirectory(prefix="noren-relayed-") as folder:
            low, high = (counted(bin_dir, lambda listener, port, n=number: serve(listener, port, n), folder)
                         for number in (few, many))
        return (high - low) // (many - few)

    for shape in SHAPES:
        at_once = shape[4]
        print(each(lambda listener, port, writes, s=shape: stream(listener, port, s, writes), SHORT, LONG) // at_once, shape[0],
              flush=True)
    print(each(short_requests, FEW, MANY), "short request, plain answer", flush=True)


if __name__ == "__main__":
    main()
