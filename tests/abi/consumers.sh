#!/usr/bin/env bash
# Projects that use the library: through add_subdirectory, and through find_package and pkg-config from what that installs, with the shared and with the static
# library. And the archives show no symbols but those that begin with spk_. Usage: consumers.sh BUILD_FOLDER
# All is compiled without optimisation, to be quick, from a copy of the sources: reproducible.sh compares that build with another one.
set -euo pipefail
build=$(realpath "$1")
cd "$(dirname "$0")/../.."
root=$PWD
# At a fixed place, so that a compiler cache knows it the next time.
work=$root/build/consumers
rm -rf "$work"
mkdir -p "$work/whole" "$work/installed" "$work/static"
export SPARSEK_STORE=$work/store.db
quick=(-G Ninja "-DCMAKE_TOOLCHAIN_FILE=$root/rust/tests/quick.cmake")

# foreign_symbols ARCHIVE: the global symbols that it defines, but for those that begin with spk_, and the linker's for a wrapped call.
foreign_symbols() { nm -g --defined-only "$1" | awk 'NF == 3 && $3 !~ /^(spk_|__wrap_)/ {print $3}' | sort; }

# checked PROGRAM SHARED: it runs, and is linked with the shared library or not.
checked() {
    "$1" | tail -n 4 | diff - <(printf '%6.1f %6.1f\n' 7 18 16 37 2 8 2 12)
    readelf -d "$1" | grep -q 'NEEDED.*libsparsek\.so' && shared=yes || shared=no
    [ "$shared" = "$2" ] || { echo "consumers: $1 is linked with the wrong library"; exit 1; }
}

mkdir "$work/whole/source"
cp -r CMakeLists.txt LICENSE cmake src include cli prover bench docs examples share "$work/whole/source"
cat >"$work/whole/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(user C)
set(SPARSEK_STATIC ON)
add_subdirectory(source sparsek)
add_executable(through-shared source/examples/spmm.c)
target_link_libraries(through-shared PRIVATE sparsek::sparsek)
add_executable(through-static source/examples/spmm.c)
target_link_libraries(through-static PRIVATE sparsek::sparsek_static)
CMAKE
cmake -S "$work/whole" -B "$work/whole/build" "${quick[@]}" >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/whole/build" >"$work/log" || { cat "$work/log"; exit 1; }
checked "$work/whole/build/through-shared" yes
checked "$work/whole/build/through-static" no
cmake --install "$work/whole/build" --prefix "$work/prefix" >/dev/null

cat >"$work/installed/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(sparsek 0.2 REQUIRED COMPONENTS static)
add_executable(through-shared $root/examples/spmm.c)
target_link_libraries(through-shared PRIVATE sparsek::sparsek)
add_executable(through-static $root/examples/spmm.c)
target_link_libraries(through-static PRIVATE sparsek::sparsek_static)
CMAKE
cmake -S "$work/installed" -B "$work/installed/build" "${quick[@]}" "-DCMAKE_PREFIX_PATH=$work/prefix" >"$work/log" || { cat "$work/log"; exit 1; }
cmake --build "$work/installed/build" >"$work/log" || { cat "$work/log"; exit 1; }
checked "$work/installed/build/through-shared" yes
checked "$work/installed/build/through-static" no

archive=$(find "$work/prefix" -name libsparsek.a)
library=$(find "$work/prefix" -name libsparsek.so)
export PKG_CONFIG_PATH=$(dirname "$archive")/pkgconfig
# shellcheck disable=SC2046
gcc examples/spmm.c -o "$work/static/through-pkg-config" $(pkg-config --cflags sparsek) -Wl,--push-state,-Bstatic -lsparsek -Wl,--pop-state \
    $(pkg-config --static --libs sparsek)
checked "$work/static/through-pkg-config" no

# What the archives show: libsparsek.a the public functions alone.
diff <(nm -g --defined-only "$archive" | awk 'NF == 3 {print $3}' | sort) <(nm -D --defined-only "$library" | awk '{print $3}' | sort) ||
    { echo "consumers: libsparsek.a (<) and libsparsek.so (>) show other symbols"; exit 1; }
for archive in "$archive" "$build/src/libsparsek_internal.a"; do
    [ -z "$(foreign_symbols "$archive")" ] || { echo "consumers: $archive defines" && foreign_symbols "$archive" && exit 1; }
done
echo "consumers: add_subdirectory, find_package and pkg-config, shared and static"
