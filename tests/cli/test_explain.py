"""explain on evidence that is written down, not measured: what it says of times that do not compare."""
import json

from support import SMALL, SMALL_CLASS, CliTest

BARS = "█▏▎▍▌▋▊▉"


class Explain(CliTest):
    def known(self, store="mine"):
        """The classes of a store, to be written anew."""
        return json.loads(self.cli("store", "export", "-", "--store", self.path(store)).stdout)

    def tell(self, store, whole):
        """A new store that says so."""
        self.write(f"{store}.json", json.dumps(whole))
        self.cli("store", "import", f"{store}.json", "--store", self.path(store))
        return self.path(store)

    def rewrite(self, evidence, provisional, rows):
        """Of a class: its candidates with (status, median, spread), a kernel each; the first is the chosen one. Gives their names."""
        names, rest = [], list(rows)
        for i, c in enumerate(evidence["candidates"]):
            may = c["status"] not in ("not_applicable", "not_eligible") and c["name"] not in names and rest
            if c["status"] not in ("not_applicable", "not_eligible"):
                c.update(status="pruned", why="the budget ended before its turn", median_us=0.0, spread_us=0.0)
            else:  # a dense product that may not win is measured in what time there is left
                c.update(median_us=0.0, spread_us=0.0)
            if may:
                status, median, spread = rest.pop(0)
                why = None if status == "ok" else "one run took long" if status == "timed_out" else "1.40 times the best when screened"
                c.update(status=status, why=why, median_us=median, spread_us=spread, error=0.0)
                evidence["chosen"] = evidence["chosen"] if names else i
                names.append(c["name"])
        self.assertEqual(rest, [])
        evidence["provisional"] = provisional
        return names

    def explained(self, provisional, *rows):
        """Of a small product: the names, the lines of their rows, the whole text as one line, and the JSON's candidates by name."""
        whole = json.loads(self.text)
        names = self.rewrite(whole["classes"][0], provisional, rows)
        self.stores += 1
        store = self.tell(f"told{self.stores}", whole)
        shown = self.cli("explain", *SMALL_CLASS, "--store", store).stdout
        lines = [next((i, line) for i, line in enumerate(shown.splitlines()) if line[2:].startswith(name + " ")) for name in names]
        candidates = self.bench("explain", *SMALL_CLASS, "--store", store)["results"][0]["candidates"]
        timed = {c["name"]: c for c in candidates if c["median_us"]}
        return lines, " ".join(shown.split()), [timed[name] for name in names]

    def test_whose_evidence(self):
        """Where the nearest class decides, its times are not this problem's: no rates of them, and a race measures."""
        self.stores = 0
        self.cli("tune", *SMALL, "--store", self.path("mine"))
        self.text = json.dumps(self.known())
        whole = json.loads(self.text)
        self.rewrite(whole["classes"][0], None, [("ok", 200.0, 5.0), ("ok", 300.0, 4.0)])
        store = self.tell("near", whole)
        near = [arg if arg != "24" else "32" for arg in SMALL_CLASS]
        shown = " ".join(self.cli("explain", *near, "--store", store).stdout.split())
        self.assertIn("nearest class, of n=", shown)
        self.assertIn("and no times of this problem", shown)
        self.assertNotIn("from the store, measured", shown)
        self.assertNotIn("GFLOP/s", shown)
        self.assertIn("n=32", shown.split("class: ")[1].replace(" ", ""))
        result = self.bench("explain", *near, "--store", store)["results"][0]
        self.assertTrue(result["foreign"] and result["origin"].startswith("nearest class, of n="))
        self.assertTrue(any(c["median_us"] for c in result["candidates"]))
        self.assertEqual({c["tflops"] for c in result["candidates"]} | {c["dense_equivalent_tflops"] for c in result["candidates"]}, {None})
        own = self.bench("explain", *SMALL_CLASS, "--store", store)["results"][0]
        self.assertEqual((own["foreign"], own["origin"]), (False, None))
        self.assertTrue(any(c["tflops"] for c in own["candidates"]))
        raced = self.bench("bench", *near, "--budget", "0.3", "--store", store)["results"][0]
        self.assertEqual((raced["foreign"], raced["from_store"]), (False, False))

    def test_first_looks(self):
        self.stores = 0
        self.cli("tune", *SMALL, "--store", self.path("mine"))
        self.text = json.dumps(self.known())

        for status, median in (("pruned", 100.0), ("timed_out", 150.0)):
            (chosen, other, look), shown, timed = self.explained(None, ("ok", 200.0, 5.0), ("ok", 300.0, 4.0), (status, median, 0.0))
            self.assertLess([chosen[0], other[0]], [other[0], look[0]], "those of the rounds come first")
            for (_, line), text, spread, bar in ((chosen, " 200.0 ", True, True), (other, " 300.0 ", True, True), (look, f"~{median} ", False, False)):
                self.assertIn(text, line)
                self.assertEqual("±" in line, spread, line)
                self.assertEqual(any(c in line for c in BARS), bar, line)
            self.assertTrue(chosen[1].startswith("> "))
            self.assertIn("~: a first look", shown)
            self.assertIn("It does not compare with the times of the interleaved rounds", shown)
            self.assertNotIn("least us", shown)
            self.assertNotIn("is no mistake", shown)
            self.assertEqual([(c["median_us"], c["spread_us"]) for c in timed], [(200, 5), (300, 4), (median, None)])

        (chosen, other), shown, timed = self.explained(None, ("ok", 200.0, 5.0), ("ok", 300.0, 4.0))
        self.assertNotIn("~", shown.split("class:")[0])

        (chosen, look), shown, timed = self.explained("budget", ("ok", 200.0, 0.0), ("pruned", 260.0, 0.0))
        self.assertIn("there were no interleaved rounds", shown)
        self.assertIn("~200.0", chosen[1])
        self.assertTrue(any(c in look[1] for c in BARS), "first looks compare with each other")

    def test_a_busy_machine(self):
        """The choice went by the least time, which is not kept."""
        self.stores = 0
        self.cli("tune", *SMALL, "--store", self.path("mine"))
        self.text = json.dumps(self.known())
        (chosen, other), shown, _ = self.explained("load", ("ok", 200.0, 5.0), ("ok", 150.0, 4.0))
        self.assertLess(other[0], chosen[0])
        self.assertIn("A smaller median than the chosen one's is no mistake", shown)
        for rows in ((("ok", 200.0, 5.0), ("ok", 250.0, 4.0)), (("ok", 200.0, 5.0), ("pruned", 150.0, 0.0))):
            self.assertNotIn("is no mistake", self.explained("load", *rows)[1])

    def test_what_a_mask_saves(self):
        line = ["--op", "attention", "--heads", "2", "--depth", "16"]
        masked, full = ["m.safetensors", *line], ["--queries", "192", "--keys", "192", *line]
        self.cli("gen", "mask", "--shape", "window", "--window", "32", "--rows", "192", "--block", "16", "-o", "m.safetensors")
        self.cli("tune", *masked, "--budget", "0.05", "--store", self.path("mine"))
        shown = " ".join(self.cli("explain", *masked, "--store", self.path("mine")).stdout.split())
        self.assertIn("estimates and no times of the table, as the store does not know the attention without the mask", shown)
        self.cli("tune", *full, "--budget", "0.05", "--store", self.path("mine"))
        text = json.dumps(self.known())
        for i, (provisional, source) in enumerate(((None, "(both measured)."), ("load", "(both measured, but on a busy machine or for too short a time: the ratio says little)."))):
            whole = json.loads(text)
            for evidence in whole["classes"]:
                if "lists=" in evidence["key"]:
                    self.rewrite(evidence, None, [("ok", 100.0, 1.0)])
                else:  # what is ahead of the chosen one is no other time of full attention
                    self.rewrite(evidence, provisional, [("ok", 400.0, 2.0), ("pruned", 300.0, 0.0)])
            store = self.tell(f"told{i}", whole)
            shown = " ".join(self.cli("explain", *masked, "--store", store).stdout.split())
            self.assertIn(f"takes 0.25 of the time of the same attention without it, 100 us for 400 us {source}", shown)
            self.assertIn(" takes 400 us", " ".join(self.cli("explain", *full, "--store", store).stdout.split()))
            unmasked = self.bench("explain", *masked, "--store", store)["results"][0]["unmasked"]
            self.assertEqual((unmasked["masked_us"], unmasked["whole_us"], unmasked["measured"], unmasked["provisional"]), (100, 400, True, provisional is not None))
        for more in (("--sequences", "4"), ("--tiles", "3")):
            self.cli("tune", *masked, *more, "--budget", "0.05", "--store", self.path("mine"))
            kept = self.json("explain", *masked, *more, "--store", self.path("mine"))["results"][0]["unmasked"]["kept"]
            self.assertTrue(0 < kept <= 1, f"{more}: {kept}")
