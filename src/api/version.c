#include <sparsek/sparsek.h>

const char *spk_version(void)
{
    return SPK_VERSION_TEXT;
}

const char *spk_commit(void)
{
    return SPK_COMMIT_TEXT;
}
