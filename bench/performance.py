#!/usr/bin/env python3
"""Writes docs/performance.md and the roofline pictures in docs/figures/ from the files in bench/results/; every number comes from one of them.

    bench/performance.py              write both (the pictures need matplotlib)
    bench/performance.py --check      fail if the document or a picture is older than the results (needs Python alone)

matplotlib: Debian's or Ubuntu's python3-matplotlib, or `python3 -m venv build/venv && build/venv/bin/pip install matplotlib` and then
`build/venv/bin/python bench/performance.py`.

Files are told apart by what is in them: races (`sparsek bench`, `bench/peers.py`), regret, host costs (`bench_overhead`), roofs (`bench/roofs.py`). Races
whose names differ only in a last `-b16`, `-2` are one group and one table; the first two words of a name are the device's (`gpu-h200-...`).
"""
import argparse
import hashlib
import json
import math
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
ELEVEN = {(4096, 4096, d, b) for d in (0.125, 0.5) for b in (32, 64, 128)} | {(8192, 8192, 0.125, b) for b in (32, 64, 128)} | {
    (4096, 512, 0.125, b) for b in (64, 128)}
ELEVEN_NAME = "f16, uniform, cold: 4096^3 at 12.5 % and 50 % and 8192^3 at 12.5 % with blocks 32, 64, 128; N = 512 with blocks 64, 128"
KINDS = ("own", "peer", "vendor", "dense", "reference")


class Trouble(Exception):
    pass


# ------------------------------------------------------------------------------------------------ files

def kind_of(document):
    results = document.get("results")
    if "median_regret" in document:
        return "regret"
    if "plan_from_store_us" in document:
        return "host"
    if "roofs" in document:
        return "roofs"
    if results and all("problem" in r and isinstance(r.get("candidates"), list) for r in results):
        return "race"
    return "other"


def read(folder):
    """Every file, by name: (stem, kind, document)."""
    files = []
    for path in sorted(folder.glob("*.json")):
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as problem:
            raise Trouble(f"{path}: {problem}") from None
        if not isinstance(document, dict) or document.get("schema") != 1:
            raise Trouble(f"{path}: its schema is {document.get('schema') if isinstance(document, dict) else 'missing'}, not 1")
        files.append((path.stem, kind_of(document), document))
    return files


def device_of(stem):
    return "-".join(stem.split("-")[:2])


def group_of(stem):
    return re.sub(r"-b?\d+$", "", stem)


def race_groups(files):
    """{device: {group: [(stem, document)]}}, races only."""
    devices = {}
    for stem, kind, document in files:
        if kind == "race":
            devices.setdefault(device_of(stem), {}).setdefault(group_of(stem), []).append((stem, document))
    return devices


# ------------------------------------------------------------------------------------------------ numbers

def digits(value, count=3):
    """`count` significant digits and all before the point, never an exponent."""
    if value is None:
        return "-"
    value = float(value)
    if value == 0:
        return "0"
    if abs(value) >= 10 ** count:
        return f"{value:.0f}"
    value = float(f"{value:.{count}g}")
    return f"{value:.{max(count - 1 - math.floor(math.log10(abs(value))), 0)}f}"


def ours_of(result):
    """The contestant that sparsek would run: `sparsek` of peers.py, else what was chosen."""
    for name in ("sparsek", result.get("chosen")):
        for c in result["candidates"]:
            if c["name"] == name and c["status"] == "ok":
                return c
    return None


def ratio_over_ours(result, candidate):
    """Its time over ours, the median of the paired rounds."""
    ours = ours_of(result)
    if ours is None or ours is candidate:
        return None
    return ours["ratios"].get(candidate["name"], {}).get("median")


def dense_rate(result):
    """The best dense contestant's TFLOP/s on all of its work; None without one."""
    rates = [c["dense_equivalent_tflops"] for c in result["candidates"] if c["kind"] == "dense" and c["status"] in ("ok", "not_eligible") and c["median_us"]]
    return max(rates, default=None)


