"""What tables show, what failures say, the line of progress, and requests beyond the machine."""
import json
import os
import pty
import re
import resource
import subprocess

import support
from support import SMALL, SMALL_CLASS, CliTest

NO_LIBRARIES = {"SPARSEK_BLIS": "none", "SPARSEK_MKL": "none", "SPARSEK_ONEDNN": "none"}


class Tables(CliTest):
    def test_what_did_not_run_is_counted_in_one_line(self):
        text = self.cli("bench", *SMALL).stdout
        self.assertNotIn("it is for f64", text)
        counted = re.search(r"(\d+) of (\d+) kernels did not run \((.*)\); --all lists them", " ".join(text.split()))
        self.assertEqual(sum(map(int, re.findall(r"\d+", counted[3]))), int(counted[1]))
        whole = self.cli("explain", *SMALL_CLASS, "--all").stdout
        self.assertIn("it is for f64", whole)
        self.assertNotIn("did not run (", whole)

    def test_reasons_are_whole_at_any_width(self):
        self.cli("tune", *SMALL)
        reasons = {row["why"] for row in self.bench("explain", *SMALL_CLASS)["results"][0]["candidates"] if row["why"]}
        for columns in ("40", "60", "80", "200"):
            text = self.cli("explain", *SMALL_CLASS, "--all", env={"COLUMNS": columns}).stdout
            told = " ".join(text.split())
            for reason in reasons:
                with self.subTest(columns=columns, reason=reason):
                    self.assertIn(" ".join(reason.split()), told)
            self.assertNotIn("\u2026", text)

    def test_json_has_every_candidate(self):
        shown, whole = (self.json("bench", *SMALL, *more)["results"][0]["candidates"] for more in ([], ["--all"]))
        self.assertEqual({c["name"] for c in shown}, {c["name"] for c in whole})
        self.assertIn("spmm_f64_avx2" if any(c["name"] == "spmm_f64_avx2" for c in whole) else "reference_spmm", {c["name"] for c in shown})


class NothingLeft(CliTest):
    def test_the_failure_tells_of_those_named(self):
        self.cli("gen", "uniform", "--rows", "64", "--block", "16", "--density", "50%", "-o", "a.npy")
        for line in (["compute", "a.npy", "a.npy", "-o", "d.npy", "--block", "16"], ["tune", *SMALL], ["bench", *SMALL], ["bench", *SMALL, "--fresh"]):
            with self.subTest(command=line[0]):
                error = self.cli(*line, "--only", "mkl_bsr,mkl_dense", "-q", code=4, env=NO_LIBRARIES).stderr
                for name in ("mkl_bsr", "mkl_dense"):
                    self.assertRegex(error, rf"{name}: .*its library was not found")
                self.assertNotIn("spmm_", error)

    def test_one_that_ran_is_enough(self):
        self.cli("bench", *SMALL, "--only", "reference_spmm,mkl_bsr", env=NO_LIBRARIES)
        self.cli("bench", "--m", "0", "--k", "8", "--n", "8", "--block", "8", "--only", "mkl_bsr", env=NO_LIBRARIES)


class Idle(CliTest):
    def test_options_without_their_file(self):
        for line, message in ((["bench", "--tensor", "x"], "--tensor goes with a FILE"),
                              (["tune", "--tensor", "x"], "--tensor goes with a FILE"),
                              (["explain", "a.mtx", "--tensor", "x"], "--tensor names a tensor of a safetensors file; a.mtx is none"),
                              (["inspect", "a.npy", "--tensor", "x"], "a.npy is none"),
                              (["compute", "a.npy", "b.npy", "-o", "d.npy", "--tensor-a", "x"], "--tensor-a names a tensor"),
                              (["compute", "a.npy", "b.npy.gz", "-o", "d.npy", "--tensor-b", "x"], "--tensor-b names a tensor"),
                              (["compute", "a.npy", "b.npy", "-o", "d.npy", "--tensor-out", "x"], "--tensor-out names a tensor"),
                              (["gen", "uniform", "-o", "a.mtx", "--tensor", "x"], "--tensor names a tensor"),
                              (["convert", "a.mtx", "b.npy", "--tensor-out", "x"], "--tensor-out names a tensor"),
                              (["convert", "a.mtx", "b.safetensors", "--tensor", "x"], "a.mtx is none"),
                              (["convert", "a.mtx", "b.npy", "--to", "sparse"], ".npy holds dense matrices only"),
                              (["convert", "a.mtx", "b.smtx", "--to", "dense"], ".smtx holds the positions")):
            with self.subTest(line=line):
                self.assertIn(message, self.cli(*line, code=2).stderr)
        self.write("list.json", '[{"tensor": "x"}]')
        self.assertIn("problem 0: --tensor goes with a FILE", self.cli("tune", "--from", "list.json", code=3).stderr)


