#!/usr/bin/env python3
"""fidelity.py BIN_DIR [--streams N] [--rate N] [--burst N]: streams of several dialects and paces through noren, and what
noren recorded of each against what the simulated engine knows it did. Counts and sums must be exact. How late the stamps
are is reported and decides nothing, except that none may lie before the truth. Ends with "N passed, N failed".

Streams arrive as those of clients who know nothing of each other: a Poisson process of --rate per second. After them come
--burst more, all at one instant, which are reported apart: there every stream waits until the others have been accepted.

Lateness is noren's clock against the engine's, on one machine, and so holds what lies between the two: dialling, two
wake-ups and the way through the kernel. It is a figure of noren only on an idle machine: one where nothing runs but the
engine, noren and this client, so that a core is free whenever one of the three is woken. How busy the CPUs were before the
first stream, and were during them, is part of the report. On a machine that others use too, `chrt -f 5` in front of this
command gives the three that free core (as long as they need little of it, which they do)."""
import argparse
import asyncio
import json
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.harness import Stack, wait_for  # noqa: E402

DIALECTS = {
    "/v1/chat/completions": lambda n, usage: {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True,
                                              "max_tokens": n, "stream_options": {"include_usage": usage}},
    "/v1/completions": lambda n, usage: {"model": "m", "prompt": "x", "stream": True, "max_tokens": n,
                                         "stream_options": {"include_usage": usage}},
    "/v1/messages": lambda n, usage: {"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True,
                                      "max_tokens": n},
    "/v1/responses": lambda n, usage: {"model": "m", "input": "x", "stream": True, "max_output_tokens": n},
    "/generate_stream": lambda n, usage: {"inputs": "x", "parameters": {"max_new_tokens": n, "details": usage}},
    "/api/chat": lambda n, usage: {"model": "m", "messages": [{"role": "user", "content": "x"}],
                                   "options": {"num_predict": n}},
    "/completion": lambda n, usage: {"prompt": "x", "stream": True, "n_predict": n},
    "/v2/models/m/generate_stream": lambda n, usage: {"text_input": "x", "max_tokens": n},
}


def plan(rng, count, name):
    for index in range(count):
        path = rng.choice(list(DIALECTS))
        tokens = rng.choice([1, 2, rng.randint(1, 40), rng.randint(1, 400)])
        gap = rng.uniform(0.5, 80) if tokens < 60 else rng.uniform(0.5, 10)
        per_event = rng.choice([1, 1, 1, 1, 2, 5]) if "generate_stream" != path.strip("/") else 1
        ttft = rng.choice([5, rng.randint(5, 200), rng.randint(5, 2000)])
        yield {"id": f"{name}-{index}", "path": path, "body": json.dumps(DIALECTS[path](tokens, rng.random() < 0.5)),
               "headers": {"x-sim-ttft-ms": ttft, "x-sim-interval-us": int(gap * 1000), "x-sim-tokens": tokens,
                           "x-sim-tokens-per-event": per_event, "x-sim-gap": rng.choice(["fixed", "exp"])}}


