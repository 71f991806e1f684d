#!/usr/bin/env bash
# quickstart.sh [--once] [--upstream URL [--no-load]]: from a bare Debian 12 to noren at work. Installs and builds what is
# missing, starts a simulated GPU engine (or takes yours) with noren in front of it, sends a load that fits and one that
# does not, and shows what noren saw. Everything listens on 127.0.0.1 only. Stays up until Ctrl-C.
#   --once           ends by itself
#   --upstream URL   your engine instead. It gets the load too: up to 40 clients for some 15 s, through noren with a limit of
#                    8 and a queue of 16, and 4 of them past noren in turn, to compare. The limits stay while noren is up.
#   --no-load        nothing is sent, and noren has its own default limits (or those of NOREN_MAX_CONCURRENCY, NOREN_MAX_QUEUE)
# Ports: NOREN_QUICKSTART_PORT (8080), NOREN_QUICKSTART_OPS_PORT (9464), NOREN_QUICKSTART_ENGINE_PORT (8000); 0: any free one.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
once=0 with_load=1 upstream="" fits=5s stage=3s
usage() { sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; }
while [ $# -gt 0 ]; do
    case $1 in
        --once) once=1 ;;
        --no-load) with_load=0 ;;
        --short) fits=2s stage=1500ms ;;
        --upstream) upstream=${2:?--upstream needs a URL}; shift ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
    shift
done
data=${NOREN_QUICKSTART_PORT:-8080} ops=${NOREN_QUICKSTART_OPS_PORT:-9464} engine=${NOREN_QUICKSTART_ENGINE_PORT:-8000}
cap=8 queue=16 patience=30
bin=build/release/bin work=$(mktemp -d)
touch "$work"/{sim,noren,access}.log

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
# Whoever listens there already would get our load, and its figures would pass for ours.
must_be_free() { # port, variable
    if [ "$1" -ne 0 ] && (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then
        echo "port $1 is in use; set $2 to another one (0: any free one)" >&2
        exit 1
    fi
}
must_all_be_free() {
    must_be_free "$data" NOREN_QUICKSTART_PORT
    must_be_free "$ops" NOREN_QUICKSTART_OPS_PORT
    [ -n "$upstream" ] || must_be_free "$engine" NOREN_QUICKSTART_ENGINE_PORT
}
# What the process itself says in its log, not what answers on some port: the port it got.
port_of() { # pid, log, what stands before the port
    for _ in $(seq 100); do
        local port; port=$(sed -n "s/.*$3\\([0-9]*\\).*/\\1/p" "$2" | head -n 1)
        [ -n "$port" ] && echo "$port" && return 0
        kill -0 "$1" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}
is_ready() { curl -fsS -o /dev/null "http://127.0.0.1:$ops/-/ready" 2>/dev/null; }
wait_for_engine() {
    local told="" why end_at=$((SECONDS + patience))
    until is_ready; do
        kill -0 "$noren_pid" 2>/dev/null || { echo "noren ended:"; cat "$work/noren.log"; return 1; }
        why=$(sed -n 's/.*"the engine is down".*"because":"\([^"]*\)".*/\1/p' "$work/noren.log" | tail -n 1)
        if [ -n "$why" ] && [ "$why" != "$told" ]; then
            echo "the engine at $upstream is not up: $why; waiting for it, $patience s at most"
            told=$why
        fi
        [ $SECONDS -lt $end_at ] || { echo "the engine at $upstream did not come up within $patience s"; return 1; }
        sleep 0.1
    done
}
total() { awk -v re="^$1[{ ]" '$0 ~ re {sum += $NF} END {printf "%d\n", sum}' "$work/metrics"; }
mean() { # histogram, factor, unit
    awk -v sum="^$1_sum[{ ]" -v count="^$1_count[{ ]" -v factor="$2" -v unit="$3" \
        '$0 ~ sum {s += $NF} $0 ~ count {n += $NF} END {if (n) printf "%.1f%s\n", s / n * factor, unit; else print "-"}' "$work/metrics"
}

must_all_be_free
bash deploy/install-packages.sh build demo
if [ ! -x $bin/noren ] || [ ! -x $bin/noren-sim ] || [ ! -x $bin/noren-load ] || [ -n "$(find proxy metrics config tests/sim tests/bench -newer $bin/noren -name '*.?pp' -print -quit)" ]; then
    say "Building (a few minutes the first time)"
    cmake --preset release >"$work/cmake.log" 2>&1 || { cat "$work/cmake.log"; exit 1; }
    cmake --build --preset release --target noren noren-sim noren-load
    touch $bin/noren
    must_all_be_free
fi

if [ -z "$upstream" ]; then
    $bin/noren-sim --listen 127.0.0.1:"$engine" --max-batch 16 >"$work/sim.log" 2>&1 &
    sim_pid=$!
    engine=$(port_of "$sim_pid" "$work/sim.log" "listens on 127.0.0.1:") ||
        { echo "the simulated engine (noren-sim) did not start:"; cat "$work/sim.log"; exit 1; }
    upstream=http://127.0.0.1:$engine
fi
# A control socket of its own: this noren is not the one that may run on this machine otherwise.
echo "control: {socket: $work/control.sock}" >"$work/noren.yaml"
limits=(--max-concurrency "$cap" --max-queue "$queue")
[ $with_load -eq 1 ] || limits=()
$bin/noren --config "$work/noren.yaml" --listen 127.0.0.1:"$data" --upstream "$upstream" --ops 127.0.0.1:"$ops" "${limits[@]}" \
    >"$work/access.log" 2>"$work/noren.log" &
noren_pid=$!
not_started() { echo "noren did not start:"; cat "$work/noren.log"; exit 1; }
data=$(port_of "$noren_pid" "$work/noren.log" '"serving","listen":"127.0.0.1:') || not_started
ops=$(port_of "$noren_pid" "$work/noren.log" '"serving".*"ops":"127.0.0.1:') || not_started
wait_for_engine || exit 1

show_load() {
    local model; model=$(curl -fsS "http://127.0.0.1:$data/v1/models" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p' | head -n 1)
    local load=("$bin/noren-load" --model "${model:-default}" --max-tokens 20:60 --prompt-words 20:80)

    say "1. What noren costs: 4 clients, each request sent to the engine directly (direct) and through noren (noren)"
    "${load[@]}" --url "$upstream" --against "http://127.0.0.1:$data" --labels direct,noren -c 4 --duration $fits || status=$?

    say "2. What noren does: more and more clients, while it lets $cap requests into the engine and $queue wait"
    echo "   8 clients just fit, of 20 up to 12 wait, of 40 some are refused and ask again after a second."
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
}
status=0
[ $with_load -eq 0 ] || show_load
say "Where to look$([ $once -eq 0 ] || echo ' (all of it ends now; without --once it stays)')"
printf '  %-44s %s\n' \
    "send requests here (OpenAI, Anthropic, ...)" "http://127.0.0.1:$data/v1/chat/completions" \
    "metrics for Prometheus" "http://127.0.0.1:$ops/metrics" \
    "what it is doing" "http://127.0.0.1:$ops/-/status" \
    "the configuration in force" "http://127.0.0.1:$ops/-/config" \
    "say something to it" "$bin/noren ctl --socket $work/control.sock status"
echo
[ $status -eq 0 ] || { echo "something in the load went wrong, see above"; exit $status; }
if [ $once -eq 0 ]; then
    echo "noren runs on; Ctrl-C ends it."
    wait "$noren_pid"
fi
