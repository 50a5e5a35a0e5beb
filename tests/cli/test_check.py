"""check and regret: coverage, replay, resume."""
import json
import pathlib
import resource

import support
from support import CliTest


class Check(CliTest):
    cases = 20 if support.quick else 60

    def test_passes_and_counts(self):
        result = self.json("check", "--cases", self.cases, "--seed", "3")
        self.assertEqual((result["failures"], result["cases"], result["seed"]), (0, self.cases, 3))
        for row in result["results"]:
            self.assertEqual(row["cases"] + row["not_applicable"], self.cases)
            self.assertEqual(row["failures"], 0)
            self.assertLessEqual(row["worst"], 1)
        rows = {row["name"]: row for row in result["results"]}
        references = {name: row["cases"] for name, row in rows.items() if row["kind"] == "reference"}
        self.assertEqual(len(references), len(support.operations()))
        self.assertEqual(sum(references.values()), self.cases, "each case is of one operation, and each operation has a reference")
        self.assertGreater(min(references.values()), 0)
        self.assertGreater(rows["spmm_portable"]["cases"], 0)

    def test_want_of_address_space_is_no_failure(self):
        """Contexts of 1 to 4 threads: OpenBLAS is there for one, and finds no room for more."""
        if support.quick:
            return  # sanitizers take terabytes of address space
        for kib in (100000, 700000, 900000, 1200000):
            limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (kib << 10, kib << 10))
            done = self.cli("check", "--cases", "12", "--seed", "1715931158", preexec_fn=limit)
            self.assertIn(": 0 failures", done.stdout)
            if "address space" in done.stdout:
                self.assertRegex(done.stdout, r"\n(openblas|blis|mkl|onednn|libxsmm)\w+: not applicable \d+ times? for want of memory \(.*address space")

    def test_same_seed_same_outcome(self):
        runs = [self.json("check", "--cases", "15", "--seed", "11", "--only", "reference_spmm,spmm_portable")["results"] for _ in range(2)]
        self.assertEqual(*runs)

    def test_seed_is_drawn_and_printed(self):
        seeds = {self.json("check", "--cases", "1", "--only", "reference_spmm")["seed"] for _ in range(3)}
        self.assertGreater(len(seeds), 1)
        self.assertRegex(self.cli("check", "--cases", "1", "--only", "reference_spmm").stdout, r"1 cases, seed \d+")

    def test_one_case_one_kernel(self):
        result = self.json("check", "--kernel", "reference_spmm", "--seed", "3", "--case", "17")
        self.assertEqual((result["cases"], [row["name"] for row in result["results"]]), (1, ["reference_spmm"]))

    def test_operations(self):
        for op in support.operations():
            if op != "spmm":
                rows = self.json("check", "--op", op, "--cases", "3", "--seed", "5")["results"]
                self.assertTrue(all(op in row["name"] for row in rows), rows)
                self.assertEqual(rows[0]["cases"], 3)
        rows = self.json("check", "--op", "sddmm", "--cases", self.cases, "--seed", "5")["results"]
        [again] = self.json("check", "--only", "reference_sddmm", "--cases", self.cases, "--seed", "5")["results"]
        self.assertEqual(again, rows[0])
        self.assertFalse(any("sddmm" in row["name"] for row in self.json("check", "--op", "spmm", "--cases", "1", "--seed", "5")["results"]))

    def test_some_params(self):
        """Those that are named; in any order."""
        arguments = ["check", "--seed", "3", "--cases", "8", "--kernel", "spmm_portable", "--params"]
        wide, narrow = (self.json(*arguments, params)["results"][0] for params in ("NV=2", "GROUP=1 NV=2 SERIAL=0"))
        self.assertGreater(narrow["cases"], 0)
        self.assertGreaterEqual(wide["cases"], narrow["cases"])
        self.assertIn("is no combination of spmm_portable", self.cli(*arguments, "NV=2 DEPTH=1", code=2).stderr)
        self.assertIn("is no combination of spmm_portable", self.cli(*arguments, " ", code=2).stderr)

    def test_params_that_never_apply(self):
        """A combination that the row takes, but in no case."""
        arguments = ["check", "--seed", "3", "--cases", "4", "--kernel", "spmm_portable", "--params", "PACK=2 GROUP=1"]
        self.assertIn("nothing was checked", self.cli(*arguments, code=1).stderr)

    def test_each_named_kernel_is_checked(self):
        """One case is of one operation: of two kernels one at most runs, and the other is named; without --params it may want more cases."""
        ran = 0
        for seed in range(12):
            arguments = ["check", "--kernel", "spmm_portable,gemm_portable", "--seed", str(seed), "--cases", "1"]
            done = self.cli(*arguments, "--params", "NV=2", "--json", "c.json", code=1)
            cases = {row["name"]: row["cases"] for row in json.loads((self.folder / "c.json").read_text())["results"]}
            idle = [name for name, count in cases.items() if count == 0]
            self.assertIn(f"of {', '.join(idle)} was applicable in none of the cases: nothing was checked", done.stderr)
            ran += len(idle) == 1
            done = self.cli(*arguments, "--json", "d.json", code=None)
            some = any(row["cases"] for row in json.loads((self.folder / "d.json").read_text())["results"])
            self.assertEqual(done.returncode, 0 if some else 1, done.stderr)
        self.assertGreater(ran, 0)

    def test_all_params(self):
        self.assertEqual(self.json("check", "--kernel", "spmm_portable", "--all-params", "--cases", "8", "--seed", "4")["failures"], 0)

    def test_each_row_often_enough(self):
        rows = self.json("check", "--only", "reference_spmm,spmm_portable", "--each", "9", "--seed", "4")["results"]
        self.assertEqual(min(row["cases"] for row in rows), 9)
        self.assertEqual(rows[0]["cases"] + rows[0]["not_applicable"], rows[1]["cases"] + rows[1]["not_applicable"])
        few = self.json("check", "--only", "reference_spmm", "--each", "9", "--cases", "4", "--seed", "4")
        self.assertEqual((few["cases"], few["results"][0]["cases"]), (4, 4))

    def test_rows_that_cannot_run_here_are_not_waited_for(self):
        """They are named, with what is not here."""
        self.env["SPARSEK_OPENBLAS"] = "none"
        told, offered = self.json("info")["results"][0], set(self.json("info")["device"]["isa"])
        wanted = {k["name"]: ", ".join(isa for isa in k["isa"].split(",") if isa not in offered) for k in told["kernels"]
                  if k["op"] == "spmm" and k["device"] == "cpu" and k["isa"]}
        lacking = {name: f"this device does not offer {isas}" for name, isas in wanted.items() if isas}
        lacking |= dict.fromkeys(("openblas_blocks", "openblas_dense"), "openblas was not found")
        line = ["check", "--only", ",".join(["spmm_portable", *lacking]), "--each", "3", "--seed", "4"]
        result = self.json(*line)
        self.assertEqual(result["cases"], 3)
        self.assertEqual({row["name"]: row["skipped"] for row in result["results"]}, {"spmm_portable": None} | lacking)
        shown = " ".join(self.cli(*line).stdout.split())
        for why in set(lacking.values()):
            self.assertIn("skipped: " + ", ".join(row["name"] for row in result["results"] if row["skipped"] == why) + ": " + why, shown)
        self.assertEqual(self.json("check", "--only", "openblas_dense", "--each", "3")["cases"], 0)
        self.assertNotIn("skipped", self.cli("check", "--only", "spmm_portable", "--cases", "2").stdout)

    def test_what_was_hostile_is_counted(self):
        [row] = self.json("check", "--only", "reference_spmm", "--cases", 60, "--seed", "5")["results"]
        for what in ("inf_nan", "overhang"):
            self.assertTrue(5 < row[what] < 55, (what, row))
        self.assertEqual(row["shifted"], 0)

    def test_threads_on_a_gpu_change_nothing(self):
        double = pathlib.Path(support.program).parent / "tests/libcuda_double.so"
        if not double.exists():
            self.skipTest("this build has no double of the driver")
        self.env |= {"SPARSEK_CUDA": str(double), "SPARSEK_NVRTC": "none"}  # nothing compiles, so every candidate fails: in the order of the cases, and once each
        line = ["check", "--device", "cuda:0", "--seed", "8"]
        alone, many = (self.json(*line, "--cases", "20", "--threads", threads, code=1) for threads in ("1", "7"))
        strip = [message.split("\n")[0] for message in alone["failed"]]
        self.assertEqual(strip, [message.split("\n")[0] for message in many["failed"]])
        self.assertEqual((alone["results"], alone["failures"], alone["cases"]), (many["results"], many["failures"], many["cases"]))
        for cases in ("8", "20"):
            parts = self.json(*line, "--cases", cases, "--resume", "s.json", "--threads", "7", code=1)
        self.assertEqual(parts["results"], alone["results"])
        self.assertGreater(max(row["cases"] for row in parts["results"]), 1)

    def test_resume(self):
        line = ["check", "--only", "reference_spmm,spmm_portable", "--seed", "6", "--resume", "s.json"]
        self.json(*line, "--cases", "7")
        state = json.loads((self.folder / "s.json").read_text())
        self.assertEqual((state["next"], state["seed"]), (7, 6))
        resumed = self.json(*line, "--cases", "20")
        whole = self.json("check", "--only", "reference_spmm,spmm_portable", "--seed", "6", "--cases", "20")
        self.assertEqual(resumed["results"], whole["results"])
        without_seed = self.json("check", "--only", "reference_spmm,spmm_portable", "--resume", "s.json", "--cases", "21")
        self.assertEqual((without_seed["seed"], without_seed["cases"]), (6, 21))

    def test_states_that_do_not_fit(self):
        self.json("check", "--only", "reference_spmm", "--seed", "6", "--cases", "1", "--resume", "s.json")
        self.assertIn("another --seed: there 6, here 7", self.cli("check", "--only", "reference_spmm", "--seed", "7", "--resume", "s.json", code=2).stderr)
        self.assertIn("another --only: there \"reference_spmm\", here not given", self.cli("check", "--seed", "6", "--resume", "s.json", code=2).stderr)
        for text, message in (("{", "line 1"), ("{}", "is no state"), ("[]", "is no state")):
            self.write("bad.json", text)
            self.assertIn(message, self.cli("check", "--resume", "bad.json", code=3).stderr)
            self.assertIn(message, self.cli("regret", "--resume", "bad.json", code=3).stderr)

    def test_old_names_in_lists(self):
        self.write("old.json", '[{"op": "attention", "queries": 8, "keys": 8, "depth": 8, "soft_cap": true}]')
        self.assertIn('unknown key "soft_cap"; did you mean "use_softcap"?', self.cli("regret", "--from", "old.json", code=3).stderr)


