"""Masks of attention from the command line: every shape of the library's table, and docs/adding-a-mask-shape.md."""
import re

import support
from support import CliTest

ROOT = support.HERE.parent.parent
PAGE = (ROOT / "docs/adding-a-mask-shape.md").read_text()


class Page(CliTest):
    def test_shows_what_is_compiled(self):
        shown = re.findall(r"<!-- (\S+) -->\n```c\n(.*?)```\n", PAGE, re.DOTALL)
        self.assertEqual(len(shown), 5)
        for name, code in shown:
            self.assertTrue(re.sub(" +", " ", code) in re.sub(" +", " ", (ROOT / name).read_text()), f"{name} has no\n{code}")

    def test_its_commands_run(self):
        commands = re.findall(r"^build/release/sparsek (.*)$", PAGE, re.MULTILINE)
        self.assertEqual(len(commands), 2)
        for line in commands:
            self.cli(*line.split())

    def test_files_are_where_the_page_says(self):
        for name in re.findall(r"`((?:src|include|tests|cli|python|rust)/[\w/.-]+)`", PAGE):
            self.assertTrue((ROOT / name).exists(), name)


class Table(CliTest):
    def help(self):
        """Each entry in one line."""
        return re.sub(r"\n {10,}", " ", self.cli("gen", "--help").stdout)

    def shapes(self):
        """(name, help) of each shape, as the help has them."""
        part = re.search(r"Shapes of masks.*?\n\n(.*?)\n\n", self.help(), re.DOTALL)[1]
        return dict(re.findall(r"^  (\S+) +(\S.*)$", part, re.MULTILINE))

    def needed(self):
        """Of each shape the options that it must be given, by the help, with values."""
        options = {"video": ["--cells", "3x6x8"]}
        for option, shapes in re.findall(r"^  --(\S+) N +mask ([^:]+): .*\(needed\)", self.help(), re.MULTILINE):
            for shape in shapes.split(", "):
                options[shape] = [*options.get(shape, []), f"--{option}", "20"]
        return options

    def test_help_has_every_shape(self):
        shapes = list(self.shapes())
        self.assertEqual(shapes[:10], "causal window sinks documents strided random selected video nsa prefix".split())  # numbers stay
        page = (ROOT / "docs/generators.md").read_text().split("| shape | keeps |")[1].split("\n\n")[0]
        self.assertEqual(re.findall(r"^\| `(\S+)` \|", page, re.MULTILINE), shapes, "shapes of the help, and of docs/generators.md")

    def test_every_shape_is_made(self):
        needed = self.needed()
        self.assertEqual(needed["prefix"], ["--prefix", "20"])
        for name in self.shapes():
            with self.subTest(name=name):
                line = [] if name == "video" else ["--rows", "200", "--cols", "320"]
                made = self.json("gen", "mask", "--shape", name, *line, *needed.get(name, []), "--block", "16", "-o", "m.safetensors")["results"][0]
                self.assertEqual(made["shape"], name)
                self.assertGreater(made["nnzb"], 0)
                self.assertIn(f"'sparsek gen mask --shape {name}'" if name not in ("causal", "window", "random") else "", self.cli("gen", name, "-o", "m.mtx", "--rows", "32", "--block", "8", code=None).stderr)

    def test_options_of_some(self):
        made = self.json("gen", "mask", "--shape", "prefix", "--prefix", "64", "--rows", "96", "--block", "32", "-o", "m.safetensors")["results"][0]
        self.assertEqual(made["nnzb"], 2 + 2 + 3)
        made = self.json("gen", "mask", "--shape", "documents", "--lengths", "32,0,64", "--rows", "96", "--block", "32", "-o", "m.safetensors")["results"][0]
        self.assertEqual(made["nnzb"], 1 + 1 + 2)
        line = ["gen", "mask", "--shape", "window", "--window", "32", "--rows", "96", "--cols", "128", "--block", "32", "-o", "m.safetensors"]
        self.assertEqual(self.json(*line)["results"][0]["nnzb"], 2 + 2 + 2)
        self.assertEqual(self.json(*line, "--top-left")["results"][0]["nnzb"], 1 + 2 + 2)
        self.assertEqual(self.json(*line, "--window-right", "33")["results"][0]["nnzb"], 3 + 3 + 2)

    def test_a_share_of_nothing(self):
        made = [self.json("gen", "mask", "--shape", "random", "--density", share, "--rows", "64", "--block", "16", "-o", "m.safetensors")["results"][0]["nnzb"]
                for share in ("0", "1e-9")]
        self.assertEqual(made, [0, 4])
        self.assertIn("one at least, none if it is 0", self.shapes()["random"])

    def test_what_is_refused(self):
        for line, why in ((["prefix"], "--shape prefix needs --prefix: so many of the first keys"), (["prefix", "--prefix", "-1"], "-1 is not between 0 and 1099511627776\n"),
                          (["prefix", "--prefix", "4", "--all-keys"], "--all-keys does not go with --shape prefix"),
                          (["window", "--window", "3x4x5"], "--window: of --shape window it is one number"), (["windows"], "did you mean window?"),
                          (["documents", "--tokens", "0-5"], "--tokens: 0 is not between 1 and"),
                          (["documents", "--lengths", "3-4"], "--lengths: of documents it is a list like 100,28,172, not '3-4'"),
                          (["documents", "--lengths", "8", "--tokens", "3-4", "--rows", "8"], "lengths are given, too"),
                          (["documents", "--lengths", "3,4", "--rows", "8"], "lengths: their sum is 7, but there are 8 keys")):
            with self.subTest(line=line):
                self.assertIn(why, self.cli("gen", "mask", "--shape", *line, "-o", "m.safetensors", code=2).stderr)
