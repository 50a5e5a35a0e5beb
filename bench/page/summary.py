"""docs/performance.md itself: how to read it, the charts, a table an operation, what is not met; the devices' pages stand behind it."""
import math
import textwrap

from page import charts, dense
from page.cases import ATTENTION_GROUPS, ATTENTION_PEERS, GRADIENT_PEERS, attention_cases, fastest_dense, is_plain
from page.results import device_of, digits, ours_of, ratio_over_ours
from page.processors import NOTE as PROCESSORS_NOTE, processors
from page.tables import table

INTRO = """# Performance

Made by `python3 bench/performance.py` from the runs in [bench/results](../bench/results/README.md); do not edit.
"""
READING = """## How to read it

- A time is the median of many runs. A ratio is the median over alternated rounds: in each round all contestants of a row ran in one
  process on the same data.
- "Its time over sparsek's": above 1x sparsek is faster, below 1x the other is.
- Rates count stored blocks only, for every contestant, the dense ones too. A dense product computes all blocks, so its rate on stored
  blocks is low by nature.
- *Cold* means that operands rotate through more memory than the last cache holds. *Warm* means that the same operands are used again.
- sparsek's row is what its tuner chose. On a CPU that may be a vendor's product of single blocks (`mkl_blocks`, `libxsmm_blocks`).
- A device's name is the first two words of its files: `emr` is Intel's Emerald Rapids, `clx` Cascade Lake, `xeon` a Xeon that does not
  tell its model; `zen3` to `zen5` are AMD's EPYC. [Devices](#devices) has what each says of itself.
- Each table here is a selection. The device's page has every row, every contestant, the command, the commit, clocks and power.
"""
CHARTS = (("spmm", "SpMM on one H200", "Float16, uniform patterns, cold. Where half of the blocks are stored, a dense product and 2:4 sparsity compete."),
          ("attention", "Attention on one H200", "Bfloat16, forward. cuDNN takes no masks of blocks."),
          ("cpu", "CPUs", "Beside MKL's BSR and the fastest dense library of each race. A mask of blocks is one of elements to PyTorch."))


def device_order(device):
    """H200, then H100, then other GPUs, then processors."""
    return (device != "gpu-h200", device != "gpu-h100", not device.startswith("gpu"), device)


def wrapped(text, width=140):
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def contents(devices, sections):
    links = [f"[{title}](#{title.lower().replace(' ', '-')})" for title in ["How to read it", "Charts", *sections]]
    return [*wrapped("On this page: " + ", ".join(links) + "."), "",
            *wrapped("Every measurement, by device: " + ", ".join(page(name) for name in devices) + ".")]


def span(values, suffix="x"):
    if not values:
        return "-"
    low, high = f"{digits(min(values))}{suffix}", f"{digits(max(values))}{suffix}"
    return low if low == high else f"{low} to {high}"


def page(device):
    return f"[{device}](performance/{device}.md)"


# ------------------------------------------------------------------------------------------------ a table an operation

def found(result, name):
    return next((c for c in result["candidates"] if c["name"] == name and c["median_us"]), None)


def joined(figures):
    """With slashes; one figure where all are the same."""
    return figures[0] if len(set(figures)) == 1 else " / ".join(figures)


def over_each(group, names):
    """Of each result: the time over ours of the first of `names` that ran; joined with slashes."""
    cells = []
    for r in group:
        ratios = [ratio_over_ours(r, found(r, name)) for name in names if found(r, name)]
        cells.append(f"{digits(ratios[0])}x" if ratios and ratios[0] else "-")
    return joined(cells)


def over_each_dense(group):
    """Of each result: the time over ours of the fastest dense contestant; joined with slashes."""
    found = [fastest_dense(r) for r in group]
    return joined([f"{digits(one[1])}x" if one else "-" for one in found])


def by_size(results):
    """Groups that differ in the block alone, as (label, results)."""
    groups = {}
    for r in results:
        p = r["problem"]
        key = (p["m"], p["k"], p["n"], p["dtype"], p["cache"], round(p["density"] * 20))
        groups.setdefault(key, []).append(r)
    ordered = sorted(groups.items(), key=lambda one: (one[0][5], one[0][0], -one[0][2]))
    return [(f"{m} x {k} x {n}, {dtype}, {cache}, {digits(100 * sorted(group, key=lambda r: r['problem']['block_rows'])[0]['problem']['density'])} %",
             sorted(group, key=lambda r: r["problem"]["block_rows"])) for (m, k, n, dtype, cache, _), group in ordered]


