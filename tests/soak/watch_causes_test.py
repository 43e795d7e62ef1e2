"""Causes that slow a real training job down, injected one at a time: the right one must be named first, and the job without
it must be quiet. Real PyTorch on CPUs; skipped without it in this Python, or the one that ASSAY_TORCH_PYTHON names.
ASSAY_CAUSES runs of each cause (1; ASSAY_CAUSE=a,b: of these), of which the first ASSAY_REMEDIES (1) are run again with the
remedy that was advised and without the cause; ASSAY_CLEAN_JOBS clean jobs (1); ASSAY_RANK_JOBS of each fault of ranks (1);
ASSAY_PAIRS jobs for the cost of the hooks (0), and ASSAY_LONG_STEPS steps of 10 ms for that of the watcher (0). The full
series is 20, 5, 100, 20, 30 and 15000. What others compute here makes it worthless, so it wants a quiet machine. Each run
is a line on stderr."""

import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "cli"))
from assay_case import AssayCase  # noqa: E402
sys.path.insert(0, str(ROOT / "tools" / "peers"))
from run import median_interval  # noqa: E402

PYTHON = os.environ.get("ASSAY_TORCH_PYTHON", sys.executable)

JOB = """
import contextlib, json, os, time
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info
cause, steps = os.environ.get("CAUSE", ""), int(os.environ.get("STEPS", "120"))
accumulate, every = int(os.environ.get("ACCUMULATE", "1")), int(os.environ.get("EVERY", "20"))
rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
late = rank == 1 and world > 1
torch.manual_seed(0)
torch.set_num_threads(int(os.environ.get("THREADS", "1")))
class Data(Dataset):
    def __len__(self):
        return 8 * steps * accumulate
    def __getitem__(self, i):
        if cause == "sleeping-loader":
            time.sleep(0.006)
        if cause == "slow-worker" and get_worker_info().id == 0:
            time.sleep(0.02)
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
loader = DataLoader(Data(), batch_size=8, num_workers=int(os.environ.get("WORKERS", "0")))
ends = []
for micro, x in enumerate(loader):
    step, last = micro // accumulate, micro % accumulate == accumulate - 1
    x = x.repeat(1 if cause == "tiny-batches" else 16, 1)
    if cause == "slow-forward" and late:
        time.sleep(0.03)
    with contextlib.nullcontext() if last or world == 1 else model.no_sync():
        loss = (model(x) - x).square().mean()
        if cause == "slow-backward" and late:
            loss.register_hook(lambda gradient: time.sleep(0.03))
        loss.backward()
    if cause == "logging" and micro % int(os.environ.get("LOG_EVERY", "1")) == 0:
        for _ in range(6):
            log.write(f"{step} {loss.item()}\\n")
            log.flush()
            os.fsync(log.fileno())
            time.sleep(0.001)   # a log that is kept far away
    if not last:
        continue
    if cause == "checkpoint" and step % every == every - 1:
        torch.save([torch.ones(4 << 20) for _ in range(12)], os.environ["LOG"] + ".pt")
    if cause == "skip-barrier" and step % 10 == 9:
        if late and step > 30:
            time.sleep(3600)
        torch.distributed.barrier()
    optimizer.step()
    optimizer.zero_grad()
    ends.append(time.perf_counter())
print(repr(loss.item()))
took = sorted(b - a for a, b in zip(ends[10:], ends[11:]))
if rank == 0:   # s: the median of a step, and the mean of a micro-batch
    print(json.dumps([took[len(took) // 2], sum(took) / len(took) / accumulate]))
"""

HOOKS = """
import json, time
import torch
from torch.optim import optimizer
from assay_watch import DATA
steps = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
for _ in range(320):   # from step 300 on all hooks are set
    steps.step()
(before,), (after,) = (list(hooks.values()) for hooks in (optimizer._global_optimizer_pre_hooks,
                                                          optimizer._global_optimizer_post_hooks))
def nothing():
    pass
def seconds(*calls):
    began = time.perf_counter()
    for _ in range(5000):
        for call in calls:
            call()
    return (time.perf_counter() - began) / 5000
watch = before.__self__
load, backward = watch.timed(nothing, DATA), watch.backward(nothing)
begin, end = (lambda: before(steps, (), {})), (lambda: after(steps, (), {}))
print(json.dumps([seconds(load, backward, begin, end) - seconds(nothing, nothing, nothing, nothing) for _ in range(9)]))
"""

