"""A wire between a client and an address, byte for byte, that remembers the heads that passed and when."""
import contextlib
import re
import socket
import threading
import time

REQUEST = re.compile(rb"^(GET|POST|PUT|HEAD) \S+ HTTP/1\.[01]\r\n")
ANSWER = re.compile(rb"^HTTP/1\.[01] (\d\d\d)")
RETRY_AFTER = re.compile(rb"\r\nretry-after: (\d+)\r\n", re.I)


class Tap:
    def __init__(self, url):
        host, port = url.removeprefix("http://").rsplit(":", 1)
        self.beyond = host, int(port)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.heads = []  # (time, "request" or status, seconds of Retry-After or None), in order
        self.open = [self.listener]

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        for each in self.open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def accept(self):
        with contextlib.suppress(OSError):  # the end of the block
            while True:
                client, _ = self.listener.accept()
                beyond = socket.create_connection(self.beyond)
                self.open += [client, beyond]
                threading.Thread(target=self.pass_on, args=(client, beyond), daemon=True).start()
                threading.Thread(target=self.pass_on, args=(beyond, client), daemon=True).start()

    def pass_on(self, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self.note(data)
                self.give(sink, data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def give(self, sink, data):
        sink.sendall(data)

    def note(self, data):
        answer, after = ANSWER.match(data), RETRY_AFTER.search(data)
        if answer:
            self.heads.append((time.monotonic(), int(answer[1]), after and int(after[1])))
        elif REQUEST.match(data):
            self.heads.append((time.monotonic(), "request", None))

    def returns(self):
        """For each refusal: the seconds it told, and after how many the client came back."""
        found = []
        for i, (when, kind, told) in enumerate(self.heads):
            if told is not None:
                back = next((at for at, later, _ in self.heads[i + 1:] if later == "request"), None)
                found.append((kind, told, back and back - when))
        return found


class HoldingTap(Tap):
    """For tests that must fail: keeps an answer back until its last chunk is there."""

    def __init__(self, url):
        super().__init__(url)
        self.kept = {}

    def give(self, sink, data):
        whole = self.kept.pop(sink, b"") + data
        if whole.startswith(b"HTTP/1.1 200") and b"chunked" in whole.lower() and not whole.endswith(b"0\r\n\r\n"):
            self.kept[sink] = whole
        else:
            sink.sendall(whole)
