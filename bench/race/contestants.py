"""Who runs beside sparsek. Each is a function of a Trial that gives (run, facts): run(i) puts one product on the current stream; facts are `kind`, and where
there are any `params`, `eager` and `result` (a function that gives the M x N product of set 0 once run(0) is done)."""
import concurrent.futures
import dataclasses
import multiprocessing
import time

from race.harness import Harness


@dataclasses.dataclass
class Trial:
    torch: object
    library: object
    case: object
    operands: object
    options: object


def outputs(trial, columns=None):
    o = trial.operands
    return o.made(trial.torch.empty, trial.case.m, columns or trial.case.n)


def dense_products(torch, operands, factors):
    """A function that multiplies set i, and the M x N results."""
    case = operands.case
    out = [operands.laid_out(case.m, case.n, case.layout_d, torch.empty) for _ in factors]

    def run(i):
        left, right = factors[i % len(factors)]
        torch.mm(left, right, out=out[i % len(factors)])

    return run, out


def cublas_dense(trial):
    """The same products dense: A with its zeros; X Y whole."""
    trial.torch.backends.cuda.matmul.allow_tf32 = trial.case.compute == "tf32"
    products = [dense_products(trial.torch, part, part.factors()) for part in trial.operands.parts()]

    def run(i):
        for product, _ in products:
            product(i)

    results = [out for _, out in products]
    return run, dict(kind="dense", result=lambda: results[0][0] if len(results) == 1 else [out[0] for out in results])


def cublas_dense_full(trial):
    """Random numbers everywhere instead of A with its zeros: the same operations, at more power."""
    o = trial.operands
    a = [trial.torch.randn(trial.case.m, trial.case.k, device="cuda", dtype=o.dtype) for _ in o.dense()]
    run, _ = dense_products(trial.torch, o, [(a[i % len(a)], b) for i, b in enumerate(o.b)])
    return run, dict(kind="dense", params="another A: no zeros")


def torch_eager(trial):
    """As a user calls it, without a graph."""
    o = trial.operands
    bsr, kept = o.sparse(), {}

    def run(i):
        kept["out"] = bsr[i % o.sets] @ o.b[i % o.sets]

    return run, dict(kind="peer", eager=True, params="no graph: the host's time counts", result=lambda: kept["out"])


def cusparse(row):
    def made(trial):
        return trial.operands.runner(row), dict(kind="vendor", result=lambda: trial.operands.d[0])
    return made


