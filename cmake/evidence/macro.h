/* Macros: what is defined, what is known not to be, and the expansion of tokens (C11 6.10.3). */
#ifndef EVIDENCE_MACRO_H
#define EVIDENCE_MACRO_H

#include "token.h"

typedef struct macro {
    struct macro *next;
    const char *name;
    token *body;
    const char **parameters;
    int parameter_count;
    bool takes_arguments, variadic;
    bool defined;
    bool uncertain; /* defined or not, in this way or another: where a condition was not decided */
} macro;

typedef struct macros {
    macro *slots[512];
} macros;

macro *macro_find(macros *all, const char *name);    /* NULL: nothing is known of it */
macro *macro_define(macros *all, const token *line); /* the rest of the line behind #define, up to its end */
macro *macro_undefine(macros *all, const char *name);
void macro_define_as(macros *all, const char *name, const char *value);

/* Where tokens end that belong to one line: the first of the next. */
token *line_end(token *t);

/* If t begins the use of a macro: what stands in its place, followed by the rest; else NULL. */
token *macro_replace(macros *all, token *t);
/* All of a list that ends with NULL. */
token *macro_expand(macros *all, token *t);

#endif
