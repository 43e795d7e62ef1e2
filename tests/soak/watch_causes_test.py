"""Causes that slow a real training job down, injected one at a time: the right one must be named first, and the job without
it must be quiet. Real PyTorch on CPUs; skipped without it in this Python, or the one that ASSAY_TORCH_PYTHON names.
ASSAY_CAUSES runs of each cause (1; ASSAY_CAUSE=a,b: of these), ASSAY_CLEAN_JOBS clean jobs (1) and ASSAY_RANK_JOBS of each
fault of ranks (1): the full series is 20, 100 and 20. What others compute here makes it worthless, so it wants a quiet
machine."""

import os
import pathlib
import shutil
import subprocess
import sys
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from assay_case import AssayCase  # noqa: E402

PYTHON = os.environ.get("ASSAY_TORCH_PYTHON", sys.executable)

JOB = """
import os, time
import torch
from torch.utils.data import DataLoader, Dataset
cause, steps = os.environ.get("CAUSE", ""), int(os.environ.get("STEPS", "120"))
rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
late = rank == 1 and world > 1
torch.manual_seed(0)
torch.set_num_threads(int(os.environ.get("THREADS", "1")))
def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
class Data(Dataset):
    def __len__(self):
        return 8 * steps
    def __getitem__(self, i):
        if cause == "sleeping-loader":
            time.sleep(0.006)
        if cause == "slow-worker":   # decodes longer than a step takes
            spin(0.008)
        if cause == "disk":
            with open(os.environ["FILES"], "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                file.seek(i % 64 << 20)
                for _ in range(8):
                    file.read(1 << 17)
        return torch.full((512,), i / 1000.0)
width = 16 if cause == "tiny-batches" else 768
model = torch.nn.Sequential(torch.nn.Linear(512, width), torch.nn.ReLU(), torch.nn.Linear(width, width), torch.nn.ReLU(),
                            torch.nn.Linear(width, 512))
if world > 1:
    torch.distributed.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
log = open(os.environ["LOG"], "w")
loader = DataLoader(Data(), batch_size=8, num_workers=1 if cause == "slow-worker" else 0)
for step, x in enumerate(loader):
    x = x.repeat(1 if cause == "tiny-batches" else 16, 1)
    if cause == "slow-forward" and late:
        time.sleep(0.03)
    loss = (model(x) - x).square().mean()
    if cause == "slow-backward" and late:
        loss.register_hook(lambda gradient: time.sleep(0.03))
    optimizer.zero_grad()
    loss.backward()
    if cause == "checkpoint" and step % 20 == 19:
        torch.save([torch.ones(4 << 20)] * 4, os.environ["LOG"] + ".pt")
    if cause == "logging":
        for _ in range(6):
            log.write(f"{step} {loss.item()}\\n")
            log.flush()
            os.fsync(log.fileno())
            time.sleep(0.001)   # a log that is kept far away
    if cause == "skip-barrier" and step % 10 == 9:
        if late and step > 30:
            time.sleep(3600)
        torch.distributed.barrier()
    optimizer.step()
print(repr(loss.item()))
"""

# Of each cause: how many ranks, what the job gets, and what may be named first. What a cause is not: two rules that name
# the same thing from two sides are both right.
CAUSES = {
    "sleeping-loader": (1, {}, ("data-starved",)),
    "slow-worker": (1, {}, ("data-starved",)),
    "disk": (1, {}, ("data-starved",)),
    "threads": (2, {"THREADS": str(4 * len(os.sched_getaffinity(0))), "STEPS": "40"}, ("cpu-oversubscribed",)),
    "slow-forward": (2, {}, ("imbalance",)),
    "slow-backward": (2, {}, ("imbalance",)),
    "checkpoint": (1, {}, ("stalls",)),
    "tiny-batches": (2, {}, ("comm-exposed",)),
    "logging": (1, {}, ("host-idle",)),
    "quota": (1, {"THREADS": "2"}, ("quota",)),
    "neighbours": (1, {"THREADS": str(len(os.sched_getaffinity(0)))}, ("neighbours",)),
    "link": (2, {}, ("comm-exposed",)),
}


def count_of(name):
    return int(os.environ.get(name, "1"))


def has_torch():
    return subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode == 0


