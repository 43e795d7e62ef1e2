"""assay run: exit codes, the run directory, workers that break, resume."""
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from cgroup import MemoryLimit  # noqa: E402
from testbed import BINARY, TestbedCase, alive, descendants, main, wait_for  # noqa: E402


class ExitCodes(TestbedCase):
    def test_held_is_0_and_the_directory_is_complete(self):
        done = self.run_assay(*self.probe("ok", "skip"), "--out", self.out, "--label", "rack=7")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("channel:", done.stderr, "workers that end by themselves are no news")
        records = self.by_op()
        self.assertEqual(records["ok"]["status"], "ok")
        self.assertEqual(records["ok"]["schema"], 2)
        self.assertEqual(records["ok"]["labels"]["rack"], "7")
        self.assertEqual(records["ok"]["choices"], {"implementation": "probe"})
        # Some machines need a setting of OpenBLAS.
        self.assertEqual(records["ok"]["conditions"], {name: value for name, value in os.environ.items() if name.startswith("OPENBLAS_")})
        self.assertEqual(records["ok"]["checks"][0]["name"], "held")
        self.assertIn("measure", records["ok"]["spans"])
        self.assertTrue(records["ok"]["comparable"])
        self.assertEqual((records["skip"]["status"], records["skip"]["reason"]), ("skipped", "asked to skip"))
        run = self.run_json()
        self.assertEqual(run["schema"], 2)
        self.assertRegex(run["id"], "^[0-9a-f]{32}$")
        self.assertIsNotNone(run["finished"])
        self.assertEqual(len(run["plan"]["cases"]), 2)
        self.assertEqual(run["labels"], {"rack": "7"})
        self.assertIn("run", run["argv"])
        self.assertIn("cpu", run["environment"])
        self.assertIn("commit", run["git"])
        self.assertIn("probe", done.stdout)          # results
        page = os.path.join(self.out, "report.html")
        self.assertIn(f"report: {os.path.relpath(page, self.folder)}", done.stdout.splitlines()[-1])
        for report in (page, os.path.join(self.out, "report.md")):
            self.assertIn("asked to skip", pathlib.Path(report).read_text())
        self.assertIn("[2/2]", done.stderr)          # progress, as plain lines
        self.assertNotIn("\033", done.stderr)

    def test_failed_is_1_even_with_an_error(self):
        self.assertEqual(self.run_assay(*self.probe("fail", "throw"), "--out", self.out).returncode, 1)
        self.assertEqual(self.by_op()["fail"]["status"], "failed")

    def test_usage_is_2_and_creates_nothing(self):
        os.mkdir(os.path.join(self.folder, "full"))
        pathlib.Path(self.folder, "full", "mine").touch()
        for words, word in [
            (["probe", "--out", "full"], "not empty"),
            (["probe", "--out", "full/mine"], "not a directory"),
            (["probe", "--out", "/proc/none"], "/proc/none"),
            (["probe", "--resume", "nowhere"], "nowhere"),
            (["probe", "--resume", "full"], "no run"),
            (["probe", "--ranks", "5000", "--out", self.out], "beyond the slots"),
            (["probe", "--inject", "crush", "--out", self.out], "crash"),
        ]:
            with self.subTest(words):
                done = self.run_assay(*words)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(word, done.stderr)
                self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
                self.assertEqual(done.stdout, "")
        self.assertFalse(os.path.exists(self.out))
        self.assertEqual(os.listdir(os.path.join(self.folder, "full")), ["mine"])

    def test_error_is_4(self):
        for op in ["throw", "setup-throw", "unknown-throw"]:
            with self.subTest(op):
                out = os.path.join(self.folder, op)
                self.assertEqual(self.run_assay(*self.probe(op), "--out", out).returncode, 4)
                self.assertEqual(self.records(out)[0]["status"], "error")

    def test_unwritable_out_is_2(self):
        if os.geteuid() == 0:
            self.skipTest("root may write anywhere")
        os.mkdir(os.path.join(self.folder, "closed"), 0o500)
        self.assertEqual(self.run_assay("probe", "--out", "closed/run").returncode, 2)

    def test_missing_mpirun_and_module_are_named(self):
        done = self.run_assay("probe", "--ranks", "2", "--out", self.out, env={"PATH": "/nowhere"})
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, "mpirun.*openmpi-bin|libassay-mpi.so.*libopenmpi-dev")
        self.assertFalse(os.path.exists(self.out))

    def test_default_out_is_below_runs(self):
        self.assertEqual(self.run_assay("probe").returncode, 0)
        self.assertEqual(self.run_assay("probe").returncode, 0)
        self.assertEqual(len(os.listdir(os.path.join(self.folder, "runs"))), 2)


