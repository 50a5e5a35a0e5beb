/* A test double of NVML: one GPU at 1755 MHz and 612.5 W. */
#include <string.h>

#include "nvml_double.h"

nvml_double nvml_double_state;

int nvmlInit_v2(void)
{
    return nvml_double_state.init;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci, void **handle)
{
    return *handle = &nvml_double_state, strcmp(pci, "0000:00:00.0") != 0;
}
int nvmlDeviceGetClockInfo(void *handle, int which, unsigned *mhz)
{
    return *mhz = which == 1 ? 1755 : 9, handle != &nvml_double_state;
}
int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts)
{
    return *milliwatts = 612500, handle != &nvml_double_state;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *reasons)
{
    nvml_double *state = handle;
    state->asked++;
    *reasons = state->slow_for == 0 || state->asked <= state->slow_for ? state->reasons : 0;
    return 0;
}
