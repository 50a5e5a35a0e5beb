"""A whole decoder with block-sparse MLPs beside dense ones: python bench/python/decoder.py [--device cpu|cuda] [--json FILE] [--picture FILE].

The shapes of Llama-3-8B with random weights, in bfloat16: a prefill of --prompt tokens, and decoding at several batch sizes over a static cache of --context
keys. What differs between the rows is the MLP: dense, 2:4 (PyTorch's semi-structured tensors), FP8 (PyTorch's scaled product, x quantised at each call), and
block-sparse at several densities and sizes of blocks. On CUDA each step is a graph, so that the host's time does not count.

A row has the whole step, its MLPs alone (all layers' one after the other, so that no weights stay in the cache), and what of the step the dense row's other
parts and these MLPs predict: "kept" is the prediction over the time. "tunings" counts classes that were measured for the row, with sa.warm_up beforehand.
"""

import argparse
import datetime
import gc
import json
import pathlib
import statistics
import sys
import tempfile
import time

import torch
import torch.nn.functional as F  # noqa: N812
from arguments import SECONDS, integer, listed, result_file
from torch import nn

import sparse_autotune as sa
from sparse_autotune import _C

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from race.harness import card  # noqa: E402

LLAMA_3_8B = dict(width=4096, hidden=14336, layers=32, heads=32, heads_kv=8, vocabulary=128256)
TINY = dict(width=64, hidden=128, layers=2, heads=4, heads_kv=2, vocabulary=256)
EIGHT_BITS = torch.float8_e4m3fn
LARGEST = torch.finfo(EIGHT_BITS).max


# ---------------------------------------------------------------------------------------------------- the MLPs


class EightBit(nn.Module):
    """x W^T in FP8 with one scale for each tensor; x is quantised here, which counts."""

    def __init__(self, linear):
        super().__init__()
        self.scale = linear.weight.abs().amax().float() / LARGEST
        self.weight = (linear.weight / self.scale).to(EIGHT_BITS).t()  # as a column-major matrix, which the product wants

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        scale = (rows.abs().amax().float() / LARGEST).clamp(min=1e-12)
        small = (rows / scale).clamp(-LARGEST, LARGEST).to(EIGHT_BITS)
        made = torch._scaled_mm(small, self.weight, scale_a=scale, scale_b=self.scale, out_dtype=x.dtype)
        return made.reshape(*x.shape[:-1], made.shape[-1])


class TwoOfFour(nn.Module):
    """x W^T of rows: PyTorch's tensor takes no batch of one row each."""

    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, x):
        return F.linear(x.reshape(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], -1)


def two_of_four(linear):
    """Half of the weights, in PyTorch's semi-structured form."""
    weight = linear.weight.detach()
    groups = weight.reshape(-1, 4)
    kept = torch.zeros_like(groups, dtype=torch.bool).scatter_(1, groups.abs().topk(2, 1).indices, True)
    return TwoOfFour(torch.sparse.to_sparse_semi_structured((groups * kept).reshape(weight.shape)))


class MLP(nn.Module):
    def __init__(self, sizes, kind, dtype, device):
        super().__init__()
        width, hidden = sizes["width"], sizes["hidden"]

        def layer(inside, outside, activation=None):
            if kind.startswith("block"):
                _, block, density = kind.split()
                return sa.SparseLinear(inside, outside, int(block), float(density[:-1]) / 100, bias=False, activation=activation, dtype=dtype, device=device)
            dense = nn.Linear(inside, outside, bias=False, dtype=dtype, device=device)
            return EightBit(dense) if kind == "fp8" else two_of_four(dense) if kind == "2:4" else dense

        self.is_sparse = kind.startswith("block")
        self.gate, self.up, self.down = layer(width, hidden, "silu"), layer(width, hidden), layer(hidden, width)

    def forward(self, x):
        return self.down(sa.gated(x, self.gate, self.up) if self.is_sparse else F.silu(self.gate(x)) * self.up(x))


# ---------------------------------------------------------------------------------------------------- the decoder


def rotate(x, cos, sin):
    left, right = x.chunk(2, -1)
    return torch.cat([left * cos - right * sin, right * cos + left * sin], -1)


