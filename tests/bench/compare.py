#!/usr/bin/env python3
"""compare.py BIN_DIR [--rounds N | --short] [--scenarios S2,S3] [--contestants relay,noren] [--json FILE] [--chart FILE.svg]

What a token costs that goes through noren, next to nothing in between (direct), a raw relay (the floor), nginx and HAProxy,
one worker each. noren has everything on: observation, the access log in a file, a scrape each second. In every round each
contestant runs each scenario once, in turn; medians are told, and ratios of the same round. tests/bench/README.md says what the
scenarios are and what limits them. Nothing here passes or fails by time; a byte that is not the engine's does fail."""
import argparse
import contextlib
import json
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from chart import draw  # noqa: E402
from measure import (CONTESTANTS, DROP_TRAILERS, RELAY_OF_TWO, Bench, Costs, Scraper, get, paced, pss_kib,  # noqa: E402
                     report_of)

PROMPT_BYTES = 256 * 1024
STREAM_WARM_UP = ["-c", "16", "-n", "64", *paced(100, 0)]
PLAIN = ["--no-stream", "-H", "x-sim-bytes: 1024", *paced(1, 0)]
# unit: what CPU is told per. hold: memory is read once so many streams run.
SCENARIOS = {
    "S1": {"title": "flood: 64 streams of 2,000 events without pause", "unit": "event",
           "load": ["-c", "64", "--duration", "1500ms", "--spread", "100ms", *paced(2000, 0)]},
    "S2": {"title": "256 streams, 20 ms between events, phases spread", "unit": "event",
           "load": ["-c", "256", "-n", "512", "--spread", "2030ms", *paced(100, 20000, 50)]},
    "S2b": {"title": "256 streams in lock-step, a batch every 20 ms", "unit": "event",
            "load": ["-c", "256", "-n", "512", "-H", "x-sim-tokens: 100"]},
    "S3": {"title": "4,000 slow streams, 250 ms between events", "unit": "event", "hold": 4000,
           "load": ["-c", "4000", "-n", "4000", "--spread", "2500ms", *paced(20, 250000, 50)]},
    "S4": {"title": "plain answers of 1 KB, 64 connections", "unit": "request",
           "load": ["-c", "64", "--duration", "1500ms", "--spread", "50ms", *PLAIN]},
    "S5": {"title": "prompts of 256 KiB, 64 connections", "unit": "MB",
           "load": ["-c", "64", "--duration", "2s", "--spread", "100ms", *PLAIN]},
    "S6": {"title": "one stream, 5 ms between events", "unit": "event", "load": ["-c", "1", "-n", "1", *paced(500, 5000, 50)]},
}
# (scenario, words, key of a measurement, taken off direct's, what issue and README ask for)
FIGURES = [
    ("S1", "CPU us/event", "cpu_us", False, "1.10 x relay"),
    ("S2", "CPU us/event", "cpu_us", False, "1.10 x relay"),
    ("S2", "added delay p50 us", "p50_us", True, ""),
    ("S2", "added delay p99 us", "p99_us", True, "1.10 x relay"),
    ("S2b", "CPU us/event", "cpu_us", False, "1.10 x relay"),
    ("S2b", "added delay p50 us", "p50_us", True, "HAProxy"),
    ("S2b", "added delay p99 us", "p99_us", True, "HAProxy"),
    ("S3", "KiB/stream", "kib_per_stream", False, "HAProxy"),
    ("S3", "CPU us/event", "cpu_us", False, "1.10 x relay"),
    ("S4", "CPU us/request", "cpu_us", False, "1.40 x relay"),
    ("S4", "added time p50 us", "p50_us", True, ""),
    ("S5", "CPU us/MB", "cpu_us", False, "1.20 x relay"),
    ("S6", "CPU us/event", "cpu_us", False, ""),
    ("S6", "added delay p50 us", "p50_us", True, "HAProxy"),
    ("S6", "added delay p99 us", "p99_us", True, "relay"),
]


