#include <sparsek/sparsek.h>

const char *spk_version(void)
{
    return SPK_VERSION_TEXT;
}

const char *spk_commit(void)
{
    return SPK_COMMIT_TEXT;
}

const char *spk_status_name(spk_status status)
{
    switch (status) {
    case SPK_OK:
        return "ok";
    case SPK_ERR_ARGUMENT:
        return "argument";
    case SPK_ERR_OUT_OF_MEMORY:
        return "out of memory";
    case SPK_ERR_UNSUPPORTED:
        return "unsupported";
    case SPK_ERR_UNAVAILABLE:
        return "unavailable";
    case SPK_ERR_IO:
        return "input/output";
    case SPK_ERR_FORMAT:
        return "format";
    case SPK_ERR_NO_CANDIDATE:
        return "no candidate";
    case SPK_ERR_UNKNOWN_CLASS:
        return "unknown class";
    case SPK_ERR_INTERRUPTED:
        return "interrupted";
    case SPK_ERR_NO_SPACE:
        return "no space";
    case SPK_ERR_INTERNAL:
        return "internal";
    }
    return "unknown status";
}
