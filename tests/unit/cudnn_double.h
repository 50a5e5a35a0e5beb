/* What a test asks of the test double of libcudnn (cudnn_double.c), and what it may look at. */
#ifndef CUDNN_DOUBLE_H
#define CUDNN_DOUBLE_H

#include <stddef.h>
#include <stdint.h>

typedef struct cudnn_double {
    size_t version;
    int engines, broken; /* that it proposes, and how many of the first of them make no plan */
    int64_t workspace;
    int fails_at;         /* its so many'th call of an object fails; 0: none */
    int live, handles;    /* objects, handles */
    int runs, operations; /* and of the last run: operations of the graph, */
    void *stream, *workspace_at;
} cudnn_double;

#endif
