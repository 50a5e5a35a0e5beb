"""A dropless mixture of experts as two products on one block-sparse matrix, against a loop over the experts.

Each token goes to a few of many experts, small networks gelu(x W1) W2. Sorted by expert, the hidden layer of all tokens is a block-sparse matrix: the rows
of an expert's tokens hold the blocks of its own columns. Then the first layers of all experts are one SDDMM, the second ones one SpMM, and no token is
dropped, however unevenly they fall. Both ways are trained on handwritten digits from the same start, and must go the same way.

    python examples/python/moe.py
"""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

import shared
import sparse_autotune as sa


class Experts(nn.Module):
    """Tokens [n, width] to [n, width]; `each` of `experts` networks for each token, weighted by how much the router wants them."""

    def __init__(self, width, hidden, experts, each, block):
        super().__init__()
        self.experts, self.each, self.hidden, self.block = experts, each, hidden, block
        self.router = nn.Linear(width, experts, bias=False)
        self.up = nn.Parameter(torch.randn(width, experts * hidden) / width**0.5)  # side by side
        self.down = nn.Parameter(torch.randn(experts * hidden, width) / hidden**0.5)  # one below the other
        self.balance = torch.zeros(())

    def forward(self, x):
        wanted = self.router(x).softmax(1)
        weight, choice = wanted.topk(self.each, 1)
        share = torch.bincount(choice.flatten(), minlength=self.experts) / choice.numel()
        self.balance = self.experts * (share * wanted.mean(0)).sum()  # 1 where all experts get as much
        return self.apply_experts(x, choice, weight / weight.sum(1, keepdim=True))


class Loop(Experts):
    def apply_experts(self, x, choice, weight):
        y = torch.zeros_like(x)
        for expert in range(self.experts):
            columns = slice(expert * self.hidden, (expert + 1) * self.hidden)
            token, nth = (choice == expert).nonzero(as_tuple=True)
            hidden = F.gelu(x[token] @ self.up[:, columns])
            y = y.index_add(0, token, hidden @ self.down[columns] * weight[token, nth, None])
        return y


class BlockSparse(Experts):
    def apply_experts(self, x, choice, weight):
        order, row, pattern = self.route(choice, x)
        token = order // self.each
        gathered = x.new_zeros(pattern.shape[0], x.shape[1]).index_copy(0, row, x[token])
        hidden = sa.sddmm(pattern, gathered, self.up)
        y = sa.matmul(hidden.with_values(F.gelu(hidden.values)), self.down)
        return torch.zeros_like(x).index_add(0, token, y[row] * weight.flatten()[order, None])

    def route(self, choice, x):
        """The choices in the order of their experts; the row of each, where every expert begins a block row; and the pattern of the hidden layer.

        The number of rows is the most that this many tokens can need, so that it does not change from step to step, nor the tuned class of products with it.
        """
        high, wide = self.block
        flat = choice.flatten()
        order = flat.argsort(stable=True)
        count = torch.bincount(flat, minlength=self.experts)
        block_rows = (count + high - 1) // high
        before, first = count.cumsum(0) - count, (block_rows.cumsum(0) - block_rows) * high
        owner = flat[order]
        row = first[owner] + torch.arange(len(flat), device=x.device) - before[owner]

        most, across = len(flat) // high + self.experts, self.hidden // wide
        owner_of_row = torch.repeat_interleave(torch.arange(self.experts, device=x.device), block_rows)
        offsets = (torch.arange(most + 1, device=x.device).clamp(max=len(owner_of_row)) * across).int()
        columns = (owner_of_row[:, None] * across + torch.arange(across, device=x.device)).flatten().int()
        values = x.new_empty(()).expand(len(columns), high, wide)  # only their shape counts
        return order, row, sa.BSR(offsets, columns, values, (most * high, self.experts * self.hidden))


def network(kind, options):
    """Pixels to ten digits, with the experts in the middle; the same weights for the same seed."""
    torch.manual_seed(options.seed)
    experts = kind(options.width, options.hidden, options.experts, options.each, options.block)
    body = nn.Sequential(nn.Linear(64, options.width), nn.LayerNorm(options.width), experts, nn.LayerNorm(options.width), nn.Linear(options.width, 10))
    return body.to(options.device, torch.float64), experts


def digits(options):
    """Pixels and digits to train on, and to test by: 1,797 pictures that scikit-learn ships."""
    from sklearn.datasets import load_digits

    pixels, answers = load_digits(return_X_y=True)
    order = torch.randperm(len(pixels), generator=torch.Generator().manual_seed(options.seed))
    pixels, answers = torch.from_numpy(pixels / 16)[order].to(options.device), torch.from_numpy(answers)[order].to(options.device)
    return (pixels[360:], answers[360:]), (pixels[:360], answers[:360])


def train(kind, options, data, test):
    """Losses of the steps, the share of right answers, the network. In float64: rounding would soon send some token to another expert."""
    body, experts = network(kind, options)
    optimiser = torch.optim.AdamW(body.parameters(), lr=2e-3)
    generator, losses = torch.Generator().manual_seed(options.seed), []
    for _ in range(options.steps):
        at = torch.randint(len(data[0]), (options.batch,), generator=generator).to(options.device)
        optimiser.zero_grad()
        loss = F.cross_entropy(body(data[0][at]), data[1][at])
        (loss + 0.01 * experts.balance).backward()
        optimiser.step()
        losses.append(loss.detach())
    with torch.no_grad():
        right = (body(test[0]).argmax(1) == test[1]).float().mean().item()
    return torch.stack(losses).tolist(), right, body


