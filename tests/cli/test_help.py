"""Help at any width, its examples, options that a command refuses, manual pages, completion in three shells."""
import os
import pty
import re
import select
import shlex
import subprocess
import time

import support
from support import CliTest

COMMANDS = ["info", "bench", "tune", "explain", "compute", "inspect", "convert", "gen", "check", "regret", "store"]
COMMON = {"--json", "--threads", "--device", "--effort", "--budget", "--store", "--only", "--exclude", "--quiet"}
REFUSED = {  # the common options that would do nothing
    "info": {"--effort", "--budget", "--only", "--exclude"},
    "bench": {"--effort"},
    "tune": set(),
    "explain": {"--effort", "--budget"},
    "compute": set(),
    "inspect": {"--effort", "--budget", "--store"},
    "convert": {"--threads", "--device", "--effort", "--budget", "--store", "--only", "--exclude"},
    "gen": {"--threads", "--device", "--effort", "--budget", "--store", "--only", "--exclude"},
    "check": {"--effort", "--budget", "--store"},
    "regret": {"--store"},
    "store": {"--threads", "--device", "--effort", "--budget", "--only", "--exclude"},
}


def options_in(text):
    return set(re.findall(r"(?m)^  (?:-\w, )?(--[a-z-]+)", text))


class Help(CliTest):
    def test_no_line_is_wider_than_the_terminal(self):
        for columns in (60, 80, 200):
            for words in (["--help"], ["-h"], *([name, form] for name in COMMANDS for form in ("--help", "-h"))):
                with self.subTest(columns=columns, words=words):
                    lines = self.cli(*words, env={"COLUMNS": str(columns)}).stdout.splitlines()
                    self.assertLessEqual(max(map(len, lines)), min(columns, 100))

    def test_words_stay_when_lines_are_wrapped(self):
        def words(columns):
            return self.cli("gen", "--help", env={"COLUMNS": columns}).stdout.replace("\\\n", " ").split()

        self.assertEqual(words("60"), words("200"))

    def test_short_help_is_one_screen(self):
        for name in COMMANDS:
            with self.subTest(command=name):
                short, whole = (self.cli(name, form, env={"COLUMNS": "80"}).stdout for form in ("-h", "--help"))
                self.assertLessEqual(len(short.splitlines()), 24)
                self.assertIn(f"sparsek {name} --help", short)
                self.assertLess(options_in(short), options_in(whole))
                entries = short.split("Options used most:\n")[1].split("\n\n")[0].splitlines()
                self.assertEqual(len(entries), len(options_in(short)), "one line an option")

    def test_whole_help_says_what_values_may_be(self):
        text = self.cli("bench", "--help").stdout
        for said in ("f32|f64|f16|bf16|f8e4m3|f8e5m2|i8", "sides of 1 to 256", "one of uniform, bernoulli", "1 to 10000", "1 to 1024", "default: 2048"):
            self.assertIn(said, " ".join(text.split()))

    def test_options_that_do_nothing_are_refused_and_not_listed(self):
        values = {"--effort": "measure", "--budget": "1", "--store": "s.db", "--only": "reference_spmm", "--exclude": "reference_spmm", "--threads": "1", "--device": "cpu"}
        for name in COMMANDS:
            listed = options_in(self.cli(name, "--help").stdout) & COMMON
            self.assertEqual(listed, COMMON - REFUSED[name], name)
            for option in REFUSED[name]:
                with self.subTest(command=name, option=option):
                    self.assertIn(f"{option} does nothing for this command", self.cli(name, option, values[option], code=2).stderr)

    def test_examples_run(self):
        """Every example of a help text does what it says, on small files."""
        self.cli("gen", "elasticity", "--cells", "2", "-o", "matrix.mtx")
        self.cli("gen", "uniform", "--rows", "64", "--block", "16", "--density", "50%", "-o", "a.safetensors")
        self.cli("gen", "uniform", "--rows", "64", "--block", "16", "--density", "50%", "-o", "weights.npy")
        self.cli("gen", "uniform", "--rows", "64", "--block", "16", "--density", "50%", "-o", "weights.safetensors")
        (self.folder / "problems.json").write_text('[{"m": 64, "k": 64, "n": 8, "block": 16}]')
        subprocess.run(["gzip", "-k", "matrix.mtx"], cwd=self.folder, check=True)
        rows = int(re.search(r"COO (\d+) x", self.cli("inspect", "matrix.mtx").stdout)[1])
        for command in COMMANDS:
            for line in self.cli(command, "--help", env={"COLUMNS": "200"}).stdout.replace("\\\n", " ").split("Examples:\n")[1].splitlines():
                words = shlex.split(line)[1:]
                if "--device" in words:
                    continue  # there may be no GPU
                if "|" in words:
                    subprocess.run(["bash", "-euc", f'sparsek() {{ {shlex.quote(support.program)} "$@"; }}\n{line}'], cwd=self.folder, env=self.env, check=True)
                    continue
                if command == "compute":  # B and C are of A's size
                    side = 64 if "a.safetensors" in words else rows
                    for name in ("b.npy", "c.npy"):
                        self.write_array(name.replace("npy", "mtx"), [[1.0] * 4 for _ in range(side)])
                        self.cli("convert", name.replace("npy", "mtx"), name, "--dtype", "f32" if side == 64 else "f64")
                    if "x.npy" in words:  # of the product at the blocks of a.safetensors
                        for name, shape in (("x", (64, 4)), ("y", (4, 64))):
                            self.write_array(f"{name}.mtx", [[1.0] * shape[1] for _ in range(shape[0])])
                            self.cli("convert", f"{name}.mtx", f"{name}.npy", "--dtype", "f32")
                small = {"--m": "64", "--k": "64", "--n": "8", "--block": "16", "--rows": "64", "--cols": "64", "--cases": "3", "--problems": "1", "--budget": "0.1"}
                for i, word in enumerate(words[:-1]):
                    if word in small and "matrix.mtx" not in words and words[0] != "convert":
                        words[i + 1] = small[word]
                if command in ("bench", "tune", "regret", "compute") and "--bundle" not in words:
                    words += ["--budget", "0.1"]
                if command == "regret":
                    words += ["--best-budget", "0.1", "--problems", "1"]
                if command == "explain":
                    given = words[1:]
                    self.cli("tune", *given, "--budget", "0.1")
                with self.subTest(example=line.strip()):
                    self.cli(*words, code=1 if "--bundle" in words else 0)  # there is no bundle here

    def test_quoted_examples_run(self):
        """What option texts give as an example is right too."""
        self.cli("gen", "uniform", "--rows", "64", "--block", "16", "--density", "50%", "-o", "a.npy")
        for command, option in (("compute", "--choice"), ("check", "--params")):
            text = " ".join(self.cli(command, "--help").stdout.split())
            value = re.search(rf'{option} TEXT .*?such as "([^"]+)"', text)[1]
            with self.subTest(value=value):
                if command == "compute":
                    self.cli("compute", "a.npy", "a.npy", "-o", "d.npy", "--block", "16", option, value)
                else:
                    self.cli("check", "--kernel", "spmm_portable", option, value, "--cases", "3", "--seed", "1")

    def test_program_help(self):
        short, whole = self.cli("-h").stdout, self.cli("--help").stdout
        self.assertLess(len(short.splitlines()), 24)
        self.assertNotIn("NO_COLOR", short)
        self.assertIn("NO_COLOR", whole)


