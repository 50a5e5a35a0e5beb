#include "macro.h"

#include <string.h>

/* ------------------------------------------------------------------------------------------------ the table */

static macro **slot_of(macros *all, const char *name)
{
    return &all->slots[((uintptr_t)name >> 4) % (sizeof all->slots / sizeof all->slots[0])];
}

macro *macro_find(macros *all, const char *name)
{
    macro *m = *slot_of(all, name);
    while (m != NULL && m->name != name)
        m = m->next;
    return m;
}

static macro *find_or_make(macros *all, const char *name)
{
    macro *m = macro_find(all, name);
    if (m != NULL)
        return m;
    m = take(sizeof *m);
    m->name = name;
    m->next = *slot_of(all, name);
    *slot_of(all, name) = m;
    return m;
}

token *line_end(token *t)
{
    while (t != NULL && !t->begins_line)
        t = t->next;
    return t;
}

static const token *read_parameters(macro *m, const token *t)
{
    m->takes_arguments = true;
    for (; t != NULL && !t->begins_line && !token_is(t, ")"); t = t->next) {
        if (token_is(t, ","))
            continue;
        m->variadic = m->variadic || token_is(t, "...");
        m->parameters = grown(m->parameters, m->parameter_count, sizeof *m->parameters);
        m->parameters[m->parameter_count++] = token_is(t, "...") ? intern_text("__VA_ARGS__") : t->text;
    }
    return t != NULL ? t->next : NULL;
}

macro *macro_define(macros *all, const token *line)
{
    macro *m = find_or_make(all, line->text);
    const bool uncertain = m->uncertain;
    *m = (macro){.next = m->next, .name = m->name, .defined = true, .uncertain = uncertain};
    const token *t = line->next;
    if (t != NULL && !t->begins_line && !t->after_space && token_is(t, "("))
        t = read_parameters(m, t->next);
    token **last = &m->body;
    for (; t != NULL && !t->begins_line; t = t->next) {
        *last = token_copy(t);
        last = &(*last)->next;
    }
    return m;
}

macro *macro_undefine(macros *all, const char *name)
{
    macro *m = find_or_make(all, name);
    m->defined = false;
    return m;
}

void macro_define_as(macros *all, const char *name, const char *value)
{
    const char *text = format_text("%s %s", name, value);
    macro_define(all, tokens_of(text, strlen(text), "an option"));
}

/* ------------------------------------------------------------------------------------------------ hidden names */

static bool is_hidden(const hidden *list, const char *name)
{
    for (; list != NULL; list = list->next)
        if (list->name == name)
            return true;
    return false;
}

static const hidden *hide(const hidden *list, const char *name)
{
    hidden *h = take(sizeof *h);
    *h = (hidden){name, list};
    return h;
}

static const hidden *both_hide(const hidden *a, const hidden *b)
{
    const hidden *list = b;
    for (; a != NULL; a = a->next)
        if (!is_hidden(b, a->name))
            list = hide(list, a->name);
    return list;
}

static const hidden *each_hides(const hidden *a, const hidden *b)
{
    const hidden *list = NULL;
    for (; a != NULL; a = a->next)
        if (is_hidden(b, a->name))
            list = hide(list, a->name);
    return list;
}

/* ------------------------------------------------------------------------------------------------ substitution */

typedef struct argument {
    token *raw, *expanded;
    bool is_expanded;
} argument;

/* Reads `count` arguments behind the opening parenthesis. *close: the parenthesis that ends them; NULL: there is none. */
static argument *read_arguments(const macro *m, const token *t, const token **close)
{
    argument *list = take((size_t)(m->parameter_count + 1) * sizeof *list);
    int index = 0, depth = 0;
    token **last = &list[0].raw;
    for (; t != NULL && !(depth == 0 && token_is(t, ")")); t = t->next) {
        const bool rest = m->variadic && index == m->parameter_count - 1;
        if (depth == 0 && token_is(t, ",") && !rest && index + 1 < m->parameter_count) {
            last = &list[++index].raw;
            continue;
        }
        depth += token_is(t, "(") - token_is(t, ")");
        *last = token_copy(t);
        (*last)->begins_line = false;
        last = &(*last)->next;
    }
    *close = t;
    return list;
}

static int parameter_index(const macro *m, const token *t)
{
    for (int i = 0; t != NULL && t->kind == TOKEN_WORD && i < m->parameter_count; i++)
        if (m->parameters[i] == t->text)
            return i;
    return -1;
}

