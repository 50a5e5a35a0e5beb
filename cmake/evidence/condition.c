#include "condition.h"

#include <stdlib.h>
#include <string.h>

typedef struct value {
    bool known;
    long long v;
} value;

static const value open_value = {false, 0};

static value known(long long v)
{
    return (value){true, v};
}

verdict condition_defined(const names *n, const char *name)
{
    const macro *m = macro_find(n->macros, name);
    if (m != NULL)
        return m->uncertain ? VERDICT_OPEN : m->defined ? VERDICT_YES : VERDICT_NO;
    return n->is_none(n->facts, name) ? VERDICT_NO : VERDICT_OPEN;
}

/* The line with defined(NAME) decided, and its macros expanded. */
static token *prepared(const names *n, const token *line)
{
    token *first = NULL, **last = &first;
    for (const token *t = line; t != NULL && !(t->begins_line && t != line); t = t->next) {
        if (token_is(t, "defined") && t->next != NULL) {
            const bool enclosed = token_is(t->next, "(");
            const token *name = enclosed ? t->next->next : t->next;
            const verdict v = name != NULL ? condition_defined(n, name->text) : VERDICT_OPEN;
            *last = v == VERDICT_OPEN ? token_new(TOKEN_WORD, "") : token_new(TOKEN_NUMBER, v == VERDICT_YES ? "1" : "0");
            t = name != NULL && enclosed && name->next != NULL ? name->next : name != NULL ? name : t;
        } else {
            *last = token_copy(t);
        }
        if ((*last)->text[0] == '\0')
            (*last)->text = intern_text("?open");
        last = &(*last)->next;
    }
    return macro_expand(n->macros, first);
}

typedef struct reader {
    const names *names;
    const token *at;
    bool failed; /* it is no expression that is known here */
} reader;

static value ternary(reader *r);

static bool accept(reader *r, const char *text)
{
    if (!token_is(r->at, text))
        return false;
    r->at = r->at->next;
    return true;
}

static value primary(reader *r)
{
    if (accept(r, "(")) {
        const value v = ternary(r);
        r->failed = r->failed || !accept(r, ")");
        return v;
    }
    const token *t = r->at;
    if (t == NULL) {
        r->failed = true;
        return open_value;
    }
    r->at = t->next;
    if (t->kind == TOKEN_NUMBER)
        return known((long long)strtoull(t->text, NULL, 0));
    if (t->kind == TOKEN_WORD && !token_is(r->at, "("))
        return condition_defined(r->names, t->text) == VERDICT_NO ? known(0) : open_value;
    r->failed = true;
    return open_value;
}

static value unary(reader *r)
{
    value v;
    if (accept(r, "!"))
        return v = unary(r), v.known ? known(!v.v) : v;
    if (accept(r, "-"))
        return v = unary(r), v.known ? known(-v.v) : v;
    if (accept(r, "~"))
        return v = unary(r), v.known ? known(~v.v) : v;
    return accept(r, "+") ? unary(r) : primary(r);
}

/* By how tightly they bind. */
static const char *const operators[][4] = {{"||"},       {"&&"},     {"|"},          {"^"}, {"&"}, {"==", "!="}, {"<", ">", "<=", ">="},
                                           {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}};
enum { LEVELS = sizeof operators / sizeof operators[0] };

static value applied(const char *op, value a, value b)
{
    if (strcmp(op, "||") == 0)
        return (a.known && a.v) || (b.known && b.v) ? known(1) : a.known && b.known ? known(0) : open_value;
    if (strcmp(op, "&&") == 0)
        return (a.known && !a.v) || (b.known && !b.v) ? known(0) : a.known && b.known ? known(1) : open_value;
    if (!a.known || !b.known || ((*op == '/' || *op == '%') && b.v == 0)) /* what stands before it with && may make it nothing */
        return open_value;
    switch (op[0]) {
    case '|':
        return known(a.v | b.v);
    case '^':
        return known(a.v ^ b.v);
    case '&':
        return known(a.v & b.v);
    case '=':
        return known(a.v == b.v);
    case '!':
        return known(a.v != b.v);
    case '<':
        return known(op[1] == '<' ? a.v << b.v : op[1] == '=' ? a.v <= b.v : a.v < b.v);
    case '>':
        return known(op[1] == '>' ? a.v >> b.v : op[1] == '=' ? a.v >= b.v : a.v > b.v);
    case '+':
        return known(a.v + b.v);
    case '-':
        return known(a.v - b.v);
    case '*':
        return known(a.v * b.v);
    case '/':
        return known(a.v / b.v);
    default:
        return known(a.v % b.v);
    }
}

static value binary(reader *r, int level)
{
    if (level == LEVELS)
        return unary(r);
    value left = binary(r, level + 1);
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < 4 && operators[level][i] != NULL; i++)
            if (accept(r, operators[level][i])) {
                left = applied(operators[level][i], left, binary(r, level + 1));
                again = true;
                break;
            }
    }
    return left;
}

static value ternary(reader *r)
{
    const value condition = binary(r, 0);
    if (!accept(r, "?"))
        return condition;
    const value yes = ternary(r);
    r->failed = r->failed || !accept(r, ":");
    const value no = ternary(r);
    return !condition.known ? open_value : condition.v ? yes : no;
}

verdict condition_of(const names *n, const token *line)
{
    reader r = {n, prepared(n, line), false};
    const value v = ternary(&r);
    if (r.failed || r.at != NULL || !v.known)
        return VERDICT_OPEN;
    return v.v ? VERDICT_YES : VERDICT_NO;
}
