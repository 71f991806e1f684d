#!/usr/bin/env bash
# install-packages.sh [build] [demo] [test] [fuzz] [image] [real]: installs what deploy/packages.txt lists and this Debian 12 does
# not have yet: what building takes, and what each named set takes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
for set in "$@"; do
    grep -q "^$set: " "$here/packages.txt" || { sed -n '2,3s/^# //p' "$0"; exit 2; }
done
wanted=$(for set in build "$@"; do sed -n "s/^$set: //p" "$here/packages.txt"; done | tr ' ' '\n' | sort -u)
missing=()
for package in $wanted; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
echo "installing: ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "this takes root, and there is no sudo; run as root: bash $0 $*" >&2; exit 1; }
    as_root=(sudo)
fi
# No service is to be started by an installation for tests.
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
