#!/usr/bin/env python3
"""workers.py BIN_DIR [--rounds N]: does a token cost the same with two workers as with one? CPU per event, at the rate and with
the phases of scenario S2, interleaved; nginx as a second opinion of what this machine does with two threads. The aim is within
10 %. Only told: CPU times of a shared machine differ by more."""
import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from compare import STREAM_WARM_UP, median  # noqa: E402
from measure import Bench, Costs, paced  # noqa: E402

LOAD = ["-c", "256", "-n", "512", "--spread", "2030ms", *paced(100, 20000, 50)]


def cpu_per_event(bench, who, workers):
    with bench.contestant(who, workers) as contestant:
        bench.load(contestant.port, STREAM_WARM_UP)
        costs = Costs(contestant, bench.engine)
        run = bench.load(contestant.port, LOAD)
        used = costs.end()
    if run["broken"]:
        raise RuntimeError(f"{who}: {run['broken']} answers broken: {run['errors']}")
    return used["cpu"]["contestant"] / run["output_tokens"] * 1e6, used["cores"]["foreign"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found = {(who, workers): [] for who in ("noren", "nginx") for workers in (1, 2)}
    foreign = []
    with Bench(options.bin) as bench:
        for _ in range(options.rounds):
            for (who, workers), costs in found.items():
                cost, others = cpu_per_event(bench, who, workers)
                costs.append(cost)
                foreign.append(others)
    for who in ("noren", "nginx"):
        one, two = found[who, 1], found[who, 2]
        ratio = median([b / a for a, b in zip(one, two)])
        print(f"{who}: 1 worker {median(one):.1f} us/event, 2 workers {median(two):.1f}: ratio {ratio:.2f} (aim: 0.90 to 1.10)")
    print(f"{options.rounds} rounds, foreign load {median(foreign):.2f} cores (median), {max(foreign):.2f} (most)")


if __name__ == "__main__":
    main()
