#!/usr/bin/env bash
# root.sh ROOT: takes out of a runtime base's files what noren never opens: tables for iconv (gconv: on arm64 half of the
# base), pages and files for people, leap-second time zones. What scanners read (os-release, dpkg's status) and every
# licence stay.
set -eu
root=$1
rm -rf "$root"/usr/lib/*/gconv "$root"/usr/share/{man,info,lintian,perl5,gcc,gdb,bug} "$root"/usr/share/zoneinfo/{right,posix}
find "$root/usr/share/doc" -type f ! -name copyright -delete
find "$root/usr/share/doc" -depth -type d -empty -delete
