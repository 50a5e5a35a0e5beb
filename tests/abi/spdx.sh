#!/usr/bin/env bash
# sparsek.spdx is installed beside the licence, and names each shared library that ours need, each archive that is linked in, and each library that the
# sources open by name. Usage: spdx.sh BUILD_FOLDER
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/../.."
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix" >/dev/null
list=$(find "$prefix" -name sparsek.spdx)
[ -f "$list" ] && cmp -s LICENSE "$(dirname "$list")/LICENSE" || { echo "spdx: no sparsek.spdx with the licence in the installation"; exit 1; }
grep -q "^PackageVersion: $(sed -n 's/^project(sparsek VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)$" "$list" || { echo "spdx: another version than CMakeLists.txt's"; exit 1; }
count=0
while read -r name; do
    count=$((count + 1))
    grep -qE "(^|[ :,])${name//+/\\+}[,.: ]" "$list" || { echo "spdx: cmake/sparsek.spdx.in does not name $name"; exit 1; }
done < <({
    readelf -d "$build/libsparsek.so" "$build/sparsek" "$build/sparsek-prover" | sed -n 's/.*(NEEDED).*\[\(.*\.so\).*\]$/\1/p' | grep -v '^libsparsek'
    grep -ohE '[^ ]+\.a\b' "$build/build.ninja" | grep '^/' | grep -vF "$build" | xargs -r -n 1 basename
    grep -rhoE '"lib[A-Za-z_-]+\.so[.0-9]*"' src | sed 's/"\(.*\.so\).*"/\1/'
} | sort -u)
[ "$count" -gt 4 ] || { echo "spdx: only $count libraries found: the test looks at the wrong place"; exit 1; }
echo "spdx: all $count libraries are named"
