"""Collectives between emulated GPUs: ranks started by the supervisor, bad environments, ranks that die or hang."""
import json
import os
import re
import signal
import statistics
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from testbed import TestbedCase, alive, descendants, wait_for, workers  # noqa: E402

QUICK = {"max_seconds": 0.05, "warmup_seconds": 0.001, "min_samples": 5, "target_relative_ci": 0.5}
OPS = ["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send_recv", "all_to_all_v"]


class Gpus(TestbedCase):
    def emulation(self, script="devices=4", **more):
        return {"ASSAY_MODULE_PATH": os.environ["ASSAY_EMULATED"], "ASSAY_EMULATION": script, **more}

    def plan(self, protocol=QUICK, **values):
        path = os.path.join(self.folder, "plan.json")
        with open(path, "w") as file:
            json.dump({"schema": 1, "name": "t", "protocol": protocol,
                       "cases": [{"family": "collective", "bytes": 4096, **values}]}, file)
        return path

    def collective(self, *flags, env=None, protocol=QUICK, **values):
        return self.run_assay(self.plan(protocol, **values), "--device", "cuda", "--out", self.out, *flags,
                              env=env or self.emulation())

    def reason(self):
        return " ".join(record["reason"] for record in self.records())

    def test_every_call_is_correct_on_one_two_and_four_gpus(self):
        done = self.collective("--ranks", "1,2,4", op=OPS, dtype=["f32", "bf16"], inplace=[False, True],
                               bytes=1000003)
        self.assertEqual(done.returncode, 0, done.stderr + self.reason())
        records = self.records()
        self.assertEqual(len(records), 3 * 7 * 2 * 2)
        measured = [record for record in records if record["status"] == "ok"]
        self.assertEqual(len(measured), 3 * (7 + 4) * 2, "three calls have no in-place form")
        for record in measured:
            ranks = record["world"]["ranks"]
            self.assertEqual([check["passed"] for check in record["checks"]], [True] * (1 if record["params"]["inplace"] else 2))
            self.assertFalse(record["comparable"])
            self.assertEqual([entry["rank"] for entry in record["ranks"]], list(range(ranks)))
            self.assertEqual(len({entry["uuid"] for entry in record["ranks"]}), ranks)
            self.assertEqual(len({entry["pci"] for entry in record["ranks"]}), ranks)
            bus = next(metric for metric in record["metrics"] if metric["name"] == "busbw")
            self.assertEqual(bus["value"] is None, ranks == 1)
            if ranks > 1:
                # NCCL keeps its connections, so they depend on earlier cases and must not decide what can be compared.
                self.assertRegex(record["choices"]["implementation"], r"^NCCL 2\.[0-9.]+$")
                self.assertNotIn("transport", record["choices"])
                self.assertEqual(record["labels"]["connections_so_far"], "SHM/emulated")
        self.assertEqual({r["choices"].get("algorithm") for r in measured
                          if r["params"]["op"] == "all_reduce" and r["world"]["ranks"] > 1}, {"RING/SIMPLE"})

    def test_nvls_off_and_registered_buffers_are_parameters(self):
        done = self.collective("--ranks", "2", op="all_reduce", nvls=["auto", "off"], buffers=["plain", "registered"])
        self.assertEqual(done.returncode, 0, done.stderr + self.reason())
        ways = {record["key"].split("inplace=false/batching=batched/")[1]: record["choices"]["algorithm"]
                for record in self.records()}
        # A multicast group is set up where NVLS is allowed, but no call uses it.
        self.assertEqual(ways, {f"nvls={nvls}/buffers={buffers}": "RING/SIMPLE"
                                for nvls in ("auto", "off") for buffers in ("plain", "registered")})
        self.assertEqual({record["labels"]["connections_so_far"] for record in self.records()}, {"SHM/emulated"})

    def test_symmetric_buffers_are_used(self):
        done = self.collective("--ranks", "2", op=OPS, buffers=["registered", "symmetric"])
        self.assertEqual(done.returncode, 0, done.stderr + self.reason())
        for record in self.records():
            self.assertTrue(record["key"].endswith("/buffers=" + record["params"]["buffers"]))
            self.assertEqual([check["passed"] for check in record["checks"]], [True, True])
            reduces = record["params"]["op"] in ("all_reduce", "all_gather", "reduce_scatter")
            if reduces:
                symmetric = record["choices"]["algorithm"].startswith("symmetric/")
                self.assertEqual(symmetric, record["params"]["buffers"] == "symmetric", record["choices"])

    def test_symmetric_buffers_are_skipped_where_they_are_impossible(self):
        for script, ranks, reason in (("devices=2,nccl=2.26.5", 2, "NCCL 2.26.5 has no symmetric memory, which came with 2.27"),
                                      ("devices=2,nccl_windows=refused", 2, "ncclCommWindowRegister makes no window"),
                                      ("devices=2", 1, "one rank has no peer")):
            self.out = os.path.join(self.folder, script + str(ranks))
            done = self.collective("--ranks", str(ranks), op="all_reduce", buffers=["plain", "symmetric"],
                                   env=self.emulation(script))
            self.assertEqual(done.returncode, 0, done.stderr + self.reason())
            plain, symmetric = self.records()
            self.assertEqual((plain["status"], symmetric["status"]), ("ok", "skipped"))
            self.assertIn(reason, symmetric["reason"])

    def test_calls_in_a_graph(self):
        done = self.collective("--ranks", "1,2", op=OPS, inplace=[False, True], batching=["batched", "graph"],
                               buffers=["plain", "symmetric"])
        self.assertEqual(done.returncode, 0, done.stderr + self.reason())
        measured = [record for record in self.records() if record["status"] == "ok"]
        self.assertEqual(len(measured), (1 + 2) * (7 + 4) * 2, "one rank registers nothing")
        for record in measured:
            graph = record["params"]["batching"] == "graph"
            self.assertTrue(all(check["passed"] for check in record["checks"]), record["checks"])
            self.assertEqual(record["protocol"]["batching"], record["params"]["batching"])
            self.assertEqual(record["protocol"].get("calls_per_graph"), "20" if graph else None)
            self.assertIn(f"/batching={'graph' if graph else 'batched'}/", record["key"])
            # A sample is the launch of a graph of 20 calls; the figure is that of one.
            figures = {metric["name"]: metric["value"] for metric in record["metrics"]}
            median = statistics.median(record["samples"]["values"])
            self.assertAlmostEqual(figures["latency"] * (20 if graph else 1) / median, 1, 6)
            self.assertAlmostEqual(figures["algbw"] * figures["latency"] / float(record["labels"]["bytes_used"]), 1, 6)
            if graph and record["world"]["ranks"] == 2 and record["params"]["op"] == "all_reduce":
                self.assertEqual(record["choices"]["algorithm"].startswith("symmetric/"),
                                 record["params"]["buffers"] == "symmetric")

    def test_a_wrong_sum_in_a_graph_fails(self):
        done = self.collective("--ranks", "2", "--inject", "wrong-sum", op=["all_reduce"], inplace=[False, True],
                               batching="graph")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([record["status"] for record in self.records()], ["failed", "failed"])

    def test_no_graph_on_a_cpu_nor_of_single_messages(self):
        done = self.collective("--ranks", "2", op="pairwise", batching="graph")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("single calls, not graphs", self.reason())
        self.out += "-cpu"
        done = self.run_assay(self.plan(op="all_reduce", batching="graph"), "--device", "cpu", "--out", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.reason(), "batching=graph does not run on cpu")

    def test_every_pair_of_gpus_is_measured_each_way(self):
        done = self.collective("--ranks", "3", op="pairwise", bytes=[8, 65536])
        self.assertEqual(done.returncode, 0, done.stderr + self.reason())
        records = self.records()
        self.assertEqual([record["matrix"]["metric"] for record in records], ["latency", "bandwidth"])
        for record in records:
            self.assertEqual([check["passed"] for check in record["checks"]], [True, True])
            for row, figures in enumerate(record["matrix"]["values"]):
                self.assertEqual([figure is None for figure in figures], [row == column for column in range(3)])

    def test_a_wrong_sum_fails_and_names_its_rank(self):
        done = self.collective("--ranks", "2", "--inject", "wrong-sum", op=["all_reduce", "all_gather"])
        self.assertEqual(done.returncode, 1, done.stderr)
        for record in self.records():
            self.assertEqual(record["status"], "failed")
            self.assertIn("rank 1: element", record["checks"][0]["detail"][0])

    def test_more_ranks_than_gpus_is_refused(self):
        done = self.collective("--ranks", "3", op="all_reduce", env=self.emulation("devices=2"))
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--ranks 3: this host has 2 GPUs", done.stderr)
        self.assertIn("--share-gpu", done.stderr)

    def test_ranks_that_share_a_gpu(self):
        done = self.collective("--ranks", "2", "--share-gpu", op=["all_reduce", "send_recv"],
                               env=self.emulation("devices=1"))
        self.assertEqual(done.returncode, 0, done.stderr + self.reason())
        for record in self.records():
            self.assertFalse(record["comparable"])
            self.assertIn("shared GPU", record["flags"])
            self.assertEqual(record["labels"]["connections_so_far"], "NET/Socket")
            self.assertFalse([flag for flag in record["flags"] if "socket" in flag], "it was requested")
            self.assertEqual(len({entry["uuid"] for entry in record["ranks"]}), 1)

    def test_an_unexpected_socket_is_flagged(self):
        done = self.collective("--ranks", "2", op="all_reduce",
                               env=self.emulation(NCCL_SHM_DISABLE="1", NCCL_P2P_DISABLE="1"))
        self.assertEqual(done.returncode, 0, done.stderr + self.reason())
        record, = self.records()
        self.assertEqual(record["labels"]["connections_so_far"], "NET/Socket")
        self.assertTrue([flag for flag in record["flags"] if "socket between GPUs of one host" in flag], record["flags"])

    def test_transports_are_unknown_where_the_user_has_nccls_log(self):
        log = os.path.join(self.folder, "nccl.log")
        for settings in ({"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": log, "NCCL_DEBUG_SUBSYS": "INIT"}, {"NCCL_DEBUG_SUBSYS": "NET"}):
            self.out += "-x"
            done = self.collective("--ranks", "2", op="all_reduce", env=self.emulation(**settings))
            self.assertEqual(done.returncode, 0, done.stderr + self.reason())
            record, = self.records()
            self.assertEqual(record["labels"]["connections_so_far"], "unknown")
            self.assertNotIn("algorithm", record["choices"])
            self.assertEqual([flag for flag in record["flags"] if "transports" in flag],
                             ["the transports between ranks are unknown: "
                              f"{next(iter(settings))} is set, so NCCL's log is the user's"])
        with open(log) as file:
            text = file.read()
        self.assertIn("NCCL INFO", text)
        self.assertNotIn("Algo", text)  # of the subsystem TUNING, which the user did not ask for

    def test_settings_of_nccl_are_conditions(self):
        done = self.collective("--ranks", "1,2", op="all_reduce", nvls=["auto", "off"], env=self.emulation(NCCL_ALGO="Ring"))
        self.assertEqual(done.returncode, 0, done.stderr + self.reason())
        kept = {(record["world"]["ranks"], record["params"]["nvls"]):
                {name: value for name, value in record["conditions"].items() if name.startswith("NCCL_")}
                for record in self.records() if record["status"] == "ok"}
        self.assertEqual({kept[2, "auto"].get("NCCL_ALGO"), kept[2, "off"].get("NCCL_ALGO")}, {"Ring"})
        self.assertEqual({name for one in kept.values() for name in one}, {"NCCL_ALGO"})
        self.assertEqual(kept[1, "auto"], {})

    def test_no_network_interface(self):
        done = self.collective("--ranks", "2", op="all_reduce", env=self.emulation(NCCL_SOCKET_IFNAME="nosuch0"))
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("no socket interface found", self.reason())
        self.assertIn("NCCL_SOCKET_IFNAME is nosuch0", self.reason())

    def connected_ranks(self, process, count):
        """Waits until the ranks have connected, when each maps the world's shared memory; returns their pids."""
        def by_rank():
            """None until every rank has its own environment: between fork and exec a process has its parent's, or none."""
            pids = {}
            for pid in workers(process.pid):
                with open(f"/proc/{pid}/environ", "rb") as file:
                    words = dict(word.split(b"=", 1) for word in file.read().split(b"\0") if b"=" in word)
                if b"ASSAY_RANK" in words:
                    pids[int(words[b"ASSAY_RANK"])] = pid
            return pids if len(pids) == count else None
        ranks = wait_for(by_rank, "all ranks")

        def connected():
            for pid in ranks.values():
                with open(f"/proc/{pid}/maps") as maps:
                    if "assay-nccl" not in maps.read():
                        return False
            return True
        wait_for(connected, "the ranks' world")
        return ranks

    def test_a_rank_that_dies_in_a_collective_is_named_and_the_rest_is_measured(self):
        slow = {**QUICK, "max_seconds": 60, "min_samples": 1000000, "target_relative_ci": 1e-9}
        plan = self.plan(slow, op=["all_reduce"])
        process = self.start(plan, "--device", "cuda", "--ranks", "3", "--out", self.out, env=self.emulation())
        ranks = self.connected_ranks(process, 3)
        held = descendants(process.pid)
        os.kill(ranks[1], signal.SIGKILL)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 4)
        record, = self.records()
        self.assertEqual(record["status"], "error")
        self.assertIn("rank 1: killed by SIGKILL", record["reason"])
        self.assertEqual(alive(held), [])

    def test_a_rank_that_hangs_or_is_stopped_is_named_and_the_rest_is_measured(self):
        done = self.collective("--ranks", "3", "--inject", "hang", "--timeout", "5", op=["all_reduce"])
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertRegex(self.reason(), r"rank 2 on \S+, in measure for .*, has not arrived at \w+ \(call \d+ of their world\)"
                                        r", where ranks 0, 1 wait")
        self.out += "-stopped"
        slow = {**QUICK, "max_seconds": 60, "min_samples": 1000000, "target_relative_ci": 1e-9}
        process = self.start(self.plan(slow, op="all_reduce"), "--device", "cuda", "--ranks", "2", "--timeout", "6",
                             "--out", self.out, env=self.emulation())
        ranks = self.connected_ranks(process, 2)
        held = descendants(process.pid)
        os.kill(ranks[1], signal.SIGSTOP)
        process.communicate(timeout=90)
        self.assertEqual(process.returncode, 4)
        self.assertRegex(self.reason(), r"rank 1 on \S+, .*its process is stopped")
        self.assertEqual(alive(held), [])

    def test_a_slow_link_and_a_slow_rank_are_named(self):
        # The emulation lines up the ranks to about half a millisecond, so the call of a slow rank must be longer.
        cases = {("slow-link", 3): (262144, r"slow link: every one of rank 2 on \S+ \(to rank 0 on \S+, rank 1 on \S+\)", "slow rank"),
                 ("slow-link", 2): (262144, r"slow link: that between rank 0 on \S+ and rank 1 on \S+ took ", "slow rank"),
                 ("slow-rank", 3): (4194304, r"slow rank: rank 2 on ", "slow link")}
        for (fault, ranks), (size, words, never) in cases.items():
            for attempt in range(6):  # a busy machine may hide it
                self.out = os.path.join(self.folder, f"{fault}-{ranks}-{attempt}")
                done = self.collective("--ranks", str(ranks), "--inject", fault, op=["all_reduce"], bytes=size)
                self.assertEqual(done.returncode, 0, done.stderr + self.reason())
                record, = self.records()
                self.assertIn("injected:" + fault, record["flags"])
                if (any(re.match(words, flag) for flag in record["flags"])
                        and not any(flag.startswith(never) for flag in record["flags"])):
                    break
            else:
                self.fail(f"{fault} among {ranks}: {record['flags']}")

    def test_kill_9_of_the_supervisor_ends_every_rank(self):
        slow = {**QUICK, "max_seconds": 60, "min_samples": 1000000, "target_relative_ci": 1e-9}
        process = self.start(self.plan(slow, op="all_reduce"), "--device", "cuda", "--ranks", "3", "--out", self.out,
                             env=self.emulation())
        wait_for(lambda: len(workers(process.pid)) == 3, "three ranks")
        held = descendants(process.pid)
        process.send_signal(signal.SIGKILL)
        wait_for(lambda: not alive(held), "the end of the ranks")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
