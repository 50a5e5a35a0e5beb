#!/usr/bin/env bash
# C, C++ and headers are as clang-format-14 makes them with .clang-format, and no line has more than 140 columns. Usage: format.sh [--fix | FILE...]
#   --fix     formats what is not
#   FILE      these instead of all
set -euo pipefail
cd "$(dirname "$0")/../.."
fix=
[ "${1:-}" != --fix ] || { fix=1; shift; }

if [ $# -gt 0 ]; then files=("$@"); else
    mapfile -t files < <(find bench cli cmake examples include prover python/src src tests -regex '.*\.\(c\|h\|cpp\|cu\|cuh\)' | sort)
fi
if [ -n "$fix" ]; then clang-format-14 -i "${files[@]}"; fi
clang-format-14 --dry-run --Werror "${files[@]}" || { echo "format: tests/abi/format.sh --fix formats them"; exit 1; }
long=$(awk 'length($0) > 140 { print FILENAME ":" FNR ": " length($0) " columns" }' "${files[@]}")
[ -z "$long" ] || { echo "$long"; echo "format: the limit is 140 columns"; exit 1; }
echo "format: ${#files[@]} files"
