/* libFuzzer: both sides of the talk with the prover. An input whose first byte is even is a job as the prover reads it; one that is odd,
 * what a prover of any kind answers to a job of a few candidates. */
#include "fuzz/fuzz_files.h"

#include "job.h"
#include "backend/cuda/proof/proof.h"
#include "backend/cuda/proof/proof_parts.h"

enum { CANDIDATES = 4, MOST_ANSWERS = 1 << 15 };

static void read_job(const uint8_t *data, size_t size)
{
    const int file = fuzz_file(data, size);
    prover_job job;
    if (job_read(file, &job) == 0) {
        fuzz_require(memchr(job.head.device, 0, sizeof job.head.device) != NULL, "the device's name ends");
        fuzz_require(job.head.finite_place < 0 || (size_t)job.head.finite_place + sizeof(int) <= sizeof job.head.problem,
                     "the promise lies in the problem");
        for (int i = 0; i < job.head.count; i++)
            fuzz_require(memchr(job.choices[i].text, 0, sizeof job.choices[i].text) != NULL, "a choice ends");
        if (job.head.block_rows > 0) {
            volatile int64_t last = job.offsets[job.head.grid_rows];
            (void)last;
        }
    }
    job_release(&job);
    close(file);
}

static void follow_answers(const uint8_t *data, size_t size)
{
    spk_prepared list[CANDIDATES] = {{.kernel = NULL}};
    int todo[CANDIDATES], pipes[2];
    bool go_on = false;
    for (int i = 0; i < CANDIDATES; i++)
        todo[i] = i;
    spk_proving p = {.list = list, .todo = todo, .count = CANDIDATES};
    fuzz_require(pipe(pipes) == 0, "a pipe");
    fuzz_put(pipes[1], data, size < MOST_ANSWERS ? size : MOST_ANSWERS); /* what a pipe holds */
    close(pipes[1]);
    spk_prover prover = {.answers = pipes[0]};
    spk_cuda_proof_limits(1e6, 1e6);
    const int reached = spk_proof_follow(&p, &prover, 0, &go_on);
    fuzz_require(reached >= 0 && reached <= CANDIDATES, "a place in the list");
    for (int i = 0; i < CANDIDATES; i++) {
        fuzz_require(memchr(list[i].why, 0, sizeof list[i].why) != NULL, "a reason ends");
        fuzz_require(list[i].status == SPK_OK || list[i].why[0] != '\0', "a failure says why");
        fuzz_require(i <= reached || list[i].why[0] == '\0', "nothing is said of those that it did not come to");
    }
    close(pipes[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] % 2 == 0)
        read_job(data + 1, size - 1);
    else
        follow_answers(data + 1, size - 1);
    return 0;
}
