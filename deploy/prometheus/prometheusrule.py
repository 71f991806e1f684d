#!/usr/bin/env python3
"""prometheusrule.py: writes the rules and alerts beside it as the Prometheus operator wants them, into
deploy/kustomize/prometheusrule. --check: says whether that file is what it would write, and changes nothing."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TARGET = os.path.join(HERE, "..", "kustomize", "prometheusrule", "prometheusrule.yaml")
HEAD = """# Made by deploy/prometheus/prometheusrule.py from noren.rules.yaml and noren.alerts.yaml; change those.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: noren
  labels:
    app.kubernetes.io/name: noren
spec:
  groups:
"""


def groups(name):
    """The groups of a rule file as they are written there, two columns further in."""
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        lines = file.read().splitlines()
    return "".join(f"  {line}".rstrip() + "\n" for line in lines[lines.index("groups:") + 1:])


def main(arguments):
    text = HEAD + groups("noren.rules.yaml") + groups("noren.alerts.yaml")
    if "--check" in arguments:
        with open(TARGET, encoding="utf-8") as file:
            same = file.read() == text
        if not same:
            print("prometheusrule.yaml is not what prometheusrule.py writes: run it")
        return 0 if same else 1
    with open(TARGET, "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
