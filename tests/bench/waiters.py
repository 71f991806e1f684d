#!/usr/bin/env python3
"""waiters.py BIN_DIR [--waiters N]: what a request that waits for its turn costs in memory, all of it: connection, head, held
body, place in the queue. One runs, the others wait; the proportional set size of noren, per waiter."""
import argparse
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from measure import Bench, get, paced, pss_kib, report_of  # noqa: E402


def waiting(noren):
    return int(float(re.search(r"^noren_queued_requests(?:\{\})? (\S+)", get(noren.ops, "/metrics"), re.MULTILINE)[1]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin")
    parser.add_argument("--waiters", type=int, default=4000)
    options = parser.parse_args()
    with Bench(options.bin) as bench, bench.contestant("noren") as noren:
        bench.load(noren.port, ["-c", "16", "-n", "64", *paced(100, 0)])
        config = os.path.join(noren.folder, "noren.yaml")
        with open(config, encoding="utf-8") as file:
            text = file.read().replace("max_concurrency: 8192", "max_concurrency: 1, max_queue: 20000, queue_timeout: 10m")
        with open(config, "w", encoding="utf-8") as file:
            file.write(text)
        while "noren_concurrency_limit 1" not in get(noren.ops, "/metrics"):
            time.sleep(0.05)
        before = pss_kib(noren.pids)
        count = options.waiters + 1
        # The one that runs takes a while; all others follow at once.
        load = bench.start_load(noren.port, ["-c", str(count), "-n", str(count), "--spread", "2s", *paced(1, 0, 6000)])
        deadline = time.monotonic() + 60
        while waiting(noren) < options.waiters - 1 and time.monotonic() < deadline:
            time.sleep(0.05)
        queued, memory = waiting(noren), pss_kib(noren.pids)
        load.kill()
        load.wait()
    print(f"{queued} waiters: {(memory - before) / queued:.2f} KiB each ({memory - before} KiB in all)")
    return 0 if queued >= options.waiters - 1 else 1


if __name__ == "__main__":
    sys.exit(main())
