#!/usr/bin/env bash
# run.sh: installs what is needed, builds everything (release), runs all tests, ends with the totals.
#   run.sh asan | tsan     the C++ tests under sanitizers instead (own build folder)
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top" || exit 1
preset=${1:-release}
# All of them now, so that nothing stops to install in the middle.
sets=(test)
[ "$preset" != release ] || sets+=(demo fuzz)
bash deploy/install-packages.sh "${sets[@]}" || { echo "cannot install the packages"; exit 1; }
cmake --preset "$preset" >/dev/null 2>build-configure.log || { cat build-configure.log; rm -f build-configure.log; exit 1; }
rm -f build-configure.log
cmake --build --preset "$preset" || exit 1

. tests/support/totals.sh

bin=build/$preset/bin
for program in "$bin"/unit-* "$bin"/integration; do
    [ -x "$program" ] && run "$(basename "$program")" "$program"
done
if [ "$preset" = release ]; then
    run layering python3 tests/layering.py
    run corpus python3 tests/corpus/run_corpus.py "$bin/noren"
    run corpus-mutated python3 tests/corpus/differential.py "$bin/observe-batch" --cases 20000
    run instructions bash tests/bench/instructions.sh "$bin/noren-observe-bench"
    run fidelity python3 tests/integration/fidelity.py "$bin" --streams 400
    run relay-corpus python3 tests/integration/relay_corpus.py "$bin" --rounds 2 --selftest
    run dashboards bash tests/dashboards.sh --short
    run access python3 tests/integration/access.py "$bin"
    run process python3 tests/integration/process.py "$bin"
    run reload python3 tests/integration/reload.py "$bin" --changes 20 --poll-changes 2
    run http-kinds python3 tests/conformance/kinds.py "$bin/noren"
    run http-conformance bash tests/conformance/run.sh
    run http-runner python3 tests/conformance/selftest.py "$bin/noren"
    run fuzz-smoke bash tests/fuzz.sh 13
    run quickstart python3 tests/integration/quickstart.py
    figures=SKIPPED run deploy bash tests/deploy.sh "$bin"
    figures=SKIPPED run podsim bash tests/podsim.sh "$bin"
fi
totals
