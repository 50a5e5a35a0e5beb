"""Signals while something is measured: what their handler raises arrives once, at once, and the package goes on."""

import os
import signal
import subprocess
import sys
import textwrap

# Each program begins to tune a class that needs many seconds, and gets a signal once measuring has come so far.
BEGIN = """
import os, signal, threading
import torch
import sparse_autotune as sa
from sparse_autotune import _C
sa.set_options(tuning="now", budget_s=600)
torch.manual_seed(0)
A = sa.BSR.from_dense(torch.randn(2048, 2048), 16, density=0.1)
x = torch.randn(2048, 128)
later = 0  # how often progress was told after the signal
def send(number, far_enough=lambda done, times: done >= 2):
    # far_enough: of the steps that are done, and how often the last of them has been told
    global later
    later, told, ready, sent = 0, {}, threading.Event(), threading.Event()
    def step(done, total, what):
        global later
        later += sent.is_set()
        told[done, what] = told.get((done, what), 0) + 1
        if far_enough(done, told[done, what]):
            ready.set()
    def wait_and_send():
        ready.wait()
        os.kill(os.getpid(), number)
        sent.set()
    _C.set_progress(step)
    threading.Thread(target=wait_and_send, daemon=True).start()
"""


def run(body, tmp_path):
    env = {name: value for name, value in os.environ.items() if name != "SPARSEK_STORE"}
    env["SPARSEK_CACHE_DIR"] = str(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + textwrap.dedent(body)],
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # jobs in the background of a shell ignore it
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


PRODUCTS = {
    "matmul": "sa.matmul(A, x)",
    "sddmm": "sa.sddmm(A, torch.randn(2048, 512), torch.randn(512, 2048))",
    "gradient": "sa.matmul(A.requires_grad_(), x).sum().backward()",
    "tune": "sa.tune(A, x)",
    "benchmark": "sa.benchmark(A, x)",
    "compiled": "torch.compile(lambda x: sa.matmul(A, x), backend='eager')(x)",
}


def test_an_interrupt_is_raised_once_and_at_once(tmp_path):
    calls = "".join(f'    "{name}": lambda: {call},\n' for name, call in PRODUCTS.items())
    said = run(
        f"""
calls = {{
{calls}}}
for name, call in calls.items():
    send(signal.SIGINT)
    try:
        call()
        print(name, "finished")
    except KeyboardInterrupt:
        late = later > 3
        for _ in range(10000):  # a second one would strike here
            pass
        print(name, "late" if late else "interrupted")
        """,
        tmp_path,
    )
    assert said == [word for name in PRODUCTS for word in (name, "interrupted")]


def test_an_interrupt_between_rounds(tmp_path):
    """When all candidates have been met and those in front are timed again and again."""
    said = run(
        """
        q = torch.randn(1, 4, 1024, 72)
        send(signal.SIGINT, lambda done, times: times >= 3)
        try:
            sa.attention(q, q, q, mask=sa.BlockMask.window(1024, 200, 64, causal=True))
            print("finished")
        except KeyboardInterrupt:
            print("late" if later > 3 else "interrupted")
        """,
        tmp_path,
    )
    assert said == ["interrupted"]


def test_what_another_handler_raises_arrives(tmp_path):
    said = run(
        """
        calls = []
        def handler(number, frame):
            calls.append(number)
            raise TimeoutError("too long")
        signal.signal(signal.SIGALRM, handler)
        send(signal.SIGALRM)
        try:
            sa.matmul(A, x)
        except TimeoutError as error:
            print(str(error).replace(" ", "-"))
        for _ in range(10000):  # a second one would strike here
            pass
        print(len(calls))
        """,
        tmp_path,
    )
    assert said == ["too-long", "1"]


def test_a_handler_that_does_not_raise_stops_nothing(tmp_path):
    said = run(
        """
        signal.signal(signal.SIGUSR1, lambda number, frame: print("seen"))
        sa.set_options(budget_s=3)
        send(signal.SIGUSR1)
        y = sa.matmul(A, x)
        print(y.shape[0])
        """,
        tmp_path,
    )
    assert said == ["seen", "2048"]


def test_products_go_on_after_an_interrupt(tmp_path):
    said = run(
        """
        send(signal.SIGINT)
        try:
            sa.matmul(A, x)
        except KeyboardInterrupt:
            print("interrupted")
        sa.set_options(budget_s=0.5)
        y = sa.matmul(A, x)
        torch.testing.assert_close(y.double(), A.to_dense().double() @ x.double(), rtol=1e-4, atol=1e-3)
        print("right")
        """,
        tmp_path,
    )
    assert said == ["interrupted", "right"]
