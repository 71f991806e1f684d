#!/usr/bin/env bash
# install-packages.sh [test] [bench] [fuzz] [image]: installs what deploy/packages.txt lists and this Debian 12 does not have yet:
# what building takes, and what each named set takes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
wanted=$(for set in build "$@"; do sed -n "s/^$set: //p" "$here/packages.txt"; done)
missing=()
for package in $wanted; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
echo "installing: ${missing[*]}"
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
# No service is to be started by an installation for tests: Debian's packages ask this file, and 101 means no.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
    "${as_root[@]}" chmod 755 "$policy"
    trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
