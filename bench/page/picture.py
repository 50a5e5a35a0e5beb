"""Roofline pictures, drawn with matplotlib."""
import hashlib
import json
import math

from page.results import dense_rate, device_of, digits, intensity, l2_intensity, ours_of, race_groups
from page.tables import ordered


def points_of(device, files):
    """What a device's picture shows, and nothing else: points and roofs."""
    races = race_groups(files).get(device, {})
    points = {}
    for group, members in sorted(races.items()):
        for _, _, result in ordered(members):
            p = result["problem"]
            if result.get("topic", "peers") not in ("peers", "decode") or "topic" in result and p["cache"] == "warm":
                continue
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
