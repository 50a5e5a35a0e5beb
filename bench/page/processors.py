"""The processors at a glance: a line each, from whatever their files hold."""
import math

from page.results import device_of, digits, ours_of, over_dense_rate
from page.tables import table

HEAD = ["processor", "float32, GFLOP/s", "over the fastest library's blocks", "over the fastest dense rate", "blocks of 16 / 8 / 3 over it", "bfloat16 over float32", "bfloat16 over the dense rate",
        "finite elements over MKL's BSR", "GEMM over the fastest library", "attention over PyTorch", "regret: median, 95 %"]
NOTE = ("float32 is SpMM with blocks of 32 and more, 10 % stored, warm. A rate counts stored blocks for ours, all of A for a dense product. A library's blocks are its product of each "
        "stored block (LIBXSMM, MKL, OpenBLAS), beside the fastest own kernel. bfloat16 over the dense rate is on AMX, beside PyTorch. Geometric means; in brackets the least. "
        "16 threads for `emr16`, two for the others; - is not measured.")


def mean(ratios):
    ratios = [r for r in ratios if r]
    if not ratios:
        return "-"
    middle = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return f"{digits(middle)}x" + (f" ({digits(min(ratios))}x)" if len(ratios) > 1 else "")


def best(result, wanted):
    return min((c for c in result["candidates"] if c["median_us"] and c["status"] in ("ok", "not_eligible") and wanted(c)), key=lambda c: c["median_us"], default=None)


def over(result, ours, other):
    """The other's time over ours: of paired rounds where one of the two was chosen, else of medians."""
    if ours is None or other is None:
        return None
    for one, two, sign in ((ours, other, 1), (other, ours, -1)):
        paired = (one["ratios"] or {}).get(two["name"], {}).get("median")
        if paired:
            return paired ** sign
    return other["median_us"] / ours["median_us"]


def is_float32(r):
    p = r["problem"]
    return (p["op"] == "spmm" and p["dtype"] == "f32" and p["cache"] == "warm" and p["n"] == 512 and p["pattern"] == "uniform" and p["trans_a"] == "n" and p["layout_b"] == "row" and
            abs(p["density"] - 0.1) < 0.01)


def side(r):
    return min(r["problem"]["block_rows"], r["problem"]["block_cols"])


def is_own(c):
    return c["kind"] == "own"


def is_by_blocks(c):
    return c["kind"] == "vendor" and c["name"].endswith("_blocks")


def line(device, files):
    mine = [(kind, document) for stem, kind, document in files if device_of(stem) == device]
    races = [r for kind, d in mine if kind == "race" for r in d["results"]]
    float32 = [r for r in races if is_float32(r)]
    blocks, elements = [r for r in float32 if side(r) >= 32], [r for r in races if r["problem"]["op"] == "spmm" and r["problem"]["pattern"] == "elasticity"]
    rates = [c["tflops"] * 1000 for c in (best(r, is_own) for r in blocks) if c]
    dense = [r for kind, d in mine if kind == "dense" for r in d["results"] if r["problem"]["op"] == "gemm"]
    pairs = [c["over_spmm_bf16_avx512"]["spmm_f32_avx512"]["median"] for kind, d in mine if "bf16" in d for c in d["bf16"] if c["block"] >= 32]
    tiles = [c["rate_over_dense"]["ours"]["median"] for kind, d in mine if kind == "amx" for c in d["amx"]]
    attention = [c["ratios"]["pytorch"] for kind, d in mine if kind == "attention" for c in d["attention"] if not c["block"]]
    regret = [d for kind, d in mine if kind == "regret" and "unknown_to_the_bundle" not in d]
    small = [mean([over_dense_rate(r) for r in float32 if side(r) == size and ours_of(r)]) for size in (16, 8, 3)]
    cells = [f"{digits(min(rates))} to {digits(max(rates))}" if rates else "-", mean([over(r, best(r, is_own), best(r, is_by_blocks)) for r in blocks]),
             mean([over_dense_rate(r) for r in blocks if ours_of(r)]),
             " / ".join(small) if small != ["-"] * 3 else "-", mean(pairs), mean(tiles),
             mean([over(r, best(r, is_own), best(r, lambda c: c["name"] == "mkl_bsr")) for r in elements]),
             mean([over(r, best(r, is_own), best(r, lambda c: c["kind"] == "vendor")) for r in dense]), mean(attention),
             " and ".join(f"{digits(100 * regret[-1][key])} %" for key in ("median_regret", "p95_regret")) if regret else "-"]
    return cells if any(cell != "-" for cell in cells) else None


def processors(files, devices):
    lines = [(device, line(device, files)) for device in devices if device.startswith("cpu-")]
    rows = [[f"[{device}](performance/{device}.md)", *cells] for device, cells in lines if cells]
    return table(HEAD, rows) if rows else []
