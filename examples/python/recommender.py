"""A recommender that learns from what users saw: a factorisation of user-item interactions that come in blocks.

Users come in segments, and items in catalogues: a segment is shown a few of the catalogues, and nothing of the others. So what is known of users and items,
seen and liked or seen and passed over, is a block-sparse matrix. The model gives each user and each item a vector; the product of two says how likely the user
likes the item. A training step needs three products, all on the stored blocks: the scores (`sa.sddmm`), and from their errors the gradients of the users'
vectors and of the items' (block-sparse times dense, and its transpose; autograd calls them). The data are made here: hidden vectors decide who likes what.

The same model is trained in the two usual ways, from one start: with the dense matrix of all scores and a mask, and with a gathered pair of vectors for each
interaction. All three find the same. Their times for a step are compared for several shares of stored blocks, up to the whole matrix: nothing is left out
there, and the dense way is as good and simpler.

    python examples/python/recommender.py
"""

import torch
import torch.nn.functional as F  # noqa: N812

import shared
import sparse_autotune as sa

BLOCK = 64  # users of a segment, items of a catalogue


class Interactions:
    """Who was shown which items, and what they liked: made, so that the truth is known."""

    def __init__(self, users, items, density, taste, generator):
        shown = torch.rand(users // BLOCK, items // BLOCK, generator=generator).argsort(1) < max(1, round(density * (items // BLOCK)))
        self.pattern = sa.BSR.from_pattern(*offsets_and_columns(shown), BLOCK, (users, items))
        user, item = torch.randn(users, taste, generator=generator), torch.randn(items, taste, generator=generator)
        popular = torch.randn(items, generator=generator)
        with sa.no_tuning():  # once is not worth measuring
            truth = sa.sddmm(self.pattern, user * 2 / taste**0.5, item.T).values + blocks_of(popular, self.pattern) - 2
        self.likes = (torch.rand(truth.shape, generator=generator) < truth.sigmoid()).float()
        self.held = torch.rand(truth.shape, generator=generator) < 0.1  # judged by, not trained on
        self.best = truth  # what nobody can do better than

    def to(self, device):
        self.pattern = self.pattern.to(device)
        self.likes, self.held, self.best = (part.to(device) for part in (self.likes, self.held, self.best))
        return self

    def pairs(self):
        """User, item of each entry of the stored blocks, in their order."""
        rows = self.pattern.block_rows_of().long()[:, None, None] * BLOCK + torch.arange(BLOCK, device=self.pattern.device)[:, None]
        columns = self.pattern.col_indices.long()[:, None, None] * BLOCK + torch.arange(BLOCK, device=self.pattern.device)
        return (part.expand(self.likes.shape).reshape(-1) for part in (rows, columns))


def offsets_and_columns(shown):
    counts = shown.sum(1)
    return torch.cat((torch.zeros(1, dtype=torch.long), counts.cumsum(0))).int(), shown.nonzero()[:, 1].int()


def blocks_of(of_items, pattern):
    """A number for each item, as a row of every stored block."""
    return of_items.view(-1, BLOCK)[pattern.col_indices.long()][:, None, :]


class BlockSparse:
    """Scores of the stored blocks, [blocks, 64, 64]."""

    def __init__(self, data):
        self.pattern, self.likes, self.weight = data.pattern, data.likes, (~data.held).float()

    def scores(self, users, items):
        return sa.sddmm(self.pattern, users, items.T, assume_finite=True).values


class Dense:
    """All scores, [users, items]; what was not shown has no weight."""

    def __init__(self, data):
        self.likes, self.weight = (data.pattern.with_values(part).to_dense() for part in (data.likes, (~data.held).float()))

    def scores(self, users, items):
        return users @ items.T


class Gathered:
    """A score for each pair that was shown."""

    def __init__(self, data):
        self.user, self.item = data.pairs()
        self.likes, self.weight = data.likes.flatten(), (~data.held).float().flatten()

    def scores(self, users, items):
        return (F.embedding(self.user, users) * F.embedding(self.item, items)).sum(1)


WAYS = {"block-sparse": BlockSparse, "dense with a mask": Dense, "gathered pairs": Gathered}


def start(options, users, items):
    """The vectors. The last two numbers of each are how much a user likes things, and how much an item is liked: one meets a constant 1 of the other's."""
    generator = torch.Generator().manual_seed(options.seed)
    vectors = [(torch.randn(count, options.rank, generator=generator) * 0.1).to(options.device) for count in (users, items)]
    vectors[0][:, -1], vectors[1][:, -2] = 1, 1
    return [part.requires_grad_() for part in vectors]


def step(way, users, items, optimiser=None):
    """The summed loss of the pairs that are trained on; without an optimiser only that and the gradients."""
    users.grad = items.grad = None
    total = F.binary_cross_entropy_with_logits(way.scores(users, items), way.likes, way.weight, reduction="sum")
    (total + 2 * (users.square().sum() + items.square().sum())).backward()  # short vectors are likelier
    if optimiser is not None:
        users.grad[:, -1], items.grad[:, -2] = 0, 0
        optimiser.step()
    return total.detach()


def train(way, options, data):
    """Loss of each step for each pair trained on; the vectors."""
    users, items = start(options, *data.pattern.shape)
    optimiser = torch.optim.Adam((users, items), lr=0.1)
    losses = [step(way, users, items, optimiser) for _ in range(options.steps)]
    return (torch.stack(losses) / (~data.held).sum()).tolist(), users.detach(), items.detach()


def ranked_right(scores, data):
    """How often, of two held-out entries, the one that was liked has the higher score (the area under the ROC curve)."""
    liked = data.likes[data.held].bool()
    order = scores[data.held].argsort()
    ranks = torch.empty_like(order).index_copy_(0, order, torch.arange(1, len(order) + 1, device=order.device)).double()
    many = liked.sum().item()
    return ((ranks[liked].sum().item() - many * (many + 1) / 2) / (many * (len(order) - many))) if 0 < many < len(order) else 0.5


def popularity(data):
    """What a recommender must beat: the share of those shown an item, and trained on, who liked it."""
    across, weight = data.pattern.grid[1], (~data.held).float()
    column = data.pattern.col_indices.long()
    liked, seen = (
        torch.zeros(across, BLOCK, device=column.device).index_add_(0, column, (part * weight).sum(1)) for part in (data.likes, torch.ones_like(weight))
    )
    return blocks_of((liked / seen.clamp(min=1)).flatten(), data.pattern).expand(data.likes.shape)


def speed(options, rounds):
    """Milliseconds of a step's loss and gradients, each way, for several shares of stored blocks; of gathered pairs, which take seconds, for the small ones."""
    rows = []
    for density in options.densities:
        fitting = {name: kind for name, kind in WAYS.items() if kind is not Gathered or density <= 0.25}
        data = Interactions(options.users, options.items, density, 8, torch.Generator().manual_seed(options.seed)).to(options.device)
        vectors = start(options, options.users, options.items)
        ways = {name: kind(data) for name, kind in fitting.items()}
        calls = {name: lambda way=way, vectors=vectors: step(way, *vectors) for name, way in ways.items()}
        found = shared.times(calls, rounds, options.device)
        ratio = found["dense with a mask"] / found["block-sparse"]
        rows.append({"stored": f"{density:.0%}"} | {f"{name} ms": found.get(name, "") for name in WAYS} | {"dense / block-sparse": ratio})
    return rows


def draw(data, scores, losses, rows):
    drawn, axes = shared.figure(4, 15, 3.4)
    many = min(16, *data.pattern.grid)
    for axis, blocks, title in ((axes[0], data.likes, "liked (dark), passed (light)"), (axes[1], scores.sigmoid(), "how likely, by the model")):
        whole = data.pattern.with_values(blocks + 0.25).to_dense()[: many * BLOCK, : many * BLOCK].cpu()
        axis.imshow(F.avg_pool2d(whole[None], 4)[0].numpy(), cmap="Blues", vmin=0, vmax=1.25, interpolation="nearest")
        axis.set(title=title, xlabel="items, some", ylabel="users, some", xticks=[], yticks=[])
    for name, style in (("block-sparse", "-"), ("dense with a mask", "--"), ("gathered pairs", ":")):
        axes[2].plot(losses[name], style, label=name)
    axes[2].set(title="loss of a pair", xlabel="step")
    axes[2].legend(fontsize=7)
    for name, colour in (("block-sparse", "tab:blue"), ("dense with a mask", "0.6"), ("gathered pairs", "tab:orange")):
        measured = [(at, row[f"{name} ms"]) for at, row in enumerate(rows) if row[f"{name} ms"] != ""]
        axes[3].plot(*zip(*measured, strict=True), "o-", color=colour, label=name)
    axes[3].set(title="ms of a step", xlabel="blocks stored", yscale="log")
    axes[3].set_xticks(range(len(rows)), [row["stored"] for row in rows])
    axes[3].legend(fontsize=7)
    return drawn


def main(arguments=None):
    parser = shared.parser(__doc__)
    parser.add_argument("--users", type=int, default=4096)
    parser.add_argument("--items", type=int, default=2048)
    parser.add_argument("--density", type=float, default=0.1, help="share of the catalogues that a segment is shown")
    parser.add_argument("--rank", type=int, default=16, help="length of the vectors")
    parser.add_argument("--steps", type=int, default=50)
    options = shared.parse(parser, arguments)
    options.densities = (0.05, 0.1, 0.25, 0.5, 1.0)
    if options.small:
        options.users, options.items, options.densities = 1024, 512, (0.25, 1.0)
        options.density, options.steps = 0.25, 25
    if options.users % BLOCK or options.items % BLOCK:
        parser.error(f"--users and --items: must be multiples of {BLOCK}")
    if options.budget is None:
        sa.set_options(budget_s=0.5)

    data = Interactions(options.users, options.items, options.density, 8, torch.Generator().manual_seed(options.seed)).to(options.device)
    shared.table(
        [{"users": options.users, "items": options.items, "blocks stored": data.pattern.nnzb, "share": data.pattern.density, "liked": data.likes.mean().item()}]
    )
    losses, vectors = {}, {}
    for name, kind in WAYS.items():
        losses[name], *vectors[name] = train(kind(data), options, data)
    apart = max(abs(a - b) for name in WAYS for a, b in zip(losses[name], losses["block-sparse"], strict=True))
    scores = BlockSparse(data).scores(*vectors["block-sparse"])
    right = {
        "chance": 0.5,
        "popularity": ranked_right(popularity(data), data),
        "factorisation": ranked_right(scores, data),
        "the truth": ranked_right(data.best, data),
    }
    shared.table([{"judged by held-out entries": name, "ranked right": share} for name, share in right.items()])
    print(f"loss of a pair: {losses['block-sparse'][0]:.3f} at first, {losses['block-sparse'][-1]:.3f} at last; the ways differ by {apart:.2g} at most\n")
    rows = speed(options, 3 if options.small else 5)
    shared.table(rows)
    drawn = draw(data, scores, losses, rows) if options.picture else None
    return shared.finish(options, {"losses": losses, "ranked right": right, "apart": apart, "speed": rows}, drawn)


if __name__ == "__main__":
    main()
