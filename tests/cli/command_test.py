"""Commands as cases of plans: figures, failures, and that all that reads runs takes them."""

import json
import unittest

from assay_case import AssayCase

PROGRAM = """
import os, sys
for step in range(1, 5):
    print(f"step {step}: loss {5 - step}.5, rate: {int(os.environ.get('RATE', '1000')) + step} tokens/s", flush=True)
open("ran", "a").write("x")
sys.exit(int(os.environ.get("CODE", "0")))
"""


class CommandTest(AssayCase):
    def setUp(self):
        super().setUp()
        self.program = self.write("train.py", PROGRAM)

    def entry(self, **members):
        return {"family": "command", "name": "finetune", "argv": ["python3", str(self.program)], "metric": "rate",
                "runs": 6, "warmup": 1, **members}

    def test_a_command_by_words(self):
        done = self.assay("run", "command", f"argv=python3 {self.program} 'a,b'", "runs=2", "warmup=1", "--out", "out",
                          "--device", "cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        (record,) = self.records()
        self.assertEqual(record["key"], f"command/argv=python3 {self.program} 'a,b'/runs=2/warmup=1/timeout=600")
        self.assertEqual((self.dir / "ran").read_text(), "xxx")
        self.assertEqual(record["metrics"][0]["name"], "wall_time")
        self.assertGreater(self.metrics(record)["peak_memory"], 1e6)

    def test_a_plan_and_what_reads_its_runs(self):
        done, (record,) = self.measure(self.entry(env={"RATE": "2000"}), out="base")
        self.assertEqual(done.returncode, 0, done.stderr)
        rate = self.by_name(record["metrics"])["rate"]
        self.assertEqual((rate["value"], rate["unit"], rate["better"]), (2002.5, "tokens/s", "higher"))
        self.assertEqual(record["params"]["env"], "RATE=2000")

        # A floor in the figure's own unit and name.
        key = record["key"]
        for least, code in ((2000, 0), (3000, 1)):
            self.write("floors.json", {"schema": 1, "floors": [
                {"key": key, "metric": "rate", "unit": "tokens/s", "at_least": f"{least} tokens/s",
                 "source": "the last release"}]})
            self.assertEqual(self.assay("check", "base", "--floors", "floors.json").returncode, code)

        compared = self.assay("compare", "--base", "base", "--head", "base", "--json")
        self.assertIn("rate", compared.stdout)
        shown = self.assay("report", "base", "--price", "2")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("finetune, rate", shown.stdout)
        self.assertIn("M tokens", shown.stdout)
        self.assertEqual(self.assay("history", "add", "base", "--store", "h.sqlite").returncode, 0)
        exported = self.assay("export", "csv", "base", "--out", "out.csv")
        self.assertEqual(exported.returncode, 0, exported.stderr)
        self.assertIn("2002.5", (self.dir / "out.csv").read_text())

    def test_a_failed_run_has_its_last_lines(self):
        done, (record,) = self.measure(self.entry(env={"CODE": "3"}))
        self.assertEqual(done.returncode, 1)
        self.assertEqual(record["status"], "failed")
        check = self.by_name(record["checks"])["exit_code"]
        self.assertEqual(check["detail"][0], "warm-up 1: ended with code 3")
        self.assertEqual(check["detail"][-1], "step 4: loss 1.5, rate: 1004 tokens/s")
        self.assertEqual(record["metrics"], [])
        self.assertIn("ended with code 3", record["reason"])

    def test_a_figure_that_is_not_there(self):
        done, (record,) = self.measure(self.entry(metric="ratio"))
        self.assertEqual(done.returncode, 1)
        self.assertIn('no figure "ratio"', record["reason"])

    def test_what_is_refused(self):
        for members, says in (({"argv": []}, '"argv" is empty'), ({"argv": {"a": "b"}}, "a command: text or a list"),
                              ({"argv": ["a", 1]}, "must be text"), ({"env": ["A=1"]}, "an object of variables"),
                              ({"metric": "", "unit": "s"}, "belongs to a metric"), ({"runs": 0}, "runs"),
                              ({"metrics": "rate"}, 'did you mean "metric"')):
            done = self.assay("run", self.plan(self.entry(**members)), "--out", "no", "--device", "cpu")
            self.assertEqual(done.returncode, 2, (members, done.stderr))
            self.assertIn(says, done.stderr)
            self.assertFalse((self.dir / "no").exists())
        done = self.assay("run", "command", "--out", "no", "--device", "cpu")
        self.assertEqual(done.returncode, 2)
        self.assertIn("argv is empty: name the command", done.stderr)


if __name__ == "__main__":
    unittest.main()
