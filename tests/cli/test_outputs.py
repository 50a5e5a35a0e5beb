"""Where results go: standard input and output, what an output may not replace, permissions, names, lost output."""
import gzip
import json
import os
import signal
import stat
import subprocess
import unittest

import support
from support import SMALL, CliTest


def piped(test, arguments, given=b"", **options):
    """A command with bytes for standard input; its output as bytes."""
    return subprocess.run([support.program, *arguments], cwd=test.folder, env=test.env, input=given, capture_output=True, check=False, **options)


class Refused(CliTest):
    """A result replaces no matrix, no input, no other output and not the store: exit code 2, and every file is as it was."""

    def setUp(self):
        super().setUp()
        self.cli("gen", "uniform", "--rows", "32", "--block", "8", "-o", "a.mtx")
        self.cli("convert", "a.mtx", "a.safetensors", "--block", "8")
        self.cli("convert", "a.mtx", "b.npy")
        (self.folder / "plain").write_bytes((self.folder / "a.mtx").read_bytes())
        os.link(self.path("plain"), self.path("hard"))
        os.symlink("plain", self.path("soft"))
        self.write("list.json", json.dumps([{"m": 32, "k": 32, "n": 8, "block": 8}, {"file": "plain", "n": 8, "block": 8}]))
        (self.folder / "sub").mkdir()

    def files(self):
        return {p.name: p.read_bytes() for p in self.folder.iterdir() if p.is_file()}

    def test_every_output(self):
        store = self.path("cache/store.db")
        self.cli("tune", *SMALL)
        with open(store, "rb") as file:
            stored = file.read()
        before = self.files()
        for arguments, told in (
            (["bench", "--json", "a.mtx", "--block", "8"], "has a matrix's ending"),
            (["bench", "--json", "A.MTX.GZ", "--block", "8"], "has a matrix's ending"),
            (["convert", "a.safetensors", "o.npy", "--json", "o.npy"], "has a matrix's ending"),
            (["inspect", "plain", "--spy", "plain"], "is the same file as the input plain, which this command reads"),
            (["inspect", "plain", "--spy", "hard"], "is the same file as the input plain"),
            (["inspect", "soft", "--json", "./plain"], "is the same file as the input soft"),
            (["inspect", "plain", "--json", "sub/../soft"], "is the same file as the input plain"),
            (["inspect", "a.mtx", "--spy", "x", "--json", "sub/../x"], "is the same file as"),
            (["compute", "plain", "b.npy", "-o", "d.npy", "--json", "plain"], "is the same file as the input plain"),
            (["tune", "--from", "list.json", "--json", "list.json"], "is the same file as"),
            (["tune", "--from", "list.json", "--budget", "0.05", "--json", "hard"], "is the same file as"),
            (["tune", *SMALL, "--json", store], "is the same file as"),
            (["store", "list", "--json", store], "is the same file as"),
            *((["store", "export", store + end], "which only the store may be") for end in ("-wal", "-shm", "-journal", ".lock")),
            (["store", "list", "--json", store + "-wal"], "is the same file as"),
            (["tune", *SMALL, "--json", "cache/../cache/store.db.lock"], "is the same file as"),
            (["store", "export", store], "is the same file as"),
            (["store", "export", "a.mtx"], "has a matrix's ending"),
            (["store", "import", "list.json", "--json", "list.json"], "is the same file as"),
            (["check", "--cases", "1", "--resume", "b.npy"], "has a matrix's ending"),
            (["check", "--cases", "1", "--resume", "s", "--json", "s"], "is the same file as"),
            (["info", "--json", "sub"], "is a folder"),
        ):
            with self.subTest(arguments=arguments):
                self.assertIn(told, self.cli(*arguments, code=2).stderr)
                self.assertEqual(self.files(), before)
        with open(store, "rb") as file:
            self.assertEqual(file.read(), stored)

    def test_one_standard_stream_each(self):
        for arguments in (["compute", "-", "-", "-o", "d.npy"], ["convert", "a.mtx", "-", "--format", "npy", "--json", "-"], ["inspect", "a.mtx", "--spy", "-", "--json", "-"]):
            with self.subTest(arguments=arguments):
                self.assertIn("there is one standard", self.cli(*arguments, code=2).stderr)

    def test_a_matrix_may_replace_its_source(self):
        self.cli("convert", "plain", "a.mtx", "--block", "4")
        self.cli("convert", "a.mtx", "./a.mtx", "--block", "8")
        self.assertEqual(self.read_array(self.path("a.mtx")), self.read_array(self.path("plain")))


