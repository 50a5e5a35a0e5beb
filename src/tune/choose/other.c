/* The second candidate of a plan, for pointers that the first does not take: the best of the cost model's that takes all, proved like any
 * other. What was found for a class is remembered in the process, as looking at every candidate takes longer than all else that a plan from
 * the store needs. */
#include <pthread.h>

#include "base/hash.h"
#include "tune/choose/choose.h"

enum { MOST_BOUND = 3, REMEMBERED = 256 };

/* program: what was compiled and proved. Another problem of the class may need another. */
typedef struct found {
    uint64_t class, program;
    const spk_kernel *kernel;
    spk_params params;
} found;

static found answers[REMEMBERED]; /* a lost one only costs another look */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void remember(const spk_tuner *tuner, const spk_problem *problem, uint64_t class, const spk_bound *bound)
{
    const found made = {.class = class,
                        .program = spk_program_hash(tuner, problem, bound->kernel, &bound->params),
                        .kernel = bound->kernel,
                        .params = bound->params};
    pthread_mutex_lock(&lock);
    answers[class % REMEMBERED] = made;
    pthread_mutex_unlock(&lock);
}

static bool bind_remembered(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, uint64_t class,
                            spk_bound *other)
{
    const char *why = NULL;
    pthread_mutex_lock(&lock);
    const found known = answers[class % REMEMBERED];
    pthread_mutex_unlock(&lock);
    return known.class == class && known.kernel != NULL && spk_may_win(tuner, problem, options, known.kernel, &known.params, &why) &&
           spk_program_hash(tuner, problem, known.kernel, &known.params) == known.program &&
           spk_tune_bind(tuner, problem, &(spk_choice){.kernel = known.kernel, .params = known.params}, other) == SPK_OK;
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

void spk_tune_bind_other(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_bound *other)
{
    spk_tune_options any = *options; /* `only` names what is to be tuned, not what must do the work that it cannot do */
    any.only = any.choice = NULL;
    spk_class class;
    if (spk_class_keys(tuner, problem, &any, &class) != SPK_OK)
        return;
    const uint64_t hash = spk_class_hash(tuner, class.key);
    if (bind_remembered(tuner, problem, &any, hash, other))
        return;
    spk_contender *contenders = NULL;
    int count = 0;
    if (spk_contenders_eligible(tuner, problem, &any, &contenders, &count) != SPK_OK)
        return;
    for (int i = 0; i < count; i++)
        contenders[i].eligible = suits(&contenders[i]);
    for (int tries = 0; tries < MOST_BOUND && other->kernel == NULL; tries++) {
        int best = -1;
        if (spk_proved_best(tuner, problem, contenders, count, &best) != SPK_OK || best < 0)
            break;
        const spk_choice choice = {.kernel = contenders[best].kernel, .params = contenders[best].params};
        if (spk_tune_bind(tuner, problem, &choice, other) != SPK_OK)
            leave_row(contenders, count, contenders[best].row);
    }
    spk_contenders_release(tuner, &contenders, count);
    if (other->kernel != NULL)
        remember(tuner, problem, hash, other);
}
