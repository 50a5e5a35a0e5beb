"""A small language model trained on packed documents, whose attention knows where each document ends, against dense attention with the mask written out.

Documents of uneven lengths lie one behind the other in a row of tokens, so that no token is padding. A token must see earlier tokens of its own document
alone. sa.attention reads where the documents end from a tensor at every step: no mask is built, and work goes with the squares of the documents' lengths. Dense
attention computes the whole row's square under a boolean mask. FlexAttention compiles a kernel for the same mask. All are trained from one start on the same
rows, and must go the same way.

    python examples/python/documents.py
"""

import pydoc_data.topics
import random
import time

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

import shared
import sparse_autotune as sa


class Dense:
    """PyTorch's attention, with the mask of each row of tokens written out."""

    name = "dense mask"

    def prepare(self, ends, tokens):
        number = torch.bucketize(torch.arange(tokens, device=ends.device), ends, right=True)
        return (number[:, None] == number[None, :]).tril()

    def attend(self, q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class Packed:
    """sa.attention, which reads the ends."""

    name = "sparse_autotune"

    def prepare(self, ends, tokens):
        return ends

    def attend(self, q, k, v, ends):
        return sa.attention(q, k, v, query_ends=ends, causal=True)


class Flex:
    """FlexAttention, compiled, where PyTorch can do its gradients: not on the CPU."""

    name = "FlexAttention"

    def __init__(self, tokens, device):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        self.make, self.compiled = torch.compile(create_block_mask), torch.compile(flex_attention)
        number = torch.zeros(tokens, dtype=torch.int64, device=device)  # of each token's document; written anew, so that one rule is compiled
        self.number, self.rule = number, lambda b, h, query, key: (number[query] == number[key]) & (key <= query)

    def prepare(self, ends, tokens):
        self.number.copy_(torch.bucketize(torch.arange(tokens, device=ends.device), ends, right=True))
        return self.make(self.rule, None, None, tokens, tokens, device=ends.device)

    def attend(self, q, k, v, mask):
        return self.compiled(q, k, v, block_mask=mask)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.norm, self.other_norm = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, way, mask):
        q, k, v = self.project(self.norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.out(way.attend(q, k, v, mask).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.other_norm(x))))


class Model(nn.Module):
    """Bytes [1, tokens] and the place of each in its document to the logits of the next byte."""

    def __init__(self, width, heads, layers, longest):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, width), nn.Embedding(longest, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, 256)

    def forward(self, tokens, places, way, mask):
        x = self.bytes(tokens) + self.places(places)
        for layer in self.layers:
            x = layer(x, way, mask)
        return self.out(self.norm(x))


def documents(longest):
    """Bytes of the topics of Python's language reference, as its help() knows it, cut where they are too long."""
    found = [text.encode()[:longest] for text in pydoc_data.topics.topics.values()]
    return [torch.frombuffer(bytearray(text), dtype=torch.uint8).long() for text in found if len(text) > 32]


def pack(texts, tokens, count, seed):
    """Rows of `tokens` bytes: (bytes, place of each in its document, where each document ends). The last one is cut off."""
    order = random.Random(seed)
    for _ in range(count):
        row, ends, places = [], [], []
        while sum(map(len, row)) < tokens:
            text = order.choice(texts)[: tokens - sum(map(len, row))]
            row.append(text)
            places.append(torch.arange(len(text)))
            ends.append(sum(map(len, row)))
        yield torch.cat(row), torch.cat(places), torch.tensor(ends, dtype=torch.int32)


