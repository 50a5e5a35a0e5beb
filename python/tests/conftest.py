"""Every test with a store in memory and nothing measured, unless it says otherwise; on the CPU, and on CUDA where there is one."""

import dataclasses
import os
import pathlib
import subprocess

import pytest
import torch

import sparse_autotune as sa

os.environ["SPARSEK_BUNDLE"] = ""  # what these tests find is their own

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-13, torch.float16: 3e-3, torch.bfloat16: 2e-2}

PROGRAM = pathlib.Path(sa.__file__).with_name("sparsek")  # what the command runs, without an interpreter that imports PyTorch for a second

without_a_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="takes long and says nothing of a GPU: runs where there is none")


@pytest.fixture(scope="session", autouse=True)
def _options():
    sa.set_options(store="", effort="estimate", tuning="now")  # not in place: what a first call measures is looked at


@pytest.fixture(autouse=True)
def _restored():
    before = sa.get_options()
    torch.manual_seed(20)
    yield
    if sa.get_options() != before:
        sa.set_options(**dataclasses.asdict(before))


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture(params=DTYPES, ids=lambda d: str(d).split(".")[1])
def dtype(request):
    return request.param


def sparsek(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


def random_bsr(rows, cols, block, density=0.4, dtype=torch.float32, device="cpu", batch=(), seed=0):
    """A random pattern, an empty block row among it where there are several."""
    generator = torch.Generator().manual_seed(seed)
    high, wide = (block, block) if isinstance(block, int) else block
    mask = torch.rand(-(-rows // high), -(-cols // wide), generator=generator) < density
    if mask.shape[0] > 2:
        mask[1] = False
    row_offsets = torch.zeros(mask.shape[0] + 1, dtype=torch.int32)
    row_offsets[1:] = torch.cumsum(mask.sum(1), 0)
    col_indices = mask.nonzero()[:, 1].to(torch.int32)
    values = torch.randn(*batch, col_indices.shape[0], high, wide, generator=generator, dtype=torch.float64).to(dtype)
    return sa.BSR(row_offsets.to(device), col_indices.to(device), values.to(device), (rows, cols))


def close(got, want, magnitude=None):
    """Within the tolerance of the dtype, relative to the largest entry (or the magnitude) of what is wanted."""
    assert got.shape == want.shape, f"shape {tuple(got.shape)}, wanted {tuple(want.shape)}"
    if want.numel() == 0:
        return
    scale = want.abs().max().item() if magnitude is None else magnitude
    error = (got.double() - want.double()).abs().max().item()
    assert error <= TOLERANCE[got.dtype] * max(scale, 1), f"off by {error:.3g}, scale {scale:.3g}"


def within(got, want, magnitudes, terms):
    """Entry by entry: want is the result in float64, magnitudes the same sums of absolute values, terms how many products an entry sums."""
    assert got.shape == want.shape, f"shape {tuple(got.shape)}, wanted {tuple(want.shape)}"
    bound = (terms + 4) * torch.finfo(got.dtype).eps * magnitudes + torch.finfo(got.dtype).tiny
    off = (got.double() - want).abs()
    assert (off <= bound).all(), f"off by {off.max().item():.3g}, {(off / bound).max().item():.3g} times the bound"


@pytest.fixture(scope="session")
def worlds():
    """worlds[n]: n processes over gloo; made once."""
    from ranks import Worlds

    made = Worlds()
    yield made
    made.close()
