"""assay report on runs of several world sizes: efficiencies, fits, predictions, and cases left out."""

import unittest

from assay_case import AssayCase


def step(world, seconds, scaling="strong", arm=None, **members):
    """A training record of `world` ranks; the interval is a factor `arm` either way."""
    ci95 = [seconds / arm, seconds * arm] if arm else None
    record = {"schema": 1, "key": f"transformer/model=gpt2-tiny/micro_batch=4/scaling={scaling}",
              "family": "transformer", "params": {"model": "gpt2-tiny", "micro_batch": 4, "scaling": scaling},
              "world": {"ranks": world}, "status": "ok",
              "metrics": [{"name": "step_time", "value": seconds, "unit": "s", "ci95": ci95},
                          {"name": "exposed_communication", "value": seconds / 50, "unit": "s"}],
              "spans": {"forward": seconds / 2, "exposed_communication": seconds / 10}}
    record.update(members)
    return record


def call(op, ranks, size, seconds, **members):
    record = {"schema": 1, "key": f"collective/op={op}/bytes={size}/dtype=f32", "family": "collective",
              "params": {"op": op, "bytes": size, "dtype": "f32"}, "world": {"ranks": ranks}, "status": "ok",
              "metrics": [{"name": "latency", "value": seconds, "unit": "s", "ci95": None}]}
    record.update(members)
    return record


