"""A plain read of a matrix's values: how fast a kernel can be that only loads them. Needs Triton."""
import triton
import triton.language as tl
from triton.language.extra import cuda as tl_cuda


@triton.jit
def read_words(x, out, words, PIECE: tl.constexpr, PIECES: tl.constexpr, OVERLAPPED: tl.constexpr):
    """A program adds up PIECES pieces of PIECE 32-bit words, all loads ahead of the first sum, and stores one word."""
    if OVERLAPPED:  # the next launch may set itself up; nothing is read before the last one has ended
        tl_cuda.gdc_launch_dependents()
        tl_cuda.gdc_wait()
    program = tl.program_id(0)
    lanes = tl.arange(0, PIECE)
    total = tl.zeros((PIECE,), dtype=tl.int32)
    for i in tl.static_range(PIECES):
        at = (program * PIECES + i) * PIECE + lanes
        total += tl.load(x + at, mask=at < words, other=0)
    tl.store(out + program, tl.sum(total, axis=0))


def configurations(words, multiprocessors):
    """Many small programs, and as many as the multiprocessors hold at once: one, two or four each. At most 128 words a lane."""
    for piece in (1024, 2048, 4096):
        fitting = {-(-words // (piece * multiprocessors * each)) for each in (1, 2, 4)}
        for pieces in sorted({1, 2, 4} | fitting):
            for warps in (4, 8):
                if piece * pieces <= 128 * 32 * warps:
                    yield dict(PIECE=piece, PIECES=pieces, num_warps=warps)


def reader(torch, values, configuration, overlapped):
    """A function that reads set i of `values`."""
    words = [v.view(-1).view(torch.int32) for v in values]
    programs = -(-words[0].numel() // (configuration["PIECE"] * configuration["PIECES"]))
    out = torch.zeros(programs, dtype=torch.int32, device="cuda")
    launch = dict(configuration, launch_pdl=True) if overlapped else configuration

    def run(i):
        read_words[(programs,)](words[i % len(words)], out, words[0].numel(), OVERLAPPED=overlapped, **launch)

    run.out, run.words = out, words
    return run


def is_right(torch, run):
    """Whether a reader has read every word of set 0, once."""
    run.out.zero_()
    run(0)
    torch.cuda.synchronize()
    return (run.out.to(torch.int64).sum().item() - run.words[0].to(torch.int64).sum().item()) % (1 << 32) == 0
