#!/usr/bin/env python3
"""scrape.py BIN_DIR [--rounds N]: does a scrape delay tokens? A full registry (32 models, the usual limit, in every
endpoint), then 8 streams with an event every 5 ms, with no scrape, with one a second and with ten, interleaved. The aim is an
ITL p99 within 5 %. Only told, as it is a time. What is checked: the registry is full, and no answer was broken."""
import argparse
import contextlib
import json
import os
import sys
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from compare import median  # noqa: E402
from measure import Bench, Scraper, get, paced  # noqa: E402

MODELS = 32
LOAD = ["-c", "8", "-n", "8", "--spread", "5ms", *paced(600, 5000, 20)]
APIS = ["chat", "completions", "responses", "messages"]


def fill(bench, port):
    """All models through all endpoints that stream."""
    for model in range(MODELS):
        for api in APIS:
            bench.load(port, ["-c", "1", "-n", "1", "--api", api, "--model", f"model-{model}", *paced(3, 0)])
    body = json.dumps({"model": "model-0", "input": "text"}).encode()
    for path in ("/v1/embeddings", "/v1/rerank"):
        with contextlib.suppress(OSError), urllib.request.urlopen(urllib.request.Request(
                f"http://127.0.0.1:{port}{path}", body, {"Content-Type": "application/json"}), timeout=10) as answer:
            answer.read()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    found = {0: [], 1: [], 10: []}
    with Bench(options.bin) as bench, bench.contestant("noren") as noren:
        fill(bench, noren.port)
        start = time.monotonic()
        page = get(noren.ops, "/metrics")
        took = time.monotonic() - start
        models = {line.split('model="')[1].split('"')[0] for line in page.splitlines() if 'model="model-' in line}
        if len(models) != MODELS:
            raise RuntimeError(f"{len(models)} models in the registry, not {MODELS}")
        for _ in range(options.rounds):
            for rate, runs in found.items():
                with Scraper(noren.ops, 1 / rate) if rate else contextlib.nullcontext():
                    run = bench.load(noren.port, LOAD)
                if run["broken"]:
                    raise RuntimeError(f"{run['broken']} answers broken: {run['errors']}")
                runs.append(run)
    print(f"a page of {len(page) / 1024:.0f} KiB, {len(models)} models, scraped in {took * 1e3:.1f} ms")
    print("| scrapes per s | ITL p50 ms | ITL p99 ms | p99 to none | delay p99 us |\n|--:|--:|--:|--:|--:|")
    for rate, runs in found.items():
        delay = median([run["delay_seconds"]["p99"] for run in runs])
        p99 = [run["itl_seconds"]["p99"] for run in runs]
        ratio = median([a / b["itl_seconds"]["p99"] for a, b in zip(p99, found[0])])
        print(f"| {rate} | {median([run['itl_seconds']['p50'] for run in runs]) * 1e3:.3f} | {median(p99) * 1e3:.3f} | "
              f"{ratio:.3f} | {delay * 1e6:.0f} |")


if __name__ == "__main__":
    main()
