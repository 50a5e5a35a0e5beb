/* What a test asks of the test double of NVML (nvml_double.c), and what it may look at. */
#ifndef NVML_DOUBLE_H
#define NVML_DOUBLE_H

typedef struct nvml_double {
    int init;                   /* what nvmlInit answers */
    unsigned long long reasons; /* why clocks are low */
    int slow_for;               /* so often the reasons are given, then none. 0: always */
    int asked;
} nvml_double;

#endif
