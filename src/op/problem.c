/* What follows from a problem, whatever its operation: the sizes of its operands, FLOPs, bytes, tolerance. */
#include "op/problem.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

int64_t spk_problem_d_rows(const spk_problem *problem)
{
    const spk_pattern *p = problem->pattern;
    if (problem->operation != SPK_SDDMM)
        return problem->m;
    return p->nnzb * (problem->block_layout == SPK_ROW_MAJOR ? p->block_rows : p->block_cols);
}

int64_t spk_problem_d_cols(const spk_problem *problem)
{
    const spk_pattern *p = problem->pattern;
    if (problem->operation != SPK_SDDMM)
        return problem->n;
    return problem->block_layout == SPK_ROW_MAJOR ? p->block_cols : p->block_rows;
}

bool spk_problem_is_empty(const spk_problem *problem)
{
    return spk_problem_d_rows(problem) == 0 || spk_problem_d_cols(problem) == 0;
}

double spk_problem_flops(const spk_problem *problem)
{
    const spk_pattern *p = problem->pattern;
    const int64_t depth = problem->operation == SPK_SDDMM ? problem->k : problem->n;
    return 2.0 * (double)p->nnzb * p->block_rows * p->block_cols * (double)depth * (double)problem->batch;
}

double spk_problem_dense_flops(const spk_problem *problem)
{
    return 2.0 * (double)problem->m * (double)problem->k * (double)problem->n * (double)problem->batch;
}

double spk_problem_touched_bytes(const spk_problem *problem, spk_operand operand)
{
    const spk_pattern *p = problem->pattern;
    double elements = (double)spk_problem_item_elements(problem, operand);
    if (problem->operation == SPK_SDDMM && operand == SPK_OPERAND_A)
        elements = fmin(elements, (double)p->nnzb * p->block_rows * (double)problem->k);
    if (problem->operation == SPK_SDDMM && operand == SPK_OPERAND_B)
        elements = fmin(elements, (double)p->nnzb * p->block_cols * (double)problem->k);
    if (problem->operation != SPK_SDDMM && operand == SPK_OPERAND_B)
        elements = fmin(elements, (double)p->nnzb * (problem->trans_a == SPK_TRANS ? p->block_rows : p->block_cols) * (double)problem->n);
    const int64_t items = spk_problem_operand_stride(problem, operand) != 0 ? problem->batch : 1;
    return elements * (double)items * (double)spk_dtype_bytes(spk_problem_operand_dtype(problem, operand));
}

double spk_problem_bytes(const spk_problem *problem)
{
    double bytes = 0;
    for (int operand = 0; operand < SPK_OPERAND_COUNT; operand++)
        bytes += spk_problem_touched_bytes(problem, (spk_operand)operand);
    return bytes;
}

static spk_lines array_lines(bool there, spk_layout layout, int64_t rows, int64_t cols, int64_t ld)
{
    int64_t length = layout == SPK_ROW_MAJOR ? cols : rows, lines = layout == SPK_ROW_MAJOR ? rows : cols;
    return there && length > 0 && lines > 0 ? (spk_lines){lines, length, ld} : (spk_lines){0};
}

static spk_lines one_line(int64_t length)
{
    return length > 0 ? (spk_lines){1, length, length} : (spk_lines){0};
}

spk_lines spk_problem_operand_lines(const spk_problem *problem, spk_operand operand)
{
    const spk_problem *p = problem;
    const spk_epilogue *e = &p->epilogue;
    const int64_t rows = spk_problem_d_rows(p), cols = spk_problem_d_cols(p);
    switch (operand) {
    case SPK_OPERAND_A:
        return p->operation == SPK_SDDMM ? array_lines(true, p->layout_a, p->m, p->k, p->lda)
                                         : one_line(p->pattern->nnzb * p->pattern->block_rows * p->pattern->block_cols);
    case SPK_OPERAND_B:
        return array_lines(true, p->layout_b, p->k, p->n, p->ldb);
    case SPK_OPERAND_C:
        return array_lines(e->use_c, p->layout_d, rows, cols, p->ldc);
    case SPK_OPERAND_D:
        return array_lines(true, p->layout_d, rows, cols, p->ldd);
    case SPK_OPERAND_BIAS:
        return one_line(e->bias == SPK_BIAS_PER_ROW ? p->m : e->bias == SPK_BIAS_PER_COL ? p->n : 0);
    case SPK_OPERAND_RESIDUAL:
        return array_lines(e->residual != SPK_RESIDUAL_NONE, p->layout_d, rows, cols, p->ldr);
    case SPK_OPERAND_PREACT:
        return array_lines(e->keep_preact, p->layout_d, rows, cols, p->ldp);
    case SPK_OPERAND_COUNT:
        break;
    }
    return (spk_lines){0};
}

