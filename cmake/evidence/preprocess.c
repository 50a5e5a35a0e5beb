#include "preprocess.h"

#include <stdlib.h>
#include <string.h>

typedef struct level { /* of conditionals */
    struct level *outer;
    bool open;  /* some branch could not be decided: what follows may or may not be compiled */
    bool taken; /* a branch was, for sure: none that follows is */
} level;

typedef struct definition { /* each that was read, whether or not it is still the one */
    struct definition *next;
    const token *name; /* and what follows, to the end of the line */
    bool told;
} definition;

typedef struct state {
    source *source;
    level *level;
    int opens; /* levels that are open */
    token *first, **last;
    definition *definitions;
} state;

static void emit(state *st, token *t)
{
    t->next = NULL;
    *st->last = t;
    st->last = &t->next;
}

/* A directive that stays: its marks, so that nobody takes its braces for code, and its words. */
static void emit_directive(state *st, const char *word, const token *t)
{
    token *head = token_new(TOKEN_MARK, intern_text(format_text("#%s", word)));
    head->directive = true;
    emit(st, head);
    for (; t != NULL && !t->begins_line; t = t->next) {
        token *copy = token_copy(t);
        copy->directive = true;
        emit(st, copy);
    }
    token *end = token_new(TOKEN_MARK, intern_text("#end"));
    end->directive = true;
    emit(st, end);
}

/* The tokens of a file, which many sources include: read once. */
static const token *tokens_of_file(const char *root, const char *name)
{
    typedef struct entry {
        struct entry *next;
        const char *name;
        token *tokens;
    } entry;
    static entry *slots[1 << 10];
    entry **slot = &slots[((uintptr_t)name >> 4) % (sizeof slots / sizeof slots[0])];
    for (const entry *e = *slot; e != NULL; e = e->next)
        if (e->name == name)
            return e->tokens;
    size_t length;
    char *text = read_file(format_text("%s/%s", root, name), &length);
    if (text == NULL)
        fail("%s/%s cannot be read", root, name);
    entry *made = take(sizeof *made);
    *made = (entry){*slot, name, tokens_of(text, length, name)};
    *slot = made;
    free(text);
    return made->tokens;
}

static void note_file(source *s, const char *name)
{
    for (int i = 0; i < s->file_count; i++)
        if (s->files[i] == name)
            return;
    s->files = grown(s->files, s->file_count, sizeof *s->files);
    s->files[s->file_count++] = name;
}

static token *load(source *s, const char *name)
{
    name = intern_text(name);
    note_file(s, name);
    return tokens_copy(tokens_of_file(s->root, name));
}

/* The folder of a path, with its slash; "" where it has none. */
static const char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? intern(path, (size_t)(slash + 1 - path)) : "";
}

/* Without its . and .. parts. */
static const char *plain_path(const char *path)
{
    char *made = take(strlen(path) + 2), *out = made;
    while (*path != '\0') {
        const size_t length = strcspn(path, "/");
        if (length == 2 && strncmp(path, "..", 2) == 0 && out != made) {
            for (out--; out > made && out[-1] != '/';)
                out--;
        } else if (length > 0 && !(length == 1 && *path == '.')) {
            memcpy(out, path, length);
            out += length;
            *out++ = '/';
        }
        path += length + (path[length] == '/');
    }
    if (out > made)
        out--;
    *out = '\0';
    return intern_text(made);
}

/* The file that an inclusion means: beside the one that includes it, or below the root. NULL: none that is followed. */
static const char *followed(const source *s, const char *from, const char *name)
{
    const char *const places[] = {format_text("%s%s", folder_of(from), name), name};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *path = plain_path(places[i]);
        if (s->is_followed(path) && file_exists(format_text("%s/%s", s->root, path)))
            return path;
    }
    return NULL;
}

/* "NAME" or <NAME>; NULL: neither. */
static const char *name_included(const token *t)
{
    if (t == NULL)
        return NULL;
    if (t->kind == TOKEN_STRING)
        return intern(t->text + 1, strlen(t->text) - 2);
    if (!token_is(t, "<"))
        return NULL;
    const char *name = "";
    for (t = t->next; t != NULL && !token_is(t, ">"); t = t->next)
        name = format_text("%s%s", name, t->text);
    return t != NULL ? name : NULL;
}

/* What stands in the place of an inclusion, followed by the rest. */
static token *included(state *st, token *line, token *rest)
{
    token *copy = NULL, **last = &copy;
    for (const token *t = line; t != NULL && t != rest; t = t->next) {
        *last = token_copy(t);
        (*last)->begins_line = false;
        last = &(*last)->next;
    }
    const char *name = name_included(copy);
    if (name == NULL)
        name = name_included(macro_expand(st->source->names.macros, copy));
    if (name == NULL)
        fail("%s: an inclusion is not understood", line != NULL ? line->file : st->source->path);
    name = followed(st->source, line->file, name);
    if (name == NULL)
        return rest;
    token *first = load(st->source, name);
    for (token *t = first; t != NULL; t = t->next)
        if (t->next == NULL) {
            t->next = rest;
            break;
        }
    return first != NULL ? first : rest;
}

/* ------------------------------------------------------------------------------------------------ conditionals */

static bool is_directive(const token *t)
{
    return t != NULL && t->begins_line && token_is(t, "#") && !t->directive;
}

