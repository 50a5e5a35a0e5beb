#!/usr/bin/env bash
# All that is measured on an NVIDIA GPU, in one command. Usage: bench/gpu.sh [--build FOLDER] [--results FOLDER] [--device cuda:N] [--limit-s N] [STEP...]
#   STEP       only these: roofs overhead topologies peers training gemm small attention attention-backward layers decoder bundle examples tests regret regret-large regret-bundle regret-gemm regret-attention first-calls flips proved checks attention-python sanitizers upstream page
#              one of what all leaves out: proved-again
#              gates: what the tuner is judged by, regret regret-large first-calls flips
#              one of checks: check check-small check-gemm check-attention check-attention-backward check-few attention-device
#   --build    a release build (default: build/release)
#   --results  where the files go (default: build/results); `bench/runs.py add` puts them among the committed runs, as the steps page and proved do
#   --limit-s  most seconds of each of the steps peers, training, gemm and small; the same command goes on where it stopped (default: 540)
# The step tests goes on where it stopped, too, as long as the file PYTHON_TESTS_STATE is there (default: /tmp/sparsek-python-tests.json).
# Needs python3 with PyTorch and Triton; the steps layers, decoder, bundle, examples, tests and attention-python need the Python package installed there, the step page needs matplotlib. The sentence
# encoder's layers are timed where EXAMPLE_LAYERS names a file of examples/python/transformer.py --save-layers. A failed step does not keep the others from running.
set -uo pipefail
self=$(realpath "$0")
cd "$(dirname "$self")/.." || exit 2
build=build/release results=build/results device=cuda:0 limit=540
steps=()
while [ $# -gt 0 ]; do
    case "$1" in
    --build) build=$2; shift ;;
    --results) results=$2; shift ;;
    --device) device=$2; shift ;;
    --limit-s) limit=$2; shift ;;
    -h | --help) sed -n '2,12s/^# \?//p' "$0"; exit 0 ;;
    -*) echo "unknown option $1 (see --help)" >&2; exit 2 ;;
    *) steps+=("$1") ;;
    esac
    shift
