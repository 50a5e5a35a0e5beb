"""Evidence that is carried from one tree to another: bench/carry.py, and what it compares."""

import argparse
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import support
from support import HERE

ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import bundle  # noqa: E402
import carry  # noqa: E402
import program_text  # noqa: E402
import proved  # noqa: E402
import runs  # noqa: E402
from carry import cubins, launches, layouts, objects  # noqa: E402
from carry.launches import Record  # noqa: E402
from carry.trees import Tree  # noqa: E402

# Of a tree with one row of a processor and two of a card. Its hash of a row is that of the row's files.
CUDA_ROWS = """SPK_KERNEL(SPK_SPMM, fake_wide, SPK_KIND_OWN, SPK_ISA_SM90A, 70, false, NULL, TUNABLE(V, 1,2) TUNABLE(W, 0,1))
SPK_KERNEL(SPK_GEMM, fake_old, SPK_KIND_OWN, SPK_ISA_SM80, 50, false, NULL, NO_TUNABLES)
"""
CPU_ROWS = "SPK_KERNEL(SPK_SPMM, fake_cpu, SPK_KIND_OWN, SPK_ISA_AVX2, 70, false, NULL, TUNABLE(U, 1,2))\n"
HASHES = """file(GLOB rows ${ROOT}/backend/*/kernels/*.c)
foreach(row IN LISTS rows)
  get_filename_component(name ${row} NAME_WE)
  string(REGEX REPLACE "c$" "c*" both ${row})
  file(GLOB files ${both})
  set(text "")
  foreach(file IN LISTS files)
    file(READ ${file} content)
    string(APPEND text "${content}")
  endforeach()
  string(SHA256 hash "${text}")
  string(SUBSTRING ${hash} 0 16 hash)
  string(APPEND all "${name} ${hash}\\n")
endforeach()
execute_process(COMMAND ${CMAKE_COMMAND} -E echo_append "${all}")
"""
PROGRAM = """#include "backend/cuda/device/fake.cuh"
#if W == WIDE
float width = TWO * 2;
#else
float width = 1; // narrow
#endif
"""
HEADER = "#ifndef FAKE_CUH\n#define FAKE_CUH\n#define WIDE 1\n#define TWO 2\n#endif\n"
OBJECT = "static const char hash[] = SPK_SOURCE_HASH;\nconst char *name_of(void) { return hash; }\nint times(int a) { return a * 37; }\n"
CARD = "NVIDIA H200"


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def compile_object(tree, name):
    """As the library's build does: an object, and its line of compile_commands.json."""
    file, out = tree.root / name, f"src/CMakeFiles/sparsek_objects.dir/{name}.o"
    (tree.build / out).parent.mkdir(parents=True, exist_ok=True)
    words = ["gcc", "-O2", "-g", f'-DSPK_SOURCE_HASH=\\"{tree.sources[file.stem]}\\"', "-o", out, "-c", str(file)]
    subprocess.run(" ".join(words), shell=True, check=True, cwd=tree.build)
    write(tree.build / "compile_commands.json", json.dumps([{"file": str(file), "command": " ".join(words), "output": out}]))


