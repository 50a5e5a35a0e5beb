/* A double of NVRTC that compiles device programs for the host, by compile.py beside it ($SPARSEK_ON_HOST): a cubin is the name of a shared
 * object, which libcuda's double (unit/cuda_double.c) opens and calls. So `sparsek check` runs GPU rows where there is no GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_OF_MEMORY = 1, COMPILATION = 6, MOST_WORDS = 16384, MOST_LOG = 65536 };

typedef struct program {
    char name[128], cubin[512], log[MOST_LOG];
} program;

int nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return 0;
}

const char *nvrtcGetErrorString(int result)
{
    return result == 0 ? "no error" : "the program does not compile for the host";
}

int nvrtcCreateProgram(program **made, const char *source, const char *name, int headers, const char *const *texts,
                       const char *const *names)
{
    *made = calloc(1, sizeof **made);
    if (*made == NULL)
        return OUT_OF_MEMORY;
    snprintf((*made)->name, sizeof(*made)->name, "%s", name);
    return 0;
}

int nvrtcDestroyProgram(program **made)
{
    free(*made);
    *made = NULL;
    return 0;
}

int nvrtcCompileProgram(program *p, int count, const char *const *options)
{
    char words[MOST_WORDS];
    const char *script = getenv("SPARSEK_ON_HOST");
    size_t used = (size_t)snprintf(words, sizeof words, "python3 '%s' '%s'", script != NULL ? script : "compile.py", p->name);
    for (int i = 0; i < count && used < sizeof words; i++)
        if (strncmp(options[i], "-D", 2) == 0)
            used += (size_t)snprintf(words + used, sizeof words - used, " '%s'", options[i]);
    if (used + 6 > sizeof words)
        return COMPILATION;
    strcat(words, " 2>&1");
    FILE *said = popen(words, "r");
    if (said == NULL)
        return COMPILATION;
    p->log[fread(p->log, 1, sizeof p->log - 1, said)] = '\0';
    if (pclose(said) != 0)
        return COMPILATION;
    p->log[strcspn(p->log, "\n")] = '\0';
    snprintf(p->cubin, sizeof p->cubin, "on host:%s", p->log);
    p->log[0] = '\0';
    return 0;
}

int nvrtcGetProgramLogSize(program *p, size_t *bytes)
{
    *bytes = strlen(p->log) + 1;
    return 0;
}

int nvrtcGetProgramLog(program *p, char *log)
{
    strcpy(log, p->log);
    return 0;
}

int nvrtcGetCUBINSize(program *p, size_t *bytes)
{
    *bytes = sizeof p->cubin;
    return 0;
}

int nvrtcGetCUBIN(program *p, char *cubin)
{
    memcpy(cubin, p->cubin, sizeof p->cubin);
    return 0;
}