@unittest.skipUnless(has_torch(), "no torch")
class WatchCauses(AssayCase):
    number = 0

    def words(self, ranks):
        job = str(self.write("train.py", JOB))
        if ranks == 1:
            return [PYTHON, job]
        WatchCauses.number += 1
        return [PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--master-port",
                str(29300 + (os.getpid() + WatchCauses.number) % 500), job]

    def environment(self, cause, **more):
        return {"CAUSE": cause, "LOG": str(self.dir / "log"), "OMP_NUM_THREADS": more.get("THREADS", "1"), **more}

    def watch(self, ranks, cause, wrapper=(), **env):
        """What it found, by rule, the first first, and the median step."""
        shutil.rmtree(self.dir / "out", ignore_errors=True)
        done = subprocess.run([*wrapper, self.binary, "watch", "--out", "out", "--", *self.words(ranks)], cwd=self.dir,
                              capture_output=True, text=True, timeout=600,
                              env={**os.environ, **self.environment(cause, **env)})
        self.assertEqual(done.returncode, 0, done.stderr)
        (record,) = self.records()
        found = [text.split(":")[0] for name, text in sorted(record["labels"].items()) if name.startswith("diagnosis_")]
        return found, self.metrics(record)["step_time"], done.stderr

    def beside(self, cause):
        """What goes on during this cause's job, and how the job is started; None if it cannot be made here."""
        if cause == "quota":
            try:
                return ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', self.group_of_a_quota()]
            except OSError:
                return None
        if cause == "link":
            # A namespace whose loopback has 400 Mbit/s.
            if os.geteuid() != 0 or not shutil.which("tc"):
                return None
            made = "ip link set lo mtu 1500 up && tc qdisc add dev lo root tbf rate 400mbit burst 256k latency 50ms"
            if subprocess.run(["unshare", "-n", "sh", "-c", made], capture_output=True).returncode != 0:
                return None
            return ["unshare", "-n", "sh", "-c", made + ' && exec "$@"', "link"]
        if cause == "neighbours":
            for _ in os.sched_getaffinity(0):
                busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
                self.addCleanup(busy.wait)
                self.addCleanup(busy.kill)
        if cause == "disk":
            (self.dir / "files").write_bytes(os.urandom(1 << 20) * 80)
        return []

    def group_of_a_quota(self):
        """A control group with 40 % of a CPU; OSError where this process may make none."""
        first = pathlib.Path("/sys/fs/cgroup/cpu")
        group = (first if first.is_dir() else first.parent) / f"assay-causes-{os.getpid()}"
        group.mkdir()
        self.addCleanup(group.rmdir)
        if first.is_dir():
            (group / "cpu.cfs_quota_us").write_text("40000")
        else:
            (group / "cpu.max").write_text("40000 100000")
        return str(group)

    def test_the_right_cause_is_first(self):
        results = {}
        only = os.environ.get("ASSAY_CAUSE", ",".join(CAUSES)).split(",")
        for cause, (ranks, env, right) in ((name, CAUSES[name]) for name in only):
            with self.subTest(cause):
                wrapper = self.beside(cause)
                if wrapper is None:
                    results[cause] = "cannot be made here"
                    continue
                for _ in range(count_of("ASSAY_CAUSES")):
                    found, step, text = self.watch(ranks, cause, wrapper, FILES=str(self.dir / "files"), **env)
                    results.setdefault(cause, []).append((bool(found) and found[0] in right, found))
                self.doCleanups()
                self.setUp()
        for cause, runs in results.items():
            print(f"{cause}: {runs}", file=sys.stderr)
        judged = [named for runs in results.values() if isinstance(runs, list) for named, _ in runs]
        self.assertGreaterEqual(sum(judged), 0.95 * len(judged), results)

    def test_clean_jobs_are_quiet(self):
        loud = []
        for i in range(count_of("ASSAY_CLEAN_JOBS")):
            found, _, text = self.watch(1 + i % 2, "", STEPS="200")
            # Exchanging gradients of a small network takes its time in sound jobs, too.
            if [rule for rule in found if rule != "comm-exposed"]:
                loud.append(text)
        self.assertEqual(loud, [])

    def test_a_rank_that_is_slow_in_backward_is_named(self):
        jobs = count_of("ASSAY_RANK_JOBS")
        named = 0
        for _ in range(jobs):
            _, _, text = self.watch(2, "slow-backward")
            named += "the others wait for rank 1: its backward pass takes longer" in text
        self.assertGreaterEqual(named, 0.95 * jobs)

    def test_a_rank_that_skips_a_barrier_is_named(self):
        for _ in range(count_of("ASSAY_RANK_JOBS")):
            shutil.rmtree(self.dir / "out", ignore_errors=True)
            process = subprocess.Popen([self.binary, "watch", "--out", "out", "--", *self.words(2)], cwd=self.dir,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                       env={**os.environ, **self.environment("skip-barrier")})
            # To the watcher, which passes it on to torchrun, which ends its ranks: they hold our pipe.
            limit = threading.Timer(120, process.terminate)
            limit.start()
            said = ""
            while "rank 1:" not in said:
                line = process.stderr.readline()
                self.assertNotEqual(line, "", said)
                said += line
            limit.cancel()
            process.terminate()
            process.communicate(timeout=120)
            self.assertRegex(said, r"rank 1: \d+ steps, .*has not entered \d+ \(\w+\), as others have: .*train\.py")


if __name__ == "__main__":
    unittest.main()
