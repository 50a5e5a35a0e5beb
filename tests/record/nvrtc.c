/* A test double of NVRTC that compiles nothing: a cubin of it is the text of what it was given, the file's name and the options. */
#include <stdlib.h>
#include <string.h>

typedef struct nvrtc_program {
    char *text;
} nvrtc_program;

const char *nvrtcGetErrorString(int result)
{
    return result == 0 ? "success" : "an error";
}
int nvrtcVersion(int *major, int *minor)
{
    return *major = 99, *minor = 0;
}
int nvrtcCreateProgram(nvrtc_program **program, const char *source, const char *name, int headers, const char *const *texts,
                       const char *const *names)
{
    *program = calloc(1, sizeof **program);
    return *program == NULL || ((*program)->text = strdup(name)) == NULL;
}
int nvrtcDestroyProgram(nvrtc_program **program)
{
    free((*program)->text);
    free(*program);
    return *program = NULL, 0;
}
int nvrtcCompileProgram(nvrtc_program *program, int count, const char *const *options)
{
    for (int i = 0; i < count; i++) {
        const size_t used = strlen(program->text);
        char *longer = realloc(program->text, used + strlen(options[i]) + 2);
        if (longer == NULL)
            return 1;
        longer[used] = i == 0 ? '\n' : ' ';
        strcpy(longer + used + 1, options[i]);
        program->text = longer;
    }
    return 0;
}
int nvrtcGetProgramLogSize(nvrtc_program *program, size_t *bytes)
{
    return *bytes = 1, 0;
}
int nvrtcGetProgramLog(nvrtc_program *program, char *text)
{
    return *text = '\0', 0;
}
int nvrtcGetCUBINSize(nvrtc_program *program, size_t *bytes)
{
    return *bytes = strlen(program->text) + 1, 0;
}
int nvrtcGetCUBIN(nvrtc_program *program, char *cubin)
{
    return strcpy(cubin, program->text), 0;
}
