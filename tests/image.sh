#!/usr/bin/env bash
# image.sh [--cross] [--keep]: builds the runtime and the debug image as docker/Dockerfile says, without a Docker engine and
# without a registry: the bases are made here from Debian's packages. Looks at what came out, and runs it as a hardened pod
# would. Ends with the totals. --cross: compiles for the other of amd64 and arm64 as well. --keep: leaves the images in
# build/image.
set -u
cd "$(dirname "$0")/.." || exit 1
cross=0 keep=0
for option in "$@"; do
    case $option in
        --cross) cross=1 ;;
        --keep) keep=1 ;;
        *) sed -n '2,5s/^# //p' "$0"; exit 2 ;;
    esac
done
[ "$(id -u)" -eq 0 ] || { echo "SKIPPED: image.sh needs root, for chroots and runc"; exit 0; }
bash deploy/install-packages.sh image || exit 1
work=$PWD/build/image
mkdir -p "$work/bases"
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
buildah() { command buildah --root "$work/storage" --runroot "$work/run" "$@"; }
native=$(dpkg --print-architecture)
other=arm64
[ "$native" = arm64 ] && other=amd64
revision=$(git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
limit=$((40 * 1000 * 1000))

passed=0 failed=0
check() { # what, command...
    local what=$1; shift
    if "$@" >"$work/log" 2>&1; then
        passed=$((passed + 1)); echo "ok    $what"
    else
        failed=$((failed + 1)); echo "FAIL  $what"; grep -v "^ *$" "$work/log" | tail -n 40 | sed 's/^/        /'
    fi
}
end() {
    command runc delete -f noren-image-test >/dev/null 2>&1
    [ $keep -eq 1 ] || { buildah rmi -a -f >/dev/null 2>&1; rm -rf "$work/storage" "$work/run" "$work/oci"; }
    rm -f "$work/log" "$work/noren.log"
}
trap end EXIT

# What the FROM lines name, made of Debian packages; kept for the next run, as long as it is made of the same.
base() { # name, mmdebstrap options...
    local name=$1 arch=${1#runtime-}; shift
    [ "$arch" != "$name" ] || arch=$native
    if [ "$(cat "$work/bases/$name.made-of" 2>/dev/null)" != "$*" ]; then
        rm -f "$work/bases/$name.made-of"
        mmdebstrap --quiet "$@" bookworm "$work/bases/part-$name.tar" || return 1
        mv "$work/bases/part-$name.tar" "$work/bases/$name.tar"
        buildah rmi -f "localhost/noren-base:$name" 2>/dev/null
        echo "$*" >"$work/bases/$name.made-of"
    fi
    buildah inspect --type image "localhost/noren-base:$name" >/dev/null 2>&1 && return 0
    printf 'FROM scratch\nADD %s.tar /\n' "$name" >"$work/bases/$name.Dockerfile"
    buildah bud --quiet --pull-never --format docker --platform "linux/$arch" -t "localhost/noren-base:$name" \
        -f "$work/bases/$name.Dockerfile" "$work/bases"
}
build() { # target, architecture, tag
    buildah bud --layers --pull-never --format docker --target "$1" --platform "linux/$2" \
        --ignorefile docker/Dockerfile.dockerignore --build-arg "REVISION=$revision" --build-arg "BUILDPLATFORM=linux/$native" \
        --build-arg "TARGETPLATFORM=linux/$2" \
        --build-arg BUILD_BASE=localhost/noren-base:build --build-arg "RUNTIME_BASE=localhost/noren-base:runtime-$2" \
        --build-arg "DEBUG_BASE=localhost/noren-base:debug" -t "localhost/noren:$3" -f docker/Dockerfile .
}
of_config() { buildah inspect --type image "localhost/noren:$1" | jq -r ".Docker.config$2"; }
is() { [ "$1" = "$2" ] || { echo "found $1, expected $2"; return 1; }; }

# What a package does at its installation is not done there; of that, only the CAs matter.
# shellcheck disable=SC2016  # mmdebstrap's shell expands it
authorities='cat "$1"/usr/share/ca-certificates/mozilla/*.crt >"$1/etc/ssl/certs/ca-certificates.crt"'
runtime_packages=libc6,libstdc++6,libgcc-s1,libssl3,base-files,netbase,tzdata,ca-certificates
build_packages=$(sed -n 's/^build: //p' deploy/packages.txt | tr ' ' ',')
check "base for building" base build --variant=apt --include="$build_packages"
check "base for running (no shell)" base "runtime-$native" --variant=extract --include="$runtime_packages" --extract-hook="$authorities"
check "base for debugging" base debug --variant=essential --include=libstdc++6
begin=$SECONDS
check "runtime image" build runtime "$native" runtime
check "debug image" build debug "$native" debug
echo "      built in $((SECONDS - begin)) s"
if [ $cross -eq 1 ]; then
    check "base for $other" base "runtime-$other" --variant=extract --architectures="$other" --include="$runtime_packages" \
        --extract-hook="$authorities"
    check "runtime image for $other" build runtime "$other" "runtime-$other"
fi

# --- what is in it
for tag in runtime debug $([ $cross -eq 1 ] && echo "runtime-$other"); do
    buildah push --quiet "localhost/noren:$tag" "oci:$work/oci:$tag" >/dev/null 2>&1
    unpacked=$work/unpacked-$tag
    rm -rf "$unpacked"
    umoci unpack --image "$work/oci:$tag" "$unpacked" >/dev/null 2>&1
    bytes=$(du -sb "$unpacked/rootfs" | cut -f1)
    packed=$(skopeo inspect --raw "oci:$work/oci:$tag" | jq '[.layers[].size] | add')
    printf '      %-14s %5.1f MB, %5.1f MB packed, %s\n' "$tag" "$(echo "$bytes" | awk '{print $1 / 1e6}')" \
        "$(echo "$packed" | awk '{print $1 / 1e6}')" "$(skopeo inspect --format '{{.Digest}}' "oci:$work/oci:$tag")"
    [ "$tag" = debug ] || check "$tag is smaller than 40 MB" [ "$bytes" -lt $limit ]
done
root=$work/unpacked-runtime/rootfs
if [ $cross -eq 1 ]; then
    check "the other image says and holds $other" is \
        "$(buildah inspect --type image "localhost/noren:runtime-$other" | jq -r .OCIv1.architecture), $(file -b "$work/unpacked-runtime-$other/rootfs/usr/local/bin/noren" | grep -oE -m1 'x86-64|aarch64' | head -n 1)" \
        "$other, $([ "$other" = arm64 ] && echo aarch64 || echo x86-64)"
fi
no_shell() {
    local found
    found=$(find "$root" \( -name sh -o -name bash -o -name dash -o -name busybox \) ! -type d)
    [ -z "$found" ] || { echo "$found"; return 1; }
}
nothing_setuid() { local found; found=$(find "$root" -perm /6000 -type f); [ -z "$found" ] || { echo "$found"; return 1; }; }
sbom() {
    python3 - "$1" <<'PY'
import json, sys
document = json.load(open(sys.argv[1], encoding="utf-8"))
names = {one["name"]: one for one in document["packages"]}
ids = {one["SPDXID"] for one in document["packages"]} | {"SPDXRef-DOCUMENT"}
assert document["spdxVersion"] == "SPDX-2.3"
for wanted in ("noren", "libc6", "libstdc++6", "libyaml-cpp0.7", "libboost1.81-dev"):
    assert wanted in names and names[wanted]["versionInfo"], f"{wanted} is missing: {sorted(names)}"
for relation in document["relationships"]:
    assert {relation["spdxElementId"], relation["relatedSpdxElement"]} <= ids, relation
PY
}
check "no shell in the runtime image" no_shell
check "a shell in the debug image" test -x "$work/unpacked-debug/rootfs/bin/sh"
debug_runs() { chroot "$work/unpacked-debug/rootfs" /usr/local/bin/noren --version | tee /dev/stderr | grep -q "$revision"; }
check "... and noren runs there, on a base without OpenSSL" debug_runs
check "nothing is setuid" nothing_setuid
check "user 65532:65532, by number" is "$(of_config runtime .User)" 65532:65532
check "on the path, for kubectl exec" grep -qE '^PATH=.*/usr/local/bin(:|$)' <<<"$(of_config runtime '.Env[]')"
check "entry point" is "$(of_config runtime '.Entrypoint[0]')" /usr/local/bin/noren
check "stop signal" is "$(of_config runtime .StopSignal)" SIGTERM
check "health check" is "$(of_config runtime '.Healthcheck.Test[-1]')" ready
check "OCI labels: revision" is "$(of_config runtime '.Labels["org.opencontainers.image.revision"]')" "$revision"
check "OCI labels: licenses" is "$(of_config runtime '.Labels["org.opencontainers.image.licenses"]')" Apache-2.0
check "SBOM" sbom "$root/usr/share/doc/noren/sbom.spdx.json"
build_id() { readelf -n "$1/usr/$2" 2>/dev/null | sed -n 's/^ *Build ID: //p' | grep .; }
check "debug symbols in the debug image, of the very noren in the runtime image" is \
    "$(build_id "$work/unpacked-debug/rootfs" lib/debug/usr/local/bin/noren.debug)" "$(build_id "$root" local/bin/noren)"
check "the CAs that OpenSSL looks for" grep -q "BEGIN CERTIFICATE" "$root$(of_config runtime '.Env[]' | sed -n 's/^SSL_CERT_FILE=//p')"
check "/run/noren is the user's and group 0's" is "$(stat -c '%u:%g %a' "$root/run/noren")" "65532:0 775"
licences() { # of the base's packages, and of what noren brings
    local file missing=0
    for file in libc6/copyright libstdc++6/copyright libssl3/copyright ca-certificates/copyright tzdata/copyright \
        noren/licences/libyaml-cpp0.7 noren/licences/libboost1.81-dev; do
        [ -s "$root/usr/share/doc/$file" ] || { echo "$file"; missing=1; }
    done
    return $missing
}
check "licences of what is in it" licences

# --- run as a hardened pod would: any uid, group 0, no capability, read-only root, only the control socket's folder writable
bundle() { # an unpacked image becomes what runc runs, in this machine's network
    local config=$work/unpacked-runtime/config.json
    jq --argjson args "$1" '.process.args = $args | .process.terminal = false
        | .process.user = {"uid": 1000730000, "gid": 0} | .process.noNewPrivileges = true | .root.readonly = true
        | .process.capabilities = {"bounding": [], "effective": [], "permitted": [], "inheritable": [], "ambient": []}
        | .linux.namespaces |= map(select(.type != "network" and .type != "cgroup")) | del(.linux.resources)
        | .mounts += [{"destination": "/run/noren", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=0777"]}]' \
        "$config" >"$config.new" && mv "$config.new" "$config"
}
says_revision() {
    bundle '["/usr/local/bin/noren", "--version"]'
    runc run -b "$work/unpacked-runtime" noren-image-test | tee /dev/stderr | grep -q "$revision"
}
check "noren --version names the revision" says_revision

serve() {
    bundle '["/usr/local/bin/noren", "--listen", "127.0.0.1:18080", "--ops", "127.0.0.1:19464", "--upstream", "http://127.0.0.1:18000"]'
    runc run -b "$work/unpacked-runtime" noren-image-test >"$work/noren.log" 2>&1 &
    pid=$!
    for _ in $(seq 100); do
        python3 -c 'import urllib.request as u; u.urlopen("http://127.0.0.1:19464/-/healthy", timeout=1)' 2>/dev/null && return 0
        sleep 0.1
    done
    cat "$work/noren.log"
    return 1
}
as_asked() { # as process 1: uid, capabilities, no new privileges
    local status
    status=$(runc state noren-image-test | jq .pid) && status=$(cat "/proc/$status/status")
    echo "$status"
    grep -q '^Uid:.1000730000' <<<"$status" && grep -q '^CapBnd:.0000000000000000$' <<<"$status" && grep -q '^NoNewPrivs:.1$' <<<"$status"
}
drains() {
    runc kill noren-image-test TERM
    local status=0
    wait "$pid" || status=$?
    cat "$work/noren.log"
    [ $status -eq 0 ] && grep -q '"msg":"drained"' "$work/noren.log" && grep -q '"msg":"stopped"' "$work/noren.log"
}
check "serves as uid 1000730000 on a read-only root" serve
check "no capability, no new privileges" as_asked
check "noren ctl status inside" runc exec noren-image-test /usr/local/bin/noren ctl status
check "drains on SIGTERM, as process 1" drains
rm -rf "$work"/unpacked-*

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
