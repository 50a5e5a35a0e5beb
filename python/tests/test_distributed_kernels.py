"""The kernels that write rows into other ranks' memory, in Triton's interpreter, beside PyTorch's operators."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton")


def _interpreted():
    import torch

    from sparse_autotune.distributed import _kernels, _rows

    class Memory:
        """Two ranks in one process."""

        ranks, rank = 2, 1

        def __init__(self):
            self.buffers = [torch.zeros(1 << 16, dtype=torch.uint8) for _ in range(self.ranks)]

        def addresses(self):
            return torch.tensor([buffer.data_ptr() for buffer in self.buffers])

        def view(self, rank, first, shape, dtype):
            size = shape[0] * (shape[1] if len(shape) > 1 else 1) * dtype.itemsize
            return self.buffers[rank][first : first + size].view(dtype).view(shape)

    torch.manual_seed(1)
    tokens, k, width, each, count = 6, 2, 20, 2, 4
    x = torch.randn(tokens, width)
    chosen = torch.rand(tokens, count).topk(k).indices
    chosen[2, 1] = count  # left out
    expert, order = chosen.flatten().to(torch.uint8).sort(stable=True)
    begins = torch.searchsorted(expert, torch.arange(count + 1, dtype=torch.uint8))
    totals = begins.diff().view(2, 1, each)
    base = (totals.cumsum(2) - totals).flatten() - begins[:-1]
    ours, theirs = Memory(), Memory()
    for part in (range(0, 1), range(1, 2), range(0, 2)):
        _kernels.send(ours, x, order, expert, base, each, part, k, 256, 32768)
        _rows.send_rows(theirs, x, order, expert, base, each, part, k, (256, 12), 32768)
        assert all(torch.equal(mine, other) for mine, other in zip(ours.buffers, theirs.buffers, strict=True))
    assert any(buffer.any() for buffer in ours.buffers)
    made, notes, end = torch.randn(12, width), torch.randperm(24)[:12].to(torch.int32), torch.tensor([7])
    _kernels.give_back(ours, made, notes, end, 12, 16384)
    _rows.return_rows(theirs, made, notes, end, 12, 16384)
    assert all(torch.equal(mine, other) for mine, other in zip(ours.buffers, theirs.buffers, strict=True))
    weights, kept = torch.rand(tokens, k), torch.rand(tokens * k) > 0.3
    made[~kept] = float("nan")
    torch.testing.assert_close(_kernels.weighted(made, weights, kept), _rows.weighted(made, weights, kept))
    made = torch.randn(12, width)
    torch.testing.assert_close(_kernels.weighted(made, weights, None), _rows.weighted(made, weights, None))


def test_interpreted():
    done = subprocess.run([sys.executable, __file__], env=os.environ | {"TRITON_INTERPRET": "1"}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    _interpreted()
