#!/usr/bin/env python3
"""streams.py BIN_DIR [--rounds N] [--streams 10,100,1000,4000]: is the cost of an event the same whether few or many streams
carry it? The rate of all together stays 4,000 events/s, so that batches and wake-ups stay alike; the relay tells what the
kernel's own part does. The aim is within 25 %. Only told: CPU times of a shared machine. A stream takes four descriptors
here: two of noren's, and noren's limit is what `ulimit -Hn` allows."""
import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from compare import median  # noqa: E402
from measure import Bench, Costs, paced  # noqa: E402

RATE, SECONDS = 4000, 3


def cpu_per_event(bench, who, streams):
    interval_us = streams * 1_000_000 // RATE
    events = max(2, SECONDS * 1_000_000 // interval_us)
    # Heads and ends are for the warm-up and for everybody alike: told is the difference of two lengths.
    used = []
    with bench.contestant(who) as contestant:
        for count in (1, 1 + events):
            costs = Costs(contestant, bench.engine)
            run = bench.load(contestant.port, ["-c", str(streams), "-n", str(streams), "--spread", f"{interval_us // 1000 + 1}ms",
                                               *paced(count, interval_us, interval_us // 1000 + 300)])
            used.append(costs.end())
            if run["broken"]:
                raise RuntimeError(f"{who}, {streams} streams: {run['broken']} answers broken: {run['errors']}")
    return ((used[1]["cpu"]["contestant"] - used[0]["cpu"]["contestant"]) / (events * streams) * 1e6, used[1]["cores"]["foreign"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--streams", default="10,100,1000,4000")
    options = parser.parse_args()
    sizes = [int(size) for size in options.streams.split(",")]
    found, foreign = {}, []
    with Bench(options.bin) as bench:
        for _ in range(options.rounds):
            for streams in sizes:
                for who in ("relay", "noren"):
                    cost, others = cpu_per_event(bench, who, streams)
                    found.setdefault((who, streams), []).append(cost)
                    foreign.append(others)
    print("| streams | " + " | ".join(f"{size:,}" for size in sizes) + " | most / least |\n|---|" + "--:|" * (len(sizes) + 1))
    for who in ("relay", "noren"):
        costs = [median(found[who, size]) for size in sizes]
        print(f"| {who}, CPU us/event | " + " | ".join(f"{cost:.1f}" for cost in costs) + f" | {max(costs) / min(costs):.2f} |")
    print(f"aim: noren's at most 1.25. {options.rounds} rounds, foreign load {median(foreign):.2f} cores (median), "
          f"{max(foreign):.2f} (most)")


if __name__ == "__main__":
    main()
