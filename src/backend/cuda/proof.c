/* Proofs of device programs, made by a helper process (prover/main.c) under a watchdog and kept beside the compiled programs. */
#include "backend/cuda/proof.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/cuda/program.h"
#include "backend/cuda/proof_job.h"
#include "backend/cuda/proof_store.h"
#include "backend/cuda/proved.h"
#include "backend/cuda/prover.h"
#include "base/clock.h"

enum { MOST_STARTS = 12 };
static double start_limit_us = 60e6; /* of opening the device and filling the operands, of making a plan: a fresh machine loads libraries for seconds */
static double run_limit_us = 10e6;   /* of one candidate's run: compiling has been done */
static const double proof_bytes = 1 << 30; /* operands larger than that are cut down in N */

void spk_cuda_proof_limits(double start_us, double run_us)
{
    start_limit_us = start_us;
    run_limit_us = run_us;
}

/* ------------------------------------------------------------------------------------------------ the job */

typedef struct proving {
    spk_device *device;
    const spk_problem *problem;
    spk_prepared *list;
    int *todo; /* indices into list of candidates without proof */
    int count;
    const atomic_int *interrupted;
} proving;

static bool stopped(const proving *p)
{
    return p->interrupted != NULL && atomic_load_explicit(p->interrupted, memory_order_relaxed) != 0;
}

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
        bytes += (double)spk_problem_item_elements(p, (spk_operand)i) * (double)spk_dtype_bytes(spk_problem_operand_dtype(p, (spk_operand)i));
    return bytes;
}

/* The size that no pattern fixes: columns of B and D of SpMM, K of SDDMM. */
static int64_t *free_size(spk_problem *p)
{
    return p->operation == SPK_SDDMM ? &p->k : &p->n;
}

/* The problem to prove with: fewer items of a batch, or a smaller free size, where all of it would take much memory; what a kernel asks of alignment
 * stays as it is: a leading dimension that is cut keeps its value modulo 256 elements. */
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

static spk_proof_job job_of(const proving *p)
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
        job.operands[i] = (spk_proof_operand){spk_problem_operand_elements(&cut, (spk_operand)i), (int32_t)spk_problem_operand_dtype(&cut, (spk_operand)i), 0};
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

/* The job for candidates todo[from..] as an open file at its beginning; -1: errno says why. */
static int write_job(const proving *p, int from)
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

/* ------------------------------------------------------------------------------------------------ what the prover says */

static void say(spk_prepared *candidate, spk_status status, const char *format, const char *text)
{
    candidate->status = status;
    snprintf(candidate->why, sizeof candidate->why, format, text);
}

typedef enum word { WORD_OTHER, WORD_READY, WORD_RUN, WORD_MADE, WORD_OK, WORD_FAILED, WORD_LOST } word;

static word read_word(const char *line, int *index, const char **text)
{
    static const struct {
        const char *format;
        word word;
    } numbered[] = {{"run %d%n", WORD_RUN}, {"made %d%n", WORD_MADE}, {"ok %d%n", WORD_OK}, {"failed %d %n", WORD_FAILED}};
    *index = -1;
    *text = "";
    if (strcmp(line, "ready") == 0)
        return WORD_READY;
    if (strncmp(line, "lost ", 5) == 0) {
        *text = line + 5;
        return WORD_LOST;
    }
    for (size_t i = 0; i < sizeof numbered / sizeof numbered[0]; i++) {
        int read = 0;
        if (sscanf(line, numbered[i].format, index, &read) == 1 && read > 0 && (numbered[i].word == WORD_FAILED || line[read] == '\0')) {
            *text = line + read;
            return numbered[i].word;
        }
    }
    return WORD_OTHER;
}

typedef enum phase { OPENING, READY, MAKING, RUNNING } phase;

static double end_of(phase now)
{
    return spk_now_us() + (now == RUNNING || now == READY ? run_limit_us : start_limit_us);
}

/* No answer: it died or hangs over this candidate, or never came so far. Returns the first that it did not come to. */
static int end_at(const proving *p, spk_prover *prover, int at, phase now, bool late, bool *go_on)
{
    spk_prepared *candidate = &p->list[p->todo[at]];
    if (now == OPENING || now == READY) {
        if (!*go_on || late || now == OPENING)
            say(candidate, SPK_ERR_UNAVAILABLE, "it could not be proved: the prover %s", late ? "did not answer" : "ended early");
        *go_on = *go_on && !late && now == READY; /* it left after a fault, as it should */
        return at;
    }
    *go_on = true;
    if (late && now == MAKING)
        say(candidate, SPK_ERR_UNAVAILABLE, "%s", "it was not ready within the time for its proof");
    else if (late)
        say(candidate, SPK_ERR_INTERNAL, "%s", "it did not end in time when proved");
    else if (spk_prover_was_ended(prover))
        say(candidate, SPK_ERR_UNAVAILABLE, "%s", "the process that proved it was ended from outside");
    else
        say(candidate, SPK_ERR_INTERNAL, "%s", "it took the proving process with it");
    return at + 1;
}

