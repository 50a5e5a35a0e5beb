#!/usr/bin/env bash
# GPU rows whose instructions have a double (tensor.hpp, halves.hpp) against the oracle, on the host. Usage: check.sh BUILD [CASES [SEED]]
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(cd "$1" && pwd)
SPARSEK_CACHE_DIR=$(mktemp -d) # what is proved here is proved nowhere else
export SPARSEK_CACHE_DIR
trap 'rm -rf "$SPARSEK_CACHE_DIR"' EXIT
export SPARSEK_CUDA=$build/tests/libcuda_double.so SPARSEK_NVRTC=$build/tests/libnvrtc_double.so
export SPARSEK_ON_HOST=$PWD/tests/on_host/compile.py SPARSEK_ON_HOST_FOLDER=$build/on-host
seed=${3:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
"$build/sparsek" check --device cuda:0 --op attention_backward --only attention_backward_sm80 --each "${2:-10}" --alike 4 --seed "$seed"
