#!/usr/bin/env bash
# packages.sh ARCH: installs what compiling for that architecture (amd64, arm64) takes; nothing, if it is all there.
set -eu
arch=$1
here=$(cd "$(dirname "$0")" && pwd)
if [ "$arch" = "$(dpkg --print-architecture)" ]; then
    exec bash "$here/../../deploy/install-packages.sh" build
fi
wanted=()
read -ra packages < <(sed -n 's/^build: //p' "$here/../../deploy/packages.txt")
for package in "${packages[@]}"; do
    case $package in
        # Run here, or the same for every architecture.
        cmake | ninja-build | git | ca-certificates | libcli11-dev | catch2) wanted+=("$package") ;;
        g++) wanted+=("crossbuild-essential-$arch") ;;
        *) wanted+=("$package:$arch") ;;
    esac
done
export DEBIAN_FRONTEND=noninteractive
dpkg --add-architecture "$arch"
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${wanted[@]}" >/dev/null
