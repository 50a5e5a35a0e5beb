"""Help texts, wrong command lines and their messages, exit codes."""
import re

from support import HERE, CliTest

COMMANDS = ["info", "bench", "tune", "explain", "compute", "inspect", "convert", "gen", "check", "regret", "store"]
COMMON = ["--json", "--quiet", "--help"]

# (command line, exit code, what the message on stderr must say)
WRONG = [
    ("", 2, "needs a command"),
    ("bensh", 2, "unknown command 'bensh'; did you mean 'bench'?"),
    ("--verison", 2, "unknown option '--verison'; did you mean '--version'?"),
    ("frobnicate", 2, "unknown command 'frobnicate'"),
    ("run a.mtx b.mtx", 2, "unknown command 'run'; did you mean 'compute'?"),
    ("cache list", 2, "unknown command 'cache'; did you mean 'store'?"),
    ("prune a.npy", 2, "unknown command 'prune'; did you mean 'convert --prune'?"),
    ("merge b.db", 2, "unknown command 'merge'; did you mean 'store merge'?"),
    ("bench --densty 0.1", 2, "unknown option --densty; did you mean --density?"),
    ("bench --assume", 2, "unknown option --assume; did you mean --assume-finite?"),
    ("bench --zzzzzz", 2, "unknown option --zzzzzz"),
    ("bench -x", 2, "unknown option -x"),
    ("bench --m", 2, "--m needs a value"),
    ("bench --m --k 3", 2, "--m needs a value"),
    ("bench --m twelve", 2, "--m: 'twelve' is not a whole number"),
    ("bench --m 12.5", 2, "--m: '12.5' is not a whole number"),
    ("bench --m -1", 2, "--m: -1 is not between 0 and 2147483647"),
    ("bench --m 99999999999999999999", 2, "--m: 99999999999999999999 is not between 0 and 2147483647"),
    ("bench --block 0", 2, "--block: '0' is no block size"),
    ("bench --block 257", 2, "--block: '257' is no block size: ROWS or ROWSxCOLS, each 1 to 256"),
    ("bench --block 8x", 2, "--block: '8x' is no block size"),
    ("bench --block 8x8x8", 2, "--block: '8x8x8' is no block size"),
    ("bench --density 1.5", 2, "--density: 1.5 is not between 0 and 1"),
    ("convert a.npy b.safetensors --prune 10", 2, "--prune: 10 is not between 0 and 1; did you mean 10%?"),
    ("bench --cols 3", 2, "--cols goes with a FILE"),
    ("inspect a.safetensors --cols 0", 2, "--cols: 0 is not between 1 and 2147483647"),
    ("bench --density 120%", 2, "--density: 120% is not between 0 and 1"),
    ("bench --density nan", 2, "--density: 'nan' is not a finite number"),
    ("bench --pattern unifrom", 2, "--pattern: no pattern is called 'unifrom'; did you mean uniform?"),
    ("bench --pattern 7", 2, "--pattern: no pattern is called '7'"),
    ("bench --dtype float", 2, "--dtype: 'float' is no data type (f32, f64, f16, bf16, f8e4m3, f8e5m2 and i8 are); did you mean f32?"),
    ("bench --dtype float32", 2, "did you mean f32?"),
    ("bench --dtype bfloat16", 2, "did you mean bf16?"),
    ("bench --dtype f62", 2, "did you mean f64?"),
    ("bench --dtype BF16", 2, "--dtype: 'BF16' is no data type (f32, f64, f16, bf16, f8e4m3, f8e5m2 and i8 are); did you mean bf16?"),
    ("bench --dtype FP16", 2, "--dtype: 'FP16' is no data type (f32, f64, f16, bf16, f8e4m3, f8e5m2 and i8 are); did you mean f16?"),
    ("bench --dtype quaternion", 2, "--dtype: 'quaternion' is no data type (f32, f64, f16, bf16, f8e4m3, f8e5m2 and i8 are)\n"),
    ("bench --activation rellu", 2, "did you mean relu?"),
    ("matrix.mtx", 2, "unknown command 'matrix.mtx'; 'sparsek inspect matrix.mtx' shows what a matrix file holds"),
    ("-q info", 2, "unknown option '-q': a command's options come after it, as in 'sparsek info -q'"),
    ("gen random -o a.mtx", 2, "no pattern is called 'random'; did you mean uniform?"),
    ("gen video -o a.mtx", 2, "no pattern is called 'video'; it is a shape of masks: 'sparsek gen mask --shape video'"),
    ("gen nsa -o a.mtx", 2, "'sparsek gen mask --shape nsa'"),
    ("gen bandad -o a.mtx", 2, "no pattern is called 'bandad'; did you mean banded?"),
    ("bench --trans-a x", 2, "--trans-a: 'x' is none of n|t"),
    ("bench --op attention --queries 5 --keys 7 --causal", 2, "diagonal = none with 5 queries and 7 keys: causal and windows want top_left or bottom_right\n"),
    ("bench --layout-b diagonal", 2, "--layout-b: 'diagonal' is none of row|col"),
    ("bench --activation tanh", 2, "--activation: 'tanh' is none of none|relu|gelu_erf|gelu_tanh|silu"),
    ("bench --bias both", 2, "--bias: 'both' is none of none|row|col"),
    ("bench --cache hot", 2, "--cache: 'hot' is none of cold|warm"),
    ("bench --op gem", 2, "did you mean gemm?"),
    ("bench --batch 0", 2, "--batch: 0 is not between 1 and"),
    ("bench --seed -1", 2, "--seed: '-1' is not a whole number from 0"),
    ("bench --seed 18446744073709551616", 2, "--seed: '18446744073709551616' is not a whole number"),
    ("bench --assume-finite=yes", 2, "--assume-finite takes no value"),
    ("bench --only reference_attn", 2, "did you mean reference_attention?"),
    ("bench --only mkl_bsd", 2, "--only: no kernel is called 'mkl_bsd'; did you mean mkl_bsr?"),
    ("bench --exclude reference_spmm,,", 2, "--exclude: no kernel is called ''"),
    ("bench --threads 0", 2, "--threads: 0 is not between 1 and 1024"),
    ("tune --effort hard", 2, "--effort: 'hard' is none of measure|estimate|exhaustive"),
    ("tune --effort exhastive", 2, "did you mean exhaustive?"),
    ("bench --budget 0", 2, "--budget: 0 is not between 0.001 and 86400"),
    ("bench --json=", 2, "--json: the value is empty"),
    ("bench a.mtx b.mtx", 2, "one argument too many: 'b.mtx'"),
    ("bench a.mtx --m 5", 2, "do not go with a file"),
    ("bench --pattern elasticity --m 5", 2, "its size comes from --cells"),
    ("bench --cells 4", 2, "--cells goes with --pattern elasticity"),
    ("bench --pattern experts --m 5", 2, "rows and density come from --experts and --tokens"),
    ("bench --experts 4", 2, "--experts and --tokens go with --pattern experts"),
    ("bench --pattern experts --experts 3 --tokens 1,2", 2, "--tokens names 2 experts, --experts 3"),
    ("bench --pattern experts --tokens 9-3", 2, "neither a range like 16-256 nor a list"),
    ("bench --cells 4x4 --pattern elasticity", 2, "--cells: '4x4' is neither a number"),
    ("bench --device cuda:9999", 4, "cuda:9999"),
    ("bench --device tpu", 2, 'device = "tpu": the devices are "cpu", "cuda" and "cuda:N"'),
    ("bench --dtype tf32", 2, "--dtype: 'tf32' is no data type (f32, f64, f16, bf16, f8e4m3, f8e5m2 and i8 are)"),
    ("bench --dtype i32", 4, "--dtype: i32 is not in this version"),
    ("bench --compute f16", 2, "--compute: 'f16' is none of default|f32|f64|tf32"),
    ("bench --compute tf32 --dtype f64 --m 64 --k 64", 4, "compute = tf32 with dtype_a = f64"),
    ("info --device cuda:9999", 4, "cuda:9999"),
    ("bench --op sddmm --trans-a t", 2, "--trans-a goes with --op spmm"),
    ("bench --op sddmm --static-values", 2, "--static-values goes with --op spmm"),
    ("bench --layout-a col", 2, "--layout-a goes with --op sddmm"),
    ("bench --op gemm --block 32", 2, "--block goes with --op spmm or sddmm"),
    ("bench --op gemm --batch 2 --batch-values", 2, "--batch-values goes with --op spmm"),
    ("bench --op gemm --static-values", 2, "--static-values goes with --op spmm"),
    ("bench --op gemm --groups 3", 2, "--groups goes with --group-axis"),
    ("bench --op gemm --group-axis rows", 2, "--group-axis goes with --groups"),
    ("bench --groups 3 --group-axis rows", 2, "--group-axis goes with --op gemm"),
    ("bench --op gemm --groups -1 --group-axis rows", 2, "--groups"),
    ("compute a.npy b.npy --op gemm --groups 2 -o d.npy", 2, "--groups"),
    ("bench a.mtx --op gemm", 2, "gemm takes no matrix FILE"),
    ("bench --residual --factor", 2, "--factor does not go with --residual"),
    ("bench --op sddmm --factor", 2, "--factor goes with --op spmm"),
    ("bench --batch-values", 2, "--batch-values goes with --batch"),
    ("bench missing.mtx", 3, "missing.mtx"),
    ("bench --rounds 0", 2, "--rounds: 0 is not between 1 and 10000"),
    ("tune --from", 2, "--from needs a value"),
    ("tune --from list.json a.mtx", 2, "--from and a FILE exclude each other"),
    ("tune --from missing.json", 3, "cannot read missing.json"),
    ("explain --m 64 --k 64 --n 3", 1, "the store does not know this problem's class"),
    ("compute a.mtx", 2, "needs A and B"),
    ("compute a.mtx b.mtx", 2, "needs -o FILE"),
    ("compute a.mtx b.mtx -o d.txt", 2, "no known format"),
    ("compute a.mtx b.mtx -o d.smtx", 2, ".smtx holds positions only"),
    ("compute a.mtx b.mtx -o d.npy --beta 2", 2, "--beta goes with --c"),
    ("compute a.mtx b.mtx -o d.npy --alpha inf", 2, "--alpha: 'inf' is not a finite number"),
    ("compute a.mtx b.mtx -o d.npy --window-left 3", 2, "--window-left goes with --op attention or attention_backward"),
    ("compute q.npy k.npy v.npy -o d.npy --op attention --queries 3", 2, "unknown option --queries: the files of the inputs say the sizes"),
    ("compute q.npy k.npy v.npy -o d.npy --op attention --heads 3", 2,
     "unknown option --heads: 'compute' computes one item of one head, whole, from files; a mask is the blocks of --at FILE"),
    ("compute a.mtx b.mtx -o d.npy --layout-b col", 2, "unknown option --layout-b: 'compute' reads the inputs from files"),
    ("compute a.mtx b.mtx -o d.npy --bias row", 2, "unknown option --bias; did you mean --bias-"),
    ("compute a.mtx b.mtx -o d.npy --bias-row x.npy --bias-col y.npy", 2, "--bias-row and --bias-col exclude each other"),
    ("compute a.mtx b.mtx -o d.npy", 3, "a.mtx"),
    ("inspect", 2, "needs a FILE"),
    ("inspect a.mtx --n 0", 2, "--n: 0 is not between 1 and"),
    ("convert a.mtx", 2, "needs IN and OUT"),
    ("convert a.mtx b.txt", 2, "b.txt: no known format"),
    ("convert a.mtx b.npy --by l1", 2, "--by goes with --prune"),
    ("convert a.mtx b.npy --block 4 --prune 0.1 --by l3", 2, "--by: 'l3' is none of l1|l2|max"),
    ("convert a.mtx b.mtx --block 4 --to dense", 2, "exclude each other"),
    ("gen", 2, "needs a PATTERN"),
    ("gen uniform", 2, "needs -o FILE"),
    ("gen uniforn -o a.mtx", 2, "no pattern is called 'uniforn'; did you mean uniform?"),
    ("gen uniform -o a.txt", 2, "no known format"),
    ("gen uniform -o a.mtx --cells 3", 2, "go with elasticity"),
    ("gen elasticity -o a.mtx --rows 30", 2, "its size comes from --cells"),
    ("gen experts -o a.mtx --rows 30", 2, "rows and density come from --experts and --tokens"),
    ("gen uniform -o a.mtx --tokens 3", 2, "go with experts"),
    ("gen experts -o a.mtx --tokens 3,x", 2, "--tokens: '3,x' is neither"),
    ("gen uniform -o a.mtx --m 3 --rows 3", 2, "give one of each"),
    ("gen uniform -o nowhere/a.mtx", 5, "cannot write nowhere/a.mtx"),
    ("gen uniform -o a.npy --pattern-only --rows 8 --block 4", 2, "--pattern-only goes with .mtx and .smtx"),
    ("check --case 3", 2, "--case needs --seed"),
    ("check --case 3 --seed 1 --resume s.json", 2, "--case and --resume exclude each other"),
    ("check --case 3 --seed 1 --each 2", 2, "--case and --each exclude each other"),
    ("check --params NV=2", 2, "--params needs --kernel"),
    ("check --kernel reference_spmm --only reference_spmm", 2, "--kernel and --only are the same"),
    ("check --kernel refrence_spmm", 2, "no kernel is called 'refrence_spmm'; did you mean reference_spmm?"),
    ("check --kernel reference_spmm --params X --all-params", 2, "exclude each other"),
    ("check --kernel spmm_portable --params NV=77", 2, "which takes one value of each of NV=2,3,4,6 PACK=0,1,2"),
    ("check --kernel reference_spmm --params X=1", 2, "which takes none"),
    ("check --only reference_spmm --exclude reference_spmm", 2, "leave no kernel"),
    ("check extra", 2, "one argument too many"),
    ("regret --problems 0", 2, "--problems: 0 is not between 1 and"),
    ("store", 2, "needs an action"),
    ("store lst", 2, "unknown action 'lst'; did you mean 'list'?"),
    ("store export", 2, "export needs a FILE"),
    ("store list a.json", 2, "list takes no FILE"),
    ("store import missing.json", 3, "missing.json"),
    ("store export nowhere/x.json", 5, "cannot write nowhere/x.json"),
    ("info --json nowhere/x.json", 5, "cannot write nowhere/x.json"),
    ("info extra", 2, "one argument too many: 'extra'"),
]