class Attention(nn.Module):
    def __init__(self, sizes, dtype, device):
        super().__init__()
        self.heads, self.heads_kv, self.depth = sizes["heads"], sizes["heads_kv"], sizes["width"] // sizes["heads"]
        words = dict(bias=False, dtype=dtype, device=device)
        self.qkv = nn.Linear(sizes["width"], (self.heads + 2 * self.heads_kv) * self.depth, **words)
        self.out = nn.Linear(sizes["width"], sizes["width"], **words)

    def forward(self, x, angles, cache):
        """cache: None, or the keys and values [batch, heads_kv, context, depth] of a step whose place is the last one."""
        items, tokens, _ = x.shape
        made = self.qkv(x).view(items, tokens, self.heads + 2 * self.heads_kv, self.depth).transpose(1, 2)
        q, k, v = made.split([self.heads, self.heads_kv, self.heads_kv], 1)
        q, k = rotate(q, *angles), rotate(k, *angles)
        if cache is not None:
            keys, values = cache
            keys[:, :, -tokens:], values[:, :, -tokens:] = k, v
            k, v = keys, values
        o = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None, enable_gqa=True)
        return self.out(o.transpose(1, 2).reshape(items, tokens, -1))


class Decoder(nn.Module):
    def __init__(self, sizes, kind, dtype, device):
        super().__init__()
        words = dict(dtype=dtype, device=device)
        self.sizes = sizes
        self.embedding = nn.Embedding(sizes["vocabulary"], sizes["width"], **words)
        self.attentions = nn.ModuleList(Attention(sizes, dtype, device) for _ in range(sizes["layers"]))
        self.mlps = nn.ModuleList(MLP(sizes, kind, dtype, device) for _ in range(sizes["layers"]))
        self.norms = nn.ModuleList(nn.RMSNorm(sizes["width"], **words) for _ in range(2 * sizes["layers"] + 1))
        self.head = nn.Linear(sizes["width"], sizes["vocabulary"], bias=False, **words)

    def angles(self, first, tokens, like):
        depth = self.sizes["width"] // self.sizes["heads"]
        steps = 500000.0 ** (-torch.arange(0, depth, 2, device=like.device) / depth)
        turns = torch.arange(first, first + tokens, device=like.device)[:, None] * steps
        return turns.cos().to(like.dtype), turns.sin().to(like.dtype)

    def forward(self, tokens, angles, caches=None):
        x = self.embedding(tokens)
        for i, (attention, mlp) in enumerate(zip(self.attentions, self.mlps, strict=True)):
            x = x + attention(self.norms[2 * i](x), angles, None if caches is None else caches[i])
            x = x + mlp(self.norms[2 * i + 1](x))
        return self.head(self.norms[-1](x[:, -1:]))

    def all_mlps(self, x):
        for mlp in self.mlps:
            x = mlp(x)
        return x


# ---------------------------------------------------------------------------------------------------- measuring


def captured(call, cuda):
    """The call as a graph; as it is on the CPU, and where it cannot be captured (with the reason)."""
    if not cuda:
        return call, None
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            call()
    except RuntimeError as error:
        torch.cuda.synchronize()
        return call, str(error).splitlines()[0][:160]
    return graph.replay, None


def timed(call, rounds, cuda):
    """Median and spread in microseconds."""
    times = []
    for round_ in range(rounds + 1):
        if cuda:
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            call()
            end.record()
            end.synchronize()
            took = begin.elapsed_time(end) * 1e3
        else:
            begun = time.perf_counter()
            call()
            took = (time.perf_counter() - begun) * 1e6
        if round_ > 0:
            times.append(took)
    low, middle, high = statistics.quantiles(times, n=4) if len(times) > 1 else (times[0],) * 3
    return round(middle, 1), round((high - low) / 2, 1)


def steps(model, options, dtype, device):
    """name -> (items, tokens of each, the call's other arguments)"""
    sizes = model.sizes
    depth = sizes["width"] // sizes["heads"]
    like = torch.empty(0, dtype=dtype, device=device)
    yield "prefill", 1, options.prompt, (model.angles(0, options.prompt, like), None)
    for items in options.batches:
        shape = (items, sizes["heads_kv"], options.context, depth)
        caches = [tuple(torch.randn(shape, dtype=dtype, device=device) for _ in range(2)) for _ in range(sizes["layers"])]
        yield f"decode {items}", items, 1, (model.angles(options.context - 1, 1, like), caches)


