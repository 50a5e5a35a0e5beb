/* cuDNN's graphs: tensors and operations as the library's objects, its plan for them, and a run of it. */
#include <string.h>

#include "backend/cuda/vendor/cudnn.h"

enum { /* kinds of objects */
       KIND_POINTWISE = 0,
       KIND_ENGINE_CHOICE = 3,
       KIND_HEURISTIC = 4,
       KIND_PLAN = 5,
       KIND_POINTWISE_OPERATION = 13,
       KIND_GRAPH = 15,
       KIND_PACK = 16,
       KIND_TENSOR = 17,
       KIND_PRODUCT = 18,
       KIND_PRODUCT_OPERATION = 19,
       KIND_REDUCTION = 21,
       KIND_REDUCTION_OPERATION = 22
};
enum { /* types of attributes */
       TYPE_HANDLE = 0,
       TYPE_DATA_TYPE = 1,
       TYPE_BOOLEAN = 2,
       TYPE_INT64 = 3,
       TYPE_FLOAT = 4,
       TYPE_POINTER = 6,
       TYPE_HEURISTIC = 8,
       TYPE_POINTWISE = 14,
       TYPE_OBJECT = 15,
       TYPE_REDUCTION = 18
};
enum { POINTWISE_MODE = 0, POINTWISE_TYPE = 1, POINTWISE_AXIS = 9 };
enum {
    POINTWISE_OPERATION = 750,
    POINTWISE_X = 751,
    POINTWISE_Y = 752,
    POINTWISE_OUT = 753,
    POINTWISE_ALPHA_X = 754,
    POINTWISE_ALPHA_Y = 755,
    POINTWISE_Z = 758
};
enum { HEURISTIC_MODE = 200, HEURISTIC_GRAPH = 201, HEURISTIC_RESULTS = 202, HEURISTIC_A = 3 };
enum { PLAN_HANDLE = 400, PLAN_ENGINE_CHOICE = 401, PLAN_WORKSPACE = 402 };
enum { GRAPH_HANDLE = 800, GRAPH_OPERATIONS = 801 };
enum {
    TENSOR_ALIGNMENT = 900,
    TENSOR_TYPE = 901,
    TENSOR_SIZES = 902,
    TENSOR_STEPS = 903,
    TENSOR_ID = 906,
    TENSOR_BETWEEN = 907,
    TENSOR_NUMBER = 908
};
enum { PACK_IDS = 1000, PACK_POINTERS = 1001, PACK_WORKSPACE = 1003 };
enum { PRODUCT_TYPE = 1500, PRODUCT_A = 1520, PRODUCT_B = 1521, PRODUCT_OUT = 1522, PRODUCT_OPERATION = 1523 };
enum { REDUCTION_MODE = 1600, REDUCTION_TYPE = 1601, REDUCTION_X = 1610, REDUCTION_OUT = 1611, REDUCTION_OPERATION = 1612 };

/* ------------------------------------------------------------------------------------------------ objects */

static spk_status set(const spk_dnn_functions *dnn, void *object, int attribute, int type, int64_t count, const void *values)
{
    return spk_dnn_try(dnn, dnn->object_set(object, attribute, type, count, values), "cudnnBackendSetAttribute");
}

static void *make(spk_dnn_graph *g, int kind)
{
    void *object = NULL;
    if (g->status == SPK_OK && g->object_count == SPK_DNN_OBJECTS)
        g->status = spk_fail(SPK_ERR_INTERNAL, "a graph for cuDNN of more than %d objects", SPK_DNN_OBJECTS);
    if (g->status == SPK_OK)
        g->status = spk_dnn_try(g->dnn, g->dnn->object_create(kind, &object), "cudnnBackendCreateDescriptor");
    if (g->status == SPK_OK)
        g->objects[g->object_count++] = object;
    return object;
}

static void give(spk_dnn_graph *g, void *object, int attribute, int type, int64_t count, const void *values)
{
    if (g->status == SPK_OK)
        g->status = set(g->dnn, object, attribute, type, count, values);
}

static void give_object(spk_dnn_graph *g, void *object, int attribute, void *value)
{
    give(g, object, attribute, TYPE_OBJECT, 1, &value);
}

static void finish(spk_dnn_graph *g, void *object)
{
    if (g->status == SPK_OK)
        g->status = spk_dnn_try(g->dnn, g->dnn->object_finish(object), "cudnnBackendFinalize");
}

void spk_dnn_release(spk_dnn_graph *graph)
{
    while (graph->object_count > 0) /* what is made of others goes first */
        graph->dnn->object_destroy(graph->objects[--graph->object_count]);
}

/* ------------------------------------------------------------------------------------------------ tensors */

