# Shared by the scripts: where we are, what must be installed, how to build. Sourced, not run.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
jobs=$(nproc)
if command -v ccache >/dev/null; then export CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER:-ccache}; fi

say() { printf '\n== %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else
        die "these must be installed first, as root: $*"
    fi
}

# install_packages NAME...: installs the Debian or Ubuntu packages that are not there yet.
install_packages() {
    local missing=() package
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} = 0 ] && return 0
    command -v apt-get >/dev/null || die "not a Debian or Ubuntu system: install what matches ${missing[*]}"
    say "installing ${missing[*]}"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

build_packages=(gcc libc6-dev cmake ninja-build pkg-config git libsqlite3-dev libjansson-dev zlib1g-dev libopenblas0-openmp libxsmm-dev python3 python3-venv scdoc)
test_packages=(g++ binutils abigail-tools doxygen libcmocka-dev clang-14 clang-format-14 libclang-rt-14-dev valgrind qemu-user python3-jsonschema zsh fish locales)

# What a build for 64-bit Arm needs (cmake/aarch64.cmake); fails where the packages of that architecture cannot be had.
install_arm64() {
    local package missing=
    for package in gcc-aarch64-linux-gnu libsqlite3-dev:arm64 libjansson-dev:arm64 zlib1g-dev:arm64; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing=1
    done
    [ -n "$missing" ] || return 0
    as_root dpkg --add-architecture arm64 && (install_packages gcc-aarch64-linux-gnu libsqlite3-dev:arm64 libjansson-dev:arm64 zlib1g-dev:arm64)
}

find_mkl() { find build/venv/lib -maxdepth 1 -name 'libmkl_rt.so.*' 2>/dev/null | sort | tail -n 1 || true; }

# MKL joins the race where it can be had; it is a peer, never a need.
install_mkl() {
    case "$(uname -m)" in x86_64) ;; *) return 0 ;; esac
    local mkl
    mkl=$(find_mkl)
    if [ -z "$mkl" ]; then
        say "installing MKL into build/venv, as a peer for the race"
        /usr/bin/python3 -m venv build/venv
        build/venv/bin/pip install -q --disable-pip-version-check mkl || { echo "MKL could not be installed: the race runs without it"; return 0; }
        mkl=$(find_mkl)
    fi
    [ -n "$mkl" ] && export SPARSEK_MKL="$root/$mkl"
    return 0
}

find_onednn() { find build/venv/lib -maxdepth 1 -name 'libdnnl.so.3' 2>/dev/null || true; }

# oneDNN, likewise: the build whose threads are OpenMP's.
install_onednn() {
    case "$(uname -m)" in x86_64) ;; *) return 0 ;; esac
    local onednn
    onednn=$(find_onednn)
    if [ -z "$onednn" ]; then
        say "installing oneDNN into build/venv, as a peer for the race"
        [ -d build/venv ] || /usr/bin/python3 -m venv build/venv
        build/venv/bin/python3 -m pip install -q --disable-pip-version-check onednn-cpu-gomp || { echo "oneDNN could not be installed: the race runs without it"; return 0; }
        onednn=$(find_onednn)
    fi
    [ -n "$onednn" ] && export SPARSEK_ONEDNN="$root/$onednn"
    return 0
}

# The build of BLIS that shares OpenMP's threads.
find_blis() { find /usr/lib -path '*/blis-openmp/libblis.so.4' 2>/dev/null | head -n 1 || true; }

# BLIS, likewise (4.5 MB).
install_blis() {
    local blis
    [ -n "$(find_blis)" ] || (install_packages libblis4-openmp) || { echo "BLIS could not be installed: the race runs without it"; return 0; }
    blis=$(find_blis)
    if [ -n "$blis" ]; then export SPARSEK_BLIS=${SPARSEK_BLIS:-$blis}; fi
}

# A program that is to find no vendor library. A function, since another shell can be given it (export -f), and no array.
without_vendors() { env SPARSEK_MKL=none SPARSEK_OPENBLAS=none SPARSEK_BLIS=none SPARSEK_ONEDNN=none "$@"; }

find_nvrtc() { find build/venv/lib/python*/site-packages/nvidia -name 'libnvrtc.so.*' 2>/dev/null | sort | tail -n 1 || true; }

# NVRTC compiles the device programs; it needs no GPU.
install_nvrtc() {
    local nvrtc
    nvrtc=$(find_nvrtc)
    if [ -z "$nvrtc" ]; then
        say "installing NVRTC into build/venv"
        [ -d build/venv ] || /usr/bin/python3 -m venv build/venv
        build/venv/bin/pip install -q --disable-pip-version-check 'nvidia-cuda-nvrtc==13.0.*' || die "NVRTC could not be installed"
        nvrtc=$(find_nvrtc)
    fi
    export SPARSEK_NVRTC="$root/$nvrtc"
}

# install_torch FOLDER VERSION: an environment build/FOLDER with torch and what the Python tests need, its interpreter in $python; fails where none can be had.
install_torch() {
    python=$root/build/$1/bin/python
    "$python" -c 'import torch, pytest, xdist, scipy, expecttest, hypothesis, safetensors, matplotlib, sklearn, tqdm, ruff, mypy, transformers, peft' 2>/dev/null && return 0
    say "installing torch$2 into build/$1 (some 5 GB, with its CUDA libraries)"
    [ -d "build/$1" ] || /usr/bin/python3 -m venv "build/$1"
    # without pip's cache, which would keep the 3 GB once more
    "$python" -m pip install -q --disable-pip-version-check --no-cache-dir "torch$2" numpy scipy pytest pytest-xdist expecttest hypothesis safetensors matplotlib scikit-learn tqdm ruff mypy transformers peft
}

# Sphinx, which makes the site, in an environment of its own; fails where it cannot be had. The site is built without the network.
install_sphinx() {
    build/site-venv/bin/python -c 'import breathe, furo, myst_parser, sphinx' 2>/dev/null && return 0
    say "installing Sphinx into build/site-venv (some 90 MB)"
    [ -d build/site-venv ] || /usr/bin/python3 -m venv build/site-venv
    build/site-venv/bin/python -m pip install -q --disable-pip-version-check 'sphinx>=8' 'myst-parser>=4' 'breathe>=4.36' furo
}

# build PRESET [CMAKE_OPTION...] [--target NAME...]: configures and builds into build/PRESET; all of it, or what is named.
build() {
    local preset=$1 options=() targets=()
    shift
    while [ $# -gt 0 ] && [ "$1" != --target ]; do
        options+=("$1")
        shift
    done
    [ $# -gt 1 ] && targets=("$@")
    say "building $preset"
    cmake --preset "$preset" "${options[@]}" >"build/$preset.configure.log" 2>&1 || { cat "build/$preset.configure.log"; die "configuring $preset failed"; }
    cmake --build --preset "$preset" -j "$jobs" "${targets[@]}" -- --quiet
}

mkdir -p build
