#!/usr/bin/env bash
# All that needs an NVIDIA GPU, in one command. Usage: tests/device/run.sh [--build FOLDER] [--cases N] [--small N] [--seed N] [--logs FOLDER] [STEP...]
#   STEP      only these: check device proof sanitizers, and rust: the crate's example, built by `cargo build --release --example device` in rust/ (RUST_DEVICE names
#             another place)
#   --build   a build with -DSPARSEK_TESTS=ON -DSPARSEK_TEST_ROWS=ON (default: build/device, made where it is missing)
#   --cases   random problems of `check` over every row (default: 2000)
#   --small   random problems that each row computes under each sanitizer (default: 12)
# Needs NVRTC (SPARSEK_NVRTC, where it is not found by itself); the sanitizer steps need compute-sanitizer (SANITIZER names another place). Every step has
# a limit of its own, and a failed one does not keep the others from running. Logs, and check.json and sanitizers.json: build/device-logs.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build/device cases=2000 small=12 seed=${SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')} logs=$root/build/device-logs
steps=()
while [ $# -gt 0 ]; do
    case "$1" in
    --build) build=$(realpath "$2"); shift ;;
    --cases) cases=$2; shift ;;
    --small) small=$2; shift ;;
    --seed) seed=$2; shift ;;
    --logs) logs=$2; shift ;;
    -h | --help) sed -n '2,10s/^# \?//p' "$0"; exit 0 ;;
    -*) echo "unknown option $1 (see --help)" >&2; exit 2 ;;
    *) steps+=("$1") ;;
    esac
    shift
done
[ ${#steps[@]} -gt 0 ] || steps=(check device proof sanitizers)
mkdir -p "$logs" || exit 2
if [ ! -x "$build/sparsek" ]; then
    cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DSPARSEK_TESTS=ON -DSPARSEK_TEST_ROWS=ON && cmake --build "$build" -j --target sparsek_cli sparsek_prover test_device || exit 2
fi
export SPARSEK_CACHE_DIR=$logs/cache # compiled programs and proofs; the first tuning of the step proof must find none
export LD_LIBRARY_PATH=$build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
passed=0
failed=()

# step NAME SECONDS COMMAND...: its log, one line, and the log's end where it failed
step() {
    local name=$1 limit=$2 begun=$SECONDS status
    shift 2
    timeout -k 10 "$limit" "$@" >"$logs/$name.log" 2>&1
    status=$?
    if [ $status = 0 ]; then
        passed=$((passed + 1))
        echo "$name: passed in $((SECONDS - begun)) s: $(tail -n 1 "$logs/$name.log")"
    else
        failed+=("$name")
        [ $status = 124 ] || [ $status = 137 ] && echo "$name: not done within $limit s" || echo "$name: FAILED ($status) after $((SECONDS - begun)) s"
        tail -n 15 "$logs/$name.log" | sed 's/^/    /'
    fi
}

for name in "${steps[@]}"; do
    case "$name" in
    check) step check 900 "$build/sparsek" check --device cuda:0 --cases "$cases" --seed "$seed" --json "$logs/check.json" ;;
    device) for test in streams threads contexts graphs aligned skipped epilogues deferred allocator memory devices; do step "device-$test" 240 "$build/tests/test_device" "$test"; done ;;
    rust) step rust 120 "${RUST_DEVICE:-$root/rust/target/release/examples/device}" cuda:0 ;;
    proof)
        rm -rf "$SPARSEK_CACHE_DIR/proof"
        SPARSEK_CACHE_DIR=$SPARSEK_CACHE_DIR/proof step proof 180 "$build/tests/test_device" proof
        ;;
    sanitizers) step sanitizers 900 python3 "$root/tests/device/sanitize.py" --build "$build" --each "$small" --seed "$seed" --logs "$logs" --json "$logs/sanitizers.json" ;;
    *) echo "unknown step $name (see --help)" >&2; exit 2 ;;
    esac
done
[ ${#failed[@]} = 0 ] || echo "failed: ${failed[*]} (seed $seed; logs in $logs)"
echo "$passed passed, ${#failed[@]} failed"
[ ${#failed[@]} = 0 ]
