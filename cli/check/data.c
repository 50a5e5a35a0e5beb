/* Operands of a case. Hostile on purpose: NaN in every gap, in what beta = 0 must not read, in the overhang of edge blocks, and (where
 * finiteness is not promised) inf and NaN in lines, such as rows of B, that no stored block touches. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/device_memory.h"
#include "cli/base/memory.h"
#include "cli/base/values.h"
#include "cli/check/check.h"
#include "type/type.h"

/* Whole numbers have no NaN: the largest stands for it. */
static void write_element(spk_dtype dtype, void *array, int64_t index, double value)
{
    value_put(dtype, array, index, isnan(value) && spk_type_is_whole(dtype) ? spk_type_of(dtype)->largest : value);
}

/* An array of NaN. */
static void *poisoned(spk_dtype dtype, int64_t count)
{
    void *array = cli_alloc((size_t)count, spk_dtype_bytes(dtype));
    for (int64_t i = 0; i < count; i++)
        write_element(dtype, array, i, NAN);
    return array;
}

/* An array of normal numbers, and NaN in its gaps. */
static void *dense(random_state *r, const check_case *c, int which)
{
    const spk_array_info *a = &c->arrays[which];
    void *array = poisoned(a->dtype, a->elements);
    for (int64_t item = 0; item < check_items(c, which); item++)
        for (int64_t i = 0; i < check_rows(a); i++)
            for (int64_t j = 0; j < a->cols; j++)
                write_element(a->dtype, array, check_place(a, item, i, j), spk_type_random(a->dtype, random_normal(r)));
    return array;
}

static bool has_value(const check_case *c, spk_field_kind kind, int64_t value)
{
    const spk_field_info *field = operation_field(c->op, kind, -2);
    return field && operation_get(field, &c->given) == value;
}

/* NaN in what stored blocks have beyond the edges of the matrix, in an array of values. */
static void poison_overhang(const check_case *c, int which, void *array)
{
    const spk_array_info *v = &c->arrays[which];
    const int64_t size = c->block_rows * c->block_cols;
    const bool by_row = !has_value(c, SPK_FIELD_BLOCK_LAYOUT, SPK_COL_MAJOR);
    for (int64_t item = 0; item < check_items(c, which); item++)
        for (int64_t i = 0; i < c->grid_rows; i++)
            for (int64_t e = c->offsets[i]; e < c->offsets[i + 1]; e++)
                for (int64_t a = 0; a < c->block_rows; a++)
                    for (int64_t b = 0; b < c->block_cols; b++)
                        if (i * c->block_rows + a >= c->rows || c->columns[e] * c->block_cols + b >= c->cols)
                            write_element(v->dtype, array,
                                          item * v->stride + e * size + (by_row ? a * c->block_cols + b : b * c->block_rows + a), NAN);
}

/* Marks the rows or columns of the matrix that a stored block touches: `size` of them. */
static bool *touched(const check_case *c, bool by_row, int64_t size)
{
    bool *marks = cli_alloc((size_t)size, sizeof(bool));
    const int64_t side = by_row ? c->block_rows : c->block_cols;
    for (int64_t i = 0; i < c->grid_rows; i++)
        for (int64_t e = c->offsets[i]; e < c->offsets[i + 1]; e++) {
            const int64_t first = (by_row ? i : c->columns[e]) * side;
            for (int64_t a = first; a < first + side && a < size; a++)
                marks[a] = true;
        }
    return marks;
}

/* Puts inf and NaN into the lines of an operand that no stored block touches, and with inf_in_use into one element of one that is; says
 * whether it did. along_rows: the lines are the array's rows. */
static bool make_hostile(random_state *r, const check_case *c, int which, bool along_rows, const bool *marks, void *array)
{
    static const double bad[] = {INFINITY, -INFINITY, NAN};
    const spk_array_info *a = &c->arrays[which];
    const int64_t lines = along_rows ? a->rows : a->cols, length = along_rows ? a->cols : a->rows;
    bool once = c->inf_in_use, any = false;
    for (int64_t i = 0; i < lines; i++) {
        if (marks[i] && !(once && random_chance(r, 0.1)))
            continue;
        once = once && !marks[i];
        any = any || length > 0;
        for (int64_t matrix = 0; matrix < check_items(c, which) * a->heads; matrix++)
            for (int64_t j = 0; j < length; j++)
                if (!marks[i] || j == length / 2)
                    write_element(a->dtype, array,
                                  check_place(a, matrix / a->heads, matrix % a->heads * a->rows + (along_rows ? i : j), along_rows ? j : i),
                                  bad[random_between(r, 0, 2)]);
    }
    return any;
}

