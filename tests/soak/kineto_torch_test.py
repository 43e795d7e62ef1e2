"""Traces of the real torch: FLOPs are those that torch counts itself, and the parts of a job's steps are those that `assay watch`
sees of the same steps. Skipped without torch in this Python, or the one that ASSAY_TORCH_PYTHON names."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from assay_case import AssayCase  # noqa: E402

PYTHON = os.environ.get("ASSAY_TORCH_PYTHON", sys.executable)

# Products of every kind, forwards and backwards, under the profiler; prints what torch's own counter says of one step.
COUNTED = """
import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.flop_counter import FlopCounterMode
torch.manual_seed(0)
mlp = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 8, bias=False))
convs = torch.nn.ModuleList([torch.nn.Conv2d(3, 8, 3, stride=2, padding=1), torch.nn.Conv2d(8, 8, 3, dilation=2),
                             torch.nn.ConvTranspose2d(8, 4, 3, stride=2, padding=1, output_padding=1)])
def step():
    loss = mlp(torch.randn(4, 5, 64)).sum()
    x = torch.randn(2, 3, 32, 32)
    for conv in convs:
        x = conv(x)
    loss = loss + x.sum() + F.conv1d(torch.randn(2, 3, 50), torch.randn(6, 3, 5, requires_grad=True)).sum()
    loss = loss + torch.bmm(torch.randn(3, 4, 5), torch.randn(3, 5, 6, requires_grad=True)).sum()
    loss = loss + torch.baddbmm(torch.randn(3, 4, 6), torch.randn(3, 4, 5), torch.randn(3, 5, 6, requires_grad=True)).sum()
    loss = loss + torch.mm(torch.randn(4, 5).bfloat16(), torch.randn(5, 6).bfloat16()).sum()
    loss = loss + torch.einsum("bij,bjk->bik", torch.randn(3, 4, 5), torch.randn(3, 5, 6)).sum()
    with torch.autocast("cpu", torch.bfloat16):
        loss = loss + mlp(torch.randn(4, 64)).sum() + torch.mm(torch.randn(7, 8), torch.randn(8, 9)).sum()
    with torch.no_grad():
        # Backwards, torch's counter takes grouped convolutions for dense ones.
        F.conv2d(torch.randn(2, 8, 9, 9), torch.randn(8, 1, 3, 3), groups=8)
        q = torch.randn(2, 4, 16, 8)
        F.scaled_dot_product_attention(q, q, q)
    loss.backward()
with profile(activities=[ProfilerActivity.CPU], record_shapes=True, schedule=schedule(wait=0, warmup=1, active=3, repeat=1),
             on_trace_ready=lambda p: p.export_chrome_trace("counted.json")) as p:
    for i in range(4):
        step()
        p.step()
with FlopCounterMode(display=False) as counter:
    step()
print(counter.get_total_flops())
"""

# The last 60 steps are profiled; from step 300 on all hooks of the watcher are set.
PARTS = """
import os
import torch
from torch.profiler import ProfilerActivity, profile, schedule
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self): return 256 * 370
    def __getitem__(self, i): return torch.full((256,), i / 94720)
torch.manual_seed(0)
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
layers = [torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256)]
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
optimizer = torch.optim.AdamW(model.parameters())
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=304, warmup=5, active=60, repeat=1),
             on_trace_ready=lambda p: p.export_chrome_trace(f"rank{rank}.json")) as p:
    for step, x in enumerate(DataLoader(Data(), batch_size=256)):
        if step == 369: break
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        p.step()
"""
STEPS = 60
NUMBERS = {"data_wait": 2, "backward": 3, "exposed_communication": 4, "optimizer": 5, "checkpoint": 6}  # of a step in watch.json


def has_torch():
    return subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode == 0


@unittest.skipUnless(has_torch(), "no torch")
class KinetoTorch(AssayCase):
    def imported(self, *files, out):
        done = self.assay("import", "kineto", *files, "--out", out, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_flops_are_those_that_torch_counts(self):
        done = subprocess.run([PYTHON, "-c", COUNTED], capture_output=True, text=True, cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.imported("counted.json", out="run")
        uses = json.loads((self.dir / "run/run.json").read_text())["trace"]["uses"]
        self.assertAlmostEqual(sum(use["work"]["flops"] for use in uses if "work" in use), int(done.stdout), delta=1)

    def test_the_parts_are_those_that_the_watcher_sees(self):
        job = self.write("train.py", PARTS)
        done = self.assay("watch", "--out", "seen", "--", PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", "2",
                          "--master-port", "29757", job, timeout=1200, env={"OMP_NUM_THREADS": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.imported("rank0.json", "rank1.json", out="traced")
        [record] = self.records("traced")
        for rank in json.loads((self.dir / "seen/watch.json").read_text())["ranks"]:
            steps = rank["steps"][-STEPS:]
            self.assertEqual(len(steps), STEPS)
            whole = sum(step[1] for step in steps) / STEPS
            seen = {part: sum(step[at] for step in steps) / STEPS for part, at in NUMBERS.items()}
            seen["forward"] = whole - sum(seen.values())
            traced = {part: record["spans"][f"rank {rank['rank']} {part}"] for part in seen}
            print({part: (f"{100 * seen[part] / whole:.1f} %", f"{100 * traced[part] / whole:.1f} %") for part in seen}, file=sys.stderr)
            for part in seen:
                self.assertLess(abs(seen[part] - traced[part]), 0.05 * whole, part)


if __name__ == "__main__":
    unittest.main()
