/* Contexts: a device, its store, its plans; messages; facts about the device. */
#include "api/context.h"

#include <stdio.h>
#include <string.h>

#include "backend/cpu/probe.h"
#include "base/callback.h"
#include "tune/trial/ahead.h"

enum { MOST_THREADS = 1024 };

spk_status spk_enter(const spk_context *context)
{
    spk_error_enter(context != NULL ? context->id : 0);
    SPK_TRY(spk_check_pointer(context, "context"));
    return spk_check_caller();
}

spk_status spk_check_caller(void)
{
    return !spk_in_callback()
               ? SPK_OK
               : spk_fail(SPK_ERR_ARGUMENT, "the call comes from a log or progress callback, which must not call the library");
}

spk_status spk_check_pointer(const void *pointer, const char *name)
{
    return pointer != NULL ? SPK_OK : spk_fail(SPK_ERR_ARGUMENT, "%s is NULL", name);
}

static spk_status check_options(const spk_context_options *options)
{
    if (options->threads < 0 || options->threads > MOST_THREADS)
        return spk_fail(SPK_ERR_ARGUMENT, "threads = %d: the limits are 0 (choose) and %d", options->threads, MOST_THREADS);
    if ((options->allocate == NULL) != (options->release == NULL))
        return spk_fail(SPK_ERR_ARGUMENT, "%s is set and %s is NULL: set both or none", options->allocate != NULL ? "allocate" : "release",
                        options->allocate != NULL ? "release" : "allocate");
    if ((options->device_allocate == NULL) != (options->device_release == NULL))
        return spk_fail(SPK_ERR_ARGUMENT, "%s is set and %s is NULL: set both or none",
                        options->device_allocate != NULL ? "device_allocate" : "device_release",
                        options->device_allocate != NULL ? "device_release" : "device_allocate");
    return SPK_OK;
}

spk_status spk_context_create(const spk_context_options *theirs, spk_context **out)
{
    static atomic_uint_fast64_t next_id = 1;
    spk_error_enter(0);
    SPK_TRY(spk_check_pointer(out, "context"));
    SPK_TRY(spk_check_caller());
    spk_context_options options = {0};
    if (theirs != NULL)
        SPK_TRY(spk_struct_read(&options, sizeof options, theirs, "spk_context_options"));
    SPK_TRY(check_options(&options));
    const spk_backend *backend = NULL;
    SPK_TRY(spk_backend_find(options.device, &backend));
    if (options.device_allocate != NULL && backend->own_stream == NULL)
        return spk_fail(SPK_ERR_ARGUMENT, "device_allocate is set: device = \"%s\" has no memory of its own, set allocate", backend->kind);

    spk_mem mem = {options.allocate, options.release, options.allocate_user};
    spk_context *made = NULL;
    SPK_TRY(spk_calloc(&mem, 1, sizeof *made, &made));
    made->mem = mem;
    made->id = atomic_fetch_add(&next_id, 1);
    made->log = options.log;
    made->log_user = options.log_user;
    made->progress = options.progress;
    made->progress_user = options.progress_user;
    spk_executor executor = {options.threads, options.parallel_for, options.parallel_user};
    spk_status status;
    SPK_GOTO(backend->open(&made->mem, options.device, &executor, &made->device));
    made->device->device_mem = (spk_device_mem){options.device_allocate, options.device_release, options.device_user};
    SPK_GOTO(spk_store_open(&made->mem, options.store_path, options.log, options.log_user, &made->store));
    SPK_GOTO(spk_store_open_layers(made->store));
    spk_store_heed(made->store, &made->interrupted);
    const spk_known_calls of_plans = {spk_plan_hold_value, spk_plan_release_value};
    SPK_GOTO(spk_known_make(&made->mem, SPK_KNOWN_PLANS, &of_plans, &made->plans));
    SPK_GOTO(spk_known_make(&made->mem, SPK_KNOWN_QUESTIONS, &of_plans, &made->recent));
    SPK_GOTO(spk_known_make(&made->mem, SPK_KNOWN_DECISIONS, NULL, &made->decisions));
    *out = made;
    return SPK_OK;
done:
    spk_context_destroy(&made);
    return status;
}

