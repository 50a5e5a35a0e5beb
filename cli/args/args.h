/* Options as data: parsing (--long=value, --long value, one-letter aliases), limits, messages with the nearest suggestion. */
#ifndef SPARSEK_CLI_ARGS_ARGS_H
#define SPARSEK_CLI_ARGS_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include <sparsek/sparsek.h>

#define ARGS_MAX_OPTIONS 128
#define ARGS_MAX_OPERANDS 8

/* What args_parse returns beside an exit code. */
enum {
    ARGS_GO = -1,        /* go on with the command */
    ARGS_HELP = -2,      /* the command's help is wanted, */
    ARGS_SHORT_HELP = -3 /* or that of one screen */
};

typedef struct args_block {
    int64_t rows, cols; /* 0: not given */
} args_block;

typedef struct args_cells {
    int64_t x, y, z; /* 0: not given */
} args_cells;

typedef enum args_kind {
    ARGS_FLAG,    /* int: 1 where given */
    ARGS_TEXT,    /* const char *, as are the next three */
    ARGS_FILE,    /* a file of any kind */
    ARGS_MATRIX,  /* a matrix file */
    ARGS_DEVICE,  /* cpu, cuda, cuda:1 */
    ARGS_INT,     /* int64_t in [low, high] */
    ARGS_SEED,    /* uint64_t; 0x... allowed */
    ARGS_REAL,    /* double in [low, high] */
    ARGS_SHARE,   /* double in [low, high]; "10%" is 0.1 */
    ARGS_BLOCK,   /* args_block: "64" or "64x32" */
    ARGS_CELLS,   /* args_cells: "20" or "20x10x10" */
    ARGS_SCALE,   /* spk_scale: "row" or "1x128" (type/tile.h) */
    ARGS_CHOICE,  /* int: index in values "a|b|c" */
    ARGS_DTYPE,   /* spk_dtype */
    ARGS_PATTERN, /* spk_generator */
    ARGS_KERNELS  /* const char *: comma-separated names of the kernel table */
} args_kind;

typedef struct args_option {
    const char *name;
    char letter; /* 0: none */
    args_kind kind;
    void *to;
    const char *values; /* the choices of ARGS_CHOICE; else the placeholder in the help, NULL for the kind's */
    double low, high;   /* ARGS_INT, ARGS_REAL, ARGS_SHARE */
    const char *help;   /* with unit and default: "what it does; more of it (default: 3)" */
} args_option;

typedef struct args {
    const char *command;  /* "bench" */
    const char *synopsis; /* "[FILE] [options]" */
    const char *brief;    /* in one line; set by cli_common_options */
    const char *about;    /* what it does: paragraphs, and entries as term_text prints them */
    const char *examples; /* one a line, without the leading spaces */
    int min_operands, max_operands;
    const char *operand_names; /* "A B": for the message where one is missing */
    /* what completes an operand: ARGS_MATRIX, ARGS_PATTERN, or ARGS_CHOICE of operand_values; ARGS_FLAG: nothing does */
    args_kind operand_kind;
    const char *operand_values;
    const char *often; /* the options of the short help, space-separated */
    /* NULL, or what to say of an option that the command does not know; NULL of it: what is nearest */
    const char *(*why_unknown)(const char *name);
    args_option list[ARGS_MAX_OPTIONS];
    bool idle[ARGS_MAX_OPTIONS];         /* an option of other commands that does nothing for this one: refused, and not in the help */
    const char *group[ARGS_MAX_OPTIONS]; /* title of the group that the option opens, or NULL */
    int count;
    const char *operands[ARGS_MAX_OPERANDS];
    int operand_count;
    void (*visit)(void *user, const struct args *a); /* NULL, or who is told of the table in place of parsing */
    void *visit_user;
} args;

/* Appends a titled group of options. */
void args_add(args *a, const char *title, const args_option *options, int count);

/* argv[0] is the command's name. ARGS_GO, ARGS_HELP, ARGS_SHORT_HELP, or the exit code (2 after a message). */
int args_parse(args *a, int argc, char **argv);

/* Parsers for values that come from files too. They return false and leave *out alone on a bad text. */
bool args_read_int(const char *text, int64_t *out);
bool args_read_real(const char *text, double *out);
bool args_read_share(const char *text, double *out); /* "0.1" or "10%" */
bool args_read_block(const char *text, args_block *out);
bool args_read_cells(const char *text, args_cells *out);
/* Index of text in "a|b|c" ('-' and '_' alike), or -1. */
int args_choice(const char *choices, const char *text);

/* "Did you mean ...?": spk_nearest() of "a|b|c"; valid until the next call. */
const char *args_nearest_of(const char *text, const char *list);

/* What another program's, or an older version's, word for a command means here; NULL: it is none. */
const char *args_other_command(const char *text);

/* These know other programs' words too: float32 is f32, random is uniform. */
const char *args_nearest_command(const char *text, const char *const *names, int count);
const char *args_nearest_key(const char *text, const char *const *names, int count); /* of problems in files, and options */
const char *args_nearest_dtype(const char *text);
const char *args_nearest_pattern(const char *text);
const char *args_nearest_kernel(const char *text);

/* The names of all patterns; how many there are. */
enum { ARGS_MOST_PATTERNS = 32 };
int args_patterns(const char **names);

/* The first comma-separated name that is no kernel of the table, NULL if all are: `bad` gets a copy of it. */
bool args_kernels_known(const char *list, char *bad, int size);

#endif
