#!/usr/bin/env bash
# run.sh: a real engine (llama.cpp with a small real model) and real clients (the openai and anthropic packages)
# with noren between them. Installs what it needs into build/real/venv, builds noren if it is not there, prints a
# line for each client x engine x behaviour and the totals.
#   run.sh [--noren PROGRAM] [--keep]     --keep: leave the logs in build/real/run
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
venv=build/real/venv
noren=build/release/bin/noren

if [ ! -x "$noren" ] && [[ " $* " != *" --noren "* ]]; then
    bash deploy/install-packages.sh build
    cmake --preset release >/dev/null
    cmake --build --preset release --target noren
fi

# A venv that was left half made has no stamp of this list and is made anew.
stamp=$venv/installed
if ! cmp -s tests/real/requirements.txt "$stamp"; then
    rm -rf "$venv"
    mkdir -p build/real
    python3 -m venv "$venv" || { echo "python3 -m venv does not work: install python3-venv"; exit 1; }
    # Only ready-made wheels: a source package of llama.cpp would compile for half an hour.
    "$venv/bin/pip" install --quiet --only-binary :all: -r tests/real/requirements.txt
    cp tests/real/requirements.txt "$stamp"
fi
exec timeout --kill-after=10 280 "$venv/bin/python" tests/real/real_engine.py --noren "$noren" --work build/real/run "$@"