async def send(port, request, delay):
    await asyncio.sleep(delay)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    fields = "".join(f"{name}: {value}\r\n" for name, value in request["headers"].items())
    body = request["body"].encode()
    writer.write((f"POST {request['path']} HTTP/1.1\r\nHost: t\r\nConnection: close\r\nx-request-id: {request['id']}\r\n"
                  f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n{fields}\r\n").encode() + body)
    await reader.read(-1)
    writer.close()


async def send_all(port, requests, delays):
    await asyncio.gather(*(send(port, request, delay) for request, delay in zip(requests, delays)))


def poisson(rng, count, rate):
    due = 0.0
    for _ in range(count):
        due += rng.expovariate(rate)
        yield due


class Cpus:
    """The share of all CPUs' time that was not idle since the last question."""

    def __init__(self):
        self.idle, self.all = self.look()

    @staticmethod
    def look():
        with open("/proc/stat", encoding="ascii") as file:
            times = [int(value) for value in file.readline().split()[1:9]]  # what follows is counted in these
        return times[3] + times[4], sum(times)

    def busy(self):
        idle, everything = self.look()
        share = 1 - (idle - self.idle) / max(1, everything - self.all)
        self.idle, self.all = idle, everything
        return f"{share * 100:.0f} % busy"


def spread(values):
    ordered = sorted(values)
    pick = lambda q: ordered[min(len(ordered) - 1, int(q * len(ordered)))] if ordered else 0.0  # noqa: E731
    figures = {"min": 0, "p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1}
    within = sum(value <= 1 for value in values) / max(1, len(values)) * 100
    return " ".join(f"{name} {pick(q):.3f}" for name, q in figures.items()) + f"; {within:.2f} % within 1 ms"


class Checks:
    def __init__(self):
        self.passed, self.failed = 0, 0

    def that(self, what, condition, detail=""):
        self.passed += bool(condition)
        self.failed += not condition
        if not condition:
            print(f"FAIL {what}: {detail}")

    def close(self, what, got, wanted, tolerance):
        self.that(what, abs(got - wanted) <= tolerance, f"got {got}, wanted {wanted} within {tolerance}")


def compare_streams(checks, log, truth):
    first_late, last_late = [], []
    for request_id, said in log.items():
        knew = truth[request_id]
        sent = [(at, tokens) for at, tokens in knew["events"] if tokens > 0]
        first, last = sent[0][0], sent[-1][0]
        checks.that(f"{request_id} token events", said["token_events"] == len(sent) == knew["token_events"],
                    f"{said['token_events']}, truth {len(sent)}")
        usage = knew["usage"] and (knew["usage"].get("output_tokens") or knew["usage"].get("completion_tokens") or knew["usage"].get("output"))
        wanted, source = (usage, "usage") if usage else (len(sent), "events")
        checks.that(f"{request_id} output tokens", (said["output_tokens"], said["output_tokens_source"]) == (wanted, source),
                    f"{said['output_tokens']} by {said['output_tokens_source']}, truth {wanted} by {source} ({said['path']})")
        first_late.append(said["ttft_ms"] - (first - knew["arrival_ns"]) / 1e6)
        last_said = said["ttft_ms"] + said.get("tpot_ms", 0) * (said["output_tokens"] - 1)
        rounding = 0.0005 * (said["output_tokens"] - 1)  # the log has three decimals
        last_late.append(last_said - (last - knew["arrival_ns"]) / 1e6)
        checks.that(f"{request_id} last token not before the engine sent it", last_late[-1] >= -rounding - 0.001,
                    f"{last_late[-1]} ms")
        stages = sum(said[f"{stage}_ms"] for stage in ("upload", "queue", "connect", "prefill", "decode", "stall"))
        checks.close(f"{request_id} stages add up", stages, said["duration_ms"], 0.004)
    checks.that("no first token before the engine sent it", min(first_late) >= 0, f"{min(first_late)} ms")
    return first_late, last_late


def compare_histograms(checks, stack, log):
    entries = list(log.values())
    checks.that("TTFT samples", stack.total("noren_time_to_first_token_seconds_count") == len(entries))
    checks.close("TTFT sum", stack.total("noren_time_to_first_token_seconds_sum"), sum(e["ttft_ms"] for e in entries) / 1e3,
                 1e-6 * len(entries))
    spans = [e for e in entries if "tpot_ms" in e]
    checks.that("TPOT samples", stack.total("noren_time_per_output_token_seconds_count") == len(spans))
    checks.close("TPOT sum", stack.total("noren_time_per_output_token_seconds_sum"), sum(e["tpot_ms"] for e in spans) / 1e3,
                 1e-6 * len(spans))
    checks.close("TPS sum", stack.total("noren_request_output_tokens_per_second_sum"), sum(e["tps"] for e in spans),
                 0.001 * len(spans))
    checks.that("output tokens", stack.total("noren_output_tokens_total") == sum(e["output_tokens"] for e in entries),
                f"{stack.total('noren_output_tokens_total')}")
    checks.that("token events", stack.total("noren_output_tokens_total", source="events") ==
                sum(e["token_events"] for e in entries))
    gaps = stack.total("noren_inter_token_latency_seconds_count")
    most = sum(e["token_events"] - 1 for e in entries)
    print(f"gaps: {gaps:.0f} of at most {most}; the rest came with the first token in one read")
    checks.that("gaps", 0 < gaps <= most, f"{gaps} of {most}")
    checks.close("gap sum is the sum of first to last token", stack.total("noren_inter_token_latency_seconds_sum"),
                 sum(e["tpot_ms"] * (e["output_tokens"] - 1) for e in spans) / 1e3,
                 0.5e-6 * sum(e["output_tokens"] for e in spans))
    checks.close("stage sum is duration sum", stack.total("noren_request_stage_seconds_sum"),
                 stack.total("noren_request_duration_seconds_sum"), 1e-6 * len(entries))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--rate", type=float, default=25, help="arrivals per second")
    parser.add_argument("--burst", type=int, default=60)
    parser.add_argument("--seed", type=int, default=6)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    paced, burst = list(plan(rng, options.streams, "paced")), list(plan(rng, options.burst, "burst"))
    count = len(paced) + len(burst)
    checks = Checks()
    with Stack(options.bin, sim_args=["--ttft", "0.1"]) as stack:
        cpus = Cpus()
        time.sleep(1)
        before = cpus.busy()
        asyncio.run(send_all(stack.port, paced, poisson(rng, len(paced), options.rate)))
        print(f"{os.cpu_count()} CPUs, {before} in the second before the first stream, {cpus.busy()} during them")
        asyncio.run(send_all(stack.port, burst, [0] * len(burst)))
        wait_for("the histograms", lambda: stack.total("noren_request_duration_seconds_count") == count)
        wait_for("the access log's last line", lambda: len(stack.access_log()) >= count)
        log = {entry["request_id"]: entry for entry in stack.access_log()}
        truth = {entry["id"]: entry for entry in stack.truth()}
        checks.that("every stream is in the log", len(log) == count, f"{len(log)} of {count}")
        checks.that("every stream ended ok", all(e["outcome"] == "ok" for e in log.values()),
                    str({e["outcome"] for e in log.values()}))
        for name, how in (("paced", f"arriving at {options.rate:g}/s"), ("burst", "arriving all at once")):
            entries = {request_id: entry for request_id, entry in log.items() if request_id.startswith(name)}
            if not entries:
                continue
            first_late, last_late = compare_streams(checks, entries, truth)
            print(f"{len(entries)} streams {how}: noren's stamp minus the engine's, in ms")
            print(f"  first token: {spread(first_late)}")
            print(f"  last token:  {spread(last_late)}")
        compare_histograms(checks, stack, log)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed or not checks.passed else 0


if __name__ == "__main__":
    sys.exit(main())
