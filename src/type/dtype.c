/* What the public headers say of element types. */
#include "type/type.h"

const char *spk_dtype_name(spk_dtype dtype)
{
    return spk_type_of(dtype)->name;
}

size_t spk_dtype_bytes(spk_dtype dtype)
{
    return spk_type_of(dtype)->bytes;
}

spk_dtype spk_dtype_from_name(const char *name)
{
    return spk_type_named(name)->dtype;
}