class BrokenWorkers(TestbedCase):
    def test_each_loses_only_its_own_case(self):
        ops = ["crash", "abort", "exit", "kill", "noisy", "orphan", "oom-thread", "ok"]
        done = self.run_assay(*self.probe(*ops), "--out", self.out)
        self.assertEqual(done.returncode, 4, done.stderr)
        records = self.by_op()
        self.assertEqual(set(records), set(ops))
        self.assertEqual(records["ok"]["status"], "ok")
        for op, word in [("crash", "SIGSEGV (signal 11) in measure"), ("abort", "last words of rank 0"), ("exit", "code 3"),
                         ("kill", "SIGKILL"), ("noisy", "SIGABRT"), ("oom-thread", "out of memory")]:
            self.assertEqual(records[op]["status"], "error")
            self.assertIn(word, records[op]["reason"])
            self.assertIsNone(records[op]["samples"]["series"])
        self.assertIn("last words of rank 0", done.stderr)
        self.assertLessEqual(len(records["noisy"]["log"]), 4096)
        self.assertEqual(left_over(self.folder), [])
        for record in records.values():   # every death was noticed before the case's limit
            self.assertNotIn("timeout", record["reason"])

    def test_hang_ends_at_its_timeout(self):
        done = self.run_assay(*self.probe("hang", "ok"), "--timeout", "2", "--out", self.out)
        self.assertEqual(done.returncode, 4)
        records = self.by_op()
        self.assertIn("timeout", records["hang"]["reason"])
        self.assertIn("in measure", records["hang"]["reason"])
        self.assertEqual(records["ok"]["status"], "ok")

    def test_lost_heartbeat_counts_as_dead(self):
        done = self.run_assay(*self.probe("stop", "ok"), "--out", self.out, env={"ASSAY_HEARTBEAT_LIMIT": "3"})
        self.assertEqual(done.returncode, 4)
        self.assertIn("no heartbeat", self.by_op()["stop"]["reason"])
        self.assertEqual(self.by_op()["ok"]["status"], "ok")

    def test_out_of_memory_by_rlimit(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        done = self.run_assay(*self.probe("oom", "ok"), "--out", self.out, before=limit)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("out of memory", self.by_op()["oom"]["reason"])
        self.assertEqual(self.by_op()["ok"]["status"], "ok")

    def test_out_of_memory_by_the_kernel_in_each_phase(self):
        limit = MemoryLimit(400 << 20)
        if not limit.path:
            self.skipTest(limit.why_not)
        self.addCleanup(limit.remove)

        def enter():
            limit.enter()
            resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))   # in case that the kernel does not hold the limit
        ops = {"sleep": None, "setup-oom": "setup", "oom": "measure", "verify-oom": "verify", "ok": None}
        done = self.run_assay(*self.probe(*ops), "--out", self.out, before=enter)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(limit.kills(), 3, "the kernel has not ended each of the three workers")
        records = self.by_op()
        self.assertEqual(list(records), list(ops))
        for op, phase in ops.items():
            if phase:
                self.assertEqual((records[op]["status"], records[op]["failure"]["kind"]), ("error", "out_of_memory"), records[op])
                self.assertRegex(records[op]["reason"], rf"^out of memory: .*SIGKILL.* in {phase}\b")
            else:
                self.assertEqual(records[op]["status"], "ok", records[op])
        self.assertEqual(left_over(self.folder), [])

    def test_a_killed_worker_loses_its_case(self):
        process = self.start(*self.probe("hang", "ok"), "--out", self.out)
        os.kill(self.phase_reached(process)[0], signal.SIGKILL)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 4)
        self.assertIn("SIGKILL", self.by_op()["hang"]["reason"])
        self.assertEqual(self.by_op()["ok"]["status"], "ok")

    def test_injected_faults_are_flagged(self):
        for fault, word in [("crash", "SIGABRT"), ("hang", "timeout"), ("oom", "out of memory")]:
            with self.subTest(fault):
                out = os.path.join(self.folder, fault)
                done = self.run_assay("probe", "--inject", fault, "--timeout", "1", "--out", out)
                self.assertEqual(done.returncode, 4, done.stderr)
                record = self.records(out)[0]
                self.assertIn(word, record["reason"])
                self.assertIn("injected:" + fault, record["flags"])
                self.assertFalse(record["comparable"])


