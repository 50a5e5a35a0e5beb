/* Proofs of device programs, made by a helper process (prover/main.c) under a watchdog and kept beside the compiled programs. */
#include "backend/cuda/proof/proof.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "backend/cuda/runtime/program.h"
#include "backend/cuda/proof/proof_store.h"
#include "backend/cuda/proof/proof_table.h"
#include "backend/cuda/proof/proof_parts.h"
#include "base/c_locale.h"

enum { MOST_STARTS = 12 };

/* One prover's work; returns as spk_proof_follow does. */
static int prove_from(spk_proving *p, const char *program, int at, bool *go_on)
{
    spk_prover prover;
    const int job = spk_proof_job_write(p, at);
    const spk_status status = job < 0 ? spk_fail(SPK_ERR_IO, "the job for the prover cannot be written: %s", spk_system_error(errno))
                                      : spk_prover_start(program, job, &prover);
    if (job >= 0)
        close(job);
    if (status != SPK_OK) {
        spk_proof_unanswered(&p->list[p->todo[at]], "%.190s", spk_error_last());
        *go_on = false;
        return at;
    }
    at = spk_proof_follow(p, &prover, at, go_on);
    spk_prover_end(&prover);
    return at;
}

/* Proves todo; what no prover came to is unavailable. */
static void prove(spk_proving *p, const char *program)
{
    int at = 0;
    bool go_on = true;
    for (int starts = 0; at < p->count && go_on && starts < MOST_STARTS && !spk_stop_asked(p->stop); starts++) {
        const int before = at;
        at = prove_from(p, program, at, &go_on);
        go_on = go_on && at > before;
    }
    for (int i = at; i < p->count; i++) {
        spk_prepared *candidate = &p->list[p->todo[i]];
        if (spk_stop_asked(p->stop))
            spk_proof_say(candidate, SPK_ERR_INTERRUPTED, "%s", "interrupted before it was proved");
        else if (candidate->status == SPK_OK)
            spk_proof_unanswered(candidate, "%s", "it was not proved: the prover ended before it");
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

/* Compiles what is to be compiled and is not out; what fails is out. */
static spk_status compile(spk_device *device, const spk_problem *problem, spk_prepared *list, int count, preparing *r, const spk_stop *stop)
{
    int builds = 0;
    for (int i = 0; i < count; i++) {
        if (list[i].status != SPK_OK || list[i].kernel->ops->build == NULL)
            continue;
        list[i].kernel->ops->build(problem, device, &list[i].params, &r->builds[builds]);
        r->owner[builds++] = i;
    }
    spk_status status = SPK_OK;
    if (builds > 0)
        status = spk_cuda_compile_all(&device->mem, spk_cuda_of(device)->arch, r->builds, builds, 0, r->statuses, r->whys, stop);
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
        spk_proof_say(&list[i], SPK_OK, "%s", "");
        spk_proof_key(device, problem, list[i].kernel, &list[i].params, r->keys[i]);
        spk_proof known = spk_proof_find(device, r->keys[i], list[i].why, sizeof list[i].why);
        if (known == SPK_PROOF_REFUTED)
            list[i].status = SPK_ERR_INTERNAL;
        else if (known == SPK_PROOF_NONE && list[i].elsewhere && spk_proved_elsewhere(device, list[i].kernel, &list[i].params))
            spk_proof_remember(r->keys[i], true);
        else if (known == SPK_PROOF_NONE)
            r->todo[todo++] = i;
    }
    return todo;
}

/* Those of todo that have not failed since. */
static int still_to_do(const spk_prepared *list, int *todo, int count)
{
    int left = 0;
    for (int i = 0; i < count; i++)
        if (list[todo[i]].status == SPK_OK)
            todo[left++] = todo[i];
    return left;
}

/* No prover: what committed runs proved may run; the rest may not, and is not compiled. */
static void refuse_unproved(spk_device *device, spk_prepared *list, const int *todo, int count, const char *why)
{
    for (int i = 0; i < count; i++)
        if (!spk_proved_elsewhere(device, list[todo[i]].kernel, &list[todo[i]].params))
            spk_proof_say(&list[todo[i]], SPK_ERR_UNAVAILABLE, "it has no proof, and there is no prover: %.140s", why);
}

/* Keeps what the prover found out. Where it found out nothing, since other processes keep the device or its memory, what committed runs
 * proved (proof_table.def) may run, in this process alone. */
static void conclude(spk_device *device, spk_prepared *candidate, const char *key)
{
    if (candidate->unanswered && spk_proved_elsewhere(device, candidate->kernel, &candidate->params)) {
        spk_proof_say(candidate, SPK_OK, "%s", "");
        spk_proof_remember(key, true);
    } else if (candidate->status == SPK_OK || candidate->status == SPK_ERR_INTERNAL) {
        spk_proof_keep(device, candidate, key, candidate->status == SPK_OK ? NULL : candidate->why);
    }
}

/* Proves todo with the problem or a part of it, and keeps what comes of it. A prover that refuses the problem itself was asked wrongly. */
static spk_status prove_todo(spk_proving *p, const char *program, char (*keys)[SPK_PROOF_KEY_BYTES])
{
    const spk_problem *whole = p->problem;
    spk_problem part;
    spk_pattern *made = NULL;
    if (whole->pattern != NULL)
        SPK_TRY(spk_pattern_fetch(whole->pattern));
    SPK_TRY(spk_proof_part(p, &part, &made));
    p->problem = &part;
    prove(p, program);
    p->problem = whole;
    spk_pattern_release(&made);
    bool unknown = false;
    for (int i = 0; i < p->count; i++) {
        conclude(p->device, &p->list[p->todo[i]], keys[p->todo[i]]);
        unknown = unknown || p->list[p->todo[i]].unanswered;
    }
    return p->refused[0] == '\0' || !unknown
               ? SPK_OK
               : spk_fail(SPK_ERR_INTERNAL, "the problem that kernels are proved with is refused: %s", p->refused);
}

spk_status spk_cuda_prepare(spk_device *device, const spk_problem *problem, spk_prepared *list, int count, const spk_stop *stop)
{
    preparing r = {0};
    char program[PATH_MAX], why[200];
    spk_status status;
    SPK_GOTO(make_room(&device->mem, (size_t)count + 1, &r));
    int todo = look_up(device, problem, list, count, &r);
    if (todo > 0 && !spk_prover_find(program, sizeof program, why, sizeof why)) {
        refuse_unproved(device, list, r.todo, todo, why);
        todo = 0;
    }
    SPK_GOTO(compile(device, problem, list, count, &r, stop));
    todo = still_to_do(list, r.todo, todo);
    if (todo > 0) {
        spk_proving p = {.device = device, .problem = problem, .list = list, .todo = r.todo, .count = todo, .stop = stop};
        SPK_GOTO(prove_todo(&p, program, r.keys));
    }
done:
    release(&device->mem, &r);
    return status;
}

/* ------------------------------------------------------------------------------------------------ looking up */

spk_proof spk_cuda_proof(spk_device *device, const spk_problem *problem, const spk_kernel *kernel, const spk_params *params, char *why,
                         size_t size)
{
    char key[SPK_PROOF_KEY_BYTES], program[PATH_MAX];
    spk_proof_key(device, problem, kernel, params, key);
    if (size > 0)
        why[0] = '\0';
    spk_proof known = spk_proof_remembered(key) ? SPK_PROOF_GOOD : spk_proof_find(device, key, why, size);
    if (known != SPK_PROOF_NONE)
        return known;
    if (spk_prover_find(program, sizeof program, why, size)) /* it has the last word */
        return SPK_PROOF_NONE;
    if (!spk_proved_elsewhere(device, kernel, params))
        return SPK_PROOF_NONE;
    spk_proof_remember(key, true);
    return SPK_PROOF_GOOD;
}
