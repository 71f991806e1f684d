#!/usr/bin/env python3
"""soak.py BIN_DIR [--minutes M] [--seed N]: load through noren while the engine is killed, restarted and made to misbehave,
limits are reloaded every second, clients leave and read slowly, and drains begin and are called off. At the end: no byte
altered, no broken stream ended as if it were whole, every gauge at 0, descriptors and memory back where they were.
Ends with "N passed, N failed"."""
import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.harness import Stack, footprint, wait_for  # noqa: E402

CONFIG = """
admission: {{max_concurrency: {limit}, max_queue: 64, queue_timeout: 5s}}
upstream: {{health_interval: 500ms}}
downstream: {{stall_timeout: 3s}}
timeouts: {{upstream_idle: 2s, first_byte: 4s, connect: 1s}}
drain: {{lame_duck: 0}}
"""
ENGINE = ["--ttft", "0.02", "--tps", "100"]
FAULTS = ["reset@300", "cut@500", "stall@400", "garbage", "slow-head:300", "bad-chunk", "no-final-chunk", "error@3",
          "close-before-head", "reset-before-head", "close-after"]
# Errors of a request that an engine in trouble explains: whatever is missing was seen to be missing. What the load tool
# would find in an answer that ended well but was not whole has other names (no_end_marker, wrong_answer, altered).
EXPLAINED = {"cut", "reset", "closed", "connect", "connect_timeout", "first_byte_timeout", "silence_timeout", "total_timeout",
             "status", "engine_error", "protocol"}
GAUGES = ["noren_inflight_requests", "noren_running_requests", "noren_queued_requests", "noren_client_connections",
          "noren_awaiting_first_token_requests", 'noren_upstream_connections{state="active"}']
RESULTS = []


def check(what, good, detail=""):
    RESULTS.append(bool(good))
    print(("ok   " if good else "FAIL ") + what, detail, flush=True)


class Totals:
    """What all the runs of the load tool found."""

    def __init__(self):
        self.sums, self.errors = collections.Counter(), collections.Counter()

    def add(self, run):
        for key in ("requests", "ok", "refused", "failed", "left", "slow", "body_checked", "body_bytes", "bytes_altered",
                    "bytes_extra"):
            self.sums[key] += run[key]
        self.errors.update({kind: count for kind, count in run["errors"].items()})


def load(stack, totals, over, number):
    """Round after round, each of a few seconds, of another kind."""
    rng = random.Random(number)
    while not over.is_set():
        command = [os.path.join(stack.bin, "noren-load"), "--url", f"http://127.0.0.1:{stack.port}", "-c", str(rng.choice([4, 24, 60])),
                   "--duration", "4s", "--api", rng.choice(["chat", "messages", "ollama", "tgi", "completions"]), "--json",
                   "--max-tokens", "4:80", "--leave", "0.1", "--slow", "0.02", "--read-rate", "20000", "--seed", str(rng.randrange(10**6)),
                   "--silence-timeout", "20s", *(["--no-stream"] if rng.random() < 0.2 else [])]
        out = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False).stdout
        totals.add(json.loads(out)["runs"][0])


class Chaos:
    """One thing after the other; each is counted."""

    def __init__(self, stack, seed):
        self.stack, self.rng, self.done = stack, random.Random(seed), collections.Counter()

    def run(self, until):
        while time.monotonic() < until:
            action = self.rng.choice([self.kill_engine, self.misbehave, self.misbehave, self.change_limit, self.change_limit,
                                      self.break_config, self.drain_and_back])
            action()
            self.done[action.__name__] += 1
            time.sleep(self.rng.uniform(0.2, 1.0))
        self.write(32)

    def kill_engine(self):
        engine = self.stack.processes[0]
        engine.send_signal(signal.SIGKILL)
        engine.wait()
        time.sleep(self.rng.uniform(0, 1.5))
        log = open(self.stack.path("noren-sim.log"), "ab")
        self.stack.processes[0] = subprocess.Popen([os.path.join(self.stack.bin, "noren-sim"), "--listen",
                                                    f"127.0.0.1:{self.stack.sim_port}", *ENGINE], stdout=log, stderr=log)
        log.close()

    def misbehave(self):
        body = json.dumps({"faults": [self.rng.choice(FAULTS) for _ in range(self.rng.randrange(1, 20))]}).encode()
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.stack.sim_port}/sim/control", body, timeout=5).read()
        except OSError:
            pass  # it is being restarted

    def write(self, limit):
        new = self.stack.config_file + ".new"
        with open(new, "w", encoding="utf-8") as file:
            file.write(f"control: {{socket: {self.stack.control}}}\nlog: {{access: {self.stack.access_file}}}\n")
            file.write(CONFIG.format(limit=limit))
        os.rename(new, self.stack.config_file)

    def change_limit(self):
        self.write(self.rng.choice([1, 2, 8, 32, 64, 0]))

    def break_config(self):
        self.write('"many"')

    def drain_and_back(self):
        self.stack.ctl("drain")
        time.sleep(self.rng.uniform(0, 0.5))
        self.stack.ctl("undrain")


