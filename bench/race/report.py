"""Results as JSON in the shape of `sparsek bench`, and as text."""
import json
import os
import statistics
import sys

from race.harness import median_ratio, median_reading


def candidate(name, c, contestants, operands):
    us, quarters = statistics.median(c["samples"]), statistics.quantiles(c["samples"], n=4)
    ratios = {other: {"median": round(median_ratio(o["samples"], c["samples"]), 4), "pairs": len(c["samples"])} for other, o in contestants.items() if other != name}
    works = c["kind"] != "read"
    made = {"name": name, "params": c.get("params", ""), "hash": None, "kind": c["kind"], "status": "ok", "why": None, "median_us": round(us, 3),
            "spread_us": round((quarters[2] - quarters[0]) / 2, 3), "prepare_us": 0, "tflops": round(c.get("flops", operands.flops) / us * 1e-6, 2) if works else 0,
            "dense_equivalent_tflops": round(operands.dense_equivalent_flops() / us * 1e-6, 2) if works else 0, "error": c.get("error"), "tolerance": c.get("tolerance"),
            "ratios": ratios}
    if "bytes" in c:
        made["gbps"] = round(c["bytes"] / us * 1e-3, 1)
    if "tuning_s" in c:
        made["tuning_s"] = c["tuning_s"]
    if c["readings"]:
        made.update(sm_mhz=median_reading(c["readings"], 0), power_w=median_reading(c["readings"], 1))
    return made


def refused(name, why):
    return {"name": name, "params": "", "hash": None, "kind": "peer", "status": "failed", "why": why, "median_us": 0, "spread_us": 0, "prepare_us": 0, "tflops": 0,
            "dense_equivalent_tflops": 0, "error": None, "tolerance": None, "ratios": {}}


def result_of(case, operands, harness, skipped, differs, options):
    """`differs`, of a contestant that ran another problem: its fields that are not those of `problem`."""
    contestants = harness.contestants
    candidates = [candidate(name, c, contestants, operands) for name, c in contestants.items()] + [refused(name, why) for name, why in skipped.items()]
    for c in candidates:
        if c["name"] in differs:
            c["differs"] = differs[c["name"]]
    own = contestants["sparsek"]
    return {"problem": operands.problem(options.seed), "case": case.name, "topic": case.topic, "sample_ms": case.sample_ms, "chosen": own["params"].split()[0],
            "from_store": False, "tuning_s": own["tuning_s"], "candidates": candidates}


def show(result, seconds):
    p = result["problem"]
    blocks = f", block {p['block_rows']}x{p['block_cols']}, {p['density'] * 100:.3g} %" if "block_rows" in p else ""
    print(f"{result['case']}: {p['m']} x {p['k']} x {p['n']}{blocks}, {p['dtype']}, {p['cache']}; {seconds:.1f} s")
    for c in sorted(result["candidates"], key=lambda c: c["median_us"] or 1e9):
        if c["status"] == "ok":
            over, rate = c["ratios"].get("sparsek", {}).get("median"), f"{c['gbps']:7.0f} GB/s   " if "gbps" in c else f"{c['tflops']:7.1f} TFLOP/s"
            load = f"  {c['sm_mhz']} MHz {c['power_w']} W" if "sm_mhz" in c else ""
            print(f"  {c['name']:22} {c['median_us']:9.2f} us {rate}  {'' if over is None else f'sparsek takes {over:.3f} of its time'}  {c['params']}{load}")
        else:
            print(f"  {c['name']:22} {c['why']}")
    sys.stdout.flush()


def read(path):
    """A file of earlier runs, to go on with; a new document where there is none."""
    if not os.path.exists(path):
        return {"schema": 1, "results": []}
    with open(path) as file:
        return json.load(file)


def merge(document, result):
    """A case measured again takes its old place."""
    names = [r["case"] for r in document["results"]]
    if result["case"] in names:
        document["results"][names.index(result["case"])] = result
    else:
        document["results"].append(result)


def write(path, document):
    with open(path + ".part", "w") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    os.replace(path + ".part", path)
