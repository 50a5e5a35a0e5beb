#!/usr/bin/env python3
"""Writes docs/performance.md, a page for each device in docs/performance/, the pictures in docs/figures/ and README.md's chart from the committed
runs (bench/runs.py); every number comes from one of them.

    bench/performance.py              write all (the rooflines need matplotlib)
    bench/performance.py --check      fail if anything is older than the results (needs Python alone)

matplotlib: Debian's or Ubuntu's python3-matplotlib, or `python3 -m venv build/venv && build/venv/bin/pip install matplotlib` and then
`build/venv/bin/python bench/performance.py`.

Runs are told apart by what is in them: races (`sparsek bench`, `bench/peers.py`), regret, host costs (`bench_overhead`), fresh topologies (`bench_topologies`), roofs (`bench/roofs.py`), layers and
tests of the Python package (`bench/python/layers.py`, `tests.py`), two builds (`bench/against.py`), layers of the crate burn-sparse (`bench/burn.py`), bfloat16 beside dense products (`bench/amx.py`). Races
whose names differ only in a last `-b16`, `-2` are one group and one table; the first two words of a name are the device's (`gpu-h200-...`).
"""
import argparse
import math
import os
import pathlib
import re
import sys

from page import burn, charts, dense, layers, readme, summary
from page.cases import ATTENTION_PEERS, GRADIENT_PEERS
from page.picture import draw, figure_hash
from page.results import Trouble, device_of, digits, race_groups, read
from page.tables import device_line, origins, table
from page.targets import targets_lines
from page.topics import group_lines

ROOT = pathlib.Path(__file__).resolve().parent.parent

INTRO = """Every measurement on this device; [performance.md](../performance.md) has a selection and says how to read it.
Made by `python3 bench/performance.py` from the runs in [bench/results](../../bench/results/README.md); do not edit.

- Rates count stored blocks only, for every contestant, the dense ones too. Dense-equivalent rates stand apart.
- Contestants of one row ran in one process on the same data, in alternated rounds. A ratio is the median over the rounds; a contestant far
  behind sits some out.
- A clock or a power is what the driver said right after a problem's rounds. A mask under "slowed down by" names the driver's reasons
  (0x4: the power limit).
- Of a file that was made in several runs the command is the last run's. A commit that ends in `-dirty` had changes that were not committed.
"""

ROOFLINE = ("Rates on stored blocks over what a product must move at least: stored values, B and D once each. The roof is the fastest dense product of these files.",
            "Left: rates on stored blocks over what a product must move at least (stored values, B and D once each). Right: over what it reads from L2 if every block "
            "row\nfetches its own columns of B; a kernel that lets block rows share them can pass that line. Lines stand where bench/roofs.py measured them.")
ROOF_NAMES = (("hbm_read_gbps", "memory, read (a sum), GB/s"), ("hbm_copy_gbps", "memory, copy (read and written bytes), GB/s"), ("l2_read_gbps", "L2, read, GB/s"),
              ("dense_f16_tflops", "dense f16 product, 8192^3, TFLOP/s"), ("graph_node_us", "one more tiny kernel in a graph, us"))
HOST_NAMES = (("pattern_us", "a pattern of {nnzb} blocks"), ("plan_from_store_us", "a plan from a warm store"),
              ("plan_one_column_from_store_us", "the same for N = 1"), ("launch_us", "launching an empty kernel through the driver"),
              ("run_over_launch_us", "a run of {choice}, over that launch"),
              ("run_one_column_over_launch_us", "`spk_plan_run_spmm` of {choice_one_column}, over that launch"), ("matmul_over_run_us", "`spk_compute_spmm` on a known pattern, "
              "over `spk_plan_run_spmm`"), ("empty_matmul_us", "`spk_compute_spmm` of an empty product"), ("fresh_context_first_product_us", "a fresh context and its first product"),
              ("fresh_pattern_and_plan_us", "a fresh pattern and plan of a known class (of {fresh_patterns}; {tuned_again} tuned again)"),
              ("masked_plan_from_store_us", "a plan of attention under a mask that is on the device, from a warm store"),
              ("masked_plan_again_us", "the same within a second of the last one"),
              ("product_us", "that attention, 4096 x 4096, 8 heads, 25 % of blocks of 64, by {choice_of_mask}"), ("with_new_mask_us", "the same with another mask at every step, pattern and plan included"),
              ("new_mask_over_product_us", "the second over the first"))


