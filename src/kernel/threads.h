/* How many threads a candidate of a CPU row takes: all of the device's, or the calling one alone. Nothing between: OpenMP's library ends
 * the threads that a smaller region leaves out and starts them again for the next larger one, which costs more than it brings. */
#ifndef SPK_KERNEL_THREADS_H
#define SPK_KERNEL_THREADS_H

#include "kernel/kernel.h"

/* The tunable SERIAL of a row, its place in spk_params.v; -1: it has none. And whether a text of parameters has a value for it. */
int spk_serial_tunable(const spk_kernel *kernel);
bool spk_serial_is_named(const char *params);

/* Its values. 1: the calling thread alone; offered where that may be faster. 0: all threads, but where the work is too little for a
 * second one. */
bool spk_serial_applicable(const spk_kernel *kernel, const spk_params *params, const spk_problem *problem, const spk_device *device,
                           const char **why);

/* SERIAL=1 for work that all threads share faster on a quiet machine. Where others use the processors they wait for each other, and one may
 * be the faster: it is measured there, and nowhere expected. */
bool spk_serial_is_for_load(const spk_kernel *kernel, const spk_params *params, const spk_problem *problem);

bool spk_is_serial(const spk_kernel *kernel, const spk_params *params); /* SERIAL=1 */

/* Whether the candidate runs on the calling thread alone, on a device of several. */
bool spk_runs_alone(const spk_kernel *kernel, const spk_params *params, const spk_problem *problem, const spk_device *device);

/* For tests: no work is too little for all threads, none is too much for one. */
extern bool spk_threads_for_any_work;

/* The device as one thread that works alone sees it. */
spk_device spk_device_alone(const spk_device *device);

#endif
