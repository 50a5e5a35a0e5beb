/* `gen mask`: from the library's table of shapes to flags, and from flags to the library's options. */
#include "cli/matrix/gen_mask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/c_locale.h"
#include "base/nearest.h"
#include "cli/base/text.h"
#include "cli/io/messages.h"
#include "cli/matrix/experts.h"

static const char *const shared_names[] = {"cells", "tokens", "density"};

static bool is_shared(const char *name)
{
    for (size_t i = 0; i < sizeof(shared_names) / sizeof(*shared_names); i++)
        if (strcmp(name, shared_names[i]) == 0)
            return true;
    return false;
}

/* index: from 0 on. */
static bool shape_at(int index, spk_mask_shape_info *info)
{
    *info = (spk_mask_shape_info){SPK_SIZED(spk_mask_shape_info)};
    return spk_mask_shape_get_info((spk_mask_shape)(index + 1), info) == SPK_OK;
}

static spk_mask_parameter_info parameter_at(int shape, int index)
{
    spk_mask_parameter_info info = {SPK_SIZED(spk_mask_parameter_info)};
    (void)spk_mask_shape_get_parameter((spk_mask_shape)(shape + 1), index, &info);
    return info;
}

static mask_flag *find(mask_flags *f, const char *name)
{
    for (int i = 0; i < f->count; i++)
        if (strcmp(f->list[i].name, name) == 0)
            return &f->list[i];
    return NULL;
}

/* "; window, sinks: keys up to the one beside a query (default: an 8th of the keys)": one parameter of this name, of all shapes that take
 * it. */
static void describe(mask_flag *flag, const spk_mask_parameter_info *p)
{
    char *text = cli_format("%s%s", flag->help, flag->help[0] ? "; " : "mask ");
    spk_mask_shape_info shape;
    int takers = 0, shapes = 0;
    char *names = cli_format("%s", "");
    for (; shape_at(shapes, &shape); shapes++)
        for (int i = 0; i < shape.parameter_count; i++)
            if (parameter_at(shapes, i).offset == p->offset) {
                char *longer = cli_format("%s%s%s", names, takers++ ? ", " : "", shape.name);
                free(names);
                names = longer;
            }
    snprintf(flag->help, sizeof flag->help, "%s%s%s%s (%s%s)", text, takers < shapes ? names : "of all shapes", ": ", p->help,
             p->usual ? "default: " : "needed", p->usual ? p->usual : "");
    free(names);
    free(text);
}

/* A flag for each name that the table's parameters have. */
static void collect(mask_flags *f)
{
    spk_mask_shape_info shape;
    size_t seen[2 * GEN_MASK_MOST];
    int count = 0;
    for (int s = 0; shape_at(s, &shape); s++)
        for (int i = 0; i < shape.parameter_count; i++) {
            const spk_mask_parameter_info p = parameter_at(s, i);
            bool known = false;
            for (int j = 0; j < count; j++)
                known = known || seen[j] == p.offset;
            mask_flag *flag = find(f, p.name);
            if (known || count == 2 * GEN_MASK_MOST || (!flag && f->count == GEN_MASK_MOST))
                continue;
            seen[count++] = p.offset;
            if (!flag) {
                flag = &f->list[f->count++];
                *flag = (mask_flag){.name = p.name, .value = p.value, .count = -1, .share = -1};
            }
            flag->value = p.value == SPK_MASK_VALUE_CELLS ? p.value : flag->value;
            describe(flag, &p);
        }
}

static args_option option_of(mask_flag *flag)
{
    args_option o = {.name = flag->name, .help = flag->help};
    switch (flag->value) {
    case SPK_MASK_VALUE_COUNT:
        o.kind = ARGS_INT;
        o.to = &flag->count;
        break;
    case SPK_MASK_VALUE_SHARE:
        o.kind = ARGS_SHARE;
        o.to = &flag->share;
        o.high = 1;
        break;
    case SPK_MASK_VALUE_FLAG:
        o.kind = ARGS_FLAG;
        o.to = &flag->flag;
        break;
    case SPK_MASK_VALUE_CELLS:
        o.kind = ARGS_CELLS;
        o.to = &flag->cells;
        break;
    case SPK_MASK_VALUE_RANGE:
    case SPK_MASK_VALUE_LIST:
        o.kind = ARGS_TEXT;
        o.to = &flag->text;
        o.values = flag->value == SPK_MASK_VALUE_RANGE ? "LEAST-MOST" : "N,N,..";
        break;
    }
    return o;
}

/* The limits of the first shape that takes it: gen_mask_take asks the one that is given. */
static void limit(args_option *o)
{
    spk_mask_shape_info shape;
    for (int s = 0; shape_at(s, &shape); s++)
        for (int i = 0; i < shape.parameter_count; i++) {
            const spk_mask_parameter_info p = parameter_at(s, i);
            if (strcmp(p.name, o->name) == 0) {
                o->low = (double)p.least;
                o->high = (double)p.most;
                return;
            }
        }
}

int gen_mask_options(args_option *options, mask_flags *f)
{
    int count = 0;
    *f = (mask_flags){.shape = NULL};
    collect(f);
    options[count++] = (args_option){"shape", 0, ARGS_TEXT, &f->shape, "SHAPE", 0, 0, "mask: which (needed)"};
    for (int i = 0; i < f->count && count < GEN_MASK_MOST; i++)
        if (!is_shared(f->list[i].name)) {
            options[count] = option_of(&f->list[i]);
            if (options[count].kind == ARGS_INT)
                limit(&options[count]);
            count++;
        }
    return count;
}

