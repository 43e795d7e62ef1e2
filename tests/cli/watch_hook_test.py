"""The hook of `assay watch` inside of a Python process, with this test in the watcher's place. The clock is made up: work,
waits and the asynchronous device of the stand-in for torch advance it, so that every figure is exact."""

import collections
import json
import mmap
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATH = f"{ROOT / 'harness' / 'watch' / 'hook'}:{ROOT / 'tests' / 'watch' / 'standin'}"
STEP = struct.Struct("<13d")
NAMES = ("end", "total", "data", "backward", "communication", "optimizer", "checkpoint", "cpu", "ready", "parts",
         "backwards", "synced", "syncs")

BEGIN = """
import torch
time = [100.0]
torch.clock = lambda: time[0]
def spin(seconds): time[0] += seconds
def wait_until(end): time[0] = max(time[0], end)
torch.spin, torch.wait_until = spin, wait_until
import assay_watch
assay_watch.now = torch.clock
class Samples:
    def __init__(self, seconds): self.seconds = seconds
    def __len__(self): return STEPS
    def __getitem__(self, index):
        torch.spin(self.seconds)
        return 1.0
"""

JOB = """
parameters = [torch.Parameter(1.0).to_cuda() for _ in range(3)]
optimizer = torch.optim.SGD(parameters)
for step, _ in enumerate(torch.utils.data.DataLoader(Samples(LOAD))):
    with torch.amp.autocast("cuda", dtype="torch.bfloat16"):
        torch.cuda.launch(0.01)
    loss = torch.Tensor(1.0, parameters, 0.09).to_cuda()
    if CAPTURE and step == 10:
        torch.cuda.capturing = True
    loss.backward()
    optimizer.step()
    torch.cuda.capturing = False
    if ITEM:
        loss.item()
"""

CPU_JOB = """
optimizer = torch.optim.SGD([torch.Parameter(1.0)])
for step, _ in enumerate(torch.utils.data.DataLoader(Samples(0.02))):
    if "in_step" in globals(): in_step(step)
    loss = torch.Tensor(1.0, optimizer.param_groups[0]["params"], 0.05)
    loss.backward()
    optimizer.step()
"""


