"""gen, convert, compute, inspect, store: files in, files out."""
import json
import math
import os
import random
import resource
import stat
import xml.etree.ElementTree

from support import SMALL, SMALL_CLASS, CliTest

PATTERNS = ["uniform", "bernoulli", "banded", "window", "causal", "diagonal", "power-law", "empty-rows"]


def product(a, b):
    return [[sum(x * b[k][j] for k, x in enumerate(row)) for j in range(len(b[0]))] for row in a]


class Gen(CliTest):
    def test_every_pattern_in_every_format(self):
        for name in PATTERNS:
            for ending in ("mtx", "safetensors", "npy"):
                with self.subTest(pattern=name, ending=ending):
                    result = self.json("gen", name, "--rows", "48", "--cols", "40", "--block", "8x4", "--density", "20%", "-o", f"a.{ending}")["results"][0]
                    self.assertEqual(result["nnzb"] + result["shortfall"], 12)
                    self.assertEqual((result["block_rows"], result["block_cols"]), (8, 4))
                    self.cli("inspect", f"a.{ending}")

    def test_same_seed_same_bytes(self):
        for name in ("a.mtx", "b.mtx"):
            self.cli("gen", "bernoulli", "--rows", "64", "--block", "4", "--seed", "9", "-o", name)
        self.cli("gen", "bernoulli", "--rows", "64", "--block", "4", "--seed", "10", "-o", "c.mtx")
        a, b, c = ((self.folder / name).read_bytes() for name in ("a.mtx", "b.mtx", "c.mtx"))
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)

    def test_positions_only(self):
        self.cli("gen", "uniform", "--rows", "16", "--block", "4", "--pattern-only", "-o", "a.smtx")
        self.cli("gen", "uniform", "--rows", "16", "--block", "4", "--pattern-only", "-o", "a.mtx")
        self.assertIn("pattern", (self.folder / "a.mtx").read_text().splitlines()[0])
        self.assertIn("--pattern-only", self.cli("gen", "uniform", "--rows", "16", "--block", "4", "-o", "b.smtx", code=None).stderr + "--pattern-only")
        self.cli("convert", "a.smtx", "from_smtx.mtx")
        self.assertEqual(self.read_array(self.path("a.mtx")), self.read_array(self.path("from_smtx.mtx")))

    def test_elasticity(self):
        result = self.json("gen", "elasticity", "--cells", "3x2x2", "-o", "beam.safetensors")["results"][0]
        self.assertEqual((result["block_rows"], result["block_cols"], result["dtype"]), (3, 3, "f64"))
        structure = self.json("inspect", "beam.safetensors")["results"][0]["structure"]
        self.assertEqual(structure["symmetry"], "symmetric")

    def test_experts(self):
        result = self.json("gen", "experts", "--tokens", "3,0,9", "--cols", "30", "--block", "4", "-o", "e.safetensors")["results"][0]
        self.assertEqual((result["rows"], result["cols"], result["nnzb"]), (16, 30, 3 + 3 * 2))
        result = self.json("gen", "experts", "--experts", "4", "--tokens", "8-8", "--cols", "64", "--block", "8", "-o", "e.safetensors")["results"][0]
        self.assertEqual((result["rows"], result["nnzb"]), (32, 8))

    def test_masks(self):
        """Each shape makes a file without values, which inspect shows and attention takes."""
        sizes = ["--rows", "200", "--cols", "320", "--block", "16x32"]
        for shape in ("causal", "window", "sinks", "documents", "strided", "random", "selected", "nsa", "video"):
            with self.subTest(shape=shape):
                line = ["--cells", "3x6x8", "--window", "2x3x4", "--block", "16"] if shape == "video" else sizes
                result = self.json("gen", "mask", "--shape", shape, *line, "--heads", "2", "-o", "m.safetensors")["results"][0]
                rows, cols = (144 + 144, 144) if shape == "video" else (208 + 200, 320)
                self.assertEqual((result["shape"], result["rows"], result["cols"]), (shape, rows, cols))
                self.assertLess(os.path.getsize(self.path("m.safetensors")), 4000)
                mask = self.json("inspect", "m.safetensors", "--spy", "m.svg")["results"][0]["mask"]
                self.assertEqual((mask["nnzb"], mask["grid_rows"] % 2), (result["nnzb"], 0))
                self.assertAlmostEqual(mask["kept"], mask["nnzb"] / (mask["grid_rows"] * mask["grid_cols"]))
                self.assertAlmostEqual(mask["balance"], mask["row_max"] * mask["grid_rows"] / mask["nnzb"])
                self.assertEqual(mask["square_lists"], 2 if shape == "video" else None)
                told = self.cli("inspect", "m.safetensors").stdout
                self.assertIn("no values", told)
                self.assertIn("the file does not say: 1, 2, 3, 6, 9 or 18," if shape == "video" else "the file does not say: 1, 2, 13 or 26,", told)
                p = self.json("tune", "m.safetensors", "--op", "attention", "--heads", "2", "--mask-heads", "2", "--depth", "16", "--budget", "0.05")["results"][0]
                self.assertEqual((p["problem"]["queries"], p["problem"]["nnzb"]), (rows - 208 if shape != "video" else 144, result["nnzb"]))
        line = ["m.safetensors", "--op", "attention", "--heads", "2", "--mask-heads", "2", "--depth", "16"]
        full = self.bench("explain", *line)["results"][0]["unmasked"]
        self.assertFalse(full["measured"])
        self.assertAlmostEqual(full["kept"], result["nnzb"] * 16 * 16 / (2 * 144 * 144))
        self.bench("tune", "--op", "attention", "--queries", "144", "--keys", "144", "--heads", "2", "--depth", "16", "--budget", "0.05")
        self.assertTrue(self.bench("explain", *line)["results"][0]["unmasked"]["measured"])
        self.assertIn("of the time of the same attention without it", " ".join(self.cli("explain", *line).stdout.split()))

    def test_wrong_masks(self):
        for line, why in ((["mask"], "mask needs --shape"), (["uniform", "--shape", "causal"], "--shape goes with mask"),
                          (["mask", "--shape", "causal", "--sinks", "4"], "--sinks does not go with --shape causal"),
                          (["mask", "--shape", "video"], "--shape video needs --cells"), (["mask", "--shape", "documents", "--tokens", "3,4"], "--tokens: of documents"),
                          (["mask", "--shape", "video", "--cells", "3", "--rows", "27"], "its size comes from --cells"),
                          (["mask", "--shape", "causal", "--experts", "4"], "--experts with experts"), (["mask", "--shape", "round"], "round"),
                          (["mask", "--shape", "window", "--window", "0"], "'0' is neither a number of 1 or more nor three of them")):
            self.assertIn(why, self.cli("gen", *line, "-o", "m.safetensors", code=2).stderr)
        self.assertIn("sparsek gen mask", self.cli("bench", "--op", "attention", "--pattern", "mask", code=2).stderr)

    def test_a_full_pattern_says_what_it_lacks(self):
        done = self.cli("gen", "causal", "--rows", "32", "--block", "8", "--density", "100%", "-o", "a.mtx")
        self.assertIn("no room for 6 of the blocks", done.stderr)

    def test_permissions_are_those_of_a_plain_file(self):
        self.cli("gen", "uniform", "--rows", "8", "--block", "4", "-o", "a.mtx", "--json", "a.json")
        mask = os.umask(0)
        os.umask(mask)
        for name in ("a.json",):
            self.assertEqual(stat.S_IMODE(os.stat(self.path(name)).st_mode), 0o666 & ~mask)