class Regret(CliTest):
    def test_figures_and_resume(self):
        line = ["regret", "--seed", "2", "--budget", "0.2", "--best-budget", "0.4", "--rounds", "5", "--resume", "r.json"]
        first = self.json(*line, "--problems", "1")
        both = self.json(*line, "--problems", "2")
        self.assertEqual(first["results"][0], both["results"][0])
        regrets = sorted(r["regret"] for r in both["results"])
        self.assertAlmostEqual(both["median_regret"], sum(regrets) / 2)
        self.assertEqual(both["worst_regret"], regrets[-1])
        self.assertLessEqual(both["p95_regret"], both["worst_regret"])
        self.assertEqual((both["problems"], both["seed"]), (2, 2))
        for r in both["results"]:
            low, high = r["ratio_quartiles"]
            self.assertTrue(low - 1e-9 <= r["regret"] + 1 <= high + 1e-9 or (r["regret"] == 0 and low <= 1), r)
            self.assertIn(r["provisional"], (None, "budget", "load"))
            self.assertGreaterEqual(r["regret"], 0)
            self.assertGreater(r["candidates"], 1)
            if r["chosen"] != r["best"]:
                self.assertTrue(3 <= r["pairs"] <= 5)  # one that is far behind sits rounds out after three
            p = r["problem"]
            self.assertTrue(256 <= p["m"] <= 4096 and 256 <= p["k"] <= 4096 and 1 <= p["n"] <= 1024)
            self.assertTrue(p["m"] % (p["block_cols"] if p["trans_a"] == "t" else p["block_rows"]) == 0)
        self.assertIn("regret median", self.cli(*line, "--problems", "2").stdout)
        self.assertIn("another --seed: there 2, here 3", self.cli("regret", "--seed", "3", "--resume", "r.json", code=2).stderr)

    def test_of_a_list(self):
        self.write("list.json", json.dumps([dict(m=64, k=96, n=8, block=8, density="20%"), dict(op="gemm", m=32, k=16, n=48)]))
        line = ["regret", "--from", "list.json", "--budget", "0.1", "--best-budget", "0.2", "--rounds", "5"]
        found = self.json(*line)
        self.assertEqual([r["problem"]["op"] for r in found["results"]], ["spmm", "gemm"])
        self.assertEqual(found["problems"], 2)
        self.assertEqual(len(self.json(*line, "--problems", "1")["results"]), 1)
        self.assertIn("exclude each other", self.cli(*line, "--op", "gemm", code=2).stderr)
        self.write("bad.json", '[{"mm": 3}]')
        self.json(*line, "--resume", "r.json")
        self.write("list.json", json.dumps([dict(m=64, k=96, n=16, block=8, density="20%")]))
        self.assertIn("another --from: there", self.cli(*line, "--resume", "r.json", code=2).stderr)
        self.assertIn("bad.json: problem 0", self.cli("regret", "--from", "bad.json", code=3).stderr)
