#!/usr/bin/env bash
# fuzz.sh [SECONDS]: builds the fuzz targets (clang) and runs each for so long (default 15), from the seeds that the tests
# have anyway. What a run finds beyond them stays in build/fuzz/corpus and is its start the next time. Ends with the totals.
#   fuzz.sh --cpu-minutes M [--resume] [--jobs N] [--idle] [TARGET...]
#       each for M minutes of user time, which a busy machine makes longer and not less: 30 before a release. N at once;
#       --resume: goes on with a campaign that was broken off; --idle: with nothing but the time that nobody else wants. Logs
#       and findings are in build/fuzz.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top" || exit 1
case "${1:-15}" in
    --*) how=("$@") ;;
    *) how=(--seconds "${1:-15}") ;;
esac
bash deploy/install-packages.sh fuzz || exit 1
cmake --preset fuzz >/dev/null 2>&1 || exit 1
cmake --build --preset fuzz --target fuzz-all >build/fuzz/build.log || { tail -n 30 build/fuzz/build.log; exit 1; }
python3 tests/fuzz/seeds.py build/fuzz/corpus || exit 1
exec python3 tests/fuzz/campaign.py build/fuzz/bin build/fuzz "${how[@]}"