def quiet(stack):
    wait_for("every gauge to be at 0", lambda: all(stack.metrics()[gauge] == 0 for gauge in GAUGES), 60)
    # What is idle in the pool goes after upstream.idle_timeout.
    wait_for("the pool to be empty", lambda: stack.metrics()['noren_upstream_connections{state="idle"}'] == 0, 60)
    return footprint(stack.noren)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with Stack(options.bin, config=CONFIG.format(limit=32), sim_args=ENGINE) as stack:
        warm, over, totals = Totals(), threading.Event(), Totals()
        warming = threading.Thread(target=load, args=(stack, warm, over, 0))
        warming.start()
        time.sleep(1)
        over.set()
        warming.join()
        before = quiet(stack)

        over.clear()
        loads = [threading.Thread(target=load, args=(stack, totals, over, options.seed * 10 + n)) for n in range(2)]
        for thread in loads:
            thread.start()
        chaos = Chaos(stack, options.seed)
        end = time.monotonic() + options.minutes * 60
        while time.monotonic() < end:
            chaos.run(min(end, time.monotonic() + 60))
            sums = totals.sums
            print(f"     {sums['requests']} requests, {sums['ok']} whole, {sums['refused']} refused, {sums['left']} left, "
                  f"{sums['failed']} failed; {sum(chaos.done.values())} disturbances", flush=True)
        over.set()
        for thread in loads:
            thread.join()

        sums, found = totals.sums, totals.errors
        print("     " + ", ".join(f"{name} {count}" for name, count in sorted(chaos.done.items())))
        print("     errors: " + ", ".join(f"{kind} {count}" for kind, count in sorted(found.items())))
        check("noren is still the same process", stack.noren.poll() is None)
        check("no byte altered or added", sums["bytes_altered"] == 0 and sums["bytes_extra"] == 0 and not found["altered"],
              f"{sums['body_bytes']} bytes in {sums['body_checked']} bodies were compared")
        unexplained = {kind: count for kind, count in found.items() if kind not in EXPLAINED}
        check("no stream ended as if it were whole", not unexplained, unexplained or "")
        check("requests were served all along", sums["ok"] > options.minutes * 60)
        after = quiet(stack)
        check("every gauge is at 0, idle connections are gone", True)
        check("as many descriptors as at the start", after[0] <= before[0] + 2, f"{before[0]} before, {after[0]} after")
        # Pools of the allocator and the series of what came up first in the chaos stay.
        check("as much memory as at the start", after[1] <= before[1] * 1.5 + 8 * 1024, f"{before[1]} KiB before, {after[1]} after")
        totals_of_noren = stack.metrics()
        check("no fault of noren's own", not any(value for key, value in totals_of_noren.items()
                                                 if key.startswith("noren_requests_total") and 'outcome="internal_error"' in key))
    print(f"{sum(RESULTS)} passed, {len(RESULTS) - sum(RESULTS)} failed")
    return 0 if all(RESULTS) else 1


if __name__ == "__main__":
    threading.excepthook = lambda args: (print("FAIL", args.exc_value, file=sys.stderr), os._exit(1))
    sys.exit(main())