class WatchHookTest(unittest.TestCase):
    def steps(self, code, env=None, **values):
        """What the hook says of the process that runs this code, and its steps."""
        given = "".join(f"{name} = {value!r}\n" for name, value in {"STEPS": 24, **values}.items())
        name = f"assay-hook-test-{os.getpid()}-{self.id()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind("\0" + name)
            listener.listen()
            listener.settimeout(60)
            process = subprocess.Popen([sys.executable, "-c", given + BEGIN + code], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True,
                                       env={**os.environ, "PYTHONPATH": PATH, "ASSAY_WATCH": name, **(env or {})})
            self.addCleanup(process.kill)
            connection, _ = listener.accept()
            with connection:
                text, files, _, _ = socket.recv_fds(connection, 16384, 2)
                out, errors = process.communicate(timeout=60)
        self.maxDiff = None
        self.assertEqual((process.returncode, out, errors), (0, "", ""))
        pages = mmap.mmap(files[0], 0)
        for file in files:
            os.close(file)
        (count,) = struct.unpack_from("<Q", pages, 8)
        state, self.stood_still = struct.unpack_from("<Qd", pages, 32)
        self.window = (state, pages[128:640].rstrip(b"\0").decode())
        steps = [dict(zip(NAMES, STEP.unpack_from(pages, 4096 + i * STEP.size))) for i in range(count)]
        pages.close()
        return json.loads(text), steps

    def with_parts(self, steps, least):
        """Those with all hooks: blocks of steps without them take turns."""
        found = [step for step in steps if step["parts"] == 1]
        self.assertGreaterEqual(len(found), least)
        return found

    def test_parts_of_a_gpus_step_are_its_own_times(self):
        """The host launches at once and then waits in item(): by its own clock backward would take no time."""
        said, steps = self.steps(JOB, LOAD=0.0, ITEM=True, CAPTURE=False)
        self.assertEqual((said["cuda"], said["gpu_parts"], said["dtype"], said["absent"]), (True, True, "torch.bfloat16", {}))
        self.assertEqual(said["gpu"], {"name": "NVIDIA H100 80GB HBM3", "memory": 80_000_000_000,
                                       "uuid": "GPU-0000000-stand-in", "pci": "0000:1b:00.0"})
        self.assertGreaterEqual(len(steps), 22)
        for step in steps[1:]:
            self.assertAlmostEqual(step["total"], 0.1)
        for step in self.with_parts(steps[1:], 12):
            self.assertAlmostEqual(step["backward"], 0.09)
            self.assertEqual(step["syncs"], 1)
            self.assertAlmostEqual(step["synced"], 0.1)

    def test_a_load_behind_which_the_gpu_works_is_no_wait(self):
        for item, waits in ((False, 0.0), (True, 0.03)):
            with self.subTest(item=item):
                _, steps = self.steps(JOB, LOAD=0.03, ITEM=item, CAPTURE=False)
                for step in steps[2:]:
                    self.assertAlmostEqual(step["total"], 0.1 + waits)
                for step in self.with_parts(steps[2:], 10 if item else 1):
                    self.assertAlmostEqual(step["data"], waits)
                    self.assertEqual(step["syncs"], int(item))
                # Those that the device has not ended when the process ends are lost.
                self.assertGreater(len(steps), 20 if item else 3)

    def test_a_graph_that_is_captured_gets_no_event(self):
        said, steps = self.steps(JOB, LOAD=0.0, ITEM=True, CAPTURE=True)
        self.assertTrue(said["gpu_parts"])
        self.assertGreaterEqual(len(steps), 20)   # from then on by the host's clock
        self.assertAlmostEqual(steps[-1]["backward"], 0.0)

    def test_the_signal_for_stacks_ends_no_job(self):
        said, _ = self.steps("""
optimizer = torch.optim.SGD([torch.Parameter(1.0)])
for _ in torch.utils.data.DataLoader(Samples(0.02)):
    optimizer.step()
import faulthandler, os, signal
(number,) = [one for one in range(signal.SIGRTMIN, signal.SIGRTMAX) if signal.getsignal(one) == signal.SIG_IGN]
os.kill(os.getpid(), number)
assert faulthandler.unregister(number)   # as the interpreter does
os.kill(os.getpid(), number)
""")
        self.assertGreater(said["stack_signal"], 0)

    def test_a_job_on_cpus_has_no_device(self):
        said, steps = self.steps("""
optimizer = torch.optim.SGD([torch.Parameter(1.0)])
item = torch.Tensor.item
for _ in torch.utils.data.DataLoader(Samples(0.02)):
    loss = torch.Tensor(1.0, optimizer.param_groups[0]["params"], 0.05)
    loss.backward()
    optimizer.step()
    loss.item()
assert torch.Tensor.item is item
""")
        self.assertEqual((said["cuda"], "gpu" in said), (False, False))
        self.assertEqual(len(steps), 23)
        for step in steps:
            self.assertAlmostEqual(step["total"], 0.07)
            self.assertEqual(step["syncs"], 0)
        for step in self.with_parts(steps, 12):
            self.assertAlmostEqual(step["data"], 0.02)
            self.assertAlmostEqual(step["backward"], 0.05)

    # ---- steps that torch's profiler records

    def recorded(self, code, env=None, **values):
        """The numbers of the steps that count for nothing else, and the trace: its ranges, and its events by category."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        said, steps = self.steps(code, {"ASSAY_WATCH_TRACES": folder.name, **(env or {})}, **values)
        left_out = [number for number, step in enumerate(steps, 1) if step["parts"] == 2]
        if self.window[0] != 2:
            self.assertEqual(os.listdir(folder.name), [])
            return said, left_out, None
        self.assertEqual(os.listdir(folder.name), [self.window[1]])
        with open(pathlib.Path(folder.name) / self.window[1]) as file:
            events = json.load(file)["traceEvents"]
        ranges = [(one["name"], one["dur"] / 1e6) for one in events if one["name"].startswith("ProfilerStep#")]
        return said, left_out, (ranges, collections.Counter(one["cat"] for one in events))

    def test_three_steps_are_recorded(self):
        _, left_out, (ranges, events) = self.recorded(CPU_JOB)
        self.assertEqual(left_out, [11, 12, 13, 14, 15])
        self.assertEqual([name for name, _ in ranges], ["ProfilerStep#12", "ProfilerStep#13", "ProfilerStep#14"])
        for _, seconds in ranges:
            self.assertAlmostEqual(seconds, 0.07)
        self.assertEqual(events, {"cpu_op": 3, "user_annotation": 3 + 3 + 3})
        self.assertGreater(self.stood_still, 0)
        self.assertEqual(self.recorded(CPU_JOB, STEPS=14)[1:], ([11, 12, 13], None))
        self.assertEqual(self.window, (1, ""))

    def test_of_a_gpu_its_kernels_too(self):
        _, left_out, (ranges, events) = self.recorded(JOB, LOAD=0.0, ITEM=True, CAPTURE=False)
        self.assertEqual((left_out, len(ranges)), ([11, 12, 13, 14, 15], 3))
        self.assertEqual(events["kernel"], 3 * 4)
        self.recorded(JOB, LOAD=0.0, ITEM=True, CAPTURE=True)
        self.assertEqual(self.window, (3, "a CUDA graph was being captured"))

    def test_a_job_that_profiles_itself_is_left_alone(self):
        """Its own profiler sees what it would see without ours, whenever it begins: also while ours is prepared or runs."""
        for begins, ends, left_out in ((3, 5, []), (3, 20, []), (11, 12, [11]), (12, 14, [11, 12]), (13, 14, [11, 12, 13]),
                                       (20, 21, [11, 12, 13, 14, 15])):
            for kind in ("torch.profiler.profile()", "torch.autograd.profiler.profile()"):
                with self.subTest(begins=begins, kind=kind):
                    _, out, trace = self.recorded(f"""
