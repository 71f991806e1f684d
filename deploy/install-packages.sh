#!/usr/bin/env bash
# install-packages.sh [test] [fuzz] [image] [real]: installs what deploy/packages.txt lists and this Debian 12 does not have yet:
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
# No service is to be started by an installation for tests.
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
