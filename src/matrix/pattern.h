/* The pattern: where the stored blocks are. Immutable and shared (reference-counted); the transposed index is derived on demand. */
#ifndef SPK_MATRIX_PATTERN_H
#define SPK_MATRIX_PATTERN_H

#include <stdbool.h>

#include "base/mem.h"

/* Quantised in the tuning key; each in [0, 1] but row_spread, which has no upper limit. */
typedef struct spk_features {
    double row_spread, row_overlap, bandwidth;
    double col_spread; /* standard deviation of blocks per block column over their mean: the row spread of op T */
    int64_t empty_rows, longest_row;
} spk_features;

/* The compressed index of one orientation. Kernels see 64-bit offsets and 32-bit block columns, whatever the caller gave. */
typedef struct spk_index {
    int64_t grid_rows, grid_cols;
    int64_t *offsets;   /* grid_rows + 1 */
    int32_t *columns;   /* nnzb */
    int64_t *positions; /* where block p of this order lies in values; NULL: block p */
} spk_index;

/* Where indices lie that only a device has, until somebody wants them on the host (remote.c). The backend fills it. */
typedef struct spk_pattern_remote {
    void *state;
    spk_status (*check)(void *state); /* fails where the device has found the indices wrong by now; waits for nothing */
    spk_status (*fetch)(void *state, int32_t *offsets, int32_t *columns); /* waits for the check, and copies */
    void (*release)(void *state);
} spk_pattern_remote;

struct spk_pattern {
    spk_mem mem;
    uint64_t id; /* unique in the process */
    void *owner; /* the context, whose plan cache may hold plans on it; set and used by src/api only */
    int64_t rows, cols;
    int block_rows, block_cols;
    int64_t nnzb;
    double density;
    spk_dtype dtype; /* of the matrix that it was made of; SPK_DTYPE_DEFAULT: of none */
    int unused;
    spk_index index;
    spk_features features;     /* of remote indices: what the caller said */
    bool device_only;          /* kernels must read the indices in device memory: a plan cannot count on having them on the host */
    spk_pattern_remote remote; /* state NULL: the indices were on the host from the beginning */
    /* internal: reference count, lock and the lazily made transposed index */
    int references;
    struct spk_pattern_lazy *lazy;
    struct spk_pattern_fetched *fetched; /* with remote indices */
};

/* Validates (message names the argument, the index, the value, the limit), copies, inspects. */
spk_status spk_pattern_make(const spk_mem *mem, const spk_bsr_indices *indices, spk_pattern **pattern);

/* A pattern of remote indices, whose shape is already checked: offsets and columns are NULL until they are fetched. It takes `remote` over,
 * which stays the caller's on failure. */
spk_status spk_pattern_make_remote(const spk_mem *mem, const spk_bsr_indices *indices, const spk_pattern_remote *remote,
                                   spk_pattern **pattern);
/* What is known against remote indices by now. Waits for nothing. */
spk_status spk_pattern_check(const spk_pattern *pattern);
/* Remote indices come to the host, at the first call (thread safe), and are measured: features says what the caller said, but for the
 * longest row. For who reads offsets and columns on the host; the transposed index does it by itself. */
spk_status spk_pattern_fetch(const spk_pattern *pattern);
/* features, or those that were measured when remote indices were fetched. */
spk_features spk_pattern_measured(const spk_pattern *pattern);

/* All that the host knows of a pattern whose indices only a device has, without padding: nothing else tells two of them apart. false: the
 * host has the indices. */
typedef struct spk_pattern_facts {
    int64_t rows, cols, block_rows, block_cols, nnzb;
    spk_features features;
} spk_pattern_facts;
bool spk_pattern_is_remote(const spk_pattern *pattern, spk_pattern_facts *facts);

spk_pattern *spk_pattern_share(spk_pattern *pattern); /* one more reference (atomic) */
void spk_pattern_release(spk_pattern **pattern);      /* accepts NULL */

/* The transposed index, made at the first call (thread safe), owned by the pattern. */
spk_status spk_pattern_transposed(const spk_pattern *pattern, const spk_index **index);

/* op(A) as kernels see it: effective orientation, element strides inside a stored block. */
typedef struct spk_bsr_view {
    int64_t rows, cols;           /* of op(A): M and K */
    int block_rows, block_cols;   /* of a block of op(A) */
    int64_t grid_rows, grid_cols; /* of op(A) */
    int64_t nnzb;
    const int64_t *offsets;
    const int32_t *columns;
    const int64_t *positions;       /* NULL: identity */
    int64_t row_stride, col_stride; /* elements between neighbours inside a block of op(A) */
    int64_t block_stride;           /* elements a block: block_rows * block_cols */
} spk_bsr_view;

spk_status spk_pattern_view(const spk_pattern *pattern, spk_trans trans, spk_layout block_layout, spk_bsr_view *view);

/* A pattern of the same shape family made of the given output block rows of op(A) only (ascending): what tuning times in place
 * of a very large problem. */
spk_status spk_pattern_sample(const spk_pattern *pattern, spk_trans trans, const int64_t *block_rows, int64_t count, spk_pattern **sample);

#endif
