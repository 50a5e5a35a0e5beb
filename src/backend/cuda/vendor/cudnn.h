/* cuDNN: its functions, handles, graphs of operations, and the attention that is made of them. */
#ifndef SPK_BACKEND_CUDA_VENDOR_CUDNN_H
#define SPK_BACKEND_CUDA_VENDOR_CUDNN_H

#include "backend/cuda/host/frame/rows.h"

/* ------------------------------------------------------------------------------------------------ the library (cudnn.c) */

/* Everything but its handles is an object of one kind or another: made, given attributes, finished, then read only. */
typedef struct spk_dnn_functions {
    size_t (*version)(void);      /* 91002: 9.10.2 */
    size_t (*cuda_version)(void); /* that it is made with: 13000 */
    const char *(*status_name)(int status);
    int (*create)(void **handle);
    int (*set_stream)(void *handle, CUstream stream);
    int (*object_create)(int kind, void **object);
    int (*object_destroy)(void *object);
    int (*object_set)(void *object, int attribute, int type, int64_t count, const void *values);
    int (*object_get)(void *object, int attribute, int type, int64_t most, int64_t *count, void *values);
    int (*object_finish)(void *object);
    int (*execute)(void *handle, void *plan, void *pack);
} spk_dnn_functions;

/* A handle carries the stream of what is executed with it: one is lent to each plan, with a lock for runs of it in several threads. They
 * go back and are kept, as destroying one waits for the device. */
typedef struct spk_dnn_handle {
    void *handle;
    pthread_mutex_t lock;
    struct spk_dnn_handle *next;
} spk_dnn_handle;

/* Inside spk_cuda_enter, like all below. */
spk_status spk_dnn_open(const spk_device *device, const spk_dnn_functions **functions);
spk_status spk_dnn_lend(const spk_device *device, spk_dnn_handle **handle);
void spk_dnn_give_back(const spk_device *device, spk_dnn_handle **handle); /* accepts NULL */

/* What the library returned, as a status; of a call that is named. */
spk_status spk_dnn_try(const spk_dnn_functions *dnn, int result, const char *call);

/* ------------------------------------------------------------------------------------------------ graphs (cudnn_graph.c) */

enum { DNN_FLOAT = 0, DNN_INT32 = 4, DNN_BOOLEAN = 11 }; /* of arrays inside a graph; operands have spk_type.cudnn */

enum { /* pointwise operations */
       DNN_ADD = 0,
       DNN_MULTIPLY = 1,
       DNN_DIVIDE = 6,
       DNN_SUBTRACT = 9,
       DNN_EXP = 13,
       DNN_LOG = 15,
       DNN_GREATER = 302,
       DNN_GREATER_EQUAL = 303,
       DNN_INDEX = 501, /* of an element, along an axis */
       DNN_SELECT = 601 /* where the third is true the first, else the second */
};
enum { DNN_REDUCE_ADD = 0, DNN_REDUCE_MAX = 3 };

typedef struct spk_dnn_shape {
    int64_t sizes[4], steps[4];
} spk_dnn_shape;

enum { SPK_DNN_OBJECTS = 128, SPK_DNN_OPERATIONS = 32, SPK_DNN_ARRAYS = 16 };

/* Operations, in the order in which they are added, and what they read and write. After the first failure, which status keeps, nothing
 * is added. All objects live as long as the graph. */
typedef struct spk_dnn_graph {
    const spk_dnn_functions *dnn;
    spk_status status;
    int object_count, operation_count, array_count;
    void *objects[SPK_DNN_OBJECTS], *operations[SPK_DNN_OPERATIONS];
    int64_t arrays[SPK_DNN_ARRAYS]; /* ids of what a run gives */
    int64_t last_id;                /* of what lives between operations */
} spk_dnn_graph;

/* Tensors: an array of the device and a number of the host, which a run gives under an id above 0; and what no run sees. */
void *spk_dnn_array(spk_dnn_graph *graph, int64_t id, int type, const spk_dnn_shape *shape);
void *spk_dnn_number(spk_dnn_graph *graph, int64_t id, int type);
void *spk_dnn_between(spk_dnn_graph *graph, int type, const spk_dnn_shape *shape);

/* out = mode(x, y, z), computed in `type`; y and z: NULL where the mode has fewer. axis: of DNN_INDEX. */
typedef struct spk_dnn_pointwise {
    int mode, type;
    int64_t axis;
    void *x, *y, *z, *out;
} spk_dnn_pointwise;
void spk_dnn_add_pointwise(spk_dnn_graph *graph, const spk_dnn_pointwise *operation);
void spk_dnn_add_product(spk_dnn_graph *graph, void *a, void *b, void *out);
void spk_dnn_add_reduction(spk_dnn_graph *graph, int mode, void *x, void *out);

/* The first of the library's engines for the graph whose plan can be made. SPK_ERR_UNSUPPORTED: there is none. */
typedef struct spk_dnn_plan {
    void *object;
    int64_t workspace_bytes;
} spk_dnn_plan;
spk_status spk_dnn_plan_make(spk_dnn_graph *graph, void *handle, spk_dnn_plan *plan);
void spk_dnn_release(spk_dnn_graph *graph); /* accepts a zeroed one */

/* A run of a plan: where what the graph calls `arrays` is, in that order, numbers on the host. */
spk_status spk_dnn_execute(const spk_dnn_graph *graph, const spk_dnn_plan *plan, spk_dnn_handle *handle, void *const *at, void *workspace,
                           CUstream stream);

/* ------------------------------------------------------------------------------------------------ attention (cudnn_softmax.c) */

enum {
    DNN_Q = 1,
    DNN_K,
    DNN_V,
    DNN_O,
    DNN_LSE,
    DNN_SCALE,
    DNN_NOTHING_RIGHT,
    DNN_NOTHING_LEFT,
    DNN_QUERIES,
    DNN_KEYS,
    DNN_RIGHT,
    DNN_LEFT
};

/* Numbers of the graph that stay as they are from run to run. */
typedef struct spk_dnn_band {
    int32_t queries, keys, right; /* query i sees keys up to i + right, or to that + keys - queries */
    float left;                   /* and key j where j + left > i */
    float nothing;                /* the score of a key that is not seen */
    bool has_left, has_right, bottom;
} spk_dnn_band;

spk_dnn_band spk_dnn_band_of(const spk_problem *problem, size_t version);

/* Adds O = softmax(scale Q K^T) V, within the band. */
void spk_dnn_add_attention(spk_dnn_graph *graph, const spk_problem *problem, const spk_dnn_band *band);

#endif
