/* The processors that this process may use. */
#ifndef SPK_BASE_PROCESSORS_H
#define SPK_BASE_PROCESSORS_H

int spk_probe_processors(void); /* its affinity, at least 1 */
int spk_probe_threads(void);    /* $OMP_NUM_THREADS, else affinity and the container's quota; 1..1024 */

#endif
