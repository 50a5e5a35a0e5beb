"""Changes of the sources of rows, and who uses what is changed: for evidence.py."""

# A file, a text in it, what it becomes, and the rows that use it.
CONSTANTS = [
    ("cpu/kernels/spmm/spmm_f32_avx2.c", "#define ISA AVX2", "#define ISA PORTABLE", "spmm_f32_avx2"),
    (
        "cpu/kernels/spmm/narrow_micro.h",
        "sizeof(STORED) != sizeof(REAL)",
        "sizeof(STORED) == sizeof(REAL)",
        "spmm_f32_narrow_avx2 spmm_f64_narrow_avx2 spmm_half_narrow_avx2 spmm_half_narrow_avx512",
    ),
    (
        "cpu/kernels/vectors/instance.h",
        "#define REAL double",
        "#define REAL long double",
        "attention_avx2 attention_avx512 attention_backward_avx2 attention_backward_avx512 attention_backward_neon attention_backward_portable "
        "attention_neon attention_portable blis gemm_avx2 gemm_avx512 gemm_narrow_avx2 gemm_narrow_avx512 gemm_neon gemm_portable libxsmm mkl mkl_bsr onednn "
        "openblas reference_gemm reference_sddmm reference_spmm sddmm_avx2 sddmm_avx512 sddmm_neon sddmm_portable spmm_f64_avx2 spmm_f64_avx512 "
        "spmm_f64_narrow_avx2 spmm_f64_neon spmm_portable",
    ),
    ("cuda/host/tiles/warp_mma.c", "WARP_MMA_MOST_WARPS = 8", "WARP_MMA_MOST_WARPS = 4", "gemm_sm80_dmma gemm_sm80_mma sddmm_sm80_mma spmm_sm80_dmma spmm_sm80_mma"),
    ("cuda/host/schedule/cluster_cut.c", "t->clusters * 2 +", "t->clusters * 3 +", "spmm_sm90_wgmma"),
    ("cuda/device/mma/simt.cuh", "#define LANE (16", "#define LANE (8", "gemm_cuda_simt sddmm_cuda_simt spmm_cuda_simt"),
    ("cuda/device/epilogue/cluster.cuh", "threadIdx.x * 16, barrier", "threadIdx.x * 8, barrier", "spmm_sm90_wgmma"),
    ("cuda/device/epilogue/sddmm_store.cuh", "count / 16; i++", "count / 8; i++", "sddmm_sm90_wgmma"),
    (
        "cuda/device/ptx/tma.cuh",
        "words[16]",
        "words[32]",
        "attention_backward_sm90 attention_backward_sm90_two_pass attention_sm90 gemm_sm90_wgmma sddmm_sm90_wgmma spmm_sm80_warp spmm_sm90_groups spmm_sm90_wgmma",
    ),
    ("cuda/helpers/copy_lines.cu", "high << 16", "high << 15", "gemm_sm90_wgmma"),
    ("cuda/helpers/list_tiles.cu", "PARTS = DOWN / ROWS", "PARTS = DOWN / ROWS + 1", "sddmm_sm90_wgmma"),
    ("cuda/helpers/finish.cu", "{", "{ int more = 1;", "cublas_blocks cublas_dense cublas_gemm cusparse"),
    ("cuda/vendor/cusparse.h", ";", ", *another;", "cusparse"),
]

# Conditionals that decide which libraries are there, not what a row computes with one: a file, and a line of the first branch.
OF_NO_ROW = [
    ("library.c", "    const bool may = spk_code_may_be_made();"),
    ("library.c", "    return index == LIBXSMM && !spk_libxsmm_has_stack();"),
    ("vector.h", "#include <immintrin.h>"),  # of the system: no source of ours
]

