"""assay project: times at world sizes that were not measured, their ranges and cost, and what is refused."""

import json
import unittest

from assay_case import AssayCase


def step(world, seconds, scaling="strong", arm=1.01, **members):
    """A training record of `world` ranks; the interval is a factor `arm` either way."""
    record = {"schema": 1, "key": f"transformer/model=gpt2-tiny/micro_batch=4/scaling={scaling}",
              "family": "transformer", "params": {"model": "gpt2-tiny", "micro_batch": 4, "scaling": scaling},
              "world": {"ranks": world}, "status": "ok",
              "metrics": [{"name": "step_time", "value": seconds, "unit": "s", "ci95": [seconds / arm, seconds * arm]},
                          {"name": "throughput", "value": 1e6 / seconds, "unit": "tokens/s", "ci95": None}]}
    record.update(members)
    return record


def ring(ranks, alpha=2e-3, volume=0.05):
    """1 s of compute on each rank and a ring's all-reduce."""
    return 1 + 2 * (ranks - 1) * alpha + 2 * (ranks - 1) / ranks * volume


class Project(AssayCase):
    def project(self, *words):
        done = self.assay("project", *words, "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)["series"]

    def test_a_known_ring(self):
        run = self.run_dir(*[step(n, ring(n), "weak") for n in (1, 2, 4, 8, 16)])
        (series,) = self.project(run, "--ranks", "8,32,128,512")
        self.assertEqual([point["ranks"] for point in series["measured"]], [1, 2, 4, 8, 16])
        self.assertEqual((series["scaling"], series["figure"]), ("weak", "step_time"))
        self.assertEqual(series["hold_out"]["ranks"], 16)
        self.assertAlmostEqual(series["hold_out"]["error"], 0, places=6)
        sizes = {size["ranks"]: size for size in series["projected"]}
        self.assertTrue(sizes[8]["measured"])
        self.assertEqual({n: size["extrapolated"] for n, size in sizes.items()},
                         {8: False, 32: False, 128: False, 512: True})
        for n in (32, 128):
            self.assertLessEqual(sizes[n]["seconds"]["low"], ring(n))
            self.assertGreaterEqual(sizes[n]["seconds"]["high"], ring(n))
            self.assertLessEqual(sizes[n]["efficiency"]["low"], ring(1) / ring(n))
            self.assertGreaterEqual(sizes[n]["efficiency"]["high"], ring(1) / ring(n))
        self.assertTrue(sizes[512]["assumption"])
        text = self.assay("project", run, "--ranks", "32,512").stdout
        self.assertIn("extrapolated to 32 x the largest measured: rests on the assumption ", text)
        self.assertRegex(text, r"16 ranks from the smaller sizes: .* \([+-]0\.0 %\)")

    def test_cost_follows_time_and_machines(self):
        """Strong scaling on 1 rank a machine of 3.6 USD an hour: 16 machines for 2.5 s a step of a million tokens."""
        run = self.run_dir(*[step(n, 10 * (0.2 + 0.8 / n), arm=1.0001) for n in (1, 2, 4, 8)])
        for n, record in enumerate(self.records("r")):
            record["world"]["nodes"] = record["world"]["ranks"]
            record["ranks"] = [{"rank": i, "host": f"n{i}", "device": "x"} for i in range(record["world"]["ranks"])]
            self.write(f"s{n}/run.json", {"schema": 1})
            self.write(f"s{n}/records.jsonl", json.dumps(record) + "\n")
        (series,) = self.project("s0", "s1", "s2", "s3", "--ranks", "16", "--price", "3.6")
        (size,) = series["projected"]
        self.assertEqual(size["usd_per"], "million tokens")
        self.assertAlmostEqual(size["usd"]["value"], 3.6 / 3600 * 16 * 2.5, places=4)
        self.assertLess(size["usd"]["low"], size["usd"]["value"])
        self.assertIsNone(self.project(run, "--ranks", "16")[0]["projected"][0]["usd"])

    def test_the_report_projects_the_same_and_nothing_is_better_than_linear(self):
        """A series that keeps 99 %."""
        run = self.run_dir(*[step(n, 1 if n == 1 else 1.01 - 0.01 * (n == 4), "weak") for n in (1, 2, 4)])
        (series,) = self.project(run, "--ranks", "8,16,512")
        for size in series["projected"]:
            if size["efficiency"]:
                self.assertLessEqual(size["efficiency"]["high"], 1)
        self.report_of(run)
        self.assay("report", run, "--json=out.json")
        rows = {row["ranks"]: row for row in self.tables()["prediction"]}
        for size in series["projected"][:2]:
            row = rows[size["ranks"]]
            self.assertEqual(row["time"]["value"], size["seconds"]["value"])
            self.assertEqual(row["time_ci95"], [size["seconds"]["low"], size["seconds"]["high"]])
            self.assertEqual(row["efficiency"]["value"], size["efficiency"]["value"])

    def test_more_slower_ranks_have_no_serial_fraction(self):
        run = self.run_dir(step(1, 1), step(2, 3), step(4, 5))
        self.assay("report", run, "--json=out.json")
        (row,) = self.tables()["amdahl"]
        self.assertIn("does not apply: more ranks are slower", row["remark"])
        self.assertIsNone(row["serial"])

    def test_three_world_sizes_are_needed(self):
        run = self.run_dir(step(1, 8), step(2, 5))
        self.refused("project", run, "--ranks", "8", code=3, says=["at 3 world sizes", "the most here is 2", "--ranks 1,2,4"])
        other = self.run_dir(step(4, 3, status="failed"), name="f")
        self.refused("project", run, other, "--ranks", "8", code=3, says="the most here is 2")
        third = self.run_dir(step(4, 3.5), name="t")
        self.assertEqual(len(self.project(run, third, "--ranks", "8")), 1)

    def test_what_cannot_be_said_is_not(self):
        """Three sizes that no model explains: any time within a factor of ten would be a guess."""
        run = self.run_dir(step(1, 1, "weak"), step(2, 4, "weak"), step(4, 1, "weak"))
        (series,) = self.project(run, "--ranks", "512")
        self.assertIsNone(series["projected"][0]["seconds"])
        self.assertIn("cannot say", self.assay("project", run, "--ranks", "512").stdout)

    def test_bad_input(self):
        run = self.run_dir(*[step(n, ring(n), "weak") for n in (1, 2, 4)])
        self.refused("project", run, says="--ranks is required")
        self.refused("project", run, "--ranks", "0", says="not between 1 and 65536")
        self.refused("project", run, "--ranks", "8,x", says="--ranks 8,x")
        self.refused("project", "nowhere", "--ranks", "8", says="nowhere")
        self.refused("project", run, "--ranks", "8", "--price", "1", "--prices", "p.json", says="exclude each other")


if __name__ == "__main__":
    unittest.main()
