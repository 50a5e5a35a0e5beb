#!/usr/bin/env bash
# The README has 780 words at most; its lines of C compile and compute, its lines of Rust are those of the crates' READMEs, which are tested. The program of
# docs/c.md is examples/spmm.c, letter by letter; it compiles and prints its product. So does examples/training.c, and its three products are right. So does
# the program of docs/attention.md. Usage: readme.sh BUILD_FOLDER
set -euo pipefail
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
blocks() { awk -v begin="\`\`\`$1" '$0 == begin {inside = 1; next} /^```$/ {inside = 0} inside' "$2"; } # blocks LANGUAGE FILE
words=$(wc -w <README.md)
[ "$words" -le 780 ] || { echo "readme: README.md has $words words, the limit is 780: what is longer has a page in docs/"; exit 1; }
blocks rust README.md | while read -r line; do
    grep -qF -- "$line" rust/sparsek/README.md rust/burn-sparse/README.md || { echo "readme: no crate's README has the line: $line"; exit 1; }
done

# The README's lines of C, between what they leave out.
blocks c README.md >"$work/lines"
[ "$(wc -l <"$work/lines")" -ge 4 ]
cat >"$work/short.c" <<'END'
#include <sparsek/sparsek.h>
#include <stdio.h>
int main(void)
{
    const int32_t offsets[] = {0, 1, 1}, columns[] = {1};
    const float values[] = {1, 2, 3, 4}, b[] = {9, 9, 9, 9, 1, 2, 3, 4};
    float d[8];
    const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices), .rows = 4, .cols = 4, .block_rows = 2, .block_cols = 2, .nnzb = 1,
                                     .row_offsets = offsets, .col_indices = columns};
    spk_context *context = NULL;
    spk_pattern *pattern = NULL;
    spk_plan *plan = NULL;
END
cat "$work/lines" - >>"$work/short.c" <<'END'
    printf("%g %g %g %g %g\n", d[0], d[1], d[2], d[3], d[4]);
    spk_plan_destroy(&plan);
    spk_pattern_destroy(&pattern);
    spk_context_destroy(&context);
}
END
gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude "$work/short.c" -o "$work/short" -L"$build" -lsparsek -Wl,-rpath,"$build"
SPARSEK_STORE="$work/readme-store.db" "$work/short" | diff - <(echo 7 10 15 22 0)

blocks c docs/c.md | head -n "$(wc -l <examples/spmm.c)" | diff - examples/spmm.c
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
blocks c docs/attention.md >"$work/attention.c"
gcc -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude "$work/attention.c" -o "$work/attention" -L"$build" -lsparsek -lm -Wl,-rpath,"$build"
SPARSEK_STORE="$work/readme-store.db" "$work/attention" | diff - <(echo "O 2 6, exp(LSE) 2 4")

# The kernel of docs/adding-a-kernel.md still fits the headers, and its row the table.
mkdir -p "$work/src/backend/cpu"
cat src/backend/cpu/kernels.def <(grep '^SPK_KERNEL' docs/adding-a-kernel.md) >"$work/src/backend/cpu/kernels.def"
blocks c docs/adding-a-kernel.md >"$work/added-kernel.c"
gcc -std=gnu11 -D_GNU_SOURCE -DSPK_SOURCE_HASH='"0"' -Wall -Wextra -Wpedantic -Werror -Iinclude -I"$work/src" -Isrc -c "$work/added-kernel.c" -o "$work/added-kernel.o"
