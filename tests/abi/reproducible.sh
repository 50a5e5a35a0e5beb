#!/usr/bin/env bash
# Two builds of the same sources, in two folders and with other clocks, give the same library and programs, byte by byte. Usage: reproducible.sh [--optimised]
# Without --optimised one of them is what consumers.sh has built, and the other is compiled without optimisation, too, to be quick.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
unset CCACHE_BASEDIR CCACHE_NOHASHDIR # a compiler cache must not take one folder's object for the other's
# At fixed places, so that it knows them the next time.
work=$root/build/reproducible
rm -rf "$work"
mkdir -p "$work/another/and/deeper"
made=(libsparsek.so libsparsek.a sparsek sparsek-prover)

# built FOLDER OPTION...: builds what is in FOLDER.
built() {
    local folder=$1
    shift
    (cd "$folder" && cmake -S . -B build -G Ninja "$@" && cmake --build build) >"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
}

if [ "${1:-}" = --optimised ]; then
    mkdir "$work/one"
    for folder in "$work/one" "$work/another/and/deeper"; do
        cp -r CMakeLists.txt LICENSE cmake src include cli prover bench docs "$folder"
        built "$folder" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSPARSEK_TESTS=OFF -DSPARSEK_STATIC=ON
    done
    first=$work/one second=$work/another/and/deeper inside=build
else
    first=$root/build/consumers/whole second=$work/another/and/deeper inside=build/sparsek
    [ -f "$first/$inside/libsparsek.so" ] || { echo "reproducible: there is no build in $first; tests/abi/consumers.sh makes it"; exit 1; }
    cp -r "$first/source" "$first/CMakeLists.txt" "$second"
    built "$second" "-DCMAKE_TOOLCHAIN_FILE=$root/rust/tests/quick.cmake"
fi
for folder in "$first" "$second"; do (cd "$folder/$inside" && sha256sum "${made[@]}") >>"$work/$(basename "$folder").sums"; done
diff "$work/$(basename "$first").sums" "$work/$(basename "$second").sums" || { echo "reproducible: the builds in $first and $second differ"; exit 1; }
for name in libsparsek.so sparsek sparsek-prover; do
    for folder in "$first" "$second"; do
        if grep -qaF "$folder" "$folder/$inside/$name"; then echo "reproducible: $name names the folder it was built in, $folder"; exit 1; fi
    done
done
cat "$work/$(basename "$first").sums"
echo "reproducible: the same library and programs from two folders"