def product_rows(files, device, wanted, columns):
    results = [r for stem, kind, document in files if kind == "race" and device_of(stem) == device for r in document["results"] if ours_of(r) and wanted(r)]
    scale = 1 if device.startswith("gpu") else 1000
    return [[page(device), label, joined([str(r["problem"]["block_rows"]) for r in group]), joined([digits(ours_of(r)["median_us"]) for r in group]),
             joined([digits(ours_of(r)["tflops"] * scale) for r in group]), *(column(group) for column in columns)] for label, group in by_size(results)
            if any(column(group) != "-" for column in columns)]


def is_spmm(r):
    p = r["problem"]
    plain = is_plain(r) and p["layout_b"] == "row" and p["trans_a"] == "n" and p["dtype"] in ("f16", "f32")
    return plain and "pattern" in p and p["pattern"] == "uniform" or r.get("topic") == "decode" and p["cache"] == "cold"


def spmm(files, devices):
    columns = [over_each_dense, lambda g: over_each(g, ("triton_tuned",)), lambda g: over_each(g, ("cusparse_bsr", "mkl_bsr"))]
    rows = [row for device in devices for row in product_rows(files, device, is_spmm, columns)]
    return table(["device", "M x K x N, stored", "block", "sparsek, us", "TFLOP/s (CPU: GFLOP/s)", "the fastest dense over ours", "PyTorch's Triton, tuned, over ours",
                  "cuSPARSE's or MKL's BSR over ours"], rows) if rows else []


def sddmm(files, devices):
    columns = [over_each_dense, lambda g: over_each(g, ("torch_sampled",))]
    rows = [row for device in devices for row in product_rows(files, device, lambda r: r["problem"]["op"] == "sddmm" and r.get("topic") in ("sddmm", None), columns)]
    return table(["device", "M x K x N, stored", "block", "sparsek, us", "TFLOP/s (CPU: GFLOP/s)", "the fastest dense over ours", "PyTorch's `sampled_addmm` over ours"],
                 rows) if rows else []


def summed(device, what, other, ratios):
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return [page(device), what, str(len(ratios)), other, f"{digits(mean)}x", span(ratios)]


SUMMED = ["device", "what", "problems", "beside", "geometric mean of its time over ours", "least to most"]


def gemm(files, devices):
    rows = []
    for device in devices:
        groups = {}
        for stem, kind, document in files:
            for r in document["results"] if kind == "dense" and device_of(stem) == device else []:
                p, ours = r["problem"], ours_of(r)
                what = dense.TITLES[r.get("topic")] if r.get("topic") in dense.TITLES and r.get("topic") else "Dense products"
                for c in r["candidates"] if ours and r.get("topic") != "spmm-epilogue" else []:
                    if c["name"] == "without" or c is ours or not c["median_us"] or c["kind"] not in ("vendor", "peer", "dense"):
                        continue
                    ratio = ratio_over_ours(r, c)
                    if ratio:
                        groups.setdefault((f"{what}, {p['dtype']}", c["name"]), []).append(ratio)
        rows += [summed(device, what, f"`{other}`", ratios) for (what, other), ratios in groups.items()]
    return table(SUMMED, rows) if rows else []


def attention(files, devices, of="attention", peers=ATTENTION_PEERS, by_row=False):
    rows = []
    for device in devices:
        groups = {}
        for stem, kind, _ in files:
            for case in attention_cases(files, stem, {}, None, of, peers) if kind == of and device_of(stem) == device else []:
                for name, _, over in case["others"]:
                    groups.setdefault((f"{case['dtype']}, `{case['row']}`" if by_row else case["dtype"], ATTENTION_GROUPS.index(case["group"]), name), []).append(over)
        rows += [summed(device, f"{ATTENTION_GROUPS[group]}, {dtype}", name, ratios) for (dtype, group, name), ratios in sorted(groups.items())]
    return table(SUMMED, rows) if rows else []


