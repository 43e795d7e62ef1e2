"""The four answers of a report, and `assay diagnose`, through the command line."""

import json
import pathlib
import shutil
import unittest

from assay_case import AssayCase

QUESTIONS = ["right", "steady", "normal", "limit"]


def training(key="transformer/model=gpt2-tiny", data_wait=0.001, **members):
    metric = {"value": None, "unit": "s", "better": "lower", "ci95": None, "of_peak": None, "reference": None}
    return {"schema": 2, "key": key, "family": "transformer", "params": {"model": "gpt2-tiny"}, "status": "ok",
            "metrics": [{**metric, "name": "step_time", "value": 0.1}], "spans": {"data_wait": data_wait},
            "checks": [{"name": "losses_finite", "passed": True, "value": None, "limit": None, "detail": []}],
            "world": {"ranks": 1, "nodes": 1}, **members}


class Answers(AssayCase):
    def test_every_form_of_a_report_has_the_four_answers(self):
        run = self.run_dir(training())
        report = self.report_of(run)
        self.assertEqual(sorted(report["answers"]), sorted([*QUESTIONS, "state"]))
        for question in QUESTIONS:
            self.assertEqual(sorted(report["answers"][question]), ["evidence", "state", "text"])
        self.assertEqual({question: report["answers"][question]["state"] for question in QUESTIONS},
                         {"right": "good", "steady": "unknown", "normal": "unknown", "limit": "good"})
        self.assertEqual(report["answers"]["state"], "unknown")
        self.assertEqual(report["verdict"], "held: 1 · failed: 0 · skipped: 0")
        done = self.assay("report", run, "--html", "r.html", "--md", "r.md")
        for text in (done.stdout, (self.dir / "r.html").read_text(), (self.dir / "r.md").read_text()):
            places = [text.index(question.capitalize()) for question in QUESTIONS]
            self.assertEqual(places, sorted(places))

    def test_a_record_of_schema_1_cannot_say_whether_it_was_steady(self):
        report = self.report_of(self.run_dir({**training(), "schema": 1}))
        self.assertEqual(report["answers"]["steady"]["state"], "unknown")

    def test_skips_are_counted_in_the_headline_and_explained_below(self):
        reason = "no GPU here: " + "a long story " * 30
        run = self.run_dir(training(), training(key="transformer/model=b", status="skipped", reason=reason))
        done = self.assay("report", run)
        self.assertIn("held: 1 · failed: 0 · skipped: 1\n", done.stdout)
        self.assertIn(reason.strip(), done.stdout, "piped output is not cut or wrapped")

    def test_hostile_names_stay_inert(self):
        outside = {"usable": 2, "seconds": 3, "cpus": 1, "steal": 0, "throttled": None, "host": "h",
                   "processes": [{"pid": 5, "name": "<script>alert(1)</script>\u001b[31m", "cpus": 0.9}]}
        run = self.run_dir(training(outside_cpu=outside))
        done = self.assay("report", run, "--html", "r.html", "--md", "r.md")
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in (done.stdout, (self.dir / "r.html").read_text(), (self.dir / "r.md").read_text()):
            self.assertNotIn("\u001b[31m", text)
        self.assertNotIn("<script>alert", (self.dir / "r.html").read_text())


