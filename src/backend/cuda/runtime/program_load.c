/* The loaded programs of a device: each is compiled and loaded once, whichever thread asks first. */
#include <pthread.h>
#include <string.h>

#include "backend/cuda/runtime/program.h"
#include "backend/cuda/runtime/shipped.h"

enum { ATTRIBUTE_MOST_SHARED = 8, SHARED_WITHOUT_ASKING = 48 * 1024 };

typedef struct program {
    spk_build build;
    bool ready; /* else a thread is at it */
    CUmodule module;
    CUfunction function;
    struct program *next;
} program;

struct spk_cuda_programs {
    spk_mem mem;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    program *first;
};

spk_status spk_cuda_programs_make(const spk_mem *mem, struct spk_cuda_programs **out)
{
    struct spk_cuda_programs *made = NULL;
    SPK_TRY(spk_calloc(mem, 1, sizeof *made, &made));
    made->mem = *mem;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->changed, NULL);
    *out = made;
    return SPK_OK;
}

void spk_cuda_programs_release(const spk_cuda_driver *driver, struct spk_cuda_programs **programs)
{
    struct spk_cuda_programs *all = *programs;
    *programs = NULL;
    if (all == NULL)
        return;
    for (program *one = all->first, *next; one != NULL; one = next) {
        next = one->next;
        if (driver != NULL && one->module != NULL)
            driver->module_unload(one->module);
        spk_free(&all->mem, one);
    }
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->lock);
    spk_mem mem = all->mem;
    spk_free(&mem, all);
}

static bool is_of(const program *one, const spk_build *build)
{
    return one->build.shared_bytes == build->shared_bytes && strcmp(one->build.file, build->file) == 0 &&
           strcmp(one->build.entry, build->entry) == 0 && strcmp(one->build.options, build->options) == 0;
}

/* Who is found goes to the front: tuning leaves dozens of programs, and a few are asked for at every step. */
static program *find(struct spk_cuda_programs *all, const spk_build *build)
{
    program **link = &all->first;
    while (*link != NULL && !is_of(*link, build))
        link = &(*link)->next;
    program *one = *link;
    if (one != NULL) {
        *link = one->next;
        one->next = all->first;
        all->first = one;
    }
    return one;
}

static void drop(struct spk_cuda_programs *all, program *which)
{
    program **link = &all->first;
    while (*link != which)
        link = &(*link)->next;
    *link = which->next;
    spk_free(&all->mem, which);
}

static spk_status load(const spk_device *device, const void *cubin, program *one)
{
    const spk_cuda *cuda = spk_cuda_of(device);
    const spk_cuda_driver *driver = cuda->driver;
    const int shared = one->build.shared_bytes, mode = spk_cuda_capture_relax(cuda);
    spk_status status = SPK_OK;
    SPK_GOTO(spk_cuda_check(device, driver->module_load(&one->module, cubin), "cuModuleLoadData"));
    SPK_GOTO(spk_cuda_check(device, driver->module_function(&one->function, one->module, one->build.entry), "cuModuleGetFunction"));
    if (shared > SHARED_WITHOUT_ASKING)
        SPK_GOTO(
            spk_cuda_check(device, driver->function_set_attribute(one->function, ATTRIBUTE_MOST_SHARED, shared), "cuFuncSetAttribute"));
done:
    if (status != SPK_OK && one->module != NULL) {
        driver->module_unload(one->module);
        one->module = NULL;
    }
    spk_cuda_capture_restore(cuda, mode);
    return status;
}

static spk_status make_once(const spk_device *device, program *one)
{
    void *cubin = NULL;
    size_t bytes = 0;
    SPK_TRY(spk_cuda_compile(&device->mem, &one->build, spk_cuda_of(device)->arch, &cubin, &bytes, NULL));
    spk_status status = load(device, cubin, one);
    spk_free(&device->mem, cubin);
    return status;
}

/* What came with the library may be of a compiler that this driver is too old for. */
static spk_status make(const spk_device *device, program *one)
{
    const bool shipped = spk_cuda_is_shipped(&one->build, spk_cuda_of(device)->arch);
    const spk_status status = make_once(device, one);
    if (status == SPK_OK || !shipped || atomic_load(spk_cuda_of(device)->lost) != 0)
        return status;
    spk_shipped_refuse();
    return make_once(device, one);
}

spk_status spk_cuda_function(const spk_device *device, const spk_build *build, CUfunction *function)
{
    struct spk_cuda_programs *all = spk_cuda_of(device)->programs;
    program *one;
    spk_status status = SPK_OK;
    pthread_mutex_lock(&all->lock);
    while ((one = find(all, build)) != NULL && !one->ready)
        pthread_cond_wait(&all->changed, &all->lock);
    if (one == NULL && (status = spk_calloc(&all->mem, 1, sizeof *one, &one)) == SPK_OK) {
        one->build = *build;
        one->next = all->first;
        all->first = one;
        pthread_mutex_unlock(&all->lock);
        status = make(device, one); /* others wait for this program only */
        pthread_mutex_lock(&all->lock);
        if (status == SPK_OK)
            one->ready = true;
        else
            drop(all, one); /* who waited tries for itself, and has a message of its own */
        pthread_cond_broadcast(&all->changed);
    }
    if (status == SPK_OK)
        *function = one->function;
    pthread_mutex_unlock(&all->lock);
    return status;
}
