"""Attention over a video, each token of which sees those near it in space and time: forward and backward, beside PyTorch's.

The tokens of a video are frames of lines of columns. A token sees a box about it: some frames, some lines, some columns (3-D neighbourhood attention). There
are two masks:

- window: the box is centred on the token, shifted inwards at the edges. Tokens lie in their order in memory, so that a block of tokens is part of a line or
  two, and most of the blocks that it sees are seen in part: sa.BlockMask.video keeps a tile of bits for those.
- tiles: the video is cut into small boxes, whose tokens are brought together once before the layers, and the window moves by whole boxes. Each block is seen
  whole or not at all (sliding tile attention, arXiv:2502.04507): the mask is three bands of tiles, sa.BlockMask.from_dense.

PyTorch's scaled_dot_product_attention gets the mask as a dense matrix of booleans, where that fits into memory, and FlexAttention a block mask of its own and
a compiled kernel, on GPUs: on the CPU it has no gradients. Attention of all tokens to all is timed as well; it computes something else.

    python examples/python/video.py
    python examples/python/video.py --device cuda
"""

import contextlib
import time

import torch
import torch.nn.functional as F  # noqa: N812

import shared
import sparse_autotune as sa

GIB = 1 << 30


class Window:
    """A box about each token."""

    name = "window"

    def __init__(self, options):
        self.size, self.window, self.tile = options.size, options.window, options.tile

    def mask(self, device):
        return sa.BlockMask.video(*self.size, self.window, self.tile[0] * self.tile[1] * self.tile[2], device=device)

    def sees(self, query, key):
        """Of numbers of tokens, which broadcast."""
        seen = None
        for at, to, reach, most in zip(self.places(query), self.places(key), self.window, self.size, strict=True):
            begin = (at - reach // 2).clamp(0, most - reach)
            inside = (to >= begin) & (to < begin + reach)
            seen = inside if seen is None else seen & inside
        return seen

    def places(self, token):
        _, lines, columns = self.size
        return token // (lines * columns), token // columns % lines, token % columns


class Tiles:
    """Tokens are numbered tile by tile; a tile sees tiles."""

    name = "tiles"

    def __init__(self, options):
        self.tile, self.tokens = options.tile, options.tile[0] * options.tile[1] * options.tile[2]
        self.grid = tuple(most // of for most, of in zip(options.size, options.tile, strict=True))
        self.reach = tuple(max(1, round(wanted / of)) for wanted, of in zip(options.window, options.tile, strict=True))
        self.whole = Window(options)  # of tiles, as if they were tokens
        self.whole.size, self.whole.window = self.grid, self.reach

    def mask(self, device):
        at = torch.arange(self.grid[0] * self.grid[1] * self.grid[2], device=device)
        return sa.BlockMask.from_dense(self.whole.sees(at[:, None], at), self.tokens)

    def sees(self, query, key):
        return self.whole.sees(query // self.tokens, key // self.tokens)

    def order(self, x):
        """[..., tokens, depth] in the order of memory, brought into that of the tiles."""
        frames, lines, columns = self.grid
        x = x.unflatten(-2, (frames, self.tile[0], lines, self.tile[1], columns, self.tile[2]))
        first = x.dim() - 7
        return x.permute(*range(first), *(first + at for at in (0, 2, 4, 1, 3, 5, 6))).flatten(-7, -2)


def dense(kind, tokens, device, dtype):
    """The mask of all pairs; None where it and the copy that PyTorch makes of it, as numbers to add, do not fit."""
    memory_bytes = torch.cuda.mem_get_info(device)[0] * 3 // 4 if torch.device(device).type == "cuda" else 4 * GIB
    if tokens * tokens * (1 + dtype.itemsize) > memory_bytes:
        return None
    at, made = torch.arange(tokens, device=device), torch.empty(tokens, tokens, dtype=torch.bool, device=device)
    for rows in at.split(max(1, (1 << 24) // tokens)):
        made[rows] = kind.sees(rows[:, None], at)
    return made


def flex(kind, tokens, device):
    """FlexAttention, compiled; None where it has no gradients."""
    if torch.device(device).type != "cuda":
        return None
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def rule(_item, _head, query, key):
        return kind.sees(query, key)

    mask = torch.compile(create_block_mask)(rule, None, None, tokens, tokens, device=device)
    compiled = torch.compile(flex_attention)
    return lambda q, k, v: compiled(q, k, v, block_mask=mask)


def ways(kind, options, tokens):
    """{name: attention of q, k, v}; seconds to make our mask; the mask."""
    shared.wait(options.device)
    begin = time.perf_counter()
    mask = kind.mask(options.device)
    shared.wait(options.device)
    seconds = time.perf_counter() - begin
    made = {"sparse_autotune": lambda q, k, v: sa.attention(q, k, v, mask=mask)}
    pairs = dense(kind, tokens, options.device, getattr(torch, options.dtype))
    if pairs is not None:
        made["SDPA, dense mask"] = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=pairs)
    compiled = flex(kind, tokens, options.device)
    if compiled is not None:
        made["FlexAttention"] = compiled
    made["SDPA, all tokens"] = F.scaled_dot_product_attention
    return made, seconds, mask


def forward(attend, q, k, v, grad):
    with torch.no_grad():
        return [attend(q, k, v)]


def training(attend, q, k, v, grad):
    """The result and the gradients of q, k and v."""
    made = attend(q, k, v)
    return [made.detach(), *torch.autograd.grad(made, (q, k, v), grad)]


def fitting(made, operands):
    """Those that do not run out of memory."""
    kept = {}
    for name, attend in made.items():
        with contextlib.suppress(torch.OutOfMemoryError):
            training(attend, *operands)
            kept[name] = attend
    return kept


def apart(a, b):
    """The largest difference of two lists of tensors, in proportion to the largest number of each."""
    return max(((x.double() - y.double()).abs().max() / y.double().abs().max()).item() for x, y in zip(a, b, strict=True))


def race(kind, options, operands, rounds):
    tokens = operands[0].shape[2]
    made, seconds, mask = ways(kind, options, tokens)
    made = fitting(made, operands)
    wanted = made.get("SDPA, dense mask") or made.get("FlexAttention")
    found = {name: apart(training(attend, *operands), training(wanted, *operands)) for name, attend in made.items() if "all" not in name} if wanted else {}
    timed = {}
    for what, call in (("forward", forward), ("with gradients", training)):
        calls = {name: lambda attend=attend, call=call: call(attend, *operands) for name, attend in made.items()}
        timed[what] = shared.times(calls, rounds, options.device)
    rows = [
        {
            "mask": kind.name,
            "attention": name,
            "forward ms": timed["forward"][name],
            "x ours": timed["forward"][name] / timed["forward"]["sparse_autotune"],
            "with gradients ms": timed["with gradients"][name],
            "x ours ": timed["with gradients"][name] / timed["with gradients"]["sparse_autotune"],
            "apart": found.get(name, ""),
        }
        for name in made
    ]
    return rows, {"mask": kind.name, "blocks": mask.nnzb, "blocks stored": mask.density, "seconds to make": seconds}, mask


def draw(kinds, masks, rows, options):
    drawn, axes = shared.figure(3, 12, 3.4)
    _, lines, columns = options.size
    middle = torch.tensor([options.size[0] // 2 * lines * columns + lines // 2 * columns + columns // 2])
    at = torch.arange(lines * columns) + options.size[0] // 2 * lines * columns
    axes[0].imshow(kinds[0].sees(middle[:, None], at).view(lines, columns).numpy(), cmap="Blues", vmax=2, interpolation="nearest")
    axes[0].plot(columns // 2, lines // 2, "k.")
    axes[0].set(title="what a token sees of its frame", xticks=[], yticks=[])
    most = min(200, *masks[0].grid)
    shown = torch.stack([mask.to_dense()[0, 0, :most, :most].float().cpu() for mask in masks])
    axes[1].imshow(1 - torch.cat(tuple(shown), 1).numpy(), cmap="gray", interpolation="nearest")
    axes[1].set(title="blocks: window | tiles", xticks=[], yticks=[])
    for shift, kind in ((-0.2, kinds[0]), (0.2, kinds[1])):
        own = [row for row in rows if row["mask"] == kind.name]
        axes[2].bar([n + shift for n in range(len(own))], [row["with gradients ms"] for row in own], 0.4, label=kind.name)
        axes[2].set_xticks(range(len(own)), [row["attention"].replace(", ", ",\n") for row in own], fontsize=7)
    axes[2].set(title="ms, forward and backward", yscale="log")
    axes[2].legend()
    return drawn


def main(arguments=None):
    parser = shared.parser(__doc__)
    parser.add_argument("--size", type=int, nargs=3, metavar=("FRAMES", "LINES", "COLUMNS"), help="default: 8 16 32, on a GPU 30 48 80")
    parser.add_argument("--window", type=int, nargs=3, help="frames, lines, columns that a token sees (default: 4 8 8, on a GPU 6 16 24)")
    parser.add_argument("--tile", type=int, nargs=3, help="tokens that are a block, at most 256 (default: 2 4 8, on a GPU 2 8 8)")
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--depth", type=int, help="of a head (default: 64, on a GPU 128)")
    parser.add_argument("--dtype", help="default: float32, on a GPU bfloat16")
    options = shared.parse(parser, arguments)
    gpu = torch.device(options.device).type == "cuda"
    large = dict(size=(30, 48, 80), window=(6, 16, 24), tile=(2, 8, 8), depth=128, dtype="bfloat16")
    usual = dict(size=(8, 16, 32), window=(4, 8, 8), tile=(2, 4, 8), depth=64, dtype="float32")
    tiny = dict(size=(4, 8, 8), window=(3, 4, 4), tile=(1, 4, 4), depth=16, dtype="float32")
    shared.fill(options, tiny=tiny, usual=usual, large=large)
    for name in ("window", "tile"):
        if any(of < 1 or of > most for of, most in zip(getattr(options, name), options.size, strict=True)):
            parser.error(f"--{name}: each number must be from 1 to that of --size, not {' '.join(map(str, getattr(options, name)))}")
    if any(most % of for of, most in zip(options.tile, options.size, strict=True)):
        parser.error(f"--tile: must divide --size, {' '.join(map(str, options.size))}")

    tokens = options.size[0] * options.size[1] * options.size[2]
    generator = torch.Generator().manual_seed(options.seed)
    shape, dtype = (1, options.heads, tokens, options.depth), getattr(torch, options.dtype)
    q, k, v, grad = (torch.randn(shape, generator=generator).to(options.device, dtype) for _ in range(4))
    kinds, rows, facts, masks = (Window(options), Tiles(options)), [], [], []
    for kind in kinds:
        ordered = [kind.order(x) if isinstance(kind, Tiles) else x for x in (q, k, v, grad)]
        operands = [x.detach().requires_grad_() for x in ordered[:3]] + [ordered[3]]
        found, about, mask = race(kind, options, operands, 3 if options.small or not gpu else 7)
        rows += found
        facts.append(about)
        masks.append(mask)
    kept = options.window[0] * options.window[1] * options.window[2] / tokens
    print(f"{tokens} tokens, {options.heads} heads of {options.depth}, {options.dtype}; a token sees {kept:.2%} of them\n")
    shared.table(facts)
    shared.table(rows)
    drawn = draw(kinds, masks, rows, options) if options.picture else None
    sizes = {name: getattr(options, name) for name in (*large, "heads")}
    return shared.finish(options, {"sizes": sizes, "kept": kept, "masks": facts, "rows": rows}, drawn)


if __name__ == "__main__":
    main()
