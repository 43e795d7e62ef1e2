"""assay accept over hosts that are network namespaces, with faults of several kinds at once, each on a host of its own;
a host that dies meanwhile; and inside a real Slurm."""
import glob
import json
import os
import signal
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
import namespaces  # noqa: E402
import slurm  # noqa: E402
from cluster_case import BINARY_PATH, ClusterCase, main, wait_for  # noqa: E402
from fake_machine import DRIVER, write_machine  # noqa: E402

QUOTA = 2   # percent of a CPU


class Quota:
    """A group of processes that get a small part of one CPU: by a quota, or where none can be set by the lowest priority."""

    def __init__(self):
        self.folder, self.lines = None, ["renice -n 19 $$ >/dev/null"]
        for base, name, text in (("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", str(QUOTA * 1000)),
                                 ("/sys/fs/cgroup", "cpu.max", f"{QUOTA * 1000} 100000")):
            folder = os.path.join(base, f"assay-test-{os.getpid()}")
            try:
                os.mkdir(folder)
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text)
            except OSError:
                if os.path.isdir(folder):
                    os.rmdir(folder)
                continue
            # Uses the root of this process: ip netns exec mounts another /sys, without control groups.
            self.folder, self.lines = folder, [f"echo $$ >/proc/{os.getpid()}/root{folder}/cgroup.procs"]
            return

    def stop(self):
        if not self.folder:
            return
        def removed():
            try:
                os.rmdir(self.folder)
            except FileNotFoundError:
                return True
            except OSError:
                return False
            return True
        wait_for(removed, "the end of the processes with a quota")


class AcceptCase(ClusterCase):
    def setUp(self):
        super().setUp()
        self.machines = {}
        quick = {"max_seconds": "2s", "warmup_seconds": "10ms", "min_samples": 3}
        gemm = {"family": "gemm", "dtype": "f32", "m": 128, "n": 128, "k": 128}
        # What the kernel gives in small parts shows only over a while.
        self.plan("host", {**gemm, "duration": "sustained"}, protocol=quick)
        self.plan("pairs", {"family": "collective", "op": "pairwise", "bytes": "256KiB", "dtype": "f32"},
                  protocol={**quick, "max_seconds": "1s"})
        self.plan("collectives", {"family": "collective", "op": ["all_reduce", "all_gather"], "bytes": "64KiB", "dtype": "f32"},
                  protocol={**quick, "max_seconds": "200ms"})
        self.plan("training", {"family": "transformer", "model": "gpt2-tiny", "micro_batch": 2, "seq": 16},
                  protocol={**quick, "max_seconds": "200ms"})
        # Hosts that share two cores differ much: where none is to be slow, only an outage counts.
        self.level(floor="1%", pair_share="1%")

    def level(self, floor, pair_share):
        """What a host must reach of the others' median, by itself and in pairs."""
        self.write("fleet.json", {"schema": 1, "floors": [
            {"key": "gemm/*", "metric": "throughput", "unit": "FLOP/s", "relative_to": "fleet_median", "at_least": floor,
             "min_members": 3, "source": "a test"}]})
        stages = ("host", "pairs", "collectives", "training")
        self.write("tiny.json", {"schema": 1, **{name: [name] for name in stages}, "fleet": "fleet.json",
                                 "pair_share": pair_share})

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            json.dump(content, file)
        return path

    def plan(self, name, *cases, **members):
        self.write(name + ".json", {"schema": 1, "name": name, "cases": list(cases), **members})

    def machine(self, host="healthy"):
        """The files of a healthy machine, to be changed; ASSAY_ROOT of that host."""
        folder = os.path.join(self.folder, "root-" + host)
        os.mkdir(folder)
        self.machines[host] = folder
        return write_machine(folder, gpus=4)

    def words(self, *more):
        return ["accept", "--device", "cpu", "--level", os.path.join(self.folder, "tiny.json"), *more]

    def table(self):
        """host -> check -> what the table says."""
        with open(os.path.join(self.out, "accept.json")) as file:
            self.document = json.load(file)
        return {host["host"]: {check["name"]: check for check in host["checks"]} for host in self.document["hosts"]}

    def failed(self):
        """host -> (the check that it failed, its evidence)."""
        found = {}
        for host, checks in self.table().items():
            for name, check in checks.items():
                if check["state"] == "fail":
                    found.setdefault(host, (name, " ".join(check["evidence"])))
        return found


