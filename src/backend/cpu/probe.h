/* Facts about this machine; each call reads the system, nothing is kept. */
#ifndef SPK_BACKEND_CPU_PROBE_H
#define SPK_BACKEND_CPU_PROBE_H

#include "backend/backend.h"

unsigned spk_probe_isa(void);                           /* SPK_ISA_ bits that processor and system offer */
bool spk_request_tiles(void);                           /* asks the system to keep AMX' registers for this process, from now on */
int spk_isa_names(unsigned isa, const char *names[16]); /* static strings; returns how many */
void spk_probe_name(char *name, size_t size);
void spk_probe_design(char *design, size_t size); /* "f26m2", where the name may hide it; "" where the system does not say */
double spk_probe_ghz(void);                       /* of a busy core, measured once a process (some 2 ms) */
int64_t spk_probe_cache_bytes(int level);         /* 1..3; 0: unknown */
int64_t spk_probe_memory_bytes(void);
int64_t spk_probe_free_bytes(void);

#endif
