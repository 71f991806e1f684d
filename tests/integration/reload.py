#!/usr/bin/env python3
"""reload.py BIN_DIR [--changes N] [--poll-changes N] [--streams N]: changes of the concurrency limit by every way a file can
change and every way noren can notice, under a load of streams: no request may fail, none is delayed, the limit in force
follows, and a broken file changes nothing and says so. By polling only, a change takes up to 5 s, so 200 of them take 17
minutes. How long things took is told; it decides only where it tells "at once" from "seconds". Ends with "N passed, N
failed"."""
import argparse
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.config_changes import ConfigMap, editor, in_place, rename  # noqa: E402
from support.harness import Stack, wait_for  # noqa: E402

RESULTS = []
# Generous: a machine that is busy with something else must not fail the test.
MOST_SECONDS = 60
MOST_LAG = 60
AT_ONCE = 2.0  # the median; by polling alone it is 5 s


def check(what, good, detail=""):
    RESULTS.append(bool(good))
    print(("ok   " if good else "FAIL ") + what, detail, flush=True)


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(len(values) * q))]


class Load:
    """noren-load in the background, and somebody who asks for noren's health. As a context manager: ends with it."""

    def __init__(self, stack, streams):
        self.stack = stack
        self.per_request = stack.path("per-request.jsonl")
        command = [os.path.join(stack.bin, "noren-load"), "--url", f"http://127.0.0.1:{stack.port}", "-c", str(streams),
                   "--duration", "1h", "--max-tokens", "8:60", "--json", "--per-request", self.per_request]
        self.truth_from = os.path.getsize(stack.truth_file) if os.path.exists(stack.truth_file) else 0
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.run, self.over, self.unhealthy = None, threading.Event(), []
        self.health = threading.Thread(target=self.ask_for_health)
        self.health.start()

    def ask_for_health(self):
        while not self.over.wait(0.25):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.stack.ops}/-/healthy", timeout=20).read()
            except OSError as problem:
                self.unhealthy.append(str(problem))

    def __enter__(self):
        wait_for("the load", lambda: self.stack.metrics()["noren_running_requests"] > 0)
        return self

    def __exit__(self, kind, *_):
        self.over.set()
        self.process.send_signal(signal.SIGINT if kind is None else signal.SIGKILL)
        out, _ = self.process.communicate(timeout=120)
        self.health.join()
        if kind is None:
            self.run = json.loads(out)["runs"][0]

    def lags(self):
        """Seconds from the engine's write of a token to the client's having it: each stream's first and last one. With many
        streams there is one every few milliseconds, so whatever stops noren for a moment shows."""
        sent = {}
        with open(self.stack.truth_file, encoding="utf-8") as file:
            file.seek(self.truth_from)
            for line in file:
                truth = json.loads(line)
                tokens = [at for at, count in truth["events"] if count]
                if tokens:
                    sent[truth["id"]] = tokens[0], tokens[-1]
        lags = []
        with open(self.per_request, encoding="utf-8") as file:
            for line in file:
                got = json.loads(line)
                if got["ok"] and got["id"] in sent:
                    first, last = sent[got["id"]]
                    lags += [(got["first_ns"] - first) / 1e9, (got["last_ns"] - last) / 1e9]
        return lags

    def judge(self, name):
        run, lags = self.run, self.lags()
        check(f"{name}: no request failed", run["ok"] == run["requests"] > 0 and not run["errors"],
              f"{run['ok']} of {run['requests']} whole, none altered: {run['checked']} checked")
        check(f"{name}: no token was held up", lags and max(lags) < MOST_LAG,
              "engine to client " + ", ".join(f"p{q * 100:g} {quantile(lags, q) * 1e3:.1f}" for q in (0.5, 0.99, 0.999)) +
              f", most {max(lags) * 1e3:.1f} ms, of {len(lags)} tokens")
        check(f"{name}: always healthy", not self.unhealthy, "; ".join(self.unhealthy[:3]))