def gradients(files, devices):
    return attention(files, devices, "attention_backward", GRADIENT_PEERS, by_row=True)


LAYER_KINDS = {"forward": ("SparseLinear", "nn.Linear", "a layer, forward"), "training": ("SparseLinear", "nn.Linear", "a layer, forward and backward"),
               "mlp": ("sparse", "dense", "a gated MLP")}


def layers(files, devices):
    rows = []
    for device in devices:
        for stem, kind, document in files:
            for case in document["layers"] if kind == "layers" and device_of(stem) == device else []:
                ours, theirs, what = LAYER_KINDS.get(case["what"], (None, None, None))
                measured = {row["name"]: row for row in case["rows"]}
                if ours in measured and measured[ours]["over"].get(theirs):
                    rows.append([page(device), f"{what}, {case['inputs']} to {case['outputs']}, {case['dtype']}, {case['tokens']} token{'s' if case['tokens'] > 1 else ''}, {case['density'] * 100:g} % of blocks of "
                                 f"{case['block']}", digits(measured[ours]["median_us"]), digits(measured[theirs]["median_us"]), f"{digits(1 / measured[ours]['over'][theirs])}x"])
    return table(["device", "what", "sparsek, us", "PyTorch dense, us", "speed over dense"], rows) if rows else []


OPERATIONS = (("Processors at a glance", processors, "\n".join(wrapped(PROCESSORS_NOTE))),
              ("SpMM", spmm, "A sparse matrix times a dense one. Rows in bf16 are a linear layer for N tokens (decoding). A slash parts block sizes, and their numbers."),
              ("SDDMM", sddmm, "A product of dense matrices at the stored blocks: the gradient of a sparse weight."),
              ("GEMM", gemm, "Dense products, in groups too."),
              ("Attention", attention, "Forward. Depth 64 to 256; each case stands on the device's page."),
              ("Gradients of attention", gradients, "Of the kernel that ran; each case stands on the device's page."),
              ("Layers in PyTorch", layers, "`sa.SparseLinear` beside `nn.Linear`, calls in a row, the host's time included."))


# ------------------------------------------------------------------------------------------------ what is not met

def unmet(pages):
    """Rows of the devices' tables of targets that say no: [device, what, must be, is, at]."""
    rows = []
    for device, text in pages.items():
        for line in text.split("\n"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if line.startswith("|") and cells[-1].rstrip(" |") == "**no**":
                what, must, value, place = (cells[0], cells[1], cells[2], cells[3]) if len(cells) == 6 else (cells[0], cells[2], cells[3], cells[1])
                rows.append([page(device), what, must, value, place])
    return rows


def document_of(files, pages):
    """The page's text. pages: {device: its page's text}, in order."""
    devices = list(pages)
    operations = [(title, body(files, devices), note) for title, body, note in OPERATIONS]
    operations = [(title, lines, note) for title, lines, note in operations if lines]
    drawn = [(name, title, note) for name, title, note in CHARTS if f"{name}-light.svg" in charts.charts_of(files)]
    lines = [INTRO.rstrip(), "", *contents(devices, [title for title, _, _ in operations] + ["What is not met", "Devices"]), "", READING.rstrip(), "", "## Charts", ""]
    if any(charts.overview(files)):
        lines += charts.shown("overview", charts.overview_words(files), "figures") + ["", "Shorter is better. A bar with a notch is cut off; its number is not.", ""]
    for name, title, note in drawn:
        lines += [f"### {title}", "", note, ""] + charts.shown(name, f"{title}: the tables below have the numbers", "figures") + [""]
    for title, body, note in operations:
        lines += [f"## {title}", "", note, "", *body, ""]
    rows = unmet(pages)
    lines += ["## What is not met", "", "The aims that the project set itself, where a device's page says **no**. The bars for GPUs were set for an H200.", ""]
    lines += table(["device", "what", "must be", "is", "worst at"], rows) if rows else ["Nothing."]
    lines += ["", "## Devices", "", "A page each, with every table, the roofline, the commands and the commits:", ""]
    lines += [f"- {page(device)}: {next((line for line in text.split(chr(10))[1:] if line and not line.startswith(('#', '!', '['))), '')}" for device, text in pages.items()]
    return "\n".join(lines).rstrip() + "\n"
