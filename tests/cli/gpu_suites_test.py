"""The suites on the emulated GPU: records, checks, faults, and what a device lacks. Its figures mean nothing, and every
record must say so."""

import os
import pathlib
import shlex
import shutil
import subprocess
import unittest

from assay_case import AssayCase

QUICK = {"max_seconds": 0.1, "warmup_seconds": 0.01, "min_samples": 6}
CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs" / "plans"


class GpuSuites(AssayCase):
    def run_plan(self, *entries, device="cuda", emulation="", more=None, **options):
        env = {"ASSAY_MODULE_PATH": os.environ["ASSAY_EMULATED"], "ASSAY_EMULATION": emulation, **(more or {})}
        return self.measure(*entries, device=device, env=env, protocol=QUICK, **options)

    def ok(self, *entries, **options):
        """Runs the entries; every case must be ok and marked as not comparable."""
        done, records = self.run_plan(*entries, **options)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        for record in records:
            self.assertEqual(record["status"], "ok", record)
            self.assertFalse(record["comparable"])
            self.assertTrue(any("emulated" in flag for flag in record["flags"]), record["flags"])
            self.assertIn("emulated", record["ranks"][0]["device"])
            self.assertTrue(record["ranks"][0]["uuid"].startswith("GPU-"))
            self.assertRegex(record["ranks"][0]["pci"], r"^0000:[0-9a-f]{2}:00\.0$")
        return records

    def failed(self, entry, check, value=1, **options):
        done, records = self.run_plan(entry, words=("--inject", "bit-flip"), **options)
        self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
        for record in records:
            self.assertEqual(record["status"], "failed", record)
            found = self.by_name(record["checks"])[check]
            self.assertEqual((found["passed"], found["value"]), (False, value), record)
            self.assertTrue(found["detail"])

    def figure(self, record, name):
        return self.metrics(record)[name]

    def test_gpus_that_are_left_out(self):
        for more, uuids in [({"ASSAY_GPUS": "0,2"}, [0, 2]), ({"ASSAY_GPUS": "1,0", "CUDA_VISIBLE_DEVICES": "3,2"}, [2, 3])]:
            record, = self.ok({"family": "memory", "op": "read", "bytes": "64KiB"}, emulation="devices=4", more=more, words=("--ranks", "2"))
            self.assertEqual([rank["uuid"][:12] for rank in record["ranks"]], [f"GPU-0000000{gpu}" for gpu in uuids])

    def test_a_gpu_that_two_cases_waited_for_holds_up_no_third(self):
        entry = {"family": "memory", "op": ["read", "write", "copy"], "bytes": "64KiB", "timeout": "3s"}
        done, records = self.run_plan(entry, emulation="devices=2", words=("--ranks", "2", "--inject", "hang"))
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual([(record["failure"]["kind"], record["failure"]["rank"]) for record in records], [("timeout", 1)] * 3)
        reasons = [record["reason"] for record in records]   # each says for how long it waited
        self.assertEqual(reasons[1], reasons[2])
        self.assertFalse(records[2]["spans"])

    def test_a_collective_without_direct_copies(self):
        entry = {"family": "collective", "op": "all_reduce", "bytes": "64KiB", "p2p": ["auto", "off"]}
        keys = [record["key"] for record in self.ok(entry, emulation="devices=2", words=("--ranks", "2"))]
        self.assertEqual(["/p2p=off" in key for key in keys], [False, True], keys)

    def test_memory(self):
        ops = ["read", "write", "copy", "scale", "add", "triad", "dot"]
        for record in self.ok({"family": "memory", "op": ops, "bytes": "64KiB"}):
            op = record["params"]["op"]
            self.assertEqual(record["key"], f"memory/op={op}/bytes=65536/gpus=each")
            self.assertEqual((record["protocol"]["cache"], record["protocol"]["gate"]), ("hot", "launches=1"))
            self.assertEqual(record["protocol"]["timer"], "cuda_event")
            self.assertEqual(record["labels"]["level"], "L2")
            self.assertIn("unroll", record["labels"]["kernel"])
            # Bytes as STREAM counts them, over all passes of the median repetition.
            arrays = {"read": 1, "write": 1, "copy": 2, "scale": 2, "add": 3, "triad": 3, "dot": 2}[op]
            counted = arrays * 65536 * int(record["labels"]["passes"])
            self.assertAlmostEqual(self.figure(record, "bandwidth") * record["ranks"][0]["median"] / counted, 1, 6)

    def test_half_of_the_l2_is_sure_to_hold_what_every_multiprocessor_reads(self):
        """The emulated GPU's L2 has 1 MiB. Its two partitions each keep what their own multiprocessors read."""
        for record in self.ok({"family": "memory", "op": ["read", "latency"], "bytes": ["512KiB", "513KiB", "1MiB"]},
                              {"family": "memory", "op": "copy", "bytes": ["256KiB", "257KiB"]}):
            sure = record["params"]["bytes"] <= 1 << (18 if record["params"]["op"] == "copy" else 19)
            self.assertEqual((record["labels"]["level"], record["protocol"]["cache"]),
                             ("L2", "hot") if sure else ("L2, in part memory", "none"), record["key"])

    def test_memory_beyond_the_cache_with_odd_sizes(self):
        records = self.ok({"family": "memory", "op": ["triad", "dot"], "bytes": "1000056"})
        for record in records:
            self.assertEqual((record["labels"]["level"], record["protocol"]["cache"]), ("memory, in part cached", "none"))
            self.assertEqual((record["conditions"]["array_bytes"], record["labels"]["passes"]), ("1000000", "1"))

    def test_memory_latency(self):
        [record] = self.ok({"family": "memory", "op": "latency", "bytes": "64KiB"})
        hops = int(record["labels"]["hops"])
        self.assertAlmostEqual(self.figure(record, "latency") * hops / record["ranks"][0]["median"], 1, 6)

    def test_a_gate_that_opens_by_itself_limits_the_batch_or_is_dropped(self):
        entry = {"family": "memory", "op": "read", "bytes": "64KiB"}
        [whole] = self.ok(entry)
        self.assertFalse([flag for flag in whole["flags"] if "gate" in flag])
        [limited] = self.ok(entry, emulation="gate_times_out=1")
        [flag] = [flag for flag in limited["flags"] if "gate" in flag]
        self.assertRegex(flag, r"^gate timed out: calls per sample limited to \d+$")
        self.assertLessEqual(limited["samples"]["repetitions"], int(flag.split()[-1]))
        [without] = self.ok(entry, emulation="gate_times_out=1000")
        self.assertIn("gate timed out: dropped, so the figure contains launches", without["flags"])

    def test_memory_a_flipped_bit_fails(self):
        self.failed({"family": "memory", "op": ["read", "copy", "dot"], "bytes": "64KiB"}, "wrong_elements")
        self.failed({"family": "memory", "op": "latency", "bytes": "64KiB"}, "wrong_elements")

    def test_transfer(self):
        records = self.ok({"family": "transfer", "direction": ["h2d", "d2h", "both", "d2d"], "memory": "pinned",
                           "bytes": [4, 4099, "256KiB", 400000, "1MiB"], "by": ["engine", "kernel"]})
        self.assertEqual(len(records), 40)
        for record in records:
            params = record["params"]
            arriving = params["bytes"] * (2 if params["direction"] == "both" else 1)
            self.assertAlmostEqual(self.figure(record, "bandwidth") * record["ranks"][0]["median"] / arriving, 1, 6)
            figures = self.by_name(record["metrics"])
            small = {"copy_interval", "latency"} if params["bytes"] <= 65536 else set()
            self.assertEqual(set(figures), {"bandwidth"} | small)
            if small:  # the samples are those of copies enqueued at once; a copy waited for has its own
                self.assertEqual(figures["copy_interval"]["value"], record["ranks"][0]["median"])
                self.assertNotEqual(figures["latency"]["value"], figures["copy_interval"]["value"])
                self.assertGreater(figures["latency"]["value"], 0)
            self.assertEqual(params["memory"], "device" if params["direction"] == "d2d" else "pinned")
            if params["direction"] == "d2d":
                level = next(level for most, level in ((1 << 18, "L2"), (1 << 19, "L2, in part memory"), (1 << 30, "memory"))
                             if params["bytes"] <= most)
                self.assertEqual(record["labels"]["level"], level)
            else:
                self.assertIn(record["protocol"]["numa"], ("near", "far", "unknown"))
                self.assertEqual("pcie" in record["labels"], params["bytes"] >= 1 << 18)
        pageable = self.ok({"family": "transfer", "direction": ["h2d", "d2h", "both"], "memory": "pageable", "bytes": 5000})
        self.assertTrue(all("gate" not in record["protocol"] for record in pageable))

    def test_the_measuring_thread_stays_near_the_gpu(self):
        """Also a single rank's, whose CPUs are all of the host's. hwloc describes two nodes, each with half of the CPUs."""
        cpus = sorted(os.sched_getaffinity(0))
        half = cpus[-1] // 2 + 1
        gpu_node = cpus[-1] // half
        near = [cpu for cpu in cpus if cpu // half == gpu_node]
        if near == cpus:
            self.skipTest("one CPU only")
        entries = [{"family": "transfer", "direction": ["h2d", "both"], "memory": ["pinned", "pageable"], "bytes": 4096},
                   {"family": "transfer", "direction": "p2p", "bytes": 4096}, {"family": "launch", "op": "kernel_wait"}]
        for node, place in ((gpu_node, "near"), (None, "unknown")):
            emulation = "devices=2" + ("" if node is None else f",numa_node={node}")
            done, records = self.run_plan(*entries, emulation=emulation, more={"HWLOC_SYNTHETIC": f"numa:2 core:{half} pu:1"})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(records), 6)
            for record in records:
                self.assertEqual(record["status"], "ok", record["reason"])
                used = {int(cpu) for part in record["labels"]["host_cpus"].split(",") for first, _, last in [part.partition("-")]
                        for cpu in range(int(first), int(last or first) + 1)}
                self.assertEqual(used, set(cpus if node is None else near), record["key"])
                if record["params"].get("direction") != "p2p":  # its pairs have receivers on several nodes
                    self.assertEqual(record["protocol"]["thread"], place)

    def test_data_workers_stay_within_the_cpu_quota(self):
        """A quota of two CPUs: one for the thread that feeds the GPU, one that makes batches."""
        held = self.write("with-quota", """#!/bin/sh
mount -t tmpfs none /sys/fs/cgroup && cd /sys/fs/cgroup && mkdir cpu cpu,cpuacct && touch cgroup.controllers || exit 77
echo 200000 100000 >cpu.max
for folder in cpu cpu,cpuacct; do echo 200000 >$folder/cpu.cfs_quota_us; echo 100000 >$folder/cpu.cfs_period_us; done
cd - >/dev/null
exec "$@"
""")
        held.chmod(0o755)
        words = next(([*words, "--mount", str(held)] for words in (["unshare"], ["unshare", "--user", "--map-root-user"])
                      if subprocess.run([*words, "--mount", held, "true"], capture_output=True).returncode == 0), None)
        if not words:
            self.skipTest("no mount namespace")
        binary = self.write("assay-with-quota", f"#!/bin/sh\nexec {shlex.join([*words, self.binary])} \"$@\"\n")
        binary.chmod(0o755)
        self.binary = str(binary)
        for record in self.ok({"family": "resnet", "model": "resnet-tiny", "micro_batch": 2},
                              {"family": "llama", "model": "llama-tiny", "micro_batch": 2, "seq": 16}, timeout=600):
            self.assertEqual(record["labels"]["loader_workers"], "1")

    def test_deterministic_training_chooses_no_kernel_by_time(self):
        losses = set()
        for _ in range(2):
            [record] = self.ok({"family": "llama", "model": "llama-tiny", "micro_batch": 1, "seq": 16, "deterministic": True},
                               timeout=600)
            self.assertEqual(record["labels"]["repeats"], "to the bit")
            self.assertIn("by the heuristics", record["labels"]["choices"])
            self.assertNotIn("by time", record["labels"]["choices"])
            losses.add(self.metrics(record)["loss_step_10"])
        self.assertEqual(len(losses), 1, losses)

    def test_slices_add_up(self):
        model = self.write("deep.json", {
            "schema": 1, "family": "llama", "vocabulary": 64, "positions": 64, "layers": 8, "width": 32, "heads": 4,
            "mlp_width": 64, "norm": "rms", "position": "rotary", "mlp": "silu_gate", "bias": False, "tied": False})
        for record in self.ok({"family": "slice", "model": str(model), "micro_batch": 2, "seq": 16, "precision": "bf16",
                               "zero": [0, 3], "ranks": 2}, emulation="devices=2", timeout=600):
            figures = self.metrics(record)
            if figures["layer_time"] is None:   # two layers more took no longer, on a busy machine
                self.assertTrue(any("nothing to add up" in flag for flag in record["flags"]), record["flags"])
            else:
                self.assertAlmostEqual(figures["predicted_step_time"],
                                       figures["outside_layers_time"] + 8 * figures["layer_time"])
            kinds = {"reduce_scatter", "all_gather"} if record["params"].get("zero") else {"all_reduce"}
            self.assertEqual({name for name in ("all_reduce", "reduce_scatter", "all_gather") if name in figures}, kinds)

    def test_transfer_reads_the_link_from_the_driver(self):
        script = self.dir / "nvml"
        link = "link_generation 4\nlink_width 8\nmax_link_generation 5\nmax_link_width 16\n"
        for text, pcie in ((link, "gen 4 x8"), ("link_width 16\n", "unknown")):
            script.write_text(text)
            [record] = self.ok({"family": "transfer", "direction": "h2d", "memory": "pinned", "bytes": "1MiB"},
                               more={"LD_LIBRARY_PATH": os.environ["ASSAY_NVML"], "ASSAY_NVML_SCRIPT": str(script)})
            self.assertEqual(record["labels"]["pcie"], pcie)
            self.assertEqual("PCIe link at gen 4 x8 of gen 5 x16" in record["flags"], pcie != "unknown")

    def observed(self, script, seconds=0.5, entry=None, code=0):
        """The record of a case of `seconds` on a GPU whose NVML follows the script."""
        path = self.write("nvml", script)
        env = {"ASSAY_MODULE_PATH": os.environ["ASSAY_EMULATED"], "LD_LIBRARY_PATH": os.environ["ASSAY_NVML"],
               "ASSAY_NVML_SCRIPT": str(path)}
        done, [record] = self.measure(entry or {"family": "launch", "op": "event"}, device="cuda", env=env,
                                      protocol={**QUICK, "max_seconds": seconds, "min_samples": 1000000})
        self.assertEqual(done.returncode, code, done.stderr)
        return record

    def test_a_slow_gpu_is_flagged_in_a_short_burst(self):
        # Counters that grow by 1e9 ns per second; the reasons never say so.
        slow = "throttle 0\nthrottled_hardware_thermal 0 +1000000000\nthrottled_power_brake 7\n"
        for version in (13000, 12090):
            record = self.observed(f"cuda_version {version}\n{slow}")
            self.assertIn("GPU slowed down: thermal (hardware)", record["flags"])
            self.assertEqual(record["status"], "ok")
            samples = record["samples"]
            throttled = samples["throttled"]
            self.assertEqual(throttled, list(range(throttled[0], samples["count"])))  # from the first reading on
            growth = record["telemetry"]["gpu_throttled_hardware_thermal"]["values"]
            self.assertGreater(growth[-1], growth[0])
            report = self.assay("report", "out").stdout
            self.assertIn(f"{len(throttled)} throttled", report)
        steady = self.observed("cuda_version 13000\nthrottled_hardware_thermal 9000\n")
        self.assertEqual(steady["samples"]["throttled"], [])
        self.assertFalse([flag for flag in steady["flags"] if "slowed" in flag])
        self.assertNotIn("throttled", self.assay("report", "out").stdout)
        self.assertNotIn("throttled", self.observed("clock 1000\n")["samples"])  # a driver that does not count it

    def test_activity_is_in_the_telemetry_of_gpus_that_count_it(self):
        series = ("sm_active", "tensor_active", "dram_active")
        telemetry = self.observed("gpm 1\nsm_active 80\ntensor_active 50\ndram_active 25\n")["telemetry"]
        for name, value in zip(series, (0.8, 0.5, 0.25)):
            self.assertEqual(telemetry[name]["unit"], "1")
            self.assertEqual(set(telemetry[name]["values"]), {value})
        older = self.observed("clock 1000\n")
        self.assertEqual(older["status"], "ok")
        self.assertFalse(set(series) & set(older["telemetry"]))

    def test_corrected_link_errors_do_not_fail_a_case(self):
        record = self.observed("nvlinks 2\nnvlink_replays 0 +100000\n")
        self.assertEqual(record["status"], "ok")
        self.assertTrue(any(flag.endswith("corrected NVLink errors per second") for flag in record["flags"]), record["flags"])
        few = self.observed("nvlinks 2\nnvlink_crc_flit 0 +20\n")
        self.assertFalse([flag for flag in few["flags"] if "NVLink" in flag])
        lost = self.observed("nvlinks 2\nnvlink_recoveries 0 +100\n", code=1)
        self.assertEqual(lost["status"], "failed")
        self.assertRegex(lost["reason"], r"gpu_errors: \d+ NVLink errors")

    def test_transfer_between_gpus(self):
        entry = {"family": "transfer", "direction": ["p2p", "p2p_staged"], "bytes": 70000, "by": ["engine", "kernel"]}
        done, records = self.run_plan(entry, emulation="devices=2")
        self.assertEqual(done.returncode, 0, done.stderr)
        by = {(record["params"]["direction"], record["params"]["by"]): record for record in records}
        self.assertEqual(len(by), 4)
        self.assertIn("peer access", by["p2p_staged", "kernel"]["reason"])
        for key in (("p2p", "engine"), ("p2p", "kernel"), ("p2p_staged", "engine")):
            record = by[key]
            self.assertEqual(record["status"], "ok", record)
            pairs = [self.figure(record, f"bandwidth_{a}_to_{b}") for a, b in ((0, 1), (1, 0))]
            self.assertAlmostEqual(self.figure(record, "bandwidth") / min(pairs), 1, 6)
        self.failed({**entry, "direction": "p2p", "by": "kernel"}, "wrong_bytes", emulation="devices=2")
        # One rank drives all GPUs, also where the plan's other cases take a rank for each.
        records = self.ok({"family": "launch", "op": "event"}, {**entry, "direction": "p2p"}, emulation="devices=2",
                          words=("--ranks", "2"))
        self.assertEqual(sorted((record["family"], record["world"]["ranks"]) for record in records),
                         [("launch", 2), ("transfer", 1), ("transfer", 1)])
        _, records = self.run_plan(entry)
        self.assertEqual({record["status"] for record in records}, {"skipped"})
        self.assertIn("one GPU is visible", records[0]["reason"])

    def test_transfers_that_write_go_both_ways_and_between_all_gpus(self):
        pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
        forms = {"p2p_write": (1, "bytes that arrive"), "p2p_both": (2, "bytes of both ways"),
                 "p2p_both_write": (2, "bytes of both ways"), "p2p_all": (6, "bytes of all pairs"),
                 "p2p_all_write": (6, "bytes of all pairs")}
        entry = {"family": "transfer", "direction": list(forms), "bytes": [70001, "1MiB"], "by": ["engine", "kernel"]}
        done, records = self.run_plan(entry, emulation="devices=3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(records), 20)
        for record in records:
            self.assertEqual(record["status"], "ok", record)
            at_once, counts = forms[record["params"]["direction"]]
            self.assertEqual((record["conditions"]["counts"], record["params"]["memory"]), (counts, "device"))
            arriving = at_once * record["params"]["bytes"]
            self.assertAlmostEqual(self.figure(record, "bandwidth") * record["ranks"][0]["median"] / arriving, 1, 6)
            ways = [self.figure(record, f"bandwidth_{a}_to_{b}") for a, b in pairs]
            self.assertTrue(all(figure > 0 for figure in ways))
            if at_once > 1:  # together they take as long as the slowest, so no one is slower than its share
                self.assertLessEqual(self.figure(record, "bandwidth"), at_once * max(ways))
            self.assertRegex(record["labels"]["slowest_pair"], r"^GPU \d (to|and) GPU \d$")
        self.failed({**entry, "direction": ["p2p_both", "p2p_all_write"], "bytes": 70001}, "wrong_bytes",
                    emulation="devices=3")

    def test_a_gate_before_copies_between_gpus_that_opens_by_itself(self):
        entry = {"family": "transfer", "direction": "p2p", "bytes": 4096, "by": "engine"}
        for opened, flags in (("0", []), ("1000", ["gate timed out: dropped, so the figure contains launches"])):
            [record] = self.ok(entry, emulation=f"devices=2,gate_times_out={opened}")
            self.assertEqual([flag for flag in record["flags"] if "gate" in flag], flags)
            self.assertGreater(record["samples"]["count"], 1)

    def test_the_gpu_that_copies_is_the_one_that_has_access(self):
        entry = {"family": "transfer", "direction": ["p2p", "p2p_write", "p2p_both", "p2p_all"], "bytes": 4096, "by": "kernel"}
        _, records = self.run_plan(entry, emulation="devices=2,peers=1>0")
        ways = {record["params"]["direction"]: [name for name in self.metrics(record) if name.startswith("bandwidth_")]
                for record in records if record["status"] == "ok"}
        self.assertEqual(ways, {"p2p": ["bandwidth_0_to_1"], "p2p_write": ["bandwidth_1_to_0"],
                                "p2p_all": ["bandwidth_0_to_1"]})
        [skipped] = [record["reason"] for record in records if record["status"] == "skipped"]
        self.assertEqual(skipped, "none of the 2 visible GPUs has access to another's memory, both ways")

    def test_transfer_a_flipped_bit_fails(self):
        self.failed({"family": "transfer", "direction": ["h2d", "d2h", "both", "d2d"], "memory": "pinned", "bytes": 4099},
                    "wrong_bytes")

    def test_transfers_that_are_impossible(self):
        _, records = self.run_plan({"family": "transfer", "direction": ["h2d", "both"], "memory": "pageable", "bytes": 4096,
                                    "by": ["engine", "kernel"]})
        reasons = {(r["params"]["direction"], r["params"]["by"]): r["reason"] for r in records if r["status"] == "skipped"}
        self.assertEqual(set(reasons), {("h2d", "kernel"), ("both", "kernel")})
        self.assertIn("pageable", reasons["h2d", "kernel"])
        self.refused("run", "transfer", "--set", "transfer.direction=h2d", "--set", "transfer.memory=device", "--device",
                     "cuda", says="memory=device is for copies inside a GPU",
                     env={"ASSAY_MODULE_PATH": os.environ["ASSAY_EMULATED"]})
        _, records = self.run_plan({"family": "transfer", "direction": "h2d", "bytes": 4}, device="cpu")
        self.assertEqual({record["reason"] for record in records}, {"transfer does not run on cpu"})

    def test_launch(self):
        records = self.ok({"family": "launch"})
        self.assertEqual([record["params"]["op"] for record in records],
                         ["kernel", "kernel_wait", "graph", "graph_wait", "event", "copy_h2d", "copy_d2h"])
        for record in records:
            self.assertEqual(record["protocol"]["timer"], "steady_clock")
            launches = int(record["protocol"]["launches"])
            self.assertAlmostEqual(self.figure(record, "latency") * launches / record["ranks"][0]["median"], 1, 6)

    def test_values_that_a_device_does_not_support(self):
        records = self.ok({"family": "launch", "op": ["fork_join", "event"]})
        self.assertEqual([record["params"]["op"] for record in records], ["event"])
        _, records = self.run_plan({"family": "launch", "op": "fork_join"})
        self.assertEqual([record["reason"] for record in records], ["op=fork_join does not run on cuda"])
        _, records = self.run_plan({"family": "memory", "op": "dot", "bytes": 4096}, device="cpu")
        self.assertEqual({record["reason"] for record in records}, {"op=dot does not run on cpu"})

    def test_a_plan_that_needs_more_gpus(self):
        entries = [{"family": "launch", "op": "event"}, {"family": "collective", "op": "all_reduce", "bytes": 8, "ranks": 2}]
        done, records = self.run_plan(*entries)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({record["family"]: record["status"] for record in records}, {"launch": "ok", "collective": "skipped"})
        self.assertIn("this host has 1 GPU", [record["reason"] for record in records if record["reason"]][0])
        done, records = self.run_plan(*entries, words=("--ranks", "2"))  # asked for explicitly, so refused
        self.assertEqual((done.returncode, records), (2, []))

    def test_dataloader(self):
        entry = {"family": "dataloader", "kind": "token", "stage": ["read", "all"], "workers": 2}
        [record] = self.ok(entry)
        self.assertIn("pinned", record["protocol"]["memory"])
        self.assertGreater(self.figure(record, "throughput"), 0)
        checks = {name: check["passed"] for name, check in self.by_name(record["checks"]).items()}
        self.assertEqual((checks["wrong_bytes_on_device"], checks["wrong_order"], checks["wrong_tokens"]), (True,) * 3)
        self.failed({**entry, "stage": "all"}, "wrong_bytes_on_device")

    def test_figures_are_labelled_until_there_is_a_reference_run_of_the_hardware(self):
        label, entry = "not yet validated on hardware", {"family": "launch", "op": "event"}
        configs = self.dir / "configs"
        shutil.copytree(CONFIGS.parent, configs)
        env = {"ASSAY_CONFIGS": str(configs)}

        def reported():
            done = self.assay("report", "out", "--md", "report.md", env=env)
            self.assertEqual(done.returncode, 0, done.stderr)
            return (self.dir / "report.md").read_text()

        [record] = self.ok(entry, more=env)
        self.assertEqual(record["labels"][label], record["ranks"][0]["device"])
        self.assertIn(f"; {label})", reported())
        shutil.copytree(self.dir / "out", configs / "reference" / "stand-in")  # not comparable: it shows nothing
        [again] = self.ok(entry, more=env, out="again")
        self.assertIn(label, again["labels"])
        self.run_dir({**record, "comparable": True, "flags": []}, name="configs/reference/stand-in", run={"schema": 2})
        [lifted] = self.ok(entry, more=env, out="lifted")
        self.assertNotIn(label, lifted["labels"])
        self.assertNotIn(label, reported())  # also of the run from before
        self.assertIn(label, self.records()[0]["labels"])

    def test_shipped_plans_expand(self):
        env = {"ASSAY_MODULE_PATH": os.environ["ASSAY_EMULATED"]}
        for plan in sorted(CONFIGS.glob("*.json")):
            listed = self.assay("run", plan, "--device", "cuda", "--dry-run", env=env)
            self.assertEqual(listed.returncode, 0, listed.stderr)
            self.assertNotIn("op=fork_join", listed.stdout)
        quick = self.assay("run", "gpu-quick", "--device", "cuda", "--dry-run", env=env).stdout
        for family in ("gemm", "memory", "transfer", "launch", "dataloader", "resnet", "transformer", "llama"):
            self.assertIn(f"{family}/", quick)
        for dtype in ("bf16", "fp8_e4m3"):  # a burst, and beside it the same product sustained
            accumulation = "fast" if dtype.startswith("fp8") else "full"
            product = f"gemm/dtype={dtype}/m=8192/n=8192/k=8192/transpose=nn/cache=cold"
            self.assertIn(f"{product}/duration=burst/", quick)
            self.assertIn(f"{product}/duration=sustained/accumulation={accumulation}/", quick)
        for direction in ("p2p", "p2p_write", "p2p_both", "p2p_all"):
            self.assertIn(f"transfer/direction={direction}/memory=device/", quick)
        sweep = self.assay("run", "gpu-collective", "--device", "cuda", "--ranks", "2", "--dry-run",
                           env={**env, "ASSAY_EMULATION": "devices=2"}).stdout
        for part in ("op=broadcast/bytes=8/", "op=all_reduce/bytes=8589934592/", "nvls=off", "buffers=registered",
                     "buffers=symmetric", "batching=graph",
                     "inplace=true", "op=pairwise"):
            self.assertIn(part, sweep)


if __name__ == "__main__":
    unittest.main()
