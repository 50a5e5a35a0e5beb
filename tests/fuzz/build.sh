#!/usr/bin/env bash
# Builds the fuzzers as OSS-Fuzz does: into $OUT each program, its <fuzzer>_seed_corpus.zip and its <fuzzer>.dict. What OSS-Fuzz sets is taken from the
# environment: CC, CXX, CFLAGS, LIB_FUZZING_ENGINE, OUT, WORK. Without them: clang with the address and undefined-behaviour sanitizers, into build/fuzzers.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
here=$root/tests/fuzz
: "${CC:=clang-14}" "${OUT:=$root/build/fuzzers}" "${WORK:=$root/build/fuzzers-work}" "${LIB_FUZZING_ENGINE:=-fsanitize=fuzzer}"
: "${CFLAGS:=-O1 -g -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=undefined}"
export CC CFLAGS
if [ -n "${CXX:-}" ]; then export CXX; fi
mkdir -p "$OUT/lib" "$WORK"

# Debug keeps assertions and adds no optimisation of its own; the programs find the libraries that are copied beside them.
cmake -S "$root" -B "$WORK" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG= -DSPARSEK_TESTS=ON -DSPARSEK_FUZZ=ON -DSPARSEK_OPENMP=OFF \
    "-DSPARSEK_FUZZ_ENGINE=$LIB_FUZZING_ENGINE"
mapfile -t names < <(basename -a -s .c "$here"/fuzz_*.c)
cmake --build "$WORK" --target "${names[@]}"

for name in "${names[@]}"; do
    cp "$WORK/tests/$name" "$OUT/"
    cp "$here/$name.dict" "$OUT/"
    seeds=$here/corpus/$name
    [ -d "$seeds" ] || seeds=$root/tests/data/io # a reader's are the files of the tests
    python3 -m zipfile -c "$OUT/${name}_seed_corpus.zip" "$seeds"/*
    ldd "$WORK/tests/$name" | awk '/(jansson|sqlite3|zstd|libz)/ && $3 ~ /^\// {print $3}' | xargs -r -I{} cp -Lu {} "$OUT/lib/"
done
echo "in $OUT: ${names[*]}"