class References(AssayCase):
    def setUp(self):
        super().setUp()
        self.configs = self.dir / "configs"
        shutil.copytree(pathlib.Path(__file__).resolve().parents[2] / "configs", self.configs,
                        ignore=shutil.ignore_patterns("reference"))
        self.env = {"ASSAY_CONFIGS": str(self.configs)}

    def gemm(self, rate, **members):
        metric = {"name": "throughput", "value": rate, "unit": "FLOP/s", "better": "higher", "ci95": None, "of_peak": None, "reference": None}
        outside = {"usable": 2, "seconds": 1, "cpus": 0, "steal": 0, "throttled": None, "processes": [], "host": "secret"}
        return {"schema": 2, "key": "gemm/dtype=f32", "family": "gemm", "params": {"dtype": "f32"}, "status": "ok",
                "metrics": [metric], "ranks": [{"rank": 0, "host": "secret", "device": "CPU"}],
                "world": {"ranks": 1, "nodes": 1}, "outside_cpu": outside, **members}

    def add(self, run, name, code=0):
        done = self.assay("reference", "add", run, "--name", name, env=self.env)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def made(self, rate, name, **members):
        return self.run_dir(self.gemm(rate, **members), name=name,
                            run={"id": name, "finished": "2026-01-01T00:00:00Z", "hosts": ["secret"],
                                 "argv": ["assay", "run", "/home/secret"],
                                 "environment": {"hostnames": ["secret"], "cpu": {"name": "CPU X"}}})

    def normal(self, run):
        return self.report_of(run, env=self.env)["answers"]["normal"]

    def test_a_run_is_held_against_references_of_its_kind(self):
        self.assertEqual(self.normal(self.made(1e12, "own"))["state"], "unknown")
        for name, rate in (("a", 1.1e12), ("b", 1.3e12)):
            self.add(self.made(rate, name), "ref-" + name)
        low = self.normal("own")
        self.assertEqual(low["state"], "warn")
        self.assertIn("gemm f32 1 TFLOP/s; 2 runs of such machines: 1.1 TFLOP/s – 1.3 TFLOP/s", low["text"])
        self.assertEqual(self.normal(self.made(1.2e12, "other"))["state"], "good")
        kept = "".join(path.read_text() for path in (self.configs / "reference").rglob("*.json*"))
        self.assertNotIn("secret", kept)

    def test_a_reference_names_no_host_and_holds_no_file_of_others(self):
        run = self.made(1e12, "own", flags=["slow link: rank 0 on secret-7.example"], labels={"node": "secret-7", "team": "x"},
                        errors=[{"host": "secret-7.example", "device": "mlx5_0", "name": "symbol", "count": 0}],
                        checks=[{"name": "sum", "passed": True, "detail": ["on secret-7:0"]}], samples={
                            "unit": "s", "values": [], "series": "series/own.json", "count": 300})
        about = json.loads((self.dir / run / "run.json").read_text())
        self.write(f"{run}/run.json", {**about, "labels": {"node": "secret-7"}})
        series = {"schema": 2, "key": "gemm/dtype=f32", "attempt": 1, "unit": "s", "values": [0.1] * 300, "at": []}
        self.write(f"{run}/series/own.json", series)
        (self.dir / run / "series/other.json").symlink_to("/etc/hostname")
        self.add(run, "ref")
        made = self.configs / "reference/ref"
        files = sorted(str(path.relative_to(made)) for path in made.rglob("*") if not path.is_dir())
        self.assertEqual(len(files), 3, files)
        self.assertNotIn("secret", "".join(path.read_text() for path in made.rglob("*.json*")))
        [record] = map(json.loads, (made / "records.jsonl").read_text().splitlines())
        self.assertEqual((record["flags"], record["labels"]), (["slow link: rank 0 on host"], {"team": "x"}))
        self.assertEqual(json.loads((made / record["samples"]["series"]).read_text())["values"], [0.1] * 300)
        # Nothing stays of one that cannot be made whole.
        self.write(f"{run}/series/own.json", "no series")
        self.add(run, "half", code=2)
        self.assertEqual([path.name for path in (self.configs / "reference").iterdir()], ["ref"])

    def test_published_figures_stand_beside_those_of_the_same_hardware(self):
        figure = {"key": "gemm/*", "metric": "throughput", "unit": "FLOP/s", "value": ["1.1 TFLOP/s", "1.4 TFLOP/s"],
                  "by": "Someone", "source": "https://example.org/paper"}
        own = self.configs / "published/own.json"
        self.write(own, {"schema": 1, "match": ["CPU X"], "figures": [figure]})
        run = self.made(1e12, "own")
        normal = self.normal(run)
        self.assertEqual(normal["state"], "unknown", "what others publish decides nothing")
        self.assertEqual(normal["evidence"], ["gemm f32 1 TFLOP/s; published by Someone: 1.1 – 1.4 TFLOP/s (https://example.org/paper)"])
        done = self.assay("report", run, "--json=r.json", "--md", "r.md", "--html", "r.html", env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.tables("r.json")["figures"][0]["published"],
                         [{"low": 1.1e12, "high": 1.4e12, "unit": "FLOP/s", "by": "Someone",
                           "source": "https://example.org/paper", "note": ""}])
        for name in ("r.md", "r.html"):
            self.assertIn("Someone: 1.1 – 1.4 TFLOP/s", (self.dir / name).read_text())
        self.assertIn("<path class=published", (self.dir / "r.html").read_text())
        self.write(own, {"schema": 1, "match": ["CPU Y"], "figures": [figure]})
        self.assertEqual(self.normal(run)["evidence"], [])
        self.write(own, {"schema": 1, "match": ["CPU X"], "figures": [{**figure, "sourc": "x"}]})
        self.refused("report", run, env=self.env, says=["own.json: /figures/0", "source"])

    def test_bars_show_where_reference_runs_lie(self):
        for name, rate in (("a", 0.5e12), ("b", 1.0e12)):
            self.add(self.made(rate, name), "ref-" + name)
        self.assay("report", self.made(1e12, "own"), "--html", "r.html", env=self.env)
        page = (self.dir / "r.html").read_text()
        # The scale of a figure without a peak ends at the best reference.
        self.assertIn("<rect class=reference x=490.2 y=0 width=490.2 ", page)
        self.assertIn("shade: from the lowest to the highest reference run", page)

    def test_floors_are_answered_too(self):
        run = self.made(1e12, "own", metrics=[{**self.gemm(1e12)["metrics"][0], "ci95": [0.98e12, 1.02e12]}])
        floor = {"key": "gemm/*", "metric": "throughput", "unit": "FLOP/s", "source": "ours"}
        for limit, steady, normal in (("0.9 TFLOP/s", "good", "good"), ("0.99 TFLOP/s", "warn", "unknown"),
                                      ("1.1 TFLOP/s", "good", "bad")):
            floors = self.write("floors.json", {"schema": 1, "floors": [{**floor, "at_least": limit}]})
            done = self.assay("report", run, "--floors", floors, "--json", env=self.env)
            answers = json.loads(done.stdout)["answers"]
            self.assertEqual((done.returncode, answers["steady"]["state"], answers["normal"]["state"]), (0, steady, normal))
        self.assertIn("1.00 TFLOP/s < 1.1 TFLOP/s", answers["normal"]["text"])
        self.refused("report", run, "--floors", "h100", env=self.env, says="h100-sxm")

    def test_what_is_no_reference_is_refused(self):
        outside = {**self.gemm(1)["outside_cpu"], "cpus": 1.0}
        for name, members, says in (("busy", {"outside_cpu": outside}, "Steady"), ("bad", {"status": "failed"}, "no case"),
                                    ("odd", {"comparable": False}, "no case")):
            done = self.add(self.made(1e12, name, **members), "ref", code=2)
            self.assertIn(says, done.stderr)
        self.assertIn("lower-case", self.add(self.made(1e12, "fine"), "../x", code=2).stderr)
        self.add("fine", "ref")
        self.assertIn("exists already", self.add("fine", "ref", code=2).stderr)
        self.assertEqual([path.name for path in (self.configs / "reference").iterdir()], ["ref"])


