/* A test double of libcudnn for graphs of products, pointwise operations and reductions: it is as strict about the order of calls as the
 * library, and computes the graph plainly, where libcuda's double has its memory. */
#include "cudnn_double.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "type/half.h"

cudnn_double cudnn_double_state = {.version = 91002, .engines = 2, .workspace = 512};
#define STATE (&cudnn_double_state)

enum { BAD = 2000, NOT_FINISHED = 2004, NOT_SUPPORTED = 3000, NO_MEMORY = 4003, MOST = 24, FULL = 1 << 16 };
enum { CHOICE = 3, HEURISTIC = 4, PLAN = 5, POINTWISE = 13, GRAPH = 15, PACK = 16, TENSOR = 17, PRODUCT = 19, REDUCTION = 22 };
enum { OBJECT = 15 };
enum { FLOAT = 0, HALF = 2, INT32 = 4, BFLOAT16 = 9, BOOLEAN = 11 };

typedef struct attribute {
    int id, type;
    int64_t count;
    void *values;
} attribute;
typedef struct object {
    int kind, finished, count, rank; /* rank: of a choice */
    attribute attributes[MOST];
    double *numbers; /* of a tensor, in a run */
} object;

static int calls;

static int fails(void)
{
    return STATE->fails_at != 0 && ++calls == STATE->fails_at ? (calls = STATE->fails_at = 0, 1) : 0;
}

size_t cudnnGetVersion(void)
{
    return STATE->version;
}
size_t cudnnGetCudartVersion(void)
{
    return 99000;
}
const char *cudnnGetErrorString(int status)
{
    return status == NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED" : status == BAD ? "CUDNN_STATUS_BAD_PARAM" : "CUDNN_STATUS_OTHER";
}
int cudnnCreate(void **handle)
{
    return *handle = calloc(1, 1), STATE->handles++, 0;
}
int cudnnSetStream(void *handle, void *stream)
{
    return STATE->stream = stream, handle == NULL ? BAD : 0;
}
int cudnnBackendCreateDescriptor(int kind, object **made)
{
    if (fails())
        return NO_MEMORY;
    *made = calloc(1, sizeof **made);
    (*made)->kind = kind;
    return STATE->live++, 0;
}
int cudnnBackendDestroyDescriptor(object *o)
{
    for (int i = 0; i < o->count; i++)
        free(o->attributes[i].values);
    free(o);
    return STATE->live--, 0;
}

static const void *get(const object *o, int id)
{
    for (int i = 0; i < o->count; i++)
        if (o->attributes[i].id == id)
            return o->attributes[i].values;
    return NULL;
}
static object *part(const object *o, int id)
{
    object *const *found = get(o, id);
    return found != NULL ? *found : NULL;
}
static int number(const object *o, int id)
{
    return *(const int *)get(o, id);
}
static int64_t count_of(const object *o, int id)
{
    for (int i = 0; i < o->count; i++)
        if (o->attributes[i].id == id)
            return o->attributes[i].count;
    return 0;
}
static int flag(const object *o, int id)
{
    const char *set = get(o, id);
    return set != NULL && *set;
}

int cudnnBackendSetAttribute(object *o, int id, int type, int64_t count, const void *values)
{
    static const int bytes[] = {[0] = 8, [1] = 4, [2] = 1, [3] = 8, [4] = 4, [6] = 8, [8] = 4, [14] = 4, [15] = 8, [18] = 4};
    if (fails())
        return NO_MEMORY;
    if (o->finished || count < 1 || type < 0 || type > 18 || bytes[type] == 0 || o->count == MOST)
        return BAD;
    for (int64_t i = 0; type == OBJECT && i < count; i++)
        if (((object *const *)values)[i] == NULL || !((object *const *)values)[i]->finished)
            return NOT_FINISHED;
    attribute *a = &o->attributes[o->count++];
    *a = (attribute){id, type, count, malloc((size_t)count * bytes[type])};
    memcpy(a->values, values, (size_t)count * bytes[type]);
    return 0;
}

