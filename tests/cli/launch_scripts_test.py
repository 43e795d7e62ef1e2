"""The Slurm prolog and health check of configs/launch: what they tell Slurm for each answer of the gate, and for none."""
import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import unittest

from assay_case import AssayCase

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import fake_machine  # noqa: E402

SOMEBODY = 4321
LAUNCH = pathlib.Path(__file__).resolve().parents[2] / "configs/launch"


class LaunchScripts(AssayCase):
    """The prolog and the health check, with a gate and a scontrol that a test writes."""

    def setUp(self):
        super().setUp()
        self.state = self.dir / "state/n1"
        self.node_is("ALLOCATED")

    def node_is(self, state):
        self.program("scontrol", f'[ "$1" = show ] && {{ echo "NodeName=n1 State={state} CPUs=2"; exit; }}\n'
                     'printf "%s\\n" "$@" >> calls')

    def program(self, name, body):
        path = self.write("bin/" + name, f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)
        return path

    def script(self, name, gate="assay", **env):
        env = {**os.environ, "SCONTROL": f"{self.dir}/bin/scontrol", "ASSAY_GATE_STATE": str(self.dir / "state"),
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

    def test_gates_that_could_not_run_are_counted(self):
        good, bad = self.program("good", "echo nothing found"), self.dir / "no-such"
        for gate, count in ((bad, 1), (bad, 2), (good, 2), (bad, 3)):
            self.script("slurm-prolog.sh", gate=gate)
            self.assertIn(f"assay_gate_could_not_run_total {count}\n", (self.state / "gate.prom").read_text())
        (self.state / "failures").write_text("a[$(reboot)]\n")
        self.script("slurm-prolog.sh", gate=bad)
        self.assertIn("assay_gate_could_not_run_total 1\n", (self.state / "gate.prom").read_text())

    def test_an_epilog_finds_what_a_job_left_behind(self):
        gate = self.program("gate", 'echo "ASSAY-GPU-005 $*"; exit 1')
        self.assertEqual(self.script("slurm-epilog.sh", gate=gate).returncode, 1)
        self.assertEqual((self.state / "drain").read_text(), "ASSAY-GPU-005 gate --budget 10s --exit-style npd\n")
        self.assertIn("State=DRAIN", self.comment())
        self.assertEqual(self.script("slurm-epilog.sh", gate=self.dir / "no-such").returncode, 0)

    def test_a_node_that_is_idle_is_tested_now_and_then(self):
        gate = self.program("gate", f"echo x >> {self.dir}/gates; echo ASSAY-GPU-005 x; exit 1")
        gates = self.dir / "gates"
        self.script("slurm-health.sh", gate=gate)
        self.assertFalse(gates.exists(), "a job runs")
        self.node_is("IDLE+DRAIN")
        self.script("slurm-health.sh", gate=gate)
        self.node_is("IDLE")
        self.script("slurm-health.sh", gate=gate, ASSAY_GATE_IDLE_EVERY="0")
        self.assertFalse(gates.exists())
        for _ in range(2):
            self.script("slurm-health.sh", gate=gate)
        self.assertEqual(gates.read_text(), "x\n", "once in six hours")
        self.assertEqual((self.dir / "calls").read_text().splitlines(), ["update", "NodeName=n1", "State=DRAIN", "Reason=ASSAY-GPU-005 x"])
        old = (self.state / "idle").stat().st_mtime - 7 * 3600
        os.utime(self.state / "idle", (old, old))
        self.script("slurm-health.sh", gate=gate)
        self.assertEqual(gates.read_text(), "x\nx\n")

    def test_a_fault_drains(self):
        self.prolog(1, "^$", 0, gate=self.program("bad", "echo ASSAY-GPU-005 0000:1b:00.0 2 errors; exit 1"))
        self.assertEqual(self.comment(), ["update", "NodeName=n1", "State=DRAIN", "Reason=ASSAY-GPU-005 0000:1b:00.0 2 errors"])

    def test_without_a_folder_for_its_state_the_prolog_drains_for_faults_only(self):
        self.write("state", "a file")
        for body, code in (("echo nothing found", 0), ("echo ASSAY-GPU-005 x; exit 1", 1), ("exit 1", 0)):
            self.assertEqual(self.script("slurm-prolog.sh", gate=self.program("gate", body)).returncode, code, body)

    def test_what_the_environment_plants_is_not_used(self):
        planted = self.dir / "planted"
        for name in ("assay", "timeout", "stat", "mkdir", "chmod", "dirname", "readlink", "mv", "rm", "tail", "sed", "cmp", "cp",
                     "head", "hostname", "scontrol", "install"):
            self.program(f"../planted/{name}", f'/bin/echo "$0" >> {self.dir}/used; exit 1')
        self.write("rc", f"/bin/echo BASH_ENV >> {self.dir}/used")
        hostile = {"PATH": f"{planted}:{os.environ['PATH']}", "BASH_ENV": str(self.dir / "rc"), "LD_LIBRARY_PATH": str(planted),
                   "BASH_FUNC_timeout%%": "() { /bin/echo function >> " + str(self.dir / "used") + "; }"}
        gate = self.program("gate", 'echo "ASSAY-GPU-005 $PATH $LD_LIBRARY_PATH"; exit 1')
        self.assertEqual(self.script("slurm-prolog.sh", gate=gate, **hostile).returncode, 1)
        self.assertEqual((self.state / "drain").read_text(), "ASSAY-GPU-005 /usr/sbin:/usr/bin:/sbin:/bin \n")
        self.assertEqual(self.script("slurm-health.sh", **hostile).returncode, 0)
        self.assertIn("State=DRAIN", (self.dir / "calls").read_text())
        self.assertFalse((self.dir / "used").exists())

    def test_the_state_lies_in_a_folder_that_only_its_owner_can_open(self):
        metrics = self.dir / "metrics"
        metrics.mkdir()
        self.prolog(0, "^$", 0, gate=self.program("good", "echo nothing found"), ASSAY_GATE_METRICS=str(metrics))
        self.assertEqual(stat.S_IMODE(self.state.stat().st_mode), 0o700)
        self.assertEqual((metrics / "assay_gate.prom").read_text(), (self.state / "gate.prom").read_text())
        self.assertEqual(stat.S_IMODE((metrics / "assay_gate.prom").stat().st_mode), 0o644)

    @unittest.skipUnless(os.geteuid() == 0, "only root can give files to others")
    def test_a_state_that_another_user_could_have_made_is_not_used(self):
        def open_to_all():
            self.state.chmod(0o777)

        def anothers():
            os.chown(self.state, SOMEBODY, SOMEBODY)

        def anothers_parent():
            os.chown(self.state.parent, SOMEBODY, SOMEBODY)

        def a_link():
            self.state.rename(self.dir / "elsewhere")
            os.symlink(self.dir / "elsewhere", self.state)
            os.chown(self.state, SOMEBODY, SOMEBODY, follow_symlinks=False)

        bad = self.program("bad", "echo ASSAY-GPU-005 x; exit 1")
        for plant in (open_to_all, anothers, anothers_parent, a_link):
            with self.subTest(plant=plant.__name__):
                shutil.rmtree(self.dir / "state", ignore_errors=True)
                shutil.rmtree(self.dir / "elsewhere", ignore_errors=True)
                self.write("state/n1/drain", "planted")
                self.write("state/n1/unjudged", "planted")
                plant()
                done = self.script("slurm-prolog.sh", gate=bad)
                self.assertEqual(done.returncode, 1, "a fault still drains")
                self.assertIn("no folder that only root can change", done.stderr)
                (self.dir / "calls").unlink(missing_ok=True)
                done = self.script("slurm-health.sh")
                self.assertIn("another user could have written", done.stderr)
                self.assertFalse((self.dir / "calls").exists())
                self.assertEqual(sorted(path.name for path in self.state.iterdir()), ["drain", "unjudged"])
                self.assertEqual((self.state / "drain").read_text(), "planted")

    def test_the_pod_has_named_capabilities_only(self):
        text = (LAUNCH / "kubernetes-gate.yaml").read_text()
        self.assertNotRegex(text, "privileged: true|hostPID|hostNetwork|/dev/kmsg")
        self.assertIn("drop: [ALL]", text)
        added = re.search(r"add:\n((?: +- .*\n)+)", text)[1]
        self.assertEqual(re.findall(r"- (\w+)", added), ["SYSLOG", "SETUID", "SETGID", "CHOWN", "KILL"])

    def test_the_prolog_with_the_real_gate(self):
        machine = fake_machine.FakeMachine(self.dir / "machine")
        self.prolog(0, "^not judged: gpu-gemm, gpu-memory, gpu-transfer did not run on 0000:1b:00.0 and 7 more", 0,
                    gate=self.binary, ASSAY_GATE_BUDGET="2s", ASSAY_ROOT=str(machine.root), ASSAY_HOST=self.dir.name)



def blocks(text):
    """The members of a YAML file's outermost mapping: text of one line, or the lines below them, without indentation."""
    found, name = {}, None
    for line in text.splitlines():
        if line[:1] not in ("", " ", "#"):
            name, _, rest = line.partition(":")
            found[name] = rest.split(" #")[0].strip().removeprefix("|")
        elif name and line.strip() and not line.startswith("#"):
            found[name] += "\n" + line[2:]
    return found


class SkyPilot(AssayCase):
    """The task, and the script that runs it on a machine of each type, with a sky and an rsync that a test writes."""

    def test_the_task_names_commands_and_plans_that_exist(self):
        text = (LAUNCH / "skypilot.yaml").read_text()
        task = blocks(text)
        self.assertEqual(sorted(task), ["envs", "file_mounts", "name", "resources", "run", "setup"])
        shell = subprocess.run(["bash", "-n"], input=task["setup"] + "\n" + task["run"], capture_output=True, text=True)
        self.assertEqual((shell.returncode, shell.stderr), (0, ""))
        commands = re.findall(r"^ *~/assay/assay (\w+)(.*)", task["run"], re.M)
        self.assertEqual([command for command, _ in commands], ["audit", "run"])
        for command, rest in commands:
            done = self.assay(command, "--help")
            self.assertEqual(done.returncode, 0, done.stderr)
            for flag in re.findall(r"--[a-z-]+", rest):
                self.assertIn(flag, done.stdout)
        plans = [re.search(r"PLAN: (\w+)", task["envs"])[1], re.search(r"PLAN=([\w-]+)", text)[1]]
        known = self.assay("list", "plans").stdout
        for plan in plans:
            self.assertRegex(known, rf"(?m)^ *{plan}\b")
        self.assertIn("build/package", task["file_mounts"])

    def test_what_the_task_runs(self):
        """With an assay that writes its words down."""
        home = self.dir / "home"
        program = self.write("home/assay/assay", f'#!/bin/bash\nprintf "%s " "$@" >> {self.dir}/calls; echo >> {self.dir}/calls; [ $1 = run ]')
        program.chmod(0o755)
        env = {**os.environ, "HOME": str(home), "PLAN": "gpu-quick",
               "SKYPILOT_CLUSTER_INFO": '{"cloud": "AWS", "region": "us-east-1", "zone": null}'}
        done = subprocess.run(["bash", "-c", blocks((LAUNCH / "skypilot.yaml").read_text())["run"]], env=env,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.dir / "calls").read_text().splitlines()[1].strip(),
                         f"run gpu-quick --out {home}/run --label provider=aws --label region=us-east-1")

    def measure(self, *words):
        for name in ("sky", "rsync"):
            self.write("bin/" + name, f'#!/bin/bash\necho "{name} $*" >> {self.dir}/calls\n'
                       f'[ "{name} $1 $4" != "$FAILS" ]\n').chmod(0o755)
        env = {**os.environ, "PATH": f"{self.dir}/bin:{os.environ['PATH']}", "FAILS": "sky launch assay-l4-1"}
        done = subprocess.run([LAUNCH / "skypilot.sh", *words], cwd=self.dir, env=env, capture_output=True, text=True)
        return done, sorted((self.dir / "calls").read_text().splitlines())

    def test_every_type_is_launched_copied_back_and_ended(self):
        done, calls = self.measure("quick", "H100:8", "p5.48xlarge")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        task = LAUNCH / "skypilot.yaml"
        self.assertEqual(calls, sorted([
            f"sky launch --yes -c assay-h100-8 --gpus H100:8 --env PLAN=quick {task}", "rsync -a assay-h100-8:run/ runs/h100-8/",
            "sky down --yes assay-h100-8", f"sky launch --yes -c assay-p5-48xlarge --instance-type p5.48xlarge --env PLAN=quick {task}",
            "rsync -a assay-p5-48xlarge:run/ runs/p5-48xlarge/", "sky down --yes assay-p5-48xlarge"]))

    def test_a_run_that_fails_is_copied_and_its_machine_ended(self):
        done, calls = self.measure("quick", "L4:1", "H100:8")
        self.assertEqual(done.returncode, 1)
        self.assertIn("rsync -a assay-l4-1:run/ runs/l4-1/", calls)
        self.assertIn("sky down --yes assay-l4-1", calls)


if __name__ == "__main__":
    unittest.main()