int64_t spk_problem_item_elements(const spk_problem *problem, spk_operand operand)
{
    const spk_lines l = spk_problem_operand_lines(problem, operand);
    return l.lines > 0 ? l.ld * (l.lines - 1) + l.length : 0;
}

int64_t spk_problem_operand_stride(const spk_problem *problem, spk_operand operand)
{
    const int64_t strides[SPK_OPERAND_COUNT] = {problem->stride_a, problem->stride_b, problem->stride_c, problem->stride_d, 0,
                                                problem->stride_r, problem->stride_p};
    return strides[operand];
}

int64_t spk_problem_operand_elements(const spk_problem *problem, spk_operand operand)
{
    const int64_t elements = spk_problem_item_elements(problem, operand);
    return elements > 0 ? elements + (problem->batch - 1) * spk_problem_operand_stride(problem, operand) : 0;
}

spk_dtype spk_problem_operand_dtype(const spk_problem *problem, spk_operand operand)
{
    return operand == SPK_OPERAND_A ? problem->dtype_a : operand == SPK_OPERAND_B ? problem->dtype_b : problem->dtype_d;
}

const char *spk_problem_operand_name(const spk_problem *problem, spk_operand operand)
{
    static const char *const spmm[] = {"values", "b", "c", "d", "bias", "residual", "preact"}, *const sddmm[] = {"x", "y"};
    return problem->operation == SPK_SDDMM && operand <= SPK_OPERAND_B ? sddmm[operand] : spmm[operand];
}

const char *spk_operation_name(spk_operation operation)
{
    static const char *const names[] = {[SPK_SPMM] = "spmm", [SPK_SDDMM] = "sddmm", [SPK_GEMM] = "gemm", [SPK_ATTENTION] = "attention"};
    return (int)operation > 0 && (size_t)operation < sizeof names / sizeof names[0] ? names[operation] : NULL;
}

spk_problem spk_problem_item(const spk_problem *problem)
{
    spk_problem item = *problem;
    item.batch = 1;
    item.stride_a = item.stride_b = item.stride_c = item.stride_d = item.stride_r = item.stride_p = 0;
    return item;
}

void spk_epilogue_text(const spk_epilogue *epilogue, char *buffer, size_t size)
{
    static const char *const activations[] = {"", "+relu", "+gelu_erf", "+gelu_tanh", "+silu"};
    static const char *const biases[] = {"", "+bias_row", "+bias_col"}, *const residuals[] = {"", "+residual", "+factor"};
    char text[96];
    snprintf(text, sizeof text, "%s%s%s%s%s", epilogue->use_c ? "+beta" : "", biases[epilogue->bias], activations[epilogue->activation],
             residuals[epilogue->residual], epilogue->keep_preact ? "+preact" : "");
    snprintf(buffer, size, "%s", text[0] == '+' ? text + 1 : "none");
}

double spk_problem_tolerance(const spk_problem *problem)
{
    const spk_pattern *p = problem->pattern;
    double terms = (double)problem->k;
    if (problem->operation == SPK_SPMM && problem->trans_a == SPK_NO_TRANS)
        terms = fmin(terms, (double)p->features.longest_row * p->block_cols);
    double eps = problem->compute == SPK_F64 ? DBL_EPSILON : FLT_EPSILON;
    double inputs = problem->compute == SPK_TF32 ? 0x1p-9 : 0; /* two factors with ten bits behind the point, which hardware may cut off */
    double output = problem->dtype_d == SPK_F16 ? 0x1p-11 : problem->dtype_d == SPK_BF16 ? 0x1p-8 : 0; /* |D| <= magnitude */
    return inputs + output + eps * (8.0 + 2.0 * sqrt(terms));
}