def write_prompt(folder):
    """A request of a long conversation, for noren-load --prompts."""
    words = "What is written on the noren of the noodle shop at the corner? "
    path = os.path.join(folder, "prompt.jsonl")
    body = {"model": "sim-7b", "max_tokens": 1, "messages": [{"role": "user", "content": ""}]}
    body["messages"][0]["content"] = (words * (PROMPT_BYTES // len(words) + 1))[:PROMPT_BYTES - len(json.dumps(body))]
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps({"body": body}) + "\n")
    return path


def arguments_of(name, bench):
    load = SCENARIOS[name]["load"]
    return [*load, "--prompts", write_prompt(bench.folder.name)] if name == "S5" else load


def hold(bench, load, contestant, streams):
    """Memory once that many streams run, a second later: (KiB, how many run)."""
    def active():
        # An engine that is too busy to say so will be asked again.
        with contextlib.suppress(OSError):
            return json.loads(get(bench.engine.port, "/sim/state"))["active"]
        return 0
    while load.poll() is None:
        if active() >= streams:
            time.sleep(1)
            return pss_kib(contestant.pids if contestant else []), active()
        time.sleep(0.1)
    return None, 0


def units_of(scenario, run):
    if scenario["unit"] == "event":
        return run["output_tokens"]
    return run["ok"] * (PROMPT_BYTES / 1e6 if scenario["unit"] == "MB" else 1)


def measure(bench, who, name):
    """One contestant, one scenario, once."""
    scenario, result = SCENARIOS[name], {}
    with contextlib.ExitStack() as stack:
        contestant = stack.enter_context(bench.contestant(who))
        port = contestant.port if contestant else bench.engine.port
        bench.load(port, STREAM_WARM_UP if scenario["unit"] == "event" else ["-c", "16", "-n", "200", *PLAIN])
        if who == "noren":
            stack.enter_context(Scraper(contestant.ops))
        before = pss_kib(contestant.pids) if contestant else 0
        costs = Costs(contestant, bench.engine)
        load = bench.start_load(port, arguments_of(name, bench))
        if "hold" in scenario:
            memory, streams = hold(bench, load, contestant, scenario["hold"])
            if streams and contestant:
                result["kib_per_stream"] = (memory - before) / streams
        run = report_of(load)
        used = costs.end()
    units, broken = units_of(scenario, run), run["broken"]
    if who not in DROP_TRAILERS:
        broken += run["unchecked"]
    times = run["delay_seconds"] if scenario["unit"] == "event" else run["e2e_seconds"]
    result |= {"units": units, "units_per_second": units / run["seconds"], "broken": broken, "errors": run["errors"],
               "p50_us": times["p50"] * 1e6, "p99_us": times["p99"] * 1e6, "cores": used["cores"],
               "engine_us": used["cpu"]["engine"] / units * 1e6, "load_us": used["cpu"]["load"] / units * 1e6}
    if contestant:
        result["cpu_us"] = used["cpu"]["contestant"] / units * 1e6
    return result


def values(rounds, name, who, key, added):
    """Of each round, None where there is none."""
    all_of = rounds[name].get(who, [])
    direct = rounds[name].get("direct", [])
    found = []
    for number, one in enumerate(all_of):
        value = one.get(key)
        if added and value is not None:
            value = value - direct[number][key] if number < len(direct) else None
        found.append(value)
    return found


def median(numbers):
    numbers = [number for number in numbers if number is not None]
    return statistics.median(numbers) if numbers else None


def ratio(over, under):
    """Of each round, then the median; a floor of 0 or less has no ratio."""
    return median([a / b if a is not None and b is not None and b > 0 else None for a, b in zip(over, under)])


def shown(number, digits=1):
    return "-" if number is None else f"{number:.{digits}f}" if abs(number) < 100 else f"{number:,.0f}"


def summary(rounds, contestants):
    """The figures: medians by contestant, ratios to the relay."""
    rows = []
    proxies = [who for who in contestants if who != "direct"]
    for name, words, key, added, goal in FIGURES:
        if name not in rounds or (added and "direct" not in contestants):
            continue
        series = {who: values(rounds, name, who, key, added) for who in proxies}
        rows.append({"scenario": name, "figure": words, "goal": goal, "medians": {who: median(series[who]) for who in proxies},
                     "to_relay": {who: ratio(series[who], series["relay"]) for who in proxies} if "relay" in series else {},
                     "rounds": series})
    return rows


def print_tables(rounds, rows, contestants):
    proxies = [who for who in contestants if who != "direct"]
    print("\n| scenario | figure | " + " | ".join(proxies) + " | " + " | ".join(f"{who} / relay" for who in proxies[1:]) +
          " | goal |\n|---|---|" + "--:|" * (2 * len(proxies) - 1) + "---|")
    for row in rows:
        cells = [row["scenario"], row["figure"], *(shown(row["medians"][who]) for who in proxies),
                 *(shown(row["to_relay"].get(who), 2) for who in proxies[1:]), row["goal"] and "<= " + row["goal"]]
        print("| " + " | ".join(cells) + " |")
    print("\nWho was busy, in cores (with noren in between), and what noise there was:\n\n"
          "| scenario | noren | engine | load | units/s direct | units/s noren | direct p50 / p99 us | foreign, median / most |\n"
          "|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, by in rounds.items():
        last = by.get("noren") or by[proxies[-1]]
        foreign = [one["cores"]["foreign"] for all_of in by.values() for one in all_of]
        direct = by.get("direct", [])
        cores = [shown(median([one["cores"][who] for one in last]), 2) for who in ("contestant", "engine", "load")]
        rates = [shown(median([one["units_per_second"] for one in all_of])) for all_of in (direct, last)]
        delays = " / ".join(shown(median([one[key] for one in direct])) for key in ("p50_us", "p99_us"))
        noise = f"{shown(median(foreign), 2)} / {shown(max(foreign), 2)}"
        print("| " + " | ".join([f"{name}: {SCENARIOS[name]['title']}", *cores, *rates, delays, noise]) + " |")


def run_rounds(bench, options):
    rounds = {name: {who: [] for who in options.contestants} for name in options.scenarios}
    for number in range(options.rounds):
        for name in options.scenarios:
            # Another one is first in each round: nobody always comes after the same neighbour.
            turn = number % len(options.contestants)
            for who in options.contestants[turn:] + options.contestants[:turn]:
                one = measure(bench, who, name)
                rounds[name][who].append(one)
                print(f"round {number + 1}  {name:3} {who:8} {shown(one.get('cpu_us')):>7} us/{SCENARIOS[name]['unit']}  "
                      f"p50 {shown(one['p50_us'])} p99 {shown(one['p99_us'])} us  foreign {one['cores']['foreign']:.2f} cores"
                      + (f"  BROKEN {one['broken']} {one['errors']}" if one["broken"] else ""), flush=True)
    return rounds


def listed(known):
    def parse(text):
        names = text.split(",")
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: expected some of {', '.join(known)}")
        return names
    return parse


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--short", action="store_true", help="one round")
    parser.add_argument("--scenarios", type=listed(SCENARIOS), default=list(SCENARIOS))
    parser.add_argument("--contestants", type=listed((*CONTESTANTS, RELAY_OF_TWO)), default=list(CONTESTANTS))
    parser.add_argument("--json")
    parser.add_argument("--chart")
    options = parser.parse_args()
    options.rounds = 1 if options.short else options.rounds
    with Bench(options.bin) as bench:
        rounds = run_rounds(bench, options)
    rows = summary(rounds, options.contestants)
    print_tables(rounds, rows, options.contestants)
    if options.json:
        titles = {name: SCENARIOS[name]["title"] for name in options.scenarios}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"when": time.strftime("%F %T"), "cpus": os.cpu_count(), "kernel": os.uname().release,
                       "rounds": options.rounds, "scenarios": titles, "figures": rows, "measurements": rounds}, file, indent=1)
    if options.chart:
        draw(rows, options.chart)
    broken = sum(one["broken"] for by in rounds.values() for all_of in by.values() for one in all_of)
    print(f"\n{options.rounds} round(s); every byte was checked (nginx: no, it drops the trailer with the hash); "
          f"{broken} answers broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
