#!/usr/bin/env python3
"""Gradients of attention on an NVIDIA GPU beside FlashAttention-4, deterministic and not, cuDNN (PyTorch's scaled_dot_product_attention), cuDNN's block-sparse attention and FlexAttention, in alternated
rounds of one process.

    bench/attention_backward_gpu.py --library build/release/libsparsek.so --out FILE [--peers fa4_ordered,fa4,cudnn,bsa,flex] [--device cuda:0] [--rounds 15] [--limit-s 300]
                                    [--peer-s 90] [--flex-cases NAME ...] [--tune] [--row NAME] [--choice TEXT] [--repeats 20] [--only WORD ...]

All get the same numbers, bf16, and O and LSE of a forward pass that is not timed. A ratio is a peer's time over ours, the median over the rounds; TFLOP/s counts the flops of five products for each pair that the
mask keeps. Errors are of one head, beside f32. Cases, files and options are as in bench/attention_gpu.py.
"""
import ctypes as C
import itertools
import math
import pathlib
import statistics
import sys
import types

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from attention_gpu import BF16, ESTIMATE, TOP_LEFT, case, graph_of, in_words, kept_pairs, make_pattern, mask_lists, run, timed, within  # noqa: E402
from race.attention_backward_peers import PEERS, takes_part, version  # noqa: E402
from race.library import NOW_EACH, TuneOptions, sized  # noqa: E402

CASES = [case(f"{'causal' if causal else 'full'}-s{s}-d{d}", 16, s, d, batch=2 if s == 4096 else 1, causal=causal) for d in (64, 128) for s in (4096, 16384) for causal in (0, 1)]
CASES += [case("full-s1024-d128", 48, 1024, 128, batch=4), case("causal-s1024-d128", 48, 1024, 128, batch=4, causal=1),
          case("full-gqa-s8192-d128", 32, 8192, 128, heads_kv=8), case("causal-gqa-s8192-d128", 32, 8192, 128, heads_kv=8, causal=1),
          case("b128-13-s16384-d128", 16, 16384, 128, block=128, kept=17, lists=16), case("b64-13-s16384-d128", 16, 16384, 128, block=64, kept=33, lists=16),
          case("b128-13-s16384-d64", 16, 16384, 64, block=128, kept=17, lists=16), case("b64-10-s40960-d128", 16, 40960, 128, block=64, kept=64, lists=16),
          case("b64-top32-s16384-d128", 16, 16384, 128, block=64, kept=32, lists=16), case("b64-top64-s32768-d128", 12, 32768, 128, block=64, kept=64, lists=12),
          case("b64-top64-s109632-d128", 7, 109632, 128, block=64, kept=64, lists=7), case("b128-top16-s16384-d128", 24, 16384, 128, block=128, kept=16, lists=24),
          case("b128-top16-s32768-d128", 16, 32768, 128, block=128, kept=16, lists=16),
          *(case(f"b64-top64-{drawn}-s40960-d128", 16, 40960, 128, block=64, kept=64, lists=16, drawn=drawn) for drawn in ("shared", "hubs")),
          case("causal-gqa-s2048-d128", 32, 2048, 128, heads_kv=4, batch=8, causal=1), case("causal-gqa-s1024-d128", 40, 1024, 128, heads_kv=8, batch=16, causal=1),
          case("full-s3000-d96", 16, 3000, 96, batch=2), case("causal-s3000-d96", 16, 3000, 96, batch=2, causal=1),
          *(case(f"causal-s{s}-d192-128", 16, s, 192, causal=1, depth_v=128) for s in (2048, 4096, 8192, 16384)),
          case("full-s4096-d256", 16, 4096, 256), *(case(f"causal-s{s}-d256", 16, s, 256, causal=1) for s in (2048, 4096, 8192, 16384)),
          case("window1024-s16384-d128", 16, 16384, 128, causal=1, window=1024)]
FLEX_CASES = ("full-s4096-d128", "b128-13-s16384-d128", "b64-13-s16384-d128")


AT_ONCE = 8192  # rows whose pairs are looked at together


