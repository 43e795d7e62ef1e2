"""assay gate on a healthy machine, alone and beside busy CPUs: none drains. Under a CPU quota of 60 %, against floors
learned from ten runs: found in 19 of 20. On a healthy server of files with a short budget: none drains.
usage: gate_test.py CLEAN BUSY QUOTA MADE_UP [CLASS...]"""
import collections
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from cgroup import cpu_quota  # noqa: E402
import fake_machine  # noqa: E402

BINARY = os.environ.get("ASSAY") or os.path.join(os.path.dirname(__file__), "../../build/release/assay")
CLEAN, BUSY, QUOTA, MADE_UP = (int(sys.argv.pop(1)) for _ in range(4))


@contextlib.contextmanager
def busy_cpus():
    spins = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    try:
        yield
    finally:
        for spin in spins:
            spin.kill()
            spin.wait()


class GateCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="assay-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.dir = pathlib.Path(folder.name)
        cls.env = {**os.environ, "ASSAY_CACHE": str(cls.dir / "cache"), "ASSAY_HOST": f"soak-{os.getpid()}"}

    @classmethod
    def assay(cls, *words, before=None):
        return subprocess.run([BINARY, *map(str, words)], cwd=cls.dir, env=cls.env, capture_output=True, text=True,
                              timeout=300, preexec_fn=before)

    def gates(self, count, budget, *words, before=None):
        answers, begin = [], time.monotonic()
        for _ in range(count):
            done = self.assay("gate", "--budget", budget, "--json", *words, before=before)
            self.assertIn(done.returncode, (0, 1, 3), done.stderr)
            answers.append(json.loads(done.stdout))
        verdicts = collections.Counter(answer["verdict"] for answer in answers)
        print(f"{count} gates with --budget {budget} in {time.monotonic() - begin:.0f} s:",
              ", ".join(f"{number} {verdict}" for verdict, number in verdicts.items()), flush=True)
        return answers

    def no_drain(self, answers):
        drained = [answer["findings"] for answer in answers if answer["verdict"] == "drain"]
        self.assertFalse(drained, drained[:3])


class MadeUp(GateCase):
    def test_a_healthy_server_of_files_is_never_drained(self):
        # One without GPUs, and one whose GPUs no driver can use here.
        for gpus in (0, 8):
            self.env["ASSAY_ROOT"] = str(fake_machine.FakeMachine(self.dir / f"machine-{gpus}", gpus).root)
            self.no_drain(self.gates((MADE_UP + 1) // 2, "2s"))


class Gates(GateCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.floors = cls.learned()

    @classmethod
    def learned(cls):
        """Flags for floors learned from ten runs; none if this machine is too unsteady for floors. The long form tries
        again, so that there is one for arithmetic, which a CPU quota slows most."""
        flags = []
        for attempt in range(3 if CLEAN >= 100 else 1):
            runs = [f"learn-{attempt}-{i}" for i in range(10)]
            for run in runs:
                done = cls.assay("run", "gate", "--out", run)
                assert done.returncode == 0, done.stderr
            done = cls.assay("floors", "learn", *runs, "--out", "floors.json", "--same-machine", "--outliers", "leave-out",
                             "--false-fail", "5%")
            assert done.returncode in (0, 3), done.stdout + done.stderr
            print(done.stdout)
            if done.returncode == 0:
                cls.prepare(cls.dir / "floors.json")
            flags = ["--floors", "floors.json"] if done.returncode == 0 else flags
            if done.returncode == 0 and cls.arithmetic():
                break
        return flags

    @staticmethod
    def prepare(path):
        """Some machines need a setting of OpenBLAS, which root's gate does without, and which none of these cases uses. In
        the short form, whose ten runs take a minute, bandwidth has no floor: neighbours of a virtual machine halve it later."""
        floors = json.loads(path.read_text())
        if CLEAN < 100:
            floors["floors"] = [floor for floor in floors["floors"] if not floor["key"].startswith("memory/op=triad")]
        for floor in floors["floors"]:
            floor["labels"] = {name: value for name, value in floor.get("labels", {}).items() if not name.startswith("OPENBLAS_")}
        path.write_text(json.dumps(floors))

    @classmethod
    def arithmetic(cls):
        return "peak/" in (cls.dir / "floors.json").read_text()

    def test_a_healthy_machine_is_never_drained(self):
        answers = self.gates(CLEAN, "3s", *self.floors)
        self.no_drain(answers)
        # A gate rightly says nothing of speed while others use the CPUs.
        quiet = [answer for answer in answers if "others use" not in json.dumps(answer)]
        judged = [answer for answer in quiet if answer["verdict"] != "not_judged"]
        self.assertGreaterEqual(len(judged), 0.9 * len(quiet))

    def test_nor_beside_busy_cpus(self):
        with busy_cpus():
            self.no_drain(self.gates(BUSY, "3s", *self.floors))

    def test_a_cpu_quota_is_found(self):
        quota = cpu_quota(0.6)
        if not quota.path:
            self.skipTest(quota.why_not)
        self.addCleanup(quota.remove)
        if not self.floors or not self.arithmetic():
            self.skipTest("this machine is too unsteady for a floor of arithmetic")
        answers = self.gates(QUOTA, "20s", *self.floors, before=quota.enter)
        codes = [[finding["id"] for finding in answer["findings"] if finding["severity"] == "fault"] for answer in answers]
        found = sum("cpu-quota" in ids for ids in codes)
        self.assertGreaterEqual(found, QUOTA * 19 // 20, [answer["tests"] for answer in answers][:2])
        self.no_drain(self.gates(1, "20s", *self.floors))


if __name__ == "__main__":
    unittest.main()