/* Only what went wrong inside counts against the program itself; want of memory, or a shape that it does not take, proves nothing about others. */
static void say_failed(spk_prepared *candidate, const char *text)
{
    const char *name = spk_status_name(SPK_ERR_INTERNAL);
    const size_t length = strlen(name);
    say(candidate, strncmp(text, name, length) == 0 && text[length] == ':' ? SPK_ERR_INTERNAL : SPK_ERR_UNAVAILABLE, "when proved: %.180s", text);
}

/* Follows one prover from candidate todo[from] on; returns the first that it did not come to, and says whether it is of use to start another. */
static int follow(const proving *p, spk_prover *prover, int from, bool *go_on)
{
    int at = from;
    phase now = OPENING;
    double end_us = end_of(now);
    char line[SPK_PROVER_LINE_BYTES];
    *go_on = false;
    while (at < p->count) {
        spk_prepared *candidate = &p->list[p->todo[at]];
        int index;
        const char *text;
        const spk_answer answer = spk_prover_line(prover, end_us, p->interrupted, line);
        if (answer == SPK_ANSWER_STOPPED)
            return at;
        if (answer != SPK_ANSWER_LINE)
            return end_at(p, prover, at, now, answer == SPK_ANSWER_LATE, go_on);
        const word said = read_word(line, &index, &text);
        if (said == WORD_OTHER) { /* libraries may print, but not for ever */
            if (spk_now_us() > end_us)
                return end_at(p, prover, at, now, true, go_on);
            continue;
        }
        const bool this_one = index == at - from;
        if (said == WORD_LOST) {
            say(candidate, SPK_ERR_UNAVAILABLE, "it could not be proved: %.160s", text);
            *go_on = false;
            return at;
        }
        if (said == WORD_READY && now == OPENING) {
            now = READY;
        } else if (said == WORD_RUN && this_one && now == READY) {
            now = MAKING;
        } else if (said == WORD_MADE && this_one && now == MAKING) {
            now = RUNNING;
        } else if (said == WORD_OK && this_one && now == RUNNING) {
            say(candidate, SPK_OK, "%s", "");
            at++;
            now = READY;
        } else if (said == WORD_FAILED && this_one && (now == MAKING || now == RUNNING)) {
            say_failed(candidate, text);
            at++;
            now = READY;
            *go_on = true;
        } else {
            say(candidate, SPK_ERR_UNAVAILABLE, "it could not be proved: the prover says \"%.60s\" out of turn", line);
            *go_on = false;
            return at;
        }
        end_us = end_of(now);
    }
    return at;
}

/* One prover's work; returns as follow does. */
static int prove_from(const proving *p, const char *program, int at, bool *go_on)
{
    spk_prover prover;
    const int job = write_job(p, at);
    const spk_status status = job < 0 ? spk_fail(SPK_ERR_IO, "the job for the prover cannot be written: %s", strerror(errno)) : spk_prover_start(program, job, &prover);
    if (job >= 0)
        close(job);
    if (status != SPK_OK) {
        say(&p->list[p->todo[at]], SPK_ERR_UNAVAILABLE, "%.190s", spk_error_last());
        *go_on = false;
        return at;
    }
    at = follow(p, &prover, at, go_on);
    spk_prover_end(&prover);
    return at;
}

/* Proves todo; what no prover came to is unavailable. */
static void prove(const proving *p, const char *program)
{
    int at = 0;
    bool go_on = true;
    for (int starts = 0; at < p->count && go_on && starts < MOST_STARTS && !stopped(p); starts++) {
        const int before = at;
        at = prove_from(p, program, at, &go_on);
        go_on = go_on && at > before;
    }
    for (int i = at; i < p->count; i++) {
        spk_prepared *candidate = &p->list[p->todo[i]];
        if (stopped(p))
            say(candidate, SPK_ERR_INTERRUPTED, "%s", "interrupted before it was proved");
        else if (candidate->status == SPK_OK)
            say(candidate, SPK_ERR_UNAVAILABLE, "%s", "it was not proved: the prover ended before it");
    }
}

/* ------------------------------------------------------------------------------------------------ preparing */

typedef struct preparing {
    spk_build *builds;
    int *owner; /* of each build: index into the list */
    spk_status *statuses;
    char (*whys)[200];
    int *todo;
    char (*keys)[SPK_PROOF_KEY_BYTES];
} preparing;

