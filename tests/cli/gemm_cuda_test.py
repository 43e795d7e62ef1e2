"""`assay run gemm --device cuda` on the emulated GPU: every dtype, refusals, injected faults."""

import unittest

from assay_case import AssayCase

DTYPES = ["f64", "f32", "tf32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2", "int8"]
QUICK = {"max_seconds": 0.05, "warmup_seconds": 0.001, "min_samples": 6}


class GemmOnCuda(AssayCase):
    def run_plan(self, *entries, words=(), emulation=""):
        return self.measure(*entries, words=words, device="cuda", protocol=QUICK, env={
            "XDG_CACHE_HOME": str(self.dir / "cache"), "ASSAY_CACHE": "", "ASSAY_EMULATION": emulation})

    def test_every_dtype_is_measured_checked_and_keyed(self):
        case = {"family": "gemm", "dtype": DTYPES, "m": 33, "n": 48, "k": 64, "transpose": ["nn", "nt"]}
        done, records = self.run_plan(case)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(records), 2 * len(DTYPES))
        for record in records:
            dtype, transpose = record["params"]["dtype"], record["params"]["transpose"]
            self.assertEqual(record["key"], f"gemm/dtype={dtype}/m=33/n=48/k=64/transpose={transpose}/cache=cold"
                                            "/duration=burst/accumulation=full/gpus=each")
            self.assertEqual(record["status"], "ok", record["reason"])
            self.assertFalse(record["comparable"], "an emulated GPU measures nothing")
            throughput = record["metrics"][0]
            self.assertEqual((throughput["name"], throughput["unit"]),
                             ("throughput", "OP/s" if dtype == "int8" else "FLOP/s"))
            self.assertIsNone(throughput["of_peak"])
            self.assertEqual(set(self.by_name(record["checks"])), {"ran", "relative_error", "wrong_elements"})
            labels = record["labels"]
            # Runs with different choices can be compared, runs with different libraries cannot.
            self.assertRegex(record["choices"]["implementation"], r"^cublasLt$")
            self.assertRegex(labels["choice"], r"cublasLt algorithm \d+, tile \d+, stages \d+, split \d+")
            self.assertIn("cuBLASLt", labels["libraries"])
            self.assertEqual(record["conditions"]["accumulation"], {"f64": "f64", "int8": "s32"}.get(dtype, "f32"))
            self.assertNotIn("threads", record["choices"])
            eight_bits = dtype.startswith("fp8") or dtype == "int8"
            if eight_bits and transpose == "nn":
                self.assertTrue(labels["form"] == "packed" or "transposed copies" in labels["choice"])

    def test_a_flipped_bit_fails_the_check(self):
        done, records = self.run_plan({"family": "gemm", "dtype": DTYPES, "m": 32, "n": 32, "k": 32},
                                      words=("--inject", "bit-flip"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(records), len(DTYPES))
        for record in records:
            self.assertEqual(record["status"], "failed", record["key"])
            wrong = self.by_name(record["checks"])["wrong_elements"]
            self.assertEqual(wrong["value"], 1, record["key"])

    def test_fast_accumulation_is_for_fp8(self):
        done, records = self.run_plan({"family": "gemm", "dtype": ["fp8_e4m3", "bf16"], "m": 32, "n": 32, "k": 32,
                                       "accumulation": "fast"})
        self.assertEqual(done.returncode, 0, done.stderr)
        fp8, bf16 = records
        self.assertEqual(fp8["status"], "ok", fp8["reason"])
        self.assertTrue(fp8["conditions"]["accumulation"].startswith("fast"))
        self.assertEqual((bf16["status"], bf16["reason"]), ("skipped", "bf16 has no fast accumulation"))

    def test_a_plan_sets_how_long_a_product_is_sustained(self):
        # Low noise must not end it: a GPU takes seconds to heat up.
        done, records = self.run_plan({"family": "gemm", "dtype": ["bf16", "fp8_e4m3"], "m": 32, "n": 32, "k": 32,
                                       "duration": "sustained", "accumulation": "full",
                                       "protocol": {"max_seconds": "1s", "min_samples": 30, "target_relative_ci": "50%"}})
        self.assertEqual(done.returncode, 0, done.stderr)
        for record in records:
            self.assertEqual(record["status"], "ok", record["reason"])
            self.assertEqual((record["protocol"]["form"], record["protocol"]["max_seconds"]), ("window", 1))
            self.assertEqual(record["samples"]["stopped_by"], "time")
            self.assertGreater(self.metrics(record)["throughput"], 0)

    def test_sizes_that_tensor_cores_do_not_support_are_skipped(self):
        done, records = self.run_plan({"family": "gemm", "dtype": ["fp8_e4m3", "int8"], "m": 32, "n": 32, "k": 33})
        self.assertEqual(done.returncode, 0, done.stderr)
        for record, multiple in zip(records, ("16", "4")):
            self.assertEqual(record["status"], "skipped")
            self.assertIn(f"k and n in multiples of {multiple}, not 33 and 32", record["reason"])

    def test_a_gpu_of_another_generation_refuses_fp8(self):
        done, records = self.run_plan({"family": "gemm", "dtype": ["fp8_e4m3", "bf16"], "m": 32, "n": 32, "k": 32},
                                      emulation="capability=80")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(records[0]["status"], "skipped")
        self.assertEqual(records[0]["reason"], "this GPU has no fp8 arithmetic (compute capability 8.0)")
        self.assertEqual(records[1]["status"], "ok")

    def test_algorithms_are_remembered_from_run_to_run(self):
        case = {"family": "gemm", "dtype": "bf16", "m": 64, "n": 64, "k": 64}
        found = []
        for _ in range(2):
            _, records = self.run_plan(case)
            found.append((records[0]["labels"]["choice"], self.remembered()))
        self.assertRegex(found[0][0], r"\(fastest of \d+ by time\)")
        self.assertIn("64x64x64 bf16 bf16 bf16", found[0][1])
        self.assertEqual(found[0], found[1])

    def remembered(self):
        files = list((self.dir / "cache" / "assay" / "algorithms").glob("cuBLASLt-*.txt"))
        self.assertEqual(len(files), 1)
        self.assertRegex(files[0].name, r"^cuBLASLt-[\d.]+--CUDA-[\d.]+--driver-.*--emulated-GPU")
        return files[0].read_text()


if __name__ == "__main__":
    unittest.main()
