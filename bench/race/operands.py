"""The data of a case on the device, and how sparsek runs it. One class for each operation."""
import time

from race.library import ACTIVATIONS, DTYPES, ROW

TOLERANCE = {"f16": 1e-3, "bf16": 8e-3, "f32": 1e-5, "tf32": 1e-3, "f64": 1e-13}  # relative to the sum of the terms' absolute values


def torch_dtype(torch, name):
    return {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "f64": torch.float64}[name]


class Operands:
    """What the operations share: where blocks are, how many sets of arrays, plans. An operation adds its arrays (`fill`), its calls of the library (`plan`,
    `arguments`), what a dense product of the same result takes (`factors`), and how far a result is from the true one (`error`)."""

    def __init__(self, torch, library, case, seed, sets=None):
        self.torch, self.library, self.case = torch, library, case
        self.dtype = torch_dtype(torch, case.dtype)
        self.take_blocks(seed)
        element = torch.empty(0, dtype=self.dtype).element_size()
        l2 = torch.cuda.get_device_properties(0).L2_cache_size
        self.sets = sets or (1 if case.cache == "warm" else max(2, min(16, int(2.5 * l2 / (self.value_bytes + self.dense_elements() * element)) + 2)))
        self.plans, self.views = [], {}
        torch.manual_seed(seed)
        self.fill()

    def take_blocks(self, seed):
        """The pattern, and how much its blocks are."""
        offsets, columns = self.blocks(seed)
        self.nnzb, (rows, cols) = len(columns), self.case.block
        self.value_bytes = self.nnzb * rows * cols * self.torch.empty(0, dtype=self.dtype).element_size()
        self.flops = 2.0 * self.nnzb * rows * cols * self.inner()
        self.offsets, self.columns = (self.torch.tensor(x, dtype=self.torch.int32, device="cuda") for x in (offsets, columns))
        self.pattern = self.library.pattern(self.case, offsets, columns)

    def blocks(self, seed):
        """Row offsets and block columns."""
        return self.library.generate(self.case, seed)

    def laid_out(self, rows, cols, layout, make):
        """A rows x cols matrix whatever the layout: by columns it is the transpose of a contiguous tensor."""
        made = make(*((rows, cols) if layout == ROW else (cols, rows)), device="cuda", dtype=self.dtype)
        return made if layout == ROW else made.t()

    def made(self, make, *shape):
        """A contiguous tensor for each set."""
        return [make(*shape, device="cuda", dtype=self.dtype) for _ in range(self.sets)]

    def launches(self):
        """A graph lasts some hundred microseconds, so that starting it does not count."""
        return max(6, self.sets, min(48, int(600 / max(self.flops / 3e8, 8))))

    def parts(self):
        """The products of one run."""
        return [self]

    def bsr(self, arrays):
        """Arrays of values as PyTorch's BSR tensors."""
        size = tuple(-(-length // block) * block for length, block in zip(self.case.sparse_shape(), self.case.block))
        return [self.torch.sparse_bsr_tensor(self.offsets, self.columns, v, size=size) for v in arrays]

    def clear(self):
        """So that a contestant which writes nothing is seen."""
        self.d[0].fill_(float("nan"))

    def result(self):
        """sparsek's of set 0."""
        return self.d[0]

    def tolerance(self):
        return TOLERANCE[self.case.compute or self.case.dtype]

    def choose(self, fresh):
        """sparsek's choice and how long it took."""
        begun = time.monotonic()
        plan = self.plan(fresh=fresh)
        took, choice = time.monotonic() - begun, self.library.choice(plan)
        self.plans.append(plan)
        return choice, took

    def runner(self, choice):
        """A function that puts one product of sparsek's on the current stream, by the candidate that `choice` names."""
        plan = self.plan(choice=choice)
        self.plans.append(plan)
        work = self.torch.empty(max(self.library.workspace_bytes(plan), 1), dtype=self.torch.uint8, device="cuda")
        args = [self.arguments(i, work.data_ptr(), work.numel()) for i in range(self.sets)]

        def run(i):
            self.put(plan, args[i % len(args)], self.torch.cuda.current_stream().cuda_stream)

        run.keep = work
        return run

    def activation(self):
        return next((word for word in self.case.epilogue.split() if word in ACTIVATIONS), "none")

    def activated(self, values):
        """A tensor of sums after the activation."""
        functions = self.torch.nn.functional
        return {"none": lambda v: v, "relu": functions.relu, "gelu_erf": functions.gelu, "silu": functions.silu}[self.activation()](values)

    def put(self, plan, args, stream):
        self.library.run(plan, args, stream)

    def problem(self, seed):
        """As `sparsek bench` writes it."""
        case, (rows, cols), (height, width) = self.case, self.case.block, self.case.sparse_shape()
        return {"op": case.op, "m": case.m, "k": case.k, "n": case.n, "block_rows": rows, "block_cols": cols, "nnzb": self.nnzb,
                "density": round(self.nnzb / (-(-height // rows) * -(-width // cols)), 5), "pattern": case.pattern, "dtype": case.dtype, "dtype_d": case.dtype,
                "compute": case.compute or ("f64" if case.dtype == "f64" else "f32"), "trans_a": "t" if case.trans else "n", "layout_b": ("row", "col")[case.layout_b], "layout_d": ("row", "col")[case.layout_d],
                "epilogue": self.case.epilogue or "none", "batch": 1, "seed": seed, "assume_finite": case.assume_finite, "static_values": False, "cache": case.cache}

    def dense_equivalent_flops(self):
        return 2.0 * self.case.m * self.case.k * self.case.n

    def close(self):
        for plan in self.plans:
            self.library.destroy_plan(plan)
        if self.pattern:
            self.library.destroy_pattern(self.pattern)


class Spmm(Operands):
    """D = op(A) B: lists `values`, `b` (K x N) and `d` (M x N), an entry for each set."""

    def inner(self):
        return self.case.n

    def dense_elements(self):
        return (self.case.k + self.case.m) * self.case.n

    def fill(self):
        torch, case = self.torch, self.case
        self.values = self.made(torch.randn, self.nnzb, *case.block)
        self.b = [self.laid_out(case.k, case.n, case.layout_b, torch.randn) for _ in range(self.sets)]
        self.d = [self.laid_out(case.m, case.n, case.layout_d, torch.empty) for _ in range(self.sets)]

    def plan(self, **how):
        case = self.case
        fields = dict(n=case.n, dtype_a=DTYPES[case.dtype], trans_a=int(case.trans), layout_b=case.layout_b, layout_d=case.layout_d,
                      activation=ACTIVATIONS.index(self.activation()), compute=DTYPES.get(case.compute, 0))
        return self.library.plan("spmm", case, self.pattern, fields, **how)

    def arguments(self, i, workspace, workspace_bytes):
        return self.library.args("spmm", workspace, workspace_bytes, values=self.values[i].data_ptr(), b=self.b[i].data_ptr(), d=self.d[i].data_ptr())

    def sparse(self):
        """Each set's A as PyTorch's BSR tensor."""
        if "bsr" not in self.views:
            self.views["bsr"] = self.bsr(self.values)
        return self.views["bsr"]

    def dense(self):
        """op(A) with its zeros, of the first four sets."""
        if "dense" not in self.views:
            rows, cols = self.case.sparse_shape()
            stored = [x.to_dense()[:rows, :cols] for x in self.sparse()[:4]]
            self.views["dense"] = [a.t() for a in stored] if self.case.trans else stored
        return self.views["dense"]

    def factors(self):
        """For each set the dense matrices whose product is D."""
        a = self.dense()
        return [(a[i % len(a)], b) for i, b in enumerate(self.b)]

    def error(self, d):
        """The largest error of d, the product of set 0, on 64 rows, against float64."""
        rows = self.torch.randperm(self.case.m)[:64].to(d.device)
        a, b = self.dense()[0][rows].double(), self.b[0].double()
        return ((d[rows].double() - self.activated(a @ b)).abs() / (a.abs() @ b.abs() + 1e-30)).max().item()
