# shellcheck shell=bash
# totals.sh: for the scripts that run many tests. `run NAME COMMAND...` prints a line for each, with what the command
# said last, or if it failed with what it said of failures and the end of its output; `totals` prints how many passed and
# failed, and fails if any did.
passed=0 failed=0
run() {
    local name=$1 start=$SECONDS; shift
    local log; log=$(mktemp)
    if "$@" >"$log" 2>&1; then
        passed=$((passed + 1))
        printf 'ok    %-28s %4d s   %s\n' "$name" $((SECONDS - start)) "$(grep -v '^$' "$log" | tail -n 1)"
        [ -z "${figures:-}" ] || grep -E "$figures" "$log" | sed 's/^/      /'
    else
        failed=$((failed + 1))
        printf 'FAIL  %-28s %4d s\n' "$name" $((SECONDS - start))
        { grep -E -A 12 '^(FAIL|not ok)|FAILED:' "$log" | head -n 60 | cut -c1-600; echo ...; tail -n 30 "$log"; } | sed 's/^/      /'
    fi
    rm -f "$log"
}
totals() {
    echo
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}
