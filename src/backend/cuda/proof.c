/* Proofs of device programs, made by a helper process (prover/main.c) under a watchdog and kept beside the compiled programs. */
#include "backend/cuda/proof.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/cuda/program.h"
#include "backend/cuda/proof_job.h"
#include "backend/cuda/proof_store.h"
#include "base/clock.h"

enum { LINE_BYTES = 512, MOST_STARTS = 12 };
static const double start_limit_us = 60e6; /* of opening the device and filling the operands: a fresh machine takes seconds */
static const double run_limit_us = 10e6;   /* of one candidate: compiling has been done */
static const double proof_bytes = 1 << 30; /* operands larger than that are cut down in N */

/* ------------------------------------------------------------------------------------------------ where the helper is */

static bool usable(const char *path)
{
    return access(path, X_OK) == 0;
}

bool spk_cuda_prover_find(char *path, size_t size, char *why, size_t why_size)
{
    const char *wish = getenv("SPARSEK_PROVER");
    if (wish != NULL && *wish != '\0') {
        snprintf(path, size, "%s", wish);
        if (strcmp(wish, "none") != 0 && usable(path))
            return true;
        snprintf(why, why_size, "SPARSEK_PROVER = \"%.120s\"%s", wish, strcmp(wish, "none") == 0 ? ": not used" : ": there is no such program");
        return false;
    }
    static const char here; /* any address of the library */
    static const char *const places[] = {"", "/../libexec/sparsek", "/../../libexec/sparsek"};
    Dl_info info;
    char real[PATH_MAX];
    if (dladdr(&here, &info) != 0 && info.dli_fname != NULL && realpath(info.dli_fname, real) != NULL) {
        char *slash = strrchr(real, '/');
        if (slash != NULL)
            *slash = '\0';
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
            if (snprintf(path, size, "%s%s/sparsek-prover", real, places[i]) < (int)size && usable(path))
                return true;
    }
    snprintf(why, why_size, "no sparsek-prover beside the library or in libexec/sparsek; set SPARSEK_PROVER to its full path");
    return false;
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

/* Fewer columns of B and D where all of them would take much memory; what a kernel asks of alignment stays as it is. */
static int64_t columns_to_prove(const spk_problem *p)
{
    double per_column = (double)p->k * (double)spk_dtype_bytes(p->dtype_b) + (double)p->m * (double)spk_dtype_bytes(p->dtype_d) *
                                                                                  (1 + p->epilogue.use_c + p->epilogue.use_residual + p->epilogue.keep_preact);
    double most = proof_bytes / (per_column > 1 ? per_column : 1);
    if ((double)p->n <= most || p->n <= 1024)
        return p->n;
    int64_t fewer = (int64_t)most / 256 * 256;
    return (fewer < 512 ? 512 : fewer) + p->n % 256;
}

static spk_proof_job job_of(const proving *p)
{
    const spk_problem *q = p->problem;
    const spk_pattern *pattern = q->pattern;
    int64_t n = columns_to_prove(q);
    bool cut_b = n != q->n && q->layout_b == SPK_ROW_MAJOR, cut_d = n != q->n && q->layout_d == SPK_ROW_MAJOR;
    spk_proof_job job = {.rows = pattern->rows,
                         .cols = pattern->cols,
                         .block_rows = pattern->block_rows,
                         .block_cols = pattern->block_cols,
                         .nnzb = pattern->nnzb,
                         .grid_rows = pattern->index.grid_rows,
                         .assume_finite = q->assume_finite,
                         .static_values = q->static_values};
    memcpy(job.magic, SPK_PROOF_MAGIC, sizeof job.magic);
    snprintf(job.device, sizeof job.device, "cuda:%d", spk_cuda_of(p->device)->ordinal);
    /* A cut row keeps its leading dimension modulo 256 elements. */
    int64_t less = (q->n - n) / 256 * 256;
    job.spmm = (spk_spmm){SPK_SIZED(spk_spmm),
                          .n = n,
                          .dtype_a = q->dtype_a,
                          .dtype_b = q->dtype_b,
                          .dtype_d = q->dtype_d,
                          .compute = q->compute,
                          .trans_a = q->trans_a,
                          .block_layout = q->block_layout,
                          .layout_b = q->layout_b,
                          .layout_d = q->layout_d,
                          .ldb = q->ldb - (cut_b ? less : 0),
                          .ldc = q->ldc - (cut_d ? less : 0),
                          .ldd = q->ldd - (cut_d ? less : 0),
                          .ldr = q->ldr - (cut_d ? less : 0),
                          .ldp = q->ldp - (cut_d ? less : 0),
                          .use_c = q->epilogue.use_c,
                          .bias = q->epilogue.bias,
                          .activation = q->epilogue.activation,
                          .use_residual = q->epilogue.use_residual,
                          .keep_preact = q->epilogue.keep_preact};
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
        close(file);
        return -1;
    }
    return file;
}

