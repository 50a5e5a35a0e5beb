/* Element types as rows (type/types.def): what is true of a type stands there, and who needs it asks the row, not which type it is. Their
 * names and sizes are public: spk_dtype_name, spk_dtype_bytes, spk_dtype_from_name. */
#ifndef SPK_TYPE_TYPE_H
#define SPK_TYPE_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sparsek/sparsek.h>

typedef enum spk_type_use {
    SPK_USE_NONE,     /* the name is kept for a later version */
    SPK_USE_VALUES,   /* elements of matrices and operands */
    SPK_USE_FACTORS,  /* elements of matrices, too, and of products' factors, with scale factors (spk_scale) or without; no result has it */
    SPK_USE_PRODUCTS, /* how factors are rounded before they are multiplied; no array has it */
    SPK_USE_INDICES   /* elements of arrays that say where something is */
} spk_type_use;

enum { SPK_MOST_RESULTS = 3 };

typedef struct spk_type {
    spk_dtype dtype;
    const char *name;
    spk_type_use use;
    size_t bytes;       /* of C's type of an element, as which an array of them is read and written (type/value.h) */
    int significand;    /* binary digits of a normal number, the leading one among them; of an integer: of its magnitude */
    int least_exponent; /* of the least normal number, 2^least_exponent */
    double largest;     /* finite */
    bool has_infinity;  /* else what is too large becomes the largest, or NaN */
    spk_dtype sums;     /* the type in which products of such elements are summed */
    /* what a product of such elements may be stored as, the default first; SPK_DTYPE_DEFAULT ends them */
    spk_dtype results[SPK_MOST_RESULTS];
    const char *npy;         /* in NumPy's files, behind the byte order; NULL: they do not have it */
    const char *safetensors; /* NULL: those do not */
    const char *torch;       /* PyTorch's name; "none": it has none */
    const char *words;       /* what else it is called, "half|fp16", by people who mean it */
    /* Its number in other libraries; -1: it has none. */
    int tma;    /* CUtensorMapDataType */
    int cuda;   /* cudaDataType: cuBLAS, cuSPARSE */
    int cudnn;  /* cudnnDataType_t */
    int onednn; /* dnnl_data_type_t */
} spk_type;

/* Never NULL: a number that names no type has a row without a name, of no bytes and no use. */
const spk_type *spk_type_of(spk_dtype dtype);

/* The row behind `last` (NULL: the first one) whose use is one of `uses` (1 << use); NULL behind the last one. */
const spk_type *spk_type_next(const spk_type *last, unsigned uses);

/* By its name, here or in NumPy's or safetensors' files; a row without a name where there is none. */
const spk_type *spk_type_named(const char *name);
const spk_type *spk_type_of_npy(const char *name);
const spk_type *spk_type_of_safetensors(const char *name);

/* The type of products whose sums are of this type, where there is one: TF32 for F32; else SPK_DTYPE_DEFAULT. */
spk_dtype spk_type_reduced(spk_dtype dtype);

/* The type of matrices that is called so elsewhere, "bfloat16" or "half"; a row without a name where there is none. */
const spk_type *spk_type_meant(const char *word);

/* "f32, f64, f16 and bf16": all types of some uses (1 << use), or those of a list that SPK_DTYPE_DEFAULT ends, for a message. size:
 * SPK_TYPE_LIST_TEXT is enough. last: the word before the last one. */
enum { SPK_TYPE_LIST_TEXT = 96, SPK_USES_OF_VALUES = 1 << SPK_USE_VALUES | 1 << SPK_USE_FACTORS };
const char *spk_type_list(unsigned uses, const char *last, char *text, size_t size);
const char *spk_type_list_of(const spk_dtype *types, int most, const char *last, char *text, size_t size);

/* Whether a matrix of this type may have scale factors. */
static inline bool spk_type_is_scaled(spk_dtype dtype)
{
    return spk_type_of(dtype)->use == SPK_USE_FACTORS;
}

/* Whether matrices have such elements. */
static inline bool spk_type_holds_values(spk_dtype dtype)
{
    return spk_type_of(dtype)->use == SPK_USE_VALUES || spk_type_is_scaled(dtype);
}

/* Whether products of elements of type `factors` may be stored as `result`. */
bool spk_type_gives(spk_dtype factors, spk_dtype result);

/* Whether its elements are C's doubles. */
static inline bool spk_type_is_double(spk_dtype dtype)
{
    return dtype == SPK_F64;
}

/* Whether its elements are whole numbers. */
static inline bool spk_type_is_whole(spk_dtype dtype)
{
    return spk_type_of(spk_type_of(dtype)->sums)->use == SPK_USE_INDICES;
}

/* Whether there are negative numbers: of whole ones there are none where the magnitude takes all bits. */
static inline bool spk_type_has_sign(spk_dtype dtype)
{
    return spk_type_of(dtype)->significand < 8 * (int)spk_type_of(dtype)->bytes;
}

/* A random number for this type, of a normal one of deviation 1: of whole ones a quarter of the largest is 1. */
double spk_type_random(spk_dtype dtype, double normal);

/* Whether its elements are summed in a wider type, so that rounding a result to it loses digits. */
static inline bool spk_type_is_narrow(spk_dtype dtype)
{
    return spk_type_of(dtype)->sums != dtype;
}

static inline bool spk_type_is_index(spk_dtype dtype)
{
    return spk_type_of(dtype)->use == SPK_USE_INDICES;
}

/* The bits that are all set in what is no finite number: those of the exponent, between the sign and what is behind the point; of a type
 * without infinity, all but the sign. 0: every number is finite. */
uint64_t spk_type_bits_beyond(spk_dtype dtype);

/* The most that rounding to nearest changes a normal number by, relative to it: 2^-significand. */
double spk_type_rounding(spk_dtype dtype);

/* The distance from 1 to the next number: 2^(1 - significand). */
double spk_type_epsilon(spk_dtype dtype);

/* Half of the distance between its numbers near 0: what rounding to nearest changes a small number by at most. */
double spk_type_least_rounding(spk_dtype dtype);

/* |got - want| that counts as an error of a result of this type: without what rounding to a denormal explains; 0 where both are too large
 * for it. */
double spk_type_difference(spk_dtype dtype, double got, double want);

#endif
