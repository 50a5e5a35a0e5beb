#!/usr/bin/env bash
# The shared library exports what the headers declare with SPK_API, all of it and nothing else, and carries its soname.
# Usage: symbols.sh LIBRARY
set -euo pipefail
library=$1
cd "$(dirname "$0")/../.."
declared=$(cat include/sparsek/*.h | tr '\n' ' ' | grep -oE 'SPK_API [a-z_0-9 *]*\bspk_[a-z_0-9]+ ?\(' | grep -oE 'spk_[a-z_0-9]+ ?\($' | tr -d ' (' | sort)
exported=$(nm -D --defined-only "$library" | awk '{print $3}' | sort)
if [ "$declared" != "$exported" ]; then
    echo "declared (<) and exported (>) differ:"
    diff <(echo "$declared") <(echo "$exported") || true
    exit 1
fi
version=$(sed -n 's/^#define SPK_VERSION_MAJOR //p;s/^#define SPK_VERSION_MINOR //p' include/sparsek/core.h | paste -sd.) # before 1.0 a minor version may break programs
readelf -d "$library" | grep -qF "soname: [libsparsek.so.$version]" || { echo "the soname is not libsparsek.so.$version"; exit 1; }
needed=$(readelf -d "$library" | grep NEEDED | sed 's/.*\[//; s/\.so.*//' | sort -u | tr '\n' ' ')
for name in $needed; do
    case "$name" in libsqlite3 | libjansson | libz | libgomp | libc | libm | libpthread | libdl | ld-linux*) ;; *) echo "the library needs $name, which it should open at run time or do without"; exit 1 ;; esac
done
writers=$(nm -D --undefined-only "$library" | grep -oE '\b(putenv|setenv|unsetenv|clearenv)\b' | tr '\n' ' ' || true)
[ -z "$writers" ] || { echo "the library changes the environment, which is the program's: it calls $writers"; exit 1; }
echo "symbols: $(echo "$declared" | wc -l) functions, needs $needed"
