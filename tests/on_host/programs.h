/* Does the work of some device programs, as a launch would; others do nothing. One thread at a time. */
#ifndef SPK_ON_HOST_PROGRAMS_H
#define SPK_ON_HOST_PROGRAMS_H

#ifdef __cplusplus
extern "C"
#endif
    void
    run_on_host(const char *entry, void **parameters, unsigned grid, unsigned threads);

#endif
