#!/usr/bin/env bash
# run.sh [--rounds N | --short] [--scenarios S2,S3] [--contestants relay,noren] [--json FILE] [--chart FILE.svg]
# Installs what it needs, builds, and measures noren beside nginx, HAProxy and a raw relay: tests/bench/README.md.
# About 13 minutes with the usual 5 rounds, 3 with --short.
set -eu
cd "$(dirname "$0")/../.."
bash deploy/install-packages.sh bench
cmake --preset release >/dev/null 2>&1
cmake --build --preset release --target noren noren-sim noren-load noren-bench-relay >/dev/null
exec python3 tests/bench/compare.py build/release/bin "$@"
