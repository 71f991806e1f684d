#!/usr/bin/env bash
# instructions.sh BIN_DIR [--record]: instructions that a token event takes, counted by callgrind: to look at one, per piece
# of each shape of noren-observe-bench, and to relay one, all of noren's, per event of each shape of relayed.py. Unlike times
# they are the same in each run (relayed ones within 1 %), whatever else the machine does.
# Compares with tests/bench/instructions.txt and fails if a shape takes over 3 % more; --record writes that file.
# Another compiler or processor counts otherwise, so figures that were recorded with another are only shown.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=$1 mode=${2:-compare} recorded=$here/instructions.txt
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Counted inside of one_pass, written down after each counted_pass: counts.1, counts.2, ...
valgrind --tool=callgrind --collect-atstart=no '--toggle-collect=*one_pass*' '--dump-after=*counted_pass*' \
    --callgrind-out-file="$folder/counts" "$bin/noren-observe-bench" --once >"$folder/shapes" 2>"$folder/log" || { cat "$folder/log"; exit 1; }

# What the counts depend on beside the source: the compiler, and which memcmp the C library chooses.
avx2=$(grep -qw avx2 /proc/cpuinfo && echo avx2 || echo "no avx2")
platform="gcc $(c++ -dumpfullversion), $(uname -m), $avx2"
shape=0
while read -r pieces name; do
    shape=$((shape + 1))
    total=$(sed -n 's/^totals: //p' "$folder/counts.$shape")
    echo "$((total / pieces)) $name"
done <"$folder/shapes" >"$folder/now"
python3 "$here/relayed.py" "$bin" >>"$folder/now"

if [ "$mode" = --record ]; then
    { echo "# instructions per piece; $platform"; cat "$folder/now"; } >"$recorded"
    cat "$recorded"
    exit
fi
comparable=1
grep -qF "# instructions per piece; $platform" "$recorded" || comparable=0
awk -v comparable="$comparable" '
    /^#/ { next }
    { count = $1; sub(/^[0-9]+ /, "") }
    FILENAME == ARGV[1] { before[$0] = count; next }
    {
        worse = comparable && ($0 in before) && count > before[$0] * 1.03
        printf "%-36s %9d, recorded %9d%s\n", $0, count, before[$0], worse ? "   MORE" : ""
        if (worse) failed++; else passed++
    }
    END {
        if (!comparable) print "recorded with another compiler or processor: not compared"
        printf "%d passed, %d failed\n", passed, failed
        exit failed > 0
    }' "$recorded" "$folder/now"
