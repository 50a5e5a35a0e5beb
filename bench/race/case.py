"""One thing to measure: a problem and who takes part. D = op(A) B has M x K x N and a sparse A; of sddmm and what is made of it the M x N result is sparse."""
import dataclasses

from race.library import ROW

SAMPLED = ("sddmm", "experts_up")  # operations whose pattern is M x N


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    topic: str  # the table of docs/performance.md
    m: int
    k: int
    n: int
    block: tuple
    density: float
    dtype: str = "f16"
    pattern: str = "uniform"  # a generator of docs/generators.md
    layout_a: int = ROW  # of sddmm's X
    layout_b: int = ROW
    layout_d: int = ROW
    trans: bool = False  # spmm: A is stored as K x M
    tokens: tuple = ()  # of experts: how many each has; of gemm: the sizes of groups
    group_axis: str = ""  # of gemm: what the groups cut
    epilogue: str = ""  # of gemm: words of bias, an activation, residual; of spmm: an activation
    dtype_d: str = ""  # of gemm, where it is not dtype
    compute: str = ""  # of spmm: tf32, where products of f32 are; else what the type has
    assume_finite: bool = True
    cache: str = "cold"
    op: str = "spmm"  # a name of operations.OPERATIONS
    against: tuple = ()  # names of contestants.CONTESTANTS
    variants: tuple = ()  # (name, ((field, value), ...)): sparsek once more, on a problem that differs from this one
    settle_ms: float = 0  # the contestants run in turns for so long before any round counts: then the clock has fallen to what the power allows
    sample_ms: float = 0  # a sample lasts at least this long: clock and power are then the contestant's own

    def variant(self, changes):
        return dataclasses.replace(self, variants=(), against=(), **dict(changes))

    def sparse_shape(self):
        """Rows and columns of the stored blocks' matrix."""
        if self.op in SAMPLED:
            return self.m, self.n
        return (self.k, self.m) if self.trans else (self.m, self.k)


def square(topic, m, n, density, block, suffix="", **fields):
    """A is m x m, and its blocks are square. Peers come first and go without a topic in their names."""
    start = "" if topic == "peers" else topic + "-"
    return Case(f"{start}{m}x{n}-d{density * 100:g}-b{block}{suffix}", topic, m, m, n, (block, block), density, **fields)
