#!/usr/bin/env python3
"""Attention on an NVIDIA GPU beside cuDNN (PyTorch's scaled_dot_product_attention), FlashAttention-4 and FlexAttention, in alternated rounds of one process.

    bench/attention_gpu.py --library build/release/libsparsek.so --out FILE [--peers cudnn,fa4,flex] [--device cuda:0] [--rounds 15] [--limit-s 300] [--peer-s 90]
                           [--flex-cases NAME ...] [--tune] [--only WORD ...]

All run as CUDA graphs, where they can be captured, on the same numbers, bf16. A ratio is a peer's time over ours, the median over the rounds; TFLOP/s counts the pairs that the mask keeps. Errors are of some
rows, beside float64. A peer that is not installed, fails, is wrong or is not ready in time is recorded with the reason. FILE is written after every case; a case that it holds
already, of the same library and device, does not run again. Without --tune the library's cost model chooses. Needs PyTorch; race/attention_peers.py says who takes part where.
"""
import argparse
import contextlib
import ctypes as C
import datetime
import gc
import itertools
import json
import math
import os
import pathlib
import random
import signal
import statistics
import sys
import time
import types

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from race.attention_peers import PEERS, bars, takes_part, version  # noqa: E402
from race.library import I64, NOW_EACH, DeferredIndices, DeviceIndices, Indices, Library, TuneOptions, sized  # noqa: E402

BF16, TOP_LEFT, ESTIMATE, I32, DEVICE = 4, 1, 1, 0, 1


def case(name, heads, queries, depth, heads_kv=None, batch=1, keys=None, causal=0, window=0, block=0, kept=0, lists=0, spread=False, page=0, documents=(), deferred=False, depth_v=None,
         drawn="even"):
    """kept: blocks of a block row. spread: some rows have several times as many as others. page: ours finds K and V by a table of pages of so many rows; others do not. documents: the
    lengths of packed sequences. deferred: the mask's lists are on the device only, new at every step. drawn: "even": any columns; "shared": a row has three of four of the columns of the
    row before, as neighbouring cubes of a video do; "hubs": a column is the likelier the lower a rank it has, by a power law."""
    given = {} if drawn == "even" else {"drawn": drawn}
    return dict(given, depth_v=depth_v or depth, name=name, batch=batch, heads=heads, heads_kv=heads_kv or heads, queries=queries, keys=keys or queries, depth=depth, causal=causal, window=window, block=block,
                kept=kept, lists=lists, spread=spread, page=page, documents=list(documents), deferred=deferred)


def lengths(count, least, most, tokens):
    """So many lengths between `least` and `most`, of so many tokens in all."""
    numbers, drawn = random.Random(11), []
    for left in range(count - 1, -1, -1):
        rest = tokens - sum(drawn)
        drawn.append(numbers.randint(max(least, rest - left * most), min(most, rest - left * least)))
    return drawn


CASES = [case(f"{'causal' if causal else 'full'}-s{s}-d{d}", 16, s, d, batch=2 if s == 4096 else 1, causal=causal) for d in (64, 128) for s in (4096, 16384) for causal in (0, 1)]
CASES += [case(f"{'causal' if causal else 'full'}-gqa-s8192-d128", 32, 8192, 128, heads_kv=8, causal=causal) for causal in (0, 1)]
CASES += [case(f"{'causal' if causal else 'full'}-s8192-d256", 16, 8192, 256, causal=causal) for causal in (0, 1)]
CASES += [case("seed-s512-d64", 8, 512, 64),
          case("b128-13-s16384-d128", 16, 16384, 128, block=128, kept=17, lists=16), case("b128-50-s16384-d128", 16, 16384, 128, block=128, kept=64, lists=16),
          case("b128-5-s32768-d128", 16, 32768, 128, block=128, kept=13, lists=16), case("b128-13-s16384-d64", 16, 16384, 64, block=128, kept=17, lists=16),
          case("b64-13-s16384-d128", 16, 16384, 128, block=64, kept=33, lists=16), case("b64-13-gqa-s16384-d128", 16, 16384, 128, heads_kv=4, block=64, kept=33, lists=4),
          case("b64-10-s40960-d128", 16, 40960, 128, block=64, kept=64, lists=16), case("b64-top64-s109632-d128", 7, 109632, 128, block=64, kept=64, lists=7),
          case("b128-13-uneven-s16384-d128", 16, 16384, 128, block=128, kept=17, lists=16, spread=True),
          case("b128-13-uneven-deferred-s16384-d128", 16, 16384, 128, block=128, kept=17, lists=16, spread=True, deferred=True),
          case("documents-even-t65536-d128", 16, 65536, 128, causal=1, documents=[4096] * 16),
          case("documents-uneven-t65536-d128", 16, 65536, 128, causal=1, documents=lengths(16, 100, 8000, 65536)),
          case("window1024-s16384-d128", 16, 16384, 128, causal=1, window=1024), case("window1024-s16384-d64", 16, 16384, 64, causal=1, window=1024),
          case("decode-32x8192", 32, 1, 128, heads_kv=8, batch=32, keys=8192), case("decode-1x131072", 32, 1, 128, heads_kv=8, keys=131072),
          case("decode-32x8192-pages64", 32, 1, 128, heads_kv=8, batch=32, keys=8192, page=64), case("decode-32x8192-pages16", 32, 1, 128, heads_kv=8, batch=32, keys=8192, page=16)]

