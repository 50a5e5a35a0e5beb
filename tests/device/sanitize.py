#!/usr/bin/env python3
"""Every kernel row of a GPU under NVIDIA's compute-sanitizer, on small random problems: tests/device/sanitize.py --build FOLDER [options]

Each row and tool is one process of `sparsek check`, which draws problems until the row could compute as many as asked for. Several run at once.
Others' libraries have findings of their own, which are not ours to mend: memcheck alone for them. Exit code 1 where there was a finding, a wrong
result, or a process that did not end by itself.
"""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ("memcheck", "initcheck", "racecheck", "synccheck")
SUMMARY = re.compile(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazards? displayed")


def rows_of(table):
    """Own rows and those of libraries, from kernels.def."""
    own, libraries = [], []
    for name, kind in re.findall(r"^SPK_KERNEL\(SPK_[A-Z_]+, (\w+), SPK_KIND_(\w+)", table, re.M):
        if not name.startswith("test_"):
            (own if kind in ("OWN", "REFERENCE") else libraries).append(name)
    return own, libraries


def find_sanitizer():
    found = os.environ.get("SANITIZER") or shutil.which("compute-sanitizer")
    return found or next((str(p) for p in sorted(pathlib.Path("/usr/local").glob("cuda*/bin/compute-sanitizer"), reverse=True)), None)


def findings_of(log):
    """What the tool counted; None where it does not say."""
    found = SUMMARY.findall(log)
    return int(found[-1][0] or found[-1][1]) if found else None


def run_one(options, sanitizer, tool, row):
    stem = options.logs / f"{tool}-{row}"
    command = [sanitizer, "--tool", tool, "--print-limit", "20", str(options.build / "sparsek"), "check", "--device", "cuda:0", "--kernel", row, "--each", str(options.each),
               "--cases", str(options.cases), "--seed", str(options.seed), "--threads", "4", "-q", "--json", f"{stem}.json"]
    pathlib.Path(f"{stem}.json").unlink(missing_ok=True)
    begun = time.monotonic()
    result = {"row": row, "tool": tool, "cases": 0, "findings": None, "wrong": None}
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=options.limit, check=False)
        log, result["exit"] = done.stdout, done.returncode
    except subprocess.TimeoutExpired as late:
        log, result["exit"] = (late.stdout or b"").decode(errors="replace"), f"not done within {options.limit} s"
    pathlib.Path(f"{stem}.log").write_text(log, encoding="utf-8")
    result["findings"] = findings_of(log)
    if result["findings"]:
        result["text"] = [line.removeprefix("========= ") for line in log.splitlines() if line.startswith("========= ")][:40]
    try:
        checked = json.loads(pathlib.Path(f"{stem}.json").read_text(encoding="utf-8"))
        [of_row] = checked["results"]
        result |= {"cases": of_row["cases"], "wrong": checked["failures"], "inf_nan": of_row["inf_nan"], "overhang": of_row["overhang"], "shifted": of_row["shifted"]}
        envelope = {key: checked[key] for key in ("sparsek", "commit", "device")}
    except (OSError, ValueError, KeyError):
        envelope = None
    result["seconds"] = round(time.monotonic() - begun, 1)
    return result, envelope


def is_clean(result, each):
    return result["findings"] == 0 and result["wrong"] == 0 and result["exit"] == 0 and result["cases"] >= each


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="folder of sparsek and its library")
    parser.add_argument("--each", type=int, default=12, help="problems of each row under each tool (default: 12)")
    parser.add_argument("--cases", type=int, default=2000, help="problems drawn to find as many (default: 2000)")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3), "little"))
    parser.add_argument("--tools", default=",".join(TOOLS), help="comma-separated (default: all four)")
    parser.add_argument("--rows", default="", help="comma-separated (default: all)")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 2), help="processes at a time (default: half the processors)")
    parser.add_argument("--limit", type=float, default=240, help="seconds for one process (default: 240)")
    parser.add_argument("--logs", type=pathlib.Path, default=ROOT / "build/device-logs", help="folder (default: build/device-logs)")
    parser.add_argument("--json", type=pathlib.Path, help="the summary, in the shape of bench/results")
    return parser.parse_args()


def main():
    options = parse()
    sanitizer = find_sanitizer()
    if sanitizer is None:
        print("sanitizers: skipped, there is no compute-sanitizer (SANITIZER names it)")
        return 0
    own, libraries = rows_of((ROOT / "src/backend/cuda/kernels.def").read_text(encoding="utf-8"))
    work = [(tool, row) for tool in options.tools.split(",") for row in own + (libraries if tool == "memcheck" else [])]
    work = [(tool, row) for tool, row in work if not options.rows or row in options.rows.split(",")]
    options.logs.mkdir(parents=True, exist_ok=True)
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        done = list(pool.map(lambda one: run_one(options, sanitizer, *one), work))
    results = [result for result, _ in done]
    envelope = next((envelope for _, envelope in done if envelope), {})
    bad = [result for result in results if not is_clean(result, options.each)]
    for result in bad:
        print(f"{result['tool']} {result['row']}: {result['findings']} findings, {result['wrong']} wrong of {result['cases']} cases, exit {result['exit']}", *result.get("text", []), sep="\n    ")
    tally = ", ".join(f"{tool} {sum(r['findings'] or 0 for r in results if r['tool'] == tool)}" for tool in options.tools.split(","))
    print(f"sanitizers: {len(results) - len(bad)} of {len(results)} clean, {sum(r['cases'] for r in results)} cases, seed {options.seed}; findings: {tally}")
    if options.json:
        version = subprocess.run([sanitizer, "--version"], capture_output=True, text=True, check=False).stdout.strip().splitlines()
        command = f"tests/device/sanitize.py --each {options.each} --seed {options.seed} --tools {options.tools}" + (f" --rows {options.rows}" if options.rows else "")
        document = {"schema": 1, **envelope, "date": date, "command": command, "kind": "sanitizers", "sanitizer": version[-1] if version else None, "seed": options.seed,
                    "filters": "memcheck alone for rows of libraries; nothing else is left out", "results": results}
        options.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
