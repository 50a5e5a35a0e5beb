"""Small blocks, and few columns: beside PyTorch's Triton kernel and dense cuBLAS. A run that stops early has one size of all, then the next."""
from race.case import Case, square
from race.library import COL

AGAINST = ("cublas_dense", "triton_tuned")
BEFORE = ("cublas_dense", "without_small_rows")
SIZES = ((4096, "f16"), (8192, "bf16"), (4096, "bf16"), (8192, "f16"))


def small_blocks():
    return [square("small", m, n, density, block, "" if dtype == "f16" else "-" + dtype, dtype=dtype, against=AGAINST)
            for m, dtype in SIZES for n in (64, 256, 512, 1024, 4096) for block in (16, 32) for density in (0.1, 0.05, 0.2)]


def few_columns():
    return [square("small", 4096, n, density, block, "-bf16", dtype="bf16", against=AGAINST)
            for block in (64, 128) for density in (0.1, 0.05, 0.25) for n in (16, 64, 128, 256, 512, 1024)]


def odd():
    """Sizes that are no powers of two."""
    return [square("small", 6144, 192, 0.1, 64, "-bf16", dtype="bf16", against=AGAINST),
            Case("small-3000x1000-d5-b8", "small", 3000, 3008, 1000, (8, 8), 0.05, against=BEFORE)]


def uneven():
    """Rows of uneven length, and rows that stand close together."""
    return [square("small", 4096, n, 0.1, block, "-" + pattern, pattern=pattern, against=AGAINST)
            for pattern in ("power-law", "banded") for block in (16, 32) for n in (64, 512, 4096)]


def eights():
    """Triton has none."""
    return [square("small", 4096, n, density, 8, against=BEFORE) for n in (64, 256, 512, 1024, 4096) for density in (0.05, 0.1, 0.2)]


def tiny():
    """A graph's neighbourhoods, a mesh of finite elements (27 neighbours of three unknowns), weights pruned to vectors along K and along M."""
    made = []
    for n in (64, 256):
        made += [square("small", 8192, n, 0.01, 4, f"-{dtype}", dtype=dtype, against=("without_small_rows",)) for dtype in ("f32", "f16")]
        made += [square("small", 12288, n // 4, 0.0066, 3, f"-mesh-{dtype}", dtype=dtype, pattern="banded", against=("without_small_rows",)) for dtype in ("f64", "f32")]
        made += [Case(f"small-4096x{n}-d5-b{rows}x{cols}", "small", 4096, 4096, n, (rows, cols), 0.05, against=BEFORE) for rows, cols in ((1, 16), (32, 1))]
    return made


def wide():
    """Products of TF32, and f64."""
    return [square("small", 4096, n, 0.1, block, "-" + (compute or dtype), dtype=dtype, compute=compute, against=BEFORE)
            for dtype, compute in (("f32", "tf32"), ("f64", "")) for block in (16, 32) for n in (64, 512)]


def layers():
    """A linear layer's layouts."""
    return [Case(f"small-layer-t{n}-b{block}", "small", 14336, 4096, n, (block, block), 0.10, "bf16", layout_b=COL, layout_d=COL, against=AGAINST)
            for block in (16, 32) for n in (16, 64, 256)]


def cases():
    return small_blocks() + few_columns() + odd() + uneven() + eights() + tiny() + wide() + layers()