def left_over(folder):
    """Processes whose working directory is still the folder."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/cwd") == folder:
                found.append(int(name))
        except OSError:
            pass
    return found


class InterruptAndResume(TestbedCase):
    def interrupt(self, *words, how=signal.SIGINT):
        process = self.start(*words, "--out", self.out)
        wait_for(lambda: len(self.records()) >= 1, "the first record")
        held = descendants(process.pid)
        process.send_signal(how)
        process.wait(timeout=30)
        self.assertEqual(wait_for(lambda: not alive(held), "the workers' end", 5), True)
        return process, process.stderr.read()

    def test_sigint_is_3_and_resume_completes(self):
        words = self.probe("sleep", n="0,1,2", seconds="0.7")
        process, errors = self.interrupt(*words)
        self.assertEqual(process.returncode, 3, errors)
        self.assertIn("--resume", errors)
        before = len(self.records())
        self.assertLess(before, 3)
        self.assertIsNone(self.run_json()["finished"])
        done = self.run_assay("--resume", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.records()), 3)
        self.assertEqual({record["attempt"] for record in self.records()}, {1})
        self.assertIsNotNone(self.run_json()["finished"])
        self.assertEqual(self.run_assay("--resume", self.out).returncode, 0)   # nothing left to do
        self.assertEqual(len(self.records()), 3)

    def test_other_signals_too(self):
        """SIGTERM, and the signals that sbatch --signal sends before a time limit."""
        for how in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            with self.subTest(how):
                self.out = os.path.join(self.folder, how.name)
                process, errors = self.interrupt(*self.probe("sleep", n="0,1,2", seconds="0.7"), how=how)
                self.assertEqual(process.returncode, 3, errors)
                self.assertIn(f"interrupted by {how.name}", errors)
                self.assertIn("--resume", errors)

    def test_workers_that_are_signalled_first(self):
        """At a time limit, a batch system signals every process of the job."""
        process = self.start(*self.probe("hang", "ok"), "--out", self.out)
        worker, = self.phase_reached(process)
        wait_for(lambda: len(descendants(process.pid)) == 1, "the worker alone")
        time.sleep(0.5)
        os.kill(worker, signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        errors = process.communicate(timeout=30)[1]
        self.assertEqual(process.returncode, 3, errors)
        self.assertEqual(self.records(), [])
        self.assertEqual(self.run_assay("--resume", self.out, "--timeout", "1").returncode, 4)

    def test_nohup_is_respected(self):
        def ignore():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        process = subprocess.Popen(self.command(*self.probe("sleep", n="0,1", seconds="0.7"), "--out", self.out),
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=ignore)
        self.started.append(process)
        wait_for(lambda: len(self.records()) >= 1, "the first record")
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        self.assertEqual(len(self.records()), 2)

    def test_kill_9_of_the_supervisor_ends_the_workers_and_leaves_whole_lines(self):
        process, _ = self.interrupt(*self.probe("sleep", n="0,1,2", seconds="0.7"), how=signal.SIGKILL)
        self.assertEqual(process.returncode, -signal.SIGKILL)
        self.assertEqual(left_over(self.folder), [])
        with open(os.path.join(self.out, "records.jsonl"), "a") as file:
            file.write('{"schema":2,"key":"torn')
        done = self.run_assay(*self.probe("sleep", n="0,1,2", seconds="0.7"), "--resume", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("torn", pathlib.Path(self.out, "records.jsonl").read_text())
        self.assertEqual(len(self.records()), 3)

    def test_errors_run_again_as_the_next_attempt(self):
        first = self.run_assay(*self.probe("ok", "fail"), "--inject", "crash", "--out", self.out)
        self.assertEqual(first.returncode, 4)
        run = self.run_json()["id"]
        done = self.run_assay("--resume", self.out)
        self.assertEqual(done.returncode, 1, done.stderr)   # the whole directory counts: one case failed
        self.assertEqual(self.run_json()["id"], run)
        self.assertEqual([(r["params"]["op"], r["attempt"], r["status"]) for r in self.records()],
                         [("ok", 1, "error"), ("fail", 1, "error"), ("ok", 2, "ok"), ("fail", 2, "failed")])
        self.assertEqual(self.run_assay("--resume", self.out).returncode, 1)
        self.assertEqual(len(self.records()), 4)

    def test_another_plan_is_refused_with_the_difference(self):
        self.run_assay("probe", "--out", self.out)
        done = self.run_assay(*self.probe("ok", "fail"), "--resume", self.out)
        self.assertEqual(done.returncode, 2)
        self.assertIn("2 cases, the run 1", done.stderr)
        done = self.run_assay(*self.probe("fail"), "--resume", self.out)
        self.assertEqual(done.returncode, 2)
        self.assertIn("op=fail", done.stderr)

    def test_another_device_is_refused(self):
        self.run_assay("probe", "--out", self.out)
        path = pathlib.Path(self.out, "run.json")
        path.write_text(path.read_text().replace('"device": "cpu"', '"device": "cuda"', 1))
        done = self.run_assay("--resume", self.out, "--device", "cpu")
        self.assertEqual(done.returncode, 2)
        self.assertIn("was measured on cuda", done.stderr)

    def test_earlier_children_of_the_process_are_left_alone(self):
        script = f'sleep 60 >/dev/null 2>&1 & echo $!; exec {" ".join(self.command("probe", "--out", self.out))}'
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        sleeper = int(done.stdout.splitlines()[0])
        self.assertEqual(alive([sleeper]), [sleeper])
        os.kill(sleeper, signal.SIGKILL)

    def test_two_supervisors_on_one_directory(self):
        first = self.start(*self.probe("hang"), "--out", self.out)
        self.phase_reached(first)
        for words in (["probe", "--out", self.out], ["--resume", self.out]):
            second = self.run_assay(*words)
            self.assertEqual(second.returncode, 2, second.stderr)
        self.assertIn(f"process {first.pid} on {socket.gethostname()}", second.stderr)
        first.send_signal(signal.SIGINT)
        first.wait(timeout=30)

    def test_a_run_of_another_host_is_left_alone_while_it_is_alive(self):
        """On a network file system the kernel's lock may be local to a host, so the content of the lock file counts."""
        self.run_assay("probe", "--out", self.out)
        lock = os.path.join(self.out, ".lock")
        pathlib.Path(lock).write_text("77 far-away another-boot\n")
        done = self.run_assay("--resume", self.out)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("process 77 on far-away", done.stderr)
        os.utime(lock, (time.time() - 100, time.time() - 100))
        self.assertEqual(self.run_assay("--resume", self.out).returncode, 0)

    def test_a_vanished_directory_ends_the_run(self):
        for how in ("moved", "removed"):
            with self.subTest(how):
                self.out = os.path.join(self.folder, how)
                process = self.start(*self.probe("sleep", n="0,1,2", seconds="0.7"), "--out", self.out)
                wait_for(lambda: len(self.records()) >= 1, "the first record")
                os.rename(self.out, self.out + "-elsewhere")
                if how == "removed":
                    shutil.rmtree(self.out + "-elsewhere")
                errors = process.communicate(timeout=30)[1]
                self.assertEqual(process.returncode, 4, errors)
                self.assertEqual(errors.count("is no longer there"), 1, errors)
                self.assertEqual(left_over(self.folder), [])
        self.out = os.path.join(self.folder, "moved-elsewhere")
        self.assertEqual(self.run_assay("--resume", self.out).returncode, 0)
        self.assertEqual(len(self.records()), 3)

    def test_foreign_schema_is_refused(self):
        self.run_assay("probe", "--out", self.out)
        path = pathlib.Path(self.out, "run.json")
        path.write_text(path.read_text().replace('"schema": 2', '"schema": 99', 1))
        done = self.run_assay("--resume", self.out)
        self.assertEqual(done.returncode, 2)
        self.assertIn("schema 99 is not known", done.stderr)

    def test_a_run_of_schema_1_is_read_and_not_continued(self):
        self.run_assay(*self.probe("ok"), "--inject", "crash", "--out", self.out)
        path = os.path.join(self.out, "run.json")
        run = self.run_json()
        del run["id"]
        with open(path, "w") as file:
            json.dump({**run, "schema": 1}, file)
        records = self.records()
        for words in (["--resume", self.out], [*self.probe("ok"), "--resume", self.out]):
            done = self.run_assay(*words)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("schema 1", done.stderr)
        self.assertEqual(self.records(), records)

    def test_the_second_sigint_kills(self):
        process = self.start(*self.probe("hang"), "--out", self.out)
        held = self.phase_reached(process)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)
        self.assertEqual(process.returncode, 3)
        wait_for(lambda: not alive(held), "the workers' end", 5)


