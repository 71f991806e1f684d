#!/usr/bin/env python3
"""seeds.py FOLDER: one folder of seeds per fuzz target, from what the tests hold anyway."""
import json
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
ROOT = TESTS.parent


def conformance_bytes():
    """Every literal of the HTTP cases that a client or an engine sends."""
    def strings(node):
        if isinstance(node, dict):
            for key, value in node.items():
                if key in ("send", "send_bytewise") and isinstance(value, str):
                    yield value.replace("{{T}}", "t").replace("{{i}}", "1").encode("latin-1", "replace")
                else:
                    yield from strings(value)
        elif isinstance(node, list):
            for value in node:
                yield from strings(value)
    for case in sorted((TESTS / "conformance" / "cases").glob("*.json")):
        yield from strings(json.loads(case.read_text()))


def stream_bodies():
    for folder in sorted((TESTS / "corpus").rglob("*")):
        if folder.is_file() and folder.suffix == ".body":
            if folder.stat().st_size <= 16384:
                yield folder.read_bytes()


def control_seeds():
    """What a client says, what `noren ctl` is told, what it is answered: the first byte chooses."""
    words = ["reload", "drain", "undrain", "status", "ready", "limit 48", "limit 0", "limit 4294967296", "explode", ""]
    lines = [json.dumps({"command": each}).encode() + b"\n" for each in words]
    lines += [b'{"command":1}\n', b'["reload"]\n', b"{}\n", b'{"command":"a","command":"drain"}\n{"command":"undrain"}\n', b"\xff\n"]
    answers = [{"ok": True, "message": "draining"}, {"ok": False, "message": "bad", "errors": ["f.yaml:1: a"], "changes": ["a: 1 -> 2"],
               "restart_required": ["listen"]}, {"ok": True, "status": {
                   "version": "1", "uptime_seconds": 1e300, "ready": False, "not_ready_because": ["draining"],
                   "engine": {"address": "127.0.0.1:1", "tls": "verified", "up": True, "last_error": "x"}, "tls": {"on": True, "problem": "p"},
                   "admission": {"running": 1, "concurrency_limit": 0, "limit_overridden": True}, "config": {"file": "", "restart_required": ["a"],
                   "last_reload_errors": ["e"]}}}]
    return ([b"\0" + line for line in lines] + [b"\1" + each.encode() for each in words] +
            [bytes([choice]) + json.dumps(answer).encode() + b"\n" for choice in (2, 3) for answer in answers])


def write(folder, target, seeds):
    place = folder / target
    place.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (place / f"seed-{number:04}").write_bytes(seed)


def main():
    folder = pathlib.Path(sys.argv[1])
    messages = list(conformance_bytes())
    requests = [m for m in messages if not m.startswith(b"HTTP/")]
    answers = [m for m in messages if m.startswith(b"HTTP/")]
    bodies = [m.split(b"\r\n\r\n", 1)[1] for m in messages if b"\r\n\r\n" in m]
    write(folder, "request_head", [b"\1" + r for r in requests])
    write(folder, "answer_head", [bytes([i % 4]) + a for i, a in enumerate(answers)])
    write(folder, "chunks", [b"\1" + b for b in bodies] + [b"\1" + b"3;a=\"b\"\r\nabc\r\n0\r\nx: y\r\n\r\n"])
    write(folder, "request_body", [b"\1\1" + b for b in bodies])
    write(folder, "routes", [r.split(b" ")[1] for r in requests if r.count(b" ") > 1])
    write(folder, "control", control_seeds())
    streams = list(stream_bodies())
    write(folder, "answer_stream", [bytes([i]) + s for s in streams for i in (0, 1, 2)])
    write(folder, "request_facts", [b"\1" + s for s in streams] + [b"\1" + b for b in bodies if b.startswith(b"{")])
    write(folder, "config", [(ROOT / "config" / "noren.example.yaml").read_bytes()])


main()
