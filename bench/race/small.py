"""Small blocks, and few columns: beside PyTorch's Triton kernel and dense cuBLAS. A run that stops early has one size of all, then the next."""
from race.case import Case, square
from race.library import COL

AGAINST = ("cublas_dense", "triton_tuned")
SIZES = ((4096, "f16"), (8192, "bf16"), (4096, "bf16"), (8192, "f16"))


def small_blocks():
    return [square("small", m, n, density, block, "" if dtype == "f16" else "-" + dtype, dtype=dtype, against=AGAINST)
            for m, dtype in SIZES for n in (64, 256, 512, 1024, 4096) for block in (16, 32) for density in (0.1, 0.05, 0.2)]


def few_columns():
    return [square("small", 4096, n, density, block, "-bf16", dtype="bf16", against=AGAINST)
            for block in (64, 128) for density in (0.1, 0.05, 0.25) for n in (16, 64, 128, 256, 512, 1024)]


def others():
    """Rows of uneven length, blocks of 8 (Triton has none), and a linear layer's layouts."""
    cases = [square("small", 4096, n, 0.1, block, "-power-law", pattern="power-law", against=AGAINST) for block in (16, 32) for n in (64, 512, 4096)]
    cases += [square("small", 4096, n, density, 8, against=("cublas_dense",)) for n in (64, 256, 512, 1024, 4096) for density in (0.05, 0.1)]
    return cases + [Case(f"small-layer-t{n}-b{block}", "small", 14336, 4096, n, (block, block), 0.10, "bf16", layout_b=COL, layout_d=COL, against=AGAINST)
                    for block in (16, 32) for n in (16, 64, 256)]


def cases():
    return small_blocks() + few_columns() + others()
