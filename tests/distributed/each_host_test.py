"""--each-host on several hosts, here processes on this machine that find each other through environment variables."""

import os
import re
import secrets
import signal
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from host_names import HOST_NAME_PREFIX, with_mpi  # noqa: E402
from hosts import free_port  # noqa: E402
from testbed import TestbedCase, alive, descendants, main, wait_for  # noqa: E402


class SeveralHosts(TestbedCase):
    def hosts(self, names, *words):
        """Starts the command on every host; returns the processes, the supervisor's first."""
        token, port = secrets.token_hex(16), free_port()
        processes = []
        for rank, name in enumerate(names):
            env = dict(os.environ, ASSAY_SUPERVISOR=f"127.0.0.1:{port}", ASSAY_TOKEN=token, ASSAY_RANK=str(rank),
                       ASSAY_SIZE=str(len(names)), ASSAY_HOST=name)
            if not HOST_NAME_PREFIX:  # Open MPI names shared memory after the kernel's host name, which is the same
                env["OMPI_MCA_btl"] = "self,tcp"
            env["OMPI_MCA_reachable"] = "weighted"  # the hosts share this machine's addresses
            env.pop("ASSAY_LOCAL_RANK", None)
            process = subprocess.Popen([*HOST_NAME_PREFIX, *self.command(*words)], env=env, cwd=self.folder, text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.started.append(process)
            processes.append(process)
        return processes

    def finished(self, processes):
        outs = [process.communicate(timeout=120) for process in processes]
        return [process.returncode for process in processes], outs


class Pairwise(SeveralHosts):
    """The matrix between hosts; one rank of each takes part."""

    def measured(self, names, *words):
        codes, outs = self.finished(self.hosts(names, "collective", "--set", "collective.op=pairwise", "--set",
                                               "collective.bytes=8,1MiB", "--device", "cpu", "--out", self.out, *words))
        self.assertEqual(codes, [0] * len(names), outs)
        return self.records(), outs[0][0]

    @with_mpi
    def test_the_matrix_has_every_direction_between_hosts(self):
        records, shown = self.measured(["a", "b", "c"], "--ranks", "3")
        self.assertEqual([record["matrix"]["metric"] for record in records], ["latency", "bandwidth"])
        for record in records:
            self.assertEqual(record["status"], "ok", record["reason"])
            self.assertEqual([rank["host"] for rank in record["ranks"]], ["a", "b", "c"])
            matrix = record["matrix"]
            self.assertEqual(matrix["ranks"], [0, 1, 2])
            for row, figures in enumerate(matrix["values"]):
                for column, figure in enumerate(figures):
                    self.assertTrue(figure is None if row == column else figure > 0, matrix)
        self.assertIn("between 3 hosts", shown)

    @with_mpi
    def test_one_rank_of_each_host_takes_part(self):
        records, _ = self.measured(["a", "b"], "--ranks", "4")
        for record in records:
            self.assertEqual(record["world"], {"ranks": 4, "nodes": 2})
            first = [next(rank["rank"] for rank in record["ranks"] if rank["host"] == host) for host in ("a", "b")]
            self.assertEqual(record["matrix"]["ranks"], first)

    def test_on_one_host_every_rank_takes_part(self):
        done = self.run_assay("collective", "--set", "collective.op=pairwise", "--set", "collective.bytes=8", "--ranks",
                              "1,3", "--device", "cpu", "--out", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        lone, three = self.records()
        self.assertEqual((lone["status"], lone["reason"]), ("skipped", "one rank has no peer to send to"))
        self.assertEqual(three["matrix"]["ranks"], [0, 1, 2])
        self.assertIn("between 3 ranks", done.stdout)

    @unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "two hosts need two cores")
    @with_mpi
    def test_the_slow_link_of_a_collective_is_named_with_both_hosts(self):
        flags = []
        for attempt in range(3):  # a busy machine may hide it once
            self.out = os.path.join(self.folder, f"slow-link-{attempt}")
            codes, outs = self.finished(self.hosts(["a", "b"], "collective", "--set", "collective.op=all_reduce", "--set",
                                                   "collective.bytes=256KiB", "--device", "cpu", "--ranks", "2",
                                                   "--inject", "slow-link", "--out", self.out))
            self.assertEqual(codes, [0, 0], outs)
            flags = self.records()[0]["flags"]
            if any(re.match("slow link: that between rank 0 on a and rank 1 on b took ", flag) for flag in flags):
                return
        self.fail(f"not found in {flags}")


class EachHost(SeveralHosts):
    def plan(self, *ops, **params):
        return [*self.probe(*ops, **params), "--device", "cpu", "--out", self.out]

    def at_work(self, hosts):
        """Waits until every host has described itself, which means that its run has begun."""
        def begun():
            if not os.path.exists(os.path.join(self.out, "run.json")):
                return False
            described = self.run_json().get("hosts", [])
            return len(described) == hosts and all("environment" in host for host in described)
        wait_for(begun, "all hosts at work", 60)

    def by_host(self, out=None):
        found = {}
        for record in self.records(out):
            self.assertEqual(len({rank["host"] for rank in record["ranks"]}), 1)
            found.setdefault(record["ranks"][0]["host"], []).append(record)
        return found

    def test_every_host_runs_every_case_and_records_name_it(self):
        codes, outs = self.finished(self.hosts(["n1", "n2", "n3"], *self.plan("ok", "skip"), "--each-host"))
        self.assertEqual(codes, [0, 0, 0], outs)
        records = self.by_host()
        self.assertEqual(sorted(records), ["n1", "n2", "n3"])
        for host in records.values():
            self.assertEqual(sorted(record["status"] for record in host), ["ok", "skipped"])
            self.assertTrue(all(record["world"] == {"ranks": 1, "nodes": 1} for record in host))
            self.assertTrue(all("hosts are one machine" in record["flags"] and not record["comparable"]
                                for record in host))
        run = self.run_json()
        self.assertIs(run["each_host"], True)
        self.assertEqual([host["name"] for host in run["hosts"]], ["n1", "n2", "n3"])
        for host in run["hosts"]:
            self.assertTrue(host["environment"]["cpu"]["name"])
            self.assertIsInstance(host["findings"], list)
        for name in ("n1", "n2", "n3"):
            self.assertIn(f"{name}: probe/", outs[0][1])
        self.assertIn("3 hosts", outs[0][0])

    def test_world_sizes_of_one_host_run_on_each(self):
        codes, outs = self.finished(self.hosts(["n1", "n2"], *self.plan("ok"), "--each-host", "--ranks", "1,2"))
        self.assertEqual(codes, [0, 0], outs)
        for host in self.by_host().values():
            self.assertEqual(sorted(record["world"]["ranks"] for record in host), [1, 2])

    def test_a_worker_that_dies_loses_its_case_on_each_host(self):
        codes, outs = self.finished(self.hosts(["n1", "n2"], *self.plan("crash", "ok"), "--each-host"))
        self.assertEqual(codes[0], 4, outs)
        for name, host in self.by_host().items():
            by_op = {record["params"]["op"]: record for record in host}
            self.assertEqual(by_op["ok"]["status"], "ok")
            self.assertEqual(by_op["crash"]["status"], "error")
            self.assertIn("SIGSEGV", by_op["crash"]["reason"])

    def test_a_host_that_dies_loses_its_own_cases_and_resume_completes_them(self):
        processes = self.hosts(["n1", "n2", "n3"], *self.plan("sleep", "ok", seconds=3), "--each-host")
        self.at_work(3)
        family = descendants(processes[1].pid)
        processes[1].kill()
        codes, outs = self.finished(processes)
        self.assertEqual(codes[0], 4, outs)
        records = self.by_host()
        self.assertEqual({record["status"] for record in records["n1"] + records["n3"]}, {"ok"})
        self.assertEqual({record["status"] for record in records["n2"]}, {"error"})
        for record in records["n2"]:
            self.assertIn("host n2", record["reason"])
        wait_for(lambda: not alive(family), "the end of the lost host's processes")
        before = len(self.records())
        codes, outs = self.finished(self.hosts(["n1", "n2", "n3"], "--resume", self.out))
        self.assertEqual(codes, [0, 0, 0], outs)
        new = self.records()[before:]
        self.assertEqual({record["ranks"][0]["host"] for record in new}, {"n2"})
        self.assertEqual({record["attempt"] for record in new}, {2})

    def test_an_interrupted_run_is_resumable_and_leaves_no_process(self):
        processes = self.hosts(["n1", "n2"], *self.plan("sleep", "ok", seconds=120), "--each-host")
        self.at_work(2)
        family = [pid for process in processes for pid in descendants(process.pid)]
        # A supervisor elsewhere considers a run dead if its lock is old.
        lock = os.path.join(self.out, ".lock")
        os.utime(lock, (1000, 1000))
        wait_for(lambda: os.stat(lock).st_mtime > 1000, "a heartbeat", 60)
        processes[0].send_signal(signal.SIGTERM)
        codes, outs = self.finished(processes)
        self.assertEqual(codes[0], 3, outs)
        self.assertIn("--resume", outs[0][1])
        wait_for(lambda: not alive(family), "the end of all processes")

    def test_one_host_is_an_ordinary_run(self):
        done = self.run_assay(*self.plan("ok"), "--each-host")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.records()), 1)

    def test_a_trace_is_refused(self):
        codes, outs = self.finished(self.hosts(["n1", "n2"], *self.plan("ok"), "--each-host", "--trace"))
        self.assertEqual(codes[0], 2, outs)
        self.assertIn("--trace", outs[0][1])
        self.assertFalse(os.path.exists(self.out))


if __name__ == "__main__":
    main()
