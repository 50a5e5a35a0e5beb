/* Merges the operations' tables of fields: options with one name are one option. */
#include "cli/problem/settings.h"

#include <stdlib.h>
#include <string.h>

#include "cli/base/text.h"

/* The type of what a file holds; it is the default of this one. */
static const char matrix_dtype[] = "dtype";

static setting list[SETTINGS_MOST];
static size_setting sizes[SETTINGS_MOST_SIZES];
static int count, size_count;

int settings_named(const char *key)
{
    for (int i = 0; i < settings_count(); i++)
        if (strcmp(list[i].key, key) == 0)
            return i;
    return -1;
}

static int find(const char *name, int length)
{
    for (int i = 0; i < count; i++)
        if ((int)strlen(list[i].key) == length && strncmp(list[i].key, name, (size_t)length) == 0)
            return i;
    return -1;
}

/* A new one at place `at`; those behind it move. */
static setting *insert(int at)
{
    memmove(&list[at + 1], &list[at], (size_t)(count - at) * sizeof(*list));
    count++;
    list[at] = (setting){.value = 0};
    for (int i = 0; i < OPERATION_MOST; i++)
        list[at].field[i] = -1;
    return &list[at];
}

/* Option `word` of a field, which comes behind place `at` where it is new; returns its place. */
static int merge_option(int op, int field, int word, int at)
{
    const spk_field_info *f = &operation_at(op)->fields[field];
    const int names = operation_words(f->option);
    int length;
    const char *name = operation_word(f->option, word, &length);
    int place = find(name, length);
    if (place < 0 && count < SETTINGS_MOST) {
        place = at + 1;
        setting *s = insert(place);
        s->key = cli_format("%.*s", length, name);
        s->option = cli_dashed(name, length);
        s->kind = f->kind;
        const bool is_flag = names > 1 || f->kind == SPK_FIELD_STRIDE || (f->values && strcmp(f->values, "no|yes") == 0);
        s->value = is_flag ? word + 1 : 0;
        s->terms = f->terms;
        s->low = f->low;
        s->high = f->high;
        const bool of_sums = f->kind == SPK_FIELD_DTYPE && f->operand < 0;
        if (f->values)
            s->choices = cli_format("%s%s", of_sums ? "default|" : "", f->values);
    }
    if (place >= 0)
        list[place].field[op] = field;
    return place >= 0 ? place : at;
}

static void merge_size(int op, int size)
{
    int at = 0;
    const char *name = operation_at(op)->sizes[size].name;
    while (at < size_count && strcmp(sizes[at].name, name) != 0)
        at++;
    if (at == SETTINGS_MOST_SIZES)
        return;
    if (at == size_count) {
        size_count++;
        sizes[at].name = name;
        sizes[at].option = cli_dashed(name, (int)strlen(name));
        for (int i = 0; i < OPERATION_MOST; i++)
            sizes[at].size[i] = -1;
    }
    sizes[at].size[op] = size;
}

/* ------------------------------------------------------------------------------------------------ help */

static void replace(char **text, char *by)
{
    free(*text);
    *text = by;
}

/* Whether "B or Y" has the word. */
static bool names(const char *text, int length, const char *word, int word_length)
{
    for (const char *at = text; at < text + length; at += strcspn(at, " ") + 1)
        if ((int)strcspn(at, " :") == word_length && strncmp(at, word, (size_t)word_length) == 0)
            return true;
    return false;
}

/* "B or Y: row- or column-major" of "B: ..." and "Y: ...", where what follows is the same; NULL: it is not. */
static char *joined(const char *a, const char *b)
{
    const char *tail_a = strstr(a, ": "), *tail_b = strstr(b, ": ");
    if (!tail_a || !tail_b || strcmp(tail_a, tail_b) != 0)
        return NULL;
    if (names(a, (int)(tail_a - a), b, (int)(tail_b - b)))
        return cli_format("%s", a);
    return cli_format("%.*s or %s", (int)(tail_a - a), a, b);
}

/* The help of one operation laid to that of those before it: nothing where it is the first one's. */
static void add_help(char **help, const char *more, const char *op, bool of_layout)
{
    const size_t length = strlen(more);
    if (!*help) {
        *help = cli_format("%s", more);
        return;
    }
    if (strncmp(*help, more, length) == 0 && ((*help)[length] == 0 || (*help)[length] == ';'))
        return;
    char *both = of_layout ? joined(*help, more) : NULL;
    replace(help, both ? both : cli_format("%s; of %s: %s", *help, op, more));
}

bool settings_has(const operation *op, const void *which)
{
    return settings_field(which, op) != NULL;
}

char *settings_owners(bool (*has)(const operation *op, const void *what), const void *what, const char *between)
{
    char *text = cli_format("%s", "");
    for (int i = 0; operation_at(i); i++)
        if (has(operation_at(i), what))
            replace(&text, cli_format("%s%s%s", text, text[0] ? between : "", operation_at(i)->info.name));
    return text;
}

