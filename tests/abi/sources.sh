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
# What is true of an operation alone stands in its folder, src/op/NAME; who asks which one it is would forget the next.
names=$(sed -n 's/^SPK_OP(\(.*\))$/\U\1/p' src/op/operations.def | paste -sd'|')
found=$(grep -rnE "(==|!=) *SPK_($names)\\b|case SPK_($names)\\b" src cli prover python rust bench --include='*.[ch]' \
    --include='*.cpp' --include='*.rs' --include='*.py' | grep -vE '^src/op/[a-z]+/|^rust/sparsek-sys/src/bindings\.rs:' || true)
[ -z "$found" ] || fail "an operation is told by its row, not by its name" "$found"
# What is true of an element type alone stands in its row, src/type/types.def. Oracles, kernels and what is the host side of kernels compute with given types.
types=$(sed -n 's/^SPK_TYPE(SPK_\([A-Z0-9]*\),.*/\1/p' src/type/types.def | paste -sd'|')
[ -n "$types" ] || fail "no types were found in" src/type/types.def
found=$(grep -rnE "(==|!=) *SPK_($types)\\b|case SPK_($types)\\b" src cli prover --include='*.[ch]' |
    grep -vE '^src/(type/|op/([a-z_]+/)?oracle|backend/[a-z]+/(kernels|vendor|host)/|backend/cpu/epilogue\.c:)' || true)
[ -z "$found" ] || fail "an element type is told by its row, not by its name" "$found"
# Nor does anyone else list the types, or know what they are called and numbered elsewhere. Kernels have instances for some of them.
names=$(sed -n 's/^SPK_TYPE(SPK_[A-Z0-9]*, \([a-z0-9]*\), SPK_USE_\(VALUES\|FACTORS\),.*/\1/p' src/type/types.def | paste -sd'|')
torch=$(sed -n 's/.*, \([a-z0-9_]*\), "[^"]*"), ([-0-9, ]*))$/\1/p' src/type/types.def | grep -vxE 'none|int32' | paste -sd'|')
stored=$(sed -n 's/.*(\(NULL\|"[a-z0-9]*"\), "\([A-Z0-9_]*\)", .*/\2/p' src/type/types.def | grep -vx I32 | paste -sd'|')
[ -n "$names" ] && [ -n "$torch" ] && [ -n "$stored" ] || fail "no names of types were found in" src/type/types.def
in_c="case SPK_($types):|\[SPK_($types)\] *=|[{(,] *SPK_($types) *, *SPK_($types)\b|\{SPK_($types), *\"|\b($names)\|($names)\b"
in_c+="|\"($names|$torch|$stored)\"|\b(CUDA_R|CUDNN_DATA)_[A-Z0-9]|CU_TENSOR_MAP_DATA_TYPE_|\bDNNL?_(HALF|DOUBLE|BFLOAT16|INT8|FP8|B?F[0-9]|S8)"
in_c+="|aoti_torch_dtype_($(tr '|' '\n' <<<"$torch" | grep -vxE 'float32|uint8' | paste -sd'|'))\(|\bat::k(Half|BFloat16|Double|Char)\b|ScalarType::(Half|BFloat16|Double|Char)\b"
in_python="[({[]torch\.($torch)\b(: [^,]*)?, *torch\.($torch)\b|Error\(.*\b($torch)(,| and| or) ($torch)\b"
for line in 'case SPK_F16:' '[SPK_F64] = 7,' 'types[] = {SPK_F16, SPK_BF16};' '{{SPK_F32, "spk_u32"}' '.values = "f32|f64"' 'strcmp(name, "bf16")' '{"F8_E4M3", 1}' \
    'type = CUDA_R_16BF;' 'CU_TENSOR_MAP_DATA_TYPE_FLOAT16' 'DNN_HALF : DNN_BFLOAT16' 'DNNL_F16' 'aoti_torch_dtype_bfloat16()' 'at::kBFloat16' '"float8_e5m2"'; do
    grep -qE "$in_c" <<<"$line" || fail "this test does not see a list of types" "$line"
done
for line in '(torch.float16, torch.bfloat16)' '{torch.float32: "f32", torch.int8: 3}' 'raise TypeError("a: is of float16 or bfloat16")'; do
    grep -qE "$in_python" <<<"$line" || fail "this test does not see a list of types" "$line"
done
found=$(grep -rnE "$in_c" src cli prover python/src --include='*.[ch]' --include='*.cpp' | grep -vE '^src/(type|backend/[a-z]+/kernels)/' || true)
[ -z "$found" ] || fail "lists of types, and what peers call them, stand in src/type/types.def; a list of what it lacks loses what it has now" "$found"
found=$(grep -rnE "$in_python" python/sparse_autotune --include='*.py' || true)
[ -z "$found" ] || fail "lists of types come from python/sparse_autotune/_types.py" "$found"
for type in $(sed -n 's/^SPK_TYPE(\(SPK_[A-Z0-9]*\), [a-z0-9]*, SPK_USE_\(VALUES\|FACTORS\),.*/\1/p' src/type/types.def); do
    grep -rqw "$type" rust/sparsek/src || fail "the type is not among those of Rust, Dtype" "$type"
done
while read -r _ type number; do
    grep -qE "\bSPK_$type = $number\b" include/sparsek/core.h || fail "device programs number a type as sparsek/core.h does not" "#define $type $number"
done < <(grep -E "^#define ($types) [0-9]+$" src/backend/cuda/device/common/problem.cuh)
# What is true of a kind of device is a fact of its backend, src/backend/backend.h; a tunable is looked up by its name in one place, its owner's.
found=$(grep -rnE "(==|!=) *(SPK_BACKEND_[A-Z]+|&spk_backend_[a-z]+)\\b|case SPK_BACKEND_" src cli prover --include='*.[ch]' | grep -vE '^src/(backend/[a-z]+|registry)/' || true)
[ -z "$found" ] || fail "a kind of device is told by the facts of its backend, not by its name" "$found"
found=$(grep -rnE 'spk_params_(index|names)\([^;]*"' src --include='*.[ch]' || true)
[ -z "$found" ] || fail "a tunable is looked up by its name by its owner, as spk_serial_tunable does" "$found"
echo "sources: the environment is read in one place and changed in none; no one asks which operation, element type or device it is, or lists types"
