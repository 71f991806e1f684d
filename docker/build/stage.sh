#!/usr/bin/env bash
# stage.sh ARCH OUT PROGRAM...: lays out what goes into an image:
#   OUT/files   the stripped programs, the libraries that the runtime base lacks, an SBOM, licences
#   OUT/run     a folder for the control socket
#   OUT/debug   their debug symbols, where a debugger looks for them, and what the debug base lacks besides: OpenSSL, CAs
set -eu
arch=$1 out=$2
shift 2
triplet=$(dpkg-architecture -a "$arch" -q DEB_HOST_MULTIARCH 2>/dev/null || gcc -print-multiarch)
strip=strip objcopy=objcopy
if [ "$arch" != "$(dpkg --print-architecture)" ]; then
    strip=$triplet-strip objcopy=$triplet-objcopy
fi
libraries=/usr/lib/$triplet
mkdir -p "$out/files/usr/local/bin" "$out/files$libraries" "$out/debug$libraries" "$out/debug/etc/ssl/certs" \
    "$out/debug/usr/lib/debug/usr/local/bin"

# With everything that those need in turn. readelf and not ldd, which would have to run the file.
needed() {
    local name
    for name in $(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
        case " ${found[*]} " in *" $name "*) continue ;; esac
        found+=("$name")
        [ -e "$libraries/$name" ] && needed "$libraries/$name"
    done
    return 0
}

found=("")
for program in "$@"; do
    built=build/image-$arch/bin/$program
    "$objcopy" --only-keep-debug --compress-debug-sections "$built" "$out/debug/usr/lib/debug/usr/local/bin/$program.debug"
    "$strip" -o "$out/files/usr/local/bin/$program" "$built"
    (cd "$out/debug/usr/lib/debug/usr/local/bin" && "$objcopy" --add-gnu-debuglink="$program.debug" "$out/files/usr/local/bin/$program")
    needed "$built"
done
linked=()
for name in "${found[@]}"; do
    case $name in
        # All bases have the C and C++ runtime, the runtime base OpenSSL too.
        '' | ld-linux* | libc.so.* | libm.so.* | libpthread.so.* | librt.so.* | libgcc_s.so.* | libstdc++.so.*) ;;
        libssl.so.* | libcrypto.so.*) cp -L "$libraries/$name" "$out/debug$libraries/" ;;
        *) cp -L "$libraries/$name" "$out/files$libraries/" ;;
    esac
    [ -e "$libraries/$name" ] && [ -n "$name" ] && linked+=("$libraries/$name")
done
cp /etc/ssl/certs/ca-certificates.crt "$out/debug/etc/ssl/certs/"
install -d -m 0775 "$out/run/noren"
mkdir -p "$out/files/usr/share/doc/noren"
"$(dirname "$0")/sbom.sh" "$arch" "${linked[@]}" >"$out/files/usr/share/doc/noren/sbom.spdx.json"
# What is linked or compiled in comes with its licence; apart from the base's, whose folders may be links.
licences=$out/files/usr/share/doc/noren/licences
mkdir "$licences"
sed -n 's/.*"name": "\([^"]*\)".*Debian source.*/\1/p' "${licences%/*}/sbom.spdx.json" | while read -r package; do
    cp -L "/usr/share/doc/$package/copyright" "$licences/$package"
done
