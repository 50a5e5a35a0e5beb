"""docs/performance.md, the devices' pages and the charts are what bench/performance.py makes of the committed results; what it makes of a GPU's."""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import support
from support import HERE

ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import runs  # noqa: E402

PEERS = {"triton_tuned": ("peer", 50.0, 1.25), "cublas_dense": ("dense", 160.0, 4.0), "cusparse_bsr": ("vendor", 1320.0, 33.0)}


def candidate(name, kind, us, ratios, status="ok"):
    return {"name": name, "params": "spmm_sm90_wgmma BN=256" if name == "sparsek" else "", "kind": kind, "status": status, "why": None, "median_us": us,
            "tflops": round(17179.869 / us, 2) if us else 0, "dense_equivalent_tflops": round(137438.95 / us, 2) if us else 0,
            "ratios": {other: {"median": ratio, "pairs": 21} for other, ratio in ratios.items()}}


def race(block, triton):
    ratios = {name: triton if name == "triton_tuned" else ratio for name, (_, _, ratio) in PEERS.items()}
    problem = {"op": "spmm", "m": 4096, "k": 4096, "n": 4096, "block_rows": block, "block_cols": block, "nnzb": 512 * 64 * 64 // block // block, "density": 0.125,
               "pattern": "uniform", "dtype": "f16", "dtype_d": "f16", "compute": "f32", "trans_a": "n", "layout_b": "row", "layout_d": "row", "epilogue": "none",
               "batch": 1, "seed": 1, "assume_finite": True, "static_values": False, "cache": "cold"}
    candidates = [candidate("sparsek", "own", 40.0, ratios)] + [candidate(name, kind, us, {}) for name, (kind, us, _) in PEERS.items()]
    candidates.append({**candidate("cusparselt_2to4", "peer", 0, {}, "failed"), "why": "no | such library"})
    return {"problem": problem, "chosen": "spmm_sm90_wgmma", "candidates": candidates, "card": {"sm_mhz": "1980", "power_w": "408.00", "throttle": "0x0000000000000004"}}


def variants(topic, names, ratio, **fields):
    """sparsek beside itself: `ratio` is the first variant's speed, 0.1 more for each further one."""
    result = race(64, 1.25)
    result.update(case=f"{topic}-b64", topic=topic, **fields)
    result["candidates"] = [candidate("sparsek", "own", 40.0, {})] + [
        dict(candidate(name, "own", 44.0, {"sparsek": ratio + 0.1 * i}), params="spmm_sm90_groups BN=256") for i, name in enumerate(names)]
    return result


def training(op, topic, name, others, **fields):
    """A case of bench/peers.py --suite training: `others` are contestants' times over ours."""
    result = race(fields.pop("block", 64), 1.25)
    result.update(case=name, topic=topic)
    result["problem"].update(op=op, **fields)
    result["candidates"] = [candidate("sparsek", "own", 40.0, others)] + [
        candidate(other, PEERS.get(other, ("peer",))[0], 40.0 * ratio, {}) for other, ratio in others.items()]
    return result


def dense(topic, shape, others, **fields):
    """A case of bench/peers.py --suite gemm; `shape`: M, N, K."""
    result = training("gemm", topic, f"{topic}-{'x'.join(map(str, shape))}", others)
    result["problem"] = {"op": "gemm", "m": shape[0], "n": shape[1], "k": shape[2], "dtype": "bf16", "dtype_d": "bf16", "compute": "f32", "layout_a": "row",
                         "layout_b": "col", "layout_d": "row", "epilogue": "none", "batch": 1, "seed": 1, "assume_finite": False, "static_values": False,
                         "cache": "cold", **fields}
    return result


