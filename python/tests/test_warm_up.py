"""Sizes of a layer: who waits for a measurement, and sa.warm_up."""

import dataclasses
import json
import math
import pathlib
import subprocess
import sys

import pytest
import torch
from torch import nn

import sparse_autotune as sa

MOST_CLASSES = 6  # from 1 to 600 columns: 1, 2, 3 to 4, 5 to 8, and two for more
SIZES = [1 + 599 * i // 118 for i in range(119)]


@pytest.fixture
def fresh(tmp_path):
    sa.set_options(store=tmp_path / "store.db", effort="measure", budget_s=0.05)
    return tmp_path / "store.db"


def classes(store):
    import sqlite3

    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as database:
        return database.execute("SELECT count(*) FROM class").fetchone()[0]


def layer():
    torch.manual_seed(0)
    return sa.SparseLinear(128, 256, 16, 0.2).requires_grad_(False)


@pytest.mark.parametrize("order", ["up", "down", "mixed"])
def test_many_sizes_of_a_layer(fresh, order):
    sizes = {"up": SIZES, "down": SIZES[::-1], "mixed": [SIZES[(47 * i) % 119] for i in range(119)]}[order]
    one = layer()
    for tokens in sizes:
        x = torch.randn(tokens, 128)
        torch.testing.assert_close(one(x), x @ one.to_dense().weight.mT + one.bias, rtol=1e-4, atol=1e-4)
    assert 1 <= classes(fresh) <= MOST_CLASSES


def test_sizes_of_a_plain_product(fresh):
    """B [k, n] row-major: its alignment goes with n, and is no reason to measure."""
    torch.manual_seed(0)
    A = sa.BSR.from_dense(torch.randn(128, 256), block=16, density=0.2)  # noqa: N806
    for tokens in SIZES:
        x = torch.randn(256, tokens)
        torch.testing.assert_close(sa.matmul(A, x), A.to_dense() @ x, rtol=1e-4, atol=1e-4)
    assert 1 <= classes(fresh) <= MOST_CLASSES


def test_none_is_measured_after_a_warm_up(fresh):
    model = nn.Sequential(layer(), nn.ReLU(), sa.SparseLinear(256, 64, 16, 0.2))
    assert sa.warm_up(model, [*SIZES[::10], SIZES[1]]) is None  # few columns take no choice of many
    known = classes(fresh)
    assert known >= 2 * 10
    for tokens in SIZES:
        model(torch.randn(tokens, 128))
    assert classes(fresh) == known


def test_progress(fresh, capsys):
    pytest.importorskip("tqdm")
    for wanted in (True, None, False):  # no terminal: none by default
        sa.warm_up(layer(), [8, 300], progress=wanted)
        shown = capsys.readouterr().err
        assert ("warm_up" in shown and "2/2" in shown and "product" in shown) == (wanted is True), shown
        assert wanted or not shown


def test_what_was_tuned_takes_the_neighbours_place(fresh):
    """Calls of a size that ran on the nearest choice are planned anew when it has its own."""
    one = layer()
    one(torch.randn(16, 128))
    x = torch.randn(40, 128)
    one(x)
    assert classes(fresh) == 1
    sa.warm_up(one, [40])
    assert classes(fresh) == 2
    before = sa.set_options(tuning="ahead_each")
    try:
        one(x)
        with pytest.raises(RuntimeError):
            one(torch.randn(64, 128))
    finally:
        sa.set_options(tuning=before.tuning)


def test_gradients(fresh):
    one = sa.SparseLinear(128, 256, 16, 0.2)
    sa.warm_up(one, [32], gradients=True)
    known = classes(fresh)
    assert known == 3  # forward, by x, by the values
    x = torch.randn(32, 128, requires_grad=True)
    one(x).sum().backward()
    assert classes(fresh) == known
    assert one.values.grad is not None


def test_inputs_of_a_model(fresh):
    model = nn.Sequential(layer())
    x = torch.randn(8, 128)
    sa.warm_up(model, [x, (x[:2],), {"input": x[:1]}])
    assert classes(fresh) == 3


def test_in_the_background(fresh):
    one = layer()
    work = sa.warm_up(one, [8, 300], background=True, patience_s=0.1)
    assert isinstance(work, sa.WarmUp)
    assert work.wait(600)
    assert work.done == 2
    assert classes(fresh) == 2
    more = sa.warm_up(one, [1000, 2000], background=True, patience_s=100)
    more.stop()
    assert more.wait(0)


def test_a_warm_up_that_fails(fresh):
    class Broken(sa.SparseLinear):
        def _operands(self):
            raise RuntimeError("it is broken")

    one = Broken(128, 256, 16, 0.2)
    with pytest.raises(RuntimeError, match="broken"):
        sa.warm_up(one, [8])
    with pytest.raises(RuntimeError, match="broken"):
        sa.warm_up(one, [8], background=True, patience_s=0.1).wait(600)


def test_bad_arguments(fresh):
    with pytest.raises(TypeError, match="model: must be"):
        sa.warm_up("model", [1])
    with pytest.raises(TypeError, match="sizes: must be"):
        sa.warm_up(layer(), ["many"])
    with pytest.raises(ValueError, match="at least 1, is 0"):
        sa.warm_up(layer(), [0])
    with pytest.raises(ValueError, match="no sa.SparseLinear"):
        sa.warm_up(nn.Linear(2, 2), [1])


def test_nothing_where_tuning_is_off(fresh):
    with sa.no_tuning():
        assert sa.warm_up(layer(), [8]) is None
    before = sa.set_options(effort="estimate")
    try:
        assert sa.warm_up(layer(), [8]) is None
    finally:
        sa.set_options(effort=before.effort)
    assert not fresh.exists() or classes(fresh) == 0


@pytest.mark.parametrize("tuning", ["in_place", "now", "now_each", "never", "ahead", "ahead_each"])
def test_who_asks_for_a_tuning_gets_one(fresh, tuning):
    one, before = layer(), sa.set_options(tuning=tuning)
    a, x = sa.BSR.from_dense(torch.randn(64, 64), block=16, density=0.5, by="l2"), torch.randn(64, 4)
    try:
        sa.warm_up(one, [8])
        assert classes(fresh) == 1
        one(torch.randn(8, 128))
        sa.tune(a, x)
        assert classes(fresh) == 2
        assert sa.explain(a, x).from_store
    finally:
        sa.set_options(**dataclasses.asdict(before))


def test_tune_each(fresh):
    one = layer()
    one(torch.randn(16, 128))
    before = sa.set_options(tuning="now_each")
    try:
        one(torch.randn(40, 128))
    finally:
        sa.set_options(tuning=before.tuning)
    assert classes(fresh) == 2


def test_explain_says_whose_choice_it_is(fresh):
    torch.manual_seed(0)
    A = sa.BSR.from_dense(torch.randn(128, 256), block=16, density=0.2)  # noqa: N806
    sa.matmul(A, torch.randn(256, 64))
    report = sa.explain(A, torch.randn(256, 100))
    near = report.origin == "nearest class, of n=64"
    assert near or "busy machine" in report.origin  # then the model decides
    assert report.origin in str(report)
    assert report.foreign == near
    assert not any(c["tflops"] or c["dense_equivalent_tflops"] for c in report.candidates)
    assert "GFLOP/s" not in str(report) or not near


def test_decoder(tmp_path):
    """bench/python/decoder.py, as a smoke test."""
    bench = pathlib.Path(__file__).resolve().parents[2] / "bench" / "python" / "decoder.py"
    if not bench.exists():
        pytest.skip("needs the repository")
    options = ["--device", "cpu", "--tiny", "--prompt", "32", "--context", "16", "--batches", "1,4", "--blocks", "16", "--densities", "25", "--rounds", "2"]
    done = subprocess.run(
        [sys.executable, bench, *options, "--budget-s", "0.02", "--json", tmp_path / "found.json"], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert [row["mlp"] for row in found["decoder"]] == ["dense", "block 16 25%"]
    for row in found["decoder"]:
        assert "why" not in row, row
        assert [step["name"] for step in row["steps"]] == ["prefill", "decode 1", "decode 4"]
        assert all(step["us"] > 0 and step["mlp_us"] > 0 for step in row["steps"])
    assert all(math.isfinite(step["kept"]) for step in found["decoder"][1]["steps"])  # of two rounds: the rest may take less than no time


def test_pruning(tmp_path):
    """bench/python/pruning.py, likewise."""
    bench = pathlib.Path(__file__).resolve().parents[2] / "bench" / "python" / "pruning.py"
    if not bench.exists():
        pytest.skip("needs the repository")
    options = ["--steps", "4", "--more", "4", "--batch", "2", "--context", "16", "--width", "32", "--layers", "1", "--blocks", "8", "--densities", "50"]
    done = subprocess.run([sys.executable, bench, *options, "--json", tmp_path / "found.json"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert [row["kind"] for row in found["rows"]] == ["before", "dense", "sparse"]
    assert found["rows"][2]["weights"] < found["rows"][1]["weights"]
    assert all(0 < row["loss"] < 20 for row in found["rows"])
