"""Colours spread over the graph of a photograph, from one known pixel in fifty to all: feature propagation on a clustered adjacency matrix.

The graph's nodes are the pixels of a picture that scikit-learn ships; each is joined with all pixels nearby, the more strongly the more alike they are in
brightness. Colour is known at a few pixels. They are sorted into classes of colour, and the features, how likely each node is of each class, are
propagated: every step takes the mean of the neighbours. Numbered row by row, the matrix has its entries scattered; numbered by tiles of 4 x 4 pixels,
which are clusters of this graph, they fill blocks of 16 x 16 by half and more.

    python examples/python/graph.py
"""

import torch

import shared
import sparse_autotune as sa

TILE = 4


def photograph(options):
    """[rows, columns, 3] in 0 .. 1, sides multiples of the tile."""
    from sklearn.datasets import load_sample_image

    picture = torch.from_numpy(load_sample_image("flower.jpg").copy()).float() / 255
    small = torch.nn.functional.avg_pool2d(picture.permute(2, 0, 1), 2).permute(1, 2, 0)
    if options.small:
        small = small[80:128, 100:164]
    return small[: small.shape[0] // TILE * TILE, : small.shape[1] // TILE * TILE]


def split_colour(picture):
    """Brightness [rows, columns], and colour as two differences from it [rows, columns, 2]."""
    brightness = picture @ torch.tensor([0.299, 0.587, 0.114])
    return brightness, torch.stack((picture[..., 0] - brightness, picture[..., 2] - brightness), -1)


def join_colour(brightness, colour):
    red, blue = brightness + colour[..., 0], brightness + colour[..., 1]
    green = (brightness - 0.299 * red - 0.114 * blue) / 0.587
    return torch.stack((red, green, blue), -1).clamp(0, 1)


def adjacency(brightness, reach, contrast, number):
    """SciPy CSR: the weights of each node's neighbours, which add up to one; nodes numbered by number [rows, columns]."""
    import scipy.sparse

    rows, columns = brightness.shape
    parts = []
    for down in range(-reach, reach + 1):
        for right in range(-reach, reach + 1):
            if (down, right) == (0, 0):
                continue
            here = (slice(max(0, -down), rows - max(0, down)), slice(max(0, -right), columns - max(0, right)))
            there = (slice(max(0, down), rows + min(0, down)), slice(max(0, right), columns + min(0, right)))
            weight = torch.exp(-((brightness[here] - brightness[there]) ** 2) / (2 * contrast**2)) + 1e-4
            parts.append((number[here].flatten(), number[there].flatten(), weight.flatten()))
    node, neighbour, weight = (torch.cat(part) for part in zip(*parts, strict=True))
    total = torch.zeros(rows * columns).index_add_(0, node, weight)
    return scipy.sparse.csr_matrix(((weight / total[node]).numpy(), (node.numpy(), neighbour.numpy())), shape=(rows * columns,) * 2)


def row_by_row(rows, columns):
    return torch.arange(rows * columns).view(rows, columns)


def by_tiles(rows, columns):
    """A node's number: all of a tile after one another."""
    numbers = torch.arange(rows * columns).view(rows // TILE, columns // TILE, TILE, TILE)
    return numbers.transpose(1, 2).reshape(rows, columns)


def classes_of(colours, count, generator):
    """At most so many colours around which the given ones gather (k-means), and the class of each."""
    centres = colours[torch.randperm(len(colours), generator=generator)[:count]]
    for _ in range(20):
        nearest = torch.cdist(colours, centres).argmin(1)
        sums = torch.zeros_like(centres).index_add_(0, nearest, colours)
        sizes = torch.bincount(nearest, minlength=len(centres))[:, None]
        centres = torch.where(sizes > 0, sums / sizes.clamp(min=1), centres)
    return centres, torch.cdist(colours, centres).argmin(1)


def propagate(product, nodes, seeds, known, steps):
    """How likely the nodes are of each class after some steps, [nodes, classes]; what is known of the seeds stays as it is."""
    features = torch.zeros(nodes, known.shape[1], device=known.device)
    features[seeds] = known
    for _ in range(steps):
        features = product(features)
        features[seeds] = known
    return features / features.sum(1, keepdim=True)


def ways(scattered, tiled, device):
    """{name: (numbering, product)}"""
    found = {}
    for name, matrix in (("row by row", scattered), ("tiles", tiled)):
        blocks = sa.BSR.from_scipy(matrix, block=TILE * TILE).to(device)
        found[f"sparse_autotune, {name}"] = name, lambda x, blocks=blocks: sa.matmul(blocks, x)
        parts = (torch.from_numpy(part).to(device) for part in (matrix.indptr, matrix.indices, matrix.data))
        native = torch.sparse_csr_tensor(*parts, size=matrix.shape)
        found[f"PyTorch CSR, {name}"] = name, lambda x, native=native: native @ x
        if device == "cpu":
            found[f"SciPy CSR, {name}"] = name, lambda x, matrix=matrix: torch.from_numpy(matrix @ x.numpy())
    return found


def nearest(seeds, size):
    """For each pixel the known one that is nearest: what propagation must beat."""
    down, right = torch.meshgrid(*(torch.arange(n) for n in size), indexing="ij")
    places = torch.stack((down, right), -1).view(-1, 2).float()
    return torch.cat([torch.cdist(part, places[seeds]).argmin(1) for part in places.split(4096)]).view(size)


def quality(colour, truth):
    """Peak signal to noise of the colour differences, in decibels."""
    return (-10 * torch.log10((colour - truth).square().mean())).item()


def draw(brightness, seeds, colour, truth, rows):
    given = torch.zeros_like(truth)
    given.view(-1, 2)[seeds] = truth.reshape(-1, 2)[seeds]
    drawn, axes = shared.figure(4, 13, 3.0)
    for axis, chroma, title in zip(axes, (given, colour, truth), ("what is known", "after propagation", "the photograph"), strict=False):
        axis.imshow(join_colour(brightness, chroma))
        axis.set(title=title)
        axis.set_axis_off()
    names = [row["product"].replace("sparse_autotune", "sparse_\nautotune").replace(", ", ",\n") for row in rows]
    axes[3].barh(names, [row["ms a step"] for row in rows], color=["tab:blue" if row["product"].startswith("sparse") else "0.7" for row in rows])
    axes[3].invert_yaxis()
    axes[3].tick_params(labelsize=7)
    axes[3].set(title="ms a step")
    return drawn


def main(arguments=None):
    parser = shared.parser(__doc__)
    parser.add_argument("--classes", type=int, default=32)
    parser.add_argument("--known", type=float, default=0.02, help="share of the pixels whose colour is known")
    parser.add_argument("--reach", type=int, default=4, help="neighbours are up to so many pixels away, down and across")
    parser.add_argument("--contrast", type=float, default=0.02, help="difference of brightness that weakens a tie")
    parser.add_argument("--steps", type=int, default=150)
    options = shared.parse(parser, arguments)
    if options.small:
        options.steps = 40
    generator = torch.Generator().manual_seed(options.seed)
    picture = photograph(options)
    brightness, truth = split_colour(picture)
    size = brightness.shape
    seeds = torch.randperm(brightness.numel(), generator=generator)[: int(options.known * brightness.numel())]
    centres, classes = classes_of(truth.reshape(-1, 2)[seeds], options.classes, generator)
    known = torch.nn.functional.one_hot(classes, len(centres)).float().to(options.device)

    numberings = {"row by row": row_by_row(*size), "tiles": by_tiles(*size)}
    scattered, tiled = (adjacency(brightness, options.reach, options.contrast, number) for number in numberings.values())
    every = ways(scattered, tiled, options.device)
    rows, results = [], {}
    for name, matrix in (("row by row", scattered), ("tiles", tiled)):
        blocks = sa.BSR.from_scipy(matrix, block=TILE * TILE)
        rows.append({"numbered": name, "nodes": matrix.shape[0], "entries": matrix.nnz, "blocks": blocks.nnzb, "filled": matrix.nnz / blocks.values.numel()})
    shared.table(rows)

    features = torch.rand(brightness.numel(), known.shape[1], generator=generator).to(options.device)
    once = shared.times({name: lambda p=p: p(features) for name, (_, p) in every.items()}, 3 if options.small else 15, options.device)
    slowest = max(once[name] for name in once if not name.startswith("sparse_autotune"))
    speed = [{"product": name, "ms a step": ms, "x faster": slowest / ms} for name, ms in once.items()]
    for name, (numbering, product) in every.items():
        order = numberings[numbering].flatten()
        likely = propagate(product, len(order), order[seeds].to(options.device), known, options.steps).cpu()
        results[name] = (likely[order] @ centres).view(*size, 2)
    shared.table(speed)
    colour = results["sparse_autotune, tiles"]
    apart = max((other - colour).abs().max().item() for other in results.values())
    copied = truth.reshape(-1, 2)[seeds][nearest(seeds, size)]
    gained = {"none": quality(torch.zeros_like(truth), truth), "nearest": quality(copied, truth), "propagated": quality(colour, truth)}
    shared.table([{"colour": {"none": "none", "nearest": "of the nearest known pixel", "propagated": "propagated"}[k], "dB": v} for k, v in gained.items()])
    print(f"the ways differ by {apart:.2g}\n")
    drawn = draw(brightness, seeds, colour, truth, speed) if options.picture else None
    return shared.finish(options, {"graph": rows, "speed": speed, "quality": gained, "apart": apart}, drawn)


if __name__ == "__main__":
    main()
