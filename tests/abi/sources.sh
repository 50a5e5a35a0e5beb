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
echo "sources: the environment is read in one place and changed in none"
