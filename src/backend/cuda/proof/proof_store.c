/* Proofs on disk, in the cache of compiled programs, under keys of their own. */
#include "backend/cuda/proof/proof_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backend/cuda/runtime/cubins.h"
#include "backend/cuda/runtime/nvrtc.h"
#include "base/hash.h"
#include "known/known.h"

static const char good[] = "good";

/* ------------------------------------------------------------------------------------------------ in this process */

bool spk_proof_remembered(const char *key)
{
    return spk_known_find(spk_known_of_process(SPK_KNOWN_PROOFS), key, strlen(key), NULL, 0);
}

bool spk_cuda_proof_stands(const spk_device *device, const char *key)
{
    (void)device;
    return spk_proof_remembered(key);
}

void spk_proof_remember(const char *key, bool is_good)
{
    spk_known *proofs = spk_known_of_process(SPK_KNOWN_PROOFS);
    if (is_good)
        spk_known_first(proofs, key, strlen(key));
    else
        spk_known_drop(proofs, key, strlen(key));
}

void spk_proofs_forget(void)
{
    spk_known_forget(spk_known_of_process(SPK_KNOWN_PROOFS));
}

/* ------------------------------------------------------------------------------------------------ on disk */

/* "good", then for what and where, which bench/proved.py reads: driver, architecture, model, candidate. */
static void write_good(const spk_device *device, const spk_prepared *candidate, char *text, size_t size)
{
    const spk_cuda *cuda = spk_cuda_of(device);
    char params[SPK_MAX_PARAMS_TEXT];
    spk_params_text(candidate->kernel, &candidate->params, params, sizeof params);
    snprintf(text, size, "%s\ndriver %d\narch %s\ndevice %s\nchoice %s%s%s\n", good, cuda->driver_version, cuda->arch, device->name,
             candidate->kernel->name, params[0] != '\0' ? " " : "", params);
}

void spk_proof_key(const spk_device *device, const spk_problem *problem, const spk_kernel *kernel, const spk_params *params,
                   char key[SPK_PROOF_KEY_BYTES])
{
    spk_build build = {0};
    char hash[17];
    char compiler[32] = "";
    if (kernel->ops->build != NULL)
        kernel->ops->build(problem, device, params, &build);
    else
        spk_problem_device_defines(problem, build.options, sizeof build.options);
    spk_candidate_hash(kernel, params, hash);
    uint64_t mixed = spk_hash_text(SPK_HASH_START, hash);
    mixed = spk_hash_text(mixed, build.options);
    if (kernel->ops->build != NULL && spk_cuda_nvrtc_open(compiler, sizeof compiler) == SPK_OK)
        mixed = spk_hash_text(mixed, compiler);
    mixed = spk_hash_text(mixed, device->name);
    int driver = spk_cuda_of(device)->driver_version;
    mixed = spk_hash_bytes(mixed, &driver, sizeof driver);
    if (kernel->library != NULL) {
        char libraries[1024] = "";
        device->backend->key_text((spk_device *)device, libraries, sizeof libraries);
        mixed = spk_hash_text(mixed, libraries);
    }
    snprintf(key, SPK_PROOF_KEY_BYTES, "proof:%s%016" PRIx64, hash, mixed);
}

spk_proof spk_proof_find(const spk_device *device, const char *key, char *why, size_t size)
{
    void *text = NULL;
    size_t bytes = 0;
    if (!spk_cubins_load(&device->mem, key, &text, &bytes))
        return SPK_PROOF_NONE;
    bool is_good = bytes >= sizeof good && memcmp(text, good, sizeof good - 1) == 0 && ((const char *)text)[sizeof good - 1] == '\n';
    if (!is_good)
        snprintf(why, size, "%.*s", bytes < size ? (int)bytes : (int)size - 1, (const char *)text);
    spk_free(&device->mem, text);
    spk_proof_remember(key, is_good);
    return is_good ? SPK_PROOF_GOOD : SPK_PROOF_REFUTED;
}

void spk_proof_keep(const spk_device *device, const spk_prepared *candidate, const char *key, const char *why)
{
    char text[512];
    if (why == NULL)
        write_good(device, candidate, text, sizeof text);
    else
        snprintf(text, sizeof text, "%s", why);
    spk_cubins_save(&device->mem, key, text, strlen(text) + 1);
    spk_proof_remember(key, why == NULL);
}
