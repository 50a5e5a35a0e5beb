"""Runs the program in a folder of its own with an empty store."""
import functools
import json
import math
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import schema_check

HERE = pathlib.Path(__file__).resolve().parent
BY_KIND = {"items": {"type": "integer", "minimum": 1}, "heads": {"type": "integer", "minimum": 1}, "count": {"type": "integer", "minimum": 1},
           "groups": {"type": "integer", "minimum": 1}, "stride": {"type": "boolean"}, "flag": {"type": "boolean"}, "real": {"type": "number"},
           "dtype": {"$ref": "#/$defs/dtype"}}
program = None  # full path, set by run.py
LIMIT_S = 600  # until what is waited for has surely failed, on a machine that many share
quick = False  # fewer and smaller cases: sanitizer builds are slow


def pairs_seen(p):
    """Of a problem of attention: pairs of a query and a key that it sees."""
    shift = p["keys"] - p["queries"] if p.get("diagonal") == "bottom_right" else 0
    right = 1 if p["causal"] else p.get("window_right", 0)
    left, sinks = p.get("window_left", 0), p.get("sinks", 0)
    return sum((not right or key < query + shift + right) and (not left or key > query + shift - left or key < sinks) for query in range(p["queries"]) for key in range(p["keys"]))


@functools.cache
def operations():
    """The operations by name, as the program lists them."""
    done = subprocess.run([program, "info", "--json", "-", "--quiet", "--store", os.devnull], capture_output=True, encoding="utf-8", check=True)
    return {op["name"]: op for op in json.loads(done.stdout)["results"][0]["operations"]}


@functools.cache
def schema():
    """The schema file, with what the operations' tables say of a problem."""
    whole = json.loads((HERE / "schema" / "bench.schema.json").read_text())
    known = whole["$defs"]["problem"]["properties"]
    known["op"] = {"enum": list(operations())}
    for op in operations().values():
        known |= {size["name"]: {"type": "integer", "minimum": 0} for size in op["sizes"]}
        known |= {f["name"]: BY_KIND.get(f["kind"], {"enum": f["values"]}) for f in op["fields"] if not f["in_epilogue"]}
    return whole


# A problem that is tuned in well under a second.
SMALL_CLASS = ["--m", "128", "--k", "96", "--n", "24", "--block", "16", "--density", "30%"]
SMALL = [*SMALL_CLASS, "--budget", "0.3"]


