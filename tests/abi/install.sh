#!/usr/bin/env bash
# cmake --install into an empty folder; a program built through pkg-config and one through the CMake package both run.
set -euo pipefail
cd "$(dirname "$0")/../.."
prefix=$PWD/build/install-test
rm -rf "$prefix"
mkdir -p "$prefix/user"
cmake --install build/release --prefix "$prefix" >/dev/null
libdir=$(dirname "$(find "$prefix" -name libsparsek.so)")
export PKG_CONFIG_PATH=$libdir/pkgconfig SPARSEK_STORE=$prefix/store.db
# shellcheck disable=SC2046
gcc -std=c11 -Wall -Werror examples/spmm.c -o "$prefix/user/through-pkg-config" $(pkg-config --cflags --libs sparsek)
LD_LIBRARY_PATH=$libdir "$prefix/user/through-pkg-config"

cat >"$prefix/user/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(sparsek 0.2 REQUIRED)
add_executable(through-cmake spmm.c)
target_link_libraries(through-cmake PRIVATE sparsek::sparsek)
CMAKE
cp examples/spmm.c "$prefix/user/"
cmake -S "$prefix/user" -B "$prefix/user/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$prefix/user/build" >/dev/null
"$prefix/user/build/through-cmake"

"$prefix/bin/sparsek" --version
echo "install: library, headers, program, pkg-config and CMake package work from $prefix"
