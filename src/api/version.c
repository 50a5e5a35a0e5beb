#include <sparsek/sparsek.h>

int spk_version_number(void)
{
    return SPK_VERSION_NUMBER;
}

const char *spk_version(void)
{
    return SPK_VERSION_TEXT;
}

const char *spk_commit(void)
{
    return SPK_COMMIT_TEXT;
}
