/* The second candidate of a plan, for pointers that the first does not take: the best of the cost model's that takes all, proved like any other. What was found
 * for a class is remembered in the process, as looking at every candidate takes longer than all else that a plan from the store needs. */
#include <pthread.h>

#include "base/hash.h"
#include "tune/choose.h"
#include "tune/search.h"

enum { MOST_ROWS_TRIED = 3, REMEMBERED = 256 };

/* program: what was compiled and proved. Another problem of the class may need another. */
typedef struct found {
    uint64_t class, program;
    const spk_kernel *kernel;
    spk_params params;
} found;

static found answers[REMEMBERED]; /* a lost one only costs another look */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t program_of(const spk_tuner *tuner, const spk_problem *problem, const spk_kernel *kernel, const spk_params *params)
{
    spk_build build = {0};
    if (kernel->ops->build == NULL)
        return 0;
    kernel->ops->build(problem, tuner->device, params, &build);
    return spk_hash_text(spk_hash_text(SPK_HASH_START, build.options), build.entry);
}

static void remember(const spk_tuner *tuner, const spk_problem *problem, uint64_t class, const spk_bound *bound)
{
    const found made = {.class = class, .program = program_of(tuner, problem, bound->kernel, &bound->params), .kernel = bound->kernel, .params = bound->params};
    pthread_mutex_lock(&lock);
    answers[class % REMEMBERED] = made;
    pthread_mutex_unlock(&lock);
}

static bool bind_remembered(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, uint64_t class, spk_bound *other)
{
    const char *why = NULL;
    pthread_mutex_lock(&lock);
    const found known = answers[class % REMEMBERED];
    pthread_mutex_unlock(&lock);
    return known.class == class && known.kernel != NULL && spk_may_win(tuner, problem, options, known.kernel, &known.params, &why) &&
           program_of(tuner, problem, known.kernel, &known.params) == known.program &&
           spk_bind(known.kernel, &known.params, problem, tuner->device, other) == SPK_OK;
}

/* Of libraries none: they are only opened where they were chosen. What repacks values would have to be told of new ones too. */
static bool suits(const spk_contender *c)
{
    return c->eligible && c->kernel->ops->takes == NULL && c->kernel->library == NULL && c->kernel->ops->update_values == NULL;
}

static bool is_proved(const spk_tuner *tuner, const spk_problem *problem, const spk_contender *c)
{
    spk_prepared answer = {.kernel = c->kernel, .params = c->params};
    if (tuner->device->backend->prepare == NULL)
        return true;
    return tuner->device->backend->prepare(tuner->device, problem, &answer, 1, tuner->interrupted) == SPK_OK && answer.status == SPK_OK;
}

/* After a try the whole row is out. */
static void leave_row(spk_contender *contenders, int count, int row)
{
    for (int i = 0; i < count; i++)
        if (contenders[i].row == row)
            contenders[i].eligible = false;
}

void spk_tune_bind_other(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, bool prove, spk_bound *other)
{
    spk_tune_options any = *options; /* `only` names what is to be tuned, not what must do the work that it cannot do */
    any.only = any.choice = NULL;
    spk_class class;
    if (spk_class_keys(tuner, problem, &any, &class) != SPK_OK)
        return;
    const uint64_t hash = spk_class_hash(tuner, class.key) ^ (prove ? 1 : 0);
    if (bind_remembered(tuner, problem, &any, hash, other))
        return;
    spk_contender *contenders = NULL;
    int count = 0;
    if (spk_contenders_make(tuner, problem, &any, &contenders, &count) != SPK_OK)
        return;
    for (int i = 0; i < count; i++)
        contenders[i].eligible = suits(&contenders[i]);
    for (int tries = 0; tries < MOST_ROWS_TRIED && other->kernel == NULL; tries++) {
        const int best = spk_contenders_predicted_best(contenders, count);
        if (best < 0)
            break;
        const spk_contender *c = &contenders[best];
        if ((prove && !is_proved(tuner, problem, c)) || spk_bind(c->kernel, &c->params, problem, tuner->device, other) != SPK_OK)
            leave_row(contenders, count, c->row);
    }
    spk_contenders_release(tuner, &contenders, count);
    if (other->kernel != NULL)
        remember(tuner, problem, hash, other);
}