/* What an object of each kind must have been given. */
static int is_whole(const object *o)
{
    static const int wanted[][8] = {[0] = {0, 1, -1},
                                    [18] = {1500, -1},
                                    [21] = {1600, 1601, -1},
                                    [PLAN] = {401, -1},
                                    [HEURISTIC] = {200, 201, -1},
                                    [POINTWISE] = {750, 751, 753, 754, 755, -1},
                                    [GRAPH] = {800, 801, -1},
                                    [PACK] = {1000, 1001, 1003, -1},
                                    [TENSOR] = {900, 901, 902, 903, 906, -1},
                                    [PRODUCT] = {1520, 1521, 1522, 1523, -1},
                                    [REDUCTION] = {1610, 1611, 1612, -1}};
    for (const int *id = wanted[o->kind]; *id >= 0; id++)
        if (get(o, *id) == NULL)
            return 0;
    return o->kind != PACK || count_of(o, 1000) == count_of(o, 1001);
}

int cudnnBackendFinalize(object *o)
{
    if (fails())
        return NO_MEMORY;
    if (o->finished || !is_whole(o))
        return BAD;
    if (o->kind == PLAN && part(o, 401)->rank < STATE->broken)
        return NOT_SUPPORTED;
    return o->finished = 1, 0;
}

/* The library has engines for the softmax that makes an LSE alone, whether a run sees that or not. */
static int recognises(const object *graph)
{
    for (int64_t i = 0; i < count_of(graph, 801); i++) {
        const object *operation = ((object *const *)get(graph, 801))[i];
        if (operation->kind == POINTWISE && number(part(operation, 750), 0) == 15)
            return 1;
    }
    return 0;
}

int cudnnBackendGetAttribute(object *o, int id, int type, int64_t most, int64_t *count, void *values)
{
    if (!o->finished)
        return NOT_FINISHED;
    if (id == 402)
        return *(int64_t *)values = STATE->workspace, *count = 1, 0;
    const int engines = recognises(part(o, 201)) ? STATE->engines : 0;
    for (int i = 0; i < engines && i < most; i++) {
        object *choice = ((object **)values)[i], *graph = part(o, 201);
        cudnnBackendSetAttribute(choice, 300, OBJECT, 1, &graph);
        choice->rank = i;
        choice->finished = 1;
    }
    return *count = engines, 0;
}

/* ------------------------------------------------------------------------------------------------ a run */

static const int64_t *sizes(const object *t)
{
    return get(t, 902);
}
static int64_t elements(const object *t)
{
    return sizes(t)[0] * sizes(t)[1] * sizes(t)[2] * sizes(t)[3];
}

static double rounded(int type, double x)
{
    return type == HALF       ? spk_f16_to_float(spk_f16_from_float((float)x))
           : type == BFLOAT16 ? spk_float_of_bits((uint32_t)spk_bf16_from_float((float)x) << 16)
           : type == FLOAT    ? (float)x
                              : x;
}
static double read(int type, const void *at, int64_t i)
{
    return type == FLOAT   ? ((const float *)at)[i]
           : type == INT32 ? ((const int32_t *)at)[i]
           : type == HALF  ? spk_f16_to_float(((const uint16_t *)at)[i])
                           : spk_float_of_bits((uint32_t)((const uint16_t *)at)[i] << 16);
}
static void write(int type, void *at, int64_t i, double x)
{
    if (type == FLOAT)
        ((float *)at)[i] = (float)x;
    else
        ((uint16_t *)at)[i] = type == HALF ? spk_f16_from_float((float)x) : spk_bf16_from_float((float)x);
}

/* Of element i of the whole: its place in a tensor that may be shorter in some axes (heads: of which some share one). */
static int64_t spread(const object *t, const int64_t *whole, int64_t i)
{
    int64_t place[4], at = 0;
    for (int axis = 3; axis >= 0; i /= whole[axis--])
        place[axis] = i % whole[axis];
    for (int axis = 0; axis < 4; axis++)
        at = at * sizes(t)[axis] + place[axis] / (whole[axis] / sizes(t)[axis]);
    return at;
}
static int64_t in_memory(const object *t, int64_t i)
{
    const int64_t *steps = get(t, 903);
    int64_t at = 0;
    for (int axis = 3; axis >= 0; i /= sizes(t)[axis--])
        at += i % sizes(t)[axis] * steps[axis];
    return at;
}

static void *pointer(const object *pack, const object *t)
{
    for (int64_t i = 0; i < count_of(pack, 1000); i++)
        if (((const int64_t *)get(pack, 1000))[i] == *(const int64_t *)get(t, 906))
            return ((void *const *)get(pack, 1001))[i];
    return NULL;
}

