/* The report: what is known of every candidate for one class of problems. Made by the tuner, kept by the store, shown by explain. */
#ifndef SPK_STORE_REPORT_H
#define SPK_STORE_REPORT_H

#include "kernel/kernel.h"
#include "known/origin.h"

typedef struct spk_evidence {
    char name[48], params[SPK_MAX_PARAMS_TEXT], hash[17];
    spk_kind kind;
    spk_candidate_status status;
    char why[240]; /* "" for none */
    double predicted_us, median_us, spread_us, prepare_us, error, tolerance;
    double least_us; /* as spk_candidate_info has it; like the samples not stored */
    int64_t sample_count;
    double *samples_us; /* owned by the report; NULL for none */
} spk_evidence;

struct spk_report {
    spk_mem mem;
    int count, capacity;
    spk_evidence *candidates;
    int chosen; /* -1: none */
    bool from_store;
    bool by_kernel;            /* a race's: one entry a kernel, with its best parameters */
    double tuning_s, budget_s; /* budget: of the tuning; 0: none, or unknown */
    int64_t measured_at;
    spk_provisional provisional;
    uint64_t seed;
    int tried, known;  /* candidates that were measured, of how many, where by_kernel */
    bool empty;        /* the product has no element */
    bool crowded;      /* other programs used the processors meanwhile; known of what was measured just now only */
    bool kept_out;     /* the store has better evidence and keeps that */
    char *class_key;   /* never NULL once made */
    char *device_text; /* device name, for listings */
    bool foreign;      /* the times are another class's, and not this problem's */
    spk_origin how;    /* where the decision is not the class's own; else SPK_ORIGIN_NONE */
    char origin[160];  /* and whose evidence it is: "nearest class, of n=64"; "" otherwise */
    char *summary;     /* NULL until spk_report_summarise */
};

/* What an entry says that an interruption left undecided, and whether there is such an entry. */
extern const char spk_why_interrupted[];
bool spk_report_interrupted(const spk_report *report);

spk_status spk_report_make(const spk_mem *mem, const char *class_key, const char *device_text, spk_report **report);
void spk_report_release(spk_report **report);

/* A new zeroed entry (status pruned, error -1) of a candidate that has none: it is not looked for, as there may be thousands. The pointer
 * is valid until the next add. */
spk_status spk_report_add(spk_report *report, const spk_kernel *kernel, const spk_params *params, spk_evidence **entry);

/* A copy of `evidence` (its samples_us are taken over) as a new last entry; entry may be NULL. */
spk_status spk_report_append(spk_report *report, const spk_evidence *evidence, spk_evidence **entry);

/* Writes the paragraph of spk_report_info.summary: why the chosen one won, by how much over the best of the others, what was refused and
 * why (and what assume_finite would gain), how old the evidence is. */
spk_status spk_report_summarise(spk_report *report, int64_t now);

#endif
