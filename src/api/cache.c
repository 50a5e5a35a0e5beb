/* The context's plans, by problem and options. */
#include <string.h>

#include "api/context.h"

enum { USUAL_BYTES = 2048 };

/* The problem, which has no padding, the numbers among the options, and their texts. */
typedef struct head {
    spk_problem problem;
    double budget_s, tolerance;
    int64_t effort, tuning;
} head;

typedef struct plan_key {
    unsigned char usual[USUAL_BYTES], *bytes;
    size_t count;
} plan_key;

static size_t text_bytes(const char *text)
{
    return text != NULL ? strlen(text) + 1 : 0;
}

/* false: there is no memory for it. */
static bool make_key(const spk_mem *mem, const spk_problem *problem, const spk_tune_options *options, plan_key *key)
{
    const char *const texts[] = {options->only, options->exclude, options->choice};
    enum { TEXTS = sizeof texts / sizeof texts[0] };
    head h;
    memset(&h, 0, sizeof h);
    memcpy(&h.problem, problem, sizeof h.problem);
    h.budget_s = options->budget_s;
    h.tolerance = options->tolerance;
    h.effort = options->effort;
    h.tuning = options->tuning;
    key->bytes = key->usual;
    key->count = sizeof h;
    for (int i = 0; i < TEXTS; i++)
        key->count += 1 + text_bytes(texts[i]);
    if (key->count > sizeof key->usual && spk_alloc(mem, 1, key->count, &key->bytes) != SPK_OK)
        return false;
    memcpy(key->bytes, &h, sizeof h);
    unsigned char *at = key->bytes + sizeof h;
    for (int i = 0; i < TEXTS; i++) {
        const size_t bytes = text_bytes(texts[i]);
        *at++ = bytes > 0;
        if (bytes > 0)
            memcpy(at, texts[i], bytes);
        at += bytes;
    }
    return true;
}

static void release_key(const spk_mem *mem, plan_key *key)
{
    if (key->bytes != key->usual)
        spk_free(mem, key->bytes);
}

spk_plan *spk_plan_cache_find(spk_known *plans, const spk_mem *mem, const spk_problem *problem, const spk_tune_options *options)
{
    plan_key key;
    spk_plan *found = NULL;
    if (!make_key(mem, problem, options, &key))
        return NULL;
    spk_known_find(plans, key.bytes, key.count, &found, sizeof found);
    release_key(mem, &key);
    return found;
}

void spk_plan_cache_add(spk_known *plans, const spk_mem *mem, const spk_problem *problem, const spk_tune_options *options, spk_plan *plan)
{
    plan_key key;
    if (!make_key(mem, problem, options, &key))
        return;
    spk_known_add(plans, key.bytes, key.count, &plan, sizeof plan, plan->since, plan->until_write);
    release_key(mem, &key);
}

/* The plan that is kept shares the pattern: no other one has its address. */
static bool is_of(const void *key, const void *pattern)
{
    const spk_pattern *theirs = NULL;
    memcpy(&theirs, (const unsigned char *)key + offsetof(head, problem.pattern), sizeof theirs);
    return theirs == pattern;
}

void spk_plan_cache_drop_pattern(spk_known *plans, const spk_pattern *pattern)
{
    spk_known_drop_where(plans, is_of, pattern);
}