class Changes:
    """New limits, one after the other, and how long each took to be in force."""

    def __init__(self, stack, config):
        self.stack, self.config, self.count = stack, config, 0

    def text(self, limit):
        return (f"control: {{socket: {self.stack.control}}}\nlog: {{access: {self.stack.access_file}}}\n{self.config}"
                f"admission: {{max_concurrency: {limit}}}\n")

    def limit_in_force(self):
        return json.loads(self.stack.get("/-/status"))["admission"]["concurrency_limit"]

    def one(self, write, notice=None):
        """notice: what tells noren of the change, if it is not left to itself."""
        self.count += 1
        limit = 20 + self.count % 2 * 20 + self.count % 7
        write(self.stack.config_file, self.text(limit))
        start = time.monotonic()
        if notice:
            notice()
        wait_for(f"limit {limit}", lambda: self.limit_in_force() == limit, MOST_SECONDS)
        return time.monotonic() - start

    def many(self, name, options, changes, ways, notice=None, bound=0.3):
        ways = itertools.cycle(ways)
        with Load(self.stack, options.streams) as load:
            took = []
            for _ in range(changes):
                took.append(self.one(next(ways), notice))
                if notice:
                    time.sleep(0.05)  # else 200 changes are over before the load has seen one of them
        in_time = sum(t <= bound for t in took)
        median = quantile(took, 0.5)
        check(f"{name}: {changes} changes are in force", bound > 1 or median < AT_ONCE,
              f"{in_time} within {bound * 1e3:.0f} ms; median {median * 1e3:.0f} ms, slowest {max(took) * 1e3:.0f} ms")
        check(f"{name}: the metric says so", self.stack.metrics()["noren_concurrency_limit"] == self.limit_in_force())
        load.judge(name)


def broken_file(stack, changes, name):
    in_force = stack.metrics()["noren_concurrency_limit"]
    failed = stack.total("noren_config_reloads_total", result="error")
    rename(stack.config_file, changes.text('"many"') + "admision: {}\n")
    wait_for("the mistake to be seen", lambda: stack.metrics()["noren_config_last_reload_successful"] == 0)
    check(f"{name}: a broken file changes nothing", stack.metrics()["noren_concurrency_limit"] == in_force)
    check(f"{name}: ... and is counted", stack.total("noren_config_reloads_total", result="error") == failed + 1)
    # The log has a thread of its own, so its lines come a moment later.
    wait_for("the log to name every mistake", lambda: all(key in stack.noren_log() for key in ("admission.max_concurrency", "admision")))
    check(f"{name}: ... and the log names every mistake", True)
    status = stack.ctl("status")
    check(f"{name}: ... and so does noren ctl status", status.returncode == 0 and "BAD" in status.stdout and
          "max_concurrency" in status.stdout and "admision" in status.stdout)
    refused = stack.ctl("reload")
    check(f"{name}: noren ctl reload says what is wrong", refused.returncode == 1 and
          "admission.max_concurrency" in refused.stderr, refused.stderr.strip().replace("\n", " | "))
    rename(stack.config_file, changes.text(33) + "workers: 3\n")
    wait_for("the mended file", lambda: stack.metrics()["noren_config_last_reload_successful"] == 1)
    metrics = stack.metrics()
    check(f"{name}: a mended file is taken over", metrics["noren_concurrency_limit"] == 33)
    check(f"{name}: a key that needs a restart is reported", metrics["noren_config_restart_required"] == 1)


