/* A case in words. */
#include <stdlib.h>
#include <string.h>

#include "cli/args/args.h"
#include "cli/base/text.h"
#include "cli/check/check.h"
#include "type/tile.h"

static void append(char **text, char *more)
{
    char *longer = cli_format("%s%s", *text, more);
    free(*text);
    free(more);
    *text = longer;
}

/* ", layout_b col": a field that is not as it is by default; NULL: it is. */
static char *field_text(const spk_field_info *field, const operation_struct *given)
{
    if (field->kind == SPK_FIELD_SCALE) {
        char tile[SPK_TILE_TEXT];
        const spk_scale scale = operation_get_scale(field, given);
        spk_tile_text(scale, tile, sizeof(tile));
        return scale.rows != 0 ? cli_format(", %s %s", field->name, tile) : NULL;
    }
    const int64_t value = field->kind == SPK_FIELD_REAL ? 0 : operation_get(field, given);
    double real;
    int length;
    if (field->kind == SPK_FIELD_REAL) {
        memcpy(&real, given->bytes + field->offset, sizeof(real));
        return real != 0 ? cli_format(", %s %g", field->name, real) : NULL;
    }
    if (value == 0 && field->kind != SPK_FIELD_SIZE)
        return NULL;
    if (field->kind == SPK_FIELD_DTYPE)
        return cli_format(", %s %s", field->name, spk_dtype_name((spk_dtype)value));
    if (!field->values)
        return cli_format(", %s %lld", field->name, (long long)value);
    const char *word = operation_word(field->values, (int)value, &length);
    return cli_format(", %s %.*s", field->name, length, word);
}

char *check_text(const check_case *c)
{
    char *text = cli_format("%s", c->op->info.name);
    if (c->has_pattern)
        append(&text, cli_format(", %lldx%lld in %lld blocks of %lldx%lld", (long long)c->rows, (long long)c->cols, (long long)c->nnzb,
                                 (long long)c->block_rows, (long long)c->block_cols));
    for (int i = 0; i < c->op->info.field_count; i++) {
        char *one = field_text(&c->op->fields[i], &c->given);
        if (one)
            append(&text, one);
    }
    for (int i = 0; i < c->op->info.scalar_count; i++)
        append(&text, cli_format(", %s %g", c->op->scalars[i].name, c->scalars[i]));
    if (c->scores.are_large)
        append(&text, cli_format(", scores 2^%d %s%s", c->scores.power, c->scores.are_exact ? "exact" : "random",
                                 c->scores.share ? " with a common part" : ""));
    for (int i = 0; i < c->op->info.operand_count; i++)
        if (c->same_as[i] >= 0)
            append(&text, cli_format(", %s is %s", c->op->operands[i].name, c->op->operands[c->same_as[i]].name));
    append(&text,
           cli_format("%s%s, %d threads", c->static_values ? ", static values" : "", check_is_shifted(c) ? ", shifted" : "", c->threads));
    return text;
}
