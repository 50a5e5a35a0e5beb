/* Options that do not fit become one that the compiler refuses by name. */
#include "backend/cuda/host/frame/build.h"

#include <stdio.h>
#include <string.h>

void spk_build_begin(spk_build *build, const char *file, const char *entry, const spk_problem *problem)
{
    *build = (spk_build){.file = file, .entry = entry};
    spk_problem_device_defines(problem, build->options, sizeof build->options);
}

void spk_build_define(spk_build *build, const char *name, int value)
{
    const size_t used = strlen(build->options), room = sizeof build->options - used;
    const int more = snprintf(build->options + used, room, "%s-D%s=%d", used > 0 ? " " : "", name, value);
    if (more < 0 || (size_t)more >= room)
        snprintf(build->options, sizeof build->options, "--too-many-constants");
}
