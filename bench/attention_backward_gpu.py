#!/usr/bin/env python3
"""The gradients of attention on an NVIDIA GPU beside PyTorch's (cuDNN, and its FlashAttention), in alternated rounds of one process, bf16.

    bench/attention_backward_gpu.py --library build/release/libsparsek.so --out FILE [--device cuda:0] [--rounds 9] [--limit-s 200] [--only WORD ...] [--choices TEXT ...]

Ours is what the library chooses with effort "estimate"; each of --choices, a row with its parameters, takes part besides. A ratio is a peer's time over ours, the median over the
rounds; TFLOP/s count five products of each pair that the mask keeps. The error is the largest difference of one head's gradients from those in float32, over their largest number; more
than 0.03 is wrong. cuDNN and FlashAttention are those of torch.nn.functional.scaled_dot_product_attention; their time is that of torch.autograd.grad. Needs PyTorch.
"""
import argparse
import ctypes as C
import datetime
import json
import math
import pathlib
import statistics
import sys
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from attention_gpu import BF16, ESTIMATE, TOP_LEFT, case, graph_of, in_words, kept_pairs, make_pattern, mask_lists, microseconds  # noqa: E402
from race.library import Library, TuneOptions, sized  # noqa: E402

CASES = [case(f"{'causal' if causal else 'full'}-s4096-d{d}", 16, 4096, d, batch=2, causal=causal) for d in (64, 128) for causal in (0, 1)]
CASES += [case("causal-gqa-s4096-d128", 32, 4096, 128, heads_kv=8, causal=1), case("window1024-s16384-d128", 16, 16384, 128, causal=1, window=1024),
          case("b128-13-s16384-d128", 16, 16384, 128, block=128, kept=17, lists=16), case("b64-13-s16384-d128", 16, 16384, 128, block=64, kept=33, lists=16),
          case("full-s1024-d64", 48, 1024, 64, batch=4)]
PEERS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
WRONG = 0.03