def intensity(problem):
    """FLOP per byte that must move at least once: stored values, B and D."""
    values = problem["nnzb"] * problem["block_rows"] * problem["block_cols"]
    moved = (values + problem["k"] * problem["n"]) * BYTES[problem["dtype"]] + problem["m"] * problem["n"] * BYTES[problem["dtype_d"]]
    return 2.0 * values * problem["n"] / moved


def l2_intensity(problem):
    """FLOP per byte read from L2 if every block row fetches its own columns of B, in tiles of at most 256 columns."""
    tile = min(256, problem["n"])
    return 2.0 * problem["block_rows"] * tile / (problem["block_rows"] + tile) / BYTES[problem["dtype"]]


# ------------------------------------------------------------------------------------------------ tables

def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)] + ["| " + " | ".join(row) + " |" for row in rows]


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def traits(problem):
    """What is not the plain case."""
    words = [problem["dtype"] if problem["dtype"] == problem["dtype_d"] else f"{problem['dtype']} to {problem['dtype_d']}"]
    if problem["compute"] not in ("f32", problem["dtype"]):
        words.append(problem["compute"])
    words.append(problem["cache"])
    if problem["pattern"] != "uniform":
        words.append(problem["pattern"])
    words += [f"{name} by columns" for name, key in (("B", "layout_b"), ("D", "layout_d")) if problem[key] == "col"]
    if problem["trans_a"] != "n":
        words.append("A transposed")
    if problem["epilogue"] != "none":
        words.append(problem["epilogue"])
    words += [word for word, is_so in (("B finite", problem["assume_finite"]), ("static values", problem["static_values"])) if is_so]
    return ", ".join(words)


def order_of(problem):
    return (problem["m"], problem["k"], problem["dtype"], problem["cache"], problem["layout_b"], problem["pattern"], -problem["n"], problem["density"] > 0.3,
            round(problem["density"], 2), problem["block_rows"], problem["block_cols"], traits(problem))


def ordered(group):
    return sorted(((stem, document, result) for stem, document in group for result in document["results"]), key=lambda one: order_of(one[2]["problem"]))


def contestants(rows):
    """Names of all that were timed or failed, peers first."""
    found = {}
    for _, _, result in rows:
        for c in result["candidates"]:
            if c["name"] != "sparsek" and (c["median_us"] or c["status"] == "failed"):
                if c["median_us"] or c["name"] not in found:
                    found[c["name"]] = c["kind"]
    return sorted(found, key=lambda name: (KINDS.index(found[name]) if found[name] in KINDS else len(KINDS), name))


def entry(result, name, scale):
    for c in result["candidates"]:
        if c["name"] == name:
            if not c["median_us"]:
                return "failed" if c["status"] == "failed" else "-"
            over = ratio_over_ours(result, c)
            return f"{digits(c['median_us'], 4)} ({digits(c['tflops'] * scale)}{'' if over is None else f', {digits(over)}x'})"
    return "-"


def where(problem, alone):
    shape = [f"{problem['m']} x {problem['k']} x {problem['n']}"] + ([] if alone else [traits(problem)])
    return shape + [f"{problem['block_rows']}x{problem['block_cols']}", f"{digits(problem['density'] * 100)} %"]


def what_ran(result, ours):
    if ours is None:
        return "-"
    words = ours["params"] if ours["name"] == "sparsek" else f"{ours['name']} {ours['params']}".strip()
    return f"`{words or result['chosen']}`"


