/* Preloaded into `sparsek tune`: instead of tuning a problem, binds and runs candidates on it, on recording doubles of libcuda and of the
 * vendors' libraries, and writes what they launched and called. It asks nothing of the program but its public functions, so that it records
 * other revisions, too. The program's problem is to promise finite numbers (--assume-finite), so that every row may be bound.
 *
 *   SPARSEK_CUDA, SPARSEK_NVRTC, SPARSEK_CUBLAS, SPARSEK_CUBLASLT, SPARSEK_CUSPARSE, SPARSEK_CUDNN  this file
 *   SPARSEK_RECORD_CHOICES=FILE  the candidates, "ROW PARAMS", a line each
 *   SPARSEK_RECORD_OUT=FILE      gets a line of JSON for each candidate that computes the problem
 *   SPARSEK_RECORD_TEXT=1        with the launches in words
 *   SPARSEK_RECORD_LAYOUTS=FILE  the parameters of programs' entries (bench/carry/layouts.py makes it)
 *   SPARSEK_RECORD_CARD=CARD     see driver.c */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sparsek/sparsek.h>

#include "record.h"

enum { MOST_OPERANDS = 16, MOST_BYTES = 1024 };

/* ------------------------------------------------------------------------------------------------ revisions before 0.2.0 */

/* Some functions have another name there: whichever the program's library has is called. */
#define EITHER(now, before)                           \
    extern __typeof__(now) now __attribute__((weak)); \
    extern __typeof__(now) before __attribute__((weak))
#define CALL(now, before) (now != NULL ? now : before)
EITHER(spk_plan_run, spk_run);
EITHER(spk_kernel_get_info, spk_kernel_get);
EITHER(spk_operation_get_info, spk_operation_get);
EITHER(spk_operation_get_operand, spk_operation_operand);
EITHER(spk_operation_get_scalar, spk_operation_scalar);
EITHER(spk_problem_get_array, spk_problem_array);

/* And the promise is an option. */
typedef struct options_before {
    size_t struct_size;
    int effort, unknown, cache;
    double budget_s, tolerance;
    int assume_finite, static_values, fresh;
    const char *only, *exclude, *choice;
    uint64_t seed;
} options_before;

static spk_status make_plan(spk_context *context, spk_pattern *pattern, const void *problem, const char *excluded, const char *choice,
                            spk_plan **plan)
{
    const options_before before = {sizeof before, .assume_finite = 1, .exclude = excluded, .choice = choice};
    const spk_tune_options now = {SPK_SIZED(spk_tune_options), .exclude = excluded, .choice = choice};
    return spk_plan_create(context, pattern, problem, spk_plan_run != NULL ? &now : (const void *)&before, plan);
}

/* ------------------------------------------------------------------------------------------------ operands */

typedef struct work {
    spk_context *context;
    spk_pattern *pattern;
    const void *problem;
    spk_operation_info op;
    char names[MOST_OPERANDS][24];
    void *memory[MOST_OPERANDS];
    union {
        double aligned;
        char bytes[MOST_BYTES];
    } args;
} work;

static int problems; /* that were asked for */

static spk_status find_operation(const void *problem, spk_operation_info *op)
{
    const struct {
        size_t bytes;
        spk_operation operation;
    } *head = problem;
    for (int i = 0; i < spk_operation_count(); i++) {
        *op = (spk_operation_info){SPK_SIZED(spk_operation_info)};
        const spk_status status = CALL(spk_operation_get_info, spk_operation_get)(i, op);
        if (status != SPK_OK || op->operation == head->operation)
            return status;
    }
    return SPK_ERR_INTERNAL;
}

static spk_status make_operands(work *w)
{
    for (int i = 0; i < w->op.operand_count; i++) {
        spk_operand_info operand = {SPK_SIZED(spk_operand_info)};
        spk_array_info array = {SPK_SIZED(spk_array_info)};
        spk_status status = CALL(spk_operation_get_operand, spk_operation_operand)(w->op.operation, i, &operand);
        if (status == SPK_OK)
            status = CALL(spk_problem_get_array, spk_problem_array)(w->context, w->pattern, w->problem, i, &array);
        if (status == SPK_OK && array.elements > 0)
            status = spk_memory_allocate(w->context, (size_t)array.elements * spk_dtype_bytes(array.dtype), &w->memory[i]);
        if (status != SPK_OK)
            return status;
        snprintf(w->names[i], sizeof w->names[i], "%s", operand.name);
        memcpy(w->args.bytes + operand.offset, &w->memory[i], sizeof w->memory[i]);
    }
    for (int i = 0; i < w->op.scalar_count; i++) {
        spk_scalar_info scalar = {SPK_SIZED(spk_scalar_info)};
        const double value = 0.5 + i;
        const spk_status status = CALL(spk_operation_get_scalar, spk_operation_scalar)(w->op.operation, i, &scalar);
        if (status != SPK_OK)
            return status;
        memcpy(w->args.bytes + scalar.offset, &value, sizeof value);
    }
    return SPK_OK;
}

