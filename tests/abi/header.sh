#!/usr/bin/env bash
# The public header compiles alone, without a warning, as C11 and as C++17, with gcc and clang.
set -euo pipefail
cd "$(dirname "$0")/../.."
flags=(-Wall -Wextra -Wpedantic -Wconversion -Werror -fsyntax-only -Iinclude)
for compiler in "gcc -std=c11 -x c" "g++ -std=c++17 -x c++" "clang-14 -std=c11 -x c" "clang-14 -std=c++17 -x c++"; do
    echo '#include <sparsek/sparsek.h>' | $compiler "${flags[@]}" -
    echo "header: $compiler"
done
