#!/usr/bin/env python3
"""run_cases.py NOREN_BIN [--case NAME] [--category C]: the HTTP cases in cases/ against a noren that it starts, with itself as
client and engine. A case passes when one of its alternatives holds at both ends, every byte at either end is valid HTTP read in
only one way, and a request before and after it goes through. Ends with "N passed, M failed"."""
import argparse
import asyncio
import collections
import glob
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
from engine import Engine  # noqa: E402
from player import Player  # noqa: E402
from support.harness import free_port, is_listening, wait_for  # noqa: E402


def load_cases(name, category):
    cases = []
    for path in sorted(glob.glob(os.path.join(HERE, "cases", "*.json"))):
        with open(path, encoding="utf-8") as file:
            case = json.load(file)
        if name in (None, case["name"]) and category in (None, case["category"]):
            cases.append(case)
    return cases


def measures_time(case):
    expected = json.dumps(case["expect"])
    return any(clause in expected for clause in ("max_seconds", "max_lag", "peer_closed_within"))


def start_noren(binary, engine_port, settings):
    port = free_port()
    process = subprocess.Popen([binary, "--config", os.path.join(HERE, settings), "--listen", f"127.0.0.1:{port}",
                                "--upstream", f"http://127.0.0.1:{engine_port}", "--ops", "127.0.0.1:0", "--workers", "1"])
    wait_for("noren to listen", lambda: is_listening(port))
    return process, port


def stop_noren(process):
    process.terminate()
    if code := process.wait(20):
        raise RuntimeError(f"noren ended with code {code}")


async def run(binary, cases):
    """{category: [passed, failed]}"""
    engine = Engine()
    await engine.open()
    noren, port = start_noren(binary, engine.port, "noren.yaml")
    counts = collections.defaultdict(lambda: [0, 0])
    try:
        player = Player(port, engine)
        for case in cases:
            # A busy machine can make noren slower, never faster: being in time once shows that it can be.
            for _ in range(3 if measures_time(case) else 1):
                complaints = await player.play(case)
                if not complaints:
                    break
            counts[case["category"]][bool(complaints)] += 1
            if complaints:
                print(f"FAIL {case['name']} ({case['category']}): {case['why']}")
                print("\n".join(f"     {complaint}" for complaint in complaints), flush=True)
    finally:
        stop_noren(noren)
    return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("noren")
    parser.add_argument("--case")
    parser.add_argument("--category")
    arguments = parser.parse_args()
    cases = load_cases(arguments.case, arguments.category)
    if not cases:
        sys.exit("no such case")
    counts = asyncio.run(run(arguments.noren, cases))
    for category, (passed, failed) in sorted(counts.items()):
        print(f"{category:18} {passed:3} passed, {failed} failed")
    passed, failed = (sum(column) for column in zip(*counts.values()))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