def head_mask(c, lists, head, first, device):
    """Which pairs of a head's rows from `first` on are kept; None: all."""
    rows, keys = torch.arange(first, min(first + AT_ONCE, c["queries"]), device=device)[:, None], torch.arange(c["keys"], device=device)[None, :]
    kept = None
    if c["causal"]:
        kept = keys <= rows
    if c["window"]:
        kept &= keys > rows - c["window"]
    if lists:
        down, across = c["queries"] // c["block"], c["keys"] // c["block"]
        blocks = torch.zeros(down, across, dtype=torch.bool)
        list_row = head // (c["heads"] // c["lists"]) * down
        for row in range(first // c["block"], min(down, (first + AT_ONCE) // c["block"])):
            blocks[row, lists[list_row + row]] = True
        kept = blocks.to(device)[first // c["block"]:(first + AT_ONCE) // c["block"]].repeat_interleave(c["block"], 0).repeat_interleave(c["block"], 1)
    return kept


def exact(c, lists, q, k, v, grad_o, head_kv):
    """O and LSE of the heads that share a head of K and V of item 0, and the gradients, in f32."""
    scale, sharing = c["depth"] ** -0.5, c["heads"] // c["heads_kv"]
    grad_k, grad_v = torch.zeros_like(k[0, 0], dtype=torch.float32), torch.zeros_like(v[0, 0], dtype=torch.float32)
    grad_q = torch.zeros(sharing, *q.shape[2:], dtype=torch.float32, device=q.device)
    keys, values = k[0, head_kv].float(), v[0, head_kv].float()
    for head, first in itertools.product(range(sharing), range(0, c["queries"], AT_ONCE)):
        query, grad = (x[0, head_kv * sharing + head, first:first + AT_ONCE].float() for x in (q, grad_o))
        scores = query @ keys.T
        scores *= scale
        kept = head_mask(c, lists, head_kv * sharing + head, first, q.device)
        if kept is not None:
            scores.masked_fill_(~kept, -math.inf)
        lse = torch.logsumexp(scores, 1, keepdim=True).nan_to_num_(neginf=math.inf)
        weights = scores.sub_(lse).exp_()
        grad_v += weights.T @ grad
        delta = ((weights @ values) * grad).sum(1, keepdim=True)
        slopes = (grad @ values.T).sub_(delta).mul_(weights)
        grad_q[head, first:first + AT_ONCE] = slopes @ keys * scale
        grad_k += slopes.T @ query * scale
        del scores, weights, slopes, kept
    return grad_q, grad_k, grad_v


def error(c, exact_of, made, head_kv):
    """The largest difference of the three gradients from what is exact, over the largest number of each."""
    sharing = c["heads"] // c["heads_kv"]
    pairs = [(made[0][0, head_kv * sharing:(head_kv + 1) * sharing], exact_of[0]), (made[1][0, head_kv], exact_of[1]), (made[2][0, head_kv], exact_of[2])]
    worst = max(float((got.float() - wanted).abs().max() / wanted.abs().max()) for got, wanted in pairs)
    return worst if math.isfinite(worst) else 1e9


# What gives wrong numbers from a captured graph: FlashAttention-4's backward pass through autograd. A case takes long enough to launch it.
EAGER = ("fa4", "fa4_ordered")


def in_turn(call, launches):
    return types.SimpleNamespace(replay=lambda: [call() for _ in range(launches)], eager=True), call()


class Ours:
    def __init__(self, library, c, pattern, arrays, options):
        operation = library.operations["attention_backward"]
        given = {name: c[name] for name in ("batch", "heads", "heads_kv", "queries", "keys", "depth", "depth_v", "causal")}
        problem = operation.problem(dtype=BF16, diagonal=TOP_LEFT, window_left=c["window"], mask_heads=c["lists"], assume_finite=1, **given)
        chosen = options.choice.encode() if options.choice else None
        tune = sized(TuneOptions, tuning=NOW_EACH, effort=0 if options.tune or chosen else ESTIMATE, choice=chosen, only=options.row.encode() if options.row else None)
        self.library, self.plan = library, C.c_void_p()
        library.check(library.lib.spk_plan_create(library.context, pattern, problem, C.byref(tune), C.byref(self.plan)))
        self.choice = library.choice(self.plan)
        self.out = tuple(torch.full_like(arrays[name], math.nan) for name in ("q", "k", "v"))
        bytes_wanted = library.workspace_bytes(self.plan)
        self.workspace = torch.empty(bytes_wanted + 256, dtype=torch.uint8, device=arrays["q"].device)
        pointers = {name: array.data_ptr() for name, array in arrays.items()}
        self.args = operation.args(**pointers, **{f"grad_{name}": array.data_ptr() for name, array in zip("qkv", self.out)}, scale=c["depth"] ** -0.5,
                                   workspace=(self.workspace.data_ptr() + 255) // 256 * 256, workspace_bytes=bytes_wanted)

    def run(self):
        self.library.run(self.plan, self.args, torch.cuda.current_stream().cuda_stream)
        return self.out


def forward(library, c, pattern, q, k, v):
    """O and LSE by our own forward pass."""
    operation = library.operations["attention"]
    given = {name: c[name] for name in ("batch", "heads", "heads_kv", "queries", "keys", "depth", "depth_v", "causal")}
    problem = operation.problem(dtype=BF16, diagonal=TOP_LEFT, window_left=c["window"], mask_heads=c["lists"], want_lse=1, assume_finite=1, **given)
    options, plan = sized(TuneOptions, effort=ESTIMATE), C.c_void_p()
    library.check(library.lib.spk_plan_create(library.context, pattern, problem, C.byref(options), C.byref(plan)))
    o, lse = torch.empty(*q.shape[:-1], c["depth_v"], dtype=q.dtype, device=q.device), torch.empty(q.shape[:-1], dtype=torch.float32, device=q.device)
    workspace = torch.empty(library.workspace_bytes(plan) + 256, dtype=torch.uint8, device=q.device)
    library.run(plan, operation.args(q=q.data_ptr(), k=k.data_ptr(), v=v.data_ptr(), o=o.data_ptr(), lse=lse.data_ptr(), scale=c["depth"] ** -0.5,
                                     workspace=(workspace.data_ptr() + 255) // 256 * 256, workspace_bytes=library.workspace_bytes(plan)), torch.cuda.current_stream().cuda_stream)
    torch.cuda.synchronize()
    library.destroy_plan(plan)
    return o, lse


def measured(library, c, device, options):
    generator = torch.Generator(device).manual_seed(1)
    shapes = [(c["heads"], c["queries"], c["depth"]), (c["heads_kv"], c["keys"], c["depth"]), (c["heads_kv"], c["keys"], c["depth_v"]), (c["heads"], c["queries"], c["depth_v"])]
    q, k, v, grad_o = (torch.randn(c["batch"], *shape, generator=generator, device=device).bfloat16() for shape in shapes)
    lists = mask_lists(c) if c["block"] else None
    pattern = make_pattern(library, c, lists) if lists else None
    o, lse = forward(library, c, pattern, q, k, v)
    flops = (6 * c["depth"] + 4 * c["depth_v"]) * kept_pairs(c, lists)
    launches = max(1, min(10, int(1e12 / flops)))
    graphs, failed, ours = {}, {}, None
    for name in options.peers:
        if name not in options.joined(c):
            continue
        try:
            with within(options.peer_s):
                if name == "ours":
                    ours = Ours(library, c, pattern, {"q": q, "k": k, "v": v, "o": o, "lse": lse, "grad_o": grad_o}, options)
                    call = ours.run
                else:
                    call = PEERS[name](c, q, k, v, o, lse, grad_o, lists)
                call()
                torch.cuda.synchronize()
            graphs[name] = in_turn(call, launches) if name in EAGER else graph_of(call, launches)
        except Exception as reason: # whatever a peer raises, the others go on
            failed[name] = in_words(reason)
            torch.cuda.synchronize()
    times = timed(graphs, launches, options.rounds)
    us = {name: statistics.median(values) for name, values in times.items()}
    head_kv = c["heads_kv"] // 2
    wanted = exact(c, lists, q, k, v, grad_o, head_kv)
    errors = {name: float(f"{error(c, wanted, out, head_kv):.2g}") for name, (_, out) in graphs.items()}
    failed.update({name: f"wrong: error {found:g}" for name, found in errors.items() if found > 0.03})
    right = [name for name in graphs if name not in failed]
    result = {**c, "chosen": ours.choice if ours else None, "us": {name: round(us[name], 3) for name in right},
              "tflops": {name: round(flops / us[name] / 1e6, 1) for name in right}, "errors": errors,
              "ratios": {name: round(statistics.median(b / a for a, b in zip(times["ours"], times[name])), 4) for name in right if name != "ours" and "ours" in right}}
    if ours and "ours" in graphs:
        first = [x.clone() for x in ours.out]
        for _ in range(options.repeats):
            ours.run()
            if not all(torch.equal(a.view(torch.int16), b.view(torch.int16)) for a, b in zip(first, ours.out)):
                failed["ours"] = "other bits on another run"
                break
        result["equal_runs"] = options.repeats if "ours" not in failed else 0
        library.destroy_plan(ours.plan)
    eager = [name for name, (graph, _) in graphs.items() if hasattr(graph, "eager")]
    if eager:
        result["eager"] = eager
    if failed:
        result["failed"] = failed
    return result


def add_options(parser):
    parser.add_argument("--repeats", type=int, default=20, help="runs of ours whose bits are compared")
    parser.add_argument("--row", help="only this row of the library")
    parser.add_argument("--choice", help="this candidate, as a plan's choice says it")


if __name__ == "__main__":
    run("bench/attention_backward_gpu.py", __doc__, "attention_backward", CASES, FLEX_CASES, PEERS, takes_part, version, measured, add_options)
