#!/usr/bin/env bash
# compile.sh ARCH REVISION TARGET...: builds targets for an architecture in build/image-ARCH.
set -eu
arch=$1 revision=$2
shift 2
cross=()
if [ "$arch" != "$(dpkg --print-architecture)" ]; then
    triplet=$(dpkg-architecture -a "$arch" -q DEB_HOST_MULTIARCH)
    cross=(-DCMAKE_SYSTEM_NAME=Linux "-DCMAKE_SYSTEM_PROCESSOR=${triplet%%-*}" "-DCMAKE_CXX_COMPILER=$triplet-g++"
        "-DCMAKE_LIBRARY_ARCHITECTURE=$triplet" -DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER)
fi
cmake --preset release -B "build/image-$arch" "-DNOREN_REVISION=$revision" "${cross[@]}" >cmake.log || { cat cmake.log; exit 1; }
cmake --build "build/image-$arch" --target "$@"
