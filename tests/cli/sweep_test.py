"""Sweeps over a parameter: ordinary cases up to what fits, and a summary that names the knee."""

import json
import unittest

from assay_case import AssayCase


class Sweeps(AssayCase):
    def planned(self, *words):
        """Keys of a plan, as --dry-run prints them."""
        done = self.assay("run", *words, "--dry-run")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [line.split()[0] for line in done.stdout.splitlines() if "/" in line.split()[0]]

    def test_a_sweep_of_sequences_ends_at_the_models_positions(self):
        recipe = ("--set", "transformer.model=gpt2-124m", "--set", "transformer.micro_batch=1")
        keys = self.planned("transformer", *recipe, "--set", "transformer.seq=sweep")
        self.assertEqual([key.split("/seq=")[1].split("/")[0] for key in keys], ["128", "256", "512", "1024"])

    def test_a_sweep_of_image_sizes(self):
        keys = self.planned("resnet", "--set", "resnet.model=resnet-tiny", "--set", "resnet.micro_batch=1",
                            "--set", "resnet.image_size=sweep")
        self.assertIn("/image_size=224", keys[6])
        self.assertNotIn("image_size", self.planned("resnet")[0])
        self.refused("run", "resnet", "--set", "resnet.model=resnet50", "--set", "resnet.image_size=16",
                     says="image_size=16: resnet50 needs at least 32")
        self.refused("run", "resnet", "--set", "resnet.model=resnet-tiny", "--set", "resnet.mode=quality",
                     "--set", "resnet.image_size=64", says="mode=quality takes the model's own")

    def test_micro_batches_up_to_what_fits(self):
        entry = {"family": "transformer", "model": "gpt2-tiny", "seq": 128, "threads": 1, "micro_batch": "sweep",
                 "protocol": {"max_seconds": "20ms", "warmup_seconds": "1ms", "min_samples": 3}}
        keys = self.planned(self.plan(entry))
        self.assertGreater(len(keys), 8)
        # The largest would take long: measure a few, and take the last from the plan.
        done = self.assay("run", self.plan(entry), "--out", "out", "--filter",
                          f"micro_batch=([124]|{keys[-1].split('micro_batch=')[1].split('/')[0]})/")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"train gpt2-tiny f32 128, 1 thread over micro_batch: the knee is [124] \(")
        records = self.records("out")
        self.assertEqual(sorted(record["key"] for record in records), sorted([*keys[:3], keys[-1]]))
        self.assertEqual({record["labels"]["sweep"] for record in records}, {"micro_batch"})
        unfit, = (record for record in records if record["status"] == "skipped")
        self.assertIn("does not fit", unfit["flags"])
        self.assertRegex(unfit["reason"], r"^does not fit: \d+ bytes are planned \(.*\), \d+ bytes are usable \(.*\)$")
        planned, usable = (int(word) for word in unfit["reason"].split() if word.isdigit())
        self.assertGreater(planned, usable)
        sweep, = self.report_of("out")["sweeps"]
        self.assertEqual([point["value"] for point in sweep["points"]], [1, 2, 4])
        self.assertEqual(sweep["largest"], 4)
        self.assertIn(sweep["knee"], (1, 2, 4))
        self.assertEqual(sweep["does_not_fit"]["key"], unfit["key"])
        best = max(point["throughput"]["value"] for point in sweep["points"])
        within = [point["value"] for point in sweep["points"] if point["throughput"]["value"] >= 0.97 * best]
        self.assertEqual(sweep["knee"], within[0])
        page = (self.dir / "out" / "report.html").read_text()
        self.assertIn("sweep-picture-1", page)
        again = self.assay("run", "--resume", "out")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(len(self.records("out")), len(records), "nothing was left to run")

    def test_a_list_of_micro_batches_has_a_knee_and_a_picture(self):
        def step(micro_batch, rate):
            return {"schema": 2, "key": f"transformer/model=gpt2-tiny/micro_batch={micro_batch}", "family": "transformer",
                    "params": {"model": "gpt2-tiny", "micro_batch": micro_batch}, "status": "ok", "device": "cpu",
                    "metrics": [{"name": "throughput", "value": rate, "unit": "tokens/s", "better": "higher"}]}
        self.run_dir(step(1, 50), step(2, 99), step(8, 100))
        sweep, = self.report_of("r")["sweeps"]
        self.assertEqual((sweep["parameter"], sweep["knee"], sweep["best"]), ("micro_batch", 2, 8))
        self.assay("report", "r", "--html", "r.html")
        self.assertIn("sweep-picture-1", (self.dir / "r.html").read_text())
        self.run_dir(step(1, 50), step(2, 99), name="two")
        self.assertEqual(self.report_of("two")["sweeps"], [])

    def test_a_sweep_ends_two_doublings_after_its_knee(self):
        """Values that earlier parts of a run measured count: the rest is skipped, with the knee."""
        entry = {"family": "transformer", "model": "gpt2-tiny", "seq": 16, "threads": 1, "micro_batch": "sweep",
                 "protocol": {"max_seconds": "20ms", "warmup_seconds": "1ms", "min_samples": 3}}
        done = self.assay("run", self.plan(entry), "--out", "out", "--filter", "micro_batch=([124]|64|128)/")
        self.assertEqual(done.returncode, 0, done.stderr)
        run = self.dir / "out"
        lines = (run / "records.jsonl").read_text().splitlines()
        kept = []
        for record in map(json.loads, lines):
            if "/micro_batch=1/" in record["key"] or "/micro_batch=2/" in record["key"] or "/micro_batch=4/" in record["key"]:
                for metric in record["metrics"]:
                    if metric["name"] == "throughput":
                        metric["value"] = 1e12
                kept.append(json.dumps(record))
        (run / "records.jsonl").write_text("\n".join(kept) + "\n")
        again = self.assay("run", "--resume", "out")
        self.assertEqual(again.returncode, 0, again.stderr)
        skipped = [record for record in self.records("out") if record["status"] == "skipped"]
        self.assertEqual(len(skipped), 2)
        for record in skipped:
            self.assertIn("two doublings after the knee of the sweep, micro_batch=1", record["reason"])

    def test_what_has_no_sweep_is_refused(self):
        of = "these have: micro_batch, seq"
        self.refused("run", "transformer", "--set", "transformer.accumulate=sweep",
                     says=['--set transformer.accumulate=sweep: "accumulate" has no sweep', of])
        self.refused("run", "transformer", "--set", "transformer.precision=sweep", says=of)
        self.refused("run", "resnet", "--set", "resnet.runs=sweep", says=of + ", image_size")
        self.refused("run", "gemm", "--set", "gemm.dtype=sweep", says="of gemm no parameter has one")
        self.refused("run", "transformer", "--set", "transformer.micro_batch=sweep", "--set", "transformer.seq=sweep",
                     says='sweeps both "micro_batch" and "seq"')
        self.refused("run", "resnet", "--set", "resnet.seq=sweep", says="reads images")
        self.refused("run", "llama", "--set", "llama.model=llama-8b", "--set", "llama.micro_batch=sweep",
                     says="does not fit")
        self.assertIn('"sweep"', json.dumps(json.loads(self.assay("list", "families", "--json").stdout)))


if __name__ == "__main__":
    unittest.main()