class WrongValues(CliTest):
    def test_lists_say_the_value_and_what_is_allowed(self):
        for entry, message in (('"density": "10 percent"', '"density" has a wrong value, "10 percent": it takes a number from 0 to 1, or a text such as "10%"'),
                               ('"m": -3', '"m" has a wrong value, -3: it takes a whole number from 0 to 2147483647'),
                               ('"dtype": "float32"', 'it takes f32|f64|f16|bf16|f8e4m3|f8e5m2|i8; did you mean "f32"?'),
                               ('"pattern": "random"', 'did you mean "uniform"?'),
                               ('"bias": "rows"', '"rows": it takes none|row|col; did you mean "row"?'),
                               ('"use_c": 1', "1: it takes true or false"),
                               ('"block": 300', 'it takes 64 or "64x32", sides of 1 to 256')):
            with self.subTest(entry=entry):
                self.write("list.json", "[{" + entry + "}]")
                self.assertIn("list.json: problem 0: ", self.cli("tune", "--from", "list.json", code=3).stderr)
                self.assertIn(message, self.cli("tune", "--from", "list.json", code=3).stderr)

    def test_a_list_takes_per_cent(self):
        self.write("list.json", '[{"m": 64, "k": 64, "n": 8, "block": 8, "density": "25%"}]')
        self.assertEqual(self.bench("tune", "--from", "list.json", "--budget", "0.1")["results"][0]["problem"]["density"], 0.25)

    def test_states_of_another_command(self):
        self.cli("check", "--only", "reference_spmm", "--cases", "2", "--seed", "1", "--resume", "state.json")
        self.assertIn("is a state of 'sparsek check', not of 'sparsek regret'", self.cli("regret", "--resume", "state.json", code=3).stderr)

    def test_tensors_are_named_in_order(self):
        header = {f"t{i}": {"dtype": "F32", "shape": [1, 1], "data_offsets": [4 * at, 4 * at + 4]} for at, i in enumerate((5, 3, 9, 1, 7, 2, 8, 4, 6))}
        text = json.dumps(header).encode()
        (self.folder / "a.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(36))
        error = self.cli("inspect", "a.safetensors", code=3).stderr
        self.assertEqual(re.findall(r"t\d", error.split("its tensors:")[1]), [f"t{i}" for i in range(1, 10)])
        self.assertNotIn(" more", error)


class Progress(CliTest):
    def shown(self, *arguments):
        """What a terminal shows in the end, and all that went to it."""
        master, slave = pty.openpty()
        process = subprocess.Popen([support.program, *arguments], cwd=self.folder, env={**self.env, "TERM": "xterm", "NO_COLOR": "1"}, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        raw = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:
                break
            if not part:
                break
            raw += part
        os.close(master)
        self.assertEqual(process.wait(support.LIMIT_S), 0)
        lines = [re.split(r"\r(?:\x1b\[K)?", line)[-1] for line in raw.decode().replace("\r\n", "\n").split("\n")]
        return "\n".join(re.sub(r"^.*\x1b\[K", "", line) for line in lines), raw.decode()

    def test_nothing_of_it_stays(self):
        self.cli("gen", "uniform", "--rows", "3000", "--cols", "3000", "--block", "20", "--density", "100%", "-o", "a.safetensors")
        for line in (["inspect", "a.safetensors"], ["convert", "a.safetensors", "b.safetensors"], ["inspect", "a.safetensors", "--json", "-"],
                     ["gen", "uniform", "--rows", "64", "--block", "16", "-o", "g.mtx"]):
            with self.subTest(line=line):
                text, raw = self.shown(*line)
                self.assertNotIn("reading", text)
                self.assertNotIn("writing", text)
                first = raw.replace("\r\n", "\n").split("\n")[0]
                self.assertRegex(first, r"\r\x1b\[K[^\x1b\r]*$")  # the line was cleared, and the result follows on it
        self.assertIn("writing b.safetensors", self.shown("convert", "a.safetensors", "b.safetensors")[1])
        self.assertIn("generating uniform", self.shown("gen", "uniform", "--rows", "64", "--block", "16", "-o", "g.mtx")[1])


class Limits(CliTest):
    def test_a_matrix_beyond_the_memory_is_refused_at_once(self):
        little_work = lambda: resource.setrlimit(resource.RLIMIT_CPU, (20, 20))  # of the processors' time, whoever else wants them
        error = self.cli("bench", "--m", "1000000", "--k", "1000000", "--n", "1000000", "--block", "8", code=5, preexec_fn=little_work).stderr
        self.assertIn("out of memory", error)

    def test_the_budget_bounds_the_race(self):
        one = self.bench("bench", *SMALL_CLASS, "--budget", "0.2", "--rounds", "10000", "--fresh")["results"][0]
        pairs = [ratio["pairs"] for c in one["candidates"] for ratio in (c["ratios"] or {}).values()]
        self.assertTrue(all(number < 10000 for number in pairs), pairs)