void spk_context_destroy(spk_context **context)
{
    if (context == NULL || *context == NULL)
        return;
    spk_context *c = *context;
    spk_known_release(&c->recent);
    spk_known_release(&c->decisions);
    spk_known_release(&c->plans);
    if (c->device != NULL)
        spk_ahead_wait(c->device);
    spk_store_close(&c->store);
    if (c->device != NULL)
        c->device->backend->close(&c->device);
    spk_mem mem = c->mem;
    spk_free(&mem, c);
    *context = NULL;
}

const char *spk_last_error(const spk_context *context)
{
    return spk_error_message(context != NULL ? context->id : 0);
}

void spk_context_interrupt(spk_context *context)
{
    if (context != NULL)
        atomic_store(&context->interrupted, 1);
}

void spk_context_resume(spk_context *context)
{
    if (context != NULL)
        atomic_store(&context->interrupted, 0);
}

spk_tuner spk_context_tuner(spk_context *context)
{
    return (spk_tuner){.mem = &context->mem,
                       .device = context->device,
                       .store = context->store,
                       .stop = {.all = &context->interrupted},
                       .log = context->log,
                       .log_user = context->log_user,
                       .progress = context->progress,
                       .progress_user = context->progress_user,
                       .table = context->table,
                       .table_count = context->table_count};
}

spk_tuner spk_context_tuner_for(spk_context *context, const spk_tune_options *options)
{
    spk_tuner tuner = spk_context_tuner(context);
    tuner.stop.call = options->cancel;
    return tuner;
}

spk_status spk_context_get_device(spk_context *context, spk_device_info *info)
{
    SPK_TRY(spk_enter(context));
    SPK_TRY(spk_check_pointer(info, "info"));
    const spk_device *device = context->device;
    spk_device_info ours = {.kind = device->backend->kind,
                            .name = device->name,
                            .threads = device->executor.threads,
                            .l1_bytes = device->l1_bytes,
                            .l2_bytes = device->l2_bytes,
                            .l3_bytes = device->l3_bytes,
                            .memory_bytes = device->memory_bytes,
                            .processors = device->processors};
    if (device->backend->facts != NULL)
        device->backend->facts(context->device, &ours.clock_mhz, &ours.power_w);
    const spk_kernel *rows = NULL;
    const int row_count = spk_kernels(&rows);
    if (device->backend->proved != NULL)
        ours.proved_candidates = device->backend->proved(device, rows, row_count);
    ours.isa_count = spk_isa_names(device->isa, ours.isa);
    return spk_struct_write(info, &ours, sizeof ours, "spk_device_info");
}

spk_status spk_device_list(int (*visit)(void *user, const spk_device_entry *entry), void *user)
{
    spk_error_enter(0);
    if (visit == NULL)
        return spk_fail(SPK_ERR_ARGUMENT, "visit is NULL");
    SPK_TRY(spk_check_caller());
    if (spk_backend_cpu.list(visit, user) == 0)
        spk_backend_cuda.list(visit, user);
    return SPK_OK;
}

int spk_library_count(const spk_context *context)
{
    return context != NULL ? context->device->backend->library_count() : 0;
}

spk_status spk_context_get_library(spk_context *context, int index, spk_library_info *info)
{
    SPK_TRY(spk_enter(context));
    SPK_TRY(spk_check_pointer(info, "info"));
    if (index < 0 || index >= spk_library_count(context))
        return spk_fail(SPK_ERR_ARGUMENT, "index = %d: there are %d libraries", index, spk_library_count(context));
    spk_library_info ours = {.struct_size = sizeof ours};
    SPK_TRY(context->device->backend->library_info(context->device, index, &ours));
    return spk_struct_write(info, &ours, sizeof ours, "spk_library_info");
}
