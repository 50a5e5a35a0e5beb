"""The program in processes whose locale has a decimal comma, a point of several bytes, or other capitals: it says and writes the same."""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import unittest

import support

LOCALES = ("de_DE.UTF-8", "ps_AF.UTF-8", "tr_TR.UTF-8", "tr_TR.ISO-8859-9")


@unittest.skipIf(support.quick, "sanitizers want to be loaded first")
class Locale(support.CliTest):
    @classmethod
    def setUpClass(cls):
        cls.locales = tempfile.mkdtemp(prefix="sparsek-locales-")
        subprocess.run([support.HERE.parent / "locale/make.sh", cls.locales], check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.locales)

    def within(self, locale):
        """The variables of a process that has set it."""
        library = pathlib.Path(support.program).parent / "tests/set_locale.so"
        return {"LOCPATH": self.locales, "TEST_LOCALE": locale, "LC_ALL": locale, "LD_PRELOAD": str(library)} if locale else {"LC_ALL": "C"}

    def everywhere(self, *arguments, files=(), code=0):
        """Runs a command without a locale and within each: what it says and the files that it writes are to be the same bytes."""
        seen = {}
        for locale in (None, *LOCALES):
            for name in files:
                (self.folder / name).unlink(missing_ok=True)
            done = self.cli(*arguments, code=code, env=self.within(locale))
            # times, and what is made of them, are estimated from the clock that the processor has at the moment
            seen[locale] = (re.sub(r"[\d.]+( us\b|\s+times\s+as\s+long)", r"N\1", done.stdout), done.stderr, [(self.folder / name).read_bytes() for name in files])
        for locale in LOCALES:
            if locale.endswith("UTF-8"):  # where text is UTF-8, plots have other characters than in C
                self.assertEqual(seen[locale], seen["de_DE.UTF-8"], f"{locale}: {arguments}")
            self.assertEqual(seen[locale][2], seen[None][2], f"{locale}: {arguments}")
        self.assertEqual(seen["tr_TR.ISO-8859-9"], seen[None], arguments)
        return seen[None]

    def test_the_locales_do_what_they_are_for(self):
        """Else the rest proves nothing: in a process of each, printf and toupper go other ways than in C."""
        program = self.path("probe")
        source = '#include <ctype.h>\n#include <stdio.h>\n#include <strings.h>\nint main(void) { printf("%.1f %d", 0.5, strcasecmp("INTEGER", "integer")); return 0; }'
        subprocess.run(["cc", "-x", "c", "-", "-fno-builtin", "-o", program], input=source, text=True, check=True)
        said = {locale: subprocess.run([program], env={**os.environ, **self.within(locale)}, capture_output=True, check=True).stdout for locale in LOCALES}
        self.assertTrue(said["de_DE.UTF-8"].startswith(b"0,5"), said)
        self.assertTrue(said["ps_AF.UTF-8"].startswith("0\u066b5".encode()), said)
        self.assertFalse(said["tr_TR.UTF-8"].endswith(b" 0") and said["tr_TR.ISO-8859-9"].endswith(b" 0"), said)

    def test_capitals(self):
        for number in range(4):
            draw = random.Random(number)
            words = [draw.choice((word.upper(), word.lower(), word.title())) for word in ("MatrixMarket", "matrix", "coordinate", "integer", "general")]
            (self.folder / "a.MTX").write_text(f"%%{' '.join(words)}\n2 2 1\n1 1 3\n")
            with self.subTest(words=words):
                self.assertIn("COO 2 x 2", self.everywhere("inspect", "a.MTX")[0])
        (self.folder / "b.mtx").write_text("%%MatrixMarket MATRIX COORDINATE REAL GENERAL\n1 3 3\n1 1 1.5e-300\n1 2 INFINITY\n1 3 -1.25D+01\n")
        self.everywhere("convert", "b.mtx", "c.npy", files=["c.npy"])
        self.everywhere("convert", "c.npy", "d.MTX", files=["d.MTX"])

    def test_files(self):
        """Written the same, text and JSON."""
        self.everywhere("gen", "uniform", "--rows", "50", "--cols", "70", "--block", "7x9", "--density", "0.37", "-o", "a.mtx", files=["a.mtx"])
        self.everywhere("convert", "a.mtx", "a.safetensors", "--block", "5", "--prune", "12.5%", files=["a.safetensors"])
        self.everywhere("inspect", "a.mtx", "--spy", "a.svg", files=["a.svg"])
        self.everywhere("gen", "uniform", "--density", "0,5", "-o", "b.mtx", code=2)
        self.everywhere("convert", "a.mtx", "b.npy", "--prune", "1e1", code=2)
        self.everywhere("inspect", "missing.mtx", code=3)
        for command in ("--help", "inspect --help", "help --format scd inspect"):
            self.everywhere(*command.split())

    def test_reports_and_stores(self):
        """Measured, so that numbers differ: JSON is JSON, and a store goes out and in again."""
        for locale in LOCALES:
            with self.subTest(locale=locale):
                env = self.within(locale)
                result = json.loads(self.cli("bench", *support.SMALL, "--json", "-", env=env).stdout)
                self.assertGreater(result["results"][0]["candidates"][0]["median_us"], 0)
                told = json.loads(self.cli("explain", *support.SMALL_CLASS, "--json", "-", env=env).stdout)
                self.assertGreater(told["results"][0]["candidates"][0]["median_us"], 0)
                self.cli("store", "export", "out.json", env=env)
                for reader in (None, *LOCALES):
                    store = self.path(f"{locale}-{reader}.db")
                    self.assertIn("1 class taken", self.cli("store", "import", "out.json", "--store", store, env=self.within(reader)).stdout)
                    self.assertIn("1 good entries, 0 bad", self.cli("store", "verify", "--store", store, env=self.within(reader)).stdout)
                    again = self.path("again.json")
                    self.cli("store", "export", again, "--store", store, env=self.within(reader))
                    self.assertEqual(pathlib.Path(again).read_bytes(), (self.folder / "out.json").read_bytes())
                self.assertRegex(self.cli("store", "list", env=env).stdout, r"\d\.\d")
                self.cli("store", "clear", env=env)


if __name__ == "__main__":
    unittest.main()
