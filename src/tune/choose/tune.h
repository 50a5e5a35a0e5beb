/* The tuner: problem x candidates -> validated, timed, ranked, stored. */
#ifndef SPK_TUNE_CHOOSE_TUNE_H
#define SPK_TUNE_CHOOSE_TUNE_H

#include "known/known.h"
#include "known/origin.h"
#include "store/class_key.h"
#include "tune/measure/tuner.h"

/* The class of a problem on a device, as text (key.c): exact fields, then "|", then the fields that the nearest class may differ in. */
spk_status spk_key_make(const spk_problem *problem, spk_device *device, char *buffer, size_t size);

/* The key that the bundle has a class under: the device's model in place of all that is this machine's own. */
spk_status spk_key_of_bundle(const char *key, spk_device *device, char *buffer, size_t size);

enum { SPK_CHOICE_OF = 96 };

/* What a plan shall run. */
typedef struct spk_choice {
    const spk_kernel *kernel;
    spk_params params;
    bool from_store, pinned;
    bool stable;                      /* the same question has the same answer until a store is written to */
    bool again;                       /* it is of a busy machine that is quiet by now: a trial in place may do better */
    bool until_write;                 /* the class has no evidence of its own: asked again when a store has been written to */
    char proof[SPK_PROOF_NAME_BYTES]; /* "", or the name of its proof for this problem: while that stands, binding asks no further */
    uint64_t class;                   /* spk_class_hash of the class that it was looked up under; 0: of none */
    spk_origin origin;
    char of[SPK_CHOICE_OF]; /* whose evidence it was, where that is not the class's own: "n=64"; "" otherwise */
} spk_choice;

/* Why it was chosen, and whose evidence that was: "nearest class, of n=64". */
enum { SPK_WHY_BYTES = SPK_CHOICE_OF + 64 };
void spk_choice_words(const spk_choice *choice, char *words, size_t size);

/* The way from every choice to a candidate that runs in this process: SPK_ERR_NO_CANDIDATE for one that is not proved, but for a pinned
 * one, and for one that was refuted, pinned or not (proof.c). */
spk_status spk_tune_bind(const spk_tuner *tuner, const spk_problem *problem, const spk_choice *choice, spk_bound *bound);

/* Sets choice->proof, where there are proofs: of this problem, and of others that the host cannot tell from it. */
void spk_tune_name_proof(const spk_tuner *tuner, const spk_problem *problem, spk_choice *choice);

/* Binds the best of the cost model's candidates that takes any pointers and is proved; fallback->kernel and bound->kernel are NULL where
 * there is none (fallback.c). first: what the plan runs otherwise. */
void spk_tune_bind_fallback(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_choice *first,
                            spk_choice *fallback, spk_bound *bound);

/* options are normalised copies (spk_struct_read), never NULL. */
spk_status spk_tune_choose(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_choice *choice);
spk_status spk_tune_problem(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_report **report);
spk_status spk_tune_list(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_report **report);
spk_status spk_tune_explain(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, spk_report **report);
spk_status spk_tune_race(const spk_tuner *tuner, const spk_problem *problem, const spk_tune_options *options, const spk_race_options *race,
                         spk_report **report);

#endif
