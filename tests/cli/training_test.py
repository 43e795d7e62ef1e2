"""Training: what a record contains, reproducibility, checkpoints and resume, quality runs, bad input."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

from assay_case import AssayCase

TINY = {"transformer": "gpt2-tiny", "llama": "llama-tiny", "resnet": "resnet-tiny"}


class Training(AssayCase):
    def assay(self, *words, timeout=600, **options):
        return super().assay(*words, timeout=timeout, **options)

    def entry(self, family="transformer", **members):
        small = {"micro_batch": 2, "threads": 1, "protocol": {"max_seconds": "100ms", "warmup_seconds": "1ms"}}
        if family == "resnet":
            small["micro_batch"] = 16
        else:
            small["seq"] = 32
        return {"family": family, "model": TINY[family], **small, **members}

    def run_plan(self, *entries, code=0, out="run", **options):
        done, records = self.measure(*entries, out=out, **options)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return records

    def test_records_of_all_families(self):
        for record in self.run_plan(*(self.entry(family) for family in TINY)):
            self.assertEqual(record["status"], "ok", record["reason"])
            self.assertEqual(record["params"]["accumulate"], 1, "the recipe's value, not the word recipe")
            self.assertNotIn("recipe", record["key"])
            metrics = self.metrics(record)
            units = {name: metric["unit"] for name, metric in self.by_name(record["metrics"]).items()}
            self.assertEqual(units["throughput"], "img/s" if record["family"] == "resnet" else "tokens/s")
            self.assertEqual(units["model_flops"], "FLOP/s")
            for name in ("throughput", "step_time", "model_flops", "loss_step_10", "peak_memory", "planned_memory"):
                self.assertGreater(metrics[name], 0, name)
            terms = ("weights", "gradients", "optimizer", "activations", "workspace")
            self.assertEqual(metrics["planned_memory"], sum(metrics["planned_" + term] for term in terms))
            spans = record["spans"]
            parts = sum(spans[n] for n in ("data_wait", "forward", "backward", "exposed_communication", "optimizer"))
            mean = sum(record["samples"]["values"]) / len(record["samples"]["values"])
            self.assertLess(parts, 1.05 * mean)
            self.assertGreater(parts, 0.5 * mean)
            for kind, names in (("conditions", ("model", "data", "recipe")), ("choices", ("implementation", "isa", "threads")),
                                ("labels", ("formula", "peak"))):
                for name in names:
                    self.assertTrue(record[kind][name], name)
            if record["family"] == "resnet" and record["choices"]["isa"] != "generic":
                for computed in ("forward", "gradient of the input", "gradient of the weights"):
                    self.assertRegex(record["labels"]["choices"], rf"convolution winograd {computed} of 8 x 8 pixels, "
                                     r"64 to 64 channels: oneDNN takes \d+\.\d\d times as long")
            losses = record["telemetry"]["loss"]["values"]
            self.assertEqual(losses[9], metrics["loss_step_10"])
            if record["family"] != "resnet":  # its batches are too small for a smooth curve
                self.assertLess(losses[9], losses[0])
        again = self.assay("run", "--resume", "run")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(len(self.records("run")), len(TINY), "nothing was left to run")

    def test_one_seed_gives_the_same_losses_to_the_bit(self):
        entries = [self.entry("transformer"), self.entry("resnet"), self.entry("transformer", seed=1)]
        first, again = self.run_plan(*entries, out="a"), self.run_plan(*entries, out="b")
        losses = [[record["telemetry"]["loss"]["values"][:10] for record in run] for run in (first, again)]
        self.assertEqual(losses[0], losses[1])
        self.assertNotEqual(losses[0][0], losses[0][2])

    def test_a_flipped_bit_is_found(self):
        record, = self.run_plan(self.entry(), code=1, words=("--inject", "bit-flip"))
        self.assertEqual(record["status"], "failed")
        self.assertIn("losses_that_do_not_repeat", record["reason"])

    def test_checkpointing_computes_the_same(self):
        plain, *others = self.run_plan(self.entry(checkpointing=["none", "selective", "full"]))
        kept = [self.metrics(plain)["planned_memory"]]
        for record in others:
            self.assertEqual(plain["telemetry"]["loss"]["values"][:10], record["telemetry"]["loss"]["values"][:10])
            metrics = self.metrics(record)
            kept.append(metrics["planned_memory"])
            self.assertIsNotNone(metrics["checkpointing_time"])
            self.assertEqual(metrics["checkpointing_saved_planned"], kept[0] - kept[-1])
        self.assertEqual(kept, sorted(kept, reverse=True))
        self.assertEqual(len(set(kept)), 3)

    def test_checkpoints_resume_to_the_bit(self):
        record, = self.run_plan(self.entry(save_every=4))
        metrics = self.metrics(record)
        self.assertGreater(metrics["checkpoint_write"], 0)
        self.assertGreater(metrics["checkpoint_read"], 0)
        self.assertTrue(self.by_name(record["checks"])["losses_after_resume_that_differ"]["passed"])
        self.assertEqual(len(list((self.dir / "run" / "checkpoints").glob("*.ckpt"))), 1)

    def kill_and_resume(self, damage=None):
        """Kills a run after a checkpoint and resumes it; the last record and the second command's result."""
        entry = self.entry(save_every=5, protocol={"max_seconds": "20s", "warmup_seconds": "1ms", "min_samples": 1000000})
        process = subprocess.Popen([self.binary, "run", self.plan(entry), "--out", "run"], cwd=self.dir,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        folder = self.dir / "run" / "checkpoints"
        end = time.monotonic() + 300
        while not list(folder.glob("*.ckpt")) and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=20)
        file, = folder.glob("*.ckpt")
        # A few more steps are enough.
        run = json.loads((self.dir / "run" / "run.json").read_text())
        run["plan"]["cases"][0]["protocol"] = {"max_seconds": 0.1, "warmup_seconds": 0.001}
        (self.dir / "run" / "run.json").write_text(json.dumps(run))
        if damage:
            damage(file)
        done = self.assay("run", "--resume", "run")
        return self.records("run")[-1], done

    def test_a_killed_run_continues_where_it_was(self):
        record, done = self.kill_and_resume()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(any(flag.startswith("resumed from step ") for flag in record["flags"]), record["flags"])
        straight, = self.run_plan(self.entry(protocol={"max_seconds": "1s", "warmup_seconds": "1ms"}), out="straight")
        losses, whole = record["telemetry"]["loss"]["values"], straight["telemetry"]["loss"]["values"]
        common = min(len(losses), len(whole))
        self.assertGreaterEqual(common, 10)
        self.assertEqual(losses[:common], whole[:common])

    def test_damaged_checkpoints_are_refused(self):
        def truncate(file):
            file.write_bytes(file.read_bytes()[:-1000])
        record, done = self.kill_and_resume(truncate)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(record["status"], "error")
        self.assertIn("is truncated", record["reason"])

    def configs(self, **files):
        """Copies the configs and replaces files, recipes__name={...}; the environment that selects the copy."""
        root = pathlib.Path(__file__).resolve().parents[2] / "configs"
        own = self.dir / "configs"
        if not own.exists():
            shutil.copytree(root, own)
        for name, content in files.items():
            self.write("configs/" + name.replace("__", "/").replace("_", "-") + ".json", content)
        return {"ASSAY_CONFIGS": str(own)}

    def recipe(self, **changes):
        return {"schema": 1, "optimizer": {"name": "adamw", "beta2": 0.95},
                "schedule": {"decay": "constant", "base": 3e-3, "warmup_steps": 10},
                "batch": {"micro_batch": 8, "seq": 32}, **changes}

    def test_a_loss_that_is_not_finite_names_step_and_tensor(self):
        recipe = self.recipe(schedule={"decay": "constant", "base": 1e6})
        env = self.configs(recipes__gpt2_tiny={**recipe, "optimizer": {"name": "sgd"}})
        record, = self.run_plan(self.entry(), code=4, env=env)
        self.assertEqual(record["status"], "error")
        self.assertRegex(record["reason"], r"not finite at step \d+: first in [\w./]+")

    def test_a_model_that_learns_nothing_fails(self):
        env = self.configs(recipes__gpt2_tiny=self.recipe(schedule={"decay": "constant", "base": 1e-30}))
        record, = self.run_plan(self.entry(), code=1, env=env)
        self.assertEqual(record["status"], "failed")
        self.assertIn("first_batch_learned", record["reason"])

    def test_fewer_than_ten_samples_need_no_tenth_step(self):
        record, = self.run_plan(self.entry(protocol={"min_samples": 2, "max_seconds": "1ms", "warmup_seconds": 0}))
        self.assertEqual(record["status"], "ok", record["reason"])
        self.assertLess(len(record["telemetry"]["loss"]["values"]), 10)
        self.assertIsNone(self.metrics(record)["loss_step_10"])

    def test_quality_runs(self):
        quality = {"target": {"value": 3.3}, "evaluate_every": 32, "evaluation_samples": 64, "max_samples": 320}
        env = self.configs(recipes__gpt2_tiny=self.recipe(quality=quality))
        record, = self.run_plan({"family": "transformer", "model": "gpt2-tiny", "mode": "quality", "runs": 3}, env=env)
        self.assertEqual(record["status"], "ok", record["reason"])
        times = record["samples"]["values"]
        self.assertEqual(len(times), 3)
        self.assertAlmostEqual(self.metrics(record)["time_to_quality"], sorted(times)[1])
        self.assertEqual(record["conditions"]["scoring"], "olympic mean of 3 runs")
        self.assertTrue(record["labels"]["convergence"].startswith("not judged"))
        logs = sorted((self.dir / "run" / "mllog").glob("*.log"))
        self.assertEqual(len(logs), 3)
        for log, seconds in zip(logs, times):
            self.check_log(log, quality["target"]["value"], seconds)

    def check_log(self, path, target, seconds):
        """Checks order, times, intervals of evaluations and the end, more strictly than the format's own checker."""
        lines = [json.loads(line[len(":::MLLOG "):]) for line in path.read_text().splitlines()]
        self.assertTrue(all(line.startswith(":::MLLOG ") for line in path.read_text().splitlines()))
        times = [line["time_ms"] for line in lines]
        self.assertEqual(times, sorted(times))
        keys = [line["key"] for line in lines]
        for key in ("init_start", "init_stop", "run_start", "run_stop", "seed", "submission_benchmark"):
            self.assertEqual(keys.count(key), 1, key)
        self.assertLess(keys.index("seed"), keys.index("run_start"))
        body = keys[keys.index("run_start") + 1:keys.index("run_stop")]
        self.assertEqual(body, ["block_start", "block_stop", "eval_start", "eval_accuracy", "eval_stop"] * (len(body) // 5))
        self.assertEqual(keys[-1], "run_stop")
        evaluations = [line for line in lines if line["key"] == "eval_accuracy"]
        self.assertEqual([e["metadata"]["samples_count"] for e in evaluations],
                         [32 * (i + 1) for i in range(len(evaluations))])
        self.assertTrue(all(e["value"] > target for e in evaluations[:-1]))
        self.assertLessEqual(evaluations[-1]["value"], target)
        self.assertEqual(lines[-1]["metadata"]["status"], "success")
        clock = (lines[-1]["time_ms"] - lines[keys.index("run_start")]["time_ms"]) / 1000
        self.assertAlmostEqual(clock, seconds, delta=0.05 + 0.1 * seconds)

    def test_a_killed_quality_run_continues_where_it_was(self):
        quality = {"target": {"value": 0.01}, "evaluate_every": 32, "evaluation_samples": 32, "max_samples": 640}
        env = self.configs(recipes__gpt2_tiny=self.recipe(quality=quality))
        plan = self.plan({"family": "transformer", "model": "gpt2-tiny", "mode": "quality", "runs": 2, "save_every": 3,
                          "threads": 1})
        process = subprocess.Popen([self.binary, "run", plan, "--out", "killed"], cwd=self.dir,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **env})
        folder, end = self.dir / "killed" / "checkpoints", time.monotonic() + 300
        while not list(folder.glob("*.ckpt")) and time.monotonic() < end:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=20)
        self.assertEqual(self.assay("run", "--resume", "killed", env=env).returncode, 1)
        self.assertEqual(self.assay("run", plan, "--out", "straight", env=env).returncode, 1)
        killed, straight = self.records("killed")[-1], self.records("straight")[-1]
        self.assertTrue(any(flag.startswith("resumed in run ") for flag in killed["flags"]), killed["flags"])
        for series in ("loss", "eval_loss", "samples_to_quality"):
            self.assertEqual(killed["telemetry"][series]["values"], straight["telemetry"][series]["values"], series)
        logs = [sorted((self.dir / name / "mllog").glob("*.log")) for name in ("killed", "straight")]
        for one, other in zip(*logs, strict=True):
            self.assertEqual(self.keys_of(one), self.keys_of(other))

    def keys_of(self, log):
        lines = [json.loads(line[len(":::MLLOG "):]) for line in log.read_text().splitlines()]
        self.assertEqual([line["time_ms"] for line in lines], sorted(line["time_ms"] for line in lines))
        return [(line["metadata"]["lineno"], line["key"], line["value"]) for line in lines]

    def test_runs_that_miss_the_target_fail(self):
        quality = {"target": {"value": 0.01}, "evaluate_every": 32, "evaluation_samples": 32, "max_samples": 64}
        env = self.configs(recipes__gpt2_tiny=self.recipe(quality=quality))
        record, = self.run_plan({"family": "transformer", "model": "gpt2-tiny", "mode": "quality", "runs": 3}, code=1,
                                env=env)
        self.assertEqual(record["status"], "failed")
        self.assertIsNone(self.metrics(record)["time_to_quality"])
        self.assertEqual(len(record["samples"]["values"]), 3)
        self.assertIn("aborted", next((self.dir / "run" / "mllog").glob("*.log")).read_text())

    def test_convergence_faster_than_its_reference_fails(self):
        quality = {"target": {"value": 3.3}, "evaluate_every": 32, "evaluation_samples": 64, "max_samples": 3200}
        points = [{"seed": seed, "samples": 100000 + seed} for seed in range(10)]
        reference = {"schema": 1, "model": "gpt2-tiny", "source": "a test", "global_batch": 8, "points": points}
        env = self.configs(recipes__gpt2_tiny=self.recipe(quality=quality), convergence__gpt2_tiny=reference)
        record, = self.run_plan({"family": "transformer", "model": "gpt2-tiny", "mode": "quality"}, code=1, env=env)
        self.assertEqual(record["status"], "failed")
        self.assertIn("convergence_not_too_fast", record["reason"])
        self.assertTrue(record["labels"]["convergence"].startswith("too fast"))

    def test_the_users_own_tokens(self):
        self.write("tokens.bin", bytes(byte for i in range(20000) for byte in (i * i % 32, 0)))
        record, = self.run_plan(self.entry(path=str(self.dir / "tokens.bin")))
        self.assertEqual(record["status"], "ok", record["reason"])
        self.assertEqual(record["protocol"]["data"], "files")

    def test_impossible_requests_are_refused_in_one_line(self):
        run = ["run", "transformer", "--set", "transformer.model=gpt2-tiny"]
        self.refused("run", "transformer", "--set", "transformer.model=gpt2-tiney", says="did you mean \"gpt2-tiny\"?")
        self.refused("run", "llama", "--set", "llama.model=gpt2-tiny", says=["gpt2-tiny", "of the family \"transformer\""])
        self.refused(*run, "--set", "transformer.seq=4096", says="positions")
        self.refused(*run, "--set", "transformer.scaling=strong", "--set", "transformer.micro_batch=3", "--ranks", "2",
                     says="cannot be divided between 2 ranks")
        self.refused(*run, "--set", "transformer.path=/nowhere/x.bin", says="/nowhere/x.bin")
        self.refused("run", "llama", "--set", "llama.mode=quality", says="sets no target")
        self.refused("run", "llama", "--set", "llama.model=llama-8b", "--set", "llama.micro_batch=1024",
                     says=["does not fit", "weights", "gradients", "optimizer", "activations"])
        self.refused("run", "resnet", "--set", "resnet.seq=8", says="reads images")
        self.refused("run", "resnet", "--set", "resnet.precision=fp8", says="no layer of this model multiplies in 8 bits")
        self.write("bad.bin", bytes([40, 0]) * 4000)
        self.refused(*run, "--set", f"transformer.path={self.dir}/bad.bin", says="bad.bin")
        self.write("odd.json", {"schema": 1, "family": "transformer", "vocabulary": 32, "positions": 64, "layers": 1,
                                "width": 30, "heads": 4, "mlp_width": 64, "norm": "layer", "position": "learned",
                                "mlp": "gelu_tanh"})
        done = self.assay("run", "transformer", "--set", "transformer.model=odd.json")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("heads", done.stderr)

    def test_precisions_that_a_cpu_lacks_are_skipped_in_one_sentence(self):
        records = self.run_plan(self.entry(precision=["fp8", "tf32", "fp16"]))
        self.assertEqual({record["params"]["precision"]: (record["status"], record["reason"]) for record in records},
                         {"fp8": ("skipped", "this CPU has no fp8 arithmetic"), "tf32": ("skipped", "this CPU has no tf32 arithmetic"),
                          "fp16": ("skipped", "Assay has no fp16 arithmetic for CPUs")})

    def test_dry_run_shows_memory_and_work(self):
        done = self.assay("run", "llama", "--set", "llama.model=llama-160m", "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("GiB", done.stdout)
        self.assertIn("FLOP", done.stdout)


if __name__ == "__main__":
    unittest.main()
