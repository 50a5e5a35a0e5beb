"""The table of candidates that are proved elsewhere: what bench/proved.py makes of a cache, and of the committed results."""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

from support import HERE

ROOT = HERE.parent.parent
SCRIPT = ROOT / "bench" / "proved.py"


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
        out = results / "gpu-double-proved.json"
        self.call("export", self.at, out)
        document = json.loads(out.read_text())
        self.assertEqual([(e["choice"], e["programs"]) for e in document["proved"]], [("fake V=0", 2), ("fake V=1", 1), ("fake V=2", 1)])
        self.assertEqual(document["refuted"], [{"hash": b, "why": "it took the proving process with it"}])
        table = self.at / "proved.def"
        self.call("table", "--results", results, "--out", table)
        lines = table.read_text().splitlines()[1:]
        self.assertEqual(lines, [f'SPK_PROVED("{a}", "sm_90a", 13) /* fake V=0 */', f'SPK_PROVED("{c}", "sm_80", 12) /* fake V=2 */'])
        self.call("table", "--check", "--results", results, "--out", table)
        document["proved"].pop()
        out.write_text(json.dumps(document))
        self.assertIn("run `python3 bench/proved.py table`", self.call("table", "--check", "--results", results, "--out", table, code=1).stderr)

    def test_an_empty_cache(self):
        self.assertIn("there is no proof", self.call("export", self.at, self.at / "out.json", code=1).stderr)
        self.assertFalse((self.at / "out.json").exists())

    def test_the_committed_table(self):
        self.call("table", "--check")