def cusparselt(trial):
    """Half of each four zero: other values than sparsek's, as many."""
    from torch.sparse import SparseSemiStructuredTensor, to_sparse_semi_structured
    SparseSemiStructuredTensor._FORCE_CUTLASS = False
    torch, case, o = trial.torch, trial.case, trial.operands
    mask = torch.tensor([1, 1, 0, 0], device="cuda", dtype=o.dtype).repeat(case.m, case.k // 4)
    half = [to_sparse_semi_structured(torch.randn(case.m, case.k, device="cuda", dtype=o.dtype) * mask) for _ in o.dense()]
    return (lambda i: torch.mm(half[i % len(half)], o.b[i % o.sets])), dict(kind="peer")


SMALL_ROWS = "spmm_sm80_warp,spmm_sm80_direct,spmm_cuda_rows"


def without_small_rows(trial):
    """sparsek's fastest of the rows that are not made for small blocks: all that there were at commit b09448d, vendors' among them."""
    plan = trial.operands.plan(exclude=SMALL_ROWS, fresh=True)
    trial.operands.plans.append(plan)
    choice = trial.library.choice(plan)
    return trial.operands.runner(choice), dict(kind="own", params=choice, result=trial.operands.result)


# ------------------------------------------------------------------------------------------------ Triton

def triton_configurations(n):
    for tile in [t for t in (64, 128, 256) if n % t == 0] or [n]:
        for group in (1, 4):
            for stages in (2, 3, 4, 5):
                for warps in (4, 8):
                    yield dict(SPLIT_N=n // tile, GROUP_SIZE_ROW=group, num_stages=stages, num_warps=warps)


class TritonOperands:
    """B of fewer than 16 columns is padded to 16."""

    def __init__(self, trial):
        o = trial.operands
        pad = max(16 - trial.case.n, 0)
        self.bsr = o.sparse()
        self.b = [trial.torch.nn.functional.pad(x, (0, pad)) for x in o.b] if pad else o.b
        self.out = outputs(trial, trial.case.n + pad)

    def run(self, i, meta):
        from torch.sparse._triton_ops import bsr_dense_addmm
        at = i % len(self.out)
        bsr_dense_addmm(self.out[at], self.bsr[at], self.b[at], beta=0, alpha=1, out=self.out[at], meta=dict(meta))


def triton_tuned(trial):
    """The best of the configurations, each timed in a graph; compiling is not counted."""
    torch, data = trial.torch, TritonOperands(trial)
    deadline = time.monotonic() + trial.options.triton_s
    best, best_us, tried, failed, left, why = None, float("inf"), 0, 0, 0, None
    for meta in triton_configurations(data.b[0].shape[1]):
        if time.monotonic() > deadline:
            left += 1
            continue
        try:
            probe = Harness(torch, max(4, trial.operands.sets), 1)
            probe.add("t", lambda i: data.run(i, meta))
            us = probe.quick("t", 5)
            tried += 1
        except Exception as problem:  # a configuration that does not fit the device
            torch.cuda.synchronize()
            failed, why = failed + 1, problem
            continue
        if us < best_us:
            best, best_us = meta, us
    if best is None:
        raise RuntimeError(f"no configuration ran: {why}")
    words = " ".join(f"{k}={v}" for k, v in best.items()) + f" (best of {tried}" + (f", {failed} do not fit" if failed else "") + (f", {left} not tried" if left else "") + ")"
    return (lambda i: data.run(i, best)), dict(kind="peer", params=words, result=lambda: data.out[0][:, :trial.case.n])


def compile_some(library_path, device, case, seed, metas):
    """In a process of its own: Triton's cache on disk has these configurations afterwards."""
    import warnings

    import torch

    from race.library import Library
    from race.operations import OPERATIONS
    warnings.simplefilter("ignore")
    library = Library(library_path, device, "")
    operands = OPERATIONS[case.op](torch, library, case, seed, sets=1)
    data = TritonOperands(Trial(torch, library, case, operands, None))
    for meta in metas:
        try:
            data.run(0, meta)
            torch.cuda.synchronize()
        except Exception:  # does not fit; the search will see that too
            pass
    operands.close()


def compile_triton(cases, options):
    """Compiles what the searches of these cases will time, in several processes; what goes wrong here is only slower later."""
    jobs, seen = [], set()
    for case in cases:
        columns = max(case.n, 16)
        key = (case.block, columns, case.dtype, case.layout_b, case.n < 16)
        if "triton_tuned" in case.against and key not in seen:
            seen.add(key)
            metas = list(triton_configurations(columns))
            jobs += [(options.library, options.device, case, options.seed, metas[i:i + 6]) for i in range(0, len(metas), 6)]
    if not jobs or options.workers < 2:
        return
    begun = time.monotonic()
    pool = concurrent.futures.ProcessPoolExecutor(options.workers, mp_context=multiprocessing.get_context("spawn"))
    futures = [pool.submit(compile_some, *job) for job in jobs]
    done, late = concurrent.futures.wait(futures, timeout=options.compile_s)
    failed = [f for f in done if f.exception()]
    processes = list((pool._processes or {}).values()) if late else []
    pool.shutdown(wait=not late, cancel_futures=True)
    for process in processes:
        process.terminate()
    print(f"Triton: {len(done) - len(failed)} of {len(jobs)} batches compiled in {time.monotonic() - begun:.0f} s" +
          (f"; {failed[0].exception()}" if failed else ""), flush=True)


# ------------------------------------------------------------------------------------------------ a plain read

def plain_read(overlapped):
    def made(trial):
        """The fastest of the readers' shapes."""
        from race import readers
        torch, best, best_us, tried = trial.torch, None, float("inf"), 0
        words, multiprocessors = trial.operands.value_bytes // 4, torch.cuda.get_device_properties(0).multi_processor_count
        for configuration in readers.configurations(words, multiprocessors):
            run = readers.reader(torch, trial.operands.values, configuration, overlapped)
            if not readers.is_right(torch, run):
                raise RuntimeError(f"the reader {configuration} does not add up what is there")
            probe = Harness(torch, trial.operands.launches(), 1)
            probe.add("r", run)
            us = probe.quick("r", 7)
            tried += 1
            if us < best_us:
                best, best_us = (run, configuration), us
        words = " ".join(f"{k}={v}" for k, v in best[1].items()) + f" (best of {tried})"
        return best[0], dict(kind="read", bytes=trial.operands.value_bytes, params=words)
    return made


# ------------------------------------------------------------------------------------------------ SDDMM, experts

def torch_sampled(trial):
    """PyTorch's Triton kernel. It has no configurations."""
    from torch.sparse._triton_ops import sampled_addmm
    o = trial.operands
    out = o.bsr(o.made(trial.torch.zeros, o.nnzb, *trial.case.block))

    def run(i):
        at = i % o.sets
        sampled_addmm(out[at], o.x[at], o.y[at], beta=0.0, alpha=1.0, out=out[at], skip_checks=True)

    return run, dict(kind="peer", result=lambda: out[0].values())


def cublas_each(trial):
    """A call for each expert, on its tokens without padding."""
    torch, o = trial.torch, trial.operands
    inputs, weights, ends = [o.inputs(i) for i in range(o.sets)], [o.weights(i) for i in range(o.sets)], [0] + o.ends.tolist()
    out = o.made(torch.empty, len(o.rows), weights[0].shape[2])

    def run(i):
        at = i % o.sets
        for expert, (begin, end) in enumerate(zip(ends, ends[1:])):
            torch.mm(inputs[at][begin:end], weights[at][expert], out=out[at][begin:end])

    return run, dict(kind="dense", params=f"{len(ends) - 1} calls", result=lambda: out[0])


def cublaslt(trial):
    """The best of cuBLASLt's algorithms. What of an epilogue it does not fuse is one more kernel."""
    choice = trial.operands.vendor()
    return trial.operands.runner(choice), dict(kind="vendor", params=choice, result=trial.operands.result)


def grouped_mm(trial):
    """PyTorch's product of ragged groups, on the tokens without padding."""
    o, kept = trial.operands, {}
    inputs, weights = [o.inputs(i) for i in range(o.sets)], [o.weights(i) for i in range(o.sets)]

    def run(i):
        kept[i % o.sets] = trial.torch._grouped_mm(inputs[i % o.sets], weights[i % o.sets], offs=o.ends)

    return run, dict(kind="peer", result=lambda: kept[0])


CONTESTANTS = {"cublas_dense": cublas_dense, "cublas_dense_full": cublas_dense_full, "triton_tuned": triton_tuned, "torch_eager": torch_eager,
               "cusparse_bsr": cusparse("cusparse_bsr"), "cusparse_blocked_ell": cusparse("cusparse_blocked_ell"), "cusparselt_2to4": cusparselt,
               "plain_read": plain_read(False), "plain_read_overlapped": plain_read(True), "torch_sampled": torch_sampled,
               "cublas_each": cublas_each, "grouped_mm": grouped_mm, "cublaslt": cublaslt, "without_small_rows": without_small_rows}