def race_tables(group, scale, unit):
    rows = ordered(group)
    names = contestants(rows)
    alone = len({traits(r["problem"]) for _, _, r in rows}) == 1
    head = ["M x K x N"] + ([] if alone else ["as"]) + ["block", "density"]
    times, dense = [], []
    for _, _, result in rows:
        ours, place = ours_of(result), where(result["problem"], alone)
        own = "-" if ours is None else f"**{digits(ours['median_us'], 4)}** ({digits(ours['tflops'] * scale)})"
        times.append(place + [own, what_ran(result, ours)] + [entry(result, name, scale) for name in names])
        rates = {c["name"]: digits(c["dense_equivalent_tflops"] * scale) for c in result["candidates"] if c["median_us"]}
        roof = dense_rate(result)
        part = digits(ours["tflops"] / roof, 2) if ours is not None and roof else "-"
        dense.append(place + [digits(ours["dense_equivalent_tflops"] * scale) if ours else "-"] + [rates.get(name, "-") for name in names] + [part])
    lines = [f"All rows: {traits(rows[0][2]['problem'])}.", ""] if alone else []
    lines += [f"Time in us ({unit} on stored blocks; its time over sparsek's, median of the paired rounds: above 1, sparsek is faster):", ""]
    lines += table(head + ["sparsek", "which ran"] + [f"`{name}`" for name in names], times)
    lines += ["", f"Dense-equivalent {unit} (as if all blocks were stored; for dense rows that is their true rate), and sparsek's rate on stored blocks over the "
              "fastest dense row's:", ""]
    lines += table(head + ["sparsek"] + [f"`{name}`" for name in names] + ["sparsek / dense"], dense)
    return lines + refusals(rows)


def refusals(rows):
    found = {}
    for _, _, result in rows:
        p = result["problem"]
        for c in result["candidates"]:
            if c["status"] == "failed":
                found.setdefault((c["name"], c["why"] or "no reason given"), []).append(f"{p['m']} x {p['k']} x {p['n']} block {p['block_rows']}x{p['block_cols']}")
    return [""] + [f"`{name}` failed at {'; '.join(places)}: {cell(why)}" for (name, why), places in sorted(found.items())] if found else []


def is_of_the_eleven(problem):
    return ((problem["m"], problem["n"], round(problem["density"], 3), problem["block_rows"]) in ELEVEN and problem["m"] == problem["k"] and
            problem["block_rows"] == problem["block_cols"] and traits(problem) in ("f16, cold, B finite", "f16, cold"))


def means(group):
    """Geometric means of the paired ratios over the eleven problems; where a problem raced a contestant more than once, the latest file counts."""
    latest = {}
    for stem, document in sorted(group, key=lambda one: (str(one[1].get("date")), one[0])):
        for r in document["results"]:
            p = r["problem"]
            for c in r["candidates"] if is_of_the_eleven(p) else []:
                if ratio_over_ours(r, c):
                    latest.setdefault(c["name"], {})[(p["m"], p["n"], round(p["density"], 3), p["block_rows"])] = ratio_over_ours(r, c)
    rows = []
    for name in contestants(ordered(group)):
        ratios = list(latest.get(name, {}).values())
        if ratios:
            rows.append([f"`{name}`", digits(math.exp(sum(map(math.log, ratios)) / len(ratios))) + "x", digits(min(ratios)) + "x", digits(max(ratios)) + "x",
                         f"{len(ratios)} of {len(ELEVEN)}"])
    if not rows:
        return []
    return ["", f"Its time over sparsek's on the eleven problems ({ELEVEN_NAME}):", ""] + table(["", "geometric mean", "least", "most", "problems"], rows)


# ------------------------------------------------------------------------------------------------ where numbers come from

def span(values):
    numbers = []
    for value in values:
        try:
            numbers.append(float(value))
        except (TypeError, ValueError):
            pass
    if not numbers:
        return "-"
    low, high = digits(min(numbers), 4), digits(max(numbers), 4)
    return low if low == high else f"{low} to {high}"


def origin(stem, document):
    """A row: file, date, commit, versions, command, clock, power, reasons for slower clocks."""
    device = document.get("device") or {}
    cards = [r["card"] for r in document.get("results") or [] if r.get("card")] or [device.get("card") or {}]
    clocks, powers = [c.get("sm_mhz") for c in cards], [c.get("power_w") for c in cards]
    reasons = sorted({f"{int(c['throttle'], 16):#x}" for c in cards if re.fullmatch("0[xX][0-9a-fA-F]+", c.get("throttle") or "")} - {"0x0"})
    commits = sorted({r["commit"] for r in document.get("results") or [] if r.get("commit")} | {str(document.get("commit", "-"))})
    dates = sorted({str(r["date"]) for r in document.get("results") or [] if r.get("date")} | {str(document.get("date") or "-")})
    date = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    versions = [f"{k} {v}" for k, v in (document.get("versions") or {}).items()] + ([f"driver {device['driver']}"] if device.get("driver") else [])
    return [f"[{stem}](../bench/results/{stem}.json)", date, ", ".join(f"`{c}`" for c in commits), f"`{cell(document.get('command', '-'))}`",
            rounds(document), span(clocks if any(clocks) else [device.get("clocks_mhz")]), span(powers if any(powers) else [device.get("power_w")]), ", ".join(reasons) or "-",
            ", ".join(versions) or "-"]


