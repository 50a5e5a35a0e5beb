"""Dense products, and those in groups: what bench/peers.py --suite gemm measured on a GPU, and races of `sparsek bench --op gemm` on a processor."""
import math

from page.results import digits, ours_of, ratio_over_ours
from page.tables import cell, contestants, entry, table, what_ran
from page.targets import Bar, ratios

TITLES = {None: "Beside BLAS", "gemm": "Dense products", "gemm-unaligned": "Sizes and leading dimensions that are no multiples of 8", "gemm-epilogue": "Bias, an activation and a residual",
          "spmm-epilogue": "SpMM with an activation", "gemm-grouped": "Products in groups"}
NOTES = {
    "gemm": "`cublaslt` is the best of the sixteen algorithms that cuBLASLt recommends with 32 MiB of workspace, each timed. Before the rounds both run in turns for 150 ms, so that the "
            "clock has fallen to what the power allows.",
    "gemm-epilogue": "`cublaslt` fuses bias and GELU where that computes the same; what it does not fuse is one more kernel. `without` is sparsek's product without the epilogue.",
    "spmm-epilogue": "`without` is sparsek's product without the activation. B and D are those of a linear layer: by columns.",
    "gemm-grouped": "8192 rows (of A and D: a mixture of experts, up) or as much of K (the gradient of the experts' weights) in groups of half to three halves of an even share; "
                    "`grouped_mm` is PyTorch's `torch._grouped_mm`.",
}


def is_seed(problem):
    return problem["dtype"] == "f16"


def is_narrow(problem):
    return problem["n"] in (16, 64) or problem["m"] == problem["n"] == problem["k"] == 1024


def over_plain(results, topic="gemm-epilogue", wanted=lambda p: True):
    """Our time over that of the product without the epilogue."""
    for ratio, label in ratios(results, topic, "without", wanted):
        yield (1 / ratio if ratio else None), label


def bars():
    def shapes(results, wanted=lambda p: not is_seed(p)):
        return ratios(results, "gemm", "cublaslt", wanted)

    return [Bar("cuBLASLt's time over ours, sixteen shapes", 1.0, shapes, mean=True, of=16),
            Bar("cuBLASLt's time over ours, the least of the sixteen shapes", 0.97, shapes, of=16),
            Bar("cuBLASLt's time over ours, N = 16 and 64, and 1024^3", 1.0, lambda rs: shapes(rs, is_narrow), of=3),
            Bar("cuBLASLt's time over ours, 8192 x 237568 x 8192 in f16 with a D of f32", 1.0, lambda rs: shapes(rs, is_seed)),
            Bar("cuBLASLt's time over ours, unaligned sizes", 2.0, lambda rs: ratios(rs, "gemm-unaligned", "cublaslt"), of=5),
            Bar("cuBLASLt's time, with one more kernel, over ours, with bias, GELU or SiLU, and a residual", 1.12,
                lambda rs: ratios(rs, "gemm-epilogue", "cublaslt"), of=4),
            Bar("our time with bias, GELU or SiLU, and a residual over that without them", None, over_plain, most=1.05, of=4),
            Bar("SpMM of blocks of 64 with SiLU: our time over that without it", None,
                lambda rs: over_plain(rs, "spmm-epilogue", lambda p: p["block_rows"] == 64), most=1.25),
            Bar("time of `torch._grouped_mm` over ours, groups along rows", 1.05,
                lambda rs: ratios(rs, "gemm-grouped", "grouped_mm", lambda p: p["group_axis"] == "rows"), of=3),
            Bar("time of `torch._grouped_mm` over ours, groups along K", 1.05, lambda rs: ratios(rs, "gemm-grouped", "grouped_mm", lambda p: p["group_axis"] == "depth"), of=3)]


def fastest(result, kind):
    return min((c["median_us"] for c in result["candidates"] if c["kind"] == kind and c["median_us"]), default=None)


