"""assay watch: the job ends as it would by itself, its steps are seen, and where it waits is told. The jobs use the stand-in
for torch in tests/watch."""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import unittest

from assay_case import AssayCase

WATCH = pathlib.Path(__file__).resolve().parents[1] / "watch"
JOB = str(WATCH / "job.py")


class WatchTest(AssayCase):
    env = {"PYTHONPATH": str(WATCH / "standin"), "PYTHONDONTWRITEBYTECODE": "1"}

    def watch(self, *words, options=("--out", "out"), env=None, timeout=120):
        return self.assay("watch", *options, "--", *words, env={**self.env, **(env or {})}, timeout=timeout)

    def job(self, *options, **more):
        return self.watch(sys.executable, JOB, *options, **more)

    def start(self, *words, options=("--out", "out"), env=None, wait=True, **more):
        """A watched command; it has printed its first line if this waits."""
        process = subprocess.Popen([self.binary, "watch", *options, "--", *map(str, words)], cwd=self.dir,
                                   env={**os.environ, **self.env, **(env or {})}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        process.first = process.stdout.readline() if wait else ""
        return process

    # ---- it does not harm the job

    def test_exit_codes_are_the_jobs(self):
        for words, code in ((("sh", "-c", "exit 7"), 7), (("true",), 0), (("nosuch",), 127), (("/etc",), 126),
                            (("sh", "-c", "kill -TERM $$"), -signal.SIGTERM)):
            done = self.watch(*words, options=())
            self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn("nosuch: No such file", self.watch("nosuch").stderr)
        self.assertEqual(self.assay("watch").returncode, 2)
        self.assertEqual(self.assay("watch", "--items", "-1", "--", "true").returncode, 2)

    def test_streams_and_words_are_the_jobs(self):
        done = subprocess.run([self.binary, "watch", "--out", "out", "--", "sh", "-c", 'cat; echo "$0 $*"', "--", "-x", "--"],
                              cwd=self.dir, input="given", capture_output=True, text=True, timeout=60)
        self.assertEqual(done.stdout, "given-- -x --\n")

    def test_the_loss_is_the_same_to_the_bit(self):
        alone = subprocess.run([sys.executable, JOB, "--steps", "80", "--workers", "2"], capture_output=True, text=True,
                               env={**os.environ, **self.env}, timeout=60)
        done = self.job("--steps", "80", "--workers", "2", "--fork")
        self.assertEqual(done.stdout, alone.stdout)
        self.assertIn("79 steps", done.stderr)

    def test_the_users_own_sitecustomize_runs(self):
        self.write("mine/sitecustomize.py", "import builtins\nbuiltins.mine = 5\n")
        path = {"PYTHONPATH": f"{self.dir / 'mine'}:{WATCH / 'standin'}"}
        check = ("import sys, sitecustomize, torch; assert mine == 5 and 'mine' in sitecustomize.__file__\n"
                 "assert not any('hook' in entry for entry in sys.path), sys.path\n")
        done = self.watch(sys.executable, "-c", check, env=path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.write("mine/sitecustomize.py", "raise RuntimeError('theirs')\n")
        done = self.job("--steps", "10", env=path, options=("--out", "out2"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("9 steps", done.stderr)

    def test_without_home_or_a_folder_to_write_to(self):
        inside = self.dir / "locked"
        inside.mkdir()
        done = self.job("--steps", "10", options=("--out", "/proc/none/out"), env={"HOME": "/nonexistent", "TMPDIR": "/nonexistent"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("No record:", done.stderr)
        self.assertIn("9 steps", done.stderr)

    def test_an_option_that_skips_the_hook_is_said(self):
        done = self.watch(sys.executable, "-S", JOB, "--steps", "6")
        self.assertIn("No steps: Python's option -S skips the hook in it", done.stderr)

    # ---- signals

    def test_a_signal_is_passed_on(self):
        # The job says that its handler is there before it is sent anything. A handler must not print: the signal may come
        # inside of print().
        handler = ("import os, signal, time\n"
                   "signal.signal(signal.SIGINT, lambda *_: (os.write(1, b'got it\\n'), os._exit(5)))\n"
                   "os.write(1, b'ready\\n')\n"
                   "time.sleep(60)\n")
        process = self.start(sys.executable, "-c", handler)
        self.assertEqual(process.first, "ready\n")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=30)
        self.assertEqual((out, process.returncode), ("got it\n", 5))

    def test_a_killed_watcher_leaves_the_job_alone(self):
        process = self.start(sys.executable, JOB, "--steps", "40", "--pause", "0.02", "--save", self.dir / "saved",
                             "--save-every", "39")
        process.kill()
        process.wait()
        self.assertIn("loss", process.stdout.read())

    def test_the_steps_of_a_killed_job_are_there(self):
        process = self.start(sys.executable, JOB, "--steps", "1000000")
        pid = int(subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout)
        os.kill(pid, signal.SIGKILL)
        _, errors = process.communicate(timeout=30)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        self.assertRegex(errors, r"[1-9]\d* steps of")
        (record,) = self.records()
        self.assertEqual(record["status"], "failed")

    def test_where_it_is(self):
        process = self.start(sys.executable, JOB, "--steps", "1000000", "--pause", "0.01")
        time.sleep(1)
        process.send_signal(signal.SIGUSR1)
        while "main (job.py" not in (line := process.stderr.readline()):
            self.assertNotEqual(line, "")
        self.assertRegex(line, r"rank 0: \d+ steps: .*main \(job\.py:\d+\)")
        self.assertIn("step ", process.stderr.readline())
        process.terminate()
        process.communicate(timeout=30)

    # ---- what it sees

    def test_the_record_and_what_reads_it(self):
        done = self.job("--steps", "120", "--load", "0.006", options=("--out", "out", "--name", "mine", "--items", "50",
                                                                     "--unit", "img", "--label", "kind=test"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("-> the step itself loads its data", done.stderr)
        (record,) = self.records()
        self.assertEqual((record["key"], record["labels"]["kind"]), ("command/name=mine", "test"))
        metrics = self.metrics(record)
        self.assertAlmostEqual(metrics["throughput"] * metrics["step_time"], 50, places=6)
        spans = dict(record["spans"])
        parts = ("forward", "backward", "optimizer", "data_wait", "exposed_communication", "checkpoint")
        self.assertGreater(spans["data_wait"], 0.005)
        self.assertGreater(sum(spans[part] for part in parts), 0.009)
        self.assertIn(self.diagnosis("out")["data-starved"]["state"], ("warn", "bad"))
        self.assertEqual(self.assay("compare", "--base", "out", "--head", "out").returncode, 0)
        self.assertRegex(self.assay("report", "out").stdout, r"(?m)^mine  ")

    # ---- the steps that torch's profiler records

    def test_three_steps_are_recorded(self):
        scratch = self.dir / "scratch"
        scratch.mkdir()
        done = self.watch(*self.ranks("--steps", "60", "--slow-rank", "1", "--late", "0.02"), env={"TMPDIR": str(scratch)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^steps 12 to 14, recorded by torch.profiler, took [\d.]+ times as long as others$")
        self.assertRegex(done.stderr, r"(?m)^operators .* of a step in \d.* x aten::mm$")
        self.assertRegex(done.stderr, r"gloo:all_reduce: 1\.\d x .* to transfer, .* for the last rank \(1 in \d+ %\)")
        self.assertRegex(done.stderr, r"5 steps left out of all other figures: they were recorded, or waited for the profiler \(")
        self.assertIn("59 steps of", done.stderr)
        self.assertEqual(done.stderr.count("the others wait for rank 1"), 1)
        (record,) = self.records()
        labels = record["labels"]
        self.assertEqual((labels["steps"], labels["steps_left_out"], labels["traced_steps"]), ("59", "5", "12 to 14"))
        self.assertEqual(record["samples"]["count"], 59 - 5 - 5)   # a tenth is warm-up
        trace = json.loads((self.dir / "out" / "run.json").read_text())["trace"]
        self.assertFalse(trace["kernels"])
        self.assertIn("aten::mm", [use["name"] for use in trace["uses"]])
        self.assertEqual(trace["collectives"][0]["last"], 1)
        report = self.assay("report", "out").stdout
        self.assertIn("The heaviest operators of a step", report)
        # The traces are kept, as the profiler has written them.
        kept = [str(self.dir / "out" / "traces" / f"rank{rank}.json.gz") for rank in range(2)]
        imported = self.assay("import", "kineto", *kept, "--out", "imported")
        self.assertEqual(imported.returncode, 0, imported.stderr)
        self.assertIn("2 ranks · 3 steps of", imported.stdout)
        self.assertEqual(self.assay("compare", "--base", "out", "--head", "out").returncode, 0)
        self.assertEqual(os.listdir(scratch), [])

    def test_what_has_no_trace_is_said(self):
        done = self.job("--steps", "60", options=("--out", "off", "--no-window"))
        self.assertEqual((done.returncode, "record" in done.stderr.lower(), "left out" in done.stderr), (0, False, False))
        self.assertNotIn("traced_steps", self.records("off")[0]["labels"])
        self.assertIn("No steps were recorded: it made 14 steps, and the last of 15 ends it.",
                      self.job("--steps", "14", options=("--out", "short")).stderr)
        done = self.watch(*self.ranks("--steps", "40"), options=("--out", "cut"), env={"STANDIN_CUT_TRACE": "1"})
        self.assertIn("Not seen: the trace of rank 1: was cut off", done.stderr)
        self.assertIn("x aten::mm", done.stderr)
        done = self.job("--steps", "40", options=("--out", "old"), env={"STANDIN_OLD_PROFILER": "1"})
        self.assertIn("Not seen: window: AttributeError: ", done.stderr)
        self.assertIn("39 steps of", done.stderr)

    def test_the_recorded_steps_of_a_gpu(self):
        done = self.job("--cuda", "--item", "--steps", "60", "--copy", "0.01", "--forward", "0.01", "--backward", "0.03")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^GPU +\|compute \d+%")
        self.assertRegex(done.stderr, r"for \d+ % of a step the GPU only copies\n +-> 100 % of it from or to pageable memory")
        self.assertRegex(done.stderr, r"(?m)^kernels .* x gemm_kernel$")
        (record,) = self.records()
        spans = dict(record["spans"])
        self.assertAlmostEqual(spans["window exposed_copies"], 0.01, delta=0.001)
        self.assertAlmostEqual(spans["window compute"], 0.04, delta=0.001)
        self.assertGreater(spans["backward"], 0.025)   # of all steps, as without
        self.assertIn("What the GPUs do in a step", self.assay("report", "out").stdout)

    def test_some_time_only(self):
        done = self.job("--steps", "500", "--pause", "0.01", options=("--out", "out", "--for", "3s"))
        self.assertEqual(done.returncode, 0)
        (record,) = self.records()
        self.assertLess(int(record["labels"]["steps"]), 499)

    def ranks(self, *options, count=2, **more):
        """A job of several ranks, started by a shell as torchrun would."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        script = "\n".join(
            [f'RANK={rank} WORLD_SIZE={count} MASTER_PORT={port} "$0" "$@" & p{rank}=$!' for rank in range(count)] +
            [f"wait $p{rank}" for rank in range(count)])
        return ("sh", "-c", script, sys.executable, JOB, *options)

    def test_ranks_and_the_one_that_is_waited_for(self):
        done = self.watch(*self.ranks("--steps", "80", "--slow-rank", "1", "--late", "0.03"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("2 ranks", done.stderr)
        self.assertRegex(done.stderr, r"rank 1 .*waited for")
        self.assertIn("the others wait for rank 1: its backward pass takes longer", done.stderr)
        spans = dict(self.records()[0]["spans"])
        self.assertGreater(spans["rank 0 waiting_for_ranks"], 0.02)
        self.assertEqual(self.assay("report", "out", "--html", "page.html").returncode, 0)
        page = (self.dir / "page.html").read_text()
        self.assertRegex(page, r"rank 0<td>(?s:.*?)waits \d[\d.]* % for others")
        self.assertLess(spans["rank 1 waiting_for_ranks"], 0.01)

    def test_two_watches_of_one_job_are_joined(self):
        """As on two hosts: each watch sees one rank; together they tell who is waited for."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        watches = [self.start(sys.executable, JOB, "--steps", "80", "--slow-rank", "1", "--late", "0.03",
                              options=("--out", f"host{rank}", "--items", "10"),
                              env={"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_PORT": port}, wait=False) for rank in range(2)]
        for process in watches:
            _, errors = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, errors)
            self.assertIn("1 rank of 2 were seen here", errors)
            self.assertNotIn("others wait", errors)
        done = self.assay("watch", "--join", "host0", "host1", "--out", "both", "--name", "mine")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("mine · 2 ranks", done.stdout)
        self.assertRegex(done.stdout, r"steps 12 to 14, recorded by torch.profiler, .*\noperators .*\n(.*\n)+gloo:all_reduce: ")
        self.assertRegex(done.stdout, rf"the others wait for rank 1 on {re.escape(socket.gethostname())}: its backward pass")
        (record,) = self.records("both")
        self.assertEqual([rank["rank"] for rank in record["ranks"]], [0, 1])
        spans = dict(record["spans"])
        self.assertGreater(spans["rank 0 waiting_for_ranks"], 0.02)
        metrics = self.metrics(record)
        self.assertAlmostEqual(metrics["throughput"] * metrics["step_time"], 10, places=6)
        self.assertEqual(self.assay("report", "both").returncode, 0)

        # What is missing is said, and what cannot be joined is refused.
        alone = self.assay("watch", "--join", "host0", "--out", "half")
        self.assertEqual(alone.returncode, 3)
        self.assertIn("not all: 1 of 2 ranks are in none of these runs: 1", alone.stdout)
        self.run_dir({"schema": 2, "key": "gemm/m=1", "status": "ok"}, name="other")
        self.write("broken/watch.json", "{")
        for words, says in ((("host0", "host0"), "rank 0 is of"), (("host0", "other"), "it has no watch.json"),
                            (("broken",), "broken/watch.json"), (("host0", "--", "true"), "takes no command")):
            refused = self.assay("watch", "--out", "no", "--join", *words)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn(says, refused.stderr)
            self.assertFalse((self.dir / "no").exists())

    @unittest.skipUnless(os.environ.get("ASSAY_NVML"), "no stand-in for NVML")
    def test_a_job_on_a_gpu(self):
        """The device and its driver are stand-ins: what is told of them is theirs, nothing is a measurement."""
        # Bit 0x40 of the reasons is heat.
        script = self.write("nvml", "utilisation 40\nmemory_used 20000000000\nclock 1000\nmax_clock 2000\nthrottle 64\n")
        prices = self.write("prices.json", {
            "schema": 1, "source": "contract", "date": "2026-11-14", "currency": "USD",
            "prices": [{"instance_type": "t4.small", "gpu": "T4", "gpus": 1, "price": 0.3},
                       {"instance_type": "l4.small", "gpu": "L4", "gpus": 1, "price": 0.8},
                       {"instance_type": "h100.small", "gpu": "H100", "gpus": 1, "price": 3.5}]})
        done = self.job("--cuda", "--item", "--steps", "90", "--forward", "0.01", "--backward", "0.08",
                        options=("--out", "out", "--flops", "4e12", "--prices", str(prices)),
                        env={"ASSAY_NVML_SCRIPT": str(script), "LD_LIBRARY_PATH": os.environ["ASSAY_NVML"]})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("The parts are times of the GPUs", done.stderr)
        self.assertRegex(done.stderr, r"the GPU of rank 0 was slowed down 100 % of the time \(thermal \(hardware\)\), "
                                      r"at 50 % of its clock\n.*\n?.*at most 2\.00 x")
        self.assertIn("the host waits for the GPU 1.0 times a step", done.stderr)
        # A T4 has too little memory, and an H100 is what it runs on.
        self.assertIn("l4.small (l4) is the cheapest that holds its memory and 10 % more, at 0.80 USD/h", done.stderr)
        (record,) = self.records()
        self.assertEqual((record["device"], record["labels"]["parts_of"], record["labels"]["dtype"]), ("cuda", "GPU", "f32"))
        metrics = self.metrics(record)
        self.assertAlmostEqual(metrics["mfu"] * 67e12, metrics["model_flops"], delta=1e6)
        self.assertIn("f32 of h100-sxm", record["labels"]["peak"])
        spans = dict(record["spans"])
        self.assertGreater(spans["backward"], 5 * spans["forward"])   # by the host's clock neither would take any time
        self.assertIn("gpu_utilisation", record["telemetry"])

    def test_a_rank_that_skips_a_barrier_is_named(self):
        process = self.start(*self.ranks("--steps", "1000000", "--skip-barrier", "1"), start_new_session=True)
        lines = []
        while len([line for line in lines if line.startswith("rank ")]) < 2:
            lines.append(process.stderr.readline())
            self.assertNotEqual(lines[-1], "", lines)
        said = "".join(lines)
        self.assertIn("the job may hang", said)
        self.assertRegex(said, r"rank 1: \d+ steps, .*has not entered \d+ \(barrier\), as others have: main \(job\.py")
        self.assertRegex(said, r"rank 0: .*\(barrier\): .*barrier \(distributed_c10d\.py")
        os.killpg(process.pid, signal.SIGKILL)   # also the ranks, which the watcher would leave
        process.communicate(timeout=30)


if __name__ == "__main__":
    unittest.main()
