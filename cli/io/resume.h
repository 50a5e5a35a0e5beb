/* Files from which a series of random problems goes on: `check` and `regret`. */
#ifndef SPARSEK_CLI_IO_RESUME_H
#define SPARSEK_CLI_IO_RESUME_H

#include <jansson.h>

#include "cli/base/cli.h"

/* One series: a file that tells of another one is refused. */
typedef struct resume {
    const char *path, *what; /* "sparsek check" */
    uint64_t seed;
    bool seed_given;  /* else the seed is taken from the file */
    json_t *settings; /* by the options' names; null: not given. Owned */
} resume;

/* seed UINT64_MAX: not given, a random one is drawn. `settings` is taken over. */
resume resume_make(const char *path, const char *what, uint64_t seed, json_t *settings);
void resume_release(resume *r);

/* Writes the state: `fields` (taken over) with what tells the series. Exit code. */
int resume_save(const cli *app, const resume *r, json_t *fields);

/* The state in *root (a new reference), NULL where there is no file yet. Exit code; 2 where the settings are others. */
int resume_load(const cli *app, resume *r, json_t **root);

#endif
