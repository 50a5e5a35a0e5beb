#!/usr/bin/env bash
# elf.py refuses what it should, and finds nothing in a build and in its installation. Usage: elf.sh BUILD_FOLDER
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/program.c" <<'C'
#include <stdio.h>
#include <string.h>
int main(int count, char **arguments)
{
    char text[64];
    strcpy(text, arguments[count - 1]);
    return puts(text);
}
C
hardened=(-fPIE -pie -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -Wl,-z,relro,-z,now,-z,noexecstack)
gcc -O2 "$work/program.c" -o "$work/program" "${hardened[@]}" && ./elf.py --hardened "$work/program" >/dev/null

# One that only moves memory has no call that could be checked.
printf '#include <string.h>\nint main(int n, char **a) { char t[9]; memmove(a[0], a[n - 1], strlen(a[0])); strtok(t, a[0]); return 0; }\n' |
    gcc -O2 -x c - -o "$work/program" "${hardened[@]}" -fstack-protector-all && ./elf.py --hardened "$work/program"

# refused FAULT GCC_OPTION...: elf.py must name FAULT in a program linked so.
refused() {
    local fault=$1
    shift
    gcc -O2 "$work/program.c" -o "$work/program" "${hardened[@]}" "$@"
    if ./elf.py --hardened "$work/program" >"$work/said" || ! grep -qF "$fault" "$work/said"; then
        cat "$work/said"
        echo "elf: a program linked with $* was not refused for: $fault"
        exit 1
    fi
}
refused 'libraries in ""' -Wl,-rpath,'/somewhere/else:' -Wl,--enable-new-dtags
refused 'libraries in ""' -Wl,-rpath,'$ORIGIN::$ORIGIN/../lib' -Wl,--disable-new-dtags
refused 'libraries in "lib"' -Wl,-rpath,lib
refused 'libraries in "/usr/local/lib"' -Wl,-rpath,'$ORIGIN:/usr/local/lib'
refused 'no RELRO' -Wl,-z,norelro
refused 'no BIND_NOW' -Wl,-z,lazy
refused 'stack is executable' -Wl,-z,execstack
refused 'no PIE' -fno-pie -no-pie
refused 'no stack protector' -fno-stack-protector
refused '_FORTIFY_SOURCE' -U_FORTIFY_SOURCE
echo 'int needed;' | gcc -x c -shared -fPIC - -o "$work/libneeded.so"
(cd "$work" && echo 'extern int needed; int main(void) { return needed; }' | gcc -x c - -x none ./libneeded.so -o program)
if ./elf.py "$work/program" >"$work/said"; then echo "elf: a library named with its folder was not refused"; exit 1; fi

cmake --install "$build" --prefix "$work/prefix" >/dev/null
./elf.py "$build"
./elf.py --hardened "$work/prefix"

# Our own code is marked for the protection of indirect branches, where the compiler has it.
if grep -q '^SPARSEK_HAVE_fcf_protection_full:INTERNAL=1' "$build/CMakeCache.txt"; then
    while read -r object; do
        readelf -n "$object" | grep -q 'IBT, SHSTK' || { echo "elf: $object is not marked for IBT and SHSTK"; exit 1; }
    done < <(find "$build/src" "$build/cli" "$build/prover" -name '*.c.o')
    for file in "$build/sparsek" "$build/libsparsek.so"; do
        readelf -n "$file" | grep -q 'IBT, SHSTK' && echo "elf: $file keeps the mark" || echo "elf: $file has no mark, as other files linked into it have none"
    done
fi

# And by deed: a library of the same name in the working folder is not loaded.
printf '#include <stdio.h>\n__attribute__((constructor)) static void strange(void) { puts("STRANGE CODE"); }\n' |
    gcc -x c -shared -fPIC - -o "$work/libjansson.so.4"
cd "$work"
for program in "$build/sparsek --version" "$build/sparsek-prover" "$work/prefix/bin/sparsek --version"; do
    # shellcheck disable=SC2086
    if $program </dev/null 2>&1 | grep -q 'STRANGE CODE'; then echo "elf: $program runs a library of the working folder"; exit 1; fi
done
"$build/sparsek" --version >/dev/null # it starts at all
