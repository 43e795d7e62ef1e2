"""assay bench: Google Benchmark's flags, its JSON, and the exit codes. usage: bench_test.py ASSAY"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ASSAY = sys.argv.pop()
QUICK = "--benchmark_min_time=0.001"
CASE = "launch/op=handoff_block/manual_time"


def bench(*flags):
    return subprocess.run([ASSAY, "bench", *flags], capture_output=True, text=True)


class Bench(unittest.TestCase):
    def test_lists_case_keys(self):
        done = bench("--benchmark_list_tests")
        self.assertEqual(done.returncode, 0, done.stderr)
        names = done.stdout.split()
        self.assertIn(CASE, names)
        for family in ("gemm/", "peak/", "memory/", "collective/", "dataloader/"):
            self.assertTrue(any(name.startswith(family) for name in names), family)
        self.assertEqual(len(names), len(set(names)))

    def test_json_with_counters_and_aggregates(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out.json"
            done = bench(f"--benchmark_filter=^{CASE}$", "--benchmark_format=json", "--benchmark_repetitions=3",
                         f"--benchmark_out={out}", QUICK)
            self.assertEqual(done.returncode, 0, done.stderr)
            shown, written = json.loads(done.stdout), json.loads(out.read_text())
        self.assertEqual([b["name"] for b in shown["benchmarks"]], [b["name"] for b in written["benchmarks"]])
        runs = [b for b in shown["benchmarks"] if b["run_type"] == "iteration"]
        if runs[0].get("error_occurred"):   # one CPU: there is no other thread to hand a task to
            self.assertTrue(runs[0]["error_message"].startswith("skipped: "))
            self.skipTest(runs[0]["error_message"])
        self.assertEqual([b["name"] for b in runs], [CASE] * 3)
        for run in runs:
            self.assertGreater(run["latency"], 0)
            self.assertGreater(run["real_time"], 0)
        self.assertTrue(any(b["name"] == CASE + "_median" for b in shown["benchmarks"]))
        self.assertIn("assay_version", shown["context"])

    def test_a_file_is_replaced_only_by_a_whole_one(self):
        with tempfile.TemporaryDirectory() as folder:
            out, link = pathlib.Path(folder) / "out.json", pathlib.Path(folder) / "link"
            out.write_text("earlier")
            link.symlink_to("out.json")
            done = bench("--benchmark_filter=no-such-case", f"--benchmark_out={link}", QUICK)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertEqual((out.read_text(), link.is_symlink()), ("earlier", True))
            self.assertEqual(sorted(os.listdir(folder)), ["link", "out.json"])

    def test_usage(self):
        for flag, word in [("--benchmark_fliter=x", '"--benchmark_filter"'), ("--benchmark_format=xml", "console, json or csv"),
                           ("--benchmark_out=/nowhere/out.json", "/nowhere/out.json"), ("launch", "launch"),
                           ("--benchmark_filter=no-such-case", "selects no case"), ("--benchmark_filter=(", "expression")]:
            done = bench(flag, QUICK)
            self.assertEqual(done.returncode, 2, flag)
            self.assertIn(word, done.stderr.splitlines()[-1])
            self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
