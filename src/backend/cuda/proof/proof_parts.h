/* What the parts of a proof share: the candidates under proof, the job for the prover (proof_job.c), what it answers (proof_answers.c). */
#ifndef SPK_BACKEND_CUDA_PROOF_PARTS_H
#define SPK_BACKEND_CUDA_PROOF_PARTS_H

#include "backend/cuda/runtime/device.h"
#include "backend/cuda/proof/prover.h"

typedef struct spk_proving {
    spk_device *device;
    const spk_problem *problem; /* what the prover runs: the caller's, or a part of it (proof_part.c) */
    spk_prepared *list;
    int *todo; /* indices into list of candidates without proof */
    int count;
    const spk_stop *stop;
    double late_us;    /* spent so far on answers that never came */
    char refused[200]; /* why the prover does not take the problem itself, which says nothing of a candidate; "": it takes it */
} spk_proving;

/* What the prover runs: the problem, or, of one with large operands, a part of it for which every candidate of todo applies and is the same
 * program. *pattern: one made for the part, which the caller releases. */
spk_status spk_proof_part(const spk_proving *p, spk_problem *part, spk_pattern **pattern);

/* The job for candidates todo[from..] as an open file at its beginning; -1: errno says why. */
int spk_proof_job_write(const spk_proving *p, int from);

/* A line of the prover's: index is the candidate it names (-1: none), text what follows. */
typedef enum spk_word {
    SPK_WORD_OTHER,
    SPK_WORD_READY,
    SPK_WORD_RUN,
    SPK_WORD_MADE,
    SPK_WORD_OK,
    SPK_WORD_FAILED,
    SPK_WORD_LOST,
    SPK_WORD_REFUSED
} spk_word;
spk_word spk_proof_word(const char *line, int *index, const char **text);

/* Sets a candidate's status and why; text is what format's only %s stands for. */
void spk_proof_say(spk_prepared *candidate, spk_status status, const char *format, const char *text);
/* Likewise, for a proof that came to no end through no fault of the candidate: it is unavailable, unless proofs made elsewhere count. */
void spk_proof_unanswered(spk_prepared *candidate, const char *format, const char *text);

/* Follows one prover from candidate todo[from] on; returns the first that it did not come to, and says whether it is of use to start
 * another. */
int spk_proof_follow(spk_proving *p, spk_prover *prover, int from, bool *go_on);

#endif
