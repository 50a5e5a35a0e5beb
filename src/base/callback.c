#include "base/callback.h"

#include "base/clock.h"
#include "base/status.h"

static _Thread_local int depth; /* above 1 where a destructor, which callbacks may call, has something to tell */
static _Thread_local double begun_us, spent_us, allowed_us, lost_us;

/* Returns the context that failures of this thread belong to. */
static uint64_t begin(void)
{
    if (depth++ == 0)
        begun_us = spk_now_us();
    return spk_error_context();
}

/* Failures belong to that context again, whatever the callback has called. */
static void end(uint64_t context_id)
{
    spk_error_enter(context_id);
    if (--depth == 0)
        spent_us += spk_now_us() - begun_us;
}

void spk_tell_log(spk_log log, void *user, int level, const char *message)
{
    if (log == NULL)
        return;
    const uint64_t context_id = begin();
    log(user, level, message);
    end(context_id);
}

void spk_tell_progress(spk_progress progress, void *user, int64_t done, int64_t total, const char *what)
{
    if (progress == NULL)
        return;
    const uint64_t context_id = begin();
    progress(user, done, total, what);
    end(context_id);
}

bool spk_in_callback(void)
{
    return depth > 0;
}

double spk_work_us(void)
{
    return (depth > 0 ? begun_us : spk_now_us()) - spent_us;
}

double spk_work_allow(double us)
{
    const double before_us = lost_us;
    allowed_us = us;
    lost_us = 0;
    return before_us;
}

void spk_work_lost(double us)
{
    const double left_out_us = us < allowed_us - lost_us ? us : allowed_us - lost_us;
    lost_us += left_out_us;
    spent_us += left_out_us;
}