char *gen_mask_about(void)
{
    char *text = cli_format("%s", "");
    spk_mask_shape_info shape;
    for (int s = 0; shape_at(s, &shape); s++) {
        char *longer = cli_format("%s  %-12s %s\n", text, shape.name, shape.help);
        free(text);
        text = longer;
    }
    return text;
}

static bool is_given(const mask_flag *flag)
{
    return flag->count >= 0 || flag->share >= 0 || flag->flag || flag->cells.x || flag->text;
}

const char *gen_mask_given(const mask_flags *f)
{
    if (f->shape)
        return "shape";
    for (int i = 0; i < f->count; i++)
        if (is_given(&f->list[i]))
            return f->list[i].name;
    return NULL;
}

static int check_limits(const cli *app, const spk_mask_parameter_info *p, int64_t value)
{
    if (value >= p->least && value <= p->most)
        return EXIT_DONE;
    return cli_fail(app, EXIT_USAGE, "--%s: %lld is not between %lld and %lld", p->name, (long long)value, (long long)p->least,
                    (long long)p->most);
}

static int take_count(const cli *app, const char *shape, const spk_mask_parameter_info *p, const mask_flag *flag, int64_t *to)
{
    const args_cells c = flag->cells;
    const int64_t value = flag->value == SPK_MASK_VALUE_CELLS ? c.x : flag->count;
    if (c.x != c.y || c.x != c.z)
        return cli_fail(app, EXIT_USAGE, "--%s: of --shape %s it is one number", p->name, shape);
    *to = value;
    return check_limits(app, p, value);
}

/* A parameter's members: `at` begins them. */
static int take(const cli *app, const char *shape, const spk_mask_parameter_info *p, const mask_flag *flag, void *at, int64_t **list)
{
    int64_t *numbers = at;
    switch (p->value) {
    case SPK_MASK_VALUE_COUNT:
        return take_count(app, shape, p, flag, at);
    case SPK_MASK_VALUE_SHARE:
        *(double *)at = flag->share;
        break;
    case SPK_MASK_VALUE_FLAG:
        *(int *)at = flag->flag;
        break;
    case SPK_MASK_VALUE_CELLS:
        numbers[0] = flag->cells.x;
        numbers[1] = flag->cells.y;
        numbers[2] = flag->cells.z;
        break;
    case SPK_MASK_VALUE_RANGE:
        if (!experts_read_range(flag->text, &numbers[0], &numbers[1]))
            return cli_fail(app, EXIT_USAGE, "--%s: of %s it is a range like 100-8000, not '%s'", p->name, shape, flag->text);
        return check_limits(app, p, numbers[0]);
    case SPK_MASK_VALUE_LIST:
        free(*list);
        *list = experts_read_list(flag->text, &numbers[1]);
        if (!*list)
            return cli_fail(app, EXIT_USAGE, "--%s: of %s it is a list like 100,28,172, not '%s'", p->name, shape, flag->text);
        *(const int64_t **)at = *list;
        break;
    }
    return EXIT_DONE;
}

/* The number of a shape, from 0 on; -1 after a message. */
static int find_shape(const cli *app, const char *name)
{
    const char *names[GEN_MASK_MOST];
    spk_mask_shape_info shape;
    int count = 0;
    if (!name) {
        cli_fail(app, EXIT_USAGE, "mask needs --shape, see 'sparsek gen --help'");
        return -1;
    }
    for (int s = 0; shape_at(s, &shape); s++) {
        if (strcmp(name, shape.name) == 0)
            return s;
        if (count < GEN_MASK_MOST)
            names[count++] = shape.name;
    }
    const char *near = spk_nearest(name, names, count);
    cli_fail(app, EXIT_USAGE, "--shape: no mask is called '%s'%s%s%s", name, near ? "; did you mean " : " (see 'sparsek gen --help')",
             near ? near : "", near ? "?" : "");
    return -1;
}

int gen_mask_take(const cli *app, mask_flags *f, mask_shared shared, spk_generate *o, int64_t **list)
{
    spk_mask_shape_info shape;
    bool taken[GEN_MASK_MOST] = {false};
    const int number = find_shape(app, f->shape);
    if (number < 0)
        return EXIT_USAGE;
    (void)shape_at(number, &shape);
    o->mask = (spk_mask_shape)(number + 1);
    for (int i = 0; i < f->count; i++) {
        mask_flag *flag = &f->list[i];
        flag->cells = strcmp(flag->name, "cells") == 0 ? shared.cells : flag->cells;
        flag->text = strcmp(flag->name, "tokens") == 0 ? shared.tokens : flag->text;
        flag->share = strcmp(flag->name, "density") == 0 ? shared.density : flag->share;
    }
    for (int i = 0; i < shape.parameter_count; i++) {
        const spk_mask_parameter_info p = parameter_at(number, i);
        const mask_flag *flag = find(f, p.name);
        void *at = (char *)o + p.offset;
        taken[flag - f->list] = true;
        if (is_given(flag)) {
            const int code = take(app, shape.name, &p, flag, at, list);
            if (code != EXIT_DONE)
                return code;
        } else if (!p.usual) {
            return cli_fail(app, EXIT_USAGE, "--shape %s needs --%s: %s", shape.name, p.name, p.help);
        } else if (p.value == SPK_MASK_VALUE_SHARE) {
            *(double *)at = spk_real(p.usual, NULL);
        }
    }
    for (int i = 0; i < f->count; i++)
        if (is_given(&f->list[i]) && !taken[i])
            return cli_fail(app, EXIT_USAGE, "--%s does not go with --shape %s", f->list[i].name, shape.name);
    return EXIT_DONE;
}
