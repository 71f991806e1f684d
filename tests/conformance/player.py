"""Plays a conformance case: its client or clients against noren, noren against the scripted engine."""
import asyncio
import secrets

from case_format import as_list, unknown_in
from engine import CONTROL, Script
from expectation import Answers, unmet_by_client, unmet_by_engine
from wire import connect, now

# How long an expectation that holds must go on holding: what is wrong may still be on its way.
QUIET = 0.1


class Client:
    def __init__(self, wire, methods, script):
        self.wire, self.methods, self.script = wire, methods, script
        self.began = now()
        self.left_at = None

    async def play(self, steps):
        for step in steps:
            await self.perform(step)

    async def perform(self, step):
        wire, encode = self.wire, self.script.encode
        match step:
            case {"send": text}:
                await wire.send(encode(text))
            case {"send_hex": digits}:
                await wire.send(bytes.fromhex(digits))
            case {"repeat": text, "n": count} if "{{i}}" in text:
                await wire.send(b"".join(encode(text.replace("{{i}}", str(i))) for i in range(count)))
            case {"repeat": text, "n": count}:
                await wire.send(encode(text) * count)
            case {"bytewise": text}:
                for byte in encode(text):
                    await wire.send(bytes([byte]))
                    await asyncio.sleep(step.get("gap", 0.002))
            case {"trickle": text, "n": count}:
                answer_ends_it = step.get("stop_on_response", False)
                for i in range(count):
                    await wire.send(encode(text.replace("{{i}}", str(i))))
                    if await wire.until(lambda: wire.ended or (answer_ends_it and wire.received), step.get("gap", 0.05)):
                        break
            case {"sleep": seconds}:
                await asyncio.sleep(seconds)
            # What does not come in time is missing in the expectation, which judges it.
            case {"wait_for": text}:
                await wire.until(lambda: encode(text) in wire.received or wire.ended, step.get("max", 5))
            case {"wait_responses": count}:
                await wire.until(lambda: self.whole_answers() >= count or wire.ended, step.get("max", 5))
            case {"wait_origin": count}:
                await self.until_engine_was_asked(count, step.get("max", 5))
            case {"pause_reading": seconds}:
                wire.transport.pause_reading()
                await asyncio.sleep(seconds)
                wire.transport.resume_reading()
            case {"shutdown_wr": True}:
                wire.finish_writing()
            case {"close": True}:
                self.left_at = now()
                wire.close()
            case {"reset": True}:
                self.left_at = now()
                wire.reset()
            case _:
                raise ValueError(f"unknown step of the client: {step}")

    def whole_answers(self):
        return sum(message.whole for message in Answers(self.wire, self.methods).finals)

    async def until_engine_was_asked(self, count, seconds):
        deadline = now() + seconds
        while len(self.script.asked) < count and not self.wire.ended and now() < deadline:
            await asyncio.sleep(0.01)


async def ask_for_token(wire):
    """A control request on this connection. None when the right answer came back."""
    token = secrets.token_hex(8)
    begin = len(wire.received)
    await wire.send(f"GET {CONTROL}{token} HTTP/1.1\r\nHost: control.test\r\n\r\n".encode())
    await wire.until(lambda: wire.received.endswith(b"\r\n\r\n" + token.encode()) or wire.ended, 10)
    answer = bytes(wire.received[begin:])
    if answer.startswith(b"HTTP/1.1 200 ") and answer.endswith(b"\r\n\r\n" + token.encode()):
        return None
    return f"expected the answer to a control request, found {answer[:120]!r}"


class Player:
    def __init__(self, port, engine):
        self.port, self.engine = port, engine

    async def check_way(self, when):
        """A request through noren on a connection of its own: it lives, and no engine connection is poisoned."""
        wire = await connect(self.port)
        complaint = await ask_for_token(wire)
        wire.close()
        return [f"{when} the case: {complaint}"] if complaint else []

    async def play(self, case):
        """What was not as expected: nothing when the case passed."""
        if unknown := list(unknown_in(case)):
            return unknown
        origin = case.get("origin", {})
        if complaints := await self.check_way("before"):
            return complaints
        if origin.get("fresh"):
            self.engine.drop(self.engine.wires)
            await asyncio.sleep(0.05)
        script = self.engine.script = Script(origin, secrets.token_hex(8))
        if not origin.get("listen", True):
            await self.engine.close()
        clients = []
        try:
            complaints = await self.play_clients(case, script, clients)
        finally:
            for client in clients:
                client.wire.close()
            if not origin.get("listen", True):
                await self.engine.open()
            script.accept, script.on_reuse = [], None
            self.engine.drop(script.playing)
        complaints += await self.check_way("after")
        self.engine.script = None
        return complaints + [text for text in script.faults if text not in " ".join(complaints)]

    async def play_clients(self, case, script, clients):
        for spec in case.get("clients", [case.get("client")]):
            client = Client(await connect(self.port), spec.get("methods", ["GET"]), script)
            clients.append(client)
            await client.play(spec["steps"])
            if "expect" in spec:
                own = [{"client": expected, "origin": {}} for expected in as_list(spec["expect"])]
                if complaints := await self.settle(own, client, case):
                    return complaints
            await asyncio.sleep(spec.get("pause_after", 0))
        return await self.settle(as_list(case["expect"]), clients[-1], case)

    @staticmethod
    async def settle(alternatives, client, case):
        """Waits until one of the alternatives holds, then whether it goes on holding."""

        def unmet(alternative):
            found = []
            if "client" in alternative:
                found += unmet_by_client(client, alternative["client"])
            return found + list(unmet_by_engine(client, alternative.get("origin", {})))

        deadline = now() + case.get("timeout", 8)
        while True:
            holding = [alternative for alternative in alternatives if not unmet(alternative)]
            if holding:
                await asyncio.sleep(QUIET)
                holding = [alternative for alternative in holding if not unmet(alternative)]
            if holding:
                usable = any(alternative.get("client", {}).get("conn") == "usable" for alternative in holding)
                complaint = await ask_for_token(client.wire) if usable else None
                return [complaint] if complaint else []
            if now() > deadline:
                return [" and ".join(unmet(alternative)) for alternative in alternatives]
            await asyncio.sleep(0.005)
