/* The commands, a file each. They return the program's exit code. */
#ifndef SPARSEK_CLI_COMMANDS_COMMANDS_H
#define SPARSEK_CLI_COMMANDS_COMMANDS_H

#include "cli/base/cli.h"

int cmd_info(cli *app, int argc, char **argv);
int cmd_bench(cli *app, int argc, char **argv);
int cmd_tune(cli *app, int argc, char **argv);
int cmd_explain(cli *app, int argc, char **argv);
int cmd_compute(cli *app, int argc, char **argv);
int cmd_inspect(cli *app, int argc, char **argv);
int cmd_convert(cli *app, int argc, char **argv);
int cmd_gen(cli *app, int argc, char **argv);
int cmd_check(cli *app, int argc, char **argv);
int cmd_regret(cli *app, int argc, char **argv);
int cmd_store(cli *app, int argc, char **argv);

#endif
