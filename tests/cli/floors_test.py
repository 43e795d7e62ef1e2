"""assay floors learn: floors from runs of healthy machines, what it says of too few or mixed ones, and what it refuses."""

import json
import math
import random
import unittest

from assay_case import AssayCase

KEYS = ("gemm/dtype=f32/m=64", "gemm/dtype=f32/m=128")
PROTOCOL = {"form": "repeat", "cache": "cold", "min_samples": 30, "max_seconds": 3.0, "hash": "0123456789abcdef"}


class Floors(AssayCase):
    def record(self, key, value, host, ci=0.002, **more):
        return {"schema": 2, "key": key, "family": key.split("/")[0], "device": "cpu", "protocol": PROTOCOL,
                "ranks": [{"rank": 0, "host": host, "device": "AMD Zen 5", "median": 1.0}],
                "conditions": {"types": "f32"}, "choices": {"implementation": "a"}, "status": "ok",
                "metrics": [{"name": "throughput", "value": value, "unit": "FLOP/s", "better": "higher",
                             "ci95": [value * (1 - ci), value * (1 + ci)]}], **more}

    def fleet(self, machines=12, runs=3, between=0.01, within=0.01, slow=(), seed=1, folder="runs", cpu="AMD Zen 5",
              keys=KEYS, **more):
        """Made-up runs: machine m of `slow` has that loss in the first case. The run directories."""
        draw, dirs = random.Random(seed), []
        for machine in range(machines):
            levels = {key: draw.gauss(0, between) for key in keys}
            for number in range(runs):
                host = f"node{machine:02}"
                records = []
                for key in keys:
                    value = 1e12 * math.exp(levels[key] + draw.gauss(0, within))
                    records.append(self.record(key, value * (1 - (dict(slow).get(machine, 0) if key == keys[0] else 0)),
                                               host, **more))
                dirs.append(self.run_dir(*records, name=f"{folder}/{host}-{number}", run={
                    "schema": 2, "started": f"2026-03-{machine + 1:02}T0{number % 10}:00:0{number // 10}Z",
                    "environment": {"hostnames": [host], "cpu": {"name": cpu, "usable_cores": 8}}}))
        return dirs

    def learn(self, *words, code=0, out="f.json"):
        done = self.assay("floors", "learn", *words, "--out", out, "--json=learned.json")
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        learned = json.loads((self.dir / "learned.json").read_text())
        return done, learned

    def check(self, *dirs, code=0, floors="f.json"):
        done = self.assay("check", *dirs, "--floors", floors, "--json")
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def test_learned_floors_pass_the_fleet_and_fail_a_slow_machine(self):
        dirs = self.fleet()
        done, learned = self.learn(*dirs)
        self.assertEqual(len(learned["floors"]), 2)
        self.assertEqual(learned["false_fail"], {"file": 0.001, "floor": 0.0005, "cases": 2})
        for floor in learned["floors"]:
            self.assertEqual((floor["machines"], floor["runs"]), (12, 36))
            self.assertTrue(0.003 < floor["between"] < 0.02, floor)
            self.assertTrue(0.006 < floor["within"] < 0.014, floor)
            self.assertTrue(0.6 < floor["limit"] / floor["median"] < 1, floor)
            self.assertTrue(1 - floor["limit"] / floor["median"] < floor["loss_found"] <= 0.4, floor)
        self.assertIn("false fails: at most 0.1 % of the runs of healthy machines, 0.05 % for each floor", done.stdout)
        self.assertIn("floors: 2 of 2 cases", done.stdout)
        file = json.loads((self.dir / "f.json").read_text())
        for floor in file["floors"]:
            self.assertIn("learned from 12 machines, 36 runs (AMD Zen 5, 8 cores; 2026-03-01 to 2026-03-12)",
                          floor["source"])
            self.assertIn("at most 0.05 %", floor["source"])
            self.assertIn("median 1 TFLOP/s", floor["note"].replace("1.00", "1").replace("0.998", "1"))
            self.assertEqual(floor["labels"], {"types": "f32"})
            self.assertEqual(floor["protocol"]["cache"], "cold")
        self.check(*dirs)
        loss = learned["floors"][0]["loss_found"]
        slow = self.fleet(1, 1, seed=5, slow={0: 1.3 * loss}, folder="slow", keys=sorted(KEYS))
        verdicts = {floor["key"]: floor["verdict"] for floor in self.check(*slow, code=1)["floors"]}
        self.assertEqual(verdicts, {sorted(KEYS)[0]: "fail", sorted(KEYS)[1]: "pass"})

    def test_the_file_is_the_same_for_the_same_runs_in_any_order(self):
        dirs = self.fleet(6)
        self.learn(*dirs)
        first = (self.dir / "f.json").read_bytes()
        self.learn(*reversed(dirs), dirs[0])
        self.assertEqual((self.dir / "f.json").read_bytes(), first)

    def test_a_record_measured_otherwise_is_not_judged(self):
        self.learn(*self.fleet(6))
        other = self.fleet(1, 1, folder="other", protocol={**PROTOCOL, "max_seconds": 1.0, "hash": "fedcba9876543210"})
        found = self.check(*other, code=3)
        self.assertIn("max_seconds is 1.0, the floor asks for 3.0", found["floors"][0]["reason"])
        self.check(*self.fleet(1, 1, folder="types", conditions={"types": "bf16"}), code=3)

    def test_a_lower_rate_gives_a_lower_floor(self):
        dirs = self.fleet()
        limits = []
        for rate in ("5%", "0.01", "0.1%"):
            limits.append(self.learn(*dirs, "--false-fail", rate)[1]["floors"][0]["limit"])
        self.assertEqual(limits, sorted(limits, reverse=True))
        self.assertLess(limits[2], limits[0])

    def test_too_few_machines_are_said_and_nothing_is_written(self):
        done, learned = self.learn(*self.fleet(2), code=3)
        self.assertIn("too few machines: 2; at least 3 are needed", done.stdout)
        self.assertEqual(done.stderr, "assay: floors learn: no case gave a floor; nothing was written to f.json\n")
        self.assertEqual((learned["floors"], len(learned["without"])), ([], 2))
        self.assertFalse((self.dir / "f.json").exists())
        done, learned = self.learn(*self.fleet(4, between=0.03, within=0.001), code=3)
        self.assertRegex(done.stdout, r"too few machines: 4; at 0.05 % false fails at least \d+ are needed for a "
                                      r"floor that finds a loss of 20 %")
        done, learned = self.learn(*self.fleet(12, between=0.3, folder="wild"), "--outliers", "keep", code=3)
        self.assertRegex(learned["without"][0]["reason"], "the machines differ too much, by [23].* for a floor that finds")

    def test_some_cases_give_floors_and_others_do_not(self):
        dirs = self.fleet(8)
        dirs += self.fleet(2, folder="more", keys=("memory/op=copy",))
        done, learned = self.learn(*dirs)
        self.assertEqual([floor["key"] for floor in learned["without"]], ["memory/op=copy"])
        self.assertIn("memory/op=copy throughput: too few machines: 2", done.stdout)
        self.assertEqual(len(json.loads((self.dir / "f.json").read_text())["floors"]), 2)

    def test_a_run_of_one_machine_apart_is_named_and_left_out_if_asked(self):
        dirs = self.fleet(1, 10, keys=KEYS[:1]) + self.fleet(1, 1, folder="bad", slow={0: 0.6}, keys=KEYS[:1])
        done, learned = self.learn(*dirs, "--same-machine", code=3)
        self.assertRegex(learned["without"][0]["reason"], r"1 of 11 runs stands apart, by 5. % .*--outliers leave-out")
        done, learned = self.learn(*dirs, "--same-machine", "--outliers", "leave-out")
        self.assertEqual(learned["floors"][0]["runs"], 10)
        self.assertIn("1 of 11 runs stands apart", done.stdout)

    def test_one_machine_needs_to_be_asked_for(self):
        dirs = self.fleet(1, 10)
        done, _ = self.learn(*dirs, code=3)
        self.assertIn("all runs are of one machine, node00", done.stderr)
        self.assertIn("--same-machine", done.stderr)
        done, learned = self.learn(*dirs, "--same-machine")
        self.assertEqual(learned["floors"][0]["between"], None)
        floor = json.loads((self.dir / "f.json").read_text())["floors"][0]
        self.assertIn("learned from one machine, node00, 10 runs", floor["source"])
        self.assertIn("for that machine only", floor["source"])
        self.check(*dirs)
        self.check(*self.fleet(1, 1, folder="quota", slow={0: 0.4}), code=1)
        self.refused("floors", "learn", *self.fleet(2, 3, folder="two"), "--same-machine", "--out", "g.json",
                     says=["--same-machine", "2 machines: node00, node01"])
        self.assertFalse((self.dir / "g.json").exists())

    def test_machines_that_stand_apart_are_named_before_anything_is_written(self):
        dirs = self.fleet(20, slow={3: 0.15, 17: 0.25})
        done, learned = self.learn(*dirs, code=1)
        self.assertIn("2 machines stand apart from the others", done.stderr)
        self.assertEqual([each["machine"] for each in learned["apart"]], ["node17", "node03"])
        self.assertRegex(done.stdout, r"node17: 2\d % slower in " + KEYS[0])
        self.assertFalse((self.dir / "f.json").exists())
        _, without = self.learn(*dirs, "--outliers", "leave-out")
        clean = self.fleet(20, folder="clean")
        _, healthy = self.learn(*(name for name in clean if "node03" not in name and "node17" not in name), out="g.json")
        self.assertEqual([floor["limit"] for floor in without["floors"]], [floor["limit"] for floor in healthy["floors"]])
        _, kept = self.learn(*dirs, "--outliers", "keep")
        kept_limits = {floor["key"]: floor["limit"] for floor in kept["floors"]}
        for floor in without["floors"]:
            self.assertLess(kept_limits.get(floor["key"], 0), 1.03 * floor["limit"])
        self.assertLess(kept_limits.get(KEYS[0], 0), 0.95 * {f["key"]: f["limit"] for f in without["floors"]}[KEYS[0]])

    def test_figures_that_are_no_healthy_measurements_are_left_out_and_counted(self):
        dirs = self.fleet(6)
        _, before = self.learn(*dirs)
        slow = dict(slow={0: 0.5}, machines=1, runs=1)
        outside = {"usable": 2, "seconds": 10, "cpus": 1.5, "steal": 0, "throttled": 0, "processes": [], "host": "x"}
        for name, more, why in (("failed", {"status": "failed"}, "failed"),
                                ("fault", {"flags": ["injected:bit-flip"]}, "a fault was injected"),
                                ("root", {"comparable": False, "flags": ["files of another root"]}, "not comparable"),
                                ("busy", {"outside_cpu": outside}, "disturbed"),
                                ("nodes", {"world": {"ranks": 2, "nodes": 2}}, "several hosts"),
                                ("skipped", {"status": "skipped", "metrics": []}, "skipped")):
            with self.subTest(name):
                done, after = self.learn(*dirs, *self.fleet(folder=name, seed=9, **slow, **more))
                self.assertEqual(after["floors"], before["floors"])
                self.assertTrue(any(note.startswith(f"2 records {why}") or why in note for note in after["notes"]), after)
                self.assertIn(why, done.stdout)
        _, busy = self.learn(*self.fleet(6, folder="all-busy", outside_cpu=outside), code=3)
        self.assertEqual(busy["nothing"], "no record whose figure counts; --disturbed takes those that were disturbed")
        self.learn(*self.fleet(6, folder="all-busy", outside_cpu=outside), "--disturbed")

    def test_runs_that_do_not_compare_are_refused_by_name(self):
        dirs = self.fleet(4)
        for name, more, says in (
                ("hardware", {"cpu": "AMD Zen 3"}, ["different hardware", "AMD Zen 3, 8 cores (node00)", "AMD Zen 5"]),
                ("protocol", {"protocol": {**PROTOCOL, "cache": "hot", "hash": "f"}},
                 ["protocol cache is ", "cold (node00-0/records.jsonl line", "hot (node00-0/records.jsonl line", "for 1 case more"]),
                ("conditions", {"conditions": {"types": "bf16"}}, ["types is ", "f32 (node00-0", "bf16 (node00-0"])):
            with self.subTest(name):
                other = self.fleet(1, 1, folder=name, **more)
                self.refused("floors", "learn", *dirs, *other, "--out", "f.json", says=says)
        self.learn(*dirs, *self.fleet(1, 1, folder="choice", choices={"implementation": "b"}))

    def test_bad_rates(self):
        dirs = self.fleet(3, 1)
        for rate in ("0", "0%", "100%", "1", "-1%", "30%", "often", "", "nan", "1e-9"):
            with self.subTest(rate):
                self.refused("floors", "learn", *dirs, "--out", "f.json", "--false-fail=" + rate, says="--false-fail")
        self.assertFalse((self.dir / "f.json").exists())

    def test_bad_words(self):
        dirs = self.fleet(3, 1)
        self.refused("floors", "learn", *dirs, "--out", "f.json", "--outliers", "drop", says="--outliers")
        self.refused("floors", "learn", *dirs, says="--out")
        self.refused("floors", "learn", "--out", "f.json", says="dirs")
        self.refused("floors", "lern", says='did you mean "learn"')
        self.refused("floors", says="no subcommand")
        self.refused("floors", "learn", *dirs, "--out", "f.json", "--same-machin", says='did you mean "--same-machine"')

    def test_a_file_of_the_users_is_not_replaced(self):
        dirs = self.fleet(6)
        mine = {"schema": 1, "floors": [{"key": "*", "metric": "throughput", "unit": "FLOP/s", "at_least": 1,
                                         "source": "mine"}]}
        for content in (mine, "notes", b"", b"\xff\x00"):
            self.write("f.json", content)
            before = (self.dir / "f.json").read_bytes()
            self.refused("floors", "learn", *dirs, "--out", "f.json", says=["f.json", "name another file"])
            self.assertEqual((self.dir / "f.json").read_bytes(), before)
        (self.dir / "f.json").unlink()
        self.learn(*dirs)
        learned = json.loads((self.dir / "f.json").read_text())
        self.learn(*dirs, "--false-fail", "1%")
        self.assertNotEqual(json.loads((self.dir / "f.json").read_text()), learned)
        learned["floors"].append(mine["floors"][0])
        self.write("f.json", learned)
        self.refused("floors", "learn", *dirs, "--out", "f.json", says="not all of it was learned")
        (self.dir / "folder").mkdir()
        self.refused("floors", "learn", *dirs, "--out", "folder", says="folder")
        self.refused("floors", "learn", *dirs, "--out", "nowhere/f.json", says="nowhere")

    def test_nothing_to_learn_from(self):
        self.run_dir(name="empty")
        done, learned = self.learn("empty", code=3)
        self.assertIn("no record whose figure counts", done.stderr)
        self.refused("floors", "learn", "missing", "--out", "f.json", says="missing")
        self.write("broken/run.json", "{")
        self.refused("floors", "learn", "broken", "--out", "f.json", says="broken")
        dirs = self.fleet(6)
        with open(self.dir / dirs[0] / "records.jsonl", "a") as file:
            file.write("not json\n")
        done, learned = self.learn(*dirs)
        self.assertTrue(any("node00-0/records.jsonl line 3" in note for note in learned["notes"]), learned["notes"])

    def test_floors_to_stdout(self):
        done = self.assay("floors", "learn", *self.fleet(6), "--out", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(json.loads(done.stdout)["floors"]), 2)


if __name__ == "__main__":
    unittest.main()
