#include "token.h"

static bool begins_word(char c)
{
    return c == '_' || c == '$' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* In place: a backslash before the end of a line joins the next. */
static size_t join_lines(char *text, size_t length)
{
    size_t out = 0;
    for (size_t i = 0; i < length; i++) {
        size_t end = i + 1;
        if (text[i] == '\\' && end < length && text[end] == '\r')
            end++;
        if (text[i] == '\\' && end < length && text[end] == '\n')
            i = end;
        else
            text[out++] = text[i];
    }
    text[out] = '\0';
    return out;
}

/* The end of what begins at p and ends with `quote`. */
static const char *end_of_quoted(const char *p, char quote, const char *name)
{
    const char *begin = p;
    for (p++; *p != quote; p++) {
        if (*p == '\\' && p[1] != '\0')
            p++;
        if (*p == '\0' || *p == '\n')
            fail("%s: %.20s... has no end", name, begin);
    }
    return p + 1;
}

static const char *end_of_number(const char *p)
{
    while (is_digit(*p) || begins_word(*p) || *p == '.' || (*p == '\'' && (is_digit(p[1]) || begins_word(p[1]))) ||
           ((*p == '+' || *p == '-') && strchr("eEpP", p[-1]) != NULL))
        p++;
    return p;
}

/* The longest operator at p. */
static size_t mark_length(const char *p)
{
    static const char *const marks[] = {"<<=", ">>=", "...", "->*", "<=>", "->", "++", "--", "<<", ">>", "<=", ">=", "==",
                                        "!=",  "&&",  "||",  "+=",  "-=",  "*=", "/=", "%=", "&=", "|=", "^=", "##", "::"};
    for (size_t i = 0; strchr("<=>-+&|#:.", p[1]) != NULL && i < sizeof marks / sizeof marks[0]; i++)
        if (p[0] == marks[i][0] && strncmp(p, marks[i], strlen(marks[i])) == 0)
            return strlen(marks[i]);
    return 1;
}

/* Past white space and comments; what was passed is told. */
static const char *skip(const char *p, bool *line, bool *space, const char *name)
{
    for (;; *space = true) {
        if (*p == '\n')
            *line = true;
        if (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n' || *p == '\v' || *p == '\f') {
            p++;
        } else if (p[0] == '/' && p[1] == '/') {
            p += strcspn(p, "\n");
        } else if (p[0] == '/' && p[1] == '*') {
            const char *end = strstr(p + 2, "*/");
            if (end == NULL)
                fail("%s: a comment has no end", name);
            p = end + 2;
        } else {
            return p;
        }
    }
}

token *token_new(token_kind kind, const char *text)
{
    token *t = take(sizeof *t);
    t->kind = kind;
    t->text = text;
    return t;
}

token *token_copy(const token *t)
{
    token *made = take(sizeof *made);
    *made = *t;
    made->next = NULL;
    return made;
}

token *tokens_copy(const token *t)
{
    token *first = NULL, **last = &first;
    for (; t != NULL; t = t->next) {
        *last = token_copy(t);
        last = &(*last)->next;
    }
    return first;
}

bool token_is_word(const token *t, const char *text)
{
    return t != NULL && t->kind == TOKEN_WORD && strcmp(t->text, text) == 0;
}

token *tokens_of(const char *given, size_t length, const char *name)
{
    char *text = take(length + 1);
    memcpy(text, given, length);
    length = join_lines(text, length);
    token *first = NULL, **last = &first;
    bool line = true, space = false;
    const char *begin = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text; /* a byte order mark */
    for (const char *p = skip(begin, &line, &space, name); p < text + length; p = skip(p, &line, &space, name)) {
        const char *end;
        token_kind kind = TOKEN_MARK;
        if (*p == '"' || *p == '\'') {
            kind = *p == '"' ? TOKEN_STRING : TOKEN_CHARACTER;
            end = end_of_quoted(p, *p, name);
        } else if (is_digit(*p) || (*p == '.' && is_digit(p[1]))) {
            kind = TOKEN_NUMBER;
            end = end_of_number(p + 1);
        } else if (begins_word(*p)) {
            kind = TOKEN_WORD;
            for (end = p + 1; begins_word(*end) || is_digit(*end);)
                end++;
        } else {
            end = p + mark_length(p);
        }
        token *t = token_new(kind, intern(p, (size_t)(end - p)));
        t->file = name;
        t->begins_line = line;
        t->after_space = space;
        *last = t;
        last = &t->next;
        line = space = false;
        p = end;
    }
    return first;
}
