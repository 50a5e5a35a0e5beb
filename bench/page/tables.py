"""Tables of races, and where their numbers come from."""
import math
import re

from page.results import dense_rate, digits, ours_of, ratio_over_ours
from runs import topic_of

ELEVEN = {(4096, 4096, d, b) for d in (0.125, 0.5) for b in (32, 64, 128)} | {(8192, 8192, 0.125, b) for b in (32, 64, 128)} | {
    (4096, 512, 0.125, b) for b in (64, 128)}
ELEVEN_NAME = "f16, uniform, cold: 4096^3 at 12.5 % and 50 % and 8192^3 at 12.5 % with blocks 32, 64, 128; N = 512 with blocks 64, 128"
KINDS = ("own", "peer", "vendor", "dense", "reference", "read")


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)] + ["| " + " | ".join(row) + " |" for row in rows]


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


OPERATIONS = {"sddmm": "SDDMM", "layer": "all three products", "experts_up": "up", "experts_down": "down"}  # but for SpMM
SAMPLED = ("sddmm", "experts_up")  # their operands are X and Y


def traits(problem):
    """What is not the plain case."""
    op, sampled = problem["op"], problem["op"] in SAMPLED
    words = [OPERATIONS[op]] if op in OPERATIONS else []
    if "tokens" in problem:
        words.append(f"{len(problem['tokens'])} experts, {sum(problem['tokens'])} tokens")
    words.append(problem["dtype"] if problem["dtype"] == problem["dtype_d"] else f"{problem['dtype']} to {problem['dtype_d']}")
    if problem["compute"] not in ("f32", problem["dtype"]):
        words.append(problem["compute"])
    words.append(problem["cache"])
    if problem.get("pattern", "uniform") not in ("uniform", "experts"):
        words.append(problem["pattern"])
    words += [f"{name} by columns" for name, key in (("X", "layout_a"), ("Y" if sampled else "B", "layout_b"), ("D", "layout_d")) if problem.get(key) == "col"]
    if problem.get("trans_a", "n") != "n":
        words.append("A transposed")
    if problem.get("epilogue", "none") != "none":
        words.append(problem["epilogue"])
    words += [word for word, is_so in (("B finite", problem["assume_finite"] and not sampled), ("static values", problem["static_values"])) if is_so]
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
            rate = f"{digits(c['gbps'])} GB/s" if c["kind"] == "read" else digits(c["tflops"] * scale)
            return f"{digits(c['median_us'], 4)} ({rate}{'' if over is None else f', {digits(over)}x'})"
    return "-"


def where(problem, alone):
    shape = [f"{problem['m']} x {problem['k']} x {problem['n']}"] + ([] if alone else [traits(problem)])
    return shape + [f"{problem['block_rows']}x{problem['block_cols']}", f"{digits(problem['density'] * 100)} %"]


def what_ran(result, ours):
    if ours is None:
        return "-"
    words = ours["params"] if ours["name"] == "sparsek" else f"{ours['name']} {ours['params']}".strip()
    return f"`{words or result['chosen']}`"


def race_tables(group, scale, unit, dense_too=True):
    """Times, and dense-equivalent rates but where `dense_too` is False."""
    rows = ordered(group)
    names = contestants(rows)
    alone = len({traits(r["problem"]) for _, _, r in rows}) == 1
    head = ["M x K x N"] + ([] if alone else ["as"]) + ["block", "density"]
    times, dense = [], []
    for _, _, result in rows:
        ours, place = ours_of(result), where(result["problem"], alone)
        own = "-" if ours is None else f"**{digits(ours['median_us'], 4)}** ({digits(ours['tflops'] * scale)})"
        times.append(place + [own, what_ran(result, ours)] + [entry(result, name, scale) for name in names])
        rates = {c["name"]: digits(c["dense_equivalent_tflops"] * scale) for c in result["candidates"] if c["median_us"] and c["kind"] != "read"}
        roof = dense_rate(result)
        part = digits(ours["tflops"] / roof, 2) if ours is not None and roof else "-"
        dense.append(place + [digits(ours["dense_equivalent_tflops"] * scale) if ours else "-"] + [rates.get(name, "-") for name in names] + [part])
    lines = [f"All rows: {traits(rows[0][2]['problem'])}.", ""] if alone else []
    lines += [f"Time in us ({unit} on stored blocks; its time over sparsek's, median of the paired rounds: above 1, sparsek is faster):", ""]
    lines += table(head + ["sparsek", "which ran"] + [f"`{name}`" for name in names], times)
    if not dense_too:
        return lines + refusals(rows)
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
    parts = document.get("results") or document.get("layers") or []
    cards = [r["card"] for r in parts if r.get("card")] or [device.get("card") or {}]
    clocks, powers = [c.get("sm_mhz") for c in cards], [c.get("power_w") for c in cards]
    reasons = sorted({f"{int(c['throttle'], 16):#x}" for c in cards if re.fullmatch("0[xX][0-9a-fA-F]+", c.get("throttle") or "")} - {"0x0"})
    commits = sorted({r["commit"] for r in parts if r.get("commit")} | {str(document.get("commit", "-"))})
    dates = sorted({str(r["date"]) for r in parts if r.get("date")} | {str(document.get("date") or "-")})
    date = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    versions = [f"{k} {v}" for k, v in (document.get("versions") or {}).items()] + ([f"driver {device['driver']}"] if device.get("driver") else [])
    return [f"[{stem}](../../bench/results/{topic_of(stem)}.jsonl)", date, ", ".join(f"`{c}`" for c in commits), f"`{cell(document.get('command', '-'))}`",
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
    """Of the first that names the device; of a processor the first that says its instruction sets, if one does."""
    named = [document["device"] for document in documents if (document.get("device") or {}).get("name")]
    for device in [device for device in named if device.get("kind") == "cpu" and device.get("isa")][:1] or named[:1]:
        threads = f", {device['threads']} threads" if device.get("threads") else ""
        sets = f"; {', '.join(device['isa'])}" if device.get("isa") else ""
        return f"{device['name']}{threads}{sets}."
    return ""
