"""Element types from the command line: docs/adding-a-type.md, and products of eight bits with scale factors."""
import json
import re

import support
from support import CliTest

ROOT = support.HERE.parent.parent
PAGE = (ROOT / "docs/adding-a-type.md").read_text()
DIMS = ["--op", "gemm", "--m", "32", "--n", "32", "--k", "32"]


class Page(CliTest):
    def test_shows_what_is_compiled(self):
        shown = re.findall(r"<!-- (\S+) -->\n```\w*\n(.*?)```\n", PAGE, re.DOTALL)
        self.assertGreater(len(shown), 2)
        for name, code in shown:
            there = [line.rstrip("\\ ") for line in (ROOT / name).read_text().splitlines()]
            for line in code.splitlines():
                self.assertIn(line.rstrip("\\ "), there, name)

    def test_its_commands_run(self):
        commands = re.findall(r"^build/release/sparsek (.*)$", PAGE, re.MULTILINE)
        self.assertEqual(len(commands), 2)
        for line in commands:
            self.cli(*line.replace("--each 200", "--each 5").split(), *([] if line.startswith("check") else ["--budget", "0.05"]))

    def test_every_name_of_a_type_stands_where_the_page_says(self):
        for name in re.findall(r"`((?:src|include|tests|cli|python|rust)/[\w/.-]+)`", PAGE):
            self.assertTrue((ROOT / name).exists(), name)


