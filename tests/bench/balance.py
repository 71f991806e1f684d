#!/usr/bin/env python3
"""balance.py BIN_DIR [--rounds N]: how few long streams spread over the workers. Each round opens so many streams, and reads
from the kernel how many descriptors each worker's epoll watches. A worker with all the streams while
another has none is the fault to look for. Only told."""
import argparse
import collections
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from measure import Bench, get, paced, report_of, wait_for  # noqa: E402


def watched(pid):
    """Descriptors watched by each epoll of the process: {epoll's number: how many}."""
    found = {}
    for number in os.listdir(f"/proc/{pid}/fdinfo"):
        with open(f"/proc/{pid}/fdinfo/{number}", encoding="ascii") as file:
            lines = file.read().splitlines()
        if os.readlink(f"/proc/{pid}/fd/{number}") == "anon_inode:[eventpoll]":
            found[number] = sum(line.startswith("tfd:") for line in lines)
    return found


def spread(bench, workers, streams, gap_ms):
    """How many streams each worker has, most first."""
    with bench.contestant("noren", workers, "upstream: {idle_timeout: 0}\n") as noren:
        bench.load(noren.port, ["-c", "1", "-n", "1", *paced(1, 0)])
        wait_for("idle connections to be gone", lambda: settled(noren))
        before = watched(noren.process.pid)
        load = bench.start_load(noren.port, ["-c", str(streams), "-n", str(streams), "--spread", f"{max(gap_ms * streams, 1)}ms",
                                             *paced(2, 1_500_000 + gap_ms * streams * 1000)])
        wait_for("the streams", lambda: json.loads(get(bench.engine.port, "/sim/state"))["active"] == streams)
        time.sleep(0.2)
        now = watched(noren.process.pid)
        run = report_of(load)
        if run["broken"]:
            raise RuntimeError(f"{run['broken']} answers broken: {run['errors']}")
    grown = sorted(((now[epoll] - before[epoll]) // 2 for epoll in now), reverse=True)
    return tuple(grown[:workers])


def settled(noren):
    """No connection of the warm-up is left: nothing changes for half a second."""
    first = watched(noren.process.pid)
    time.sleep(0.5)
    return watched(noren.process.pid) == first


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print("| workers | streams | opened | streams of the fullest worker, mean | even would be | a worker had none | seen |\n"
          "|--:|--:|---|--:|--:|--:|---|")
    with Bench(options.bin) as bench:
        for workers, streams in ((2, 4), (2, 8), (4, 8), (4, 16)):
            for gap_ms, how in ((0, "at once"), (20, "one each 20 ms")):
                seen = [spread(bench, workers, streams, gap_ms) for _ in range(options.rounds)]
                most = sum(one[0] for one in seen) / len(seen)
                told = ", ".join(f"{'+'.join(map(str, one))}" + (f" ({times}x)" if times > 1 else "")
                                 for one, times in collections.Counter(seen).most_common())
                print(f"| {workers} | {streams} | {how} | {most:.1f} | {streams / workers:.0f} | "
                      f"{sum(one[-1] == 0 for one in seen)} of {len(seen)} | {told} |", flush=True)


if __name__ == "__main__":
    main()
