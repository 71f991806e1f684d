# shellcheck shell=bash
# totals.sh: for the scripts that run many tests. `run NAME COMMAND...` prints the name, then a line with what the command
# said last, or if it failed with what it said of failures and the end of its output; `totals` prints how many passed and
# failed, what was skipped inside of them, and fails if any failed.
passed=0 failed=0 skipped=""
line_end='\n'
[ -t 1 ] && line_end='\r' # where the result may be written over the name
run() {
    local name=$1 start=$SECONDS log skips; shift
    log=$(mktemp)
    printf "run   %s$line_end" "$name"
    if "$@" >"$log" 2>&1; then
        passed=$((passed + 1))
        printf 'ok    %-28s %4d s   %s\n' "$name" $((SECONDS - start)) "$(grep -v '^$' "$log" | tail -n 1)"
        [ -z "${figures:-}" ] || grep -E "$figures" "$log" | sed 's/^/      /'
    else
        failed=$((failed + 1))
        printf 'FAIL  %-28s %4d s\n' "$name" $((SECONDS - start))
        { grep -E -A 12 '^(FAIL|not ok)|FAILED:' "$log" | head -n 60 | cut -c1-600; echo ...; tail -n 30 "$log"; } | sed 's/^/      /'
    fi
    # What could not be tried here is no success.
    skips=$(grep -c '^SKIPPED' "$log")
    [ "$skips" -eq 0 ] || skipped+="${skipped:+, }$name $skips"
    rm -f "$log"
}
totals() {
    echo
    echo "$passed passed, $failed failed${skipped:+; skipped inside them: $skipped}"
    [ "$failed" -eq 0 ]
}
