"""The table of candidates that are proved elsewhere: what bench/proved.py makes of a cache, and of the committed results."""
import json
import pathlib
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest

from support import HERE, SMALL, CliTest

ROOT = HERE.parent.parent
SCRIPT = ROOT / "bench" / "proved.py"
sys.path.insert(0, str(SCRIPT.parent))
import live_proofs  # noqa: E402
import runs  # noqa: E402
from live_proofs import Card, Choice, Proof  # noqa: E402

ROWS = """SPK_KERNEL(SPK_SPMM, reference_cuda_spmm, SPK_KIND_REFERENCE, SPK_ISA_SM70, 0, false, NULL, NO_TUNABLES)
SPK_KERNEL(SPK_SPMM, fake_wide, SPK_KIND_OWN, SPK_ISA_SM90A, 70, false, NULL, TUNABLE(V, 1,2) TUNABLE(W, 16,32))
SPK_KERNEL(SPK_GEMM, fake_old, SPK_KIND_OWN, SPK_ISA_SM80, 50, false, NULL, NO_TUNABLES)
#ifdef SPARSEK_TEST_ROWS /* a test's */
SPK_KERNEL(SPK_SPMM, test_fault, SPK_KIND_OWN, SPK_ISA_SM70, 0, false, NULL, NO_TUNABLES)
#endif
"""
H100, A100 = Card("Double H100", 90, 13), Card("Double A100", 80, 13)


def cached(key, content):
    """A file of the cache, as the library writes it (the hash is not the script's affair)."""
    return struct.pack("<8sIIQQ", b"spkcubin", 1, len(key), len(content), 0) + key + content


def good(choice, driver=13000, arch="sm_90a"):
    return f"good\ndriver {driver}\narch {arch}\ndevice Double GPU\nchoice {choice}\n".encode() + b"\0"


