#!/usr/bin/env python3
"""reload.py BIN_DIR [--changes N] [--streams N]: changes of the concurrency limit by every way a file can change, under
load; the limit in force must follow, no request may fail, and a broken file must change nothing and say so. Ends with
"N passed, N failed"."""
import argparse
import json
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.harness import Stack, wait_for  # noqa: E402


def text_of(stack, limit):
    return (f"control: {{socket: {stack.control}}}\nlog: {{access: {stack.access_file}}}\n"
            f"admission: {{max_concurrency: {limit}}}\n")


def in_place(stack, text):
    with open(stack.config_file, "r+", encoding="utf-8") as file:
        file.write(text)
        file.truncate()


def rename(stack, text):
    with open(stack.config_file + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(stack.config_file + ".new", stack.config_file)


def editor(stack, text):
    """As vim saves: the old file becomes a backup, a new one is written under the name."""
    os.rename(stack.config_file, stack.config_file + "~")
    with open(stack.config_file, "w", encoding="utf-8") as file:
        file.write(text)
    os.unlink(stack.config_file + "~")


class ConfigMap:
    """As kubelet updates a mounted ConfigMap: a new directory, and the ..data link swapped over to it."""

    def __init__(self):
        self.version = 0

    def __call__(self, stack, text):
        folder = os.path.dirname(stack.config_file)
        self.version += 1
        fresh = os.path.join(folder, f"..v{self.version}")
        os.makedirs(fresh)
        with open(os.path.join(fresh, "noren.yaml"), "w", encoding="utf-8") as file:
            file.write(text)
        os.symlink(os.path.basename(fresh), os.path.join(folder, "..data_tmp"))
        os.rename(os.path.join(folder, "..data_tmp"), os.path.join(folder, "..data"))
        if not os.path.islink(stack.config_file):
            os.unlink(stack.config_file)
            os.symlink(os.path.join("..data", "noren.yaml"), stack.config_file)


class Load:
    """noren-load in the background until stopped."""

    def __init__(self, stack, streams, seconds):
        command = [os.path.join(stack.bin, "noren-load"), "--url", f"http://127.0.0.1:{stack.port}", "-c", str(streams),
                   "--duration", f"{seconds}s", "--max-tokens", "8:40", "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def result(self):
        out, _ = self.process.communicate(timeout=600)
        return json.loads(out)["runs"][0]


def change_often(stack, way, changes):
    """Seconds from each change to the limit being in force."""
    took = []
    for index in range(changes):
        limit = 20 + index % 2 * 20 + (index % 7)
        way(stack, text_of(stack, limit))
        start = time.monotonic()
        wait_for(f"limit {limit}", lambda: stack.metrics()["noren_concurrency_limit"] == limit, 10)
        took.append(time.monotonic() - start)
    return took


def ctl(stack, *command):
    return subprocess.run([os.path.join(stack.bin, "noren"), "ctl", *command, "--socket", stack.control],
                          capture_output=True, text=True, timeout=30, check=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--streams", type=int, default=64)
    options = parser.parse_args()
    results = []

    def check(what, good, detail=""):
        results.append(bool(good))
        print(("ok   " if good else "FAIL ") + what, detail)

    with Stack(options.bin, sim_args=["--ttft", "0.01", "--tps", "200"]) as stack:
        for name, way in (("in-place edit", in_place), ("atomic rename", rename), ("editor save", editor),
                          ("ConfigMap ..data swap", ConfigMap())):
            load = Load(stack, options.streams, 2 + options.changes * 0.3)
            took = sorted(change_often(stack, way, options.changes))
            run = load.result()
            check(f"{name}: {options.changes} changes", took[-1] < 6, f"slowest {took[-1] * 1e3:.0f} ms, median {took[len(took) // 2] * 1e3:.0f} ms")
            check(f"{name}: no request failed", run["ok"] == run["requests"] and not run["errors"],
                  f"{run['ok']} of {run['requests']} whole, p99 TTFT {run['ttft_seconds']['p99'] * 1e3:.0f} ms")

        in_force = stack.metrics()["noren_concurrency_limit"]
        rename(stack, text_of(stack, '"many"') + "admision: {}\n")
        wait_for("the mistake to be seen", lambda: stack.metrics()["noren_config_last_reload_successful"] == 0)
        check("a broken file changes nothing", stack.metrics()["noren_concurrency_limit"] == in_force)
        check("... and the log names every mistake", "admission.max_concurrency" in stack.noren_log() and
              "admision" in stack.noren_log())
        status = ctl(stack, "status")
        check("... and so does noren ctl status", status.returncode == 0 and "max_concurrency" in status.stdout)
        refused = ctl(stack, "reload")
        check("noren ctl reload says what is wrong", refused.returncode == 1 and "admission.max_concurrency" in refused.stderr,
              refused.stderr.strip().replace("\n", " | "))
        rename(stack, text_of(stack, 33) + "workers: 3\n")
        wait_for("the mended file", lambda: stack.metrics()["noren_config_last_reload_successful"] == 1)
        metrics = stack.metrics()
        check("a mended file is taken over", metrics["noren_concurrency_limit"] == 33)
        check("a key that needs a restart is reported", metrics["noren_config_restart_required"] == 1)
        before = stack.total("noren_config_reloads_total", result="ok")
        stack.noren.send_signal(1)
        wait_for("SIGHUP", lambda: stack.total("noren_config_reloads_total", result="ok") == before + 1)
        check("SIGHUP reloads", True)

        said = ctl(stack, "limit", "7")
        metrics = stack.metrics()
        check("noren ctl limit overrides", said.returncode == 0 and metrics["noren_concurrency_limit"] == 7 and
              metrics["noren_concurrency_limit_overridden"] == 1, said.stdout.strip())
        refused = ctl(stack, "limit", "1000001")
        check("... holds the number to the key's rule", refused.returncode == 1 and "from 0 to 1000000" in refused.stderr)
        ctl(stack, "reload")
        metrics = stack.metrics()
        check("... until the next reload", metrics["noren_concurrency_limit"] == 33 and
              metrics["noren_concurrency_limit_overridden"] == 0)
        limit_file = stack.path("limit")
        rename(stack, text_of(stack, 33).replace("33", f"33, max_concurrency_file: {limit_file}"))
        wait_for("the key", lambda: f"max_concurrency_file: {limit_file}" in stack.get("/-/config"))
        with open(limit_file, "w", encoding="utf-8") as file:
            file.write("9\n")
        wait_for("the limit file", lambda: stack.metrics()["noren_concurrency_limit"] == 9)
        check("a limit file named while running is watched", True)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    threading.excepthook = lambda *_: os._exit(1)
    sys.exit(main())
