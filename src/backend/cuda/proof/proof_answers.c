/* What a prover answers, line by line, and what a line that never comes means. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/proof/proof.h"
#include "backend/cuda/proof/proof_parts.h"
#include "base/c_locale.h"
#include "base/clock.h"

enum {
    MOST_LATE_STARTS = 2, /* of start_limit_us: a job waits no longer than that in all for answers that never come */
    SLOW_PART = 20        /* a run that the model gives more than 1/20 of its limit may reach it and not hang */
};
/* of opening the device and filling the operands, of making a plan: a fresh machine loads libraries for seconds */
static double start_limit_us = 60e6;
static double run_limit_us = 10e6; /* of one candidate's run: compiling has been done */

void spk_cuda_proof_limits(double start_us, double run_us)
{
    start_limit_us = start_us;
    run_limit_us = run_us;
}

void spk_proof_say(spk_prepared *candidate, spk_status status, const char *format, const char *text)
{
    candidate->status = status;
    candidate->unanswered = false;
    spk_snprintf(candidate->why, sizeof candidate->why, format, text);
}

void spk_proof_unanswered(spk_prepared *candidate, const char *format, const char *text)
{
    spk_proof_say(candidate, SPK_ERR_UNAVAILABLE, format, text);
    candidate->unanswered = true;
}

spk_word spk_proof_word(const char *line, int *index, const char **text)
{
    static const struct {
        const char *before; /* the number of a candidate */
        spk_word word;
    } numbered[] = {{"run ", SPK_WORD_RUN}, {"made ", SPK_WORD_MADE}, {"ok ", SPK_WORD_OK}, {"failed ", SPK_WORD_FAILED}};
    *index = -1;
    *text = "";
    if (strcmp(line, "ready") == 0)
        return SPK_WORD_READY;
    if (strncmp(line, "lost ", 5) == 0) {
        *text = line + 5;
        return SPK_WORD_LOST;
    }
    if (strncmp(line, "refused ", 8) == 0) {
        *text = line + 8;
        return SPK_WORD_REFUSED;
    }
    for (size_t i = 0; i < sizeof numbered / sizeof numbered[0]; i++) {
        const size_t length = strlen(numbered[i].before);
        if (strncmp(line, numbered[i].before, length) != 0 || line[length] < '0' || line[length] > '9')
            continue;
        char *end = NULL;
        const long number = strtol(line + length, &end, 10);
        if (number > INT_MAX || (numbered[i].word != SPK_WORD_FAILED && *end != '\0'))
            continue;
        *index = (int)number;
        *text = end + strspn(end, " ");
        return numbered[i].word;
    }
    return SPK_WORD_OTHER;
}

typedef enum phase { OPENING, READY, MAKING, RUNNING } phase;

static double limit_of(phase now)
{
    return now == RUNNING || now == READY ? run_limit_us : start_limit_us;
}

static double end_of(phase now)
{
    return spk_now_us() + limit_of(now);
}

/* No answer came: one more of that kind may be waited for as long as a few of them have not used up the time for all. */
static bool may_be_late_again(spk_proving *p, phase now)
{
    p->late_us += limit_of(now);
    return p->late_us < MOST_LATE_STARTS * start_limit_us;
}

/* Whether the model expects a long run, such as a reference kernel's on a large problem. */
static bool is_slow(const spk_proving *p, const spk_prepared *candidate)
{
    return spk_candidate_predict_us(candidate->kernel, &candidate->params, p->problem, p->device) > run_limit_us / SLOW_PART;
}

