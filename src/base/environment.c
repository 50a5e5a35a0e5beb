/* secure_getenv knows AT_SECURE, which the kernel sets for a program that gained rights when it was started. */
#include "base/environment.h"

#include <stdlib.h>

const char *spk_environment_value(const char *name)
{
    return secure_getenv(name);
}

const char *spk_environment(const char *name)
{
    const char *value = spk_environment_value(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}
