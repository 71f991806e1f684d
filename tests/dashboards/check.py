#!/usr/bin/env python3
"""check.py BIN_DIR [--short] [--only SCENARIO,...] [--pictures FOLDER]: dashboards, rules and alerts against a real Prometheus
that scrapes real norens in front of noren-sim, while things happen to them (scenarios.py). Time in the rules runs 30 times
as fast (support/prometheus.py says how). Every panel must have data, every alert that is to fire must, and no other.
--pictures draws the dashboards of every scenario (needs matplotlib). Ends with "N passed, M failed"."""
import argparse
import math
import os
import sys
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from dashboards import scenarios  # noqa: E402
from dashboards.names import ONLY_WITH_TLS, check_names  # noqa: E402
from dashboards.panels import alerts, filled, queries  # noqa: E402
from dashboards.written import check_written  # noqa: E402
from support.prometheus import Prometheus  # noqa: E402

AT_A_TIME = 4


class Checks:
    def __init__(self):
        self.passed, self.failed = 0, 0

    def __call__(self, what, good, detail=""):
        self.passed += bool(good)
        self.failed += not good
        print(f"ok   {what}" if good else f"FAIL {what}: {detail}", flush=True)


def played_once(scenario):
    """It, and what is wrong with its alerts; empty: nothing."""
    try:
        fired = scenario.run()
    except Exception:  # pylint: disable=broad-except  (a scenario that breaks is a failed check, not the end)
        return scenario, traceback.format_exc()
    differ = f"missing {sorted(scenario.fires - fired)}, unasked {sorted(fired - scenario.fires)}"
    return scenario, "" if fired == scenario.fires else differ


def play(kinds, bin_dir, prometheus, check):
    """Several at a time; those that could be played. Time runs so fast that on a machine which is busy otherwise a noren is
    down for Prometheus, or its tokens slow: what was not as it should be is played once more, alone, and that counts."""
    played = []
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        first = list(pool.map(lambda kind: played_once(kind(bin_dir, prometheus)), kinds))
    for scenario, wrong in first:
        told = ""
        if wrong:
            told = f" (the second time; the first time, {AT_A_TIME} at once: {wrong.strip().splitlines()[-1]})"
            scenario, wrong = played_once(type(scenario)(bin_dir, prometheus, "Again"))
        expected = ", ".join(sorted(scenario.fires)) or "no alert"
        check(f"{type(scenario).__name__}: {expected}, and no other{told}", not wrong, wrong)
        if hasattr(scenario, "end_s"):
            played.append(scenario)
    return played


def has_data(prometheus, expr, scenario):
    results = prometheus.query_range(filled(expr, scenario.job), scenario.start_s, scenario.end_s, 1)
    return any(math.isfinite(value) for _, points in results for _, value in points)


def check_panels(check, prometheus, played):
    for scenario in played:
        with_tls = isinstance(scenario, scenarios.CertificateEnds)
        if not with_tls and not isinstance(scenario, (scenarios.Healthy, scenarios.Overloaded)):
            continue
        for where, expr in queries():
            if with_tls == any(name in expr for name in ONLY_WITH_TLS):
                check(f"{scenario.job}, data for {where}", has_data(prometheus, expr, scenario), expr)


def check_rules(check, prometheus, played):
    for group in prometheus.ask("rules")["groups"]:
        check(f"rule group {group['name']} is evaluated", all(rule["health"] == "ok" for rule in group["rules"]),
              str([rule.get("lastError") for rule in group["rules"]]))
    for scenario in played:
        for summary in scenario.summaries:
            check(f"{scenario.job} says: {summary}", "<error" not in summary and "%!" not in summary)


def draw(prometheus, played, folder):
    from dashboards.draw import draw_dashboard  # pylint: disable=import-outside-toplevel  (matplotlib is for this only)
    from dashboards.panels import dashboards  # pylint: disable=import-outside-toplevel
    for scenario in played:
        for uid, title, panels in dashboards():
            draw_dashboard(prometheus, f"{title} ({scenario.job})", panels, scenario.job, scenario.start_s, scenario.end_s,
                           os.path.join(folder, f"{scenario.job}-{uid}.png"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--pictures")
    options = parser.parse_args()
    check = Checks()
    kinds = scenarios.SHORT if options.short else scenarios.ALL
    if options.only:
        kinds = [kind for kind in scenarios.ALL if kind.__name__ in options.only.split(",")]
    if not options.short and not options.only:
        played_alerts = set().union(*(kind.fires for kind in scenarios.ALL))
        check("each alert has a scenario", played_alerts == set(alerts()), f"differ: {played_alerts ^ set(alerts())}")
    check_written(check)
    check_names(check, options.bin)
    with tempfile.TemporaryDirectory(prefix="noren-prometheus-") as folder, Prometheus(folder) as prometheus:
        played = play(kinds, options.bin, prometheus, check)
        check_rules(check, prometheus, played)
        check_panels(check, prometheus, played)
        if options.pictures:
            draw(prometheus, played, options.pictures)
    print(f"{check.passed} passed, {check.failed} failed")
    return 1 if check.failed or not check.passed else 0


if __name__ == "__main__":
    sys.exit(main())
