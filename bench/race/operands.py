"""The data of a case on the device, and how sparsek runs it. One class for each operation."""
import time

from race.library import ROW

TOLERANCE = {"f16": 1e-3, "bf16": 8e-3, "f32": 1e-5}  # relative to the sum of the terms' absolute values


def torch_dtype(torch, name):
    return {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[name]


class Spmm:
    """D = A B: lists `values`, `b`, `d` of as many sets as it takes to pass the L2 cache (one set if warm). `b` and `d` are M x N and K x N whatever the
    layout: where it is by columns they are transposes of contiguous tensors."""

    def __init__(self, torch, library, case, seed, sets=None):
        self.torch, self.library, self.case = torch, library, case
        self.dtype = torch_dtype(torch, case.dtype)
        offsets, columns = library.generate(case, seed)
        self.nnzb, (rows, cols) = len(columns), case.block
        self.flops = 2.0 * self.nnzb * rows * cols * case.n
        element = torch.empty(0, dtype=self.dtype).element_size()
        self.value_bytes = self.nnzb * rows * cols * element
        bytes_of_set = self.value_bytes + (case.k * case.n + case.m * case.n) * element
        l2 = torch.cuda.get_device_properties(0).L2_cache_size
        self.sets = sets or (1 if case.cache == "warm" else max(2, min(16, int(2.5 * l2 / bytes_of_set) + 2)))
        torch.manual_seed(seed)
        self.values = [torch.randn(self.nnzb, rows, cols, device="cuda", dtype=self.dtype) for _ in range(self.sets)]
        self.b = [self.laid_out(case.k, case.layout_b, torch.randn) for _ in range(self.sets)]
        self.d = [self.laid_out(case.m, case.layout_d, torch.empty) for _ in range(self.sets)]
        self.offsets, self.columns = (torch.tensor(x, dtype=torch.int32, device="cuda") for x in (offsets, columns))
        self.pattern = library.pattern(case, offsets, columns)
        self.plans, self.views = [], {}

    def laid_out(self, rows, layout, make):
        made = make(*((rows, self.case.n) if layout == ROW else (self.case.n, rows)), device="cuda", dtype=self.dtype)
        return made if layout == ROW else made.t()

    def launches(self):
        """A graph lasts some hundred microseconds, so that starting it does not count."""
        return max(6, self.sets, min(48, int(600 / max(self.flops / 3e8, 8))))

    def bsr(self):
        """Each set's A as PyTorch's BSR tensor."""
        if "bsr" not in self.views:
            size = tuple(-(-length // block) * block for length, block in zip((self.case.m, self.case.k), self.case.block))
            self.views["bsr"] = [self.torch.sparse_bsr_tensor(self.offsets, self.columns, v, size=size) for v in self.values]
        return self.views["bsr"]

    def dense(self):
        """A with its zeros, of the first four sets."""
        if "dense" not in self.views:
            self.views["dense"] = [x.to_dense()[:self.case.m, :self.case.k] for x in self.bsr()[:4]]
        return self.views["dense"]

    def error(self, d):
        """The largest error of d, the product of set 0, on 64 rows, against float64."""
        rows = self.torch.randperm(self.case.m)[:64].cuda()
        a, b = self.dense()[0][rows].double(), self.b[0].double()
        return ((d[rows].double() - a @ b).abs() / (a.abs() @ b.abs() + 1e-30)).max().item()

    def clear(self):
        """So that a contestant which writes nothing is seen."""
        self.d[0].fill_(float("nan"))

    def tolerance(self):
        return TOLERANCE[self.case.dtype]

    def choose(self, fresh):
        """sparsek's choice and how long it took."""
        begun = time.monotonic()
        plan = self.library.plan_spmm(self.case, self.pattern, fresh=fresh)
        took, choice = time.monotonic() - begun, self.library.choice(plan)
        self.plans.append(plan)
        return choice, took

    def runner(self, choice):
        """A function that puts one product of sparsek's on the current stream, by the candidate that `choice` names."""
        plan = self.library.plan_spmm(self.case, self.pattern, choice=choice)
        self.plans.append(plan)
        work = self.torch.empty(max(self.library.workspace_bytes(plan), 1), dtype=self.torch.uint8, device="cuda")
        args = [self.library.spmm_args(v.data_ptr(), b.data_ptr(), d.data_ptr(), work.data_ptr(), work.numel())
                for v, b, d in zip(self.values, self.b, self.d)]

        def run(i):
            self.library.run_spmm(plan, args[i % len(args)], self.torch.cuda.current_stream().cuda_stream)

        run.keep = work
        return run

    def problem(self, seed):
        """As `sparsek bench` writes it."""
        case, (rows, cols) = self.case, self.case.block
        return {"op": case.op, "m": case.m, "k": case.k, "n": case.n, "block_rows": rows, "block_cols": cols, "nnzb": self.nnzb,
                "density": round(self.nnzb / (-(-case.m // rows) * -(-case.k // cols)), 5), "pattern": case.pattern, "dtype": case.dtype, "dtype_d": case.dtype,
                "compute": "f32", "trans_a": "n", "layout_b": ("row", "col")[case.layout_b], "layout_d": ("row", "col")[case.layout_d],
                "epilogue": "none", "batch": 1, "seed": seed, "assume_finite": case.assume_finite, "static_values": False, "cache": case.cache}

    def dense_equivalent_flops(self):
        return 2.0 * self.case.m * self.case.k * self.case.n

    def close(self):
        for plan in self.plans:
            self.library.destroy_plan(plan)
        self.library.destroy_pattern(self.pattern)


OPERATIONS = {"spmm": Spmm}
