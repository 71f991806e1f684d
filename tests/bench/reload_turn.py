#!/usr/bin/env python3
"""reload_turn.py BIN_DIR [--reloads N]: how long does a reload of a big config (1,000 paths, 1,000 models) keep a worker from its
streams? The CPU time that it costs a worker's thread that has nothing else to do is the most that one of its turns can have grown
by; that must be below 1 ms. Also told: the longest delay of an event of 8 streams, with such reloads
and without. Ends with 1 if the reload was not accepted or the CPU time is over."""
import argparse
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from compare import median  # noqa: E402
from measure import Bench, paced, report_of, wait_for  # noqa: E402

BOUND_US = 1000
LOAD = ["-c", "8", "-n", "8", "--spread", "5ms", *paced(1000, 3000, 20)]


def big_config(number):
    """Another one each time, or there is nothing to reload."""
    paths = "".join(f"    - /v{index}/path-of-{number}/generate\n" for index in range(999))
    models = ", ".join(f"model-{index}-{number}" for index in range(999))
    # admission: is in the file already, with one key.
    return f"  gated_paths:\n    - /v1/chat/completions\n{paths}", f"metrics: {{models: [{models}], max_models: 1000}}\n"


def worker_ns(noren):
    """Time on a CPU of the worker thread, ns: it is named noren-w0."""
    for thread in os.listdir(f"/proc/{noren.process.pid}/task"):
        with open(f"/proc/{noren.process.pid}/task/{thread}/comm", encoding="ascii") as file:
            name = file.read().strip()
        if name.startswith("noren-w"):
            with open(f"/proc/{noren.process.pid}/task/{thread}/schedstat", encoding="ascii") as file:
                return int(file.read().split()[0])
    raise RuntimeError("no thread of noren's is named as a worker")


class Reloads:
    def __init__(self, bench, noren):
        self.bench, self.noren, self.count = bench, noren, 0
        self.config = os.path.join(noren.folder, "noren.yaml")

    def reload(self):
        self.count += 1
        paths, models = big_config(self.count)
        text = (f"workers: 1\nadmission:\n  max_concurrency: 8192\n{paths}control: {{socket: {self.noren.folder}/control.sock}}\n"
                f"log: {{access: {self.noren.folder}/access.jsonl}}\n{models}")
        with open(self.config + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(self.config + ".new", self.config)
        done = subprocess.run([self.bench.program("noren"), "ctl", "reload", "--socket", f"{self.noren.folder}/control.sock"],
                              capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise RuntimeError("not reloaded: " + done.stdout + done.stderr)

    def cost_us(self):
        before = worker_ns(self.noren)
        self.reload()
        # The worker is told by a posting, which it has run when it answers a request.
        self.bench.load(self.noren.port, ["-c", "1", "-n", "1", *paced(1, 0)])
        return (worker_ns(self.noren) - before) / 1e3

    def nothing_us(self):
        before = worker_ns(self.noren)
        self.bench.load(self.noren.port, ["-c", "1", "-n", "1", *paced(1, 0)])
        return (worker_ns(self.noren) - before) / 1e3


def longest_delay(bench, noren, reloads):
    load = bench.start_load(noren.port, LOAD)
    over = threading.Event()

    def go_on():
        while reloads and not over.wait(0.1):
            reloads.reload()
    thread = threading.Thread(target=go_on)
    thread.start()
    run = report_of(load)
    over.set()
    thread.join()
    if run["broken"]:
        raise RuntimeError(f"{run['broken']} answers broken: {run['errors']}")
    return run["delay_seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin")
    parser.add_argument("--reloads", type=int, default=20)
    options = parser.parse_args()
    with Bench(options.bin) as bench, bench.contestant("noren") as noren:
        reloads = Reloads(bench, noren)
        wait_for("the control socket", lambda: os.path.exists(f"{noren.folder}/control.sock"))
        reloads.reload()
        without = [reloads.nothing_us() for _ in range(options.reloads)]
        costs = [reloads.cost_us() - median(without) for _ in range(options.reloads)]
        calm, busy = longest_delay(bench, noren, None), longest_delay(bench, noren, reloads)
    print(f"a worker's CPU time for a reload: median {median(costs):.0f} us, most {max(costs):.0f} us (the request that follows, "
          f"{median(without):.0f} us, is taken off)")
    print(f"delay of an event without reloads: p99 {calm['p99'] * 1e6:.0f} us, most {calm['max'] * 1e6:.0f} us; "
          f"with ten a second: p99 {busy['p99'] * 1e6:.0f} us, most {busy['max'] * 1e6:.0f} us")
    good = median(costs) < BOUND_US
    print(("ok  " if good else "FAIL") + f": below {BOUND_US} us")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