class Diagnose(AssayCase):
    def test_what_fires_has_its_evidence_ceiling_and_fix(self):
        run = self.run_dir(training(data_wait=0.05))
        rules = self.diagnosis(run)
        rule = rules["data-starved"]
        self.assertEqual((rule["state"], rule["needs"], rule["ceiling"]), ("bad", None, 2.0))
        [evidence] = rule["evidence"]
        self.assertEqual((evidence["name"], evidence["value"], evidence["case"]),
                         ("data_wait_share", 0.5, "transformer/model=gpt2-tiny"))
        self.assertTrue(rule["fix"] and rule["source"])
        self.assertEqual((rules["comm-exposed"]["state"], rules["comm-exposed"]["needs"]), ("not_judged", "several ranks"))
        self.assertIsNone(rule["usd_per_hour"])
        self.assertEqual(self.diagnosis(run, "--price", "8")["data-starved"]["usd_per_hour"], 4)
        self.assertIn("4.00 USD/h", self.assay("diagnose", run, "--price", "8").stdout)
        done = self.assay("diagnose", run)
        self.assertIn("50 % of a step waits for data", done.stdout)
        self.assertIn("bad: 1 · warnings: 0", done.stdout)

    def test_an_imbalance_names_the_slowest_rank_and_its_host(self):
        ranks = [{"rank": rank, "host": f"node{rank}", "device": "CPU", "median": 0.1, "pace": pace}
                 for rank, pace in enumerate((0.04, 0.1, 0.04))]
        rule = self.diagnosis(self.run_dir(training(ranks=ranks, world={"ranks": 3, "nodes": 3})))["imbalance"]
        self.assertEqual((rule["state"], rule["ceiling"]), ("bad", 2.5))
        self.assertIn("rank 1 on node1 takes 2.5 times as long", rule["evidence"][0]["text"])

    def test_sensors_are_read_from_the_run_directory(self):
        series = {"unit": "1", "at": [0, 1], "values": [0.9, 0.7]}
        run = self.run_dir(training(telemetry={"cpu_wait": series, "dram_active": series}))
        rules = self.diagnosis(run)
        self.assertEqual((rules["cpu-oversubscribed"]["state"], rules["memory-bound"]["state"]), ("bad", "warn"))

    def test_a_step_left_of_the_ridge_is_bound_by_memory(self):
        def record(key, **metrics):
            family = key.split("/")[0]
            return {**training(key), "family": family, "device": "cpu", "params": dict(part.split("=") for part in key.split("/")[1:]),
                    "conditions": {}, "labels": {"level": "memory"}, "spans": {},
                    "metrics": [{"name": name, "value": value, "unit": "s" if name == "step_time" else "B/s", "better": "higher",
                                 "ci95": None, "of_peak": None, "reference": None} for name, value in metrics.items()]}
        step = record("llama/model=m/precision=f32/threads=all", step_time=1, model_flops=2e9, planned_memory=1e9)
        roofs = [record("peak/dtype=f32", throughput=1e11), record("memory/op=triad/bytes=99999999", bandwidth=1e10)]
        environment = {"cpu": {"caches": [{"level": 3, "bytes": 1e8, "count": 1}]}}
        rule = self.diagnosis(self.run_dir(*roofs, step, run={"environment": environment}))["memory-bound"]
        self.assertEqual((rule["state"], rule["evidence"][0]["name"], rule["evidence"][0]["value"]), ("warn", "ridge_ratio", 5))
        rule = self.diagnosis(self.run_dir(step, name="bare", run={"environment": environment}), code=3)["memory-bound"]
        self.assertEqual((rule["state"], rule["needs"]), ("not_judged", "the families peak and memory in the same run"))

    def test_exit_codes(self):
        run = self.run_dir(training(data_wait=0.01), name="warned")
        self.assertEqual(self.diagnosis(run, "--fail-on", "bad")["data-starved"]["state"], "warn")
        self.diagnosis(run, "--fail-on", "warn", code=1)
        self.diagnosis(self.run_dir(training(data_wait=0.05), name="bad"), "--fail-on", "bad", code=1)
        self.diagnosis(self.run_dir(name="empty"), code=3)
        noisy = training(data_wait=0.005)
        noisy["metrics"][0]["ci95"] = [0.08, 0.12]   # 4.2 to 6.3 % of a step; the rule warns from 5 %
        self.run_dir(noisy, name="noisy")
        self.assertEqual(self.diagnosis("noisy")["data-starved"]["state"], "cannot_say")
        self.diagnosis("noisy", "--fail-on", "bad", code=3)
        micro = {**training(), "family": "memory", "key": "memory/op=triad", "metrics": [], "spans": {}, "params": {}}
        self.diagnosis(self.run_dir(micro, name="micro"), code=3)
        self.refused("diagnose", run, "--fail-on", "good", says="--fail-on")
        self.refused("diagnose", "nowhere", says="nowhere")

    def test_rules_of_ones_own(self):
        run = self.run_dir(training(data_wait=0.01))
        rule = {"id": "mine", "evidence": "data_wait_share", "warn": "1%", "bad": "2%", "says": "{value}", "fix": "f", "source": "s"}
        rules = self.write("rules.json", {"schema": 1, "rules": [rule]})
        self.assertEqual({id: rule["state"] for id, rule in self.diagnosis(run, "--rules", rules).items()}, {"mine": "bad"})
        self.write("rules.json", {"schema": 1, "rules": [{**rule, "evidence": "data_wait"}]})
        self.refused("diagnose", run, "--rules", rules, says="data_wait_share")


if __name__ == "__main__":
    unittest.main()
