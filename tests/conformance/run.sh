#!/usr/bin/env bash
# run.sh: the release noren against an HTTP conformance runner, where one is given:
#   NOREN_HTTP_CASES=DIR with run_cases.py and cases_visible in it. Without, there is nothing to run here.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cases=${NOREN_HTTP_CASES:-}
[ -n "$cases" ] || { echo "0 passed, 0 failed: no NOREN_HTTP_CASES"; exit 0; }
port=${1:-18071} origin=${2:-18090}
bash "$here/serve.sh" "$port" "$origin" &
pid=$!
trap 'kill -INT $pid; wait $pid' EXIT
sleep 0.5
python3 "$cases/run_cases.py" --proxy "127.0.0.1:$port" --origin-port "$origin" --cases "$cases/cases_visible"
