#!/usr/bin/env bash
# elf.py refuses what it should, and finds nothing in a build and in its installation. Usage: elf.sh BUILD_FOLDER
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# refused FAULT GCC_OPTION...: elf.py must name FAULT in a program linked so.
refused() {
    local fault=$1
    shift
    echo 'int main(void) { return 0; }' | gcc -x c - -o "$work/program" "$@"
    if ./elf.py "$work/program" >"$work/said" || ! grep -qF "$fault" "$work/said"; then
        cat "$work/said"
        echo "elf: a program linked with $* was not refused for: $fault"
        exit 1
    fi
}
refused 'libraries in ""' -Wl,-rpath,'/somewhere/else:' -Wl,--enable-new-dtags
refused 'libraries in ""' -Wl,-rpath,'$ORIGIN::$ORIGIN/../lib' -Wl,--disable-new-dtags
refused 'libraries in "lib"' -Wl,-rpath,lib
refused 'libraries in "/usr/local/lib"' -Wl,-rpath,'$ORIGIN:/usr/local/lib'
echo 'int needed;' | gcc -x c -shared -fPIC - -o "$work/libneeded.so"
(cd "$work" && echo 'extern int needed; int main(void) { return needed; }' | gcc -x c - -x none ./libneeded.so -o program)
if ./elf.py "$work/program" >"$work/said"; then echo "elf: a library named with its folder was not refused"; exit 1; fi

cmake --install "$build" --prefix "$work/prefix" >/dev/null
./elf.py "$build" "$work/prefix"

# And by deed: a library of the same name in the working folder is not loaded.
printf '#include <stdio.h>\n__attribute__((constructor)) static void strange(void) { puts("STRANGE CODE"); }\n' |
    gcc -x c -shared -fPIC - -o "$work/libjansson.so.4"
cd "$work"
for program in "$build/sparsek --version" "$build/sparsek-prover" "$work/prefix/bin/sparsek --version"; do
    # shellcheck disable=SC2086
    if $program </dev/null 2>&1 | grep -q 'STRANGE CODE'; then echo "elf: $program runs a library of the working folder"; exit 1; fi
done
"$build/sparsek" --version >/dev/null # it starts at all
