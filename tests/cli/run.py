"""End-to-end tests of the command line: run.py PROGRAM [--quick] [--jobs N] [TEST...]. Python's standard library is all it needs.

With --jobs so many files of tests run at a time, each in a process of its own; those that measure run alone.
"""
import argparse
import concurrent.futures
import pathlib
import subprocess
import sys
import time
import unittest

import support

MEASURING = ("test_bench", "test_check")
LONG_S = 5  # a test of so many seconds is named at the end
SCRIPTS = ("test_carry", "test_performance", "test_proved", "test_runs")  # tests of scripts, which no other build of the program changes


def run_file(name, options):
    """The tests of one file in another process: their log, and whether all passed."""
    command = [sys.executable, __file__, support.program, *(["--quick"] if options.quick else []), name]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.stdout, done.returncode == 0


def run_files(options):
    names = sorted(path.stem for path in support.HERE.glob("test_*.py"))
    if options.quick:
        names = [name for name in names if name not in SCRIPTS]
    passed = True
    for group, jobs in ((MEASURING, 1), ([name for name in names if name not in MEASURING], options.jobs)):
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for name, (log, good) in zip(group, pool.map(lambda name: run_file(name, options), group)):
                print(f"{name}\n{log}", flush=True)
                passed &= good
    return passed


class Timed(unittest.TextTestResult):
    """Says at the end which tests took long."""

    def __init__(self, *arguments, **words):
        super().__init__(*arguments, **words)
        self.seconds_of = []

    def startTest(self, test):
        self.begun = time.monotonic()
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        self.seconds_of.append((time.monotonic() - self.begun, test.id()))

    def printErrors(self):
        super().printErrors()
        for seconds, name in sorted(self.seconds_of, reverse=True):
            if seconds >= LONG_S:
                self.stream.writeln(f"{seconds:5.0f} s  {name}")


def run_here(options):
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromNames(options.tests) if options.tests else loader.discover(str(support.HERE), "test_*.py", str(support.HERE))
    return unittest.TextTestRunner(verbosity=2, resultclass=Timed).run(suite).wasSuccessful()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--quick", action="store_true", help="without the tests that take long or time something")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("tests", nargs="*", metavar="TEST", help="as unittest names them; without: all")
    options = parser.parse_intermixed_args()
    support.program = str(pathlib.Path(options.program).resolve())
    support.quick = options.quick
    sys.exit(not (run_files(options) if options.jobs > 1 and not options.tests else run_here(options)))