def section(device, files):
    races = race_groups(files).get(device, {})
    mine = [(stem, kind, document) for stem, kind, document in files if device_of(stem) == device]
    lines = ["", f"## {device}", "", device_line([document for _, _, document in mine])]
    if races:
        lines += ["", f"![Roofline of {device}](../figures/roofline-{device}.svg)", "", ROOFLINE[device.startswith("gpu")], "",
                  f"<!-- figure data {figure_hash(device, files)} -->"]
    for group, members in sorted(races.items()):
        is_gpu = any((d.get("device") or {}).get("kind") == "cuda" for _, d in members)
        targets = targets_lines(members, [(stem, document) for stem, kind, document in mine if kind == "regret"])
        lines += ["", *targets, f"### {group}", ""] + group_lines(members, *((1, "TFLOP/s") if is_gpu else (1000, "GFLOP/s"))) + [""] + origins(members)
    python_layers = [(stem, document) for stem, kind, document in mine if kind == "layers"]
    lines += [""] + layers.lines_of(python_layers) if python_layers else []
    for kind, title, body in (("dense", "Dense products beside vendors'", dense.lines_of), ("regret", "Regret: what was chosen over the best of an exhaustive search", regret_table), ("host", "Host costs", host_table), ("against", "Two builds beside each other", against_table),
                              ("topologies", "Fresh topologies of a mixture of experts, us", topologies_table), ("roofs", "Roofs", roofs_table), ("attention", "Attention", attention_table), ("attention_backward", "Gradients of attention", gradients_table), ("masks", "Attention under masks of blocks", masks_table), ("properties", "Attention: what a check of single runs does not see", properties_table),
                              ("burn", "Layers of the crate burn-sparse on Flex", burn.lines_of), ("amx", "SpMM in bfloat16 beside PyTorch's dense product", beside_dense_table),
                              ("training", "The products of a training step beside SpMM", training_table),
                              ("tests", "Tests of the Python package", tests_table), ("other", "Other results", lambda _: [])):
        chosen = [(stem, document) for stem, of, document in mine if of == kind]
        if chosen:
            body_lines = body(chosen)
            lines += ["", f"### {title}", ""] + (body_lines + [""] if body_lines else []) + origins(chosen)
    return lines


def percent(value):
    return f"{digits(value * 100)} %"


def regret_table(chosen):
    return table(["file", "problems", "seed", "median", "95th percentile", "worst", "candidates a problem", "tuning, s in all"],
                 [[stem, str(d["problems"]), str(d["seed"]), percent(d["median_regret"]), percent(d["p95_regret"]), percent(d["worst_regret"]),
                   digits(d["candidates_per_problem"]) + (f", the best of the {d['among']} that the model prefers" if "among" in d else ""), digits(d["tuning_s"])]
                  for stem, d in chosen])


def host_table(chosen):
    return table(["file", "what", "us"], [[stem, name.format(**d), digits(d[key])] for stem, d in chosen for key, name in HOST_NAMES if key in d])


AGAINST_NAMES = {"pattern_us": "a pattern of 4096 blocks, us", "plan_from_store_us": "a plan from a warm store, us",
                 "matmul_over_run_us": "`spk_compute_spmm` on a known pattern, over `spk_plan_run_spmm`, us", "empty_matmul_us": "`spk_compute_spmm` of an empty product, us",
                 "fresh_context_first_product_us": "a fresh context and its first product, us", "fresh_pattern_and_plan_us": "a fresh pattern and plan of a known class, us",
                 "check_cases_per_s": "`sparsek check`, SpMM, cases a second (more is better)", "sa_matmul_us": "`sa.matmul`, 64 x 64 times 64 x 8, us",
                 "at_operator_us": "`A @ x`, the same, us", "sparse_linear_us": "`sa.SparseLinear`, the same, us"}


