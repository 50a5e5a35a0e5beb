#!/usr/bin/env bash
# One binary for every x86-64 machine: no AVX register outside the kernels whose file name says so. Usage: isa.sh BUILD_FOLDER
set -euo pipefail
[ "$(uname -m)" = x86_64 ] || { echo "isa: not an x86-64 machine, nothing to look at"; exit 0; }
cd "$1"
found=0
while read -r object; do
    uses=$(objdump -d --no-show-raw-insn "$object" | grep -cE '%[yz]mm|\bv(fma|mov)' || true)
    if [ "$uses" -gt 0 ]; then
        found=$((found + 1))
        case "$object" in */kernels/*_avx2.c.o | */kernels/*_avx512.c.o | */kernels/*_amx.c.o) ;; *) echo "$object uses AVX"; exit 1 ;; esac
    fi
done < <(find src cli -name '*.o')
[ "$found" -gt 0 ] || { echo "no object uses AVX: the test looks at the wrong place"; exit 1; }
echo "isa: $found objects use AVX, all of them kernels that say so"

# And it runs where there is no AVX: an emulated processor of 2006.
SPARSEK_MKL=none SPARSEK_OPENBLAS=none SPARSEK_BLIS=none SPARSEK_ONEDNN=none qemu-x86_64 -cpu Conroe ./sparsek check --cases 10
