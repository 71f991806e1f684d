#!/usr/bin/env bash
# long.sh [PART...]: the tests that are too long for every change; all of them if none is named. Installs and builds what
# they need, prints a line for each, with its figures, and the totals.
#   fidelity     2,000 streams against the engine's truth                                      2 min
#   leaves       10,000 random leaves; 200 clients leave in each phase, how soon it took effect  2 min
#   end-to-end   cap 1, queue 2, 50 arrivals: 1,000 times                                      2 min
#   gate         the gate's promises, 1,000,000 steps on each of 4 threads under TSan          3 min
#   corpus       200,000 mutated bodies through the observer                                   6 min
#   reload       200 live changes of the configuration, by each way a file can change         23 min
#   drain        200 streams of up to 60 s are finished when noren is told to end              2 min
#   starts       two norens at once on one Unix path, 2 times 200 times                         3 min
#   real         real clients, balancers and engines; downloads their packages                 25 min
#   soak         10 minutes between a load and an engine that is killed and made to misbehave  12 min
#   soak-tls     the same through two norens with TLS between them                             12 min
#   image        the container images, built and run without a Docker engine                  10 min
#   asan tsan    the C++ tests under sanitizers; each builds everything once more              15 min
#   fuzz         30 CPU-minutes for each fuzz target; only if it is named                     2.5 h
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top" || exit 1
. tests/support/totals.sh
parts=(fidelity leaves end-to-end gate corpus reload drain starts real soak soak-tls image asan tsan)
bin=build/release/bin

usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit 2; }
for part in "$@"; do
    case " ${parts[*]} fuzz " in *" $part "*) ;; *) usage ;; esac
done
[ $# -gt 0 ] && parts=("$@")

build() { # preset, target...
    local preset=$1 log; log=$(mktemp); shift
    { cmake --preset "$preset" && cmake --build --preset "$preset" ${1:+--target "$@"}; } >"$log" 2>&1 || { cat "$log"; exit 1; }
    rm -f "$log"
}
repeat() { # times, command...: until the first failure
    local times=$1 i; shift
    for ((i = 1; i <= times; i++)); do
        "$@" || { echo "run $i of $times failed"; return 1; }
    done
    echo "$times runs passed"
}

bash deploy/install-packages.sh test || { echo "cannot install the packages"; exit 1; }
for part in "${parts[@]}"; do
    case $part in
        gate) build tsan unit-proxy ;;
        asan | tsan | image | fuzz) ;; # these build for themselves
        *) [ -n "${built:-}" ] || { build release; built=yes; } ;;
    esac
    case $part in
        fidelity)
            figures='CPUs|streams arriving|token: |gaps: ' \
                run fidelity python3 tests/integration/fidelity.py $bin --streams 2000 ;;
        leaves)
            figures='random leaves:' run leaves-random env NOREN_LEAVES=10000 $bin/integration "after thousands of random leaves*"
            figures='^left ' run leaves-by-phase env NOREN_LEAVES_PER_PHASE=200 $bin/integration "[leave times]" ;;
        end-to-end) run end-to-end repeat 1000 $bin/integration "end to end: cap 1*" ;;
        gate) run gate env NOREN_GATE_STEPS=1000000 build/tsan/bin/unit-proxy "four threads of arrivals*" ;;
        corpus) run corpus-mutated python3 tests/corpus/differential.py $bin/observe-batch --cases 200000 ;;
        reload) figures='^ok ' run reload python3 tests/integration/reload.py $bin --changes 200 ;;
        drain) figures='^ok |whole' run drain python3 tests/integration/long_drain.py $bin ;;
        starts) figures='at once' run starts python3 tests/integration/access.py $bin --starts 200 ;;
        real) figures='SKIP' run real bash tests/real/run.sh ;;
        soak) figures='^ok ' run soak bash tests/soak.sh 10 ;;
        soak-tls) figures='^ok ' run soak-tls bash tests/soak.sh 10 --tls ;;
        image) run image bash tests/image.sh ;;
        asan | tsan) figures='^(ok|FAIL)' run "$part" bash tests/run.sh "$part" ;;
        fuzz) figures='^ok |CPU-minutes' run fuzz bash tests/fuzz.sh --cpu-minutes 30 --jobs "$(nproc)" ;;
    esac
done
totals
