#!/usr/bin/env bash
# dashboards.sh [--short] [--only SCENARIO,...] [--pictures FOLDER]: dashboards, alerts and runbooks against a real Prometheus
# and a real noren under scripted loads; some minutes, with --short one. tests/dashboards/check.py says how.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top" || exit 1
bash deploy/install-packages.sh test || exit 1
bin=build/release/bin
[ -x $bin/noren ] && [ -x $bin/noren-sim ] && [ -x $bin/noren-load ] ||
    { cmake --preset release && cmake --build --preset release --target noren noren-sim noren-load; } || exit 1
exec python3 tests/dashboards/check.py "$bin" "$@"
