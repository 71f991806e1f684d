#!/usr/bin/env bash
# run.sh [CASES_DIR]: installs what is needed, builds the release noren and runs all HTTP cases against it, those in cases/ if no
# other folder is named. Prints the score by category beside that of nginx and HAProxy and ends with the totals.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cases=$(cd "${1:-$here/cases}" && pwd)
# shellcheck source=tests/conformance/release.sh
. "$here/release.sh"
build_noren
exec python3 "$here/run_cases.py" "$noren" --cases "$cases"
