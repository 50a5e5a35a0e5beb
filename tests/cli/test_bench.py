"""bench, tune, explain: shape and numbers of the results, the store, interruption."""
import json
import os
import signal
import subprocess
import sys
import time

import support
from support import SMALL, SMALL_CLASS, CliTest, Watched


class Bench(CliTest):
    def test_shape_and_numbers(self):
        for extra in ([], ["--assume-finite", "--cache", "warm"], ["--dtype", "f64", "--trans-a", "t", "--block", "8x24"],
                      ["--layout-b", "col", "--layout-d", "col", "--bias", "row", "--activation", "gelu-tanh", "--use-c", "--residual", "--keep-preact"],
                      ["--activation", "silu", "--factor"],
                      ["--m", "100", "--k", "70", "--n", "1", "--pattern", "empty-rows"]):
            with self.subTest(extra=extra):
                result = self.bench("bench", *SMALL, *extra)
                one = result["results"][0]
                self.assertFalse(one["from_store"])
                self.assertEqual(one["problem"]["assume_finite"], "--assume-finite" in extra)
                names = [c["name"] for c in one["candidates"]]
                self.assertEqual(len(names), len(set(names)), "one row a kernel")
                self.assertIn("reference_spmm", names)
                chosen = next(c for c in one["candidates"] if c["name"] == one["chosen"])
                self.assertEqual(chosen["status"], "ok")
                others = {c["name"] for c in one["candidates"] if c["median_us"] and c["status"] in ("ok", "not_eligible")} - {one["chosen"]}
                self.assertEqual(set(chosen["ratios"]), others)
                for ratio in chosen["ratios"].values():  # those far behind sit rounds out after three
                    self.assertTrue(1 <= ratio["pairs"] <= 20, ratio)

    def test_the_least_time_is_shown_where_it_decides(self):
        """On a busy machine, such as these loops make."""
        loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
        try:
            shown = self.cli("bench", *SMALL, env={"COLUMNS": "200"}).stdout
        finally:
            for loop in loops:
                loop.kill()
                loop.wait()
        self.assertEqual("least us" in shown, "goes by the least time" in " ".join(shown.split()), shown)

    def test_every_row_of_the_table_is_there(self):
        kernels = {k["name"] for k in self.json("info")["results"][0]["kernels"] if k["device"] == "cpu" and k["op"] == "spmm"}
        one = self.bench("bench", *SMALL)["results"][0]
        self.assertEqual({c["name"] for c in one["candidates"]}, kernels, "those of the device and the operation, and of no other kind")

    def test_problem_as_asked(self):
        result = self.bench("bench", "--m=120", "--k=60", "--n=9", "--block=12x5", "--density=25%", "--pattern=bernoulli", "--seed=77", "--dtype=f64",
                            "--activation=silu", "--budget=0.2", "--static-values")
        problem = result["results"][0]["problem"]
        wanted = {"op": "spmm", "m": 120, "k": 60, "n": 9, "block_rows": 12, "block_cols": 5, "nnzb": 30, "density": 0.25, "pattern": "bernoulli", "dtype": "f64",
                  "dtype_d": "f64", "compute": "f64", "trans_a": "n", "layout_b": "row", "layout_d": "row", "epilogue": "silu", "batch": 1, "seed": 77,
                  "assume_finite": False, "static_values": True, "cache": "cold"}
        self.assertEqual(problem, wanted)
        self.assertIn("--block=12x5", result["command"])
        self.assertTrue(result["command"].startswith("sparsek bench --m=120"))
        self.assertEqual(result["schema"], 1)

    def test_sddmm(self):
        line = ["--op", "sddmm", "--m=90", "--n=70", "--k=33", "--block=16", "--layout-a=col", "--use-c", "--budget=0.1", "--dtype=bf16", "--dtype-d=f32"]
        result = self.bench("bench", *line)["results"][0]
        wanted = {"op": "sddmm", "m": 90, "k": 33, "n": 70, "layout_a": "col", "layout_b": "row", "epilogue": "beta", "dtype": "bf16", "dtype_d": "f32"}
        self.assertEqual({key: result["problem"][key] for key in wanted}, wanted)
        self.assertIn("reference_sddmm", {c["name"] for c in result["candidates"]})
        self.write("list.json", json.dumps([result["problem"]]))
        self.assertEqual(self.bench("tune", "--from", "list.json", "--budget", "0.1")["results"][0]["problem"], result["problem"])
        self.assertEqual(self.bench("explain", *line[:-3], "--dtype=bf16", "--dtype-d=f32")["results"][0]["problem"], result["problem"])
        self.assertIn("at the blocks of a pattern", self.cli("bench", *line).stdout)
        self.cli("gen", "banded", "--m", "40", "--k", "30", "--block", "8", "--density", "50%", "-o", "a.safetensors")
        problem = self.bench("bench", "a.safetensors", "--op", "sddmm", "--k", "12", "--budget", "0.1")["results"][0]["problem"]
        self.assertEqual((problem["m"], problem["n"], problem["k"]), (40, 30, 12))
        self.assertIn("--m, --n, --density", self.cli("bench", "a.safetensors", "--op", "sddmm", "--n", "12", code=2).stderr)

    def test_gemm_in_groups(self):
        for axis in ("rows", "cols", "depth"):
            line = ["--op", "gemm", "--m=50", "--n=40", "--k=33", "--groups=3", f"--group-axis={axis}", "--budget=0.1"]
            result = self.bench("bench", *line)["results"][0]
            self.assertEqual((result["problem"]["groups"], result["problem"]["group_axis"]), (3, axis))
            self.assertTrue(all(c["error"] <= c["tolerance"] for c in result["candidates"] if c["status"] == "ok"))
            self.write("list.json", json.dumps([result["problem"]]))
            self.assertEqual(self.bench("tune", "--from", "list.json", "--budget", "0.1")["results"][0]["problem"], result["problem"])
            self.assertIn(f"in 3 groups along its {'columns' if axis == 'cols' else axis}", self.cli("bench", *line).stdout)

    def test_gemm(self):
        """It takes no pattern: all sizes are given, and nothing is said of blocks."""
        line = ["--op", "gemm", "--m=90", "--n=70", "--k=33", "--layout-a=col", "--use-c", "--bias=col", "--activation=silu", "--factor", "--budget=0.1", "--batch=2"]
        result = self.bench("bench", *line)["results"][0]
        wanted = {"op": "gemm", "m": 90, "n": 70, "k": 33, "dtype": "f32", "dtype_d": "f32", "compute": "f32", "layout_a": "col", "layout_b": "row",
                  "layout_d": "row", "batch": 2, "epilogue": "beta+bias_col+silu+factor", "seed": 1, "assume_finite": False, "static_values": False, "cache": "cold"}
        self.assertEqual(result["problem"], wanted)
        self.assertIn("reference_gemm", {c["name"] for c in result["candidates"]})
        self.write("list.json", json.dumps([result["problem"]]))
        self.assertEqual(self.bench("tune", "--from", "list.json", "--budget", "0.1")["results"][0]["problem"], result["problem"])
        self.assertIn("A 90 x 33 times B 33 x 70, 2 of them", self.cli("bench", *line).stdout)

    def test_attention(self):
        """Sizes, heads and bands are options and keys; a problem of a result is one to tune."""
        line = ["--op", "attention", "--queries=40", "--keys=50", "--depth=16", "--depth-v=24", "--heads=4", "--heads-kv=2", "--causal", "--diagonal=bottom_right",
                "--window-left=9", "--sinks=2", "--use-softcap", "--lse", "--dtype=bf16", "--budget=0.1", "--batch=2"]
        result = self.bench("bench", *line)["results"][0]
        wanted = {"op": "attention", "queries": 40, "keys": 50, "depth": 16, "depth_v": 24, "dtype": "bf16", "batch": 2, "heads": 4, "heads_kv": 2, "causal": True,
                  "diagonal": "bottom_right", "window_left": 9, "sinks": 2, "use_softcap": True, "lse": True}
        self.assertEqual({key: value for key, value in result["problem"].items() if key in wanted}, wanted)
        self.assertTrue({"reference_attention", "attention_portable"} <= {c["name"] for c in result["candidates"]})
        self.assertTrue(all(c["error"] <= c["tolerance"] for c in result["candidates"] if c["status"] == "ok"))
        self.write("list.json", json.dumps([result["problem"]]))
        self.assertEqual(self.bench("tune", "--from", "list.json", "--budget", "0.1")["results"][0]["problem"], result["problem"])
        self.assertIn("attention of 40 queries on 50 keys, depth 16 and 24, 4 heads (heads_kv 2), causal, window_left 9, sinks 2, use_softcap, 2 of them",
                      " ".join(self.cli("bench", *line).stdout.split()))
        for wrong, why in ((["--heads-kv=3"], "heads_kv = 3: it must divide heads = 4"), (["--window-right=2"], "window_right = 2: with causal it must be 0"),
                           (["--m=3"], "--m: attention has no such size"), (["--experts=3"], "--experts goes with --op spmm or sddmm"),
                           (["--mask-heads=2"], "mask_heads = 2: there is no pattern")):
            self.assertIn(why, self.cli("bench", *line, *wrong, code=2).stderr)
        billions = ["--op", "attention", "--queries=2000000000", "--keys=2000000000", "--causal", "--window-left=5", "--budget=0.1"]
        self.assertIn("bytes of memory are free", self.cli("bench", *billions, code=5).stderr)

    def test_attention_in_blocks(self):
        """A mask is generated, or a file: lists for each head and item; a problem of a result is one to tune."""
        line = ["--op", "attention", "--queries=96", "--keys=128", "--depth=16", "--heads=4", "--heads-kv=2", "--batch=3", "--block=16x32", "--density=40%", "--budget=0.1"]
        for lists in ([], ["--mask-heads=2"], ["--mask-heads=4", "--mask-items=3"]):
            result = self.bench("bench", *line, *lists)["results"][0]
            many = result["problem"].get("mask_heads", 1) * result["problem"].get("mask_items", 1)
            self.assertEqual((result["problem"]["nnzb"], result["problem"]["block_cols"]), (round(0.4 * 24 * many), 32))
            self.assertTrue({"reference_attention", "attention_portable"} <= {c["name"] for c in result["candidates"]})
            self.write("list.json", json.dumps([result["problem"]]))
            self.assertEqual(self.bench("tune", "--from", "list.json", "--budget", "0.1")["results"][0]["problem"], result["problem"])
            self.assertIn("class: v=1;op=attention", self.cli("explain", *line[:-1], *lists).stdout)
        self.assertIn("in the blocks of a mask (uniform, 16x32 blocks, 115 stored, 39.9 %), 4 heads (heads_kv 2), mask_heads 4, mask_items 3, 3 of them",
                      " ".join(self.cli("bench", *line, *lists).stdout.split()))
        self.cli("gen", "uniform", "--rows", "160", "--cols", "80", "--block", "16", "-o", "mask.safetensors")
        p = self.bench("bench", "mask.safetensors", "--op", "attention", "--depth=16", "--budget=0.1")["results"][0]["problem"]
        self.assertEqual((p["queries"], p["keys"], p["file"], p["nnzb"]), (160, 80, "mask.safetensors", 5))
        p = self.bench("bench", "mask.safetensors", "--op", "attention", "--depth=16", "--heads=2", "--mask-heads=2", "--budget=0.1")["results"][0]["problem"]
        self.assertEqual((p["queries"], p["mask_heads"]), (80, 2))
        self.assertIn("its 10 rows of blocks are not 3 lists of as many (--mask-heads times --mask-items); 1, 2, 5 or 10 would fit",
                      self.cli("bench", "mask.safetensors", "--op", "attention", "--heads=3", "--mask-heads=3", code=2).stderr)
        self.assertIn("mask_heads times mask_items = 2 would fit", self.cli("bench", "mask.safetensors", "--op", "attention", "--queries=75", code=2).stderr)
        self.assertIn("the pattern has 160 rows: 1 list of 149 queries", self.cli("bench", "mask.safetensors", "--op", "attention", "--queries=149", code=2).stderr)

    def test_batches(self):
        for more in ([], ["--batch-values"], ["--op", "sddmm"]):
            result = self.bench("bench", *SMALL, "--batch", "9", *more, "--budget", "0.1")["results"][0]
            self.assertEqual((result["problem"]["batch"], result["problem"].get("batch_values", False)), (9, more == ["--batch-values"]))
            self.assertIn("9 of them", self.cli("bench", *SMALL, "--batch", "9", *more, "--budget", "0.1").stdout)

    def test_half_types_and_tf32(self):
        for pattern in ("banded", "window", "causal", "power-law"):
            for dtype in ("f16", "bf16"):
                problem = self.bench("bench", *SMALL, "--pattern", pattern, "--dtype", dtype, "--budget", "0.1")["results"][0]["problem"]
                self.assertEqual((problem["dtype"], problem["dtype_d"], problem["compute"], problem["pattern"]), (dtype, dtype, "f32", pattern))
        wide = self.bench("bench", *SMALL, "--dtype", "bf16", "--dtype-d", "f32", "--budget", "0.1")["results"][0]["problem"]
        self.assertEqual(wide["dtype_d"], "f32")
        first = self.bench("bench", *SMALL, "--compute", "tf32", "--budget", "0.1")
        self.assertEqual(first["results"][0]["problem"]["compute"], "tf32")
        self.write("list.json", json.dumps([first["results"][0]["problem"]]))
        again = self.bench("tune", "--from", "list.json", "--budget", "0.1")["results"][0]["problem"]
        self.assertEqual(again["compute"], "tf32")

    def test_devices_and_libraries(self):
        one = self.json("info")["results"][0]
        self.assertEqual(one["devices"][0]["device"], "cpu")
        self.assertGreater(one["devices"][0]["memory_bytes"], 0)
        self.assertGreater(len(one["devices"]), 1, "a CUDA device, or why there is none")
        for device in one["devices"][1:]:
            self.assertRegex(device["device"], r"^cuda")
            self.assertTrue(device["why"] or device["memory_bytes"] > 0)
        self.assertEqual({l["name"] for l in one["libraries"] if l["device"] == "cpu"}, {"openblas", "blis", "mkl", "onednn", "libxsmm"})
        self.assertIn("Devices of this machine\n  cpu", self.cli("info").stdout)

    def test_second_run_comes_from_the_store(self):
        first = self.bench("bench", *SMALL, "--assume-finite")["results"][0]
        second = self.bench("bench", *SMALL, "--assume-finite")["results"][0]
        self.assertFalse(first["from_store"])
        self.assertTrue(second["from_store"])
        self.assertEqual(first["chosen"], second["chosen"])
        self.assertEqual({c["name"] for c in first["candidates"]}, {c["name"] for c in second["candidates"]})
        dense = [c for c in second["candidates"] if c["kind"] == "dense" and c["median_us"]]
        chosen = next(c for c in second["candidates"] if c["name"] == second["chosen"])
        old = next(c for c in first["candidates"] if c["name"] == first["chosen"])
        self.assertNotEqual(chosen["median_us"], old["median_us"], "the chosen one is timed again")
        if dense and chosen["kind"] != "dense":
            self.assertTrue(any(d["name"] in chosen["ratios"] for d in dense))
        text = self.cli("bench", *SMALL, "--assume-finite").stdout
        self.assertIn("from the store", text)
        self.assertFalse(self.bench("bench", *SMALL, "--assume-finite", "--fresh")["results"][0]["from_store"])

    def test_dense_is_the_yardstick(self):
        one = self.bench("bench", *SMALL)["results"][0]
        dense = [c for c in one["candidates"] if c["kind"] == "dense"]
        for c in dense:
            self.assertIn(c["status"], ("not_eligible", "not_applicable", "pruned"))
            if c["status"] == "pruned":  # on a busy machine
                self.assertIn("budget", c["why"])
            if c["status"] == "not_eligible":
                self.assertIn("finite", c["why"])
                self.assertGreater(c["median_us"], 0)

    def test_from_a_file(self):
        self.cli("gen", "elasticity", "--cells", "3", "-o", "beam.mtx")
        one = self.bench("bench", "beam.mtx", "--block", "3", "--n", "8", "--budget", "0.3")["results"][0]
        self.assertEqual(one["problem"]["pattern"], "file:beam.mtx")
        self.assertEqual(one["problem"]["dtype"], "f64")
        again = self.bench("bench", "beam.mtx", "--block", "3", "--n", "8", "--budget", "0.3")["results"][0]
        self.assertTrue(again["from_store"])
        made = self.bench("bench", "--pattern", "elasticity", "--cells", "3", "--n", "8", "--budget", "0.3")["results"][0]
        self.assertEqual(made["problem"]["nnzb"], one["problem"]["nnzb"])

    def test_experts(self):
        for flags in (["--k", "96", "--n", "8"], ["--op", "sddmm", "--n", "96", "--k", "8"], ["--trans-a", "t", "--m", "96", "--n", "8"]):
            self.cli("bench", "--pattern", "experts", "--tokens", "20,5,33", *flags, "--block", "16", "--budget", "0.2", "--json", "one.json")
            one = json.loads((self.folder / "one.json").read_text())["results"][0]["problem"]
            self.assertEqual((one["nnzb"], one["tokens"]), (2 * 2 + 2 + 3 * 2, "20,5,33"))
            again = self.bench("tune", "--from", "one.json", "--budget", "0.2")["results"][0]
            self.assertTrue(again["from_store"])
            self.assertEqual(again["problem"], one)

    def test_a_result_of_a_file_is_a_list_of_problems(self):
        os.mkdir(self.path("deep"))
        self.cli("gen", "diagonal", "--rows", "64", "--block", "4", "-o", "deep/a.mtx")
        self.cli("bench", "deep/a.mtx", "--n", "8", "--budget", "0.2", "--json", "first.json")
        one = self.bench("tune", "--from", "first.json", "--budget", "0.2")["results"][0]
        self.assertEqual(one["problem"]["file"], "deep/a.mtx")
        self.assertTrue(one["from_store"])
        self.write("mixed.json", json.dumps([{"file": "deep/a.mtx", "m": 3}]))
        self.assertIn('do not go with "file"', self.cli("tune", "--from", "mixed.json", code=3).stderr)

    def test_a_wide_matrix(self):
        self.write("wide.mtx", "%%MatrixMarket matrix coordinate real general\n4 33554432 2\n1 1 1\n4 33554432 2\n")
        self.json("inspect", "wide.mtx")

    def test_json_file_and_quiet(self):
        done = self.cli("bench", *SMALL, "--json", "out.json", "--quiet")
        self.assertEqual((done.stdout, done.stderr), ("", ""))
        self.check_shape(json.loads((self.folder / "out.json").read_text()))
        text = self.cli("bench", *SMALL, "--json", "out.json").stdout
        self.assertIn("GFLOP/s", text)

    def test_only_and_exclude(self):
        one = self.bench("bench", *SMALL, "--only", "reference_spmm")["results"][0]
        self.assertEqual(one["chosen"], "reference_spmm")
        one = self.bench("tune", *SMALL, "--exclude", one["chosen"])["results"][0]
        self.assertNotEqual(one["chosen"], "reference_spmm")

    def test_empty_problems(self):
        for extra in (["--density", "0"], ["--n", "0"], ["--m", "0"]):
            with self.subTest(extra=extra):
                self.bench("bench", *SMALL, *extra)