FLEX_CASES = ("full-s4096-d64", "causal-s4096-d64", "full-s4096-d128", "causal-s4096-d128", "b128-13-s16384-d128", "b128-50-s16384-d128", "b128-5-s32768-d128",
              "b128-13-s16384-d64", "b64-13-s16384-d128",
              "window1024-s16384-d128", "decode-32x8192")


def mask_lists(c):
    """Rows of block columns, of all lists one below the other."""
    numbers, down, across = random.Random(7), c["queries"] // c["block"], c["keys"] // c["block"]

    def kept(row):
        return max(1, min(across, round(c["kept"] * 0.3 * (numbers.random() + 1e-3) ** -0.7))) if c["spread"] else c["kept"]
    if c.get("drawn") == "shared":
        return shared_lists(numbers, c["lists"], down, across, c["kept"])
    if c.get("drawn") == "hubs":
        return [hub_list(numbers, across, c["kept"]) for _ in range(c["lists"] * down)]
    return [sorted(numbers.sample(range(across), kept(row))) for row in range(c["lists"] * down)]


def shared_lists(numbers, lists, down, across, kept):
    """Each row keeps three of four of the columns of the row before in its list."""
    made = []
    for row in range(lists * down):
        stay = numbers.sample(made[-1], kept * 3 // 4) if row % down else []
        others = numbers.sample(sorted(set(range(across)) - set(stay)), kept - len(stay))
        made.append(sorted([*stay, *others]))
    return made


def hub_list(numbers, across, kept):
    """So many columns, the likelier the lower their numbers: the smallest of exponential times whose rates fall with the number (Efraimidis and Spirakis)."""
    times = [(numbers.expovariate(1) * (column + 1), column) for column in range(across)]
    return sorted(column for _, column in sorted(times)[:kept])


def make_deferred(library, c, lists):
    """The same where only the device knows the lists, and the arrays, which have to stay."""
    counts = torch.tensor([0] + [len(row) for row in lists])
    arrays = counts.cumsum(0).int().cuda(), torch.tensor([column for row in lists for column in row], dtype=torch.int32, device="cuda")
    made, deferred = C.c_void_p(), sized(DeferredIndices, stream=torch.cuda.current_stream().cuda_stream, longest_row=int(counts.max()))
    indices = sized(DeviceIndices, rows=len(lists) * c["block"], cols=c["keys"], block_rows=c["block"], block_cols=c["block"], nnzb=len(arrays[1]), row_offsets=arrays[0].data_ptr(),
                    col_indices=arrays[1].data_ptr(), index_type=I32, index_memory=DEVICE, deferred=C.pointer(deferred))
    library.check(library.lib.spk_pattern_create(library.context, C.byref(indices), C.byref(made)))
    return made, arrays


def make_pattern(library, c, lists):
    columns = [column for row in lists for column in row]
    offsets = [0]
    for row in lists:
        offsets.append(offsets[-1] + len(row))
    arrays = (C.c_int64 * len(offsets))(*offsets), (C.c_int64 * len(columns))(*columns)
    made = C.c_void_p()
    indices = sized(Indices, rows=len(lists) * c["block"], cols=c["keys"], block_rows=c["block"], block_cols=c["block"], nnzb=len(columns), row_offsets=C.addressof(arrays[0]),
                    col_indices=C.addressof(arrays[1]), index_type=I64)
    library.check(library.lib.spk_pattern_create(library.context, C.byref(indices), C.byref(made)))
    return made


def in_pages(c, k, v):
    """Fields and arrays of the same K and V in pages that lie in disorder, each row with its heads side by side."""
    each = c["keys"] // c["page"]
    order = torch.randperm(c["batch"] * each, generator=torch.Generator().manual_seed(5)).to(k.device)

    def pooled(x):
        pages = x.transpose(1, 2).reshape(c["batch"] * each, c["page"], c["heads_kv"], c["depth"])
        pool = torch.empty_like(pages)
        pool[order] = pages
        return pool.contiguous()
    width = c["heads_kv"] * c["depth"]
    fields = dict(page_keys=c["page"], pages=c["batch"] * each, ldk=width, ldv=width, head_stride_k=c["depth"], head_stride_v=c["depth"])
    return fields, {"k": pooled(k), "v": pooled(v), "page_table": order.int().contiguous(), "key_ends": torch.full((c["batch"],), c["keys"], dtype=torch.int32, device=k.device)}


class Ours:
    def __init__(self, library, c, lists, q, k, v, paged, tune, exclude=None):
        pattern, self.arrays = make_deferred(library, c, lists) if c["deferred"] else (make_pattern(library, c, lists) if lists else None, None)
        operation = library.operations["attention"]
        given = {name: c[name] for name in ("batch", "heads", "heads_kv", "queries", "keys", "depth", "causal")}
        pointers = {"q": q.data_ptr(), "k": k.data_ptr(), "v": v.data_ptr()}
        if c["page"]:
            given.update(paged[0], key_lengths=1)
            pointers.update({name: array.data_ptr() for name, array in paged[1].items()})
        if c["documents"]:
            given["sequences"], ends = len(c["documents"]), torch.tensor(c["documents"]).cumsum(0).int().cuda()
            pointers.update(query_ends=ends.data_ptr(), key_ends=ends.data_ptr())
            self.arrays = ends
        problem = operation.problem(dtype=BF16, diagonal=TOP_LEFT, window_left=c["window"], mask_heads=c["lists"], assume_finite=1, **given)
        options = sized(TuneOptions, effort=0 if tune else ESTIMATE, tuning=NOW_EACH, exclude=exclude)
        self.library, self.plan = library, C.c_void_p()
        library.check(library.lib.spk_plan_create(library.context, pattern, problem, C.byref(options), C.byref(self.plan)))
        self.out, self.choice = torch.full_like(q, math.nan), library.choice(self.plan)
        self.workspace = torch.empty(library.workspace_bytes(self.plan) + 256, dtype=torch.uint8, device=q.device)
        self.args = operation.args(**pointers, o=self.out.data_ptr(), scale=c["depth"] ** -0.5,
                                   workspace=(self.workspace.data_ptr() + 255) // 256 * 256, workspace_bytes=library.workspace_bytes(self.plan))

    def run(self):
        self.library.run(self.plan, self.args, torch.cuda.current_stream().cuda_stream)
        return self.out


def seen(c, lists, head, row):
    """Which keys a query of a head sees."""
    keys = torch.ones(c["keys"], dtype=torch.bool)
    for end in itertools.accumulate(c["documents"]):
        keys[:end] &= row < end
        keys[end:] &= row >= end
    if c["causal"]:
        keys[row + 1:] = False
    if c["window"]:
        keys[:max(0, row - c["window"] + 1)] = False
    if lists:
        blocks = torch.zeros(c["keys"] // c["block"], dtype=torch.bool)
        of = head // (c["heads"] // c["lists"])
        blocks[lists[of * (c["queries"] // c["block"]) + row // c["block"]]] = True
        keys &= blocks.repeat_interleave(c["block"])
    return keys


def error(c, lists, q, k, v, out):
    """The largest difference of some rows from float64, over the largest |V|."""
    numbers, worst = random.Random(3), 0.0
    for _ in range(12):
        item, head, row = numbers.randrange(c["batch"]), numbers.randrange(c["heads"]), numbers.randrange(c["queries"])
        kv, keys = head // (c["heads"] // c["heads_kv"]), seen(c, lists, head, row).to(q.device)
        scores = (k[item, kv][keys].double() @ q[item, head, row].double()) * c["depth"] ** -0.5
        wanted = torch.softmax(scores, 0) @ v[item, kv][keys].double()
        worst = max(worst, float((out[item, head, row].double() - wanted).abs().max() / v.abs().max()))
    return worst if math.isfinite(worst) else 1e9


def kept_pairs(c, lists):
    """Of all heads and items."""
    if lists:
        return sum(map(len, lists)) * c["block"] ** 2 * (c["heads"] // c["lists"]) * c["batch"]
    each = 0
    for rows in c["documents"] or [c["queries"]]:
        each += sum(min(i + 1, c["window"] or c["keys"]) for i in range(rows)) if c["causal"] else rows * c["keys"]
    return each * c["heads"] * c["batch"]


def graph_of(call, launches):
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        call()
    torch.cuda.synchronize()
    try:
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(launches):
                out = call()
    except RuntimeError: # then it is launched in turn
        torch.cuda.synchronize()
        return types.SimpleNamespace(replay=lambda: [call() for _ in range(launches)], eager=True), call()
    return graph, out


@contextlib.contextmanager
def within(seconds):
    """A TimeoutError after so many seconds: compiling and tuning a peer may take minutes."""
    def late(number, frame):
        raise TimeoutError(f"not ready after {seconds:.0f} s")
    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, max(1e-3, seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def microseconds(graph, launches):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / launches


def timed(graphs, launches, rounds):
    """Microseconds of a launch of each, in turn, once the clock is the one that the power allows."""
    times = {name: [] for name in graphs}
    until = time.perf_counter() + 0.15
    while time.perf_counter() < until:
        for graph, _ in graphs.values():
            graph.replay()
        torch.cuda.synchronize()
    for number in range(rounds):
        for name in list(graphs)[::-1 if number % 2 else 1]:
            times[name].append(microseconds(graphs[name][0], launches))
    return times


def in_words(reason):
    lines = str(reason).strip().splitlines()
    return f"{type(reason).__name__}: {lines[0][:200] if lines else ''}"


def measured(library, c, device, options):
    generator = torch.Generator(device).manual_seed(1)
    q, k, v = (torch.randn(c["batch"], heads, rows, c["depth"], generator=generator, device=device).bfloat16()
               for heads, rows in ((c["heads"], c["queries"]), (c["heads_kv"], c["keys"]), (c["heads_kv"], c["keys"])))
    lists, paged = mask_lists(c) if c["block"] else None, in_pages(c, k, v) if c["page"] else (None, None)
    flops = 4 * kept_pairs(c, lists) * c["depth"]
    launches = max(1, min(20, int(5e11 / flops)))
    graphs, calls, failed, made = {}, {}, {}, {} # calls: they hold the arrays that their graphs read
    for name in options.peers:
        if name not in options.joined(c):
            continue
        try:
            with within(options.peer_s):
                if name in ("ours", "own"):
                    made[name] = Ours(library, c, lists, q, k, v, paged, options.tune, b"cudnn_attention" if name == "own" else None)
                    call = made[name].run
                else:
                    call = PEERS[name](c, q, k, v, lists, paged[1])
                call()
                torch.cuda.synchronize()
            graphs[name], calls[name] = graph_of(call, launches), call
        except Exception as reason: # whatever a peer raises, the others go on
            failed[name] = in_words(reason)
            torch.cuda.synchronize()
    times = timed(graphs, launches, options.rounds)
    us = {name: statistics.median(values) for name, values in times.items()}
    errors = {name: float(f"{error(c, lists, q, k, v, out):.2g}") for name, (_, out) in graphs.items()}
    failed.update({name: f"wrong: error {found:g}" for name, found in errors.items() if found > 0.02})
    right = [name for name in graphs if name not in failed]
    result = {**c, "chosen": made["ours"].choice if "ours" in made else None, "us": {name: round(us[name], 3) for name in right},
              "tflops": {name: round(flops / us[name] / 1e6, 1) for name in right}, "errors": errors,
              "ratios": {name: round(statistics.median(b / a for a, b in zip(times["ours"], times[name])), 4) for name in right if name != "ours" and "ours" in right}}
    eager = [name for name, (graph, _) in graphs.items() if hasattr(graph, "eager")]
    if eager:
        result["eager"] = eager
    if failed:
        result["failed"] = failed
    if "own" in made:
        result["own"] = made["own"].choice
    for ours in made.values():
        library.destroy_plan(ours.plan)
    return result


def earlier(path, document, kind):
    """What this file holds of the same library on the same device."""
    try:
        held = json.loads(path.read_text())
    except (OSError, ValueError):
        return []
    return held[kind] if all(held[key] == document[key] for key in ("commit", "device", "rounds")) else []


def spoken(r):
    return ", ".join([f"{name} {r['us'][name]:.1f} us {r['tflops'][name]:.1f} TFLOP/s" + (f" ({r['ratios'][name]:.3f})" if name in r["ratios"] else "") +
                      f" error {r['errors'][name]:.0e}" for name in r["us"]] + [f"{name}: {why}" for name, why in r.get("failed", {}).items()] + [r["chosen"] or ""])


def run(program, description, kind, cases, flex_cases, peers, takes_part, version, measured, add_options=lambda parser: None):
    """The command line of this file, and of those like it: `measured` gives the result of a case, which goes into FILE under `kind`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--peers", type=lambda text: ["ours", *(name for name in text.split(",") if name not in ("", "ours"))], default=["ours", *peers], help="who races beside ours")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--limit-s", type=float, default=300, help="seconds after which no further case begins")
    parser.add_argument("--peer-s", type=float, default=90, help="most seconds in which a peer gets ready for a case")
    parser.add_argument("--flex-cases", nargs="*", default=flex_cases, help="cases that FlexAttention is compiled for, each in a minute or more")
    parser.add_argument("--tune", action="store_true", help="race the candidates of each case")
    parser.add_argument("--only", nargs="+", default=[""], help="cases whose name has one of these words")
    add_options(parser)
    options = parser.parse_args()
    if not set(options.peers) <= {"ours", *peers}:
        parser.error(f"--peers: of {', '.join(['ours', *peers])}")
    options.joined = lambda c: {name for name in options.peers if takes_part(name, c) and (name != "flex" or c["name"] in options.flex_cases)}
    device, library = torch.device(options.device), Library(options.library, options.device, "")
    document = {"schema": 1, "commit": library.commit, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "command": f"{program} " + " ".join(sys.argv[1:]), "peers": {name: version(name) for name in options.peers if name != "ours"},
                "device": {"kind": "cuda", "name": torch.cuda.get_device_name(device)}, "rounds": options.rounds}
    results = document[kind] = earlier(options.out, document, kind)
    end = time.perf_counter() + options.limit_s
    for c in cases:
        wanted = options.joined(c)
        held = any(wanted <= {*r["us"], *r.get("failed", {})} for r in results if all(r.get(key) == value for key, value in c.items()))
        if held or not any(word in c["name"] for word in options.only):
            continue
        if time.perf_counter() > end:
            print(f"{c['name']}: not measured, {options.limit_s:g} s are over", flush=True)
            continue
        try:
            result = measured(library, c, device, options)
        except (RuntimeError, torch.OutOfMemoryError) as reason:
            print(f"{c['name']}: {in_words(reason)}", flush=True)
            continue
        finally:
            gc.collect()
            torch.cuda.empty_cache()
        results[:] = [r for r in results if r["name"] != c["name"]] + [result]
        print(f"{c['name']}: {spoken(result)}", flush=True)
        document["bars"] = bars(results)
        temporary = options.out.with_suffix(".part")
        temporary.write_text(json.dumps(document, indent=1) + "\n")
        os.replace(temporary, options.out)
    for name, groups in document.get("bars", {}).items():
        print(f"{name} over ours: " + ", ".join(f"{group} {found['geometric_mean']:.3f} (least {found['least']:.3f}, {found['cases']} cases)" for group, found in groups.items()))


if __name__ == "__main__":
    run("bench/attention_gpu.py", __doc__, "attention", CASES, FLEX_CASES, PEERS, takes_part, version, measured)
