"""assay estimate: planned memory against what steps really use, layouts, hardware, Hugging Face's files, bad input."""

import json
import pathlib
import unittest

from assay_case import AssayCase

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"
MODELS = pathlib.Path(__file__).resolve().parents[1] / "models"
TERMS = ["weights", "gradients", "optimizer", "activations", "workspace", "communication", "allowance"]
TINY = {"transformer": "gpt2-tiny", "llama": "llama-tiny", "resnet": "resnet-tiny"}


class Estimate(AssayCase):
    def estimate(self, model, sets="", *words, code=0):
        given = ["--set", sets] if sets else []
        done = self.assay("estimate", model, *given, *words, "--json")
        self.assertEqual((done.returncode, done.stderr), (code, ""))
        return json.loads(done.stdout)

    def test_the_document(self):
        read = self.estimate("gpt2-124m", "dp=3,zero=1")
        self.assertEqual((read["schema"], read["model"], read["parameters"]), (1, "gpt2-124m", 124439808))
        self.assertEqual(read["layout"], {"dp": 3, "tp": 1, "pp": 1, "zero": 1})
        self.assertEqual([rank["rank"] for rank in read["ranks"]], [0, 1, 2])
        for rank in read["ranks"]:
            self.assertEqual(list(rank["terms"]), TERMS)
            self.assertEqual(sum(rank["terms"].values()), rank["total_bytes"])
            self.assertEqual(rank["stage"], 0)
        self.assertEqual(read["total_bytes"], max(rank["total_bytes"] for rank in read["ranks"]))
        self.assertEqual((read["fits"], read["short_by_bytes"], read["hardware"]), (None, None, None))
        for name in ("korthikanti", "megatron", "zero"):
            formula = read["formulas"][name]
            self.assertGreater(formula["value"], 0)
            self.assertTrue(formula["source"] and formula["differs"])
        self.assertEqual(read["formulas"]["zero"]["stages"][0], 16 * 124439808)
        images = self.estimate("resnet-tiny")
        self.assertIsNone(images["formulas"]["megatron"])
        self.assertIsNone(images["step"]["seq"])

    def test_models_by_name_by_file_and_by_config_json(self):
        for name, parameters in {"llama-2-7b": 6738415616, "llama-3-8b": 8030261248, "mistral-7b": 7241732096,
                                 "qwen2-7b": 7615616512, "gpt2": 124439808, "bert-base-uncased": 109514298}.items():
            read = self.estimate(MODELS / name / "config.json", "micro_batch=1,seq=64")
            self.assertEqual((read["model"], read["parameters"]), (name, parameters))
            self.assertGreaterEqual(read["total_bytes"], 16 * parameters)
        own = self.estimate("llama-8b", "seq=64,micro_batch=1")
        theirs = self.estimate(MODELS / "llama-3-8b" / "config.json", "seq=64,micro_batch=1")
        self.assertEqual(own["ranks"], theirs["ranks"])

    def test_a_config_json_runs(self):
        path = self.write("small/config.json", {
            "model_type": "qwen2", "vocab_size": 64, "max_position_embeddings": 64, "hidden_size": 32,
            "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
            "hidden_act": "silu"})
        entry = {"family": "llama", "model": str(path), "micro_batch": 2, "seq": 16, "threads": 1,
                 "protocol": {"max_seconds": "100ms", "warmup_seconds": "1ms"}}
        done, records = self.measure(entry)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual(records[0]["conditions"]["model"], "small")
        self.assertEqual(self.estimate(path, "micro_batch=2,seq=16")["ranks"][0]["terms"]["optimizer"],
                         self.metrics(records[0])["planned_optimizer"])
        done = self.assay("run", "transformer", "--set", f"transformer.model={path}", "--dry-run")
        self.assertEqual(done.returncode, 2)
        self.assertIn("of the family \"llama\", not transformer", done.stderr + done.stdout)

    def test_steps_plan_what_was_estimated(self):
        """Every kind of model in the precisions and checkpointings of a CPU."""
        entries = [{"family": family, "model": model, "micro_batch": 16, "precision": precision,
                    "checkpointing": checkpointing, "threads": 1, **({} if family == "resnet" else {"seq": 64}),
                    "protocol": {"max_seconds": "1ms", "min_samples": 1, "warmup_seconds": 0}}
                   for family, model in TINY.items() for precision in ("f32", "bf16")
                   for checkpointing in ("none", "full")]
        done, records = self.measure(*entries)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        compared = 0
        for record in records:
            if record["status"] == "skipped":
                continue   # a CPU without bf16
            params = record["params"]
            sets = [f"{name}={params[name]}" for name in ("micro_batch", "precision", "checkpointing")]
            sets += [f"seq={params['seq']}"] if params["seq"] != "none" else []
            terms = self.estimate(params["model"], ",".join(sets))["ranks"][0]["terms"]
            metrics = self.metrics(record)
            for term in ("gradients", "optimizer"):
                self.assertEqual(terms[term], metrics["planned_" + term], record["key"])
            self.assertLess(abs(sum(terms.values()) - metrics["planned_memory"]),
                            max(0.02 * metrics["planned_memory"], 4 << 20), record["key"])
            compared += 1
        self.assertGreaterEqual(compared, len(TINY) * 2)

    def test_a_step_uses_what_was_estimated(self):
        """A plan of more than a gibibyte, against the memory that the process grew by."""
        entry = {"family": "llama", "model": "llama-160m", "micro_batch": 1, "seq": 32, "threads": 1,
                 "protocol": {"max_seconds": "1ms", "min_samples": 1, "warmup_seconds": 0}}
        done, (record,) = self.measure(entry)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertTrue(self.by_name(record["checks"])["planned_memory"]["passed"])
        estimated = self.estimate("llama-160m", "micro_batch=1,seq=32,precision=f32")["total_bytes"]
        self.assertGreater(estimated, 1 << 30)
        self.assertLess(abs(estimated - self.metrics(record)["memory_growth"]), 0.02 * estimated)

    def test_ranks_divide_what_zero_says(self):
        bytes_of = {}
        for zero in range(4):
            terms = self.estimate("llama-160m", f"precision=f32,micro_batch=1,seq=64,dp=8,zero={zero}")["ranks"][7]["terms"]
            bytes_of[zero] = sum(terms[name] for name in ("weights", "gradients", "optimizer"))
        parameters = 162417408
        rest = bytes_of[0] - 16 * parameters
        for zero, each in {1: 8 + 8 / 8, 2: 4 + 12 / 8, 3: 16 / 8}.items():
            self.assertAlmostEqual((bytes_of[zero] - rest) / parameters, each, delta=0.01)

    def test_settings_change_the_memory(self):
        def terms(sets):
            return self.estimate("gpt2-124m", sets)["ranks"][0]["terms"]
        plain, more = terms("seq=64,micro_batch=4,precision=f32"), terms("seq=64,micro_batch=32,precision=f32")
        self.assertGreater(more["activations"], 4 * plain["activations"])
        self.assertEqual(more["optimizer"], plain["optimizer"])
        self.assertLess(terms("seq=64,micro_batch=32,precision=bf16")["activations"], 0.6 * more["activations"])
        self.assertLess(terms("seq=64,micro_batch=32,precision=f32,checkpointing=full")["activations"], more["activations"])
        # Products of 16 bits keep packed weights between micro-batches; those of f32 only with AVX-512.
        self.assertGreater(terms("seq=64,micro_batch=4,precision=bf16,accumulate=2")["weights"],
                           terms("seq=64,micro_batch=4,precision=bf16")["weights"])
        self.assertEqual(self.estimate("gpt2-124m", "precision=fp16")["device"], "cuda")
        self.assertEqual(terms("seq=64,precision=fp16")["allowance"], 1 << 30)

    def test_hardware_that_holds_it_or_does_not(self):
        small = self.estimate("llama-160m", "precision=bf16", "--hardware", "h100-sxm")
        self.assertEqual((small["fits"], small["short_by_bytes"], small["would_fit"]), (True, 0, []))
        self.assertEqual(small["device"], "cuda")
        # 18 bytes per parameter, however small the step: more ranks have to divide them.
        large = self.estimate("llama-8b", "precision=bf16,micro_batch=1", "--hardware", "h100-sxm", code=1)
        self.assertFalse(large["fits"])
        self.assertEqual(large["short_by_bytes"], large["total_bytes"] - large["hardware"]["memory_bytes"])
        # Activations alone are too much.
        batch = self.estimate("llama-1b", "precision=bf16,micro_batch=256", "--hardware", "h100-sxm", code=1)
        for read, named in ((large, {"micro_batch", "checkpointing", "dp", "zero"}), (batch, {"micro_batch", "checkpointing", "dp", "zero"})):
            names = set()
            for other in read["would_fit"]:
                names |= {pair.split("=")[0] for pair in other["set"].split(",")}
                model, step = read["model"], read["step"]
                kept = [f"{name}={step[name]}" for name in ("precision", "micro_batch", "checkpointing")
                        if name + "=" not in other["set"]]
                again = self.estimate(model, ",".join(kept + [other["set"]]), "--hardware", "h100-sxm")
                self.assertEqual((again["fits"], again["total_bytes"]), (True, other["total_bytes"]))
            self.assertLessEqual(names, named)
            self.assertTrue(names)
        text = self.assay("estimate", "llama-1b", "--set", "precision=bf16,micro_batch=256", "--hardware", "h100-sxm")
        self.assertEqual(text.returncode, 1)
        self.assertIn("does not fit its 74.5 GiB: short by ", text.stdout)
        self.assertIn("would fit: --set micro_batch=", text.stdout)
        unknown = self.estimate("gpt2-tiny", "", "--hardware", "epyc-7763", code=3)
        self.assertEqual((unknown["fits"], unknown["short_by_bytes"]), (None, None))

    def test_estimate_and_size_have_one_step_and_one_number_of_gpus(self):
        """Both plan for the recipe's length in bf16, and the fewest GPUs of one are those of the other."""
        read = self.estimate("llama-8b", "", "--hardware", "h100-sxm", code=1)
        done = self.assay("size", "llama-8b", "--tokens", "1e9", "--hardware", "h100-sxm", "--count", "1,2,4,8", "--json")
        sized = json.loads(done.stdout)
        self.assertEqual((read["step"]["precision"], read["step"]["seq"]), (sized["precision"], sized["seq"]))
        proposed = {int(dict(pair.split("=") for pair in other["set"].split(","))["dp"]) for other in read["would_fit"]}
        self.assertEqual(min(proposed), min(each["gpus"] for each in sized["ranked"]))

    def test_fp8_is_not_divided(self):
        done = self.assay("estimate", "llama-8b", "--set", "precision=fp8", "--hardware", "h100-sxm")
        self.assertEqual(done.returncode, 1)
        self.assertIn("ranks do not divide what is trained in fp8 (zero); precision=bf16 can be divided", done.stdout)
        self.assertNotIn("zero=3 on 1024", done.stdout)

    def test_remarks_are_short(self):
        text = self.assay("estimate", "llama-8b").stdout
        remarks = text[text.index("published formulas"):]
        self.assertLess(len(remarks), len(text) / 2 + 100)
        self.assertLess(max(map(len, text.splitlines())), 121)

    def test_the_largest_micro_batch_that_fits_is_named(self):
        read = self.estimate("llama-1b", "precision=bf16,micro_batch=256", "--hardware", "h100-sxm", code=1)
        fits = next(other["set"] for other in read["would_fit"] if other["set"].startswith("micro_batch="))
        most = int(fits.split("=")[1])
        self.estimate("llama-1b", f"precision=bf16,micro_batch={most}", "--hardware", "h100-sxm")
        self.estimate("llama-1b", f"precision=bf16,micro_batch={most + 1}", "--hardware", "h100-sxm", code=1)

    def test_selective_checkpointing_that_fits_is_named(self):
        step = "precision=bf16,micro_batch=8"
        total = {word: self.estimate("llama-1b", f"{step},checkpointing={word}", "--hardware", "h100-sxm")["total_bytes"]
                 for word in ("none", "selective")}
        hardware = json.loads((CONFIGS / "hardware/h100-sxm.json").read_text(encoding="utf-8"))
        file = self.write("sheet.json", hardware | {"memory_bytes": sum(total.values()) // 2})
        read = self.estimate("llama-1b", f"{step},checkpointing=none", "--hardware", file, code=1)
        self.assertIn({"set": "checkpointing=selective", "total_bytes": total["selective"]}, read["would_fit"])
        images = self.estimate("resnet50", "micro_batch=4096", "--hardware", "t4", code=1)
        self.assertNotIn("selective", json.dumps(images["would_fit"]))

    def test_bad_input(self):
        def refused(sets, *says, model="gpt2-124m", words=()):
            self.refused("estimate", model, "--set", sets, *words, says=list(says))
        refused("zero=4", "zero=4", "0 to 3", "use zero=3")
        refused("zero=1,precision=fp8", "zero=1", "8-bit", "precision=bf16")
        refused("seq=2048", "gpt2-124m: seq 2048 is beyond the model's 1024 positions", "the nearest is seq=1024")
        refused("dp=0", "from 1 to 16384")
        refused("dp=99999", "from 1 to 16384")
        refused("precision=bf61", 'did you mean "bf16"')
        refused("checkpointing=ful", 'did you mean "full"')
        refused("micro_batch=0", "too small")
        refused("micro_batch=x", "micro_batch")
        refused("micro_batch=1000000000,accumulate=1000000000", "beyond what can be counted")
        refused("zeero=1", 'did you mean "zero"')
        refused("seq", "must be name=value")
        refused("seq=64,seq=128", "seq is set twice")
        refused("seq=64", "reads images", model="resnet-tiny")
        refused("seq=8192", "sliding window of 4096 tokens", "seq=4096", model=MODELS / "mistral-7b" / "config.json")
        refused("precision=fp8", "does not multiply in 8 bits", words=("--hardware", "a100-sxm-80gb"))
        refused("precision=fp16", "epyc-7763 is a CPU", words=("--hardware", "epyc-7763"))
        self.refused("estimate", "gpt2-125m", says='did you mean "gpt2-124m"')
        self.refused("estimate", "gpt2-124m", "--hardware", "h100", says="h100")
        self.refused("estimate", says="model is required")


if __name__ == "__main__":
    unittest.main()