class Tune(CliTest):
    def test_tune_then_explain(self):
        asks = self.cli("explain", *SMALL_CLASS, "--threads", "1", "--only", "reference_spmm", "--store", "a store.db", code=1).stderr
        self.assertIn(" --threads 1 --store 'a store.db' --only reference_spmm' measures it", asks)
        self.cli("explain", *SMALL_CLASS, code=1)
        tuned = self.bench("tune", *SMALL)["results"][0]
        told = self.bench("explain", *SMALL_CLASS)["results"][0]
        self.assertEqual(told["chosen"], tuned["chosen"])
        self.assertTrue(told["from_store"])
        text = self.cli("explain", *SMALL_CLASS).stdout
        self.assertIn(tuned["chosen"], text)
        self.assertIn("class: ", text)
        self.assertIn("from the store, measured just now", text)

    def test_estimate_measures_nothing(self):
        one = self.bench("tune", *SMALL, "--effort", "estimate")["results"][0]
        self.assertTrue(all(c["median_us"] is None for c in one["candidates"]))
        self.assertIsNotNone(one["chosen"])

    def test_list_of_problems(self):
        problems = [{"m": 64, "k": 64, "n": 8, "block": "8x16", "density": 0.5}, {"m": 48, "k": 32, "n": 1, "block": 16, "dtype": "f64", "pattern": "diagonal"}]
        self.write("list.json", json.dumps(problems))
        result = self.bench("tune", "--from", "list.json", "--budget", "0.2")
        self.assertEqual([r["problem"]["n"] for r in result["results"]], [8, 1])
        self.assertEqual(result["results"][0]["problem"]["block_cols"], 16)
        self.write("again.json", json.dumps(result))
        again = self.bench("tune", "--from", "again.json", "--budget", "0.2")
        self.assertTrue(all(r["from_store"] for r in again["results"]))
        self.assertEqual([r["problem"] for r in again["results"]], [r["problem"] for r in result["results"]])

    def test_how_far_a_list_is(self):
        self.write("list.json", json.dumps([{"m": 64, "k": 64, "n": n, "block": 16, "density": 0.5} for n in (8, 16, 24)]))
        code, out, shown = Watched(self, "tune", "--from", "list.json", "--budget", "0.1", "--store", self.path("progress")).end()
        self.assertEqual(code, 0, shown)
        for mark in (r"problem 1 of 3: ", r"problem 2 of 3, some \d+ s left: ", r"problem 3 of 3, some \d+ s left: "):
            self.assertRegex(shown, mark)
        code, out, shown = Watched(self, "tune", *SMALL, "--fresh", "--store", self.path("progress")).end()
        self.assertNotIn("problem", shown)

    def test_options_hold_where_a_list_says_nothing(self):
        self.write("list.json", json.dumps([{"m": 64}, {"m": 48, "n": 3, "dtype": "f32"}, {"pattern": "experts", "tokens": [5, 9], "k": 32}]))
        made = self.bench("tune", "--from", "list.json", "--n", "8", "--block", "8", "--dtype", "f64", "--budget", "0.2")["results"]
        self.assertEqual([(r["problem"]["n"], r["problem"]["dtype"], r["problem"]["block_rows"]) for r in made], [(8, "f64", 8), (3, "f32", 8), (8, "f64", 8)])
        self.assertEqual(made[2]["problem"]["tokens"], "5,9")

    def test_an_epilogue_is_an_objects_own(self):
        small = {"m": 64, "k": 64, "n": 8, "block": 8}
        given = ({}, {"epilogue": "none"}, {"epilogue": "silu+residual"}, {"bias": "row", "epilogue": "silu"}, {"residual": True}, {"factor": False})
        wanted = ("bias_col+factor", "none", "silu+residual", "bias_row+silu", "bias_col+residual", "bias_col")
        self.write("list.json", json.dumps([small | one for one in given]))
        made = self.bench("tune", "--from", "list.json", "--factor", "--bias", "col", "--budget", "0.05")["results"]
        self.assertEqual([r["problem"]["epilogue"] for r in made], list(wanted))

    def test_elasticity_is_fed_back(self):
        self.cli("bench", "--pattern", "elasticity", "--cells", "3x2x1", "--n", "4", "--budget", "0.2", "--json", "one.json")
        again = self.bench("tune", "--from", "one.json", "--budget", "0.2")["results"][0]
        self.assertTrue(again["from_store"])
        self.assertEqual(again["problem"], json.loads((self.folder / "one.json").read_text())["results"][0]["problem"])

    def test_bad_lists(self):
        for text, message in (("", "line 1"), ("[", "line 1"), ("3", "line 1"), ("{}", "neither a list"), ("[3]", "problem 0: is not an object"),
                              ('[{"m": 8}, {"desity": 1}]', 'problem 1: unknown key "desity"; did you mean "density"?'),
                              ('[{"op": "attention", "soft_cap": true}]', 'problem 0: unknown key "soft_cap"; did you mean "use_softcap"?'),
                              ('[{"m": "8"}]', '"m" has a wrong value'), ('[{"density": 2}]', '"density" has a wrong value'),
                              ('[{"block": 0}]', '"block" has a wrong value'), ('[{"pattern": "x"}]', '"pattern" has a wrong value'),
                              ('[{"tokens": [1, "2"]}]', '"tokens" has a wrong value, [1,"2"]: it takes'),
                              ('[{"block_rows": 4}]', "go together"), ('[{"m": 8}, {"factor": true, "residual": true}]', "problem 1: --factor does not go with --residual"),
                              ('[{"op": "sddmm", "factor": true}]', "problem 0: --factor goes with --op spmm"),
                              ('[{"op": "gemm", "density": 0.5}]', "problem 0: --density goes with --op spmm or sddmm"), ('[{"m": 1, "m": 2}]', "duplicate")):
            with self.subTest(text=text):
                self.write("bad.json", text)
                self.assertIn(message, self.cli("tune", "--from", "bad.json", code=3).stderr)
        self.assertIn("did you mean --use-softcap?", self.cli("tune", "--op", "attention", "--soft-cap", code=2).stderr)
        self.write("empty.json", "[]")
        self.assertEqual(self.json("tune", "--from", "empty.json")["results"], [])


