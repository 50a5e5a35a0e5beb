"""What must not be lost, believed or left behind: interruption, full disks, stores of strangers, changed settings, hostile names."""
import json
import os
import signal
import sqlite3
import subprocess
import time

import support
from support import SMALL, CliTest

# Long enough to be interrupted anywhere: generating takes a fraction of a second, writing the text many.
LONG = ["gen", "uniform", "--rows", "16000", "--density", "0.2", "--block", "8", "-o", "x.mtx"]


class Interrupted(CliTest):
    def begin(self, *arguments):
        return subprocess.Popen([support.program, *arguments], cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def leftovers(self):
        return [p.name for p in self.folder.iterdir() if p.name.startswith(".sparsek") or p.name.startswith("x.mtx")]

    def wait_for_temporary(self, process):
        limit = time.monotonic() + 60
        while not self.leftovers() and time.monotonic() < limit:
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        time.sleep(0.2)

    def test_writing_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.begin(*LONG)
            self.wait_for_temporary(process)
            start = time.monotonic()
            process.send_signal(number)
            _, error = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, error)
            self.assertLess(time.monotonic() - start, 5 if support.quick else 1.5)
            self.assertIn("interrupted", error)
            self.assertEqual(self.leftovers(), [])

    def test_generating_ends_at_once(self):
        process = self.begin("gen", "uniform", "--rows", "30000", "--density", "0.5", "--block", "64", "-o", "x.mtx")
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        self.assertEqual((process.returncode, self.leftovers()), (130, []), error)

    def test_a_killed_writers_file_goes_with_the_next_write(self):
        process = self.begin(*LONG)
        self.wait_for_temporary(process)
        process.kill()
        process.communicate(timeout=60)
        self.assertEqual(len(self.leftovers()), 1)
        self.cli("gen", "uniform", "--rows", "64", "--block", "8", "-o", "y.mtx")
        self.assertEqual(self.leftovers(), [])

    def test_a_living_writers_file_stays(self):
        process = self.begin(*LONG)
        self.wait_for_temporary(process)
        self.cli("gen", "uniform", "--rows", "64", "--block", "8", "-o", "y.mtx")
        self.assertEqual(len(self.leftovers()), 1)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)

    def test_race_keeps_what_was_measured(self):
        process = self.begin("bench", "--m", "4096", "--k", "4096", "--n", "512", "--block", "16", "--budget", "60", "--exclude", "reference")
        time.sleep(8 if support.quick else 2)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, error)
        self.assertIn("what was measured is kept", error)
        self.assertEqual(len(self.json("cache", "list")["results"]), 1)


class FullOutput(CliTest):
    def test_every_json_result(self):
        self.cli("tune", *SMALL)
        self.cli("gen", "uniform", "--rows", "64", "--block", "8", "-o", "a.mtx")
        for arguments in (["info"], ["bench", *SMALL], ["explain", *SMALL], ["tune", *SMALL], ["cache", "list"], ["inspect", "a.mtx"]):
            for extra in ([], ["--json", "-"]):
                with self.subTest(arguments=[*arguments, *extra]), open("/dev/full", "w") as full:
                    done = subprocess.run([support.program, *arguments, *extra], cwd=self.folder, env=self.env, stdout=full, stderr=subprocess.PIPE, text=True)
                    self.assertEqual(done.returncode, 5)
                    self.assertIn("cannot write to standard output", done.stderr)


class Store(CliTest):
    def change(self, statement):
        store = sqlite3.connect(self.path("cache/store.db"))
        store.executescript(statement)
        store.close()

    def test_candidates_that_are_no_more(self):
        for statement in ("UPDATE candidate SET name = 'gone'", "UPDATE candidate SET params = 'NV=77'"):
            with self.subTest(statement=statement):
                self.bench("bench", *SMALL)
                self.change(statement)
                one = self.bench("bench", *SMALL)["results"][0]
                self.assertFalse(one["from_store"])
                self.assertNotEqual(one["chosen"], "gone")
                self.assertTrue(self.bench("bench", *SMALL)["results"][0]["from_store"])
