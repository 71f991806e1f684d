"""Every metric that is named somewhere exists in /metrics of a running noren, and every metric of noren is on a panel."""
import glob
import os
import re
import subprocess

from dashboards.panels import queries, rule_texts
from support.harness import Stack
from support.prometheus import TOP

NAME = re.compile(r"\b(?:noren|process)_[a-z0-9_]*[a-z0-9](?![a-z0-9_]*[*:])")
DOCUMENTS = ("*.md", "deploy/**/*.md", "config/*.yaml", "deploy/**/*.yaml")


def exposed(text):
    """(families, all sample names) of an exposition."""
    families = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, flags=re.M))
    samples = set(families)
    for family, kind in families.items():
        samples |= {family + suffix for suffix in ("_bucket", "_sum", "_count")} if kind == "histogram" else set()
    return set(families), samples


def is_text_format(page):
    """promtool also judges names, and not every engine's please it; that is no matter here."""
    told = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False)
    return told.returncode in (0, 3)


def family_of(name, families):
    return name if name in families else re.sub(r"_(bucket|sum|count)$", "", name)


def named_in(text):
    """Names of metrics; those of recording rules have colons and are not noren's."""
    return set(NAME.findall(re.sub(r"\bnamespace_job:\w+:\w+", "", text)))


# Absent without a certificate, as there is none that could end; tls_renewal_test.cpp has it.
ONLY_WITH_TLS = {"noren_tls_certificate_expiry_timestamp_seconds"}


def check_names(check, bin_dir):
    with Stack(bin_dir, config="engine_metrics: {figures: on, merge: on, add_queue: on}") as stack:
        page = stack.get("/metrics")
        families, samples = exposed(page)
    check("promtool reads noren's page with the engine's behind it", "vllm:num_requests_waiting" in samples and is_text_format(page))
    samples = samples | ONLY_WITH_TLS
    on_panels = set()
    for _, expr in queries():
        on_panels |= named_in(expr)
    check("every metric on a panel exists", on_panels <= samples, f"missing: {sorted(on_panels - samples)}")
    for name, text in rule_texts():
        check(f"every metric in {name} exists", named_in(text) <= samples, f"missing: {sorted(named_in(text) - samples)}")
    for path in sorted({path for pattern in DOCUMENTS for path in glob.glob(os.path.join(TOP, pattern), recursive=True)}):
        with open(path, encoding="utf-8") as file:
            missing = named_in(file.read()) - samples
        if missing or path.endswith("README.md"):
            check(f"every metric in {os.path.relpath(path, TOP)} exists", not missing, f"missing: {sorted(missing)}")
    shown = {family_of(name, families) for name in on_panels}
    unseen = {family for family in families - shown if family.startswith("noren_")}
    check("every metric of noren is on a panel", not unseen, f"not shown: {sorted(unseen)}")
