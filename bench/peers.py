#!/usr/bin/env python3
"""Block-sparse products of sparsek beside what else a user of an NVIDIA GPU would run, in one process on the same data.

Peers: PyTorch's BSR product as a user calls it (torch_eager), PyTorch's Triton kernel with the best of 48 configurations (triton_tuned), dense cuBLAS
through PyTorch (cublas_dense), 2:4 sparsity through cuSPARSELt (cusparselt_2to4), cuSPARSE's BSR and Blocked-ELL (sparsek's rows). Everything is timed
alike: CUDA graphs of several launches, operands that rotate through more than the L2 cache (cold) or stay (warm), alternated rounds; a ratio is the
median over the rounds. Needs PyTorch with CUDA and Triton. Writes JSON in the shape of `sparsek bench`.

    bench/peers.py --library build/release/libsparsek.so --out FILE [--case NAME ...] [--resume] [--rounds 20] [--cache cold|warm]
"""
import argparse
import ctypes as C
import datetime
import json
import os
import statistics
import subprocess
import sys
import time

# ------------------------------------------------------------------------------------------------ the C library

F32, F64, F16, BF16 = 1, 2, 3, 4
ROW, COL = 0, 1
NAMES = {"f16": F16, "bf16": BF16, "f32": F32}


class ContextOptions(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("device", C.c_char_p), ("store_path", C.c_char_p), ("threads", C.c_int), ("parallel_for", C.c_void_p),
                ("parallel_user", C.c_void_p), ("allocate", C.c_void_p), ("release", C.c_void_p), ("allocate_user", C.c_void_p), ("log", C.c_void_p),
                ("log_user", C.c_void_p), ("progress", C.c_void_p), ("progress_user", C.c_void_p)]


class Indices(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("rows", C.c_int64), ("cols", C.c_int64), ("block_rows", C.c_int64), ("block_cols", C.c_int64),
                ("nnzb", C.c_int64), ("row_offsets", C.c_void_p), ("col_indices", C.c_void_p), ("index_type", C.c_int), ("index_memory", C.c_int)]


class Spmm(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("n", C.c_int64), ("dtype_a", C.c_int), ("dtype_b", C.c_int), ("dtype_d", C.c_int), ("compute", C.c_int),
                ("trans_a", C.c_int), ("block_layout", C.c_int), ("layout_b", C.c_int), ("layout_d", C.c_int), ("ldb", C.c_int64), ("ldc", C.c_int64),
                ("ldd", C.c_int64), ("ldr", C.c_int64), ("ldp", C.c_int64), ("use_c", C.c_int), ("bias", C.c_int), ("activation", C.c_int),
                ("use_residual", C.c_int), ("keep_preact", C.c_int), ("batch", C.c_int64)]


class Args(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("values", C.c_void_p), ("b", C.c_void_p), ("c", C.c_void_p), ("d", C.c_void_p), ("bias", C.c_void_p),
                ("residual", C.c_void_p), ("preact", C.c_void_p), ("alpha", C.c_double), ("beta", C.c_double), ("workspace", C.c_void_p),
                ("workspace_bytes", C.c_size_t)]


class TuneOptions(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("effort", C.c_int), ("unknown", C.c_int), ("cache", C.c_int), ("budget_s", C.c_double),
                ("tolerance", C.c_double), ("assume_finite", C.c_int), ("static_values", C.c_int), ("fresh", C.c_int), ("only", C.c_char_p),
                ("exclude", C.c_char_p), ("choice", C.c_char_p), ("seed", C.c_uint64)]


def sized(kind, **fields):
    made = kind(**fields)
    made.struct_size = C.sizeof(kind)
    return made


