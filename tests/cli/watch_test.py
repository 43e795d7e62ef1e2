"""assay watch: the job ends as it would by itself, its steps are seen, and where it waits is told. The jobs use the stand-in
for torch in tests/watch."""

import json
import os
import pathlib
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

    def start(self, *words, options=("--out", "out"), env=None, **more):
        """A watched command that has printed its first line."""
        process = subprocess.Popen([self.binary, "watch", *options, "--", *map(str, words)], cwd=self.dir,
                                   env={**os.environ, **self.env, **(env or {})}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        process.first = process.stdout.readline()
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
