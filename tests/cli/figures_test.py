"""What commands print is read in one way: by `assay ab`, `history confirm`, `history bisect` and `import lines`."""

import json
import math
import os
import pathlib
import shlex
import shutil
import subprocess
import unittest

from history_case import HistoryCase

UNIT = "items/s"
METRIC = ("items_per_second", UNIT, "higher")


def whole(value):
    return json.dumps({"host": "box", "parse": value, "unit": UNIT, "better": "higher"}, indent=1)


def gbench(value):
    entry = {"run_name": "parse", "run_type": "iteration", "iterations": 3, "real_time": 2.0, "time_unit": "ms"}
    return json.dumps({"context": {"host_name": "box"}, "benchmarks": [
        {**entry, "name": "parse", "items_per_second": value}, {**entry, "run_name": "scan", "items_per_second": 1}]}, indent=1)


# The same figure, by what is printed for a value.
FORMS = {
    "name value unit better": lambda value: f"parse {value} {UNIT} higher\nscan 1 s lower\n",
    "name value unit": lambda value: f"parse {value} {UNIT}\n",
    "name=value": lambda value: f"parse={value} {UNIT}",
    "name: value": lambda value: f"parse: {value} {UNIT}\n",
    "the last line": lambda value: "warming up\n" + json.dumps({"parse": value, "unit": UNIT, "better": "higher"}) + "\n",
    "a document": lambda value: f"# reading\n{whole(value)}\ndone\n",
    "Google Benchmark": gbench,
    "colours": lambda value: f"\x1b[1mparse\x1b[0m: \x1b[32;1m{value}\x1b[0m {UNIT}\n",
    "progress": lambda value: f"parse: 1 {UNIT}\rparse: 2 {UNIT}\rparse: {value} {UNIT}   \nscan: 3 s\n",
    "CRLF and thousands": lambda value: f"scan: 3 s\r\nparse = {value:,} {UNIT}\r\n",
    "several on a line": lambda value: f"[12:30:01] step 10, loss: 0.5, parse: {value / 1e3:g} k {UNIT}, lr=1e-4 (of 3)\n",
    "samples and exponents": lambda value: "".join(f"step {n} parse {scale * value:.4e} {UNIT}\n"
                                                   for n, scale in enumerate((0.5, 1, 3))),
}


class Forms(HistoryCase):
    good, bad = 5000, 4000

    def setUp(self):
        super().setUp()
        for name in ("assay-good", "checkout", "bin"):
            (self.dir / name).mkdir()
        (self.dir / "bin/assay").symlink_to(pathlib.Path(self.binary).resolve())

    def write_forms(self, form):
        """The output of the good and of the bad build; the name of the figure."""
        (self.dir / "assay-good/out").write_bytes(FORMS[form](self.good).encode())
        (self.dir / "checkout/out").write_bytes(FORMS[form](self.bad).encode())
        return "gbench:parse:items_per_second" if form == "Google Benchmark" else "parse"

    def test_ab(self):
        for form in FORMS:
            with self.subTest(form):
                metric = self.write_forms(form)
                done = self.assay("ab", "--a", "cat assay-good/out", "--b", "cat checkout/out", "--metric", metric, "--json")
                self.assertEqual((done.returncode, done.stderr), (1, ""))
                [case] = json.loads(done.stdout)["cases"]
                self.assertEqual((case["name"], case["a"], case["b"], case["unit"], case["verdict"]),
                                 (metric, self.good, self.bad, UNIT, "slower"))

    def test_import(self):
        for number, form in enumerate(FORMS):
            with self.subTest(form):
                metric = self.write_forms(form)
                done = self.assay("import", "lines", "assay-good/out", "--metric", metric, "--out", f"run-{number}")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                [record] = self.records(f"run-{number}")
                [found] = record["metrics"]
                self.assertEqual((record["key"], found["value"], found["unit"], found["better"]),
                                 ("imported/parse", self.good, UNIT, "higher"))

    def test_confirm(self):
        self.add(range(42), cases=["parse"], metric=METRIC, step=lambda machine, case, night:
                 math.log(0.8) if night >= 41 else 0)
        [suspect] = self.check()["suspects"]
        for form in FORMS:
            metric = self.write_forms(form)
            # Without --metric the figure is found by the names of the series.
            for words in (["--metric", metric], []):
                with self.subTest(form, words=words):
                    shutil.copy(self.dir / "h.db", self.dir / "copy.db")
                    done = self.history("confirm", suspect["id"], "--good", "cat assay-good/out", "--bad", "cat checkout/out",
                                        *words, store="copy.db", code=1)
                    self.assertRegex(done.stdout, r": slower \(-20\.0 %\)")
                    self.assertEqual(done.stderr, "")

    def test_bisect(self):
        self.add(range(42), cases=["parse"], metric=METRIC, step=lambda machine, case, night:
                 math.log(0.8) if night >= 41 else 0, commit=lambda machine, night: "c2" if night >= 41 else "c1")
        [suspect] = self.check()["suspects"]
        env = {**os.environ, "PATH": f"{self.dir}/bin:{os.environ['PATH']}"}
        for form in FORMS:
            with self.subTest(form):
                metric = self.write_forms(form)
                printed = self.history("bisect", suspect["id"], "--build", "true", "--run", "cat out", "--metric",
                                       metric).stdout.splitlines()[-1]
                judge = shlex.split(printed)[-1]   # of git bisect run sh -c
                done = subprocess.run(["sh", "-c", judge], cwd=self.dir / "checkout", env=env, stdin=subprocess.DEVNULL,
                                      capture_output=True, text=True, timeout=60)
                self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                self.assertIn("-20.0 %", done.stdout)

    def test_a_direction_that_is_not_printed(self):
        for name, value in (("assay-good", 5), ("checkout", 4)):
            (self.dir / name / "out").write_text(f"parse={value}\n")
        words = ("--a", "cat assay-good/out", "--b", "cat checkout/out", "--metric", "parse")
        self.refused("ab", *words, says=("A: its output", "--better"))
        self.assertEqual(self.assay("ab", *words, "--better", "higher").returncode, 1)
        self.assertEqual(self.assay("ab", *words, "--better", "lower").returncode, 0)
        self.refused("import", "lines", "checkout/out", "--metric", "parse", "--out", "r", says=("checkout/out", "--better"))

    def test_bisect_says_the_direction(self):
        self.add(range(42), cases=["parse"], metric=METRIC, store="b.db", commit=lambda machine, night: f"c{night >= 41}",
                 step=lambda machine, case, night: math.log(0.8) if night >= 41 else 0)
        [suspect] = self.check(store="b.db")["suspects"]
        for words, says in ((["--metric", "parse"], "--better higher"), (["--metric", "lines"], "--metric"), ([], "--case")):
            printed = self.history("bisect", suspect["id"], *words, store="b.db").stdout
            self.assertIn(says, printed)
            self.assertEqual("--better" in printed, "parse" in words)


