/* What the programs here call the library with: the context, and a call that ends the program where it fails. */
#ifndef SPARSEK_BENCH_CALLS_H
#define SPARSEK_BENCH_CALLS_H

#include <sparsek/sparsek.h>
#include <stdio.h>
#include <stdlib.h>

static spk_context *context;

#define TRY(call)                                                        \
    do {                                                                 \
        if ((call) != SPK_OK) {                                          \
            fprintf(stderr, "%s: %s\n", #call, spk_last_error(context)); \
            exit(1);                                                     \
        }                                                                \
    } while (0)

#endif