CPUS = len(os.sched_getaffinity(0))


def words_of(name, pattern):
    """What the advice says in so many words, as a variable of the job."""
    return lambda advice: {name: re.search(pattern, advice).group(1)}


WORKERS = words_of("WORKERS", r"num_workers=(\d+)")

# Of each cause: how many ranks, what the job gets, what may be named first, and the advice as what the job gets then: in the
# advice's own words where it says them. Advice to end the cause itself (None) recovers all by definition.
CAUSES = {
    "sleeping-loader": (1, {}, ("data-starved",), WORKERS),
    "slow-worker": (1, {"WORKERS": "2"}, ("data-starved",), WORKERS),
    "disk": (1, {}, ("data-starved",), WORKERS),
    "threads": (2, {"THREADS": str(4 * CPUS), "STEPS": "40"}, ("cpu-oversubscribed",),
                words_of("THREADS", r"OMP_NUM_THREADS=(\d+)")),
    "slow-forward": (2, {}, ("imbalance",), None),
    "slow-backward": (2, {}, ("imbalance",), None),
    "checkpoint": (1, {}, ("stalls",), lambda advice: {"EVERY": "200"}),
    "tiny-batches": (2, {}, ("comm-exposed",), lambda advice: {"ACCUMULATE": "16"}),
    "logging": (1, {}, ("host-idle",), lambda advice: {"LOG_EVERY": "50"}),
    "quota": (1, {"THREADS": "2"}, ("quota",), None),
    "neighbours": (1, {"THREADS": str(CPUS)}, ("neighbours",), None),
    "link": (2, {}, ("comm-exposed",), lambda advice: {"ACCUMULATE": "16"}),
}
# The same job without its cause, where that is not just without it: ranks, cause, what it gets.
SOUND = {"threads": (2, "", {"THREADS": "1", "STEPS": "40"}), "tiny-batches": (1, "tiny-batches", {})}
ADVICE = {"comm-exposed": "micro-batches", "stalls": "save less often", "host-idle": "logging"}   # what is taken from it


def count_of(name, default="1"):
    return int(os.environ.get(name, default))


