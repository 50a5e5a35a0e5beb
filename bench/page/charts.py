"""Charts of docs/performance.md and README.md: SVG text, two files a chart (light and dark), the same bytes from the same results."""
import html
import math
import textwrap

from page.cases import attention_cases, layer_case, race_case, spmm_cases
from page.results import digits

COLOURS = {"light": {"text": "#1f2328", "quiet": "#59636e", "line": "#d1d9e0", "own": "#0969da", "other": "#8c959f",
                     "series": ("#bc4c00", "#1a7f37", "#8250df", "#59636e")},
           "dark": {"text": "#f0f6fc", "quiet": "#9198a1", "line": "#3d444d", "own": "#4493f8", "other": "#7d8590",
                    "series": ("#f0883e", "#3fb950", "#ab7df8", "#9198a1")}}
FONT = "font-family=\"-apple-system,'Segoe UI',Helvetica,Arial,sans-serif\""
OVERVIEW_FILES = ("gpu-h200-peers", "gpu-h200-attention", "gpu-h200-layers", "cpu-zen3-spmm-f32-b64", "cpu-xeon-attention", "cpu-clx-layers")
CLIP = 10  # a bar ends at so many times the length of sparsek's


def time_text(us):
    return f"{digits(us)} us" if us < 1000 else f"{digits(us / 1000)} ms"


class Canvas:
    def __init__(self, width, title, mode):
        self.width, self.title, self.colours, self.parts, self.height = width, title, COLOURS[mode], [], 0

    def text(self, x, y, said, size=12, colour="text", anchor="start", bold=False):
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{self.colours.get(colour, colour)}" text-anchor="{anchor}"{weight}>'
                          f"{html.escape(said, quote=False)}</text>")

    def rect(self, x, y, width, height, colour):
        self.parts.append(f'<rect x="{x:g}" y="{y:g}" width="{width:.1f}" height="{height:g}" rx="2" fill="{self.colours.get(colour, colour)}"/>')

    def line(self, x1, y1, x2, y2, colour="line", width=1.0, dashes=""):
        dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:g}" x2="{x2:.1f}" y2="{y2:g}" stroke="{self.colours.get(colour, colour)}" stroke-width="{width:g}"{dashed}/>')

    def marker(self, x, y, series):
        colour, r = self.colours["series"][series % 4], 4.5
        shape = (f'<circle cx="{x:.1f}" cy="{y:g}" r="{r:g}"', f'<rect x="{x - r + 0.5:.1f}" y="{y - r + 0.5:g}" width="{2 * r - 1:g}" height="{2 * r - 1:g}"',
                 f'<path d="M{x:.1f} {y - r - 1:g}L{x + r + 1:.1f} {y:g}L{x:.1f} {y + r + 1:g}L{x - r - 1:.1f} {y:g}Z"',
                 f'<path d="M{x:.1f} {y - r:g}L{x + r:.1f} {y + r:g}L{x - r:.1f} {y + r:g}Z"')[series % 4]
        self.parts.append(f'{shape} fill="{colour}" fill-opacity="0.9"/>')

    def svg(self):
        return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height:g}" viewBox="0 0 {self.width} {self.height:g}" role="img" {FONT}>',
                          f"<title>{html.escape(self.title, quote=False)}</title>", *self.parts, "</svg>", ""])


# ------------------------------------------------------------------------------------------------ times as bars

def bars(canvas, left, width, top, heading, cases):
    """A column of cases: a heading, then for each case sparsek's bar and the others' below it, in lengths of time."""
    label, value = 118, 112
    room = width - label - value
    canvas.text(left, top + 12, heading, 14, bold=True)
    y = top + 34
    for case in cases:
        canvas.text(left, y, case["what"], 12, "quiet")
        y += 7
        longest = min(CLIP, max([over for _, _, over in case["others"]] + [1]))
        for name, us, over in [("sparsek", case["us"], 1.0)] + case["others"]:
            own = name == "sparsek"
            canvas.text(left + label - 8, y + 12, name, 12, "text", "end", own)
            length = room * min(over, CLIP) / longest
            canvas.rect(left + label, y + 2, length, 12, "own" if own else "other")
            if over > CLIP:
                for shift in (18, 24):
                    canvas.line(left + label + length - shift, y + 16, left + label + length - shift + 5, y, "text", 1.2)
            canvas.text(left + label + length + 6, y + 12, time_text(us) + ("" if own else f", {digits(over)}x"), 12, "text", bold=own)
            y += 17
        y += 19
    return y - 12


