"""assay report: what it prints and writes about finished runs, and what it refuses."""

import json
import re
import unittest

from assay_case import AssayCase


class Report(AssayCase):
    def record(self, key="launch/op=fork_join", **members):
        record = {"schema": 1, "key": key, "family": key.split("/")[0], "params": {"op": key.split("=")[-1]},
                  "protocol": {}, "status": "ok", "samples": {"unit": "s", "values": [1e-6] * 9, "at": [0] * 9},
                  "metrics": [{"name": "latency", "value": 1e-6, "unit": "s", "ci95": [0.99e-6, 1.01e-6]}]}
        record.update(members)
        return record

    def test_prints_a_row_per_case_and_the_verdict(self):
        self.run_dir(self.record(), self.record("launch/op=handoff", status="skipped", reason="no GPU", metrics=[]))
        done = self.assay("report", "r")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("launch fork_join", done.stdout)
        self.assertIn("1.00 us", done.stdout)
        self.assertIn("± 1.0 %", done.stdout)
        self.assertIn("held: 1 · failed: 0 · skipped: 1", done.stdout)
        self.assertNotIn("\033", done.stdout)

    def test_writes_markdown_and_json_in_base_units(self):
        self.run_dir(self.record())
        done = self.assay("report", "r", "--md", "out.md", "--json=out.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| launch fork\\_join | 1.00 us |", (self.dir / "out.md").read_text())
        document = json.loads((self.dir / "out.json").read_text())
        row = document["sections"][0]["tables"][0]["rows"][0]
        self.assertEqual(row["case"], "launch/op=fork_join")
        self.assertEqual(row["median"], {"metric": "latency", "value": 1e-6, "unit": "s"})
        self.assertEqual(row["ci95"], [0.99e-6, 1.01e-6])

    def test_writes_one_self_contained_page(self):
        self.run_dir(self.record(), self.record("launch/op=handoff", status="skipped", reason="no GPU", metrics=[]))
        done = self.assay("report", "r", "--html", "out.html", "--price", "12.5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("report: out.html", done.stdout)
        page = (self.dir / "out.html").read_text()
        self.assertTrue(page.startswith("<!doctype html>"))
        for text in ("held: 1", "skipped: 1", "launch fork_join", "1.00 us", "Cost per result", "line 2",
                     "Content-Security-Policy\" content=\"default-src 'none'"):
            self.assertTrue(text in page, text)
        for load in (" src=", "@import", "url(", "<link rel=\"stylesheet"):
            self.assertFalse(load in page, load)
        # The verdict comes first, the method last, and no link is broken.
        self.assertLess(page.index("held: 1"), page.index("Skipped"))
        links = set(re.findall(r"href=#([-\w.]+)", page))
        self.assertGreater(len(links), 3)
        self.assertEqual(links - set(re.findall(r" id=([-\w.]+)", page)), set())

    def test_a_page_of_many_records_stays_small(self):
        samples = {"unit": "s", "values": [1e-6 + 1e-9 * i for i in range(200)], "at": [0.01 * i for i in range(200)]}
        self.run_dir(*(self.record(f"launch/op=case_{i}", samples=samples, labels={"implementation": "x" * 60})
                       for i in range(300)))
        self.assertEqual(self.assay("report", "r", "--html", "out.html").returncode, 0)
        self.assertLess((self.dir / "out.html").stat().st_size, 1_000_000)

    def test_equal_input_gives_equal_bytes(self):
        self.run_dir(self.record(), self.record("launch/op=x"))
        for name in ("a", "b"):
            self.assay("report", "r", "--md", f"{name}.md", "--html", f"{name}.html")
        for kind in ("md", "html"):
            self.assertEqual((self.dir / f"a.{kind}").read_bytes(), (self.dir / f"b.{kind}").read_bytes())

    def test_hostile_strings_stay_inert(self):
        evil = "\x1b[2J<script>alert(1)</script>|`x`\u202e"
        self.run_dir(self.record("launch/op=" + evil, status="failed", reason=evil,
                                 checks=[{"name": evil, "passed": False, "detail": [evil]}]),
                     run={"labels": {"a": evil}, "plan": {"name": evil}})
        done = self.assay("report", "r", "--md", "out.md")
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in (done.stdout, (self.dir / "out.md").read_text()):
            self.assertNotIn("\033", text)
            self.assertNotIn("\u202e", text)
        self.assertNotIn("<script>", (self.dir / "out.md").read_text())

    def test_broken_lines_are_named_and_the_rest_used(self):
        self.run_dir("{not json", self.record(), '{"schema": 99}')
        done = self.assay("report", "r")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("line 1", done.stdout)
        self.assertIn("line 3", done.stdout)
        self.assertIn("held: 1", done.stdout)

    def test_no_finished_case_is_not_enough_data(self):
        self.run_dir()
        done = self.assay("report", "r")
        self.assertEqual(done.returncode, 3)
        self.assertIn("no finished case in r", done.stderr)

    def test_the_same_directory_counts_once(self):
        self.run_dir(self.record())
        self.assertIn("held: 1", self.assay("report", "r", "./r/").stdout)

    def test_order_and_copies_of_directories_change_nothing(self):
        for i, name in enumerate("abc"):
            run = {"schema": 1, "started": f"2026-01-0{i + 1}T00:00:00Z", "environment": {"hostnames": [name]}}
            self.run_dir(self.record(), self.record("launch/op=y"), name=name, run=run)
        (self.dir / "copies").mkdir()
        for name in ("run.json", "records.jsonl"):
            self.write(f"copies/b/{name}", (self.dir / "b" / name).read_bytes())
        outputs = set()
        for dirs in (("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a", "copies/b"), ("a", "a", "c", "b", "./b")):
            done = self.assay("report", *dirs, "--json=out.json", "--md", "out.md")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("the same run as" in done.stderr, "copies/b" in dirs)
            outputs.add(((self.dir / "out.json").read_bytes(), (self.dir / "out.md").read_bytes()))
        self.assertEqual(len(outputs), 1)

    def test_runs_of_one_machine_share_rows_and_machines_do_not(self):
        for name, host, day, seconds in (("a", "x", 1, 1e-6), ("b", "x", 2, 3e-6), ("c", "y", 3, 5e-6)):
            metric = {"name": "latency", "value": seconds, "unit": "s"}
            self.run_dir(self.record(metrics=[metric]), name=name,
                         run={"started": f"2026-01-0{day}T00:00:00Z", "environment": {"hostnames": [host]}})
        done = self.assay("report", "a", "b", "c")
        self.assertIn("3 runs of 2 machines", done.stdout)
        self.assertRegex(done.stdout, r"launch fork_join +3 us .* 2 +1 us – 3 us")
        self.assertRegex(done.stdout, r"launch fork_join +5 us")

    def test_extreme_figures_print_no_nan(self):
        odd = [{"values": []}, {"values": [0, 0, 0], "at": [0, 1, 2]}, {"values": [None, 1]}, {"values": [1e-300, 1e300]},
               {"values": [1], "count": -5}, {"series": "series/none.json"}, None]
        records = [self.record(f"launch/op={i}", samples=samples, metrics=[
            {"name": "latency", "value": 0, "unit": "s", "ci95": [None, 1], "of_peak": 0, "reference": 0},
            {"name": "x", "value": 1e308, "unit": "FLOP/s", "ci95": [-1e308, 1e308]}, {"name": "y"}]) for i, samples in enumerate(odd)]
        self.run_dir(*records)
        done = self.assay("report", "r", "--md", "out.md", "--json=out.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in (done.stdout, (self.dir / "out.md").read_text(), (self.dir / "out.json").read_text()):
            self.assertNotRegex(text, r"\b(nan|NaN|inf|Infinity)\b")

    def test_a_torn_line_is_named_and_the_rest_used(self):
        self.run_dir(self.record(), name="r")
        with open(self.dir / "r/records.jsonl", "a") as file:
            file.write(json.dumps(self.record("launch/op=torn"))[:100])
        done = self.assay("report", "r")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 line not read", done.stdout)
        self.assertIn("records.jsonl line 2: not JSON (the last line, cut short by a kill)", done.stdout)

    def test_refusals(self):
        self.refused("report", "nowhere", says="nowhere")
        (self.dir / "empty").mkdir()
        self.refused("report", "empty", says="empty")
        self.refused("report", "r", "--mdd", "x", says="--md")
        self.refused("report", self.run_dir(run={"schema": 7}, name="foreign"), says=["schema", "7"])
        self.run_dir(self.record())
        self.refused("report", "r", "--md", "no/such/folder/out.md", says="no/such/folder")


if __name__ == "__main__":
    unittest.main()
