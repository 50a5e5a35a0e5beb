"""The GPU's figures in README.md, between two marks."""
from page.results import Trouble, ours_of, ratio_over_ours
from page.tables import is_of_the_eleven, table

BEGIN, END = "<!-- made by bench/performance.py -->", "<!-- until here -->"
GROUPS = ((4096, 4096, 0.125), (4096, 4096, 0.5), (8192, 8192, 0.125), (4096, 512, 0.125))


def found(result, name):
    for c in result["candidates"]:
        if c["name"] == name and c["median_us"]:
            return c
    return None


def joined(figures):
    """With slashes; one figure where all are the same."""
    return figures[0] if len(set(figures)) == 1 else " / ".join(figures)


def rate(c):
    return "-" if c is None else f"{c['tflops']:.0f}"


def part(result, name):
    over = ratio_over_ours(result, found(result, name)) if found(result, name) else None
    return f"{1 / over:.2f}" if over else "-"


def at(results, m, n, density):
    chosen = [r for r in results if (r["problem"]["m"], r["problem"]["n"]) == (m, n) and abs(r["problem"]["density"] - density) < 0.01]
    return sorted(chosen, key=lambda r: r["problem"]["block_rows"])


def two_to_four(results):
    """A sentence for each size at 50 %."""
    said = []
    for m in (4096, 8192):
        rows = [r for r in at(results, m, m, 0.5) if found(r, "cusparselt_2to4")]
        if rows:
            times = [found(r, "cusparselt_2to4")["median_us"] for r in rows]
            low, high = f"{min(times):.0f}", f"{max(times):.0f}"
            ours = [f"{ours_of(r)['median_us']:.0f} with blocks of {r['problem']['block_rows']}" for r in rows]
            said.append(f"at {m}^3 it takes {low if low == high else f'{low} to {high}'} us, sparsek {', '.join(ours)}")
    return "2:4 sparsity through cuSPARSELt beside sparsek at 50 %: " + "; ".join(said) + "." if said else ""


def block(files, stem="gpu-h200-peers"):
    """None without such a file."""
    results = [r for name, _, document in files if name == stem for r in document["results"] if r.get("topic", "peers") == "peers" and r["problem"]["cache"] == "cold"]
    rows = []
    for m, n, density in GROUPS:
        group = [r for r in at(results, m, n, density) if is_of_the_eleven(r["problem"])]
        if group:
            blocks = [str(r["problem"]["block_rows"]) for r in group]
            rows.append([f"{m}, {n}, {density * 100:g} %", joined(blocks), joined([rate(ours_of(r)) for r in group]),
                         joined([rate(found(r, "triton_tuned")) for r in group]), joined([rate(found(r, "cusparse_bsr")) for r in group]),
                         joined([part(r, "cublas_dense") for r in group])])
    if not rows:
        return None
    head = ["M = K, N, stored", "block", "sparsek", "Triton tuned", "cuSPARSE BSR", "sparsek's time over dense cuBLAS's"]
    last = two_to_four(results)
    return "\n".join(table(head, rows) + (["", last] if last else []))


def refreshed(text, files):
    """README's text with the figures of these files."""
    made = block(files)
    if made is None:
        return text
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise Trouble(f"README.md: the marks {BEGIN} and {END} must be there once each")
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n" + made + "\n" + END + rest.split(END)[1]