# What is easily not seen: a file, a text in it, what it becomes, once to prepare and then to change; and a row at least that must become stale by the latter.
# A text of "" stands for the end of a file, "^" for its beginning.
WHOLE = "bool spk_sm90_b_whole(const spk_problem *problem)\n{"
BUILD = '    spk_build_begin(build, "spmm_sm90_wgmma.cu"'
HEAD = "template <int DTYPE> struct element_of;"
SIZE = "    const int size = (int)(GROUP_AXIS"
SM90, WGMMA, PROBLEM = "cuda/host/tiles/sm90.c", "cuda/kernels/spmm_sm90_wgmma.c", "cuda/device/common/problem.cuh"
SEEN = {
    "the number behind a name that only open conditions mention": ([], [(PROBLEM, "#define RELU 1", "#define RELU 5")], "spmm_sm90_wgmma"),
    "two names that exchange their numbers": (
        [],
        [(PROBLEM, "#define GELU_ERF 2\n#define GELU_TANH 3", "#define GELU_ERF 3\n#define GELU_TANH 2")],
        "gemm_sm80_mma",
    ),
    "a macro within a pragma": (
        [("cpu/kernels/spmm/narrow_micro.h", "^", "#define DEEP 4\n"), ("cpu/kernels/spmm/narrow_micro.h", "#pragma GCC unroll 4", "#pragma GCC unroll DEEP")],
        [("cpu/kernels/spmm/narrow_micro.h", "#define DEEP 4", "#define DEEP 1")],
        "spmm_f32_narrow_avx2",
    ),
    "a macro within one that an open condition defines": (
        [
            (PROBLEM, HEAD, "#define WIDTH_X 8\n#if BATCHED\n#define TILE_X (WIDTH_X * 2)\n#else\n#define TILE_X WIDTH_X\n#endif\n" + HEAD),
            (PROBLEM, SIZE, "    [[maybe_unused]] constexpr int wide_x = TILE_X;\n" + SIZE),
        ],
        [(PROBLEM, "#define WIDTH_X 8", "#define WIDTH_X 16")],
        "gemm_sm90_wgmma",
    ),
    "parameters of a macro that is defined anew": (
        [
            (PROBLEM, HEAD, "#define DIFF(a, b) ((a) - (b))\n#if BATCHED\n#undef DIFF\n#define DIFF(a, b) ((a) + (b))\n#endif\n" + HEAD),
            (PROBLEM, SIZE, "    group = DIFF(group, 1);\n" + SIZE),
        ],
        [(PROBLEM, "#define DIFF(a, b) ((a) - (b))", "#define DIFF(b, a) ((a) - (b))")],
        "gemm_sm90_wgmma",
    ),
    "a name of a system header": (
        [],
        [("cpu/vendor/library.c", "return RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;", "return RTLD_LAZY | RTLD_GLOBAL;")],
        "openblas",
    ),
    "a name of the compiler": (
        [(SM90, WHOLE, WHOLE + "\n#ifdef _OPENMP\n    problem += 1;\n#endif")],
        [(SM90, "problem += 1;", "problem += 2;")],
        "spmm_sm90_wgmma",
    ),
    "an object of another source": (
        [
            (SM90, "", "\nconst struct sm90_limits spk_sm90_limits = {256};\n"),
            ("cuda/host/tiles/sm90.h", "", "extern const struct sm90_limits {\n    int most;\n} spk_sm90_limits;\n"),
            (WGMMA, BUILD, "    problem += spk_sm90_limits.most;\n" + BUILD),
        ],
        [(SM90, "{256}", "{512}")],
        "spmm_sm90_wgmma",
    ),
    "a function of another source behind a macro": (
        [
            (SM90, "", "\nSPK_COLD(noinline) int spk_sm90_extra(int x)\n{\n    return x + 256;\n}\n"),
            ("cuda/host/tiles/sm90.h", "", "int spk_sm90_extra(int x);\n"),
            (WGMMA, BUILD, "    problem += spk_sm90_extra(1);\n" + BUILD),
        ],
        [(SM90, "x + 256", "x + 512")],
        "spmm_sm90_wgmma",
    ),
    "what follows a model's name in a body": (
        [(WGMMA, BUILD, "    k.predict_us = NULL;\n    problem->n += 1;\n" + BUILD)],
        [(WGMMA, "problem->n += 1;", "problem->n += 2;")],
        "spmm_sm90_wgmma",
    ),
    "a packed struct": (
        [
            ("cuda/host/tiles/sm90.h", "", "typedef struct __attribute__((packed)) {\n    int most[4];\n} quad_x;\n"),
            (SM90, WHOLE, WHOLE + "\n    problem += sizeof(quad_x);"),
        ],
        [("cuda/host/tiles/sm90.h", "int most[4]", "int most[8]")],
        "spmm_sm90_groups",
    ),
    "a name pasted to nothing": (
        [
            (SM90, "^", "#define NAMED(prefix, x) static int prefix##x(int v)\nNAMED(, extra_x)\n{\n    return v + 256;\n}\n"),
            (SM90, WHOLE, WHOLE + "\n    problem += extra_x(1);"),
        ],
        [(SM90, "v + 256", "v + 512")],
        "spmm_sm90_wgmma",
    ),
    "an alias": (
        [
            (SM90, "", '\nstatic int target_x(int x)\n{\n    return x + 256;\n}\nint alias_x(int x) __attribute__((alias("target_x")));\n'),
            (SM90, WHOLE, "int alias_x(int x);\n" + WHOLE + "\n    problem += alias_x(1);"),
        ],
        [(SM90, "x + 256", "x + 512")],
        "spmm_sm90_wgmma",
    ),
    "a constructor": (
        [],
        [("cpu/kernels/spmm/spmm_f32_avx2.c", "", "\n__attribute__((constructor)) static void change_all(void)\n{\n    ((int *)0)[0] = 1;\n}\n")],
        "spmm_f32_avx2",
    ),
    "a constructor under an open condition": (
        [
            (
                "cpu/kernels/spmm/spmm_f32_avx2.c",
                "",
                "\n#ifdef SPK_CHECKED\nint checked_x;\n__attribute__((constructor)) static void check_all(void)\n{\n    abort();\n}\n#endif\n",
            )
        ],
        [("cpu/kernels/spmm/spmm_f32_avx2.c", "abort();", "exit(1);")],
        "spmm_f32_avx2",
    ),
    "assembly between functions": ([], [("cuda/host/frame/launch.c", "", '\n__asm__(".globl spk_x\\nspk_x: ret\\n");\n')], "spmm_sm90_wgmma"),
    "the place of a pragma": (
        [("cpu/kernels/spmm/spmm_f32_avx2.c", "", '\n#pragma GCC optimize("fast-math")\n')],
        [
            ("cpu/kernels/spmm/spmm_f32_avx2.c", '\n#pragma GCC optimize("fast-math")\n', ""),
            ("cpu/kernels/spmm/spmm_f32_avx2.c", "^", '\n#pragma GCC optimize("fast-math")\n'),
        ],
        "spmm_f32_avx2",
    ),
    "an inclusion in angles": (
        [("cpu/kernels/spmm/tile_real_row.h", '#include "backend/cpu/kernels/spmm/tile_spmm.h"', "#include <backend/cpu/kernels/spmm/tile_spmm.h>")],
        [("cpu/kernels/spmm/tile_spmm.h", "int64_t ", "int32_t ")],
        "spmm_f32_avx2",
    ),
    "an inclusion beside the file": (
        [("cpu/kernels/spmm/tile_real_row.h", '#include "backend/cpu/kernels/spmm/tile_spmm.h"', '#include "tile_spmm.h"')],
        [("cpu/kernels/spmm/tile_spmm.h", "int64_t ", "int32_t ")],
        "spmm_f32_avx2",
    ),
    "two programs of a row": (
        [],
        [
            ("cuda/kernels/attention_sm90.c", '"attention_merge.cu"', '"x"'),
            ("cuda/kernels/attention_sm90.c", '"attention_join.cu"', '"attention_merge.cu"'),
            ("cuda/kernels/attention_sm90.c", '"x"', '"attention_join.cu"'),
        ],
        "attention_sm90",
    ),
    "a program's name in two texts": (
        [("cuda/kernels/gemm_sm90_wgmma.c", '"copy_lines.cu"', '"copy_lines" ".cu"')],
        [("cuda/helpers/copy_lines.cu", "high << 16", "high << 15")],
        "gemm_sm90_wgmma",
    ),
    "a conversion of half floats": ([], [("../type/half.h", "mantissa << 13", "mantissa << 12")], "openblas"),
}