static token *stringized(const token *t)
{
    const char *text = "";
    for (; t != NULL; t = t->next)
        text = format_text("%s%s%s", text, t->after_space && text[0] != '\0' ? " " : "", t->text);
    char *made = take(2 * strlen(text) + 3), *out = made;
    *out++ = '"';
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            *out++ = '\\';
        *out++ = *text;
    }
    *out = '"';
    return token_new(TOKEN_STRING, intern_text(made));
}

static token *pasted(const token *left, const token *right)
{
    const char *text = format_text("%s%s", left->text, right->text);
    token *made = text[0] != '\0' ? tokens_of(text, strlen(text), "##") : token_new(TOKEN_MARK, intern_text(""));
    if (made == NULL || made->next != NULL)
        fail("%s ## %s is no token", left->text, right->text);
    made->begins_line = false;
    made->after_space = left->after_space;
    made->hidden = left->hidden;
    return made;
}

typedef struct list {
    token *first, **last, *end; /* end: the last one */
} list;

static void append(list *out, token *t)
{
    for (; t != NULL; t = t->next) {
        *out->last = t;
        out->last = &t->next;
        out->end = t;
    }
}

/* Puts the first of `more` together with the last that is there. */
static void paste(list *out, token *more)
{
    token *joined = pasted(out->end, more);
    *out->end = *joined;
    out->end->next = NULL;
    out->last = &out->end->next;
    append(out, more->next);
}

static token *expanded(macros *all, argument *a)
{
    if (!a->is_expanded)
        a->expanded = macro_expand(all, tokens_copy(a->raw));
    a->is_expanded = true;
    return tokens_copy(a->expanded);
}

static token *without_marks(token *first)
{
    for (token **link = &first; *link != NULL;) {
        if ((*link)->text[0] == '\0')
            *link = (*link)->next;
        else
            link = &(*link)->next;
    }
    return first;
}

static token *substitute(macros *all, const macro *m, argument *arguments)
{
    list out = {.last = &out.first};
    bool joins = false; /* ## stands before */
    for (const token *t = m->body; t != NULL; t = t->next) {
        const int at = parameter_index(m, t);
        const bool joined_next = token_is(t->next, "##");
        token *piece;
        if (token_is(t, "##") && t != m->body) {
            joins = true;
            continue;
        }
        if (m->takes_arguments && token_is(t, "#") && parameter_index(m, t->next) >= 0) {
            t = t->next;
            piece = stringized(arguments[parameter_index(m, t)].raw);
        } else if (at >= 0) {
            piece = joins || joined_next ? tokens_copy(arguments[at].raw) : expanded(all, &arguments[at]);
        } else {
            piece = token_copy(t);
        }
        if (piece == NULL && (joins || joined_next)) /* what an empty argument leaves to be pasted */
            piece = token_new(TOKEN_MARK, intern_text(""));
        if (joins)
            paste(&out, piece);
        else
            append(&out, piece);
        joins = false;
    }
    return without_marks(out.first);
}

token *macro_replace(macros *all, token *t)
{
    macro *m = t->kind == TOKEN_WORD ? macro_find(all, t->text) : NULL;
    if (m == NULL || !m->defined || m->uncertain || is_hidden(t->hidden, t->text))
        return NULL;
    const hidden *hides = hide(t->hidden, m->name);
    token *rest = t->next, *body;
    if (m->takes_arguments) {
        const token *close;
        if (!token_is(t->next, "("))
            return NULL;
        argument *arguments = read_arguments(m, t->next->next, &close);
        if (close == NULL)
            return NULL;
        hides = hide(each_hides(t->hidden, close->hidden), m->name);
        rest = close->next;
        body = substitute(all, m, arguments);
    } else {
        body = substitute(all, m, NULL);
    }
    for (token *b = body; b != NULL; b = b->next) {
        b->hidden = both_hide(b->hidden, hides);
        b->begins_line = b == body && t->begins_line;
        if (b->next == NULL) {
            b->next = rest;
            return body;
        }
    }
    if (rest != NULL && t->begins_line) { /* nothing stands in its place */
        token *first = token_copy(rest);
        first->next = rest->next;
        first->begins_line = first->begins_line || !token_is(first, "#");
        return first;
    }
    return rest != NULL ? rest : token_new(TOKEN_MARK, intern_text("")); /* an empty mark is passed over */
}

token *macro_expand(macros *all, token *t)
{
    list out = {.last = &out.first};
    while (t != NULL) {
        token *replaced = macro_replace(all, t);
        if (replaced != NULL) {
            t = replaced;
            continue;
        }
        token *next = t->next;
        t->next = NULL;
        if (t->text[0] != '\0')
            append(&out, t);
        t = next;
    }
    return out.first;
}