class Scaled(CliTest):
    def test_classes_of_their_own(self):
        """Each type, and each way to scale it: tuned, stored, explained, listed."""
        for words, tile in (([], None), (["--scale-a", "row"], "row"), (["--scale-a", "1x16"], "1x16"), (["--scale-a", "tensor", "--scale-b", "16x16"], "tensor")):
            with self.subTest(words=words):
                line = [*DIMS, "--dtype", "f8e4m3", *words, "--store", "s.db"]
                self.cli("explain", *line, code=1)
                made = self.json("tune", *line, "--budget", "0.05")["results"][0]
                self.assertEqual(made["problem"].get("scale_a"), tile)
                self.assertEqual((made["problem"]["dtype"], made["problem"]["dtype_d"], made["chosen"].split()[0]), ("f8e4m3", "f32", "reference_gemm"))
                self.assertTrue(self.json("explain", *line)["results"][0]["from_store"])
        self.assertEqual(len(self.json("store", "list", "--store", "s.db")["results"]), 4)

    def test_a_factor_for_each_block(self):
        line = ["--m", "64", "--k", "64", "--n", "8", "--block", "16x8", "--dtype", "i8", "--budget", "0.05"]
        self.assertEqual(self.json("tune", *line, "--scale-a", "block")["results"][0]["problem"]["scale_a"], "block")
        self.assertEqual(self.json("tune", *line, "--trans-a", "t", "--scale-a", "block")["results"][0]["problem"]["scale_a"], "block")
        self.assertIn("this matrix has no stored blocks", self.cli("tune", *line, "--scale-b", "block", code=2).stderr)
        self.assertIn("this matrix has no stored blocks", self.cli("tune", "--op", "sddmm", *line[:4], "--n", "64", *line[6:], "--scale-a", "block", code=2).stderr)

    def test_tiles_of_all(self):
        """What a report says is read again; each way is a line of its own in the list."""
        for tile in ("1xall", "allx4", "allxall", "tensor", "4x4"):
            made = self.json("tune", *DIMS, "--dtype", "i8", "--scale-b", tile, "--budget", "0.05", "--store", "s.db")["results"][0]["problem"]
            self.write("list.json", json.dumps([made]))
            self.assertEqual(self.json("tune", "--from", "list.json", "--budget", "0.05")["results"][0]["problem"]["scale_b"], made["scale_b"])
        said = self.cli("store", "list", "--store", "s.db").stdout
        for tile in ("b=1xall", "b=allx4", "b=allxall", "b=4x4"):
            self.assertIn(tile, said)

    def test_sums_and_what_is_too_large(self):
        self.write("repeats.mtx", "%%MatrixMarket matrix coordinate integer general\n1 1 3\n1 1 100\n1 1 100\n1 1 -100\n")
        for format in ("npy", "safetensors"):
            self.cli("convert", "repeats.mtx", f"a.{format}", "--dtype", "i8", *(["--block", "1"] if format == "safetensors" else []))
            self.cli("convert", f"a.{format}", f"{format}.mtx")
            self.assertEqual((self.folder / f"{format}.mtx").read_text().split()[-1], "100")
        self.write("sum.mtx", "%%MatrixMarket matrix coordinate integer general\n1 1 2\n1 1 100\n1 1 100\n")
        self.assertIn("row 0, column 0: the sum of 2 entries, 200, is out of the range of i8", self.cli("convert", "sum.mtx", "a.npy", "--dtype", "i8", code=2).stderr)
        for value in ("300", "1e30", "-129", "nan", "inf"):
            self.write("large.mtx", f"%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 {value}\n")
            self.check_refused("large.mtx")
        for kind, size, entry in (("coordinate", "2 2 1", "2 1 -128"), ("array", "2 2", "-128")):  # 128 above the diagonal
            self.write("skew.mtx", f"%%MatrixMarket matrix {kind} integer skew-symmetric\n{size}\n{entry}\n")
            self.check_refused("skew.mtx")

    def check_refused(self, name):
        """By both commands that cast what a file holds."""
        self.assertIn("i8 holds -128 to 127", self.cli("convert", name, "a.npy", "--dtype", "i8", code=3).stderr)
        self.assertIn("i8 holds -128 to 127", self.cli("compute", name, name, "--op", "gemm", "-o", "d.npy", "--dtype", "i8", code=3).stderr)

    def test_run_takes_one_type(self):
        """What the second file holds is not rounded to the first one's type in silence."""
        self.write_array("b.npy", [[0.5] * 4] * 4)
        self.cli("convert", ROOT / "tests/data/io/i1.npy", "a.npy")
        self.assertIn("b.npy: holds f64, and a.npy i8: say which with --dtype", self.cli("compute", "a.npy", "b.npy", "--op", "gemm", "-o", "d.npy", code=3).stderr)
        self.cli("compute", "a.npy", "b.npy", "--op", "gemm", "-o", "d.npy", "--dtype", "f32", "--budget", "0.05")
        self.cli("compute", "a.npy", "b.npy", "--op", "gemm", "-o", "d.npy", "--dtype", "i8", "--budget", "0.05")

    def test_lists_of_problems(self):
        self.write("list.json", '[{"op": "gemm", "m": 8, "n": 8, "k": 8, "dtype": "f8e5m2", "scale_b": "col"}]')
        self.assertEqual(self.json("tune", "--from", "list.json", "--budget", "0.05")["results"][0]["problem"]["scale_b"], "col")
        self.write("list.json", '[{"op": "gemm", "m": 8, "n": 8, "k": 8, "dtype": "f8e5m2", "scale_b": "3"}]')
        self.assertIn('it takes "tensor", "row", "col" or "block", or a tile such as "1x128" or "allx128"', self.cli("tune", "--from", "list.json", code=3).stderr)

    def test_files(self):
        """Matrices of these types: looked at and converted as they are."""
        files = ROOT / "tests/data/io"
        for name, dtype in (("a", "f8e5m2"), ("b", "f8e4m3"), ("c", "i8")):
            with self.subTest(dtype=dtype):
                line = [files / "bsr_bytes.safetensors", "--tensor", name]
                self.assertIn(f"128 columns of B in {dtype}, reference_spmm takes", " ".join(self.cli("inspect", *line).stdout.split()))
                self.cli("convert", *line, "a.safetensors", "--block", "1")
                self.assertIn(f"BSR 5 x 7 {dtype}, 17 blocks of 1", self.cli("convert", "a.safetensors", "a.mtx").stdout)
        self.cli("convert", files / "i1.npy", "a.npy")
        self.assertEqual((self.folder / "a.npy").read_bytes()[-12:], (files / "i1.npy").read_bytes()[-12:])
        self.assertIn(".npy has no f8e4m3", self.cli("convert", files / "i1.npy", "b.npy", "--dtype", "f8e4m3", code=2).stderr)

    def test_what_is_refused(self):
        for words, code, said in ((["--scale-a", "3"], 2, "is neither tensor, row, col or block nor the rows and columns of a tile"), (["--scale-a", "0x1"], 2, "is neither"),
                                  (["--scale-a", "block"], 2, "this matrix has no stored blocks"), (["--dtype-d", "f8e4m3"], 4, "this version gives f32, f16 or bf16")):
            with self.subTest(words=words):
                self.assertIn(said, self.cli("tune", *DIMS, "--dtype", "f8e4m3", *words, code=code).stderr)
        self.assertIn("this version scales f8e4m3, f8e5m2 and i8", self.cli("tune", *DIMS, "--scale-a", "row", code=4).stderr)
        self.assertIn("takes no scale factors", self.cli("compute", "a.npy", "b.npy", "-o", "d.npy", "--scale-a", "row", code=2).stderr)