class OverHosts(AcceptCase):
    COUNT, LINKS = 8, 1   # rank i of a host sends by its link i
    PATIENCE = 500        # seconds

    def setUp(self):
        super().setUp()
        self.hosts = namespaces.Hosts(self.COUNT, self.LINKS)
        self.addCleanup(self.hosts.stop)
        self.machine()
        for name in self.hosts.names:
            self.has(name)

    def has(self, name, *lines):
        """What is special about a host."""
        self.hosts.profile(name, f"export ASSAY_ROOT={self.machines.get(name, self.machines['healthy'])}", *lines)

    def environment(self, **more):
        if self.LINKS > 1:
            more["ASSAY_TCP_INTERFACES"] = ",".join(f"eth{link}" for link in range(self.LINKS))
        return self.hosts.environment(**self.mark, ASSAY_ROOT=self.machines["healthy"], **more)

    def start_accept(self, *words, **env):
        process = subprocess.Popen(self.hosts.on("h1", BINARY_PATH, *words), cwd=self.folder, text=True, errors="replace",
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment(**env))
        self.started.append(process)
        return process

    def accept(self, *words, code, **env):
        process = self.start_accept(*words, **env)
        out, errors = process.communicate(timeout=self.PATIENCE)
        self.assertEqual(process.returncode, code, out + errors)
        return out, errors

    def everything_passes(self, host):
        for name in ("audit", "host", "pairs", "collectives", "training"):
            self.assertEqual(self.table()[host][name]["state"], "pass", (host, name, self.table()[host][name]))

    def test_five_faults_at_once_are_each_found_by_their_check(self):
        self.machine("h2").remove_gpu(1, everywhere=False)
        other = self.machine("h3")
        other.write("proc/driver/nvidia/version", other_driver(other))
        other.remove(f"usr/lib/x86_64-linux-gnu/libcuda.so.{DRIVER}").write("usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15")
        with open(other.root / "nvml.json") as file:
            nvml = json.load(file)
        other.write("nvml.json", json.dumps({**nvml, "driver_version": "550.54.15"}))
        self.has("h2"), self.has("h3")
        self.level(floor="40%", pair_share="10%")
        quota = Quota()
        self.addCleanup(quota.stop)
        self.has("h4", *quota.lines)
        self.hosts.slow_host("h5", "4mbit")
        # The last rank is the one that breaks.
        self.has("h8", "export ASSAY_INJECT=wrong-sum")

        out, _ = self.accept(*self.words("--hostfile", self.hosts.hostfile(), "--out", self.out), code=1)
        failed = self.failed()
        self.assertEqual({host: check for host, (check, _) in failed.items()},
                         {"h2": "audit", "h3": "audit", "h4": "host", "h5": "pairs", "h8": "pairs"}, failed)
        self.assertIn("gpu", failed["h2"][1].lower())
        self.assertIn(f"driver is 550.54.15; 7 of 8 hosts have {DRIVER}", failed["h3"][1])
        self.assertIn("hosts' median", failed["h4"][1])
        self.assertIn("links to others are slow", failed["h5"][1])
        self.assertIn("wrong result: collective/op=pairwise", failed["h8"][1])
        for host in ("h1", "h6", "h7"):
            self.everything_passes(host)
        for host in failed:
            self.assertTrue(os.path.exists(os.path.join(self.out, "evidence", host + ".tar")), host)
            self.assertEqual(self.table()[host]["training"]["state"], "not_run")
            self.assertRegex(out, rf"(?m)^{host} .*FAIL")
        by_name = {host["host"]: host for host in self.document["hosts"]}
        self.assertTrue(by_name["h2"]["failed"]["gpu_uuids"][0].startswith("GPU-"))
        self.assertNotIn("serials", by_name["h2"]["failed"])
        self.assertIn("evidence", by_name["h2"]["failed"])
        self.assertTrue(any("drill" in note for note in self.document["notes"]))
        self.nothing_left()


def other_driver(machine):
    return (machine.root / "proc/driver/nvidia/version").read_text().replace(DRIVER, "550.54.15")


class FewHosts(OverHosts):
    COUNT = 4
    test_five_faults_at_once_are_each_found_by_their_check = None


class Floors(FewHosts):
    def test_a_floor_on_pairs_blames_the_slow_host_alone_and_what_nobody_measures_is_listed(self):
        self.write("tiny.json", {"schema": 1, "pairs": ["pairs"], "pair_share": "1%"})
        self.hosts.slow_host("h3", "4mbit")
        floor = {"key": "collective/op=pairwise/*", "metric": "slowest_pair_bandwidth", "unit": "B/s", "at_least": "1 MB/s",
                 "required": True, "source": "a test"}
        self.write("floors.json", {"schema": 1, "floors": [floor, {**floor, "nodes": 64}]})
        out, errors = self.accept(*self.words("--hostfile", self.hosts.hostfile(), "--out", self.out, "--floors",
                                              os.path.join(self.folder, "floors.json")), code=1)
        failed = self.failed()
        self.assertEqual({host: check for host, (check, _) in failed.items()}, {"h3": "pairs"}, failed)
        self.assertIn("slow with 3 of 3 hosts: h1, h2, h4", failed["h3"][1])
        self.assertEqual(self.table()["h3"]["pairs"]["culprit"], "host h3")
        for host in ("h1", "h2", "h4"):
            self.assertEqual(self.table()[host]["pairs"]["state"], "pass", self.table()[host]["pairs"])
        self.assertEqual([(one["nodes"], one["required"]) for one in self.document["not_measured"]], [(64, True)])
        for text in (out, errors):   # before and after
            self.assertIn("not measured at this level: 1 floor of floors, 1 of them required", " ".join(text.split()))
        self.nothing_left()