def count_tunings(store):
    """Classes of the process's store."""
    import sqlite3

    if not pathlib.Path(store).exists():
        return 0
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as database:
        return database.execute("SELECT count(*) FROM class").fetchone()[0]


def measure(kind, options, dtype, device, dense):
    cuda = device == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    model = Decoder(options.sizes, kind, dtype, device).requires_grad_(False)
    row = dict(mlp=kind, weights_bytes=sum(p.numel() * p.element_size() for p in model.parameters()) + eight_bit_bytes(model), steps=[])
    before, begun = count_tunings(options.store), time.perf_counter()
    if kind.startswith("block") and options.warm_up:
        sizes = (options.prompt, *options.batches)
        sa.warm_up(model.mlps[0], [(torch.zeros(1, tokens, options.sizes["width"], dtype=dtype, device=device),) for tokens in sizes])
    row["warm_up_s"] = round(time.perf_counter() - begun, 2)
    for name, items, tokens, (angles, caches) in steps(model, options, dtype, device):
        inputs = torch.randint(options.sizes["vocabulary"], (items, tokens), device=device)
        x = torch.randn(items, tokens, options.sizes["width"], dtype=dtype, device=device) / 100
        with torch.no_grad():
            begun = time.perf_counter()
            model(inputs, angles, caches)
            if cuda:
                torch.cuda.synchronize()
            first_s = time.perf_counter() - begun
            whole, why = captured(lambda: model(inputs, angles, caches), cuda)  # noqa: B023  called within the turn
            us, spread = timed(whole, options.rounds, cuda)
            del whole
            mlps, _ = captured(lambda: model.all_mlps(x), cuda)  # noqa: B023
            mlp_us, mlp_spread = timed(mlps, options.rounds, cuda)
            del mlps
        step = dict(name=name, us=us, spread_us=spread, mlp_us=mlp_us, mlp_spread_us=mlp_spread, first_call_s=round(first_s, 3))
        if why is not None:
            step["not_captured"] = why
        base = dense.get(name)
        if base is not None:
            predicted = base["us"] - base["mlp_us"] + mlp_us
            step.update(
                speedup=round(base["us"] / us, 3),
                mlp_speedup=round(base["mlp_us"] / mlp_us, 3),
                predicted_us=round(predicted, 1),
                kept=round(predicted / us, 3),
            )
        row["steps"].append(step)
        print(
            f"{kind:14} {name:10} {us:12.1f} us, MLPs {mlp_us:12.1f}" + (f", {step['speedup']:.2f}x dense, kept {step['kept']:.2f}" if base else ""), flush=True
        )
    row["tunings"] = count_tunings(options.store) - before
    if cuda:
        row["peak_bytes"] = torch.cuda.max_memory_allocated()
    return row


def eight_bit_bytes(model):
    return sum(m.weight.numel() for m in model.modules() if isinstance(m, EightBit))


def write(path, head, rows):
    if path is not None:
        path.write_text(json.dumps(dict(**head, decoder=rows), indent=1) + "\n")


