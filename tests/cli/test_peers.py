"""bench/peers.py as far as it goes without a GPU: its cases, its binding of the library, and files that several runs write."""
import array
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings

import support

BENCH = support.HERE.parent.parent / "bench"
sys.path.insert(0, str(BENCH))

from race import cases, report, training  # noqa: E402
from race.harness import Harness, median_ratio  # noqa: E402
from race.library import COL, ROW, Library  # noqa: E402

try:
    import torch as pytorch
except ImportError:
    pytorch = None


class Cases(unittest.TestCase):
    def test_names(self):
        every = cases.all_cases()
        self.assertEqual(len({c.name for c in every}), len(every))
        listed = subprocess.run([sys.executable, BENCH / "peers.py", "--list", "--case", "decode-t16"], capture_output=True, encoding="utf-8", check=True, timeout=support.LIMIT_S)
        self.assertEqual(listed.stdout.split(), ["decode-t16-b64", "decode-t16-b128", "decode-t16-b64-warm", "decode-t16-b128-warm"])
        self.assertEqual([c.name for c in cases.chosen_cases(["decode-t1-b64"])], ["decode-t1-b64"])
        refused = subprocess.run([sys.executable, BENCH / "peers.py", "--out", "x", "--case", "nosuch"], capture_output=True, encoding="utf-8", timeout=support.LIMIT_S)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("no case begins with nosuch", refused.stderr)

    def test_a_variant_differs_in_what_it_names(self):
        case = cases.chosen_cases(["kinds-4096x4096-d50-b32"])[0]
        other = case.variant(dict(case.variants)["B and D by columns"])
        self.assertEqual((other.layout_b, other.layout_d, other.dtype, other.block, other.variants), (COL, COL, "f16", (32, 32), ()))

    def test_no_case_of_a_problem_is_missing(self):
        count = lambda **wanted: sum(all(getattr(c, k) == v for k, v in wanted.items()) for c in cases.all_cases())
        self.assertEqual([count(topic="peers", cache=cache, density=density) for cache in ("cold", "warm") for density in (0.125, 0.5)], [8, 5, 8, 5])
        self.assertEqual([count(topic="decode", cache=cache) for cache in ("cold", "warm")], [6, 6])
        self.assertEqual([count(topic=topic) for topic in ("sddmm", "transposed", "layer", "experts")], [12, 11, 8, 8])

    def test_suites(self):
        suites = {name: {c.name for c in suite()} for name, suite in cases.SUITES.items()}
        self.assertEqual(suites["peers"] & suites["training"], set())
        self.assertEqual({c.name for c in cases.chosen_cases(None, "training")}, suites["training"])
        self.assertEqual([sum(c.topic == topic for c in cases.chosen_cases(None, "gemm")) for topic in ("gemm", "gemm-unaligned", "gemm-epilogue", "gemm-grouped")], [17, 5, 4, 6])
        self.assertTrue(all(sum(c.tokens) == (c.m if c.group_axis == "rows" else c.k) for c in cases.chosen_cases(None, "gemm") if c.tokens))
        self.assertEqual([c.name for c in cases.chosen_cases(["layer-all"])], ["layer-all-b64", "layer-all-b128"])

    def test_the_products_of_a_layer_share_a_pattern(self):
        whole = cases.chosen_cases(["layer-all-b64"])[0]
        parts = training.layer_parts(whole)
        self.assertEqual({part.sparse_shape() for part in parts.values()}, {(14336, 4096)})
        self.assertEqual([(p.m, p.k, p.n) for p in parts.values()], [(14336, 4096, 8192), (4096, 14336, 8192), (14336, 8192, 4096)])
        self.assertEqual([(p.layout_a, p.layout_b, p.layout_d) for p in parts.values()], [(ROW, COL, COL), (ROW, COL, COL), (COL, ROW, ROW)])

    def test_tokens_fill_whole_block_rows(self):
        self.assertEqual(training.padded((1, 64, 65, 128), 64), 64 + 64 + 128 + 128)
        for case in cases.chosen_cases(["experts-"]):
            self.assertTrue(all(16 <= count <= 256 for count in case.tokens))
            self.assertEqual((case.m % 128, case.m >= sum(case.tokens)), (0, True))


class OnTheHost:
    """PyTorch as bench/race sees it, but "cuda" is the host."""

    class Device:
        L2_cache_size = 1 << 16

    class cuda:
        get_device_properties = staticmethod(lambda _: OnTheHost.Device)
        synchronize = staticmethod(lambda: None)

        class current_stream:
            cuda_stream = None

    def __getattr__(self, name):
        found = getattr(pytorch, name)
        if name not in ("randn", "empty", "zeros", "tensor"):
            return found
        return lambda *shape, device=None, **how: found(*shape, **how)


