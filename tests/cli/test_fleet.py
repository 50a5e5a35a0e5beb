"""Stores of several machines and processes: merged, one below another in a read-only image, shared by sixteen, and the bundle."""
import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys

import support
from support import SMALL, SMALL_CLASS, CliTest

OTHER_CLASS = ["--m", "192", "--k", "96", "--n", "24", "--block", "16", "--density", "30%"]
OTHER = [*OTHER_CLASS, "--budget", "0.3"]


class FleetTest(CliTest):
    def setUp(self):
        super().setUp()
        self.env["SPARSEK_BUNDLE"] = ""

    def classes(self, store):
        return {entry["class"]: entry for entry in self.json("store", "list", "--store", store)["results"]}

    def test_merge(self):
        self.cli("tune", *SMALL, "--store", "a.db")
        self.cli("tune", *OTHER, "--store", "b.db")
        theirs = self.classes("b.db")
        before = (self.folder / "b.db").read_bytes()
        self.assertIn("1 class taken from b.db", self.cli("store", "merge", "b.db", "--store", "a.db").stdout)
        self.assertIn("0 classes taken", self.cli("store", "merge", "b.db", "--store", "a.db").stdout)  # none is newer
        merged = self.classes("a.db")
        self.assertEqual(len(merged), 2)
        self.assertEqual({key: merged[key] for key in theirs}, theirs)
        self.assertEqual((self.folder / "b.db").read_bytes(), before)
        self.assertIn("2 good entries, 0 bad", self.cli("store", "verify", "--store", "a.db").stdout)
        self.assertEqual(self.json("store", "merge", "a.db", "--store", "new.db")["results"][0]["classes"], 2)
        self.assertEqual(self.bench("tune", *SMALL, "--store", "new.db")["results"][0]["from_store"], True)

    def test_the_newer_entry_stays(self):
        self.cli("tune", *SMALL, "--store", "old.db")
        self.cli("store", "export", "e.json", "--store", "old.db")
        export = json.loads((self.folder / "e.json").read_text())
        for entry in export["classes"]:
            entry.update(measured_at=entry["measured_at"] - 3600, provisional=None)
        self.write("e.json", json.dumps(export))
        self.cli("store", "import", "e.json", "--store", "older.db")
        self.cli("tune", *SMALL, "--store", "new.db")
        self.cli("store", "export", "n.json", "--store", "new.db")
        export = json.loads((self.folder / "n.json").read_text())
        export["classes"][0]["provisional"] = None
        self.write("n.json", json.dumps(export))
        self.cli("store", "import", "n.json", "--store", "newer.db")
        newest = self.classes("newer.db")
        self.assertIn("0 classes taken", self.cli("store", "merge", "older.db", "--store", "newer.db").stdout)
        self.assertEqual(self.classes("newer.db"), newest)
        self.assertIn("1 class taken", self.cli("store", "merge", "newer.db", "--store", "older.db").stdout)
        self.assertEqual(self.classes("older.db"), newest)

    def test_merge_of_what_is_no_store(self):
        self.assertIn("does not exist", self.cli("store", "merge", "nothing.db", code=3).stderr)
        self.write("text.db", "this is a text and no database at all")
        self.cli("store", "merge", "text.db", code=3)
        self.assertIn("merge needs a FILE", self.cli("store", "merge", code=2).stderr)
        self.assertEqual((self.folder / "text.db").read_text(), "this is a text and no database at all")

    def test_a_read_only_image_below(self):
        image = self.folder / "image"
        image.mkdir()
        self.cli("tune", *SMALL, "--store", "made.db")
        self.cli("store", "export", "made.json", "--store", "made.db")
        export = json.loads((self.folder / "made.json").read_text())
        export["classes"][0]["provisional"] = "load"  # which new evidence replaces, of a busy machine, too
        self.write("made.json", json.dumps(export))
        self.cli("store", "import", "made.json", "--store", "image/store.db")
        for path in list(image.iterdir()):
            path.unlink() if path.suffix == ".lock" else path.chmod(0o444)
        image.chmod(0o555)
        before = {path.name: path.read_bytes() for path in image.iterdir()}
        layered = {"SPARSEK_STORE_BELOW": str(image / "store.db"), "SPARSEK_STORE": self.path("own.db")}
        self.assertTrue(self.bench("tune", *SMALL, env=layered)["results"][0]["from_store"])
        self.assertFalse((self.folder / "own.db").exists())
        self.assertFalse(self.bench("tune", *OTHER, env=layered)["results"][0]["from_store"])
        self.assertTrue(self.bench("tune", *OTHER, env=layered)["results"][0]["from_store"])
        self.assertTrue(self.bench("explain", *SMALL_CLASS, env=layered)["results"][0]["from_store"])
        self.assertEqual(len(self.classes("own.db")), 1)
        again = self.bench("tune", *SMALL, "--fresh", env=layered)["results"][0]
        self.assertFalse(again["from_store"])
        self.assertEqual(len(self.classes("own.db")), 2)
        self.assertEqual({path.name: path.read_bytes() for path in image.iterdir()}, before)

    def test_an_image_that_is_missing_or_broken(self):
        for name, text in (("none.db", None), ("broken.db", b"SQLite format 3\0" + b"\x5a" * 8000)):
            if text is not None:
                (self.folder / name).write_bytes(text)
                (self.folder / name).chmod(0o600)
            layered = {"SPARSEK_STORE_BELOW": self.path(name), "SPARSEK_STORE": self.path(f"above-{name}")}
            self.assertFalse(self.bench("tune", *SMALL, env=layered)["results"][0]["from_store"])
            self.assertTrue(self.bench("tune", *SMALL, env=layered)["results"][0]["from_store"])
            if text is not None:
                self.assertEqual((self.folder / name).read_bytes(), text)

    def test_sixteen_processes_share_a_store(self):
        """As on a network home: each class is tuned by one, and the others wait for it."""
        lists = [{"m": 128, "k": 96, "n": n, "block": "16", "density": "30%"} for n in (8, 24, 100)]
        self.write("problems.json", json.dumps(lists))
        count = 4 if support.quick else 16
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            words = ["tune", "--from", "problems.json", "--budget", "0.1", "--threads", "1", "--store", "shared.db", "--json", "-"]
            done = list(pool.map(lambda _: self.cli(*words), range(count)))
        results = [json.loads(one.stdout)["results"] for one in done]
        for i in range(len(lists)):
            self.assertEqual(sum(not one[i]["from_store"] for one in results), 1, f"problem {i}")
            self.assertEqual(len({one[i]["chosen"] for one in results}), 1)
        self.assertEqual(len(self.classes("shared.db")), len(lists))
        self.assertIn(f"{len(lists)} good entries, 0 bad", self.cli("store", "verify", "--store", "shared.db").stdout)

    # -------------------------------------------------------------------------------------------- the bundle

    def make_bundle(self, path, change=None):
        """Of what is tuned here, as bench/bundle.py makes one of committed runs."""
        import importlib.util

        source = pathlib.Path(support.HERE).parents[1] / "bench" / "bundle.py"
        if str(source.parent) not in sys.path:  # it has modules beside it
            sys.path.insert(0, str(source.parent))
        found = importlib.util.spec_from_file_location("bundle", source)
        bundle = importlib.util.module_from_spec(found)
        found.loader.exec_module(bundle)
        self.cli("tune", *SMALL, "--store", "made.db", "--exclude", "libxsmm_blocks,openblas_blocks,openblas_dense")
        self.cli("store", "export", "made.json", "--store", "made.db")
        export = json.loads((self.folder / "made.json").read_text())
        for entry in export["classes"]:
            entry["key"] = entry["key"].split(";", 1)[1] if entry["key"].startswith("among=") else entry["key"]
            entry["provisional"] = None
        kept = [bundle.trimmed(entry) for entry in export["classes"]]
        self.assertNotIn(None, kept)
        for entry in kept:
            if change is not None:
                change(entry)
        self.write("bundle.json", json.dumps(dict(schema=export["schema"], classes=kept)))
        self.cli("store", "import", "bundle.json", "--store", path)

    def test_a_bundle(self):
        self.make_bundle("bundle.db")
        env = {"SPARSEK_BUNDLE": self.path("bundle.db"), "SPARSEK_STORE": self.path("own.db")}
        report = self.bench("tune", *SMALL, env=env)["results"][0]
        self.assertTrue(report["from_store"])
        self.assertFalse((self.folder / "own.db").exists())
        self.assertIn("from the bundle of", " ".join(self.cli("explain", *SMALL_CLASS, env=env).stdout.split()))
        self.assertFalse(self.bench("tune", *SMALL, "--fresh", env=env)["results"][0]["from_store"])
        self.assertNotIn("from the bundle", self.cli("explain", *SMALL_CLASS, env=env).stdout)

    def test_the_regret_of_a_bundle(self):
        self.make_bundle("bundle.db")
        words = dict(m=128, k=96, n=24, block="16", density="30%")  # SMALL_CLASS
        self.write("list.json", json.dumps([words, dict(words, n=77)]))
        line = ["regret", "--from", "list.json", "--bundle", "--rounds", "5", "--best-budget", "1"]
        env = {"SPARSEK_BUNDLE": self.path("bundle.db")}
        found = self.json(*line, env=env)
        known, unknown = found["results"]
        self.assertEqual((found["problems"], found["unknown_to_the_bundle"]), (1, 1))
        self.assertEqual((known["measured"], known["tuning_s"]), (0, 0))
        self.assertGreaterEqual(known["measured_exhaustive"], 1)  # on a busy machine under a sanitizer a second may be one candidate
        self.assertIsNotNone(known["regret"])
        self.assertEqual((unknown["chosen"], unknown["best"], unknown["regret"]), (None, None, None))
        self.assertEqual(found["worst_regret"], known["regret"])
        text = self.cli(*line, env=env).stdout
        self.assertIn("the bundle does not know it", text)
        self.assertIn("1 more that the bundle does not know", text)
        nothing = self.json(*line, env={"SPARSEK_BUNDLE": ""}, code=1)
        self.assertEqual((nothing["problems"], nothing["median_regret"]), (0, None))
        self.assertIn("no bundle knows any of the problems", self.cli(*line, env={"SPARSEK_BUNDLE": ""}, code=1).stderr)
        for option in (["--effort", "estimate"], ["--budget", "1"]):
            self.assertIn(f"--bundle and {option[0]} exclude each other", self.cli(*line, *option, code=2).stderr)

    def test_a_bundle_of_another_machine_or_of_other_sources(self):
        def other_model(entry):
            entry["key"] = entry["key"].replace(":t", ":of-another-t")

        def other_sources(entry):
            for candidate in entry["candidates"]:
                candidate["hash"] = "0" * 16

        for name, change in (("model.db", other_model), ("sources.db", other_sources)):
            self.make_bundle(name, change)
            env = {"SPARSEK_BUNDLE": self.path(name), "SPARSEK_STORE": self.path(f"own-{name}")}
            self.assertFalse(self.bench("tune", *SMALL, env=env)["results"][0]["from_store"], name)

    def test_the_committed_bundle(self):
        """It is what the committed runs say."""
        source = pathlib.Path(support.HERE).parents[1] / "bench" / "bundle.py"
        done = subprocess.run([sys.executable, source, "make", "--check", "--program", support.program], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_bundle_beside_the_library(self):
        """Where an installation puts it."""
        self.make_bundle("bundle.db")
        prefix = self.folder / "prefix"
        (prefix / "lib").mkdir(parents=True)
        (prefix / "share" / "sparsek").mkdir(parents=True)
        built = pathlib.Path(support.program).parent
        libraries = sorted(built.glob("libsparsek.so.*"))
        if not libraries:
            self.skipTest("the program has no shared library")
        for library in libraries:
            shutil.copy(library, prefix / "lib" / library.name)
        shutil.copy(self.folder / "bundle.db", prefix / "share" / "sparsek" / "bundle.db")
        env = {key: value for key, value in self.env.items() if key != "SPARSEK_BUNDLE"}
        env |= {"LD_LIBRARY_PATH": str(prefix / "lib"), "SPARSEK_STORE": self.path("own.db")}
        self.env = env
        if "libsparsek" not in os.popen(f"ldd {support.program}").read():
            self.skipTest("the program is linked statically")
        if str(prefix) not in os.popen(f"LD_LIBRARY_PATH={prefix / 'lib'} ldd {support.program}").read():
            self.skipTest("the program finds its library by itself")
        self.assertTrue(self.bench("tune", *SMALL)["results"][0]["from_store"])
