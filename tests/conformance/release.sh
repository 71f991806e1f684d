# shellcheck shell=bash
# release.sh: for the scripts that need the release noren: build_noren builds it, and $noren is its path. NOREN=PATH takes another
# binary and builds nothing.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck disable=SC2034
noren=${NOREN:-$top/build/release/bin/noren}
build_noren() {
    [ -z "${NOREN:-}" ] || return 0
    local log; log=$(mktemp)
    { bash "$top/deploy/install-packages.sh" test && cd "$top" && cmake --preset release &&
        cmake --build --preset release --target noren; } >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
    rm -f "$log"
}
