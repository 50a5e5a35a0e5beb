/* Cuts a source into its declarations. */
#include "item.h"

#include <string.h>

#include "declare.h"

/* ------------------------------------------------------------------------------------------------ where a declaration ends */

enum { MOST_LEVELS = 64, MOST_FLATS = 16 };

typedef struct nesting {
    int brace, paren;
} nesting;

typedef struct cutter {
    unit *unit;
    token *first, **last; /* of the declaration that is being read */
    nesting now, saved[MOST_LEVELS];
    int levels;               /* of conditionals that stay */
    token *heads[MOST_FLATS]; /* of extern "C" and namespaces that are open: what they hold is declared as anywhere, with the heads before
                                 it */
    int flat;
    bool is_function; /* its body is being read */
    item *group;      /* the declarations of a conditional that stays: one, as only all of it says which is compiled */
    int group_level;
    bool is_odd; /* something that the cutting does not understand */
} cutter;

static void push(cutter *c, const token *t)
{
    *c->last = token_copy(t);
    c->last = &(*c->last)->next;
}

static void append_copies(token **to, const token *t)
{
    while (*to != NULL)
        to = &(*to)->next;
    for (; t != NULL; t = t->next, to = &(*to)->next)
        *to = token_copy(t);
}

/* What a group of declarations has of one of them. */
static void join_names(item *group, const item *one)
{
    for (int i = 0; i < one->name_count; i++)
        declare_add_name(group, token_new(TOKEN_WORD, one->names[i]));
    for (int i = 0; i < one->outer_count; i++)
        declare_add_outer(group, token_new(TOKEN_WORD, one->outer[i]));
    group->always = group->always || one->always;
}

static void join(item *group, const item *one)
{
    append_copies(&group->first, one->first);
    join_names(group, one);
}

static void add_item(unit *u, item *made)
{
    u->items = grown(u->items, u->item_count, sizeof *u->items);
    u->items[u->item_count++] = made;
}

/* The declaration that was read is whole. A stray semicolon is none. */
static void finish(cutter *c)
{
    token *read = c->first;
    c->first = NULL;
    c->last = &c->first;
    c->is_function = false;
    if (read == NULL || (token_is(read, ";") && read->next == NULL))
        return;
    item *made = take(sizeof *made);
    *made = (item){.unit = c->unit};
    for (int i = 0; i < c->flat; i++)
        append_copies(&made->first, c->heads[i]);
    append_copies(&made->first, read);
    declare_names(made, read);
    if (c->group == NULL) {
        add_item(c->unit, made);
        return;
    }
    join(c->group, made);
}

/* Between declarations a conditional that stays begins one that ends with it. A definition there, or a pragma, is one by itself. */
static void begin_between(cutter *c, const token *t)
{
    if (c->group == NULL && strncmp(t->text, "#if", 3) == 0) {
        c->group = take(sizeof *c->group);
        c->group->unit = c->unit;
        c->group_level = c->levels;
    }
    c->is_odd = c->is_odd || token_is(t, "#pragma");
}

static void end_between(cutter *c, token *read)
{
    item *made = take(sizeof *made);
    *made = (item){.unit = c->unit, .first = read};
    if (read != NULL && (token_is(read, "#define") || token_is(read, "#undef")) && read->next != NULL)
        declare_add_name(made, read->next);
    if (c->group == NULL) {
        made->always = made->name_count == 0;
        add_item(c->unit, made);
        return;
    }
    join(c->group, made);
    if (c->levels > c->group_level)
        return;
    c->group->always = c->group->always || c->group->name_count == 0;
    add_item(c->unit, c->group);
    c->group = NULL;
}

/* A directive that stays, from its mark to its end: within a declaration a part of it. */
static const token *take_directive(cutter *c, const token *t)
{
    const bool between = c->first == NULL;
    if (between)
        begin_between(c, t);
    if (strncmp(t->text, "#if", 3) == 0) {
        if (c->levels == MOST_LEVELS)
            fail("%s: more than %d conditionals within each other", c->unit->path, MOST_LEVELS);
        c->saved[c->levels++] = c->now;
    } else if ((token_is(t, "#else") || token_is(t, "#elif")) && c->levels > 0) {
        c->now = c->saved[c->levels - 1];
    } else if (token_is(t, "#endif") && c->levels > 0) {
        c->levels--;
    }
    for (; !token_is(t, "#end"); t = t->next)
        push(c, t);
    push(c, t);
    if (between) {
        token *read = c->first;
        c->first = NULL;
        c->last = &c->first;
        end_between(c, read);
    }
    return t->next;
}

