"""assay gate as the prolog of a real Slurm: a fault drains the node with its code as the reason, anything else lets the job
run."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
import slurm  # noqa: E402
from cluster_case import ClusterCase, main, wait_for  # noqa: E402

LAUNCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../configs/launch")
ASSAY = os.environ.get("ASSAY", "")
LIMIT = 120


class GateInSlurm(ClusterCase):
    conf = ""   # of the private Slurm; others have theirs in /etc

    @classmethod
    def setUpClass(cls):
        # slurmd gives scripts no environment of ours: a script of a few lines does, and reads the test's settings.
        cls.place = tempfile.TemporaryDirectory(prefix="assay-gate-test-")
        os.chmod(cls.place.name, 0o755)
        settings = (f"export ASSAY={os.path.realpath(ASSAY)} ASSAY_GATE_STATE={cls.place.name}/state "
                    f"ASSAY_CACHE={cls.place.name}/cache PATH={slurm.SEARCH} ASSAY_GATE_IDLE_EVERY=0\n"
                    f". {cls.place.name}/settings\n")
        for name in ("prolog", "health"):
            with open(f"{cls.place.name}/{name}", "w") as file:
                file.write(f"#!/bin/bash\n{settings}exec {LAUNCH}/slurm-{name}.sh\n")
            os.chmod(file.name, 0o755)
        cls.set("")
        cls.slurm = slurm.Slurm(2, [f"Prolog={cls.place.name}/prolog", f"HealthCheckProgram={cls.place.name}/health",
                                    "HealthCheckInterval=1", "HealthCheckNodeState=ANY"])
        cls.conf = cls.slurm.path("slurm.conf")

    @classmethod
    def tearDownClass(cls):
        cls.slurm.stop()
        cls.place.cleanup()

    @classmethod
    def set(cls, flags, budget="20s"):
        with open(f"{cls.place.name}/settings", "w") as file:
            file.write(f'export ASSAY_GATE_FLAGS="{flags}" ASSAY_GATE_BUDGET={budget} SLURM_CONF={cls.conf}\n')

    def job(self, node):
        return self.slurm.submit("#!/bin/bash\ntouch ran\n", "-w", node, "--no-requeue", cwd=self.folder)

    def test_a_fault_drains_the_node_with_its_code_as_the_reason(self):
        self.set("--inject ecc-uncorrected")
        self.job("n1")
        try:
            wait_for(lambda: "ASSAY-GPU-" in self.slurm.node("n1"), "the drain reason", LIMIT)
        except AssertionError as error:
            self.fail(f"{error}: {self.slurm.node('n1')} {self.slurm.log_of('n1')}")
        line = self.slurm.node("n1")
        self.assertIn("DRAIN", line)
        self.assertRegex(line, r"Reason=.*ASSAY-GPU-\d{3} 0000:1b:00.0")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "ran")))

    def test_suspicions_and_gates_that_cannot_judge_let_the_job_run(self):
        for flags, budget in (("--inject gpu-hot", "20s"), ("--inject gpu-hot", "10ms"), ("--no-such-flag", "20s")):
            with self.subTest(flags=flags, budget=budget):
                self.set(flags, budget)
                job = self.job("n2")
                wait_for(lambda: self.slurm.state(job) == "COMPLETED", f"the end of job {job}", LIMIT)
                self.assertNotIn("DRAIN", self.slurm.node("n2"))


if __name__ == "__main__":
    main(slurm.missing() or (None if ASSAY else "ASSAY names no binary"))
