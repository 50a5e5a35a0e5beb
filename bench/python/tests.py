"""Runs the tests of the installed Python package and keeps what came of it: python bench/python/tests.py --json FILE [--limit-s N] [PYTEST OPTIONS].

They run in a folder of their own, so that it is the installed package that is tested. Every failed test is named in the file. What is done when the limit is
reached is counted, and the file says that it was.
"""

import argparse
import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

import torch

from sparse_autotune import _C

TESTS = pathlib.Path(__file__).resolve().parents[2] / "python" / "tests"


def run(command, folder, limit_s):
    """Whether it was interrupted; pytest reports what it has done by then."""
    with subprocess.Popen(command, cwd=folder) as process:
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            return True
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", required=True, metavar="FILE")
    parser.add_argument("--tests", nargs="+", default=[str(TESTS)], metavar="PATH", help="folders or files of tests (default: python/tests); in parts, where all take too long at once")
    parser.add_argument("--limit-s", type=float, help="interrupt the tests after so many seconds")
    options, others = parser.parse_known_args()
    path = os.path.abspath(options.json)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", f"--junitxml={report}", *map(os.path.abspath, options.tests), *others]
        late = run(command, folder, options.limit_s)
        suite = next(ElementTree.parse(report).getroot().iter("testsuite"))
    bad = [case for case in suite.iter("testcase") if case.find("failure") is not None or case.find("error") is not None]
    total, skipped = int(suite.get("tests")), int(suite.get("skipped"))
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    found = dict(schema=1, sparsek=_C.version(), commit=_C.commit(), date=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"))
    found |= dict(command="python " + " ".join(sys.argv), device=dict(kind=kind, name=torch.cuda.get_device_name() if kind == "cuda" else ""))
    found |= dict(versions=dict(python=sys.version.split()[0], torch=torch.__version__), passed=total - skipped - len(bad), failed=len(bad), skipped=skipped)
    found |= dict(seconds=float(suite.get("time")), failures=[f"{case.get('classname')}::{case.get('name')}" for case in bad])
    found |= dict(interrupted=late)
    with open(path, "w") as file:
        json.dump(found, file, indent=1)
        file.write("\n")
    sys.exit(1 if bad or late else 0)


if __name__ == "__main__":
    main()
