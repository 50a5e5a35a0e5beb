#!/usr/bin/env python3
"""Attention on an NVIDIA GPU, what `sparsek check` does not see: tests/device/attention.py --library build/release/libsparsek.so [--json FILE] [--runs 1000]

Equal bits over many runs; halves of the keys that agree when they are merged by LSE; lengths, page tables and
tiles of bits that change between replays of a CUDA graph; problems of so many tiles that the last ones are shared out, or that lists are sorted on the device. Needs PyTorch. Exit code 1 where something differs.
"""
import argparse
import ctypes as C
import datetime
import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from race.library import DeferredIndices, DeviceIndices, Library, TuneOptions, sized  # noqa: E402

BF16, BOTTOM_RIGHT, ESTIMATE, INT32, DEVICE = 4, 2, 1, 0, 1


def stream():
    return torch.cuda.current_stream().cuda_stream


class Mask:
    """Lists of `kept` random blocks in each block row (uneven: of so many at most; every: in one of so many block rows), for each of `lists` lists, on the device."""

    def __init__(self, library, queries, keys, block, kept, lists, seed=1, uneven=False, deferred=True, every=1):
        down, across, generator = lists * (queries // block), keys // block, torch.Generator("cuda").manual_seed(seed)
        ranks = torch.rand(down, across, generator=generator, device="cuda").argsort(dim=1).argsort(dim=1)
        counts = torch.randint(0, kept + 1, (down, 1), generator=generator, device="cuda") if uneven else kept
        there = ranks < counts
        there[torch.arange(down, device="cuda") % every > 0] = False
        self.columns = there.nonzero()[:, 1].int().contiguous()
        self.offsets = torch.cat((torch.zeros(1, dtype=torch.int64, device="cuda"), there.sum(1).cumsum(0))).int().contiguous()
        self.library, self.blocks, self.made = library, len(self.columns), C.c_void_p()
        self.deferred, self.longest_row = deferred, kept
        self.kept = there.unflatten(0, (lists, -1))
        self.fields = dict(rows=down * block, cols=keys, block_rows=block, block_cols=block, nnzb=self.blocks, index_type=INT32, index_memory=DEVICE)

    def create(self):
        made, deferred = C.c_void_p(), sized(DeferredIndices, stream=stream(), longest_row=self.longest_row)
        indices = sized(DeviceIndices, row_offsets=self.offsets.data_ptr(), col_indices=self.columns.data_ptr(), deferred=C.pointer(deferred) if self.deferred else None, **self.fields)
        self.library.check(self.library.lib.spk_pattern_create(self.library.context, C.byref(indices), C.byref(made)))
        return made


class Problem:
    def __init__(self, library, pattern=None, arrays=None, seed=1, choice=None, **fields):
        self.choice = choice.encode() if choice else None
        self.library, operation = library, library.operations["attention"]
        f = {"batch": 1, "heads": 1, "heads_kv": 0, "depth": 64, **fields}
        rows = f.get("pages", 0) * f.get("page_keys", 0) or f["keys"]
        items = 1 if f.get("page_keys") else f["batch"]
        generator = torch.Generator("cuda").manual_seed(seed)
        q, k, v = (torch.randn(n, h, r, f["depth"], generator=generator, device="cuda").bfloat16()
                   for n, h, r in ((f["batch"], f["heads"], f["queries"]), (items, f["heads_kv"] or f["heads"], rows), (items, f["heads_kv"] or f["heads"], rows)))
        self.fields, self.pattern, self.q, self.k, self.v = f, pattern, q, k, v
        self.out, self.lse = torch.zeros_like(q), torch.zeros(q.shape[:3], device="cuda")
        self.arrays = arrays or {}
        self.problem = operation.problem(dtype=BF16, diagonal=BOTTOM_RIGHT, want_lse=1, **f)
        self.plan = self.make_plan()
        self.workspace = torch.empty(library.workspace_bytes(self.plan) + 256, dtype=torch.uint8, device="cuda")
        self.args = self.arguments()

    def make_plan(self):
        plan = C.c_void_p()
        self.library.check(self.library.lib.spk_plan_create(self.library.context, self.pattern, self.problem, C.byref(sized(TuneOptions, effort=ESTIMATE, tuning=3, choice=self.choice)), C.byref(plan)))
        return plan

    def arguments(self, **more):
        pointers = {name: array.data_ptr() for name, array in {"q": self.q, "k": self.k, "v": self.v, "o": self.out, "lse": self.lse, **self.arrays, **more}.items()}
        return self.library.operations["attention"].args(**pointers, scale=self.fields["depth"] ** -0.5, workspace=(self.workspace.data_ptr() + 255) // 256 * 256,
                                                         workspace_bytes=self.library.workspace_bytes(self.plan))

    def run(self):
        self.library.run(self.plan, self.args, stream())
        return self.out, self.lse


def int32(*values):
    return torch.tensor(values, dtype=torch.int32, device="cuda")


def problems(library):
    table = torch.randperm(4 * 32, device="cuda").int()
    yield "full, 1024 x 1024, depth 128", Problem(library, queries=1024, keys=1024, heads=4, depth=128)
    yield "causal, 777 x 1000", Problem(library, queries=777, keys=1000, heads=4, causal=1)
    yield "window with sinks", Problem(library, queries=1500, keys=1500, heads=4, causal=1, window_left=200, sinks=7)
    yield "mask of blocks of 64", Problem(library, pattern=Mask(library, 1024, 1024, 64, 5, 4).create(), queries=1024, keys=1024, heads=4, depth=128, mask_heads=4)
    yield "decoding, shared heads", Problem(library, queries=1, keys=8192, heads=32, heads_kv=8, batch=2, depth=128)
    yield "decoding, pages of 64", Problem(library, arrays={"key_ends": int32(2048, 1, 0, 777), "page_table": table}, queries=1, keys=2048, heads=8, heads_kv=2, batch=4, depth=128,
                                           key_lengths=1, page_keys=64, pages=128)
    yield "packed", Problem(library, arrays={"query_ends": int32(100, 100, 163, 1024), "key_ends": int32(64, 200, 300, 1024)}, queries=1024, keys=1024, heads=4, causal=1, sequences=4)


def many_tiles(library):
    """A few tiles more than 132 workers have (spk_cuda_attention_shares), of one length; lists for the device to sort; packed sequences under a mask, and few queries with many keys. With what each query sees, or None: all."""
    yield "last tiles shared out", Problem(library, queries=1000, keys=2500, heads=17, depth=128), None
    yield "last tiles shared out, depth 64", Problem(library, queries=1000, keys=6000, heads=23, depth=64), None
    even = Mask(library, 2048, 4096, 64, 40, 9, deferred=False)
    yield "last tiles of a mask shared out", Problem(library, pattern=even.create(), queries=2048, keys=4096, heads=9, depth=128, mask_heads=9), of_blocks(even, 64)
    uneven = Mask(library, 16384, 4096, 64, 24, 16, uneven=True)
    yield "lists sorted on the device", Problem(library, pattern=uneven.create(), queries=16384, keys=4096, heads=16, depth=128, mask_heads=16), of_blocks(uneven, 64)
    bare = Mask(library, 8192, 2048, 64, 3, 4, deferred=False, every=23)
    for choice in ("CONSUMERS=1 FORM=0 STEP=64", "CONSUMERS=2 FORM=1 STEP=64"):
        yield "most lists are empty", Problem(library, pattern=bare.create(), choice=f"attention_sm90 {choice} Q_HELD=0 TURNS=0 JOIN=1 SPLIT=1", queries=8192, keys=2048, heads=4, depth=64, mask_heads=4), of_blocks(bare, 64)
    ends = {"query_ends": int32(130, 500, 500, 1000), "key_ends": int32(200, 700, 800, 1024)}
    packed = Mask(library, 1024, 1024, 64, 7, 4)
    seen = of_blocks(packed, 64)
    yield "packed sequences under a mask", Problem(library, pattern=packed.create(), arrays=ends, queries=1024, keys=1024, heads=4, depth=128, sequences=4, mask_heads=4), lambda head: in_sequences(seen(head), ends)
    few = {"query_ends": int32(1, 3, 4), "key_ends": int32(5000, 5100, 16384)}
    yield "packed, few queries", Problem(library, arrays=few, queries=5, keys=16384, heads=8, heads_kv=2, depth=128, sequences=3), lambda head: in_sequences(torch.ones(5, 16384, dtype=torch.bool, device="cuda"), few)


def of_blocks(mask, block):
    return lambda head: mask.kept[head].repeat_interleave(block, 0).repeat_interleave(block, 1)


def in_sequences(seen, ends):
    """Of what is seen, that of each query's own sequence; queries behind the last one see nothing."""
    kept, first = torch.zeros_like(seen), [0, 0]
    for query, key in zip(ends["query_ends"].tolist(), ends["key_ends"].tolist()):
        kept[first[0]:query, first[1]:key] = seen[first[0]:query, first[1]:key]
        first = [query, key]
    return kept


def beside_float64(library, results):
    """All of O and LSE; what stands behind the last sequence stays as it was."""
    for name, problem, seen in many_tiles(library):
        problem.out.fill_(7)
        problem.lse.fill_(7)
        o, lse = problem.run()
        f, off = problem.fields, 0.0
        last = int(problem.arrays["query_ends"][-1]) if f.get("sequences") else f["queries"]
        for item in range(f["batch"]):
            for head in range(f["heads"]):
                kv = head // (f["heads"] // (f.get("heads_kv") or f["heads"]))
                scores = problem.q[item, head].float() @ problem.k[item, kv].float().T * f["depth"] ** -0.5
                if seen is not None:
                    scores.masked_fill_(~seen(head), float("-inf"))
                wanted_lse = scores.logsumexp(1)
                wanted = (scores - wanted_lse[:, None].nan_to_num(neginf=0)).exp() @ problem.v[item, kv].float()
                off = max(off, float((o[item, head].float() - wanted)[:last].abs().max()), float((lse[item, head] - wanted_lse)[:last].nan_to_num(nan=0).abs().max()))
        behind = bool((o[:, :, last:] != 7).any() or (lse[:, :, last:] != 7).any())
        results.append({"what": "beside PyTorch in float32", "problem": name, "choice": library.choice(problem.plan), "off": off, "written_behind": behind, "differ": int(behind or not off < 0.03)})


def equal_bits(library, runs, results):
    for name, problem in [*problems(library), *((name, problem) for name, problem, _ in many_tiles(library))]:
        first, differ = None, torch.zeros((), dtype=torch.int64, device="cuda")
        for _ in range(runs):
            problem.out.fill_(float("nan"))
            problem.lse.fill_(float("nan"))
            got = problem.run()
            first = first or [array.clone() for array in got]
            differ += (got[0].view(torch.int16) != first[0].view(torch.int16)).any() | (got[1].view(torch.int32) != first[1].view(torch.int32)).any()
        results.append({"what": "equal bits", "problem": name, "choice": library.choice(problem.plan), "runs": runs, "differ": int(differ)})


def merged_halves(library, results):
    """Each half of the keys by itself; what their sums say together is what all keys give."""
    for name, fields in (("full", dict(queries=500, keys=1000, heads=4, depth=128)), ("one query", dict(queries=1, keys=3000, heads=8, heads_kv=2, depth=64))):
        whole = Problem(library, **fields)
        o, lse = (array.double() for array in whole.run())
        half, parts = fields["keys"] // 2, []
        for first, count in ((0, half), (half, fields["keys"] - half)):
            part = Problem(library, **{**fields, "keys": count})
            part.q, part.k, part.v = whole.q, whole.k[:, :, first:first + count].contiguous(), whole.v[:, :, first:first + count].contiguous()
            part.args = part.arguments()
            parts.append([array.double() for array in part.run()])
        both = torch.logaddexp(parts[0][1], parts[1][1])
        merged = sum(part[0] * (part[1] - both).exp()[..., None] for part in parts)
        results.append({"what": "merged halves", "problem": name, "lse_off": float((both - lse).abs().max()), "o_off": float((merged - o).abs().max()),
                        "differ": int(float((both - lse).abs().max()) > 1e-4 or float((merged - o).abs().max()) > 0.02)})


def changed_between_replays(library, results):
    """What a graph reads at each replay: as a run without a graph has it."""
    mask = Mask(library, 512, 512, 64, 4, 1)
    bits = torch.randint(-2 ** 31, 2 ** 31, (8 * 64 * 2,), device="cuda").int()
    arrays = {"key_ends": int32(100, 512), "page_table": torch.arange(16, device="cuda").int(), "tile_numbers": torch.randint(-1, 8, (mask.blocks,), device="cuda").int(), "tile_bits": bits}
    problem = Problem(library, pattern=mask.create(), arrays=arrays, queries=512, keys=512, batch=2, heads=2, depth=128, key_lengths=1, page_keys=64, pages=20, tiles=8)
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        problem.run()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=side):
        problem.run()
    differ = 0
    for turn in range(20):
        arrays["key_ends"].copy_(torch.randint(0, 513, (2,)))
        arrays["page_table"].copy_(torch.randint(0, 20, (16,)))
        arrays["tile_numbers"].copy_(torch.randint(-1, 8, (mask.blocks,)))
        bits.copy_(torch.randint(-2 ** 31, 2 ** 31, bits.shape))
        graph.replay()
        torch.cuda.synchronize()
        got = problem.out.clone()
        problem.out.fill_(float("nan"))
        problem.run()
        torch.cuda.synchronize()
        differ += not torch.equal(got, problem.out)
        before = got if turn == 0 else before
    results.append({"what": "replays", "problem": "lengths, pages, bits of a mask", "choice": library.choice(problem.plan), "runs": 20, "differ": differ + int(torch.equal(before, got))})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=1000)
    options = parser.parse_args()
    library, results = Library(options.library, "cuda:0", ""), []
    equal_bits(library, options.runs, results)
    beside_float64(library, results)
    merged_halves(library, results)
    changed_between_replays(library, results)
    for result in results:
        print(", ".join(f"{name} {value}" for name, value in result.items()))
    if options.json:
        options.json.write_text(json.dumps({"schema": 1, "commit": library.commit, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                                            "command": "tests/device/attention.py " + " ".join(sys.argv[1:]), "device": {"kind": "cuda", "name": torch.cuda.get_device_name()}, "results": results}, indent=1) + "\n")
    return int(any(result.get("differ") for result in results))


if __name__ == "__main__":
    sys.exit(main())
