#!/usr/bin/env python3
"""memory.py BIN_DIR [--most N]: what noren's memory is made of. So many clients are idle, in the queue, streaming, or read
nothing; noren's resident memory must stay below the formula of README ("Memory"), whose figures noren tells in /-/status, for
two numbers of each; and the growth from one to the other must be that of each by itself. Prints what one of each takes. Ends
with "N passed, N failed"."""
import argparse
import json
import os
import resource
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.harness import Crowd, Stack, footprint, wait_for  # noqa: E402

CONFIG = """
admission: {{max_concurrency: {cap}, max_queue: 10000, queue_timeout: 10m}}
downstream: {{request_buffer: 64KiB, buffer: 64KiB, stall_timeout: 10m}}
timeouts: {{keep_alive: 10m, head: 10m}}
metrics: {{max_models: 100}}
"""
RESULTS = []


def check(what, good, detail=""):
    RESULTS.append(bool(good))
    print(("ok   " if good else "FAIL ") + what, detail, flush=True)


def resident(stack):
    """Bytes, once they have stayed the same for five looks, and noren has had nothing to do."""
    seen = []

    def settled():
        time.sleep(0.2)
        with open(f"/proc/{stack.noren.pid}/stat", encoding="ascii") as file:
            ticks = sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))
        seen.append((footprint(stack.noren)[1] * 1024, ticks))
        last = seen[-5:]
        return len(last) == 5 and max(last)[0] - min(last)[0] < 256 * 1024 and last[-1][1] - last[0][1] <= 2
    wait_for("the memory to settle", settled, 120)
    return seen[-1][0]


def bound(stack):
    return {key.removesuffix("_bytes"): value for key, value in json.loads(stack.get("/-/status"))["memory_bound"].items()}


def measure(options, kind, cap, count, body):
    """(bytes before, bytes with the crowd, the bound of noren)."""
    with Stack(options.bin, config=CONFIG.format(cap=cap)) as stack:
        before, limits = resident(stack), bound(stack)
        with Crowd(stack.port, body=body, trickle=600, **{kind: count}) as crowd:
            if crowd.open != count:
                raise RuntimeError(f"{crowd.open} of {count} connections are open")
            if kind == "queued":
                wait_for("the queue", lambda: stack.metrics()["noren_queued_requests"] == count - cap, 120)
            if kind == "reader":
                wait_for("the engine", lambda: stack.metrics()['noren_upstream_connections{state="active"}'] == count, 120)
            within = resident(stack)
        return before, within, limits


def kinds(options):
    few, many = options.most // 4, options.most
    # what, how many are in the engine, how many there are of it, bytes of a request's body, what each may take at most,
    # and typically (KiB): a string that grows has up to twice the room it needs
    return [
        ("idle", 1, few, many, 0, ("connection",), 3),
        ("queued", 1, few, many, 200, ("connection", "waiting_request"), 8),
        ("queued", 1, few // 2, many // 2, 60_000, ("connection", "waiting_request"), 8 + 2.5 * 60),
        ("upload", 1, few, many, 0, ("connection", "waiting_request"), 12),
        ("stream", 10_000, few // 2, many // 2, 200, ("connection", "running_request"), 12),
        ("stream", 10_000, few // 2, many // 2, 60_000, ("connection", "running_request"), 12 + 2.5 * 60),
        ("reader", 1, few // 10, many // 10, 0, ("connection", "running_request"), 12 + 2 * (64 + 64)),
    ]


def each(options):
    for kind, cap, few, many, body, parts, typical in kinds(options):
        name = kind + (f", bodies of {body} bytes" if body else "")
        found = [measure(options, kind, cap, count, body) for count in (few, many)]
        for count, (before, within, limits) in zip((few, many), found):
            most = limits["process"] + count * sum(limits[part] for part in parts)
            check(f"{count} {name}: is below the formula", within <= most and before <= limits["process"],
                  f"{within >> 10} KiB of {most >> 10}")
        slope = (found[1][1] - found[0][1]) / (many - few)
        allowed = sum(found[0][2][part] for part in parts)
        check(f"{name}: each takes what is typical", slope <= min(allowed, typical * 1024),
              f"{slope / 1024:.1f} KiB; up to {typical:.0f} is typical, {allowed / 1024:.0f} the bound")


def models(options):
    """Labels: as many as are allowed, and then no more, however many names come."""
    with Stack(options.bin, config=CONFIG.format(cap=4), sim_args=["--ttft", "0", "--tps", "0"]) as stack:
        def ask(names):
            for name in names:
                data = json.dumps({"model": name, "stream": True, "max_tokens": 2, "messages": []}).encode()
                urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{stack.port}/v1/chat/completions", data, {
                    "content-type": "application/json"}), timeout=20).read()
            stack.get("/metrics")
            return resident(stack)
        before, limits = ask(["first"]), bound(stack)
        full = ask([f"model-{n}" for n in range(99)])
        beyond = ask([f"another-{n}" for n in range(300)])
        most = limits["process"]
        check("100 models: is below the formula", full <= most, f"{full >> 10} KiB of {most >> 10}, {(full - before) // 99} bytes each")
        check("300 more are all one label", beyond - full < 2 * 2**20, f"{(beyond - full) >> 10} KiB more")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--most", type=int, default=800, help="clients of a kind at once")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    each(options)
    models(options)
    print(f"{sum(RESULTS)} passed, {len(RESULTS) - sum(RESULTS)} failed")
    return 0 if all(RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())