spk_status check_pattern_make(const check_case *c, spk_context *context, spk_pattern **pattern)
{
    if (!c->has_pattern)
        return SPK_OK;
    spk_bsr_indices indices = {SPK_SIZED(spk_bsr_indices),  .rows = c->rows, .cols = c->cols, .block_rows = c->block_rows,
                               .block_cols = c->block_cols, .nnzb = c->nnzb};
    indices.row_offsets = c->offsets;
    indices.col_indices = c->columns;
    indices.index_type = c->index_type;
    if (c->index_type == SPK_INDEX_I64)
        return spk_pattern_create(context, &indices, pattern);
    int32_t *offsets = cli_alloc((size_t)c->grid_rows + 1, sizeof(int32_t)), *columns = cli_alloc((size_t)c->nnzb, sizeof(int32_t));
    for (int64_t i = 0; i <= c->grid_rows; i++)
        offsets[i] = (int32_t)c->offsets[i];
    for (int64_t i = 0; i < c->nnzb; i++)
        columns[i] = (int32_t)c->columns[i];
    indices.row_offsets = offsets;
    indices.col_indices = columns;
    spk_status status = spk_pattern_create(context, &indices, pattern);
    free(offsets);
    free(columns);
    return status;
}

/* An output's memory before a run: NaN, or what it shares with an input. */
static void *image_of(const check_case *c, const check_data *d, int output)
{
    const spk_array_info *a = &c->arrays[output];
    void *image = poisoned(a->dtype, a->elements);
    for (int from = 0; from < c->op->info.operand_count; from++)
        for (int64_t item = 0; c->same_as[from] == output && item < c->items; item++)
            for (int64_t i = 0; i < check_rows(a); i++)
                for (int64_t j = 0; j < a->cols; j++)
                    write_element(a->dtype, image, check_place(a, item, i, j),
                                  value_get(a->dtype, d->arrays[from], check_place(&c->arrays[from], item, i, j)));
    return image;
}

/* Whether the size stands in the extents, "k x n": as rows, as columns. */
static bool is_extent(const spk_operand_info *operand, const char *size, bool rows)
{
    const char *times = strstr(operand->extents, " x ");
    const size_t length = strlen(size);
    if (!times || operand->is_values)
        return false;
    return rows ? (size_t)(times - operand->extents) == length && strncmp(operand->extents, size, length) == 0
                : strcmp(times + 3, size) == 0;
}

static bool is_of_an_output(const operation *op, const char *size)
{
    bool any = false;
    for (int i = 0; i < op->info.operand_count; i++)
        any = any || (op->operands[i].role == SPK_ROLE_OUT &&
                      (is_extent(&op->operands[i], size, true) || is_extent(&op->operands[i], size, false)));
    return any;
}

/* What no result may see: lines of an input along a size of the pattern that no stored block touches, unless an output has all of them. */
static bool spoil(random_state *r, const check_data *d, int which, void *array)
{
    const check_case *c = d->c;
    const operation *op = c->op;
    const bool turned = has_value(c, SPK_FIELD_TRANS, SPK_TRANS);
    bool any = c->own && c->own->hide && c->own->hide(r, d, which, array);
    for (int i = 0; c->has_pattern && i < op->info.size_count; i++) {
        const spk_size_info *size = &op->sizes[i];
        const bool rows = is_extent(&op->operands[which], size->name, true), cols = is_extent(&op->operands[which], size->name, false);
        if ((size->source != SPK_SIZE_PATTERN_ROWS && size->source != SPK_SIZE_PATTERN_COLS) || (!rows && !cols) ||
            is_of_an_output(op, size->name))
            continue;
        bool *marks = touched(c, (size->source == SPK_SIZE_PATTERN_ROWS) != turned, rows ? c->arrays[which].rows : c->arrays[which].cols);
        any = make_hostile(r, c, which, rows, marks, array) || any;
        free(marks);
    }
    return any;
}

static bool is_index(const check_case *c, int which)
{
    return check_takes_part(c, which) && spk_type_is_index(c->arrays[which].dtype);
}

static bool is_input(const check_case *c, int which)
{
    return c->op->operands[which].role != SPK_ROLE_OUT && check_takes_part(c, which) && !is_index(c, which);
}