static spk_status begin(work *w)
{
    spk_status status = find_operation(w->problem, &w->op);
    if (status == SPK_OK && (w->op.args_bytes > MOST_BYTES || w->op.operand_count > MOST_OPERANDS))
        status = SPK_ERR_INTERNAL;
    if (status != SPK_OK)
        return status;
    memcpy(w->args.bytes, &w->op.args_bytes, sizeof w->op.args_bytes);
    memcpy(w->args.bytes + sizeof w->op.args_bytes, &w->op.operation, sizeof w->op.operation);
    return make_operands(w);
}

/* The rows of the operation but one: with them left out, no other candidate is looked for that takes what this one does not. */
static void others(spk_operation operation, const char *row, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < spk_kernel_count(); i++) {
        spk_kernel_info kernel = {SPK_SIZED(spk_kernel_info)};
        if (CALL(spk_kernel_get_info, spk_kernel_get)(i, &kernel) == SPK_OK && kernel.operation == operation &&
            strcmp(kernel.device, "cuda") == 0 && strcmp(kernel.name, row) != 0 && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? "," : "", kernel.name);
    }
}

static void write_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++)
        if (*text == '\n')
            fputs("\\n", out);
        else
            fputc(*text, out);
    fputc('"', out);
}

static void write_record(FILE *out, const char *choice, const char *failed)
{
    char digest[33];
    const char *text, *entry;
    record_hash(digest);
    fprintf(out, "{\"choice\": \"%s\", \"problem\": %d, \"launches\": \"%s\", \"programs\": [", choice, problems, digest);
    for (int i = 0; record_program_at(i, &text, &entry); i++) {
        const size_t file = strcspn(text, "\n");
        fprintf(out, "%s[\"%.*s\", \"%s\", ", i > 0 ? ", " : "", (int)file, text, entry);
        write_text(out, text[file] != '\0' ? text + file + 1 : "");
        fputc(']', out);
    }
    fputc(']', out);
    if (failed != NULL)
        fputs(", \"failed\": ", out);
    if (failed != NULL)
        write_text(out, failed);
    if (getenv("SPARSEK_RECORD_TEXT") != NULL) {
        fputs(", \"text\": ", out);
        write_text(out, record_text());
    }
    fputs("}\n", out);
}

/* Values that the problem calls static are given first. Of another problem the call is refused, and nothing is done. */
static spk_status run(work *w, spk_plan *plan)
{
    for (int i = 0; i < w->op.operand_count; i++)
        if (strcmp(w->names[i], "values") == 0) {
            const spk_status status = spk_plan_update_values(plan, w->memory[i], NULL);
            if (status != SPK_OK && status != SPK_ERR_ARGUMENT)
                return status;
        }
    return CALL(spk_plan_run, spk_run)(plan, &w->args, NULL);
}

/* What does not compute the problem is passed over. */
static void record(work *w, const char *choice, FILE *out)
{
    char row[64], excluded[2000];
    spk_plan *plan = NULL;
    snprintf(row, sizeof row, "%.*s", (int)strcspn(choice, " "), choice);
    others(w->op.operation, row, excluded, sizeof excluded);
    record_begin();
    record_programs_begin();
    record_things_begin();
    for (int i = 0; i < w->op.operand_count; i++)
        if (w->memory[i] != NULL)
            record_name(w->memory[i], w->names[i]);
    spk_status status = make_plan(w->context, w->pattern, w->problem, excluded, choice, &plan);
    if (status == SPK_ERR_UNSUPPORTED || status == SPK_ERR_NO_CANDIDATE)
        return;
    if (status == SPK_OK)
        status = run(w, plan);
    write_record(out, choice, status != SPK_OK ? spk_last_error(w->context) : NULL);
    spk_plan_destroy(&plan);
}

spk_status spk_tune(spk_context *context, spk_pattern *pattern, const void *problem, const spk_tune_options *options, spk_report **report)
{
    static work w;
    char choice[200];
    w = (work){.context = context, .pattern = pattern, .problem = problem};
    FILE *choices = fopen(getenv("SPARSEK_RECORD_CHOICES"), "r"), *out = fopen(getenv("SPARSEK_RECORD_OUT"), "a");
    spk_status status = choices != NULL && out != NULL ? begin(&w) : SPK_ERR_IO;
    while (status == SPK_OK && fgets(choice, sizeof choice, choices) != NULL) {
        choice[strcspn(choice, "\n")] = '\0';
        record(&w, choice, out);
    }
    for (int i = 0; i < MOST_OPERANDS; i++)
        spk_memory_release(context, &w.memory[i]);
    if (choices != NULL)
        fclose(choices);
    if (out != NULL && fclose(out) != 0)
        status = SPK_ERR_IO;
    problems++;
    *report = NULL;
    return status;
}
