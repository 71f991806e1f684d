#!/usr/bin/env python3
"""where.py BIN_DIR [--contestants relay,noren,...]: where the CPU time of an event goes, system call by system call, for
scenarios S2 and S6. Counts are strace's, of a run of its own; single costs are noren-syscall-bench's, of this machine and
this minute; the whole and its user part are the process's own clocks, without strace. What no call explains is the rest:
going to sleep and waking up, the kernel's softirq work in the sender's name, and the caches. Markdown, for
tests/bench/README.md."""
import argparse
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from compare import STREAM_WARM_UP, listed  # noqa: E402
from measure import CONTESTANTS, Bench, Costs, paced  # noqa: E402

# Under strace a call takes ten times as long: S2's events come a tenth as often there, so that they still come one by one.
SCENARIOS = {
    "S2": {"measured": ["-c", "256", "-n", "512", "--spread", "2030ms", *paced(100, 20000, 50)],
           "traced": ["-c", "256", "-n", "256", "--spread", "250ms", *paced(20, 250000, 250)],
           "base": ["-c", "256", "-n", "256", "--spread", "250ms", *paced(1, 250000, 250)]},
    "S6": {"measured": ["-c", "1", "-n", "1", *paced(600, 5000, 50)], "traced": ["-c", "1", "-n", "1", *paced(300, 5000, 50)],
           "base": ["-c", "1", "-n", "1", *paced(1, 5000, 50)]},
}
# Which single cost stands for a call. A write wakes a client that sleeps.
COSTS = {
    "epoll_wait": "epoll_wait, nothing ready", "epoll_pwait": "epoll_wait, nothing ready", "epoll_ctl": "epoll_ctl(MOD)",
    "read": "read of 250 bytes", "recvfrom": "read of 250 bytes", "recvmsg": "read of 250 bytes", "readv": "read of 250 bytes",
    "write": "write of 250 bytes that wakes a sleeping process", "sendto": "write of 250 bytes that wakes a sleeping process",
    "sendmsg": "write of 250 bytes that wakes a sleeping process", "writev": "write of 250 bytes that wakes a sleeping process",
}
NOTHING_READ = "read, nothing there (EAGAIN)"
ANY_CALL = "a system call that does nothing (getppid)"


def single_costs(bench):
    """Median us by name, from noren-syscall-bench."""
    out = subprocess.run([bench.program("noren-syscall-bench")], capture_output=True, text=True, timeout=300, check=True).stdout
    return {name: float(cost) / 1e3 for name, cost in re.findall(r"^(.+?)\s+\d+\s+(\d+)$", out, re.MULTILINE)}


def user_ticks(pids):
    """(user, system) clock ticks."""
    user = system = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        user, system = user + int(fields[11]), system + int(fields[12])
    return user, system


def measured(bench, who, load):
    """us per event, and of it in user space; None if the run has too few of the kernel's ticks to tell."""
    with bench.contestant(who) as contestant:
        bench.load(contestant.port, STREAM_WARM_UP)
        ticks, costs = user_ticks(contestant.pids), Costs(contestant, bench.engine)
        run = bench.load(contestant.port, load)
        used, after = costs.end(), user_ticks(contestant.pids)
    user, system = after[0] - ticks[0], after[1] - ticks[1]
    whole = used["cpu"]["contestant"] / run["output_tokens"] * 1e6
    return whole, whole * user / (user + system) if user + system >= 50 else None


def calls_of(bench, contestant, load):
    """(calls, errors) by name during one load, and its events."""
    trace = os.path.join(bench.folder.name, "strace.out")
    attach = [argument for pid in contestant.pids for argument in ("-p", str(pid))]
    strace = subprocess.Popen(["strace", "-c", "-f", "-o", trace, *attach],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for _ in contestant.pids:
        strace.stderr.readline()  # "attached"
    run = bench.load(contestant.port, load)
    strace.send_signal(signal.SIGINT)
    strace.communicate(timeout=30)
    with open(trace, encoding="utf-8") as file:
        rows = re.findall(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(\d+)?\s+(\w+)$", file.read(), re.MULTILINE)
    return {name: (int(calls), int(errors or 0)) for calls, errors, name in rows if name != "total"}, run["output_tokens"]


def traced(bench, who, scenario):
    """Calls and errors per event: a long run less one of an event per stream, so that heads and ends go."""
    with bench.contestant(who) as contestant:
        bench.load(contestant.port, STREAM_WARM_UP)
        base, base_events = calls_of(bench, contestant, scenario["base"])
        more, more_events = calls_of(bench, contestant, scenario["traced"])
    events = more_events - base_events
    return {name: tuple((count - base.get(name, (0, 0))[index]) / events for index, count in enumerate(both))
            for name, both in more.items()}


def table(bench, name, contestants, single):
    scenario = SCENARIOS[name]
    print(f"\n**{name}**: per event\n\n| | calls | us each | us |\n|---|--:|--:|--:|")
    for who in contestants:
        whole, user = measured(bench, who, scenario["measured"])
        left = whole - (user or 0)
        print(f"| **{who}** | | | **{whole:.1f}** |")
        for call, (calls, errors) in sorted(traced(bench, who, scenario).items(), key=lambda row: -row[1][0]):
            if calls < 0.02:
                continue
            is_read = COSTS.get(call) == "read of 250 bytes"
            parts = [(call, calls - errors, single[COSTS.get(call, ANY_CALL)])]
            if errors >= 0.02:
                parts.append((call + ", EAGAIN", errors, single[NOTHING_READ if is_read else ANY_CALL]))
            for words, count, each in parts:
                if count < 0.02:
                    continue
                print(f"| {words} | {count:.2f} | {each:.2f} | {count * each:.1f} |")
                left -= count * each
        if user is not None:
            print(f"| user space | | | {user:.1f} |")
        print(f"| {'' if user is not None else 'user space, '}sleeping, waking, softirq: the rest | | | {left:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin")
    parser.add_argument("--contestants", type=listed(CONTESTANTS[1:]), default=list(CONTESTANTS[1:]))
    parser.add_argument("--scenarios", type=listed(SCENARIOS), default=list(SCENARIOS))
    options = parser.parse_args()
    with Bench(options.bin) as bench:
        single = single_costs(bench)
        for name in options.scenarios:
            table(bench, name, options.contestants, single)
    print("\nSingle costs, CPU us (medians): " + "; ".join(f"{name} {cost:.2f}" for name, cost in single.items()))


if __name__ == "__main__":
    main()
