"""What training needs: SDDMM, the transposed product, the three products of a layer, the two of a mixture of experts."""
import dataclasses
import random

from race.case import Case, square
from race.library import COL

TRANSPOSED = (("A transposed", (("trans", True),)),)
SQUARES = ((4096, 4096, 0.125, (32, 64, 128)), (4096, 4096, 0.5, (32, 64, 128)), (8192, 8192, 0.125, (32, 64, 128)), (4096, 512, 0.125, (64, 128)))
TOKENS, OUT, IN = 8192, 14336, 4096  # of the layer: y[TOKENS, OUT] = x[TOKENS, IN] W^T
MODEL, HIDDEN = 2048, 4096  # of an expert


def sampled_cases():
    return [Case(f"sddmm-{m}x{n}-d{density * 100:g}-b{block}", "sddmm", m, k, n, (block, block), density, op="sddmm",
                 against=("cublas_dense", "torch_sampled"))
            for m, n, k in ((4096, 4096, 4096), (14336, 4096, 8192)) for density in (0.125, 0.5) for block in (128, 64, 32)]


def transposed_cases():
    return [square("transposed", m, n, density, block, variants=TRANSPOSED) for m, n, density, blocks in SQUARES for block in blocks]


def layer_parts(case):
    """Of a layer y = x W^T with W = A (M x K) and N tokens, all of x, y and their gradients with a row for each token: the forward product y^T = W x^T, the
    gradient of the input dx^T = W^T dy^T, and the gradient of the values, dy^T x at W's blocks."""
    plain = dataclasses.replace(case, against=(), variants=())
    return {"forward": dataclasses.replace(plain, op="spmm", layout_b=COL, layout_d=COL),
            "grad-input": dataclasses.replace(plain, op="spmm", m=case.k, k=case.m, trans=True, layout_b=COL, layout_d=COL),
            "grad-values": dataclasses.replace(plain, op="sddmm", k=case.n, n=case.k, layout_a=COL)}


def layer_cases():
    """Each product alone, then all three."""
    cases = []
    for block in (64, 128):
        whole = Case(f"layer-all-b{block}", "layer", OUT, IN, TOKENS, (block, block), 0.10, "bf16", op="layer", against=("cublas_dense",))
        for name, part in layer_parts(whole).items():
            against = ("cublas_dense", "torch_sampled") if part.op == "sddmm" else ("cublas_dense",)
            cases.append(dataclasses.replace(part, name=f"layer-{name}-b{block}", against=against))
        cases.append(whole)
    return cases


def routed(experts, seed=1):
    """Tokens of each expert: 16 to 256, the same for one seed."""
    draw = random.Random(1000 * seed + experts)
    return tuple(draw.randint(16, 256) for _ in range(experts))


def padded(tokens, block_rows):
    """Rows, when each expert's tokens fill whole block rows."""
    return sum(-(-count // block_rows) * block_rows for count in tokens)


def experts_cases():
    """`up`: X[T, 2048] W1 with each token's expert only, an SDDMM whose result is block diagonal. `down`: that block-diagonal H[T, 4096 E] times the stacked
    W2, an SpMM. T counts the padding to whole blocks."""
    cases = []
    for experts in (8, 64, 16, 32):
        tokens = routed(experts)
        rows = padded(tokens, 128)
        shorter = (("64 rows a block", (("block", (64, 128)), ("m", padded(tokens, 64)))),)
        common = dict(block=(128, 128), density=1 / experts, dtype="bf16", pattern="experts", tokens=tokens, against=("cublas_each", "grouped_mm"),
                      variants=shorter)
        cases.append(Case(f"experts-up-e{experts}", "experts", rows, MODEL, experts * HIDDEN, op="experts_up", layout_b=COL, **common))
        cases.append(Case(f"experts-down-e{experts}", "experts", rows, experts * HIDDEN, MODEL, op="experts_down", **common))
    return cases


def cases():
    """Some of each kind come first, since a run may be cut short."""
    sampled, layers, experts = sampled_cases(), layer_cases(), experts_cases()
    wholes, parts = [c for c in layers if c.op == "layer"], [c for c in layers if c.op != "layer"]
    return sampled[:6] + wholes + experts[:4] + transposed_cases() + sampled[6:] + parts + experts[4:]