/* Indices that a run reads, which cannot be any numbers. */
static void *indices_of(const check_data *d, int which)
{
    const check_case *c = d->c;
    int32_t *array = cli_alloc((size_t)c->arrays[which].elements, sizeof(int32_t));
    if (spk_problem_fill(d->context, d->pattern, &c->given, which, c->seed + (uint64_t)c->number, array) != SPK_OK)
        memset(array, 0, (size_t)c->arrays[which].elements * sizeof(int32_t));
    return array;
}

static void *input_of(random_state *r, const check_data *d, int which)
{
    const check_case *c = d->c;
    const spk_operand_info *operand = &c->op->operands[which];
    const spk_array_info *a = &c->arrays[which];
    void *array = dense(r, c, which);
    random_state numbers = random_for(c->seed, (uint64_t)c->number, operand->name);
    if (c->own && c->own->fill)
        c->own->fill(&numbers, c, which, array);
    if (operand->is_values)
        poison_overhang(c, which, array);
    for (int64_t i = 0; operand->role == SPK_ROLE_IN_SCALED && c->scalars[operand->scalar] == 0 && i < a->elements; i++)
        write_element(a->dtype, array, i, NAN); /* never to be read */
    return array;
}

static spk_status make_operands(const check_case *c, bool finite, check_data *d)
{
    const int count = c->op->info.operand_count;
    random_state r = random_for(c->seed, (uint64_t)c->number, finite ? "finite" : "hostile");
    for (int i = 0; i < count; i++)
        if (is_index(c, i))
            d->arrays[i] = indices_of(d, i);
    if (!finite && c->own && c->own->spoil)
        c->own->spoil(&r, d);
    for (int i = 0; i < count; i++)
        if (is_input(c, i))
            d->arrays[i] = input_of(&r, d, i);
    const spk_status status = c->own && c->own->derive ? c->own->derive(d) : SPK_OK;
    for (int i = 0; i < count && !finite; i++)
        if (is_input(c, i))
            d->hostile = spoil(&r, d, i, d->arrays[i]) || d->hostile;
    for (int i = 0; i < count; i++)
        if (check_is_output(c, i))
            d->arrays[i] = image_of(c, d, i);
    return status;
}

operation_struct check_args(const check_data *d)
{
    const check_case *c = d->c;
    operation_struct made = operation_args(c->op);
    for (int i = 0; i < c->op->info.operand_count; i++)
        operation_set_pointer(c->op, &made, i, d->arrays[i]);
    for (int i = 0; i < c->op->info.scalar_count; i++)
        operation_set_scalar(c->op, &made, i, c->scalars[i]);
    return made;
}

bool check_is_output(const check_case *c, int which)
{
    return c->op->operands[which].role == SPK_ROLE_OUT && check_takes_part(c, which);
}

operation_struct check_given(const check_case *c, bool finite)
{
    operation_struct made = c->given;
    operation_promise(c->op, &made, "assume_finite", finite);
    operation_promise(c->op, &made, "static_values", c->static_values);
    return made;
}

static spk_status ask_oracle(const check_case *c, spk_context *context, int which, check_data *d)
{
    const spk_array_info *a = &c->arrays[which];
    const size_t count = (size_t)(check_items(c, which) * check_rows(a) * a->cols);
    const operation_struct given = check_args(d);
    double *want = cli_alloc(count, sizeof(double)), *magnitude = cli_alloc(count, sizeof(double));
    d->out[which].want = want;
    d->out[which].magnitude = magnitude;
    const spk_status status = spk_oracle(context, d->pattern, &c->given, &given, which, NULL, 0, want, magnitude);
    return status == SPK_OK ? spk_default_tolerance(context, d->pattern, &c->given, which, &d->out[which].tolerance) : status;
}

spk_status check_data_make(const check_case *c, spk_context *context, spk_pattern *pattern, bool finite, check_data *out)
{
    check_data d = {.c = c, .context = context, .far = device_is_far(context), .pattern = pattern, .finite = finite};
    spk_status status = make_operands(c, finite, &d);
    for (int i = 0; i < c->op->info.operand_count && status == SPK_OK; i++)
        if (check_is_output(c, i))
            status = ask_oracle(c, context, i, &d);
    if (status == SPK_OK)
        *out = d;
    else
        check_data_release(&d);
    return status;
}

void check_data_release(check_data *d)
{
    for (int i = 0; i < OPERATION_MOST_ARRAYS; i++)
        free(d->arrays[i]);
    for (int i = 0; i < OPERATION_MOST_ARRAYS; i++) {
        free(d->out[i].want);
        free(d->out[i].magnitude);
    }
    *d = (check_data){0};
}
