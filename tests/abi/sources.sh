#!/usr/bin/env bash
# Rules of the library's sources that no compiler checks. Usage: sources.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
fail() {
    echo "$1:"
    echo "$2"
    exit 1
}
# src/base/environment.h is the only reader: it leaves out what a set-user-ID program must not believe.
found=$(grep -rnwE 'getenv|secure_getenv' src --include='*.[ch]' | grep -v '^src/base/environment\.c:' || true)
[ -z "$found" ] || fail "the environment is read by spk_environment() only" "$found"
# Other threads may read the environment meanwhile.
found=$(grep -rnE '\b(setenv|unsetenv|putenv|clearenv) *\(|\benviron *=' src --include='*.[ch]' || true)
[ -z "$found" ] || fail "the library does not change the environment" "$found"
# What is true of an operation alone stands in its folder, src/op/NAME; who asks which one it is would forget the next.
names=$(sed -n 's/^SPK_OP(\(.*\))$/\U\1/p' src/op/operations.def | paste -sd'|')
found=$(grep -rnE "(==|!=) *SPK_($names)\\b|case SPK_($names)\\b" src cli prover python rust bench --include='*.[ch]' \
    --include='*.cpp' --include='*.rs' --include='*.py' | grep -vE '^src/op/[a-z]+/|^rust/sparsek-sys/src/bindings\.rs:' || true)
[ -z "$found" ] || fail "an operation is told by its row, not by its name" "$found"
# What is true of an element type alone stands in its row, src/type/types.def. Oracles, kernels and what is the host side of kernels compute with given types.
types=$(sed -n 's/^SPK_TYPE(SPK_\([A-Z0-9]*\),.*/\1/p' src/type/types.def | paste -sd'|')
[ -n "$types" ] || fail "no types were found in" src/type/types.def
found=$(grep -rnE "(==|!=) *SPK_($types)\\b|case SPK_($types)\\b" src cli prover --include='*.[ch]' |
    grep -vE '^src/(type/|op/([a-z_]+/)?oracle|backend/[a-z]+/(kernels|vendor|host)/|backend/cpu/epilogue\.c:)' || true)
[ -z "$found" ] || fail "an element type is told by its row, not by its name" "$found"
# What is true of a kind of device is a fact of its backend, src/backend/backend.h; a tunable is looked up by its name in one place, its owner's.
found=$(grep -rnE "(==|!=) *(SPK_BACKEND_[A-Z]+|&spk_backend_[a-z]+)\\b|case SPK_BACKEND_" src cli prover --include='*.[ch]' | grep -vE '^src/(backend/[a-z]+|registry)/' || true)
[ -z "$found" ] || fail "a kind of device is told by the facts of its backend, not by its name" "$found"
found=$(grep -rnE 'spk_params_(index|names)\([^;]*"' src --include='*.[ch]' || true)
[ -z "$found" ] || fail "a tunable is looked up by its name by its owner, as spk_serial_tunable does" "$found"
echo "sources: the environment is read in one place and changed in none; no one asks which operation, element type or device it is"