class Groups(OverHosts):
    COUNT = 6
    test_five_faults_at_once_are_each_found_by_their_check = None

    def test_a_host_that_is_slow_whatever_its_partners_are_fails_and_they_pass(self):
        self.plan("groups", {"family": "collective", "op": "groups", "bytes": "64KiB", "dtype": "f32"},
                  protocol={"max_seconds": "2s", "warmup_seconds": "10ms", "min_samples": 3})
        self.write("tiny.json", {"schema": 1, "collectives": ["groups"], "pair_share": "30%"})
        for host in self.hosts.names:   # so that links are slower than CPUs that hosts share
            self.hosts.slow_host(host, "2mbit" if host == "h3" else "50mbit")
        out, _ = self.accept(*self.words("--hostfile", self.hosts.hostfile(), "--out", self.out), code=1)
        failed = self.failed()
        self.assertEqual({host: check for host, (check, _) in failed.items()}, {"h3": "collectives"}, failed)
        self.assertRegex(failed["h3"][1], r"op=groups/.*: slow in [56] of 6 groups of other hosts each: .* % of the usual busbw")
        for host in ("h1", "h2", "h4", "h5", "h6"):
            self.assertEqual(self.table()[host]["collectives"]["state"], "pass", self.table()[host]["collectives"])
        self.assertIn("slowest_group_busbw", [figure["metric"] for figure in self.document["figures"]])
        self.assertRegex(out, r"(?m)^h3 +FAIL +host ")
        self.nothing_left()


class LostHost(FewHosts):

    def test_a_host_that_dies_is_left_out_and_the_rest_goes_on_after_a_resume(self):
        self.plan("host", *[{"family": "gemm", "dtype": "f32", "m": 64, "n": 64, "k": 64 + i} for i in range(12)],
                  protocol={"max_seconds": "1s", "warmup_seconds": "10ms", "target_relative_ci": "0.001%"})
        # Long enough for the hosts that are there, which share the CPUs of a busy machine.
        limits = {"ASSAY_HEARTBEAT_LIMIT": "15", "ASSAY_LAUNCH_LIMIT": "30"}
        process = self.start_accept(*self.words("--hostfile", self.hosts.hostfile(), "--out", self.out), **limits)
        records = os.path.join(self.out, "host")
        wait_for(lambda: len(self.records(records)) >= 4, "the first records", 120)
        self.hosts.cut("h3")
        wait_for(lambda: any(r["status"] == "error" for r in self.records(records)), "the loss of h3", 120)
        self.supervising(process)
        out, errors = process.communicate(timeout=200)
        self.assertEqual(process.returncode, 3, out + errors)
        self.assertIn(f"continue with: assay accept --resume {self.out}", errors)
        self.nothing_left(60)

        self.accept("accept", "--resume", self.out, code=1, **limits)
        failed = self.failed()
        self.assertEqual({host: check for host, (check, _) in failed.items()}, {"h3": "host"}, failed)
        self.assertIn("h3", failed["h3"][1])
        for host in ("h1", "h2", "h4"):
            self.everything_passes(host)
        # What was measured before is not measured again.
        keys = [(r["key"], r["ranks"][0]["host"]) for r in self.records(records) if r["status"] == "ok"]
        self.assertEqual(len(keys), len(set(keys)))
        self.nothing_left(60)

    def supervising(self, process):
        """Asks the acceptance to end; the processes above it entered the namespace."""
        pid = wait_for(lambda: next((pid for pid, line in self.left().items() if line.startswith(BINARY_PATH + " accept ")), None),
                       "the acceptance")
        os.kill(pid, signal.SIGTERM)
        return process


@unittest.skipIf(slurm.missing(), slurm.missing())
class InSlurm(AcceptCase):
    def test_the_hosts_of_a_job(self):
        cluster = slurm.Slurm(4)
        self.addCleanup(cluster.stop)
        self.machine()
        line = " ".join([BINARY_PATH, *self.words("--out", self.out)])
        job = cluster.submit(f"#!/bin/bash\n{line}\n", "-N4", "--ntasks-per-node=1", cwd=self.folder,
                             env={**self.mark, "ASSAY_ROOT": self.machines["healthy"]})
        try:
            wait_for(lambda: cluster.ended(job), "the end of the job", 300)
        finally:
            cluster.run("scancel", job, check=False)
        said = ""
        for path in glob.glob(os.path.join(self.folder, "*.log")) + [os.path.join(self.folder, name) for name in ("out", "err")]:
            if os.path.exists(path):
                with open(path, errors="replace") as file:
                    said += file.read()[-3000:]
        self.assertEqual(cluster.state(job), "COMPLETED", said)
        table = self.table()
        self.assertEqual(sorted(table), cluster.nodes)
        for host, checks in table.items():
            for name in ("audit", "host", "pairs", "collectives", "training"):
                self.assertEqual(checks[name]["state"], "pass", (host, name, checks[name]))
        self.nothing_left()


if __name__ == "__main__":
    main(namespaces.missing())
