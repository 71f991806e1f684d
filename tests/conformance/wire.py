"""One TCP connection, whichever end of it is played: what came and when, how it ended, and ways to wait for either."""
import asyncio
import socket
import struct


def now():
    return asyncio.get_running_loop().time()


class Wire(asyncio.Protocol):
    def __init__(self, on_connect=None):
        self.on_connect = on_connect
        self.transport = None
        self.received = bytearray()
        self.arrivals = []  # (bytes received in all, when)
        self.ended = None  # "closed" or "reset", by the other side
        self.ended_at = None
        self.is_congested = False
        self.news = asyncio.Event()

    # --- called by asyncio

    def connection_made(self, transport):
        self.transport = transport
        if self.on_connect:
            self.on_connect(self)

    def data_received(self, data):
        self.received += data
        self.arrivals.append((len(self.received), now()))
        self.news.set()

    def eof_received(self):
        self.end("closed")
        return True  # what we have to say may still be said

    def connection_lost(self, exc):
        self.end("reset" if exc else "closed")

    def pause_writing(self):
        self.is_congested = True

    def resume_writing(self):
        self.is_congested = False
        self.news.set()

    def end(self, how):
        if not self.ended:
            self.ended, self.ended_at = how, now()
        self.news.set()

    # --- for who plays this end

    async def until(self, condition, seconds):
        """Waits for something that only this connection's events can bring about. False: not in time."""
        deadline = now() + seconds
        while not condition():
            left = deadline - now()
            if left <= 0:
                return False
            self.news.clear()
            try:
                await asyncio.wait_for(self.news.wait(), left)
            except TimeoutError:
                pass
        return True

    async def send(self, data, seconds=10):
        if not self.transport.is_closing():
            self.transport.write(data)
            await self.until(lambda: not self.is_congested or self.transport.is_closing(), seconds)

    def finish_writing(self):
        if not self.transport.is_closing():
            self.transport.write_eof()

    def close(self):
        self.transport.close()

    def reset(self):
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def when_received(self, text):
        """When the text had come, or None."""
        end = self.received.find(text) + len(text)
        if end < len(text):
            return None
        return next(when for size, when in self.arrivals if size >= end)


async def connect(port):
    _, wire = await asyncio.get_running_loop().create_connection(Wire, "127.0.0.1", port)
    return wire
