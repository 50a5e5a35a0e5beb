/* The tuning key: the class of a problem on a device, as text. It holds everything that changes which candidate is fastest, and
 * nothing that changes from one pattern of a family to the next. Exact part, "|", then what the nearest class may differ in. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tune/choose/tune.h"

/* Raised whenever the meaning of a field changes: old classes are then simply unknown. */
enum { KEY_VERSION = 1, MAX_DEVICE_TEXT = 448, MAX_ALIGNMENT = 16 };

/* The largest power of two up to 16 elements that divides every leading dimension given: what vector and TMA loads ask about. */
static int alignment_class(int64_t all_bits)
{
    int class = 1;
    while (class < MAX_ALIGNMENT && all_bits % (2 * class) == 0)
        class *= 2;
    return class;
}

static int64_t d_side_bits(const spk_problem *problem)
{
    const spk_epilogue *e = &problem->epilogue;
    return problem->ldd | problem->stride_d | (e->use_c ? problem->ldc | problem->stride_c : 0) |
           (e->residual != SPK_RESIDUAL_NONE ? problem->ldr | problem->stride_r : 0) |
           (e->keep_preact ? problem->ldp | problem->stride_p : 0);
}

/* Exact up to 8, then four classes an octave with the powers of two in the middle of theirs; a class is named by its middle. */
static int64_t class_of_n(int64_t n)
{
    if (n <= 8)
        return n;
    return llround(exp2(round(4 * log2((double)n)) / 4));
}

/* Two classes an octave. */
static int64_t class_of_nnzb(int64_t nnzb)
{
    if (nnzb <= 1)
        return nnzb;
    return llround(exp2(round(2 * log2((double)nnzb)) / 2));
}

static int class_of_spread(double spread)
{
    static const double limits[] = {0.25, 0.5, 1, 2};
    int below = 0;
    while (below < 4 && spread >= limits[below])
        below++;
    return below;
}

/* How much more two neighbouring rows share than two random rows of this density would. The raw overlap of a random pattern lies at
 * its density and strays by chance, so that fresh patterns of one family would fall into different classes. */
static int class_of_overlap(double overlap, double density)
{
    double excess = density < 1 ? (overlap - density) / (1 - density) : 0;
    return excess < 0.5 ? 0 : excess < 0.75 ? 1 : 2;
}

static char major(spk_layout layout)
{
    return layout == SPK_ROW_MAJOR ? 'r' : 'c';
}

/* The device's own text, fit for a field: printable, no separator of ours, and folded to a hash where it is long. */
static spk_status device_text(spk_device *device, char out[MAX_DEVICE_TEXT])
{
    char text[4096] = "";
    SPK_TRY(device->backend->key_text(device, text, sizeof text));
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++)
        if (text[i] <= ' ' || text[i] > '~' || text[i] == '|')
            text[i] = '_';
    if (length >= MAX_DEVICE_TEXT)
        snprintf(text + MAX_DEVICE_TEXT - 32, 32, "...#%016" PRIx64, spk_hash_text(SPK_HASH_START, text));
    memcpy(out, text, MAX_DEVICE_TEXT);
    return SPK_OK;
}

/* The fields that only SDDMM, batches and indices on the device have: of the exact part, and of the other. A batch of values differs from a
 * batch on one A. */
static void more_fields(const spk_problem *problem, char exact[64], char near[32])
{
    const bool sampled = problem->operation == SPK_SDDMM;
    int used = 0;
    exact[0] = near[0] = '\0';
    if (problem->pattern->direct) /* fewer candidates */
        used = snprintf(exact, 64, ";ix=device");
    if (sampled)
        used += snprintf(exact + used, (size_t)(64 - used), ";la=%c;aa=%d", major(problem->layout_a),
                         alignment_class(problem->lda | problem->stride_a));
    if (problem->batch == 1)
        return;
    snprintf(exact + used, (size_t)(64 - used), ";sa=%d;sb=%d", problem->stride_a == 0 ? 0 : alignment_class(problem->stride_a),
             problem->stride_b != 0);
    snprintf(near, 32, ";items=%" PRId64, class_of_n(problem->batch));
}

spk_status spk_key_make(const spk_problem *problem, spk_device *device, char *buffer, size_t size)
{
    const spk_pattern *pattern = problem->pattern;
    char epilogue[96], where[MAX_DEVICE_TEXT], key[SPK_MAX_KEY_TEXT], exact[64], near[32];
    spk_epilogue_text(&problem->epilogue, epilogue, sizeof epilogue);
    SPK_TRY(device_text(device, where));
    more_fields(problem, exact, near);
    const double spread = problem->trans_a == SPK_TRANS ? pattern->features.col_spread : pattern->features.row_spread;
    /* The size that is not the pattern's is free: it has classes. */
    const int64_t n = problem->operation == SPK_SDDMM ? problem->n : class_of_n(problem->n);
    const int64_t k = problem->operation == SPK_SDDMM ? class_of_n(problem->k) : problem->k;
    /* Patterns whose indices stay on the device are new ones at each step, often of other sizes. */
    const bool fresh = pattern->direct;
    int length = snprintf(
        key, sizeof key,
        "v=%d;op=%s;a=%s;b=%s;d=%s;acc=%s;t=%c;lv=%c;lb=%c;ld=%c;ab=%d;ad=%d;ep=%s;batch=%d;finite=%d;static=%d;cache=%s%s;dev=%s"
        "|m=%" PRId64 ";k=%" PRId64 ";br=%d;bc=%d;nz=%" PRId64 ";n=%" PRId64 ";rs=%d;ov=%d%s",
        KEY_VERSION, spk_operation_name(problem->operation), spk_dtype_name(problem->dtype_a), spk_dtype_name(problem->dtype_b),
        spk_dtype_name(problem->dtype_d), spk_dtype_name(problem->compute), problem->trans_a == SPK_TRANS ? 't' : 'n',
        major(problem->block_layout), major(problem->layout_b), major(problem->layout_d), alignment_class(problem->ldb | problem->stride_b),
        alignment_class(d_side_bits(problem)), epilogue, problem->batch > 1 ? 2 : 1, problem->assume_finite, problem->static_values,
        problem->cache == SPK_WARM ? "warm" : "cold", exact, where, fresh ? class_of_n(problem->m) : problem->m, fresh ? class_of_n(k) : k,
        pattern->block_rows, pattern->block_cols, class_of_nnzb(pattern->nnzb), n, class_of_spread(spread),
        class_of_overlap(pattern->features.row_overlap, pattern->density), near);
    if (length < 0 || (size_t)length >= sizeof key || (size_t)length >= size)
        return spk_fail(SPK_ERR_INTERNAL, "the tuning key needs %d bytes, the limit is %zu", length, size < sizeof key ? size : sizeof key);
    memcpy(buffer, key, (size_t)length + 1);
    return SPK_OK;
}
