#!/usr/bin/env python3
"""sparse_autotune.attention on CUDA tensors, beside its definition in float64 on the CPU: tests/device/attention_python.py [--json FILE] [--device cpu] [--only TEXT] [--what TEXT] [--jobs 3]

    python3 -m pip install --no-deps --target build/python-package .      # TORCH_ROOT=.../site-packages/torch where another Python has PyTorch
    PYTHONPATH=build/python-package python3 tests/device/attention_python.py --json build/attention-python.json

The first line needs what pip install . does. The second one may run on another machine, which needs PyTorch 2.10 or later, SQLite, Jansson and zlib: what it
reads is build/python-package/sparse_autotune, which has the Python files and, beside them, _C.abi3.so, libsparsek.so.0.2, sparsek and sparsek-prover. NVRTC comes
with PyTorch; where it is not found, SPARSEK_NVRTC names it.

Full attention, causal, windows, masks of blocks with NaN where nobody looks, tiles of bits, lengths, packed sequences, pages in any order, both layouts, in f16,
bf16 and f32; the gradients of these calls, but for pages, which must have the same bits twice; then the same calls in CUDA graphs whose numbers change between
replays. With --device cpu all but the graphs. A GPU's programs are compiled and
proved at their first use, some seconds each: with --jobs N so many processes share the cases. The last line is JSON with counts. Exit code 1 where something
differs, or where it was interrupted: what is done by then is counted and written.
"""
import argparse
import datetime
import json
import math
import multiprocessing
import pathlib
import sys
import traceback

import torch

import sparse_autotune as sa

TOLERANCE = {torch.float16: 3e-3, torch.bfloat16: 2e-2, torch.float32: 1e-5}  # of the largest entry, or of 1
LENGTHS = [0, 1, 63, 64, 65, 200]


def band(queries, keys, causal=None, window=None, sinks=0, diagonal=None):
    """[queries, keys]: what the words of sa.attention let a query see."""
    left, right = window if isinstance(window, tuple) else (window, None if causal else window)
    key = torch.arange(keys)
    beside = torch.arange(queries)[:, None] + (keys - queries if "bottom_right" in (causal, diagonal) else 0)
    seen = torch.ones(queries, keys, dtype=torch.bool)
    if causal:
        seen &= key <= beside
    if right:
        seen &= key < beside + right
    if left:
        seen &= (key > beside - left) | (key < sinks)
    return seen


def formula(q, k, v, seen):
    """O and LSE in float64; what is not seen has no influence."""
    q, k, v = (t.double().cpu() for t in (q, k, v))
    k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
    scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~seen, -math.inf)
    return scores.softmax(-1).nan_to_num(0) @ v, torch.logsumexp(scores, -1)


def gradients(q, k, v, seen, grad_o, grad_lse):
    """Of sum(O grad_O), and of sum(LSE grad_LSE) over the queries that see a key, in float64."""
    q, k, v = (t.double().cpu().requires_grad_() for t in (q, k, v))
    wide_k, wide_v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
    some = seen.any(-1)
    scores = (q @ wide_k.mT * q.shape[-1] ** -0.5).masked_fill(~seen & some[..., None], -math.inf)
    o = scores.softmax(-1) * some[..., None] @ wide_v
    loss = (o * grad_o.double().cpu()).sum() + (scores.logsumexp(-1) * some * grad_lse.double().cpu()).sum()
    return torch.autograd.grad(loss, (q, k, v))


