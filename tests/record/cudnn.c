/* A test double of cuDNN that records: the graph, the engine and the arrays of what it is asked to execute. */
#include "record.h"

enum { BAD = 2000, FINISHED = -1, STREAM = 0 };
enum { HEURISTIC = 4, TENSOR = 17 };                                         /* kinds of objects */
enum { CHOICE_OF = 300, CHOICE_RANK = 301, RESULTS = 202, WORKSPACE = 402 }; /* attributes */
enum { TENSOR_ID = 906, TENSOR_NUMBER = 908, PACK_IDS = 1000, PACK_POINTERS = 1001, PACK_WORKSPACE = 1003 };
enum { ENGINES = 2, WORKSPACE_BYTES = 1 << 20 };

size_t cudnnGetVersion(void)
{
    return 91900;
}
/* No real CUDA has this version. The rows open libraries named after it for cuDNN: links to this file (bench/carry/launches.py). */
size_t cudnnGetCudartVersion(void)
{
    return 99000;
}
const char *cudnnGetErrorString(int status)
{
    return status == BAD ? "CUDNN_STATUS_BAD_PARAM" : "an error";
}
int cudnnCreate(record_thing **handle)
{
    return *handle = record_thing_make("cudnn", 0), 0;
}
int cudnnSetStream(record_thing *handle, void *stream)
{
    const int is_given = stream != NULL;
    return record_thing_set(handle, STREAM, &is_given, sizeof is_given);
}

int cudnnBackendCreateDescriptor(int kind, record_thing **object)
{
    return *object = record_thing_make("object", kind), 0;
}
int cudnnBackendDestroyDescriptor(record_thing *object)
{
    return record_thing_destroy(object);
}
int cudnnBackendSetAttribute(record_thing *object, int attribute, int type, int64_t count, const void *values)
{
    static const size_t bytes[] = {[0] = 8, [1] = 4, [2] = 1, [3] = 8, [4] = 4, [6] = 8, [8] = 4, [14] = 4, [15] = 8, [18] = 4};
    if (type < 0 || type > 18 || bytes[type] == 0 || count < 1 || record_thing_get(object, FINISHED, NULL) != NULL)
        return BAD;
    return record_thing_set(object, attribute, values, (size_t)count * bytes[type]);
}
int cudnnBackendFinalize(record_thing *object)
{
    return record_thing_set(object, FINISHED, "", 0);
}

/* Of a plan its workspace; of a heuristic its choices of an engine. */
int cudnnBackendGetAttribute(record_thing *object, int attribute, int type, int64_t most, int64_t *count, void *values)
{
    if (attribute == WORKSPACE)
        return *(int64_t *)values = WORKSPACE_BYTES, *count = 1, 0;
    if (attribute != RESULTS || record_thing_number(object) != HEURISTIC)
        return BAD;
    *count = ENGINES < most ? ENGINES : most;
    for (int i = 0; i < *count; i++) {
        record_thing *choice = ((record_thing **)values)[i];
        record_thing_set(choice, CHOICE_OF, &object, sizeof object);
        record_thing_set(choice, CHOICE_RANK, &i, sizeof i);
        cudnnBackendFinalize(choice);
    }
    return 0;
}

/* A tensor that a thing refers to, by its id. */
static const record_thing *find_tensor(const record_thing *thing, int64_t id)
{
    static const int refers[] = {401, CHOICE_OF, 201, 801, 751, 752, 753, 758, 1520, 1521, 1522, 1610, 1611};
    const int64_t *own = record_thing_get(thing, TENSOR_ID, NULL);
    if (record_thing_number(thing) == TENSOR)
        return own != NULL && *own == id ? thing : NULL;
    for (size_t i = 0; i < sizeof refers / sizeof refers[0]; i++) {
        size_t bytes = 0;
        record_thing *const *parts = record_thing_get(thing, refers[i], &bytes);
        for (size_t j = 0; j < bytes / sizeof *parts; j++) {
            const record_thing *found = find_tensor(parts[j], id);
            if (found != NULL)
                return found;
        }
    }
    return NULL;
}

/* What the graph takes as a number lies on the host: the record has the number. */
static int record_pack(const record_thing *plan, const record_thing *pack)
{
    size_t ids_bytes = 0, pointers_bytes = 0;
    const int64_t *ids = record_thing_get(pack, PACK_IDS, &ids_bytes);
    const void *const *pointers = record_thing_get(pack, PACK_POINTERS, &pointers_bytes);
    const void *const *workspace = record_thing_get(pack, PACK_WORKSPACE, NULL);
    if (ids == NULL || pointers == NULL || workspace == NULL || ids_bytes != pointers_bytes)
        return BAD;
    for (size_t i = 0; i < ids_bytes / sizeof *ids; i++) {
        const record_thing *tensor = find_tensor(plan, ids[i]);
        if (tensor == NULL)
            return BAD;
        record_line(" %lld =", (long long)ids[i]);
        if (record_thing_get(tensor, TENSOR_NUMBER, NULL) != NULL)
            record_words(pointers[i], 4, NULL);
        else
            record_addresses(1, &pointers[i]);
    }
    record_addresses(1, workspace);
    return 0;
}

int cudnnBackendExecute(record_thing *handle, record_thing *plan, record_thing *pack)
{
    record_line("cudnnBackendExecute");
    record_addresses(2, (const void *const[]){handle, plan});
    const int status = record_pack(plan, pack);
    record_end_line();
    return status;
}