class Library:
    def __init__(self, path, store):
        self.lib = C.CDLL(os.path.abspath(path))
        for name, kind in (("spk_last_error", C.c_char_p), ("spk_plan_choice", C.c_char_p), ("spk_version", C.c_char_p), ("spk_commit", C.c_char_p),
                           ("spk_plan_workspace_bytes", C.c_size_t)):
            getattr(self.lib, name).restype = kind
        self.context = C.c_void_p()
        self.check(self.lib.spk_context_create(C.byref(sized(ContextOptions, device=b"cuda:0", store_path=store.encode())), C.byref(self.context)), None)

    def check(self, status, context=0):
        if status:
            raise RuntimeError(self.lib.spk_last_error(self.context if context == 0 else None).decode() or f"status {status}")

    def pattern(self, case, crow, col):
        made = C.c_void_p()
        indices = sized(Indices, rows=case.m, cols=case.k, block_rows=case.block[0], block_cols=case.block[1], nnzb=len(col), row_offsets=crow.data_ptr(),
                        col_indices=col.data_ptr(), index_type=0, index_memory=0)
        self.check(self.lib.spk_pattern_create(self.context, C.byref(indices), C.byref(made)))
        return made

    def plan(self, case, pattern, choice=None, cache=0, fresh=0, only=None):
        made = C.c_void_p()
        problem = sized(Spmm, n=case.n, dtype_a=NAMES[case.dtype], layout_b=case.layout_b, layout_d=case.layout_d)
        options = sized(TuneOptions, cache=cache, assume_finite=int(case.assume_finite), choice=choice.encode() if choice else None, fresh=fresh,
                        only=only.encode() if only else None)
        self.check(self.lib.spk_plan_spmm(self.context, pattern, C.byref(problem), C.byref(options), C.byref(made)))
        return made

    def choice(self, plan):
        return self.lib.spk_plan_choice(plan).decode()

    def runner(self, torch, plan, values, b, d):
        """A function that puts one product on the current stream."""
        work = torch.empty(max(int(self.lib.spk_plan_workspace_bytes(plan)), 1), dtype=torch.uint8, device="cuda")
        args = [sized(Args, values=values[i].data_ptr(), b=b[i].data_ptr(), d=d[i].data_ptr(), alpha=1.0, workspace=work.data_ptr(),
                      workspace_bytes=work.numel()) for i in range(len(b))]

        def run(i):
            self.check(self.lib.spk_run_spmm(plan, C.byref(args[i % len(args)]), C.c_void_p(torch.cuda.current_stream().cuda_stream)))

        run.keep = work
        return run


# ------------------------------------------------------------------------------------------------ cases

class Case:
    def __init__(self, name, m, k, n, block, density, dtype="f16", pattern="uniform", layout_b=ROW, layout_d=ROW, assume_finite=True, peers=True):
        self.name, self.m, self.k, self.n, self.density, self.dtype, self.pattern = name, m, k, n, density, dtype, pattern
        self.block = block if isinstance(block, tuple) else (block, block)
        self.layout_b, self.layout_d, self.assume_finite, self.peers = layout_b, layout_d, assume_finite, peers


def all_cases():
    cases = []
    for m, n, density, blocks in ((4096, 4096, 0.125, (32, 64, 128)), (4096, 4096, 0.5, (32, 64, 128)), (8192, 8192, 0.125, (32, 64, 128)),
                                  (4096, 512, 0.125, (64, 128))):
        cases += [Case(f"{m}x{n}-d{density * 100:g}-b{b}", m, m, n, b, density) for b in blocks]
    for t in (1, 16, 64):  # decoding: y[T, 14336] = x[T, 4096] W^T
        cases += [Case(f"decode-t{t}-b{b}", 14336, 4096, t, b, 0.10, "bf16", layout_b=COL, layout_d=COL) for b in (64, 128)]
    return cases


