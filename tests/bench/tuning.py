#!/usr/bin/env python3
"""tuning.py BIN_DIR [--seconds N] [--picture FILE.png]: the tuning loop on the simulated engine. 72 clients that always ask
again, and a limit that is raised while they do, by editing the config file; after each step the questions of the README's
table go to a real Prometheus. Prints the table. Two and a half minutes; the picture needs matplotlib."""
import argparse
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.harness import Stack, wait_for  # noqa: E402
from support.prometheus import Prometheus  # noqa: E402

LIMITS = (16, 32, 40, 48, 56, 64)
CLIENTS = 72
TTFT_S, TPS = 2.5, 25  # what the service promises
# A step takes 12 ms + 0.4 ms for each sequence in the batch: a stream by itself gets 80 tokens a second, one of 64 gets 26.
ENGINE = ("--max-batch", "256")
LOAD = ("-c", str(CLIENTS), "--max-tokens", "60:140", "--prompt-words", "50:150", "--duration", "10m")

QUESTIONS = {
    "running": "sum(avg_over_time(noren_running_requests[{w}]))",
    "waiting": "sum(avg_over_time(noren_queued_requests[{w}]))",
    "throughput": "sum(rate(noren_output_tokens_total[{w}]))",
    "ttft": "histogram_quantile(0.95, sum by (le) (rate(noren_time_to_first_token_seconds_bucket[{w}])))",
    "engine": "histogram_quantile(0.95, sum by (le) (rate(noren_upstream_time_to_first_token_seconds_bucket[{w}])))",
    "tps": "histogram_quantile(0.5, sum by (le) (rate(noren_request_output_tokens_per_second_bucket[{w}])))",
    "rate": "sum(rate(noren_request_duration_seconds_count[{w}]))",
    "seconds": "sum(rate(noren_request_duration_seconds_sum[{w}])) / sum(rate(noren_request_duration_seconds_count[{w}]))",
}
HEAD = """\
| limit | running | waiting | arrivals x time | tok/s | TTFT p95 | of it in the engine | tok/s of a stream | tok/s as promised |
| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"""


def set_limit(stack, limit):
    stack.write_config(f"admission: {{max_concurrency: {limit}, max_queue: 256}}")
    wait_for("the new limit", lambda: stack.metrics()["noren_concurrency_limit"] == limit)


def share_as_promised(lines):
    """The part of the output tokens that came in answers which kept both promises."""
    kept = sum(line["output_tokens"] for line in lines if line["ttft_ms"] <= TTFT_S * 1e3 and line.get("tps", TPS) >= TPS)
    return kept / sum(line["output_tokens"] for line in lines)


def measure(stack, prometheus, limit, seconds):
    """One row. The first third of the time is for what was there before to go away."""
    set_limit(stack, limit)
    time.sleep(seconds / 3)
    known = len(stack.access_log())
    time.sleep(seconds * 2 / 3)
    answers = {name: prometheus.value(query.format(w=f"{int(seconds * 2 / 3)}s")) for name, query in QUESTIONS.items()}
    promised = answers["throughput"] * share_as_promised(stack.access_log()[known:])
    return (f"| {limit} | {answers['running']:.0f} | {answers['waiting']:.0f} | {answers['rate'] * answers['seconds']:.0f} | "
            f"{answers['throughput']:.0f} | {answers['ttft']:.1f} s | {answers['engine'] * 1e3:.0f} ms | {answers['tps']:.0f} | "
            f"{promised:.0f} |")


def draw(prometheus, start, end, path):
    from dashboards.draw import draw_dashboard  # pylint: disable=import-outside-toplevel  (matplotlib is for this only)
    from dashboards.panels import dashboards  # pylint: disable=import-outside-toplevel
    capacity = next(panels for uid, _, panels in dashboards() if uid == "noren-capacity")
    titles = ("Running, waiting, limit", "TTFT p95", "Throughput and speed of a stream", "Throughput against concurrency",
              "Speed of one stream against concurrency", "Little's law check")
    chosen = [next(panel for panel in capacity if panel["title"] == title) for title in titles]
    for index, panel in enumerate(chosen):
        panel["gridPos"] = {"x": index % 3 * 8, "y": index // 3 * 8, "w": 8, "h": 8}
    title = f"{CLIENTS} clients, and a limit of {', '.join(map(str, LIMITS[:-1]))} and {LIMITS[-1]}"
    draw_dashboard(prometheus, title, chosen, "tuning", start, end, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin")
    parser.add_argument("--seconds", type=float, default=24, help="of each step")
    parser.add_argument("--picture")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Prometheus(folder) as prometheus, Stack(options.bin, sim_args=ENGINE) as stack:
        set_limit(stack, LIMITS[0])
        prometheus.watch("tuning", stack.ops)
        load = subprocess.Popen([os.path.join(options.bin, "noren-load"), "--url", f"http://127.0.0.1:{stack.port}", *LOAD],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            start = time.time()
            print(HEAD)
            for limit in LIMITS:
                print(measure(stack, prometheus, limit, options.seconds), flush=True)
            if options.picture:
                draw(prometheus, start + options.seconds * 2 / 3, time.time(), options.picture)
        finally:
            load.kill()
            load.wait()


if __name__ == "__main__":
    main()
