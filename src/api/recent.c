/* The questions that spk_compute was asked lately, byte for byte, with the plans that answered them. Checking and normalising a description
 * costs more than a small product; one that is the same to the last byte as one that was checked needs neither. */
#include <string.h>

#include "api/context.h"

/* A struct's bytes are whole words, as struct_size is a multiple of 8. */
enum { MOST_WORDS = 65 };

/* The pattern, then the problem, then the options where there are any. The plan shares the pattern: no other one takes its address
 * meanwhile. */
typedef struct question {
    size_t count;
    uint64_t at[MOST_WORDS];
} question;

/* Appends a caller's struct; false: its size is none that is remembered. */
static bool append(question *to, const void *theirs)
{
    size_t bytes = 0;
    memcpy(&bytes, theirs, sizeof bytes);
    const size_t count = bytes / sizeof to->at[0];
    if (count == 0 || bytes % sizeof to->at[0] != 0 || count > MOST_WORDS - to->count)
        return false;
    memcpy(to->at + to->count, theirs, bytes);
    to->count += count;
    return true;
}

/* Options that point to text, or that want a fresh plan, are read each time. A caller's struct may end before a field. */
static bool is_plain(const spk_tune_options *o)
{
#define IS_SET(field) (o->struct_size >= offsetof(spk_tune_options, field) + sizeof o->field && o->field)
    return !IS_SET(only) && !IS_SET(exclude) && !IS_SET(choice) && !IS_SET(fresh);
#undef IS_SET
}

/* Options are known again whatever cancels the call. */
static bool append_options(question *to, const spk_tune_options *options)
{
    const size_t begin = to->count, cancel = begin + offsetof(spk_tune_options, cancel) / sizeof to->at[0];
    if (!append(to, options) || !is_plain(options))
        return false;
    if (cancel < to->count)
        to->at[cancel] = 0;
    return true;
}

static bool copy_question(const spk_pattern *pattern, const void *problem, const spk_tune_options *options, question *asked)
{
    asked->count = 1;
    asked->at[0] = (uint64_t)(uintptr_t)pattern;
    return problem != NULL && append(asked, problem) && (options == NULL || append_options(asked, options));
}

spk_plan *spk_recent_find(spk_known *recent, const spk_pattern *pattern, const void *problem, const spk_tune_options *options)
{
    question asked;
    spk_plan *found = NULL;
    if (copy_question(pattern, problem, options, &asked))
        spk_known_find(recent, asked.at, asked.count * sizeof asked.at[0], &found, sizeof found);
    return found;
}

void spk_recent_add(spk_known *recent, const spk_pattern *pattern, const void *problem, const spk_tune_options *options, spk_plan *plan)
{
    question asked;
    if (copy_question(pattern, problem, options, &asked))
        spk_known_add(recent, asked.at, asked.count * sizeof asked.at[0], &plan, sizeof plan, plan->since, plan->until_write);
}

static bool is_of(const void *key, const void *pattern)
{
    uint64_t first = 0;
    memcpy(&first, key, sizeof first);
    return first == (uint64_t)(uintptr_t)pattern;
}

void spk_recent_drop_pattern(spk_known *recent, const spk_pattern *pattern)
{
    spk_known_drop_where(recent, is_of, pattern);
}