def against_table(chosen):
    """What bench/against.py found: medians over the rounds, and the ratio of each round's pair."""
    return table(["file", "what", "of commit", "before", "now", "now over before (least to most)"],
                 [[stem, AGAINST_NAMES.get(name, name), f"`{d['commit']}` against `{d['against']}`", digits(f["old"], 4), digits(f["new"], 4),
                   f"{digits(f['ratio'])}x ({digits(f['least'])} to {digits(f['most'])})"] for stem, d in chosen for name, f in d["figures"].items()])


def properties_table(chosen):
    """What tests/device/attention.py found: how many runs differed from the first, how far merged halves of the keys are off, and O and LSE from float32."""
    return table(["what", "problem", "runs", "differ", "off: LSE, O"],
                 [[r["what"], r["problem"], str(r.get("runs", 1)), str(r["differ"]), f"{digits(r['lse_off'])}, {digits(r['o_off'])}" if "lse_off" in r else digits(r["off"]) if "off" in r else "-"]
                  for _, d in chosen for r in d["results"]])


def masks_table(chosen):
    """What bench/masks.py found: medians, and the masked problem's time over the full one's."""
    return table(["type", "heads, queries, keys, depth", "block", "kept", "masked, us", "full, us", "masked over full", "of the least times"],
                 [[r["dtype"], ", ".join(str(r[name]) for name in ("heads", "queries", "keys", "depth")), str(r["block"]), percent(r["kept"]), digits(r["us"]),
                   digits(r["full_us"]), f"{digits(r['ratio'])}x", f"{digits(r['least_ratio'])}x"] for _, d in chosen for r in d["masks"]])


def attention_what(r):
    """A case of bench/attention_gpu.py or bench/attention.py in words."""
    words = ([r["dtype"]] if "dtype" in r else []) + [f"{r['queries']} x {r['keys']}" if r["queries"] != r["keys"] else str(r["queries"]), f"depth {r['depth']}" + (f" and {r['depth_v']}" if r.get("depth_v", r["depth"]) != r["depth"] else ""),
             f"{r['heads']}/{r['heads_kv']} heads" + (f", {r['batch']} items" if r["batch"] > 1 else "")]
    if r["block"]:
        words.append(f"blocks of {r['block']}, " + ("uneven rows" if r["spread"] else percent(r["kept"] * r["block"] / r["keys"])) +
                     {"shared": ", three of four as the row before", "hubs": ", columns by a power law"}.get(r.get("drawn"), "") +
                     (", a list for each group of heads" if r["lists"] < r["heads"] else ""))
    return ", ".join(words + (["causal"] if r["causal"] else []) + ([f"window of {r['window']}"] if r["window"] else []))


def attention_table(chosen):
    """What bench/attention_gpu.py and bench/attention.py found: medians, the rate on the pairs that the mask keeps, each peer's and its time over ours where it takes part."""
    rows = [r for _, d in chosen for r in d["attention"]]
    peers, gpu = [name for name in ATTENTION_PEERS if any(name in r["us"] for r in rows)], "gflops" not in rows[0]
    how = "bf16; TFLOP/s counts the pairs that the mask keeps. The cost model chose, nothing was tuned. " if gpu else "GFLOP/s counts the pairs that the mask keeps. "
    return [how + ("cuDNN takes no masks of blocks." if "cudnn" in peers else "A mask of blocks is one of elements to PyTorch."), ""] + raced(rows, ATTENTION_PEERS, "error over the largest V")


def gradients_table(chosen):
    """What bench/attention_backward_gpu.py found."""
    return ["bf16; TFLOP/s counts five products of each pair that the mask keeps.", ""] + raced([r for _, d in chosen for r in d["attention_backward"]], GRADIENT_PEERS, "error over the largest gradient")


