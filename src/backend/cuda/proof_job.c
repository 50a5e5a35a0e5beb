/* The job that a prover gets on its standard input: the problem, cut down where it is large, the candidates and the pattern. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/cuda/proof_job.h"
#include "backend/cuda/proving.h"
#include "op/operation.h"

static const double proof_bytes = 1 << 30; /* operands larger than that are cut down in N */

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

static double item_bytes(const spk_problem *p)
{
    double bytes = 0;
    for (int i = 0; i < p->op->operand_count; i++)
        bytes += (double)spk_operand_item_elements(&p->operand[i]) * (double)spk_dtype_bytes(p->operand[i].dtype);
    return bytes;
}

/* A free size cut down to `left`; what a kernel asks of alignment stays as it is: a leading dimension that spans it loses as many
 * elements. */
static void cut_size(spk_problem *p, bool other, int64_t left)
{
    const spk_problem whole = *p;
    spk_problem_cut(p, NULL, other ? 0 : left, other ? left : 0);
    for (int i = 0; i < p->op->operand_count; i++)
        p->operand[i].ld -= spk_operand_length(&whole.operand[i]) - spk_operand_length(&p->operand[i]);
}

/* By a multiple of 256 elements, where all of the problem would take much memory. */
static void cut_where_large(spk_problem *p, bool other)
{
    const int64_t whole = other ? spk_problem_other_size(p) : spk_problem_free_size(p);
    if (whole <= 1024)
        return;
    spk_problem least = *p;
    cut_size(&least, other, 1);
    const double one_more = (item_bytes(p) - item_bytes(&least)) / (double)(whole - 1), fixed = item_bytes(&least) - one_more;
    const double most = fmax(proof_bytes - fixed, 0) / fmax(one_more, 1);
    if ((double)whole <= most)
        return;
    const int64_t fewer = (int64_t)most / 256 * 256, left = (fewer < 512 ? 512 : fewer) + whole % 256;
    cut_size(p, other, left < whole ? left : whole);
}

/* The problem to prove with: fewer items of a batch, or smaller free sizes. */
static spk_problem cut_problem(const spk_problem *given)
{
    spk_problem p = *given;
    if (p.batch > 1 && p.group_axis == SPK_GROUP_NONE) {
        const double most = proof_bytes / fmax(item_bytes(&p), 1);
        p.batch = (double)p.batch <= most ? p.batch : most > 2 ? (int64_t)most : 2;
        return p;
    }
    cut_where_large(&p, false);
    cut_where_large(&p, true);
    return p;
}

static spk_proof_job job_of(const spk_proving *p)
{
    const spk_problem cut = cut_problem(p->problem);
    const spk_pattern *pattern = cut.pattern;
    const spk_op *op = cut.op;
    spk_proof_job job = {.operation = (int32_t)op->id,
                         .args_bytes = (int32_t)op->args_bytes,
                         .static_operand = spk_problem_static_operand(&cut),
                         .operand_count = op->operand_count,
                         .scalar_count = op->scalar_count,
                         .assume_finite = cut.assume_finite,
                         .static_values = cut.static_values};
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
    op->write(&cut, &job.problem);
    for (int i = 0; i < op->operand_count; i++)
        job.operands[i] =
            (spk_proof_operand){spk_problem_operand_elements(&cut, i), (int32_t)cut.operand[i].dtype, (int32_t)op->operands[i].place};
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
