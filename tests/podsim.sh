#!/usr/bin/env bash
# podsim.sh [BIN_DIR] [--full] [--only WORD]: how pods with noren start, change and end, played on this machine without a
# cluster. One line for each scenario, then the totals. --full takes the manifests' own times and a stream of 60 s.
set -eu
cd "$(dirname "$0")/.."
bin=build/release/bin
case ${1:-} in '' | --*) ;; *) bin=$1; shift ;; esac
if ! unshare --net --mount true 2>/dev/null; then
    echo "SKIPPED: podsim needs namespaces, so root (and a container that allows unshare)"
    exit 0
fi
exec unshare --net --mount --propagation private python3 tests/podsim/main.py "$bin" "$@"