class Ours:
    def __init__(self, library, c, pattern, arrays, choice):
        operation = library.operations["attention_backward"]
        given = {name: c[name] for name in ("batch", "heads", "heads_kv", "queries", "keys", "depth", "causal")}
        problem = operation.problem(dtype=BF16, diagonal=TOP_LEFT, window_left=c["window"], mask_heads=c["lists"], **given)
        options = sized(TuneOptions, assume_finite=1, effort=ESTIMATE, choice=choice.encode() if choice else None)
        self.library, self.plan = library, C.c_void_p()
        library.check(library.lib.spk_plan_create(library.context, pattern, problem, C.byref(options), C.byref(self.plan)))
        self.out, self.choice = [torch.full_like(arrays[name], math.nan) for name in "qkv"], library.choice(self.plan)
        bytes_ = library.workspace_bytes(self.plan)
        self.workspace = torch.empty(bytes_ + 256, dtype=torch.uint8, device=arrays["q"].device)
        pointers = {name: array.data_ptr() for name, array in arrays.items()} | {f"grad_{name}": out.data_ptr() for name, out in zip("qkv", self.out)}
        self.args = operation.args(**pointers, scale=c["depth"] ** -0.5, workspace=(self.workspace.data_ptr() + 255) // 256 * 256, workspace_bytes=bytes_)

    def run(self):
        self.library.run(self.plan, self.args, torch.cuda.current_stream().cuda_stream)
        return self.out


def attend(c, lists, q, k, v):
    """O and LSE, a head at a time, in float32."""
    o, lse = torch.empty_like(q), torch.empty(q.shape[:3], device=q.device)
    for item in range(c["batch"]):
        for head in range(c["heads"]):
            mine = formula(c, lists, item, head, q, k, v)
            o[item, head], lse[item, head] = mine[0].to(q.dtype), mine[1]
    return o, lse


def seen_pairs(c, lists, head, rows):
    """[rows, keys]: of a range of queries."""
    if lists:
        blocks = torch.zeros(len(rows) // c["block"], c["keys"] // c["block"], dtype=torch.bool)
        first = head // (c["heads"] // c["lists"]) * (c["queries"] // c["block"]) + rows.start // c["block"]
        for to, of in zip(blocks, lists[first:first + len(blocks)]):
            to[of] = True
        return blocks.repeat_interleave(c["block"], 0).repeat_interleave(c["block"], 1)
    if not c["causal"]:
        return torch.ones(len(rows), c["keys"], dtype=torch.bool)
    query, key = torch.arange(rows.start, rows.stop)[:, None], torch.arange(c["keys"])
    return (key <= query) & ((key > query - c["window"]) if c["window"] else True)


def formula(c, lists, item, head, q, k, v, piece=2048):
    """O and LSE of a head in float32."""
    kv, o, lse = head // (c["heads"] // c["heads_kv"]), [], []
    for first in range(0, c["queries"], piece):
        rows = range(first, min(first + piece, c["queries"]))
        scores = (q[item, head, rows.start:rows.stop].float() @ k[item, kv].float().T) * c["depth"] ** -0.5
        scores = scores.masked_fill(~seen_pairs(c, lists, head, rows).to(q.device), -math.inf)
        o.append(scores.softmax(-1) @ v[item, kv].float())
        lse.append(scores.logsumexp(-1))
    return torch.cat(o), torch.cat(lse)


def wanted(c, lists, arrays):
    """The gradients of the last head of K and V, and of the first head of Q that goes with it, in float32."""
    sharing, item, kv = c["heads"] // c["heads_kv"], c["batch"] - 1, c["heads_kv"] - 1
    k, v = (arrays[name][item, kv].float() for name in "kv")
    grads = [None, torch.zeros_like(k), torch.zeros_like(v)]
    for head in range(kv * sharing, (kv + 1) * sharing):
        of_q = []
        for first in range(0, c["queries"], 2048):
            rows = range(first, min(first + 2048, c["queries"]))
            q, g, o = (arrays[name][item, head, rows.start:rows.stop].float() for name in ("q", "grad_o", "o"))
            weights = ((q @ k.T) * c["depth"] ** -0.5 - arrays["lse"][item, head, rows.start:rows.stop, None]).exp()
            weights = weights.masked_fill(~seen_pairs(c, lists, head, rows).to(q.device), 0)
            scores = weights * (g @ v.T - (g * o).sum(-1, keepdim=True))
            of_q.append(scores @ k * c["depth"] ** -0.5)
            grads[1] += scores.T @ q * c["depth"] ** -0.5
            grads[2] += weights.T @ g
        if grads[0] is None:
            grads[0] = torch.cat(of_q)
    return grads


def error(c, want, got):
    item, kv = c["batch"] - 1, c["heads_kv"] - 1
    worst = 0.0
    for one, mine, head in zip(want, got, (kv * (c["heads"] // c["heads_kv"]), kv, kv)):
        worst = max(worst, float((mine[item, head].float() - one).abs().max() / one.abs().max()))
    return worst if math.isfinite(worst) else 1e9


def peer(backend, c, arrays):
    q, k, v = (arrays[name].detach().requires_grad_() for name in "qkv")
    with sdpa_kernel(backend):
        o = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=bool(c["causal"]), enable_gqa=c["heads"] != c["heads_kv"])
    return lambda: torch.autograd.grad(o, (q, k, v), arrays["grad_o"], retain_graph=True)


def measured(library, c, device, options):
    generator = torch.Generator(device).manual_seed(1)

    def drawn(heads, rows):
        return torch.randn(c["batch"], heads, rows, c["depth"], generator=generator, device=device).bfloat16()
    arrays = {"q": drawn(c["heads"], c["queries"]), "k": drawn(c["heads_kv"], c["keys"]), "v": drawn(c["heads_kv"], c["keys"]), "grad_o": drawn(c["heads"], c["queries"])}
    lists = mask_lists(c) if c["block"] else None
    arrays["o"], arrays["lse"] = attend(c, lists, arrays["q"], arrays["k"], arrays["v"])
    want, flops = wanted(c, lists, arrays), 10 * kept_pairs(c, lists) * c["depth"]
    launches = max(1, min(10, int(1e12 / flops)))
    pattern = make_pattern(library, c, lists) if lists else None
    calls = {"ours": lambda: Ours(library, c, pattern, arrays, None)} | {text: lambda text=text: Ours(library, c, pattern, arrays, text) for text in options.choices}
    graphs, failed, chosen, errors, kept = {}, {}, None, {}, []
    for name in list(calls) + ([] if c["window"] or c["block"] else list(PEERS)):
        try:
            call = peer(PEERS[name], c, arrays) if name in PEERS else calls[name]()
            if name == "ours":
                chosen = call.choice
            if name not in PEERS:
                call = call.run
            out = call()
            kept.append((call, out)) # what graphs read
            torch.cuda.synchronize()
            errors[name] = float(f"{error(c, want, out):.2g}")
            if errors[name] > WRONG:
                failed[name] = f"wrong: error {errors[name]:g}"
            else:
                graphs[name] = graph_of(call, launches)[0]
        except Exception as reason: # whatever a peer raises, the others go on
            failed[name] = in_words(reason)
            torch.cuda.synchronize()
    times = {name: [] for name in graphs}
    until = time.perf_counter() + 0.15
    while time.perf_counter() < until: # the clock that the power allows
        for graph in graphs.values():
            graph.replay()
        torch.cuda.synchronize()
    for number in range(options.rounds):
        for name in list(graphs)[::-1 if number % 2 else 1]:
            times[name].append(microseconds(graphs[name], launches))
    us = {name: statistics.median(values) for name, values in times.items()}
    result = {**c, "chosen": chosen, "us": {name: round(value, 1) for name, value in us.items()}, "tflops": {name: round(flops / value / 1e6, 1) for name, value in us.items()},
              "errors": errors, "ratios": {name: round(statistics.median(b / a for a, b in zip(times["ours"], times[name])), 4) for name in us if name != "ours" and "ours" in us}}
    eager = [name for name, graph in graphs.items() if hasattr(graph, "eager")]
    return result | ({"eager": eager} if eager else {}) | ({"failed": failed} if failed else {})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--limit-s", type=float, default=200)
    parser.add_argument("--only", nargs="*", default=[], help="cases whose name has one of these words")
    parser.add_argument("--choices", nargs="*", default=[], help="rows with parameters that take part besides")
    options = parser.parse_args()
    begun, device, done = time.monotonic(), torch.device(options.device), []
    torch.cuda.set_device(device)
    library = Library(options.library, options.device, "")
    document = {"schema": 1, "sparsek": library.version, "commit": library.commit, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "command": "bench/attention_backward_gpu.py " + " ".join(sys.argv[1:]), "device": {"kind": "cuda", "name": torch.cuda.get_device_name(device)},
                "torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "rounds": options.rounds, "attention_backward": done}
    for c in CASES:
        if options.only and not any(word in c["name"] for word in options.only):
            continue
        if time.monotonic() - begun > options.limit_s:
            print(f"{c['name']} and what follows is left out: the time is over", flush=True)
            break
        done.append(measured(library, c, device, options))
        print(json.dumps({name: done[-1][name] for name in ("name", "chosen", "us", "tflops", "errors", "failed") if name in done[-1]}), flush=True)
        options.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