class FullDisk(TestbedCase):
    def test_mid_run_is_reported_once_and_can_be_resumed(self):
        words = self.probe("ok", n=",".join(str(i) for i in range(12)))
        whole = self.run_assay(*words, "--out", os.path.join(self.folder, "whole"))
        self.assertEqual(whole.returncode, 0)
        sizes = [os.path.getsize(os.path.join(self.folder, "whole", name)) for name in ("run.json", "records.jsonl")]
        self.assertGreater(sizes[1], sizes[0] / 2)
        limit = max(sizes[0] + 2048, sizes[1] // 2)

        def small():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        done = self.run_assay(*words, "--out", self.out, before=small)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(done.stderr.count("cannot write"), 1, done.stderr)
        self.assertIn("--resume", done.stderr)
        self.assertLess(len(self.records()), 12)
        self.assertTrue(pathlib.Path(self.out, "records.jsonl").read_text().endswith("\n"))
        self.assertEqual(self.run_assay("--resume", self.out).returncode, 0)
        self.assertEqual(len(self.records()), 12)

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "mounting a file system needs root")
    def test_a_full_file_system(self):
        os.mkdir(os.path.join(self.folder, "small"))
        words = self.probe("ok", n=",".join(map(str, range(12))))
        self.assertEqual(self.run_assay(*words, "--out", "whole").returncode, 0)
        plan, records = (os.path.getsize(os.path.join(self.folder, "whole", name)) for name in ("run.json", "records.jsonl"))
        room = 4 * (plan // 4096 + records // 8192 + 2)   # KiB: the plan, and about half of the records
        run = " ".join(self.command(*words, "--out", "small/run"))
        script = f"""mount -t tmpfs -o size=8m none small && head -c {8192 - room}k /dev/zero >small/filler || exit 77
            {run} 2>errors; echo $?; rm small/filler
            {BINARY} run --resume small/run 2>more; echo $?; cp -r small/run kept"""
        done = subprocess.run(["unshare", "--mount", "bash", "-c", script], cwd=self.folder, capture_output=True,
                              text=True, timeout=120)
        if done.returncode == 77 or done.stderr.startswith("unshare:"):
            self.skipTest("no mounts here: " + done.stderr)
        errors = pathlib.Path(self.folder, "errors").read_text()
        self.assertEqual([line for line in done.stdout.splitlines() if line.isdigit()], ["4", "0"], errors)
        self.assertEqual(errors.count("No space left"), 1, errors)
        self.assertIn("--resume small/run", errors)
        self.assertEqual(len(self.records(os.path.join(self.folder, "kept"))), 12)

    def test_at_the_start_is_2(self):
        def none():
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        done = self.run_assay("probe", "--out", self.out, before=none)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertFalse(os.path.exists(self.out))


class Trace(TestbedCase):
    def test_a_trace_names_the_phases(self):
        import json
        self.assertEqual(self.run_assay(*self.probe("ok"), "--trace", "--out", self.out).returncode, 0)
        trace = json.loads(pathlib.Path(self.out, "trace.json").read_text())
        events = trace["traceEvents"] if isinstance(trace, dict) else trace
        names = {event.get("name") for event in events}
        self.assertLessEqual({"setup", "measure", "verify"}, names)


class Supervisor(TestbedCase):
    def test_is_small_and_idle(self):
        process = self.start(*self.probe("hang"), "--out", self.out)
        self.phase_reached(process)

        def status():
            with open(f"/proc/{process.pid}/status") as file:
                return dict(line.split(":", 1) for line in file)
        before = status()
        asleep = 0
        for _ in range(20):
            time.sleep(0.05)
            asleep += status()["State"].split()[0] == "S"
        after = status()
        woken = int(after["voluntary_ctxt_switches"]) - int(before["voluntary_ctxt_switches"])
        self.assertGreaterEqual(asleep, 15)   # a busy loop never sleeps
        self.assertLess(woken, 200)           # nor does it poll all the time
        self.assertLess(int(after["VmHWM"].split()[0]), 50 * 1024)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)


class Terminal(TestbedCase):
    def test_live_line(self):
        import pty
        leader, follower = pty.openpty()
        process = subprocess.Popen(self.command(*self.probe("sleep", seconds="1.2"), "--out", self.out), cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=follower)
        self.started.append(process)
        os.close(follower)
        process.stdout.read()
        self.assertEqual(process.wait(timeout=30), 0)
        seen = os.read(leader, 65536).decode()
        os.close(leader)
        self.assertIn("elapsed", seen)
        self.assertIn("\033[K", seen)


if __name__ == "__main__":
    main()
