/* JSON results: the envelope that every command writes, and small builders that never fail (no memory: the program ends with code 5). */
#ifndef SPARSEK_CLI_IO_JSON_H
#define SPARSEK_CLI_IO_JSON_H

#include <jansson.h>

#include "cli/base/cli.h"

/* Puts a new value into an object; takes it over. */
void json_put(json_t *object, const char *key, json_t *value);
void json_push(json_t *array, json_t *value);

/* null for numbers that are not finite. */
json_t *json_number(double value);

/* A string of any bytes: what is no UTF-8 becomes '?'. NULL: null. */
json_t *json_text(const char *text);

/* {"schema": 1, "sparsek": ..., "commit", "date", "command", "device"}, and "results" (an array, taken over). */
json_t *json_envelope(cli *app, json_t *results);

/* Writes to app->json if it was given; releases `root` in any case. Returns `code`, or the exit code of the write where that failed. */
int json_finish(cli *app, json_t *root, int code);

/* Reads a file; message and NULL where it cannot be read or is no JSON (*code gets the exit code). */
json_t *json_read(const cli *app, const char *path, int *code);

/* Writes a file aside and renames it. Returns an exit code. */
int json_save(const cli *app, const char *path, const json_t *root);

#endif
