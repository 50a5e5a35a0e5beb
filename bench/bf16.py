#!/usr/bin/env python3
"""SpMM in bfloat16 beside float32, on the CPU: 'sparsek bench' of the one and of the other in turn, and the ratio pair by pair.

    bench/bf16.py --program build/release/sparsek --out FILE [--pairs 11] [--conversion]

Other rows of bfloat16 (by conversion, oneDNN's dense product) run in the same races. --conversion: the row by conversion alone, in float16 and bfloat16,
over float32, at 16, 64 and 512 columns. Needs Python alone; SPARSEK_ONEDNN names oneDNN.
"""
import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile

CASES = [dict(block=block, density=0.1) for block in (8, 16, 32, 64, 128)] + [dict(block=block, density=0.5) for block in (32, 64, 128)]
CONVERSION = [dict(size=4096, n=16), dict(size=4096, n=64), dict(size=2048, n=512)]
ROWS = {"f32": "spmm_f32_avx512", "bf16": "spmm_bf16_avx512,spmm_half_avx512,onednn_dense"}


def race(program, store, case, dtype, rounds, rows):
    """The document, and the least median of each row that ran."""
    size = str(case.get("size", 2048))
    command = [program, "bench", "--m", size, "--k", size, "--n", str(case.get("n", 512)), "--block", str(case["block"]), "--density", str(case["density"]), "--cache", "warm",
               "--assume-finite", "--fresh", "--rounds", str(rounds), "--dtype", dtype, "--only", rows, "--quiet", "--json", "-"]
    document = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "SPARSEK_STORE": store}).stdout)
    times = {}
    for candidate in document["results"][0]["candidates"]:
        if candidate["status"] in ("ok", "not_eligible") and candidate["median_us"]:
            times[candidate["name"]] = min(candidate["median_us"], times.get(candidate["name"], float("inf")))
    return document, times


def spread(ratios):
    return {"least": min(ratios), "median": statistics.median(ratios), "most": max(ratios)}


def beside_f32(options, store, result):
    result["bf16"] = []
    for case in CASES:
        pairs = []
        for _ in range(options.pairs):
            document, f32 = race(options.program, store, case, "f32", options.rounds, ROWS["f32"])
            pairs.append({**f32, **race(options.program, store, case, "bf16", options.rounds, ROWS["bf16"])[1]})
        result["commit"], result["device"] = document["commit"], document["device"]
        names = [name for name in ",".join(ROWS.values()).split(",") if all(name in pair for pair in pairs)]
        made = {**case, "n": 512, "pairs": options.pairs, "us": {name: statistics.median(pair[name] for pair in pairs) for name in names},
                "over_spmm_bf16_avx512": {name: spread([pair[name] / pair["spmm_bf16_avx512"] for pair in pairs]) for name in names if name != "spmm_bf16_avx512"}}
        result["bf16"].append(made)
        print(json.dumps(made), flush=True)


def by_conversion(options, store, result):
    result["conversion"] = []
    for size in CONVERSION:
        case, pairs = {**size, "block": 64, "density": 0.1}, []
        for _ in range(options.pairs):
            times = {}
            for dtype, row in (("f32", ROWS["f32"]), ("f16", "spmm_half_avx512"), ("bf16", "spmm_half_avx512")):
                document, by_row = race(options.program, store, case, dtype, options.rounds, row)
                times[dtype] = by_row[row]
            pairs.append(times)
        result["commit"], result["device"] = document["commit"], document["device"]
        made = {**case, "pairs": options.pairs, "us": {dtype: statistics.median(pair[dtype] for pair in pairs) for dtype in pairs[0]},
                "f32_over": {dtype: spread([pair["f32"] / pair[dtype] for pair in pairs]) for dtype in ("f16", "bf16")}}
        result["conversion"].append(made)
        print(json.dumps(made), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--conversion", action="store_true")
    options = parser.parse_args()
    if options.pairs < 1 or options.rounds < 1:
        parser.error("--pairs and --rounds: 1 and more")
    if not os.access(options.program, os.X_OK):
        parser.error(f"--program {options.program}: no program")
    if not os.path.isdir(os.path.dirname(os.path.abspath(options.out))):
        parser.error(f"--out {options.out}: its folder does not exist")
    result = {"schema": 1, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "command": " ".join(sys.argv)}
    with tempfile.TemporaryDirectory() as folder:
        (by_conversion if options.conversion else beside_f32)(options, folder + "/store.db", result)
    with open(options.out, "w", encoding="utf-8") as out:
        json.dump(result, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
