/* C's preprocessing tokens: comments and white space are gone, lines that a backslash joins are joined. */
#ifndef EVIDENCE_TOKEN_H
#define EVIDENCE_TOKEN_H

#include <string.h>

#include "text.h"

typedef enum token_kind { TOKEN_WORD, TOKEN_NUMBER, TOKEN_STRING, TOKEN_CHARACTER, TOKEN_MARK } token_kind;

/* Names that a token no longer expands to: it came out of their expansion. */
typedef struct hidden {
    const char *name;
    const struct hidden *next;
} hidden;

typedef struct token {
    const char *text; /* interned */
    struct token *next;
    const hidden *hidden;
    const char *file; /* that it stands in */
    token_kind kind;
    bool begins_line, after_space;
    bool directive; /* of a conditional, or of a definition under one, that could not be decided */
} token;

token *tokens_of(const char *text, size_t length, const char *name); /* NULL: there are none */
token *token_copy(const token *t);
token *tokens_copy(const token *t); /* it and all that follow */
token *token_new(token_kind kind, const char *text);

/* false for NULL */
static inline bool token_is(const token *t, const char *text)
{
    return t != NULL && (t->text == text || (t->text[0] == text[0] && strcmp(t->text, text) == 0));
}

bool token_is_word(const token *t, const char *text);

#endif
