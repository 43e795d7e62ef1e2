"""Data parallel training: up to rounding, N ranks have the losses of one rank that accumulates; equal worlds have equal
losses, to the bit. On CPUs over MPI, and on emulated GPUs over NCCL if ASSAY_EMULATED names their module's folder."""
import functools
import json
import os
import pathlib
import shutil
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
        cls.plan = cls.write_plan("p", *cls.CASES)
        cls.first = cls.run_plan("a")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def write_plan(cls, name, *cases, **protocol):
        path = pathlib.Path(cls.folder.name) / f"{name}.json"
        protocol = {"max_seconds": "100ms", "warmup_seconds": "1ms", **protocol}
        path.write_text(json.dumps({"schema": 1, "name": name, "protocol": protocol, "cases": cases}))
        return path

    @classmethod
    def run_plan(cls, name, *words):
        out = pathlib.Path(cls.folder.name) / name
        done = subprocess.run([os.environ["ASSAY"], "run", str(cls.plan), "--out", str(out), *words, *cls.WORDS],
                              capture_output=True, text=True, timeout=600, env={**os.environ, **cls.ENVIRONMENT})
        assert done.returncode == 0, done.stderr + done.stdout
        return [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]

    @classmethod
    @functools.cache
    def again(cls):
        return cls.run_plan("b", "--ranks", "2")

    def losses(self, records, family, ranks, scaling="strong", zero=0):
        found = [r for r in records
                 if r["family"] == family and r["world"]["ranks"] == ranks and r["params"]["scaling"] == scaling
                 and r["params"].get("zero", 0) == zero]
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
            self.assertEqual(self.losses(self.first, family, 2), self.losses(self.again(), family, 2))

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
        plan = self.write_plan("wrong", {"family": "transformer", "model": "gpt2-tiny", "seq": 32, "micro_batch": 2,
                                         "threads": 1, "ranks": 2})
        done = subprocess.run([os.environ["ASSAY"], "run", plan, "--inject", "wrong-sum", "--out", out],
                              capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("ranks_with_other_gradients", json.loads((out / "records.jsonl").read_text())["reason"])

    def test_weak_scaling_keeps_the_batch_per_rank(self):
        weak = [r for r in self.first if r["params"]["scaling"] == "weak"]
        self.assertEqual([r["labels"]["global_batch"] for r in weak], ["4"])
        strong = [r for r in self.first if r["family"] == "transformer"]
        self.assertEqual({r["labels"]["global_batch"] for r in strong}, {"8"})


def divided(stages, **case):
    """A case with whole state on one and two ranks, and with divided state on two."""
    case = {**case, "micro_batch": 2, "accumulate": 2, "scaling": "strong"}
    return {**case, "ranks": [1, 2]}, {**case, "zero": list(stages), "ranks": 2}


class DividedState:
    """What ranks divide (ZeRO) changes their memory and what they exchange, and no loss."""

    def records_of(self, family, ranks):
        return {r["params"].get("zero", 0): r for r in self.first
                if r["family"] == family and r["world"]["ranks"] == ranks}

    def test_losses_are_those_of_whole_state_to_the_bit(self):
        for family in {record["family"] for record in self.first}:
            for zero in self.records_of(family, 2):
                whole, divided = self.losses(self.first, family, 2), self.losses(self.first, family, 2, zero=zero)
                steps = min(len(whole), len(divided))  # the time limit may come first on emulated GPUs
                self.assertGreaterEqual(steps, 2)
                self.assertEqual(whole[:steps], divided[:steps], (family, zero))

    def test_losses_are_those_of_one_rank(self):
        for family in {record["family"] for record in self.first}:
            for one, two in zip(self.losses(self.first, family, 1), self.losses(self.first, family, 2)):
                self.assertAlmostEqual(one, two, delta=2e-4 * one, msg=family)

    def test_the_default_is_not_in_the_key(self):
        for record in self.first:
            zero = record["params"].get("zero", 0)
            self.assertEqual("/zero=" in record["key"], zero > 0)
            self.assertIn("zero", record["key"]) if zero else self.assertNotIn("zero", record["params"])

    def test_state_is_divided(self):
        metrics = {zero: {m["name"]: m["value"] for m in r["metrics"]} for zero, r in self.records_of("llama", 2).items()}
        whole, rest = metrics.pop(0), 4096
        for zero, own in metrics.items():
            self.assertAlmostEqual(own["planned_optimizer"], whole["planned_optimizer"] / 2, delta=rest)
            self.assertAlmostEqual(own["planned_gradients"], whole["planned_gradients"] / (2 if zero > 1 else 1), delta=rest)
            self.assertEqual("planned_communication" in own, zero > 1)

    def test_what_ranks_exchange(self):
        """2 P elements; 3 P with stage 3, which gathers weights for both passes."""
        for zero, record in self.records_of("llama", 2).items():
            metrics = {m["name"]: m["value"] for m in record["metrics"]}
            moved = [metrics.get("communication_bytes_" + name, 0) / 4 / 1583232 for name in ("data", "gather")]
            for got, want in zip(moved, {0: (2, 0), 1: (1, 1), 2: (1, 1), 3: (1, 2)}[zero]):
                self.assertAlmostEqual(got, want, delta=0.02, msg=f"zero {zero}")
            for name in ("data", "gather"):
                self.assertEqual("exposed_communication_" + name in metrics, zero > 0)
            self.assertTrue(all(check["passed"] for check in record["checks"]))
            names = {check["name"] for check in record["checks"]}
            self.assertEqual("ranks_with_other_gradients" in names, zero == 0)
            self.assertIn("ranks_with_other_weights", names)


class ZeroTraining(DividedState, World):
    CASES = [{"threads": 1, **case} for case in (
        *divided((1, 2, 3), family="llama", model="llama-deep-tiny", seq=32),
        *divided((3,), family="transformer", model="gpt2-tiny", seq=32),
        *divided((3,), family="resnet", model="resnet-tiny"))]

    def run_one(self, name, *words, code=0, env=None):
        out = pathlib.Path(self.folder.name) / name
        done = subprocess.run([os.environ["ASSAY"], "run", *words, "--ranks", "2", "--out", str(out)], capture_output=True,
                              text=True, timeout=600, env={**os.environ, **(env or {})})
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]

    def test_memory_used_is_what_was_planned(self):
        """Plans of at least a gibibyte on each rank."""
        plan = self.write_plan("large", {"family": "llama", "model": "llama-160m", "seq": 32, "micro_batch": 1,
                                         "threads": 1, "zero": [1, 2, 3]}, max_seconds="1ms", min_samples=1)
        for record in self.run_one("large", plan):
            checks = {check["name"]: check for check in record["checks"]}
            self.assertIn("planned_memory", checks, record["key"])
            self.assertTrue(checks["planned_memory"]["passed"], checks["planned_memory"])
            terms = subprocess.run([os.environ["ASSAY"], "estimate", "llama-160m", "--json", "--set",
                                    f"precision=f32,seq=32,micro_batch=1,dp=2,zero={record['params']['zero']}"],
                                   capture_output=True, text=True, timeout=60, check=True)
            planned = next(m["value"] for m in record["metrics"] if m["name"] == "planned_memory")
            self.assertLess(abs(json.loads(terms.stdout)["total_bytes"] - planned), 0.02 * planned, record["key"])

    def test_a_wrong_weight_on_one_rank_is_found(self):
        plan = self.write_plan("wrong", {"family": "llama", "model": "llama-tiny", "seq": 32, "micro_batch": 2,
                                         "threads": 1, "zero": 3})
        (record,) = self.run_one("wrong", plan, "--inject", "wrong-sum", code=1)
        self.assertIn("ranks_with_other_weights", record["reason"])

    def test_a_quality_run_gathers_in_its_evaluations(self):
        """Ranks that have no samples left of the validation set evaluate with the others."""
        words = [f"llama.{name}={value}" for name, value in
                 {"model": "llama-tiny", "mode": "quality", "runs": 1, "threads": 1}.items()]
        sets = [w for word in words for w in ("--set", word)]
        # A target that the first evaluation reaches.
        configs = pathlib.Path(self.folder.name) / "configs"
        shutil.copytree(pathlib.Path(__file__).resolve().parents[2] / "configs", configs)
        recipe = configs / "recipes/llama-tiny.json"
        recipe.write_text(recipe.read_text().replace('"loss_above_floor": 0.05', '"loss_above_floor": 1'))
        found = [self.run_one(f"quality-{zero}", "llama", *sets, "--set", f"llama.zero={zero}",
                              env={"ASSAY_CONFIGS": str(configs)})[0] for zero in (0, 3)]
        losses = [next(m["value"] for m in record["metrics"] if m["name"] == "eval_loss") for record in found]
        self.assertAlmostEqual(losses[0], losses[1], delta=1e-6)

    def test_refusals_name_the_nearest(self):
        def refused(*words):
            done = subprocess.run([os.environ["ASSAY"], "run", *words, "--ranks", "2", "--dry-run"], capture_output=True,
                                  text=True, timeout=60)
            self.assertEqual(done.returncode, 2, done.stdout)
            return done.stderr + done.stdout
        self.assertIn("use zero=3", refused("llama", "--set", "llama.model=llama-tiny", "--set", "llama.zero=4"))
        self.assertIn("use zero=0 or precision=bf16", refused("llama", "--set", "llama.model=llama-tiny", "--set",
                                                              "llama.zero=1", "--set", "llama.precision=fp8"))
        self.assertIn("use checkpointing=none or full", refused("resnet", "--set", "resnet.model=resnet-tiny", "--set",
                                                                "resnet.checkpointing=selective"))


