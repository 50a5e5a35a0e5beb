/* A warning, once a class, where nothing but a reference computes a problem and that is expected to take far longer than a tuned kernel
 * would. A program that is slow for such a reason looks like one that hangs. */
#include <math.h>
#include <stdio.h>

#include "base/c_locale.h"
#include "base/callback.h"
#include "tune/choose/choose.h"

static const double far_slower = 10, least_told_us = 1000;
static const double launch_us = 10, of_the_roof = 0.5; /* what a tuned kernel is expected to reach at least */

static bool told_before(uint64_t class)
{
    return !spk_known_first(spk_known_of_process(SPK_KNOWN_TOLD), &class, sizeof class);
}

/* From the device's rates alone: no kernel is asked. 0: they are not known. */
static double tuned_us(const spk_problem *problem, const spk_device *device)
{
    if (device->peak_gflops_f32 <= 0 || device->stream_gbs <= 0)
        return 0;
    const double compute_us = spk_problem_flops(problem) / device->peak_gflops_f32 / 1e3,
                 memory_us = spk_problem_bytes(problem) / device->stream_gbs / 1e3;
    return launch_us + fmax(compute_us, memory_us) / of_the_roof;
}

/* Where the caller's own restriction leaves nothing else, he knows. */
static bool is_asked_for(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_choice *choice)
{
    const spk_tune_options any = {.cache = options->cache};
    return choice->pinned || (spk_is_restricted(options) && spk_stands_back(tuner, problem, &any, choice->kernel));
}

static void tell(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_choice *choice, double us,
                 double times)
{
    char reasons[560] = "", text[900];
    spk_contender *contenders = NULL;
    int count = 0;
    if (spk_contenders_make(tuner, problem, options, &contenders, &count) == SPK_OK)
        spk_contenders_reasons(contenders, count, options, false, reasons, sizeof reasons);
    spk_contenders_release(tuner, &contenders, count);
    spk_snprintf(text, sizeof text,
                 "only %s, a reference, is left for this problem on %s: a run is expected to take %.3g ms, some %.0f times as long as a "
                 "tuned kernel would. A size, type or layout that one of the others takes would help%s%s",
                 choice->kernel->name, tuner->device->name, 1e-3 * us, times, reasons[0] != '\0' ? ": " : "", reasons);
    spk_tell_log(tuner->log, tuner->log_user, 1, text);
}

void spk_tell_last_resort(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_choice *choice)
{
    spk_class class;
    if (choice->kernel == NULL || choice->kernel->kind != SPK_KIND_REFERENCE || tuner->log == NULL || spk_problem_is_empty(problem))
        return;
    const double us = spk_predict(choice->kernel, &choice->params, problem, tuner->device), tuned = tuned_us(problem, tuner->device);
    if (us < least_told_us || tuned <= 0 || us <= far_slower * tuned || is_asked_for(tuner, problem, options, choice) ||
        spk_class_keys(tuner, problem, options, &class) != SPK_OK || told_before(spk_class_hash(tuner, class.key)))
        return;
    tell(tuner, problem, options, choice, us, us / tuned);
}
