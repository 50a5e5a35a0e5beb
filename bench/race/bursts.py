"""Contestants on a processor that take turns in one process: a burst of runs each, after a pause in which the threads of the one before come to rest."""
import datetime
import pathlib
import re
import statistics
import sys
import time

PAUSE_S = 0.01


def burst(call, runs):
    """The median of so many runs, in seconds, after one that does not count."""
    time.sleep(PAUSE_S)
    call()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def in_turn(calls, rounds, runs):
    """A burst of each in every round, there and back again: [{name: seconds}]."""
    return [{name: burst(calls[name], runs) for name in list(calls)[::-1 if number % 2 else 1]} for number in range(rounds)]


def spread(ratios):
    return {"least": round(min(ratios), 3), "median": round(statistics.median(ratios), 3), "most": round(max(ratios), 3)}


def document(library, threads, **results):
    processor = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {"schema": 1, "commit": library.commit, "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "command": f"bench/{pathlib.Path(sys.argv[0]).name} " + " ".join(sys.argv[1:]),
            "device": {"kind": "cpu", "name": processor[1] if processor else "", "threads": threads}, **results}
