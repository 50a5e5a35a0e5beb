/* A source as the compiler sees it: what it includes of the rooms in place, macros expanded, the branches of conditionals that are not
 * taken left out. Of a condition that cannot be known here, all branches stay, and the condition and what is defined under it stay as
 * tokens. */
#ifndef EVIDENCE_PREPROCESS_H
#define EVIDENCE_PREPROCESS_H

#include "condition.h"

typedef struct source {
    const char *root, *path; /* path: relative to root */
    names names;
    /* Whether a file is followed where it is included; the name is relative to root. Others stay out: system headers, and what is no row's.
     */
    bool (*is_followed)(const char *name);
    bool tokens_alone;  /* what the compiler sees, without the definitions that stand behind what could not be decided */
    const char **files; /* that were read, each once */
    int file_count;
} source;

token *preprocess(source *s);

#endif