class Interrupted(CliTest):
    def interrupt(self, *arguments, done=None, number=signal.SIGINT):
        """Signals the program once it has shown progress, or has done so many steps."""
        run = Watched(self, *arguments, number=number)
        if done is None:
            run.until_shown(r"\[\d+/\d+\]")
        else:
            run.until_done(done)
        run.send(number)
        code, out, error = run.end()
        self.assertEqual(code, 130, error)
        return out, error

    def test_tuning_keeps_what_was_measured(self):
        size, n = ("768", "256") if support.quick else ("4096", "1024")  # long enough to be interrupted; short enough for the first to be measured in time
        lines = ["--m", size, "--k", size, "--n", n, "--density", "0.3", "--block", "16", "--budget", "60", "--effort", "exhaustive", "--exclude", "reference_spmm"]
        self.interrupt("tune", *lines, "--json", "out.json", done=4)
        result = json.loads((self.folder / "out.json").read_text())
        self.check_shape(result)
        self.assertTrue(any(c["median_us"] for c in result["results"][0]["candidates"]))

    def test_check_keeps_its_state(self):
        self.interrupt("check", "--cases", "1000000", "--seed", "5", "--resume", "state.json", done=3)
        state = json.loads((self.folder / "state.json").read_text())
        self.assertGreaterEqual(state["next"], 3)
        text = self.cli("check", "--cases", str(state["next"] + 2), "--resume", "state.json").stdout
        self.assertIn(f"{state['next'] + 2} cases, seed 5", text)

    def test_race(self):
        self.interrupt("bench", "--m", "2048", "--k", "2048", "--n", "512", "--budget", "60")
        self.assertIn("good entries, 0 bad", self.cli("store", "verify").stdout)

    def test_an_interrupted_race_is_finished_by_the_next(self):
        size, n = ("768", "128") if support.quick else ("2048", "512")
        problem = ["--m", size, "--k", size, "--n", n, "--block", "32"]
        text, _ = self.interrupt("bench", *problem, "--budget", "60", "--rounds", "10000", done=4)
        self.assertNotIn("the budget ended", text)
        self.assertIn("candidates were measured", self.cli("explain", *problem, code=None).stdout + text)
        one = self.bench("bench", *problem)["results"][0]
        self.assertFalse(one["from_store"])
        self.assertNotIn("interrupted", self.cli("explain", *problem).stdout)
        self.assertTrue(self.bench("bench", *problem)["results"][0]["from_store"])

    # A run that a context cannot interrupt, longer than the program waits for it.
    endless = ["bench", "--m", "8192", "--k", "8192", "--n", "4096", "--block", "64", "--only", "reference_spmm", "--fresh"]

    def test_second_signal_ends_at_once(self):
        run = Watched(self, *self.endless)
        run.until_shown(r"\[\d+/\d+\]")
        run.send(signal.SIGINT, signal.SIGTERM)
        code, out, error = run.end()
        self.assertIn(code, (130, 143))
        self.assertNotIn("interrupted", out + error)  # nor cut off: it would have said so

    def test_a_run_that_cannot_be_stopped_is_cut_off(self):
        if support.quick:
            return  # instrumented builds are given more time
        self.env |= {f"SPARSEK_{name}": "none" for name in ("OPENBLAS", "MKL", "BLIS", "ONEDNN")}  # whose dense products would be run as well
        for number in (signal.SIGTERM, signal.SIGHUP):
            run = Watched(self, *self.endless, number=number)
            run.until_shown(r"\[\d+/\d+\] reference_spmm")
            run.until_busy(5)  # filling half a gigabyte of operands, which can be interrupted, takes less on the slowest machine
            run.send(number)
            code, _, error = run.end()
            self.assertEqual(code, 130, error)
            self.assertIn("interrupted; a long run was cut off", error)

    def test_a_file_being_written_is_removed(self):
        process = subprocess.Popen([support.program, "gen", "uniform", "--rows", "4096", "--block", "64", "--density", "0.9", "-o", "a.mtx"], cwd=self.folder, env=self.env,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not any(name.startswith(".sparsek-") for name in os.listdir(self.folder)):
            self.assertIsNone(process.poll())
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGINT)
        os.kill(process.pid, signal.SIGTERM)
        self.assertIn(process.wait(support.LIMIT_S), (130, 143))
        self.assertEqual([name for name in os.listdir(self.folder) if name != "cache"], [])