def other_limits(stack, changes):
    """The two ways to move the limit without the config file."""
    said = stack.ctl("limit", "7")
    metrics = stack.metrics()
    check("noren ctl limit overrides", said.returncode == 0 and metrics["noren_concurrency_limit"] == 7 and
          metrics["noren_concurrency_limit_overridden"] == 1, said.stdout.strip())
    refused = stack.ctl("limit", "1000001")
    check("... holds the number to the key's rule", refused.returncode == 1 and "from 0 to 1000000" in refused.stderr)
    stack.ctl("reload")
    metrics = stack.metrics()
    check("... until the next reload", metrics["noren_concurrency_limit"] == 33 and
          metrics["noren_concurrency_limit_overridden"] == 0)
    limit_file = stack.path("limit")
    rename(stack.config_file, changes.text(33).replace("33", f"33, max_concurrency_file: {limit_file}"))
    wait_for("the key", lambda: f"max_concurrency_file: {limit_file}" in stack.get("/-/config"))
    with open(limit_file, "w", encoding="utf-8") as file:
        file.write("9\n")
    wait_for("the limit file", lambda: stack.metrics()["noren_concurrency_limit"] == 9)
    check("a limit file named while running is watched", True)
    os.unlink(limit_file)
    wait_for("the file's end", lambda: stack.metrics()["noren_concurrency_limit"] == 33)
    check("... a deleted one is none", True)
    with open(limit_file, "w", encoding="utf-8") as file:
        file.write("11")
    wait_for("the limit file", lambda: stack.metrics()["noren_concurrency_limit"] == 11)
    os.unlink(limit_file)
    os.mkdir(limit_file)
    wait_for("the directory", lambda: stack.metrics()["noren_concurrency_limit"] == 33)
    check("... and so is a directory, which the log tells", f"{limit_file} is a directory" in stack.noren_log())


