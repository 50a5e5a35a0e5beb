/* What a #if says, as far as it can be known: a name that the compiler or the build may define leaves it open. */
#ifndef EVIDENCE_CONDITION_H
#define EVIDENCE_CONDITION_H

#include "macro.h"

typedef enum verdict { VERDICT_NO, VERDICT_YES, VERDICT_OPEN } verdict;

typedef struct names {
    macros *macros;
    /* Whether a name of which nothing is known is no macro for sure. */
    bool (*is_none)(const void *facts, const char *name);
    const void *facts;
} names;

verdict condition_defined(const names *n, const char *name);
verdict condition_of(const names *n, const token *line); /* of the expression that stands in the rest of the line */

#endif
