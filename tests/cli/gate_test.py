"""assay gate: every fault by its name, exit styles, the deadline, signals, two gates at once, bad input.
usage: gate_test.py [TRIES] [CLASS...]"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from assay_case import AssayCase

TRIES = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 1
CODE = r"^ASSAY-(GPU|CPU|MEM|NET|DISK|SYS)-\d{3}$"


class GateCase(AssayCase):
    def setUp(self):
        super().setUp()
        (self.dir / "tmp").mkdir()
        # A host of its own, since only one gate runs on a host at a time.
        self.env = {"ASSAY_CACHE": str(self.dir / "cache"), "TMPDIR": str(self.dir / "tmp"),
                    "ASSAY_HOST": f"gate-{os.getpid()}-{self._testMethodName}"[:60]}
        self.memory = self.dir / "cache/gate" / (self.env["ASSAY_HOST"] + ".jsonl")

    def gate(self, *words, budget="20s", env=None):
        return self.assay("gate", "--budget", budget, *words, env={**self.env, **(env or {})}, timeout=120)

    def answer(self, *words, code, **options):
        done = self.gate(*words, "--json", **options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertFalse(list((self.dir / "tmp").iterdir()), "the temporary folder is not empty")
        return json.loads(done.stdout)

    def listed(self):
        return json.loads(self.assay("gate", "--list", "--json").stdout)["codes"]

    def found(self, answer):
        return [finding["id"] for finding in answer["findings"]]

    def processes(self):
        """Processes with this test's cache folder in their environment."""
        left = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and self.env["ASSAY_CACHE"].encode() in (entry / "environ").read_bytes():
                    left.append((entry / "cmdline").read_bytes().replace(b"\0", b" "))
            except OSError:
                pass
        return left

    def floors(self, part, name="floors.json"):
        """Floors at `part` of what this machine reaches now."""
        done = self.assay("run", "gate", "--out", name + "-run", env=self.env)
        self.assertEqual(done.returncode, 0, done.stderr)
        floors = []
        for record in self.records(name + "-run"):
            metric = record["metrics"][0]
            higher = metric["better"] == "higher"
            floors.append({"key": record["key"], "metric": metric["name"], "unit": metric["unit"], "source": "this test",
                           "at_least" if higher else "at_most": metric["value"] * part if higher else metric["value"] / part})
        return self.write(name, {"schema": 1, "floors": floors})


