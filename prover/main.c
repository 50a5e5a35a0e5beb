/* sparsek-prover: runs candidates once, so that one that faults or never ends takes this process with it and not the caller's. The library
 * starts it (src/backend/cuda/proof/proof.c); it is of no use by hand. It uses the public library only. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/c_locale.h"
#include "job.h"
#include "type/type.h"

enum { NOISE_ELEMENTS = 1 << 18, LINE_BYTES = 400, EXIT_BAD_JOB = 3, EXIT_LOST = 4 };

typedef struct work {
    prover_job given;
    spk_context *context;
    spk_pattern *pattern;
    void *memory[SPK_PROOF_OPERANDS];
} work;

static int answers = STDOUT_FILENO;

/* One line to the library, whole or not at all; longer ones are cut. */
static void answer(const char *format, ...)
{
    char line[LINE_BYTES];
    va_list list;
    va_start(list, format);
    spk_vsnprintf(line, sizeof line - 1, format, list);
    va_end(list);
    for (char *at = line; *at != '\0'; at++)
        if (*at == '\n' || *at == '\r')
            *at = ' ';
    size_t length = strlen(line);
    line[length++] = '\n';
    for (size_t done = 0; done < length;) {
        ssize_t put = write(answers, line + done, length - done);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            _exit(EXIT_LOST); /* nobody listens */
        done += (size_t)put;
    }
}

static int lost(const char *message)
{
    answer("lost %s", message);
    return EXIT_LOST;
}

/* Not a word about any candidate: the library asked wrongly. */
static int refused(const char *message)
{
    answer("refused %s", message);
    return EXIT_BAD_JOB;
}

/* Nothing of the host program's is kept open, what libraries print goes nowhere, and nobody is left behind by a host program that dies. */
static void keep_apart(void)
{
    close_range(STDERR_FILENO + 1, ~0u, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int own = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (own >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
        answers = own;
}

/* ------------------------------------------------------------------------------------------------ operands */

/* Random numbers in device memory: a piece of noise again and again. */
static spk_status make_operand(work *w, spk_dtype dtype, int64_t elements, void **memory)
{
    static char noise[NOISE_ELEMENTS * 8];
    static spk_dtype noise_of = SPK_DTYPE_DEFAULT;
    size_t element = spk_dtype_bytes(dtype), bytes = (size_t)elements * element, whole = NOISE_ELEMENTS * element;
    spk_status status = spk_memory_allocate(w->context, bytes > 0 ? bytes : element, memory);
    if (status == SPK_OK && noise_of != dtype) {
        status = spk_fill_random(w->context, dtype, NOISE_ELEMENTS, 1, noise);
        noise_of = dtype;
    }
    size_t done = bytes < whole ? bytes : whole;
    if (status == SPK_OK)
        status = spk_memory_copy(w->context, *memory, SPK_DEVICE, noise, SPK_HOST, done);
    for (size_t step; status == SPK_OK && done < bytes; done += step) { /* from there on within the device, twice as much each time */
        step = bytes - done < done ? bytes - done : done;
        status = spk_memory_copy(w->context, (char *)*memory + done, SPK_DEVICE, *memory, SPK_DEVICE, step);
    }
    return status;
}

static spk_status make_pattern(work *w)
{
    const spk_proof_job *job = &w->given.head;
    if (job->block_rows == 0)
        return SPK_OK;
    const spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),
                                     .rows = job->rows,
                                     .cols = job->cols,
                                     .block_rows = job->block_rows,
                                     .block_cols = job->block_cols,
                                     .nnzb = job->nnzb,
                                     .row_offsets = w->given.offsets,
                                     .col_indices = w->given.columns,
                                     .index_type = SPK_INDEX_I64};
    return spk_pattern_create(w->context, &indices, &w->pattern);
}

/* Indices, which cannot be any numbers. */
static spk_status make_index(work *w, int operand, int64_t elements, void **memory)
{
    const size_t bytes = (size_t)elements * sizeof(int32_t);
    void *host = malloc(bytes + 1);
    if (host == NULL)
        return SPK_ERR_OUT_OF_MEMORY;
    spk_status status = spk_problem_fill(w->context, w->pattern, &w->given.head.problem, operand, 1, host);
    if (status == SPK_OK)
        status = spk_memory_allocate(w->context, bytes > 0 ? bytes : 1, memory);
    if (status == SPK_OK)
        status = spk_memory_copy(w->context, *memory, SPK_DEVICE, host, SPK_HOST, bytes);
    free(host);
    return status;
}

