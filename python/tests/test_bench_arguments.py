"""What bench/python refuses before it measures."""

import argparse
import pathlib
import random
import subprocess
import sys

import pytest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench" / "python"
pytestmark = pytest.mark.skipif(not BENCH.exists(), reason="needs the repository")


@pytest.fixture
def arguments(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    import arguments

    return arguments


def test_numbers(arguments, tmp_path):
    for _ in range(100):
        least = random.randint(-5, 5)
        most = least + random.randint(0, 9)
        kind = arguments.integer(least, most)
        value = random.randint(-9, 20)
        if least <= value <= most:
            assert kind(str(value)) == value
        else:
            with pytest.raises(argparse.ArgumentTypeError, match=f"'{value}' is no whole number from {least} to {most}"):
                kind(str(value))
    for text in ("", "x", "1.5", "1e3", "nan"):
        with pytest.raises(argparse.ArgumentTypeError, match="is no whole number from 1"):
            arguments.integer(1)(text)
    assert arguments.real(0, 1)("0.25") == 0.25
    for text in ("", "x", "nan", "inf", "-0.1", "1.01"):
        with pytest.raises(argparse.ArgumentTypeError, match="is no number from 0 to 1"):
            arguments.real(0, 1)(text)
    assert arguments.listed(arguments.integer(1))("3,4") == [3, 4]
    assert arguments.result_file(str(tmp_path / "a.json")) == tmp_path / "a.json"
    for path, why in ((tmp_path, "it is a folder"), (tmp_path / "none" / "a.json", "its folder does not exist")):
        with pytest.raises(argparse.ArgumentTypeError, match=why):
            arguments.result_file(str(path))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--threads", "0"], "--threads: '0' is no whole number from 1 to 1024"),
        (["--width", "-4"], "--width: '-4' is no whole number"),
        (["--rounds", "0"], "--rounds: '0' is no whole number"),
        (["--budget-s", "nan"], "--budget-s: 'nan' is no number"),
        (["--count", "47"], "--count 47: must be no multiple of 47"),
        (["--block", "300"], "--block: '300' is no whole number from 1 to 256"),
        (["--density", "10"], "--density: '10' is no number from 0 to 1"),
        (["--json", "/nowhere/a.json"], "--json: '/nowhere/a.json' cannot be written"),
    ],
)
def test_sizes(options, why):
    done = subprocess.run([sys.executable, BENCH / "sizes.py", *options], capture_output=True, text=True, timeout=600)
    assert done.returncode == 2 and why in done.stderr, done.stderr