def told(*what):
    print(*what, sep=" · ", file=sys.stderr, flush=True)


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

    def job(self, ranks, cause, watcher=(), wrapper=(), **env):
        """What it says on stderr, its median step and its mean micro-batch (s)."""
        done = subprocess.run([*wrapper, *watcher, *self.words(ranks)], cwd=self.dir, capture_output=True, text=True,
                              timeout=600, env={**os.environ, **self.environment(cause, **env)})
        self.assertEqual(done.returncode, 0, done.stderr)
        said = re.findall(r"\[[^\[\]]+\]", done.stdout)   # other ranks write beside
        self.assertEqual(len(said), 1, f"stdout: {done.stdout!r}; stderr: {done.stderr}")
        step, micro_batch = json.loads(said[0])
        return done.stderr, step, micro_batch

    def watch(self, ranks, cause, wrapper=(), **env):
        """What it found, the first first: rule, finding, advice; its text; and the mean micro-batch (s)."""
        shutil.rmtree(self.dir / "out", ignore_errors=True)
        text, _, micro_batch = self.job(ranks, cause, (self.binary, "watch", "--out", "out", "--"), wrapper, **env)
        (record,) = self.records()
        return [label for name, label in sorted(record["labels"].items()) if name.startswith("diagnosis_")], text, micro_batch

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

    def test_the_right_cause_is_first_and_its_remedy_recovers(self):
        named, times = {}, {}
        for cause in os.environ.get("ASSAY_CAUSE", ",".join(CAUSES)).split(","):
            ranks, env, right, remedy = CAUSES[cause]
            for number in range(count_of("ASSAY_CAUSES")):
                wrapper = self.beside(cause)
                if wrapper is None:
                    told(cause, "cannot be made here")
                    break
                env = {**env, "FILES": str(self.dir / "files")}
                found, text, slow = self.watch(ranks, cause, wrapper, **env)
                rules = [one.split(":")[0] for one in found]
                named.setdefault(cause, []).append(rules[:1] != [] and rules[0] in right)
                told(cause, *rules)
                if remedy and named[cause][-1] and number < count_of("ASSAY_REMEDIES"):
                    self.assertIn(ADVICE.get(rules[0], "="), found[0])
                    advised = remedy(found[0])
                    _, _, remedied = self.job(ranks, cause, wrapper=wrapper, **{**env, **advised})
                    sound_ranks, without, sound_env = SOUND.get(cause, (ranks, "", env))
                    _, _, sound = self.job(sound_ranks, without, **sound_env)
                    times.setdefault(cause, []).append((slow, remedied, sound))
                    told(cause, advised, *(f"{1e3 * one:.2f} ms" for one in times[cause][-1]))
                self.doCleanups()
                self.setUp()
        judged = sum(named.values(), [])
        told(f"{sum(judged)} of {len(judged)} named first", named)
        recovered = {}
        for cause, runs in times.items():
            slow, remedied, sound = map(statistics.median, zip(*runs))
            recovered[cause] = (slow - remedied) / (slow - sound)
        told("recovered", {cause: round(share, 2) for cause, share in recovered.items()})
        self.assertGreaterEqual(sum(judged), 0.95 * len(judged), named)
        self.assertGreaterEqual(min(recovered.values(), default=1), 0.8, recovered)

    def test_clean_jobs_are_quiet(self):
        loud = []
        for i in range(count_of("ASSAY_CLEAN_JOBS")):
            found, text, _ = self.watch(1 + i % 2, "", STEPS="200")
            told("sound", 1 + i % 2, "ranks", *found)
            # Exchanging gradients of a small network takes its time in sound jobs, too.
            if [one for one in found if not one.startswith("comm-exposed")]:
                loud.append(text)
        self.assertEqual(loud, [])

    def test_watching_costs_less_than_1_percent_of_a_step(self):
        """In each job blocks of steps with all hooks and with only one take turns: pairs that are close enough in time for
        machines that others use, too."""
        costs = []
        for _ in range(count_of("ASSAY_PAIRS", "0")):
            self.watch(1, "", STEPS="400")
            costs.append(self.metrics(self.records()[0])["watching_cost"])
            told("cost of the hooks", f"{100 * costs[-1]:.2f} % of a step")
        if len(costs) >= 6:
            low, high = median_interval(costs)
            told("of all jobs", f"{100 * statistics.median(costs):.2f} % ({100 * low:.2f} to {100 * high:.2f})")
            self.assertLessEqual(high, 0.01)

    def test_the_watcher_takes_less_than_0_3_percent_of_a_cpu(self):
        """Over some minutes: what it takes to start and to read traces counts, too."""
        steps = count_of("ASSAY_LONG_STEPS", "0")
        if steps > 0:
            self.watch(1, "", STEPS=str(steps))
            used = float(self.records()[0]["labels"]["watcher_cpus"])
            told("the watcher", f"{100 * used:.2f} % of a CPU")
            self.assertLessEqual(used, 0.003)

    def test_the_hooks_take_less_than_50_us_of_a_step(self):
        """By their own clock: what all calls of a step that loads, goes backward and steps once take beyond nothing."""
        job = self.write("hooks.py", HOOKS)
        done = self.assay("watch", "--out", "out", "--", PYTHON, job, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        told("hooks of a step", *(f"{1e6 * one:.1f} us" for one in json.loads(done.stdout)))
        self.assertLessEqual(statistics.median(json.loads(done.stdout)), 50e-6)

    def test_a_rank_that_is_slow_in_backward_is_named(self):
        jobs = count_of("ASSAY_RANK_JOBS")
        named = 0
        for _ in range(jobs):
            _, text, _ = self.watch(2, "slow-backward")
            named += "the others wait for rank 1: its backward pass takes longer" in text
            told("slow in backward", named)
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
            told("skips a barrier", said.strip().splitlines()[-1])
            self.assertRegex(said, r"rank 1: \d+ steps, .*has not entered \d+ \(\w+\), as others have: .*train\.py")


if __name__ == "__main__":
    unittest.main()