def differences(loop, sparse, x):
    """Largest relative difference of the result and of all gradients, both from the same weights."""
    sparse.load_state_dict(loop.state_dict())
    found = []
    for experts in (loop, sparse):
        experts.zero_grad()
        begin = x.clone().requires_grad_()
        y = experts(begin)
        y.square().sum().backward()
        found.append([y.detach(), begin.grad, *(p.grad for p in experts.parameters())])
    return [((a - b).abs().max() / a.abs().max()).item() for a, b in zip(*found, strict=True)]


def speed(options, rounds):
    """Milliseconds of the two ways, forward alone and with the backward pass, for few large and for many small experts of as much work."""
    rows, dtype = [], getattr(torch, options.dtype)
    for count in (options.experts // 8, options.experts // 2, options.experts):
        hidden = options.experts * options.hidden // count
        made = {kind: kind(options.width, hidden, count, options.each, options.block).to(options.device, dtype) for kind in (Loop, BlockSparse)}
        x = torch.randn(options.tokens, options.width, device=options.device, dtype=dtype)
        made[BlockSparse].load_state_dict(made[Loop].state_dict())
        calls = {("forward", kind): lambda layer=layer, x=x: evaluated(layer, x) for kind, layer in made.items()}
        calls |= {("training step", kind): lambda layer=layer, x=x: step(layer, x) for kind, layer in made.items()}
        found = shared.times(calls, rounds, options.device)
        for what in ("forward", "training step"):
            loop, sparse = found[what, Loop], found[what, BlockSparse]
            rows.append({"experts": f"{count} of {hidden}", "what": what, "loop ms": loop, "block-sparse ms": sparse, "x faster": loop / sparse})
    return rows


def evaluated(layer, x):
    with torch.no_grad():
        layer(x)


def step(layer, x):
    layer.zero_grad()
    layer(x.requires_grad_()).sum().backward()


def draw(curves, pattern, rows):
    drawn, (left, middle, right) = shared.figure(3, 11, 3.4)
    left.plot(curves[Loop], "o", color="0.7", markersize=4, label="loop over experts")
    left.plot(curves[BlockSparse], color="tab:blue", linewidth=1.2, label="block-sparse")
    left.set(title="loss", xlabel="step", yscale="log")
    left.legend()
    mask = torch.zeros(pattern.grid, dtype=torch.bool)
    mask[pattern.block_rows_of().cpu(), pattern.col_indices.long().cpu()] = True
    middle.imshow(~mask, cmap="gray", aspect="auto", interpolation="nearest")
    middle.set(title="hidden layer of one step", xlabel="blocks of columns, by expert", ylabel="blocks of tokens")
    steps = [row for row in rows if row["what"] == "training step"]
    at = torch.arange(len(steps))
    right.bar(at - 0.2, [row["loop ms"] for row in steps], 0.4, color="0.7", label="loop over experts")
    right.bar(at + 0.2, [row["block-sparse ms"] for row in steps], 0.4, color="tab:blue", label="block-sparse")
    right.set(title="training step, ms", xticks=at, xticklabels=[row["experts"] for row in steps], xlabel="experts, each of so many columns")
    right.legend()
    return drawn


def main(arguments=None):
    parser = shared.parser(__doc__)
    parser.add_argument("--experts", type=int, default=64)
    parser.add_argument("--each", type=int, default=2, help="experts of each token")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=64, help="width of an expert, a multiple of the second of --block")
    parser.add_argument("--block", type=int, nargs=2, default=[16, 64], metavar=("HIGH", "WIDE"), help="of the hidden layer: tokens and columns")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--tokens", type=int, default=1024, help="of what is timed")
    parser.add_argument("--dtype", default="float32", help="of what is timed")
    options = shared.parse(parser, arguments)
    if options.hidden % options.block[1]:
        parser.error(f"--hidden: must be a multiple of {options.block[1]}, not {options.hidden}")
    if options.small:
        options.experts, options.batch, options.steps, options.tokens = 16, 128, 30, 128
    data, test = digits(options)
    curves, right, bodies = {}, {}, {}
    for kind in (Loop, BlockSparse):
        curves[kind], right[kind], bodies[kind] = train(kind, options, data, test)

    x = data[0][: options.batch]
    hidden = bodies[Loop][:2](x).detach()
    apart = differences(bodies[Loop][2], bodies[BlockSparse][2], hidden)
    rows = speed(options, 3 if options.small else 15)
    choice = bodies[Loop][2].router(hidden).topk(options.each, 1).indices
    _, _, pattern = bodies[BlockSparse][2].route(choice, hidden)
    print(f"hidden layer: {pattern}\n")
    shared.table([{"": kind.__name__, "first loss": curves[kind][0], "last loss": curves[kind][-1], "right answers": right[kind]} for kind in curves])
    print(f"largest relative difference of result and gradients: {max(apart):.2g}\n")
    shared.table(rows)
    drawn = draw(curves, pattern, rows) if options.picture else None
    result = {
        "losses": {k.__name__: v for k, v in curves.items()},
        "right": {k.__name__: v for k, v in right.items()},
        "differences": apart,
        "speed": rows,
    }
    return shared.finish(options, result, drawn)


if __name__ == "__main__":
    main()
