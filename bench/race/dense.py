"""Dense products, those of groups, and what an epilogue costs: cases, data. A is row-major and B column-major, as in a linear layer y = x W^T, but where groups cut K."""
import dataclasses
import random

from race.case import Case
from race.library import ACTIVATIONS, COL, DTYPES, EXHAUSTIVE, ROW
from race.operands import Operands, torch_dtype

SHAPES = ((4096, 4096, 4096), (8192, 8192, 8192), (16384, 4096, 4096), (4096, 512, 4096), (2048, 2048, 2048), (1024, 1024, 1024), (4096, 4096, 14336),
          (14336, 4096, 4096), (5120, 5000, 5120), (3000, 3000, 3000), (8192, 64, 8192), (14336, 16, 4096), (8192, 256, 28672), (12800, 4096, 1024),
          (16896, 256, 4096), (1, 4096, 4096))  # M, N, K
UNALIGNED = ((9477, 1152, 588), (4096, 4096, 4094), (3001, 3003, 3005), (8192, 1024, 1001), (2050, 6000, 2050))
EPILOGUES = ("bias gelu_erf residual", "bias silu residual")
PER_COLUMN, ADDED = 2, 1
AXES = {"rows": 1, "depth": 3}
VENDOR = "cublas_gemm"


def product(topic, m, n, k, **fields):
    return Case(f"{topic}-{m}x{n}x{k}", topic, m, k, n, (1, 1), 1.0, **{"dtype": "bf16", "layout_b": COL, "op": "gemm", "against": ("cublaslt",),
                                                                        "assume_finite": False, "settle_ms": 150, **fields})


def routed(tokens, experts, seed=1):
    """How many of all tokens each expert gets: from half an even share to one and a half."""
    draw = random.Random(1000 * seed + experts)
    weights = [0.5 + draw.random() for _ in range(experts)]
    ends = [round(tokens * sum(weights[:i + 1]) / sum(weights)) for i in range(experts)]
    return tuple(end - begin for begin, end in zip([0] + ends, ends))


def cases():
    shapes = [product("gemm", *shape) for shape in SHAPES]
    shapes.append(product("gemm", 8192, 8192, 237568, dtype="f16", dtype_d="f32"))
    plain = (("without", (("epilogue", ""),)),)
    epilogues = [dataclasses.replace(product("gemm-epilogue", m, n, k, epilogue=words, variants=plain), name=f"gemm-epilogue-{m}x{n}x{k}-{words.split()[1]}")
                 for m, n, k in ((4096, 4096, 4096), (8192, 14336, 4096)) for words in EPILOGUES]
    epilogues += [Case(f"spmm-epilogue-b{b}-silu", "spmm-epilogue", 14336, 4096, 4096, (b, b), 0.10, "bf16", layout_b=COL, layout_d=COL, epilogue="silu",
                       variants=plain) for b in (64, 128)]
    grouped = [dataclasses.replace(product("gemm-grouped", 8192, 14336, 4096, tokens=routed(8192, e), group_axis="rows", against=("grouped_mm",)), name=f"gemm-grouped-rows-e{e}")
               for e in (8, 64, 128)]
    grouped += [dataclasses.replace(product("gemm-grouped", 4096, 14336, 8192, tokens=routed(8192, e), group_axis="depth", layout_a=COL, layout_b=ROW,
                                            against=("grouped_mm",)), name=f"gemm-grouped-depth-e{e}") for e in (8, 64, 128)]
    return shapes + [product("gemm-unaligned", *shape) for shape in UNALIGNED] + epilogues + grouped


