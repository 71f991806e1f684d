#!/usr/bin/env python3
"""run_corpus.py NOREN [DIR]: every captured answer of the corpus through `noren observe`, whole, byte by byte and cut at
every position, against what is known to be in it. Ends with "N passed, N failed"."""
import json
import os
import subprocess
import sys


def observe(noren, base, response):
    command = [noren, "observe", "--split", "all", "--status", str(response["status"]),
               "--content-type", response["content_type"]]
    encoding = {k.lower(): v for k, v in response["headers"].items()}.get("content-encoding")
    if encoding:
        command += ["--content-encoding", encoding]
    run = subprocess.run(command + [base + ".body"], capture_output=True, text=True, check=False)
    return json.loads(run.stdout) if run.returncode == 0 else run.stderr


def main():
    noren = sys.argv[1]
    folder = sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "streams")
    passed = failed = 0
    for name in sorted(f[:-5] for f in os.listdir(folder) if f.endswith(".body")):
        base = os.path.join(folder, name)
        with open(base + ".json", encoding="utf-8") as file:
            case = json.load(file)
        seen = observe(noren, base, case["response"])
        wrong = [seen] if isinstance(seen, str) else [
            f"{key}: expected {case['expect'].get(key)!r}, observed {seen.get(key)!r}"
            for key in sorted(set(seen) | set(case["expect"])) if seen.get(key) != case["expect"].get(key)
            or type(seen.get(key)) is not type(case["expect"].get(key))]
        if wrong:
            failed += 1
            print("FAIL", name, *wrong, sep="\n     ")
        else:
            passed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