class Case:
    """q, k and v as they are given, the same without pages and NaN, what is seen [batch or 1, heads or 1, queries, keys], and the words of the call."""

    def __init__(self, name, q, k, v, seen, plain=None, **words):
        self.name, self.given, self.seen, self.words = name, [q, k, v], seen, words
        self.plain = plain or (k, v)

    def run(self, layout="bhsd"):
        turned = [t.transpose(1, 2) for t in self.given] if layout == "bshd" else self.given
        o, lse = sa.attention(*turned, layout=layout, return_lse=True, **self.words)
        return (o.transpose(1, 2) if layout == "bshd" else o), lse

    def gradient_errors(self, layout, generator):
        """Over the tolerance, of Q, K and V. With the rows first the loss depends on LSE, too."""
        given = [t.detach().clone().requires_grad_() for t in self.given]
        turned = [t.transpose(1, 2) for t in given] if layout == "bshd" else given
        o, lse = sa.attention(*turned, layout=layout, return_lse=True, **self.words)
        o = o.transpose(1, 2) if layout == "bshd" else o
        grad_o, grad_lse = (torch.randn(t.shape, generator=generator).to(t) for t in (o, lse))
        if layout == "bhsd":
            grad_lse.zero_()
        made, again = (torch.autograd.grad((o, lse) if layout == "bshd" else o, given, (grad_o, grad_lse) if layout == "bshd" else grad_o, retain_graph=True) for _ in range(2))
        if not all(torch.equal(one, other) for one, other in zip(made, again, strict=True)):
            return math.inf
        want = gradients(self.given[0].nan_to_num(0), *self.plain, self.seen, grad_o, grad_lse)
        off = [(got.double().cpu() - one).abs().max().item() / (2 * TOLERANCE[got.dtype] * max(one.abs().max().item(), 1)) for got, one in zip(made, want, strict=True)]
        return max(off) if all(one == one for one in off) else math.inf

    def errors(self, o, lse):
        """Over the tolerance."""
        want, want_lse = formula(self.given[0].nan_to_num(0), *self.plain, self.seen)
        o, lse = o.double().cpu(), lse.double().cpu()
        if not torch.equal(lse == -math.inf, want_lse == -math.inf):
            return math.inf
        nothing = want_lse == -math.inf
        off = (o - want).abs().max().item() / (TOLERANCE[self.given[0].dtype] * max(want.abs().max().item(), 1))
        lse, want_lse = lse.masked_fill(nothing, 0), want_lse.masked_fill(nothing, 0)
        off_lse = (lse - want_lse).abs().max().item() / (TOLERANCE[torch.float32] * max(want_lse.abs().max().item(), 1))
        worst = max(off, off_lse)
        return worst if worst == worst else math.inf


