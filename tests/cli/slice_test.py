"""The family `slice`: a whole step added up from 2 and 4 layers, its record, collectives between ranks, bad input."""
import pathlib
import re
import unittest

from assay_case import AssayCase

MODELS = pathlib.Path(__file__).resolve().parents[1] / "models"
LAYERS = 8
DEEP = {"schema": 1, "family": "llama", "vocabulary": 64, "positions": 64, "layers": LAYERS, "width": 32, "heads": 4,
        "kv_heads": 2, "mlp_width": 64, "norm": "rms", "position": "rotary", "mlp": "silu_gate", "bias": False,
        "tied": False}


class Slice(AssayCase):
    def setUp(self):
        super().setUp()
        self.model = str(self.write("deep.json", DEEP))

    def entry(self, **members):
        return {"family": "slice", "model": self.model, "micro_batch": 2, "seq": 16, "threads": 1,
                "protocol": {"max_seconds": "500ms", "warmup_seconds": "10ms"}, **members}

    def slices(self, code=0, words=(), **members):
        done, records = self.measure(self.entry(**members), words=words)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        [record] = records
        return record, self.by_name(record["metrics"])

    def assert_adds_up(self, record, metrics):
        value = {name: metric["value"] for name, metric in metrics.items()}
        if value["layer_time"] is None:   # on a busy machine two layers more took no longer
            self.assertTrue(any("nothing to add up" in flag for flag in record["flags"]), record["flags"])
            self.assertIsNone(value["predicted_step_time"])
            return
        self.assertAlmostEqual(value["layer_time"], (value["step_time_4_layers"] - value["step_time_2_layers"]) / 2)
        self.assertAlmostEqual(value["outside_layers_time"], value["step_time_2_layers"] - 2 * value["layer_time"])
        self.assertAlmostEqual(value["predicted_step_time"], value["outside_layers_time"] + LAYERS * value["layer_time"])

    def test_the_sum_and_what_forecasts_need(self):
        record, metrics = self.slices()
        self.assert_adds_up(record, metrics)
        throughput, step = metrics["predicted_throughput"], metrics["predicted_step_time"]
        self.assertAlmostEqual(throughput["value"], 2 * 16 / step["value"])
        self.assertEqual((throughput["unit"], throughput["better"]), ("tokens/s", "higher"))
        low, high = throughput["ci95"]
        self.assertLess(low, throughput["value"])
        self.assertGreater(high, throughput["value"])
        self.assertAlmostEqual(low, 2 * 16 / step["ci95"][1])
        self.assertEqual(record["conditions"]["model"], "deep")
        self.assertEqual(record["labels"]["layers"], str(LAYERS))
        self.assertIn("one rank sends nothing", record["labels"]["collectives"])
        for name, value in {"seq": 16, "precision": "f32", "micro_batch": 2, "accumulate": 1}.items():
            self.assertEqual(record["params"][name], value)
        self.assertEqual(record["device"], "cpu")
        self.assertEqual(record["protocol"]["form"], "steps")
        self.assertNotIn("whole_step_time", metrics)

    def test_beside_the_whole_model(self):
        record, metrics = self.slices(whole=True)
        self.assert_adds_up(record, metrics)
        whole = metrics["whole_step_time"]["value"]
        self.assertGreater(whole, 0)
        ratio = metrics["predicted_over_whole"]["value"]
        self.assertAlmostEqual(ratio, metrics["predicted_step_time"]["value"] / whole)
        print(f"{LAYERS} layers: predicted / whole {ratio:.3f}")
        alone, _ = self.slices()
        planned = [self.metrics(each)["planned_memory"] for each in (record, alone)]
        self.assertGreater(planned[0], 1.5 * planned[1], "the whole model needs its own memory, its slices do not")

    def test_the_report_leads_with_the_forecast(self):
        self.slices()
        done = self.assay("report", "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"slice of \S*deep.*tokens/s")

    def test_it_has_a_cost_flops_and_a_limit(self):
        """As a training step has them: FLOPs, MFU where a sheet has a peak, the parts of the step, USD, what holds it back."""
        record, metrics = self.slices()
        if metrics["predicted_step_time"]["value"] is None:
            self.skipTest("nothing to add up on a busy machine")
        step, flops = metrics["predicted_step_time"]["value"], metrics["model_flops"]
        self.assertGreater(flops["value"] * step, 6 * 2 * 16 * LAYERS * 4 * 32 * 32, "6 FLOP a weight and token at least")
        self.assertEqual((flops["unit"], flops["better"], metrics["mfu"]["unit"]), ("FLOP/s", "higher", "1"))
        spans = record["spans"]
        self.assertGreater(spans["forward"] + spans["backward"], 0.2 * step)
        done = self.assay("report", "out", "--price", "3.6", "--json=out.json")
        tables = self.tables()
        usd = {row["per"]: row["usd"]["value"] for row in tables["cost"]}
        self.assertAlmostEqual(usd["million tokens"], 1e-3 * 1e6 / metrics["predicted_throughput"]["value"], places=6)
        [row] = tables["steps"]
        self.assertAlmostEqual(row["forward"], spans["forward"] / max(step, sum(spans[name] for name in (
            "data_wait", "forward", "backward", "exposed_communication", "optimizer"))), places=6)
        self.assertNotIn("no training step was measured", done.stdout)

    def test_a_config_json(self):
        path = self.write("small/config.json", {
            "model_type": "qwen2", "vocab_size": 64, "max_position_embeddings": 64, "hidden_size": 32,
            "intermediate_size": 64, "num_hidden_layers": 5, "num_attention_heads": 4, "num_key_value_heads": 2,
            "hidden_act": "silu"})
        record, _ = self.slices(model=str(path))
        self.assertEqual((record["conditions"]["model"], record["labels"]["layers"]), ("small", "5"))

    def test_memory_is_that_of_the_slices(self):
        # All 80 layers would not fit on this machine; the slices are not run, only planned.
        path = self.write("huge/config.json", {
            "model_type": "llama", "vocab_size": 32, "max_position_embeddings": 4096, "hidden_size": 1024,
            "intermediate_size": 4096, "num_hidden_layers": 1000, "num_attention_heads": 64, "num_key_value_heads": 8,
            "hidden_act": "silu"})
        words = ("--dry-run", "--device", "cpu")
        done = self.assay("run", "slice", "--set", f"slice.model={path},slice.seq=64,slice.micro_batch=1", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.refused("run", "llama", "--set", f"llama.model={path},llama.seq=64,llama.micro_batch=1", *words,
                     says="does not fit into the")

    def test_bad_input_is_one_line_with_the_nearest_that_is_valid(self):
        def refused(sets, *says):
            self.refused("run", "slice", "--device", "cpu", "--out", "no", "--set", sets, says=says)
            self.assertFalse((self.dir / "no").exists())

        refused("slice.model=llama-160", "llama-160", 'did you mean "llama-160m"')
        refused("slice.model=resnet50", "resnet50", "equal layers", "gpt2-124m", "llama-8b")
        refused("slice.model=gpt2-tiny", "has only 2 layers", "at least 4", "gpt2-124m")
        refused("slice.model=gpt2-124m,slice.seq=2048", "seq 2048", "1024 positions", "seq=1024")
        refused("slice.model=gpt2-124m,slice.zero=4", "zero", "3")
        refused("slice.model=gpt2-124m,slice.precision=bf15", "bf15", "bf16")
        refused("slice.modell=gpt2-124m", "modell", 'did you mean "model"')
        refused(f"slice.model={MODELS}/none/config.json", "no such file")

    def test_list_shows_it(self):
        done = self.assay("list")
        self.assertRegex(done.stdout, r"slice\s+the step of a whole transformer")

    def test_a_forged_sum_of_gradients_is_found(self):
        record, _ = self.slices(code=1, ranks=2, words=("--inject", "wrong-sum"))
        failed = [check["name"] for check in record["checks"] if not check["passed"]]
        self.assertEqual(failed, ["ranks_with_other_gradients"])

    def test_collectives_by_size_between_ranks(self):
        parameters = None
        for zero, kinds in ((0, {"all_reduce": 1}), (1, {"reduce_scatter": 1, "all_gather": 1}),
                            (3, {"reduce_scatter": 1, "all_gather": 2})):
            record, metrics = self.slices(ranks=2, zero=zero)
            self.assert_adds_up(record, metrics)
            self.assertIn(f"zero={zero} on 2 ranks", record["labels"]["collectives"])
            found = [re.fullmatch(r"(all_reduce|reduce_scatter|all_gather)_(\d+)x(\d+)", name) for name in metrics]
            sent, seconds = {}, {}
            for kind, count, size in (match.groups() for match in found if match):
                sent[kind] = sent.get(kind, 0) + int(count) * int(size)
                seconds[kind] = seconds.get(kind, 0) + int(count) * metrics[f"{kind}_{count}x{size}"]["value"]
            self.assertEqual(set(sent), set(kinds))
            parameters = parameters or sent["all_reduce"]  # f32, with the gaps between them
            for kind, times in kinds.items():
                self.assertAlmostEqual(sent[kind] / parameters, times, delta=0.05 * times)
                self.assertAlmostEqual(metrics[kind]["value"], seconds[kind])


if __name__ == "__main__":
    unittest.main()
