"""A real Prometheus on loopback for end-to-end tests, with noren's own rules, and what it says."""
import json
import os
import re
import subprocess
import threading
import urllib.parse
import urllib.request

from support.harness import free_port, wait_for

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RULES = [os.path.join(TOP, "deploy", "prometheus", name) for name in ("noren.rules.yaml", "noren.alerts.yaml")]

# Time in the rules runs so many times faster than it is written, so that a test needs no hour: every duration in them
# (for: and windows) is divided by this, and so is the usual scrape interval of 15 s. Thresholds stay as they are.
SPEED = 30
SCRAPE = "500ms"
UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def faster(rules):
    """The text of a rule file with `for: 5m` as `for: 10000ms` and `[1h]` as `[120000ms]`; nothing else is changed."""
    def shorten(found):
        before, number, unit, after = found.groups()
        return f"{before}{int(number) * UNIT_MS[unit] // SPEED}ms{after}"
    return re.sub(r"(\bfor: |\[)(\d+)([smhd])(\]|$)", shorten, rules, flags=re.M)


class Prometheus:
    """Use as a context manager. watch() adds a noren to what is scraped; scenarios that play at once may each call it."""

    def __init__(self, folder):
        self.folder, self.port, self.targets, self.targets_lock = folder, free_port(), [], threading.Lock()

    def path(self, name):
        return os.path.join(self.folder, name)

    def __enter__(self):
        for name in RULES:
            with open(name, encoding="utf-8") as written, open(self.path(os.path.basename(name)), "w", encoding="utf-8") as file:
                file.write(faster(written.read()))
        self.write_targets()
        with open(self.path("prometheus.yaml"), "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": SCRAPE, "scrape_timeout": SCRAPE, "evaluation_interval": SCRAPE},
                       "rule_files": [os.path.basename(name) for name in RULES],
                       "scrape_configs": [{"job_name": "noren", "file_sd_configs": [{"files": ["targets.json"]}]}]}, file)
        with open(self.path("prometheus.log"), "wb") as log:
            self.process = subprocess.Popen(["prometheus", "--config.file=prometheus.yaml", "--storage.tsdb.path=data",
                                             f"--web.listen-address=127.0.0.1:{self.port}", "--query.lookback-delta=5s"],
                                            cwd=self.folder, stdout=log, stderr=log)
        wait_for("Prometheus", self.is_ready, 60)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=5):
                return True
        except OSError:
            return False

    def watch(self, job, ops_port):
        with self.targets_lock:
            self.targets.append({"targets": [f"127.0.0.1:{ops_port}"], "labels": {"job": job, "pod": f"{job}-0"}})
            self.write_targets()

    def write_targets(self):
        with open(self.path("targets.new"), "w", encoding="utf-8") as file:
            json.dump(self.targets, file)
        os.rename(self.path("targets.new"), self.path("targets.json"))

    def ask(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}", timeout=30) as answer:
            return json.load(answer)["data"]

    def query(self, expr):
        """[(labels, value)] now."""
        return [(each["metric"], float(each["value"][1])) for each in self.ask("query", query=expr)["result"]]

    def value(self, expr):
        """Of a query with one result; None without."""
        found = self.query(expr)
        return found[0][1] if found else None

    def query_range(self, expr, start, end, step):
        """[(labels, [(time, value)])]"""
        answer = self.ask("query_range", query=expr, start=start, end=end, step=step)
        return [(each["metric"], [(at, float(value)) for at, value in each["values"]]) for each in answer["result"]]

    def fired(self, job):
        """Every alert that has fired for a job so far."""
        expr = f'count by (alertname) (count_over_time(ALERTS{{alertstate="firing",job="{job}"}}[1h]))'
        return {labels["alertname"] for labels, _ in self.query(expr)}

    def summaries(self, job):
        """What the alerts that fire now say of a job."""
        return [alert["annotations"]["summary"] for alert in self.ask("alerts")["alerts"]
                if alert["labels"].get("job") == job and alert["state"] == "firing"]
