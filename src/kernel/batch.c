/* Batches on kernels that take one item at a time: with many items each task runs its share of them, alone on its thread and in its own
 * workspace; with a few, one after another on all threads. A vendor library's threads are its own: its items go one after another. */
#include "kernel/batch.h"
#include "kernel/row.h"
#include "kernel/threads.h"

#include <math.h>
#include <stdatomic.h>

enum { ITEMS_A_THREAD = 4, PARTS_A_THREAD = 2, LINE = 64 };

/* An item of less work than this for each thread is not worth all of them. */
static const double small_item_flops = 1e6;

/* Whether what stays as it is differs from item to item. */
static bool is_static_batch(const spk_problem *problem)
{
    const int packed = spk_problem_static_operand(problem);
    return packed >= 0 && problem->operand[packed].stride != 0;
}

bool spk_batch_applicable(const spk_kernel *kernel, const spk_problem *problem, const spk_device *device, const char **why)
{
    if (problem->batch == 1 || kernel->ops->batched)
        return true;
    if (!device->backend->splits_batches)
        *why = "it takes one product at a time, no batch";
    else if (is_static_batch(problem) && kernel->ops->update_values != NULL)
        *why = "it keeps the values of one item, no batch of them";
    return *why == NULL;
}

/* The tasks that share the items; 1: they run one after another, each on all threads. */
static int64_t parts_for(const spk_kernel *kernel, const spk_problem *problem, const spk_device *device)
{
    const int64_t threads = device->executor.threads;
    const bool own = kernel->kind == SPK_KIND_OWN || kernel->kind == SPK_KIND_REFERENCE;
    const double item_flops = spk_problem_flops(problem) / (double)problem->batch;
    if (!own || threads <= 1 || (problem->batch < ITEMS_A_THREAD * threads && item_flops > small_item_flops * (double)threads))
        return 1;
    return problem->batch < PARTS_A_THREAD * threads ? problem->batch : PARTS_A_THREAD * threads;
}

/* The device as one of its threads. */
static spk_device one_thread(const spk_device *device)
{
    spk_device serial = *device;
    serial.executor.threads = 1;
    serial.peak_gflops_f32 /= device->executor.threads;
    serial.stream_gbs /= device->executor.threads;
    return serial;
}

spk_status spk_batch_begin(spk_bound *bound)
{
    spk_device *device = bound->device;
    bound->parts = parts_for(bound->kernel, &bound->problem, device);
    bound->problem = spk_problem_item(&bound->problem);
    if (bound->parts == 1)
        return SPK_OK;
    SPK_TRY(spk_alloc(&device->mem, 1, sizeof *bound->serial, &bound->serial));
    *bound->serial = one_thread(device);
    bound->device = bound->serial;
    return SPK_OK;
}

void spk_batch_end(spk_bound *bound, const spk_problem *problem, spk_device *device)
{
    bound->problem = *problem;
    bound->device = device;
    bound->part_bytes = (bound->workspace_bytes + LINE - 1) / LINE * LINE;
    bound->workspace_bytes = (size_t)bound->parts * bound->part_bytes;
}

void spk_batch_release(spk_bound *bound)
{
    if (bound->serial != NULL)
        spk_free(&bound->serial->mem, bound->serial);
    bound->serial = NULL;
}

typedef struct batch_run {
    const spk_bound *bound;
    const spk_problem *problem;
    const spk_args *args;
    atomic_int failed;
} batch_run;

static void run_part(void *arg, int64_t part)
{
    batch_run *run = arg;
    const spk_bound *bound = run->bound;
    const int64_t parts = bound->parts;
    spk_bound item = *bound;
    item.problem = spk_problem_item(run->problem);
    item.device = bound->serial != NULL ? bound->serial : bound->device;
    item.workspace_bytes = bound->part_bytes;
    for (int64_t i = run->problem->batch * part / parts; i < run->problem->batch * (part + 1) / parts; i++) {
        spk_args args = spk_args_item(run->problem, run->args, i);
        if (args.workspace != NULL) {
            args.workspace = (char *)args.workspace + (size_t)part * bound->part_bytes;
            args.workspace_bytes = bound->part_bytes;
        }
        const spk_status status = spk_row_run(&item, &args, NULL);
        if (status != SPK_OK)
            atomic_store(&run->failed, (int)status);
    }
}

spk_status spk_bound_run(const spk_bound *bound, const spk_args *args, void *stream)
{
    if (bound->parts == 0)
        return spk_row_run(bound, args, stream);
    batch_run run = {.bound = bound, .problem = &bound->problem, .args = args};
    if (bound->parts == 1)
        run_part(&run, 0);
    else
        spk_execute(&bound->device->executor, bound->parts, run_part, &run);
    const spk_status status = (spk_status)atomic_load(&run.failed);
    return status == SPK_OK || bound->parts == 1
               ? status
               : spk_fail(status, "%s: %s, in an item of the batch", bound->kernel->name, spk_status_name(status));
}

static double modelled_us(const spk_kernel *kernel, const spk_params *params, const spk_problem *problem, const spk_device *device)
{
    if (problem->batch == 1 || kernel->ops->batched)
        return kernel->ops->predict_us(problem, device, params);
    const spk_problem item = spk_problem_item(problem);
    if (parts_for(kernel, problem, device) == 1)
        return (double)problem->batch * kernel->ops->predict_us(&item, device, params);
    const spk_device serial = one_thread(device);
    const double rounds = ceil((double)problem->batch / device->executor.threads);
    return rounds * kernel->ops->predict_us(&item, &serial, params);
}

/* What no cache holds comes from memory in every run, however little is computed with it. Own rows have that in their models; those of
 * references and libraries count work and calls, and would let eight columns become one at an eighth of the time. A reference takes element
 * by element, wherever they lie. */
static double least_traffic_us(const spk_problem *problem, const spk_device *device, bool by_element)
{
    static const double sure = 0.6, element = 4; /* times what the memory's rate gives */
    const double bytes = spk_problem_bytes(problem);
    const int64_t largest = device->l3_bytes > device->l2_bytes ? device->l3_bytes : device->l2_bytes;
    const bool from_memory = problem->cache == SPK_COLD || bytes > (largest > 0 ? (double)largest : 8e6);
    const double times = by_element ? element : from_memory ? sure : 0;
    return device->stream_gbs > 0 ? times * bytes / device->stream_gbs / 1e3 : 0;
}

double spk_candidate_predict_us(const spk_kernel *kernel, const spk_params *params, const spk_problem *problem, const spk_device *device)
{
    spk_device alone;
    if (kernel->ops->predict_us == NULL)
        return 0;
    if (spk_runs_alone(kernel, params, problem, device)) {
        alone = spk_device_alone(device);
        device = &alone;
    }
    const double us = modelled_us(kernel, params, problem, device);
    const bool counts_traffic = kernel->kind == SPK_KIND_OWN || us <= 0;
    return counts_traffic ? us : fmax(us, least_traffic_us(problem, device, kernel->kind == SPK_KIND_REFERENCE));
}
