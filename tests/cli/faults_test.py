"""Injects every fault into every family that supports it: a check must notice it and name the culprit, and records must
say what was injected. Reports leave such records out unless asked. Clean runs of the same cases must raise nothing.
usage: faults_test.py [CLEAN_RUNS] [CLASS...]"""
import json
import os
import re
import sys
import unittest

from assay_case import AssayCase

CLEAN_RUNS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 1
QUICK = {"max_seconds": "100ms", "warmup_seconds": "1ms", "min_samples": 5}
STEPS = {"max_seconds": "200ms", "warmup_seconds": "1ms", "min_samples": 10}
GEMM = {"family": "gemm", "m": 128, "n": 128, "k": 128, "dtype": "f32", "protocol": QUICK}
PEAK = {"family": "peak", "dtype": "f32", "threads": "core", "protocol": QUICK}
MEMORY = {"family": "memory", "op": "copy", "bytes": "256KiB", "threads": "core", "protocol": QUICK}
COLLECTIVE = {"family": "collective", "op": "all_reduce", "bytes": "256KiB", "protocol": QUICK}
LAUNCH = {"family": "launch", "op": "fork_join", "protocol": QUICK}
GPT = {"family": "transformer", "model": "gpt2-tiny", "micro_batch": 2, "seq": 32, "threads": 1, "protocol": STEPS}
LLAMA = {**GPT, "family": "llama", "model": "llama-tiny"}
RESNET = {"family": "resnet", "model": "resnet-tiny", "micro_batch": 8, "threads": 1, "protocol": STEPS}


def cores():
    return len(os.sched_getaffinity(0))


class FaultCase(AssayCase):
    DEVICE = "cpu"
    ENVIRONMENT = {}

    def run_plan(self, *entries, env=None, **options):
        return self.measure(*entries, device=self.DEVICE, env={**self.ENVIRONMENT, **(env or {})}, **options)

    def inject(self, fault, *entries, code, words=(), env=None):
        done, records = self.run_plan(*entries, words=("--inject", fault, *words), env=env)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(len(records), len(entries), done.stderr)
        for record in records:
            self.assertIn("injected:" + fault, record["flags"], record["key"])
            self.assertFalse(record["comparable"])
        return records

    def failing(self, record):
        return [check for check in record["checks"] if not check["passed"]]


