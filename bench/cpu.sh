#!/usr/bin/env bash
# All that is measured on a processor, in one command. Usage: bench/cpu.sh --name NAME [--build FOLDER] [--results FOLDER] [--threads N] [STEP...]
#   STEP       only these: blocks elements training narrow gemm bf16 amx attention check regret regret-large page
#              some of what all leaves out, as they want the Python package: first-calls flips busy
#              gates: what the tuner is judged by, regret regret-large first-calls flips busy
#   --name     of the processor, one word: files are called cpu-NAME-... (zen5, emr16)
#   --build    a release build (default: build/release)
#   --results  where the files go (default: build/results); `bench/runs.py add` puts them among the committed runs, as the step page does
#   --threads  how many (default: all processors)
# SPARSEK_MKL, SPARSEK_OPENBLAS, SPARSEK_BLIS and SPARSEK_ONEDNN name the libraries that take part. The steps amx and attention need python3 with PyTorch, the step page needs matplotlib. Where other
# programs run, put `chrt -r 1` in front: then nothing else takes a core meanwhile. A failed step does not keep the others from running.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
build=build/release results=build/results name='' threads=$(nproc)
steps=()
while [ $# -gt 0 ]; do
    case "$1" in
    --name) name=$2; shift ;;
    --build) build=$2; shift ;;
    --results) results=$2; shift ;;
    --threads) threads=$2; shift ;;
    -h | --help) sed -n '2,11s/^# \?//p' "$0"; exit 0 ;;
    -*) echo "unknown option $1 (see --help)" >&2; exit 2 ;;
    *) steps+=("$1") ;;
    esac
    shift
done
[[ $name =~ ^[a-z0-9]+$ ]] || { echo "--name is missing, or not one word of a-z and 0-9 (see --help)" >&2; exit 2; }
[ "${steps[*]}" != gates ] || steps=(regret regret-large first-calls flips busy)
[ ${#steps[@]} -gt 0 ] || steps=(blocks elements training narrow gemm bf16 amx attention check regret regret-large page)
mkdir -p "$results" || exit 2
export LD_LIBRARY_PATH=$build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} OMP_NUM_THREADS=$threads
# What OpenBLAS 0.3.21 and older take a newer processor for has no AVX-512; and its threads spin for long where other rows want the processors.
if grep -q avx512bw /proc/cpuinfo; then export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX}; fi
# BLIS 0.9 knows no AMD processor after Zen 3: 0 is Skylake-X.
blis_is() { "$build/sparsek" info 2>/dev/null | grep "^  blis .*, $1," >/dev/null; }
if grep -q avx512bw /proc/cpuinfo && blis_is generic && BLIS_ARCH_TYPE=0 blis_is skx; then export BLIS_ARCH_TYPE=0; fi
export OPENBLAS_THREAD_TIMEOUT=${OPENBLAS_THREAD_TIMEOUT:-20}
failed=()

run() { echo "== $*"; "$@" || failed+=("$step: $*"); }

# The committed run of this name, where a step adds to it.
earlier() { [ -e "$results/$1.json" ] || python3 bench/runs.py show "$1" --out "$results/$1.json" 2>/dev/null || true; }

# race WHAT OPTIONS...: into cpu-NAME-WHAT.json.
race() {
    local what=$1
    shift
    run "$build/sparsek" bench --fresh --rounds "${ROUNDS:-40}" --quiet --json "$results/cpu-$name-$what.json" "$@"
}

# own WORD: the own rows of this build that have it in their names, with commas.
own() { "$build/sparsek" info --json - | python3 -c "import json, sys; print(','.join(k['name'] for k in json.load(sys.stdin)['results'][0]['kernels'] if '$1' in k['name'] and k['kind'] == 'own'))"; }