/* ------------------------------------------------------------------------------------------------ the helper process */

typedef struct helper {
    pid_t pid;
    int answers; /* its standard output */
    char line[LINE_BYTES];
    size_t used;
} helper;

static spk_status start(const char *program, int job, helper *h)
{
    int pipes[2];
    extern char **environ;
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return spk_fail(SPK_ERR_IO, "the prover cannot be started: pipe: %s", strerror(errno));
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, job, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    /* A signal to the caller's terminal group is the caller's affair: the helper is ended by us. */
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    char *arguments[] = {(char *)program, NULL};
    int error = posix_spawn(&h->pid, program, &actions, &attributes, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(pipes[1]);
    if (error != 0) {
        close(pipes[0]);
        return spk_fail(SPK_ERR_UNAVAILABLE, "the prover %s cannot be started: %s", program, strerror(error));
    }
    h->answers = pipes[0];
    h->used = 0;
    return SPK_OK;
}

/* Ends it whatever it does. A process whose kernel hangs may take the driver a while to bury: it is not waited for beyond two seconds. */
static void end(helper *h)
{
    close(h->answers);
    kill(h->pid, SIGKILL);
    for (int i = 0; i < 200 && waitpid(h->pid, NULL, WNOHANG) == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

typedef enum answer { ANSWER_LINE, ANSWER_END, ANSWER_LATE, ANSWER_STOPPED } answer;

/* The next line without its end, within the limit. */
static answer next_line(const proving *p, helper *h, double limit_us, char line[LINE_BYTES])
{
    double end_us = spk_now_us() + limit_us;
    for (;;) {
        char *newline = memchr(h->line, '\n', h->used);
        if (newline != NULL) {
            size_t length = (size_t)(newline - h->line);
            memcpy(line, h->line, length);
            line[length] = '\0';
            h->used -= length + 1;
            memmove(h->line, newline + 1, h->used);
            return ANSWER_LINE;
        }
        if (h->used == LINE_BYTES) /* no line of ours is that long */
            h->used = 0;
        if (stopped(p))
            return ANSWER_STOPPED;
        if (spk_now_us() > end_us)
            return ANSWER_LATE;
        struct pollfd ready = {.fd = h->answers, .events = POLLIN};
        if (poll(&ready, 1, 50) <= 0)
            continue;
        ssize_t got = read(h->answers, h->line + h->used, LINE_BYTES - h->used);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
            return ANSWER_END;
        h->used += got > 0 ? (size_t)got : 0;
    }
}

static void say(spk_prepared *candidate, spk_status status, const char *format, const char *text)
{
    candidate->status = status;
    snprintf(candidate->why, sizeof candidate->why, format, text);
}

/* Follows one helper from candidate todo[from] on; returns the first that it did not come to, and says whether it is of use to go on. */
static int follow(proving *p, helper *h, int from, bool *go_on)
{
    int at = from;
    bool ready = false, running = false;
    char line[LINE_BYTES];
    *go_on = false;
    while (at < p->count) {
        spk_prepared *candidate = &p->list[p->todo[at]];
        answer what = next_line(p, h, ready ? run_limit_us : start_limit_us, line);
        int index = -1, read = 0;
        if (what == ANSWER_STOPPED)
            return at;
        if (what == ANSWER_LINE && strcmp(line, "ready") == 0) {
            ready = true;
        } else if (what == ANSWER_LINE && sscanf(line, "run %d", &index) == 1) {
            running = true;
        } else if (what == ANSWER_LINE && sscanf(line, "ok %d", &index) == 1) {
            candidate->status = SPK_OK;
            running = false;
            at++;
        } else if (what == ANSWER_LINE && sscanf(line, "failed %d %n", &index, &read) == 1 && read > 0) {
            /* Want of memory proves nothing about the candidate. */
            const char *name = spk_status_name(SPK_ERR_OUT_OF_MEMORY);
            say(candidate, strncmp(line + read, name, strlen(name)) == 0 ? SPK_ERR_UNAVAILABLE : SPK_ERR_INTERNAL, "when proved: %.180s", line + read);
            running = false;
            at++;
            *go_on = true;
        } else if (what == ANSWER_LINE && strncmp(line, "lost ", 5) == 0) {
            say(candidate, SPK_ERR_UNAVAILABLE, "it could not be proved: %.160s", line + 5);
            return at;
        } else if (what != ANSWER_LINE) { /* it died, or hangs, over this candidate; or never came so far */
            if (!running) {
                if (*go_on && what == ANSWER_END)
                    return at; /* it left after a fault, as it should */
                say(candidate, SPK_ERR_UNAVAILABLE, "it could not be proved: the prover %s", what == ANSWER_LATE ? "did not answer" : "ended early");
                return at;
            }
            say(candidate, SPK_ERR_INTERNAL, "%s",
                what == ANSWER_LATE ? "it did not end within 10 s when proved" : "it took the proving process with it");
            *go_on = true;
            return at + 1;
        }
    }
    return at;
}

/* Proves todo; what no helper came to is unavailable. */
static void prove(proving *p, const char *program)
{
    int at = 0;
    bool go_on = true;
    for (int starts = 0; at < p->count && go_on && starts < MOST_STARTS && !stopped(p); starts++) {
        helper h = {.pid = -1};
        int job = write_job(p, at);
        spk_status status = job < 0 ? spk_fail(SPK_ERR_IO, "the job for the prover cannot be written: %s", strerror(errno)) : start(program, job, &h);
        if (job >= 0)
            close(job);
        if (status != SPK_OK) {
            say(&p->list[p->todo[at]], status, "%.180s", spk_error_last());
            break;
        }
        int before = at;
        at = follow(p, &h, at, &go_on);
        end(&h);
        go_on = go_on && at > before;
    }
    for (int i = at; i < p->count; i++) {
        spk_prepared *candidate = &p->list[p->todo[i]];
        if (candidate->status == SPK_OK || candidate->why[0] == '\0')
            say(candidate, SPK_ERR_UNAVAILABLE, "%s", stopped(p) ? "interrupted before it was proved" : "it was not proved: the prover ended before it");
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
    if (builds > 0)
        SPK_TRY(spk_cuda_compile_all(&device->mem, spk_cuda_of(device)->arch, r->builds, builds, 0, r->statuses, r->whys, interrupted));
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
    if (todo > 0 && !spk_cuda_prover_find(program, sizeof program, why, sizeof why)) {
        for (int i = 0; i < todo; i++)
            say(&list[r.todo[i]], SPK_ERR_UNAVAILABLE, "it has no proof, and there is no prover: %.140s", why);
        todo = 0;
    }
    if (todo > 0) {
        proving p = {.device = device, .problem = problem, .list = list, .todo = r.todo, .count = todo, .interrupted = interrupted};
        prove(&p, program);
        for (int i = 0; i < todo; i++) {
            const spk_prepared *candidate = &list[r.todo[i]];
            if (candidate->status != SPK_ERR_UNAVAILABLE)
                spk_proof_keep(device, r.keys[r.todo[i]], candidate->status == SPK_OK ? NULL : candidate->why);
        }
    }
done:
    release(&device->mem, &r);
    return status;
}
