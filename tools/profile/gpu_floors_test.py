"""Checks the totals of docs/gpu-floors.md against the models' parameter counts and the hardware sheets."""

import json
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPUS = ("h100-sxm", "h200-sxm")  # in the order of the columns


def config(folder, name):
    return json.loads((ROOT / "configs" / folder / f"{name}.json").read_text())


def sections():
    """The tables of the page: {title: {ops: (TFLOP, GB, floor, predicted, floor, predicted)}}, times in ms on GPUS."""
    tables = {}
    for line in (ROOT / "docs" / "gpu-floors.md").read_text().splitlines():
        if line.startswith("## "):
            rows = tables.setdefault(line[3:], {})
        elif cells := re.fullmatch(r"\| \**([a-z0-9 -]+?)\** \| \d+ \|([-\d. |]+)\|", line):
            rows[cells[1]] = tuple(float(cell) for cell in cells[2].split("|"))
    return tables


class Page(unittest.TestCase):
    def setUp(self):
        self.sections = sections()
        self.assertEqual(len(self.sections), 4)

    def test_products_are_six_flops_per_weight_and_token(self):
        for title, model, tokens in (("GPT-2 124M, 64 sequences of 1,024, bf16", "gpt2-124m", 64 * 1024),
                                     ("Llama-1B, 8 sequences of 2,048, bf16", "llama-1b", 8 * 2048),
                                     ("Llama-1B, 8 sequences of 2,048, fp8", "llama-1b", 8 * 2048)):
            made = config("models", model)
            self.assertTrue(made.get("tied", True))  # the head's product makes up for the embedding
            positions = made["positions"] * made["width"] if made["position"] == "learned" else 0
            flops = 6 * tokens * (made["parameters"] - positions)
            self.assertAlmostEqual(self.sections[title]["matrix products"][0] * 1e12 / flops, 1, delta=2e-3, msg=title)

    def test_convolutions_are_those_published(self):
        # 4.09 G multiply-adds forward (torchvision), three times, but for the data gradient of the first layer.
        flops = 256 * (3 * 2 * 4.09e9 - 2 * 112 * 112 * 64 * 7 * 7 * 3)
        self.assertAlmostEqual(self.sections["ResNet-50, 256 images, bf16"]["convolutions"][0] * 1e12 / flops, 1, delta=2e-3)

    def test_the_optimizer_moves_every_parameter(self):
        # f32 gradients are read twice, masters and moments read and written, bf16 copies written.
        for title, rows in self.sections.items():
            model, moments = {"R": ("resnet50", 1), "G": ("gpt2-124m", 2), "L": ("llama-1b", 2)}[title[0]]
            moved = config("models", model)["parameters"] * (4 + 4 + 8 * (1 + moments) + 2) / 1e9
            self.assertAlmostEqual(rows["optimizer"][1], moved, delta=0.051, msg=title)

    def test_no_row_is_faster_than_the_hardware(self):
        for title, rows in self.sections.items():
            sums = [sum(column) for column in zip(*(row for name, row in rows.items() if name != "step"))]
            for total, of_step in zip(sums, rows["step"], strict=True):
                self.assertAlmostEqual(total, of_step, delta=0.5, msg=title)
            for place, gpu in enumerate(GPUS):
                sheet = config("hardware", gpu)
                peak = sheet["peak"]["fp8_e4m3" if title.endswith("fp8") else "bf16"]
                for name, (tflop, gigabytes, *times) in rows.items():
                    floor, predicted = times[2 * place:2 * place + 2]
                    bound = 1e3 * max((tflop - 0.005) * 1e12 / peak, (gigabytes - 0.05) * 1e9 / sheet["memory_bandwidth"])
                    self.assertGreaterEqual(floor + 0.005, bound, f"{title}: {name} on {gpu}")
                    self.assertGreaterEqual(predicted, floor, f"{title}: {name} on {gpu}")

    def test_assumed_fractions_are_below_the_best_published(self):
        """8192 cubed on an H100: 730 to 765 TFLOP/s in bf16 (gpu-fryer), 1,075 to 1,170 in fp8 with full accumulation."""
        page = " ".join((ROOT / "docs" / "gpu-floors.md").read_text().split())
        bf16, fp8 = map(int, re.search(r"from 2,048 (\d+)% of the peak in bf16 and (\d+)% in fp8", page).groups())
        self.assertLess(bf16 * 9.89, 730)
        self.assertTrue(1075 <= fp8 * 19.79 <= 1170)
        self.assertTrue(35 <= int(re.search(r"(\d+)% in convolutions", page)[1]) <= 45)
        for title, rows in self.sections.items():  # and predictions use them
            tflop, _, _, h100, _, h200 = rows["matrix products"]
            if tflop > 1 and not title.endswith("fp8"):
                self.assertLess(tflop * 1e3 / min(h100, h200), 730, title)


if __name__ == "__main__":
    unittest.main()