class ScalingReport(AssayCase):
    def report(self, *dirs):
        """The tables of the report's JSON, and its text."""
        done = self.assay("report", *dirs, "--json=out.json", "--md", "out.md")
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.tables(), done.stdout

    def test_strong_and_weak_by_hand(self):
        # 1 x 8 / (2 x 5) = 0.8 with arms hypot(ln 1.03, ln 1.04): a factor of 1.050338; weak 3 / 4 = 0.75.
        self.run_dir(step(1, 8, arm=1.03), step(2, 5, arm=1.04), name="a")
        self.run_dir(step(1, 3, "weak"), step(3, 4, "weak"), name="b")
        tables, out = self.report("a", "b")
        row = tables["strong"][1]
        self.assertAlmostEqual(row["efficiency"]["value"], 0.8)
        self.assertAlmostEqual(row["efficiency_ci95"][0], 0.8 / 1.050338, places=6)
        self.assertAlmostEqual(row["efficiency_ci95"][1], 0.8 * 1.050338, places=6)
        self.assertAlmostEqual(row["communication"]["value"], 0.1)
        self.assertAlmostEqual(tables["weak"][1]["efficiency"]["value"], 0.75)
        self.assertEqual(tables["weak"][1]["efficiency_ci95"], [None, None])
        self.assertIn("80 %", out)

    def test_three_commands_print_one_share_of_communication(self):
        """10 % of the step waits for a collective; muting the exchange saves 2 %."""
        run = self.run_dir(step(1, 8), step(2, 5))
        tables, out = self.report(run)
        self.assertEqual([row["communication"]["value"] for row in tables["strong"]], [0.1, 0.1])
        self.assertEqual([row["exposed_communication"] for row in tables["steps"]], [0.1, 0.1])
        self.assertEqual(tables["steps"][1]["muted"]["value"], 0.02)
        self.assertIn("10 % of the step is communication, by muting 2 %, because a rank that waits",
                      (self.dir / "out.md").read_text())
        rule = self.diagnosis(run)["comm-exposed"]
        self.assertEqual((rule["state"], rule["evidence"][0]["value"]), ("warn", 0.1))
        self.assertAlmostEqual(rule["ceiling"], 1 / 0.98)
        self.assertIn("10 % of a step is communication", self.assay("diagnose", run).stdout)

    def test_world_sizes_of_several_runs_join(self):
        for ranks in (1, 2, 4, 8):
            self.run_dir(step(ranks, 10 * (0.2 + 0.8 / ranks)), name=f"r{ranks}")
        tables, _ = self.report("r8", "r1", "r4", "r2")
        self.assertEqual([row["ranks"] for row in tables["strong"]], [1, 2, 4, 8])
        self.assertAlmostEqual(tables["amdahl"][0]["serial"]["value"], 0.2, places=6)
        # 10 (0.2 + 0.8 / 16) = 2.5 s; the model is exact at the held-out size.
        self.assertEqual([row["ranks"] for row in tables["prediction"]], [16, 32])
        self.assertAlmostEqual(tables["prediction"][0]["time"]["value"], 2.5, places=6)
        self.assertAlmostEqual(tables["prediction_models"][0]["error"]["value"], 0, places=6)
        self.assertEqual(tables["prediction_models"][0]["held_out"], 8)
        files = [(self.dir / name).read_bytes() for name in ("out.json", "out.md")]
        self.report("r1", "r2", "r4", "r8", "r1")
        self.assertEqual(files, [(self.dir / name).read_bytes() for name in ("out.json", "out.md")])

    def test_collectives_of_a_ring(self):
        # alpha 2 us, link 10 GB/s. 4 ranks: A = 6 x 2 us, B = 10 / 1.5 GB/s, n1/2 = 12e-6 x 1e10 / 1.5 = 80,000 B.
        self.run_dir(*[call("all_reduce", n, size, 2 * (n - 1) * 2e-6 + 2 * (n - 1) / n * size / 1e10)
                       for n in (2, 4, 8) for size in (8, 65536, 1048576, 16777216)])
        tables, out = self.report("r")
        row = next(row for row in tables["collectives"] if row["ranks"] == 4)
        self.assertAlmostEqual(row["latency"]["value"], 12e-6, places=10)
        self.assertAlmostEqual(row["bandwidth"]["value"], 1e10 / 1.5, delta=1e4)
        self.assertAlmostEqual(row["half_size"]["value"], 80000, delta=1)
        forms = {row["form"]: row for row in tables["collective_forms"]}
        self.assertEqual(forms["ring"]["verdict"], "fits best")
        self.assertEqual(forms["tree"]["verdict"], "does not fit")
        self.assertIsNone(forms["tree"]["alpha"]["value"])
        self.assertEqual(len(tables["residuals"]), 12)

    def test_incomparable_cases_are_left_out(self):
        self.run_dir(step(1, 8), step(2, 5),
                     step(4, 3, flags=["oversubscribed"], comparable=False),
                     step(8, 2, protocol={"form": "window"}),
                     step(16, 1, status="error", reason="killed"))
        tables, out = self.report("r")
        self.assertEqual([row["ranks"] for row in tables["strong"]], [1, 2])
        reasons = {tuple(row["ranks"]): row["reason"] for row in tables["kept_apart"]}
        self.assertIn("oversubscribed", reasons[(4,)])
        self.assertIn("different protocol (form window instead of none)", reasons[(8,)])
        self.assertIn("killed", reasons[(16,)])
        self.assertIn("Left out", out)

    def test_one_world_size_says_what_to_run(self):
        self.run_dir(step(1, 8))
        _, out = self.report("r")
        self.assertIn("Only one comparable world size", out)
        self.assertIn("assay run transformer", " ".join(out.split()))

    def test_slowest_rank_and_its_host(self):
        ranks = [{"rank": i, "host": f"node{i // 2}", "median": 1 + (i == 3) / 10} for i in range(4)]
        self.run_dir(step(1, 1, "weak"), step(4, 1.1, "weak", ranks=ranks))
        tables, out = self.report("r")
        self.assertEqual(tables["ranks"][0]["slowest_rank"], 3)
        self.assertEqual(tables["ranks"][0]["host"], "node1")
        self.assertIn("Slowest rank: 3 on node1, 10.0 % behind", " ".join(out.split()))

    def test_hostile_strings_stay_inert(self):
        evil = "\x1b[2J<script>alert(1)</script>|`x`\u202e"
        ranks = [{"rank": 0, "host": evil, "median": 2}, {"rank": 1, "host": "b", "median": 1}]
        self.run_dir(step(1, 1, labels={evil: evil}), step(2, 1, labels={evil: "b"}, ranks=ranks),
                     step(2, 1, "weak", params={"model": evil, "scaling": "weak"}, key="transformer/model=" + evil))
        _, out = self.report("r")
        for text in (out, (self.dir / "out.md").read_text()):
            self.assertNotIn("\033", text)
            self.assertNotIn("\u202e", text)
        self.assertNotIn("<script>", (self.dir / "out.md").read_text())


if __name__ == "__main__":
    unittest.main()
