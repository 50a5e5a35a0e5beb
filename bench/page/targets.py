"""What the project set out to reach on a GPU, beside what the results say."""
import math

from page.results import digits, group_of, ours_of, over_dense_rate, ratio_over_ours
from page.tables import is_of_the_eleven, table
from page.topics import speed


class Bar:
    """A line: a name, what must hold, and a function that gives [(figure, where it was measured)] of the results; `of`: how many there are when all is measured."""

    def __init__(self, name, least, figures, most=None, mean=False, of=None):
        self.name, self.least, self.most, self.figures, self.mean, self.of = name, least, most, figures, mean, of

    def row(self, results):
        found = [(value, label) for value, label in self.figures(results) if value]
        must = f"<= {self.most:g}x" if self.most else f">= {self.least:g}x"
        if not found:
            return [self.name, must, "not measured", "-", "0", "-"]
        value, label = (math.exp(sum(math.log(v) for v, _ in found) / len(found)), "the geometric mean") if self.mean else (max(found) if self.most else min(found))
        part = self.of is not None and len(found) < self.of
        met = "**no**" if (value > self.most if self.most else value < self.least) else "so far" if part else "yes"
        return [self.name, must, f"{digits(value, 4)}x", label, f"{len(found)} of {self.of}" if part else str(len(found)), met]


def ratios(results, topic, name, wanted=lambda p: True):
    """Of each result of a topic: the contestant's time over ours, and where."""
    for r in results:
        if (r.get("topic") or "peers") == topic and wanted(r["problem"]):
            for c in r["candidates"]:
                if c["name"] == name:
                    yield ratio_over_ours(r, c), r["case"]


def speeds(results, topic, names):
    for r in results:
        if r.get("topic") == topic:
            for c in r["candidates"]:
                if names is None and c["name"] != "sparsek" or names and c["name"] in names:
                    yield speed(r, c), f"{c['name']}, {r['case']}"


def at(density=None, blocks=None, n=None, cache="cold", m=None):
    def wanted(p):
        return ((density is None or abs(p["density"] - density) < 0.01) and (blocks is None or p["block_rows"] in blocks) and (n is None or p["n"] == n) and
                p["cache"] == cache and (m is None or p["m"] == m))
    return wanted


def read_over(results):
    """Our time over the plain read's: the other way round than the rest."""
    for ratio, label in ratios(results, "decode", "plain_read", at(n=1)):
        yield (1 / ratio if ratio else None), label


def bars():
    lines = [Bar("Triton's time over ours, the eleven problems", 1.25, lambda rs: ratios(rs, "peers", "triton_tuned", is_of_the_eleven), mean=True),
             Bar("Triton's time over ours, the least of the eleven", 1.05, lambda rs: ratios(rs, "peers", "triton_tuned", is_of_the_eleven))]
    for block, least in ((128, 1.65), (64, 1.5), (32, 1.05)):
        lines.append(Bar(f"dense cuBLAS's time over ours, 4096^3, 50 %, block {block}", least,
                         lambda rs, block=block: ratios(rs, "peers", "cublas_dense", at(0.5, (block,), m=4096))))
    lines.append(Bar("2:4's time over ours, 50 %, blocks 64 and 128, 4096^3 and 8192^3", 1.0, lambda rs: ratios(rs, "peers", "cusparselt_2to4", at(0.5, (64, 128)))))
    for blocks, least in (((32,), 15), ((64, 128), 20)):
        lines.append(Bar(f"cuSPARSE BSR's time over ours, block {' and '.join(map(str, blocks))}", least,
                         lambda rs, blocks=blocks: ratios(rs, "peers", "cusparse_bsr", lambda p: is_of_the_eleven(p) and p["block_rows"] in blocks)))
    for cache in ("cold", "warm"):
        lines.append(Bar(f"Triton's time over ours, decoding, {cache}", 1.0, lambda rs, cache=cache: ratios(rs, "decode", "triton_tuned", at(cache=cache))))
    return lines + [
        Bar("our time over a plain read of the values, decoding, T = 1, cold", None, read_over, most=1.25),
        Bar("speed of bf16 and of B or D by columns over f16 by rows", 0.95, lambda rs: speeds(rs, "kinds", None)),
        Bar("speed on banded, window and causal patterns over uniform ones", 1.0, lambda rs: speeds(rs, "patterns", ("banded", "window", "causal"))),
        Bar("speed on power-law rows over even ones", 0.85, lambda rs: speeds(rs, "patterns", ("power-law",))),
        Bar("speed without `assume_finite` over with it, blocks 64 and 128", 0.97,
            lambda rs: [(v, label) for v, label in speeds(rs, "finite", None) if not label.endswith("-b32")])]


def regret_rows(regrets):
    rows = []
    for stem, document in regrets:
        for name, key, most in (("median", "median_regret", 0.01), ("95th percentile", "p95_regret", 0.05)):
            value = document[key]
            rows.append([f"regret of {document['problems']} unseen problems, {name}", f"<= {most * 100:g} %", f"{digits(value * 100)} %", stem, str(document["problems"]), "yes" if value <= most else "**no**"])
    return rows


def rates(results, wanted, name=None):
    """Our rate on stored blocks over a dense rate."""
    for r in results:
        if wanted(r["problem"]):
            p = r["problem"]
            yield over_dense_rate(r, name), r.get("case") or f"{'SDDMM' if p['op'] == 'sddmm' else 'A transposed'}, block {p['block_rows']}"


