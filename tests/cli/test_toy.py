"""Operations that live under tests/toy alone: the same program, beside a library that has them, takes them like all others."""
import pathlib
import re
import unittest
import unittest.mock

import schema_check
import support
from support import CliTest

ROOT = support.HERE.parent.parent
PROGRAM = pathlib.Path(support.program).parent / "toy" / "sparsek"


class Guide(unittest.TestCase):
    """docs/adding-an-operation.md shows the files of tests/toy, which are compiled, letter by letter."""

    def test_shows_what_is_compiled(self):
        shown = {}
        for name, code in re.findall(r"<!-- (\S+) -->\n```\w*\n(.*?)```\n", (ROOT / "docs/adding-an-operation.md").read_text(), re.DOTALL):
            shown.setdefault(name, []).extend(line for line in code.splitlines() if line)
        whole = {str(path.relative_to(ROOT / "tests/toy")) for path in (ROOT / "tests/toy").rglob("*axpy*") if path.is_file()}
        whole |= {f"op/axpy/{name}" for name in ("describe.c", "fields.def", "operands.h", "oracle.c")}
        tables = {"op/operations.def", "backend/cpu/kernels.def", "backend/cuda/kernels.def"}
        self.assertEqual(set(shown), whole | tables)
        for name, lines in shown.items():
            there = [line for line in (ROOT / "tests/toy" / name).read_text().splitlines() if line]
            if name in tables:
                there = [line for line in there if "axpy" in line]
            self.assertEqual(lines, there, name)


@unittest.skipUnless(PROGRAM.exists(), "this build has no toy operations")
class Toy(CliTest):
    def setUp(self):
        super().setUp()
        patch = unittest.mock.patch.object(support, "program", str(PROGRAM))
        patch.start()
        self.addCleanup(self.forget)
        self.addCleanup(patch.stop)
        self.forget()

    def forget(self):
        support.operations.cache_clear()
        support.schema.cache_clear()

    def write_array(self, name, rows):
        text = f"%%MatrixMarket matrix array real general\n{len(rows)} {len(rows[0])}\n"
        pathlib.Path(self.path(name)).write_text(text + "".join(f"{row[j]:.17g}\n" for j in range(len(rows[0])) for row in rows))

    def read_array(self, name):
        """Of a Matrix Market array, by rows."""
        lines = [line for line in pathlib.Path(self.path(name)).read_text().splitlines() if not line.startswith("%")]
        rows, cols = map(int, lines[0].split())
        return [[float(lines[1 + j * rows + i]) for j in range(cols)] for i in range(rows)]

    def test_is_listed(self):
        [info] = self.json("info")["results"]
        ops = {op["name"]: op for op in info["operations"]}
        self.assertEqual([size["name"] for size in ops["axpy"]["sizes"]], ["m", "n"])
        self.assertIn("axpy", self.cli("bench", "--help").stdout)

    def test_shipped_program_has_none(self):
        with unittest.mock.patch.object(support, "program", str(PROGRAM.parent.parent / "sparsek")):
            self.assertNotIn("axpy", self.cli("info").stdout + self.cli("compute", "--help").stdout)
            self.cli("bench", "--op", "axpy", code=2)

    def test_check(self):
        for op, rows in (("axpy", ["axpy_reference", "axpy_f32_avx2"]), ("rowsum", ["rowsum_reference", "rowsum_wrong"])):
            results = self.json("check", "--op", op, "--cases", "20", "--seed", "1")["results"]
            self.assertEqual([row["name"] for row in results], rows)
            self.assertEqual((results[0]["cases"], sum(row["failures"] for row in results)), (20, 0))

    def test_check_looks_at_every_output(self):
        done = self.cli("check", "--kernel", "rowsum_wrong", "--cases", "3", "--seed", "1", code=1, env={"SPARSEK_TEST_ROWS": "1"})
        self.assertRegex(done.stderr, r"FAILED case 0, rowsum_wrong: S\[281,0\] = .*, oracle .*tolerance")
        self.assertNotIn("D[", done.stderr)

    def test_tune_store_explain(self):
        problem = ["--op", "axpy", "--m", "300", "--n", "200"]
        self.cli("explain", *problem, code=1)
        [tuned] = self.json("tune", *problem, "--budget", "0.2")["results"]
        self.assertEqual((tuned["problem"]["op"], tuned["problem"]["m"], tuned["problem"]["n"], tuned["problem"]["dtype"]), ("axpy", 300, 200, "f32"))
        [known] = self.json("explain", *problem)["results"]
        self.assertEqual(known["chosen"], tuned["chosen"])
        self.assertIn("op=axpy;t=f32;", self.cli("explain", *problem).stdout)
        self.assertIn("axpy", self.cli("store", "list").stdout)
        raced = self.json("bench", *problem, "--budget", "0.2")
        self.assertEqual(list(schema_check.problems(raced, support.schema())), [])

    def test_run(self):
        x, y = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [[10.0, 20.0, 30.0], [40.0, 50.0, 60.0]]
        self.write_array("x.mtx", x)
        self.write_array("y.mtx", y)
        [told] = self.json("compute", "x.mtx", "y.mtx", "--op", "axpy", "--alpha", "0.5", "-o", "d.mtx", "--budget", "0.1")["results"]
        self.assertEqual((told["op"], told["m"], told["n"]), ("axpy", 2, 3))
        self.assertEqual(self.read_array("d.mtx"), [[0.5 * x[i][j] + y[i][j] for j in range(3)] for i in range(2)])

    def test_run_with_two_results(self):
        x = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
        self.write_array("x.mtx", x)
        self.cli("compute", "x.mtx", "--op", "rowsum", "--alpha", "2", "-o", "d.mtx", "--s", "s.mtx", "--budget", "0.1")
        self.assertEqual(self.read_array("d.mtx"), [[2 * v for v in row] for row in x])
        self.assertEqual(self.read_array("s.mtx"), [[12.0], [30.0]])
        self.cli("compute", "x.mtx", "--op", "rowsum", "-o", "d.mtx", "--budget", "0.1")

    def test_refusals(self):
        self.write_array("x.mtx", [[1.0, 2.0]])
        self.write_array("y.mtx", [[1.0], [2.0]])
        run = ["compute", "x.mtx", "y.mtx", "--op", "axpy", "-o", "d.mtx"]
        for line, code, message in ((run, 3, "y.mtx: has 2 rows; X has 1 rows"), ([*run, "--beta", "2"], 2, "--beta goes with --op spmm or sddmm or gemm"),
                                    ([*run, "--s", "s.mtx"], 2, "--s goes with --op rowsum"), ([*run, "--bias-row", "x.mtx"], 2, "--bias-row goes with --op spmm or gemm"),
                                    ([*run, "--block", "4"], 2, "axpy has no blocks"), (["compute", "x.mtx", "--op", "axpy", "-o", "d.mtx"], 2, "--op axpy takes 2 inputs"),
                                    (["bench", "--op", "axpy", "--k", "3"], 2, "--k: axpy has no such size"),
                                    (["bench", "--op", "axpy", "--density", "0.5"], 2, "--density goes with --op spmm or sddmm"),
                                    (["bench", "--op", "axpy", "--m", "-1"], 2, "--m"), (["bench", "--op", "axpy", "--static-values"], 2, "--static-values goes with --op spmm")):
            with self.subTest(line=line):
                self.assertIn(message, self.cli(*line, code=code).stderr)


if __name__ == "__main__":
    unittest.main()
