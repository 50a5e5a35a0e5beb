#!/usr/bin/env bash
# The C example in the README is examples/spmm.c, letter by letter; it compiles and prints what the README says. Usage: readme.sh BUILD_FOLDER
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
awk '/^```c$/ {inside = 1; next} /^```$/ {inside = 0} inside' README.md >"$build/readme.c"
diff "$build/readme.c" examples/spmm.c
gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude examples/spmm.c -o "$build/readme-example" -L"$build" -lsparsek -Wl,-rpath,"$build"
SPARSEK_STORE="$build/readme-store.db" "$build/readme-example" | tee "$build/readme.out"
tail -n 4 "$build/readme.out" | diff - <(printf '%6.1f %6.1f\n' 7 18 16 37 2 8 2 12)

# The kernel of docs/adding-a-kernel.md still fits the headers.
awk '/^```c$/ {inside = 1; next} /^```$/ {inside = 0} inside' docs/adding-a-kernel.md >"$build/added-kernel.c"
gcc -std=gnu11 -D_GNU_SOURCE -DSPK_SOURCE_HASH='"0"' -Wall -Wextra -Wpedantic -Werror -Iinclude -Isrc -c "$build/added-kernel.c" -o "$build/added-kernel.o"
