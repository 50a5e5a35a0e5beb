/* The store, as the public headers have it. */
#include "api/context.h"

const char *spk_store_path(const spk_context *context)
{
    return context != NULL ? spk_store_used(context->store) : "";
}

spk_status spk_store_list(spk_context *context, int (*visit)(void *user, const spk_store_entry *entry), void *user)
{
    SPK_TRY(spk_enter(context));
    if (visit == NULL)
        return spk_fail(SPK_ERR_ARGUMENT, "visit is NULL");
    return spk_store_visit(context->store, visit, user);
}

static spk_status enter_file(spk_context *context, const char *path)
{
    SPK_TRY(spk_enter(context));
    return spk_check_pointer(path, "path");
}

spk_status spk_store_export(spk_context *context, const char *path, int64_t *count)
{
    int64_t done = 0;
    SPK_TRY(enter_file(context, path));
    SPK_TRY(spk_store_export_json(context->store, path, &done));
    if (count != NULL)
        *count = done;
    return SPK_OK;
}

spk_status spk_store_import(spk_context *context, const char *path, int64_t *count)
{
    int64_t done = 0;
    SPK_TRY(enter_file(context, path));
    SPK_TRY(spk_store_import_json(context->store, path, &done));
    if (count != NULL)
        *count = done;
    return SPK_OK;
}

spk_status spk_store_verify(spk_context *context, int64_t *good, int64_t *bad)
{
    int64_t fine = 0, broken = 0;
    SPK_TRY(spk_enter(context));
    SPK_TRY(spk_store_check(context->store, &fine, &broken));
    if (good != NULL)
        *good = fine;
    if (bad != NULL)
        *bad = broken;
    return SPK_OK;
}

spk_status spk_store_clear(spk_context *context, int64_t *removed)
{
    int64_t done = 0;
    SPK_TRY(spk_enter(context));
    SPK_TRY(spk_store_empty(context->store, &done));
    if (removed != NULL)
        *removed = done;
    return SPK_OK;
}
