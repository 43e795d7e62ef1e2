"""The stand-in for torch has what the hook of `assay watch` holds on to as the real torch has it, and a real job is watched.
Skipped without torch in this Python, or the one that ASSAY_TORCH_PYTHON names."""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from assay_case import AssayCase  # noqa: E402

PYTHON = os.environ.get("ASSAY_TORCH_PYTHON", sys.executable)

# What the hook uses: a path from torch, and whether it is a class, a function or a value.
ASK = """
import inspect, json, sys, tempfile
import torch, torch.distributed
from torch.utils.data import dataloader
from torch.optim import optimizer
from torch.distributed import distributed_c10d as c10d
names = {"version": torch.__version__, "threads": torch.get_num_threads, "backward": torch.autograd.backward,
         "save": torch.save, "pre": optimizer.register_optimizer_step_pre_hook,
         "post": optimizer.register_optimizer_step_post_hook, "iterator": dataloader._BaseDataLoaderIter,
         "next": dataloader._BaseDataLoaderIter.__next__, "loader": dataloader.DataLoader,
         "iter": dataloader.DataLoader.__iter__, "available": torch.distributed.is_available, "work": c10d.Work,
         "prepare": torch.autograd.profiler._prepare_profiler, "enable": torch.autograd.profiler._enable_profiler,
         "profile": torch.profiler.profile, "prepare_trace": torch.profiler.profile.prepare_trace,
         "start_trace": torch.profiler.profile.start_trace, "stop_trace": torch.profiler.profile.stop_trace,
         "export": torch.profiler.profile.export_chrome_trace, "range": torch.profiler.record_function,
         "cpu": torch.profiler.ProfilerActivity.CPU, "cuda": torch.profiler.ProfilerActivity.CUDA,
         "wait": c10d.Work.wait, "all_reduce": c10d.all_reduce, "barrier": c10d.barrier, "broadcast": c10d.broadcast}
kinds = {name: "class" if inspect.isclass(what) else "call" if callable(what) else "value" for name, what in names.items()}
same = {name: getattr(torch.distributed, name) is getattr(c10d, name) for name in ("all_reduce", "barrier", "broadcast")}

seen = []
optimizer.register_optimizer_step_pre_hook(lambda *given: seen.append(("pre", len(given))))
optimizer.register_optimizer_step_post_hook(lambda *given: seen.append(("post", len(given))))
real = hasattr(torch, "nn")
parameter = torch.nn.Parameter(torch.ones(2)) if real else torch.Parameter(1.0)
steps = torch.optim.SGD([parameter], lr=0.1)
handle = parameter.register_post_accumulate_grad_hook(lambda one: seen.append(("grad", one is parameter)))
loss = (parameter * 2).sum() if real else torch.Tensor(1.0, [parameter])
loss.backward()
handle.remove()
steps.step()

# A profile as the hook makes one: what is called, and the ranges of its trace.
def noticed(name):
    call = getattr(torch.autograd.profiler, name)
    setattr(torch.autograd.profiler, name, lambda *given, **named: (seen.append(name), call(*given, **named))[1])
noticed("_prepare_profiler"), noticed("_enable_profiler")
with torch.autograd.profiler.profile():
    pass
own = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True)
own.prepare_trace()
own.start_trace()
step = torch.profiler.record_function("ProfilerStep#7")
step.__enter__()
for batch in dataloader.DataLoader([1.0, 2.0]):
    steps.step()
loss = (parameter * 2).sum() if real else torch.Tensor(1.0, [parameter])
loss.backward()
step.__exit__(None, None, None)
own.stop_trace()
with tempfile.TemporaryDirectory() as folder:
    own.export_chrome_trace(folder + "/trace.json")
    trace = json.load(open(folder + "/trace.json"))
seen += sorted({(one["cat"], one["name"].split(":")[0]) for one in trace["traceEvents"] if one.get("cat") in ("user_annotation", "cpu_op")
                and not one["name"].startswith(("aten", "torch::", "Optimizer.zero", "detach")) and "Backward0" not in one["name"].split(":")[0]})
seen.append([type(trace[name]).__name__ for name in ("baseTimeNanoseconds", "host_name", "deviceProperties")])
(one,) = [one for one in trace["traceEvents"] if one["name"] == "ProfilerStep#7" and one["ph"] == "X"]
seen.append(sorted(name for name in one if name in ("ts", "dur", "tid", "pid", "cat")))
print(json.dumps([kinds, same, seen, type(steps.param_groups[0]["params"]).__name__, parameter.is_cuda]))
"""

JOB = """
import os, sys, time
import torch
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self): return 8 * 150
    def __getitem__(self, i):
        time.sleep(float(os.environ.get("LOAD", "0")) / 8)
        return torch.full((64,), i / 1200.0)
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))
world = int(os.environ.get("WORLD_SIZE", "1"))
if world > 1:
    torch.distributed.init_process_group("gloo")
    if os.environ.get("FSDP"):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (world,))
        for part in (model[0], model[2], model):
            fully_shard(part, mesh=mesh)
    else:
        model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters())
for step, x in enumerate(DataLoader(Data(), batch_size=8, num_workers=int(os.environ.get("WORKERS", "0")))):
    loss = (model(x) - x).square().mean()
    if os.environ.get("RANK") == os.environ.get("SLOW", "none"):
        loss.register_hook(lambda gradient: time.sleep(0.03))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(repr(loss.item()))
"""


