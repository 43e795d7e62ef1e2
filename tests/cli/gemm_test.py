"""`assay run` with gemm and peak: records, checks and exit codes."""

import unittest

from assay_case import AssayCase

DTYPES = ["f64", "f32", "bf16", "int8", "fp16"]
QUICK = {"max_seconds": 0.1, "warmup_seconds": 0.01, "min_samples": 6}


class Gemm(AssayCase):
    def run_plan(self, *entries, words=(), env=None):
        return self.measure(*entries, words=words, env=env, protocol=QUICK)

    def test_every_dtype_is_measured_checked_and_keyed(self):
        done, records = self.run_plan({"family": "gemm", "dtype": DTYPES, "m": 65, "n": 48, "k": 33,
                                       "transpose": ["nn", "tt"]})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(records), 10)
        for record in records:
            dtype, transpose = record["params"]["dtype"], record["params"]["transpose"]
            self.assertEqual(record["key"], f"gemm/dtype={dtype}/m=65/n=48/k=33/transpose={transpose}"
                                            "/cache=cold/duration=burst")
            if dtype == "fp16":
                self.assertEqual(record["status"], "skipped")
            if record["status"] == "skipped":
                self.assertTrue(record["reason"])
                continue
            self.assertEqual(record["status"], "ok", record["reason"])
            throughput = record["metrics"][0]
            self.assertEqual((throughput["name"], throughput["unit"]),
                             ("throughput", "OP/s" if dtype == "int8" else "FLOP/s"))
            self.assertGreater(throughput["value"], 0)
            self.assertIsNone(throughput["of_peak"])
            self.assertEqual(set(self.by_name(record["checks"])), {"ran", "relative_error", "wrong_elements"})
            self.assertEqual(record["protocol"]["isa"], record["choices"]["isa"])
            for name in ("implementation", "isa"):
                self.assertNotIn("ref", record["choices"][name])
            self.assertIn(record["labels"]["form"], ("plain", "packed", "inner_product", "tiles"))

    def test_each_dtype_names_its_own_instruction_set(self):
        _, records = self.run_plan({"family": "gemm", "dtype": ["f32", "bf16"], "m": 64, "n": 64, "k": 64})
        isas = [record["choices"]["isa"] for record in records if record["status"] == "ok"]
        self.assertEqual(len(set(isas)), len(isas))

    def test_a_flipped_bit_fails_the_check(self):
        done, records = self.run_plan({"family": "gemm", "dtype": ["f32", "int8"], "m": 64, "n": 64, "k": 64},
                                      words=("--inject", "bit-flip"))
        self.assertEqual(done.returncode, 1, done.stderr)
        for record in records:
            if record["status"] == "skipped":
                continue
            self.assertEqual(record["status"], "failed")
            wrong = self.by_name(record["checks"])["wrong_elements"]
            self.assertEqual(wrong["value"], 1)
            self.assertRegex(wrong["detail"][0], r"^row \d+, column \d+.*: .*, not ")

    def test_fraction_of_the_peak_measured_earlier(self):
        done, records = self.run_plan({"family": "peak", "dtype": "f32", "threads": ["core", "all"]},
                                      {"family": "gemm", "dtype": "f32", "m": 128, "n": 128, "k": 128})
        self.assertEqual(done.returncode, 0, done.stderr)
        peaks = {r["params"]["threads"]: r for r in records if r["family"] == "peak"}
        product = next(r for r in records if r["family"] == "gemm")
        if "skipped" in {r["status"] for r in records}:
            self.skipTest("no multiply-add loops for this processor")
        peak = peaks["all"]["metrics"][0]
        throughput = product["metrics"][0]
        if product["choices"]["threads"] != "1":
            self.assertAlmostEqual(throughput["of_peak"], throughput["value"] / peak["value"], places=9)
        self.assertIn(peaks["all"]["choices"]["isa"], product["labels"]["peak"])
        self.assertEqual(peaks["core"]["choices"]["threads"], "1")

    def test_zeros_can_be_requested_and_are_recorded(self):
        done, records = self.run_plan({"family": "gemm", "dtype": "f32", "m": 64, "n": 64, "k": 64,
                                       "protocol": {"data": "zeros"}})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(records[0]["protocol"]["data"], "zeros")

    def test_what_the_cpu_lacks_is_skipped(self):
        done, records = self.run_plan({"family": "peak", "dtype": "f32", "isa": "amx", "threads": "core"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(records[0]["status"], "skipped")
        self.assertEqual(records[0]["reason"], "amx has no f32 multiply-add")

    def test_a_type_that_the_cpu_lacks_is_skipped_in_one_sentence(self):
        done, records = self.run_plan({"family": "gemm", "dtype": ["tf32", "fp16", "fp8_e4m3", "fp8_e5m2"], "m": 64, "n": 64, "k": 64})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({record["params"]["dtype"]: (record["status"], record["reason"]) for record in records},
                         {"tf32": ("skipped", "this CPU has no tf32 arithmetic"),
                          "fp16": ("skipped", "Assay has no fp16 arithmetic for CPUs"),
                          "fp8_e4m3": ("skipped", "this CPU has no fp8 arithmetic"),
                          "fp8_e5m2": ("skipped", "this CPU has no fp8 arithmetic")})

    def test_an_older_cpu_has_no_bf16(self):
        done, records = self.run_plan({"family": "gemm", "dtype": "bf16", "m": 64, "n": 64, "k": 64},
                                      env={"ONEDNN_MAX_CPU_ISA": "AVX2", "ASSAY_ISA": "avx2"})
        self.assertEqual((done.returncode, records[0]["status"], records[0]["reason"]),
                         (0, "skipped", "this CPU has no bf16 arithmetic"), done.stderr)

    def test_bad_parameters_are_usage_errors(self):
        for case in ({"m": 0}, {"n": -4}, {"transpose": "xx"}, {"dtype": "f33"}, {"cache": 3}):
            done, records = self.run_plan({"family": "gemm"} | case)
            self.assertEqual(done.returncode, 2, case)
            self.assertEqual(records, [])
            self.assertIn(next(iter(case)), done.stderr)
        done, _ = self.run_plan({"family": "gemm", "m": 1 << 22, "n": 1 << 22, "k": 1})
        self.assertEqual(done.returncode, 2)
        done, _ = self.run_plan({"family": "peak", "threads": 100000})
        self.assertEqual(done.returncode, 2, done.stderr)


if __name__ == "__main__":
    unittest.main()