def draw(found, path):
    """A bar a row and step: what is MLP, and what is not."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = [step["name"] for step in found["decoder"][0]["steps"]]
    figure, axes = plt.subplots(1, len(names), figsize=(3.2 * len(names), 4.2), sharey=True, layout="constrained")
    rows = [row for row in found["decoder"] if "steps" in row]
    for axis, name in zip(list(axes) if len(names) > 1 else [axes], names, strict=True):
        for at, row in enumerate(rows):
            step = next((s for s in row["steps"] if s["name"] == name), None)
            if step is not None:
                rest = max(step["us"] - step["mlp_us"], 0) / 1e3
                axis.barh(at, step["mlp_us"] / 1e3, color="#3b6ea8", label="MLPs" if at == 0 else None)
                axis.barh(at, rest, left=step["mlp_us"] / 1e3, color="#c8c8c8", label="all else" if at == 0 else None)
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("ms")
        axis.set_yticks(range(len(rows)), [row["mlp"] for row in rows], fontsize=8)
        axis.invert_yaxis() if axis is (axes[0] if len(names) > 1 else axes) else None
    (axes[0] if len(names) > 1 else axes).legend(fontsize=8, loc="lower right")
    what = "tiny decoder" if found["tiny"] else "decoder of Llama-3-8B's shapes"
    figure.suptitle(f"A {what}, {found['device']['name']}", fontsize=11)
    figure.savefig(path)


def kinds_of(options):
    yield "dense"
    for density in options.densities:
        for block in options.blocks:
            yield f"block {block} {density}%"
    if options.device == "cuda":
        yield from ("fp8", "2:4")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cpu", "cuda"])
    parser.add_argument("--tiny", action="store_true", help="a model of two small layers, in float32 on the CPU")
    parser.add_argument("--layers", type=integer(1, 32), help="fewer than 32")
    parser.add_argument("--prompt", type=integer(1), default=8192)
    parser.add_argument("--context", type=integer(1), default=1024)
    parser.add_argument("--batches", type=listed(integer(1)), default=[1, 16, 64])
    parser.add_argument("--blocks", type=listed(integer(1, 256)), default=[128, 64])
    parser.add_argument("--densities", type=listed(integer(1, 100)), default=[10, 25, 50])
    parser.add_argument("--rounds", type=integer(1), default=11)
    parser.add_argument("--budget-s", type=SECONDS, default=0.0, help="of one tuning")
    parser.add_argument("--seconds", type=SECONDS, default=1e9, help="no new row begins after so many")
    parser.add_argument("--store", default="", help="where the choices are kept; a bundle goes before a tuning in any case")
    parser.add_argument("--no-warm-up", dest="warm_up", action="store_false")
    parser.add_argument("--json", type=result_file)
    parser.add_argument("--picture", type=result_file, help="draws --json; without other options: what is there already")
    options = parser.parse_args()
    given = {word.split("=")[0] for word in sys.argv[1:] if word.startswith("-")}
    if options.json is not None and options.json.exists() and given == {"--json", "--picture"}:
        draw(json.loads(options.json.read_text()), options.picture)
        return
    begun = time.perf_counter()
    options.sizes = dict(TINY if options.tiny else LLAMA_3_8B)
    if options.layers is not None:
        options.sizes["layers"] = options.layers
    dtype = torch.float32 if options.device == "cpu" else torch.bfloat16
    if not options.store:
        folder = tempfile.TemporaryDirectory()
        options.store = str(pathlib.Path(folder.name) / "store.db")
    sa.set_options(store=options.store, tuning="now", budget_s=options.budget_s)
    torch.manual_seed(1)
    name = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    head = dict(
        command="python bench/python/decoder.py " + " ".join(sys.argv[1:]),
        date=datetime.date.today().isoformat(),
        schema=1,
        commit=_C.commit(),
        device=dict(kind=options.device, name=name),
        torch=torch.__version__,
        threads=torch.get_num_threads(),
        tiny=options.tiny,
        sizes=options.sizes,
        prompt=options.prompt,
        context=options.context,
        dtype=str(dtype).removeprefix("torch."),
        rounds=options.rounds,
    )
    if options.device == "cuda":
        head["card"] = card()
    rows, dense = [], {}
    for kind in kinds_of(options):
        if time.perf_counter() - begun > options.seconds:
            rows.append(dict(mlp=kind, why="no time was left"))
            continue
        try:
            row = measure(kind, options, dtype, options.device, dense)
        except (RuntimeError, NotImplementedError, ValueError) as error:
            row = dict(mlp=kind, why=str(error).splitlines()[0][:200])
            print(f"{kind:14} {row['why']}", flush=True)
        if kind == "dense":
            dense = {step["name"]: step for step in row.get("steps", [])}
        rows.append(row)
        gc.collect()
        if options.device == "cuda":
            torch.cuda.empty_cache()
        write(options.json, head, rows)
    write(options.json, head, rows)
    if options.picture is not None and options.json is not None:
        draw(json.loads(options.json.read_text()), options.picture)


if __name__ == "__main__":
    main()