static double *numbers(object *t, const object *pack)
{
    if (t->numbers == NULL) {
        const char *at = pointer(pack, t);
        t->numbers = calloc((size_t)elements(t) + 1, sizeof(double));
        if (at == NULL || flag(t, 907) || (!flag(t, 908) && ((uintptr_t)at & 15) != 0))
            abort(); /* nobody made it */
        for (int64_t i = 0; i < elements(t); i++)
            t->numbers[i] = read(number(t, 901), at, in_memory(t, i));
    }
    return t->numbers;
}
static double *blank(object *t)
{
    return t->numbers = calloc((size_t)elements(t) + 1, sizeof(double));
}
static void settle(object *t, const object *pack)
{
    for (int64_t i = 0; i < elements(t); i++)
        t->numbers[i] = rounded(number(t, 901), t->numbers[i]);
    for (int64_t i = 0; !flag(t, 907) && i < elements(t); i++)
        write(number(t, 901), pointer(pack, t), in_memory(t, i), t->numbers[i]);
}

static void multiply(const object *o, const object *pack)
{
    object *a = part(o, 1520), *b = part(o, 1521), *out = part(o, 1522);
    const double *x = numbers(a, pack), *y = numbers(b, pack);
    const int64_t rows = sizes(a)[2], depth = sizes(a)[3], cols = sizes(b)[3], sharing = sizes(a)[1] / sizes(b)[1];
    double *z = blank(out);
    for (int64_t i = 0; i < elements(out); i++) {
        const int64_t row = i / cols, head = row / rows, other = head / sizes(a)[1] * sizes(b)[1] + head % sizes(a)[1] / sharing;
        for (int64_t d = 0; d < depth; d++)
            z[i] += x[row * depth + d] * y[(other * depth + d) * cols + i % cols];
    }
    settle(out, pack);
}

static void reduce(const object *o, const object *pack)
{
    object *from = part(o, 1610), *out = part(o, 1611);
    const double *x = numbers(from, pack);
    const int64_t length = sizes(from)[3];
    double *y = blank(out);
    for (int64_t i = 0; i < elements(out); i++) {
        const int largest = number(part(o, 1612), 1600) == 3;
        y[i] = largest ? -INFINITY : 0;
        for (int64_t j = 0; j < length; j++)
            y[i] = largest ? fmax(y[i], x[i * length + j]) : y[i] + x[i * length + j];
    }
    settle(out, pack);
}

static double apply(int mode, double x, double y, double z)
{
    switch (mode) {
    case 0:
        return x + y;
    case 1:
        return x * y;
    case 6:
        return x / y;
    case 9:
        return x - y;
    case 13:
        return exp(x);
    case 15:
        return log(x);
    case 302:
        return x > y;
    case 303:
        return x >= y;
    case 601:
        return z != 0 ? x : y;
    default:
        abort();
    }
}

static void pointwise(const object *o, const object *pack)
{
    object *a = part(o, 751), *b = part(o, 752), *c = part(o, 758), *out = part(o, 753), *what = part(o, 750);
    const int64_t *all = sizes(out), *axis = get(what, 9);
    const double *x = numbers(a, pack), *y = b ? numbers(b, pack) : NULL, *z = c ? numbers(c, pack) : NULL;
    double *to = blank(out);
    for (int64_t i = 0; i < elements(out); i++)
        if (number(what, 0) == 501)
            to[i] = *axis == 3 ? i % all[3] : i / all[3] % all[2];
        else
            to[i] = apply(number(what, 0), x[spread(a, all, i)], y ? y[spread(b, all, i)] : 0, z ? z[spread(c, all, i)] : 0);
    settle(out, pack);
}

static void forget(object *o)
{
    for (int i = 0; i < o->count; i++)
        for (int64_t j = 0; o->attributes[i].type == OBJECT && j < o->attributes[i].count; j++) {
            object *inner = ((object **)o->attributes[i].values)[j];
            if (inner->kind == TENSOR) {
                free(inner->numbers);
                inner->numbers = NULL;
            }
        }
}

int cudnnBackendExecute(void *handle, object *plan, object *pack)
{
    if (handle == NULL || plan->kind != PLAN || !plan->finished || pack->kind != PACK || !pack->finished)
        return BAD;
    const object *graph = part(part(plan, 401), 300);
    object *const *all = get(graph, 801);
    STATE->runs++;
    STATE->operations = (int)count_of(graph, 801);
    STATE->workspace_at = *(void *const *)get(pack, 1003);
    for (int i = 0; i < STATE->operations; i++)
        (all[i]->kind == PRODUCT ? multiply : all[i]->kind == REDUCTION ? reduce : pointwise)(all[i], pack);
    for (int i = 0; i < STATE->operations; i++)
        forget(all[i]);
    return 0;
}
