#!/usr/bin/env python3
"""differential.py OBSERVE_BATCH [--cases N] [--seed S] [--reference FILE]: bodies of the corpus, cut, spliced, with other
line ends, flipped bytes, repeated parts and changed JSON, through the streaming observer: whole and in pieces must agree
with each other, and with a reference observer (a Python file with observe(body, status, content_type, headers)), which is
the one beside this file if no other is given. A body on which the reference breaks does not count: another one is drawn
for it. Ends with "N passed, N failed"."""
import argparse
import copy
import importlib.util
import json
import os
import random
import re
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


ODD_VALUES = [None, "", " ", "x", "none", "stop", "error", "\ud83d\ude00", "\ud800", 0, 1, 5, -3, 2.5, 1e300, True, False, [],
              [""], ["x"], [1], [[]], [{}], {}, {"text": "x"}, {"text": ""}, [{"type": "text", "text": "x"}], float("nan")]


def odd_value(rng):
    return copy.deepcopy(rng.choice(ODD_VALUES))


def places(value):
    """(container, key) of every value inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in list(inside):
        yield value, key
        yield from places(child)


def change_json(rng, document, keys):
    """Anything may stand where something else is expected."""
    for _ in range(rng.randint(1, 3)):
        spots = list(places(document))
        if not spots:
            return document
        container, key = rng.choice(spots)
        way = rng.randrange(5)
        if way == 0:
            del container[key]
        elif way == 1:
            container[key] = odd_value(rng)
        elif way == 2:
            other, other_key = rng.choice(spots)
            container[key] = copy.deepcopy(other[other_key])
        elif isinstance(container, dict):
            value = container.pop(key) if way == 3 else odd_value(rng)
            container[rng.choice(keys)] = value
        else:
            container.append(odd_value(rng))
    return document


def change_event(rng, body, keys):
    lines = body.splitlines(keepends=True)
    at = rng.randrange(len(lines)) if lines else 0
    for index in [*range(at, len(lines)), *range(at)]:
        line = lines[index]
        brace = line.find(b"{")
        try:
            document = json.loads(line[max(brace, 0):])
        except ValueError:
            continue
        text = json.dumps(change_json(rng, document, keys), separators=rng.choice([(",", ":"), (", ", ": ")]))
        if rng.randrange(4) == 0 and text.startswith("{") and len(text) > 2:
            # Of keys that come twice the last counts.
            text = "{" + json.dumps(rng.choice(keys)) + ":" + json.dumps(odd_value(rng)) + "," + text[1:]
        lines[index] = line[:max(brace, 0)] + text.encode() + b"\n"
        return b"".join(lines)
    return body


def keys_of(corpus):
    words = set()
    for body, _, _ in corpus:
        words.update(re.findall(rb'"([a-z_]{1,30})":', body))
    return sorted(word.decode() for word in words)


def mutate(rng, corpus, keys):
    body, status, content_type = rng.choice(corpus)
    if rng.randrange(3) == 0:
        return change_event(rng, body, keys), status, content_type
    for _ in range(rng.randint(1, 3)):
        way = rng.randrange(7)
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
        elif way == 5:
            body = change_event(rng, body, keys)
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


def as_shown(seen):
    """noren writes UTF-8, which has no lone surrogates."""
    return {key: value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace") if isinstance(value, str)
            else value for key, value in seen.items()}


def opinion(observe, case):
    """What the reference sees; nothing if it breaks on the body, as one may that is no model of robustness."""
    body, status, content_type = case
    try:
        return as_shown(observe(body, status, content_type, {}))
    except Exception:  # pylint: disable=broad-except
        return None


def draw_cases(rng, observe, wanted):
    """Mutated bodies with the reference's opinion on each, until it has one on as many as wanted (or plainly never will)."""
    corpus = load_corpus()
    keys = keys_of(corpus)
    cases, opinions, judged = [], [], 0
    while judged < wanted and len(cases) < 10 * wanted:
        case = mutate(rng, corpus, keys)
        cases.append(case)
        opinions.append(opinion(observe, case))
        judged += opinions[-1] is not None
    return cases, opinions


def first_difference(seen, judges):
    """(who, what it saw) of the first judge that saw something else; one without an opinion has none to differ by."""
    return next(((who, verdict) for who, verdict in judges.items() if verdict not in (None, seen)), None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("batch")
    parser.add_argument("--cases", type=int, default=20_000, help="to compare with the reference")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reference", default=os.path.join(HERE, "reference_observer.py"))
    options = parser.parse_args()
    cases, opinions = draw_cases(random.Random(options.seed), load_reference(options.reference), options.cases)
    whole, single, sevens = (run_batch(options.batch, cases, piece) for piece in (0, 1, 7))
    passed = failed = no_opinion = 0
    for index, (seen, *verdicts) in enumerate(zip(whole, single, sevens, opinions)):
        difference = first_difference(seen, dict(zip(("pieces of 1", "pieces of 7", "the reference"), verdicts)))
        if difference:
            failed += 1
            if failed <= 5:
                who, verdict = difference
                print(f"case {index} (seed {options.seed}), against {who}:",
                      *(f"{k}: {seen[k]!r}, not {verdict[k]!r}" for k in seen if seen[k] != verdict[k]), sep="\n     ")
                print("     body:", cases[index][0][:3000])
        elif opinions[index] is None:
            no_opinion += 1
        else:
            passed += 1
    print(f"no opinion of the reference: {no_opinion} more bodies, which were only compared whole and in pieces")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or passed < options.cases else 0


if __name__ == "__main__":
    sys.exit(main())