class Trees(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.at = pathlib.Path(folder.name).resolve()

    def tree(self, name, rows=CUDA_ROWS, **files):
        """files: what differs, by the row's name: fake_wide_c is kernels/fake_wide.c."""
        root = self.at / name
        write(root / "src/backend/cuda/kernels.def", rows)
        write(root / "src/backend/cpu/kernels.def", CPU_ROWS)
        write(root / "cmake/SparsekClosure.cmake", HASHES)
        write(root / "src/backend/cuda/device/fake.cuh", files.pop("header", HEADER))
        usual = {"fake_wide_c": "/* host */\n", "fake_wide_cu": PROGRAM, "fake_old_c": "/* host */\n", "fake_old_cu": "int old;\n", "fake_cpu_c": OBJECT}
        for file, text in {**usual, **files}.items():
            stem, _, ending = file.rpartition("_")
            if text is not None:
                write(root / f"src/backend/{'cpu' if stem.endswith('cpu') else 'cuda'}/kernels/{stem}.{ending}", text)
        made = Tree(root)
        compile_object(made, "src/backend/cpu/kernels/fake_cpu.c")
        return made


def recorded(row="fake_wide", old_launches="same"):
    """What both candidates of a tree launch on two problems."""
    found = {}
    for w in (0, 1):
        for problem in ("spmm --m 8", "spmm --m 16"):
            options = f"--gpu-architecture=sm_90a -DW={w}"
            found[CARD, f"{row} V=1 W={w}", problem] = Record(f"{old_launches} {problem}", ((f"{row}.cu", f"{row}_entry", options),), None, None)
    found[CARD, "fake_old", "gemm --m 8"] = Record("old", (("fake_old.cu", "fake_old", ""),), None, None)
    return found


class Carried(Trees):
    """Which entries of a result file get another tree's hash."""

    def setUp(self):
        super().setUp()
        self.old = self.tree("old")
        self.choices = [("fake_wide", "V=1 W=0"), ("fake_wide", "V=1 W=1"), ("fake_old", "")]

    def carry(self, new, before=None, after=None, renamed=None, choices=None, more=(), compiles=False, **options):
        """(the entries afterwards, what was printed)"""
        proved_ = [
            {"hash": self.old.hash(*choice), "arch": "sm_90a", "driver": 13000, "choice": " ".join(choice).strip(), "programs": 1}
            for choice in choices or self.choices
        ]
        results = self.at / "results"
        results.mkdir(exist_ok=True)
        runs.put({"gpu-double-proved": {"proved": proved_ + list(more), "refuted": options.pop("refuted", [])}}, results)
        records = [recorded() if before is None else before, recorded() if after is None else after]
        comparison = carry.Comparison(self.old, new, renamed, compiles)
        given = argparse.Namespace(results=results, dry_run=options.get("dry_run", False), jobs=1)
        out = io.StringIO()
        with (
            mock.patch.object(carry, "comparison_of", lambda _: comparison),
            mock.patch.object(launches, "record", lambda *a: records.pop(0)),
            mock.patch.object(launches, "CARDS", {CARD: ("", "sm_90a")}),
            contextlib.redirect_stdout(out),
        ):
            proved.carry(given)
        return runs.read(results)["gpu-double-proved"]["proved"], out.getvalue()

    def hashes(self, tree, choices=None):
        return [tree.hash(*choice) for choice in choices or self.choices]

    def check(self, new, entries, which):
        """which: of the choices, those that are carried."""
        wanted = [(new if i in which else self.old).hash(*choice) for i, choice in enumerate(self.choices)]
        self.assertEqual([entry["hash"] for entry in entries], wanted)
        for i, entry in enumerate(entries):
            self.assertEqual("carried" in entry, i in which and new.hash(*self.choices[i]) != self.old.hash(*self.choices[i]))

    def test_nothing_changed(self):
        entries, text = self.carry(self.tree("new"))
        self.check(self.old, entries, {})
        self.assertIn("3 of 3 entries carried from unknown, 0 of them with another hash", text)
        self.assertIn("fake_wide: 2 of 2 carried", text)
        self.assertIn("nothing is written", text)

    def test_the_host_s_side_alone(self):
        new = self.tree("new", fake_wide_c="/* another host */\n", fake_wide_cu=PROGRAM + "/* a remark */\n")
        self.assertNotEqual(self.hashes(new)[0], self.hashes(self.old)[0])
        entries, text = self.carry(new)
        self.check(new, entries, {0, 1, 2})
        self.assertEqual(entries[0]["carried"], {"from": self.old.hash(*self.choices[0]), "commit": "unknown"})
        self.assertIn("written: gpu-double-proved", text)
        self.assertIn("next: python3 bench/proved.py table", text)

    def test_a_dry_run(self):
        new = self.tree("new", fake_wide_c="/* another host */\n")
        entries, text = self.carry(new, dry_run=True)
        self.check(self.old, entries, {})
        self.assertIn("3 of 3 entries carried from unknown, 2 of them with another hash", text)
        self.assertIn("nothing is written", text)

    def test_a_vendor_s_row(self):
        rows = CUDA_ROWS.replace("fake_old, SPK_KIND_OWN", "fake_old, SPK_KIND_VENDOR")
        self.old = self.tree("vendor", rows=rows)
        new, after = self.tree("new", rows=rows, fake_old_c="/* another host */\n"), recorded()
        self.check(new, self.carry(new)[0], {0, 1, 2})
        after[CARD, "fake_old", "gemm --m 8"] = after[CARD, "fake_old", "gemm --m 8"]._replace(launches="another")
        self.check(new, self.carry(new, after=after)[0], {0, 1})

    def test_one_launch_differs(self):
        new, after = self.tree("new", fake_wide_c="/* another host */\n"), recorded()
        key = (CARD, "fake_wide V=1 W=1", "spmm --m 16")
        after[key] = after[key]._replace(launches="another")
        entries, text = self.carry(new, after=after)
        self.check(new, entries, {0, 2})
        self.assertIn("1 not: launch differs (spmm --m 16, NVIDIA H200), such as V=1 W=1", text)

    def test_a_problem_that_it_does_not_compute_any_more(self):
        new, after = self.tree("new", fake_wide_c="/* another host */\n"), recorded()
        del after[CARD, "fake_wide V=1 W=0", "spmm --m 8"]
        entries, text = self.carry(new, after=after)
        self.check(new, entries, {1, 2})
        self.assertIn("it computes other problems (spmm --m 8", text)

    def test_other_options(self):
        new, after = self.tree("new", fake_wide_c="/* another host */\n"), recorded()
        key = (CARD, "fake_wide V=1 W=0", "spmm --m 8")
        after[key] = after[key]._replace(programs=(("fake_wide.cu", "fake_wide_entry", "--gpu-architecture=sm_90a -DW=0 -DMORE=1"),))
        entries, text = self.carry(new, after=after)
        self.check(new, entries, {1, 2})
        self.assertIn("it has other programs", text)

    def test_what_was_not_recorded(self):
        new, before = self.tree("new", fake_old_c="/* another host */\n"), recorded()
        del before[CARD, "fake_old", "gemm --m 8"]
        entries, text = self.carry(new, before=before, after=before)
        self.check(new, entries, {0, 1})
        self.assertIn("fake_old: 0 of 1 carried\n    1 not: not recorded", text)

    def test_a_run_that_fails(self):
        new, after = self.tree("new", fake_old_c="/* another host */\n"), recorded()
        key = (CARD, "fake_old", "gemm --m 8")
        after[key] = after[key]._replace(failed="no room")
        entries, text = self.carry(new, after=after)
        self.check(new, entries, {0, 1})
        self.assertIn("its run fails: no room", text)

    def test_a_branch_of_the_program(self):
        """W = 1 takes the first branch, W = 0 the second."""
        new = self.tree("new", fake_wide_cu=PROGRAM.replace("TWO * 2", "TWO * 3"))
        self.check(new, self.carry(new)[0], {0, 2})
        new = self.tree("other", fake_wide_cu=PROGRAM.replace("width = 1", "width = 7"))
        entries, text = self.carry(new)
        self.check(new, entries, {1, 2})
        self.assertIn("program differs", text)

    def test_programs_that_are_compiled(self):
        """With --compile the PTX decides where the words differ."""
        new = self.tree("new", fake_wide_cu=PROGRAM.replace("TWO * 2", "2 * TWO").replace("width = 1", "width = 7"))
        for same in (True, False):
            compiled = lambda source, name, options: b"" if same or "-DW=0" in options else str(source).encode()  # noqa: B023, E731
            with self.subTest(same=same), mock.patch.object(cubins, "compiled", compiled):
                self.check(new, self.carry(new, compiles=True)[0], {0, 1, 2} if same else {0, 2})

    def test_a_macro_of_a_header(self):
        new = self.tree("new", header=HEADER.replace("TWO 2", "TWO 3"))
        self.assertEqual(self.hashes(new), self.hashes(self.old))  # these hashes are of a row's own files
        entries, text = self.carry(new)
        self.check(self.old, entries, {})
        self.assertIn("fake_wide: 0 of 2 carried", text)

    def test_a_renamed_row(self):
        rows = CUDA_ROWS.replace("fake_wide", "fake_broad")
        files = {"fake_wide_c": None, "fake_wide_cu": None, "fake_broad_c": "/* host */\n", "fake_broad_cu": PROGRAM}
        new = self.tree("new", rows=rows, **files)
        entries, text = self.carry(new)
        self.assertIn("fake_wide: 0 of 2 carried\n    2 not: row is gone", text)
        entries, text = self.carry(new, after=recorded("fake_broad"), renamed={"fake_wide": "fake_broad"})
        self.assertEqual([entry["choice"] for entry in entries], ["fake_broad V=1 W=0", "fake_broad V=1 W=1", "fake_old"])
        self.assertEqual(
            [entry["hash"] for entry in entries], [new.hash("fake_broad", "V=1 W=0"), new.hash("fake_broad", "V=1 W=1"), self.old.hash("fake_old", "")]
        )

    def test_tunables_that_are_no_more(self):
        entries, text = self.carry(self.tree("new", rows=CUDA_ROWS.replace("TUNABLE(W, 0,1)", "TUNABLE(W, 1)")))
        self.assertIn("1 not: tunables are gone, such as V=1 W=0", text)

    def test_dead_and_refuted(self):
        """Nothing of a refuted candidate is carried: under another hash it would be good again."""
        new = self.tree("new", fake_wide_c="/* another host */\n")
        dead = {"hash": "f" * 16, "arch": "sm_90a", "driver": 13000, "choice": "fake_wide V=2 W=0", "programs": 1}
        entries, text = self.carry(new, more=[dead], refuted=[{"hash": self.old.hash(*self.choices[0]), "why": "wrong"}])
        self.check(new, entries[:3], {1, 2})
        self.assertEqual(entries[3], dead)
        self.assertIn("1 are dead there, 1 refuted", text)

    def test_a_bundle_s_classes(self):
        same, other = self.tree("new", fake_cpu_c="/* a remark */\n" + OBJECT), self.tree("other", fake_cpu_c=OBJECT.replace("37", "38"))
        for new, wanted in ((same, same), (other, self.old)):
            with self.subTest(new=new.root.name):
                candidates = [{"name": "fake_cpu", "params": "U=1", "hash": self.old.hash("fake_cpu", "U=1")}]
                results = self.at / "results"
                results.mkdir(exist_ok=True)
                runs.put({"cpu-double-bundle": {"classes": [{"key": "v=1;dev=cpu:Double:t2|m=1", "candidates": candidates}]}}, results)
                options = argparse.Namespace(results=results, dry_run=False, jobs=1)
                with mock.patch.object(carry, "comparison_of", lambda _: carry.Comparison(self.old, new)), contextlib.redirect_stdout(io.StringIO()) as out:  # noqa: B023
                    bundle.carry(options)
                self.assertEqual(runs.read(results)["cpu-double-bundle"]["classes"][0]["candidates"][0]["hash"], wanted.hash("fake_cpu", "U=1"))
                self.assertIn("fake_cpu: 1 of 1 carried" if new is same else "machine code differs (src/backend/cpu/kernels/fake_cpu.c)", out.getvalue())

    def test_other_options_of_the_compiler(self):
        new = self.tree("new", fake_cpu_c="/* a remark */\n" + OBJECT)
        listed = json.loads((new.build / "compile_commands.json").read_text())
        listed[0]["command"] = listed[0]["command"].replace("-O2", "-O3")
        write(new.build / "compile_commands.json", json.dumps(listed))
        self.assertIn("is compiled otherwise", carry.Comparison(self.old, new).compiled("fake_cpu"))

    def test_what_is_wrong_with_the_options(self):
        for words, wanted in (
            (["nowhere"], "'nowhere' is neither a folder nor a revision"),
            ([str(self.at)], "no tree of sparsek's sources"),
            ([str(self.old.root), str(self.old.root), "--renamed", "fake_wide"], "both names are needed"),
            ([str(self.old.root), str(self.old.root), "--renamed", "fake_wide=none"], "--renamed: none is no row of"),
        ):
            for script in ("proved.py", "bundle.py"):
                with self.subTest(words=words, script=script):
                    done = subprocess.run([sys.executable, ROOT / "bench" / script, "carry", *words], capture_output=True, text=True)
                    self.assertEqual(done.returncode, 1)
                    self.assertIn(wanted, done.stderr)
                    self.assertNotIn("Traceback", done.stderr)

    def test_names_of_rows(self):
        rename = carry.Comparison(self.old, self.old, {"fake_wide": "fake_broad"}).rename("fake_wide")
        words = "fake_wide fake_wide.cu spk_fake_wide_ops fake_wide_entry fake_wider FAKE_WIDE_H"
        self.assertEqual(rename(words), "fake_broad fake_broad.cu spk_fake_broad_ops fake_broad_entry fake_wider FAKE_BROAD_H")


class Text(Trees):
    def tokens(self, text, options="", **files):
        source = self.at / f"text{len(list(self.at.iterdir()))}"
        write(source / "backend/cuda/kernels/one.cu", text)
        for name, content in files.items():
            write(source / f"backend/cuda/device/{name}.h", content)
        return list(program_text.tokens(source, "one.cu", options))

    def test_comments_and_white_space(self):
        self.assertEqual(
            self.tokens('int a = 1; /* of\n two lines */ const char *s = "/* no */"; // end\n\n'), self.tokens('int a=1;\nconst char*s="/* no */";')
        )
        self.assertNotEqual(self.tokens('char s[] = "a b";'), self.tokens('char s[] = "a  b";'))
        self.assertNotEqual(self.tokens("a = b - -c;"), self.tokens("a = b --c;"))
        self.assertNotEqual(self.tokens("#define A 1\nint b;"), self.tokens("#define A 1 int b;"))

    def test_what_is_included_once(self):
        header = "#ifndef ONE_H\n#define ONE_H\nint one;\n#endif\n"
        include = '#include "backend/cuda/device/one.h"\n'
        self.assertEqual(self.tokens(include + include + "int two;", one=header), ["int", "one", ";", "int", "two", ";"])
        self.assertEqual(self.tokens('#define FILE_OF_IT "backend/cuda/device/one.h"\n#include FILE_OF_IT\n', one="int one;")[-3:], ["int", "one", ";"])

    def test_branches(self):
        text = "#if A > 1\nfirst\n#elif defined(B) && !C\nsecond\n#else\nthird\n#endif\n#ifdef A\nfourth\n#endif\n"
        cases = {"-DA=2": ["first", "fourth"], "-DA=1 -DB": ["second", "fourth"], "-DB=0 -DC=1": ["third"], "": ["third"]}
        for options, wanted in cases.items():
            with self.subTest(options=options):
                self.assertEqual(self.tokens(text, options), wanted)
        self.assertEqual(self.tokens("#if 0\n#if 1\nno\n#else\nno\n#endif\n#else\nyes\n#endif\n"), ["yes"])
        self.assertEqual(self.tokens("#if __CUDA_ARCH__ >= 900\nyes\n#endif\n", "--gpu-architecture=sm_90a"), ["yes"])

    def test_conditions(self):
        macros = {"TWO": "1 + 1", "BOTH": "(TWO == 2 && ONE)", "ONE": "1", "F": None}
        for text, wanted in {
            "TWO * 2 == 3": True,
            "(TWO) * 2 == 4": True,
            "-7 / 2 == -3": True,
            "-7 % 2 == -1": True,
            "1 < 2 == 1": True,
            "BOTH": True,
            "!BOTH": False,
            "!0 == 1": True,
            "1 | 2 & 0": True,
            "~0 == -1": True,
            "010 == 8": True,
            "0x1Fu == 31": True,
            "NONE": False,
            "defined NONE || defined(ONE)": True,
        }.items():
            with self.subTest(text=text):
                self.assertEqual(program_text.holds(text, macros), wanted)
        self.assertTrue(program_text.holds("(TWO) * 2 == 4", {"TWO": "2"}))

    def test_what_is_not_understood(self):
        """All branches count."""
        for condition in ("F(1)", "1 ? 2 : 3", "1 / 0", "(1"):
            with self.subTest(condition=condition):
                words = self.tokens(f"#define F(x) x\n#if {condition}\nfirst\n#else\nsecond\n#endif\n#if 1\nthird\n#endif\n")
                self.assertEqual([word for word in words if word in ("first", "second", "third")], ["first", "second", "third"])

    def test_a_file_that_is_not_there(self):
        with self.assertRaisesRegex(program_text.Trouble, "there is no such file"):
            self.tokens('#include "backend/cuda/device/none.h"\n')


class Objects(Trees):
    def code(self, text, hash_="1" * 16, rename=lambda name: name):
        file, out = self.at / "one.c", self.at / "one.o"
        write(file, text)
        subprocess.run(["gcc", "-O2", "-g", f'-DSPK_SOURCE_HASH="{hash_}"', "-o", out, "-c", file], check=True)
        return objects.code_of(out, hash_, rename)

    def test_a_remark(self):
        self.assertEqual(self.code(OBJECT), self.code("/* a remark */\n\n" + OBJECT))

    def test_the_hash_of_the_sources(self):
        self.assertEqual(self.code(OBJECT), self.code(OBJECT, hash_="2" * 16))

    def test_a_constant(self):
        self.assertNotEqual(self.code(OBJECT), self.code(OBJECT.replace("37", "38")))
        table = "const double table[] = {1, 2};\n"
        self.assertNotEqual(self.code(table), self.code(table.replace("2}", "3}")))

    def test_another_function_that_is_called(self):
        call = "int first(int); int second(int); int both(int a) { return first(a) + 1; }\n"
        self.assertNotEqual(self.code(call), self.code(call.replace("return first", "return second")))

    def test_names(self):
        local = "static int __attribute__((noinline)) inner(int a) { return a * a; }\nint outer(int a) { return inner(a) + 1; }\n"
        self.assertEqual(self.code(local), self.code(local.replace("inner", "other")))
        self.assertNotEqual(self.code(local), self.code(local.replace("outer", "other")))
        self.assertEqual(self.code(local, rename=lambda name: name.replace("outer", "other")), self.code(local.replace("outer", "other")))

    def test_what_is_no_object(self):
        write(self.at / "one.o", "text")
        with self.assertRaisesRegex(objects.Trouble, "no object file"):
            objects.code_of(self.at / "one.o")


class Recorded(unittest.TestCase):
    """The recording doubles, on the program under test."""

    VENDORS = {
        "spmm": ["cublas_dense ALGO=15", "cublas_blocks", "cusparse_bsr", "cusparse_blocked_ell"],
        "sddmm": ["cublas_dense_sddmm ALGO=2"],
        "gemm": ["cublas_gemm ALGO=0"],
        "attention": ["cudnn_attention"],
    }
    CHOICES = {
        "spmm": [
            "spmm_sm90_wgmma BN=64 CONSUMERS=1 CTAS=1 ACROSS=0 SPLIT=1 PINGPONG=0",
            "spmm_sm80_warp TILES=1 TILE_N=32 SPLIT=4 STAGES=4",
            "spmm_cuda_simt TILE_N=64 THREAD_N=4 TILE_K=16 STAGES=3 SPLIT=0",
            *VENDORS["spmm"],
        ],
        "sddmm": VENDORS["sddmm"],
        "gemm": VENDORS["gemm"],
        "attention": ["attention_sm80 WARPS=4 SIXTEENS=1 STEP=32 Q_HELD=0 SPLIT=4", *VENDORS["attention"]],
        "attention_backward": ["attention_backward_sm90 SHARERS=2 ROWS=128 LAG=1"],
    }
    PROBLEMS = {
        "spmm": ["--m 256 --k 256 --n 64 --block 64 --density 0.5 --dtype f16", "--m 256 --k 256 --n 64 --block 64 --density 0.5 --dtype f16 --seed 2"],
        "sddmm": ["--m 256 --k 256 --n 64 --block 64 --density 0.5 --dtype f16"],
        "gemm": ["--m 64 --k 64 --n 64 --dtype f16 --bias col"],
        "attention": ["--heads 4 --queries 128 --keys 128 --depth 64 --dtype f16"],
        "attention_backward": ["--heads 4 --queries 128 --keys 128 --depth 64 --dtype f16"],
    }

    def setUp(self):
        self.program = pathlib.Path(support.program).resolve()
        double = self.program.parent / "tests" / "record.so"
        if support.quick or not double.exists():
            self.skipTest("a sanitizer's library wants to be loaded first" if support.quick else f"no {double}")
        patch = mock.patch.object(launches, "RECORD", double)
        patch.start()
        self.addCleanup(patch.stop)

    def record(self, choices=None, cards=(CARD,), **more):
        return launches.record(ROOT / "src", self.program, choices or self.CHOICES, self.PROBLEMS, cards, 1, text=True, **more)

    def test_the_same_twice(self):
        """Whatever the addresses are, in another folder, and after other candidates."""
        first = self.record()
        self.assertEqual(first, self.record())
        self.assertEqual([key for key, record in first.items() if record.failed], [])
        self.assertEqual({choice for _, choice, _ in first}, {choice for list_ in self.CHOICES.values() for choice in list_})
        alone = self.record({"spmm": [self.CHOICES["spmm"][i] for i in (2, -1)]})
        self.assertEqual({key: first[key] for key in alone}, alone)
        self.assertEqual(len(alone), 4)

    def test_what_a_record_says(self):
        found = self.record()
        wgmma, simt = self.CHOICES["spmm"][0], self.CHOICES["spmm"][2]
        records = [found[CARD, wgmma, f"spmm {problem}"] for problem in self.PROBLEMS["spmm"]]
        self.assertNotEqual(records[0].launches, records[1].launches)  # another pattern
        self.assertEqual(records[0].programs, records[1].programs)
        [(file, entry, options)] = records[0].programs
        self.assertEqual((file, entry), ("spmm_sm90_wgmma.cu", "spmm_sm90_wgmma"))
        self.assertIn("--gpu-architecture=sm_90a", options)
        self.assertIn("launch of program 0, grid", records[0].text)
        self.assertIn("copy in", records[0].text)
        for operand in ("values+0", "b+0", "d+0"):
            self.assertIn(operand, records[0].text)
        self.assertEqual(len(found[CARD, self.CHOICES["attention"][0], f"attention {self.PROBLEMS['attention'][0]}"].programs), 2)  # and its parts together
        self.assertNotEqual(found[CARD, simt, f"spmm {self.PROBLEMS['spmm'][0]}"].launches, records[0].launches)

    def test_what_a_library_is_asked(self):
        """A call with all that its descriptors were given, among the launches."""
        found = self.record({**self.VENDORS, "gemm": ["cublas_gemm ALGO=1", "cublas_gemm ALGO=0"]})
        texts = {choice.split()[0]: record.text for (_, choice, problem), record in found.items() if "--seed" not in problem}
        layout = r"\{layout 0 -1: 2 40 40 40\}"
        for row, pattern in {
            "cublas_gemm": rf"cublasLtMatmul algorithm \w+ 0 .*\{{product 0 -1: 44 7: 4 8: bias\+0\}} b\+0 {layout} a\+0 {layout} d\+0 {layout} d\+0 {layout}",
            "cublas_dense": r"fill .*\n.*launch of program 0.*values\+0.*\n.*cublasLtMatmul algorithm \w+ 15 workspace \d+",
            "cublas_dense_sddmm": r"cublasLtMatmul algorithm \w+ 2 .*\n.*launch of program 0",
            "cublas_blocks": r"cublasGemmBatchedEx ops 0 0 sizes 64 64 64 .* \{cublas 0 0: 0 1: m\d+",
            "cusparse_bsr": r"cusparseSpMM ops 0 0 compute 0 algorithm 14 3f000000 0 .*\{bsr .* values\+0 .*\{dense .* b\+0 .*\{dense .* d\+0 ",
            "cusparse_blocked_ell": r"launch of program 0.*\n.*cusparseSpMM ops 0 0 compute 0 algorithm 13 .*\{ell ",
            "cudnn_attention": r"cudnnBackendExecute .* 1 = q\+0 2 = k\+0 3 = v\+0 4 = o\+0 6 = 3f000000 m\d+",
        }.items():
            with self.subTest(row=row):
                self.assertRegex(texts[row], pattern)
        self.assertNotEqual(texts["cublas_gemm"], found[CARD, "cublas_gemm ALGO=1", f"gemm {self.PROBLEMS['gemm'][0]}"].text)

    def test_another_card(self):
        card = "NVIDIA A100-SXM4-80GB"
        found = self.record(cards=(card,))
        vendors = {choice.split()[0] for list_ in self.VENDORS.values() for choice in list_}
        self.assertEqual({choice.split()[0] for _, choice, _ in found}, {"spmm_sm80_warp", "spmm_cuda_simt", "attention_sm80", *vendors})
        self.assertTrue(all("--gpu-architecture=sm_80 " in options for record in found.values() for _, _, options in record.programs))

    def test_every_entry_has_parameters(self):
        for program in program_text.programs(ROOT / "src"):
            with self.subTest(program=program.name):
                self.assertTrue(layouts.entries_of(ROOT / "src", program))
