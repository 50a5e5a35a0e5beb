/* Device programs: from an embedded source to a cubin: one that came with the library, one of the cache on disk, or one that is compiled
 * now. */
#include "backend/cuda/runtime/program.h"

#include <stdio.h>
#include <string.h>

#include "backend/cuda/runtime/cubins.h"
#include "backend/cuda/runtime/nvrtc.h"
#include "backend/cuda/runtime/shipped.h"
#include "backend/cuda/runtime/source.h"

enum { MOST_OPTIONS = 96, OPTION_BYTES = 1024, KEY_BYTES = OPTION_BYTES + 160 };

/* Compiling takes seconds at most; whoever waits longer for another compiles too. */
static const double wait_limit_s = 60;

/* The words of the compiler's command line, in `text`. */
static spk_status make_options(const spk_build *build, const char *arch, bool verbose, char *text, const char **words, int *count)
{
    int used = snprintf(text, OPTION_BYTES, "--gpu-architecture=%s -default-device --std=c++17%s %s", arch,
                        verbose ? " --ptxas-options=-v" : "", build->options);
    if (used < 0 || used >= OPTION_BYTES)
        return spk_fail(SPK_ERR_INTERNAL, "%s: its options have %d characters; the limit is %d", build->file, used, OPTION_BYTES - 1);
    char *rest = NULL;
    *count = 0;
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        if (*count == MOST_OPTIONS)
            return spk_fail(SPK_ERR_INTERNAL, "%s: more than %d options", build->file, MOST_OPTIONS);
        words[(*count)++] = word;
    }
    return SPK_OK;
}

/* Everything that a cubin depends on, as text: it is the name of the cache's file, and stands in it. */
static spk_status make_key(const spk_build *build, const char *arch, char *key, size_t size)
{
    char version[32];
    const spk_cuda_source *source = spk_cuda_source_find(build->file);
    if (source == NULL)
        return spk_fail(SPK_ERR_INTERNAL, "no device program is named \"%s\"", build->file);
    SPK_TRY(spk_cuda_nvrtc_open(version, sizeof version));
    int used =
        snprintf(key, size, "%s %016llx nvrtc=%s arch=%s %s", build->file, (unsigned long long)source->hash, version, arch, build->options);
    if (used < 0 || (size_t)used >= size)
        return spk_fail(SPK_ERR_INTERNAL, "%s: its cache key has %d characters; the limit is %zu", build->file, used, size - 1);
    return SPK_OK;
}

/* The same for what came with the library, which any version of the compiler may have made. false: it does not fit. */
static bool make_shipped_key(const spk_build *build, const char *arch, char *key, size_t size)
{
    const spk_cuda_source *source = spk_cuda_source_find(build->file);
    if (source == NULL)
        return false;
    const int used = snprintf(key, size, "%s %016llx arch=%s %s", build->file, (unsigned long long)source->hash, arch, build->options);
    return used > 0 && (size_t)used < size;
}

static spk_status compile(const spk_mem *mem, const spk_build *build, const char *arch, void **cubin, size_t *bytes, char **log)
{
    char text[OPTION_BYTES];
    const char *words[MOST_OPTIONS];
    int count = 0;
    SPK_TRY(make_options(build, arch, log != NULL, text, words, &count));
    return spk_cuda_nvrtc_compile(mem, build->file, words, count, cubin, bytes, log);
}

spk_status spk_cuda_compile(const spk_mem *mem, const spk_build *build, const char *arch, void **cubin, size_t *bytes, char **log)
{
    char key[KEY_BYTES];
    if (log != NULL) /* the messages are wanted: the cache has none */
        return compile(mem, build, arch, cubin, bytes, log);
    if (make_shipped_key(build, arch, key, sizeof key) && spk_shipped_load(mem, key, cubin, bytes))
        return SPK_OK;
    SPK_TRY(make_key(build, arch, key, sizeof key));
    if (spk_cubins_load(mem, key, cubin, bytes))
        return SPK_OK;
    int token = spk_cubins_lock(mem, key, wait_limit_s);
    spk_status status = SPK_OK;
    if (!spk_cubins_load(mem, key, cubin, bytes)) { /* not by the one that was waited for either */
        status = compile(mem, build, arch, cubin, bytes, NULL);
        if (status == SPK_OK)
            spk_cubins_save(mem, key, *cubin, *bytes);
    }
    spk_cubins_unlock(token, key);
    return status;
}

bool spk_cuda_compiled(const spk_mem *mem, const spk_build *build, const char *arch)
{
    char key[KEY_BYTES];
    if (make_shipped_key(build, arch, key, sizeof key) && spk_shipped_has(key))
        return true;
    return make_key(build, arch, key, sizeof key) == SPK_OK && spk_cubins_has(mem, key);
}

bool spk_cuda_is_shipped(const spk_build *build, const char *arch)
{
    char key[KEY_BYTES];
    return make_shipped_key(build, arch, key, sizeof key) && spk_shipped_has(key);
}