def has_torch():
    return subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode == 0


@unittest.skipUnless(has_torch(), "no torch")
class WatchTorch(AssayCase):
    def python(self, code, **env):
        done = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, env={**os.environ, **env}, cwd=self.dir)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def watch(self, *words, out="out", **env):
        done = self.assay("watch", "--out", out, "--", *words, env=env, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_the_stand_in_is_like_torch(self):
        real = json.loads(self.python(ASK))
        stand_in = json.loads(self.python(ASK, PYTHONPATH=str(ROOT / "tests" / "watch" / "standin")))
        self.assertEqual(stand_in, real)

    def test_the_loss_is_the_same_to_the_bit(self):
        job = self.write("train.py", JOB)
        for workers in ("0", "2"):
            alone = subprocess.run([PYTHON, job], capture_output=True, text=True, env={**os.environ, "WORKERS": workers})
            done = self.watch(PYTHON, job, out=f"out{workers}", WORKERS=workers)
            self.assertEqual(done.stdout, alone.stdout)
            self.assertIn("149 steps", done.stderr)
            self.assertNotIn("Not seen", done.stderr)
            self.assertRegex(done.stderr, r"steps 12 to 14, recorded by torch.profiler.*\noperators ")
            self.assertNotRegex(done.stderr, "USDT|ERROR")   # of Kineto, which writes to the job's stderr

    def test_the_parts_and_a_starved_job(self):
        job = self.write("train.py", JOB)
        done = self.watch(PYTHON, job, LOAD="0.02")
        spans = dict(self.records()[0]["spans"])
        self.assertGreater(spans["data_wait"], 0.02)
        for part in ("forward", "backward", "optimizer"):
            self.assertGreater(spans[part], 0)
        self.assertIn("waits for data", done.stderr)

    def test_a_profiler_of_the_jobs_own(self):
        """Whenever it begins, it sees what it sees without ours."""
        for first in (3, 11, 13, 30):
            job = self.write("train.py", JOB.replace("    loss = (model", f"""
    if step == {first}:
        own = torch.profiler.profile()
        own.__enter__()
    if step == {first} + 5:
        own.__exit__(None, None, None)
        print(sum(one.count for one in own.key_averages() if one.key == "aten::addmm"))
    loss = (model""", 1))
            done = self.watch(PYTHON, job, out=f"own{first}")
            self.assertEqual(done.stdout.split()[0], "10")
            self.assertEqual("No steps were recorded: the job profiles itself." in done.stderr, first < 30, done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_workers_that_are_forked_while_steps_are_recorded(self):
        job = self.write("train.py", JOB.replace("    loss = (model", """
    if step == 12:
        assert sum(one.item() for one in DataLoader([1.0, 2.0], num_workers=2)) == 3
    loss = (model""", 1))
        done = self.watch(PYTHON, job)
        self.assertIn("No steps were recorded: the job forked while its steps were recorded.", done.stderr)

    def test_the_parts_are_those_of_torchs_profiler(self):
        """Of one job, as shares of a step: all steps by the hooks, and three by the profiler."""
        job = self.write("train.py", JOB.replace("(64, 256)", "(64, 4096)").replace("(256, 64)", "(4096, 64)").replace(
            "batch_size=8", "batch_size=8 * 4").replace("8 * 150", "8 * 4 * 60"))
        launcher = [PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29757", job]
        self.watch(*launcher, LOAD="0.01", OMP_NUM_THREADS="1")
        kept = [str(self.dir / "out" / "traces" / f"rank{rank}.json.gz") for rank in range(2)]
        self.assertEqual(self.assay("import", "kineto", *kept, "--out", "imported").returncode, 0)
        shares = []
        for run in ("out", "imported"):
            spans = dict(self.records(run)[0]["spans"])
            parts = [spans[name] for name in ("data_wait", "forward", "backward", "optimizer", "exposed_communication")]
            shares.append([part / sum(parts) for part in parts])
        for watched, traced in zip(*shares):
            self.assertAlmostEqual(watched, traced, delta=0.05, msg=shares)

    def test_a_rank_that_is_slow_in_backward_is_named(self):
        job = self.write("train.py", JOB)
        launcher = [PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29755", job]
        done = self.watch(*launcher, SLOW="1", OMP_NUM_THREADS="1")
        self.assertRegex(done.stderr, re.compile(r"others wait for rank 1: its backward pass takes longer"))
        self.assertRegex(done.stderr, r"rank 1 .*waited for")

    def test_under_fsdp_too(self):
        """It calls Python's collectives in the middle of backward; what is left is the rank's own."""
        job = self.write("train.py", JOB)
        launcher = [PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29756", job]
        done = self.watch(*launcher, SLOW="1", FSDP="1", OMP_NUM_THREADS="1")
        self.assertRegex(done.stderr, re.compile(r"others wait for rank 1: its backward pass takes longer"))
        self.assertNotIn("own_backward", done.stderr)


if __name__ == "__main__":
    unittest.main()