class Convert(CliTest):
    def test_round_trips(self):
        self.cli("gen", "power-law", "--rows", "40", "--cols", "56", "--block", "8", "--density", "30%", "--dtype", "f64", "-o", "a.mtx")
        wanted = self.read_array(self.path("a.mtx"))
        self.cli("convert", "a.mtx", "b.safetensors", "--block", "8")
        self.cli("convert", "b.safetensors", "c.npy")
        self.cli("convert", "c.npy", "d.mtx")
        self.cli("convert", "d.mtx", "e.mtx", "--to", "sparse")
        self.cli("convert", "e.mtx", "f.safetensors", "--to", "dense")
        self.cli("convert", "f.safetensors", "g.mtx")
        self.assertIn("array", (self.folder / "d.mtx").read_text().splitlines()[0])
        self.assertIn("coordinate", (self.folder / "e.mtx").read_text().splitlines()[0])
        for name in ("d.mtx", "e.mtx", "g.mtx"):
            self.assertEqual(self.read_array(self.path(name)), wanted, name)

    def test_zeros_are_told_of(self):
        """A large file of a matrix that is zero for the most part; not one of few zeros, nor one without them."""
        self.cli("gen", "uniform", "--rows", "2048", "--block", "4", "--density", "1%", "-o", "a.safetensors")
        self.assertIn("of which 1 % are not zero; .mtx and .safetensors hold those alone", self.cli("convert", "a.safetensors", "a.npy").stderr)
        self.assertIn("--to sparse writes those alone", self.cli("convert", "a.npy", "b.safetensors").stderr)
        self.assertEqual(self.cli("convert", "a.npy", "b.safetensors", "-q").stderr, "")
        self.assertEqual(self.cli("convert", "a.npy", "c.safetensors", "--to", "sparse", "--block", "4").stderr, "")
        self.assertEqual(self.cli("convert", "a.safetensors", "c.mtx").stderr, "")
        self.cli("gen", "uniform", "--rows", "2048", "--block", "64", "--density", "10%", "-o", "a.safetensors")
        self.assertEqual(self.cli("convert", "a.safetensors", "a.npy").stderr, "")

    def test_gen_says_what_the_file_holds(self):
        for name, told in (("a.npy", "dense 32 x 32 f32, of BSR 32 x 32"), ("a.mtx", "COO 32 x 32 f32"), ("a.safetensors", "BSR 32 x 32 f32")):
            self.assertIn(f"{name}: {told}", self.cli("gen", "uniform", "--rows", "32", "--block", "4", "-o", name).stdout)

    def test_float32_survives_text(self):
        self.cli("gen", "uniform", "--rows", "32", "--block", "4", "--dtype", "f32", "-o", "a.npy")
        self.cli("convert", "a.npy", "b.mtx")
        self.cli("convert", "b.mtx", "c.npy", "--dtype", "f32")
        self.cli("convert", "c.npy", "d.mtx")
        self.assertEqual((self.folder / "b.mtx").read_text(), (self.folder / "d.mtx").read_text())

    def test_pruning_keeps_the_largest_blocks(self):
        rows = [[float(4 * (i // 2) + j // 2 + 1) * (-1 if (i + j) % 2 else 1) for j in range(8)] for i in range(8)]
        self.write_array("a.mtx", rows)
        for norm in ("l1", "l2", "max"):
            self.cli("convert", "a.mtx", "b.mtx", "--block", "2", "--prune", "25%", "--by", norm)
            pruned = self.read_array(self.path("b.mtx"))
            kept = {(i // 2, j // 2) for i in range(8) for j in range(8) if pruned[i][j]}
            self.assertEqual(kept, {(3, j) for j in range(4)})

    def test_pruning_takes_the_blocks_that_are_there(self):
        self.cli("gen", "uniform", "--rows", "32", "--block", "4", "--density", "50%", "-o", "a.safetensors")
        self.cli("convert", "a.safetensors", "b.safetensors", "--prune", "25%")
        self.cli("convert", "a.safetensors", "c.safetensors", "--prune", "25%", "--block", "4")
        self.assertEqual((self.folder / "b.safetensors").read_bytes(), (self.folder / "c.safetensors").read_bytes())
        self.cli("convert", "a.safetensors", "a.npy")
        self.assertIn("--prune needs --block: IN is dense", self.cli("convert", "a.npy", "d.safetensors", "--prune", "25%", code=2).stderr)

    def test_pruning_a_dense_file_stores_no_empty_block(self):
        self.write_array("a.mtx", [[1.0 if i < 2 and j < 2 else 0.0 for j in range(8)] for i in range(8)])
        self.assertIn("1 block of 2", self.cli("convert", "a.mtx", "b.safetensors", "--block", "2", "--prune", "50%").stdout)

    def test_advised_block(self):
        self.cli("gen", "uniform", "--rows", "32", "--block", "8", "-o", "a.mtx")
        self.assertIn("taking the advised", self.cli("convert", "a.mtx", "b.safetensors").stderr)

    def test_bad_input_leaves_nothing(self):
        self.write("bad.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 1.0\n")
        done = self.cli("convert", "bad.mtx", "out.mtx", code=3)
        self.assertIn("bad.mtx", done.stderr)
        self.assertIn("line", done.stderr)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir() if p.name != "cache"), ["bad.mtx"])


class Run(CliTest):
    def matrices(self, m, k, n):
        draw = random.Random(5)
        self.cli("gen", "bernoulli", "--rows", m, "--cols", k, "--block", "3x2", "--density", "40%", "--dtype", "f64", "-o", "a.mtx")
        b = [[draw.uniform(-1, 1) for _ in range(n)] for _ in range(k)]
        self.write_array("b.mtx", b)
        return self.read_array(self.path("a.mtx")), b

    def check_close(self, got, wanted, within=1e-12):
        self.assertEqual((len(got), len(got[0])), (len(wanted), len(wanted[0])))
        for row, line in zip(got, wanted):
            for x, y in zip(row, line):
                self.assertAlmostEqual(x, y, delta=within)

    def test_product(self):
        for m, k, n in ((6, 8, 5), (7, 9, 1), (31, 20, 17)):
            a, b = self.matrices(m, k, n)
            for ending in ("mtx", "npy", "safetensors"):
                self.cli("compute", "a.mtx", "b.mtx", "-o", f"d.{ending}", "--block", "3x2", "--budget", "0.1")
                self.cli("convert", f"d.{ending}", "back.mtx")
                self.check_close(self.read_array(self.path("back.mtx")), product(a, b))

    def test_choice_in_part(self):
        """A parameter that is left out has its first value, but SERIAL: that depends on the work, and here there is one value for it."""
        a, b = self.matrices(7, 9, 4)
        for choice in ("spmm_portable", "spmm_portable NV=2 PACK=1", "spmm_portable SERIAL=0 NV=2"):
            self.cli("compute", "a.mtx", "b.mtx", "-o", "d.mtx", "--block", "3x2", "--choice", choice)
            self.check_close(self.read_array(self.path("d.mtx")), product(a, b))
        self.assertIn('"DEPTH=2" is none of its tunables', self.cli("compute", "a.mtx", "b.mtx", "-o", "d.mtx", "--block", "3x2", "--choice",
                                                                    "spmm_portable DEPTH=2", code=2).stderr)

    def test_epilogue(self):
        a, b = self.matrices(9, 12, 4)
        c = [[float(i - j) for j in range(4)] for i in range(9)]
        bias = [[0.5 * j] for j in range(4)]
        residual = [[1.0 + i for j in range(4)] for i in range(9)]
        for name, value in (("c.mtx", c), ("bias.mtx", bias), ("r.mtx", residual)):
            self.write_array(name, value)
        self.cli("compute", "a.mtx", "b.mtx", "-o", "d.mtx", "--block", "3x2", "--alpha", "2", "--c", "c.mtx", "--beta", "-0.5", "--bias-col", "bias.mtx",
                 "--activation", "relu", "--residual", "r.mtx", "--budget", "0.1")
        ab = product(a, b)
        wanted = [[max(0.0, 2 * ab[i][j] - 0.5 * c[i][j] + bias[j][0]) + residual[i][j] for j in range(4)] for i in range(9)]
        self.check_close(self.read_array(self.path("d.mtx")), wanted)
        self.cli("compute", "a.mtx", "b.mtx", "-o", "d.mtx", "--block", "3x2", "--activation", "relu", "--factor", "r.mtx", "--budget", "0.1")
        self.check_close(self.read_array(self.path("d.mtx")), [[max(0.0, ab[i][j]) * residual[i][j] for j in range(4)] for i in range(9)])
        self.cli("compute", "a.mtx", "b.mtx", "-o", "d.mtx", "--factor", "r.mtx", "--residual", "r.mtx", code=2)
        self.cli("compute", "a.mtx", "b.mtx", "-o", "d.mtx", "--block", "3x2", "--activation", "relu", "--preact", "p.mtx", "--budget", "0.1")
        self.check_close(self.read_array(self.path("d.mtx")), [[max(0.0, ab[i][j]) for j in range(4)] for i in range(9)])
        self.check_close(self.read_array(self.path("p.mtx")), ab)
        for output, code in (("d.mtx", 2), ("p.smtx", 2), ("p.txt", 2)):
            self.cli("compute", "a.mtx", "b.mtx", "-o", "d.mtx", "--block", "3x2", "--preact", output, code=code)

    def test_attention(self):
        """Three dense files; the log of the sums goes into a file of its own."""
        q, k = self.matrices(7, 4, 9)
        v = [[float(i - j) for j in range(3)] for i in range(9)]
        k = [list(row) for row in zip(*k)]
        for name, array in (("q.mtx", q), ("k.mtx", k), ("v.mtx", v)):
            self.write_array(name, array)
        self.cli("compute", "q.mtx", "k.mtx", "v.mtx", "--op", "attention", "--scale", "0.25", "--causal", "--diagonal", "bottom_right", "-o", "o.mtx", "--lse", "lse.mtx",
                 "--budget", "0.1")
        wanted, sums = [], []
        for i, row in enumerate(q):
            e = [math.exp(0.25 * sum(x * y for x, y in zip(row, k[j]))) for j in range(i + 3)]
            wanted.append([sum(w * v[j][c] for j, w in enumerate(e)) / sum(e) for c in range(3)])
            sums.append([math.log(sum(e))])
        self.check_close(self.read_array(self.path("o.mtx")), wanted)
        self.check_close(self.read_array(self.path("lse.mtx")), sums)
        line = ["compute", "q.mtx", "k.mtx", "v.mtx", "--op", "attention", "--budget", "0.1"]
        for band, seen in ((["--causal", "--window-left", "3", "--sinks", "2"], lambda i, j: j <= i + 2 and (j > i - 1 or j < 2)),
                           (["--window-left", "2", "--window-right", "2"], lambda i, j: i < j < i + 4)):
            self.cli(*line, "--scale", "0.25", "--diagonal", "bottom_right", *band, "-o", "o.mtx")
            wanted = []
            for i, row in enumerate(q):
                e = {j: math.exp(0.25 * sum(x * y for x, y in zip(row, k[j]))) for j in range(9) if seen(i, j)}
                wanted.append([sum(w * v[j][c] for j, w in e.items()) / sum(e.values()) for c in range(3)])
            self.check_close(self.read_array(self.path("o.mtx")), wanted)
        said = self.cli(*line, "-o", "o.mtx", "--use-softcap", code=2).stderr
        self.assertIn("unknown option --use-softcap", said)
        self.assertIn("the number itself says it", said)
        self.assertIn("unknown option --key-lengths", self.cli(*line, "-o", "o.mtx", "--key-lengths", code=2).stderr)  # no file gives them
        self.cli(*line, "--scale", "0.25", "--softcap", "2", "-o", "o.mtx")
        row = [math.exp(2 * math.tanh(0.125 * sum(x * y for x, y in zip(q[0], other)))) for other in k]
        self.check_close(self.read_array(self.path("o.mtx"))[:1], [[sum(w * v[j][c] for j, w in enumerate(row)) / sum(row) for c in range(3)]])
        self.cli(*line, "--scale", "0.25", "--softcap", "0", "-o", "o.mtx")
        row = [math.exp(0.25 * sum(x * y for x, y in zip(q[0], other))) for other in k]
        self.check_close(self.read_array(self.path("o.mtx"))[:1], [[sum(w * v[j][c] for j, w in enumerate(row)) / sum(row) for c in range(3)]])

    def test_gradients_of_attention(self):
        """From the files that attention wrote; the first gradient goes into --out, the others into files of their own."""
        q, k = self.matrices(7, 4, 9)
        k = [list(row) for row in zip(*k)]
        v, grad = [[float(i - j) for j in range(3)] for i in range(9)], [[float(i * j % 3) - 1 for j in range(3)] for i in range(7)]
        for name, array in (("q.mtx", q), ("k.mtx", k), ("v.mtx", v), ("grad.mtx", grad)):
            self.write_array(name, array)
        band = ["--scale", "0.25", "--causal", "--diagonal", "bottom_right", "--budget", "0.1"]
        self.cli("compute", "q.mtx", "k.mtx", "v.mtx", "--op", "attention", *band, "-o", "o.mtx", "--lse", "lse.mtx")
        line = ["compute", "q.mtx", "k.mtx", "v.mtx", "o.mtx", "lse.mtx", "grad.mtx", "--op", "attention_backward", *band]
        self.cli(*line, "-o", "grad_q.mtx", "--grad-k", "grad_k.mtx", "--grad-v", "grad_v.mtx")
        wanted = {"q": [[0.0] * 4 for _ in q], "k": [[0.0] * 4 for _ in k], "v": [[0.0] * 3 for _ in v]}
        for i, row in enumerate(q):
            e = [math.exp(0.25 * sum(x * y for x, y in zip(row, k[j]))) for j in range(i + 3)]
            along = [sum(x * y for x, y in zip(grad[i], v[j])) for j in range(i + 3)]
            mean = sum(w * a for w, a in zip(e, along)) / sum(e)
            for j, w in enumerate(e):
                change = 0.25 * w / sum(e) * (along[j] - mean)
                for d in range(4):
                    wanted["q"][i][d] += change * k[j][d]
                    wanted["k"][j][d] += change * row[d]
                for c in range(3):
                    wanted["v"][j][c] += w / sum(e) * grad[i][c]
        for name, array in wanted.items():
            self.check_close(self.read_array(self.path(f"grad_{name}.mtx")), array)
        self.assertIn("takes 6 inputs, Q, K, V, O, LSE, grad O: 4 are given", self.cli(*line[:5], *line[7:], "-o", "x.mtx", code=2).stderr)
        self.assertIn("o.mtx: is 7 x 3; 7 x 1 is needed", self.cli(*[w.replace("lse.mtx", "o.mtx") for w in line], "-o", "x.mtx", code=3).stderr)
        for dtype, within in (("f16", 3e-3), ("bf16", 3e-2)):  # the logarithms stay in f32
            self.cli(*line, "--dtype", dtype, "-o", "grad_q.mtx", "--grad-k", "grad_k.mtx", "--grad-v", "grad_v.mtx")
            for name, array in wanted.items():
                most = max(abs(x) for row in array for x in row)
                for got, row in zip(self.read_array(self.path(f"grad_{name}.mtx")), array, strict=True):
                    self.assertTrue(all(abs(x - y) <= within * most for x, y in zip(got, row)), (dtype, name, got, row))
        self.assertIn("--grad-k goes with --op attention_backward", self.cli("compute", "q.mtx", "k.mtx", "v.mtx", "--op", "attention", *band, "-o", "o.mtx",
                                                                             "--grad-k", "x.mtx", code=2).stderr)

    def test_a_product_replaces_what_it_is_added_to_alone(self):
        q, k = self.matrices(6, 4, 6)
        for name, array in (("q.mtx", q), ("k.mtx", q), ("v.mtx", q), ("a.mtx", q), ("b.mtx", k)):
            self.write_array(name, array)
        self.write("mask.mtx", "%%MatrixMarket matrix coordinate pattern general\n6 6 1\n1 1\n")
        os.symlink("v.mtx", self.path("link.mtx"))
        before = {p.name: p.read_bytes() for p in self.folder.iterdir() if p.is_file()}
        line = ["compute", "q.mtx", "k.mtx", "v.mtx", "--op", "attention", "--at", "mask.mtx", "--block", "2"]
        for more in (["-o", "q.mtx"], ["-o", "./k.mtx"], ["-o", "link.mtx"], ["-o", "mask.mtx"], ["-o", "o.mtx", "--lse", "k.mtx"]):
            self.assertIn("which this command reads", self.cli(*line, *more, code=2).stderr)
        for more in (["-o", "b.mtx"], ["-o", "a.mtx"], ["-o", "d.mtx", "--bias-row", "d.mtx"]):
            self.assertIn("which this command reads", self.cli("compute", "a.mtx", "b.mtx", "--op", "gemm", *more, code=2).stderr)
        self.assertEqual({p.name: p.read_bytes() for p in self.folder.iterdir() if p.is_file()}, before)
        product = [[1 + sum(x * y for x, y in zip(row, column)) for column in zip(*k)] for row in q]
        for more in (["--c", "d.mtx"], ["--residual", "d.mtx"]):
            self.write_array("d.mtx", [[1.0] * len(k[0])] * 6)
            self.cli("compute", "a.mtx", "b.mtx", "--op", "gemm", *more, "-o", "d.mtx", "--budget", "0.1")
            self.check_close(self.read_array(self.path("d.mtx")), product)

    def test_attention_in_blocks(self):
        """The blocks of a matrix are the mask; what no block holds is not seen, whatever it is."""
        q, k = self.matrices(6, 4, 8)
        k = [list(row) for row in zip(*k)]
        k[7] = [math.nan] * 4
        v = [[float(i - j) for j in range(3)] for i in range(8)]
        for name, array in (("q.mtx", q), ("k.mtx", k), ("v.mtx", v)):
            self.write_array(name, array)
        stored = {(0, 0), (0, 2), (2, 1)}
        self.write("mask.mtx", "%%MatrixMarket matrix coordinate pattern general\n6 8 3\n1 1\n2 5\n6 4\n")
        self.cli("compute", "q.mtx", "k.mtx", "v.mtx", "--op", "attention", "--at", "mask.mtx", "--block", "2", "--scale", "0.25", "-o", "o.mtx", "--budget", "0.1")
        wanted = []
        for i, row in enumerate(q):
            seen = [j for j in range(8) if (i // 2, j // 2) in stored]
            e = {j: math.exp(0.25 * sum(x * y for x, y in zip(row, k[j]))) for j in seen}
            wanted.append([sum(w * v[j][c] for j, w in e.items()) / sum(e.values()) if seen else 0 for c in range(3)])
        self.check_close(self.read_array(self.path("o.mtx")), wanted)
        self.write("none.mtx", "%%MatrixMarket matrix array real general\n8 0\n")
        self.assertIn("none.mtx: has no columns", self.cli("compute", "q.mtx", "k.mtx", "none.mtx", "--op", "attention", "-o", "o.mtx", code=3).stderr)
        self.write("tall.mtx", "%%MatrixMarket matrix coordinate pattern general\n7 8 1\n1 1\n")
        self.assertIn("rows", self.cli("compute", "q.mtx", "k.mtx", "v.mtx", "--op", "attention", "--at", "tall.mtx", "--block", "2", "-o", "o.mtx", code=3).stderr)

    def test_other_operations(self):
        """gemm: both dense; sddmm: at the blocks of a third matrix, into which C goes too."""
        a, b = self.matrices(9, 12, 6)
        ab = product(a, b)
        self.write_array("x.mtx", a)
        self.write_array("bias.mtx", [[1.0 + i] for i in range(9)])
        line = ["compute", "x.mtx", "b.mtx", "-o", "d.mtx", "--budget", "0.1"]
        self.assertEqual(self.json(*line, "--op", "gemm", "--bias-row", "bias.mtx", "--activation", "relu")["results"][0]["op"], "gemm")
        self.check_close(self.read_array(self.path("d.mtx")), [[max(0.0, ab[i][j] + 1 + i) for j in range(6)] for i in range(9)])
        self.cli("gen", "bernoulli", "--rows", 9, "--cols", 6, "--block", "3x2", "--density", "40%", "--dtype", "f64", "-o", "c.mtx")
        c = self.read_array(self.path("c.mtx"))
        told = self.cli(*line, "--op", "sddmm", "--at", "c.mtx", "--block", "3x2", "--alpha", "2", "--c", "c.mtx", "--beta", "-1").stdout
        self.assertTrue(told.startswith("d.mtx: 9 x 6 f64"), told)
        stored = {(i // 3, j // 2) for i in range(9) for j in range(6) if c[i][j]}
        self.assertTrue(0 < len(stored) < 9)
        self.check_close(self.read_array(self.path("d.mtx")), [[2 * ab[i][j] - c[i][j] if (i // 3, j // 2) in stored else 0.0 for j in range(6)] for i in range(9)])
        self.cli("gen", "banded", "--rows", 9, "--cols", 6, "--block", "3x2", "--density", "20%", "--dtype", "f64", "-o", "other.mtx")
        for more, code, message in ((["--op", "sddmm"], 2, "--op sddmm needs --at FILE"), (["--op", "gemm", "--at", "c.mtx"], 2, "--at is for"),
                                    (["--op", "gemm", "--block", "3"], 2, "gemm has no blocks"),
                                    (["--op", "sddmm", "--at", "c.mtx", "--bias-row", "bias.mtx"], 2, "--bias-row goes with --op spmm or gemm"),
                                    (["--op", "sddmm", "--at", "c.mtx", "--trans-a", "t"], 2, "--trans-a goes with --op spmm"),
                                    (["--op", "sddmm", "--at", "c.mtx", "--block", "3x2", "--c", "other.mtx"], 3, "its blocks are not those of the pattern"),
                                    (["--op", "sddmm", "--at", "x.mtx", "--block", "3"], 3, "b.mtx: has 6 columns; the pattern has 12 columns")):
            with self.subTest(more=more):
                self.assertIn(message, self.cli(*line, *more, code=code).stderr)
        self.assertIn("x.mtx: has 9 rows; A has 12 columns", self.cli("compute", "x.mtx", "x.mtx", "-o", "d.mtx", "--op", "gemm", code=3).stderr)

    def test_transposed(self):
        a, _ = self.matrices(9, 12, 4)
        b = [[float(i * j % 7) for j in range(3)] for i in range(9)]
        self.write_array("b.mtx", b)
        self.cli("compute", "a.mtx", "b.mtx", "-o", "d.mtx", "--block", "3x2", "--trans-a", "t", "--budget", "0.1")
        self.check_close(self.read_array(self.path("d.mtx")), product([list(col) for col in zip(*a)], b))

    def test_float32(self):
        a, b = self.matrices(9, 12, 4)
        self.cli("compute", "a.mtx", "b.mtx", "-o", "d.mtx", "--block", "3", "--dtype", "f32", "--budget", "0.1")
        self.check_close(self.read_array(self.path("d.mtx")), product(a, b), 1e-5)

    def test_absent_blocks_hide_what_b_holds(self):
        self.write("a.mtx", "%%MatrixMarket matrix coordinate real general\n4 4 1\n1 1 2.0\n")
        self.write("b.mtx", "%%MatrixMarket matrix array real general\n4 1\n3\ninf\nnan\n1e308\n")
        done = self.cli("compute", "a.mtx", "b.mtx", "-o", "d.mtx", "--block", "1", "--budget", "0.1", code=None)
        if done.returncode == 0:  # a reader may refuse inf and nan as text
            self.assertEqual(self.read_array(self.path("d.mtx")), [[6.0], [0.0], [0.0], [0.0]])

    def test_shapes_that_do_not_fit(self):
        self.matrices(6, 8, 5)
        self.write_array("short.mtx", [[1.0]] * 7)
        done = self.cli("compute", "a.mtx", "short.mtx", "-o", "d.mtx", "--block", "3x2", code=3)
        self.assertIn("short.mtx: has 7 rows; op(A) has 8 columns", done.stderr)
        done = self.cli("compute", "a.mtx", "b.mtx", "-o", "d.mtx", "--block", "3x2", "--c", "short.mtx", code=3)
        self.assertIn("short.mtx: is 7 x 1; 6 x 5 is needed", done.stderr)
        done = self.cli("compute", "a.mtx", "b.mtx", "-o", "d.mtx", "--block", "3x2", "--bias-row", "short.mtx", code=3)
        self.assertIn("a vector of 6 is needed", done.stderr)
        self.assertFalse((self.folder / "d.mtx").exists())

    def test_pinned_choice_and_store(self):
        self.matrices(6, 8, 5)
        line = ["compute", "a.mtx", "b.mtx", "-o", "d.mtx", "--block", "3x2", "--budget", "0.1"]
        self.assertEqual(self.json(*line, "--choice", "reference_spmm")["results"][0]["chosen"], "reference_spmm")
        self.assertFalse(self.json(*line)["results"][0]["from_store"])
        self.assertTrue(self.json(*line)["results"][0]["from_store"])
        self.cli(*line, "--choice", "nonsense", code=2)


class Inspect(CliTest):
    def test_what_it_finds(self):
        self.cli("gen", "uniform", "--rows", "96", "--cols", "64", "--block", "8", "--density", "25%", "-o", "a.mtx")
        one = self.json("inspect", "a.mtx", "--n", "16", "--dtype", "f32")["results"][0]
        self.assertEqual(one["structure"]["entries"], 24 * 64)
        self.assertEqual(one["structure"]["symmetry"], "not square")
        sizes = {(b["block_rows"], b["block_cols"]): b for b in one["blocks"]}
        self.assertEqual(sizes[(8, 8)]["fill"], 1.0)
        self.assertEqual(sizes[(8, 8)]["nnzb"], 24)
        self.assertGreater(sizes[(16, 16)]["fill"], 1.0)
        self.assertTrue(one["gain_over_dense"]["estimate"])
        self.assertIn("sparsek bench a.mtx --block", one["gain_over_dense"]["measure"])
        text = self.cli("inspect", "a.mtx").stdout
        self.assertIn("Estimate (cost model, not measured)", text)
        self.assertIn("Measure it: sparsek bench a.mtx", text)
        self.assertRegex(text, "[\u2801-\u28ff]")

    def test_the_command_it_names_works(self):
        self.cli("gen", "uniform", "--rows", "64", "--block", "8", "-o", "a.mtx")
        command = self.json("inspect", "a.mtx", "--n", "4")["results"][0]["gain_over_dense"]["measure"]
        self.bench(*command.split()[1:], "--budget", "0.2")

    def test_spy_plot_without_unicode(self):
        self.cli("gen", "diagonal", "--rows", "64", "--block", "8", "--density", "20%", "-o", "a.mtx")
        text = self.cli("inspect", "a.mtx", env={"LC_ALL": "C"}).stdout
        self.assertTrue(text.isascii())
        self.assertIn("|@", text)

    def test_svg(self):
        self.cli("gen", "banded", "--rows", "640", "--cols", "320", "--block", "8", "-o", "a <&>.mtx")
        self.cli("inspect", "a <&>.mtx", "--spy", "a.svg", "--quiet")
        root = xml.etree.ElementTree.parse(self.path("a.svg")).getroot()
        self.assertTrue(root.tag.endswith("svg"))
        self.assertEqual(root[0].text, "a <&>.mtx")
        self.assertGreater(len(root[2]), 50)

    def test_rows_without_entries(self):
        """The median of row lengths, and far more rows than entries: an error, not a process that the system ends."""
        head = "%%MatrixMarket matrix coordinate real general\n"
        for size, entries, median in ((4, "1 1 1\n1 2 1\n1 3 1\n2 1 1\n", 0.5), (3, "1 1 1\n1 2 1\n3 1 1\n", 1), (2, "1 1 1\n1 2 1\n2 1 1\n2 2 1\n", 2)):
            self.write("a.mtx", f"{head}{size} {size} {entries.count(chr(10))}\n{entries}")
            self.assertEqual(self.json("inspect", "a.mtx")["results"][0]["structure"]["row_median"], median)
        free = 1024 * int(next(line for line in open("/proc/meminfo") if line.startswith("MemAvailable:")).split()[1])
        for size in (2**47, free // 32):  # the second would fit, and take half of what is free
            self.write("a.mtx", f"{head}{size} {size} 1\n1 1 1\n")
            started = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            self.assertIn("a quarter of those that are free", self.cli("inspect", "a.mtx", code=5).stderr)
            self.assertLessEqual(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, max(started, 500000))  # of all children so far

    def test_symmetry(self):
        head = "%%MatrixMarket matrix coordinate real "
        for text, wanted in ((head + "symmetric\n3 3 3\n1 1 1\n2 1 5\n3 3 2\n", "symmetric"), (head + "skew-symmetric\n3 3 1\n2 1 5\n", "skew-symmetric"),
                             (head + "general\n2 2 2\n1 2 1\n2 1 3\n", "symmetric positions, unsymmetric values"), (head + "general\n2 2 1\n1 2 1\n", "unsymmetric")):
            self.write("a.mtx", text)
            self.assertEqual(self.json("inspect", "a.mtx")["results"][0]["structure"]["symmetry"], wanted)

    def test_empty_matrices(self):
        for size in ("0 0 0", "5 0 0", "4 4 0"):
            self.write("a.mtx", f"%%MatrixMarket matrix coordinate real general\n{size}\n")
            self.cli("inspect", "a.mtx")


class Cache(CliTest):
    def test_path(self):
        self.assertEqual(self.cli("store", "path").stdout.strip(), self.path("cache/store.db"))
        self.assertEqual(self.cli("store", "path", "--store", self.path("x.db")).stdout.strip(), self.path("x.db"))
        self.assertEqual(self.cli("store", "path", env={"SPARSEK_STORE": self.path("y.db")}).stdout.strip(), self.path("y.db"))

    def test_every_operation_is_listed_in_words(self):
        """Attention, whose sizes have short names in a key, was listed as its key."""
        attention = "--queries 32 --keys 16 --depth 8 --budget 0.05"
        for options, words in (
            ("--op gemm --m 8 --n 8 --k 8 --groups 2 --group-axis rows --budget 0.05", "gemm f32 m=8 n=8 k=8, batch of about 2, groups along rows"),
            (f"--op attention {attention} --dtype f16", "attention f16 queries=32 keys=16 depth=8"),
            (f"--op attention {attention} --heads 4 --heads-kv 2 --causal --diagonal bottom_right --use-softcap", "keys=16 depth=8, 4 heads, 2 to one of K and V, causal, diagonal bottom right, soft cap"),
            (f"--op attention {attention} --window-left 8 --diagonal top_left --batch 3", "depth=8, batch of about 3, window of about 8, limit to the left"),
            (f"--op attention {attention} --block 8 --density 0.5 --lse", "depth=8 block 8, about 8 keys a query, LSE"),
            (f"--op attention_backward {attention} --depth-v 4", "attention_backward f32 queries=32 keys=16 depth=8 depth_v=4"),
        ):
            self.cli("store", "clear")
            self.bench("tune", *options.split())
            (entry,) = self.json("store", "list")["results"]
            self.assertIn(words, entry["problem"])
            self.assertIn(entry["problem"], self.cli("store", "list").stdout)

    def test_list_export_clear_import(self):
        self.assertIn("empty", self.cli("store", "list").stdout)
        chosen = self.bench("tune", *SMALL)["results"][0]["chosen"]
        entries = self.json("store", "list")["results"]
        self.assertEqual(len(entries), 1)
        self.assertTrue(entries[0]["choice"].startswith(chosen))
        listed = self.cli("store", "list").stdout
        self.assertIn(entries[0]["choice"], listed)
        self.assertIn(entries[0]["problem"], listed)
        self.assertRegex(entries[0]["problem"], r"^f32 \d+x\d+ n=\d+ block \d+, about \d+ blocks")
        self.assertNotIn(entries[0]["class"], listed)
        self.assertIn(entries[0]["class"], self.cli("store", "list", "--long", env={"COLUMNS": "1000"}).stdout)
        self.assertIn("--long is for", self.cli("store", "verify", "--long", code=2).stderr)
        for line in self.cli("store", "list", env={"COLUMNS": "80"}).stdout.splitlines():
            self.assertLessEqual(len(line), 80)
        self.assertIn("1 class written", self.cli("store", "export", "all.json").stdout)
        json.loads((self.folder / "all.json").read_text())
        self.assertIn("1 good entries, 0 bad", self.cli("store", "verify").stdout)
        self.assertIn("1 class removed", self.cli("store", "clear").stdout)
        self.cli("explain", *SMALL_CLASS, code=1)
        self.assertIn("1 class taken", self.cli("store", "import", "all.json").stdout)
        self.assertEqual(self.bench("explain", *SMALL_CLASS)["results"][0]["chosen"], chosen)

    def test_bad_import_changes_nothing(self):
        self.bench("tune", *SMALL)
        for text in ("", "{}", "[1]", "not json"):
            self.write("bad.json", text)
            self.cli("store", "import", "bad.json", code=3)
        self.assertEqual(len(self.json("store", "list")["results"]), 1)

    def test_a_broken_store_does_not_stop_a_run(self):
        self.bench("tune", *SMALL)
        with open(self.path("cache/store.db"), "r+b") as store:
            store.write(b"\0" * 4096)
        done = self.cli("tune", *SMALL)
        self.assertIn("warning", done.stderr)
        self.assertIn("measured now", done.stdout)