def overview(files):
    """What README.md shows: the time of one product of each kind beside what is used today, on a GPU and on a CPU."""
    gpu = [race_case(files, "gpu-h200-peers", {"m": 4096, "n": 4096, "density": 0.125, "block_rows": 64}, "SpMM, 4096 x 4096 x 4096, f16, 12.5 % of blocks of 64",
                     {"triton_tuned": "PyTorch's Triton", "cublas_dense": "dense cuBLAS", "cusparse_bsr": "cuSPARSE BSR"}),
           *attention_cases(files, "gpu-h200-attention", "causal-s16384-d128", "Attention, causal, 16384 x 16384, 16 heads of 128, bf16"),
           *attention_cases(files, "gpu-h200-attention", "b64-13-s16384-d128", "Attention, 12.9 % of blocks of 64, the same sizes"),
           layer_case(files, "gpu-h200-layers", "training", 128, "A layer's training step, 4096 to 14336, bf16, 10 %")]
    cpu = [race_case(files, "cpu-zen3-spmm-f32-b64", {"block_rows": 64}, "SpMM, 2048 x 2048 x 512, f32, 10 % of blocks of 64",
                     {"mkl_bsr": "MKL BSR", "mkl_dense": "dense MKL"}),
           *attention_cases(files, "cpu-xeon-attention", {"dtype": "f32", "queries": 2048, "depth": 64, "causal": 1}, "Attention, causal, 2048 x 2048, 8 heads of 64, f32"),
           *attention_cases(files, "cpu-xeon-attention", {"dtype": "f32", "queries": 2048, "block": 64}, "Attention, 9.4 % of blocks of 64, 4 heads of 64, f32"),
           layer_case(files, "cpu-clx-layers", "training", 64, "A layer's training step, 2048 to 2048, f32, 10 %")]
    return [case for case in gpu if case], [case for case in cpu if case]


def draw_overview(files, mode):
    gpu, cpu = overview(files)
    if not gpu and not cpu:
        return None
    canvas = Canvas(860, "Time of sparsek beside what is used today: shorter is better", mode)
    canvas.height = max(bars(canvas, 0, 420, 0, "One NVIDIA H200", gpu), bars(canvas, 440, 420, 0, "Two cores of a server CPU", cpu))
    return canvas.svg()


def overview_words(files):
    """The chart as a text, for those who do not see it."""
    return "; ".join(f"{case['what'].split(',')[0]}: sparsek {time_text(case['us'])}, " + ", ".join(f"{name} {time_text(us)}" for name, us, _ in case["others"])
                     for column in overview(files) for case in column)


# ------------------------------------------------------------------------------------------------ ratios as dots

