#!/usr/bin/env python3
"""campaign.py BIN_DIR WORK_DIR [--seconds S | --cpu-minutes M [--resume]] [--jobs N] [--idle] [TARGET...]: runs the fuzz targets in BIN_DIR
(all if none is named), each from WORK_DIR/corpus/TARGET and with its log in WORK_DIR/TARGET.log. Prints what each did as it
ends and the totals. A finding stops its target and stays as WORK_DIR/TARGET-crash-..., -timeout-... or the like.

--cpu-minutes counts the user time of the fuzzing process, whatever else the machine does meanwhile; --resume counts on from
where the logs of a campaign end that was broken off; --idle lets it have only what nobody else wants."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

# One round is at least so long, as it begins with reading the whole corpus.
SHORTEST_ROUND = 30
# Memory without bound or a loop without end is a finding too. libFuzzer measures a unit by the wall clock, and an idle
# process may wait for its turn for long.
TIMEOUT, TIMEOUT_IDLE, MEMORY_MIB = 10, 300, 1024
FINDINGS = ("crash", "timeout", "oom", "leak")  # as libFuzzer names the inputs that it keeps
TESTS = pathlib.Path(__file__).resolve().parent


class Target:
    """One fuzz target and what its rounds came to."""

    def __init__(self, program, work, idle):
        self.name = program.name.removeprefix("fuzz-")
        self.program, self.work, self.idle = program, work, idle
        self.corpus, self.log = work / "corpus" / self.name, work / f"{self.name}.log"
        self.corpus.mkdir(parents=True, exist_ok=True)
        self.options = [f"-artifact_prefix={work}/{self.name}-", f"-timeout={TIMEOUT_IDLE if idle else TIMEOUT}",
                        f"-rss_limit_mb={MEMORY_MIB}", "-max_len=16384", "-print_final_stats=1"]
        dictionary = TESTS / f"{self.name}.dict"
        if dictionary.exists():
            self.options.append(f"-dict={dictionary}")
        self.runs, self.cpu, self.clean = 0, 0.0, True

    def round(self, seconds):
        """Fuzzes for so long by the wall clock; adds up the executions and the user time."""
        begin = self.log.stat().st_size
        command = [str(self.program), f"-max_total_time={seconds}", *self.options, str(self.corpus)]
        with open(self.log, "ab") as log:
            process = subprocess.Popen((["chrt", "--idle", "0"] if self.idle else []) + command, stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        with open(self.log, encoding="utf-8", errors="replace") as log:
            log.seek(begin)
            found = re.search(r"^stat::number_of_executed_units: *(\d+)", log.read(), re.M)
        self.runs += int(found[1]) if found else 0
        self.cpu += usage.ru_utime
        self.clean = process.returncode == 0

    def resume(self):
        """Where the log says that the rounds so far have come to."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        if sums := re.findall(r"^campaign: ([0-9]+) of [0-9]+ CPU-seconds, ([0-9]+) runs$", text, re.M):
            self.cpu, self.runs = float(sums[-1][0]), int(sums[-1][1])
        self.clean = not any(list(self.work.glob(f"{self.name}-{kind}-*")) for kind in FINDINGS)

    def run(self, seconds, cpu_seconds, resume):
        """For so many seconds, or until so many seconds of user time are used, or until something is found."""
        if resume:
            self.resume()
        if self.cpu == 0:
            self.log.write_text("")
        if not cpu_seconds:
            self.round(seconds)
            return self
        while self.clean and self.cpu < cpu_seconds:
            self.round(max(SHORTEST_ROUND, int(cpu_seconds - self.cpu)))
            with open(self.log, "a", encoding="utf-8") as log:
                print(f"campaign: {self.cpu:.0f} of {cpu_seconds:.0f} CPU-seconds, {self.runs} runs", file=log)
        return self

    def tail(self):
        return "".join("      " + line for line in self.log.read_text(errors="replace").splitlines(keepends=True)[-30:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--seconds", type=int, default=15)
    parser.add_argument("--cpu-minutes", type=float, default=0)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--idle", action="store_true")
    options = parser.parse_intermixed_args()
    programs = sorted(options.bin.glob("fuzz-*"))
    if options.targets:
        programs = [options.bin / f"fuzz-{name}" for name in options.targets]
    missing = [str(program) for program in programs if not program.exists()]
    if missing or not programs:
        sys.exit(f"no such target: {' '.join(missing) or options.bin}")
    begin, targets = time.monotonic(), []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(Target(program, options.work, options.idle).run, options.seconds, options.cpu_minutes * 60,
                            options.resume) for program in programs]
        for job in concurrent.futures.as_completed(jobs):
            target = job.result()
            targets.append(target)
            print(f"{'ok   ' if target.clean else 'FAIL '} {target.name:16} {target.runs:>12,} runs in {target.cpu / 60:6.2f} "
                  f"CPU-minutes, {len(list(target.corpus.iterdir())):,} inputs kept", flush=True)
            if not target.clean:
                print(target.tail(), flush=True)
    passed = sum(target.clean for target in targets)
    print(f"\n{sum(t.runs for t in targets):,} runs in {sum(t.cpu for t in targets) / 60:.1f} CPU-minutes, "
          f"{(time.monotonic() - begin) / 60:.1f} minutes by the clock")
    print(f"{passed} passed, {len(targets) - passed} failed")
    return 0 if passed == len(targets) else 1


if __name__ == "__main__":
    sys.exit(main())
