#!/usr/bin/env bash
# serve.sh LISTEN_PORT ORIGIN_PORT: the release noren in the foreground with the settings of the cases, for other
# conformance suites that play both client and origin.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec "${NOREN:-$here/../../build/release/bin/noren}" --config "$here/noren.yaml" --listen "127.0.0.1:$1" \
    --upstream "http://127.0.0.1:$2" --ops 127.0.0.1:0 --workers 1