def rounds(document):
    """The paired rounds of the nearest contestants: those far behind sit rounds out."""
    pairs = [max(r["pairs"] for r in ours["ratios"].values()) for ours in (ours_of(one) for one in document.get("results") or [] if "candidates" in one and
                                                                          isinstance(one["candidates"], list)) if ours and ours["ratios"]]
    return "-" if not pairs else str(pairs[0]) if len(set(pairs)) == 1 else f"{min(pairs)} to {max(pairs)}"


def natural(name):
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def origins(files):
    return table(["file", "date (UTC)", "commit", "command", "rounds", "SM clock, MHz", "power, W", "slowed down by", "versions"],
                 [origin(*one) for one in sorted(files, key=lambda one: natural(one[0]))])


def device_line(documents):
    for document in documents:
        device = document.get("device") or {}
        if device.get("name"):
            threads = f", {device['threads']} threads" if device.get("threads") else ""
            return f"{device['name']}{threads}; {', '.join(device.get('isa') or [])}."
    return ""


# ------------------------------------------------------------------------------------------------ the document

INTRO = """# Performance

Made by `python3 bench/performance.py` from the files in [bench/results](../bench/results); do not edit. Rates count stored blocks only, for every contestant, the
dense ones too; dense-equivalent rates stand apart. Contestants of one row ran in one process on the same data, in alternated rounds, and a ratio is the median over the
rounds (a contestant far behind sits some out). A clock or a power is what the driver said right after a problem's rounds; a mask under "slowed down by" names the
driver's reasons (0x4: the power limit).
Of a file that was made in several runs the command is the last run's. A commit that ends in `-dirty` had changes that were not committed.
"""

ROOFLINE = ("Rates on stored blocks over what a product must move at least: stored values, B and D once each. The roof is the fastest dense product of these files.",
            "Left: rates on stored blocks over what a product must move at least (stored values, B and D once each). Right: over what it reads from L2 if every block "
            "row\nfetches its own columns of B; a kernel that lets block rows share them can pass that line. Lines stand where bench/roofs.py measured them.")
ROOF_NAMES = (("hbm_read_gbps", "memory, read (a sum), GB/s"), ("hbm_copy_gbps", "memory, copy (read and written bytes), GB/s"), ("l2_read_gbps", "L2, read, GB/s"),
              ("dense_f16_tflops", "dense f16 product, 8192^3, TFLOP/s"), ("graph_node_us", "one more tiny kernel in a graph, us"))
HOST_NAMES = (("pattern_us", "a pattern of {nnzb} blocks"), ("plan_from_store_us", "a plan from a warm store"), ("matmul_over_run_us", "`spk_matmul` on a known pattern, "
              "over `spk_run_spmm`"), ("empty_matmul_us", "`spk_matmul` of an empty product"), ("fresh_context_first_product_us", "a fresh context and its first product"),
              ("fresh_pattern_and_plan_us", "a fresh pattern and plan of a known class (of {fresh_patterns}; {tuned_again} tuned again)"))


