#!/usr/bin/env bash
# A row's source hash is over the files that it really includes: editing one makes stale its users, and nobody else. Usage: hashes.sh [BUILD]
#   BUILD   also: this build's rows carry these hashes
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD build=${1:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/src"
cp -r src/backend "$work/src"

hashes() { cmake -DROOT="$1" -P "$root/cmake/SparsekClosure.cmake" | sort; }

# edited FILE ROW...: after an edit of FILE these rows, and no others, have another hash.
edited() {
    local file=$1
    shift
    echo '/* edited */' >>"$work/src/backend/$file"
    hashes "$work/src" >"$work/after"
    found=$(diff "$work/before" "$work/after" | sed -n 's/^> \([a-z0-9_]*\) .*/\1/p' | tr '\n' ' ' || true)
    wanted=$(for row in "$@"; do echo "$row"; done | sort | tr '\n' ' ')
    [ "$found" = "$wanted" ] || { echo "hashes: an edit of $file makes stale $found; its users are $wanted"; exit 1; }
    cp "src/backend/$file" "$work/src/backend/$file"
    edits=$((edits + 1))
}

hashes "$work/src" >"$work/before"
edits=0
all_cuda=$(cd src/backend/cuda && basename -a -s .c kernels/*.c vendor/*.c)
edited cuda/kernels/spmm_sm90_groups.cu spmm_sm90_groups
edited cuda/kernels/spmm_sm90_wgmma.c spmm_sm90_wgmma
edited cuda/kernels/spmm_sm90_groups.h spmm_sm90_groups
edited cuda/helpers/list_tiles.cu sddmm_sm90_wgmma
edited cuda/device/sddmm_tile.h sddmm_sm90_wgmma
edited cuda/device/simt.cuh gemm_cuda_simt sddmm_cuda_simt spmm_cuda_simt
edited cuda/device/dense.cuh gemm_cuda_simt gemm_sm80_dmma gemm_sm80_mma
edited cuda/device/cluster.cuh gemm_sm90_wgmma spmm_sm90_wgmma
edited cuda/helpers/copy_lines.cu gemm_sm90_wgmma
edited cuda/device/sddmm_store.cuh sddmm_sm90_wgmma
edited cuda/plan/cut.c spmm_sm90_wgmma # the host's plan says what is launched: a proof with another one proves nothing
edited cuda/plan/groups_choose.c sddmm_sm90_wgmma spmm_sm90_groups
edited cuda/plan/warp_mma.h gemm_sm80_dmma gemm_sm80_mma sddmm_sm80_mma spmm_sm80_dmma spmm_sm80_mma
edited cuda/plan/launch.c $all_cuda
edited cuda/vendor/cusparse.h $(cd src/backend/cuda && basename -a -s .c vendor/*.c)
edited cuda/helpers/finish.cu $(cd src/backend/cuda && basename -a -s .c vendor/*.c) # what vendor rows launch around their products
edited cpu/kernels/spmm_f32_avx2.c spmm_f32_avx2
edited cpu/kernels/narrow_micro.h spmm_f32_narrow_avx2 spmm_f64_narrow_avx2 spmm_half_narrow_avx2 spmm_half_narrow_avx512
edited cpu/kernels/reference_body.h reference
edited cpu/vendor/vendor.h $(cd src/backend/cpu && basename -a -s .c vendor/*.c)
edited cuda/proof.c
edited cuda/model/attention_sm90.c # a model chooses; what it chooses from stays proved

# Where the project lies, and in which order files are found, changes nothing.
hashes "$root/src" | diff - "$work/before" >/dev/null || { echo "hashes: they depend on the folder"; exit 1; }
if [ -n "$build" ]; then
    while read -r row hash; do
        [[ $row =~ ^(spmm|sddmm|gemm|reference|cublas|cusparse_|blis|mkl|onednn|openblas) ]] || continue
        case "$(uname -m) $row" in "x86_64 "*_neon | "aarch64 "*_avx2 | "aarch64 "*_avx512 | "aarch64 "*_amx) continue ;; esac # built for other processors
        grep -q "SPK_SOURCE_HASH=[\\\\\"]*$hash.*/$row\.c\"" "$build/compile_commands.json" || { echo "hashes: $build has another hash for $row than $hash"; exit 1; }
    done <"$work/before"
fi
echo "hashes: $edits edits make stale the users of what was edited"