class Streams(CliTest):
    def setUp(self):
        super().setUp()
        self.cli("gen", "uniform", "--rows", "24", "--block", "4", "--density", "30%", "--dtype", "f64", "-o", "a.mtx")
        self.text = (self.folder / "a.mtx").read_bytes()

    def test_convert_in_every_format(self):
        for kind in ("mtx", "npy", "safetensors"):
            with self.subTest(format=kind):
                self.cli("convert", "a.mtx", f"wanted.{kind}", "--block", "4")
                done = piped(self, ["convert", "-", "-", "--format", kind, "--block", "4"], self.text)
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                self.assertEqual(done.stdout, (self.folder / f"wanted.{kind}").read_bytes())
                back = piped(self, ["convert", "-", "back.mtx"], done.stdout)
                self.assertEqual(back.returncode, 0, back.stderr)
                self.assertEqual(self.read_array(self.path("back.mtx")), self.read_array(self.path("a.mtx")))
        done = piped(self, ["convert", "-", "-", "--format", "smtx", "--pattern-only"], self.text)
        self.assertTrue(done.stdout.startswith(b"24, 24, "))
        self.assertEqual(piped(self, ["inspect", "-", "--json", "-"], done.stdout).returncode, 0)

    def test_the_other_commands(self):
        self.write_array("b.mtx", [[1.0]] * 24)
        self.cli("compute", "a.mtx", "b.mtx", "-o", "d.npy", "--block", "4", "--choice", "reference_spmm")
        done = piped(self, ["compute", "-", "b.mtx", "-o", "-", "--format", "npy", "--block", "4", "--choice", "reference_spmm"], self.text)
        self.assertEqual((done.returncode, done.stdout), (0, (self.folder / "d.npy").read_bytes()), done.stderr)
        done = piped(self, ["bench", "-", "--n", "4", "--block", "4", "--budget", "0.05", "--only", "reference_spmm,spmm_portable", "--json", "-"], self.text)
        self.assertEqual(json.loads(done.stdout)["results"][0]["problem"]["m"], 24)
        done = piped(self, ["gen", "uniform", "--rows", "24", "--block", "4", "--density", "30%", "--dtype", "f64", "-o", "-", "--format", "mtx"])
        self.assertEqual(done.stdout, self.text)
        done = piped(self, ["inspect", "a.mtx", "--spy", "-"])
        self.assertTrue(done.stdout.startswith(b"<svg"), done.stdout[:80])
        self.assertIn(b"</svg>", done.stdout)

    def test_what_the_stream_lacks(self):
        self.assertIn("--format mtx, smtx, npy or safetensors", self.cli("convert", "a.mtx", "-", code=2).stderr)
        done = piped(self, ["convert", "-", "x.npy"], b"no matrix\n")
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"/dev/stdin: byte 0: is none of", done.stderr)
        self.assertEqual(piped(self, ["convert", "-", "x.npy"], self.text[:len(self.text) // 2]).returncode, 3)
        self.assertFalse((self.folder / "x.npy").exists())

    def test_a_redirected_file_is_read_from_where_it_stands(self):
        self.write("two.mtx", "first line\n" + self.text.decode())
        done = subprocess.run(["sh", "-c", f"read line; exec '{support.program}' convert - b.mtx -q"], cwd=self.folder, env=self.env, stdin=open(self.path("two.mtx")))
        self.assertEqual(done.returncode, 0)
        self.assertEqual(self.read_array(self.path("b.mtx")), self.read_array(self.path("a.mtx")))

    def test_format_of_any_name(self):
        self.cli("convert", "a.mtx", "data", "--format", "npy")
        self.cli("convert", "data", "b.mtx", "--to", "sparse")
        self.assertEqual(self.read_array(self.path("b.mtx")), self.read_array(self.path("a.mtx")))

    def test_store_and_lists(self):
        self.bench("tune", *SMALL)
        exported = piped(self, ["store", "export", "-"])
        self.assertEqual(len(json.loads(exported.stdout)["classes"]), 1)
        self.cli("store", "clear")
        self.assertEqual(piped(self, ["store", "import", "-"], exported.stdout).returncode, 0)
        self.assertEqual(len(self.json("store", "list")["results"]), 1)
        done = piped(self, ["tune", "--from", "-", "--budget", "0.05", "--json", "-"], b'[{"m": 32, "k": 32, "n": 8, "block": 8}]')
        self.assertEqual(json.loads(done.stdout)["results"][0]["problem"]["m"], 32)
        self.assertFalse((self.folder / "-").exists())


class Compressed(CliTest):
    def test_every_format(self):
        self.cli("gen", "uniform", "--rows", "24", "--block", "4", "--dtype", "f64", "-o", "a.mtx")
        self.cli("convert", "a.mtx", "a.npy")
        self.cli("convert", "a.mtx", "a.safetensors", "--block", "4")
        self.cli("convert", "a.mtx", "a.smtx", "--pattern-only")
        for kind in ("mtx", "npy", "safetensors", "smtx"):
            with self.subTest(format=kind):
                plain = (self.folder / f"a.{kind}").read_bytes()
                (self.folder / f"p.{kind}.gz").write_bytes(gzip.compress(plain[:50]) + gzip.compress(plain[50:]))
                self.cli("convert", f"p.{kind}.gz", "b.mtx", "--to", "sparse")
                self.cli("convert", f"a.{kind}", "c.mtx", "--to", "sparse")
                self.assertEqual((self.folder / "b.mtx").read_bytes(), (self.folder / "c.mtx").read_bytes())
                self.assertEqual(piped(self, ["inspect", "-"], gzip.compress(plain)).returncode, 0)
                (self.folder / f"cut.{kind}.gz").write_bytes(gzip.compress(plain)[:-1])
                self.assertIn("ends early", self.cli("inspect", f"cut.{kind}.gz", code=3).stderr)

    def test_nothing_is_written_compressed(self):
        self.assertIn("compressed files are read, not written", self.cli("gen", "uniform", "--rows", "8", "--block", "4", "-o", "a.mtx.gz", code=2).stderr)


class Names(CliTest):
    def test_large_letters(self):
        self.cli("gen", "uniform", "--rows", "16", "--block", "4", "-o", "A.MTX")
        self.cli("convert", "A.MTX", "B.NPY")
        self.cli("convert", "B.NPY", "C.SafeTensors", "--block", "4")
        self.cli("inspect", "C.SafeTensors")

    def test_the_longest_names(self):
        for length in (251, 252, 255):
            with self.subTest(length=length):
                matrix, result = "m" * (length - 4) + ".mtx", "j" * length
                self.cli("gen", "uniform", "--rows", "8", "--block", "4", "-o", matrix, "--json", result)
                self.assertTrue((self.folder / matrix).exists())
                self.assertEqual(json.loads((self.folder / result).read_text())["results"][0]["rows"], 8)

    def test_permissions_stay(self):
        mask = os.umask(0)
        os.umask(mask)
        self.write("j", "")
        os.chmod(self.path("j"), 0o600)
        os.symlink("j", self.path("link"))
        for name in ("j", "link", "new"):
            self.cli("info", "--json", name)
            json.loads((self.folder / name).read_text())
        self.assertEqual(stat.S_IMODE(os.stat(self.path("j")).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(self.path("new")).st_mode), 0o666 & ~mask)
        self.assertTrue((self.folder / "link").is_symlink())
        if os.geteuid() != 0:
            os.chmod(self.path("j"), 0o400)
            self.assertIn("Permission denied", self.cli("info", "--json", "j", code=5).stderr)

    def test_leftovers_of_killed_writers_go(self):
        self.write(".sparsek-999999999-0123456789abcdef.tmp", "")
        self.cli("info", "--json", "j")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir() if p.name != "cache"), ["j"])


class Lost(CliTest):
    def test_closed_standard_output(self):
        self.cli("gen", "uniform", "--rows", "16", "--block", "4", "-o", "a.mtx")
        self.cli("tune", *SMALL)
        for arguments, code in (
            (["info"], 5), (["info", "--json", "-"], 5), (["--version"], 5), (["inspect", "a.mtx"], 5), (["convert", "a.mtx", "-", "--format", "npy"], 5),
            (["store", "export", "-"], 5), (["convert", "a.mtx", "b.npy", "-q"], 0), (["info", "-q", "--json", "j"], 0),
        ):
            with self.subTest(arguments=arguments):
                done = subprocess.run(["sh", "-c", '"$0" "$@" >&-', support.program, *arguments], cwd=self.folder, env=self.env, stderr=subprocess.PIPE, text=True, check=False)
                self.assertEqual(done.returncode, code, done.stderr)

    def test_closed_standard_input(self):
        done = subprocess.run(["sh", "-c", f"'{support.program}' convert - b.npy <&-"], cwd=self.folder, env=self.env, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(done.returncode, 3, done.stderr)

    @unittest.skipIf(signal.getsignal(signal.SIGQUIT) == signal.SIG_IGN, "SIGQUIT is ignored here")
    def test_quit_leaves_nothing(self):
        limits = "ulimit -c 0; exec "  # no core
        process = subprocess.Popen(["sh", "-c", f"{limits}'{support.program}' gen uniform --rows 16000 --density 0.2 --block 8 -o x.mtx"], cwd=self.folder, env=self.env)
        while not [p for p in self.folder.iterdir() if p.name.startswith(".sparsek")]:
            self.assertIsNone(process.poll())
        process.send_signal(signal.SIGQUIT)
        self.assertEqual(process.wait(support.LIMIT_S), -signal.SIGQUIT)
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name != "cache"], [])


class OutOfRange(CliTest):
    def test_a_value_too_large_for_a_half_is_the_files_fault(self):
        self.write("a.mtx", "%%MatrixMarket matrix coordinate real general\n4 4 1\n1 1 1e6\n")
        self.write_array("b.mtx", [[1.0]] * 4)
        for arguments in (["compute", "a.mtx", "b.mtx", "-o", "d.npy", "--dtype", "f16", "--block", "1"], ["convert", "a.mtx", "d.npy", "--dtype", "f16"]):
            with self.subTest(arguments=arguments):
                self.assertIn("1e+06", self.cli(*arguments, code=3).stderr)
        self.write("n.mtx", "%%MatrixMarket matrix coordinate real general\n4 4 1\n1 1 nan\n")
        self.assertIn("norms need finite values", self.cli("convert", "n.mtx", "o.safetensors", "--block", "2", "--prune", "50%", code=3).stderr)
