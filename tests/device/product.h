/* What the tests on a device share: the driver through dlopen, and a product whose result is known. */
#ifndef DEVICE_PRODUCT_H
#define DEVICE_PRODUCT_H

#include <stdio.h>
#include <stdlib.h>

#include <sparsek/sparsek.h>

typedef void *handle;

typedef struct driver {
    int (*init)(unsigned flags);
    int (*device_get)(int *device, int ordinal);
    int (*retain)(handle *context, int device);
    int (*push)(handle context);
    int (*stream_create)(handle *stream, unsigned flags);
    int (*stream_synchronize)(handle stream);
    int (*stream_destroy)(handle stream);
    int (*begin_capture)(handle stream, int mode);
    int (*end_capture)(handle stream, handle *graph);
    int (*instantiate)(handle *executable, handle graph, unsigned long long flags);
    int (*launch)(handle executable, handle stream);
    int (*executable_destroy)(handle executable);
    int (*graph_destroy)(handle graph);
    int (*memory_allocate)(unsigned long long *memory, size_t bytes);
    int (*memory_release)(unsigned long long memory);
    int (*memory_info)(size_t *free_bytes, size_t *total_bytes);
    int (*allocate_ordered)(unsigned long long *memory, size_t bytes, handle stream);
    int (*release_ordered)(unsigned long long memory, handle stream);
    int (*device_count)(int *count);
} driver;
extern driver cu;

extern int failures;
void open_driver(void);
double now_s(void);

#define FAIL(...)                                           \
    do {                                                    \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);     \
        fprintf(stderr, __VA_ARGS__);                       \
        fprintf(stderr, "\n");                              \
        __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED); \
    } while (0)
#define DRIVER(call)                             \
    do {                                         \
        int error_ = (call);                     \
        if (error_ != 0) {                       \
            FAIL("%s: error %d", #call, error_); \
            exit(1);                             \
        }                                        \
    } while (0)
#define MUST(context, call)                                                               \
    do {                                                                                  \
        spk_status status_ = (call);                                                      \
        if (status_ != SPK_OK) {                                                          \
            FAIL("%s: %s: %s", #call, spk_status_name(status_), spk_last_error(context)); \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

enum { M = 384, K = 512, N = 96, BLOCK = 64, GRID_M = M / BLOCK, GRID_K = K / BLOCK };

typedef struct product {
    spk_context *context;
    spk_pattern *pattern;
    spk_spmm spmm;
    size_t element;
    char *host_values, *host_b, *values, *b; /* the last two on the device, with room for an element more */
    int64_t nnzb;
    double *expected, *magnitude, tolerance;
} product;

spk_context *new_context(void);
void *device_copy(spk_context *context, const void *host, size_t bytes);

/* Every third block is there, in the first block row all; the last one is empty. */
void make_product(spk_context *context, spk_dtype dtype, product *p);
void release_product(product *p);

/* D in device memory, full of bytes that no result may keep. */
char *new_d(const product *p);
spk_spmm_args args_of(const product *p, char *d);
void check(const product *p, const char *d, const char *what);
void check_same(const product *p, const char *d, const char *again, const char *what); /* the same bits, of our own rows */
spk_plan *new_plan(const product *p, const char *choice);

/* Of every row that computes the product its first choice, and one that splits long rows; `each` gets them. The second: for each dtype. */
void for_each_row(product *p, void (*each)(product *p, const char *choice));
void on_every_row(void (*each)(product *p, const char *choice));

/* deferred.c */
void deferred(void);

/* skipped.c */
void skipped(void);

/* epilogues.c */
void epilogues(void);

/* memory.c */
void allocator(void);
void out_of_memory(void);
void devices(void);

#endif
