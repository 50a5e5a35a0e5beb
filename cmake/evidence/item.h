/* The declarations of a source, each with what it declares and what it mentions: so that evidence is over those that a row uses. */
#ifndef EVIDENCE_ITEM_H
#define EVIDENCE_ITEM_H

#include "token.h"

typedef struct item {
    struct unit *unit;
    token *first;       /* up to NULL */
    const char **names; /* that it declares, and perhaps some more */
    int name_count;
    const char **outer; /* the functions and objects that other sources may use */
    int outer_count;
    bool always; /* nobody can say who uses it: a directive that stays, an operator */
    bool used;
} item;

typedef struct unit { /* a source with all that it includes */
    const char *path; /* relative to the root */
    bool is_program;  /* compiled by itself, for a device */
    const char *hash; /* of a program */
    item **items;
    int item_count;
} unit;

unit *unit_of(const char *path, token *preprocessed);

bool item_has_word(const item *i, const char *word);
/* Whether it is a row's table of functions. */
bool item_is_table(const item *i);

/* Whether a cost model begins here, .predict_us = NAME, in a row's table: it is no part of what a row runs. What follows; else NULL. */
const token *model_end(const token *t);

#endif
