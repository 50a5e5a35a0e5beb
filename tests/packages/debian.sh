#!/usr/bin/env bash
# The Debian packages: dpkg-buildpackage in a clean copy of the checkout, lintian, and programs built against what the packages hold, unpacked into a folder.
# Usage: debian.sh [FOLDER]     (FOLDER: the packages are there already, and only tested)
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
packages=${1:-}
if [ -z "$packages" ]; then
    packages=$root/build/debian
    rm -rf "$packages"
    mkdir -p "$packages/sparsek"
    git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -cf - 2>/dev/null | tar -xf - -C "$packages/sparsek"
    (cd "$packages/sparsek" && DEB_BUILD_OPTIONS="parallel=$(nproc)" dpkg-buildpackage -us -uc) >"$packages/log" 2>&1 || { tail -n 60 "$packages/log"; exit 1; }
    rm -rf "$packages/sparsek"
fi
packages=$(realpath "$packages")
version=$(sed -n 's/^project(sparsek VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
library_package=libsparsek${version%.*} # its name has the soname's version
# On Debian 12 it says nothing at all; a later one may have more to inform of.
lintian --allow-root --display-info --fail-on error,warning "$packages"/*.changes || { echo "debian: lintian is not content"; exit 1; }

tree=$packages/tree
rm -rf "$tree"
for package in sparsek "$library_package" libsparsek-dev; do dpkg -x "$packages/${package}_${version}"_*.deb "$tree"; done
libdir=$tree/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
export LD_LIBRARY_PATH=$libdir SPARSEK_STORE=$packages/store.db SPARSEK_CACHE_DIR=$packages/cache
checked() { "$1" | tail -n 4 | diff - <(printf '%6.1f %6.1f\n' 7 18 16 37 2 8 2 12); }

# shellcheck disable=SC2046
PKG_CONFIG_PATH=$libdir/pkgconfig gcc -std=c11 -Wall -Werror examples/spmm.c -o "$packages/through-pkg-config" \
    $(PKG_CONFIG_PATH=$libdir/pkgconfig pkg-config --cflags --libs sparsek)
checked "$packages/through-pkg-config"
rm -rf "$packages/user"
mkdir "$packages/user"
cp "$tree/usr/share/doc/libsparsek-dev/examples/spmm.c" "$packages/user/"
cat >"$packages/user/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(sparsek ${version%.*} REQUIRED)
add_executable(through-cmake spmm.c)
target_link_libraries(through-cmake PRIVATE sparsek::sparsek)
CMAKE
cmake -S "$packages/user" -B "$packages/user/build" -DCMAKE_PREFIX_PATH="$tree/usr" >"$packages/user/log" || { cat "$packages/user/log"; exit 1; }
cmake --build "$packages/user/build" >"$packages/user/log" || { cat "$packages/user/log"; exit 1; }
checked "$packages/user/build/through-cmake"

# The program; a page of it and of each of its commands; completions where the shells look; the prover where the library looks.
"$tree/usr/bin/sparsek" --version | grep -qF "$version"
for command in info bench tune explain compute inspect convert gen check regret store; do
    gzip -cd "$tree/usr/share/man/man1/sparsek-$command.1.gz" | grep -qi "sparsek.*$command" || { echo "debian: no page of sparsek $command"; exit 1; }
done
for file in bin/sparsek libexec/sparsek/sparsek-prover share/man/man1/sparsek.1.gz share/bash-completion/completions/sparsek \
    share/zsh/vendor-completions/_sparsek share/fish/vendor_completions.d/sparsek.fish "share/doc/$library_package/sparsek.spdx"; do
    [ -s "$tree/usr/$file" ] || { echo "debian: no package has usr/$file"; exit 1; }
done
for library in libc6 libjansson4 libsqlite3-0 zlib1g; do
    dpkg-deb -f "$packages/${library_package}_${version}"_*.deb Depends | grep -q "$library" || { echo "debian: $library_package does not depend on $library"; exit 1; }
done
tests/abi/elf.py --hardened "$libdir" "$tree/usr/bin" "$tree/usr/libexec/sparsek"
echo "debian: three packages of version $version: built, lintian content, consumers and program run"
