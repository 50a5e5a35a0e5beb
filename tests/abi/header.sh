#!/usr/bin/env bash
# Each public header compiles alone, without a warning, as C11 and as C++17, with gcc and clang, and makes its structs alone; sparsek.h has them all.
set -euo pipefail
cd "$(dirname "$0")/../.."
flags=(-Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only -Iinclude)
for compiler in "gcc -std=c11 -x c" "g++ -std=c++17 -x c++" "clang-14 -std=c11 -x c" "clang-14 -std=c++17 -x c++"; do
    for header in include/sparsek/*.h; do echo "#include <sparsek/${header##*/}>" | $compiler "${flags[@]}" -; done
    echo "header: $compiler"
done
for header in include/sparsek/*.h; do
    name=${header##*/}
    grep -qF "#include \"$name\"" include/sparsek/sparsek.h || [ "$name" = sparsek.h ] || { echo "header: sparsek.h does not include $name"; exit 1; }
    { echo "#include <sparsek/$name>"; sed -n 's/^#define SPK_SIZED_\(spk_[a-z_]*\) .*/\1 make_\1(void) { return (\1){SPK_SIZED(\1)}; }/p' "$header"; } |
        gcc -std=c11 -x c "${flags[@]}" -
done
# C++ makes structs with spk_sized, from the first standard on, and where a program encloses the header in extern "C".
for standard in c++98 c++17 c++20; do
    printf '%s\n' 'extern "C" {' '#include <sparsek/sparsek.h>' '}' 'spk_spmm problem = spk_sized<spk_spmm>();' |
        g++ -std=$standard -x c++ "${flags[@]}" -Wno-variadic-macros -Wno-long-long -
    echo "spk_sized: $standard"
done
# No struct ends in padding: a field that a later version adds there would be read from callers that do not have it.
padded=$(echo '#include <sparsek/sparsek.h>' | gcc -std=c11 -Wpadded -fsyntax-only -Iinclude -x c - 2>&1 | grep 'padding struct size' || true)
[ -z "$padded" ] || { echo "$padded"; exit 1; }