def make_pattern(torch, case, seed):
    """Uniform: each block row has the same number of blocks at random columns."""
    rows, cols = -(-case.m // case.block[0]), -(-case.k // case.block[1])
    generator = torch.Generator().manual_seed(seed)
    total = round(case.density * rows * cols)
    counts = [total // rows + (i < total % rows) for i in range(rows)]
    crow, col = [0], []
    for count in counts:
        col += sorted(torch.randperm(cols, generator=generator)[:count].tolist())
        crow.append(len(col))
    return torch.tensor(crow, dtype=torch.int32), torch.tensor(col, dtype=torch.int32)


# ------------------------------------------------------------------------------------------------ measuring

class Harness:
    """Contestants are functions f(i) that put one product on the current stream, with the operands of set i."""

    def __init__(self, torch, launches, rounds):
        self.torch, self.launches, self.rounds = torch, launches, rounds
        self.contestants = {}

    def add(self, name, run, **facts):
        torch = self.torch
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for i in range(3):
                run(i)
            stream.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, stream=stream):
                for i in range(self.launches):
                    run(i)
        torch.cuda.synchronize()
        self.contestants[name] = dict(graph=graph, stream=stream, run=run, samples=[], **facts)

    def once(self, name):
        torch, c = self.torch, self.contestants[name]
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        with torch.cuda.stream(c["stream"]):
            begin.record()
            c["graph"].replay()
            end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3 / self.launches

    def quick(self, name, times=3):
        self.once(name)
        return statistics.median(self.once(name) for _ in range(times))

    def race(self):
        for name in self.contestants:
            self.once(name)
        for round_number in range(self.rounds):
            names = list(self.contestants)
            names = names[round_number % len(names):] + names[:round_number % len(names)]
            for name in names:
                self.contestants[name]["samples"].append(self.once(name))


def median_ratio(a, b):
    return statistics.median(x / y for x, y in zip(a, b))


# ------------------------------------------------------------------------------------------------ peers

def triton_configurations(n):
    for tile in [t for t in (64, 128, 256) if n % t == 0] or [n]:
        for group in (1, 4):
            for stages in (2, 3, 4, 5):
                for warps in (4, 8):
                    yield dict(SPLIT_N=n // tile, GROUP_SIZE_ROW=group, num_stages=stages, num_warps=warps)


def triton_call(torch, bsr, dense, out, meta):
    from torch.sparse._triton_ops import bsr_dense_addmm
    return bsr_dense_addmm(out, bsr, dense, beta=0, alpha=1, out=out, meta=dict(meta))


def tune_triton(torch, case, bsrs, denses, outs, deadline):
    """The best of the configurations, each timed in a graph; compiling is not counted."""
    best, best_us, tried = None, float("inf"), 0
    for meta in triton_configurations(denses[0].shape[1]):
        if time.monotonic() > deadline:
            break
        try:
            probe = Harness(torch, 4, 1)
            probe.add("t", lambda i: triton_call(torch, bsrs[i % len(bsrs)], denses[i % len(denses)], outs[i % len(outs)], meta))
            us = probe.quick("t")
            tried += 1
        except Exception:  # a configuration that does not fit the device
            torch.cuda.synchronize()
            continue
        if us < best_us:
            best, best_us = meta, us
    return best, tried


# ------------------------------------------------------------------------------------------------ one case

def measure(torch, library, case, options):
    torch.manual_seed(options.seed)
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[case.dtype]
    crow, col = make_pattern(torch, case, options.seed)
    nnzb, (rows, cols) = len(col), case.block
    flops = 2.0 * nnzb * rows * cols * case.n
    bytes_of_set = (nnzb * rows * cols + case.k * case.n + case.m * case.n) * dtype.itemsize
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    sets = 1 if options.cache == "warm" else max(2, min(16, int(2.5 * l2 / bytes_of_set) + 2))
    values = [torch.randn(nnzb, rows, cols, device="cuda", dtype=dtype) for _ in range(sets)]
    # B and D as the case lays them out: column-major is the transpose of a contiguous array.
    b_store = [torch.randn((case.k, case.n) if case.layout_b == ROW else (case.n, case.k), device="cuda", dtype=dtype) for _ in range(sets)]
    d_store = [torch.empty((case.m, case.n) if case.layout_d == ROW else (case.n, case.m), device="cuda", dtype=dtype) for _ in range(sets)]
    b = [x if case.layout_b == ROW else x.t() for x in b_store]
    work_us = flops / 3e8  # a graph lasts some hundred microseconds, so that starting it does not count
    harness = Harness(torch, max(6, sets, min(48, int(600 / max(work_us, 8)))), options.rounds)
    result, skipped = {}, {}

    pattern = library.pattern(case, crow, col)
    started = time.monotonic()
    plan = library.plan(case, pattern, cache=int(options.cache == "warm"), fresh=int(options.fresh))
    tuning_s = time.monotonic() - started
    chosen = library.choice(plan)
    own = library.plan(case, pattern, cache=int(options.cache == "warm"), choice=chosen)
    harness.add("sparsek", library.runner(torch, own, values, b_store, d_store), params=chosen, kind="own")

    # The result, against float64 on some rows.
    harness.contestants["sparsek"]["run"](0)
    torch.cuda.synchronize()
    bsr = [torch.sparse_bsr_tensor(crow.cuda(), col.cuda(), v, size=(-(-case.m // rows) * rows, -(-case.k // cols) * cols)) for v in values]
    dense = [x.to_dense()[:case.m, :case.k] for x in bsr[:4]]
    dense_a = dense[0]
    sample = torch.randperm(case.m)[:64].cuda()
    want = dense_a[sample].double() @ b[0].double()
    scale = dense_a[sample].double().abs() @ b[0].double().abs() + 1e-30
    got = (d_store[0] if case.layout_d == ROW else d_store[0].t())[sample].double()
    error = ((got - want).abs() / scale).max().item()

    def attempt(name, make):
        try:
            run, facts = make()
            harness.add(name, run, **facts)
        except Exception as problem:  # a peer that refuses is a result, too
            torch.cuda.synchronize()
            skipped[name] = f"{type(problem).__name__}: {str(problem).splitlines()[0][:200] if str(problem) else ''}"

    out_dense = [torch.empty(case.m, case.n, device="cuda", dtype=dtype) for _ in range(sets)]
    attempt("cublas_dense", lambda: ((lambda i: torch.mm(dense[i % len(dense)], b[i % sets], out=out_dense[i % sets])), dict(kind="dense")))
    if case.peers and options.peers:
        if rows == cols:
            pad = max(16 - case.n, 0)
            triton_b = [torch.nn.functional.pad(x, (0, pad)) for x in b] if pad else b
            triton_out = [torch.empty(case.m, triton_b[0].shape[1], device="cuda", dtype=dtype) for _ in range(sets)]
            meta, tried = tune_triton(torch, case, bsr, triton_b, triton_out, time.monotonic() + options.triton_s)
            if meta:
                attempt("triton_tuned", lambda: ((lambda i: triton_call(torch, bsr[i % sets], triton_b[i % sets], triton_out[i % sets], meta)),
                                                 dict(kind="peer", params=" ".join(f"{k}={v}" for k, v in meta.items()) + f" (best of {tried})")))
            else:
                skipped["triton_tuned"] = "no configuration ran"
        for row in ("cusparse_bsr", "cusparse_blocked_ell"):
            attempt(row, lambda row=row: (library.runner(torch, library.plan(case, pattern, choice=row), values, b_store, d_store), dict(kind="vendor")))
        if case.density >= 0.49:
            def semi_structured():
                from torch.sparse import SparseSemiStructuredTensor, to_sparse_semi_structured
                SparseSemiStructuredTensor._FORCE_CUTLASS = False
                mask = torch.tensor([1, 1, 0, 0], device="cuda", dtype=dtype).repeat(case.m, case.k // 4)
                half = [to_sparse_semi_structured(torch.randn(case.m, case.k, device="cuda", dtype=dtype) * mask) for _ in dense]
                return (lambda i: torch.mm(half[i % len(half)], b[i % sets])), dict(kind="peer")
            attempt("cusparselt_2to4", semi_structured)
    harness.race()
    ours = harness.contestants["sparsek"]["samples"]
    candidates = []
    for name, c in harness.contestants.items():
        us = statistics.median(c["samples"])
        quarters = statistics.quantiles(c["samples"], n=4)
        ratios = {other: {"median": round(median_ratio(o["samples"], c["samples"]), 4), "pairs": len(ours)} for other, o in harness.contestants.items()
                  if other != name}
        candidates.append({"name": name, "params": c.get("params", ""), "hash": None, "kind": c["kind"], "status": "ok", "why": None, "median_us": round(us, 3),
                           "spread_us": round((quarters[2] - quarters[0]) / 2, 3), "prepare_us": 0, "tflops": round(flops / us * 1e-6, 2),
                           "dense_equivalent_tflops": round(2.0 * case.m * case.k * case.n / us * 1e-6, 2), "error": error if name == "sparsek" else None,
                           "tolerance": None, "ratios": ratios})
    for name, why in skipped.items():
        candidates.append({"name": name, "params": "", "hash": None, "kind": "peer", "status": "failed", "why": why, "median_us": 0, "spread_us": 0, "prepare_us": 0,
                           "tflops": 0, "dense_equivalent_tflops": 0, "error": None, "tolerance": None, "ratios": {}})
    result["problem"] = {"op": "spmm", "m": case.m, "k": case.k, "n": case.n, "block_rows": rows, "block_cols": cols, "nnzb": nnzb,
                         "density": round(nnzb / (-(-case.m // rows) * -(-case.k // cols)), 5), "pattern": case.pattern, "dtype": case.dtype, "dtype_d": case.dtype,
                         "compute": "f32", "trans_a": "n", "layout_b": ("row", "col")[case.layout_b], "layout_d": ("row", "col")[case.layout_d],
                         "epilogue": "none", "batch": 1, "seed": options.seed, "assume_finite": case.assume_finite, "static_values": False,
                         "cache": options.cache}
    result.update(case=case.name, chosen=chosen.split()[0], from_store=False, tuning_s=round(tuning_s, 3), candidates=candidates)
    return result


# ------------------------------------------------------------------------------------------------ the program

def card():
    query = "name,driver_version,clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_event_reasons.active"
    try:
        text = subprocess.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits", "-i", "0"], capture_output=True, text=True, timeout=20).stdout
        return dict(zip(("name", "driver", "sm_mhz", "mem_mhz", "power_w", "temperature_c", "throttle"), [x.strip() for x in text.strip().split(",")]))
    except (OSError, subprocess.TimeoutExpired):
        return {}


def show(result):
    p = result["problem"]
    print(f"{result['case']}: {p['m']} x {p['k']} x {p['n']}, block {p['block_rows']}x{p['block_cols']}, {p['density'] * 100:.3g} %, {p['dtype']}, {p['cache']}")
    for c in sorted(result["candidates"], key=lambda c: c["median_us"] or 1e9):
        if c["status"] == "ok":
            over = c["ratios"].get("sparsek", {}).get("median")
            print(f"  {c['name']:22} {c['median_us']:9.2f} us {c['tflops']:7.1f} TFLOP/s  {'' if over is None else f'sparsek takes {over:.3f} of its time'}  {c['params']}")
        else:
            print(f"  {c['name']:22} {c['why']}")
    sys.stdout.flush()


def write(path, document):
    with open(path + ".part", "w") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="build/release/libsparsek.so")
    parser.add_argument("--out", required=True)
    parser.add_argument("--case", action="append", help="a name, or the beginning of one; repeatable (default: all)")
    parser.add_argument("--resume", action="store_true", help="keep the cases that the file has already")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--cache", choices=("cold", "warm"), default="cold")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--store", default="", help="sparsek's store (default: in memory)")
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--no-peers", dest="peers", action="store_false", help="dense cuBLAS only")
    parser.add_argument("--triton-s", type=float, default=60, help="seconds for tuning Triton, per case")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    cases = [c for c in all_cases() if not options.case or any(c.name.startswith(name) for name in options.case)]
    if options.list or not cases:
        print("\n".join(c.name for c in all_cases()))
        return 0 if options.list else 2
    import torch
    library = Library(options.library, options.store)
    document = {"schema": 1, "results": []}
    if options.resume and os.path.exists(options.out):
        with open(options.out) as file:
            document = json.load(file)
    done = {(r["case"], r["problem"]["cache"]) for r in document["results"]}
    facts = card()
    document.update(sparsek=library.lib.spk_version().decode(), commit=library.lib.spk_commit().decode(),
                    date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), command="bench/peers.py " + " ".join(sys.argv[1:]),
                    versions={"torch": torch.__version__, "cuda": torch.version.cuda, "triton": __import__("triton").__version__},
                    device={"kind": "cuda", "name": facts.get("name", torch.cuda.get_device_name()), "threads": None, "isa": ["sm_90a"],
                            "clocks_mhz": facts.get("sm_mhz"), "power_w": facts.get("power_w"), "driver": facts.get("driver")})
    for case in cases:
        if (case.name, options.cache) in done:
            continue
        try:
            result = measure(torch, library, case, options)
        except Exception as problem:
            print(f"{case.name}: {type(problem).__name__}: {problem}", file=sys.stderr)
            continue
        result.update(card=card(), commit=document["commit"], date=document["date"])  # a resumed file has cases of several runs
        document["results"].append(result)
        write(options.out, document)
        show(result)
        torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
