"""assay run with 2 and 4 ranks under mpirun, possibly more than cores: faults of one rank, orphans, resume."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from testbed import TestbedCase, alive, descendants, main, wait_for, workers  # noqa: E402


class Ranks(TestbedCase):
    def test_one_rank_breaks_and_the_rest_is_measured(self):
        ops = ["skip", "fail", "throw", "abort", "kill", "exit", "ok"]
        done = self.run_assay(*self.probe(*ops, rank="1"), "--ranks", "2,4", "--out", self.out)
        self.assertEqual(done.returncode, 1, done.stderr)
        for ranks in (2, 4):
            records = {r["params"]["op"]: r for r in self.records() if r["world"]["ranks"] == ranks}
            self.assertEqual(set(records), set(ops))
            self.assertEqual({op: r["status"] for op, r in records.items()},
                             {"ok": "ok", "skip": "skipped", "fail": "failed", "throw": "error", "abort": "error",
                              "kill": "error", "exit": "error"})
            for op, word in [("fail", "rank 1: held"), ("throw", "rank 1: thrown"), ("abort", "SIGABRT"),
                             ("kill", "SIGKILL"), ("exit", "code 3")]:
                self.assertIn(word, records[op]["reason"])
            self.assertEqual(records["abort"]["log"], "last words of rank 1")
            self.assertEqual([r["rank"] for r in records["ok"]["ranks"]], list(range(ranks)))
            self.assertTrue(all(r["median"] for r in records["ok"]["ranks"]))
            beyond = ranks > cores()
            self.assertEqual(records["ok"]["comparable"], not beyond)
            self.assertEqual("oversubscribed" in records["ok"]["flags"], beyond)

    def test_a_rank_that_hangs_is_named(self):
        done = self.run_assay(*self.probe("hang", "ok", rank="1"), "--ranks", "2", "--timeout", "3", "--out", self.out)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertRegex(self.by_op()["hang"]["reason"], r"rank 1 on \S+, in measure for .*, has not arrived at \w+ \(call "
                                                         r"\d+ of their world\), where rank 0 waits")
        self.assertEqual(self.by_op()["ok"]["status"], "ok")
        self.assertEqual(len(self.by_op()["hang"]["ranks"]), 2)

    def test_ranks_that_cannot_answer_are_named_with_the_reason(self):
        words = {"stop": "does not answer: its process is stopped", "blocked": "its process sleeps uninterruptibly"}
        process = self.start(*self.probe(*words, "ok", rank="1"), "--ranks", "2", "--timeout", "3", "--out", self.out)
        held = {}
        while process.poll() is None:
            held.update(descendants(process.pid))
            time.sleep(0.1)
        self.assertEqual(process.returncode, 4)
        for op, word in words.items():
            self.assertRegex(self.by_op()[op]["reason"], rf"rank 1 on \S+, in measure for .*{word}")
        self.assertEqual(self.by_op()["ok"]["status"], "ok")
        self.assertEqual(alive(held), [])

    def test_an_injected_slow_rank_is_recorded(self):
        done = self.run_assay("probe", "--ranks", "2", "--inject", "slow-rank", "--out", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        record = self.records()[0]
        self.assertIn("injected:slow-rank", record["flags"])
        self.assertFalse(record["comparable"])

    def stop(self, how):
        process = self.start(*self.probe("hang", rank="0"), "--ranks", "2", "--out", self.out)
        wait_for(lambda: len(workers(process.pid)) == 2, "two ranks")
        held = descendants(process.pid)
        process.send_signal(how)
        # It should take two seconds, but more on a loaded machine.
        wait_for(lambda: not alive(held), "the end of launcher and ranks")
        process.wait(timeout=20)
        return process

    def test_kill_9_of_the_supervisor_ends_launcher_and_ranks(self):
        self.stop(signal.SIGKILL)

    def test_a_launcher_that_ignores_signals_ends_with_the_supervisor(self):
        env = self.fake("mpirun", "trap '' TERM INT HUP; while :; do sleep 0.1; done\n")
        process = self.start(*self.probe("ok"), "--ranks", "2", "--out", self.out, env=env)
        launcher = wait_for(lambda: [pid for pid, row in descendants(process.pid).items() if "mpirun" in row[2]],
                            "the launcher")
        process.send_signal(signal.SIGKILL)
        wait_for(lambda: not alive(launcher), "the end of the launcher")
        process.wait(timeout=20)

    def test_sigint_ends_launcher_and_ranks_and_resume_works(self):
        self.assertEqual(self.stop(signal.SIGINT).returncode, 3)
        done = self.run_assay("--resume", self.out, "--timeout", "2")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("timeout", self.records()[-1]["reason"])

    def test_kill_9_of_the_launcher_loses_the_case(self):
        process = self.start(*self.probe("hang", "ok", rank="0"), "--ranks", "2", "--out", self.out)
        wait_for(lambda: len(workers(process.pid)) == 2, "two ranks")
        held = descendants(process.pid)
        launcher, = {held[rank][0] for rank in workers(process.pid)}
        os.kill(launcher, signal.SIGKILL)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 4)
        self.assertEqual({r["params"]["op"]: r["status"] for r in self.records()}, {"hang": "error", "ok": "ok"})
        self.assertEqual(alive(held), [])

    def fake(self, name, text):
        folder = os.path.join(self.folder, "bin")
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write("#!/bin/bash\n" + text)
        os.chmod(path, 0o755)
        return {"PATH": folder + ":" + os.environ["PATH"]}

    def test_a_launcher_that_cannot_start_ranks_is_not_retried_forever(self):
        env = self.fake("mpirun", "echo the fabric is down >&2; exit 7")
        done = self.run_assay(*self.probe("ok", n="0,1,2,3"), "--ranks", "2", "--out", self.out, env=env)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertEqual(len(self.records()), 4)
        for record in self.records():
            self.assertIn("ended with code 7", record["reason"])
            self.assertIn("the fabric is down", record["reason"])

    def test_the_trace_shows_all_ranks(self):
        import json
        done = self.run_assay(*self.probe("ok"), "--ranks", "2", "--trace", "--out", self.out)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(os.path.join(self.out, "trace.json")) as file:
            trace = json.load(file)
        events = trace["traceEvents"] if isinstance(trace, dict) else trace
        self.assertEqual({event["pid"] for event in events if event.get("name") == "measure"}, {0, 1})


def cores():
    found = set()
    for cpu in os.sched_getaffinity(0):
        with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") as file:
            found.add(file.read())
    return len(found)


if __name__ == "__main__":
    main()
