"""Runs of benchmarks in the files of their topics (bench/runs.py)."""
import json
import pathlib
import random
import string
import subprocess
import sys
import tempfile
import unittest

import support
from support import HERE

ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import runs  # noqa: E402


def drawn(rng, depth=0):
    """A value of JSON."""
    kind = rng.randrange(8 if depth < 3 else 5)
    if kind == 0:
        return rng.choice((None, True, False))
    if kind == 1:
        return rng.choice((0, -7, 1 << 53, 0.1, 1e-300, 123456.789))
    if kind < 5:
        return "".join(rng.choice(string.ascii_letters + "\"\\\n\u00b5\u2028 ") for _ in range(rng.randrange(40)))
    if kind == 5:
        return {f"k{i}": drawn(rng, depth + 1) for i in range(rng.randrange(12))}
    return [drawn(rng, depth + 1) for _ in range(rng.randrange(12))]


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sparsek-runs-")
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name)
        self.results = self.at / "results"
        self.results.mkdir()

    def call(self, *words, code=0):
        done = subprocess.run([sys.executable, ROOT / "bench" / "runs.py", "--results", self.results, *words], capture_output=True, encoding="utf-8", timeout=support.LIMIT_S)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout if code == 0 else done.stderr

    def written(self, name, document):
        path = self.at / f"{name}.json"
        path.write_text(json.dumps(document))
        return path

    def test_the_committed_ones(self):
        done = subprocess.run([sys.executable, ROOT / "bench" / "runs.py", "check"], capture_output=True, encoding="utf-8", timeout=support.LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_nothing_is_lost(self):
        """Values, their order and the order of keys, of whatever JSON can say."""
        seed = random.randrange(1 << 32)
        rng = random.Random(seed)
        documents = {f"cpu-x-{topic}-{i}": {"schema": 1, **{f"key{k}": drawn(rng) for k in range(9)}} for topic in ("spmm", "other") for i in range(40)}
        runs.put(documents, self.results)
        again = runs.read(self.results)
        self.assertEqual(list(again), sorted(documents))
        for name, document in documents.items():
            self.assertEqual(json.dumps(again[name]), json.dumps(document), f"{name}, seed {seed}")
        self.call("check")

    def test_a_case_is_a_line(self):
        cases = [{"case": f"b{block}", "us": 1.5 * block, "why": "x" * 50} for block in range(8)]
        self.call("add", self.written("gpu-h200-peers", {"schema": 1, "command": "peers.py", "results": cases, "date": "today"}))
        before = (self.results / "peers.jsonl").read_text().splitlines()
        self.assertEqual(json.loads(before[0]), {"run": "gpu-h200-peers", "schema": 1, "command": "peers.py", "results": [], "date": "today"})
        cases[3]["us"] = 7.0
        self.call("add", self.written("gpu-h200-peers", {"schema": 1, "command": "peers.py", "results": cases, "date": "today"}))
        after = (self.results / "peers.jsonl").read_text().splitlines()
        self.assertEqual([i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b], [4])

    def test_the_command(self):
        self.call("add", self.written("gpu-h200-spmm-b16", {"schema": 1}), self.written("cpu-zen5-spmm-b8", {"schema": 1, "x": 2}), self.written("gpu-h200-roofs", {"schema": 1}))
        self.assertEqual(self.call("list", "*spmm*").split(), ["cpu-zen5-spmm-b8", "gpu-h200-spmm-b16"])
        self.assertEqual(json.loads(self.call("show", "cpu-zen5-spmm-b8")), {"schema": 1, "x": 2})
        self.call("show", "cpu-zen5-spmm-b8", "--out", self.at / "one.json")
        self.assertEqual(json.loads((self.at / "one.json").read_text()), {"schema": 1, "x": 2})
        self.call("remove", "gpu-h200-roofs")
        self.assertEqual([path.name for path in self.results.iterdir()], ["spmm.jsonl"])

    def test_what_is_wrong(self):
        self.assertIn("there is no run nothing", self.call("show", "nothing", code=1))
        self.assertIn("there is no run nothing", self.call("remove", "nothing", code=1))
        self.assertIn("not what a benchmark writes", self.call("add", self.written("cpu-x-y", {"schema": 2}), code=1))
        self.assertIn("not what a benchmark writes", self.call("add", self.written("cpu-x-y", [1]), code=1))
        self.assertIn('"run"', self.call("add", self.written("cpu-x-y", {"schema": 1, "run": 1}), code=1))
        self.assertIn("No such file", self.call("add", self.at / "none.json", code=1))
        self.assertEqual(list(self.results.iterdir()), [])
        self.call("add", self.written("cpu-x-y", {"schema": 1, "results": [{"us": 1.0}]}))
        path = self.results / "y.jsonl"
        whole = path.read_text()
        path.write_text(whole.replace('":1', '": 1'))
        self.assertIn("written in another way", self.call("check", code=1))
        for broken, why in ((whole[:-9], "y.jsonl:1:"), (whole + whole, "two runs"), ('{"results":1}\n', "y.jsonl:1:"), (whole + "[]\n", "y.jsonl:2:"), (whole + '{"results":1}\n{"none":1}\n', "y.jsonl:3:")):
            with self.subTest(broken=broken):
                path.write_text(broken)
                self.assertIn(why, self.call("check", code=1))
        path.unlink()
        self.written("results/cpu-x-y", {})
        self.assertIn("puts it into the file of its topic", self.call("check", code=1))


if __name__ == "__main__":
    unittest.main()
