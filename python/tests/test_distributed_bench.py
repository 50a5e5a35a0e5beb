"""bench/python/distributed.py, as a smoke test."""

import json
import pathlib
import subprocess
import sys

import pytest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench" / "python" / "distributed.py"


@pytest.mark.skipif(not BENCH.exists(), reason="needs the repository")
def test_bench(tmp_path):
    options = ["--device", "cpu", "--rounds", "2", "--budget-s", "0.02", "--chunks", "0,2d"]
    done = subprocess.run([sys.executable, BENCH, *options, "--json", tmp_path / "found.json"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert [case["what"] for case in found["distributed"]] == ["mlp forward", "mlp training", "attention forward", "experts forward"]
    for case in found["distributed"]:
        for row in case["rows"]:
            assert row["median_us"] > 0 and row.get("repeatable", True) and row.get("error", 0) < 1e-5, (case["case"], row)
