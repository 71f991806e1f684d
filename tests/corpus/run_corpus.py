#!/usr/bin/env python3
"""run_corpus.py NOREN [DIR]: every captured answer of the corpus through `noren observe`, whole, byte by byte and cut in
two at every place, against what is known to be in it. Ends with "N passed, N failed" and how many cuts were tried."""
import json
import os
import re
import subprocess
import sys


def sequences(asked):
    """Of each prompt."""
    return (asked or {}).get("n") or (asked or {}).get("sampling_params", {}).get("n") or 1


def observe(noren, base, request, response):
    command = [noren, "observe", "--split", "all", "--status", str(response["status"]),
               "--content-type", response["content_type"], "--sequences", str(sequences(request["body"]))]
    encoding = {k.lower(): v for k, v in response["headers"].items()}.get("content-encoding")
    if encoding:
        command += ["--content-encoding", encoding]
    run = subprocess.run(command + [base + ".body"], capture_output=True, text=True, check=False)
    return (json.loads(run.stdout) if run.returncode == 0 else {}), run.stderr


def cuts_tried(told, size):
    """How many, if it was every one that there is: also before the first byte and behind the last."""
    tried = re.search(r"cut in two at (\d+) of (\d+) places", told)
    return size + 1 if tried and int(tried[1]) == int(tried[2]) == size + 1 else None


def differences(seen, expected):
    """Types count: null is not 0, and 0 is not false."""
    return [f"{key}: expected {expected.get(key)!r}, observed {seen.get(key)!r}" for key in sorted(set(seen) | set(expected))
            if seen.get(key) != expected.get(key) or type(seen.get(key)) is not type(expected.get(key))]


def main():
    noren = sys.argv[1]
    folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "streams")
    passed = failed = cuts = 0
    for name in sorted(f[:-5] for f in os.listdir(folder) if f.endswith(".body")):
        base = os.path.join(folder, name)
        with open(base + ".json", encoding="utf-8") as file:
            case = json.load(file)
        seen, told = observe(noren, base, case["request"], case["response"])
        tried = cuts_tried(told, os.path.getsize(base + ".body"))
        wrong = differences(seen, case["expect"]) if seen else []
        if wrong or not tried:
            failed += 1
            print("FAIL", name, *wrong, told, sep="\n     ")
        else:
            passed += 1
            cuts += tried
    print(f"{passed} passed, {failed} failed; each byte by byte, and cut in two at every place, {cuts} in all")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
