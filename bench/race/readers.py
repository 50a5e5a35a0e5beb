"""A plain read of a matrix's values: how fast a kernel can be that only loads them. Needs Triton."""
import triton
import triton.language as tl
from triton.language.extra import cuda as tl_cuda


@triton.jit
def read_words(x, out, words, PIECE: tl.constexpr, PIECES: tl.constexpr, SUM: tl.constexpr, OVERLAPPED: tl.constexpr):
    """A program adds up PIECES pieces of PIECE 32-bit words. SUM: it stores the sum; else a word only where a lane's own sum is one rare number."""
    if OVERLAPPED:  # the next launch may set itself up; nothing is read before the last one has ended
        tl_cuda.gdc_launch_dependents()
        tl_cuda.gdc_wait()
    program = tl.program_id(0)
    lanes = tl.arange(0, PIECE)
    total = tl.zeros((PIECE,), dtype=tl.int32)
    for i in tl.static_range(PIECES):
        at = (program * PIECES + i) * PIECE + lanes
        total += tl.load(x + at, mask=at < words, other=0)
    if SUM:
        tl.store(out + program, tl.sum(total, axis=0))
    else:
        tl.store(out + program + lanes, total, mask=total == 0x4EEDBEEF)


def configurations():
    for piece in (1024, 2048, 4096):
        for pieces in (1, 2, 4):
            for warps in (4, 8):
                for total in (False, True):
                    yield dict(PIECE=piece, PIECES=pieces, SUM=total, num_warps=warps)


def reader(torch, values, configuration, overlapped):
    """A function that reads set i of `values`."""
    words = [v.view(-1).view(torch.int32) for v in values]
    out = torch.zeros(words[0].numel() // 1024 + 4096 + 2, dtype=torch.int32, device="cuda")
    programs = -(-words[0].numel() // (configuration["PIECE"] * configuration["PIECES"]))
    launch = dict(configuration, launch_pdl=True) if overlapped else configuration

    def run(i):
        read_words[(programs,)](words[i % len(words)], out, words[0].numel(), OVERLAPPED=overlapped, **launch)

    run.out, run.programs, run.words = out, programs, words
    return run


def is_right(torch, run):
    """Whether a reader that stores sums has read every word of set 0, once."""
    run.out.zero_()
    run(0)
    torch.cuda.synchronize()
    got, want = run.out[:run.programs].to(torch.int64).sum().item(), run.words[0].to(torch.int64).sum().item()
    return (got - want) % (1 << 32) == 0
