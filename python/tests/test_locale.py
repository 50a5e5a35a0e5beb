"""In programs that have set a locale with a decimal comma, a point of several bytes, or other capitals, reports and files are as ever."""

import os
import pathlib
import subprocess
import sys

import pytest

MAKE = pathlib.Path(__file__).parents[2] / "tests/locale/make.sh"

PROGRAM = """
import ctypes, locale, sys, warnings
import torch
import sparse_autotune as sa
from sparse_autotune import _race
_race.PEERS = ("pytorch_sdpa",)  # FlexAttention takes seconds to compile
warnings.simplefilter("ignore")
locale.setlocale(locale.LC_ALL, sys.argv[1])
text = ctypes.create_string_buffer(64)
ctypes.CDLL(None).snprintf(text, ctypes.c_size_t(64), b"%.1f", ctypes.c_double(0.5))
print("half", text.value.decode(locale.getpreferredencoding()))
sa.set_options(budget_s=0.2)
torch.manual_seed(int(sys.argv[2]))
A = sa.BSR.from_dense(torch.randn(64, 48), (8, 4), density=0.3)
x, D = torch.randn(48, 8), A.to_dense()
q = torch.randn(1, 2, 32, 16)
layer = sa.SparseLinear(64, 64, 8, 0.3)
torch.testing.assert_close(A @ x, D @ x, atol=1e-4, rtol=1e-4)
for report in (sa.tune(A, x), sa.explain(A, x), sa.benchmark(A, x), sa.benchmark(D, x), sa.benchmark_attention(q, q, q)):
    assert str(report), report
    assert any(c["median_us"] for c in report.candidates), report.candidates
assert sa.tune(A, x).problem["m"] == 64 and type(sa.tune(A, x).problem["m"]) is int
assert str(sa.inspect(A))
sa.warm_up(layer, [4])
A.save("a.safetensors")
assert torch.equal(sa.BSR.load("a.safetensors").to_dense(), D)
sa.attention(q, q, q, scale=0.3)
print("done")
"""


@pytest.fixture(scope="module")
def locales(tmp_path_factory):
    folder = tmp_path_factory.mktemp("locales")
    made = subprocess.run([MAKE, folder], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.fail(made.stdout + made.stderr)
    return folder


@pytest.mark.parametrize(("name", "half"), [("de_DE.UTF-8", "0,5"), ("ps_AF.UTF-8", "0\u066b5"), ("tr_TR.UTF-8", "0,5"), ("tr_TR.ISO-8859-9", "0,5")])
def test_in_a_locale(locales, tmp_path, name, half):
    seed = int.from_bytes(os.urandom(3), "big")
    environment = os.environ | {"LOCPATH": str(locales), "SPARSEK_STORE": str(tmp_path / "store.db"), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, "-c", PROGRAM, name, str(seed)], cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, f"seed {seed}:\n{done.stdout}{done.stderr}"
    assert done.stdout.split("\n")[:2] == [f"half {half}", "done"], done.stdout