class Maker:
    def __init__(self, device, dtype, seed):
        self.device, self.dtype, self.generator = device, dtype, torch.Generator().manual_seed(seed)

    def drawn(self, *sizes):
        return torch.randn(*sizes, generator=self.generator).to(self.device, self.dtype)

    def operands(self, batch, heads, heads_kv, queries, keys, depth=64, depth_v=None):
        return self.drawn(batch, heads, queries, depth), self.drawn(batch, heads_kv, keys, depth), self.drawn(batch, heads_kv, keys, depth_v or depth)

    def chance(self, probability, *sizes):
        return torch.rand(*sizes, generator=self.generator) < probability

    def int32(self, numbers):
        return torch.as_tensor(numbers, dtype=torch.int32).to(self.device)

    def table(self, lengths, columns, rows, pages):
        """Pages in an order of no pattern; numbers that no key needs are 0, as a GPU may not be told of none."""
        order = iter(torch.randperm(pages, generator=self.generator).tolist())
        return [[next(order) if column * rows < length else 0 for column in range(columns)] for length in lengths]

    def in_pages(self, tensor, table, lengths, pages, rows):
        """[pages, heads, rows, depth], in memory with rows before heads; NaN where no key stands."""
        made = tensor.new_full((pages, rows, tensor.shape[1], tensor.shape[3]), math.nan)
        for item, length in enumerate(lengths):
            for begin in range(0, length, rows):
                count = min(rows, length - begin)
                made[table[item][begin // rows], :count] = tensor[item, :, begin : begin + count].transpose(0, 1)
        return made.transpose(1, 2)


def spoiled(tensor, hidden):
    """NaN in rows [batch or 1, rows] that are hidden."""
    return tensor.masked_fill(hidden.to(tensor.device)[:, None, :, None], math.nan)


def bands(queries, lengths, keys, **words):
    seen = torch.zeros(len(lengths), 1, queries, keys, dtype=torch.bool)
    for item, length in enumerate(lengths):
        seen[item, 0, :, :length] = band(queries, length, **words)
    return seen


def packed(queries, keys, **words):
    return torch.block_diag(*(band(q, k, **words) for q, k in zip(queries, keys, strict=True))).bool()


def plain_cases(m):
    for batch, heads, heads_kv, queries, keys, depth in ((2, 4, 4, 128, 128, 64), (1, 8, 2, 1, 1000, 128), (2, 6, 3, 77, 300, 40), (1, 2, 2, 500, 65, 256)):
        yield Case(f"full, {queries} x {keys}", *m.operands(batch, heads, heads_kv, queries, keys, depth), torch.ones(queries, keys, dtype=torch.bool))
    for queries, keys in ((200, 200), (70, 333), (333, 70)):
        for words in ({"causal": "top_left"}, {"causal": "bottom_right"}, {"causal": "bottom_right", "window": 50, "sinks": 3}, {"window": (30, 9), "diagonal": "top_left"}):
            text = " ".join(f"{name} {value}" for name, value in words.items())
            yield Case(f"{text}, {queries} x {keys}", *m.operands(2, 4, 2, queries, keys), band(queries, keys, **words), **words)


def mask_cases(m):
    for block, heads, batch in ((64, 1, 1), ((16, 128), 2, 2), ((30, 50), 4, 1), ((128, 64), 4, 2)):
        high, wide = (block, block) if isinstance(block, int) else block
        dense = m.chance(0.4, batch, heads, -(-300 // high), -(-400 // wide))
        dense[..., 1] = False
        mask = sa.BlockMask.from_dense(dense, block, shape=(300, 400)).to(m.device)
        seen = mask.to_pairs().cpu().repeat_interleave(4 // heads, 1)
        q, k, v = m.operands(2, 4, 2, 300, 400)
        hidden = ~seen.any(1).any(1).expand(2, -1)
        yield Case(f"mask of {high} x {wide}, {heads} heads, {batch} items, NaN hidden", q, spoiled(k, hidden), spoiled(v, hidden), seen, (k, v), mask=mask)
        words = {"causal": "bottom_right"}
        yield Case(f"mask of {high} x {wide}, {heads} heads, {batch} items, causal", q, k, v, seen & band(300, 400, **words), mask=mask, **words)
        pairs = m.chance(0.5, batch, heads, 300, 400)
        pairs[..., :100, :], pairs[..., 200:330] = True, False
        mask = sa.BlockMask.from_pairs(pairs[0] if batch == 1 else pairs, block).to(m.device)
        seen, hidden = pairs.repeat_interleave(4 // heads, 1), ~pairs.any(1).any(1).expand(2, -1)
        yield Case(f"tiles of bits of {high} x {wide}, {heads} heads, {batch} items", q, spoiled(k, hidden), spoiled(v, hidden), seen, (k, v), mask=mask)


def number_cases(m):
    most, pages = max(LENGTHS), 40
    lengths, hidden = m.int32(LENGTHS), torch.arange(most) >= torch.tensor(LENGTHS)[:, None]
    for queries in (1, 9, 130):
        q, k, v = m.operands(6, 4, 2, queries, most)
        for words in ({}, {"causal": "bottom_right"}, {"causal": "top_left", "window": 20, "sinks": 3}):
            text = f"{queries} queries" + (", causal" if words else "") + (", window" if "window" in words else "")
            seen = bands(queries, LENGTHS, most, **words)
            yield Case(f"lengths, {text}", q, spoiled(k, hidden), spoiled(v, hidden), seen, (k, v), lengths=lengths, **words)
            for rows in (16, 64):
                columns = -(-most // rows)
                table = m.table(LENGTHS, columns, rows, pages)
                given = [m.in_pages(t, table, LENGTHS, pages, rows) for t in (k, v)]
                wide = torch.nn.functional.pad(seen, (0, columns * rows - most))
                plain = [torch.nn.functional.pad(t, (0, 0, 0, columns * rows - most)) for t in (k, v)]
                yield Case(f"pages of {rows}, {text}", q, *given, wide, plain, lengths=lengths, page_table=m.int32(table), **words)
    of_queries, of_keys = [0, 1, 63, 64, 65, 2, 200], [9, 300, 63, 0, 65, 64, 1]
    for words in ({}, {"causal": True}, {"causal": True, "window": 30, "sinks": 2}):
        text = ", ".join(words)
        q, k, v = m.operands(1, 4, 2, 400, 400)
        seen = torch.zeros(400, 400, dtype=torch.bool)
        seen[:395, :395] = packed(of_queries, of_queries, **words)
        behind = torch.arange(400)[None] >= 395
        given = [spoiled(t, behind) for t in (q, k, v)]
        yield Case(f"packed {text}", *given, seen, (k, v), query_ends=m.int32(of_queries).cumsum(0, dtype=torch.int32), **words)
        words = words | ({"causal": "bottom_right"} if words else {})
        q, k, v = m.operands(1, 4, 2, sum(of_queries), sum(of_keys))
        ends = [m.int32(lengths).cumsum(0, dtype=torch.int32) for lengths in (of_queries, of_keys)]
        yield Case(f"packed, other keys {text}", q, k, v, packed(of_queries, of_keys, **words), query_ends=ends[0], key_ends=ends[1], **words)
    _, k, v = m.operands(7, 4, 2, 1, 304)
    table = m.table(of_keys, 19, 16, pages)
    given = [m.in_pages(t, table, of_keys, pages, 16) for t in (k, v)]
    seen = torch.zeros(sum(of_queries), 7, 304, dtype=torch.bool)
    for sequence, (end, count) in enumerate(zip(torch.tensor(of_queries).cumsum(0).tolist(), of_queries, strict=True)):
        seen[end - count : end, sequence, : of_keys[sequence]] = True
    plain = [t.transpose(0, 1).flatten(1, 2)[None] for t in (k, v)]
    yield Case("packed, pages of 16", q, *given, seen.flatten(1), plain, query_ends=ends[0], lengths=m.int32(of_keys), page_table=m.int32(table))


def changed(case, m):
    """New numbers in the tensors of a case of lengths, pages or tiles of bits; what is seen then."""
    words = case.words
    if "mask" in words:
        bits = words["mask"].tile_bits
        bits.copy_(torch.randint(-(2**31), 2**31, bits.shape, generator=m.generator))
        case.seen = words["mask"].to_pairs().cpu().repeat_interleave(case.given[0].shape[1] // words["mask"].heads, 1)
    elif "page_table" in words:
        table, pages, rows = words["page_table"], case.given[1].shape[0], case.given[1].shape[2]
        lengths = torch.randint(1, 80, (table.shape[0],), generator=m.generator).tolist()
        words["lengths"].copy_(torch.tensor(lengths))
        made = m.table(lengths, table.shape[1], rows, pages)
        table.copy_(torch.tensor(made))
        for given, plain in zip(case.given[1:], case.plain, strict=True):
            given.copy_(m.in_pages(plain, made, lengths, pages, rows))
        case.seen = (torch.arange(case.plain[0].shape[2]) < torch.tensor(lengths)[:, None])[:, None, None]
    else:
        lengths = torch.randint(0, case.given[1].shape[2] + 1, words["lengths"].shape, generator=m.generator)
        words["lengths"].copy_(lengths)
        for given, plain in zip(case.given[1:], case.plain, strict=True):
            given.copy_(spoiled(plain, torch.arange(plain.shape[2]) >= lengths[:, None]))
        case.seen = (torch.arange(case.given[1].shape[2]) < lengths[:, None])[:, None, None]


def graph_cases(m):
    """Of one kind each."""
    wanted = {"lengths, 9 queries": None, "pages of 16, 1 queries": None, "tiles of bits of 16 x 128, 2 heads, 2 items": None}
    for case in (*mask_cases(m), *number_cases(m)):
        if case.name in wanted:
            if "mask" in case.words:
                case.given[1:] = case.plain  # other bits show other keys
            yield case


def run_graph(case, m):
    """The worst of five replays, each with other numbers."""
    case.run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        o, lse = case.run()
    worst = 0.0
    for _ in range(5):
        changed(case, m)
        graph.replay()
        torch.cuda.synchronize()
        worst = max(worst, case.errors(o, lse))
    return worst


def checked(what, case, dtype, results, run):
    try:
        worst, said = run(), None
    except Exception as error:
        worst, said = math.inf, traceback.format_exception_only(error)[-1].strip()
    bad = not worst <= 1
    results.append({"what": what, "case": case.name, "dtype": str(dtype).removeprefix("torch."), "error_over_tolerance": round(worst, 4) if worst < math.inf else "infinite",
                    "differ": int(bad)} | ({"said": said} if said else {}))
    if bad:
        print(", ".join(f"{name} {value}" for name, value in results[-1].items()), flush=True)


def all_runs(options):
    """What is checked, in what dtype, and how, of every case."""
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        m = Maker(options.device, dtype, options.seed)
        for case in (*plain_cases(m), *mask_cases(m), *number_cases(m)):
            for layout in ("bhsd", "bshd"):
                yield layout, case, dtype, lambda case=case, layout=layout: case.errors(*case.run(layout))
                if "page_table" not in case.words:
                    yield f"gradients, {layout}", case, dtype, lambda case=case, layout=layout, m=m: case.gradient_errors(layout, m.generator)
        for case in graph_cases(m) if options.device != "cpu" else ():
            yield "replays of a graph", case, dtype, lambda case=case, m=m: run_graph(case, m)


def run_share(options, share):
    """Every n-th case; those that were done, where it is interrupted, and whether it was."""
    sa.set_options(store="", effort="estimate")
    results = []
    try:
        for i, (what, case, dtype, run) in enumerate(all_runs(options)):
            if i % options.jobs == share and options.only in case.name and options.what in what:
                checked(what, case, dtype, results, run)
                print(f"\r{share}: {len(results)} cases, {case.name[:60]:60}", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        return results, True
    return results, False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", help="cpu: all but the graphs")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--what", default="", help="checks whose name has this text: bhsd, bshd, gradients, replays")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the cases (default: 1)")
    options = parser.parse_args()
    if options.jobs > 1:
        with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
            waiting = pool.starmap_async(run_share, [(options, share) for share in range(options.jobs)])
            while True:  # an interrupt ends the shares, which still say what they have done
                try:
                    shares = waiting.get()
                    break
                except KeyboardInterrupt:
                    continue
    else:
        shares = [run_share(options, 0)]
    print(file=sys.stderr)
    from sparse_autotune import _C

    results, interrupted = [result for share, _ in shares for result in share], any(late for _, late in shares)
    differ = sum(result["differ"] for result in results)
    counts = {"cases": len(results), "differ": differ, "graphs": sum(result["what"].startswith("replays") for result in results),
              "gradients": sum(result["what"].startswith("gradients") for result in results), "device": options.device}
    if interrupted:
        counts["interrupted"] = True
    device = {"kind": "cpu"} if options.device == "cpu" else {"kind": "cuda", "name": torch.cuda.get_device_name()}
    said = {"schema": 1, "commit": _C.commit(), "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "command": "tests/device/attention_python.py " + " ".join(sys.argv[1:]), "torch": torch.__version__, "device": device, "counts": counts, "results": results}
    if options.json:
        options.json.write_text(json.dumps(said, indent=1) + "\n")
    worst = [result["error_over_tolerance"] for result in results if not result["differ"]]
    print(json.dumps(counts | {"worst_error_over_tolerance": max(worst, default=0)}))
    return int(differ > 0 or interrupted or not results)


if __name__ == "__main__":
    sys.exit(main())