class Gate(GateCase):
    def test_the_list_names_every_code_once(self):
        rows = self.listed()
        for member in ("code", "id"):
            self.assertEqual(len({row[member] for row in rows}), len(rows))
        for row in rows:
            self.assertRegex(row["code"], CODE)
            self.assertIn(row["action"], ("isolate", "reset", "monitor"))
            self.assertTrue(row["meaning"] and row["seconds"] > 0, row)
        self.assertGreaterEqual(sum(row["injectable"] for row in rows), 30)
        text = self.assay("gate", "--list").stdout
        self.assertTrue(all(row["code"] in text for row in rows))

    def test_faults_of_files_are_found_by_name(self):
        rows = [row for row in self.listed() if row["injectable"] and row["test"] == "audit"
                and not row["id"].startswith("audit-")]
        self.assertGreaterEqual(len(rows), 30)
        for attempt in range(TRIES):
            for row in rows:
                with self.subTest(fault=row["id"], attempt=attempt):
                    done = self.gate("--inject", row["id"], "--json")
                    answer = json.loads(done.stdout)
                    finding = [one for one in answer["findings"] if one["id"] == row["id"]]
                    self.assertTrue(finding, answer)
                    self.assertEqual((finding[0]["code"], answer["injected"]), (row["code"], row["id"]))
                    expected = {"fault": ("drain", 1), "warning": ("suspect", 0), "info": ("ok", 0)}
                    worst = answer["findings"][0]["severity"]
                    self.assertEqual((answer["verdict"], done.returncode), expected[worst], answer)
        self.assertFalse(self.memory.exists(), "an injected fault was remembered")

    def test_the_healthy_machine_behind_the_faults_is_healthy(self):
        # A fault that is only a remark: nothing else may be wrong with that machine.
        answer = self.answer("--inject", "reboot-required", code=0)
        self.assertEqual((answer["verdict"], self.found(answer)), ("ok", ["reboot-required"]), answer)

    def test_what_could_be_dead_is_never_ok(self):
        for fault, verdict in (("xid-unknown", "suspect"), ("gpu-driver", "suspect"), ("nic-down", "suspect"),
                               ("gpu-no-driver", "drain"), ("fabric-down", "drain"), ("rail-down", "drain")):
            with self.subTest(fault=fault):
                # The setting is of this machine's job, and not for the machine that is made up.
                answer = json.loads(self.gate("--inject", fault, "--json", env={"NCCL_IB_HCA": "none"}).stdout)
                self.assertEqual((answer["verdict"], fault in self.found(answer)), (verdict, True), answer)

    def test_faults_of_the_tests_are_found_by_name(self):
        """Those of GPUs need one."""
        faults = [row for row in self.listed() if row["injectable"] and not row["test"].startswith("gpu-")
                  and (row["test"] != "audit" or row["id"].startswith("audit-"))]
        floors = self.floors(10)   # missed even if others slowed the run for the floors to a fifth
        for row in faults:
            with self.subTest(fault=row["id"]):
                words = ("--floors", floors) if row["id"].startswith("slow-") else ()
                # What hangs or is slow takes the whole budget, so that is kept short.
                long = not words and not row["id"].endswith("-hung")
                done = self.gate("--inject", row["id"], "--json", *words, budget="60s" if long else "8s")
                answer = json.loads(done.stdout)
                self.assertIn(row["id"], self.found(answer), answer)
                if row["id"].startswith("wrong-"):
                    self.assertEqual(answer["verdict"], "drain")
                elif not words:
                    self.assertEqual(answer["verdict"], "suspect")

    def test_the_answer_has_the_shape_of_the_contract(self):
        answer = self.answer("--inject", "xid-fatal", code=1)
        self.assertEqual((answer["schema"], answer["verdict"]), (1, "drain"))
        self.assertGreater(answer["seconds"], 0)
        finding = answer["findings"][0]
        self.assertRegex(finding["code"], r"^ASSAY-GPU-\d{3}$")
        self.assertEqual((finding["device"], finding["action"], finding["severity"]), ("0000:1b:00.0", "reset", "fault"))
        self.assertIn("XID 48", finding["text"])
        self.assertTrue(finding["meaning"])
        self.assertLessEqual({"name", "state", "seconds", "figure", "floor"}, set(answer["tests"][0]))

    def test_a_real_gate_judges_this_machine(self):
        answer = json.loads(self.gate("--json").stdout)
        self.assertIn(answer["verdict"], ("ok", "suspect", "drain"), answer)
        states = {test["name"]: test["state"] for test in answer["tests"]}
        self.assertEqual(states["audit"], "ok", answer)
        self.assertIn(states["disk"], ("ok", "not_run"), answer)
        self.assertIsNone(answer["injected"])

    def test_exit_styles(self):
        expected = {"assay": (1, 0, 0, 3), "npd": (1, 0, 0, 2), "nagios": (2, 1, 0, 3)}
        cases = (("ecc-uncorrected", "20s"), ("gpu-hot", "20s"), ("reboot-required", "20s"), ("gpu-hot", "50ms"))
        states = ("CRITICAL", "WARNING", "OK", "UNKNOWN")
        for style, codes in expected.items():
            for (fault, budget), code, state in zip(cases, codes, states):
                with self.subTest(style=style, fault=fault, budget=budget):
                    done = self.gate("--inject", fault, "--exit-style", style, budget=budget)
                    self.assertEqual(done.returncode, code, done.stdout + done.stderr)
                    if style != "assay":
                        self.assertEqual(len(done.stdout.splitlines()), 1, done.stdout)
                    if style == "nagios":
                        self.assertRegex(done.stdout, rf"^ASSAY {state} - .* \| seconds=[\d.]+s;")
        # To those systems a bad command line is "unknown", not a state of the machine.
        for style, code in (("nagios", 3), ("npd", 2)):
            done = self.gate("--exit-style", style, "--floors", "nowhere.json")
            self.assertEqual(done.returncode, code)
            self.assertIn("nowhere.json", done.stdout)

    # --- the job's devices -------------------------------------------------------------------------------------------

    def test_faults_of_other_jobs_gpus_do_not_drain(self):
        self.assertEqual(self.answer("--inject", "ecc-uncorrected", "--gpus", "0", code=1)["verdict"], "drain")
        answer = self.answer("--inject", "ecc-uncorrected", "--gpus", "1", code=0)
        self.assertEqual((answer["verdict"], answer["findings"][0]["severity"]), ("ok", "info"), answer)
        self.assertIn("not one of the job's", answer["findings"][0]["text"])

    def test_a_gpu_of_the_job_that_is_not_there_drains(self):
        answer = self.answer("--inject", "reboot-required", "--gpus", "0,5", code=1)
        self.assertEqual(self.found(answer)[0], "gpu-not-there")
        self.assertIn("GPU 5", answer["findings"][0]["text"])

    # --- the deadline ------------------------------------------------------------------------------------------------

    def test_a_hung_test_does_not_outlive_the_budget(self):
        for fault, budget in (("audit-hung", 3), ("disk-hung", 3), ("test-hung", 5)):
            with self.subTest(fault=fault):
                start = time.monotonic()
                done = self.gate("--inject", fault, "--json", budget=f"{budget}s")
                seconds = time.monotonic() - start
                self.assertLess(seconds, budget + 1, done.stdout)
                self.assertLess(json.loads(done.stdout)["seconds"], budget + 1)
                self.assertFalse(self.processes())
                self.assertFalse(list((self.dir / "tmp").iterdir()))

    def test_signals_leave_nothing(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            for fault in ("disk-hung", "test-hung"):
                with self.subTest(signal=number, fault=fault):
                    gate = subprocess.Popen([self.binary, "gate", "--inject", fault, "--budget", "60s", "--json"],
                                            env={**os.environ, **self.env}, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, text=True)
                    end = time.monotonic() + 20
                    while len(self.processes()) < 2 and time.monotonic() < end:
                        time.sleep(0.05)
                    gate.send_signal(number)
                    out, _ = gate.communicate(timeout=20)
                    self.assertEqual(gate.returncode, 3, out)
                    self.assertEqual(json.loads(out)["verdict"], "not_judged")
                    self.assertFalse(self.processes())
                    self.assertFalse(list((self.dir / "tmp").iterdir()))

    def test_a_budget_too_small_for_any_test_is_said(self):
        answer = self.answer(budget="100ms", code=3)
        self.assertEqual(answer["verdict"], "not_judged")
        self.assertRegex(" ".join(answer["notes"]), "too small for any test: the shortest, audit, takes")

    def test_only_one_gate_runs_on_a_host(self):
        first = subprocess.Popen([self.binary, "gate", "--inject", "disk-hung", "--budget", "20s"], stdout=subprocess.PIPE,
                                 env={**os.environ, **self.env})
        try:
            end = time.monotonic() + 20
            while len(self.processes()) < 2 and time.monotonic() < end:
                time.sleep(0.05)
            done = self.gate("--inject", "reboot-required", budget="3s")
            self.assertEqual(done.returncode, 3, done.stdout)
            self.assertIn("another gate", done.stdout)
            done = self.gate("--inject", "reboot-required", env={"ASSAY_HOST": self.env["ASSAY_HOST"] + "-2"})
            self.assertEqual(done.returncode, 0, done.stdout)
        finally:
            first.kill()
            first.communicate()

    def test_without_a_temporary_folder_the_audit_still_judges(self):
        answer = json.loads(self.gate("--json", env={"TMPDIR": "/proc"}).stdout)
        self.assertIn("disk-broke", self.found(answer), answer)
        self.assertEqual([test["state"] for test in answer["tests"] if test["name"] == "audit"], ["ok"])

    # --- what is kept ------------------------------------------------------------------------------------------------

    def test_suspicions_are_kept_per_host(self):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"time": now, "verdict": "suspect", "findings": []})
        self.write(self.memory.relative_to(self.dir), f"{line}\n{line}\n{line}\nbroken\n")
        answer = self.answer("--inject", "reboot-required", code=0)
        self.assertEqual(answer["past"], "suspect 3 times in the past 7 days")
        self.assertEqual(len(self.memory.read_text().splitlines()), 4)

    # --- floors ------------------------------------------------------------------------------------------------------

    def test_floors_judge_figures(self):
        easy, hard = self.floors(0.1, "easy.json"), self.floors(3, "hard.json")
        done = self.gate("--floors", easy, "--json", budget="30s")
        for finding in json.loads(done.stdout)["findings"]:
            self.assertFalse(finding["id"].startswith("slow-"), finding)
        # A busy machine is not judged by its figures; an injected fault is, whatever else runs.
        answer = json.loads(self.gate("--floors", hard, "--inject", "slow-product", "--json", budget="20s").stdout)
        gemm, = [test for test in answer["tests"] if test["name"] == "gemm"]
        self.assertEqual(gemm["state"], "slow", answer)
        self.assertLess(gemm["figure"], gemm["floor"])
        self.assertGreaterEqual(gemm["repetitions"], 3)

    # --- bad input ---------------------------------------------------------------------------------------------------

    def refused_gate(self, *words, says):
        self.refused("gate", *words, says=says, env=self.env)
        self.assertFalse(list((self.dir / "tmp").iterdir()))

    def test_bad_input_is_refused(self):
        self.refused_gate("--budget", "0", says="above 0")
        self.refused_gate("--budget", "-1", says="--budget")
        self.refused_gate("--budget", "soon", says="soon")
        self.refused_gate("--inject", "xid-fatl", says=["xid-fatl", 'did you mean "xid-fatal"?'])
        self.refused_gate("--inject", "unlisted", says="cannot be injected")
        self.refused_gate("--inject", "slow-product", says="without --floors")
        self.refused_gate("--inject", "", says="--inject needs a value")
        self.refused_gate("--gpus", "one", says="neither the index")
        self.refused_gate("--exit-style", "zabbix", says="zabbix")
        self.refused_gate("--floors", "no-such-floors", says="no-such-floors")
        self.refused_gate("--floors", self.write("cut.json", '{"schema": 1, "floors": ['), says="cut.json")
        self.refused_gate("--floors", self.write("unit.json", {"schema": 1, "floors": [
            {"key": "gemm/*", "metric": "throughput", "unit": "B/s", "at_least": 1, "source": "x"}]}),
            says=["unit.json", "unit"])


if __name__ == "__main__":
    unittest.main()