/* flag: TENSOR_BETWEEN, TENSOR_NUMBER, or none. */
static void *tensor(spk_dnn_graph *g, int64_t id, int type, const spk_dnn_shape *shape, int flag)
{
    const int64_t alignment = 16;
    const bool yes = true;
    void *object = make(g, KIND_TENSOR);
    give(g, object, TENSOR_TYPE, TYPE_DATA_TYPE, 1, &type);
    give(g, object, TENSOR_SIZES, TYPE_INT64, 4, shape->sizes);
    give(g, object, TENSOR_STEPS, TYPE_INT64, 4, shape->steps);
    give(g, object, TENSOR_ID, TYPE_INT64, 1, &id);
    give(g, object, TENSOR_ALIGNMENT, TYPE_INT64, 1, &alignment);
    if (flag != 0)
        give(g, object, flag, TYPE_BOOLEAN, 1, &yes);
    finish(g, object);
    return object;
}

static void *given(spk_dnn_graph *g, int64_t id, int type, const spk_dnn_shape *shape, int flag)
{
    if (g->status == SPK_OK && g->array_count == SPK_DNN_ARRAYS)
        g->status = spk_fail(SPK_ERR_INTERNAL, "a graph for cuDNN of more than %d arrays", SPK_DNN_ARRAYS);
    if (g->status != SPK_OK)
        return NULL;
    g->arrays[g->array_count++] = id;
    return tensor(g, id, type, shape, flag);
}

void *spk_dnn_array(spk_dnn_graph *graph, int64_t id, int type, const spk_dnn_shape *shape)
{
    return given(graph, id, type, shape, 0);
}

void *spk_dnn_number(spk_dnn_graph *graph, int64_t id, int type)
{
    const spk_dnn_shape one = {{1, 1, 1, 1}, {1, 1, 1, 1}};
    return given(graph, id, type, &one, TENSOR_NUMBER);
}

void *spk_dnn_between(spk_dnn_graph *graph, int type, const spk_dnn_shape *shape)
{
    enum { ABOVE_ARRAYS = 1000 };
    return tensor(graph, ABOVE_ARRAYS + graph->last_id++, type, shape, TENSOR_BETWEEN);
}

/* ------------------------------------------------------------------------------------------------ operations */

static void add(spk_dnn_graph *g, void *operation)
{
    finish(g, operation);
    if (g->status == SPK_OK && g->operation_count == SPK_DNN_OPERATIONS)
        g->status = spk_fail(SPK_ERR_INTERNAL, "a graph for cuDNN of more than %d operations", SPK_DNN_OPERATIONS);
    if (g->status == SPK_OK)
        g->operations[g->operation_count++] = operation;
}

void spk_dnn_add_pointwise(spk_dnn_graph *graph, const spk_dnn_pointwise *operation)
{
    const float one = 1;
    void *what = make(graph, KIND_POINTWISE);
    give(graph, what, POINTWISE_MODE, TYPE_POINTWISE, 1, &operation->mode);
    give(graph, what, POINTWISE_TYPE, TYPE_DATA_TYPE, 1, &operation->type);
    if (operation->mode == DNN_INDEX)
        give(graph, what, POINTWISE_AXIS, TYPE_INT64, 1, &operation->axis);
    finish(graph, what);
    void *object = make(graph, KIND_POINTWISE_OPERATION);
    give_object(graph, object, POINTWISE_OPERATION, what);
    give_object(graph, object, POINTWISE_X, operation->x);
    give_object(graph, object, POINTWISE_OUT, operation->out);
    if (operation->y != NULL)
        give_object(graph, object, POINTWISE_Y, operation->y);
    if (operation->z != NULL)
        give_object(graph, object, POINTWISE_Z, operation->z);
    give(graph, object, POINTWISE_ALPHA_X, TYPE_FLOAT, 1, &one);
    give(graph, object, POINTWISE_ALPHA_Y, TYPE_FLOAT, 1, &one);
    add(graph, object);
}

void spk_dnn_add_product(spk_dnn_graph *graph, void *a, void *b, void *out)
{
    const int type = DNN_FLOAT;
    void *what = make(graph, KIND_PRODUCT);
    give(graph, what, PRODUCT_TYPE, TYPE_DATA_TYPE, 1, &type);
    finish(graph, what);
    void *object = make(graph, KIND_PRODUCT_OPERATION);
    give_object(graph, object, PRODUCT_A, a);
    give_object(graph, object, PRODUCT_B, b);
    give_object(graph, object, PRODUCT_OUT, out);
    give_object(graph, object, PRODUCT_OPERATION, what);
    add(graph, object);
}

void spk_dnn_add_reduction(spk_dnn_graph *graph, int mode, void *x, void *out)
{
    const int type = DNN_FLOAT;
    void *what = make(graph, KIND_REDUCTION);
    give(graph, what, REDUCTION_TYPE, TYPE_DATA_TYPE, 1, &type);
    give(graph, what, REDUCTION_MODE, TYPE_REDUCTION, 1, &mode);
    finish(graph, what);
    void *object = make(graph, KIND_REDUCTION_OPERATION);
    give_object(graph, object, REDUCTION_OPERATION, what);
    give_object(graph, object, REDUCTION_X, x);
    give_object(graph, object, REDUCTION_OUT, out);
    add(graph, object);
}

/* ------------------------------------------------------------------------------------------------ plans */

enum { MOST_CHOICES = 8 };

