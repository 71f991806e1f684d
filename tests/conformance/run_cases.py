#!/usr/bin/env python3
"""run_cases.py NOREN_BIN [--cases DIR] [--case NAME] [--category C]: HTTP cases, those in cases/ if no other folder is named,
against a noren that it starts, with itself as client and engine. A case passes when one of its alternatives holds at both ends,
every byte at either end is valid HTTP read in only one way, and a request before and after it goes through. Prints each case that
not every proxy passes, the score by category beside that of nginx and HAProxy (baseline.json; "-" for what it does not know), and
ends with "N passed, M failed"."""
import argparse
import asyncio
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


def load_cases(folder, name, category):
    cases = []
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
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


class Baseline:
    """What other proxies did with the same cases."""

    def __init__(self):
        with open(os.path.join(HERE, "baseline.json"), encoding="utf-8") as file:
            baseline = json.load(file)
        self.known = set(baseline["known"])
        self.failed = {name: set(proxy["failed"]) for name, proxy in baseline["proxies"].items()}
        self.versions = [proxy["version"] for proxy in baseline["proxies"].values()]

    def passed(self, proxy, case):
        """None: not known."""
        return case["name"] not in self.failed[proxy] if case["name"] in self.known else None


def score(verdicts):
    """"11/12", of those that are known."""
    known = [verdict for verdict in verdicts if verdict is not None]
    return f"{sum(known)}/{len(known)}" if known else "-"


async def run(binary, cases, baseline):
    """[(case, {proxy: passed})]"""
    engine, results = Engine(), []
    await engine.open()
    noren, port = start_noren(binary, engine.port, "noren.yaml")
    try:
        player = Player(port, engine)
        for case in cases:
            # A busy machine can make noren slower, never faster: being in time once shows that it can be.
            for _ in range(3 if measures_time(case) else 1):
                complaints = await player.play(case)
                if not complaints:
                    break
            results.append((case, {"noren": not complaints, **{name: baseline.passed(name, case) for name in baseline.failed}}))
            report(*results[-1], complaints)
    finally:
        stop_noren(noren)
    return results


def report(case, verdicts, complaints):
    """A line for a case that not all of them pass."""
    if all(verdicts.values()):
        return
    others = ", ".join(f"{name} {'-' if passed is None else 'pass' if passed else 'fail'}"
                       for name, passed in verdicts.items() if name != "noren")
    strict = ", strict" if case.get("strict") else ""
    print(f"{'FAIL' if complaints else 'pass'} {case['name']} ({case['category']}{strict}; {others}): {case['why']}")
    for complaint in complaints:
        print(f"     {complaint}", flush=True)


def print_scores(results, baseline):
    proxies = ["noren", *baseline.failed]
    groups = {category: [verdicts for case, verdicts in results if case["category"] == category]
              for category in sorted({case["category"] for case, _ in results})}
    groups["strict ones among them"] = [verdicts for case, verdicts in results if case.get("strict")]
    groups["all"] = [verdicts for _, verdicts in results]
    print(f"\n{'category':24}" + "".join(f"{proxy:>10}" for proxy in proxies))
    for category, group in groups.items():
        print(f"{category:24}" + "".join(f"{score([verdicts[proxy] for verdicts in group]):>10}" for proxy in proxies))
    print(f"({', '.join(baseline.versions)}; \"-\": not among the cases they were measured with)\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("noren")
    parser.add_argument("--cases", default=os.path.join(HERE, "cases"))
    parser.add_argument("--case")
    parser.add_argument("--category")
    arguments = parser.parse_args()
    cases = load_cases(arguments.cases, arguments.case, arguments.category)
    if not cases:
        sys.exit(f"no such case in {arguments.cases}")
    baseline = Baseline()
    results = asyncio.run(run(arguments.noren, cases, baseline))
    print_scores(results, baseline)
    passed = sum(verdicts["noren"] for _, verdicts in results)
    print(f"{passed} passed, {len(results) - passed} failed")
    return 0 if passed == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
