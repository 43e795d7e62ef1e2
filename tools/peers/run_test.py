"""The driver of `./dev peers` with programs of known figures."""

import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import run  # noqa: E402


FIGURE = {"value": 1, "unit": "B/s", "better": "higher"}


def prints(figure):
    return {"command": ["{python}", "-c", f"print('noise'); print('''{json.dumps(figure)}''')"]}


def figure(value, better="higher", unit="B/s"):
    return prints({"value": value, "unit": unit, "better": better})


class Interval(unittest.TestCase):
    def test_known_ranks(self):
        # Binomial(15, 1/2): P(X <= 3) = 0.0176, P(X <= 4) = 0.0592, so the 4th and the 12th of 15.
        self.assertEqual(run.median_interval(range(1, 16)), (4, 12))
        self.assertEqual(run.median_interval([6, 1, 5, 2, 4, 3]), (1, 6))

    def test_too_few(self):
        with self.assertRaises(ValueError):
            run.median_interval([1, 2, 3, 4, 5])


class Driver(unittest.TestCase):
    def drive(self, entries, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "fake.json").write_text(json.dumps(entries))
            out = pathlib.Path(folder) / "out"
            done = subprocess.run([sys.executable, str(HERE / "run.py"), "--peers", folder, "--json", str(out), *arguments],
                                  capture_output=True, text=True)
            rows = {}
            with contextlib.suppress(FileNotFoundError):
                rows = {row["name"]: row for row in json.loads(out.read_text())}
            return done, rows

    def test_verdicts_and_directions(self):
        done, rows = self.drive([
            {"name": "fast", "ours": figure(99), "peer": figure(100), "at_least": 0.98},
            {"name": "slow", "ours": figure(97), "peer": figure(100), "at_least": 0.98},
            {"name": "short", "ours": figure(1.02, "lower", "s"), "peer": figure(1, "lower", "s"), "at_most": 1.03},
            {"name": "long", "ours": figure(1.04, "lower", "s"), "peer": figure(1, "lower", "s"), "at_most": 1.03},
            {"name": "time-as-speed", "ours": figure(0.5, "lower", "s"), "peer": figure(1, "lower", "s"), "at_least": 1.9},
        ])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual({name: row["verdict"] for name, row in rows.items()},
                         {"fast": "held", "slow": "FAILED", "short": "held", "long": "FAILED", "time-as-speed": "held"})
        self.assertEqual(rows["fast"]["rounds"], 15)
        self.assertAlmostEqual(rows["time-as-speed"]["median"], 2.0)

    def test_sides_alternate(self):
        with tempfile.TemporaryDirectory() as folder:
            order = pathlib.Path(folder) / "order"
            side = lambda name: {"command": ["{python}", "-c",
                f"open({str(order)!r}, 'a').write('{name}'); print('{{\"value\":1,\"unit\":\"s\",\"better\":\"lower\"}}')"]}
            done, _ = self.drive([{"name": "x", "ours": side("A"), "peer": side("B"), "at_most": 1}])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(order.read_text(), ("ABBA" * 8)[:30])

    def test_the_bound_decides_not_the_median(self):
        # Ours is slow in 5 runs of 15: the median holds, the lower bound does not.
        with tempfile.TemporaryDirectory() as folder:
            count = pathlib.Path(folder) / "count"
            ours = {"command": ["{python}", "-c",
                f"import pathlib; p = pathlib.Path({str(count)!r}); n = int(p.read_text()) if p.exists() else 0; "
                "p.write_text(str(n + 1)); "
                "print('{\"value\":%g,\"unit\":\"B/s\",\"better\":\"higher\"}' % (0.5 if n % 3 == 0 else 1))"]}
            done, rows = self.drive([{"name": "x", "ours": ours, "peer": figure(1), "at_least": 0.98}])
            self.assertEqual(done.returncode, 1)
            self.assertEqual((rows["x"]["median"], rows["x"]["decisive"]), (1, 0.5))

    def test_skips_and_breakage(self):
        done, rows = self.drive([{"name": "absent", "ours": figure(1), "peer": prints({"skip": "no wheel"}), "at_least": 1}])
        self.assertEqual((done.returncode, rows["absent"]["reason"]), (3, "no wheel"))  # its bound was not judged
        done, rows = self.drive([
            {"name": "dead", "ours": figure(1), "peer": {"command": ["{python}", "-c", "raise SystemExit('gone')"]}, "at_least": 1},
            {"name": "unbuilt", "ours": figure(1), "peer": {"command": ["/nowhere/peer"]}, "at_least": 1},
            {"name": "units", "ours": figure(1), "peer": figure(1, unit="FLOP/s"), "at_least": 1}])
        self.assertEqual(done.returncode, 1)
        self.assertIn("gone", rows["dead"]["reason"])
        self.assertIn("not built", rows["unbuilt"]["reason"])
        self.assertIn("units differ", rows["units"]["reason"])

    def test_a_case_that_does_not_fit_is_broken(self):
        with tempfile.TemporaryDirectory() as folder:
            assay = pathlib.Path(folder) / "assay"
            for flags, verdict, code in ((["does not fit"], "broken", 1), ([], "skipped", 3)):
                record = {"key": "k", "status": "skipped", "reason": "39 GiB are planned", "flags": flags, "metrics": []}
                assay.write_text(f"#!{sys.executable}\nimport pathlib, sys\nout = pathlib.Path(sys.argv[-1])\n"
                                 f"out.mkdir()\n(out / 'records.jsonl').write_text({json.dumps(record)!r})\n")
                assay.chmod(0o755)
                done, rows = self.drive([{"name": "big", "ours": {"assay": ["llama"], "metric": "throughput"}, "peer": figure(1),
                                          "at_least": 1}], "--build", folder)
                self.assertEqual((done.returncode, rows["big"]["verdict"], rows["big"]["reason"]),
                                 (code, verdict, "k: 39 GiB are planned"), done.stderr)

    def test_between_requires_the_whole_interval_inside(self):
        done, rows = self.drive([
            {"name": "alike", "ours": figure(95), "peer": figure(100), "between": [0.9, 1.1]},
            {"name": "cheaper", "ours": figure(89, "lower", "s"), "peer": figure(100, "lower", "s"), "between": [0.9, 1.1]},
            {"name": "dearer", "ours": figure(111, "lower", "s"), "peer": figure(100, "lower", "s"), "between": [0.9, 1.1]}])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([rows[name]["verdict"] for name in ("alike", "cheaper", "dearer")], ["held", "FAILED", "FAILED"])
        self.assertAlmostEqual(rows["dearer"]["decisive"], 1.11)

    def test_preparations_run_once_and_needs_are_checked(self):
        with tempfile.TemporaryDirectory() as folder:
            made = pathlib.Path(folder) / "made"
            make = ["{python}", "-c", f"open({str(made)!r}, 'a').write('x')"]
            one = {"ours": figure(1), "peer": figure(1), "at_least": 1}
            done, rows = self.drive([
                one | {"name": "first", "prepare": [make], "needs": figure(2) | {"metric": "cores", "at_least": 1.7}},
                one | {"name": "second", "prepare": [make], "needs": figure(1) | {"metric": "cores", "at_least": 1.7}},
                one | {"name": "third", "prepare": [["{python}", "-c", "print('{\"skip\": \"no photographs\"}')"]]},
                one | {"name": "fourth", "prepare": [["{python}", "-c", "raise SystemExit('full disk')"]]},
                one | {"name": "fifth", "needs": {"command": ["/nowhere/peer"], "metric": "cores", "at_least": 1.7}}])
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertEqual(made.read_text(), "x")
            self.assertEqual(rows["first"]["verdict"], "held")
            self.assertEqual((rows["second"]["verdict"], rows["second"]["reason"]),
                             ("skipped", "cores is 1.00, below 1.70"))
            self.assertEqual((rows["third"]["verdict"], rows["third"]["reason"]), ("skipped", "no photographs"))
            self.assertEqual(rows["fourth"]["verdict"], "broken")
            self.assertIn("full disk", rows["fourth"]["reason"])
            self.assertEqual(rows["fifth"]["verdict"], "broken", "not measured is not below")

    def test_notes_are_printed_once(self):
        note = ["{python}", "-c", "print('{\"note\": \"plain 2, tuned 3\"}')"]
        one = {"ours": figure(1), "peer": figure(1), "at_least": 1, "prepare": [note]}
        done, _ = self.drive([one | {"name": "first"}, one | {"name": "second"}])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "plain 2, tuned 3")
        self.assertEqual(done.stdout.count("plain 2, tuned 3"), 1)

    def test_other_figures_of_the_same_runs(self):
        def both(value, memory):
            return prints({"value": value, "unit": "img/s", "better": "higher",
                           "also": {"peak_memory": {"value": memory, "unit": "B", "better": "lower"}}})

        bounds = {"at_least": 1.1, "also": [{"metric": "peak_memory", "at_most": 1}]}
        done, rows = self.drive([bounds | {"name": "lean", "ours": both(6, 10), "peer": both(5, 20)},
                                 bounds | {"name": "fat", "ours": both(6, 21), "peer": both(5, 20)},
                                 bounds | {"name": "mute", "ours": both(6, 10), "peer": figure(5, "higher", "img/s")}])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual({name: row["verdict"] for name, row in rows.items()},
                         {"lean": "held", "lean:peak_memory": "held", "fat": "held", "fat:peak_memory": "FAILED",
                          "mute": "held", "mute:peak_memory": "broken"})
        self.assertAlmostEqual(rows["lean:peak_memory"]["median"], 0.5)

    def test_usage(self):
        entries = [{"name": "gemm", "ours": figure(1), "peer": figure(1), "at_least": 1}]
        self.assertEqual(self.drive(entries, "--rounds", "5")[0].returncode, 2)
        done, _ = self.drive(entries, "colective")
        self.assertEqual(done.returncode, 2)
        self.assertIn("gemm", done.stderr)


