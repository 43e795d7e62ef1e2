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
        self.assertEqual(rows["fast"]["pairs"], 15)
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
        self.assertEqual(self.drive(entries, "--pairs", "5")[0].returncode, 2)
        done, _ = self.drive(entries, "colective")
        self.assertEqual(done.returncode, 2)
        self.assertIn("gemm", done.stderr)


if __name__ == "__main__":
    unittest.main()
