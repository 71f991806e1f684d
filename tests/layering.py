#!/usr/bin/env python3
"""Holds the includes to the layers of ARCHITECTURE.md: config and metrics know nothing of ours, proxy knows both, nobody
knows proxy but its main and the tests; inside proxy the HTTP rules, admission and relay bodies do no I/O. Each file counts
as one case. Ends with "N passed, N failed"."""
import os
import re
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INCLUDE = re.compile(r'^\s*#include\s+["<]([^">]+)[">]', re.M)

# Folder (longest match wins) -> what of ours it may include.
MAY = {
    "config": {"config"},
    "metrics": {"metrics"},
    "metrics/observe": {"metrics/observe", "metrics/prefetch.hpp"},
    "proxy": {"config", "metrics", "proxy"},
    "proxy/http": {"proxy/http"},
    "proxy/admission": {"proxy/admission", "proxy/net/notifiable.hpp"},
    "proxy/relay": {"proxy/http", "proxy/relay"},
    "proxy/net": {"proxy/net", "config/address.hpp", "metrics/clock.hpp", "metrics/prefetch.hpp"},
    "proxy/upstream": {"proxy/upstream", "proxy/net", "proxy/http", "config", "metrics/clock.hpp"},
    "proxy/log": {"proxy/log", "config/config.hpp", "metrics/json_line.hpp"},
    "proxy/engine_page": {"proxy/engine_page", "proxy/upstream", "proxy/net", "proxy/http", "proxy/relay", "config", "metrics"},
    "proxy/ops": {"proxy/ops", "proxy/http", "proxy/net/socket_file.hpp", "proxy/memory_bound.hpp", "config/address.hpp",
                  "config/keys.hpp", "metrics/clock.hpp", "metrics/utf8.hpp"},
    "proxy/cli": {"proxy/cli", "proxy/ops/control_protocol.hpp", "proxy/ops/json_text.hpp", "metrics/observe",
                  "metrics/utf8.hpp"},
    "tests/sim": {"tests/sim"},
    "tests/sim/unit": {"tests/sim", "tests/support/eventually.hpp"},
    "tests/bench": {"tests/bench", "tests/sim/token_text.hpp", "proxy", "metrics", "config"},
    "tests/bench/load": {"tests/bench/load", "tests/sim/token_text.hpp"},
    "tests/bench/unit": {"tests/bench", "tests/sim"},
    "tests": {"config", "metrics", "proxy", "tests"},
}
# Folder -> libraries that have no place in it.
NEVER = {
    "config": ("boost/", "prometheus/"),
    "metrics": ("boost/", "yaml-cpp/"),
    "metrics/observe": ("boost/", "prometheus/"),
    "proxy": ("yaml-cpp/",),
    "proxy/http": ("boost/", "sys/socket.h"),
    "proxy/admission": ("boost/", "sys/socket.h"),
    "proxy/relay": ("boost/", "sys/socket.h"),
}
ONLY_IN = {"yaml-cpp/": ("config/document.cpp",)}
OURS = ("config/", "metrics/", "proxy/", "tests/")


def rule(table, path):
    best = max((folder for folder in table if path.startswith(folder + "/")), key=len, default=None)
    return table.get(best)


def check(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        text = file.read()
    wrong = []
    may = rule(MAY, path) or set()
    for name in INCLUDE.findall(text):
        if name.startswith(OURS):
            if not any(name == part or name.startswith(part + "/") for part in may):
                wrong.append(f"{path} must not include {name}")
            if not os.path.exists(os.path.join(TOP, name)):
                wrong.append(f"{path} includes {name}, which is not there")
        for library in rule(NEVER, path) or ():
            if name.startswith(library):
                wrong.append(f"{path} must not include {name}")
        for library, places in ONLY_IN.items():
            if name.startswith(library) and path not in places:
                wrong.append(f"{path}: {library} belongs in {', '.join(places)} only")
    if path.endswith(".hpp") and "#pragma once" not in text:
        wrong.append(f"{path} has no #pragma once")
    return wrong


def main():
    passed, failed = 0, []
    for top in ("config", "metrics", "proxy", "tests"):
        for folder, _, files in os.walk(os.path.join(TOP, top)):
            for name in sorted(files):
                if name.endswith((".cpp", ".hpp")):
                    wrong = check(os.path.relpath(os.path.join(folder, name), TOP))
                    failed += wrong
                    passed += not wrong
    folders = {f for f in os.listdir(TOP) if os.path.isdir(os.path.join(TOP, f)) and not f.startswith(".")}
    extra = folders - {"config", "metrics", "proxy", "deploy", "docker", "tests", "build"}
    failed += [f"a top-level folder beyond the layout: {f}" for f in sorted(extra)]
    print(*failed, sep="\n", end="\n" if failed else "")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