/* No answer: it died or hangs over this candidate, or never came so far. Returns the first that it did not come to. */
static int end_at(spk_proving *p, spk_prover *prover, int at, phase now, bool late, bool *go_on)
{
    spk_prepared *candidate = &p->list[p->todo[at]];
    if (now == OPENING || now == READY) {
        if (!*go_on || late || now == OPENING)
            spk_proof_unanswered(candidate, "it could not be proved: the prover %s", late ? "did not answer" : "ended early");
        *go_on = *go_on && !late && now == READY; /* it left after a fault, as it should */
        return at;
    }
    *go_on = !late || may_be_late_again(p, now);
    if (late && now == MAKING)
        spk_proof_unanswered(candidate, "%s", "it was not ready within the time for its proof");
    else if (late && is_slow(p, candidate))
        spk_proof_unanswered(candidate, "%s", "it is too slow on this problem to be proved");
    else if (late)
        spk_proof_say(candidate, SPK_ERR_INTERNAL, "%s", "it did not end in time when proved");
    else if (spk_prover_was_ended(prover))
        spk_proof_unanswered(candidate, "%s", "the process that proved it was ended from outside");
    else
        spk_proof_say(candidate, SPK_ERR_INTERNAL, "%s", "it took the proving process with it");
    return at + 1;
}

static bool names(const char *text, spk_status status)
{
    const char *name = spk_status_name(status);
    const size_t length = strlen(name);
    return strncmp(text, name, length) == 0 && text[length] == ':';
}

/* Only what went wrong inside counts against the program itself; want of memory, or a shape that it does not take, proves nothing about
 * others. */
static void say_failed(spk_prepared *candidate, const char *text)
{
    const spk_status status = names(text, SPK_ERR_INTERNAL)      ? SPK_ERR_INTERNAL
                              : names(text, SPK_ERR_UNSUPPORTED) ? SPK_ERR_UNSUPPORTED
                                                                 : SPK_ERR_UNAVAILABLE;
    spk_proof_say(candidate, status, "when proved: %.180s", text);
}

int spk_proof_follow(spk_proving *p, spk_prover *prover, int from, bool *go_on)
{
    int at = from;
    phase now = OPENING;
    double end_us = end_of(now);
    char line[SPK_PROVER_LINE_BYTES];
    *go_on = false;
    while (at < p->count) {
        spk_prepared *candidate = &p->list[p->todo[at]];
        int index;
        const char *text;
        const spk_answer answer = spk_prover_line(prover, end_us, p->stop, line);
        if (answer == SPK_ANSWER_STOPPED)
            return at;
        if (answer != SPK_ANSWER_LINE)
            return end_at(p, prover, at, now, answer == SPK_ANSWER_LATE, go_on);
        const spk_word said = spk_proof_word(line, &index, &text);
        if (said == SPK_WORD_OTHER) { /* libraries may print, but not for ever */
            if (spk_now_us() > end_us)
                return end_at(p, prover, at, now, true, go_on);
            continue;
        }
        const bool this_one = index == at - from;
        if (said == SPK_WORD_LOST || said == SPK_WORD_REFUSED) {
            if (said == SPK_WORD_REFUSED)
                snprintf(p->refused, sizeof p->refused, "%.190s", text);
            spk_proof_unanswered(candidate, "it could not be proved: %.160s", text);
            *go_on = false;
            return at;
        }
        if (said == SPK_WORD_READY && now == OPENING) {
            now = READY;
        } else if (said == SPK_WORD_RUN && this_one && now == READY) {
            now = MAKING;
        } else if (said == SPK_WORD_MADE && this_one && now == MAKING) {
            now = RUNNING;
        } else if (said == SPK_WORD_OK && this_one && now == RUNNING) {
            spk_proof_say(candidate, SPK_OK, "%s", "");
            at++;
            now = READY;
        } else if (said == SPK_WORD_FAILED && this_one && (now == MAKING || now == RUNNING)) {
            say_failed(candidate, text);
            at++;
            now = READY;
            *go_on = true;
        } else {
            spk_proof_say(candidate, SPK_ERR_UNAVAILABLE, "it could not be proved: the prover says \"%.60s\" out of turn", line);
            *go_on = false;
            return at;
        }
        end_us = end_of(now);
    }
    return at;
}
