#!/usr/bin/env python3
"""Tests wait for events, not for times. Usage: waits.py [--test]

On a machine that many share, a second is as good as nothing: a test that sleeps until something has surely happened fails there, and one that asserts that
something took little time fails with it. What happens says so: by a line of progress, a file, a lock, a message, a flag; or the test moves the clock
(tests/unit/fake_clock.h). A limit that ends what hangs is minutes. This finds sleeps, assertions about the clock and short limits in tests and their
scripts. What must stay stands in ALLOWED, each with its reason.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FOLDERS = ("tests", "python/tests", "rust")
ENDINGS = {".c", ".h", ".py", ".rs", ".sh"}
LEAST_LIMIT_S = 300

# What a line of a test must not have: a wait for a time, and a look at the clock that decides whether the test passes.
SLEEPS = re.compile(
    r"\b(usleep|nanosleep|sleep_for|pause_ms|time\.sleep|thread::sleep|threading\.Timer|Timer)\s*\(|(^|[;&|(\"'])\s*sleep \d|\bsleep \d+s?\b"
)
CLOCKS = re.compile(r"(assert\w*!?|CHECK)\s*\(?.*\b(spk_now_us|monotonic|perf_counter|time\.time|elapsed|Instant)\b")
LIMITS = re.compile(r"\b(?:timeout=|timeout (?:-k \d+ )?|\.wait\(|\.join\(|alarm\(|timedelta\(seconds=)(\d+(?:\.\d+)?)\b")

# file: {what the line has: why it may}
ALLOWED = {
    "tests/cli/support.py": {"time.sleep(0.005)": "a loop that waits for an event", "assertLess(time.monotonic(), limit": "its limit, of minutes"},
    "tests/cli/test_bench.py": {"time.sleep(0.001)": "a loop that waits for a file"},
    "tests/cli/test_faults.py": {"time.sleep(0.01)": "a loop that waits for a file", "assertLess(time.monotonic(), limit": "its limit, of minutes"},
    "tests/unit/test_cpu_time.c": {"tv_nsec = (long)(1e3 * away_us)": "the time away is what is taken out: it may be longer"},
    "tests/unit/test_executor.c": {"tv_nsec = (long)(1e3 * away_us)": "the time away is what is taken out: it may be longer"},
    "tests/unit/test_cuda_cubins.c": {"begun >= 0.05e6": "waiting takes at least its limit: no load makes it shorter"},
    "tests/unit/test_cuda_driver.c": {"usleep(25000)": "it lets at least the time pass in which no second look is taken: no load makes it shorter"},
    "tests/unit/test_cuda_proof.c": {"sleep 600": "a prover that hangs by intention", "begun < 500e6": "it was not waited for: less than it hangs",
                                     "nanosleep(&(struct timespec){.tv_nsec = 10000000}": "a loop that waits for a file"},
    "tests/unit/test_decisions.c": {"begun < 300e6": "the limit of a loop that waits for an event", "tv_nsec = 20000000": "that loop"},
    "tests/unit/test_load.c": {"tv_nsec = 5000000": "a loop that waits for an event"},
    "tests/unit/test_pool.c": {"round % 2 ? 3000000": "threads go to sleep between two rounds or do not: both are tried, and nothing depends on which"},
    "tests/unit/test_store_behind.c": {"nanosleep(&(struct timespec){.tv_nsec = 10000000}": "loops that wait for an event"},
    "tests/unit/test_trial_ahead.c": {"static void pause_ms": "the function that the others call", "nanosleep(&(struct": "its body",
                                      "pause_ms()": "loops that wait for an event; one lets time pass in which nothing may run: no load makes it shorter"},
    "tests/unit/test_store_process.c": {"static void pause_ms": "the function that the others call", "nanosleep(&wait": "its body",
                                        "pause_ms(30)": "tuning takes a while: others come meanwhile or do not",
                                        "pause_ms(25 *": "processes are killed at moments drawn at random",
                                        "pause_ms(5)": "one that saves leaves the disk to others",
                                        "pause_ms(1)": "loops that wait for threads, or let them go on"},
    "tests/unit/test_tune_operands.c": {"spk_now_us() - start < 300000": "of the fake clock"},
    "python/tests/ranks.py": {"process.join(5)": "what has not ended by then is killed"},
    "python/tests/sweep_architectures.py": {"time.sleep(0.05)": "a loop that waits for processes"},
    "python/tests/shared_double.py": {"time.sleep(2e-4)": "a loop that waits for an event"},
    "python/tests/test_warm_up.py": {"more.wait(0)": "it has ended: stop() says so"},
}


def findings(text):
    """(line number, line, what is wrong)"""
    for number, line in enumerate(text.splitlines(), 1):
        short = [limit for limit in LIMITS.findall(line) if float(limit) < LEAST_LIMIT_S]
        if SLEEPS.search(line):
            yield number, line, "it waits for a time"
        elif CLOCKS.search(line):
            yield number, line, "it asserts a time"
        elif short:
            yield number, line, f"a limit of {short[0]} s is short on a busy machine: {LEAST_LIMIT_S} at least"


def files():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            inside = path.relative_to(ROOT).as_posix()
            of_rust = not inside.startswith("rust/") or "/tests/" in inside
            if path.suffix in ENDINGS and of_rust and "/target/" not in inside and path != pathlib.Path(__file__).resolve():
                yield path, inside
    yield ROOT / "scripts" / "test", "scripts/test"


def check():
    bad, used = [], set()
    for path, inside in files():
        allowed = ALLOWED.get(inside, {})
        for number, line, why in findings(path.read_text(encoding="utf-8", errors="replace")):
            reasons = [key for key in allowed if key in line]
            used.update((inside, key) for key in reasons)
            if not reasons:
                bad.append(f"{inside}:{number}: {why}: {line.strip()}")
    stale = [f"{inside}: nothing has {key!r} any more" for inside, keys in ALLOWED.items() for key in keys if (inside, key) not in used]
    return bad + stale


def test():
    wrong = ["    usleep(20);", "time.sleep(4)", "thread::sleep(pause);", "  sleep 3", 'do_deed("", "sleep 60");', "assert_true(spk_now_us() - begun < 1e6);",
             "self.assertLess(time.monotonic() - start, 3)", "subprocess.run(x, timeout=60)", "timeout 20 build/x", "process.wait(60)", "alarm(60);"]
    right = ["until_shown('x')", "subprocess.run(x, timeout=600)", "process.wait(LIMIT_S)", "double start = spk_now_us();", "it is asleep 3 times"]
    for line in wrong:
        assert list(findings(line)), line
    for line in right:
        assert not list(findings(line)), line


if __name__ == "__main__":
    if sys.argv[1:] == ["--test"]:
        test()
        sys.exit()
    found = check()
    print("\n".join(found) or "waits: tests wait for events")
    sys.exit(bool(found))
