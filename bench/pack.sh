#!/usr/bin/env bash
# Packs what bench/gpu.sh and bench/cpu.sh need on a machine that has no compiler, stripped. Usage: bench/pack.sh [--build FOLDER] [--python PYTHON] [--vendors MIB] FOLDER
#   FOLDER    made anew: the library, the program, the prover, the benches of bench/host, and the device tests where the build has tests
#   --build   a release build of this tree, brought up to date first (default: build/release)
#   --python  also the Python package, in FOLDER/python, built for the Torch of this Python; there it works with any Torch from 2.10 on
#   --vendors also the libraries that race on a processor (MKL, oneDNN, OpenBLAS, as scripts/test installs them), in FOLDER/vendors.txz.00, .01 and so on of
#             so many MiB at most. There: cat FOLDER/vendors.txz.* | tar xJ -C OTHER, and SPARSEK_MKL=OTHER/libmkl_rt.so.3 SPARSEK_ONEDNN=OTHER/libdnnl.so.3
#             SPARSEK_OPENBLAS=OTHER/libopenblas.so.0 LD_LIBRARY_PATH=OTHER
# There, beside a copy of this tree: PYTHONPATH=FOLDER/python bench/gpu.sh --build FOLDER STEP...
set -euo pipefail
root=$(realpath "$(dirname "$0")/..")
build=$root/build/release python='' part='' to=''
while [ $# -gt 0 ]; do
    case "$1" in
    --build) build=$(realpath "$2"); shift ;;
    --python) python=$2; shift ;;
    --vendors) part=$2; shift ;;
    -h | --help) sed -n '2,9s/^# \?//p' "$0"; exit 0 ;;
    -*) echo "unknown option $1 (see --help)" >&2; exit 2 ;;
    *) to=$1 ;;
    esac
    shift
done
[ -n "$to" ] || { echo "the folder to make is missing (see --help)" >&2; exit 2; }
[ -e "$build/CMakeCache.txt" ] || { echo "$build is no build: make one (cmake --preset release), or name one with --build" >&2; exit 2; }
[ ! -e "$to" ] || [ -e "$to/sparsek" ] || { echo "$to exists and is no pack: not overwritten" >&2; exit 2; }
cmake --build "$build" --target sparsek_cli sparsek_prover bench_overhead bench_overhead_gpu bench_overhead_attention bench_topologies bench_reading >/dev/null
rm -rf "$to"
mkdir -p "$to/bench" "$to/tests"
to=$(realpath "$to")

for file in sparsek sparsek-prover libsparsek.so.0.2; do
    strip -o "$to/$file" "$(realpath "$build/$file")"
done
ln -s libsparsek.so.0.2 "$to/libsparsek.so"
cp "$root/share/programs.db" "$to" # found beside the library, as where it is installed
for file in "$build"/bench/bench_* "$build/tests/test_device"; do
    if [ -x "$file" ]; then strip -o "$to/${file#"$build"/}" "$file"; fi
done
if [ -n "$python" ]; then
    TORCH_ROOT=$("$python" "$root/cmake/find_torch.py") "$python" -m pip install -q --disable-pip-version-check --no-deps --target "$to/python" "$root"
    find "$to/python" -name '*.so*' -exec strip -g {} +
    rm -rf "$to/python/bin"
fi
if [ -n "$part" ]; then
    vendors=$(mktemp -d)
    trap 'rm -rf "$vendors"' EXIT
    for name in mkl_rt mkl_core mkl_intel_lp64 mkl_gnu_thread mkl_def mkl_avx2 mkl_avx512; do cp -L "$root/build/venv/lib/lib$name.so.3" "$vendors"; done
    cp -L "$root/build/venv/lib/libdnnl.so.3" "$vendors"
    openblas=$("$to/sparsek" info | sed -n 's/^  openblas .*, \(\/.*\)$/\1/p')
    if [ -n "$openblas" ]; then cp -L "$openblas" "$vendors/libopenblas.so.0"; fi
    strip --strip-unneeded "$vendors"/*.so.* 2>/dev/null || true # what cannot be stripped stays as it is
    tar c -C "$vendors" . | xz -T0 -3 | split -b "${part}M" -d - "$to/vendors.txz."
fi
du -sh "$to" | sed 's/\t/  /'
