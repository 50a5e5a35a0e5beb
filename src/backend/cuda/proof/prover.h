/* The helper process that proves device programs: where it is, starting it, its answers line by line, ending it. What it does:
 * proof_job.h. */
#ifndef SPK_BACKEND_CUDA_PROVER_H
#define SPK_BACKEND_CUDA_PROVER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/status.h"
#include "base/stop.h"

enum { SPK_PROVER_LINE_BYTES = 512 };

typedef struct spk_prover {
    pid_t pid; /* 0: it is gone */
    int answers;
    char line[SPK_PROVER_LINE_BYTES];
    size_t used;
    bool skipping; /* the rest of a line that was too long */
} spk_prover;

typedef enum spk_answer { SPK_ANSWER_LINE, SPK_ANSWER_END, SPK_ANSWER_LATE, SPK_ANSWER_STOPPED } spk_answer;

/* $SPARSEK_PROVER (a full path, or "none"), beside the library (or the program that it is linked into), or in libexec/sparsek: where nobody
 * may write but root, this user and the library's owner. false: there is none, and why says what was tried. */
bool spk_prover_find(char *path, size_t size, char *why, size_t why_size);

/* Starts the program with the open file `job` as its standard input. */
spk_status spk_prover_start(const char *program, int job, spk_prover *prover);

/* The next line without its end (cut where it is too long), unless the clock (spk_now_us) passes end_us first. SPK_ANSWER_END: the program
 * has ended and all that it said is read, whoever still holds its standard output. */
spk_answer spk_prover_line(spk_prover *prover, double end_us, const spk_stop *stop, char line[SPK_PROVER_LINE_BYTES]);

/* After SPK_ANSWER_END: whether somebody else ended it (a signal such as those of the terminal, of a supervisor or of the system short of
 * memory). */
bool spk_prover_was_ended(spk_prover *prover);

/* Ends it whatever it does. */
void spk_prover_end(spk_prover *prover);

#endif
