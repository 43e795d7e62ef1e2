"""`assay run --device cuda` on the emulated GPU: records say so, and errors explain why a GPU cannot be used."""

import json
import os
import pathlib
import re
import unittest

from assay_case import AssayCase

EMULATION = os.environ["EMULATION"]
CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"
QUICK = {"max_seconds": 0.05, "warmup_seconds": 0.0, "min_samples": 3}


class Cuda(AssayCase):
    def emulated(self, *words, script="", env=None):
        return self.assay(*words, env={"ASSAY_MODULE_PATH": EMULATION, "ASSAY_EMULATION": script, **(env or {})})

    def run_cases(self, *entries, script="", code=0, env=None):
        """Runs the cases on the emulation and returns their records."""
        done, records = self.measure(*entries, device="cuda", protocol=QUICK, env={
            "ASSAY_MODULE_PATH": EMULATION, "ASSAY_EMULATION": script, **(env or {})})
        self.assertEqual(done.returncode, code, done.stderr)
        return records

    def unusable(self, script, *says, env=None):
        """Expects one clear line and no run directory."""
        errors = self.refused("run", "launch", "--device", "cuda", "--out", "out", says=("--device cuda: ", *says),
                            env={"ASSAY_MODULE_PATH": EMULATION, "ASSAY_EMULATION": script, **(env or {})})
        self.assertFalse((self.dir / "out").exists(), errors)

    def test_records_say_that_they_are_not_measurements(self):
        records = self.run_cases({"family": "gemm", "dtype": "f32", "m": 32, "n": 32, "k": 32})
        record = records[0]
        self.assertEqual(record["status"], "ok", record["reason"])
        self.assertEqual(record["device"], "cuda")
        self.assertFalse(record["comparable"])
        self.assertIn("emulated GPU: not a measurement", record["flags"])
        rank = record["ranks"][0]
        self.assertEqual(rank["device"], "emulated GPU (not a measurement)")
        self.assertTrue(rank["uuid"].startswith("GPU-"))
        self.assertEqual(rank["pci"], "0000:e0:00.0")

    def test_ranks_name_the_port_nearest_to_their_gpu(self):
        root = self.dir / "root"
        for name, bridge in (("0000:e0:00.0", "a"), ("0000:e1:00.0", "b"), ("mlx5_0", "a"), ("mlx5_1", "b")):
            place = root / "sys/devices/pci0000:00" / bridge / name
            place.mkdir(parents=True)
            link = root / (f"sys/class/infiniband/{name}/device" if name.startswith("mlx") else f"sys/bus/pci/devices/{name}")
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(place)
        for name in ("mlx5_0", "mlx5_1"):
            (root / f"sys/class/infiniband/{name}/ports/1").mkdir(parents=True)
        entry = {"family": "launch"}
        self.assertNotIn("nic", self.run_cases(entry)[0]["ranks"][0])
        env = {"ASSAY_ROOT": str(root)}
        ranks = self.run_cases({**entry, "ranks": 2}, script="devices=2", env=env)[0]["ranks"]
        self.assertEqual([rank["nic"] for rank in ranks], ["mlx5_0:1", "mlx5_1:1"])

    def test_models_train_in_8_bits(self):
        shape = {"micro_batch": 2, "accumulate": 2, "seq": 16}
        records = self.run_cases(
            {"family": "llama", "model": "llama-tiny", "precision": ["fp8", "bf16"], "save_every": 4,
             "protocol": {"min_samples": 10}, **shape},
            {"family": "transformer", "model": "gpt2-tiny", "precision": "fp8", "checkpointing": "full", **shape})
        for record in records:
            self.assertEqual(record["status"], "ok", record["reason"])
            self.assertEqual(record["choices"]["graph"], "captured")
            overhead = self.metrics(record)["step_overhead"]
            self.assertTrue(0 <= overhead < 1, overhead)
        fp8, bf16 = records[:2]
        self.assertIn("e4m3", fp8["conditions"]["fp8"])
        self.assertNotIn("fp8", bf16["conditions"])
        self.assertIn("quantize", fp8["choices"]["implementation"])
        self.assertEqual(self.by_name(fp8["checks"])["losses_after_resume_that_differ"]["value"], 0)
        # As many steps as both took: on a slow machine the emulation runs out of time before the tenth.
        losses = list(zip(*(record["telemetry"]["loss"]["values"] for record in (fp8, bf16))))
        for narrow, wide in losses:
            self.assertAlmostEqual(narrow, wide, delta=0.05 * wide)
            self.assertNotEqual(narrow, wide)
        self.assertTrue(losses)

    def test_attention_that_sums_in_any_order_trains(self):
        """From the second loss on, its losses are only approximately reproducible."""
        model = json.loads((CONFIGS / "models" / "llama-tiny.json").read_text())
        self.write("long.json", {**model, "positions": 130})
        record, = self.run_cases({"family": "llama", "model": "./long.json", "precision": "bf16", "micro_batch": 1,
                                     "seq": 130, "save_every": 4}, script="cudnn=any_order")
        self.assertEqual(record["status"], "ok", record["reason"])
        self.assertIn("sums in any order", record["labels"]["choices"])

    def test_what_trials_chose_is_chosen_again(self):
        self.write("small.json", {"schema": 1, "family": "resnet", "block": "basic", "stages": [1], "width": 8,
                                  "classes": 10, "image": 8, "stem": "small"})
        folder = self.dir / "cache"
        prefix = "emulated plan of batch norm"

        def chosen():
            record, = self.run_cases({"family": "resnet", "model": "./small.json", "precision": "f32",
                                      "micro_batch": 2}, env={"ASSAY_CACHE": str(folder)})
            self.assertEqual(record["status"], "ok", record["reason"])
            return record["labels"]["choices"]

        first = chosen()
        self.assertIn(f"{prefix} in training", first)
        self.assertNotIn("in evaluation", first, "a throughput run never evaluates")
        kept, = (folder / "algorithms").glob("emulated-cuDNN--cuBLASLt-*--Assay-*--CUDA-*--driver-*--emulated-GPU*.txt")
        lines = kept.read_text().splitlines()
        convolutions = [line for line in lines if line.startswith("convolution ")]
        self.assertTrue(convolutions)
        self.assertEqual(chosen(), first)
        self.assertEqual(kept.read_text().splitlines(), lines, "nothing was tried again")

        # The file decides, and not a trial, which batch norm by the emulated cuDNN would win.
        changed = [re.sub(r"emulated plan of batch norm.*", "own kernel.", line) for line in lines]
        changed = [re.sub(r"convolution, \d+ B", "convolution, 1000 B", line) for line in changed]
        kept.write_text("\n".join(changed) + "\n")
        other = chosen()
        self.assertIn("batch_norm assay:sm_90", other)
        self.assertNotIn(prefix, other)
        self.assertIn("emulated convolution, 1000 B", other)
        self.assertNotIn("emulated convolution, 0 B", other)

        # If the choice is no longer offered, a new trial is run and its result kept.
        kept.write_text("\n".join(re.sub(r"emulated plan|own kernel", "retired plan", line) for line in changed) + "\n")
        self.assertIn(f"{prefix} in training", chosen())
        self.assertIn(prefix, kept.read_text())
        size = kept.stat().st_size
        self.assertIn(f"{prefix} in training", chosen())
        self.assertEqual(kept.stat().st_size, size)

    def test_what_cannot_train_in_8_bits_says_why(self):
        entry = {"family": "llama", "model": "llama-tiny", "precision": "fp8", "micro_batch": 1}
        records = self.run_cases({**entry, "seq": 16}, script="capability=80")
        self.assertEqual(records[0]["status"], "skipped")
        self.assertEqual(records[0]["reason"], "this GPU has no fp8 arithmetic (compute capability 8.0)")
        records = self.run_cases({**entry, "seq": 10})
        self.assertEqual(records[0]["status"], "skipped")
        self.assertIn("fp8 products need k and n in multiples of 16, not 10 and", records[0]["reason"])

    def test_no_driver(self):
        self.unusable("no_driver", "no NVIDIA driver is loaded")

    def test_a_driver_older_than_the_toolkit(self):
        self.unusable("driver=11.4", "the NVIDIA driver is too old", "it supports CUDA 11.4")

    def test_an_architecture_missing_from_the_build(self):
        self.unusable("capability=70", "compute capability 7.0", "no code")

    def test_an_unusable_driver_says_what_to_fix(self):
        self.unusable("count_error=802", "nvidia-fabricmanager", "cudaErrorSystemNotReady")
        self.unusable("count_error=803", "have different versions", "cudaErrorSystemDriverMismatch")
        self.unusable("count_error=101", "names a GPU twice", "CUDA_VISIBLE_DEVICES=0,0",
                      env={"CUDA_VISIBLE_DEVICES": "0,0"})
        self.unusable("context_error=46", "another process has exclusive use of it", "cudaErrorDevicesUnavailable")

    def test_no_gpu_is_visible(self):
        self.unusable("devices=0", "no GPU is visible")
        self.unusable("", "no GPU is visible", "CUDA_VISIBLE_DEVICES=)", env={"CUDA_VISIBLE_DEVICES": ""})

    def test_more_ranks_than_gpus(self):
        self.refused("run", "collective", "--device", "cuda", "--ranks", "3", "--out", "out",
                     says=("--ranks 3", "2 GPUs", "--share-gpu"),
                     env={"ASSAY_MODULE_PATH": EMULATION, "ASSAY_EMULATION": "devices=2"})

    def test_a_dry_run_for_gpus_needs_none(self):
        done = self.emulated("run", "gemm", "--device", "cuda", "--dry-run", script="no_driver")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("on cuda", done.stdout)

    def test_a_missing_library_is_named(self):
        module = self.dir / "libassay-cuda.so"
        module.write_bytes(b"not a library")
        self.refused("run", "gemm", "--device", "cuda", says=("libassay-cuda.so", "LD_LIBRARY_PATH"),
                     env={"ASSAY_MODULE_PATH": str(self.dir)})
        self.plan({"family": "gemm", "dtype": "f32", "m": 32, "n": 32, "k": 32}, protocol=QUICK)
        done = self.assay("run", "p.json", "--device", "cpu", "--out", "cpu", env={"ASSAY_MODULE_PATH": str(self.dir)})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_out_of_memory_fails_only_that_case(self):
        sizes = [{"family": "gemm", "dtype": "f32", "m": n, "n": n, "k": n} for n in (16, 4096, 32)]
        records = self.run_cases(*sizes, script="memory=64MiB", code=4)
        self.assertEqual([record["status"] for record in records], ["ok", "error", "ok"])
        self.assertRegex(records[1]["reason"], r"out of device memory: \d+ bytes requested, \d+ free of 67108864")

    def test_a_kernel_fault_ends_the_worker_and_not_the_run(self):
        cases = [{"family": "memory", "op": op, "bytes": 1 << 16} for op in ("copy", "dot", "add")]
        records = self.run_cases(*cases, script="kernel_fault=::sum<", code=4)
        self.assertEqual([record["status"] for record in records], ["ok", "error", "ok"], records)
        self.assertIn("an illegal memory access was encountered", records[1]["reason"])


if __name__ == "__main__":
    unittest.main()