class Gemm(Operands):
    """Lists `a`, `b` and `d`, an entry for each set. Of groups along rows B has a matrix for each, along K so has D."""

    def take_blocks(self, seed):
        self.nnzb, self.pattern, self.value_bytes = 0, None, 0
        self.flops = self.dense_equivalent_flops()
        self.groups = len(self.case.tokens)

    def each(self, axis):
        """How many matrices of its own an operand has which `axis` gives one to each group."""
        return self.groups if self.case.group_axis == axis else 1

    def dense_elements(self):
        case = self.case
        return case.m * case.k + self.each("rows") * case.k * case.n + self.each("depth") * case.m * case.n

    def stacked(self, count, rows, cols, layout, make, dtype):
        made = make(*([count] if count > 1 else []), *((rows, cols) if layout == ROW else (cols, rows)), device="cuda", dtype=dtype)
        return made if layout == ROW else made.transpose(-2, -1)

    def fill(self):
        torch, case = self.torch, self.case
        self.dtype_d = torch_dtype(torch, case.dtype_d or case.dtype)
        self.a = [self.stacked(1, case.m, case.k, case.layout_a, torch.randn, self.dtype) for _ in range(self.sets)]
        self.b = [self.stacked(self.each("rows"), case.k, case.n, case.layout_b, torch.randn, self.dtype) for _ in range(self.sets)]
        self.d = [self.stacked(self.each("depth"), case.m, case.n, ROW, torch.empty, self.dtype_d) for _ in range(self.sets)]
        self.bias = torch.randn(case.n, device="cuda", dtype=self.dtype_d)
        self.residual = torch.randn(case.m, case.n, device="cuda", dtype=self.dtype_d) if "residual" in case.epilogue else None
        self.ends = torch.tensor(case.tokens or (0,), device="cuda").cumsum(0).to(torch.int32)

    def plan(self, exclude=VENDOR, **how):
        case, words = self.case, self.case.epilogue.split()
        fields = dict(m=case.m, n=case.n, k=case.k, dtype_a=DTYPES[case.dtype], dtype_d=DTYPES[case.dtype_d or case.dtype], layout_a=case.layout_a,
                      layout_b=case.layout_b, bias=PER_COLUMN if "bias" in words else 0, activation=ACTIVATIONS.index(self.activation()),
                      residual=ADDED if "residual" in words else 0, groups=self.groups, group_axis=AXES.get(case.group_axis, 0))
        return self.library.plan("gemm", case, None, fields, exclude=exclude, **how)

    def arguments(self, i, workspace, workspace_bytes):
        given = dict(a=self.a[i].data_ptr(), b=self.b[i].data_ptr(), d=self.d[i].data_ptr())
        if "bias" in self.case.epilogue:
            given["bias"] = self.bias.data_ptr()
        if self.residual is not None:
            given["residual"] = self.residual.data_ptr()
        if self.groups:
            given["offsets"] = self.ends.data_ptr()
        return self.library.args("gemm", workspace, workspace_bytes, **given)

    def vendor(self):
        """The best of cuBLASLt's algorithms, each timed."""
        plan = self.plan(exclude=None, only=VENDOR, effort=EXHAUSTIVE, fresh=True)
        choice = self.library.choice(plan)
        self.plans.append(plan)
        return choice

    def inputs(self, i):
        return self.a[i]

    def weights(self, i):
        return self.b[i]

    def error(self, d):
        """The largest error of d, the product of set 0, on 64 rows, against float64."""
        torch, case, worst = self.torch, self.case, 0.0
        ends = [0] + self.ends.tolist()
        for row in torch.randperm(case.m * self.each("depth"))[:64].tolist():
            group = row // case.m if case.group_axis == "depth" else sum(end <= row for end in ends[1:]) if self.groups else 0
            part = slice(ends[group], ends[group + 1]) if case.group_axis == "depth" else slice(None)
            x = self.a[0][row % case.m, part].double()
            w = (self.b[0][group] if self.each("rows") > 1 else self.b[0])[part].double()
            want, terms = x @ w, x.abs() @ w.abs()
            if "bias" in case.epilogue:
                want, terms = want + self.bias.double(), terms + self.bias.double().abs()
            want = self.activated(want)
            if self.residual is not None:
                want, terms = want + self.residual[row].double(), terms + self.residual[row].double().abs()
            got = (d[group] if self.each("depth") > 1 else d)[row % case.m].double()
            error = (got - want).abs() / (terms + 1e-30)
            worst = max(worst, float("inf") if error.isnan().any() else error.max().item())
        return worst

    def problem(self, seed):
        case, layouts = self.case, ("row", "col")
        made = {"op": "gemm", "m": case.m, "n": case.n, "k": case.k, "dtype": case.dtype, "dtype_d": case.dtype_d or case.dtype, "compute": "f32",
                "layout_a": layouts[case.layout_a], "layout_b": layouts[case.layout_b], "layout_d": layouts[case.layout_d]}
        if self.groups:
            made.update(group_axis=case.group_axis, groups=self.groups, tokens=list(case.tokens))
        return dict(made, epilogue=" ".join(case.epilogue.split()) or "none", batch=1, seed=seed, assume_finite=case.assume_finite, static_values=False,
                    cache=case.cache)
