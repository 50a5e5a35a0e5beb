/* The epilogue for every kernel that has none of its own: baseline vectors, both layouts, all dtypes. */
#include "backend/cpu/cpu.h"

#define ISA PORTABLE
#define TEMPLATE "backend/cpu/kernels/vectors/epilogue.h"
#include "backend/cpu/kernels/vectors/for_each_type.h"

void spk_epilogue_f32(const spk_problem *problem, const spk_args *args, const float *acc, int64_t acc_ld, int64_t row0, int64_t rows,
                      int64_t col0, int64_t cols)
{
    const spk_dtype dtype = problem->d.dtype;
    (dtype == SPK_F16    ? epilogue_f16
     : dtype == SPK_BF16 ? epilogue_bf16
                         : epilogue_f32)(problem, args, acc, acc_ld, row0, rows, col0, cols);
}

void spk_epilogue_f64(const spk_problem *problem, const spk_args *args, const double *acc, int64_t acc_ld, int64_t row0, int64_t rows,
                      int64_t col0, int64_t cols)
{
    epilogue_f64(problem, args, acc, acc_ld, row0, rows, col0, cols);
}

bool spk_epilogue_is_plain(const spk_problem *problem, const spk_args *args)
{
    const spk_epilogue *want = &problem->epilogue;
    return problem->d.layout == SPK_ROW_MAJOR && want->bias == SPK_BIAS_NONE && want->activation == SPK_ACT_NONE &&
           want->residual == SPK_RESIDUAL_NONE && !want->keep_preact && (!want->use_c || args->beta == 0);
}