ENVIRONMENT = {
    "assay": {"commit": "0123456789abcdef", "dirty": False},
    "libraries": {"onednn": "3.2.0", "openblas": "0.3.21", "turbojpeg": "2.1.5", "mpi": "Open MPI 4.1.4"},
    "os": {"name": "Debian 12"}, "virtual_machine": "KVM", "memory": {"total_bytes": 24 << 30},
    "cpu": {"name": "AMD Zen 3", "brand": "AMD EPYC", "family": 25, "model": 1, "usable_cores": 2, "isa": ["fma", "avx2"],
            "caches": [{"level": 1, "bytes": 32768, "count": 2}, {"level": 2, "bytes": 524288, "count": 2},
                       {"level": 3, "bytes": 32 << 20, "count": 1}]}}


class Tables(unittest.TestCase):
    """--table, with a program that answers as assay does and keeps a list of what it was asked to run."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file, self.asked = self.folder / "table.md", self.folder / "asked"
        (self.folder / "lists").mkdir()
        self.install()

    def install(self, environment=ENVIRONMENT, **records):
        """Makes an assay of this machine, whose families have these records."""
        (self.folder / "assay").write_text(f"""#!{sys.executable}
import json, pathlib, sys
if sys.argv[1] == "env":
    sys.exit(print(json.dumps({environment!r})))