def dots(title, rows, names, mode):
    """rows: [(label, {name: time over sparsek's})], or (heading, None). Right of the line at 1: sparsek is faster."""
    if not any(ratios for _, ratios in rows):
        return None
    values = [v for _, ratios in rows for v in (ratios or {}).values()]
    low, high = min(min(values) / 1.12, 0.8), max(max(values) * 1.12, 2)
    canvas = Canvas(860, title, mode)
    left, right, top = 330, 846, 46
    shown = [name for name in names if any(name in (ratios or {}) for _, ratios in rows)]

    def place(value):
        return left + (right - left) * math.log(value / low) / math.log(high / low)
    x = 0
    for name in shown:
        canvas.marker(x + 6, 9, names.index(name))
        canvas.text(x + 17, 13, name, 12)
        x += 36 + 6.7 * len(name)
    canvas.text(left, 36, "its time over sparsek's; right of 1x sparsek is faster", 12, "quiet")
    bottom = top + 19 * len(rows)
    ticks = [t for t in (0.5, 0.7, 0.8, 0.9, 1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100) if low <= t <= high]
    for tick in ticks:
        if tick != 1 and abs(place(tick) - place(1)) < 22:
            continue
        canvas.line(place(tick), top, place(tick), bottom, "quiet" if tick == 1 else "line", 1.6 if tick == 1 else 1)
        canvas.text(place(tick), bottom + 15, f"{tick:g}x", 11, "quiet", "middle")
    y = top
    for label, ratios in rows:
        canvas.text(0 if ratios is None else 12, y + 14, label, 12, "text", bold=ratios is None)
        for name in shown:
            if name in (ratios or {}):
                canvas.marker(place(ratios[name]), y + 9.5, names.index(name))
        y += 19
    canvas.height = bottom + 24
    return canvas.svg()


def draw_spmm(files, mode):
    names = {"triton_tuned": "PyTorch's Triton kernel, tuned", "cublas_dense": "dense cuBLAS", "cusparse_bsr": "cuSPARSE BSR", "cusparselt_2to4": "cuSPARSELt 2:4"}
    return dots("SpMM on one H200: each contestant's time over sparsek's", spmm_cases(files, "gpu-h200", names), list(names.values()), mode)


def draw_attention(files, mode):
    return dots("Attention on one H200: each contestant's time over sparsek's", attention_rows(files, "gpu-h200-attention"), ["FlashAttention-4", "cuDNN", "FlexAttention"], mode)


def attention_rows(files, stem):
    groups = {}
    for case in attention_cases(files, stem, {}):
        groups.setdefault(case["group"], []).append((case["what"], {name: over for name, _, over in case["others"]}))
    return [row for group, rows in groups.items() for row in [(group, None), *rows]]


def threads_of(files, stem):
    """As words, of the first file whose name begins so."""
    count = next((document["device"]["threads"] for name, _, document in files if name.startswith(stem)), 0)
    return f"{count} thread{'s' if count != 1 else ''}"


def draw_cpu(files, mode):
    rows = []
    bsr, dense = "MKL BSR", "the fastest dense library, which the line names"
    for device in sorted({stem[:stem.index("-spmm-f32-b")] for stem, kind, _ in files if kind == "race" and stem.startswith("cpu-") and "-spmm-f32-b" in stem}):
        found = spmm_cases(files, device, {"mkl_bsr": bsr}, dense)
        rows += [(f"SpMM, {device}, {threads_of(files, device + '-spmm-f32-b')}", None), *found] if found else []
    for case in attention_cases(files, "cpu-xeon-attention", {}):
        label = f"Attention in {case['dtype']}, cpu-xeon, {threads_of(files, 'cpu-xeon-attention')}"
        rows += [] if (label, None) in rows else [(label, None)]
        causal = ", causal" if case["group"] == "Causal" else ""
        rows.append((case["what"] + causal, {name: over for name, _, over in case["others"]}))
    return dots("CPUs: each contestant's time over sparsek's", rows, [bsr, dense, "PyTorch"], mode)


CHARTS = {"overview": draw_overview, "spmm": draw_spmm, "attention": draw_attention, "cpu": draw_cpu}


def charts_of(files):
    """{file name: SVG text}."""
    drawn = {f"{name}-{mode}.svg": draw(files, mode) for name, draw in CHARTS.items() for mode in COLOURS}
    return {name: text for name, text in drawn.items() if text}


def shown(name, words, folder):
    """The lines of Markdown that show a chart, in the colours of the reader's page."""
    return ["<picture>", f'<source media="(prefers-color-scheme: dark)" srcset="{folder}/{name}-dark.svg">', f'<img src="{folder}/{name}-light.svg"',
            *textwrap.wrap(f'alt="{html.escape(words, quote=False)}">', 140), "</picture>"]