class Usage(CliTest):
    def test_wrong_command_lines(self):
        self.assertGreaterEqual(len(WRONG), 40)
        for line, code, message in WRONG:
            with self.subTest(line=line):
                done = self.cli(*line.split(), code=code)
                self.assertIn(message, done.stderr)
                self.assertEqual(done.stdout, "")
                if code == 2 and line:
                    self.assertTrue(done.stderr.startswith("sparsek"))

    def test_an_older_name_is_told_though_a_file_has_it(self):
        (self.folder / "run").mkdir()
        self.assertIn("did you mean 'compute'?", self.cli("run", "a.mtx", "b.mtx", code=2).stderr)

    def test_program_help_names_every_command(self):
        for words in (["--help"], ["-h"], ["help"]):
            text = self.cli(*words).stdout
            for name in COMMANDS:
                self.assertRegex(text, rf"(?m)^  {name} +\S")
            for code in () if words == ["-h"] else ("130", "NO_COLOR", "SPARSEK_STORE", "Example"):
                self.assertIn(code, text)

    def test_every_command_has_help(self):
        for name in COMMANDS:
            with self.subTest(command=name):
                text = self.cli(name, "--help").stdout
                self.assertTrue(text.startswith(f"Usage: sparsek {name} "))
                self.assertRegex(text, rf"\nExamples:\n  sparsek {name}\b")
                for option in COMMON:
                    self.assertIn(option, text)
                self.assertLessEqual(max(map(len, text.splitlines())), 120)
                self.assertIn("default", text)
                self.assertEqual(text, self.cli("help", name).stdout)

    def test_version(self):
        self.assertRegex(self.cli("--version").stdout, r"^sparsek \d+\.\d+\.\d+ \(.+\)\n$")

    def test_value_after_equals_sign(self):
        done = self.cli("gen", "uniform", "--rows=8", "--block=2x4", "--density=50%", "-o", "a.mtx")
        self.assertIn("8 x 8", done.stdout)
        self.cli("gen", "uniform", "--rows=8", "--block=2", "-oa.mtx")

    def test_double_dash_ends_options(self):
        self.assertIn("--help", self.cli("inspect", "--", "--help", code=3).stderr)

    def test_the_manual_knows_every_option(self):
        manual = (HERE.parent.parent / "docs" / "cli.md").read_text()
        for name in COMMANDS:
            for option in re.findall(r"(?m)^  (?:-\w, )?(--[a-z-]+)", self.cli(name, "--help").stdout):
                self.assertTrue(re.search(rf"[` ]{option}\b", manual), f"{name} {option} is not in docs/cli.md")
        known = set(re.findall(r"--[a-z][a-z-]*", "".join(self.cli(name, "--help").stdout for name in COMMANDS)))
        self.assertEqual(set(re.findall(r"--[a-z][a-z-]*", manual)) - known - {"--name"}, set())