class Refusals(HistoryCase):
    def refused_ab(self, text, *words, metric="rate", says):
        (self.dir / "out").write_bytes(text.encode())
        self.refused("ab", "--a", "cat out", "--b", "cat out", "--metric", metric, *words, says=("A: its output", *says))
        self.refused("import", "lines", "out", "--metric", metric, *words, "--out", "run", says=("out", *says))
        self.assertFalse((self.dir / "run").exists())

    def test_what_is_wrong_is_said(self):
        for text, says in (("rate: nan\n", ("nan", "no number")), ("rate: n/a\n", ("n/a",)), ("rate=1,5 s\n", ("1,5",)),
                           ("train rate: 1 s\neval rate: 2 s\n", ("train rate", "eval rate")),
                           ("rate: 1 s\nrate: 2 B\n", ("several units",)), ("rates: 1 s\n", ('did you mean "rates"',)),
                           ("", ("nothing",)), ('{"rate": null}\n', ("null",)), ("rate failed wrong sum\n", ("wrong sum",))):
            with self.subTest(text):
                self.refused_ab(text, says=says)
        self.refused_ab("rate 1 s lower\n", "--better", "higher", says=("lower", "higher"))
        self.refused_ab(gbench(5), metric="gbench:parse:real_tim", says=("gbench:parse:real_time",))

    def test_a_last_line_among_several_is_remarked(self):
        command = "echo '{\"rate\": 1, \"better\": \"lower\"}'"
        done = self.assay("ab", "--a", f"{command}; {command}", "--b", command, "--metric", "rate", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, 'assay: ab: A: its output has "rate" more than once: only its last line counts\n')

    def test_output_that_was_cut_is_remarked(self):
        much = "head -c 70000000 /dev/zero; echo; echo rate: 1 s"
        done = self.assay("ab", "--a", much, "--b", much, "--metric", "rate", "--tolerance", "90%")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("A: its output was too long", done.stderr)
        self.refused("ab", "--a", much, "--b", much, "--metric", "gone", says="too long")

    def test_flags_of_import(self):
        self.write("out", "rate 1 s lower\n")
        self.refused("import", "csv", "out", "--metric", "rate", "--out", "r", says="lines")
        self.refused("import", "lines", "out", "--better", "lower", "--out", "r", says="--metric")
        self.refused("import", "lines", "out", "--metric", "time", "--out", "r", says="time")
        self.write("two", "rate: 1 s, loss: 2 s\n")
        done = self.assay("import", "lines", "two", "--metric", "rate", "--metric", "loss", "--out", "r")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([record["key"] for record in self.records("r")], ["imported/rate", "imported/loss"])

    def test_help_has_the_grammar(self):
        for words in (["ab"], ["history", "confirm"], ["history", "bisect"], ["import"]):
            with self.subTest(words):
                self.assertIn("gbench:NAME:METRIC", self.assay(*words, "--help").stdout)


if __name__ == "__main__":
    unittest.main()