class ManualPages(CliTest):
    def page(self, command):
        source = self.cli("help", "--format", "scd", command).stdout
        return subprocess.run(["scdoc"], input=source, capture_output=True, text=True, check=True).stdout

    def test_every_option_is_in_the_page(self):
        for name in COMMANDS:
            with self.subTest(command=name):
                page = self.page(name)
                self.assertTrue(options_in(self.cli(name, "--help").stdout) <= set(re.findall(r"--[a-z-]+", page.replace("\\-", "-"))))
                for title in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "SEE ALSO"):
                    self.assertIn(f".SH {title}\n", page)
                self.assertIn(f"sparsek-{name}", page)

    def test_the_main_page_names_the_others(self):
        page = (support.HERE.parent.parent / "docs" / "man" / "sparsek.1.scd").read_text()
        for name in COMMANDS:
            self.assertIn(f"*sparsek-{name}*(1)", page)
            self.assertRegex(page, rf"(?m)^\*{name}\*")

    def test_wrong_words(self):
        self.assertIn("did you mean 'bench'", self.cli("help", "bensh", code=2).stderr)
        self.assertIn("takes one COMMAND", self.cli("help", "a", "bench", code=2).stderr)


class Completion(CliTest):
    def setUp(self):
        super().setUp()
        for name in ("a.mtx", "b c.NPY", "d.txt"):
            (self.folder / name).touch()
        (self.folder / "sub").mkdir()
        self.matrices = {"a.mtx", "b c.NPY", "sub"}

    def script(self, shell):
        return self.write(f"_sparsek.{shell}" if shell != "zsh" else "_sparsek", self.cli("completion", shell).stdout)

    def bash(self, *words):
        script = 'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sparsek; ((${#COMPREPLY[@]})) && printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "--norc", "-c", script, self.bash_script, "sparsek", *words], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return set(done.stdout.splitlines())

    def fish(self, line):
        done = subprocess.run(["fish", "--no-config", "-c", f"source {self.fish_script}; complete -C '{line}'"], cwd=self.folder, env={**self.env, "HOME": str(self.folder)},
                              capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return {entry.split("\t")[0].rstrip("/") for entry in done.stdout.splitlines()}

    def test_bash(self):
        self.bash_script = self.script("bash")
        self.assertEqual(self.bash(""), {*COMMANDS, "help", "--help", "--version"})
        self.assertEqual(self.bash("be"), {"bench"})
        self.assertEqual(self.bash("bench", "--dt"), {"--dtype", "--dtype-d"})
        self.assertEqual(self.bash("bench", "--dtype", "f"), {"f32", "f64", "f16", "f8e4m3", "f8e5m2"})
        self.assertEqual(self.bash("bench", "--dtype", "=", "b"), {"bf16"})
        self.assertEqual(self.bash("bench", "--dtype", "="), {"f32", "f64", "f16", "bf16", "f8e4m3", "f8e5m2", "i8"})
        self.assertEqual(self.bash("bench", "--only", "reference_spmm,spmm_po"), {"reference_spmm,spmm_portable"})
        self.assertEqual(self.bash("bench", "--m", ""), set())
        self.assertEqual(self.bash("bench", ""), self.matrices)
        self.assertEqual(self.bash("compute", "a.mtx", "-o", ""), self.matrices)
        self.assertIn("d.txt", self.bash("bench", "--json", ""))
        self.assertEqual(self.bash("store", ""), {"path", "list", "export", "import", "merge", "verify", "clear"})
        self.assertIn("d.txt", self.bash("store", "import", ""))
        self.assertEqual(self.bash("gen", "ban"), {"banded"})
        self.assertEqual(self.bash("gen", "--effo"), set())
        self.assertEqual(self.bash("help", "ex"), {"explain"})

    def test_bash_knows_every_option(self):
        self.bash_script = self.script("bash")
        for name in COMMANDS:
            self.assertEqual(self.bash(name, "--"), options_in(self.cli(name, "--help").stdout) | {"--help"})

    def test_fish(self):
        self.fish_script = self.script("fish")
        self.assertEqual(self.fish("sparsek be"), {"bench"})
        self.assertEqual(self.fish("sparsek bench --dt"), {"--dtype", "--dtype-d"})
        self.assertEqual(self.fish("sparsek bench --dtype f"), {"f32", "f64", "f16", "f8e4m3", "f8e5m2"})
        self.assertEqual(self.fish("sparsek bench --only reference_spmm,spmm_po"), {"reference_spmm,spmm_portable"})
        self.assertEqual(self.fish("sparsek bench "), self.matrices)
        self.assertEqual(self.fish("sparsek store "), {"path", "list", "export", "import", "merge", "verify", "clear"})
        self.assertIn("d.txt", self.fish("sparsek store import "))
        self.assertEqual(self.fish("sparsek gen --effo"), set())

    def zsh(self, line):
        """What a line has become after the tab key."""
        process, terminal = pty.fork()
        if process == 0:
            os.chdir(self.folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], {**self.env, "TERM": "xterm", "PATH": os.environ["PATH"], "HOME": str(self.folder)})
        shown = b""

        def wait_for(mark):
            nonlocal shown
            deadline = time.monotonic() + support.LIMIT_S
            while not re.search(mark, shown) and time.monotonic() < deadline:
                if select.select([terminal], [], [], 0.1)[0]:
                    shown += os.read(terminal, 65536)
            self.assertRegex(shown, mark)

        os.write(terminal, b"stty columns 200; fpath=($PWD $fpath); autoload -U compinit; compinit -u -D; zle-done() { zle -I; echo \"<$BUFFER>\"; BUFFER=; }; "
                           b"zle -N zle-done; bindkey '^G' zle-done; PS1=; echo REA''DY\n")
        wait_for(b"READY")
        shown = b""
        os.write(terminal, line.encode() + b"\t\x07")
        wait_for(b"<[^>]*>")
        os.write(terminal, b"exit\n")
        os.close(terminal)
        os.waitpid(process, 0)
        return re.search(b"<([^>]*)>", shown)[1].decode()

    def test_zsh(self):
        self.script("zsh")
        self.assertEqual(self.zsh("sparsek ben"), "sparsek bench ")
        self.assertEqual(self.zsh("sparsek bench --assume"), "sparsek bench --assume-finite ")
        self.assertEqual(self.zsh("sparsek bench --dtype=b"), "sparsek bench --dtype=bf16 ")
        self.assertEqual(self.zsh("sparsek inspect a"), "sparsek inspect a.mtx ")
        self.assertEqual(self.zsh("sparsek gen ban"), "sparsek gen banded ")
        self.assertEqual(self.zsh("sparsek store exp"), "sparsek store export ")

    def test_scripts_are_legal(self):
        for shell in ("bash", "zsh", "fish"):
            done = subprocess.run([shell, "-n", self.script(shell)], capture_output=True, text=True, env={**self.env, "HOME": str(self.folder)})
            self.assertEqual((done.returncode, done.stderr), (0, ""), shell)

    def test_wrong_shell(self):
        self.assertIn("did you mean bash?", self.cli("completion", "bsh", code=2).stderr)
        self.assertIn("needs a shell", self.cli("completion", code=2).stderr)

    def test_help_of_completion(self):
        for flag in ("-h", "--help"):
            self.assertIn("completion bash|zsh|fish", self.cli("completion", flag).stdout)
        self.assertIn("completion bash|zsh|fish", self.cli("help", "completion").stdout)