@unittest.skipUnless("ASSAY_EMULATED" in os.environ, "no emulated GPUs in this build")
class GpuZeroTraining(DividedState, World):
    CASES = divided((1, 2, 3), family="llama", model="llama-deep-tiny", seq=8)
    WORDS = ("--device", "cuda")
    ENVIRONMENT = {"ASSAY_MODULE_PATH": os.environ.get("ASSAY_EMULATED", ""), "ASSAY_EMULATION": "devices=2"}

    def test_steps_are_captured(self):
        self.assertEqual({record["choices"]["graph"] for record in self.first}, {"captured"})


@unittest.skipUnless("ASSAY_EMULATED" in os.environ, "no emulated GPUs in this build")
class GpuTraining(World):
    CASES = [{"family": "llama", "model": "llama-tiny", "seq": 16, "micro_batch": 2, "accumulate": 2,
              "scaling": "strong", "ranks": [1, 2]}]
    WORDS = ("--device", "cuda")
    ENVIRONMENT = {"ASSAY_MODULE_PATH": os.environ.get("ASSAY_EMULATED", ""), "ASSAY_EMULATION": "devices=2"}

    def test_what_nccl_allocates_is_a_figure_of_its_own(self):
        plan = self.write_plan("memory", {"family": "llama", "model": "llama-tiny", "seq": 16, "micro_batch": 2, "ranks": 2})
        used = []
        for script in ("devices=2", "devices=2,nccl_memory=48MiB"):
            out = pathlib.Path(self.folder.name) / f"memory-{len(used)}"
            done = subprocess.run([os.environ["ASSAY"], "run", plan, "--out", out, *self.WORDS], capture_output=True,
                                  text=True, timeout=600,
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
        self.assertEqual(self.losses(self.first, "llama", 2), self.losses(self.again(), "llama", 2))


if __name__ == "__main__":
    unittest.main()