class Faults(FaultCase):
    # --- faults that break a rank ------------------------------------------------------------------------------------

    ALL = [GEMM, PEAK, MEMORY, COLLECTIVE, LAUNCH, GPT, LLAMA, RESNET]

    def test_a_crash_loses_its_case_in_every_family(self):
        for record in self.inject("crash", *self.ALL, code=4):
            self.assertEqual(record["status"], "error")
            self.assertIn("SIGABRT", record["reason"])
            self.assertEqual(record["failure"], {"kind": "crashed", "rank": 0, "host": record["ranks"][0]["host"]})

    def test_out_of_memory_is_reported_in_every_family(self):
        for record in self.inject("oom", *self.ALL, code=4):
            self.assertEqual(record["status"], "error")
            self.assertIn("out of memory", record["reason"])
            self.assertEqual(record["failure"]["kind"], "out_of_memory")

    def test_a_hang_ends_within_its_limit_in_every_family(self):
        for record in self.inject("hang", *self.ALL, code=4, words=("--timeout", "4")):
            self.assertRegex(record["reason"], r"timeout: not done after 4 s: in measure for ")
            self.assertIn("timed out", record["flags"])
            self.assertEqual(record["failure"]["kind"], "timeout")

    def test_of_two_ranks_the_one_that_broke_is_named(self):
        entries = [{**entry, "ranks": 2} for entry in (COLLECTIVE, GPT, GEMM)]
        for record in self.inject("crash", *entries, code=4):
            self.assertIn("SIGABRT", record["reason"])
        for record in self.inject("oom", *entries, code=4):
            self.assertRegex(record["reason"], "^rank 1: .*out of memory")
            self.assertEqual((record["failure"]["kind"], record["failure"]["rank"]), ("out_of_memory", 1))
        for record in self.inject("hang", *entries, code=4, words=("--timeout", "6")):
            self.assertRegex(record["reason"], r"rank 1 on \S+, in measure for .*, has not arrived at \w+ \(call \d+ of "
                                               r"their world\), where rank 0 waits")
            self.assertEqual(record["failure"], {"kind": "timeout", "rank": 1, "host": record["ranks"][1]["host"]})

    def test_a_host_that_cannot_be_reached_is_named_for_programs(self):
        self.write("hosts", "localhost\ngone\n")
        self.plan(LAUNCH)
        done = self.assay("run", "p.json", "--device", "cpu", "--hostfile", "hosts", "--each-host", "--out", "lost", "--ended", "ended.json",
                          env={"ASSAY_RSH": "/bin/false", "ASSAY_LAUNCH_LIMIT": "10"})
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        ended = json.loads((self.dir / "ended.json").read_text())
        self.assertEqual(ended["lost"], ["gone"])
        self.assertIn("host gone cannot be reached", ended["reason"])
        self.assertFalse((self.dir / "lost").exists())

    # --- faults that spoil answers -----------------------------------------------------------------------------------

    def test_a_flipped_bit_fails_the_check_of_the_answer(self):
        for record in self.inject("bit-flip", GEMM, PEAK, MEMORY, GPT, LLAMA, RESNET, code=1):
            self.assertEqual(record["status"], "failed", record["key"])
            self.assertTrue(any(check["detail"] for check in self.failing(record)), record["checks"])

    def test_a_wrong_sum_is_found_and_its_rank_named(self):
        collective, gpt = self.inject("wrong-sum", {**COLLECTIVE, "ranks": 2}, {**GPT, "ranks": 2}, code=1)
        self.assertIn("rank 1: element", self.failing(collective)[0]["detail"][0])
        self.assertEqual(self.failing(collective)[0]["culprits"], [{"rank": 1, "sender": None}])
        self.assertEqual((collective["failure"]["kind"], collective["failure"]["rank"]), ("wrong_result", 1))
        self.assertIn("ranks_with_other_gradients", [check["name"] for check in self.failing(gpt)])

    def test_a_wrong_sum_is_found_after_training_to_a_target(self):
        to_target = {"family": "transformer", "model": "mini", "mode": "quality", "runs": 2, "threads": 1, "ranks": 2}
        record, = self.inject("wrong-sum", to_target, code=1, env=self.mini_model({"value": 2.6}))
        self.assertEqual([check["name"] for check in self.failing(record)], ["ranks_with_other_weights"])
        self.assertEqual(len(record["samples"]["values"]), 2)   # both runs still finished

    def test_a_corrupt_image_is_found_and_its_file_named(self):
        folder = str(self.image_folder(24))
        loader = {"family": "dataloader", "kind": "image", "path": folder, "stage": "all", "workers": 1, "protocol": QUICK}
        for record in self.inject("corrupt-image", loader, {**RESNET, "path": folder}, code=1):
            self.assertEqual(record["status"], "failed")
            self.assertRegex(" ".join(self.failing(record)[0]["detail"]), r"class-\d/\d+\.jpg")

    # --- records and reports -----------------------------------------------------------------------------------------

    def test_a_fault_that_no_case_supports_is_refused(self):
        for fault, entry, says in [("corrupt-image", GEMM, "no case of this plan"), ("slow-link", COLLECTIVE, "--ranks 2"),
                                   ("wrong-sum", GPT, "--ranks 2"), ("bit-flip", LAUNCH, "no case")]:
            self.refused("run", self.plan(entry), "--inject", fault, "--out", "never", says=["--inject " + fault, says])
            self.assertFalse((self.dir / "never").exists())

    def test_records_say_which_faults_were_not_injected(self):
        done, (gemm, memory, launch) = self.run_plan(GEMM, MEMORY, LAUNCH, words=("--inject", "bit-flip"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("injected:bit-flip", gemm["flags"])
        self.assertIn("not injected:bit-flip", launch["flags"])
        self.assertTrue(launch["comparable"])
        done, (record,) = self.run_plan(GEMM, words=("--inject", "crash,bit-flip"))
        self.assertLessEqual({"injected:crash", "not injected:bit-flip"}, set(record["flags"]))


class Measured(FaultCase):
    """Tests that a busy machine would disturb: ctest runs them alone."""

    # --- slow ranks and links ----------------------------------------------------------------------------------------

    SLOW = [{**entry, "ranks": 2} for entry in (GEMM, MEMORY, COLLECTIVE, GPT, RESNET)]

    def found_slow(self, fault, entries, words, never):
        """Retries, because a machine that is busy with other things may hide the fault or be slow itself."""
        for attempt in range(3):
            missing = {record["key"]: record["flags"] for record in self.inject(fault, *entries, code=0)
                       if not any(re.match(words, flag) for flag in record["flags"])
                       or (record["family"] == "collective" and any(flag.startswith(never) for flag in record["flags"]))}
            if not missing:
                return
        self.fail(f"{fault}: not found in {missing}")

    @unittest.skipIf(cores() < 2, "two ranks need two cores")
    def test_a_slow_rank_is_named(self):
        self.found_slow("slow-rank", self.SLOW, r"slow rank: rank 1 on \S+ took ", never="slow link")

    @unittest.skipIf(cores() < 2, "two ranks need two cores")
    def test_a_slow_link_is_named_with_both_ends(self):
        entries = [{**COLLECTIVE, "op": ["all_reduce"], "ranks": 2}, {**GPT, "ranks": 2}]
        self.found_slow("slow-link", entries, r"slow link: that between rank 0 on \S+ and rank 1 on \S+ took \S+ times as "
                                              r"long at rank 1 as at rank 0$", never="slow rank")

    @unittest.skipIf(cores() < 3, "three ranks need three cores")
    def test_among_three_ranks_all_links_of_the_slow_one_are_named(self):
        entries = [{**COLLECTIVE, "op": ["all_reduce"], "ranks": 3}, {**GPT, "ranks": 3}]
        self.found_slow("slow-link", entries, r"slow link: every one of rank 2 on \S+ \(to rank 0 on \S+, rank 1 on \S+\)",
                        never="slow rank")
        self.found_slow("slow-rank", entries, r"slow rank: rank 2 on \S+ took ", never="slow link")

    # --- diagnosis ---------------------------------------------------------------------------------------------------

    # Each drill on so many ranks, and the rule that must call it bad.
    DRILLS = [("slow-loader", 1, "data-starved"), ("stall", 1, "stalls"), ("oversubscribe", 1, "cpu-oversubscribed"),
              ("slow-link", 2, "comm-exposed"), ("slow-rank", 2, "imbalance")]
    # Ranks with one CPU each: the thread that communicates takes a part of it while it waits for another rank, which
    # slows down the computation beside it. With accumulation that is only the last quarter of a step.
    LONG_STEPS = {**GPT, "micro_batch": 4, "seq": 64, "accumulate": 4,
                  "protocol": {"max_seconds": "3s", "warmup_seconds": "200ms", "min_samples": 20, "target_relative_ci": 1e-6}}

    def throughput(self, record):
        return self.metrics(record)["throughput"]

    def clean(self, case):
        """The throughput of a clean run, and its bad findings: there should be none."""
        done, [record] = self.run_plan(case, out="clean")
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.throughput(record), self.bad_rules("clean")

    def bad_rules(self, *words):
        """By id: the ceiling and the text of each finding."""
        return {id: (rule["ceiling"], [finding["text"] for finding in rule["evidence"]])
                for id, rule in self.diagnosis(*words).items() if rule["state"] == "bad"}

    def drill(self, fault, ranks, rule):
        """Why a drill between two clean runs did not go as it must; empty: it did."""
        case = {**self.LONG_STEPS, "ranks": ranks}
        if fault == "slow-link":  # its delay is fixed: on a fast CPU it must be a large part of the step
            case["accumulate"] = 1
        before, bad = self.clean(case)
        if bad:
            return f"clean, yet {bad}"
        [record] = self.inject(fault, case, code=0)
        found = self.bad_rules("out", "--injected")
        if set(found) != {rule}:
            return f"instead of {rule}: {found}"
        ceiling, texts = found[rule]
        if rule == "imbalance" and not all(f"rank 1 on {record['ranks'][1]['host']}" in text for text in texts):
            return f"the slow rank is not named: {texts}"
        after, bad = self.clean(case)
        if bad:
            return f"clean, yet {bad}"
        # What the clean runs differ by is noise; runs on a quiet machine differ by a few percent.
        noise = 0.05 + abs(before - after) / min(before, after)
        gain = (before + after) / 2 / self.throughput(record)
        print(f"{fault}: {gain:.3g} times as fast without it, said to be about {ceiling:.3g}, noise {noise:.2g}", flush=True)
        if noise > 0.15:
            return f"clean runs differ too much: {before:.3g} and {after:.3g}"
        # A CPU that has waited or was shared also computes more slowly, which is no waiting: caches are empty, clocks low.
        beyond = {"oversubscribe": 1.35, "slow-loader": 1.2}.get(fault, 1)
        if not 0.8 * ceiling / (1 + noise) <= gain <= beyond * ceiling * (1 + noise):
            return f"without it {gain:.3g} times as fast, but said to be {ceiling:.3g}"
        return ""

    def test_each_drill_fires_its_own_rule_alone_and_its_end_gains_what_the_ceiling_says(self):
        for fault, ranks, rule in self.DRILLS:
            with self.subTest(fault):
                if cores() < ranks:
                    self.skipTest(f"{ranks} ranks need {ranks} cores")
                problems = []
                attempts = 5  # the machine may be busy, or share its cores with others
                while len(problems) < attempts and (problem := self.drill(fault, ranks, rule)):
                    problems.append(problem)
                self.assertLess(len(problems), attempts, problems)

    def test_reports_leave_out_injected_records_unless_asked(self):
        self.run_plan(MEMORY, out="clean")
        self.inject("slow-rank", MEMORY, code=0)
        done = self.assay("report", "out")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("1 record has injected faults and was left out", done.stderr)
        self.assertIn("--injected", done.stderr)
        self.assertNotIn("B/s", done.stdout)
        done = self.assay("report", "clean", "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("left out", done.stderr)
        done = self.assay("report", "out", "--injected")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("B/s", done.stdout)

        done = self.assay("compare", "--base", "clean", "--head", "out")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn("a fault was injected", done.stdout)
        # The outcome depends on the machine: two runs may be too noisy.
        done = self.assay("compare", "--base", "clean", "--head", "out", "--injected")
        self.assertIn("left out: 0", done.stdout, done.stderr)
        self.assertNotIn("a fault was injected", done.stdout)

        key = self.records("clean")[0]["key"]
        floors = self.write("floors.json", {"schema": 1, "floors": [
            {"key": key, "metric": "bandwidth", "unit": "B/s", "at_least": 1e20, "source": "test", "required": True}]})
        done = self.assay("check", "out", "--floors", floors)
        self.assertIn("injected faults", done.stdout)
        done = self.assay("check", "out", "--floors", floors, "--injected")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertNotIn("injected faults", done.stdout)

    # --- clean runs --------------------------------------------------------------------------------------------------

    def test_clean_runs_raise_nothing(self):
        entries = [GEMM, PEAK, MEMORY, LAUNCH, GPT, LLAMA, RESNET, *(self.SLOW if cores() >= 2 else [])]
        for number in range(CLEAN_RUNS):
            done, records = self.run_plan(*entries)
            self.assertEqual(done.returncode, 0, f"run {number}: {done.stderr}")
            self.assertEqual(len(records), len(entries))
            for record in records:
                raised = [flag for flag in record["flags"] if re.match("slow |(not )?injected", flag)]
                self.assertEqual(raised, [], f"run {number}: {record['key']}")


@unittest.skipUnless("ASSAY_EMULATED" in os.environ, "no emulated GPU in this build")
class FaultsOnGpu(FaultCase):
    """Faults in answers that are in GPU memory. Collectives between GPUs: tests/distributed/nccl_test.py."""
    DEVICE = "cuda"
    ENVIRONMENT = {"ASSAY_MODULE_PATH": os.environ.get("ASSAY_EMULATED", "")}
    SMALL = {"max_seconds": "20ms", "warmup_seconds": "1ms", "min_samples": 3}
    SUITES = [{**GEMM, "m": 32, "n": 32, "k": 32, "protocol": SMALL}, {"family": "memory", "op": "copy", "bytes": "64KiB", "protocol": SMALL},
              {"family": "transfer", "direction": "h2d", "memory": "pinned", "bytes": "64KiB", "protocol": SMALL}]
    TRAINING = [{**GPT, "protocol": SMALL}, {**LLAMA, "protocol": SMALL},
                {**RESNET, "micro_batch": 2, "protocol": SMALL}]

    def test_a_lost_rank_loses_its_case(self):
        for record in self.inject("crash", *self.SUITES, *self.TRAINING, code=4):
            self.assertIn("SIGABRT", record["reason"])
        for record in self.inject("oom", *self.SUITES, *self.TRAINING, code=4):
            self.assertRegex(record["reason"], r"out of (device )?memory")
        for record in self.inject("hang", self.SUITES[0], self.TRAINING[0], code=4, words=("--timeout", "8")):
            self.assertRegex(record["reason"], r"timeout: not done after 8 s: in measure for ")

    def test_a_flipped_bit_fails_the_check_of_the_answer(self):
        for record in self.inject("bit-flip", *self.SUITES, *self.TRAINING, code=1):
            self.assertEqual(record["status"], "failed", record["key"])
            self.assertTrue(any(check["detail"] for check in self.failing(record)), record["checks"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
