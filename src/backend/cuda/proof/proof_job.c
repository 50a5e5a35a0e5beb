/* The job that a prover gets on its standard input: the problem, the candidates and the pattern. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/cuda/proof/proof_job.h"
#include "backend/cuda/proof/proof_parts.h"
#include "op/operation.h"

static bool write_bytes(int file, const void *bytes, size_t count)
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

/* Where the description has its promise of finite numbers. */
static int32_t finite_place(const spk_op *op)
{
    for (int i = 0; i < op->field_count; i++)
        if (op->fields[i].kind == SPK_FIELD_PROMISE && strcmp(op->fields[i].name, "assume_finite") == 0)
            return (int32_t)op->fields[i].offset;
    return -1;
}

static spk_proof_job job_of(const spk_proving *p)
{
    const spk_problem *problem = p->problem;
    const spk_pattern *pattern = problem->pattern;
    const spk_op *op = problem->op;
    spk_proof_job job = {.operation = (int32_t)op->id,
                         .args_bytes = (int32_t)op->args_bytes,
                         .static_operand = spk_problem_static_operand(problem),
                         .operand_count = op->operand_count,
                         .scalar_count = op->scalar_count,
                         .finite_place = finite_place(op)};
    if (pattern != NULL) {
        job.rows = pattern->rows;
        job.cols = pattern->cols;
        job.block_rows = pattern->block_rows;
        job.block_cols = pattern->block_cols;
        job.nnzb = pattern->nnzb;
        job.grid_rows = pattern->index.grid_rows;
    }
    memcpy(job.magic, SPK_PROOF_MAGIC, sizeof job.magic);
    snprintf(job.device, sizeof job.device, "cuda:%d", spk_cuda_of(p->device)->ordinal);
    op->write(problem, &job.problem);
    for (int i = 0; i < op->operand_count; i++)
        job.operands[i] = (spk_proof_operand){spk_problem_operand_elements(problem, i), (int32_t)problem->operand[i].dtype,
                                              (int32_t)op->operands[i].place};
    for (int i = 0; i < op->scalar_count; i++)
        job.scalars[i] = (spk_proof_scalar){op->scalars[i].check, (int64_t)op->scalars[i].place};
    return job;
}

_Static_assert((int)SPK_PROOF_OPERANDS >= (int)SPK_MAX_OPERANDS && (int)SPK_PROOF_SCALARS >= (int)SPK_MAX_SCALARS,
               "a job has room for what a problem may have");

static bool put_choice(int file, const spk_prepared *candidate)
{
    spk_proof_choice choice = {{0}};
    char params[SPK_MAX_PARAMS_TEXT];
    spk_params_text(candidate->kernel, &candidate->params, params, sizeof params);
    snprintf(choice.text, sizeof choice.text, "%s%s%s", candidate->kernel->name, params[0] != '\0' ? " " : "", params);
    return write_bytes(file, &choice, sizeof choice);
}

static bool put_pattern(int file, const spk_pattern *pattern)
{
    enum { PIECE = 1024 };
    int64_t columns[PIECE];
    bool good = write_bytes(file, pattern->index.offsets, sizeof *pattern->index.offsets * (size_t)(pattern->index.grid_rows + 1));
    for (int64_t at = 0; good && at < pattern->nnzb; at += PIECE) {
        int64_t piece = pattern->nnzb - at < PIECE ? pattern->nnzb - at : PIECE;
        for (int64_t i = 0; i < piece; i++)
            columns[i] = pattern->index.columns[at + i];
        good = write_bytes(file, columns, sizeof *columns * (size_t)piece);
    }
    return good;
}

int spk_proof_job_write(const spk_proving *p, int from)
{
    const spk_pattern *pattern = p->problem->pattern;
    spk_proof_job job = job_of(p);
    int file = memfd_create("sparsek-proof", MFD_CLOEXEC);
    if (file < 0)
        return -1;
    job.count = p->count - from;
    bool good = write_bytes(file, &job, sizeof job);
    for (int i = from; good && i < p->count; i++)
        good = put_choice(file, &p->list[p->todo[i]]);
    if (pattern != NULL)
        good = good && put_pattern(file, pattern);
    if (!good || lseek(file, 0, SEEK_SET) != 0) {
        const int error = errno;
        close(file);
        errno = error;
        return -1;
    }
    return file;
}
