"""What is printed where: widths, colours, pipes, full disks."""
import os
import pty
import re
import subprocess

import support
from support import SMALL, SMALL_CLASS, CliTest


class Terminal(CliTest):
    def on_terminal(self, *arguments, **env):
        """Runs with standard output (and stderr) on a terminal; gives what it shows."""
        master, slave = pty.openpty()
        process = subprocess.Popen([support.program, *arguments], cwd=self.folder, env={**self.env, "TERM": "xterm", **env}, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        shown = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        os.close(master)
        self.assertEqual(process.wait(support.LIMIT_S), 0)
        return shown.decode()

    def test_colour(self):
        self.assertIn("\x1b[32m", self.on_terminal("bench", *SMALL))
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotRegex(self.on_terminal("bench", *SMALL, **env), "\x1b\\[[0-9;]*m")
        self.assertIn("\x1b[32m", self.on_terminal("bench", *SMALL, NO_COLOR=""))
        self.assertNotIn("\x1b", self.cli("bench", *SMALL).stdout)

    def test_progress_on_a_terminal_only(self):
        self.assertIn("\r", self.on_terminal("check", "--only", "reference_spmm", "--cases", "30", "--seed", "1").replace("\r\n", "\n"))
        self.assertNotIn("\x1b", self.on_terminal("check", "--only", "reference_spmm", "--cases", "30", "--seed", "1", "--quiet"))
        self.assertEqual(self.cli("check", "--only", "reference_spmm", "--cases", "5", "--seed", "1").stderr, "")

    def test_narrow(self):
        self.cli("gen", "uniform", "--rows", "64", "--block", "8", "-o", "a.mtx")
        for arguments in (["bench", *SMALL], ["inspect", "a.mtx"], ["check", "--cases", "5", "--seed", "2"], ["store", "list"]):
            for columns in ("40", "60", "79"):
                with self.subTest(command=arguments[0], columns=columns):
                    text = self.cli(*arguments, env={"COLUMNS": columns}).stdout
                    wide = [line for line in text.splitlines() if len(line) > int(columns) and not re.match(r"(Measure it|a\.mtx:|  a row has|  entries|Block sizes|\d+ cases)", line)]
                    self.assertEqual(wide, [])

    def test_wide_pipes_are_not_cut(self):
        text = self.cli("bench", *SMALL).stdout
        self.assertIn("median us", text)
        self.assertIn("speed", text)

    def test_ascii_where_the_locale_is(self):
        self.assertTrue(self.cli("bench", *SMALL, env={"LC_ALL": "C"}).stdout.isascii())

    def test_closed_pipe(self):
        for arguments in (["--help"], ["info"], ["bench", *SMALL], ["bench", *SMALL, "--json", "-"]):
            with self.subTest(arguments=arguments[:1]):
                reader, writer = os.pipe()
                os.close(reader)
                process = subprocess.Popen([support.program, *arguments], cwd=self.folder, env=self.env, stdout=writer, stderr=subprocess.PIPE)
                os.close(writer)
                _, error = process.communicate(timeout=support.LIMIT_S)
                error = b"".join(line for line in error.splitlines() if b"other programs used" not in line)  # true of a busy machine
                self.assertEqual((process.returncode, error), (0, b""))

    def test_full_disk(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([support.program, "info"], cwd=self.folder, env=self.env, stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 5)
        self.assertIn("cannot write to standard output: No space left", done.stderr)
        self.assertIn("cannot write /dev/full: No space left", self.cli("info", "--json", "/dev/full", code=5).stderr)

    def test_unwritable_outputs(self):
        self.assertIn("is a folder", self.cli("info", "--json", self.path("."), code=2).stderr)
        self.assertIn("cannot write", self.cli("info", "--json", self.path("no/folder"), code=5).stderr)
        (self.folder / "kept.json").write_text("old")
        self.cli("bench", *SMALL, "--json", "kept.json", "--quiet")
        self.assertEqual((self.folder / "kept.json").read_text()[0], "{")
        self.assertEqual([p.name for p in self.folder.iterdir() if p.name.startswith("kept.json.")], [])

    def test_json_to_a_device(self):
        self.cli("info", "--json", "/dev/null")
        self.assertTrue(os.path.exists("/dev/null"))

    def test_quiet(self):
        self.cli("gen", "uniform", "--rows", "64", "--block", "8", "-o", "a.mtx", "--quiet")
        for arguments in (["bench", *SMALL], ["tune", *SMALL], ["explain", *SMALL_CLASS], ["inspect", "a.mtx"], ["convert", "a.mtx", "b.npy"], ["info"],
                          ["check", "--cases", "3"], ["store", "list"]):
            done = self.cli(*arguments, "-q")
            self.assertEqual((done.stdout, done.stderr), ("", ""), arguments)

    def test_command_is_quoted(self):
        command = self.json("info", "--store", "it's here.db")["command"]
        self.assertEqual(command, "sparsek info --store 'it'\\''s here.db' --json -")