done
[ "${steps[*]}" != gates ] || steps=(regret regret-large first-calls flips)
[ ${#steps[@]} -gt 0 ] || steps=(roofs overhead topologies peers training gemm small attention attention-backward layers decoder bundle examples tests regret regret-large regret-bundle regret-gemm regret-attention first-calls flips proved checks attention-python sanitizers upstream page)
mkdir -p "$results" || exit 2
build=$(realpath "$build") # the prover is looked for beside a library with a full path
export LD_LIBRARY_PATH=$build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# NVRTC and the libraries that came with PyTorch are found under the prefix of its Python.
export VIRTUAL_ENV=${VIRTUAL_ENV:-$(python3 -c 'import sys; print(sys.prefix)')}
name=gpu-$(nvidia-smi --query-gpu=name --format=csv,noheader -i "${device#cuda:}" | sed 's/^NVIDIA //' | tr 'A-Z ' 'a-z-')
library=$(ls "$build"/libsparsek.so "$build"/libsparsek.so.[0-9]* 2>/dev/null | head -n 1)
[ -n "$library" ] && [ "$name" != gpu- ] || { echo "there is no libsparsek.so in $build, or no GPU" >&2; exit 2; }
failed=()

run() {
    echo "== $*" >&2
    timeout -k 10 "$@" || failed+=("$step")
}

# The committed run of this name, where a step adds to it.
earlier() { [ -e "$results/$1.json" ] || python3 bench/runs.py show "$1" --out "$results/$1.json" 2>/dev/null || true; }

for step in "${steps[@]}"; do
    case "$step" in
    roofs) run 120 python3 bench/roofs.py --out "$results/$name-roofs.json" ;;
    overhead)
        run 60 "$build/bench/bench_overhead_gpu" >"$results/$name-overhead.json"
        run 60 "$build/bench/bench_overhead_attention" >"$results/$name-overhead-attention.json"
        ;;
    topologies)
        for experts in 8 64; do
            for indices in host deferred; do
                run 90 "$build/bench/bench_topologies" "$device" $indices $experts >"$results/$name-topologies-$indices-e$experts.json"
            done
        done
        ;;
    peers | training | gemm | small)
        earlier "$name-$step"
        run $((limit + 60)) python3 bench/peers.py --suite "$step" --device "$device" --library "$library" --resume --stale --rounds 21 --limit-s "$limit" \
            --out "$results/$name-$step.json"
        ;;
    attention)
        run 300 python3 bench/attention_gpu.py --library "$library" --device "$device" --peers cudnn,fa4,own --limit-s 280 --out "$results/$name-attention.json"
        # in a process of its own, because compiling takes minutes: what was measured before stands
        run 300 python3 bench/attention_gpu.py --library "$library" --device "$device" --peers flex --limit-s 240 --only b128 --out "$results/$name-attention-flex.json"
        ;;
    attention-backward)
        run 200 python3 bench/attention_backward_gpu.py --library "$library" --device "$device" --limit-s 180 --out "$results/$name-attention-backward.json"
        ;;
    layers)
        earlier "$name-layers"
        run 560 python3 bench/python/layers.py --device cuda --json "$results/$name-layers.json" --add --limit-s 500
        ;;
    decoder) run 560 python3 bench/python/decoder.py --device cuda --seconds 500 --json "$results/$name-decoder.json" --picture "docs/figures/decoder-$name.svg" ;;
    bundle) run 290 python3 bench/bundle.py run --program "$build/sparsek" --device "$device" --seconds 250 --budget 1 \
                --decoder "--device cuda --layers 1 --rounds 3 --budget-s 1 --seconds 120" "$results/$name-bundle.json" ;;
    examples)
        for example in finite_elements graph moe recommender; do
            run 150 python3 "examples/python/$example.py" --device cuda --budget 1 --json "examples/python/results/$name-$example.json"
        done
        # long_prompt and mixture need transformers
        for example in documents long_prompt video mixture; do
            run 250 python3 "examples/python/$example.py" --device cuda --budget 2 --json "examples/python/results/$name-$example.json"
        done
        [ -z "${EXAMPLE_LAYERS:-}" ] ||
            run 100 python3 examples/python/transformer.py --layers-only "$EXAMPLE_LAYERS" --device cuda --json "examples/python/results/$name-transformer-layers.json"
        ;;
    tests) run 560 env OMP_NUM_THREADS=2 python3 bench/python/tests.py --json "$results/$name-python-tests.json" --limit-s 520 \
                --resume "${PYTHON_TESTS_STATE:-/tmp/sparsek-python-tests.json}" -n 8 ;;
    regret-bundle)
        run 10 python3 bench/bundle.py list /tmp/sparsek-bundle.json --device "$device"
        run 560 "$build/sparsek" regret --from /tmp/sparsek-bundle.json --bundle --device "$device" --among 40 --resume "/tmp/sparsek-$name-regret-bundle.state" \
            --json "$results/$name-regret-bundle.json"
        ;;
    regret) run 300 "$build/sparsek" regret --device "$device" --problems 40 --seed 20261122 --json "$results/$name-regret-40.json" ;;
    regret-large)
        run 10 python3 bench/large.py /tmp/sparsek-large.json --seed 20261129
        run 300 "$build/sparsek" regret --from /tmp/sparsek-large.json --device "$device" --among 40 --best-budget 5 --rounds 11 --json "$results/$name-regret-large.json"
        ;;
    first-calls) run 500 python3 bench/python/first_calls.py --device cuda --count 40 --seconds 3 --budget-s 2 --json "$results/$name-first-calls.json" ;;
    flips) run 560 python3 bench/python/flips.py --device cuda --count 24 --times 6 --json "$results/$name-flips.json" ;;
    regret-attention)
        run 560 "$build/sparsek" regret --device "$device" --op attention --problems 40 --seed 20261125 --among 40 --json "$results/$name-regret-attention-40.json"
        ;;
    attention-device) run 120 python3 tests/device/attention.py --library "$library" --json "$results/$name-attention-device.json" ;;
    attention-python) run 300 python3 tests/device/attention_python.py --jobs 6 --json "$results/$name-attention-python.json" ;;
    check-attention) run 560 "$build/sparsek" check --device "$device" --op attention --cases 2000 --alike 60 --json "$results/$name-check-attention-2000.json" ;;
    check-attention-backward)
        # of the draws 2 in 100 apply to the row of Hopper: each row has its own number, and not the whole its own
        run 560 "$build/sparsek" check --device "$device" --op attention_backward --each 300 --cases 100000 --alike 20 --json "$results/$name-check-attention-backward.json"
        ;;
    regret-gemm)
        run 560 "$build/sparsek" regret --device "$device" --op gemm --problems 40 --seed 20261125 --among 40 --json "$results/$name-regret-gemm-40.json"
        ;;
    proved)
        run 330 python3 bench/proved.py run "$results/$name-proved.json" --program "$build/sparsek" --device "$device" --seconds 300
        run 220 python3 bench/proved.py run "$results/$name-proved-attention.json" --op attention --program "$build/sparsek" --device "$device" --seconds 200
        run 120 python3 bench/proved.py run "$results/$name-proved-attention-backward.json" --op attention_backward --program "$build/sparsek" --device "$device" \
            --seconds 100
        run 10 python3 bench/runs.py add "$results/$name"-proved*.json
        run 10 python3 bench/proved.py table
        ;;
    proved-again) # what a change of sources has left without a live proof
        earlier "$name-proved-again"
        run 560 python3 bench/proved.py again "$results/$name-proved-again.json" --program "$build/sparsek" --device "$device" --seconds 520
        run 10 python3 bench/runs.py add "$results/$name-proved-again.json"
        run 10 python3 bench/proved.py table
        ;;
    check) run 560 "$build/sparsek" check --device "$device" --cases 2000 --json "$results/$name-check-2000.json" ;;
    check-small)
        run 560 "$build/sparsek" check --device "$device" --kernel spmm_sm80_warp,spmm_sm80_direct,spmm_cuda_rows --each 700 --cases 100000 --alike 12 \
            --json "$results/$name-check-small.json"
        ;;
    check-few) # kernels that stay on their multiprocessors, with many tiles on each
        run 280 env SPARSEK_CUDA_PROCESSORS=6 "$build/sparsek" check --device "$device" --cases 100000 --each 150 --alike 20 \
            --kernel attention_sm90,attention_backward_sm90,spmm_sm90_wgmma,spmm_sm90_groups,gemm_sm90_wgmma,sddmm_sm90_wgmma --json "$results/$name-check-few.json"
        ;;
    check-gemm) run 560 "$build/sparsek" check --device "$device" --op gemm --cases 2000 --alike 60 --json "$results/$name-check-gemm-2000.json" ;;
    checks) # three at once, as nothing is timed; more of them leave the provers too little of the GPU
        for parts in "check-attention check-attention-backward attention-device" "check check-small check-gemm" check-few; do
            ids=()
            for part in $parts; do
                bash "$self" --build "$build" --results "$results" --device "$device" "$part" >&2 &
                ids+=("$!:$part")
            done
            for id in "${ids[@]}"; do wait "${id%%:*}" || failed+=("${id#*:}"); done
        done
        ;;
    sanitizers) run 560 python3 tests/device/sanitize.py --build "$build" --each 12 --json "$results/$name-sanitizers.json" ;;
    upstream)
        for program in docs/upstream/*.py; do
            run 100 python3 "$program" >"${program%.py}.txt"
            cat "${program%.py}.txt"
        done
        ;;
    page)
        if compgen -G "$results/$name-*.json" >/dev/null; then run 60 python3 bench/runs.py add "$results/$name"-*.json; fi
        run 60 python3 bench/performance.py
        ;;
    *) echo "unknown step $step (see --help)" >&2; exit 2 ;;
    esac
done
[ ${#failed[@]} = 0 ] || { echo "failed or not done in time: ${failed[*]}" >&2; exit 1; }
