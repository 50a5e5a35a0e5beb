/* The sums of an oracle (spk_oracle_sums), one for each element type that products take, by the template ACCUMULATE(name, element, type of
 * the sum, conversion), and their table by dtype, sums_of_types. No include guard: an oracle defines ACCUMULATE and includes this once. */
#include "op/oracle_rows.h"

#define ELEMENT(element, to_double, from_double) element
#define LOAD(element, to_double, from_double) to_double
/* The type that adds up what elements with sums of this type give: their products are exact in it, or nearly. */
#define WIDE_SPK_F32 double
#define WIDE_SPK_F64 long double
#define WIDE_SPK_INT32 double

#define SUMS_SPK_USE_VALUES(name, stored, wide) ACCUMULATE(sums_##name, ELEMENT stored, wide, LOAD stored)
#define SUMS_SPK_USE_FACTORS(name, stored, wide) ACCUMULATE(sums_##name, ELEMENT stored, wide, LOAD stored)
#define SUMS_SPK_USE_PRODUCTS(name, stored, wide)
#define SUMS_SPK_USE_INDICES(name, stored, wide)
#define SPK_TYPE(enumerator, name, use, stored, format, sums, ...) SUMS_##use(name, stored, WIDE_##sums)
#include "type/types.def"
#undef SPK_TYPE

#define ENTRY_SPK_USE_VALUES(enumerator, name) [enumerator] = sums_##name,
#define ENTRY_SPK_USE_FACTORS(enumerator, name) [enumerator] = sums_##name,
#define ENTRY_SPK_USE_PRODUCTS(enumerator, name)
#define ENTRY_SPK_USE_INDICES(enumerator, name)
#define SPK_TYPE(enumerator, name, use, ...) ENTRY_##use(enumerator, name)
static const spk_oracle_sums sums_of_types[] = {
#include "type/types.def"
};
#undef SPK_TYPE