static spk_status no_engine(const spk_dnn_functions *dnn, int result)
{
    const size_t version = dnn->version();
    const char *name = result != 0 ? dnn->status_name(result) : NULL;
    return spk_fail(SPK_ERR_UNSUPPORTED, "cuDNN %zu.%zu.%zu has no engine for this attention%s%s", version / 10000, version / 100 % 100,
                    version % 100, name != NULL ? ": " : "", name != NULL ? name : "");
}

/* The library's choices of an engine, the best first. */
static int choose(spk_dnn_graph *g, void *whole, void **choices)
{
    const int mode = HEURISTIC_A;
    int64_t count = 0;
    void *heuristic = make(g, KIND_HEURISTIC);
    give_object(g, heuristic, HEURISTIC_GRAPH, whole);
    give(g, heuristic, HEURISTIC_MODE, TYPE_HEURISTIC, 1, &mode);
    int result = g->status == SPK_OK ? g->dnn->object_finish(heuristic) : 0;
    for (int i = 0; i < MOST_CHOICES; i++)
        choices[i] = make(g, KIND_ENGINE_CHOICE);
    if (g->status == SPK_OK && result == 0)
        result = g->dnn->object_get(heuristic, HEURISTIC_RESULTS, TYPE_OBJECT, MOST_CHOICES, &count, choices);
    if (g->status == SPK_OK && (result != 0 || count < 1))
        g->status = no_engine(g->dnn, result);
    return g->status == SPK_OK ? (int)(count < MOST_CHOICES ? count : MOST_CHOICES) : 0;
}

/* Returns the library's status of making it: 0 where it is made. */
static int make_plan(spk_dnn_graph *g, void *handle, void *choice, spk_dnn_plan *plan)
{
    int64_t count = 0;
    plan->object = make(g, KIND_PLAN);
    give(g, plan->object, PLAN_HANDLE, TYPE_HANDLE, 1, &handle);
    give_object(g, plan->object, PLAN_ENGINE_CHOICE, choice);
    if (g->status != SPK_OK)
        return 0;
    const int result = g->dnn->object_finish(plan->object);
    return result != 0 ? result : g->dnn->object_get(plan->object, PLAN_WORKSPACE, TYPE_INT64, 1, &count, &plan->workspace_bytes);
}

spk_status spk_dnn_plan_make(spk_dnn_graph *graph, void *handle, spk_dnn_plan *plan)
{
    void *choices[MOST_CHOICES], *whole = make(graph, KIND_GRAPH);
    give(graph, whole, GRAPH_HANDLE, TYPE_HANDLE, 1, &handle);
    give(graph, whole, GRAPH_OPERATIONS, TYPE_OBJECT, graph->operation_count, graph->operations);
    if (graph->status == SPK_OK) {
        const int result = graph->dnn->object_finish(whole);
        graph->status = result != 0 ? no_engine(graph->dnn, result) : SPK_OK;
    }
    const int count = choose(graph, whole, choices);
    int result = 0;
    for (int i = 0; i < count && graph->status == SPK_OK; i++) {
        spk_dnn_plan made = {0};
        result = make_plan(graph, handle, choices[i], &made);
        if (graph->status == SPK_OK && result == 0) {
            *plan = made;
            return SPK_OK;
        }
    }
    return graph->status != SPK_OK ? graph->status : no_engine(graph->dnn, result);
}

/* ------------------------------------------------------------------------------------------------ a run */

static spk_status execute(const spk_dnn_graph *g, const spk_dnn_plan *plan, spk_dnn_handle *handle, void *pack, CUstream stream)
{
    pthread_mutex_lock(&handle->lock);
    spk_status status = spk_dnn_try(g->dnn, g->dnn->set_stream(handle->handle, stream), "cudnnSetStream");
    if (status == SPK_OK)
        status = spk_dnn_try(g->dnn, g->dnn->execute(handle->handle, plan->object, pack), "cudnnBackendExecute");
    pthread_mutex_unlock(&handle->lock);
    return status;
}

spk_status spk_dnn_execute(const spk_dnn_graph *graph, const spk_dnn_plan *plan, spk_dnn_handle *handle, void *const *at, void *workspace,
                           CUstream stream)
{
    const spk_dnn_functions *dnn = graph->dnn;
    void *pack = NULL;
    spk_status status;
    SPK_TRY(spk_dnn_try(dnn, dnn->object_create(KIND_PACK, &pack), "cudnnBackendCreateDescriptor"));
    SPK_GOTO(set(dnn, pack, PACK_WORKSPACE, TYPE_POINTER, 1, &workspace));
    SPK_GOTO(set(dnn, pack, PACK_POINTERS, TYPE_POINTER, graph->array_count, at));
    SPK_GOTO(set(dnn, pack, PACK_IDS, TYPE_INT64, graph->array_count, graph->arrays));
    SPK_GOTO(spk_dnn_try(dnn, dnn->object_finish(pack), "cudnnBackendFinalize"));
    status = execute(graph, plan, handle, pack, stream);
done:
    dnn->object_destroy(pack);
    return status;
}