own = {kind}
def in_step(step):
    if step == {begins}: own.__enter__()
    if step == {ends}: own.__exit__(None, None, None)
{CPU_JOB}
events = getattr(own, "profiler", own).events
assert len([one for one in events if one["cat"] == "cpu_op"]) == {ends} - {begins}, events
""")
                    self.assertEqual((out, trace is None), (left_out, begins < 20))
                    if begins < 20:
                        self.assertEqual(self.window, (3, "the job profiles itself"))

    def test_what_ends_it(self):
        thread = """
import threading
def in_step(step):
    if step == 13:
        thread = threading.Thread(target=lambda: torch.autograd.profiler._prepare_profiler(None, None))
        thread.start(), thread.join()
"""
        fork = """
def in_step(step):
    if step == 13:
        if os.fork() == 0:
            assert torch.autograd.profiler._events is None
            os._exit(0)
        assert os.wait()[1] == 0
"""
        for code, why, env in ((thread, "the job profiles itself", None), (fork, "the job forked while its steps were recorded", None),
                               ("import sys; sys.modules['torch.profiler'] = None", "ModuleNotFoundError: ", None),
                               ("def refuse(path): raise OSError('a full disk')\n"
                                "torch.profiler.profile.export_chrome_trace = lambda *_: refuse(0)", "OSError: a full disk", None)):
            with self.subTest(why=why):
                _, left_out, _ = self.recorded("import os\n" + code + CPU_JOB)
                self.assertEqual(self.window[0], 3)
                self.assertTrue(self.window[1].startswith(why), self.window)
                self.assertEqual(left_out[0], 11)

    def test_a_torch_with_other_profilers(self):
        said, left_out, _ = self.recorded(CPU_JOB, {"STANDIN_OLD_PROFILER": "1"})
        self.assertIn("_prepare_profiler", said["absent"]["window"])
        self.assertEqual((left_out, self.window[0]), ([], 0))

    def test_not_without_a_folder(self):
        self.steps(CPU_JOB + "assert torch.autograd.profiler._enable_profiler.__name__ == '_enable_profiler'\n"
                             "assert not hasattr(torch.autograd.profiler._enable_profiler, '__wrapped__')\n")
        self.assertEqual(self.window, (0, ""))


if __name__ == "__main__":
    unittest.main()
