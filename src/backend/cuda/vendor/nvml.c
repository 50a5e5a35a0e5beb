/* NVML: clocks, power and why a GPU is slower than it could be. Whatever is wrong with it, nothing is known and nothing else changes. */
#include <pthread.h>
#include <string.h>

#include "backend/cuda/vendor/vendor.h"
#include "base/clock.h"

enum { MOST_DEVICES = 64, CLOCK_SM = 1, MOST_RETAKES = 64 };
/* nvmlClocksThrottleReason*: the hardware's slowdown, its thermal and power-brake kinds, and the driver's thermal one. The power cap (4) is
 * not among them: it is how a GPU under load always is. */
static const unsigned long long slowdowns = 0x8 | 0x20 | 0x40 | 0x80;
static const double reasons_every_us = 20e3, facts_every_us = 200e3; /* asking takes time itself */

typedef struct nvml_functions {
    int (*init)(void);
    int (*device)(const char *pci, void **handle);
    int (*clock)(void *handle, int which, unsigned *mhz);
    int (*power)(void *handle, unsigned *milliwatts);
    int (*reasons)(void *handle, unsigned long long *reasons);
} nvml_functions;

static const char *const names[] = {"nvmlInit_v2", "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetClockInfo", "nvmlDeviceGetPowerUsage",
                                    "nvmlDeviceGetCurrentClocksThrottleReasons"};
enum { FUNCTIONS = sizeof names / sizeof names[0] };

typedef struct gpu {
    enum { UNASKED, KNOWN, UNKNOWN } state;
    void *handle;
    double reasons_at_us, facts_at_us;
    unsigned long long reasons;
    double clock_mhz, power_w;
    int retakes;
} gpu;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static gpu gpus[MOST_DEVICES];
static nvml_functions nvml;
static bool have_functions;

static bool find(const spk_device *device, gpu *g)
{
    const spk_cuda *cuda = spk_cuda_of(device);
    void *library = NULL, *found[FUNCTIONS];
    char pci[64] = "";
    if (!spk_cuda_library_found(device, "nvml") || spk_cuda_library_open(device, "nvml", &library) != SPK_OK)
        return false;
    if (!have_functions) {
        if (spk_cuda_library_functions(library, "nvml", names, found, FUNCTIONS) != SPK_OK)
            return false;
        memcpy(&nvml, found, sizeof nvml);
        if (nvml.init() != 0)
            return false;
        have_functions = true;
    }
    return cuda->driver->device_pci(pci, sizeof pci, cuda->handle) == CUDA_SUCCESS_ && nvml.device(pci, &g->handle) == 0;
}

static gpu *get(const spk_device *device)
{
    const int ordinal = spk_cuda_of(device)->ordinal;
    if (ordinal >= MOST_DEVICES)
        return NULL;
    gpu *g = &gpus[ordinal];
    if (g->state == UNASKED)
        g->state = find(device, g) ? KNOWN : UNKNOWN;
    return g->state == KNOWN ? g : NULL;
}

static void ask_facts(gpu *g, double now_us)
{
    unsigned mhz = 0, milliwatts = 0;
    g->facts_at_us = now_us;
    g->clock_mhz = nvml.clock(g->handle, CLOCK_SM, &mhz) == 0 ? mhz : 0;
    g->power_w = nvml.power(g->handle, &milliwatts) == 0 ? milliwatts * 1e-3 : 0;
}

bool spk_nvml_disturbed(const spk_device *device)
{
    const double now_us = spk_now_us();
    pthread_mutex_lock(&lock);
    gpu *g = get(device);
    bool disturbed = false;
    if (g != NULL) {
        if (g->facts_at_us == 0 || now_us - g->facts_at_us >= facts_every_us)
            ask_facts(g, now_us);
        if (g->reasons_at_us == 0 || now_us - g->reasons_at_us >= reasons_every_us) {
            g->reasons_at_us = now_us;
            g->reasons = 0;
            if (nvml.reasons(g->handle, &g->reasons) != 0)
                g->reasons = 0;
        }
        disturbed = (g->reasons & slowdowns) != 0 && g->retakes < MOST_RETAKES;
        g->retakes += disturbed;
    }
    pthread_mutex_unlock(&lock);
    return disturbed;
}

void spk_nvml_facts(spk_device *device, double *clock_mhz, double *power_w)
{
    pthread_mutex_lock(&lock);
    gpu *g = get(device);
    if (g != NULL && g->facts_at_us == 0)
        ask_facts(g, spk_now_us());
    *clock_mhz = g != NULL ? g->clock_mhz : 0;
    *power_w = g != NULL ? g->power_w : 0;
    pthread_mutex_unlock(&lock);
}