def section(device, files):
    races = race_groups(files).get(device, {})
    mine = [(stem, kind, document) for stem, kind, document in files if device_of(stem) == device]
    lines = ["", f"## {device}", "", device_line([document for _, _, document in mine])]
    if races:
        lines += ["", f"![Roofline of {device}](figures/roofline-{device}.svg)", "", ROOFLINE[device.startswith("gpu")], "",
                  f"<!-- figure data {figure_hash(device, files)} -->"]
    for group, members in sorted(races.items()):
        is_gpu = any((d.get("device") or {}).get("kind") == "cuda" for _, d in members)
        lines += ["", f"### {group}", ""] + race_tables(members, *((1, "TFLOP/s") if is_gpu else (1000, "GFLOP/s"))) + means(members) + [""] + origins(members)
    for kind, title, body in (("regret", "Regret: what was chosen over the best of an exhaustive search", regret_table), ("host", "Host costs", host_table),
                              ("roofs", "Roofs", roofs_table), ("other", "Other results", lambda _: [])):
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
                   digits(d["candidates_per_problem"]), digits(d["tuning_s"])] for stem, d in chosen])


def host_table(chosen):
    return table(["file", "what", "us"], [[stem, name.format(**d), digits(d[key])] for stem, d in chosen for key, name in HOST_NAMES if key in d])


def roofs_table(chosen):
    return table(["file", "what", "measured"], [[stem, name, digits(d["roofs"].get(key), 4)] for stem, d in chosen for key, name in ROOF_NAMES])


def document_of(files):
    devices = sorted({device_of(stem) for stem, _, _ in files}, key=lambda d: (not d.startswith("gpu"), d))
    lines = [INTRO.rstrip()]
    for device in devices:
        lines += section(device, files)
    return "\n".join(lines).rstrip() + "\n"


# ------------------------------------------------------------------------------------------------ pictures

def points_of(device, files):
    """What a device's picture shows, and nothing else: points and roofs."""
    races = race_groups(files).get(device, {})
    points = {}
    for group, members in sorted(races.items()):
        for _, _, result in ordered(members):
            p = result["problem"]
            for c in [ours_of(result)] + [c for c in result["candidates"] if c["name"] == "triton_tuned" and c["median_us"]]:
                if c is not None:
                    who = "triton_tuned" if c["name"] == "triton_tuned" else "sparsek"
                    points.setdefault(f"{who} {p['dtype']} block {p['block_rows']}x{p['block_cols']}", []).append(
                        [digits(intensity(p), 5), digits(l2_intensity(p), 5), digits(c["tflops"], 4)])
    roofs = {}
    for stem, kind, document in files:
        if kind == "roofs" and device_of(stem) == device:
            roofs.update({k: v for k, v in document["roofs"].items() if v})
    rates = [dense_rate(r) for members in races.values() for _, d in members for r in d["results"]]
    best = max((rate for rate in rates if rate), default=None)
    return {"device": device, "points": points, "roofs": roofs, "dense": best}


def figure_hash(device, files):
    return hashlib.sha256(json.dumps(points_of(device, files), sort_keys=True).encode()).hexdigest()[:16]


