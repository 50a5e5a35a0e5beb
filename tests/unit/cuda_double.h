/* What a test asks of the test double of libcuda (cuda_double.c), and what it may look at. */
#ifndef CUDA_DOUBLE_H
#define CUDA_DOUBLE_H

#include <stddef.h>

typedef struct cuda_double {
    int init, allocate, launch, query, begin_capture, context_push; /* the error that the call gives from now on; 0: none */
    int launches, launches_captured, graph_launches;
    int live_memory, live_streams, live_events, live_graphs, live_contexts;
    int depth;        /* of the contexts that this thread pushed */
    int capture_mode; /* of the thread */
    int capturing;    /* a stream is */
    void *foreign;    /* an address in another device's memory */
    int live_pools;
    int queries;       /* of streams: who waits asks */
    void *held_stream; /* the last copy from the device on it comes when a stream is asked after this became NULL */
    void *released_on; /* the stream of the last memory that went back to a pool */
    void (*run)(const char *entry, void **parameters, unsigned grid, unsigned threads); /* does the work of programs; NULL: nobody does */
    const char *launched; /* the entry of the last function that was launched */
    unsigned grid;        /* and its thread blocks */
} cuda_double;

#endif