def over_blas(results, dtype):
    """The fastest vendor's time over that of our fastest row."""
    for r in results:
        p, own, vendor = r["problem"], fastest(r, "own"), fastest(r, "vendor")
        if own and vendor and p["dtype"] == dtype:
            yield vendor / own, where(p)


def cpu_bars():
    return [Bar("the better BLAS's time over our own rows', f32", 0.87, lambda rs: over_blas(rs, "f32")),
            Bar("the better BLAS's time over our own rows', f64", 0.87, lambda rs: over_blas(rs, "f64"))]


def traits(problem):
    words = [problem["dtype"] if problem["dtype"] == problem["dtype_d"] else f"{problem['dtype']} to {problem['dtype_d']}", problem["cache"]]
    words += [f"{name} by columns" for name, key in (("A", "layout_a"), ("B", "layout_b"), ("D", "layout_d")) if problem.get(key) == "col"]
    if problem.get("groups"):
        words.append(f"{problem['groups']} groups along {'K' if problem['group_axis'] == 'depth' else problem['group_axis']}")
    if problem.get("block_rows"):
        words.append(f"blocks of {problem['block_rows']}, {digits(problem['density'] * 100)} %")
    return ", ".join(words + ([problem["epilogue"]] if problem["epilogue"] != "none" else []))


def ratio_row(title, figure, rows, names):
    cells = []
    for name in names:
        found = [ratio_over_ours(r, c) for _, _, r in rows for c in r["candidates"] if c["name"] == name and c["median_us"]]
        cells.append(f"{digits(figure([x for x in found if x]))}x" if any(found) else "-")
    return [title, "", "", ""] + cells


def where(problem):
    return f"{problem['m']} x {problem['k']} x {problem['n']}"


def refusals(rows):
    """Who failed, where and why: a line each."""
    lines = []
    for _, _, result in rows:
        lines += [f"`{c['name']}` failed at {result.get('case') or where(result['problem'])}: {cell(c['why'] or 'no reason given')}" for c in result["candidates"] if c["status"] == "failed"]
    return [""] + lines if lines else []


def topic_lines(topic, rows, scale, unit):
    names = contestants(rows)
    body = []
    for _, _, result in rows:
        p, ours = result["problem"], ours_of(result)
        own = "-" if ours is None else f"**{digits(ours['median_us'], 4)}** ({digits(ours['tflops'] * scale)})"
        body.append([where(p), traits(p), own, what_ran(result, ours)] + [entry(result, name, scale) for name in names])
    if len(rows) > 1:
        body.append(ratio_row("geometric mean", lambda x: math.exp(sum(map(math.log, x)) / len(x)), rows, names))
        body.append(ratio_row("least", min, rows, names))
    head = ["M x K x N", "as", "sparsek", "which ran"] + [f"`{name}`" for name in names]
    return [f"#### {TITLES.get(topic, topic)}", "", *([NOTES[topic], ""] if topic in NOTES else []),
            f"Time in us ({unit}; its time over sparsek's, median of the paired rounds: above 1, sparsek is faster):", "", *table(head, body), *refusals(rows), ""]


def lines_of(chosen):
    """Targets, and a table for each topic. chosen: [(stem, document)]."""
    rows = [(stem, document, result) for stem, document in chosen for result in document["results"]]
    on_gpu = any((document.get("device") or {}).get("kind") == "cuda" for _, document in chosen)
    found = [bar.row([result for _, _, result in rows]) for bar in (bars() if on_gpu else cpu_bars())]
    lines = ["The worst of each line, the median of the paired rounds:", ""] + table(["", "must be", "is", "at", "measured", "met"], found) + [""]
    topics = sorted({r.get("topic") for _, _, r in rows}, key=lambda t: (list(TITLES).index(t) if t in TITLES else len(TITLES), str(t)))
    for topic in topics:
        lines += topic_lines(topic, [row for row in rows if row[2].get("topic") == topic], *((1, "TFLOP/s") if on_gpu else (1000, "GFLOP/s")))
    return lines[:-1]
