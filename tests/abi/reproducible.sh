#!/usr/bin/env bash
# Two builds of the same sources, in two folders and with other clocks, give the same library and programs, byte by byte. Usage: reproducible.sh [--optimised]
# Without --optimised all is compiled without optimisation, to be quick.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
options=(-G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSPARSEK_TESTS=OFF -DSPARSEK_STATIC=ON)
[ "${1:-}" = --optimised ] || options+=("-DCMAKE_TOOLCHAIN_FILE=$root/rust/tests/quick.cmake")
unset CCACHE_BASEDIR CCACHE_NOHASHDIR # a compiler cache must not take one folder's object for the other's
# At fixed places, so that it knows them the next time.
work=$root/build/reproducible
rm -rf "$work"
for folder in "$work/one" "$work/another/and/deeper"; do
    mkdir -p "$folder"
    cp -r CMakeLists.txt LICENSE cmake src include cli prover bench docs "$folder"
    (cd "$folder" && cmake -S . -B build "${options[@]}" && cmake --build build) >"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
    (cd "$folder/build" && sha256sum libsparsek.so libsparsek.a sparsek sparsek-prover) >>"$work/$(basename "$folder").sums"
done
diff "$work/one.sums" "$work/deeper.sums" || { echo "reproducible: the builds in $work differ"; exit 1; }
if grep -qaF "$work" "$work/one/build/libsparsek.so" "$work/one/build/sparsek" "$work/one/build/sparsek-prover"; then echo "reproducible: a file names the folder it was built in"; exit 1; fi
cat "$work/one.sums"
echo "reproducible: the same library and programs from two folders"