# Vendors' rows on a GPU: what is recorded of them (evidence_records.py), for which problems.
RECORDED_CHOICES = {
    "spmm": ["cublas_dense ALGO=0", "cublas_dense ALGO=13", "cublas_blocks", "cusparse_bsr", "cusparse_blocked_ell"],
    "sddmm": ["cublas_dense_sddmm ALGO=1"],
    "gemm": ["cublas_gemm ALGO=0", "cublas_gemm ALGO=13"],
    "attention": ["cudnn_attention"],
}
RECORDED_PROBLEMS = {
    "spmm": [f"--m 256 --k 256 --n 64 --block 64 --density 0.5 {more}" for more in ("--dtype f16 --static-values", "--dtype f64 --use-c")],
    "sddmm": ["--m 256 --k 256 --n 128 --block 64 --density 0.5 --dtype bf16"],
    "gemm": ["--m 64 --k 128 --n 256 --dtype f16 --bias col --batch 2", "--m 64 --k 128 --n 256 --dtype f32 --activation silu"],
    "attention": ["--heads 4 --heads-kv 2 --queries 128 --keys 256 --depth 64 --dtype f16 --causal --diagonal bottom_right --window-left 70 --lse"],
}
# Files of src/backend/cuda/vendor, a text there, and what it becomes: the libraries get the same.
REFACTORED = [
    ("cublas_gemm.c", "static spk_status multiply(", "/* A remark. */\nstatic spk_status multiply("),
    (
        "cublaslt.c",
        "    SPK_TRY(make_layout(&p->layouts[0], first, spec->items));\n    SPK_TRY(make_layout(&p->layouts[1], second, spec->items));\n",
        "    SPK_TRY(make_layout(&p->layouts[1], second, spec->items));\n    SPK_TRY(make_layout(&p->layouts[0], first, spec->items));\n",
    ),
    ("cublas_blocks.c", "const double beta = adds ? 1 : 0;", "double beta = 0;\n    if (adds)\n        beta = 1;"),
    ("cublas_dense.c", "    bool with_c = s->around.direct && ", "    const bool direct = s->around.direct;\n    bool with_c = direct && "),
    ("cusparse.c", "double alpha64 = s->around.direct ? args->alpha : 1,", "double alpha64 = !s->around.direct ? 1 : args->alpha,"),
    (
        "cudnn_graph.c",
        "    give(g, object, TENSOR_ID, TYPE_INT64, 1, &id);\n    give(g, object, TENSOR_ALIGNMENT, TYPE_INT64, 1, &alignment);\n",
        "    give(g, object, TENSOR_ALIGNMENT, TYPE_INT64, 1, &alignment);\n    give(g, object, TENSOR_ID, TYPE_INT64, 1, &id);\n",
    ),
]
# Likewise; and the rows whose libraries get something else.
RECORDED = [
    ("cublas_gemm.c", "direct ? args->alpha : 1,", "direct ? 2 * args->alpha : 1,", "cublas_gemm"),
    ("cublas_dense.c", "s->lda = (int64_t)spk_round_up((size_t)p->k, 8);", "s->lda = (int64_t)spk_round_up((size_t)p->k, 8) + 8;", "cublas_dense"),
    ("cublas_dense_sddmm.c", "return (p->n + 7) / 8 * 8;", "return (p->n + 7) / 8 * 8 + 8;", "cublas_dense_sddmm"),
    ("cublaslt.c", "        2; /* parts of a sum", "        4; /* parts of a sum", "cublas_dense cublas_dense_sddmm cublas_gemm"),
    ("cublas_blocks.c", ".lda = (int)(k_inside ? width : height),", ".lda = 1 + (int)(k_inside ? width : height),", "cublas_blocks"),
    ("cusparse.c", "SPARSE_I32, 0, type),", "SPARSE_I32, 1, type),", "cusparse_blocked_ell"),
    ("cusparse.c", "type, spk_sparse_order(p->block_layout)),", "type, 1 + spk_sparse_order(p->block_layout)),", "cusparse_bsr"),
    ("cudnn_graph.c", "const float one = 1;", "const float one = 2;", "cudnn_attention"),
]
