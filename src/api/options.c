/* Tuning options: checked once, copied, defaults left as zero for the tuner to fill. */
#include <math.h>
#include <string.h>

#include "api/context.h"

static spk_status check_names(const char *field, const char *list)
{
    if (list == NULL)
        return SPK_OK;
    for (const char *name = list; *name != '\0';) {
        size_t length = strcspn(name, ",");
        char text[64];
        if (length >= sizeof text)
            return spk_fail(SPK_ERR_ARGUMENT, "%s = \"%s\": a kernel's name has at most %zu letters", field, list, sizeof text - 1);
        memcpy(text, name, length);
        text[length] = '\0';
        if (length > 0 && spk_kernel_by_name(text) == NULL) {
            const spk_kernel *table = NULL;
            const int count = spk_kernels(&table);
            return spk_no_such_kernel(table, count, (spk_operation)0, field, list, text);
        }
        name += length + (name[length] == ',');
    }
    return SPK_OK;
}

spk_status spk_tune_options_read(const spk_tune_options *theirs, spk_tune_options *ours)
{
    spk_tune_options o = {.struct_size = sizeof o};
    if (theirs != NULL)
        SPK_TRY(spk_struct_read(&o, sizeof o, theirs, "spk_tune_options"));
    if ((int)o.effort < 0 || o.effort > SPK_TUNE_EXHAUSTIVE)
        return spk_fail(SPK_ERR_ARGUMENT, "effort = %d: the values are 0..%d", (int)o.effort, SPK_TUNE_EXHAUSTIVE);
    if ((int)o.tuning < 0 || o.tuning > SPK_TUNING_AHEAD_EACH)
        return spk_fail(SPK_ERR_ARGUMENT, "tuning = %d: the values are 0..%d", (int)o.tuning, SPK_TUNING_AHEAD_EACH);
    if ((int)o.cache < 0 || o.cache > SPK_WARM)
        return spk_fail(SPK_ERR_ARGUMENT, "cache = %d: the values are 0..%d", (int)o.cache, SPK_WARM);
    if (!(o.budget_s >= 0 && o.budget_s <= 86400))
        return spk_fail(SPK_ERR_ARGUMENT, "budget_s = %g: the limits are 0 and 86400", o.budget_s);
    if (!(o.tolerance >= 0 && isfinite(o.tolerance)))
        return spk_fail(SPK_ERR_ARGUMENT, "tolerance = %g: it must be finite and not negative", o.tolerance);
    if (o.reserved != 0)
        return spk_fail(SPK_ERR_ARGUMENT, "reserved = %d: it must be 0", o.reserved);
    SPK_TRY(check_names("only", o.only));
    SPK_TRY(check_names("exclude", o.exclude));
    *ours = o;
    return SPK_OK;
}
