"""The engine's side of a conformance case: answers as the case's script says, and keeps what it was asked."""
import asyncio
import socket

from strict_http import Fault, Unfinished, read_request
from wire import Wire, now

CONTROL = "/conformance-control/"


def answer_with(body):
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


class Asked:
    """A request as it came, or is still coming."""

    def __init__(self, wire, at, request):
        self.wire, self.at, self.message = wire, at, request

    def look(self):
        """The message as far as it has come by now."""
        if not self.message.whole:
            self.message = read_request(self.wire.received, self.at)
        return self.message


class Script:
    """What the engine is to do during one case, and what it has seen."""

    def __init__(self, origin, token):
        self.token = token
        self.responses = origin.get("responses", [])
        self.accept = list(origin.get("accept", []))
        self.on_reuse = origin.get("on_reuse")
        self.asked = []
        self.reuses = 0  # requests that met on_reuse
        self.tunnelled = bytearray()
        self.faults = []
        self.sent_at = {}  # marker -> when
        self.playing = set()

    def encode(self, text):
        return text.replace("{{T}}", self.token).encode("latin-1")

    def next_response(self):
        """For the request that was appended to `asked` last."""
        if not self.responses:
            answer = answer_with(self.encode("ok:{{T}}")).decode()
            if self.asked[-1].message.start[0] == "HEAD":
                answer = answer[:answer.index("\r\n\r\n") + 4]
            return {"steps": [{"send": answer}]}
        return self.responses[min(len(self.asked), len(self.responses)) - 1]


class Engine:
    """Listens on one port for the whole run, save where a case wants nobody to listen. Requests for CONTROL are answered
    by themselves, in every case: they show whether the way through noren is whole."""

    def __init__(self):
        self.socket = self.reserve(0)
        self.port = self.socket.getsockname()[1]
        self.server = None
        self.script = None
        self.wires = set()

    @staticmethod
    def reserve(port):
        """A bound socket that does not listen: connecting to it is refused, and nobody else gets the port."""
        reserved = socket.socket()
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", port))
        return reserved

    async def open(self):
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(lambda: Wire(self.accept), sock=self.socket, backlog=512)

    async def close(self):
        self.server.close()
        self.drop(self.wires)
        self.socket = self.reserve(self.port)

    @staticmethod
    def drop(wires):
        for wire in list(wires):
            wire.transport.abort()

    def accept(self, wire):
        self.wires.add(wire)
        wire.task = asyncio.get_running_loop().create_task(self.serve(wire))

    async def serve(self, wire):
        try:
            action = self.script.accept.pop(0) if self.script and self.script.accept else None
            if action == "close":
                wire.close()
            elif action == "reset":
                wire.reset()
            elif action:
                await self.perform(self.script, Asked(wire, 0, None), action, stays_unread=False)
            if wire.transport.is_closing():
                return
            at = 0
            while at is not None:
                at = await self.serve_one(wire, at)
        except Exception as error:  # a mistake in a case or in here must never look like a pass
            self.complain(f"the engine of this test failed: {error!r}")
            raise
        finally:
            self.wires.discard(wire)
            if not wire.transport.is_closing():
                wire.close()

    async def serve_one(self, wire, at):
        """The request at `at`. Where the next one begins; None when the connection is over."""
        request = None

        def has_head():
            nonlocal request
            try:
                request = read_request(wire.received, at)
            except Unfinished:
                return wire.ended is not None
            return True

        try:
            await wire.until(has_head, 3600)
        except Fault as fault:
            self.complain(f"noren sent what is no request: {fault}")
            return None
        if request is None:
            if len(wire.received) > at:
                self.complain(f"noren sent a fragment: {bytes(wire.received[at:at + 80])!r}")
            return None
        asked = Asked(wire, at, request)
        _, target = request.start
        if target.startswith(CONTROL):
            await wire.until(lambda: asked.look().whole or wire.ended, 10)
            await wire.send(answer_with(target[len(CONTROL):].encode()))
            return asked.message.end
        if self.script is None:
            return None  # a request out of a case that is over
        return await self.play(self.script, asked, is_reuse=at > 0)

    def complain(self, text):
        if self.script:
            self.script.faults.append(text)

    async def play(self, script, asked, is_reuse):
        wire = asked.wire
        script.playing.add(wire)
        if is_reuse and script.on_reuse:
            script.reuses += 1
            await self.perform(script, asked, script.on_reuse, stays_unread=True)
            if wire.transport.is_closing():
                return None
        script.asked.append(asked)
        response = script.next_response()
        stays_unread = response.get("no_read", False)
        if stays_unread:
            wire.transport.pause_reading()
        if response.get("on") != "head":
            await wire.until(lambda: asked.look().whole or wire.ended, 60)
            if not asked.message.whole:
                return None
        upgrades = "upgrade_steps" in response and asked.message.values("upgrade")
        steps = response["upgrade_steps"] if upgrades else response.get("steps", [])
        await self.perform(script, asked, steps, stays_unread)
        if stays_unread or wire.transport.is_closing() or any("tunnel_echo" in step for step in steps):
            return None
        await wire.until(lambda: asked.look().whole or wire.ended, 60)
        script.playing.discard(wire)
        return asked.message.end if asked.message.whole else None

    async def perform(self, script, asked, steps, stays_unread):
        wire = asked.wire
        for step in steps:
            match step:
                case {"send": text} | {"send_repeat": text}:
                    if "marker" in step:
                        script.sent_at[step["marker"]] = now()
                    await wire.send(script.encode(text) * step.get("n", 1), step.get("send_timeout", 20))
                case {"send_bytewise": text}:
                    for byte in script.encode(text):
                        await wire.send(bytes([byte]))
                        await asyncio.sleep(step.get("gap", 0.002))
                case {"drip": text}:
                    for _ in range(step.get("count", 40)):
                        await wire.send(script.encode(text))
                        if await wire.until(lambda: wire.ended, step.get("gap", 0.1)):
                            return
                case {"sleep": seconds} | {"stall": seconds} | {"watch_close": seconds}:
                    if await wire.until(lambda: wire.ended, seconds):
                        return
                case {"read_some": size}:
                    wire.transport.resume_reading()
                    await wire.until(lambda: len(asked.look().body) >= size or wire.ended, 10)
                    if stays_unread:
                        wire.transport.pause_reading()
                case {"tunnel_echo": seconds}:
                    begin = asked.message.end + len(script.tunnelled)
                    await wire.until(lambda: len(wire.received) > begin or wire.ended, seconds)
                    heard = bytes(wire.received[begin:])
                    script.tunnelled += heard
                    if heard:
                        await wire.send(b"echo:" + heard)
                case {"shutdown_wr": True}:
                    wire.finish_writing()
                case {"close": True}:
                    wire.close()
                    return
                case {"reset": True}:
                    wire.reset()
                    return
                case _:
                    raise ValueError(f"unknown step of the engine: {step}")
