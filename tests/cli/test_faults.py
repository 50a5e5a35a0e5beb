"""What must not be lost, believed or left behind: interruption, full disks, stores of strangers, changed settings, hostile names."""
import json
import os
import pathlib
import random
import resource
import signal
import sqlite3
import subprocess
import time

import support
from support import SMALL, SMALL_CLASS, CliTest, Watched

# Long enough to be interrupted anywhere: generating takes a fraction of a second, writing the text many.
LONG = ["gen", "uniform", "--rows", "16000", "--density", "0.2", "--block", "8", "-o", "x.mtx"]


class Interrupted(CliTest):
    def begin(self, *arguments):
        return subprocess.Popen([support.program, *arguments], cwd=self.folder, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def leftovers(self):
        return [p.name for p in self.folder.iterdir() if p.name.startswith(".sparsek") or p.name.startswith("x.mtx")]

    def written(self, name):
        try:
            return (self.folder / name).stat().st_size
        except FileNotFoundError:
            return 0

    def wait_for_temporary(self, process):
        """Until bytes are in it: the file by which the program tries the folder first is empty, and gone at once."""
        limit = time.monotonic() + support.LIMIT_S
        while not any(map(self.written, self.leftovers())):
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), limit, "nothing was written")
            time.sleep(0.01)

    def test_writing_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.begin(*LONG)
            self.wait_for_temporary(process)
            process.send_signal(number)
            _, error = process.communicate(timeout=support.LIMIT_S)
            self.assertEqual(process.returncode, 130, error)
            self.assertIn("interrupted", error)
            self.assertEqual(self.leftovers(), [])

    def test_generating_ends_at_once(self):
        run = Watched(self, "gen", "uniform", "--rows", "30000", "--density", "0.5", "--block", "64", "-o", "x.mtx")
        run.until_shown("generating")
        run.send(signal.SIGINT)
        code, _, error = run.end()
        self.assertEqual((code, self.leftovers()), (130, []), error)
        self.assertNotIn("writing", error)

    def test_a_file_that_grows_too_large(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
        error = self.cli("gen", "uniform", "--rows", "512", "--density", "0.5", "-o", "x.mtx", code=5, preexec_fn=limit).stderr
        self.assertIn("File too large", error)
        self.assertEqual(self.leftovers(), [])

    def test_a_killed_writers_file_goes_with_the_next_write(self):
        process = self.begin(*LONG)
        self.wait_for_temporary(process)
        process.kill()
        process.communicate(timeout=support.LIMIT_S)
        self.assertEqual(len(self.leftovers()), 1)
        self.cli("gen", "uniform", "--rows", "64", "--block", "8", "-o", "y.mtx")
        self.assertEqual(self.leftovers(), [])

    def test_a_living_writers_file_stays(self):
        process = self.begin(*LONG)
        self.wait_for_temporary(process)
        process.send_signal(signal.SIGSTOP)  # it lives, and cannot end before the other has written
        self.cli("gen", "uniform", "--rows", "64", "--block", "8", "-o", "y.mtx")
        self.assertEqual(len(self.leftovers()), 1)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=support.LIMIT_S)

    def test_race_keeps_what_was_measured(self):
        run = Watched(self, "bench", "--m", "4096", "--k", "4096", "--n", "512", "--block", "16", "--budget", "300", "--exclude", "reference_spmm")
        run.until_done(4)
        run.send(signal.SIGINT)
        code, _, error = run.end()
        self.assertEqual(code, 130, error)
        self.assertIn("what was measured is kept", " ".join(error.split()))
        self.assertEqual(len(self.json("store", "list")["results"]), 1)


class FullOutput(CliTest):
    def test_every_json_result(self):
        self.cli("tune", *SMALL)
        self.cli("gen", "uniform", "--rows", "64", "--block", "8", "-o", "a.mtx")
        for arguments in (["info"], ["bench", *SMALL], ["explain", *SMALL_CLASS], ["tune", *SMALL], ["store", "list"], ["inspect", "a.mtx"]):
            for extra in ([], ["--json", "-"]):
                with self.subTest(arguments=[*arguments, *extra]), open("/dev/full", "w") as full:
                    done = subprocess.run([support.program, *arguments, *extra], cwd=self.folder, env=self.env, stdout=full, stderr=subprocess.PIPE, text=True)
                    self.assertEqual(done.returncode, 5)
                    self.assertIn("cannot write to standard output", done.stderr)


