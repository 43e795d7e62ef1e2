"""Environment variables that change figures: refused, or a condition of the record, so that no clean run is compared with it."""

import json
import os
import unittest

from assay_case import AssayCase

QUICK = {"max_seconds": 0.02, "warmup_seconds": 0.001, "min_samples": 3}
SETTINGS = ("ASSAY_ISA", "BLIS_", "CUBLAS", "CUDA_LAUNCH", "CUDNN_", "DNNL_", "GOMP_", "MKL_", "NVIDIA_", "OMP_", "ONEDNN_", "OPENBLAS_")


class Settings(AssayCase):
    device, more = "cpu", {}

    def run_case(self, out="out", **env):
        for name in [name for name in os.environ if name.startswith(SETTINGS)]:
            self.addCleanup(os.environ.__setitem__, name, os.environ.pop(name))
        entry = {"family": "memory", "op": "copy", "bytes": 65536}
        return self.measure(entry, device=self.device, env={**self.more, **env}, out=out, protocol=QUICK)

    def settings(self, record):
        return {name: value for name, value in record["conditions"].items() if name.isupper()}

    def refused(self, name, value):
        done, records = self.run_case(**{name: value})
        self.assertEqual((done.returncode, records), (2, []), done.stdout + done.stderr)
        self.assertFalse((self.dir / "out").exists())
        self.assertEqual(len(done.stderr.splitlines()), 1)
        for words in (f"{name}={value}", f"unset {name}"):
            self.assertIn(words, done.stderr)

    def kept(self, **env):
        done, (record,) = self.run_case(**env)
        self.assertEqual((done.returncode, record["status"]), (0, "ok"), done.stderr)
        return self.settings(record), [flag for flag in record["flags"] if "slows what is measured" in flag]


class OnCpu(Settings):
    def test_another_precision_is_refused(self):
        for name, value in (("ONEDNN_DEFAULT_FPMATH_MODE", "BF16"), ("DNNL_DEFAULT_FPMATH_MODE", "any")):
            self.refused(name, value)
        done = self.assay("bench", "--benchmark_filter=none", env={"ONEDNN_DEFAULT_FPMATH_MODE": "tf32"})
        self.assertEqual(done.returncode, 2)
        self.assertIn("unset ONEDNN_DEFAULT_FPMATH_MODE", done.stderr)

    def test_other_kernels_are_a_condition_and_logs_a_flag(self):
        self.assertEqual(self.kept(ASSAY_ISA="generic", GOMP_SPINCOUNT="0", OPENBLAS_CORETYPE="Haswell", ONEDNN_VERBOSE="1"),
                         ({"ASSAY_ISA": "generic", "GOMP_SPINCOUNT": "0", "OPENBLAS_CORETYPE": "Haswell", "ONEDNN_VERBOSE": "1"},
                          ["ONEDNN_VERBOSE=1 slows what is measured"]))

    def test_bench_says_what_is_set(self):
        done = self.assay("bench", "--benchmark_filter=^launch/op=handoff_block/", "--benchmark_min_time=0.001", "--benchmark_format=json",
                          env={"DNNL_MAX_CPU_ISA": "AVX2"})
        self.assertEqual(json.loads(done.stdout)["context"]["DNNL_MAX_CPU_ISA"], "AVX2", done.stderr)

    def test_compare_never_pairs_them_with_a_clean_run(self):
        # Neither what the run decides itself nor what only GPUs read is a condition.
        clean = {"OMP_NUM_THREADS": "1", "ONEDNN_DEFAULT_FPMATH_MODE": "strict", "NVIDIA_TF32_OVERRIDE": "1", "CUDA_LAUNCH_BLOCKING": "1"}
        for out, settings in (("base", {}), ("clean", clean), ("other", {"BLIS_ARCH_TYPE": "haswell"})):
            self.run_case(out, **settings)
        self.assertNotIn("What was left out", self.assay("compare", "--base", "base", "--head", "clean").stdout)
        done = self.assay("compare", "--base", "base", "--head", "other")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("different BLIS_ARCH_TYPE: not recorded / haswell", done.stdout)


@unittest.skipUnless("ASSAY_EMULATED" in os.environ, "a build without CUDA")
class OnGpu(Settings):
    device = "cuda"
    more = {"ASSAY_MODULE_PATH": os.environ.get("ASSAY_EMULATED", ""), "ASSAY_EMULATION": ""}

    def test_another_precision_is_refused(self):
        for name, value in (("NVIDIA_TF32_OVERRIDE", "1"), ("NVIDIA_TF32_OVERRIDE", "0"), ("CUBLAS_EMULATION_STRATEGY", "eager"),
                            ("CUBLAS_EMULATE_SINGLE_PRECISION", "1")):
            self.refused(name, value)

    def test_calls_that_are_waited_for_are_a_condition_and_a_flag(self):
        self.assertEqual(self.kept(CUDA_LAUNCH_BLOCKING="1", CUBLAS_WORKSPACE_CONFIG=":16:8"),
                         ({"CUDA_LAUNCH_BLOCKING": "1", "CUBLAS_WORKSPACE_CONFIG": ":16:8"},
                          ["CUDA_LAUNCH_BLOCKING=1 slows what is measured"]))

    def test_what_changes_nothing_is_none(self):
        self.assertEqual(self.kept(CUDA_LAUNCH_BLOCKING="0", CUDNN_VERSION="9", NCCL_ALGO="Ring",
                                   ONEDNN_DEFAULT_FPMATH_MODE="bf16"), ({}, []))


if __name__ == "__main__":
    unittest.main()