def train(way, options, rows):
    """Losses of the steps, tokens a second (the first steps, which tune and compile, left out), all gradients of the first step."""
    torch.manual_seed(options.seed)
    model = Model(options.width, options.heads, options.layers, options.longest).to(options.device, getattr(torch, options.dtype))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses, seconds, gradients = [], [], None
    for text, places, ends in rows:
        text, places, ends = (t.to(options.device) for t in (text, places, ends))
        shared.wait(options.device)
        begin = time.perf_counter()
        logits = model(text[None], places[None], way, way.prepare(ends, len(text)))
        inside = (places[1:] > 0).nonzero().squeeze(1)  # what follows the last byte of a document is another's first
        loss = F.cross_entropy(logits[0, inside].float(), text[inside + 1])
        optimiser.zero_grad()
        loss.backward()
        if gradients is None:
            gradients = [p.grad.clone() for p in model.parameters()]
        optimiser.step()
        shared.wait(options.device)
        seconds.append(time.perf_counter() - begin)
        losses.append(loss.item())
    measured = sorted(seconds[len(seconds) // 4 :])
    return losses, options.tokens / measured[len(measured) // 2], gradients


def pairs(ends):
    """Of a token and one that it sees."""
    lengths = ends.diff(prepend=ends.new_zeros(1)).long()
    return (lengths * (lengths + 1) // 2).sum().item()


def apart(a, b):
    """The largest difference of two gradients, in proportion to the largest number of each."""
    return max(((x - y).abs().max() / y.abs().max()).item() for x, y in zip(a, b, strict=True))


def draw(curves, rates, ends, tokens):
    drawn, (left, middle, right) = shared.figure(3, 11, 3.4)
    for name, losses in curves.items():
        left.plot(losses, "o" if name == Dense.name else "-", color="0.7" if name == Dense.name else None, markersize=4, label=name)
    left.set(title="loss", xlabel="step")
    left.legend()
    middle.imshow((~Dense().prepare(ends, tokens)).numpy(), cmap="gray", interpolation="nearest")
    middle.set(title="what each token sees, one row", xlabel="key", ylabel="query")
    right.bar(range(len(rates)), list(rates.values()), 0.5, color="tab:blue")
    right.set(title="tokens a second, training", xticks=range(len(rates)), xticklabels=list(rates))
    return drawn


def main(arguments=None):
    parser = shared.parser(__doc__)
    parser.add_argument("--tokens", type=int, help="of a row, one row a step (default: 4096, on a GPU 16384)")
    parser.add_argument("--longest", type=int, help="document: longer ones are cut (default: 2048, on a GPU 8192)")
    parser.add_argument("--width", type=int, help="default: 256, on a GPU 1024")
    parser.add_argument("--heads", type=int, help="default: 4, on a GPU 8")
    parser.add_argument("--layers", type=int, help="default: 2, on a GPU 4")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--dtype", help="default: float32, on a GPU bfloat16")
    options = shared.parse(parser, arguments)
    tiny = dict(tokens=512, longest=128, width=64, heads=4, layers=2, dtype="float32")
    usual = dict(tokens=4096, longest=2048, width=256, heads=4, layers=2, dtype="float32")
    large = dict(tokens=16384, longest=8192, width=1024, heads=8, layers=4, dtype="bfloat16")
    gpu = torch.device(options.device).type == "cuda"
    shared.fill(options, tiny=tiny, usual=usual, large=large)
    if options.small:
        options.steps = 8
    texts = documents(options.longest)
    rows = list(pack(texts, options.tokens, options.steps, options.seed))
    ways = [Dense(), Packed()] + ([Flex(options.tokens, options.device)] if gpu and options.dtype != "float64" else [])  # its sums are float32
    curves, rates, gradients = {}, {}, {}
    for way in ways:
        curves[way.name], rates[way.name], gradients[way.name] = train(way, options, rows)
    kept = sum(pairs(ends) for *_, ends in rows) / options.steps / options.tokens**2
    table = [
        {
            "attention": name,
            "tokens/s": rates[name],
            "x dense": rates[name] / rates[Dense.name],
            "last loss": curves[name][-1],
            "gradients apart": apart(gradients[name], gradients[Dense.name]),
        }
        for name in curves
    ]
    print(f"{len(texts)} documents; a row keeps {kept * 100:.3g} % of all pairs\n")
    shared.table(table)
    drawn = draw(curves, rates, rows[0][2], options.tokens) if options.picture else None
    return shared.finish(options, {"rows": table, "losses": curves, "kept": kept}, drawn)


if __name__ == "__main__":
    main()