def draw_panel(axes, data, column, bandwidth, label, title):
    from matplotlib import ticker
    scale = 1 if data["device"].startswith("gpu") else 1000
    colours = ("#1b6ca8", "#d1495b", "#2e8b57", "#edae49", "#6a4c93", "#8d6e63", "#00798c", "#555555")
    blocks = sorted({name.split(" ", 1)[1] for name in data["points"]}, key=lambda name: (name.split()[0], int(name.split()[-1].split("x")[0]), name))
    everything = [float(point[column]) for group in data["points"].values() for point in group]
    low, high = min(everything) / 2, max(everything) * 2.5
    for name in sorted(data["points"]):
        who, block = name.split(" ", 1)
        colour = colours[blocks.index(block) % len(colours)]
        axes.plot([float(p[column]) for p in data["points"][name]], [float(p[2]) * scale for p in data["points"][name]], "o" if who == "sparsek" else "x",
                  color=colour, markersize=5, label=name, linestyle="none")
    peak = max(data["roofs"].get("dense_f16_tflops") or 0, data["dense"] or 0)
    if peak:
        axes.plot([low, high], [peak * scale] * 2, color="black", linewidth=1, label="fastest dense product")
    if bandwidth:
        line = [min(x * bandwidth / 1000, peak or math.inf) * scale for x in (low, high)]
        knee = peak * 1000 / bandwidth if peak else None
        xs, ys = ([low, knee, high], [line[0], peak * scale, line[1]]) if knee and low < knee < high else ([low, high], line)
        axes.plot(xs, ys, color="grey", linewidth=1, linestyle="--", label=f"{label}, {digits(bandwidth / 1000)} TB/s")
    axes.set_xscale("log")
    axes.set_yscale("log")
    rates = [float(p[2]) * scale for group in data["points"].values() for p in group]
    top = max(rates + [peak * scale]) * 1.3
    axes.set_xlim(low, high)
    axes.set_ylim(min(min(rates) / 1.5, top / 10), top)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: digits(value, 1)))
        axis.set_minor_locator(ticker.NullLocator())
    axes.set_xlabel(title, fontsize=8)
    axes.set_ylabel("TFLOP/s on stored blocks" if scale == 1 else "GFLOP/s on stored blocks", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(True, which="both", linewidth=0.3, alpha=0.5)


def draw(matplotlib, device, files, path):
    from matplotlib.figure import Figure
    data = points_of(device, files)
    is_gpu = device.startswith("gpu")
    matplotlib.rcParams.update({"svg.hashsalt": "sparsek", "svg.fonttype": "none", "font.family": "sans-serif"})
    figure = Figure(figsize=(12, 4.6) if is_gpu else (7.5, 4.6))
    panels = figure.subplots(1, 2 if is_gpu else 1, squeeze=False)[0]
    figure.subplots_adjust(left=0.05 if is_gpu else 0.09, right=0.8 if is_gpu else 0.68, top=0.92, bottom=0.11, wspace=0.16)
    draw_panel(panels[0], data, 0, data["roofs"].get("hbm_read_gbps"), "memory", "FLOP per byte that must be moved once (stored values, B, D)")
    if is_gpu:
        draw_panel(panels[1], data, 1, data["roofs"].get("l2_read_gbps"), "L2", "FLOP per byte from L2, were B not shared by block rows (tiles of up to 256 columns)")
    handles, labels = [], []
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels()):
            if label not in labels:
                handles.append(handle)
                labels.append(label)
    figure.legend(handles, labels, loc="center right", fontsize=7)
    figure.suptitle(device, fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None, "Description": f"data {figure_hash(device, files)}"})
    text = path.read_text(encoding="utf-8")
    path.write_text("\n".join(line.rstrip() for line in text.split("\n")), encoding="utf-8")


# ------------------------------------------------------------------------------------------------ the program

def check(text, files, out, figures):
    again = "run `python3 bench/performance.py` and commit what it writes"
    if not out.exists():
        return f"{out} is missing: {again}"
    if out.read_text(encoding="utf-8") != text:
        return f"{out} is not what the results give: {again}"
    for device in race_groups(files):
        picture = figures / f"roofline-{device}.svg"
        if not picture.exists() or f"data {figure_hash(device, files)}" not in picture.read_text(encoding="utf-8"):
            return f"{picture} is missing or does not show the results: {again}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the document or a picture is stale")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench" / "results")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "performance.md", help="pictures go to figures/ beside it")
    parser.add_argument("--no-figures", dest="figures", action="store_false", help="the document only")
    options = parser.parse_args()
    figures = options.out.parent / "figures"
    try:
        files = read(options.results)
        if not files:
            raise Trouble(f"{options.results}: no .json file is there")
        text = document_of(files)
    except Trouble as problem:
        print(f"performance.py: {problem}", file=sys.stderr)
        return 2
    if options.check:
        why = check(text, files, options.out, figures)
        if why:
            print(f"performance.py: {why}", file=sys.stderr)
        return 1 if why else 0
    if options.figures:
        try:
            import matplotlib
        except ImportError:
            print("performance.py: the pictures need matplotlib: install python3-matplotlib, or run this with the Python of a virtual environment that has it (see "
                  "--help); --no-figures writes the document alone. Nothing was written.", file=sys.stderr)
            return 2
        for device in race_groups(files):
            draw(matplotlib, device, files, figures / f"roofline-{device}.svg")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    part = options.out.with_name(options.out.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
