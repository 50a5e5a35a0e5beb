/* The job that a prover gets on its standard input: the problem, cut down where it is large, the candidates and the pattern. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/cuda/proof_job.h"
#include "backend/cuda/proving.h"

static const double proof_bytes = 1 << 30; /* operands larger than that are cut down in N */

static bool put(int file, const void *bytes, size_t count)
{
    const char *at = bytes;
    while (count > 0) {
        ssize_t written = write(file, at, count);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += written;
        count -= (size_t)written;
    }
    return true;
}

static double item_bytes(const spk_problem *p)
{
    double bytes = 0;
    for (int i = 0; i < SPK_OPERAND_COUNT; i++)
        bytes +=
            (double)spk_problem_item_elements(p, (spk_operand)i) * (double)spk_dtype_bytes(spk_problem_operand_dtype(p, (spk_operand)i));
    return bytes;
}

/* The size that no pattern fixes: columns of B and D of SpMM, K of SDDMM. */
static int64_t *free_size(spk_problem *p)
{
    return p->operation == SPK_SDDMM ? &p->k : &p->n;
}

/* The problem to prove with: fewer items of a batch, or a smaller free size, where all of it would take much memory; what a kernel asks of
 * alignment stays as it is: a leading dimension that is cut keeps its value modulo 256 elements. */
static spk_problem cut_problem(const spk_problem *given)
{
    spk_problem p = *given;
    if (p.batch > 1) {
        const double most = proof_bytes / fmax(item_bytes(&p), 1);
        p.batch = (double)p.batch <= most ? p.batch : most > 2 ? (int64_t)most : 2;
        return p;
    }
    const int64_t whole = *free_size(&p);
    *free_size(&p) = 0;
    const double fixed = item_bytes(&p);
    *free_size(&p) = whole;
    const double most = fmax(proof_bytes - fixed, 0) / fmax((item_bytes(&p) - fixed) / (double)(whole > 0 ? whole : 1), 1);
    if ((double)whole <= most || whole <= 1024)
        return p;
    const int64_t fewer = (int64_t)most / 256 * 256, left = (fewer < 512 ? 512 : fewer) + whole % 256, less = (whole - left) / 256 * 256;
    *free_size(&p) = left;
    if (p.operation == SPK_SDDMM) {
        p.lda -= p.layout_a == SPK_ROW_MAJOR ? less : 0;
        p.ldb -= p.layout_b == SPK_COL_MAJOR ? less : 0;
        return p;
    }
    p.ldb -= p.layout_b == SPK_ROW_MAJOR ? less : 0;
    int64_t *const like_d[] = {&p.ldc, &p.ldd, &p.ldr, &p.ldp};
    for (int i = 0; i < 4; i++)
        *like_d[i] -= p.layout_d == SPK_ROW_MAJOR ? less : 0;
    return p;
}

/* The stride of an input as a caller gives it. */
static int64_t given_stride(const spk_problem *p, int64_t stride)
{
    return p->batch > 1 && stride == 0 ? SPK_STRIDE_SHARED : stride;
}

static void describe_spmm(const spk_problem *q, spk_proof_job *job)
{
    job->spmm = (spk_spmm){SPK_SIZED(spk_spmm),
                           .n = q->n,
                           .dtype_a = q->dtype_a,
                           .dtype_b = q->dtype_b,
                           .dtype_d = q->dtype_d,
                           .compute = q->compute,
                           .trans_a = q->trans_a,
                           .block_layout = q->block_layout,
                           .layout_b = q->layout_b,
                           .layout_d = q->layout_d,
                           .ldb = q->ldb,
                           .ldc = q->ldc,
                           .ldd = q->ldd,
                           .ldr = q->ldr,
                           .ldp = q->ldp,
                           .use_c = q->epilogue.use_c,
                           .bias = q->epilogue.bias,
                           .activation = q->epilogue.activation,
                           .residual = q->epilogue.residual,
                           .keep_preact = q->epilogue.keep_preact,
                           .batch = q->batch,
                           .stride_a = q->stride_a,
                           .stride_b = given_stride(q, q->stride_b),
                           .stride_c = given_stride(q, q->stride_c),
                           .stride_d = q->stride_d,
                           .stride_r = given_stride(q, q->stride_r),
                           .stride_p = q->stride_p};
}

