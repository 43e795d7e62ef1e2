"""Machines whose last-level cache is small, or as large as a virtual machine shows of a big processor: what cold products
cost and say there, and that every family takes the memory it plans."""

import json
import os
import unittest

from assay_case import AssayCase

SHORT = {"max_seconds": 0.03, "warmup_seconds": 0.001, "min_samples": 3}
MIB = 1 << 20


def product(m, n=None, k=None, **members):
    return {"family": "gemm", "dtype": "f32", "m": m, "n": n or m, "k": k or m, **members}


class Caches(AssayCase):
    def root(self, mebibytes):
        """A folder for ASSAY_ROOT: a virtual machine with this machine's CPUs and an L3 of so many MiB."""
        folder = f"root{mebibytes}"
        cpus = sorted(os.sched_getaffinity(0))
        listed = ",".join(map(str, cpus))
        for cpu in cpus:
            for index, level, size in ((2, 2, "1024K"), (3, 3, f"{mebibytes}M")):
                place = f"{folder}/sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
                for name, text in (("level", level), ("type", "Unified"), ("size", size),
                                   ("shared_cpu_list", listed if level == 3 else cpu)):
                    self.write(f"{place}/{name}", f"{text}\n")
        self.write(f"{folder}/sys/devices/system/cpu/online", f"{listed}\n")
        self.write(f"{folder}/proc/cpuinfo", "".join(
            f"processor\t: {cpu}\nmodel name\t: Xeon\nflags\t: fma avx2 hypervisor\n\n" for cpu in cpus))
        return {"ASSAY_ROOT": str(self.dir / folder)}

    def test_a_large_cache_costs_a_cold_product_nothing(self):
        entries = (product(4), product(17, 13, 7), product(128), product(128, cache="hot"))
        for mebibytes in (16, 480, 1152):
            with self.subTest(l3=mebibytes):
                done, records = self.measure(*entries, protocol=SHORT, env=self.root(mebibytes))
                self.assertEqual(done.returncode, 0, done.stderr)
                for record in records:
                    self.assertEqual(record["status"], "ok", record["reason"])
                    self.assertFalse([flag for flag in record["flags"] if flag.startswith("memory beyond")], record)
                    if record["params"]["cache"] == "hot":
                        self.assertNotIn("cold_by", record["labels"])
                    elif mebibytes > 16:
                        self.assertRegex(record["labels"]["cold_by"], r"^eviction of \d+ sets of buffers before each sample")
                [cold] = [r for r in records if r["params"]["m"] == 128 and r["params"]["cache"] == "cold"]
                if mebibytes == 16:
                    self.assertRegex(cold["labels"]["cold_by"], r"^rotation of \d+ sets of buffers$")

    def test_memory_arrays_exceed_the_cache_as_far_as_the_cores_can_fill_them(self):
        cores = len(os.sched_getaffinity(0))
        for mebibytes in (16, 480, 1152):
            env = self.root(mebibytes)
            for op, arrays in (("read", 1), ("triad", 3)):
                done = self.assay("run", "memory", "--set", f"memory.op={op}", "--device", "cpu", "--dry-run", env=env)
                self.assertEqual(done.returncode, 0, done.stderr)
                size = int(done.stdout.split("bytes=")[1].split("/")[0])
                self.assertLessEqual(size, 4 * mebibytes * MIB)
                self.assertLessEqual(arrays * size, max(512 * cores, 2.125 * mebibytes) * MIB)
                self.assertTrue(size == 4 * mebibytes * MIB or arrays * size >= 2 * mebibytes * MIB, (mebibytes, op, size))

    def test_the_cache_of_another_machine_s_cpus_is_a_finding(self):
        for mebibytes, said in ((16, False), (480, True), (1152, True)):
            done = self.assay("env", "--json", env=self.root(mebibytes))
            self.assertEqual(done.returncode, 0, done.stderr)
            found = {finding["id"]: finding for finding in json.loads(done.stdout)["findings"]}
            cores = len(os.sched_getaffinity(0))
            self.assertEqual("virtual-cache" in found, said and mebibytes > 48 * cores, mebibytes)


class Memory(AssayCase):
    """No process grows by more than its case plans."""

    def test_every_family_takes_the_memory_it_plans(self):
        entries = [
            product(1), product(3, 5, 7), product(65, 48, 33), product(1, 1, 200000), product(1, 30000, 1),
            product(1024, dtype=["bf16", "int8", "f64"]), product(255, 1, 511, transpose="tt"), product(64, cache="hot"),
            {"family": "memory", "op": ["read", "triad", "latency"], "bytes": [4096, 100032, 50 * MIB], "threads": 1},
            {"family": "peak", "dtype": ["f32", "f64"], "threads": "core"},
            {"family": "launch", "op": "fork_join"},
            {"family": "collective", "op": ["all_reduce", "all_gather", "all_to_all"], "bytes": [8, 12344, 16 * MIB],
             "dtype": "f32", "ranks": 2},
            {"family": "dataloader", "kind": ["image", "token"], "stage": ["batch", "all"], "workers": 1},
        ]
        done, records = self.measure(*entries, protocol=SHORT)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({record["family"] for record in records},
                         {"gemm", "memory", "peak", "launch", "collective", "dataloader"})
        for record in records:
            self.assertFalse([flag for flag in record["flags"] if flag.startswith("memory beyond")],
                             (record["key"], record["flags"]))


if __name__ == "__main__":
    unittest.main()