class Watched:
    """The program at work, with a terminal for its standard error: a test waits for what it says of its progress, and not for a time."""

    def __init__(self, test, *arguments, number=signal.SIGINT):
        """number: a signal that is not ignored, as nohup, under which the tests may run, has it."""
        self.test, self.shown = test, ""
        self.out = tempfile.TemporaryFile("w+", encoding="utf-8")
        master, slave = pty.openpty()
        self.process = subprocess.Popen([program, *arguments], cwd=test.folder, env={**test.env, "TERM": "xterm", "NO_COLOR": "1"}, stdout=self.out, stderr=slave,
                                        stdin=subprocess.DEVNULL, preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
        os.close(slave)
        self.reader = threading.Thread(target=self.read, args=[master])
        self.reader.start()
        test.addCleanup(self.finish)

    def read(self, terminal):
        with open(terminal, "rb", buffering=0) as stream:
            while True:
                try:
                    part = stream.read(65536)
                except OSError:  # the other end is closed
                    part = b""
                if not part:
                    return
                self.shown += part.decode(errors="replace")

    def until(self, happened, what):
        """Waits until something holds; fails where the program ends before."""
        limit = time.monotonic() + LIMIT_S
        while not happened():
            self.test.assertIsNone(self.process.poll(), f"the program ended before {what}: {self.shown[-2000:]!r}")
            self.test.assertLess(time.monotonic(), limit, f"no sign of {what}: {self.shown[-2000:]!r}")
            time.sleep(0.005)

    def until_shown(self, mark):
        """Until a regular expression matches what has been shown."""
        self.until(lambda: re.search(mark, self.shown), f"it showed {mark!r}")

    def until_done(self, count):
        """Until the progress "[3/40] ..." says that so many steps are done."""
        self.until(lambda: any(int(done) >= count for done in re.findall(r"\[(\d+)/\d+\]", self.shown)), f"{count} steps were done")

    def until_busy(self, seconds):
        """Until it has used so much more of the processors' time."""
        begun = self.busy_s()
        self.until(lambda: self.busy_s() >= begun + seconds, f"it had worked for {seconds} s more")

    def busy_s(self):
        try:
            fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def send(self, *numbers):
        """All at once: the program sees the last of several signals before it has done anything about the first."""
        if len(numbers) > 1:
            self.process.send_signal(signal.SIGSTOP)
        for number in numbers:
            self.process.send_signal(number)
        if len(numbers) > 1:
            self.process.send_signal(signal.SIGCONT)

    def end(self):
        """Its exit code, standard output and all that was shown."""
        code = self.process.wait(LIMIT_S)
        self.reader.join(LIMIT_S)
        self.out.seek(0)
        return code, self.out.read(), self.shown

    def finish(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.reader.join(LIMIT_S)
        self.out.close()


def unwrapped(words, text):
    """Both with one space for each run of white space, where words of one line are looked for in a text: the program may have wrapped it between any two."""
    if isinstance(text, str) and isinstance(words, str) and " " in words.strip() and not re.search(r"\s\s|\n", words):
        return words, re.sub(r"\s+", " ", text)
    return words, text


class CliTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sparsek-cli-"))
        self.env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "SPARSEK_STORE", "OMP_NUM_THREADS")}
        self.env.update(SPARSEK_CACHE_DIR=str(self.folder / "cache"), LC_ALL="C.UTF-8")

    def tearDown(self):
        for path in self.folder.rglob("*"):
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)
        shutil.rmtree(self.folder)

    def assertIn(self, member, container, msg=None):
        super().assertIn(*unwrapped(member, container), msg)

    def assertNotIn(self, member, container, msg=None):
        super().assertNotIn(*unwrapped(member, container), msg)

    def path(self, name):
        return str(self.folder / name)

    def cli(self, *arguments, code=0, env=None, **options):
        """Runs the program; fails unless it ends with `code` (None: any). Both streams are text."""
        done = subprocess.run([program, *map(str, arguments)], cwd=self.folder, env={**self.env, **(env or {})}, capture_output=True,
                              encoding="utf-8", timeout=LIMIT_S, stdin=subprocess.DEVNULL, **options)
        if code is not None:
            self.assertEqual(done.returncode, code, f"sparsek {' '.join(map(str, arguments))}\n{done.stdout}\n{done.stderr}")
        return done

    def json(self, *arguments, code=0, **options):
        """Runs with --json - and gives the result."""
        return json.loads(self.cli(*arguments, "--json", "-", code=code, **options).stdout)

    def bench(self, *arguments, **options):
        """The same for the results that the schema describes; checks shape and numbers."""
        result = self.json(*arguments, **options)
        self.check_shape(result)
        return result

    def check_shape(self, result):
        self.assertEqual(list(schema_check.problems(result, schema())), [])
        for one in result["results"]:
            self.check_numbers(one)

    def check_numbers(self, one):
        """FLOPs, time and TFLOP/s of every row agree."""
        p, op = one["problem"], operations()[one["problem"]["op"]]
        fields = {f["name"]: f for f in op["fields"] if not f["in_epilogue"]}
        sizes = {size["name"]: size["from"] for size in op["sizes"]}
        self.assertLessEqual(set(sizes) | {name for name, f in fields.items() if f["always"]}, set(p))
        everyones = {f["name"] for other in operations().values() for f in other["fields"]}
        self.assertLessEqual(set(p) & everyones, set(fields))
        dense = 2 * math.prod(p[name] for name in sizes) * p["batch"]
        flops = dense
        if op["name"] == "attention":
            a_pair = 2 * (p["depth"] + p["depth_v"]) * p["heads"] * p["batch"]
            dense, flops = p["queries"] * p["keys"] * a_pair, pairs_seen(p) * a_pair
            if "nnzb" in p:  # which blocks they are is not known: whole ones, which no band cuts
                flops = p["nnzb"] * p["block_rows"] * p["block_cols"] * a_pair / max(p.get("mask_heads", 1), 1) / max(p.get("mask_items", 1), 1)
        if op["needs_pattern"]:
            [rows], [cols], free = ([name for name in sizes if sizes[name] == source] for source in ("rows of the pattern", "columns of the pattern", "given"))
            flops = 2 * p["nnzb"] * p["block_rows"] * p["block_cols"] * math.prod(p[name] for name in free) * p["batch"]
            height, width = (p[cols], p[rows]) if p.get("trans_a") == "t" else (p[rows], p[cols])
            grid = math.ceil(height / p["block_rows"]) * math.ceil(width / p["block_cols"])
            self.assertAlmostEqual(p["density"], p["nnzb"] / grid if grid else 0, places=9)
        names = [c["name"] for c in one["candidates"]]
        for c in one["candidates"]:
            with self.subTest(candidate=c["name"] + " " + c["params"]):
                if c["median_us"] is None or one["foreign"]:  # of another class: no rates
                    self.assertIsNone(c["tflops"])
                    self.assertIsNone(c["dense_equivalent_tflops"])
                    self.assertTrue(one["foreign"] or c["status"] != "ok")
                else:
                    self.assertTrue(math.isclose(c["tflops"], flops / c["median_us"] * 1e-6, rel_tol=1e-6, abs_tol=1e-15))
                    self.assertTrue(math.isclose(c["dense_equivalent_tflops"], dense / c["median_us"] * 1e-6, rel_tol=1e-6, abs_tol=1e-15))
                if c["status"] == "ok":
                    self.assertIsNotNone(c["hash"])
                    self.assertIsNotNone(c["error"])
                    self.assertLessEqual(c["error"], c["tolerance"])
                if c["status"] not in ("ok", "pruned"):
                    self.assertIsNotNone(c["why"])
                if c["ratios"]:
                    self.assertEqual(c["name"], one["chosen"])
                    self.assertNotIn(c["name"], c["ratios"])
                    self.assertLessEqual(set(c["ratios"]), set(names))

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def read_array(self, path):
        """A Matrix Market array or coordinate file as a list of rows."""
        lines = [line for line in pathlib.Path(path).read_text().splitlines() if line and not line.startswith("%")]
        head = pathlib.Path(path).read_text().splitlines()[0]
        if "array" in head:
            rows, cols = map(int, lines[0].split())
            values = [float(v) for v in lines[1:]]
            return [[values[j * rows + i] for j in range(cols)] for i in range(rows)]
        rows, cols, count = map(int, lines[0].split())
        self.assertEqual(count, len(lines) - 1)
        matrix = [[0.0] * cols for _ in range(rows)]
        for line in lines[1:]:
            i, j, *value = line.split()
            matrix[int(i) - 1][int(j) - 1] += float(value[0]) if value else 1.0
        return matrix

    def write_array(self, name, rows):
        cols = len(rows[0]) if rows else 0
        values = "".join(f"{rows[i][j]!r}\n" for j in range(cols) for i in range(len(rows)))
        return self.write(name, f"%%MatrixMarket matrix array real general\n{len(rows)} {cols}\n{values}")
