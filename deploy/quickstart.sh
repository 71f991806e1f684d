#!/usr/bin/env bash
# quickstart.sh [--once] [--upstream URL]: from a bare Debian 12 to noren at work. Installs and builds what is missing,
# starts a simulated GPU engine (or takes yours) with noren in front of it, sends a load that fits and one that does not,
# and shows what noren saw. Stays up until Ctrl-C, or with --once ends by itself.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
once=0 upstream="" fits=5s stage=3s
while [ $# -gt 0 ]; do
    case $1 in
        --once) once=1 ;;
        --short) fits=2s stage=1500ms ;;
        --upstream) upstream=${2:?--upstream needs a URL}; shift ;;
        *) sed -n '2,4s/^# //p' "$0"; exit 2 ;;
    esac
    shift
done
data=${NOREN_QUICKSTART_PORT:-8080} ops=${NOREN_QUICKSTART_OPS_PORT:-9464} engine=${NOREN_QUICKSTART_ENGINE_PORT:-8000}
cap=8 queue=16
bin=build/release/bin work=$(mktemp -d)

bold="" plain=""
[ -t 1 ] && bold=$'\033[1m' plain=$'\033[0m'
say() { printf '\n%s\n' "$bold$*$plain"; }
end() {
    # Only what this script started, by its own numbers.
    for pid in "${noren_pid:-}" "${sim_pid:-}" "${sampler_pid:-}"; do
        [ -n "$pid" ] && kill -INT "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
    done
    rm -rf "$work"
}
trap 'end || true' EXIT
trap 'exit 130' INT TERM
ready() { # url, seconds
    for _ in $(seq $(($2 * 10))); do
        curl -fsS -o /dev/null "$1" 2>/dev/null && return 0
        sleep 0.1
    done
    return 1
}
total() { awk -v re="^$1[{ ]" '$0 ~ re {sum += $NF} END {printf "%d\n", sum}' "$work/metrics"; }
mean() { # histogram, factor, unit
    awk -v sum="^$1_sum[{ ]" -v count="^$1_count[{ ]" -v factor="$2" -v unit="$3" \
        '$0 ~ sum {s += $NF} $0 ~ count {n += $NF} END {if (n) printf "%.1f%s\n", s / n * factor, unit; else print "-"}' "$work/metrics"
}

bash deploy/install-packages.sh build
command -v curl >/dev/null || bash deploy/install-packages.sh test
if [ ! -x $bin/noren ] || [ ! -x $bin/noren-sim ] || [ ! -x $bin/noren-load ] || [ -n "$(find proxy metrics config tests/sim tests/bench -newer $bin/noren -name '*.?pp' -print -quit)" ]; then
    say "Building (a few minutes the first time)"
    cmake --preset release >"$work/cmake.log" 2>&1 || { cat "$work/cmake.log"; exit 1; }
    cmake --build --preset release --target noren noren-sim noren-load
    touch $bin/noren
fi

if [ -z "$upstream" ]; then
    upstream=http://127.0.0.1:$engine
    $bin/noren-sim --listen 127.0.0.1:"$engine" --max-batch 16 >"$work/sim.log" 2>&1 &
    sim_pid=$!
    ready "$upstream/health" 10 || { echo "the simulated engine did not start:"; cat "$work/sim.log"; exit 1; }
fi
$bin/noren --listen 127.0.0.1:"$data" --upstream "$upstream" --ops 127.0.0.1:"$ops" --max-concurrency $cap --max-queue $queue \
    >"$work/access.log" 2>"$work/noren.log" &
noren_pid=$!
ready "http://127.0.0.1:$ops/-/healthy" 10 || { echo "noren did not start:"; cat "$work/noren.log"; exit 1; }
ready "http://127.0.0.1:$ops/-/ready" 30 || { echo "the engine at $upstream does not answer"; exit 1; }

model=$(curl -fsS "http://127.0.0.1:$data/v1/models" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p' | head -n 1)
load=("$bin/noren-load" --model "${model:-default}" --max-tokens 20:60 --prompt-words 20:80)

say "1. What noren costs: 4 clients, each request sent to the engine directly (direct) and through noren (noren)"
status=0
"${load[@]}" --url "$upstream" --against "http://127.0.0.1:$data" --labels direct,noren -c 4 --duration $fits || status=$?

say "2. What noren does: more and more clients, while it lets $cap requests into the engine and $queue wait"
echo "   8 clients just fit, 20 fill the queue, of 40 some are refused and ask again after a second."
: >"$work/depth"
while :; do
    curl -fsS "http://127.0.0.1:$ops/metrics" 2>/dev/null | awk -v at="$EPOCHREALTIME" '
        $1 == "noren_running_requests" {r = $2} $1 == "noren_queued_requests" {q = $2} END {print at, r + 0, q + 0}' >>"$work/depth"
    sleep 0.4
done &
sampler_pid=$!
"${load[@]}" --url "http://127.0.0.1:$data" --stages "8:$stage,20:$stage,40:$stage" --refused-pause 1s || status=$?
kill "$sampler_pid" 2>/dev/null; wait "$sampler_pid" 2>/dev/null || true; sampler_pid=""
curl -fsS "http://127.0.0.1:$ops/metrics" >"$work/metrics"

say "Queue depth over time (# in the engine, at most $cap;  + waiting, at most $queue)"
awk 'NR == 1 {begin = $1} {printf "  %4.1f s  ", $1 - begin; for (i = 0; i < $2; i++) printf "#"; for (i = 0; i < $3; i++) printf "+"; printf "\n"}' "$work/depth"
say "What noren counted in both loads"
printf '  %-44s %s\n' \
    "requests ended" "$(total noren_requests_total)" \
    "  refused, because the queue was full" "$(total 'noren_queue_rejections_total{reason="full"}')" \
    "output tokens" "$(total noren_output_tokens_total)" \
    "time to first token, mean" "$(mean noren_time_to_first_token_seconds 1000 " ms")" \
    "  of it in noren's queue" "$(mean noren_queue_wait_seconds 1000 " ms")" \
    "  of it in the engine" "$(mean noren_upstream_time_to_first_token_seconds 1000 " ms")" \
    "tokens per second of one stream, mean" "$(mean noren_request_output_tokens_per_second 1 "")"
say "Where to look"
printf '  %-44s %s\n' \
    "send requests here (OpenAI, Anthropic, ...)" "http://127.0.0.1:$data/v1/chat/completions" \
    "metrics for Prometheus" "http://127.0.0.1:$ops/metrics" \
    "what it is doing" "http://127.0.0.1:$ops/-/status" \
    "the configuration in force" "http://127.0.0.1:$ops/-/config"
echo
[ $status -eq 0 ] || { echo "something in the load went wrong, see above"; exit $status; }
if [ $once -eq 0 ]; then
    echo "noren runs on; Ctrl-C ends it."
    wait "$noren_pid"
fi