dense=mkl_dense,openblas_dense,blis_dense,onednn_dense
for step in "${steps[@]}"; do
    case "$step" in
    blocks) # beside the libraries' products of single blocks, and dense ones
        for dtype in f32 f64; do for block in 32 64 128; do
            race "spmm-$dtype-b$block" --m 2048 --k 2048 --n 512 --block $block --density 0.1 --cache warm --assume-finite --dtype $dtype --exclude reference_spmm
        done; done
        for block in 16 8 3; do
            race "spmm-f32-b$block" --m $((2048 / block * block)) --k $((2048 / block * block)) --n 512 --block $block --density 0.1 --cache warm --assume-finite --exclude reference_spmm
        done ;;
    elements) # a finite-element matrix beside MKL's BSR with its inspector
        for block in 3 6; do for n in 1 16; do
            race "elements-n$n-b$block" --pattern elasticity --cells 16x16x16 --block $block --n $n --dtype f64 --exclude "reference_spmm,spmm_portable,$dense,openblas_blocks,blis_blocks,mkl_blocks"
        done; done ;;
    training)
        for block in 32 64 128; do
            race "transposed-f32-b$block" --trans-a t --m 2048 --k 2048 --n 512 --block $block --density 0.1 --cache warm --assume-finite
            race "sddmm-f32-b$block" --op sddmm --m 2048 --n 2048 --k 512 --block $block --density 0.1 --cache warm
        done
        run python3 bench/training.py --library "$build/libsparsek.so" --out "$results/cpu-$name-training.json" --threads "$threads" --rounds "${ROUNDS:-40}" ;;
    narrow) # values beyond the caches, and few columns
        for dtype in f32 bf16; do
            race "narrow-$dtype-n1" --m 16384 --k 16384 --n 1 --block 64 --density 0.5 --dtype $dtype --exclude "reference_spmm,$dense"
            race "narrow-$dtype-n16" --m 4096 --k 4096 --n 16 --block 64 --density 0.1 --dtype $dtype --cache warm --exclude "reference_spmm,$dense"
        done ;;
    gemm)
        for size in 2048x2048x2048 1024x1024x1024 512x512x512 4096x512x4096 128x4096x4096 4096x4096x4096; do
            IFS=x read -r m n k <<<"$size"
            race "gemm-bf16-$size" --op gemm --m "$m" --n "$n" --k "$k" --dtype bf16 --only "$(own gemm_bf16_),onednn_gemm"
        done ;;
    bf16) run python3 bench/bf16.py --program "$build/sparsek" --out "$results/cpu-$name-bf16.json" ;;
    amx)
        earlier "cpu-$name-bf16"
        run python3 bench/amx.py --library "$build/libsparsek.so" --out "$results/cpu-$name-bf16.json" --rounds 11 --runs 8 --threads "$threads"
        ;;
    attention) run python3 bench/attention.py --library "$build/libsparsek.so" --out "$results/cpu-$name-attention.json" --threads "$threads" --rounds 15 ;;
    check)
        for op in spmm gemm sddmm; do
            run "$build/sparsek" check --op $op --only "$(own ${op}_bf16_)" --each 1000 --json "$results/cpu-$name-check-$op-bf16-1000.json" --quiet
        done ;;
    regret) run "$build/sparsek" regret --problems 50 --seed 20261126 --json "$results/cpu-$name-regret-50.json" ;;
    regret-large)
        run python3 bench/large.py /tmp/sparsek-large.json --seed 20261129
        run "$build/sparsek" regret --from /tmp/sparsek-large.json --among 24 --best-budget 20 --rounds 11 --json "$results/cpu-$name-regret-large.json"
        ;;
    first-calls) run python3 bench/python/first_calls.py --budget-s 1 --json "$results/cpu-$name-first-calls.json" ;;
    flips) run python3 bench/python/flips.py --json "$results/cpu-$name-flips.json" ;;
    busy) run python3 bench/python/busy.py --json "$results/cpu-$name-busy.json" ;;
    page)
        if compgen -G "$results/cpu-$name-*.json" >/dev/null; then run python3 bench/runs.py add "$results/cpu-$name"-*.json; fi
        run python3 bench/performance.py
        ;;
    *) echo "unknown step $step (see --help)" >&2; exit 2 ;;
    esac
done
for one in "${failed[@]}"; do echo "FAILED: $one"; done
[ ${#failed[@]} = 0 ]
