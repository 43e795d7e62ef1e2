"""The step of whole models added up from slices, beside the whole models, measured in turn. On a quiet machine.
usage: slice_test.py [MODEL...]"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../cli"))
from assay_case import AssayCase  # noqa: E402

TOLERANCE = 0.05
MODELS = {"gpt2-124m": {"micro_batch": 1, "seq": 256}, "llama-160m": {"micro_batch": 1, "seq": 256},
          "gpt2-355m": {"micro_batch": 1, "seq": 128}, "bert-large": {"micro_batch": 1, "seq": 128}}
CHOSEN = [word for word in sys.argv[1:] if word in MODELS]


class Slices(AssayCase):
    def test_the_sum_is_the_whole(self):
        for model in CHOSEN or MODELS:
            with self.subTest(model):
                entry = {"family": "slice", "model": model, "whole": True, **MODELS[model],
                         "protocol": {"max_seconds": "120s"}}
                done, [record] = self.measure(entry)
                self.assertEqual(done.returncode, 0, done.stderr)
                ratio = self.by_name(record["metrics"])["predicted_over_whole"]
                low, high = ratio["ci95"]
                print(f"{model}: predicted / whole {ratio['value']:.3f} [{low:.3f}, {high:.3f}]", flush=True)
                self.assertLessEqual(abs(ratio["value"] - 1), TOLERANCE)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
