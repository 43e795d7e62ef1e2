"""Golden runs: report, compare and check say about the runs in tests/runs what they have always said, in keys, ids, numbers,
units, statuses and exit codes. tests/runs/make.py defines the commands and the comparison."""

import itertools
import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "runs"))
from make import answer, commands, differences, expectation  # noqa: E402

SHOWN = 12


class GoldenRuns(unittest.TestCase):
    def test_every_command_answers_as_before(self):
        for name, words in commands():
            with self.subTest(name):
                expected = json.loads(expectation(name).read_text())
                found = list(itertools.islice(differences(expected, answer(os.environ["ASSAY"], words)), SHOWN))
                if found:
                    self.fail("\n".join(["assay " + " ".join(words), *(
                        f"{path}: expected {json.dumps(left)[:200]}, found {json.dumps(right)[:200]}"
                        for path, left, right in found)]))

    def test_every_expectation_has_its_command(self):
        self.assertEqual(sorted(path.stem for path in expectation("any").parent.glob("*.json")),
                         sorted(name for name, _ in commands()))


if __name__ == "__main__":
    unittest.main()