def raced(rows, known, error):
    peers, unit = [name for name in known if any(name in r["us"] for r in rows)], "gflops" if "gflops" in rows[0] else "tflops"
    rate = {"gflops": "GFLOP/s", "tflops": "TFLOP/s"}[unit]

    def ratio(r, name):
        ratios = r.get("ratios", {"cudnn": r.get("ratio")}) # schema 1 had cuDNN alone
        return f"{digits(ratios[name])}x" if ratios.get(name) else "-"
    return table(
        ["queries, keys", "sparsek, us", rate, *(head for name in peers for head in (f"{known[name]}, {rate}", "its time over ours")), error, "which ran"],
        [[attention_what(r), digits(r["us"].get("ours")), digits(r[unit].get("ours")), *(text for name in peers for text in (digits(r[unit].get(name)), ratio(r, name))),
          f"{r['errors'].get('ours', math.nan) if 'errors' in r else r['error']:.1g}", f"`{r['chosen']}`"] for r in rows])


def beside_dense_table(chosen):
    """What bench/amx.py found: medians of bursts in turn, and our rate on stored blocks over PyTorch's dense rate."""
    rows = [r for _, d in chosen for r in d["amx"]]
    others = [name for name in rows[0]["us"] if name not in ("ours", "pytorch")]
    return ["GFLOP/s counts stored blocks for sparsek and all of A for PyTorch. The aim is a rate of 0.65 of PyTorch's.", ""] + table(
        ["M = K, N", "block", "kept", "sparsek, us", "GFLOP/s", "PyTorch, us", "GFLOP/s", *(f"`{name}`, us" for name in others), "our rate over PyTorch's (least to most)", "which ran"],
        [[f"{r['m']}, {r['n']}", str(r["block"]), percent(r["density"]), digits(r["us"]["ours"]), digits(r["gflops"]["ours"]), digits(r["us"]["pytorch"]), digits(r["gflops"]["pytorch"]),
          *(digits(r["us"].get(name)) for name in others), "{}x ({} to {})".format(*(digits(r["rate_over_dense"]["ours"][key]) for key in ("median", "least", "most"))), f"`{r['chosen']['ours']}`"]
         for r in rows])


def training_table(chosen):
    """What bench/training.py found: own rows in turn, each with as much work as the others."""
    rows = [r for _, d in chosen for r in d["training"]]
    names = (("transposed", "A transposed"), ("sddmm", "SDDMM"))
    return table(["rows and columns, others", "block", "kept", "SpMM, us", "GFLOP/s", *(text for _, title in names for text in (f"{title}, us", "its rate over SpMM's (least to most)")), "which ran"],
                 [[f"{r['rows']}, {r['columns']}", str(r["block"]), percent(r["density"]), digits(r["us"]["spmm"]), digits(r["gflops"]["spmm"]),
                   *(text for name, _ in names for text in (digits(r["us"][name]), "{} ({} to {})".format(*(digits(r["rate_over_spmm"][name][key]) for key in ("median", "least", "most"))))),
                   ", ".join(f"`{choice}`" for choice in r["chosen"].values())] for r in rows])


def topologies_table(chosen):
    """The bar: 100 us for the pattern and as much for the plan, and 50 ns a block each; what is beyond the blocks' part is the sum of both."""
    return table(["indices", "experts", "steps", "mean blocks", "pattern", "plan", "both, without 50 ns a block: median", "99 %", "most", "tuned after warm-up"],
                 [[d["indices"], str(d["experts"]), str(d["steps"]), str(d["mean_blocks"]), digits(d["pattern_us"]), digits(d["plan_us"]),
                   *(digits(d["beyond_50ns_a_block_us"][key]) for key in ("median", "p99", "most")), str(d["tuned_after_warm_up"])] for _, d in chosen])


def roofs_table(chosen):
    return table(["file", "what", "measured"], [[stem, name, digits(d["roofs"].get(key), 4)] for stem, d in chosen for key, name in ROOF_NAMES])


def tests_table(chosen):
    return table(["file", "passed", "failed", "skipped", "seconds"], [[stem, *(str(d[key]) for key in ("passed", "failed", "skipped")), digits(d["seconds"])]
                                                                      for stem, d in chosen])