static void make_help(setting *s)
{
    bool everywhere = true;
    const char *usual = NULL;
    for (int i = 0; operation_at(i); i++) {
        const spk_field_info *f = settings_field(s, operation_at(i));
        int length;
        everywhere = everywhere && f;
        if (!f)
            continue;
        const char *help = operation_word(f->help, operation_words(f->option) > 1 ? s->value - 1 : 0, &length);
        char *own = cli_format("%.*s", length, help);
        add_help(&s->help, own, operation_at(i)->info.name, s->kind == SPK_FIELD_LAYOUT);
        free(own);
        usual = usual ? usual : f->usual;
    }
    if (!everywhere) {
        char *owners = settings_owners(settings_has, s, " and ");
        replace(&s->help, cli_format("%s; of %s", s->help, owners));
        free(owners);
    }
    if (usual && s->value == 0)
        replace(&s->help, cli_format("%s (default: %s%s)", s->help, strncmp(usual, "as ", 3) == 0 ? "as --" : usual,
                                     strncmp(usual, "as ", 3) == 0       ? usual + 3
                                     : strcmp(s->key, matrix_dtype) == 0 ? "; f64 for elasticity; for a file its own"
                                                                         : ""));
}

static void make_size_help(size_setting *s)
{
    for (int i = 0; operation_at(i); i++) {
        if (s->size[i] < 0)
            continue;
        const spk_size_info *size = &operation_at(i)->sizes[s->size[i]];
        char *own = cli_format("%s (default: %lld)", size->help, (long long)size->usual);
        add_help(&s->help, own, operation_at(i)->info.name, false);
        free(own);
    }
}

/* ------------------------------------------------------------------------------------------------ the lists */

static void merge_all(void)
{
    for (int op = 0; operation_at(op); op++) {
        const operation *o = operation_at(op);
        for (int i = 0; i < o->info.size_count; i++)
            merge_size(op, i);
        for (int i = 0, at = -1; i < o->info.field_count; i++)
            for (int word = 0; o->fields[i].option && o->fields[i].kind != SPK_FIELD_SIZE && word < operation_words(o->fields[i].option);
                 word++)
                at = merge_option(op, i, word, at);
    }
    for (int i = 0; i < count; i++)
        make_help(&list[i]);
    for (int i = 0; i < size_count; i++)
        make_size_help(&sizes[i]);
}

int settings_count(void)
{
    if (count == 0)
        merge_all();
    return count;
}

const setting *settings_at(int index)
{
    return index < settings_count() ? &list[index] : NULL;
}

int settings_size_count(void)
{
    return settings_count() > 0 ? size_count : 0;
}

const size_setting *settings_size_at(int index)
{
    return index < settings_size_count() ? &sizes[index] : NULL;
}

int settings_size_named(const char *name)
{
    for (int i = 0; i < settings_size_count(); i++)
        if (strcmp(sizes[i].name, name) == 0)
            return i;
    return -1;
}

const spk_field_info *settings_field(const setting *s, const operation *op)
{
    const int field = s->field[operation_index(op->info.operation)];
    return field >= 0 ? &op->fields[field] : NULL;
}

args_kind settings_args_kind(const setting *s)
{
    if (s->value > 0)
        return ARGS_FLAG;
    if (s->kind == SPK_FIELD_ITEMS || s->kind == SPK_FIELD_HEADS || s->kind == SPK_FIELD_GROUPS || s->kind == SPK_FIELD_COUNT)
        return ARGS_INT;
    if (s->kind == SPK_FIELD_REAL)
        return ARGS_REAL;
    if (s->kind == SPK_FIELD_SCALE)
        return ARGS_SCALE;
    return s->kind == SPK_FIELD_DTYPE && strncmp(s->choices, "default|", 8) != 0 ? ARGS_DTYPE : ARGS_CHOICE;
}

int64_t settings_least(const setting *s)
{
    return s->kind == SPK_FIELD_ITEMS ? 1 : 0;
}

bool settings_is_given(const setting *s, const setting_value *value)
{
    const args_kind kind = settings_args_kind(s);
    return kind == ARGS_INT     ? value->whole > settings_least(s)
           : kind == ARGS_REAL  ? value->real != 0
           : kind == ARGS_SCALE ? value->scale.rows != 0
                                : value->index != 0;
}

bool settings_is_of_groups(const setting *s)
{
    return s->kind == SPK_FIELD_GROUPS || strcmp(s->key, OPERATION_GROUP_AXIS) == 0;
}

bool settings_exclude(const setting *a, const setting *b)
{
    bool same = a != b && a->value > 0 && b->value > 0;
    for (int i = 0; same && operation_at(i); i++)
        same = a->field[i] == b->field[i];
    return same;
}

int settings_size_options(args_option *options, int64_t *values)
{
    for (int i = 0; i < settings_size_count(); i++)
        options[i] = (args_option){sizes[i].option, 0, ARGS_INT, &values[i], "N", 0, 2147483647, sizes[i].help};
    return size_count;
}

int settings_options(args_option *options, setting_value *values)
{
    for (int i = 0; i < settings_count(); i++) {
        const setting *s = &list[i];
        const args_kind kind = settings_args_kind(s);
        options[i] = (args_option){s->option, 0,       kind,   &values[i], kind == ARGS_CHOICE || kind == ARGS_DTYPE ? s->choices : NULL,
                                   s->low,    s->high, s->help};
        if (kind == ARGS_INT)
            options[i].low = (double)settings_least(s);
    }
    return count;
}
