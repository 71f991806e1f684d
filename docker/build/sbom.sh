#!/usr/bin/env bash
# sbom.sh ARCH LIBRARY...: an SPDX 2.3 document of what is in the image beside noren's own code: the packages that these
# shared libraries come from, and those whose headers are compiled in.
set -eu
arch=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
version=$(sed -n 's/^project(noren VERSION \([0-9.]*\).*/\1/p' "$here/../../CMakeLists.txt")

# dpkg knows libraries by the path they were installed under, which may lack /usr.
owner_of() { { dpkg-query -S "$1" || dpkg-query -S "${1#/usr}"; } 2>/dev/null | sed -n '1s/:.*//p'; }
linked=$(for library in "$@"; do owner_of "$(realpath "$library")"; done | sort -u)
headers=$(sed -n 's/^build: //p' "$here/../../deploy/packages.txt" | tr ' ' '\n' | grep -E -e '-dev$' | sort -u)

installed() { # package -> its version and source, of the target's architecture or of all
    dpkg-query -W -f='${db:Status-Status}\t${Architecture}\t${Version}\t${source:Package}\n' "$1" 2>/dev/null |
        awk -v arch="$arch" -F'\t' '$1 == "installed" && ($2 == arch || $2 == "all") {print $3 "\t" $4; exit}'
}
entry() { # package, relationship
    local found
    found=$(installed "$1:$arch")
    [ -n "$found" ] || found=$(installed "$1")
    [ -n "$found" ] || return 0
    printf ',\n    {"SPDXID": "SPDXRef-%s", "name": "%s", "versionInfo": "%s", "sourceInfo": "Debian source package %s", ' \
        "${1//[^A-Za-z0-9.-]/-}" "$1" "${found%%$'\t'*}" "${found##*$'\t'}"
    printf '"supplier": "Organization: Debian", "downloadLocation": "NOASSERTION", "filesAnalyzed": false, '
    printf '"externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", '
    printf '"referenceLocator": "pkg:deb/debian/%s@%s?arch=%s"}]}' "$1" "${found%%$'\t'*}" "$arch"
    relations+=$(printf ',\n    {"spdxElementId": "SPDXRef-noren", "relationshipType": "%s", "relatedSpdxElement": "SPDXRef-%s"}' \
        "$2" "${1//[^A-Za-z0-9.-]/-}")
}

relations='
    {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-noren"}'
cat <<HEAD
{
  "spdxVersion": "SPDX-2.3",
  "dataLicense": "CC0-1.0",
  "SPDXID": "SPDXRef-DOCUMENT",
  "name": "noren-$version-$arch",
  "documentNamespace": "urn:noren:sbom:$version:$arch",
  "creationInfo": {"created": "$(date -u +%Y-%m-%dT%H:%M:%SZ)", "creators": ["Tool: noren-sbom"]},
  "packages": [
HEAD
printf '    {"SPDXID": "SPDXRef-noren", "name": "noren", "versionInfo": "%s", "licenseDeclared": "Apache-2.0", ' "$version"
printf '"downloadLocation": "NOASSERTION", "filesAnalyzed": false}'
for package in $linked; do entry "$package" DYNAMIC_LINK; done
for package in $headers; do
    case " $(echo "$linked" | tr '\n' ' ') " in *" $package "*) ;; *) entry "$package" DEPENDS_ON ;; esac
done
printf '\n  ],\n  "relationships": [%s\n  ]\n}\n' "$relations"
