#!/usr/bin/env bash
# The binary interface (functions, parameters, layouts of structs, values of enumerators) is that of the committed dump, sparsek.abi.
# Usage: layout.sh [--update]    --update writes the dump anew
set -euo pipefail
cd "$(dirname "$0")/../.."
dump=tests/abi/sparsek.abi
[ "$(uname -m)" = x86_64 ] || { echo "layout: the dump is of x86-64; nothing to compare here"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# write_dump INCLUDE_FOLDER OUTPUT: from the files that define the public functions, compiled with debug information and linked with nothing.
write_dump() {
    local names files part
    # As one file: abidw tells public headers from ours by base names, and src/ has a matrix.h, too.
    mkdir -p "$work/one/sparsek"
    for part in $(grep -oP '^#include "\K\w+' "$1/sparsek/sparsek.h"); do grep -v '^#include "' "$1/sparsek/$part.h"; done >"$work/one/sparsek/sparsek.h"
    names=$(cat "$1"/sparsek/*.h | tr '\n' ' ' | grep -oE 'SPK_API [a-z_0-9 *]*\bspk_[a-z_0-9]+ ?\(' | grep -oE 'spk_[a-z_0-9]+ ?\($' | tr -d ' (' | paste -sd'|')
    mapfile -t files < <(grep -rlE "^[a-z].*\b($names)\(" src --include='*.c')
    gcc -std=gnu11 -D_GNU_SOURCE -g -O0 -fPIC -shared -fvisibility=hidden "-I$work/one" -Isrc '-DSPK_VERSION_TEXT=""' '-DSPK_COMMIT_TEXT=""' "${files[@]}" -o "$work/public.so"
    abidw --headers-dir "$work/one" --drop-private-types --drop-undefined-syms --exported-interfaces-only --no-corpus-path --no-comp-dir-path --no-show-locs \
        --type-id-style hash --out-file "$2" "$work/public.so"
}

write_dump include "$work/now.abi"
if [ "${1:-}" = --update ]; then
    cp "$work/now.abi" "$dump"
    echo "layout: $dump written anew"
    exit 0
fi
if ! abidiff --harmless --no-show-locs "$dump" "$work/now.abi" >"$work/changes"; then
    cat "$work/changes"
    cat <<'TEXT'

The binary interface is no longer that of tests/abi/sparsek.abi. A new function, or new fields at the end of a struct that begins with struct_size, leave
programs running that were built before: say so in CHANGELOG.md. Everything else breaks them: raise the minor version in project() of CMakeLists.txt (the
soname, libsparsek.so.MAJOR.MINOR, follows it), SPK_VERSION_MINOR in core.h and the versions of the Python package and the crates, and say in CHANGELOG.md
what changed. Then write the dump anew, and commit it with the change:

    tests/abi/layout.sh --update
TEXT
    exit 1
fi

# That a change is seen: a field put in, another value of an enumerator.
see() {
    rm -rf "$work/include"
    cp -r include "$work/include"
    sed -i "$1" "$work"/include/sparsek/*.h
    if diff -rq include "$work/include" >/dev/null; then echo "layout: the headers have no longer what the test changes: $1"; exit 1; fi
    write_dump "$work/include" "$work/changed.abi" 2>"$work/errors" || { cat "$work/errors"; exit 1; }
    if abidiff --harmless "$dump" "$work/changed.abi" >/dev/null; then echo "layout: a change was not seen: $1"; exit 1; fi
}
see 's/^    const char \*store_path;/    char inserted[8];\n&/'
see 's/SPK_ERR_FORMAT = 6/SPK_ERR_FORMAT = 66/'
echo "layout: $(grep -c '<function-decl' "$dump") functions and their types are as in $dump"