class Proved(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.at = pathlib.Path(self.folder.name)
        (self.at / "cubin").mkdir()

    def put(self, name, candidate, content, mixed="0" * 16):
        (self.at / "cubin" / f"{name}.cubin").write_bytes(cached(f"proof:{candidate}{mixed}".encode(), content))

    def call(self, *words, code=0):
        done = subprocess.run([sys.executable, str(SCRIPT), *map(str, words)], capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_from_a_cache_to_the_table(self):
        a, b, c, d = ("a" * 16, "b" * 16, "c" * 16, "d" * 16)
        self.put("1", a, good("fake V=0"))
        self.put("2", a, good("fake V=0"), mixed="1" * 16)
        self.put("3", b, good("fake V=1"))
        self.put("4", b, b"it took the proving process with it\0", mixed="1" * 16)
        self.put("5", c, good("fake V=2", driver=12080, arch="sm_80"))
        (self.at / "cubin" / "6.cubin").write_bytes(cached(b"proof:" + d.encode() * 2, good("fake V=3"))[:-3])
        (self.at / "cubin" / "7.cubin").write_bytes(cached(b"kernel.cu -DX=1", b"ELF"))
        results = self.at / "results"
        results.mkdir()
        out = self.at / "gpu-double-proved.json"
        self.call("export", self.at, out)
        runs.add(results, [out])
        document = json.loads(out.read_text())
        self.assertEqual([(e["choice"], e["programs"]) for e in document["proved"]], [("fake V=0", 2), ("fake V=1", 1), ("fake V=2", 1)])
        self.assertEqual(document["refuted"], [{"hash": b, "why": "it took the proving process with it"}])
        table = self.at / "proved.def"
        self.call("table", "--results", results, "--out", table)
        lines = table.read_text().splitlines()[1:]
        self.assertEqual(lines, [f'SPK_PROVED("{a}", "sm_90a", 13) /* fake V=0 */', f'SPK_PROVED("{c}", "sm_80", 12) /* fake V=2 */'])
        self.call("table", "--check", "--results", results, "--out", table)
        document["proved"].pop()
        runs.put({"gpu-double-proved": document}, results)
        self.assertIn("run `python3 bench/proved.py table`", self.call("table", "--check", "--results", results, "--out", table, code=1).stderr)

    def test_an_empty_cache(self):
        self.assertIn("there is no proof", self.call("export", self.at, self.at / "out.json", code=1).stderr)
        self.assertFalse((self.at / "out.json").exists())

    def test_a_proof_again_is_added(self):
        """What an earlier run of the same file has stays."""
        self.put("1", "a" * 16, good("fake V=0"))
        out = self.at / "gpu-double-proved.json"
        self.call("export", self.at, out)
        import proved
        (self.at / "cubin" / "1.cubin").unlink()
        self.put("2", "b" * 16, good("fake V=1"))
        proved.export(self.at, out, add=True)
        self.assertEqual([e["choice"] for e in json.loads(out.read_text())["proved"]], ["fake V=0", "fake V=1"])

    def test_the_committed_table(self):
        self.call("table", "--check")

    def test_no_card_of_the_bundle_lacks_a_proof(self):
        """Of each own row, on each card that the bundle knows, and of each candidate that it chose there."""
        self.call("dead", "--check")


class Live(unittest.TestCase):
    """Which proofs are of today's sources and tunables, and which ones a card lacks."""

    def setUp(self):
        self.candidates = self.of({"fake_wide": "1" * 16, "fake_old": "2" * 16, "reference_cuda_spmm": "3" * 16})
        self.wide, self.other, self.old = Choice("fake_wide", "V=1 W=16"), Choice("fake_wide", "V=2 W=16"), Choice("fake_old", "")
        self.table = [self.proof(self.wide), self.proof(self.old)]

    def of(self, sources):
        return live_proofs.Candidates(live_proofs.read_rows(ROWS), sources)

    def proof(self, choice, arch="sm_90a", driver=13):
        return Proof(self.candidates.hash(choice), arch, driver, choice.row, choice.params)

    def lacking(self, cards, candidates=None):
        return [(card.name, rows, choices) for card, rows, choices in live_proofs.lacking(candidates or self.candidates, self.table, cards)]

    def test_nothing_is_lacking(self):
        self.assertEqual(self.lacking({H100: {self.wide}}), [("Double H100", [], [])])
        self.assertEqual(live_proofs.dead(self.candidates, self.table), {})

    def test_another_source(self):
        after = self.of({"fake_wide": "4" * 16, "fake_old": "2" * 16})
        self.assertEqual(self.lacking({H100: {self.wide}}, after), [("Double H100", ["fake_wide"], [self.wide])])
        self.assertEqual(live_proofs.dead(after, self.table), {"fake_wide": {self.wide}})
        self.assertIn("own row without a live proof: fake_wide", live_proofs.report(after, self.table, {H100: set()})[0])

    def test_a_choice_without_a_proof(self):
        self.assertEqual(self.lacking({H100: {self.other}}), [("Double H100", [], [self.other])])
        self.assertTrue(live_proofs.report(self.candidates, self.table, {H100: {self.other}})[1])

    def test_tunables_that_are_no_more(self):
        for params in ("V=3 W=16", "W=16 V=1", "V=1", "V=1 W=16 X=1"):
            with self.subTest(params=params):
                self.assertFalse(self.candidates.exists(Choice("fake_wide", params)))
        self.table = [self.proof(Choice("fake_wide", "V=3 W=16")), self.proof(self.old)]
        self.assertEqual(self.lacking({H100: set()}), [("Double H100", ["fake_wide"], [])])

    def test_another_card_or_driver(self):
        self.assertEqual(self.lacking({A100: set()}), [("Double A100", ["fake_old"], [])])  # it runs no row of sm_90a, and proofs are of another architecture
        self.table.append(self.proof(self.old, arch="sm_80"))
        self.assertEqual(self.lacking({A100: set()}), [("Double A100", [], [])])
        self.assertEqual(self.lacking({H100._replace(driver=14): set()}), [("Double H100", ["fake_old", "fake_wide"], [])])

    def test_a_bundle(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "bundle.db"
            store = sqlite3.connect(path)
            store.executescript("""CREATE TABLE family (id INTEGER PRIMARY KEY, exact TEXT);
                CREATE TABLE class (id INTEGER PRIMARY KEY, family_id INTEGER, device TEXT, chosen INTEGER);
                CREATE TABLE candidate (class_id INTEGER, rank INTEGER, name TEXT, params TEXT);
                INSERT INTO family VALUES (1, 'v=1;op=spmm;dev=cuda:Double_H100:sm90:132:driver13'), (2, 'v=1;op=spmm;dev=cpu:Double:t2');
                INSERT INTO class VALUES (1, 1, 'Double H100', 1), (2, 2, 'Double', 0);
                INSERT INTO candidate VALUES (1, 0, 'fake_old', ''), (1, 1, 'fake_wide', 'V=1 W=16'), (2, 0, 'portable', '')""")
            store.close()
            self.assertEqual(live_proofs.read_bundle(path), {H100: {self.wide}})
            with self.assertRaisesRegex(live_proofs.Trouble, "there is no bundle"):
                live_proofs.read_bundle(path.with_name("none.db"))


class Hashes(CliTest):
    def test_they_are_the_library_s(self):
        sources = live_proofs.source_hashes()
        [result] = self.bench("bench", *SMALL)["results"]
        known = [c for c in result["candidates"] if c["hash"] and c["name"] in sources]
        self.assertTrue(known)
        for c in known:
            row = live_proofs.Row("spmm", c["name"], "OWN", 0, {})
            self.assertEqual(live_proofs.Candidates([row], sources).hash(Choice(c["name"], c["params"])), c["hash"])
