"""benchmark, tune, explain, inspect, the command line."""

import subprocess
import sys

import pytest
import torch
from conftest import random_bsr

import sparse_autotune as sa


@pytest.fixture
def measuring():
    sa.set_options(effort="measure", budget_s=0.05)


def test_tune_then_explain(measuring):
    a, b = random_bsr(96, 80, 16), torch.randn(80, 33)
    with pytest.raises(LookupError, match="class"):
        sa.explain(a, b)
    report = sa.tune(a, b)
    assert not report.from_store and report.chosen in report.choice
    assert report[report.chosen]["median_us"] > 0
    again = sa.tune(a, b)
    assert again.from_store and again.choice == report.choice == sa.explain(a, b).choice
    assert not sa.tune(a, b, fresh=True).from_store
    sa.set_options(choice=report.choice)
    assert torch.isfinite(a @ b).all()
    sa.set_options(choice="spmm_nonsense")
    with pytest.raises(RuntimeError, match="spmm_nonsense"):
        a @ torch.randn(80, 34)


def test_times_of_another_class_give_no_rates():
    """As a report has them that the nearest class decided."""
    from sparse_autotune._report import Report

    def found(foreign):
        row = dict(name="spmm_portable", params="NV=2", kind="own", status="ok", why=None, median_us=200.0, spread_us=5.0, samples_us=[])
        dense = row | dict(name="mkl_dense", kind="dense", median_us=900.0)
        problem = dict(dtype="f32", m=64, n=32, k=64, batch=1, cache="cold", assume_finite=0.0)
        whose = dict(origin="nearest class, of n=24", foreign=True) if foreign else dict(origin=None, foreign=False)
        device = dict(name="a CPU", threads=2.0)
        said = dict(sentence="{m} x {k} times {n}", flops=1e6, dense_flops=1e7, chosen=0.0, from_store=1.0, tuning_s=1.0, provisional=None, summary="It won.")
        return said | whose | dict(problem=problem, device=device, class_key="v=1", sparsek="0", commit="0", candidates=[row, dense])

    own, other = Report(found(False)), Report(found(True))
    assert own["spmm_portable"]["tflops"] > 0 and "GFLOP/s" in str(own) and "x dense" in str(own)
    assert own.origin is None and not own.foreign and "from the store" in str(own)
    assert other["spmm_portable"]["tflops"] is None and other["spmm_portable"]["dense_equivalent_tflops"] is None
    for shown in (str(other), other._repr_html_()):
        assert "GFLOP/s" not in shown and "x dense" not in shown and "4.50" not in shown
        assert "nearest class, of n=24" in shown and "no times of this problem" in shown
    result = other.to_dict()["results"][0]
    assert result["origin"] == "nearest class, of n=24" and result["foreign"] is True


def test_provisional_evidence_says_why():
    a, b = random_bsr(1024, 1024, 32), torch.randn(1024, 512)
    report = sa.tune(a, b)  # by estimate: nothing is measured
    assert report.provisional is None and report.to_dict()["results"][0]["provisional"] is None and "provisional" not in str(report)
    sa.set_options(effort="measure", budget_s=1e-4)  # too little for rounds that decide
    report = sa.tune(a, b)
    assert report.provisional in ("budget", "load")
    assert report.to_dict()["results"][0]["provisional"] == report.provisional
    assert f"provisional: {report.provisional}" in str(report) and f"provisional: {report.provisional}" in report._repr_html_()
    assert sa.explain(a, b).provisional == report.provisional


def test_tune_other_products(measuring):
    a = random_bsr(48, 64, 16)
    right = sa.tune(torch.randn(5, 7, 64), a, transpose=True)
    assert (right.problem["m"], right.problem["k"], right.problem["n"]) == (48, 64, 35) and right.problem["layout_b"] == "col"
    sampled = sa.tune(a, torch.randn(48, 9), torch.randn(9, 64))
    assert sampled.problem["op"] == "sddmm" and sampled.problem["k"] == 9
    with pytest.raises(TypeError, match="operands"):
        sa.tune(a)
    assert sa.tune(torch.randn(3, 4), torch.randn(4, 5)).problem["op"] == "gemm"


def test_the_promise_of_finite_operands():
    """It reaches the library with each kind of product, and goes with none that does not make it."""
    a = random_bsr(48, 64, 16)
    for operands in ((a, torch.randn(64, 7)), (torch.randn(7, 48), a), (a, torch.randn(48, 9), torch.randn(9, 64)), (torch.randn(3, 4), torch.randn(4, 5))):
        for promised in (False, True):
            assert sa.tune(*operands, assume_finite=promised).problem["assume_finite"] is promised