out = pathlib.Path(sys.argv[-1])
out.mkdir()
open({str(self.asked)!r}, "a").write(sys.argv[2] + "\\n")
(out / "records.jsonl").write_text(json.dumps({records!r}[sys.argv[2]]))
""")
        (self.folder / "assay").chmod(0o755)

    def drive(self, entries, *arguments):
        (self.folder / "lists" / "fake.json").write_text(json.dumps(entries))
        return subprocess.run([sys.executable, str(HERE / "run.py"), "--peers", str(self.folder / "lists"),
                               "--build", str(self.folder), "--rounds", "6", *arguments], capture_output=True, text=True)

    def table(self):
        return self.file.read_text()

    @staticmethod
    def record(status="ok", reason="", **metrics):
        return {"key": "k", "status": status, "reason": reason, "flags": [],
                "metrics": [{"name": name, "value": value, "unit": unit, "better": "higher"}
                            for name, (value, unit) in metrics.items()]}

    def test_a_row_each_with_heading_and_share_of_the_limit(self):
        self.install(gemm=self.record(throughput=(80, "FLOP/s")), peak=self.record(throughput=(100, "FLOP/s")),
                     step=self.record(throughput=(5, "img/s"), model_flops=(40, "FLOP/s"), peak_memory=(3, "B")),
                     bf16=self.record("skipped", "this CPU has no bf16"))
        peak = {"assay": ["peak"], "metric": "throughput", "name": "FMA peak"}
        training = {"value": 4, "unit": "img/s", "better": "higher",
                    "also": {"peak_memory": {"value": 4, "unit": "B", "better": "higher"}}}
        done = self.drive([
            {"name": "gemm", "about": "a product, against a loop | of X", "at_least": 0.98, "limit": peak,
             "ours": {"assay": ["gemm"], "metric": "throughput"}, "peer": figure(100, unit="FLOP/s")},
            {"name": "train", "about": "a step, against Y", "at_least": 1.2, "limit": peak | {"of": "model_flops"},
             "ours": {"assay": ["step"], "metric": "throughput"}, "peer": prints(training),
             "also": [{"metric": "peak_memory", "at_most": 2}]},
            {"name": "low", "about": "a product in bf16, against Z", "at_least": 0.5, "limit": peak | {"assay": ["bf16"]},
             "ours": {"assay": ["gemm"], "metric": "throughput"}, "peer": figure(100, unit="FLOP/s")},
            {"name": "absent", "about": "a thing, against W", "at_least": 1, "ours": figure(1), "peer": prints({"skip": "no wheel"})},
        ], f"--table={self.file}")
        self.assertEqual(done.returncode, 1, done.stderr)
        text = self.table()
        self.assertEqual(done.stdout, text)
        heading, *_ = text.splitlines()
        self.assertRegex(heading, r"^## AMD Zen 3, 2 cores, \d{4}-\d\d-\d\d$")
        about = " ".join(text.split())
        for part in ("AMD EPYC (family 25, model 1); 2 cores; AVX2; L2 2 x 512 KiB, L3 1 x 32 MiB; 24 GiB of memory; virtual (KVM)",
                     "commit 01234567;", "oneDNN 3.2.0, OpenBLAS 0.3.21, libjpeg-turbo 2.1.5, Open MPI 4.1.4", "PyTorch"):
            self.assertIn(part, about)
        rows = [line for line in text.splitlines() if line.startswith("|")][2:]
        self.assertEqual(rows, [
            "| a product; a loop \\| of X | 6 | 0.800 (0.800 to 0.800) | >= 0.98 | 0.80 (0.80 to 0.80) of the FMA peak | did not hold |",
            "| a step; Y | 6 | 1.250 (1.250 to 1.250) | >= 1.20 | 0.40 (0.40 to 0.40) of the FMA peak | held |",
            "| a step, peak_memory; Y | 6 | 1.333 (1.333 to 1.333) | <= 2.00 | – | held |",
            "| a product in bf16; Z | 6 | 0.800 (0.800 to 0.800) | >= 0.50 | unknown: k: this CPU has no bf16 | held |",
            "| a thing; W | – | – | – | – | skipped: no wheel |"])
        self.assertEqual(text.splitlines()[-1], "Complete: all 4 comparisons, of which 1 was skipped.")
        asked = self.asked.read_text().split()
        self.assertEqual((asked.count("peak"), asked.count("bf16")), (12, 1), "in every round, unless it cannot be measured")

    def test_without_a_table_no_limit_is_measured(self):
        self.install(gemm=self.record(throughput=(80, "FLOP/s")))
        done = self.drive([{"name": "gemm", "at_least": 0.7, "limit": {"assay": ["peak"], "metric": "throughput", "name": "peak"},
                            "ours": {"assay": ["gemm"], "metric": "throughput"}, "peer": figure(100, unit="FLOP/s")}])
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("peak", self.asked.read_text())

    def test_a_limit_that_breaks_or_does_not_fit_breaks_its_comparison(self):
        self.install(gemm=self.record(throughput=(80, "FLOP/s")), peak=self.record("failed", "wrong sums"),
                     bytes=self.record(throughput=(80, "B/s")))
        one = {"at_least": 0.1, "ours": {"assay": ["gemm"], "metric": "throughput"}, "peer": figure(100, unit="FLOP/s")}
        limit = {"metric": "throughput", "name": "peak", "assay": ["peak"]}
        for broken, reason in ((limit, "wrong sums"), (limit | {"assay": ["bytes"]}, "units differ: FLOP/s and B/s of the peak"),
                               (limit | {"assay": ["gemm"], "of": "model_flops"}, "no metric model_flops")):
            done = self.drive([one | {"name": "x", "limit": broken}], "--table")
            self.assertEqual(done.returncode, 1)
            self.assertIn(reason, done.stdout)
            self.assertIn("\nNot complete, all 1 comparisons: x broke.", done.stdout)

    def test_it_is_no_complete_table_while_something_broke_or_was_not_measured(self):
        good = {"ours": figure(1), "peer": figure(1), "at_least": 1, "about": "a, against b"}
        flag = self.folder / "flag"
        flaky = good | {"name": "second", "peer": {"command": ["{python}", "-c", "import pathlib, sys; "
            f"p = pathlib.Path({str(flag)!r}); p.exists() or sys.exit('no flag'); print({json.dumps(FIGURE)!r})"]}}
        # The third one reads the table as the first two have left it.
        seen = self.folder / "seen"
        third = good | {"name": "third", "prepare": [["cp", str(self.file), str(seen)]]}
        entries = [good | {"name": "first"}, flaky, third]
        done = self.drive(entries, f"--table={self.file}")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertTrue(seen.read_text().endswith("\nNot complete, all 3 comparisons: second broke; third not measured yet.\n"))
        self.assertIn("| broken: ", seen.read_text())
        self.assertTrue(self.table().endswith("\nNot complete, all 3 comparisons: second broke.\n"))
        # Resumed: what was judged is kept, what broke is measured again and keeps its place.
        flag.touch()
        done = self.drive(entries, f"--table={self.file}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual([line.split(":")[0] for line in done.stderr.splitlines()], ["second"] * 6)
        self.assertTrue(self.table().endswith("\nComplete: all 3 comparisons.\n"))
        self.assertNotIn("broke", self.table())
        self.assertEqual(self.table().count("| held |"), 3)

    def test_named_comparisons_are_a_part_and_later_ones_join_them(self):
        one = {"ours": figure(1), "peer": figure(1), "at_least": 1}
        entries = [one | {"name": name, "about": f"{name}, against b"} for name in ("alpha", "beta", "gamma")]
        self.assertEqual(self.drive(entries, f"--table={self.file}", "gamma").returncode, 0)
        self.assertTrue(self.table().endswith("\nComplete: 1 of 3 comparisons.\n"))
        self.assertEqual(self.drive(entries, f"--table={self.file}", "alpha").returncode, 0)
        self.assertTrue(self.table().endswith("\nComplete: 2 of 3 comparisons.\n"))
        self.assertLess(self.table().index("alpha"), self.table().index("gamma"))
        # A bare --table takes no name for its file.
        done = self.drive(entries, "--table", "beta")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| beta; b | 6 |", done.stdout)
        self.assertFalse((self.folder / "beta").exists())

    def test_notes_stay_below_the_table(self):
        note = ["{python}", "-c", "print('{\"note\": \"plain 2, tuned 3\"}')"]
        entries = [{"name": "x", "ours": figure(1), "peer": figure(1), "at_least": 1, "prepare": [note]}]
        for _ in range(2):
            self.assertEqual(self.drive(entries, f"--table={self.file}").returncode, 0)
            self.assertEqual(self.table().splitlines()[-1], "plain 2, tuned 3")
            self.assertEqual(self.table().count("plain 2"), 1)

    def test_figures_of_another_machine_commit_or_file_are_refused(self):
        entries = [{"name": "x", "ours": figure(1), "peer": figure(1), "at_least": 1}]
        self.assertEqual(self.drive(entries, f"--table={self.file}").returncode, 0)
        before = self.table()
        for changes, said in (({"assay": {"commit": "f" * 40, "dirty": True}}, "its commit is '01234567', not 'ffffffff with changes'"),
                              ({"virtual_machine": None}, "its machine is"), ({"libraries": {}}, "its software is")):
            self.install(ENVIRONMENT | changes)
            done = self.drive(entries, f"--table={self.file}")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(f"table.md.json: {said}", done.stderr)
        self.install({"schema": 1})
        done = self.drive(entries, "--table")
        self.assertEqual(done.returncode, 1)
        self.assertIn("env --json does not describe this machine", done.stderr)
        self.install()
        for text in ("{", "[]", '{"rows": 1}', '{"subject": 1, "rows": {}, "notes": [], "dates": []}'):
            (self.folder / "table.md.json").write_text(text)
            done = self.drive(entries, f"--table={self.file}")
            self.assertEqual(done.returncode, 2, text)
            self.assertIn("not the figures of a table", done.stderr)
        (self.folder / "table.md.json").unlink()
        done = self.drive(entries, f"--table={self.file}")
        self.assertEqual(done.returncode, 2)
        self.assertIn("not a table to resume", done.stderr)
        self.assertEqual(self.table(), before, "nothing was overwritten")


if __name__ == "__main__":
    unittest.main()
