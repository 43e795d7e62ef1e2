"""assay gate as the prolog of a real Slurm: a fault drains the node with its code as the reason, anything else lets the job
run. And among four hosts, which are network namespaces: a slow one and one that is gone are named."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(__file__))
import namespaces  # noqa: E402
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


class GateOfAJob(ClusterCase):
    BUDGET = 90

    @classmethod
    def setUpClass(cls):
        cls.hosts = namespaces.Hosts(4)

    @classmethod
    def tearDownClass(cls):
        cls.hosts.stop()

    def setUp(self):
        super().setUp()
        # Without a limit, hosts that share few CPUs wait for them as long as for a link, some more and some less.
        for host in self.hosts.names:
            self.hosts.slow_host(host, "1gbit")
            self.addCleanup(self.hosts.fast, host)

    def gate(self, *lines):
        """The exit code and the answer of a gate of these hosts, whose own tests are the audit alone."""
        done = subprocess.run(
            self.hosts.on("h1", os.path.realpath(ASSAY), "gate", "--hostfile", self.hosts.hostfile(*lines), "--profile", "health", "--budget",
                          f"{self.BUDGET}s", "--json"),
            cwd=self.folder, capture_output=True, text=True, timeout=LIMIT,
            env=self.hosts.environment(**self.mark))
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            self.fail(f"exit {done.returncode}: {done.stdout}{done.stderr}")
        self.assertLessEqual(answer["seconds"], self.BUDGET)
        return done.returncode, answer

    def test_a_slow_host_and_one_that_is_gone_are_named_and_excluded(self):
        self.hosts.slow_host("h3", "200mbit")
        code, answer = self.gate(*self.hosts.names, "gone")
        self.assertEqual((code, answer["verdict"], answer["exclude"]), (1, "drain", ["h3", "gone"]), answer)
        faults = [(one["host"], one["code"]) for one in answer["findings"] if one["severity"] == "fault"]
        self.assertEqual(faults, [("h3", "ASSAY-NET-019")])
        self.assertIn("host gone did not arrive", "\n".join(answer["notes"]))

    def test_sound_hosts_drain_nobody_within_the_budget(self):
        code, answer = self.gate()
        self.assertEqual((code, answer["exclude"]), (0, []), answer)
        self.assertEqual([one["host"] for one in answer["hosts"]], self.hosts.names)


if __name__ == "__main__":
    main(slurm.missing() or namespaces.missing() or (None if ASSAY else "ASSAY names no binary"))
