/* What was decided lately. A mask or a router's lists that are new on the device at every step are one problem to whoever plans: making the
 * class's key, reading the store, looking at proofs and finding a second candidate would cost more than a small product each time. A
 * remembered decision is believed for a second only, for the sake of what other processes write to the store. */
#include <string.h>

#include "api/context.h"

/* Appends a text with its end; false: there is no room for it. */
static bool append(spk_asked *asked, size_t *used, const char *text)
{
    const size_t bytes = text != NULL ? strlen(text) + 1 : 1;
    if (bytes > sizeof asked->text - *used)
        return false;
    memcpy(asked->text + *used, text != NULL ? text : "", bytes);
    *used += bytes;
    return true;
}

bool spk_asked_make(const spk_problem *problem, const spk_tune_options *options, spk_asked *asked)
{
    size_t used = 0;
    memset(asked, 0, sizeof *asked);
    if (options->fresh || (problem->pattern != NULL && !spk_pattern_is_remote(problem->pattern, &asked->pattern)))
        return false;
    memcpy(&asked->problem, problem, sizeof *problem);
    asked->problem.pattern = NULL;
    asked->budget_s = options->budget_s;
    asked->tolerance = options->tolerance;
    asked->effort = (int)options->effort;
    asked->tuning = (int)options->tuning;
    return append(asked, &used, options->only) && append(asked, &used, options->exclude) && append(asked, &used, options->choice);
}

bool spk_decisions_find(spk_known *decisions, const spk_asked *asked, spk_decided *decided)
{
    return spk_known_find(decisions, asked, sizeof *asked, decided, sizeof *decided);
}

void spk_decisions_add(spk_known *decisions, const spk_asked *asked, spk_epoch since, const spk_decided *decided)
{
    spk_known_add(decisions, asked, sizeof *asked, decided, sizeof *decided, since, false);
}
