#!/usr/bin/env bash
# serve.sh LISTEN_PORT ORIGIN_PORT: the release noren (built first if there is none) in the foreground with the settings of the
# cases, for other conformance suites that play both client and origin.
set -eu
[ $# -eq 2 ] || { echo "usage: serve.sh LISTEN_PORT ORIGIN_PORT" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/conformance/release.sh
. "$here/release.sh"
[ -x "$noren" ] || build_noren
exec "$noren" --config "$here/noren.yaml" --listen "127.0.0.1:$1" --upstream "http://127.0.0.1:$2" --ops 127.0.0.1:0 --workers 1