static void describe_sddmm(const spk_problem *q, spk_proof_job *job)
{
    job->sddmm = (spk_sddmm){SPK_SIZED(spk_sddmm),
                             .k = q->k,
                             .dtype_x = q->dtype_a,
                             .dtype_y = q->dtype_b,
                             .dtype_d = q->dtype_d,
                             .compute = q->compute,
                             .block_layout = q->block_layout,
                             .layout_x = q->layout_a,
                             .layout_y = q->layout_b,
                             .ldx = q->lda,
                             .ldy = q->ldb,
                             .use_c = q->epilogue.use_c,
                             .batch = q->batch,
                             .stride_x = given_stride(q, q->stride_a),
                             .stride_y = given_stride(q, q->stride_b),
                             .stride_c = given_stride(q, q->stride_c),
                             .stride_d = q->stride_d};
}

static spk_proof_job job_of(const spk_proving *p)
{
    const spk_problem cut = cut_problem(p->problem);
    const spk_pattern *pattern = cut.pattern;
    spk_proof_job job = {.rows = pattern->rows,
                         .cols = pattern->cols,
                         .block_rows = pattern->block_rows,
                         .block_cols = pattern->block_cols,
                         .nnzb = pattern->nnzb,
                         .grid_rows = pattern->index.grid_rows,
                         .operation = (int32_t)cut.operation,
                         .assume_finite = cut.assume_finite,
                         .static_values = cut.static_values};
    memcpy(job.magic, SPK_PROOF_MAGIC, sizeof job.magic);
    snprintf(job.device, sizeof job.device, "cuda:%d", spk_cuda_of(p->device)->ordinal);
    if (cut.operation == SPK_SDDMM)
        describe_sddmm(&cut, &job);
    else
        describe_spmm(&cut, &job);
    for (int i = 0; i < SPK_OPERAND_COUNT; i++)
        job.operands[i] = (spk_proof_operand){spk_problem_operand_elements(&cut, (spk_operand)i),
                                              (int32_t)spk_problem_operand_dtype(&cut, (spk_operand)i), 0};
    return job;
}

static bool put_choice(int file, const spk_prepared *candidate)
{
    spk_proof_choice choice = {{0}};
    char params[SPK_MAX_PARAMS_TEXT];
    spk_params_text(candidate->kernel, &candidate->params, params, sizeof params);
    snprintf(choice.text, sizeof choice.text, "%s%s%s", candidate->kernel->name, params[0] != '\0' ? " " : "", params);
    return put(file, &choice, sizeof choice);
}

int spk_proof_job_write(const spk_proving *p, int from)
{
    const spk_pattern *pattern = p->problem->pattern;
    spk_proof_job job = job_of(p);
    int file = memfd_create("sparsek-proof", MFD_CLOEXEC);
    if (file < 0)
        return -1;
    job.count = p->count - from;
    bool good = put(file, &job, sizeof job);
    for (int i = from; good && i < p->count; i++)
        good = put_choice(file, &p->list[p->todo[i]]);
    good = good && put(file, pattern->index.offsets, sizeof *pattern->index.offsets * (size_t)(pattern->index.grid_rows + 1));
    enum { PIECE = 1024 };
    int64_t columns[PIECE];
    for (int64_t at = 0; good && at < pattern->nnzb; at += PIECE) {
        int64_t piece = pattern->nnzb - at < PIECE ? pattern->nnzb - at : PIECE;
        for (int64_t i = 0; i < piece; i++)
            columns[i] = pattern->index.columns[at + i];
        good = put(file, columns, sizeof *columns * (size_t)piece);
    }
    if (!good || lseek(file, 0, SEEK_SET) != 0) {
        const int error = errno;
        close(file);
        errno = error;
        return -1;
    }
    return file;
}