class Performance(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sparsek-performance-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.results, self.page = self.folder / "results", self.folder / "performance.md"

    def device_page(self, device):
        return (self.folder / "performance" / f"{device}.md").read_text()

    def make(self, *words):
        return subprocess.run([sys.executable, ROOT / "bench" / "performance.py", *words], capture_output=True, encoding="utf-8", timeout=support.LIMIT_S)

    def here(self, *words):
        return self.make("--results", self.results, "--out", self.page, *words)

    def test_the_committed_page_is_fresh(self):
        done = self.make("--check")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_changed_number_is_noticed(self):
        shutil.copytree(ROOT / "bench" / "results", self.results)
        shutil.copytree(ROOT / "docs" / "figures", self.folder / "figures")
        shutil.copytree(ROOT / "docs" / "performance", self.folder / "performance")
        shutil.copy(ROOT / "docs" / "performance.md", self.page)
        self.assertEqual(self.here("--check").returncode, 0)
        changed = runs.read(self.results)["cpu-zen3-regret-50"]
        changed["worst_regret"] = 0.5
        runs.put({"cpu-zen3-regret-50": changed}, self.results)
        done = self.here("--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not what the results give", done.stderr)

    def test_a_changed_chart_is_noticed(self):
        for folder in ("figures", "performance"):
            shutil.copytree(ROOT / "docs" / folder, self.folder / folder)
        shutil.copy(ROOT / "docs" / "performance.md", self.page)
        chart = self.folder / "figures" / "overview-dark.svg"
        chart.write_text(chart.read_text().replace("40.6 us", "30.6 us"))
        self.assertIn("overview-dark.svg is not what the results give", self.make("--check", "--out", self.page).stderr)

    def test_a_changed_figure_of_the_readme_is_noticed(self):
        front = self.folder / "README.md"
        text = (ROOT / "README.md").read_text()
        begin, end = text.index("<!-- made by bench/performance.py -->"), text.index("<!-- until here -->")
        self.assertIn("sparsek 40.6 us", text[begin:end])
        front.write_text(text)
        self.assertEqual(self.make("--check", "--readme", front).returncode, 0)
        front.write_text(text[:begin] + text[begin:end].replace("40.6 us", "40.5 us", 1) + text[end:])
        done = self.make("--check", "--readme", front)
        self.assertEqual(done.returncode, 1)
        self.assertIn("shows another chart than the results give", done.stderr)
        front.write_text(text[:begin] + text[end:])
        self.assertEqual(self.make("--check", "--readme", front).returncode, 2)

    def test_charts_are_legible(self):
        """Text of a chart stands out from the page behind it by 4.5 to 1 (WCAG 2, level AA), a bar by 3 to 1."""
        def light(colour):
            parts = [int(colour[at:at + 2], 16) / 255 for at in (1, 3, 5)]
            return sum(weight * (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4) for weight, part in zip((0.2126, 0.7152, 0.0722), parts))

        charts = sorted(path for path in (ROOT / "docs" / "figures").glob("*.svg") if not path.name.startswith(("roofline", "pruning", "decoder")))  # those bring a white page along
        self.assertEqual({path.name.replace("-light", "-dark") for path in charts}, {path.name for path in charts if "-dark" in path.name})
        for path in charts:
            page = light("#ffffff" if "-light" in path.name else "#0d1117")
            for kind, colour in re.findall(r'<(text|rect) [^>]*?fill="(#[0-9a-f]{6})"', path.read_text()):
                more, less = sorted((page, light(colour)), reverse=True)
                self.assertGreaterEqual((more + 0.05) / (less + 0.05), 4.5 if kind == "text" else 3, f"{path.name}: {kind} {colour}")

    def test_a_gpu(self):
        self.results.mkdir()
        document = {"schema": 1, "results": [race(64, 1.5), race(128, 1.0)], "commit": "0123456789ab", "date": "2026-01-02T03:04:05Z", "command": "bench/peers.py",
                    "versions": {"torch": "2.11"}, "device": {"kind": "cuda", "name": "NVIDIA H200", "threads": None, "isa": ["sm_90a"], "driver": "580"}}
        runs.put({"gpu-h200-peers": document}, self.results)
        roofs = {"schema": 1, "command": "bench/roofs.py", "device": {"name": "NVIDIA H200"}, "roofs": {"hbm_read_gbps": 4321.0, "l2_read_gbps": None}}
        runs.put({"gpu-h200-roofs": roofs}, self.results)
        self.assertEqual(self.here("--no-figures").returncode, 0)
        page = self.device_page("gpu-h200")
        for text in ("**40.00** (430)", "50.00 (344, 1.50x)", "1320 (13.0, 33.0x)", "| `triton_tuned` | 1.22x | 1.00x | 1.50x | 2 of 11 |", "0123456789ab", "0x4", "408.0",
                     "no \\| such library", "| 4321 |", "0.50 |", "| 21 | 1980 |"):
            self.assertIn(text, page)
        front = self.page.read_text()
        for text in ("On this page: [How to read it]", "[gpu-h200](performance/gpu-h200.md)", "| 64 / 128 | 40.0 | 430 | 4.00x | 1.50x / 1.00x | 33.0x |",
                     'srcset="figures/spmm-dark.svg"'):
            self.assertIn(text, front)
        self.assertIn("12.5 %, blocks of 128", (self.folder / "figures" / "spmm-light.svg").read_text())
        self.assertIn("roofline-gpu-h200.svg is missing", self.here("--check").stderr)
        old = self.folder / "performance" / "cpu-gone.md"
        old.write_text("")
        self.assertIn("cpu-gone.md has no results", self.here("--check").stderr)
        self.assertEqual(self.here("--no-figures").returncode, 0)
        self.assertFalse(old.exists())
        (self.results / "broken.jsonl").write_text("{")
        self.assertEqual(self.here("--check").returncode, 2)

    def test_topics_and_targets(self):
        self.results.mkdir()
        peers, decode = dict(race(64, 1.5), topic="peers", case="b64"), race(128, 0.9)
        decode.update(topic="decode", case="decode-t1-b128")
        decode["problem"]["n"] = 1
        read = dict(candidate("plain_read", "read", 4.0, {}), gbps=2935.4)
        decode["candidates"].append(read)
        decode["candidates"][0]["ratios"]["plain_read"] = {"median": 0.78, "pairs": 21}
        alone = dict(race(64, 1.25), topic="sustained", case="sustained-b64")
        alone["candidates"][0].update(sm_mhz=1755.0, power_w=698.4)
        document = {"schema": 1, "results": [peers, decode, variants("kinds", ("bf16", "B by columns"), 0.9), variants("patterns", ("banded", "power-law"), 1.1), alone],
                    "commit": "0123456789ab", "device": {"kind": "cuda", "name": "NVIDIA H200", "threads": None, "isa": ["sm_90a"]}}
        runs.put({"gpu-h200-peers": document}, self.results)
        self.assertEqual(self.here("--no-figures").returncode, 0)
        page = self.device_page("gpu-h200")
        for text in ("## Targets", "| Triton's time over ours, the least of the eleven | >= 1.05x | 1.500x | b64 | 1 | yes |", "| Triton's time over ours, decoding, cold | >= 1x | 0.9000x | decode-t1-b128 | 1 | **no** |",
                     "T = 1, cold | <= 1.25x | 1.282x | decode-t1-b128 | 1 | **no** |", "over f16 by rows | >= 0.95x | 0.9000x | bf16, kinds-b64 | 2 | **no** |",
                     "| speed on power-law rows over even ones | >= 0.85x | 1.200x | power-law, patterns-b64 | 1 | yes |", "| not measured | - | 0 | - |", "### Types and layouts",
                     "44.00 (390, `spmm_sm90_groups`) **0.900x**", "| 12.5 % | 40.00 (430, `spmm_sm90_wgmma`) |", "4.000 (2935 GB/s, 0.780x)", "40.00 (430; 1755 MHz, 698.4 W)"):
            self.assertIn(text, page)

    def test_training(self):
        self.results.mkdir()
        results = [training("sddmm", "sddmm", "sddmm-b64", {"cublas_dense": 4.4, "torch_sampled": 9.0}, layout_a="row"),
                   training("sddmm", "sddmm", "sddmm-b128", {"cublas_dense": 5.0}, layout_a="col", block=128),
                   training("layer", "layer", "layer-all-b64", {"cublas_dense": 4.6}, dtype="bf16", dtype_d="bf16"),
                   training("sddmm", "layer", "layer-grad-values-b64", {"cublas_dense": 2.0}, layout_a="col"),
                   training("experts_up", "experts", "experts-up-e2", {"cublas_each": 1.5, "grouped_mm": 0.8}, tokens=[16, 100], pattern="experts"),
                   variants("transposed", ("A transposed",), 0.9)]
        document = {"schema": 1, "results": results, "commit": "0123456789ab", "device": {"kind": "cuda", "name": "NVIDIA H200", "threads": None, "isa": ["sm_90a"]}}
        runs.put({"gpu-h200-training": document}, self.results)
        self.assertEqual(self.here("--no-figures").returncode, 0)
        page = self.device_page("gpu-h200")
        for text in ("## Targets of training", "on all, block 64 | >= 0.5x | 0.5500x | sddmm-b64 | 1 of 4 | so far |", "on all, block 128 | >= 0.7x | 0.6250x | sddmm-b128 | 1 of 4 | **no** |",
                     "on all, block 32 | >= 0.28x | not measured |", "layer over ours, block 64 | >= 4.5x | 4.600x | layer-all-b64 | 1 | yes |",
                     "for each expert over ours | >= 1x | 1.500x | experts-up-e2 | 1 of 8 | so far |", "`torch._grouped_mm` over ours | >= 0.9x | 0.8000x | experts-up-e2 | 1 of 8 | **no** |",
                     "| >= 0.85x | 0.9000x | A transposed, transposed-b64 | 1 of 11 | so far |", "SDDMM, f16, cold, X by columns",
                     "up, 2 experts, 116 tokens, f16, cold", "all three products, bf16"):
            self.assertIn(text, page)

    def test_dense_products(self):
        self.results.mkdir()
        results = [dense("gemm", (4096, 4096, 4096), {"cublaslt": 1.02}), dense("gemm", (8192, 64, 8192), {"cublaslt": 0.98}),
                   dense("gemm", (8192, 8192, 237568), {"cublaslt": 1.01}, dtype="f16", dtype_d="f32"), dense("gemm-unaligned", (9477, 1152, 588), {"cublaslt": 2.4}),
                   dense("gemm-epilogue", (4096, 4096, 4096), {"cublaslt": 1.2, "without": 0.8}, epilogue="bias silu residual"),
                   dense("gemm-grouped", (8192, 14336, 4096), {"grouped_mm": 1.3}, group_axis="rows", groups=8)]
        results[0]["candidates"].append({**candidate("grouped_mm", "peer", 0, {}, "failed"), "why": "it takes no such thing"})
        document = {"schema": 1, "results": results, "commit": "0123456789ab", "device": {"kind": "cuda", "name": "NVIDIA H200", "threads": None, "isa": ["sm_90a"]}}
        runs.put({"gpu-h200-gemm": document}, self.results)
        self.assertEqual(self.here("--no-figures").returncode, 0)
        page = self.device_page("gpu-h200")
        for text in ("sixteen shapes | >= 1x | 0.9998x | the geometric mean | 2 of 16 | **no** |", "| cuBLASLt's time over ours, the least of the sixteen shapes | >= 0.97x | 0.9800x | gemm-8192x64x8192 | 2 of 16 | so far |",
                     "| >= 1x | 1.010x | gemm-8192x8192x237568 | 1 | yes |", "| <= 1.05x | 1.250x | gemm-epilogue-4096x4096x4096 | 1 of 4 | **no** |",
                     "groups along rows | >= 1.05x | 1.300x |", "f16 to f32, cold, B by columns", "bf16, cold, B by columns, 8 groups along rows", "40.80 (421, 1.02x)",
                     "`grouped_mm` failed at gemm-4096x4096x4096: it takes no such thing"):
            self.assertIn(text, page)
        self.assertNotIn("Roofline", page)

    def test_two_builds(self):
        self.results.mkdir()
        figures = {"plan_from_store_us": {"old": 15.3, "new": 12.3, "ratio": 0.804, "least": 0.79, "most": 0.83, "pairs": 12}}
        document = {"schema": 1, "against": "b09448d", "commit": "0123456", "device": {"kind": "cpu", "name": "x", "threads": 2}, "figures": figures}
        runs.put({"cpu-x-against": document}, self.results)
        self.assertEqual(self.here("--no-figures").returncode, 0)
        self.assertIn("a plan from a warm store, us | `0123456` against `b09448d` | 15.30 | 12.30 | 0.804x (0.790 to 0.830) |",
                      self.device_page("cpu-x"))

    def test_the_fastest_dense_library_of_each_race_is_drawn_and_named(self):
        self.results.mkdir()
        for block, ratios in ((32, {"mkl_dense": 9.0, "openblas_dense": 30.0, "onednn_dense": 5.0}), (64, {"mkl_dense": 4.0, "openblas_dense": 40.0})):
            result = training("spmm", None, None, ratios, block=block, dtype="f32", dtype_d="f32", cache="warm")
            del result["topic"], result["case"]
            for one in result["candidates"][1:]:
                one["kind"] = "dense"
            document = {"schema": 1, "results": [result], "device": {"kind": "cpu", "name": "x", "threads": 16, "isa": ["avx2"]}}
            runs.put({f"cpu-x-spmm-f32-b{block}": document}, self.results)
        self.assertEqual(self.here("--no-figures").returncode, 0)
        drawn = (self.folder / "figures" / "cpu-light.svg").read_text()
        self.assertIn("SpMM, cpu-x, 16 threads", drawn)
        self.assertIn("blocks of 32; oneDNN", drawn)
        self.assertIn("blocks of 64; MKL", drawn)
        self.assertNotIn("OpenBLAS", drawn)

    def test_what_training_needs_on_a_cpu(self):
        self.results.mkdir()
        for block, over_dense in ((32, 7.2), (64, 5.6)):
            result = training("sddmm", None, None, {"cublas_dense": over_dense}, block=block, dtype="f32", dtype_d="f32", cache="warm", layout_a="row")
            del result["topic"], result["case"]
            document = {"schema": 1, "results": [result], "device": {"kind": "cpu", "name": "x", "threads": 2, "isa": ["avx2"]}}
            runs.put({f"cpu-x-sddmm-f32-b{block}": document}, self.results)
        self.assertEqual(self.here("--no-figures").returncode, 0)
        self.assertIn("dense rate, blocks of 32 and more | >= 0.75x | 0.7000x | SDDMM, block 64 | 2 | **no** |", self.device_page("cpu-x"))
        self.assertIn("| [cpu-x](performance/cpu-x.md) | SDDMM: rate on stored blocks over the dense rate, blocks of 32 and more | >= 0.75x | 0.7000x | SDDMM, block 64 |",
                      self.page.read_text())
        self.assertNotIn("A transposed", self.device_page("cpu-x"))