def training_bars():
    def of(op, block):
        return lambda p: p["op"] == op and p["block_rows"] == block

    lines = [Bar(f"SDDMM's rate on stored blocks over dense cuBLAS's on all, block {block}", least,
                 lambda rs, block=block: rates([r for r in rs if r["topic"] == "sddmm"], of("sddmm", block), "cublas_dense"), of=4)
             for block, least in ((128, 0.7), (64, 0.5), (32, 0.28))]
    lines += [Bar(f"time of the dense three products of a layer over ours, block {block}", least,
                  lambda rs, block=block: ratios(rs, "layer", "cublas_dense", of("layer", block)))
              for block, least in ((64, 4.5), (128, 5.5))]
    return lines + [
        Bar("a mixture of experts: time of a cuBLAS call for each expert over ours", 1.0, lambda rs: ratios(rs, "experts", "cublas_each"), of=8),
        Bar("a mixture of experts: time of `torch._grouped_mm` over ours", 0.9, lambda rs: ratios(rs, "experts", "grouped_mm"), of=8),
        Bar("speed with A transposed over A as it is, the eleven problems", 0.85, lambda rs: speeds(rs, "transposed", None), of=11)]


def over_the_better(results, wanted):
    """The time of dense cuBLAS or of the rows that are not made for small blocks, whichever is less, over ours."""
    for r in results:
        found = [ratio_over_ours(r, c) for c in r["candidates"] if c["name"] in ("cublas_dense", "without_small_rows") and c["status"] == "ok"]
        if r["topic"] == "small" and wanted(r["problem"]) and len(found) == 2:
            yield min(found), r["case"]


def small_bars():
    def is_tiny(p):
        return min(p["block_rows"], p["block_cols"]) < 8

    def is_wide(p):
        return p["compute"] == "tf32" or (p["dtype"] == "f64" and not is_tiny(p))

    triton = (("blocks of 16 and 32", 1.2, 1, 120, lambda p: p["block_rows"] in (16, 32) and p["pattern"] == "uniform" and p["layout_b"] == "row"),
              ("blocks of 64 and 128, at most 1024 columns", 1.15, 1.03, 36, lambda p: p["block_rows"] in (64, 128)),
              ("row lengths by a power law, blocks of 16 and 32", 1.2, None, 6, lambda p: p["pattern"] == "power-law"),
              ("clustered rows (banded), blocks of 16 and 32", 1.2, None, 6, lambda p: p["pattern"] == "banded" and not is_tiny(p)))
    before = (("blocks of 4x4, 3x3, 1x16 and 32x1", 1.3, 12, is_tiny), ("TF32 and f64, blocks of 16 and 32", 1.2, 8, is_wide))
    lines = []
    for what, mean, least, of, wanted in triton:
        lines.append(Bar(f"Triton's time over ours, {what}: mean", mean, lambda rs, wanted=wanted: ratios(rs, "small", "triton_tuned", wanted), mean=True, of=of))
        if least:
            lines.append(Bar(f"Triton's time over ours, {what}: least", least, lambda rs, wanted=wanted: ratios(rs, "small", "triton_tuned", wanted), of=of))
    lines.append(Bar("the better of dense cuBLAS and other rows over ours, blocks of 8: mean", 1.3, lambda rs: over_the_better(rs, at(blocks=(8,))), mean=True, of=15))
    lines.append(Bar("the same, at most 10 %: least", 1, lambda rs: over_the_better(rs, lambda p: p["block_rows"] == 8 and p["density"] < 0.11), of=10))
    for what, mean, of, wanted in before:
        lines.append(Bar(f"other rows' time over ours, {what}: mean", mean, lambda rs, wanted=wanted: ratios(rs, "small", "without_small_rows", wanted), mean=True, of=of))
    return lines


def cpu_bars():
    return [Bar(f"{what}: rate on stored blocks over the dense rate, blocks of 32 and more", 0.75,
                lambda rs, wanted=wanted: rates(rs, lambda p: wanted(p) and min(p["block_rows"], p["block_cols"]) >= 32))
            for what, wanted in (("SDDMM", lambda p: p["op"] == "sddmm"), ("A transposed", lambda p: p.get("trans_a") == "t"))]


def title_and_rows(group, results, regrets):
    """What the project set out to reach on what a group of files measured; none for other groups."""
    topics = {r.get("topic") for r in results}
    if "peers" in topics:
        return "Targets", [bar.row(results) for bar in bars()] + regret_rows(regrets)
    if "sddmm" in topics:
        return "Targets of training", [bar.row(results) for bar in training_bars()]
    if "small" in topics:
        return "Targets of small blocks and few columns", [row for row in (bar.row(results) for bar in small_bars()) if row[4] != "0"]
    if topics == {None} and all((d.get("device") or {}).get("kind") == "cpu" for _, d in group):
        return f"Targets of {group_of(group[0][0])}", [row for row in (bar.row(results) for bar in cpu_bars()) if row[4] != "0"]
    return None, []


def targets_lines(group, regrets):
    """For files that peers.py wrote with topics, and the CPU's races of what training needs."""
    results = [r for _, document in group for r in document["results"]]
    title, rows = title_and_rows(group, results, regrets) if all(ours_of(r) for r in results) else (None, [])
    if not rows:
        return []
    elsewhere = title == "Targets" and not any("h200" in name for name, _ in group)
    note = "The worst of each line, the median of the paired rounds" + ("; the bars were set for an H200:" if elsewhere else ":")
    return [f"### {title}", "", note, ""] + table(["", "must be", "is", "at", "measured", "met"], rows) + [""]