SMALL = [
    cases.Case("plain", "x", 36, 24, 10, (4, 8), 0.4, "f32"),
    cases.Case("transposed", "x", 40, 24, 10, (4, 8), 0.4, "f32", trans=True, layout_b=COL, layout_d=COL),
    cases.Case("sampled", "x", 36, 20, 44, (4, 8), 0.4, "f32", op="sddmm"),
    cases.Case("sampled by columns", "x", 36, 20, 44, (4, 8), 0.4, "bf16", op="sddmm", layout_a=COL, layout_b=COL),
    cases.Case("layer", "x", 48, 32, 20, (8, 8), 0.4, "f32", op="layer"),
    cases.Case("up", "x", 32, 24, 3 * 16, (8, 8), 1 / 3, "f32", pattern="experts", tokens=(5, 8, 9), op="experts_up", layout_b=COL),
    cases.Case("down", "x", 32, 3 * 16, 24, (8, 8), 1 / 3, "f32", pattern="experts", tokens=(5, 8, 9), op="experts_down"),
]


@unittest.skipIf(pytorch is None or support.quick, "needs PyTorch")
class Products(support.CliTest):
    """Every operation on the CPU: sparsek's result and dense PyTorch's are right, and a wrong one is noticed."""

    def test_every_operation(self):
        from race.contestants import CONTESTANTS, Trial
        from race.operations import OPERATIONS
        warnings.simplefilter("ignore")  # PyTorch: BSR is in beta state
        library, torch = Library(pathlib.Path(support.program).parent / "libsparsek.so", "cpu", ""), OnTheHost()
        for case in SMALL:
            with self.subTest(case.name):
                operands = OPERATIONS[case.op](torch, library, case, 3)
                operands.clear()
                self.assertFalse(operands.error(operands.result()) <= operands.tolerance())
                choice, _ = operands.choose(False)
                operands.runner(choice)(0)
                self.assertLessEqual(operands.error(operands.result()), operands.tolerance())
                run, facts = CONTESTANTS["cublas_each" if case.tokens else "cublas_dense"](Trial(torch, library, case, operands, None))
                run(0)
                self.assertLessEqual(operands.error(facts["result"]()), operands.tolerance())
                self.assertEqual(operands.problem(3)["op"], case.op)
                operands.close()


class Files(unittest.TestCase):
    def test_a_case_measured_again_takes_its_old_place(self):
        with tempfile.TemporaryDirectory(prefix="sparsek-peers-") as folder:
            path = str(pathlib.Path(folder) / "peers.json")
            document = report.read(path)
            for case, figure in (("a", 1), ("b", 2), ("a", 3)):
                report.merge(document, {"case": case, "figure": figure})
                report.write(path, document)
            self.assertEqual(report.read(path)["results"], [{"case": "a", "figure": 3}, {"case": "b", "figure": 2}])
            self.assertEqual(len(list(pathlib.Path(folder).iterdir())), 1)
            self.assertEqual(json.loads(pathlib.Path(path).read_text())["schema"], 1)


class Clock(Harness):
    """Contestants whose samples are given."""

    def __init__(self, times):
        super().__init__(None, 10, 4, sample_ms=1)
        self.meter, self.order = None, []
        self.contestants = {name: dict(samples=[], readings=[], repeats=1, kind="own", us=us) for name, us in times.items()}

    def once(self, name):
        self.order.append(name)
        return self.contestants[name]["us"] + len(self.order)


class Rounds(unittest.TestCase):
    def test_turns(self):
        clock = Clock({"x": 10.0, "y": 200.0})
        clock.race()
        self.assertEqual("".join(clock.order[4:]), "xyyxxyyx")
        self.assertEqual([len(c["samples"]) for c in clock.contestants.values()], [4, 4])
        self.assertEqual([c["repeats"] for c in clock.contestants.values()], [9, 1])  # 1 ms of 10 launches at 12 us; of 204 us
        self.assertEqual(median_ratio([2, 4, 9], [1, 2, 3]), 2)


@unittest.skipIf(support.quick, "a library with a sanitizer cannot be loaded into Python")
class Binding(support.CliTest):
    def test_a_product(self):
        library = Library(pathlib.Path(support.program).parent / "libsparsek.so", "cpu", "")
        case = cases.Case("x", "peers", 24, 16, 5, (4, 8), 0.5, "f32", pattern="power-law", layout_b=COL, layout_d=ROW)
        offsets, columns = library.generate(case, 7)
        self.assertEqual((len(offsets), offsets[-1], len(columns)), (7, 6, 6))
        values, b, d = (array.array("f", [(i * 7 % 11) - 5.0 for i in range(count)]) for count in (6 * 32, 16 * 5, 24 * 5))
        pattern = library.pattern(case, offsets, columns)
        plan = library.plan("spmm", case, pattern, dict(n=5, layout_b=COL), choice="reference_spmm")
        self.assertEqual(library.choice(plan), "reference_spmm")
        library.run(plan, library.args("spmm", values=values.buffer_info()[0], b=b.buffer_info()[0], d=d.buffer_info()[0]))
        want = [0.0] * (24 * 5)
        for row in range(24):
            for position in range(offsets[row // 4], offsets[row // 4 + 1]):
                for k in range(8):
                    for n in range(5):  # B by columns
                        want[row * 5 + n] += values[position * 32 + row % 4 * 8 + k] * b[n * 16 + columns[position] * 8 + k]
        self.assertEqual(list(d), want)
        library.destroy_plan(plan)
        library.destroy_pattern(pattern)
        with self.assertRaisesRegex(RuntimeError, "no generator is called lattice"):
            library.generate(cases.Case("x", "peers", 8, 8, 1, (4, 4), 0.5, pattern="lattice"), 1)
