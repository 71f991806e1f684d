#!/usr/bin/env bash
# fuzz.sh [SECONDS]: builds the fuzz targets (clang) and runs each for so long (default 15), from the seeds that the tests
# have anyway. What a run finds beyond them stays in build/fuzz/corpus and is its start the next time. Ends with the totals.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top" || exit 1
seconds=${1:-15}
bash deploy/install-packages.sh fuzz || exit 1
cmake --preset fuzz >/dev/null 2>&1 || exit 1
cmake --build --preset fuzz --target fuzz-all >build/fuzz/build.log || { tail -n 30 build/fuzz/build.log; exit 1; }
python3 tests/fuzz/seeds.py build/fuzz/corpus || exit 1
passed=0 failed=0
for program in build/fuzz/bin/fuzz-*; do
    target=$(basename "$program"); target=${target#fuzz-}
    log=build/fuzz/$target.log
    options=(-artifact_prefix="build/fuzz/$target-")
    [ ! -f "tests/fuzz/$target.dict" ] || options+=(-dict="tests/fuzz/$target.dict")
    # -rss_limit_mb and -timeout: memory without bound or a loop without end is a finding too.
    if "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=16384 -print_final_stats=1 \
        "${options[@]}" "build/fuzz/corpus/$target" >"$log" 2>&1; then
        passed=$((passed + 1))
        printf 'ok    %-16s %s runs\n' "$target" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
    else
        failed=$((failed + 1))
        printf 'FAIL  %s\n' "$target"; tail -n 30 "$log"
    fi
done
echo
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
