#!/usr/bin/env bash
# run.sh: real clients (SDKs for Python and Node, curl, aiperf), balancers (nginx, HAProxy) and real engines with noren between
# them. Installs what it needs into build/real, builds noren if it is not there, prints a line for each client x engine x
# behaviour and the totals. README.md says what the lines show.
#   run.sh [--vllm] [--noren PROGRAM] [--only REGEX] [--keep]
#     --vllm   install vLLM too, the first time (6 GB, a quarter of an hour); once there it is always tried
#     --only   lines whose "CLIENT x ENGINE: BEHAVIOUR" has this regular expression
#     --keep   leave the logs in build/real/run
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top"
here=tests/real
real=build/real
noren=build/release/bin/noren

bash deploy/install-packages.sh real
if [ ! -x "$noren" ] && [[ " $* " != *" --noren "* ]]; then
    cmake --preset release >/dev/null
    cmake --build --preset release --target noren noren-sim
fi

stamped() { # what to install, where: whether that list is installed there; what was left half made has no stamp
    cmp -s "$1" "$2/installed"
}
venv() { # list, folder. Only ready-made wheels: a source package of llama.cpp would compile for half an hour.
    stamped "$1" "$2" && return
    rm -rf "$2"
    mkdir -p "$real"
    python3 -m venv "$2" && "$2/bin/python" -m pip install --quiet --only-binary :all: -r "$1" && cp "$1" "$2/installed"
}
node_packages() {
    stamped $here/package.json $real/node && return
    rm -rf $real/node
    mkdir -p $real/node
    cp $here/package.json $real/node
    PATH="$PWD/$real/venv/bin:$PATH" npm install --prefix $real/node --no-package-lock --no-audit --no-fund --ignore-scripts \
        --loglevel=error && cp $here/package.json $real/node/installed
}

venv $here/requirements.txt $real/venv
node_packages
venv $here/requirements-aiperf.txt $real/aiperf || echo "aiperf cannot be installed: its line will say SKIP"
arguments=()
for word in "$@"; do
    if [ "$word" != --vllm ]; then
        arguments+=("$word")
    elif ! stamped $here/install_vllm.py $real/vllm; then
        python3 $here/install_vllm.py $real/vllm && cp $here/install_vllm.py $real/vllm/installed
    fi
done
exec timeout --kill-after=10 2400 $real/venv/bin/python $here/real_engine.py --noren "$noren" --work $real/run \
    ${arguments[@]+"${arguments[@]}"}
