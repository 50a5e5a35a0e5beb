/* The types' names for tables of options, separated by '|': of values; of all that matrices hold; of sums, and of products. Each source has
 * its own, as a program that compiles src/type/ beside the library would define them twice. */
#ifndef SPK_TYPE_NAMES_H
#define SPK_TYPE_NAMES_H

/* A name with a '|' before it, or nothing. */
#define VALUES_SPK_USE_VALUES(name) "|" #name
#define VALUES_SPK_USE_FACTORS(name)
#define VALUES_SPK_USE_PRODUCTS(name)
#define VALUES_SPK_USE_INDICES(name)
#define MATRICES_SPK_USE_VALUES(name) "|" #name
#define MATRICES_SPK_USE_FACTORS(name) "|" #name
#define MATRICES_SPK_USE_PRODUCTS(name)
#define MATRICES_SPK_USE_INDICES(name)

static const char spk_type_names_of_values[] =
#define SPK_TYPE(enumerator, name, use, ...) VALUES_##use(name)
#include "type/types.def"
#undef SPK_TYPE
    "";

static const char spk_type_names_of_matrices[] =
#define SPK_TYPE(enumerator, name, use, ...) MATRICES_##use(name)
#include "type/types.def"
#undef SPK_TYPE
    "";

#define SPK_TYPES_OF_VALUES (spk_type_names_of_values + 1)
#define SPK_TYPES_OF_MATRICES (spk_type_names_of_matrices + 1)
#define SPK_TYPES_OF_SUMS "f32|f64|tf32|i32"

#endif
