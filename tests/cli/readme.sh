#!/usr/bin/env bash
# The C example in the README is examples/spmm.c, letter by letter; it compiles and prints what the README says. So does examples/training.c, and its three
# products are right. So does the program of docs/attention.md. Usage: readme.sh BUILD_FOLDER
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk '/^```c$/ {inside = 1; next} /^```$/ {inside = 0} inside' README.md >"$work/readme.c"
diff "$work/readme.c" examples/spmm.c
example() {
    gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude "examples/$1.c" -o "$work/readme-$1" -L"$build" -lsparsek -Wl,-rpath,"$build"
    SPARSEK_STORE="$work/readme-store.db" "$work/readme-$1" | tee "$work/readme.out"
}

example spmm
tail -n 4 "$work/readme.out" | diff - <(printf '%6.1f %6.1f\n' 7 18 16 37 2 8 2 12)
example training
diff "$work/readme.out" <(
    echo y && printf '%7.1f%7.1f%7.1f%7.1f\n' 7 16 2 2 18 37 8 12 3 6 0 -2
    echo dx && printf '%7.1f%7.1f%7.1f%7.1f%7.1f%7.1f\n' 1 2 3 1 0 0 4 5 6 4 1 0 -1 -2 -3 -1 0 2
    echo "dW, a block a line" && printf '%7.1f%7.1f%7.1f%7.1f%7.1f%7.1f\n' 1 1 0 1 2 3 1 1 2 4 5 6 8 10 12 0 0 -1)

# docs/attention.md's program in C.
awk '/^```c$/ {inside = 1; next} /^```$/ {inside = 0} inside' docs/attention.md >"$work/attention.c"
gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude "$work/attention.c" -o "$work/attention" -L"$build" -lsparsek -lm -Wl,-rpath,"$build"
SPARSEK_STORE="$work/readme-store.db" "$work/attention" | diff - <(echo "O 2 6, exp(LSE) 2 4")

# The kernel of docs/adding-a-kernel.md still fits the headers, and its row the table.
mkdir -p "$work/src/backend/cpu"
cat src/backend/cpu/kernels.def <(grep '^SPK_KERNEL' docs/adding-a-kernel.md) >"$work/src/backend/cpu/kernels.def"
awk '/^```c$/ {inside = 1; next} /^```$/ {inside = 0} inside' docs/adding-a-kernel.md >"$work/added-kernel.c"
gcc -std=gnu11 -D_GNU_SOURCE -DSPK_SOURCE_HASH='"0"' -Wall -Wextra -Wpedantic -Werror -Iinclude -I"$work/src" -Isrc -c "$work/added-kernel.c" -o "$work/added-kernel.o"
