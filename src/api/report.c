/* Reports and the table of kernels, as the public headers have them. */
#include <pthread.h>
#include <stdio.h>

#include "api/context.h"
#include "backend/cpu/probe.h"

spk_status spk_report_get_info(const spk_report *report, spk_report_info *info)
{
    spk_error_enter(0);
    SPK_TRY(spk_check_pointer(report, "report"));
    SPK_TRY(spk_check_pointer(info, "info"));
    spk_report_info ours = {.candidate_count = report->count,
                            .chosen = report->chosen,
                            .from_store = report->from_store,
                            .tuning_s = report->tuning_s,
                            .measured_at = report->measured_at,
                            .class_key = report->class_key,
                            .summary = report->summary != NULL ? report->summary : "",
                            .provisional = spk_report_interrupted(report) ? SPK_PROVISIONAL_INTERRUPTED : report->provisional,
                            .origin = report->origin[0] != '\0' ? report->origin : NULL,
                            .foreign = report->foreign};
    return spk_struct_write(info, &ours, sizeof ours, "spk_report_info");
}

spk_status spk_report_get_candidate(const spk_report *report, int index, spk_candidate_info *info)
{
    spk_error_enter(0);
    SPK_TRY(spk_check_pointer(report, "report"));
    SPK_TRY(spk_check_pointer(info, "info"));
    if (index < 0 || index >= report->count)
        return spk_fail(SPK_ERR_ARGUMENT, "index = %d: the report has %d candidates", index, report->count);
    const spk_evidence *e = &report->candidates[index];
    spk_candidate_info ours = {.name = e->name,
                               .params = e->params,
                               .hash = e->hash,
                               .kind = e->kind,
                               .status = e->status,
                               .why = e->why[0] != '\0' ? e->why : NULL,
                               .predicted_us = e->predicted_us,
                               .median_us = e->median_us,
                               .spread_us = e->spread_us,
                               .least_us = e->least_us,
                               .prepare_us = e->prepare_us,
                               .error = e->error,
                               .tolerance = e->tolerance,
                               .sample_count = e->sample_count,
                               .samples_us = e->samples_us};
    return spk_struct_write(info, &ours, sizeof ours, "spk_candidate_info");
}

void spk_report_destroy(spk_report **report)
{
    if (report != NULL)
        spk_report_release(report);
}

int spk_kernel_count(void)
{
    const spk_kernel *table = NULL;
    return spk_kernels(&table);
}

/* The ISA bits of each row as text, made once. */
enum { MOST_ROWS = 256, ISA_TEXT = 96 };
static char isa_texts[MOST_ROWS][ISA_TEXT];

static void make_isa_texts(void)
{
    const spk_kernel *table = NULL;
    int count = spk_kernels(&table);
    for (int row = 0; row < count && row < MOST_ROWS; row++) {
        const char *names[16];
        int name_count = spk_isa_names(table[row].isa, names);
        size_t used = 0;
        for (int i = 0; i < name_count && used < ISA_TEXT; i++)
            used += (size_t)snprintf(isa_texts[row] + used, ISA_TEXT - used, "%s%s", i > 0 ? "," : "", names[i]);
    }
}

spk_status spk_kernel_get_info(int index, spk_kernel_info *info)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    spk_error_enter(0);
    SPK_TRY(spk_check_pointer(info, "info"));
    const spk_kernel *table = NULL;
    int count = spk_kernels(&table);
    if (index < 0 || index >= count)
        return spk_fail(SPK_ERR_ARGUMENT, "index = %d: the table has %d kernels", index, count);
    pthread_once(&once, make_isa_texts);
    const spk_kernel *row = &table[index];
    spk_kernel_info ours = {.name = row->name,
                            .operation = row->operation,
                            .kind = row->kind,
                            .device = spk_backend_of(row->backend)->kind,
                            .isa = isa_texts[index % MOST_ROWS],
                            .tunables = row->tunables,
                            .types = row->types.text};
    return spk_struct_write(info, &ours, sizeof ours, "spk_kernel_info");
}
