"""assay gate --policy, --observe, --profile and the fuse, on machines of files; gates of several hosts at once."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

from assay_case import AssayCase

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from fake_machine import gpu, write_machine  # noqa: E402


class Policies(AssayCase):
    def setUp(self):
        super().setUp()
        self.machine = write_machine(self.dir / "machine")
        self.name = f"policy-{os.getpid()}-{self._testMethodName}"[:50]

    def policy(self, **members):
        return self.write("policy.json", members)

    def command(self, *words, host="a"):
        """The words of a gate that only looks, and its environment; each host remembers by itself."""
        return ([self.binary, "gate", "--profile", "health", *map(str, words)],
                {**os.environ, "ASSAY_ROOT": str(self.machine.root), "ASSAY_HOST": f"{self.name}-{host}",
                 "ASSAY_CACHE": str(self.dir / f"cache-{host}")})

    def gate(self, *words, code, host="a"):
        words, environment = self.command(*words, host=host)
        done = subprocess.run(words, cwd=self.dir, env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def answer(self, *words, **options):
        return json.loads(self.gate(*words, "--json", **options))

    def warn(self):
        self.machine.nvml(0, throttle_reasons=0x20)   # gpu-hot, a warning

    def fault(self):
        self.machine.nvml(1, ecc_uncorrected=3)

    def test_a_policy_says_what_a_problem_means(self):
        self.machine.port(0, rate="200 Gb/sec (4X HDR)")   # nic-slow, a warning
        self.assertEqual(self.answer(code=0)["verdict"], "suspect")
        answer = self.answer("--policy", self.policy(**{"nic-slow": "drain"}), code=1)
        self.assertEqual((answer["verdict"], answer["policy"], answer["findings"][0]["severity"]), ("drain", str(self.dir / "policy.json"), "fault"))
        code = answer["findings"][0]["code"]
        self.assertEqual(self.answer("--policy", self.policy(**{code: "ok"}), code=0)["verdict"], "ok")
        self.fault()
        self.assertEqual(self.answer("--policy", self.policy(**{"nic-slow": "ok", "ecc-uncorrected": "suspect"}), code=0)["verdict"], "suspect")

    def test_suspicions_add_up(self):
        self.warn()
        words = ("--policy", self.policy(suspect={"times": 3, "within": "7d", "then": "drain"}))
        self.assertEqual([self.answer(*words, code=0)["verdict"] for _ in range(2)], ["suspect", "suspect"])
        answer = self.answer(*words, code=1)
        self.assertEqual(answer["verdict"], "drain")
        self.assertIn("(suspect 3 times within", answer["findings"][0]["text"])
        self.assertEqual(self.answer(*words, host="b", code=0)["verdict"], "suspect", "another host")

    def test_observing_records_and_exits_0(self):
        self.fault()
        answer = self.answer("--observe", code=0)
        self.assertEqual((answer["verdict"], answer["observe"]), ("drain", True))
        self.assertIn("drain (observed only: without --observe the exit code is 1)", self.gate("--observe", code=0))
        self.assertRegex(self.gate("--observe", "--exit-style", "npd", code=0), "^observed drain: ASSAY-GPU-")
        self.assertRegex(self.gate("--observe", "--exit-style", "nagios", code=0), "^ASSAY OK - observed drain: ASSAY-GPU-")
        memory = (self.dir / f"cache-a/gate/{self.name}-a.jsonl").read_text().splitlines()
        self.assertEqual([(line["verdict"], line["instead"]) for line in map(json.loads, memory)], [("drain", "observed")] * 4)
        # What is observed does not blow the fuse.
        policy = self.policy(at_most="1 in 1h", shared=str(self.dir / "shared"))
        for host in "abc":
            self.answer("--observe", "--policy", policy, host=host, code=0)
        self.assertEqual(self.answer("--policy", policy, code=1)["fuse"]["drains"], 1)

    def test_profiles(self):
        answer = self.answer(code=0)
        self.assertEqual((answer["profile"], answer["budget"]), ("health", 10))
        states = {test["test"]: (test["state"], test["reason"]) for test in answer["tests"]}
        self.assertEqual(states.pop("audit")[0], "ok")
        self.assertEqual(set(states.values()), {("not_run", "not in the profile health")})
        self.assertEqual(self.answer("--budget", "8s", code=0)["budget"], 8)
        done = self.assay("gate", "--profile", "epilogue")
        self.assertEqual(done.returncode, 2)
        self.assertIn("epilog", done.stderr)
        epilog = json.loads(self.assay("gate", "--profile", "epilog", "--json", env=self.command()[1]).stdout)
        self.assertEqual({test["test"] for test in epilog["tests"] if test["state"] == "ok"}, {"audit", "disk"})

    def test_the_fuse_with_many_gates_at_once(self):
        self.fault()
        shared = self.dir / "shared"
        words = ("--policy", self.policy(at_most="2 in 1h", shared=str(shared)), "--json")
        running = []
        for number in range(8):
            command, environment = self.command(*words, host=f"h{number}")
            running.append(subprocess.Popen(command, cwd=self.dir, env=environment, stdout=subprocess.PIPE, text=True))
        answers = [(json.loads(process.communicate(timeout=120)[0]), process.returncode) for process in running]
        self.assertEqual(sorted(code for _, code in answers), [1, 1] + [3] * 6)
        fuses = [answer["fuse"] for answer, _ in answers]
        self.assertEqual(sum(fuse["alarm"] for fuse in fuses), 1)
        self.assertFalse([fuse for fuse in fuses if fuse["problem"]])
        for answer, code in answers:
            self.assertEqual((answer["verdict"], answer["fuse"]["blown"]), ("drain", False) if code == 1 else ("not_judged", True))
            self.assertEqual(answer["findings"][0]["severity"], "fault")
        [alarm] = [answer for answer, _ in answers if answer["fuse"]["alarm"]]
        self.assertIn("ALARM: the fuse has blown: 3 drains of", " ".join(alarm["notes"]))
        # Nothing drains until a person resets it.
        policy = words[:2]
        later = self.answer(*policy, host="h0", code=3)
        self.assertFalse(later["fuse"]["alarm"])
        self.assertIn(f"no drain: the fuse has blown at {later['fuse']['since']} on {self.name}-h", self.gate(*policy, "--exit-style", "npd", host="h1", code=2))
        self.assertIn('"instead":"withheld"', (self.dir / f"cache-h0/gate/{self.name}-h0.jsonl").read_text())
        done = self.assay("gate", "--reset-fuse", *policy)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the fuse is whole again: it had blown at", done.stdout)
        self.answer(*policy, host="h5", code=1)
        self.assertIs(json.loads(self.assay("gate", "--reset-fuse", *policy, "--json").stdout)["was"]["blown"], False)

    def test_a_fuse_that_cannot_be_counted_lets_nothing_drain(self):
        self.fault()
        self.write("file", "")
        answer = self.answer("--policy", self.policy(at_most="5% in 1h", shared=str(self.dir / "file")), code=3)
        self.assertEqual(answer["verdict"], "not_judged")
        self.assertIn("no drain, as drains cannot be counted", " ".join(answer["notes"]))
        answer = self.answer("--policy", self.policy(at_most="5% in 1h"), code=1)
        self.assertIn('name a folder that all hosts see as "shared"', " ".join(answer["notes"]))

    def test_drills_are_neither_counted_nor_withheld(self):
        policy = self.policy(at_most="1 in 1h", shared=str(self.dir / "shared"))
        for host in "abc":
            self.assertIsNone(self.answer("--policy", policy, "--inject", "xid-fatal", host=host, code=1)["fuse"])

    def test_bad_policies_are_refused(self):
        for members, says in (({"nic-slwo": "drain"}, ["/nic-slwo", "nic-slow"]), ({"nic-slow": "kill"}, ["/nic-slow", "drain"]),
                              ({"at_most": "5%"}, ["/at_most", "5% in 1h"]), ({"suspect": {"time": 3}}, ["/suspect/time", "times"])):
            self.policy(**members)
            done = self.assay("gate", "--policy", "policy.json")
            self.assertEqual(done.returncode, 2, done.stdout)
            for text in ("policy.json", *says):
                self.assertIn(text, done.stderr)
        self.policy(suspect={"times": 3, "within": "7d", "then": "drain"})
        for words in (("--policy", "policy.json"), ()):
            done = self.assay("gate", "--reset-fuse", *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn("at_most", done.stderr)


if __name__ == "__main__":
    unittest.main()