/* To the #elif, #else or #endif of the level that t lies in. */
static token *skip_branch(token *t)
{
    for (int depth = 0; t != NULL; t = t->next) {
        if (!is_directive(t) || t->next == NULL)
            continue;
        const token *word = t->next;
        if (depth == 0 && (token_is(word, "elif") || token_is(word, "else") || token_is(word, "endif")))
            return t;
        depth += (token_is(word, "if") || token_is(word, "ifdef") || token_is(word, "ifndef")) - token_is(word, "endif");
    }
    fail("a conditional has no #endif");
}

/* #ifndef NAME, and #define NAME with nothing behind it next: a header's guard, which only the header defines. */
static bool is_guard(const token *name)
{
    const token *next = line_end(name->next);
    return is_directive(next) && token_is(next->next, "define") && next->next->next != NULL && next->next->next->text == name->text &&
           (next->next->next->next == NULL || next->next->next->next->begins_line);
}

static verdict verdict_of(const state *st, const token *word)
{
    const names *n = &st->source->names;
    if (word->next == NULL || word->next->begins_line)
        fail("%s: #%s has no condition", st->source->path, word->text);
    if (token_is(word, "ifndef") && macro_find(n->macros, word->next->text) == NULL && is_guard(word->next))
        return VERDICT_YES;
    if (!token_is(word, "ifdef") && !token_is(word, "ifndef"))
        return condition_of(n, word->next);
    const verdict defined = condition_defined(n, word->next->text);
    return token_is(word, "ifdef") || defined == VERDICT_OPEN ? defined : defined == VERDICT_YES ? VERDICT_NO : VERDICT_YES;
}

static void open_level(state *st, level *l)
{
    st->opens += !l->open;
    l->open = true;
}

/* The branch that begins with this word, of a level of which none is taken for sure. */
static token *branch(state *st, token *word, token *rest)
{
    level *l = st->level;
    const verdict v = token_is(word, "else") ? VERDICT_YES : verdict_of(st, word);
    if (v == VERDICT_NO)
        return skip_branch(rest);
    if (v == VERDICT_OPEN || l->open) {
        const bool first = !l->open;
        open_level(st, l);
        emit_directive(st, first && token_is(word, "elif") ? "if" : word->text, word->next);
    }
    l->taken = v == VERDICT_YES && !l->open;
    return rest;
}

static token *conditional(state *st, token *word, token *rest)
{
    if (!token_is(word, "elif") && !token_is(word, "else") && !token_is(word, "endif")) {
        level *made = take(sizeof *made);
        made->outer = st->level;
        st->level = made;
        return branch(st, word, rest);
    }
    level *l = st->level;
    if (l == NULL)
        fail("%s: #%s without #if", st->source->path, word->text);
    if (!token_is(word, "endif"))
        return l->taken ? skip_branch(rest) : branch(st, word, rest);
    if (l->open) {
        emit_directive(st, "endif", NULL);
        st->opens--;
    }
    st->level = l->outer;
    return rest;
}

/* ------------------------------------------------------------------------------------------------ directives */

/* Under a condition that is open: it is no macro for sure, and what it would be stays to be read. */
static void define(state *st, token *word)
{
    macros *all = st->source->names.macros;
    if (word->next == NULL || word->next->kind != TOKEN_WORD)
        fail("%s: #%s has no name", word->file, word->text);
    if (token_is(word, "define")) {
        definition *made = take(sizeof *made);
        *made = (definition){.next = st->definitions, .name = word->next};
        st->definitions = made;
    }
    macro *m = token_is(word, "define") ? macro_define(all, word->next) : macro_undefine(all, word->next->text);
    if (st->opens > 0)
        emit_directive(st, word->text, word->next);
    m->uncertain = st->opens > 0;
}

/* What is said under open conditions stands there as it was written: so the definitions of the macros in it, and in theirs. */
static void tell_definitions(state *st)
{
    bool ended = false;
    for (token *t = st->first; t != NULL; t = t->next) {
        if (!t->directive || t->kind != TOKEN_WORD)
            continue;
        for (definition *d = st->definitions; d != NULL; d = d->next)
            if (!d->told && d->name->text == t->text) {
                if (!ended) /* what was said last */
                    emit(st, token_new(TOKEN_MARK, intern_text(";")));
                ended = d->told = true;
                emit_directive(st, "define", d->name); /* behind: it is read, too */
            }
    }
}

static token *directive(state *st, token *hash)
{
    token *word = hash->next;
    if (word == NULL || word->begins_line)
        return word;
    token *rest = line_end(word->next);
    if (token_is(word, "include"))
        return included(st, word->next, rest);
    if (token_is(word, "define") || token_is(word, "undef")) {
        define(st, word);
        return rest;
    }
    if (token_is(word, "pragma") && token_is(word->next, "once"))
        return rest;
    if (token_is(word, "pragma") || token_is(word, "error")) {
        emit_directive(st, word->text, word->next);
        return rest;
    }
    if (token_is(word, "if") || token_is(word, "ifdef") || token_is(word, "ifndef") || token_is(word, "elif") || token_is(word, "else") ||
        token_is(word, "endif"))
        return conditional(st, word, rest);
    fail("%s: #%s is not known", st->source->path, word->text);
}

token *preprocess(source *s)
{
    state st = {.source = s};
    st.last = &st.first;
    for (token *t = load(s, s->path); t != NULL;) {
        if (is_directive(t)) {
            t = directive(&st, t);
            continue;
        }
        token *replaced = macro_replace(s->names.macros, t);
        if (replaced != NULL) {
            t = replaced;
            continue;
        }
        token *next = t->next;
        if (t->text[0] != '\0')
            emit(&st, t);
        t = next;
    }
    if (st.level != NULL)
        fail("%s: a conditional has no #endif", s->path);
    if (!s->tokens_alone)
        tell_definitions(&st);
    return st.first;
}
