"""assay run inside a real Slurm of four nodes: srun, sbatch, scancel, the time limit, requeueing."""
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(__file__))
import slurm  # noqa: E402
from cluster_case import BINARY_PATH, ClusterCase, main, wait_for  # noqa: E402

LIMIT = 300   # seconds; only a job that hangs takes that long
CONFIGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../configs/launch")


class InSlurm(ClusterCase):
    @classmethod
    def setUpClass(cls):
        cls.slurm = slurm.Slurm(4, topology=["SwitchName=leaf1 Nodes=n[1-2]", "SwitchName=leaf2 Nodes=n[3-4]",
                                              "SwitchName=top Switches=leaf[1-2]"])

    @classmethod
    def tearDownClass(cls):
        cls.slurm.stop()

    def setUp(self):
        super().setUp()
        self.mark["OMPI_MCA_reachable"] = "weighted"  # the nodes may share this machine's addresses
        self.jobs = []

    def tearDown(self):
        for job in self.jobs:
            self.slurm.run("scancel", "--signal=KILL", "--full", job, check=False)
            self.slurm.run("scancel", job, check=False)
        super().tearDown()

    def srun(self, *flags, run):
        return self.slurm.run("srun", *flags, BINARY_PATH, "run", *run, cwd=self.folder, check=False, env=self.mark)

    def batch(self, script, *flags, env=None):
        job = self.slurm.submit("#!/bin/bash\n" + script, *flags, cwd=self.folder, env={**self.mark, **(env or {})})
        self.jobs.append(job)
        return job

    def status_of(self, job):
        text = f"job {job} is {self.slurm.state(job)}\n"
        for name in ("out", "err"):
            path = os.path.join(self.folder, name)
            if os.path.exists(path):
                with open(path, errors="replace") as file:
                    text += file.read()[-3000:]
        return text

    def wait_for_job(self, job, condition, what):
        """Fails with the job's state and output as they are then, not as they were when the wait began."""
        try:
            wait_for(condition, what, LIMIT)
        except AssertionError as error:
            self.fail(f"{error}: {self.status_of(job)}")

    def end_of(self, job):
        self.wait_for_job(job, lambda: self.slurm.ended(job), f"the end of job {job}")
        return self.slurm.state(job)

    def at_work(self, job):
        """Waits for the job's first record, for long if the machine is busy; fails if the job ends before."""
        self.wait_for_job(job, lambda: self.slurm.state(job) not in ("PENDING", "CONFIGURING"), f"the start of job {job}")
        self.wait_for_job(job, lambda: self.records() or self.slurm.ended(job), "a first record")
        self.assertTrue(self.records(), self.status_of(job))

    def gated(self, command, **env):
        """The end of a job of four nodes that judges them first, by their audits alone."""
        folder = os.path.dirname(os.path.realpath(os.environ["ASSAY"]))
        job = self.batch(f"set -- {command}; . {CONFIGS}/assay-gated.sbatch\n", "-N4", "--ntasks-per-node=1", env={
            "PATH": f"{folder}:{slurm.SEARCH}", "ASSAY_GATE_FLAGS": "--profile health", "ASSAY_GATE_BUDGET": "90s", **env})
        return self.end_of(job), self.status_of(job)

    def test_a_job_that_gates_its_hosts_starts_on_those_that_are_left(self):
        state, text = self.gated("sh -c 'echo on $SLURMD_NODENAME'")
        self.assertEqual(state, "COMPLETED", text)
        for name in self.slurm.nodes:
            self.assertRegex(text, rf"(?m)^  {name} +(ok|suspect)$")
            self.assertIn(f"on {name}\n", text)

    def test_leaf_switches_are_read(self):
        flat = slurm.Slurm(2)
        self.addCleanup(flat.stop)
        for one, said in ((self.slurm, "leaf switches: n1 leaf1, n2 leaf1, n3 leaf2, n4 leaf2\n"),
                          (flat, "leaf switches are not known: scontrol show topology: it lists no node\n")):
            nodes = str(len(one.nodes))
            done = one.run("srun", "-N", nodes, "-n", nodes, os.environ["ASSAY"], "accept", "--level", "quick", "--device",
                           "cpu", "--dry-run", cwd=self.folder, env=self.mark)
            self.assertIn(said, done.stdout)

    def test_srun_of_1_2_and_4_tasks(self):
        for tasks, nodes in ((1, 1), (2, 1), (2, 2), (4, 2), (4, 4)):
            with self.subTest(tasks=tasks, nodes=nodes):
                out = os.path.join(self.folder, f"run-{tasks}-{nodes}")
                done = self.srun(f"-n{tasks}", f"-N{nodes}", run=["probe", "--ranks", str(tasks), "--out", out])
                self.assertEqual(done.returncode, 0, done.stderr)
                (ranks, on, hosts), = self.worlds(out)
                self.assertEqual((ranks, on, len(hosts), len(set(hosts))), (tasks, nodes, tasks, nodes))
                if nodes > 1:
                    self.assertLessEqual(set(hosts), set(self.slurm.nodes))
                    # The other tasks have nothing to do, and say so.
                    self.assertEqual(done.stderr.count("rank 0 runs the plan"), tasks - 1, done.stderr)
                self.assertEqual(len([line for line in done.stdout.splitlines() if "report:" in line]), 1)
        self.nothing_left()

    def test_sbatch_on_1_2_and_4_nodes(self):
        for nodes, flags in ((1, ["-N1", "-n1"]), (2, ["-N2", "-n2"]), (4, ["-N4", "--ntasks-per-node=1"])):
            with self.subTest(nodes=nodes):
                out = os.path.join(self.folder, f"run-{nodes}")
                job = self.batch(f"{BINARY_PATH} run probe --ranks {nodes} --out {out}\n", *flags)
                self.assertEqual(self.end_of(job), "COMPLETED", self.status_of(job))
                (ranks, on, hosts), = self.worlds(out)
                self.assertEqual((ranks, on, len(set(hosts))), (nodes, nodes, nodes))
        self.nothing_left()

    def test_worlds_grow_over_the_allocation(self):
        job = self.batch(f"{BINARY_PATH} run collective probe --set collective.op=all_reduce --set collective.bytes=8 "
                         f"--out {self.out}\n", "-N4")
        self.assertEqual(self.end_of(job), "COMPLETED", self.status_of(job))
        by_family = {family: sorted(r["world"]["ranks"] for r in self.records() if r["family"] == family)
                     for family in ("collective", "probe")}
        self.assertEqual(by_family, {"collective": [1, 2, 4], "probe": [1]})
        self.assertTrue(all(r["status"] == "ok" for r in self.records()), self.records())
        four = [r for r in self.records() if r["world"]["ranks"] == 4][0]
        self.assertEqual([rank["host"] for rank in four["ranks"]], self.slurm.nodes)
        self.assertTrue(all(rank["cpus"] for rank in four["ranks"]))
        # These four are one machine, and the record says so.
        self.assertFalse(four["comparable"])
        self.assertIn("hosts are one machine", four["flags"])

    def test_more_ranks_than_the_job_has_tasks_are_refused(self):
        done = self.srun("-n2", "-N2", run=["probe", "--ranks", "3", "--out", self.out])
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--ranks 3 is beyond the 2 slots of Slurm job", done.stderr)
        self.assertFalse(os.path.exists(self.out))

    def resume(self, count):
        """Another job completes the run."""
        before = self.records()
        job = self.batch(f"{BINARY_PATH} run --resume {self.out}\n", "-N2")
        self.assertEqual(self.end_of(job), "COMPLETED", self.status_of(job))
        self.assertEqual(self.records()[:len(before)], before)
        self.complete(count)

    def test_scancel_leaves_a_resumable_run_and_no_process(self):
        words = " ".join(self.steps(12))
        for launch in ("", "srun "):
            with self.subTest(launch=launch):
                shutil.rmtree(self.out, ignore_errors=True)
                job = self.batch(f"{launch}{BINARY_PATH} run {words} --ranks 2 --out {self.out}\n", "-N2", "-n2")
                self.at_work(job)
                self.slurm.run("scancel", job)
                self.end_of(job)
                self.nothing_left()
                self.assertLess(len(self.records()), 12)
                self.resume(12)

    def test_the_time_limit_leaves_a_resumable_run(self):
        # Slurm checks for jobs to warn every 30 s and warns up to 30 s early. So the job gets a short limit only once it
        # has a record: on a busy machine the warning may otherwise come before the first one.
        words = " ".join(self.steps(400))
        job = self.batch(f"exec {BINARY_PATH} run {words} --ranks 2 --out {self.out}\n", "-N2", "-n2", "--time=60",
                         "--signal=B:TERM@50")
        self.at_work(job)
        minutes = (self.slurm.run_seconds(job) + 45) // 60 + 1   # 45 to 105 s from now
        self.slurm.run("scontrol", "update", f"jobid={job}", f"timelimit={minutes}")
        self.end_of(job)
        self.nothing_left()
        self.assertIn("not complete; continue with: assay run --resume", self.status_of(job))
        held = len(self.records())
        self.assertTrue(0 < held < 400)
        self.assertEqual({r["status"] for r in self.records()}, {"ok"})

    def test_the_shipped_script_is_requeued_and_continues(self):
        script = os.path.join(self.folder, "assay.sbatch")
        shutil.copy(os.path.join(CONFIGS, "assay.sbatch"), script)
        tools = os.path.join(self.folder, "bin")
        os.mkdir(tools)
        os.symlink(BINARY_PATH, os.path.join(tools, "assay"))
        plan = os.path.join(self.folder, "plan.json")
        with open(plan, "w") as file:
            file.write('{"schema":1,"name":"steps","ranks":2,"cases":[{"family":"probe","op":"sleep","seconds":0.5,"n":%s}]}'
                       % list(range(90)))   # longer than Slurm may take to warn the job
        job = self.slurm.run("sbatch", "--parsable", "--nodes=2", "--ntasks-per-node=1", "--gpus-per-node=0", "--time=1",
                             "--signal=B:TERM@55", "--output=out", script, plan, cwd=self.folder,
                             env={**self.mark, "PATH": tools + ":" + slurm.SEARCH}).stdout.strip()
        self.jobs.append(job)
        self.out = os.path.join(self.folder, f"assay-{job}")
        # Slurm holds a requeued job for two minutes. It is released once the controller knows how the first script ended:
        # otherwise Slurm would take that status for the second one's.
        self.wait_for_job(job, lambda: self.slurm.restarts(job) > 0, "the job's requeue")
        self.nothing_left()
        self.wait_for_job(job, lambda: self.slurm.state(job) == "PENDING", "the requeued job to be pending")
        self.wait_for_job(job, self.slurm.all_idle, "every node to be idle")
        self.slurm.await_script_end(job)
        # Long enough not to be warned again.
        self.slurm.run("scontrol", "update", f"jobid={job}", "timelimit=10", "starttime=now")
        state = self.end_of(job)
        for attempt in range(2):
            if state == "COMPLETED" or self.run_json().get("resumed"):
                break
            # Slurm took the first script's status for the second one's, which never ran.
            self.slurm.run("scontrol", "requeue", job)
            self.slurm.run("scontrol", "update", f"jobid={job}", "starttime=now")
            self.wait_for_job(job, lambda: not self.slurm.ended(job), "the job to be requeued again")
            state = self.end_of(job)
        self.assertEqual(state, "COMPLETED", self.status_of(job))
        self.complete(90)
        self.assertGreaterEqual(len(self.run_json().get("resumed", [])), 1, self.status_of(job))


if __name__ == "__main__":
    main(slurm.missing())
