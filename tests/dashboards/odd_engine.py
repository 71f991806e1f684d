"""An engine that noren-sim does not imitate: its answers cannot be looked into, or it takes requests in slowly."""
import asyncio
import threading

from support.harness import free_port

GZIP_OF_NOTHING = bytes.fromhex("1f8b08000000000000030300000000000000000000")[:20]
UNREADABLE = b"data: {not json\n\ndata: nor this\n\n"


def answer(kind, body, more=""):
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n".encode() + body


class OddEngine:
    """Use as a context manager. Every second answer is compressed, the others are events that are no JSON. A request body
    is read at bytes_per_second; 0 = at once."""

    def __init__(self, bytes_per_second=0):
        self.port, self.pace, self.asked = free_port(), bytes_per_second, 0
        self.loop = asyncio.new_event_loop()

    async def serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                if head.startswith("post"):
                    await self.take(reader, int(head.split("content-length:")[1].split("\r\n")[0]))
                    self.asked += 1
                compressed = self.asked % 2
                writer.write(answer("application/json", GZIP_OF_NOTHING, "Content-Encoding: gzip\r\n") if compressed
                             else answer("text/event-stream", UNREADABLE))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def take(self, reader, length):
        piece = self.pace // 50 or length
        while length > 0:
            length -= len(await reader.readexactly(min(piece, length)))
            if self.pace:
                await asyncio.sleep(0.02)

    def __enter__(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", self.port, limit=65536))
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
