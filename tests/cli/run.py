"""End-to-end tests of the command line: run.py PROGRAM [--quick] [TEST...]. Python's standard library is all it needs."""
import pathlib
import sys
import unittest

import support

if __name__ == "__main__":
    words = sys.argv[1:]
    if not words or words[0].startswith("-"):
        sys.exit("usage: run.py PROGRAM [--quick] [TEST...]")
    support.program = str(pathlib.Path(words.pop(0)).resolve())
    support.quick = "--quick" in words
    names = [word for word in words if word != "--quick"]
    loader = unittest.TestLoader()
    if names:
        suite = loader.loadTestsFromNames(names)
    else:
        suite = loader.discover(str(support.HERE), "test_*.py", str(support.HERE))
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
