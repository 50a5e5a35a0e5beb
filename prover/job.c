/* Reading a job. Its numbers are believed as far as its length bears them out: no more memory is taken than the file has bytes. */
#include "job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_all(int file, void *to, size_t bytes)
{
    char *at = to;
    while (bytes > 0) {
        ssize_t got = read(file, at, bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -1;
        at += got;
        bytes -= (size_t)got;
    }
    return 0;
}

/* Indices of the pattern: row offsets, then columns. */
static int64_t index_count(const spk_proof_job *head)
{
    return head->block_rows > 0 ? head->grid_rows + 1 + head->nnzb : 0;
}

/* Whether what follows the head has this many bytes. */
static int is_as_long(const spk_proof_job *head, int64_t rest)
{
    const int64_t most = INT64_C(1) << 40;
    if (head->count < 0 || head->nnzb < 0 || head->nnzb > most || head->grid_rows < 0 || head->grid_rows > most)
        return 0;
    if (head->block_rows < 0 || (head->block_rows == 0 && (head->nnzb != 0 || head->grid_rows != 0)))
        return 0;
    return (int64_t)sizeof(spk_proof_choice) * head->count + (int64_t)sizeof(int64_t) * index_count(head) == rest;
}

/* Whether something of so many bytes lies within the arguments. */
static int is_inside(const spk_proof_job *head, int64_t place, size_t bytes)
{
    return place >= 0 && place + (int64_t)bytes <= head->args_bytes;
}

static int operands_are_sound(const spk_proof_job *head)
{
    if (head->args_bytes < 0 || head->args_bytes > SPK_PROOF_STRUCT_BYTES || head->operand_count < 1 ||
        head->operand_count > SPK_PROOF_OPERANDS || head->scalar_count < 0 || head->scalar_count > SPK_PROOF_SCALARS ||
        head->static_operand >= head->operand_count || head->finite_place < -1 ||
        head->finite_place > SPK_PROOF_STRUCT_BYTES - (int32_t)sizeof(int))
        return 0;
    for (int i = 0; i < head->scalar_count; i++)
        if (!is_inside(head, head->scalars[i].place, sizeof(double)))
            return 0;
    for (int i = 0; i < head->operand_count; i++) {
        const spk_proof_operand *operand = &head->operands[i];
        if (!is_inside(head, operand->place, sizeof(void *)))
            return 0;
        if (operand->elements < 0 || operand->elements > INT64_C(1) << 48 ||
            (operand->elements > 0 && spk_dtype_bytes((spk_dtype)operand->dtype) == 0))
            return 0;
    }
    return 1;
}

int job_read(int file, prover_job *job)
{
    spk_proof_job *head = &job->head;
    struct stat facts;
    *job = (prover_job){.choices = NULL};
    if (fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode) || read_all(file, head, sizeof *head) != 0 ||
        memcmp(head->magic, SPK_PROOF_MAGIC, sizeof head->magic) != 0 ||
        !is_as_long(head, (int64_t)facts.st_size - (int64_t)sizeof *head) || !operands_are_sound(head))
        return -1;
    head->device[SPK_PROOF_DEVICE_BYTES - 1] = '\0';
    const size_t count = (size_t)head->count, all = (size_t)index_count(head), columns = all > 0 ? (size_t)head->nnzb : 0,
                 offsets = all - columns;
    job->choices = malloc(sizeof *job->choices * (count + 1));
    job->offsets = malloc(sizeof *job->offsets * (offsets + 1));
    job->columns = malloc(sizeof *job->columns * (columns + 1));
    if (job->choices == NULL || job->offsets == NULL || job->columns == NULL)
        return -1;
    if (read_all(file, job->choices, sizeof *job->choices * count) != 0 ||
        read_all(file, job->offsets, sizeof *job->offsets * offsets) != 0 ||
        read_all(file, job->columns, sizeof *job->columns * columns) != 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        job->choices[i].text[SPK_PROOF_CHOICE_BYTES - 1] = '\0';
    return 0;
}

void job_release(prover_job *job)
{
    free(job->choices);
    free(job->offsets);
    free(job->columns);
    *job = (prover_job){.choices = NULL};
}
