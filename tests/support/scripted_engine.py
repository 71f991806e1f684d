"""An engine for tests of the wire: what it answers, and in which pieces, is written beforehand, byte for byte."""
import socket
import threading
import time

PATIENCE = 10.0  # seconds; whoever waits so long has been held up by a fault


class Script:
    """One answer. Its bytes leave in these pieces; the piece with the index `hold` only once the test calls release()."""

    def __init__(self, pieces, hold, closes):
        self.pieces, self.hold, self.closes = pieces, hold, closes
        self.request = None  # as it arrived: (request line, body)
        self.held_up = False
        self._released = threading.Event()

    def release(self):
        self._released.set()

    def write(self, peer):
        for index, piece in enumerate(self.pieces):
            if index == self.hold:
                self.held_up = not self._released.wait(PATIENCE)
            peer.sendall(piece)
            # Now and then the proxy gets time to read what has come so far.
            if index % 3 == 0:
                time.sleep(0.0002)


def read_request(stream):
    """(request line, {lower-case name: value}, body), or nothing at the connection's end."""
    line = stream.readline()
    if not line:
        return None
    fields = {}
    while (field := stream.readline()) not in (b"\r\n", b""):
        name, _, value = field.decode("latin-1").partition(":")
        fields[name.lower()] = value.strip()
    return line.decode("latin-1").rstrip("\r\n"), fields, stream.read(int(fields.get("content-length", 0)))


class ScriptedEngine:
    """Listens on a port of loopback. Which script answers a request is told by its x-request-id. A context manager."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.scripts = {}

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:  # closed: the test is over
                return
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer):
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with peer, peer.makefile("rb") as stream:
            while request := read_request(stream):
                line, fields, body = request
                script = self.scripts[fields["x-request-id"]]
                script.request = line, body
                try:
                    script.write(peer)
                except OSError:  # the proxy has hung up, which the client's side of the test will tell
                    return
                if script.closes:
                    return
