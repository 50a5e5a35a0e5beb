/* A steady clock. */
#ifndef SPARSEK_CLI_BASE_CLOCK_H
#define SPARSEK_CLI_BASE_CLOCK_H

double clock_now_s(void);

#endif
