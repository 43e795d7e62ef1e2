"""assay estimate by formula: architectures, methods and layouts that Assay does not train, serving, and refusals."""

import json
import pathlib
import unittest

from assay_case import AssayCase

TESTS = pathlib.Path(__file__).resolve().parents[1]
PUBLISHED = {each["name"]: each for each in json.loads((TESTS / "architectures/published.json").read_text(encoding="utf-8"))}
TERMS = ["weights", "gradients", "optimizer", "activations", "workspace", "communication", "allocator", "allowance"]


class EstimateByFormula(AssayCase):
    def config(self, name, **more):
        return self.write(f"{name}/config.json", PUBLISHED[name]["config"] | more)

    def estimate(self, model, sets="", *words, code=0):
        done = self.assay("estimate", model, *(["--set", sets] if sets else []), *words, "--json")
        self.assertEqual((done.returncode, done.stderr), (code, ""))
        return json.loads(done.stdout)

    def test_files_that_cannot_be_trained_have_memory(self):
        yarn = {"factor": 4.0, "original_max_position_embeddings": 32768, "type": "yarn"}
        awq = {"bits": 4, "group_size": 128, "quant_method": "awq", "version": "gemm", "zero_point": True}
        for path, name in ((self.config("qwen3-4b"), "qwen3-4b"), (self.config("deepseek-coder-6.7b"), "deepseek-coder-6.7b"),
                           (self.config("qwen2-7b", rope_scaling=yarn), "qwen2-7b"),
                           (self.config("llama-3.1-8b", quantization_config=awq), "llama-3.1-8b")):
            read = self.estimate(path, "precision=bf16")
            self.assertEqual((read["by"], read["parameters"]), ("formula", PUBLISHED[name]["parameters"]))
            self.assertGreater(read["total_bytes"], 18 * read["parameters"])
            self.assertEqual((read["fits"], read["hardware"], read["would_fit"]), (None, None, []))

    def test_every_published_configuration_is_planned(self):
        for name, each in PUBLISHED.items():
            read = self.estimate(self.config(name), "method=lora")
            self.assertEqual((read["parameters"], read["active_parameters"]), (each["parameters"], each["active"]), name)
            (rank,) = read["ranks"]
            self.assertEqual(list(rank["terms"]), TERMS)
            self.assertLessEqual(abs(sum(rank["terms"].values()) - rank["total_bytes"]), len(TERMS))

    def test_the_document_of_a_layout(self):
        read = self.estimate("llama-8b", "tp=2,sp=true,pp=2,chunks=2,dp=2,zero=1,accumulate=8,seq=4096", "--hardware", "h100-sxm")
        self.assertEqual(read["layout"], {"dp": 2, "tp": 2, "sp": True, "pp": 2, "chunks": 2, "ep": 1, "cp": 1, "zero": 1})
        self.assertEqual([(rank["rank"], rank["alike"], rank["stage"]) for rank in read["ranks"]], [(0, 4, 0), (4, 4, 1)])
        self.assertEqual(read["total_bytes"], max(rank["total_bytes"] for rank in read["ranks"]))
        self.assertAlmostEqual(read["bubble"], 1 / 17)
        self.assertEqual([each["group"] for each in read["communication"]], ["tp", "dp", "pp"])
        for each in read["communication"]:
            self.assertTrue(each["within_host"])
            self.assertAlmostEqual(each["seconds_at_least"], each["bytes"] / 4.5e11)
        far = self.estimate("llama-8b", "tp=2,dp=8", "--hardware", "h100-sxm")["communication"]
        self.assertEqual([(each["group"], each["within_host"], each["seconds_at_least"] is None) for each in far],
                         [("tp", True, False), ("dp", False, True)])
        near = self.estimate("llama-8b", "tp=2,dp=8,gpus_per_host=16", "--hardware", "h100-sxm")["communication"]
        self.assertTrue(near[1]["within_host"])
        for formula in read["formulas"].values():
            self.assertGreater(formula["value"], 0)

    def test_what_assay_plans_itself_stays_a_plan(self):
        read = self.estimate("llama-160m", "dp=2,zero=1,tp=1")
        self.assertNotIn("by", read)
        self.assertNotIn("by", self.estimate(TESTS / "models/qwen2-7b/config.json", "seq=64"))

    def test_adapters_fit_where_full_training_does_not(self):
        full = self.estimate("llama-8b", "optimizer=adamw,micro_batch=1", "--hardware", "rtx-4090", code=1)
        self.assertFalse(full["fits"])
        read = self.estimate("llama-8b", "method=qlora,micro_batch=1,seq=2048", "--hardware", "rtx-4090")
        self.assertEqual((read["fits"], read["step"]["lora_rank"]), (True, 16))
        self.assertLess(read["trained_parameters"], read["parameters"] / 100)
        text = self.assay("estimate", "llama-8b", "--set", "method=qlora,micro_batch=1,seq=2048").stdout
        self.assertIn("by formula, which no step of Assay confirms", text)
        self.assertIn("adapters of rank 16 on all matrices", text)
        self.assertLess(max(map(len, text.splitlines())), 121)

    def test_offload_says_how_long_it_takes(self):
        read = self.estimate("llama-8b", "offload=optimizer,micro_batch=1", "--hardware", "h100-sxm")
        offload = read["offload"]
        self.assertEqual(offload["link"], "PCIe 5 x16")
        self.assertAlmostEqual(offload["seconds_at_least"], offload["bytes"] / 6.4e10)
        self.assertEqual(read["ranks"][0]["host_bytes"], 12 * read["parameters"])
        self.assertIsNone(self.estimate("llama-8b", "offload=optimizer")["offload"]["seconds_at_least"])

    def test_what_would_fit_does(self):
        path = self.config("mixtral-8x7b")
        asked = {"micro_batch": "2", "seq": "4096"}
        read = self.estimate(path, "micro_batch=2,seq=4096", "--hardware", "h100-sxm", code=1)
        self.assertTrue(read["would_fit"])
        for other in read["would_fit"]:
            sets = asked | dict(pair.split("=") for pair in other["set"].split(","))
            again = self.estimate(path, ",".join(f"{name}={value}" for name, value in sets.items()), "--hardware", "h100-sxm")
            self.assertEqual((again["fits"], again["total_bytes"]), (True, other["total_bytes"]))
        text = self.assay("estimate", path, "--hardware", "h100-sxm")
        self.assertEqual(text.returncode, 1)
        self.assertIn("would fit: --set ", text.stdout)
        self.assertIn("12,879,925,248 of them used by a token", text.stdout)
        self.estimate(path, "", "--hardware", "epyc-7763", code=3)

    def test_the_step_of_pytorch(self):
        read = self.estimate("llama-8b", "engine=torch,micro_batch=1,seq=2048", "--hardware", "h200-sxm")
        (rank,) = read["ranks"]
        torch = read["torch"]
        self.assertEqual((read["engine"], read["fits"], list(rank["terms"])), ("torch", True, TERMS))
        self.assertEqual((rank["terms"]["weights"], rank["terms"]["optimizer"]), (2 * read["parameters"], 4 * read["parameters"]))
        self.assertLessEqual(abs(sum(rank["terms"].values()) - rank["total_bytes"]), len(TERMS))
        self.assertLessEqual(abs(torch["tensor_bytes"] + rank["terms"]["allocator"] - torch["reserved_bytes"]), len(TERMS))
        self.assertEqual(torch["tensor_bytes"], max(torch["peaks"].values()))
        text = self.assay("estimate", "llama-8b", "--set", "engine=torch,micro_batch=1,seq=2048").stdout
        self.assertIn("PyTorch: tensors ", text)
        self.assertIn("not measured on a GPU", text)
        self.assertNotIn("torch", self.estimate("llama-8b", "engine=assay,seq=2048"))  # the exact plan
        kept = [self.estimate("llama-8b", f"engine=torch,seq=2048,{more},checkpointing={again}")["torch"]["kept_bytes"]
                for more in ("method=full", "method=lora,dp=2,zero=3") for again in ("none", "selective", "full")]
        self.assertEqual(kept[:3], sorted(kept[:3], reverse=True))
        self.assertEqual(kept[3:], sorted(kept[3:], reverse=True))
        self.assertEqual(len(set(kept)), 6)
        self.assertEqual(self.estimate(self.config("gemma-2-2b"), "engine=torch,seq=512")["engine"], "torch")

    def test_what_would_fit_in_pytorch_does(self):
        asked = {"engine": "torch", "micro_batch": "4", "seq": "4096"}
        sets = ",".join(f"{name}={value}" for name, value in asked.items())
        read = self.estimate("llama-8b", sets, "--hardware", "h100-sxm", code=1)
        self.assertTrue(read["would_fit"])
        for other in read["would_fit"]:
            changed = asked | dict(pair.split("=") for pair in other["set"].split(","))
            again = self.estimate("llama-8b", ",".join(f"{name}={value}" for name, value in changed.items()),
                                  "--hardware", "h100-sxm")
            self.assertEqual((again["fits"], again["total_bytes"]), (True, other["total_bytes"]))

    def test_serving(self):
        path = self.config("llama-2-7b")
        read = self.estimate(path, "", "--serve", "--context", "4096")
        self.assertEqual(read["terms"]["kv_cache"], 2 * 2 * 4096 * 4096 * 32)
        self.assertEqual(read["total_bytes"], sum(read["terms"].values()))
        for weights, low, high in (("fp16", 14, 16), ("int8", 8, 10), ("int4", 5, 6), ("nf4", 5, 6)):
            total = self.estimate(path, f"weights={weights}", "--serve")["total_bytes"] / 2**30
            self.assertTrue(low <= total <= high, (weights, total))
        half = self.estimate(path, "", "--serve", "--kv-dtype", "fp8")
        self.assertEqual(2 * half["terms"]["kv_cache"], read["terms"]["kv_cache"])
        large = self.estimate(path, "", "--serve", "--concurrency", "36", "--hardware", "h100-sxm", code=1)
        self.assertGreater(large["max_sequences"], 1)
        for other in large["would_fit"]:
            words = other["flags"].split()
            concurrency = [] if "--concurrency" in words else ["--concurrency", "36"]
            again = self.estimate(path, "", "--serve", *concurrency, *words, "--hardware", "h100-sxm")
            self.assertEqual((again["fits"], again["total_bytes"]), (True, other["total_bytes"]))
        self.assertGreaterEqual(len(large["would_fit"]), 3)
        self.estimate(path, "", "--serve", "--hardware", "epyc-7763", code=3)
        text = self.assay("estimate", path, "--serve", "--hardware", "h100-sxm").stdout
        self.assertIn("at most --concurrency ", text)

    def test_unknown_members_are_named(self):
        text = self.assay("estimate", self.config("qwen3-0.6b", num_memory_tokens=16)).stdout
        self.assertIn('note: the member "num_memory_tokens" is not known', text)

    def test_bad_input(self):
        def refused(sets, *says, model="llama-8b", words=()):
            self.refused("estimate", model, *(["--set", sets] if sets else []), *words, says=list(says))
        refused("tp=16", "tp=16", "use tp=8")
        refused("tp=0", "from 1 to 16384")
        refused("pp=64", "32 layers", "use pp=32")
        refused("pp=2,chunks=2,accumulate=3", "use accumulate=4")
        refused("pp=2,zero=2", "use zero=1")
        refused("ep=2,dp=2", "no experts", "use ep=1")
        refused("cp=3,seq=4096", "use cp=2")
        refused("sp=true", "use sp=false, or tp=2")
        refused("lora_rank=8", "use method=lora or qlora")
        refused("method=lroa", 'did you mean "lora"')
        refused("method=lora,lora_rank=0", "lora_rank")
        refused("method=lora,precision=fp8", "use precision=bf16")
        refused("offload=weights", "epyc-9654 is a CPU", "use offload=none", words=("--hardware", "epyc-9654"))
        refused("tp=2,accumulate=1000000000,micro_batch=1000", "more bytes than can be counted", "accumulate=1")
        refused("engine=tourch", 'did you mean "torch"')
        refused("engine=torch,method=qlora", "use method=lora")
        refused("engine=torch,optimizer=adafactor", "use optimizer=adamw")
        refused("engine=torch,offload=weights", "use offload=none")
        refused("engine=torch,tp=2", "use tp=1")
        refused("engine=torch,dp=2,zero=1", "use zero=3")
        refused("engine=torch", "mixtral", "use engine=assay", model=self.config("mixtral-8x7b"))
        refused("methd=lora", 'did you mean "method"')
        refused("method=lora,seq=1000000", "beyond the model's", "nearest is seq=")
        refused("method=lora,micro_batch=1000000000,seq=4096", "beyond what can be counted")
        refused("method=lora", 'there is no "method"', model="resnet50")
        refused("weights=int3", "did you mean", words=("--serve",))
        refused("micro_batch=2", 'there is no "micro_batch"', words=("--serve",))
        refused("tp=7", "use tp=4", words=("--serve",))
        refused("", "--kv-dtype fp9", 'did you mean "fp8"', words=("--serve", "--kv-dtype", "fp9"))
        refused("", "--context 10000000", "the nearest is --context", words=("--serve", "--context", "10000000"))
        refused("", "--context requires --serve", words=("--context", "64"))
        refused("", "formulas are of transformers", model="resnet50", words=("--serve",))
        refused("", "is an encoder", model="bert-large", words=("--serve",))
        path = self.write("odd/config.json", {"model_type": "mamba", "hidden_size": 8})
        refused("", "config.json: /model_type", '"mamba" is not known', "mixtral", model=path)
        path = self.write("moe/config.json", {"model_type": "mixtral"})
        self.refused("estimate", path, says='"hidden_size" is missing', lines=7)


if __name__ == "__main__":
    unittest.main()