static bool begins_flat(const token *first)
{
    return first != NULL && (token_is_word(first, "namespace") || (token_is_word(first, "extern") && first->next != NULL &&
                                                                   first->next->kind == TOKEN_STRING && first->next->next == NULL));
}

static void take_brace(cutter *c, const token *t)
{
    if (token_is(t, "{")) {
        if (c->now.brace == 0 && begins_flat(c->first)) {
            if (c->flat == MOST_FLATS)
                fail("%s: more than %d namespaces within each other", c->unit->path, MOST_FLATS);
            c->heads[c->flat++] = c->first;
            c->first = NULL;
            c->last = &c->first;
            return;
        }
        if (c->now.brace == 0 && c->now.paren == 0)
            c->is_function = declare_begins_body(c->first);
        c->now.brace++;
    } else if (c->now.brace == 0 && c->flat > 0) {
        c->flat--;
        return;
    } else {
        c->now.brace--;
    }
    push(c, t);
    if (c->now.brace == 0 && c->now.paren == 0 && c->is_function)
        finish(c);
}

static void cut(cutter *c, const token *t)
{
    while (t != NULL) {
        if (t->directive) {
            t = take_directive(c, t);
            continue;
        }
        if (token_is(t, "{") || token_is(t, "}")) {
            take_brace(c, t);
        } else {
            c->now.paren += token_is(t, "(") - token_is(t, ")");
            push(c, t);
            if (c->now.brace == 0 && c->now.paren == 0 && token_is(t, ";"))
                finish(c);
        }
        t = t->next;
    }
    if (c->now.brace == 0 && c->now.paren == 0)
        finish(c); /* a macro that nothing follows */
    c->is_odd =
        c->is_odd || c->first != NULL || c->group != NULL || c->now.brace != 0 || c->now.paren != 0 || c->flat != 0 || c->levels != 0;
}

/* Texts that follow each other are one. */
static token *with_joined_texts(token *first)
{
    for (token *t = first; t != NULL; t = t->next)
        while (t->kind == TOKEN_STRING && t->next != NULL && t->next->kind == TOKEN_STRING && !t->directive && !t->next->directive) {
            t->text = intern_text(format_text("%.*s%s", (int)strlen(t->text) - 1, t->text, t->next->text + 1));
            t->next = t->next->next;
        }
    return first;
}

unit *unit_of(const char *path, token *preprocessed)
{
    unit *u = take(sizeof *u);
    u->path = path;
    u->is_program = strlen(path) > 3 && strcmp(path + strlen(path) - 3, ".cu") == 0;
    preprocessed = with_joined_texts(preprocessed);
    cutter c = {.unit = u};
    c.last = &c.first;
    cut(&c, preprocessed);
    if (c.is_odd) { /* its declarations cannot be told apart */
        item *whole = take(sizeof *whole);
        *whole = (item){.unit = u, .first = preprocessed, .always = true};
        for (int i = 0; i < u->item_count; i++)
            join_names(whole, u->items[i]);
        u->item_count = 0;
        u->items = NULL;
        add_item(u, whole);
    }
    return u;
}

/* ------------------------------------------------------------------------------------------------ what one says */

const token *model_end(const token *t)
{
    if (!token_is(t, ".") || !token_is_word(t->next, "predict_us") || !token_is(t->next->next, "="))
        return NULL;
    const token *value = t->next->next->next;
    if (value == NULL || value->kind != TOKEN_WORD || value->next == NULL)
        return NULL;
    return token_is(value->next, ",") ? value->next->next : token_is(value->next, "}") ? value->next : NULL;
}

bool item_has_word(const item *i, const char *word)
{
    for (const token *t = i->first; t != NULL; t = t->next)
        if (t->kind == TOKEN_WORD && (t->text == word || strcmp(t->text, word) == 0))
            return true;
    return false;
}

bool item_is_table(const item *i)
{
    return item_has_word(i, "SPK_SOURCE_HASH") && !declare_begins_body(i->first);
}
