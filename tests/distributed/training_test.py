"""Data parallel training: up to rounding, N ranks have the losses of one rank that accumulates; equal worlds have equal
losses, to the bit. On CPUs over MPI, and on emulated GPUs over NCCL if ASSAY_EMULATED names their module's folder."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

STEPS = 10


class World(unittest.TestCase):
    CASES = []
    WORDS = ()   # further arguments
    ENVIRONMENT = {}

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="assay-test-")
        plan = {"schema": 1, "name": "p", "protocol": {"max_seconds": "100ms", "warmup_seconds": "1ms"},
                "cases": cls.CASES}
        path = pathlib.Path(cls.folder.name) / "p.json"
        path.write_text(json.dumps(plan))
        cls.first = cls.run_plan(path, "a")
        cls.again = cls.run_plan(path, "b", "--ranks", "2")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def run_plan(cls, path, name, *words):
        out = pathlib.Path(cls.folder.name) / name
        done = subprocess.run([os.environ["ASSAY"], "run", str(path), "--out", str(out), *words, *cls.WORDS],
                              capture_output=True, text=True, timeout=600, env={**os.environ, **cls.ENVIRONMENT})
        assert done.returncode == 0, done.stderr + done.stdout
        return [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]

    def losses(self, records, family, ranks, scaling="strong"):
        found = [r for r in records
                 if r["family"] == family and r["world"]["ranks"] == ranks and r["params"]["scaling"] == scaling]
        self.assertEqual(len(found), 1)
        self.assertEqual(found[0]["status"], "ok", found[0]["reason"])
        return found[0]["telemetry"]["loss"]["values"][:STEPS]

    def expect_match(self, family, worlds):
        one = self.losses(self.first, family, 1)
        self.assertEqual(len(one), STEPS)
        if family != "resnet":  # its batches are too small for a smooth curve
            self.assertLess(one[-1], one[0])
        for ranks in worlds:
            for step, (a, b) in enumerate(zip(one, self.losses(self.first, family, ranks))):
                # They differ only by rounding: sums in another order, over ten steps.
                self.assertAlmostEqual(a, b, delta=2e-4 * abs(a), msg=f"{family}, {ranks} ranks, step {step + 1}")


BATCH = {"micro_batch": 2, "accumulate": 4, "scaling": "strong", "threads": 1}


class Training(World):
    CASES = [{"family": "transformer", "model": "gpt2-tiny", "seq": 32, **BATCH, "ranks": [1, 2, 4]},
             {"family": "resnet", "model": "resnet-tiny", **BATCH, "ranks": [1, 2, 4]},
             {"family": "llama", "model": "llama-tiny", "seq": 32, "micro_batch": 4, "threads": 1, "scaling": "strong",
              "ranks": [1, 2]},
             {"family": "llama", "model": "llama-tiny", "seq": 32, "micro_batch": 2, "threads": 1, "ranks": 2}]

    def test_ranks_match_one_that_accumulates(self):
        for family, worlds in (("transformer", (2, 4)), ("resnet", (2, 4)), ("llama", (2,))):
            self.expect_match(family, worlds)

    def test_equal_worlds_give_equal_losses_to_the_bit(self):
        for family in ("transformer", "resnet", "llama"):
            self.assertEqual(self.losses(self.first, family, 2), self.losses(self.again, family, 2))

    def test_the_record_says_what_communication_costs(self):
        for record in self.first:
            metrics = {m["name"]: m["value"] for m in record["metrics"]}
            if record["world"]["ranks"] == 1:
                self.assertEqual(metrics["exposed_communication"], 0)
                continue
            self.assertGreaterEqual(metrics["arrival_skew"], 0)
            for name in ("exposed_communication", "transfer", "communication_cpu"):
                self.assertIsNotNone(metrics[name])
            self.assertEqual([c["passed"] for c in record["checks"] if c["name"].startswith("ranks_with_other")],
                             [True, True])

    def test_a_wrong_sum_on_one_rank_is_found(self):
        out = pathlib.Path(self.folder.name) / "wrong"
        words = [f"transformer.{name}={value}" for name, value in
                 {"model": "gpt2-tiny", "seq": 32, "micro_batch": 2, "threads": 1}.items()]
        done = subprocess.run([os.environ["ASSAY"], "run", "transformer", *(w for word in words for w in ("--set", word)),
                               "--ranks", "2", "--inject", "wrong-sum", "--filter", "gpt2", "--out", str(out)],
                              capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("ranks_with_other_gradients", json.loads((out / "records.jsonl").read_text())["reason"])

    def test_weak_scaling_keeps_the_batch_per_rank(self):
        weak = [r for r in self.first if r["params"]["scaling"] == "weak"]
        self.assertEqual([r["labels"]["global_batch"] for r in weak], ["4"])
        strong = [r for r in self.first if r["family"] == "transformer"]
        self.assertEqual({r["labels"]["global_batch"] for r in strong}, {"8"})


@unittest.skipUnless("ASSAY_EMULATED" in os.environ, "no emulated GPUs in this build")
class GpuTraining(World):
    CASES = [{"family": "llama", "model": "llama-tiny", "seq": 16, "micro_batch": 2, "accumulate": 2,
              "scaling": "strong", "ranks": [1, 2]}]
    WORDS = ("--device", "cuda")
    ENVIRONMENT = {"ASSAY_MODULE_PATH": os.environ.get("ASSAY_EMULATED", ""), "ASSAY_EMULATION": "devices=2"}

    def test_what_nccl_allocates_is_a_figure_of_its_own(self):
        words = [f"llama.{name}={value}" for name, value in {"model": "llama-tiny", "seq": 16, "micro_batch": 2}.items()]
        used = []
        for script in ("devices=2", "devices=2,nccl_memory=48MiB"):
            out = pathlib.Path(self.folder.name) / f"memory-{len(used)}"
            done = subprocess.run([os.environ["ASSAY"], "run", "llama", *(w for word in words for w in ("--set", word)),
                                   "--ranks", "2", "--out", str(out), *self.WORDS], capture_output=True, text=True, timeout=600,
                                  env={**os.environ, **self.ENVIRONMENT, "ASSAY_EMULATION": script})
            self.assertEqual(done.returncode, 0, done.stderr)
            record = json.loads((out / "records.jsonl").read_text())
            used.append({metric["name"]: metric["value"] for metric in record["metrics"]})
        without, having = used
        self.assertEqual((without["communication_memory"], having["communication_memory"]), (0, 48 << 20))
        self.assertEqual(having["memory_growth"] - without["memory_growth"], 48 << 20)

    def test_ranks_match_one_that_accumulates(self):
        self.expect_match("llama", (2,))
        self.assertEqual({record["choices"]["graph"] for record in self.first}, {"captured"})

    def test_gradients_that_ranks_add_up_are_in_registered_memory(self):
        buffers = {record["world"]["ranks"]: record["labels"].get("gradient_buffers") for record in self.first}
        self.assertEqual(buffers, {1: None, 2: "registered"})

    def test_equal_worlds_give_equal_losses_to_the_bit(self):
        self.assertEqual(self.losses(self.first, "llama", 2), self.losses(self.again, "llama", 2))


if __name__ == "__main__":
    unittest.main()