static spk_status make_operands(work *w)
{
    for (int i = 0; i < w->given.head.operand_count; i++) {
        const spk_proof_operand *operand = &w->given.head.operands[i];
        const spk_dtype dtype = (spk_dtype)operand->dtype;
        const spk_status status = dtype == SPK_DTYPE_DEFAULT ? SPK_OK
                                  : spk_type_is_index(dtype) ? make_index(w, i, operand->elements, &w->memory[i])
                                                             : make_operand(w, dtype, operand->elements, &w->memory[i]);
        if (status != SPK_OK)
            return status;
    }
    return SPK_OK;
}

/* ------------------------------------------------------------------------------------------------ candidates */

/* One run, waited for. */
static spk_status run_once(work *w, spk_plan *plan)
{
    const spk_proof_job *job = &w->given.head;
    if (job->static_operand >= 0) {
        spk_status status = spk_plan_update_values(plan, w->memory[job->static_operand], NULL);
        if (status != SPK_OK)
            return status;
    }
    union {
        char bytes[SPK_PROOF_STRUCT_BYTES];
        struct {
            size_t struct_size;
            spk_operation operation;
        } head; /* as every operation's arguments begin */
    } args;
    memset(&args, 0, sizeof args);
    args.head.struct_size = (size_t)job->args_bytes;
    args.head.operation = (spk_operation)job->operation;
    for (int i = 0; i < job->operand_count; i++)
        memcpy(args.bytes + job->operands[i].place, &w->memory[i], sizeof w->memory[i]);
    for (int i = 0; i < job->scalar_count; i++)
        memcpy(args.bytes + job->scalars[i].place, &job->scalars[i].value, sizeof job->scalars[i].value);
    const spk_status status = spk_plan_run(plan, &args, NULL);
    return status == SPK_OK ? spk_synchronize(w->context, NULL) : status;
}

/* promised: the problem as one of finite numbers. */
static spk_status make_plan(work *w, const spk_tune_options *options, bool promised, spk_plan **plan)
{
    spk_proof_job *job = &w->given.head;
    const int yes = 1;
    if (promised)
        memcpy(job->problem.bytes + job->finite_place, &yes, sizeof yes);
    return spk_plan_create(w->context, w->pattern, &job->problem, options, plan);
}

/* Answers for candidate i. */
static spk_status try_choice(work *w, int i)
{
    const spk_proof_job given = w->given.head;
    const spk_tune_options options = {SPK_SIZED(spk_tune_options), .choice = w->given.choices[i].text};
    spk_plan *plan = NULL;
    answer("run %d", i);
    spk_status status = make_plan(w, &options, false, &plan);
    if (status == SPK_ERR_NO_CANDIDATE && given.finite_place >= 0) { /* it may not win, and is raced all the same */
        status = make_plan(w, &options, true, &plan);
        w->given.head = given;
    }
    if (status == SPK_OK) {
        answer("made %d", i);
        status = run_once(w, plan);
    }
    if (status == SPK_OK)
        answer("ok %d", i);
    else
        answer("failed %d %s: %s", i, spk_status_name(status), spk_last_error(w->context));
    spk_plan_destroy(&plan);
    return status;
}

static int try_all(work *w)
{
    for (int i = 0; i < w->given.head.count; i++) {
        spk_status status = try_choice(w, i);
        /* After a fault the device's context is dead: a fresh process goes on with the rest. */
        if (status != SPK_OK && spk_memory_copy(w->context, w->memory[0], SPK_DEVICE, "", SPK_HOST, 1) != SPK_OK)
            return EXIT_LOST;
    }
    return 0;
}

int main(void)
{
    work w = {0};
    if (isatty(STDIN_FILENO)) {
        fputs("sparsek-prover is started by the sparsek library: it reads a job from its standard input\n", stderr);
        return EXIT_BAD_JOB;
    }
    keep_apart();
    setenv("SPARSEK_PROVER", "none", 1); /* this is it */
    if (job_read(STDIN_FILENO, &w.given) != 0)
        return lost("the job on its standard input is not whole"), EXIT_BAD_JOB;
    const spk_proof_job *job = &w.given.head;
    spk_context_options options = {SPK_SIZED(spk_context_options), .device = job->device, .store_path = ""};
    if (spk_context_create(&options, &w.context) != SPK_OK)
        return lost(spk_last_error(NULL));
    spk_problem_info facts = {SPK_SIZED(spk_problem_info)};
    if (make_pattern(&w) != SPK_OK)
        return lost(spk_last_error(w.context));
    if (spk_problem_get_info(w.context, w.pattern, &job->problem, &facts) != SPK_OK)
        return refused(spk_last_error(w.context));
    if (make_operands(&w) != SPK_OK)
        return lost(spk_last_error(w.context));
    answer("ready");
    int result = try_all(&w);
    _exit(result); /* what the driver holds goes with the process; after a fault, closing it in order can hang */
}
