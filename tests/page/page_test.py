"""The family that docs/add-a-benchmark.md explains, run as a user would."""

import json
import os
import pathlib
import unittest

from assay_case import AssayCase
from extract import blocks

QUICK = {"max_seconds": 0.1, "warmup_seconds": 0.01, "min_samples": 6}


class Page(AssayCase):
    def run_sum(self, *words):
        return self.measure({"family": "sum", "bytes": "64KiB"}, words=words, protocol=QUICK)

    def test_a_family_is_one_folder_one_line_and_at_most_60_lines_of_code(self):
        shown = blocks(pathlib.Path(os.environ["PAGE"]).read_text())
        self.assertEqual([(path, added) for path, added, _ in shown],
                         [("suites/sum/sum.cpp", False), ("suites/sum/CMakeLists.txt", False), ("cli/catalogue.cpp", True)])
        for path, added, code in shown:
            self.assertLessEqual(len(code.splitlines()), 1 if added else 60, path)

    def test_it_is_listed_with_its_axis(self):
        done = self.assay("list", "families", "--json")
        listed = {family["name"]: family for family in json.loads(done.stdout)["families"]}
        self.assertEqual(listed["sum"]["params"][0]["defaults"], [65536, 16777216])

    def test_it_runs_and_its_answer_is_checked(self):
        done, records = self.run_sum()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([record["key"] for record in records], ["sum/bytes=65536"])
        self.assertGreater(self.metrics(records[0])["bandwidth"], 0)

    def test_a_wrong_answer_fails(self):
        done, records = self.run_sum("--inject", "bit-flip")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual((records[0]["status"], records[0]["checks"][0]["name"]), ("failed", "right_sum"))


if __name__ == "__main__":
    unittest.main()
