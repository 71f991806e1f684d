#!/usr/bin/env bash
# deploy.sh [--update] [BIN_DIR]: renders everything in deploy/ and holds it to schemas, policies, golden files and to each
# other; lints YAML, shell and compose. No cluster. Ends with the totals. --update writes the golden files anew.
set -u
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=tests/deploy/tools.sh
. tests/deploy/tools.sh
exec python3 tests/deploy/main.py "$@"
