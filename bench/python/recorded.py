"""A plugin of pytest (-p recorded) for tests that take several calls: RECORDED_TO names a file that gets a line for each test as soon as it is known, and
RECORDED_BEFORE one whose tests are left out, a name a line. bench/python/tests.py uses it."""

import json
import os
import pathlib


def pytest_collection_modifyitems(config, items):
    before = os.environ.get("RECORDED_BEFORE")
    known = set(pathlib.Path(before).read_text(encoding="utf-8").splitlines()) if before else set()
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in known])
    items[:] = [item for item in items if item.nodeid not in known]


def pytest_configure(config):
    to = os.environ.get("RECORDED_TO")
    if to and not hasattr(config, "workerinput"):  # of workers the one that started them hears
        config.pluginmanager.register(Recorder(to))


class Recorder:
    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115

    def pytest_runtest_logreport(self, report):
        outcome = report.outcome if report.when == "call" or report.outcome != "passed" else None
        if outcome is not None:
            self.file.write(json.dumps({"test": report.nodeid, "outcome": outcome, "seconds": round(report.duration, 2)}) + "\n")
            self.file.flush()
