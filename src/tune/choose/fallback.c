/* The second candidate of a plan, for pointers that the first does not take: the best of the cost model's that takes all, proved like any
 * other. What was found for a class is remembered in the process, as looking at every candidate takes longer than all else that a plan from
 * the store needs. */
#include <string.h>

#include "tune/choose/choose.h"

enum { MOST_BOUND = 3 };

static bool bind_remembered(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, uint64_t class,
                            spk_choice *fallback, spk_bound *bound)
{
    const char *why = NULL;
    spk_choice known;
    if (!spk_known_find(spk_known_of_process(SPK_KNOWN_SECOND), &class, sizeof class, &known, sizeof known) ||
        !spk_may_win(tuner, problem, options, known.kernel, &known.params, &why))
        return false;
    spk_choice now = {.kernel = known.kernel, .params = known.params};
    spk_tune_name_proof(tuner, problem, &now); /* it says what was compiled: another problem of the class may need another program */
    if (strcmp(now.proof, known.proof) != 0 || spk_tune_bind(tuner, problem, &now, bound) != SPK_OK)
        return false;
    *fallback = now;
    return true;
}

/* Of libraries none: they are only opened where they were chosen. What repacks values would have to be told of new ones too. */
static bool suits(const spk_contender *c)
{
    return c->kernel->ops->accepts == NULL && c->kernel->library == NULL && c->kernel->ops->update_values == NULL;
}

/* After a try the whole row is out. */
static void leave_row(spk_contender *contenders, int count, int row)
{
    for (int i = 0; i < count; i++)
        if (contenders[i].row == row)
            contenders[i].eligible = false;
}

/* The class of what the plan would have without `only`, which names what is to be tuned, not what must do the work that it cannot do, and
 * without a pinned choice: mostly the one that the first candidate was looked up under. false: there is none. */
static bool class_of(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_choice *first,
                     uint64_t *hash)
{
    spk_class class;
    *hash = options->only == NULL ? first->class : 0;
    if (*hash != 0)
        return true;
    spk_tune_options any = *options;
    any.only = NULL;
    if (spk_class_keys(tuner, problem, &any, &class) != SPK_OK)
        return false;
    *hash = spk_class_hash(tuner, class.key);
    return true;
}

void spk_tune_bind_fallback(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_choice *first,
                            spk_choice *fallback, spk_bound *bound)
{
    const spk_epoch since = spk_epoch_now();
    spk_tune_options any = *options;
    uint64_t class = 0;
    any.only = any.choice = NULL;
    fallback->kernel = bound->kernel = NULL;
    if (!class_of(tuner, problem, options, first, &class) || bind_remembered(tuner, problem, &any, class, fallback, bound))
        return;
    spk_class keys;
    spk_contender *contenders = NULL;
    int count = 0;
    if (spk_class_keys(tuner, problem, &any, &keys) != SPK_OK ||
        spk_contenders_eligible(tuner, problem, &any, &contenders, &count) != SPK_OK)
        return;
    for (int i = 0; i < count; i++) {
        contenders[i].eligible = contenders[i].eligible && suits(&contenders[i]);
        contenders[i].held_back = contenders[i].held_back && suits(&contenders[i]);
    }
    const bool known = spk_evidence_rule_out(tuner, &any, &keys, contenders, count) == SPK_OK;
    for (int tries = 0; known && tries < MOST_BOUND && bound->kernel == NULL; tries++) {
        int best = -1;
        if (spk_proved_best(tuner, problem, contenders, count, spk_proves_soon(options), &best) != SPK_OK)
            break;
        if (best < 0 && spk_contenders_readmit(contenders, count))
            continue;
        if (best < 0)
            break;
        *fallback = (spk_choice){.kernel = contenders[best].kernel, .params = contenders[best].params};
        spk_tune_name_proof(tuner, problem, fallback);
        if (spk_tune_bind(tuner, problem, fallback, bound) != SPK_OK)
            leave_row(contenders, count, contenders[best].row);
    }
    spk_contenders_release(tuner, &contenders, count);
    if (bound->kernel == NULL)
        fallback->kernel = NULL;
    else if (bound->kernel->kind != SPK_KIND_REFERENCE) /* another problem of the class may have a better one */
        spk_known_add(spk_known_of_process(SPK_KNOWN_SECOND), &class, sizeof class, fallback, sizeof *fallback, since, false);
}
