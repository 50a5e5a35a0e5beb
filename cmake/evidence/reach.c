#include "reach.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

typedef struct named { /* a word and what declares it */
    struct named *next;
    const char *word;
    item **items, **outer;
    int count, outer_count;
} named;

enum { SLOTS = 1 << 14 };

/* One table for each unit would be large: declarations of all units are looked up by their word, and the unit is compared. */
static named *slots[SLOTS];

static named *find(const char *word, bool make)
{
    named **slot = &slots[((uintptr_t)word >> 4) % SLOTS];
    for (named *n = *slot; n != NULL; n = n->next)
        if (n->word == word)
            return n;
    if (!make)
        return NULL;
    named *n = take(sizeof *n);
    *n = (named){.next = *slot, .word = word};
    return *slot = n;
}

/* Units are listed once. */
static void list_unit(const unit *u)
{
    static const unit **listed;
    static int count;
    for (int i = 0; i < count; i++)
        if (listed[i] == u)
            return;
    listed = grown(listed, count, sizeof *listed);
    listed[count++] = u;
    for (int i = 0; i < u->item_count; i++) {
        item *it = u->items[i];
        for (int j = 0; j < it->name_count; j++) {
            named *n = find(it->names[j], true);
            n->items = grown(n->items, n->count, sizeof *n->items);
            n->items[n->count++] = it;
        }
        for (int j = 0; j < it->outer_count && !u->is_program; j++) {
            named *n = find(it->outer[j], true);
            n->outer = grown(n->outer, n->outer_count, sizeof *n->outer);
            n->outer[n->outer_count++] = it;
        }
    }
}

/* ------------------------------------------------------------------------------------------------ reaching */

typedef struct work {
    const room *room;
    item **found; /* those that are used; the first `done` have been read */
    int count, done;
} work;

static void use(work *w, item *i)
{
    if (i->used)
        return;
    i->used = true;
    w->found = grown(w->found, w->count, sizeof *w->found);
    w->found[w->count++] = i;
}

/* With a unit's first declaration come those of which nobody can say who uses them. */
static void use_always(work *w, const unit *u)
{
    for (int i = 0; i < u->item_count; i++)
        if (u->items[i]->always)
            use(w, u->items[i]);
}

static void use_all_with(work *w, const unit *u, const char *word)
{
    for (int i = 0; i < u->item_count; i++)
        if (item_has_word(u->items[i], word))
            use(w, u->items[i]);
}

static unit *program_named(const room *r, const char *quoted)
{
    for (int i = 0; i < r->program_count; i++) {
        const char *base = strrchr(r->programs[i]->path, '/');
        base = base != NULL ? base + 1 : r->programs[i]->path;
        if (strlen(base) + 2 == strlen(quoted) && strncmp(quoted + 1, base, strlen(base)) == 0)
            return r->programs[i];
    }
    return NULL;
}

static void use_word(work *w, const item *by, const char *word)
{
    const named *n = find(word, false);
    for (int i = 0; n != NULL && i < n->count; i++)
        if (n->items[i]->unit == by->unit)
            use(w, n->items[i]);
    for (int i = 0; n != NULL && i < n->outer_count && !by->unit->is_program; i++)
        use(w, n->outer[i]);
}

static void read_item(work *w, const item *by)
{
    const bool table = item_is_table(by);
    const token *before = NULL;
    for (const token *t = by->first; t != NULL; before = t, t = t->next) {
        const token *end = table ? model_end(t) : NULL;
        if (end != NULL)
            t = end;
        const bool member =
            !t->directive && (token_is(before, ".") || token_is(before, "->")); /* of a struct, which is reached by its own name */
        if (t->kind == TOKEN_WORD && !member)
            use_word(w, by, t->text);
        if (t->kind == TOKEN_STRING && by->always) /* alias("name") */
            use_word(w, by, intern(t->text + 1, strlen(t->text) - 2));
    }
}

static bool names_program(const char *quoted)
{
    const size_t length = strlen(quoted);
    return length > 5 && strcmp(quoted + length - 4, ".cu\"") == 0;
}

static uint64_t hash_of_item(const work *w, const item *i)
{
    const bool table = item_is_table(i);
    uint64_t hash = SPK_HASH_START;
    for (const token *t = i->first; t != NULL; t = t->next) {
        const token *end = table ? model_end(t) : NULL;
        if (end != NULL)
            t = end;
        const unit *program = t->kind == TOKEN_STRING ? program_named(w->room, t->text) : NULL;
        if (program == NULL && t->kind == TOKEN_STRING && names_program(t->text))
            fail("%s names the program %s, which is not there", i->unit->path, t->text);
        hash = spk_hash_text(hash, program != NULL ? program->hash : t->text); /* a program is what it does, and not its file's name */
        hash = spk_hash_text(hash, " ");
    }
    return hash;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The order of declarations and their places change nothing; nor does what is there twice. */
static const char *finish(work *w)
{
    for (; w->done < w->count; w->done++) {
        use_always(w, w->found[w->done]->unit);
        read_item(w, w->found[w->done]);
    }
    uint64_t *hashes = take((size_t)w->count * sizeof *hashes), all = SPK_HASH_START;
    for (int i = 0; i < w->count; i++)
        hashes[i] = hash_of_item(w, w->found[i]);
    if (w->count > 0)
        qsort(hashes, (size_t)w->count, sizeof *hashes, by_value);
    for (int i = 0; i < w->count; i++)
        if (i == 0 || hashes[i] != hashes[i - 1])
            all = spk_hash_bytes(all, &hashes[i], sizeof hashes[i]);
    return format_text("%016" PRIx64, all);
}

static void forget(unit *const *units, int count)
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j < units[i]->item_count; j++)
            units[i]->items[j]->used = false;
}

bool has_row(const unit *u)
{
    for (int i = 0; i < u->item_count; i++)
        if (item_is_table(u->items[i]))
            return true;
    return false;
}

const char *hash_of_program(unit *u)
{
    const room none = {0};
    work w = {.room = &none};
    list_unit(u);
    forget(&u, 1);
    use_all_with(&w, u, "__global__");
    return finish(&w);
}

/* Programs are hashed apart: those in a room stand for themselves. */
const char *hash_of_row(const room *r, unit *u)
{
    work w = {.room = r};
    for (int i = 0; i < r->host_count; i++)
        list_unit(r->hosts[i]);
    for (int i = 0; i < r->program_count; i++)
        if (r->programs[i]->hash == NULL)
            r->programs[i]->hash = hash_of_program(r->programs[i]);
    forget(r->hosts, r->host_count);
    for (int i = 0; i < u->item_count; i++)
        if (item_is_table(u->items[i]))
            use(&w, u->items[i]);
    return finish(&w);
}

static void print_unit(const room *r, const unit *u)
{
    for (int i = 0; i < u->item_count; i++) {
        const item *it = u->items[i];
        printf("%s %s:", it->used ? "used  " : "unused", u->path);
        for (int j = 0; j < it->name_count && j < 12; j++)
            printf(" %s", it->names[j]);
        printf("%s\n", it->always ? " (always)" : "");
        for (const token *t = it->first; it->used && t != NULL; t = t->next)
            if (t->kind == TOKEN_STRING && program_named(r, t->text) != NULL)
                printf("used   %s: program %s\n", u->path, t->text);
    }
}

void print_reached(const room *r)
{
    for (int i = 0; i < r->host_count; i++)
        print_unit(r, r->hosts[i]);
}

void print_program(const unit *u)
{
    const room none = {0};
    print_unit(&none, u);
}
