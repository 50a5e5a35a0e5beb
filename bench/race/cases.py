"""What is measured beside peers, and all suites of cases. Topics are the tables of docs/performance.md."""
from race import dense, small, training
from race.case import Case, square
from race.library import COL


PEERS = ("cublas_dense", "triton_tuned", "torch_eager", "cusparse_bsr", "cusparse_blocked_ell")
LAYOUTS = (("bf16", (("dtype", "bf16"),)), ("B by columns", (("layout_b", COL),)), ("D by columns", (("layout_d", COL),)),
           ("B and D by columns", (("layout_b", COL), ("layout_d", COL))))
PATTERNS = tuple((name, (("pattern", name),)) for name in ("banded", "window", "causal", "power-law"))
FINITE = (("any B", (("assume_finite", False),)),)


def peers_cases(cache):
    """The eleven problems of the first line of targets, and 8192^3 at 50 % beside 2:4 sparsity."""
    cases = []
    for m, n, density, blocks in ((4096, 4096, 0.125, (32, 64, 128)), (4096, 4096, 0.5, (32, 64, 128)), (8192, 8192, 0.125, (32, 64, 128)),
                                  (4096, 512, 0.125, (64, 128)), (8192, 8192, 0.5, (64, 128))):
        against = PEERS + (("cublas_dense_full", "cusparselt_2to4") if density == 0.5 else ())
        if m == 8192 and density == 0.5:  # cuSPARSE's rows take 40 ms and more there
            against = tuple(name for name in against if not name.startswith("cusparse_"))
        cases += [square("peers", m, n, density, b, "-warm" if cache == "warm" else "", cache=cache, against=against) for b in blocks]
    return cases


def decode_cases(cache):
    """y[T, 14336] = x[T, 4096] W^T: B and D are x and y, column-major."""
    return [Case(f"decode-t{t}-b{b}{'-warm' if cache == 'warm' else ''}", "decode", 14336, 4096, t, (b, b), 0.10, "bf16", layout_b=COL, layout_d=COL, cache=cache,
                 against=PEERS + ("plain_read", "plain_read_overlapped")) for t in (1, 16, 64) for b in (64, 128)]


def peer_cases():
    cases = peers_cases("cold") + decode_cases("cold") + decode_cases("warm")
    for density in (0.125, 0.5):
        cases += [square("kinds", 4096, 4096, density, b, variants=LAYOUTS) for b in (32, 64, 128)]
    cases += [square("patterns", 4096, 4096, 0.125, b, variants=PATTERNS) for b in (32, 64, 128)]
    for density in (0.125, 0.5):
        cases += [square("finite", 4096, 4096, density, b, variants=FINITE) for b in (32, 64, 128)]
    for m, density, block in ((4096, 0.5, 64), (4096, 0.5, 128), (8192, 0.125, 128)):
        two_to_four = ("cusparselt_2to4",) if density == 0.5 else ()
        cases.append(square("sustained", m, m, density, block, sample_ms=100, against=("cublas_dense", "cublas_dense_full") + two_to_four))
    return cases + peers_cases("warm")


SUITES = {"peers": peer_cases, "training": training.cases, "gemm": dense.cases, "small": small.cases}


def all_cases():
    return [c for suite in SUITES.values() for c in suite()]


def chosen_cases(names, suite="peers"):
    """Those of any suite whose name begins with one of `names`, exactly one where a name is whole; without names all of a suite."""
    if not names:
        return SUITES[suite]()
    cases = all_cases()
    whole = {c.name for c in cases}
    return [c for c in cases if any(c.name == name or (name not in whole and c.name.startswith(name)) for name in names)]
