"""Single measurements that charts and the summary show: [what, sparsek's time, the others' times and ratios]."""
from page.results import digits, ours_of, ratio_over_ours
from page.tables import traits

ATTENTION_PEERS = {"cudnn": "cuDNN", "fa4": "FlashAttention-4", "flex": "FlexAttention", "pytorch": "PyTorch"}
GRADIENT_PEERS = {"cudnn": "cuDNN", "fa4_ordered": "FlashAttention-4, fixed order", "fa4": "FlashAttention-4, any order", "flash": "PyTorch's FlashAttention-2", "bsa": "cuDNN block-sparse", "flex": "FlexAttention"}
DENSE_LIBRARIES = {"mkl_dense": "MKL", "openblas_dense": "OpenBLAS", "blis_dense": "BLIS", "onednn_dense": "oneDNN"}
ATTENTION_GROUPS = ("Every key", "Causal", "A window", "Blocks of 128", "Blocks of 64", "One query (decoding)")


def document_of(files, stem):
    return next((document for name, _, document in files if name == stem), None)


def same(have, wanted):
    return abs(have - wanted) < 0.01 if isinstance(wanted, float) else have == wanted


def is_plain(result):
    return result.get("topic", "peers") == "peers" and result["problem"]["op"] == "spmm"


def others_of(result, names):
    """[(name, us, time over ours)] of those that were timed, in the order of `names`, {name in the file: name to show}."""
    found = {c["name"]: c for c in result["candidates"] if c["median_us"]}
    return [(shown, found[name]["median_us"], ratio_over_ours(result, found[name])) for name, shown in names.items()
            if name in found and ratio_over_ours(result, found[name])]


def fastest_dense(result):
    """(name in the file, its time over ours) of the dense contestant that was the fastest in this race; None without one."""
    ratios = [(ratio_over_ours(result, c), c["name"]) for c in result["candidates"] if c["kind"] == "dense" and c["median_us"]]
    return min(((name, ratio) for ratio, name in ratios if ratio), key=lambda one: one[1], default=None)


def race_case(files, stem, wanted, what, names):
    """One problem of a race; None where the file or the problem is not there."""
    for result in (document_of(files, stem) or {}).get("results", []):
        p = result["problem"]
        if is_plain(result) and ours_of(result) and all(same(p.get(key), value) for key, value in wanted.items()):
            return {"what": what, "us": ours_of(result)["median_us"], "others": others_of(result, names)}
    return None


def spmm_cases(files, device, names, dense=None):
    """[(label, {name: time over ours})] of a device's plain SpMM problems in f16 and f32, by size, density and block.
    dense: what the fastest dense library of each race is called; the label then ends with its own name."""
    rows = []
    for stem, kind, document in files:
        if kind != "race" or not (stem == f"{device}-peers" or stem.startswith(f"{device}-spmm-f32-b")):
            continue
        for result in document["results"]:
            p = result["problem"]
            if is_plain(result) and ours_of(result) and p["dtype"] in ("f16", "f32") and traits(p).split(",")[1].strip() in ("cold", "warm"):
                label = f"{p['m']} x {p['k']} x {p['n']}, {digits(p['density'] * 100)} %, blocks of {p['block_rows']}"
                ratios = {name: over for name, _, over in others_of(result, names)}
                best = fastest_dense(result) if dense else None
                if best:
                    label, ratios[dense] = f"{label}; {DENSE_LIBRARIES.get(best[0], best[0])}", best[1]
                rows.append(((p["density"] > 0.3, p["m"], -p["n"], p["block_rows"]), label, ratios))
    return [(label, ratios) for _, label, ratios in sorted(rows, key=lambda row: row[0]) if ratios]


def attention_group(r):
    if r["queries"] == 1:
        return ATTENTION_GROUPS[5]
    if r["block"]:
        return f"Blocks of {r['block']}"
    return ATTENTION_GROUPS[2] if r["window"] else ATTENTION_GROUPS[1] if r["causal"] else ATTENTION_GROUPS[0]


def attention_words(r):
    heads = f"{r['heads']}" if r["heads"] == r["heads_kv"] else f"{r['heads']}/{r['heads_kv']}"
    items = f", {r['batch']} items" if r["batch"] > 1 else ""
    wide = f" and {r['depth_v']}" if r.get("depth_v", r["depth"]) != r["depth"] else ""
    mask = f", {'uneven' if r['spread'] else digits(100 * r['kept'] * r['block'] / r['keys']) + ' %'}" if r["block"] else ""
    return f"{r['queries']} x {r['keys']}, {heads} heads of {r['depth']}{wide}{items}{mask}" + (f", window {r['window']}" if r["window"] else "") + (
        f", pages of {r['page']}" if r.get("page") else "")


def attention_cases(files, stem, wanted, what=None, kind="attention", peers=ATTENTION_PEERS):
    """Cases of an attention file: of this name, or with these facts (the first one where `what` names it); grouped by mask."""
    found = []
    for r in (document_of(files, stem) or {}).get(kind, []):
        chosen = r.get("name") == wanted if isinstance(wanted, str) else all(same(r.get(key), value) for key, value in wanted.items())
        if chosen and r["us"].get("ours"):
            others = [(shown, r["us"][name], r["ratios"][name]) for name, shown in peers.items() if r["us"].get(name) and r.get("ratios", {}).get(name)]
            found.append({"what": what or attention_words(r), "group": attention_group(r), "dtype": r.get("dtype", "bf16"), "row": r["chosen"].split()[0], "us": r["us"]["ours"],
                          "others": sorted(others, key=lambda one: one[1])})
    if what:
        return found[:1]
    return sorted(found, key=lambda case: (case["dtype"] != "f32", ATTENTION_GROUPS.index(case["group"])))


def layer_case(files, stem, kind, block, what):
    for case in (document_of(files, stem) or {}).get("layers", []):
        rows = {row["name"]: row for row in case["rows"]}
        if case["what"] == kind and case["block"] == block and "SparseLinear" in rows and "nn.Linear" in rows:
            return {"what": what, "us": rows["SparseLinear"]["median_us"],
                    "others": [("nn.Linear", rows["nn.Linear"]["median_us"], 1 / rows["SparseLinear"]["over"]["nn.Linear"])]}
    return None