def chapters(lines):
    """The headings of a device's page, and links to them."""
    titles = [line[3:] for line in lines if line.startswith("## ")]
    return [*summary.wrapped("On this page: " + ", ".join(f"[{title}](#{anchor(title)})" for title in titles) + "."), ""] if titles else []


def anchor(title):
    """The name that GitHub and the site give to a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def pages_of(files):
    """{device: the text of its page}, the H200's first."""
    pages = {}
    for device in sorted({device_of(stem) for stem, _, _ in files}, key=summary.device_order):
        lines = [line[1:] if line.startswith("##") else line for line in section(device, files)[1:]]
        pages[device] = "\n".join(lines[:3] + [""] + chapters(lines) + [INTRO.rstrip()] + lines[3:]).rstrip() + "\n"
    return pages


def texts_of(files, out):
    """{path: text} of every file that is text: the page, the devices' pages, the charts."""
    pages = pages_of(files)
    texts = {out: summary.document_of(files, pages)}
    texts.update({out.parent / "performance" / f"{device}.md": text for device, text in pages.items()})
    texts.update({out.parent / "figures" / name: text for name, text in charts.charts_of(files).items()})
    return texts


def leftovers(texts, out):
    """Pages of devices that have no results any more."""
    return [path for path in sorted((out.parent / "performance").glob("*.md")) if path not in texts]


def picture_of(figures, device):
    return figures / f"roofline-{device}.svg"


def shows(figures, device, files):
    """Whether the picture is there and has these results."""
    picture = picture_of(figures, device)
    return picture.exists() and f"data {figure_hash(device, files)}" in picture.read_text(encoding="utf-8")


def check(texts, files, out):
    again = "run `python3 bench/performance.py` and commit what it writes"
    for path, text in texts.items():
        if not path.exists():
            return f"{path} is missing: {again}"
        if path.read_text(encoding="utf-8") != text:
            return f"{path} is not what the results give: {again}"
    for path in leftovers(texts, out):
        return f"{path} has no results: {again}"
    figures = out.parent / "figures"
    for device in race_groups(files):
        if not shows(figures, device, files):
            return f"{picture_of(figures, device)} is missing or does not show the results: {again}"
    return None


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the document or a picture is stale")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "performance.md", help="the devices' pages go to performance/ beside it, pictures to figures/")
    parser.add_argument("--readme", type=pathlib.Path, help="whose chart to write, too (default: README.md if --out is not given)")
    parser.add_argument("--no-figures", dest="figures", action="store_false", help="all but the rooflines")
    options = parser.parse_args()
    figures = options.out.parent / "figures"
    if options.readme is None and options.out == ROOT / "docs" / "performance.md":
        options.readme = ROOT / "README.md"
    try:
        files = read(options.results)
        if not files:
            raise Trouble(f"{options.results}: no run is there")
        texts = texts_of(files, options.out)
        front = readme.refreshed(options.readme.read_text(encoding="utf-8"), files) if options.readme else None
    except Trouble as problem:
        print(f"performance.py: {problem}", file=sys.stderr)
        return 2
    if options.check:
        why = check(texts, files, options.out)
        if not why and options.readme and front != options.readme.read_text(encoding="utf-8"):
            why = f"{options.readme} shows another chart than the results give: run `python3 bench/performance.py` and commit what it writes"
        if why:
            print(f"performance.py: {why}", file=sys.stderr)
        return 1 if why else 0
    stale = [device for device in race_groups(files) if not shows(figures, device, files)]
    if options.figures and stale:
        try:
            import matplotlib
        except ImportError:
            print("performance.py: the rooflines need matplotlib: install python3-matplotlib, or run this with the Python of a virtual environment that has it (see "
                  "--help); --no-figures writes all but them. Nothing was written.", file=sys.stderr)
            return 2
        for device in stale:  # another matplotlib draws another file of the same picture: those that show the results stay
            draw(matplotlib, device, files, picture_of(figures, device))
    for path, text in texts.items():
        write(path, text)
    for path in leftovers(texts, options.out):
        path.unlink()
    if options.readme and front != options.readme.read_text(encoding="utf-8"):
        write(options.readme, front)
    return 0


if __name__ == "__main__":
    sys.exit(main())
