#!/usr/bin/env python3
"""differential.py OBSERVE_BATCH [--cases N] [--seed S] [--reference FILE]: bodies of the corpus, cut, spliced, with other
line ends, flipped bytes and repeated parts, through the streaming observer: whole and in pieces must agree with each
other, and with a reference observer (a Python file with observe(body, status, content_type, headers)) if one is given.
Ends with "N passed, N failed"."""
import argparse
import importlib.util
import json
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def load_corpus():
    folder = os.path.join(HERE, "streams")
    corpus = []
    for name in sorted(f[:-5] for f in os.listdir(folder) if f.endswith(".body")):
        with open(os.path.join(folder, name + ".body"), "rb") as file:
            body = file.read()
        with open(os.path.join(folder, name + ".json"), encoding="utf-8") as file:
            response = json.load(file)["response"]
        encodings = [v for k, v in response["headers"].items() if k.lower() == "content-encoding"]
        if not encodings and len(body) < 20_000:
            corpus.append((body, response["status"], response["content_type"]))
    return corpus


def mutate(rng, corpus):
    body, status, content_type = rng.choice(corpus)
    for _ in range(rng.randint(1, 3)):
        way = rng.randrange(6)
        at = rng.randrange(len(body) + 1)
        if way == 0:
            body = body[:at]
        elif way == 1:
            other = rng.choice(corpus)[0]
            body = body[:at] + other[rng.randrange(len(other) + 1):]
        elif way == 2:
            ends = rng.choice([b"\r\n", b"\r", b"\n"])
            body = body.replace(b"\r\n", b"\n").replace(b"\n", ends)
        elif way == 3 and body:
            flipped = bytearray(body)
            for _ in range(rng.randint(1, 4)):
                flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
            body = bytes(flipped)
        elif way == 4:
            end = min(len(body), at + rng.randrange(400))
            body = body[:end] + body[at:end] + body[end:]
        else:
            body = body[:at] + body[min(len(body), at + rng.randrange(60)):]
    return body, status, content_type


def run_batch(batch, cases, piece):
    stdin = b"".join(b"%d %d %d %s\n" % (status, piece, len(body), content_type.encode()) + body
                     for body, status, content_type in cases)
    out = subprocess.run([batch], input=stdin, capture_output=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def load_reference(path):
    spec = importlib.util.spec_from_file_location("reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.observe


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("batch")
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reference")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    corpus = load_corpus()
    cases = [mutate(rng, corpus) for _ in range(options.cases)]
    whole = run_batch(options.batch, cases, 0)
    judges = {f"pieces of {piece}": run_batch(options.batch, cases, piece) for piece in (1, 7)}
    if options.reference:
        observe = load_reference(options.reference)
        # A reference that cannot say (it is no model of robustness) has no opinion.
        judges["the reference"] = []
        for body, status, content_type in cases:
            try:
                judges["the reference"].append(observe(body, status, content_type, {}))
            except (TypeError, AttributeError, RecursionError):
                judges["the reference"].append(None)
    failed = no_opinion = 0
    for index, seen in enumerate(whole):
        for who, verdicts in judges.items():
            if verdicts[index] is None:
                no_opinion += 1
            elif verdicts[index] != seen:
                failed += 1
                if failed <= 5:
                    keys = [k for k in seen if seen[k] != verdicts[index][k]]
                    print(f"case {index} (seed {options.seed}), against {who}:",
                          *(f"{k}: {seen[k]!r}, not {verdicts[index][k]!r}" for k in keys), sep="\n     ")
                    print("     body:", cases[index][0][:3000])
                break
    if no_opinion:
        print(f"the reference had no opinion on {no_opinion}")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
