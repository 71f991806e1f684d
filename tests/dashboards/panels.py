"""The dashboards as Grafana would read them: every panel with the queries it sends."""
import glob
import json
import os
import re

from support.prometheus import RULES, TOP


def dashboards():
    """In the order of their names: (name, panels), rows left out."""
    for path in sorted(glob.glob(os.path.join(TOP, "deploy", "grafana", "noren-*.json"))):
        with open(path, encoding="utf-8") as file:
            board = json.load(file)
        yield board["uid"], board["title"], [panel for panel in board["panels"] if panel["type"] != "row"]


def filled(expr, job, window="10s", model=".*"):
    """A query with the variables as Grafana would put them in."""
    for name, value in (("$__rate_interval", window), ("$job", job), ("$pod", ".*"), ("$model", model)):
        expr = expr.replace(name, value)
    return expr


def queries():
    """(where it is, expression) of every panel."""
    for uid, _, panels in dashboards():
        for panel in panels:
            for target in panel["targets"]:
                yield f"{uid}, {panel['title']}, {target['legendFormat']}", target["expr"]


def rule_texts():
    for path in RULES:
        with open(path, encoding="utf-8") as file:
            yield os.path.basename(path), file.read()


def alerts():
    """{name: the lines of its rule}"""
    text = dict(rule_texts())["noren.alerts.yaml"]
    parts = re.split(r"^ +- alert: (\w+)$", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))
