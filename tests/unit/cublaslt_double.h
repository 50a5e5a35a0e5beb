/* What a test asks of the test double of libcublasLt (cublaslt_double.c), and what it may look at. */
#ifndef CUBLASLT_DOUBLE_H
#define CUBLASLT_DOUBLE_H

#include <stddef.h>
#include <stdint.h>

typedef struct cublaslt_double {
    int recommended;       /* algorithms that it recommends for arrays at 16 bytes; one less for others */
    int knows_epilogues;   /* 0: it recommends nothing where there is one */
    size_t workspace;      /* that the last of them asks for */
    int live;              /* descriptions, layouts and preferences */
    int products;          /* that it computed, and of the last of them: */
    int rank, was_aligned; /* the algorithm */
    uint32_t epilogue;
    void *d;
} cublaslt_double;

#endif
