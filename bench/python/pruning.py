"""Loss over density: python bench/python/pruning.py [--json FILE] [--picture FILE] [--text FILES].

A small transformer learns to predict the next character of a text (by default this repository's pages), dense. Copies of it are then trained further for
equally many steps each: one that stays dense, and one for each density and size of blocks, whose linear layers sa.BlockPruner thins out during the first half
of those steps. "loss" is the mean cross-entropy, in nats a character, over parts of the text that training never sees; the last rows stop where dense
training stopped, without the further steps, and train a dense model that is as small as the sparse one.
"""

import argparse
import copy
import datetime
import json
import math
import pathlib
import sys
import time

import torch
import torch.nn.functional as F  # noqa: N812
from arguments import integer, listed, real, result_file
from torch import nn

import sparse_autotune as sa
from sparse_autotune import _C

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Block(nn.Module):
    def __init__(self, width, hidden, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        items, tokens, width = x.shape
        q, k, v = (part.view(items, tokens, self.heads, -1).transpose(1, 2) for part in self.qkv(self.first(x)).chunk(3, -1))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(o.transpose(1, 2).reshape(items, tokens, width))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Model(nn.Module):
    def __init__(self, vocabulary, width, layers, context):
        super().__init__()
        self.characters, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, 4 * width, width // 32) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, x):
        x = self.characters(x) + self.places.weight[: x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class Text:
    """Characters as numbers; each tenth part of a text is for the test."""

    def __init__(self, files, context):
        text = "\n".join(pathlib.Path(file).read_text() for file in files)
        known = sorted(set(text))
        numbers = torch.tensor([known.index(c) for c in text])
        part = 20 * (context + 1)
        parts = [numbers[i : i + part] for i in range(0, len(numbers) - part, part)]
        self.test = torch.cat(parts[::10]).view(-1, context + 1)
        self.train = torch.cat([part for i, part in enumerate(parts) if i % 10])
        self.vocabulary, self.context, self.characters = len(known), context, len(numbers)

    def batch(self, items, generator):
        at = torch.randint(len(self.train) - self.context - 1, (items,), generator=generator)
        found = self.train[at[:, None] + torch.arange(self.context + 1)]
        return found[:, :-1], found[:, 1:]


def loss_of(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def test_loss(model, text):
    with torch.no_grad():
        found = [loss_of(model, rows[:, :-1], rows[:, 1:]) for rows in text.test.split(64)]
    return float(torch.stack(found).mean())


def train(model, text, steps, rate, options, seed, density=None, block=None):
    """The model, and the seconds that it took."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    pruner = None
    if density is not None:
        inner = lambda name, layer: isinstance(layer, nn.Linear) and "blocks" in name  # noqa: E731
        pruner = sa.BlockPruner(model, optimizer, density, block=block, end=steps // 2, every=max(1, steps // 40), filter=inner)
        model = pruner.model
    begun = time.perf_counter()
    with sa.no_tuning():
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = rate * min(1, (step + 1) / 20) * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * step / steps)))
            optimizer.zero_grad()
            loss_of(model, *text.batch(options.batch, generator)).backward()
            optimizer.step()
            if pruner is not None:
                pruner.step()
    return model, time.perf_counter() - begun


def stored(model):
    """Numbers of the linear layers inside the blocks."""
    found = 0
    for layer in model.blocks.modules():
        if isinstance(layer, sa.SparseLinear):
            found += layer.values.numel()
        elif isinstance(layer, nn.Linear):
            found += layer.weight.numel()
    return found


def draw(found, path):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    rows = found["rows"]
    figure, axis = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for block in found["blocks"]:
        points = sorted((row["density"], row["loss"]) for row in rows if row.get("block") == block)
        axis.plot([100 * d for d, _ in points], [loss for _, loss in points], marker="o", label=f"blocks of {block}")
    for row in rows:
        if row["kind"] == "dense":
            axis.axhline(row["loss"], color="#444444", linewidth=1, linestyle="--", label="dense, as many steps")
        elif row["kind"] == "small dense":
            axis.plot(100 * row["share"], row["loss"], marker="x", color="#444444", linestyle="", label="dense, smaller" if row["first"] else None)
    axis.set_xscale("log")
    axis.set_xticks([5, 10, 25, 50, 100], ["5", "10", "25", "50", "100"])
    axis.set_xlabel("stored share of the linear layers' weights, %")
    axis.set_ylabel("test loss, nats a character")
    axis.legend(fontsize=8)
    axis.set_title("A small transformer, pruned with sa.BlockPruner", fontsize=11)
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=result_file)
    parser.add_argument("--picture", type=result_file)
    parser.add_argument("--text", type=lambda text: text.split(","), default=sorted(map(str, (ROOT / "docs").glob("*.md"))))
    parser.add_argument("--steps", type=integer(1), default=900)
    parser.add_argument("--more", type=integer(0), default=400, help="further steps, pruned or not")
    parser.add_argument("--batch", type=integer(1), default=24)
    parser.add_argument("--context", type=integer(1), default=64)
    parser.add_argument("--width", type=integer(1), default=128)
    parser.add_argument("--layers", type=integer(1), default=2)
    parser.add_argument("--blocks", type=listed(integer(1, 256)), default=[8, 16, 32])
    parser.add_argument("--densities", type=listed(real(0, 100)), default=[50, 25, 10, 5])
    parser.add_argument("--draw", action="store_true", help="only draws what --json has")
    options = parser.parse_args()
    if options.draw:
        draw(json.loads(options.json.read_text()), options.picture)
        return
    text = Text(options.text, options.context)
    sa.set_options(store="", effort="estimate")
    torch.manual_seed(0)
    found = dict(
        command="python bench/python/pruning.py " + " ".join(sys.argv[1:]),
        date=datetime.date.today().isoformat(),
        schema=1,
        commit=_C.commit(),
        torch=torch.__version__,
        threads=torch.get_num_threads(),
        characters=text.characters,
        vocabulary=text.vocabulary,
        steps=options.steps,
        more=options.more,
        batch=options.batch,
        context=options.context,
        width=options.width,
        decoder_layers=options.layers,
        blocks=options.blocks,
        rows=[],
    )

    def add(row):
        found["rows"].append(row)
        print(row, flush=True)
        if options.json is not None:
            options.json.write_text(json.dumps(found, indent=1) + "\n")

    whole, took = train(Model(text.vocabulary, options.width, options.layers, options.context), text, options.steps, 2e-3, options, 1)
    add(dict(kind="before", loss=round(test_loss(whole, text), 4), seconds=round(took, 1), weights=stored(whole)))
    model, took = train(copy.deepcopy(whole), text, options.more, 1e-3, options, 2)
    add(dict(kind="dense", density=1.0, loss=round(test_loss(model, text), 4), seconds=round(took, 1), weights=stored(model)))
    for density in [percent / 100 for percent in options.densities]:
        for block in options.blocks:
            model, took = train(copy.deepcopy(whole), text, options.more, 1e-3, options, 2, density, block)
            add(dict(kind="sparse", density=density, block=block, loss=round(test_loss(model, text), 4), seconds=round(took, 1), weights=stored(model)))
    for i, width in enumerate(w for w in (96, 64, 32) if w < options.width):
        torch.manual_seed(0)
        model, took = train(Model(text.vocabulary, width, options.layers, options.context), text, options.steps + options.more, 2e-3, options, 1)
        add(
            dict(
                kind="small dense",
                width=width,
                first=i == 0,
                share=round(stored(model) / found["rows"][0]["weights"], 4),
                loss=round(test_loss(model, text), 4),
                seconds=round(took, 1),
                weights=stored(model),
            )
        )
    if options.picture is not None:
        draw(found, options.picture)


if __name__ == "__main__":
    main()
