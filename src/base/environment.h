/* The environment, as far as it may be believed: the only place where the library reads it. */
#ifndef SPK_BASE_ENVIRONMENT_H
#define SPK_BASE_ENVIRONMENT_H

/* A variable's value; NULL: it is not set, or the program runs with more rights than its caller (set-user-ID, set-group-ID, file
 * capabilities), where the caller's environment must not choose which files are read, written, loaded or run. */
const char *spk_environment_value(const char *name);

/* Likewise, and NULL where it is empty. */
const char *spk_environment(const char *name);

#endif
