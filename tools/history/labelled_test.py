#!/usr/bin/env python3
"""The scores of labelled.py: of sets whose F1 is known, and of made-up files through the program history_changes."""

import json
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import labelled


class LabelledTest(unittest.TestCase):
    def test_scores(self):
        self.assertEqual(labelled.score([[50]], [50], 5), (1, 1, 1))
        self.assertEqual(labelled.score([[50]], [55], 5), (1, 1, 1))
        self.assertEqual(labelled.score([[50]], [56], 5), (0.5, 0.5, 0.5))  # the start is right
        self.assertEqual(labelled.score([[]], [], 5), (1, 1, 1))
        # Two people: precision against both, recall their mean. One place is one change.
        f1, precision, recall = labelled.score([[50], [50, 80]], [50], 5)
        self.assertEqual((precision, round(recall, 6)), (1, round((1 + 2 / 3) / 2, 6)))
        self.assertAlmostEqual(f1, 2 * recall / (1 + recall))
        self.assertEqual(labelled.matched({50, 52}, {51}, 5), 1)

    def test_finds_the_steps_of_a_tcpd_folder(self):
        noise = random.Random(1)
        step = [100 * (1.1 if i >= 60 else 1) * (1 + noise.gauss(0, 0.01)) for i in range(120)]
        below = [(8 if i >= 60 else -8) + noise.gauss(0, 1) for i in range(120)]  # has no logarithm
        below[20] = None
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for title, values in (("step", step), ("below", below), ("quiet", [100 + noise.gauss(0, 1) for _ in step])):
                (folder / "datasets" / title).mkdir(parents=True)
                (folder / "datasets" / title / f"{title}.json").write_text(
                    json.dumps({"n_dim": 1, "series": [{"raw": values}]}))
            (folder / "annotations.json").write_text(json.dumps(
                {"step": {"6": [60]}, "below": {"6": [60], "7": [60]}, "quiet": {"6": []}, "absent": {"6": [3]}}))
            done = subprocess.run([sys.executable, labelled.__file__, "--changes", PROGRAM, "--tcpd", name],
                                  capture_output=True, text=True, check=True)
            self.assertIn("left out: absent", done.stderr)
            rows = {line.split(" | ")[0].strip("| *"): line.strip(" |").split(" | ")[1:] for line in done.stdout.splitlines()}
            for column in (rows["series"].index("alarms"), rows["series"].index("levels")):
                for title in ("step", "below", "quiet", "F1"):
                    self.assertEqual(float(rows[title][column]), 1, done.stdout)
            self.assertEqual(float(rows["step"][rows["series"].index("no change")]), 0.667)

    def test_an_excursion_is_an_alarm_and_no_level(self):
        noise = random.Random(3)
        values = " ".join(str(noise.gauss(0, 0.01) + (0.2 if 60 <= i < 75 else 0)) for i in range(160))
        places = [subprocess.run([PROGRAM, *words], input=f"a {values}\n", capture_output=True, text=True, check=True).stdout
                  for words in ([], ["--levels"])]
        self.assertEqual(places, ["a 60 75\n", "a\n"])

    def test_refuses_other_words(self):
        done = subprocess.run([PROGRAM, "--level"], input="", capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (2, "history_changes: only --levels can be asked for\n"))

    def test_says_what_is_no_number(self):
        done = subprocess.run([PROGRAM], input="a 1 2 x\n", capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (2, 'history_changes: a: "x" is not a number\n'))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