static void release(const spk_mem *mem, preparing *r)
{
    spk_free(mem, r->builds);
    spk_free(mem, r->owner);
    spk_free(mem, r->statuses);
    spk_free(mem, r->whys);
    spk_free(mem, r->todo);
    spk_free(mem, r->keys);
}

static spk_status make_room(const spk_mem *mem, size_t count, preparing *r)
{
    SPK_TRY(spk_calloc(mem, count, sizeof *r->builds, &r->builds));
    SPK_TRY(spk_calloc(mem, count, sizeof *r->owner, &r->owner));
    SPK_TRY(spk_calloc(mem, count, sizeof *r->statuses, &r->statuses));
    SPK_TRY(spk_calloc(mem, count, sizeof *r->whys, &r->whys));
    SPK_TRY(spk_calloc(mem, count, sizeof *r->todo, &r->todo));
    return spk_calloc(mem, count, sizeof *r->keys, &r->keys);
}

/* Compiles what is to be compiled; what fails is out. */
static spk_status compile(spk_device *device, const spk_problem *problem, spk_prepared *list, int count, preparing *r, const atomic_int *interrupted)
{
    int builds = 0;
    for (int i = 0; i < count; i++) {
        list[i].status = SPK_OK;
        list[i].why[0] = '\0';
        if (list[i].kernel->ops->build == NULL)
            continue;
        list[i].kernel->ops->build(problem, device, &list[i].params, &r->builds[builds]);
        r->owner[builds++] = i;
    }
    spk_status status = SPK_OK;
    if (builds > 0)
        status = spk_cuda_compile_all(&device->mem, spk_cuda_of(device)->arch, r->builds, builds, 0, r->statuses, r->whys, interrupted);
    if (status != SPK_OK && status != SPK_ERR_UNAVAILABLE)
        return status;
    for (int b = 0; status != SPK_OK && b < builds; b++) { /* no compiler: libraries may do without */
        r->statuses[b] = status;
        snprintf(r->whys[b], sizeof r->whys[b], "%.190s", spk_error_last());
    }
    for (int b = 0; b < builds; b++)
        if (r->statuses[b] != SPK_OK) {
            list[r->owner[b]].status = r->statuses[b];
            snprintf(list[r->owner[b]].why, sizeof list[r->owner[b]].why, "%.190s", r->whys[b]);
        }
    return SPK_OK;
}

/* What is proved, or was refuted, before; the rest is to do. */
static int look_up(spk_device *device, const spk_problem *problem, spk_prepared *list, int count, preparing *r)
{
    int todo = 0;
    for (int i = 0; i < count; i++) {
        if (list[i].status != SPK_OK)
            continue;
        spk_proof_key(device, problem, &list[i], r->keys[i]);
        spk_proof known = spk_proof_find(device, r->keys[i], list[i].why, sizeof list[i].why);
        if (known == SPK_PROOF_REFUTED)
            list[i].status = SPK_ERR_INTERNAL;
        else if (known == SPK_PROOF_NONE)
            r->todo[todo++] = i;
    }
    return todo;
}

spk_status spk_cuda_prepare(spk_device *device, const spk_problem *problem, spk_prepared *list, int count, const atomic_int *interrupted)
{
    preparing r = {0};
    char program[PATH_MAX], why[200];
    spk_status status;
    SPK_GOTO(make_room(&device->mem, (size_t)count + 1, &r));
    SPK_GOTO(compile(device, problem, list, count, &r, interrupted));
    int todo = look_up(device, problem, list, count, &r);
    if (todo > 0 && !spk_prover_find(program, sizeof program, why, sizeof why)) {
        for (int i = 0; i < todo; i++)
            if (!spk_proved_elsewhere(device, list[r.todo[i]].kernel, &list[r.todo[i]].params))
                say(&list[r.todo[i]], SPK_ERR_UNAVAILABLE, "it has no proof, and there is no prover: %.140s", why);
        todo = 0;
    }
    if (todo > 0) {
        SPK_GOTO(spk_pattern_fetch(problem->pattern));
        proving p = {.device = device, .problem = problem, .list = list, .todo = r.todo, .count = todo, .interrupted = interrupted};
        prove(&p, program);
        for (int i = 0; i < todo; i++) {
            const spk_prepared *candidate = &list[r.todo[i]];
            if (candidate->status == SPK_OK || candidate->status == SPK_ERR_INTERNAL)
                spk_proof_keep(device, candidate, r.keys[r.todo[i]], candidate->status == SPK_OK ? NULL : candidate->why);
        }
    }
done:
    release(&device->mem, &r);
    return status;
}
