"""Checks of what is written, without anything running: dashboards, rules, alerts and their runbooks fit together."""
import glob
import os
import re
import subprocess
import sys

from dashboards.grafana import check_grafana
from dashboards.panels import alerts, dashboards, queries
from support.prometheus import RULES, TOP

HERE = os.path.dirname(os.path.abspath(__file__))
SECTIONS = ("## What it means", "## What to look at", "## What to do")


def tool(*command, cwd=TOP):
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    return done.returncode == 0, (done.stdout + done.stderr).strip()


def check_written(check):
    check("the dashboards are what dashboards.py writes", *tool(sys.executable, "deploy/grafana/dashboards.py", "--check"))
    check("promtool check rules", *tool("promtool", "check", "rules", *RULES))
    check("promtool check config", *tool("promtool", "check", "config", "deploy/prometheus/prometheus.example.yaml"))
    check("promtool test rules: each alert fires when it is to, and not when not",
          *tool("promtool", "test", "rules", os.path.join(HERE, "alerts_test.yaml")))
    check_alerts(check)
    check_panels(check)
    check_grafana(check)


def check_alerts(check):
    with open(os.path.join(HERE, "alerts_test.yaml"), encoding="utf-8") as file:
        tested = set(re.findall(r'alertname="(\w+)"', file.read()))
    check("each alert has a promtool test", tested == set(alerts()), f"differ: {tested ^ set(alerts())}")
    wanted = set()
    for name, rule in alerts().items():
        severity, page = re.search(r"severity: (\w+)", rule), re.search(r"runbook_url: (\S+)", rule)
        path = os.path.join(TOP, page[1]) if page else ""
        text = open(path, encoding="utf-8").read() if os.path.isfile(path) else ""
        wanted.add(os.path.basename(path))
        check(f"{name}: a summary, a severity that its runbook agrees with, and what to do",
              "summary:" in rule and severity and text.startswith(f"# {name}\n\n**{severity[1]}.**")
              and all(section in text for section in SECTIONS), page and page[1])
    pages = {os.path.basename(path) for path in glob.glob(os.path.join(TOP, "deploy", "runbooks", "*.md"))}
    check("no runbook without an alert", pages == wanted, f"differ: {pages ^ wanted}")


def check_panels(check):
    for uid, title, panels in dashboards():
        names = [panel["title"] for panel in panels]
        overlap = {name for name in names if names.count(name) > 1}
        check(f"{title}: every panel has a unit, a description, and a title of its own",
              not overlap and all(p["description"] and p["fieldConfig"]["defaults"]["unit"] for p in panels), f"{uid} {overlap}")
    unscoped = [where for where, expr in queries() if 'job=~"$job"' not in expr]
    check("every query heeds the job variable", not unscoped, f"{unscoped}")
