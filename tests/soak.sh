#!/usr/bin/env bash
# soak.sh [MINUTES [--tls]]: builds, then lets noren run (60 minutes if not said otherwise) between a load and an engine that is
# killed, restarted, frozen and made to misbehave, under reloads every second and drains; with --tls two norens with TLS between
# them. Ends with the totals.
set -eu
cd "$(dirname "$0")/.."
bash deploy/install-packages.sh test
cmake --preset release >/dev/null 2>&1
cmake --build --preset release --target noren noren-sim noren-load >/dev/null
minutes=${1:-60}
[ $# -eq 0 ] || shift
exec python3 tests/integration/soak.py build/release/bin --minutes "$minutes" "$@"
