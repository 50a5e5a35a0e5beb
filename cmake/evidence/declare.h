/* What a declaration declares. */
#ifndef EVIDENCE_DECLARE_H
#define EVIDENCE_DECLARE_H

#include "item.h"

/* Sets names and outer, or always. t: the declaration without the heads of what it stands in. */
void declare_names(item *i, const token *t);
void declare_add_name(item *i, const token *name);
void declare_add_outer(item *i, const token *name);

/* Whether the brace that follows these tokens, or the first in them, begins a function's body. */
bool declare_begins_body(const token *first);

#endif
