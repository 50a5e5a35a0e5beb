/* Sizes that come once each, such as the numbers of tokens of requests, decide together: what the first runs of candidates took, over what
 * was predicted of them, in trials of classes that calls of one layer may be in. Of the process; thread safe. */
#ifndef SPK_TUNE_TRIAL_FAMILY_H
#define SPK_TUNE_TRIAL_FAMILY_H

#include "kernel/kernel.h"

enum { SPK_FAMILY_LOOKS = 8, SPK_FAMILY_MEMBERS = 32 };

/* A candidate, and the ratios of its last first runs. */
typedef struct spk_family_member {
    const spk_kernel *kernel; /* NULL: none, nor behind it */
    spk_params params;
    int count; /* of all first runs; the last SPK_FAMILY_LOOKS have a ratio */
    double ratios[SPK_FAMILY_LOOKS];
} spk_family_member;

typedef struct spk_family {
    spk_family_member members[SPK_FAMILY_MEMBERS];
} spk_family;

/* A copy of what is known of this class and those near to it. */
void spk_family_read(const char *class_key, spk_family *copy);

/* The same, with another first run. */
void spk_family_note(const char *class_key, const spk_kernel *kernel, const spk_params *params, double ratio, spk_family *copy);

/* Of this class and those near to it: it is decided, and the store knows. NULL: of all. */
void spk_family_forget(const char *class_key);

#endif
