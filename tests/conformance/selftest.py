#!/usr/bin/env python3
"""selftest.py NOREN_BIN: the runner on the cases in format/, which use what the format has and cases/ does not: those called
fail_... must not pass, the others must. Ends with "N passed, M failed"."""
import asyncio
import os
import sys

from run_cases import HERE, Baseline, load_cases, run


def main():
    results = asyncio.run(run(sys.argv[1], load_cases(os.path.join(HERE, "format"), None, None), Baseline()))
    right = 0
    for case, verdicts in results:
        as_meant = verdicts["noren"] != case["name"].startswith("fail_")
        right += as_meant
        print(f"{'ok  ' if as_meant else 'FAIL'} {case['name']}")
    print(f"{right} passed, {len(results) - right} failed")
    return 0 if right == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
