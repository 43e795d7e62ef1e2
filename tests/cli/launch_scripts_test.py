"""The Slurm prolog and health check of configs/launch: what they tell Slurm for each answer of the gate, and for none."""
import os
import pathlib
import subprocess
import sys
import unittest

from assay_case import AssayCase

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import fake_machine  # noqa: E402

LAUNCH = pathlib.Path(__file__).resolve().parents[2] / "configs/launch"


class LaunchScripts(AssayCase):
    """The prolog and the health check, with a gate and a scontrol that a test writes."""

    def setUp(self):
        super().setUp()
        self.state = self.dir / "state/n1"
        self.program("scontrol", 'printf "%s\\n" "$@" >> calls')

    def program(self, name, body):
        path = self.write("bin/" + name, f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)
        return path

    def script(self, name, gate="assay", **env):
        env = {**os.environ, "PATH": f"{self.dir}/bin:{os.environ['PATH']}", "ASSAY_GATE_STATE": str(self.dir / "state"),
               "SLURMD_NODENAME": "n1", "ASSAY": str(gate), "ASSAY_CACHE": str(self.dir), **env}
        return subprocess.run([LAUNCH / name], cwd=self.dir, env=env, capture_output=True, text=True, timeout=60)

    def comment(self):
        """What the health check tells Slurm now."""
        (self.dir / "calls").unlink(missing_ok=True)
        done = self.script("slurm-health.sh")
        self.assertEqual(done.returncode, 0, done.stderr)
        calls = self.dir / "calls"
        return calls.read_text().splitlines() if calls.exists() else []

    def prolog(self, code, unjudged, broken, **options):
        done = self.script("slurm-prolog.sh", **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex((self.state / "unjudged").read_text() if (self.state / "unjudged").exists() else "", unjudged)
        metrics = (self.state / "gate.prom").read_text()
        self.assertIn(f"assay_gate_could_not_run {broken}\n", metrics)
        self.assertIn(f"assay_gate_not_judged {int(unjudged != '^$')}\n", metrics)

    def test_a_gate_that_does_not_judge_starts_the_job_with_a_word(self):
        good = self.program("good", "echo nothing found")
        self.prolog(0, "^$", 0, gate=good)
        self.assertEqual(self.comment(), [])
        self.prolog(0, "^not judged: why$", 0, gate=self.program("unsure", "echo not judged: why; exit 2"))
        self.assertEqual(self.comment(), ["update", "NodeName=n1", "Comment=assay gate: not judged: why"])
        self.assertEqual(self.comment(), [], "told once")
        self.prolog(0, "^gate could not run: exit code 127 .*no-such", 1, gate=self.dir / "no-such")
        self.assertRegex(self.comment()[2], "^Comment=assay gate: gate could not run: exit code 127")
        for body in ("kill -SEGV $$", "exit 4", "exit 1", "exit 0", "echo error while loading >&2; exit 126"):
            with self.subTest(body=body):
                self.prolog(0, "^gate could not run: exit code", 1, gate=self.program("bad", body))
        self.prolog(0, "^gate could not run: no answer in 1s", 1, ASSAY_GATE_TIMEOUT="1s",
                    gate=self.program("stuck", "trap '' TERM; sleep 2"))
        self.prolog(0, "^$", 0, gate=good)
        self.assertEqual(self.comment(), ["update", "NodeName=n1", "Comment="])

    def test_a_fault_drains(self):
        self.prolog(1, "^$", 0, gate=self.program("bad", "echo ASSAY-GPU-005 0000:1b:00.0 2 errors; exit 1"))
        self.assertEqual(self.comment(), ["update", "NodeName=n1", "State=DRAIN", "Reason=ASSAY-GPU-005 0000:1b:00.0 2 errors"])

    def test_without_a_folder_for_its_state_the_prolog_drains_for_faults_only(self):
        self.write("state", "a file")
        for body, code in (("echo nothing found", 0), ("echo ASSAY-GPU-005 x; exit 1", 1), ("exit 1", 0)):
            self.assertEqual(self.script("slurm-prolog.sh", gate=self.program("gate", body)).returncode, code, body)

    def test_the_prolog_with_the_real_gate(self):
        machine = fake_machine.FakeMachine(self.dir / "machine")
        self.prolog(0, "^not judged: gpu-gemm, gpu-memory, gpu-transfer did not run on 0000:1b:00.0 and 7 more", 0,
                    gate=self.binary, ASSAY_GATE_BUDGET="2s", ASSAY_ROOT=str(machine.root), ASSAY_HOST=self.dir.name)


if __name__ == "__main__":
    unittest.main()
