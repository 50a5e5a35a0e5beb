"""Runs the tests of the installed Python package and keeps what came of it:

    python bench/python/tests.py --json FILE [--limit-s N] [--resume STATE] [PYTEST OPTIONS]

They run in a folder of their own, so that it is the installed package that is tested. Every failed test is named in the file. What is done when the limit is
reached is counted, and the file says that it was. With --resume STATE the next call goes on with the tests that did not pass before, as long as package,
device and PyTorch are the same; the file is of all calls.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import torch
from arguments import SECONDS

from sparse_autotune import _C

HERE = pathlib.Path(__file__).resolve().parent
GRACE_S = 20  # for tests that are running when the limit is reached


def run(command, folder, environment, limit_s):
    """(exit code, whether it was interrupted)."""
    with subprocess.Popen(command, cwd=folder, env=environment) as process:
        try:
            return process.wait(limit_s), False
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(GRACE_S), True
        process.kill()
        return process.wait(), True


def outcomes_of(path):
    """{test: outcome}: of several lines the last counts, as what cleans up after a test may fail."""
    with open(path, encoding="utf-8") as file:
        return {line["test"]: line["outcome"] for line in map(json.loads, file)}


def earlier(path, about):
    """What calls before have found of the same; a state of something else begins anew."""
    try:
        held = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        return (held["outcomes"], held["seconds"], held["calls"]) if held["about"] == about else ({}, 0.0, 0)
    except (OSError, ValueError, KeyError, TypeError):
        return {}, 0.0, 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", required=True, metavar="FILE")
    parser.add_argument(
        "--tests", nargs="+", default=[str(HERE.parents[1] / "python" / "tests")], metavar="PATH", help="folders or files of tests (default: python/tests)"
    )
    parser.add_argument("--limit-s", type=SECONDS, help="interrupt the tests after so many seconds")
    parser.add_argument("--resume", metavar="STATE", help="keep in this file which tests are done, and leave out those that are")
    options, others = parser.parse_known_args()
    path, state = os.path.abspath(options.json), os.path.abspath(options.resume) if options.resume else None
    os.makedirs(os.path.dirname(path), exist_ok=True)
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    about = dict(sparsek=_C.version(), commit=_C.commit(), device=dict(kind=kind, name=torch.cuda.get_device_name() if kind == "cuda" else ""))
    about |= dict(versions=dict(python=sys.version.split()[0], torch=torch.__version__))
    known, seconds, calls = earlier(state, about) if state else ({}, 0.0, 0)
    begun = datetime.datetime.now(datetime.timezone.utc)
    with tempfile.TemporaryDirectory() as folder:
        record, before = os.path.join(folder, "record.jsonl"), os.path.join(folder, "before.txt")
        pathlib.Path(record).touch()
        pathlib.Path(before).write_text("".join(f"{test}\n" for test, outcome in known.items() if outcome != "failed"), encoding="utf-8")
        environment = dict(os.environ, RECORDED_TO=record, RECORDED_BEFORE=before)
        environment["PYTHONPATH"] = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
        tests = map(os.path.abspath, options.tests)
        code, late = run(
            [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", "-p", "recorded", *tests, *others], folder, environment, options.limit_s
        )
        found = outcomes_of(record)
    outcomes = known | found
    now = datetime.datetime.now(datetime.timezone.utc)
    seconds, calls = seconds + (now - begun).total_seconds(), calls + 1
    if state:
        pathlib.Path(state).write_text(json.dumps(dict(about=about, seconds=seconds, calls=calls, outcomes=outcomes)) + "\n", encoding="utf-8")
    count = {outcome: sum(each == outcome for each in outcomes.values()) for outcome in ("passed", "failed", "skipped")}
    made = dict(
        schema=1, **about, date=now.strftime("%Y-%m-%dT%H:%M:%SZ"), command="python " + " ".join(sys.argv), **count, seconds=round(seconds, 1), calls=calls
    )
    made |= dict(failures=sorted(test for test, outcome in outcomes.items() if outcome == "failed"), interrupted=late)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(made, file, indent=1)
        file.write("\n")
    # 5: nothing was left to run
    sys.exit(1 if count["failed"] or late or (code not in (0, 5)) else 0)


if __name__ == "__main__":
    main()
