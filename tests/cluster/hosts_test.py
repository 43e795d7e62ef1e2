"""assay run over four hosts, which are network namespaces: hostfile, environment, mpirun; hosts and links that fail."""
import itertools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, os.path.dirname(__file__))
import namespaces  # noqa: E402
from cluster_case import BINARY_PATH, ClusterCase, main, wait_for  # noqa: E402
from slurm import free_ports  # noqa: E402


class OverHosts(ClusterCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = namespaces.Hosts(4)

    @classmethod
    def tearDownClass(cls):
        cls.hosts.stop()

    def tearDown(self):
        for host in self.hosts.names:
            self.hosts.restore(host)
            self.hosts.fast(host)
        super().tearDown()

    def on(self, host, *words, program=(BINARY_PATH, "run")):
        return self.hosts.on(host, *program, *words)

    def run_on(self, host, *words, env=None, timeout=120):
        return subprocess.run(self.on(host, *words), cwd=self.folder, capture_output=True, text=True, timeout=timeout,
                              errors="replace", env=self.hosts.environment(**self.mark, **(env or {})))

    def start_on(self, host, *words, env=None, program=(BINARY_PATH, "run")):
        process = subprocess.Popen(self.on(host, *words, program=program), cwd=self.folder, text=True, errors="replace",
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.hosts.environment(**self.mark, **(env or {})))
        self.started.append(process)
        return process

    def ended(self):
        with open(os.path.join(self.out, "run.json")) as file:
            return json.load(file).get("ended")

    def supervisor(self):
        """Its pid; the processes above it entered the namespace."""
        return wait_for(lambda: next((pid for pid, line in self.left().items()
                                      if line.startswith(BINARY_PATH + " run ")), None), "the supervisor")

    def test_worlds_of_1_2_and_4_hosts(self):
        done = self.run_on("h1", "probe", "--hostfile", self.hosts.hostfile(), "--ranks", "1,2,4", "--out", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.worlds(), [(1, 1, ["h1"]), (2, 2, ["h1", "h2"]), (4, 4, ["h1", "h2", "h3", "h4"])])
        self.assertTrue(all(rank["cpus"] for record in self.records() for rank in record["ranks"]))
        self.nothing_left()
        with open(os.path.join(self.hosts.folder, "rsh.log")) as log:
            self.assertNotRegex(log.read(), "TOKEN")   # never on a command line, which anybody can read

    def test_collectives_grow_over_the_hosts(self):
        done = self.run_on("h1", "collective", "--set", "collective.op=all_reduce", "--set", "collective.bytes=65536",
                           "--hostfile", self.hosts.hostfile(), "--out", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([(ranks, nodes) for ranks, nodes, _ in self.worlds()], [(1, 1), (2, 2), (4, 4)])
        self.nothing_left()

    def test_slots_fill_hosts_in_order(self):
        file = self.hosts.hostfile("h2 slots=3", "root@h1 slots=2  # this one")
        done = self.run_on("h1", "probe", "--hostfile", file, "--ranks", "5", "--out", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.worlds(), [(5, 2, ["h1", "h1", "h2", "h2", "h2"])])   # the supervisor's host goes first
        done = self.run_on("h1", "probe", "--hostfile", file, "--ranks", "6", "--out", self.out + "2")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--ranks 6 is beyond the 5 slots of --hostfile", done.stderr)

    def test_environment_of_any_launcher(self):
        port, = free_ports(1)
        outs = []
        for rank, host in enumerate(self.hosts.names):
            env = {"ASSAY_SUPERVISOR": f"{self.hosts.address('h1')}:{port}", "ASSAY_TOKEN": "a word of our own",
                   "ASSAY_SIZE": "4", "JOB_COMPLETION_INDEX": str(rank)}
            outs.append(self.start_on(host, "probe", "--ranks", "4", "--out", self.out, env=env))
        ends = [process.communicate(timeout=120) for process in outs]
        self.assertEqual([process.returncode for process in outs], [0] * 4, ends)
        (ranks, nodes, hosts), = self.worlds()
        self.assertEqual((ranks, nodes, hosts), (4, 4, self.hosts.names))
        self.nothing_left()

    def test_mpirun_with_a_hostfile(self):
        file = self.hosts.hostfile("h1 slots=1", "h2 slots=1", "h3 slots=1", "h4 slots=1")
        env = {"OMPI_MCA_plm_rsh_agent": self.hosts.rsh, "PRTE_MCA_plm_ssh_agent": self.hosts.rsh}
        process = self.start_on("h1", "-n", "4", "--hostfile", file, BINARY_PATH, "run", "probe", "--ranks", "4", "--out",
                                self.out, env=env, program=("mpirun",))
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, out + err)
        (ranks, nodes, hosts), = self.worlds()
        self.assertEqual((ranks, nodes, len(set(hosts))), (4, 4, 4))
        self.nothing_left()

    def test_a_host_that_cannot_be_reached_is_named(self):
        for name, words in (("h9", "No route to host"), ("silent", "")):
            with self.subTest(name):
                file = self.hosts.hostfile("h1", "h2", name)
                done = self.run_on("h1", "probe", "--hostfile", file, "--ranks", "3", "--out", self.out,
                                   env={"ASSAY_LAUNCH_LIMIT": "3"}, timeout=60)
                self.assertEqual(done.returncode, 4, done.stderr)
                self.assertRegex(done.stderr, rf"host {name}\b")
                self.assertIn(words, done.stderr)
                self.assertFalse(os.path.exists(os.path.join(self.out, "records.jsonl")) and self.records())
                self.nothing_left()

    def test_a_directory_that_cannot_be_written_is_refused(self):
        shared = os.path.join(self.folder, "shared")
        os.mkdir(shared)
        # A process that enters a namespace sees the mounts of its parent.
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "assay", shared], check=True, capture_output=True)
        try:
            done = self.run_on("h1", "probe", "--hostfile", self.hosts.hostfile(), "--out", os.path.join(shared, "run"))
        finally:
            subprocess.run(["umount", shared], check=True, capture_output=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(shared, done.stderr)
        self.nothing_left()

    def test_a_cut_link_names_the_host_and_the_run_can_be_completed(self):
        process = self.start_on("h1", *self.steps(30), "--ranks", "4", "--hostfile", self.hosts.hostfile(), "--out",
                                self.out, env={"ASSAY_HEARTBEAT_LIMIT": "10", "ASSAY_LAUNCH_LIMIT": "20"})
        wait_for(self.records, "a first record")
        self.hosts.cut("h3")
        out, err = process.communicate(timeout=180)
        self.assertIn(process.returncode, (3, 4), err)
        self.nothing_left(60)   # nor on the host that could not be reached
        broken = [record for record in self.records() if record["status"] != "ok"]
        self.assertTrue(broken, err)
        self.assertIn("h3", broken[0]["reason"])
        self.assertEqual(broken[0]["failure"]["host"], "h3")
        self.assertIn(broken[0]["failure"]["kind"], ("lost_host", "timeout"))   # by the agent's silence or the worker's
        self.assertEqual(self.ended()["lost"], ["h3"])
        self.hosts.restore("h3")
        done = self.run_on("h1", "--resume", self.out, "--hostfile", self.hosts.hostfile())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIsNone(self.ended())   # all are back
        self.complete(30)

    def test_kill_9_of_the_supervisor_ends_every_host(self):
        self.start_on("h1", *self.probe("hang"), "--ranks", "4", "--hostfile", self.hosts.hostfile(), "--out", self.out)
        wait_for(lambda: len([1 for line in self.left().values() if line == BINARY_PATH + " worker"]) == 4, "four ranks", 60)
        os.kill(self.supervisor(), signal.SIGKILL)
        self.nothing_left()

    def test_rails_are_measured_side_by_side(self):
        done = self.run_on("h1", "collective", "--set", "collective.op=rails", "--set", "collective.bytes=256KiB", "--ranks", "5",
                           "--hostfile", self.hosts.hostfile("h1 slots=2", "h2 slots=2", "h3"), "--out", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        record, = self.records()
        self.assertEqual(record["status"], "ok", record["reason"])
        first, second = record["rails"]
        self.assertEqual((first["ranks"], second["ranks"], record["matrix"]["ranks"]), ([0, 2, 4], [1, 3], [0, 2, 4]))
        for a, b in itertools.permutations(range(3), 2):
            rates = [first["values"][a][b]] + ([second["values"][a][b]] if max(a, b) < 2 else [])
            self.assertEqual(record["matrix"]["values"][a][b], min(rates))

    @unittest.skipUnless("ASSAY_EMULATED" in os.environ, "this build has no emulated GPU")
    def test_a_port_that_did_not_carry_its_rail_is_flagged(self):
        """Two hosts of two GPUs, each beside a port; on h2 the counters of the second port stand still."""
        counters = {}
        for host in ("h1", "h2"):
            root = pathlib.Path(self.folder) / ("root-" + host)
            for i in range(2):
                bridge = root / f"sys/devices/pci0000:e{i}/0000:e{i}:01.0"
                for place, name in (("bus/pci/devices", f"0000:e{i}:00.0"), (f"class/infiniband/mlx5_{i}", "device")):
                    (bridge / name).mkdir(parents=True)
                    (root / "sys" / place).mkdir(parents=True, exist_ok=True)
                    (root / "sys" / place / name).symlink_to(bridge / name)
                counters[host, i] = root / f"sys/class/infiniband/mlx5_{i}/ports/1/counters"
                counters[host, i].mkdir(parents=True)
            self.hosts.profile(host, *(f"export {name}={value}" for name, value in self.described(host).items()))
            self.addCleanup(self.hosts.profile, host)
        ended = threading.Event()

        def count():
            words = 10 ** 9
            while not ended.is_set():
                words += 10 ** 12   # more than the emulation moves meanwhile
                for (host, i), folder in counters.items():
                    for name in ("port_xmit_data", "port_rcv_data"):
                        new = folder / "new"
                        new.write_text(f"{1000 if (host, i) == ('h2', 1) else words}\n")
                        new.rename(folder / name)
                ended.wait(0.02)
        counting = threading.Thread(target=count)
        counting.start()
        try:
            done = self.run_on("h1", "collective", "--device", "cuda", "--set", "collective.op=rails", "--set",
                               "collective.bytes=64KiB", "--ranks", "4", "--hostfile", self.hosts.hostfile("h1 slots=2", "h2 slots=2"),
                               "--out", self.out, env=self.described("h1"))
        finally:
            ended.set()
            counting.join()
        self.assertEqual(done.returncode, 0, done.stderr)
        record, = self.records()
        self.assertEqual(record["status"], "ok", record["reason"])
        self.assertEqual({(port["host"], port["device"]): port["share"] < 0.8 for port in record["ports"]},
                         {(host, f"mlx5_{i} port 1"): (host, i) == ("h2", 1) for host, i in counters})
        self.assertIn("idle port: mlx5_1 port 1 on h2 carried 0 % of what its GPUs moved", record["flags"])
        self.assertEqual(len([flag for flag in record["flags"] if "port" in flag]), 1, record["flags"])

    def described(self, host):
        return {"ASSAY_ROOT": os.path.join(self.folder, "root-" + host), "ASSAY_MODULE_PATH": os.environ["ASSAY_EMULATED"],
                "ASSAY_EMULATION": "devices=2"}

    def pairwise(self):
        """The record of all pairs of hosts at one size."""
        out = os.path.join(self.folder, f"pairs-{len(os.listdir(self.folder))}")
        done = self.run_on("h1", "collective", "--set", "collective.op=pairwise", "--set", "collective.bytes=1MiB",
                           "--ranks", "4", "--hostfile", self.hosts.hostfile(), "--out", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        record, = self.records(out)
        self.assertEqual(record["status"], "ok", record["reason"])
        return record

    def test_a_slow_link_is_named(self):
        # Only between these two, both ways. All links are limited: a busy machine makes unlimited ones differ tenfold.
        for host in self.hosts.names:
            self.hosts.slow_host(host, "200mbit")
        self.hosts.slow("h2", "h4", "10mbit", others="200mbit")
        self.hosts.slow("h4", "h2", "10mbit", others="200mbit")
        flags = " ".join(self.pairwise()["flags"])
        self.assertRegex(flags, r"slow link h2 - h4\b")
        self.assertEqual(set(re.findall(r"slow link (h\d - h\d)", flags)), {"h2 - h4"}, flags)

    def test_a_slow_host_is_named(self):
        self.hosts.slow_host("h3", "20mbit")
        self.assertRegex(" ".join(self.pairwise()["flags"]), r"slow host h3\b")


if __name__ == "__main__":
    main(namespaces.missing())