def test_benchmark(measuring):
    a, b = random_bsr(64, 64, 16), torch.randn(64, 20)
    report = sa.benchmark(a, b, rounds=3)
    names = {c["name"] for c in report.candidates}
    assert {"sparse_autotune", "pytorch_dense", "pytorch_bsr", "reference_spmm"} <= names
    result = report.to_dict()["results"][0]
    assert result["chosen"] == report.chosen and result["candidates"][0]["name"] == report.chosen
    assert {"name", "params", "hash", "kind", "status", "why", "median_us", "spread_us", "tflops", "ratios"} <= set(result["candidates"][0])
    assert result["problem"]["nnzb"] == a.nnzb
    met = {c["name"] for c in report.candidates if c["samples_us"] and c["kind"] != "peer"}
    assert result["candidates"][0]["ratios"] or report.provisional or met == {report.chosen}  # where the budget ended before they met
    text = str(report)
    assert f"> {report.chosen}" in text and "pytorch_dense" in text and report.summary in text
    dense = min((c for c in report.candidates if c["median_us"] and (c["kind"] == "dense" or c["name"] == "pytorch_dense")), key=lambda c: c["median_us"])
    told = f"The fastest dense row, over which x dense is: {dense['name']} at "
    assert text.count("ense: ") == 0 and text.count("dense is: ") == 1 and told in text  # one sentence, not the library's besides
    assert told in report._repr_html_()
    row = next(line for line in text.split("\n") if line.split()[:1] == [dense["name"]])
    assert f" {1:.2f} " in row
    page = report._repr_html_()
    assert page.count("<tr") == 1 + sum(1 for c in report.candidates if c["median_us"]) and report.chosen in page


@pytest.mark.parametrize("us", [1e-3, 1e9])
def test_one_dense_row_is_spoken_of(measuring, us):
    """Whichever is the fastest, the library's or PyTorch's: the column and the closing sentence say the same."""
    report = sa.tune(random_bsr(64, 64, 16), torch.randn(64, 20))
    report.add("pytorch_dense", [us])
    rows = [c for c in report.candidates if c["median_us"] and (c["kind"] == "dense" or c["name"] == "pytorch_dense")]
    fastest = min(rows, key=lambda c: c["median_us"])["name"]
    assert us > 1 or fastest == "pytorch_dense"
    assert f"x dense is: {fastest}" in report.summary and " Dense: " not in report.summary
    assert next(cells for cells in report._rows() if cells[0].strip("> ") == fastest)[5] == "1.00"


def test_what_pytorch_cannot_do_says_so(measuring):
    report = sa.benchmark(random_bsr(60, 64, 16), torch.randn(64, 4), rounds=3)
    assert report["pytorch_bsr"]["median_us"] is None and "multiple" in report["pytorch_bsr"]["why"]
    assert report["sparse_autotune"]["median_us"] > 0


def test_plot(measuring, tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    report = sa.tune(random_bsr(64, 64, 16), torch.randn(64, 20))
    timed = [c for c in report.candidates if c["median_us"]]
    _, own = plt.subplots()
    for axes in (report.plot(), report.plot(own)):
        assert [bar.get_width() for bar in axes.patches] == [c["median_us"] for c in timed]
        assert axes.get_yticklabels()[0].get_text().startswith(report.chosen) and "µs" in axes.get_xlabel()
    assert axes is own
    axes.figure.savefig(tmp_path / "report.png")
    assert (tmp_path / "report.png").stat().st_size > 1000
    plt.close("all")


def test_html_is_escaped():
    report = sa.benchmark(random_bsr(16, 16, 8), torch.randn(16, 2), rounds=3)
    report.add("<b>&", [1.0, 2.0])
    assert "&lt;b&gt;&amp;" in report._repr_html_() and "<b>" not in report._repr_html_()


def test_progress(measuring, monkeypatch):
    from sparse_autotune import _C

    steps = []
    _C.set_progress(lambda done, total, what: steps.append((done, total, what)))
    try:
        sa.tune(random_bsr(64, 80, 16), torch.randn(80, 21))
    finally:
        _C.set_progress(None)
    assert steps and all(0 <= done <= total for done, total, _ in steps)


def test_progress_bar(measuring, capsys):
    pytest.importorskip("tqdm")
    sa.tune(random_bsr(64, 80, 16), torch.randn(80, 23), progress=True)
    assert "it/s" in capsys.readouterr().err
    sa.tune(random_bsr(64, 80, 16), torch.randn(80, 25))
    assert capsys.readouterr().err == ""


def test_inspect():
    a = random_bsr(70, 64, (16, 8))
    found = sa.inspect(a)
    assert (found.rows, found.grid_rows, found.nnzb) == (70, 5, a.nnzb) and found.empty_rows >= 1
    assert f"{a.nnzb} of 40 blocks" in str(found) and found.to_dict()["density"] == pytest.approx(a.density)


def test_command_line():
    done = subprocess.run([sys.executable, "-m", "sparse_autotune", "--version"], capture_output=True, text=True, check=True)
    assert sa.__version__ in done.stdout
    wrong = subprocess.run([sys.executable, "-m", "sparse_autotune", "nonsense"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "nonsense" in wrong.stderr