class FullDisk(CliTest):
    """No file may grow: what a command is for is not done then, which it says (exit code 5), and nothing half-written is left."""

    def setUp(self):
        super().setUp()
        self.env |= {"SPARSEK_BUNDLE": "", "TMPDIR": self.path("tmp")}  # where there is no folder: nothing of ours goes there
        self.cli("tune", *SMALL)
        self.cli("tune", *SMALL, "--n", "8", "--store", "b.db")
        self.cli("store", "export", "e.json")
        self.cli("gen", "uniform", "--rows", "64", "--cols", "64", "--block", "8", "-o", "a.safetensors")
        self.cli("gen", "uniform", "--rows", "64", "--cols", "8", "--block", "8", "--density", "1", "-o", "b.npy")

    def files(self):
        ignored = (".lock", "-journal")
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in self.folder.rglob("*") if path.is_file() and not path.name.endswith(ignored)}

    def test_every_command_that_writes(self):
        outputs = [
            ["gen", "uniform", "--rows", "512", "--block", "8", "-o", "x.mtx"],
            ["convert", "a.safetensors", "x.npy"],
            ["convert", "a.safetensors", "x.mtx"],
            ["compute", "a.safetensors", "b.npy", "-o", "x.npy", "--budget", "0.05"],
            ["inspect", "a.safetensors", "--spy", "x.svg"],
            ["check", "--cases", "3", "--resume", "x.json"],
            ["store", "export", "x.json"],
            ["store", "import", "e.json", "--store", "b.db"],
            ["store", "merge", "b.db"],
            ["store", "clear"],
        ]
        results = [["info"], ["bench", *SMALL], ["tune", *SMALL], ["explain", *SMALL_CLASS], ["inspect", "a.safetensors"], ["check", "--cases", "3"], ["store", "list"]]
        before = self.files()
        for arguments in [*outputs, *([*arguments, "--json", "x.json"] for arguments in results)]:
            room = random.choice((0, 1, 100, 500))
            with self.subTest(arguments=arguments, room=room):
                limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))  # noqa: B023
                done = self.cli(*arguments, code=5, preexec_fn=limit)
                self.assertRegex(done.stderr, "File too large|no room|disk", arguments)
                self.assertEqual(self.files(), before)

    def test_merge(self):
        """The classes go from store to store without a file; where they find no room on the way, neither store changes."""
        self.cli("store", "export", "b.json", "--store", "b.db")
        size = pathlib.Path(self.path("b.json")).stat().st_size
        before = self.files()
        for room, words in ((size // 2, "there is no room for the classes of b.db"), (size + 512, "disk I/O error")):  # on the way; in the store
            with self.subTest(room=room):
                limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))  # noqa: B023
                self.assertIn(words, self.cli("store", "merge", "b.db", code=5, preexec_fn=limit).stderr)
                self.assertEqual(self.files(), before)
        self.assertIn("1 class taken from b.db", self.cli("store", "merge", "b.db").stdout)
        self.assertEqual(len(self.json("store", "list")["results"]), 2)


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

    def test_other_tables(self):
        """A file that says it is a store, and has not its tables, is set aside."""
        for statement in ("", "CREATE TABLE class (id INTEGER)"):
            with self.subTest(statement=statement):
                store = sqlite3.connect(self.path("s.db"))
                store.executescript(f"PRAGMA application_id = {0x73706b31}; PRAGMA user_version = 1; {statement}")
                store.close()
                self.assertIn("its tables are not those of a store", self.cli("store", "list", "--store", "s.db", code=3).stderr)
                self.assertIn("its tables are not those of a store", self.cli("store", "export", "e.json", "--store", "s.db", code=3).stderr)
                done = self.cli("store", "verify", "--store", "s.db", code=3)
                self.assertIn("1 bad", done.stdout)
                self.assertIn("its tables are not those of a store", done.stderr)
                self.assertEqual([p.name for p in self.folder.iterdir() if "bad" in p.name], [])  # who looks changes nothing
                self.assertIn("set aside", self.cli("tune", *SMALL, "--store", "s.db").stderr)
                self.assertIn("1 good entries, 0 bad", self.cli("store", "verify", "--store", "s.db").stdout)
                for path in self.folder.glob("s.db*"):
                    path.unlink()

    def test_what_is_cut_short_replaces_nothing(self):
        """Ctrl-C, or too small a budget, with --fresh: the store keeps the better evidence that it has."""
        problem = ["--m", "3000", "--k", "3000", "--n", "512", "--block", "8"]  # every candidate of it takes seconds
        self.cli("tune", *problem, "--budget", "20")
        before = self.json("store", "list")["results"]
        run = Watched(self, "tune", *problem, "--budget", "60", "--effort", "exhaustive", "--fresh")
        run.until_done(3)
        run.send(signal.SIGINT)
        code, out, error = run.end()
        self.assertEqual(code, 130, error)
        self.assertEqual(self.json("store", "list")["results"], before)
        if out:  # it was given the time to measure something
            self.assertIn("The store has better evidence", " ".join(out.split()))
        one = self.bench("tune", *problem, "--budget", "0.005", "--fresh")["results"][0]
        self.assertIn(one["provisional"], ("budget", "load"))
        self.assertEqual(self.json("store", "list")["results"], before)
        self.assertTrue(self.bench("tune", *problem)["results"][0]["from_store"])

    def test_provisional_evidence_is_shown(self):
        self.cli("tune", *SMALL)
        self.cli("store", "export", "e.json")
        for name, words in (("interrupted", "was interrupted"), ("budget", "the budget of"), ("load", "other programs used the processors")):
            told = json.loads((self.folder / "e.json").read_text())
            told["classes"][0] |= {"provisional": name, "budget_s": 1000}
            self.write("p.json", json.dumps(told))
            self.cli("store", "import", "p.json", "--store", f"{name}.db")
            self.assertEqual(self.json("store", "list", "--store", f"{name}.db")["results"][0]["provisional"], name)
            self.assertIn(name, self.cli("store", "list", "--store", f"{name}.db").stdout)
            self.assertEqual(self.bench("explain", *SMALL_CLASS, "--store", f"{name}.db")["results"][0]["provisional"], name)
            told_text = " ".join(self.cli("explain", *SMALL_CLASS, "--store", f"{name}.db").stdout.split())
            self.assertIn("Provisional: ", told_text)
            self.assertIn(words, told_text)
            self.cli("store", "export", "again.json", "--store", f"{name}.db")
            self.assertEqual(json.loads((self.folder / "again.json").read_text())["classes"][0]["provisional"], name)
            told["classes"][0] |= {"provisional": None, "measured_at": 5}
            self.write("p.json", json.dumps(told))
            self.assertIn("1 class taken", self.cli("store", "import", "p.json", "--store", f"{name}.db").stdout)  # what is finished goes before
            self.assertIsNone(self.json("store", "list", "--store", f"{name}.db")["results"][0]["provisional"])

    def test_an_import_with_a_time_out_of_joint(self):
        """One class of a machine whose clock was wrong does not make a backup unreadable."""
        self.cli("tune", *SMALL)
        self.cli("store", "export", "e.json")
        told = json.loads((self.folder / "e.json").read_text())
        for seconds in (2 ** 62, -5):
            told["classes"][0]["measured_at"] = seconds
            self.write("odd.json", json.dumps(told))
            self.assertIn("0 classes taken", self.cli("store", "import", "odd.json").stdout)
            done = self.cli("store", "import", "odd.json", "--store", f"new{seconds}.db")
            self.assertIn("1 class taken", done.stdout)
            self.assertIn("lies in the future or before 1970", done.stderr)
            self.assertIn("1 good entries, 0 bad", self.cli("store", "verify", "--store", f"new{seconds}.db").stdout)

    def test_store_behind_a_dangling_link(self):
        os.symlink("nowhere/x.db", self.path("link.db"))
        self.assertIn("it is a link to a file that does not exist", self.cli("tune", *SMALL, "--store", "link.db").stderr)

    def test_a_store_that_cannot_be_read_is_not_empty(self):
        """Locked, or of another version than its tables: no list says that it is empty, and no backup is replaced."""
        self.cli("tune", *SMALL)
        self.cli("store", "export", "good.json")
        good = (self.folder / "good.json").read_bytes()
        holder = sqlite3.connect(self.path("cache/store.db"), isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        for action, code in (["list"], 3), (["export", "good.json"], 3), (["verify"], 3):
            done = self.cli("store", *action, "-q", code=code)
            self.assertEqual(done.stdout, "")
            self.assertIn("is held by another process", done.stderr)
        holder.execute("ROLLBACK")
        holder.execute("PRAGMA user_version = 0")
        holder.close()
        for action, code in (["list"], 3), (["export", "good.json"], 3), (["verify"], 3):
            self.assertIn("its tables are not those of a store", self.cli("store", *action, "-q", code=code).stderr)
        self.assertEqual((self.folder / "good.json").read_bytes(), good)
        self.assertEqual([p.name for p in (self.folder / "cache").iterdir() if "bad" in p.name], [])

    def test_a_store_that_is_missing(self):
        for action in (["list"], ["verify"], ["export", "e.json"]):
            for arguments, env in ((["--store", "typo/x.db"], {}), (["--store", "x.db"], {}), ([], {"SPARSEK_STORE": self.path("x.db")})):
                self.assertIn("x.db does not exist", self.cli("store", *action, *arguments, env=env, code=3).stderr)
        self.assertIn("nothing to export", self.cli("store", "export", "e.json", code=3).stderr)
        self.assertFalse((self.folder / "e.json").exists())
        done = self.cli("store", "list")
        self.assertIn("empty", done.stdout)
        self.assertIn("does not exist", done.stderr)
        nowhere = {"HOME": "", "XDG_CACHE_HOME": "", "SPARSEK_CACHE_DIR": "", "SPARSEK_STORE": ""}
        done = self.cli("store", "path", env=nowhere, code=4)
        self.assertEqual(done.stdout, "")
        self.assertIn("in memory", done.stderr)
        self.assertIn("nothing to export", self.cli("store", "export", "e.json", env=nowhere, code=3).stderr)
        self.assertIn("in memory", self.cli("store", "list", env=nowhere).stderr)
        self.cli("tune", *SMALL, "--store", "s.db")
        self.cli("store", "export", "s.json", "--store", "s.db")
        before = (self.folder / "s.db").read_bytes()
        self.assertIn("s.db is a database", self.cli("store", "export", "s.db", code=2).stderr)
        self.assertEqual((self.folder / "s.db").read_bytes(), before)
        for action in ["import", "s.json"], ["merge", "s.db"]:
            self.assertIn("nothing that it takes is kept", self.cli("store", *action, env=nowhere, code=4).stderr)

    def test_a_store_that_cannot_be_made(self):
        """It has no path, and asking for one makes nothing."""
        self.assertIn("in memory", self.cli("store", "path", env={"SPARSEK_CACHE_DIR": "/proc/nope"}, code=4).stderr)
        self.assertIn("no/x.db does not exist, and cannot be made", self.cli("store", "path", "--store", "no/x.db", code=4).stderr)
        self.assertIn("in memory", self.cli("info", env={"SPARSEK_CACHE_DIR": "/proc/nope"}).stdout)
        self.assertEqual(self.cli("store", "path", env={"SPARSEK_CACHE_DIR": self.path("deep/down")}).stdout.strip(), self.path("deep/down/store.db"))
        self.assertFalse((self.folder / "deep").exists())

    def test_what_a_small_stack_keeps_out_is_kept_out_of_nothing_else(self):
        """LIBXSMM makes code on the stack. A process with little of it goes without, and others neither hear of that nor lose what they know."""
        problem = ["--m", "512", "--k", "512", "--n", "32", "--block", "16", "--budget", "0.3", "--only", "libxsmm_blocks,spmm_portable"]
        limit = lambda: resource.setrlimit(resource.RLIMIT_STACK, (128 << 10, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        libxsmm = lambda **options: {row["status"] for row in self.bench("tune", *problem, **options)["results"][0]["candidates"] if row["name"] == "libxsmm_blocks"}
        small = libxsmm(preexec_fn=limit)
        self.assertEqual(small, {"not_applicable"})
        usual = libxsmm()
        if usual == {"not_applicable"}:
            self.skipTest("this build has no LIBXSMM, or the processor none of what it needs")
        self.assertFalse(usual & {"not_applicable", "failed"})
        chosen = self.bench("tune", *problem, preexec_fn=limit)["results"][0]
        self.assertEqual(chosen["chosen"], "spmm_portable")
        self.assertEqual(libxsmm(), usual)
        self.assertTrue(self.bench("tune", *problem)["results"][0]["from_store"])

    def test_a_small_stack_will_do(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_STACK, (128 << 10, resource.getrlimit(resource.RLIMIT_STACK)[1]))
        for line in ("gen uniform --m 64 --k 64 --block 8 --density 0.3 -o a.safetensors", "gen uniform --m 64 --k 8 --block 1 --density 1 -o b.mtx",
                     "inspect a.safetensors", "convert a.safetensors a.mtx", "compute a.safetensors b.mtx -o d.npy --budget 0.05", "info", "store list",
                     "bench --m 64 --k 64 --n 8 --block 8 --density 0.3 --budget 0.05", "check --cases 5 --seed 3",
                     "regret --problems 1 --budget 0.05", "explain --m 64 --k 64 --n 9 --block 8"):
            self.assertIn(self.cli(*line.split(), code=None, preexec_fn=limit).returncode, (0, 1), line)

    def test_others_may_not_write_a_store(self):
        self.cli("tune", *SMALL)
        os.chmod(self.path("cache/store.db"), 0o666)
        self.assertIn("other users may write it", self.cli("store", "list", code=3).stderr)
        self.assertIn("other users may write it", self.cli("tune", *SMALL).stderr)
        self.assertIn("other users may write it", self.cli("store", "clear", code=3).stderr)
        os.chmod(self.path("cache/store.db"), 0o600)
        self.cli("store", "export", "e.json")
        os.chmod(self.path("cache/store.db"), 0o666)
        self.cli("store", "import", "e.json", code=3)
        self.cli("store", "import", "missing.json", code=3)
        self.cli("store", "import", ".", code=3)

    def test_views_and_triggers(self):
        """A store that would work for ever is not asked."""
        endless = "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
        for statement in (f"CREATE TRIGGER t AFTER INSERT ON class BEGIN INSERT INTO family (exact) {endless} SELECT 'x' || x FROM c; END",
                          f"ALTER TABLE candidate RENAME TO old; CREATE VIEW candidate AS {endless} SELECT x AS class_id, -x AS rank, 'a' AS name, '' AS params,"
                          " '' AS hash, 1 AS kind, 0 AS status, '' AS why, 0.0 AS predicted_us, 0.0 AS median_us, 0.0 AS spread_us, 0.0 AS prepare_us, 0.0 AS"
                          " error, 0.0 AS tolerance FROM c"):
            self.cli("tune", *SMALL)
            self.change(statement)
            self.cli("store", "list", code=3)
            self.cli("store", "verify", code=3)
            self.cli("explain", *SMALL_CLASS, code=1)
            self.assertIn("set aside", self.cli("tune", *SMALL).stderr)
            self.cli("explain", *SMALL_CLASS)

    def test_a_mistyped_store_is_left_alone(self):
        """A name that was given to --store may be that of a matrix."""
        for name, content in (("mydata.npy", b"\x93NUMPY" + bytes(500)), ("short.txt", b"hello")):
            (self.folder / name).write_bytes(content)
            for action, code in ((["list"], 3), (["verify"], 3), (["export", "e.json"], 3), (["clear"], 3)):
                done = self.cli("store", *action, "--store", name, code=code)
                self.assertIn("is not usable: it is not a database", done.stderr)
            self.assertFalse((self.folder / "e.json").exists())
            self.assertEqual((self.folder / name).read_bytes(), content)
            self.assertEqual([p.name for p in self.folder.iterdir() if "bad" in p.name], [])

    def test_a_damaged_store_is_no_backup(self):
        """An export of a damaged store replaces nothing, and leaves the store where it is."""
        self.cli("tune", *SMALL)
        self.cli("store", "export", "good.json")
        good = (self.folder / "good.json").read_bytes()
        for action, code in (["list"], 3), (["export", "good.json"], 3):
            (self.folder / "t.db").write_bytes((self.folder / "cache/store.db").read_bytes()[:5000])
            done = self.cli("store", *action, "--store", "t.db", code=code)
            self.assertIn("is damaged", done.stderr)
            self.assertTrue((self.folder / "t.db").exists())
            self.assertEqual((self.folder / "good.json").read_bytes(), good)

    def test_no_folder_is_made_for_a_given_store(self):
        for env, arguments in (({}, ["--store", "nodir/s.db"]), ({"SPARSEK_STORE": self.path("nodir/s.db")}, [])):
            error = self.cli("tune", *SMALL, *arguments, env=env).stderr
            self.assertIn("cannot be made: its folder does not exist", error)
            self.assertFalse(os.path.exists(self.path("nodir")))


class Resumed(CliTest):
    def test_check(self):
        begin = ["check", "--cases", "3", "--seed", "7", "--only", "reference_spmm", "--resume", "c.json"]
        self.cli(*begin)
        self.cli("check", "--cases", "5", "--only", "reference_spmm", "--resume", "c.json")
        for extra, name in ((["--seed", "8", "--only", "reference_spmm"], "seed"), (["--only", "spmm_portable"], "only"), ([], "only"),
                            (["--only", "reference_spmm", "--all-params"], "all-params"), (["--only", "reference_spmm", "--threads", "1"], "threads")):
            with self.subTest(extra=extra):
                self.assertIn(f"another --{name}", self.cli("check", "--cases", "6", "--resume", "c.json", *extra, code=2).stderr)

    def test_regret(self):
        common = ["regret", "--problems", "1", "--resume", "r.json", "--only", "reference_spmm"]
        self.write("r.json", json.dumps({"schema": 1, "what": "sparsek regret", "seed": 3, "results": [{"regret": 0}], "settings": {
            "effort": 0, "budget": 0.0, "best-budget": 8.0, "rounds": 20, "only": "reference_spmm", "exclude": None, "threads": 0}}))
        self.cli(*common)
        for extra, name in ((["--seed", "4"], "seed"), (["--budget", "1"], "budget"), (["--best-budget", "1"], "best-budget"), (["--rounds", "3"], "rounds"),
                            (["--exclude", "mkl_bsr"], "exclude"), (["--effort", "estimate"], "effort")):
            with self.subTest(extra=extra):
                self.assertIn(f"another --{name}", self.cli(*common, *extra, code=2).stderr)


class Names(CliTest):
    def test_control_characters(self):
        """What a file's name holds does not reach the terminal as it is."""
        name = "a\x1b[31m\n\x7fé.mtx"
        shows = "a\\x1b[31m\\x0a\\x7fé.mtx"
        self.assertIn(shows, self.cli("gen", "uniform", "--rows", "64", "--block", "8", "-o", name).stdout)
        done = [self.cli("inspect", name), self.cli("convert", name, "b" + name), self.cli("bench", name, "--n", "3", "--budget", "0.1"),
                self.cli("explain", name, "--n", "40", code=1), self.cli("inspect", "no" + name, code=3), self.cli("bench", "--" + name, code=2),
                self.cli("\x1bbench", code=2), self.cli("store", "export", name + ".json"), self.cli("store", "path", "--store", name), self.cli("info", "--store", name)]
        for one in done:
            text = one.stdout + one.stderr
            self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f-\x9f]")
            self.assertIn("\\x1b", text)

    def test_class_line_wraps(self):
        self.cli("tune", *SMALL)
        for columns in ("40", "100"):
            text = self.cli("explain", *SMALL_CLASS, env={"COLUMNS": columns}).stdout
            lines = text[text.index("class: "):].splitlines()
            self.assertGreater(len(lines), 1)


class Words(CliTest):
    def test_names_are_quoted_for_a_shell(self):
        self.cli("gen", "diagonal", "--rows", "16", "--block", "4", "-o", "it's mine.mtx")
        self.assertIn(r"sparsek bench 'it'\''s mine.mtx' --block", self.cli("inspect", "it's mine.mtx").stdout)
        self.assertIn(r"sparsek tune 'it'\''s mine.mtx' --block", self.cli("explain", "it's mine.mtx", code=1).stderr)

    def test_overflow_of_a_cast(self):
        self.write("big.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 1\n2 3 1e300\n")
        self.assertIn("row 1, column 2", self.cli("convert", "big.mtx", "b.safetensors", "--block", "1", "--dtype", "f32", code=3).stderr)
        self.assertFalse(os.path.exists(self.path("b.safetensors")))

    def test_little_things(self):
        self.assertIn("the matrix is empty", self.cli("gen", "uniform", "--rows", "8", "--block", "8", "--density", "1%", "-o", "a.mtx").stderr)
        self.cli("gen", "uniform", "--rows", "8", "--block", "8", "--density", "1", "-o", "a.mtx")
        self.write("one.smtx", "2, 3, 1\n0 0 1\n2\n")
        self.assertIn("1 entry", self.cli("convert", "one.smtx", "two.mtx").stdout)
        self.write("none.json", "[]")
        self.assertIn("is empty", self.cli("tune", "--from", "none.json").stderr)
        self.assertIn("nothing to choose", self.cli("bench", "--m", "0", "--k", "0").stdout)

    def test_a_pipe_gets_whole_reasons(self):
        self.cli("tune", *SMALL)
        self.assertNotIn("\u2026", self.cli("explain", *SMALL_CLASS).stdout)

    def test_narrow_rows_can_be_told_apart(self):
        for more in ([], ["--fresh", "--budget", "20"], ["--fresh", "--budget", "90"]):  # few are measured in time where the machine is busy
            self.cli("tune", *SMALL, *more)
            lines = self.cli("explain", *SMALL_CLASS, env={"COLUMNS": "40"}).stdout.split("\n\n")[1].splitlines()[1:]
            rows = [line for line in lines if line[2:3].isalpha() and not line.endswith("-")]  # measured ones; reasons stand below them, indented
            if len(rows) > 1:
                break
        self.assertGreater(len(rows), 1)
        self.assertEqual(len(rows), len(set(rows)))

    def test_closed_streams(self):
        """What is opened first must not become standard output."""
        close = lambda: (os.close(1), os.close(2))
        done = subprocess.run([support.program, "tune", *SMALL], cwd=self.folder, env=self.env, preexec_fn=close, timeout=support.LIMIT_S)
        self.assertEqual(done.returncode, 5)  # its text is lost
        self.assertIn("1 good entries, 0 bad", self.cli("store", "verify").stdout)

    def test_empty_product(self):
        self.assertIn("the product is empty (0 x 512)", self.cli("bench", "--m", "0", "--k", "0").stderr)

    def test_small_numbers(self):
        self.cli("gen", "diagonal", "--rows", "4", "--block", "2", "-o", "a.mtx")
        text = self.cli("inspect", "a.mtx", "--n", "1").stdout
        self.assertNotRegex(text, r"takes 0 us|e\+0")

    def test_elastic_constants(self):
        for extra in (["--young", "1e18"], ["--poisson", "-0.5"], ["--poisson", "0"]):
            self.cli("gen", "elasticity", "--cells", "2", "-o", "a.mtx", *extra)
