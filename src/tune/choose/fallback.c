/* The second candidate of a plan, for pointers that the first does not take: the best of the cost model's that takes all, proved like any
 * other. What was found for a class is remembered in the process, as looking at every candidate takes longer than all else that a plan from
 * the store needs. */
#include <pthread.h>
#include <string.h>

#include "tune/choose/choose.h"

enum { MOST_BOUND = 3, REMEMBERED = 256 };

/* proof: its name, which says what was compiled; another problem of the class may need another program. */
typedef struct found {
    uint64_t class;
    spk_choice choice;
} found;

static found answers[REMEMBERED]; /* a lost one only costs another look */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void remember(uint64_t class, const spk_choice *choice)
{
    pthread_mutex_lock(&lock);
    answers[class % REMEMBERED] = (found){class, *choice};
    pthread_mutex_unlock(&lock);
}

static bool bind_remembered(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, uint64_t class,
                            spk_choice *fallback, spk_bound *bound)
{
    const char *why = NULL;
    pthread_mutex_lock(&lock);
    const found known = answers[class % REMEMBERED];
    pthread_mutex_unlock(&lock);
    if (known.class != class || known.choice.kernel == NULL ||
        !spk_may_win(tuner, problem, options, known.choice.kernel, &known.choice.params, &why))
        return false;
    spk_choice now = {.kernel = known.choice.kernel, .params = known.choice.params};
    spk_tune_name_proof(tuner, problem, &now);
    if (strcmp(now.proof, known.choice.proof) != 0 || spk_tune_bind(tuner, problem, &now, bound) != SPK_OK)
        return false;
    *fallback = now;
    return true;
}

void spk_tune_forget_fallbacks(void)
{
    pthread_mutex_lock(&lock);
    memset(answers, 0, sizeof answers);
    pthread_mutex_unlock(&lock);
}

/* Of libraries none: they are only opened where they were chosen. What repacks values would have to be told of new ones too. */
static bool suits(const spk_contender *c)
{
    return c->eligible && c->kernel->ops->takes == NULL && c->kernel->library == NULL && c->kernel->ops->update_values == NULL;
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
    for (int i = 0; i < count; i++)
        contenders[i].eligible = suits(&contenders[i]);
    const bool known = spk_evidence_rule_out(tuner, &any, &keys, contenders, count) == SPK_OK;
    for (int tries = 0; known && tries < MOST_BOUND && bound->kernel == NULL; tries++) {
        int best = -1;
        if (spk_proved_best(tuner, problem, contenders, count, &best) != SPK_OK || best < 0)
            break;
        *fallback = (spk_choice){.kernel = contenders[best].kernel, .params = contenders[best].params};
        spk_tune_name_proof(tuner, problem, fallback);
        if (spk_tune_bind(tuner, problem, fallback, bound) != SPK_OK)
            leave_row(contenders, count, contenders[best].row);
    }
    spk_contenders_release(tuner, &contenders, count);
    if (bound->kernel != NULL)
        remember(class, fallback);
    else
        fallback->kernel = NULL;
}