def models(stack, changes):
    """Model labels follow the config."""
    def ask(model):
        request = urllib.request.Request(f"http://127.0.0.1:{stack.port}/v1/chat/completions", json.dumps(
            {"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}).encode(),
            {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()

    def requests(model):
        return stack.total("noren_requests_total", model=model)

    for model in ("first", "one-too-many"):
        ask(model)
    wait_for("both requests to be counted", lambda: requests("first") == requests("other") == 1)
    check("model labels are used up", True)
    rename(stack.config_file, changes.text(33) + "metrics: {models: [named], max_models: 10}\n")
    wait_for("the models", lambda: "max_models: 10" in stack.get("/-/config"))
    ask("another")
    wait_for("the request to be counted", lambda: requests("another") + requests("other") == 2)
    metrics = stack.metrics()
    check("metrics.models and max_models apply on reload", requests("another") == 1 and
          any('model="named"' in series for series in metrics))
    check("... and need no restart", metrics["noren_config_restart_required"] == 0)


def told(stack, changes):
    """What a reload says beyond the keys that changed."""
    rename(stack.config_file, changes.text(6))
    wait_for("the limit", lambda: stack.metrics()["noren_concurrency_limit"] == 6)
    stack.ctl("limit", "2")
    said = stack.ctl("reload").stdout
    gone = "the override 2 is gone, the limit is 6"
    check("a reload that ends an override says so", f"the config is good; {gone}\n" == said, said)
    wait_for("the log to say so", lambda: gone in stack.noren_log())
    check("... and so does the log", True)
    said = stack.ctl("reload").stdout
    check("one that changes nothing says that", said == "the config is good; nothing changed\n", said)

    stack.ctl("drain")
    wait_for("the log to tell of the drain", lambda: '"msg":"draining"' in stack.noren_log())
    stack.ctl("undrain")
    wait_for("the log to tell of its end", lambda: "drain called off" in stack.noren_log())
    check("a drain by hand, and that it is called off, is in the log", True)

    text = changes.text(6)
    os.unlink(stack.config_file)
    wait_for("the missing file to be seen", lambda: stack.metrics()["noren_config_last_reload_successful"] == 0, 40)
    check("a file that is deleted is a mistake, and the limit stays", stack.metrics()["noren_concurrency_limit"] == 6 and
          stack.config_file in stack.ctl("status").stdout)
    rename(stack.config_file, text)
    wait_for("the file to be back", lambda: stack.metrics()["noren_config_last_reload_successful"] == 1, 40)
    check("the same file put back is good again", stack.metrics()["noren_concurrency_limit"] == 6)

    empty = "the config file is empty: every key is at its default"
    for what, text in (("an empty file", ""), ("a file of comments", "# limit: 3\n\n---\n")):
        before = stack.noren_log().count(empty)
        rename(stack.config_file, changes.text(6))
        wait_for("the limit", lambda: stack.metrics()["noren_concurrency_limit"] == 6)
        rename(stack.config_file, text)
        wait_for("the defaults", lambda: stack.metrics()["noren_concurrency_limit"] == 256)
        wait_for("the warning", lambda n=before: stack.noren_log().count(empty) > n)
        check(f"{what} is taken over with a warning", f'"level":"warning","msg":"{empty}"' in stack.noren_log())


def told_in_vain(stack):
    """An edit of a key that a flag or a variable overrules."""
    def line_of(key, by):
        with open(stack.config_file, encoding="utf-8") as file:
            line = next(n for n, text in enumerate(file, 1) if key.split(".")[-1] in text)
        return f"{stack.config_file}:{line}: {key} is not in force: {by} is stronger"

    limit, queue = "admission.max_concurrency", "admission.max_queue"
    check("what the file says in vain is told at the start", line_of(limit, "--max-concurrency") in stack.noren_log() and
          queue not in stack.noren_log())
    stack.write_config("admission:\n  max_concurrency: 9\n  max_queue: 8\n")
    wait_for("the log to say so", lambda: line_of(queue, "NOREN_MAX_QUEUE") in stack.noren_log())
    said = stack.ctl("reload").stdout
    in_vain = "; ".join((line_of(limit, "--max-concurrency"), line_of(queue, "NOREN_MAX_QUEUE")))
    check("... and at an edit, by the log and by ctl reload", said == f"the config is good; {in_vain}\n", said)
    status = stack.ctl("status").stdout
    by = re.search(r"^stronger +than the file: (.*)$", status, re.M)
    check("... and the status names all that the file does not decide", by and by[1].split(", ") == [
        "admission.max_concurrency by --max-concurrency", "admission.max_queue by NOREN_MAX_QUEUE", "listen by --listen",
        "ops.listen by --ops", "upstream.url by --upstream"], status)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin")
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--poll-changes", type=int, help="changes by polling only (as many as the others)")
    parser.add_argument("--streams", type=int, default=64)
    options = parser.parse_args()
    engine = ["--ttft", "0.02", "--tps", "50"]

    with Stack(options.bin, sim_args=engine) as stack:
        changes = Changes(stack, "")
        with Load(stack, options.streams) as load:
            time.sleep(3)
        load.judge("no change at all, to compare with")
        for name, way in (("in-place edit", in_place), ("atomic rename", rename), ("editor save", editor),
                          ("ConfigMap ..data swap", ConfigMap())):
            changes.many(name, options, options.changes, [way])
        broken_file(stack, changes, "watching")
        other_limits(stack, changes)

    with Stack(options.bin, config="metrics: {max_models: 1}\n") as stack:
        models(stack, Changes(stack, ""))

    polling = "reload: {watch: poll}\n"
    with Stack(options.bin, config=polling, sim_args=engine) as stack:
        changes = Changes(stack, polling)

        def ctl_reload():
            said = stack.ctl("reload")
            if said.returncode != 0:
                raise RuntimeError(said.stderr)

        changes.many("SIGHUP", options, options.changes, [rename], lambda: stack.noren.send_signal(signal.SIGHUP))
        changes.many("noren ctl reload", options, options.changes, [in_place], ctl_reload)
        changes.many("polling only", options, options.poll_changes or options.changes,
                     [in_place, rename, editor, ConfigMap()], bound=6)
        broken_file(stack, changes, "polling only")

    with Stack(options.bin) as stack:
        told(stack, Changes(stack, ""))
    with Stack(options.bin, config="admission: {max_concurrency: 5}\n", noren_args=["--max-concurrency", "64"],
               env={**os.environ, "NOREN_MAX_QUEUE": "16"}) as stack:
        told_in_vain(stack)
    print(f"{sum(RESULTS)} passed, {len(RESULTS) - sum(RESULTS)} failed")
    return 0 if all(RESULTS) else 1


if __name__ == "__main__":
    threading.excepthook = lambda *_: os._exit(1)
    sys.exit(main())
