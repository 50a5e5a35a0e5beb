"""The committed runs (bench/runs.py) and the numbers in them."""
import math
import re

import runs
from runs import Trouble

BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}


def kind_of(document):
    results = document.get("results")
    if "median_regret" in document:
        return "regret"
    if "against" in document:
        return "against"
    if "plan_from_store_us" in document:
        return "host"
    if "beyond_50ns_a_block_us" in document:
        return "topologies"
    if "roofs" in document:
        return "roofs"
    if "masks" in document:
        return "masks"
    if "attention" in document:
        return "attention"
    if "attention_backward" in document:
        return "attention_backward"
    if results and all("what" in r and ("runs" in r or "lse_off" in r or "off" in r) for r in results):
        return "properties"
    if "burn" in document:
        return "burn"
    if "amx" in document:
        return "amx"
    if "layers" in document:
        return "layers"
    if "passed" in document:
        return "tests"
    if results and any((r.get("problem") or {}).get("op") == "gemm" for r in results) and all(isinstance(r.get("candidates"), list) for r in results):
        return "dense"
    if results and all("problem" in r and isinstance(r.get("candidates"), list) for r in results):
        return "race"
    return "other"


def read(folder):
    """Every run, by name: (name, kind, document)."""
    documents = runs.read(folder)
    for name, document in documents.items():
        if document.get("schema") != 1:
            raise Trouble(f"{folder}: the schema of {name} is {document.get('schema', 'missing')}, not 1")
    return [(name, kind_of(document), document) for name, document in documents.items()]


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


def over_dense_rate(result, name=None):
    """Our rate on stored blocks over the dense rate on everything, of `name` or else the fastest dense contestant: from the median of the paired rounds."""
    dense = [c for c in result["candidates"] if (c["name"] == name if name else c["kind"] == "dense") and c["median_us"]]
    ours = ours_of(result)
    if ours is None or not dense:
        return None
    ratio = ratio_over_ours(result, min(dense, key=lambda c: c["median_us"]))
    return ratio * ours["tflops"] / ours["dense_equivalent_tflops"] if ratio and ours["dense_equivalent_tflops"] else None


def dense_rate(result):
    """The best dense contestant's TFLOP/s on all of its work; None without one."""
    rates = [c["dense_equivalent_tflops"] for c in result["candidates"] if c["kind"] == "dense" and c["status"] in ("ok", "not_eligible") and c["median_us"]]
    return max(rates, default=None)


def intensity(problem):
    """FLOP per byte that must move at least once: stored values, B and D; of SDDMM X, Y and the stored values."""
    values, m, k, n = problem["nnzb"] * problem["block_rows"] * problem["block_cols"], problem["m"], problem["k"], problem["n"]
    size, result_size = BYTES[problem["dtype"]], BYTES[problem["dtype_d"]]
    if problem["op"] == "sddmm":
        return 2.0 * values * k / ((m * k + k * n) * size + values * result_size)
    return 2.0 * values * n / ((values + k * n) * size + m * n * result_size)


def l2_intensity(problem):
    """FLOP per byte read from L2 if every block row fetches its own columns of B, in tiles of at most 256 columns."""
    tile = min(256, problem["n"])
    return 2.0 * problem["block_rows"] * tile / (problem["block_rows"] + tile) / BYTES[problem["dtype"]]
