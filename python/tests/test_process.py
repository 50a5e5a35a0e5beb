"""Threads, forks, and the processor's threads."""

import os
import pathlib
import subprocess
import sys
import threading

import pytest
import torch
from conftest import close, random_bsr


def test_threads():
    """Known and new patterns from several threads at once."""
    shared, b = random_bsr(64, 64, 8), torch.randn(64, 9)
    want = shared.to_dense() @ b
    failures = []

    def work(seed):
        try:
            for i in range(60):
                own = random_bsr(64, 64, 8, seed=100 * seed + i)
                close(shared @ b, want)
                close(own @ b, own.to_dense() @ b)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def test_number_of_threads_may_change():
    a, b = random_bsr(64, 64, 8), torch.randn(64, 9)
    before = torch.get_num_threads()
    try:
        for count in (1, 2, 1):
            torch.set_num_threads(count)
            close(a @ b, a.to_dense() @ b)
    finally:
        torch.set_num_threads(before)


FORK = """
import os, sys, torch
import sparse_autotune as sa
sa.set_options(store=sys.argv[1], effort="estimate")
torch.set_num_threads(1)
a = sa.BSR.from_dense(torch.randn(64, 64), 8, density=0.3)
b = torch.randn(64, 9)
want = a @ b
child = os.fork()
if child == 0:
    torch.set_num_threads(1)
    ok = torch.equal(a @ b, want)
    os._exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0
assert torch.equal(a @ b, want)
"""


def test_fork(tmp_path):
    subprocess.run([sys.executable, "-c", FORK, str(tmp_path / "store.db")], check=True, timeout=600)


class _Items(torch.utils.data.Dataset):
    def __init__(self):
        self.matrix = random_bsr(16, 16, 4)

    def __len__(self):
        return 6

    def __getitem__(self, index):
        return os.getpid(), self.matrix @ torch.full((16, 2), float(index))


def test_loader_workers():
    items = _Items()
    items.matrix @ torch.randn(16, 2)
    loader = torch.utils.data.DataLoader(items, num_workers=2, batch_size=None, multiprocessing_context="fork")
    for index, (process, product) in enumerate(loader):
        assert process != os.getpid()
        close(product, items.matrix.to_dense() @ torch.full((16, 2), float(index)))


def test_a_named_torch_is_the_one(tmp_path):
    """A TORCH_ROOT that is wrong must not be passed over for another torch: CMake refuses it by name."""
    finder = pathlib.Path(__file__).parents[2] / "cmake/find_torch.py"
    if not finder.exists():
        pytest.skip("only beside the sources")
    wrong = str(tmp_path / "torch")
    found = subprocess.run([sys.executable, finder], env=os.environ | {"TORCH_ROOT": wrong + "/"}, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == wrong
