"""Kills at random moments, of workers, of the supervisor and of hosts' agents, of one rank and of two, also while training
writes its checkpoints: no finished record is lost or torn, --resume completes the run, and no process is left.
usage: kills_test.py KILLS [SEED]"""
import json
import os
import random
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from host_names import with_mpi  # noqa: E402
from hosts import HostsCase  # noqa: E402
from testbed import BINARY, alive, descendants, wait_for, workers  # noqa: E402

KILLS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
CASES = 12
ASSAY = os.environ.get("ASSAY")


class Kills(HostsCase):
    binary = BINARY
    runs = 0

    def command(self, *words):
        return [self.binary, "run", *words]

    def new_out(self):
        """A new directory per run, also after one that was over before its kill."""
        self.runs += 1
        self.out = os.path.join(self.folder, f"run-{self.runs}")

    def lines(self):
        """The whole lines of the records so far."""
        path = os.path.join(self.out, "records.jsonl")
        if not os.path.exists(path):
            return []
        with open(path, "rb") as file:
            return [line for line in file.read().split(b"\n")[:-1]]

    def kill_one(self, chance, process, longest, kinds):
        """Kills a process of one of these kinds after a random delay; what was killed, or None if the run was over."""
        time.sleep(chance.uniform(0, longest))
        kind = chance.choice(kinds)
        victims = {"worker": lambda: workers(process.pid, self.binary), "agent": lambda: self.marked("testbed agent"),
                   "supervisor": list}[kind]()
        if process.poll() is not None:
            return None
        if not victims:
            kind, victims = "supervisor", [process.pid]
        family = list(descendants(process.pid))
        try:
            victim = chance.choice(victims)
            if kind == "agent" and chance.random() < 0.3:
                self.unplug(self.host_of(victim))   # for good
            os.kill(victim, signal.SIGKILL)
        except (ProcessLookupError, FileNotFoundError):
            return None
        if kind == "supervisor":
            process.wait(timeout=30)
            wait_for(lambda: not alive(family), "the end of the killed supervisor's processes", 10)
        return kind

    def run_and_kill(self, chance, words, longest, kinds=("supervisor", "worker"), env=None):
        """Starts the run, kills once, resumes until the run is complete; what was killed."""
        while True:
            process = self.start(*words, env=env)
            victim = self.kill_one(chance, process, longest, kinds)
            before = self.lines()
            said = process.communicate(timeout=300)[1]
            self.assertNotEqual(process.returncode, 2, said)   # what a kill leaves is not bad input
            for line in before:
                json.loads(line)
            self.assertEqual(self.lines()[:len(before)], before)   # finished records stay as they were
            self.plug_in()
            if os.path.exists(os.path.join(self.out, "run.json")):
                break   # else it was killed before the directory existed: start again
        done = self.run_assay("--resume", self.out, timeout=300, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(alive(descendants(process.pid)), [])
        return victim

    def test_nothing_is_lost(self):
        print(f"seed {SEED}", flush=True)
        chance = random.Random(SEED)
        killed = {"supervisor": 0, "worker": 0}
        while sum(killed.values()) < KILLS:
            self.new_out()
            words = self.probe("ok", n=",".join(map(str, range(CASES)))) + ["--out", self.out]
            if chance.random() < 0.3:
                words += ["--ranks", "2"]
            if victim := self.run_and_kill(chance, words, 0.8):
                killed[victim] += 1
            last = {}
            for record in self.records():
                last[record["key"]] = record["status"]
            self.assertEqual(list(last.values()), ["ok"] * CASES)
        print(f"{killed['worker']} workers and {killed['supervisor']} supervisors killed", flush=True)

    @with_mpi
    def test_nothing_is_lost_with_an_agent(self):
        print(f"seed {SEED}", flush=True)
        chance = random.Random(SEED)
        env = self.hosts("one", "two")
        killed = {"supervisor": 0, "worker": 0, "agent": 0}
        while killed["agent"] < max(2, KILLS // 2):
            self.new_out()
            words = self.probe("ok", n=",".join(map(str, range(CASES)))) + ["--out", self.out]
            each = chance.random() < 0.3
            words += ["--each-host"] if each else ["--ranks", "1,2"]
            if victim := self.run_and_kill(chance, words, 3, ("agent", "agent", "agent", "worker", "supervisor"), env):
                killed[victim] += 1
            self.gone()
            last = {}
            for record in self.records():
                place = record["ranks"][0]["host"] if each else record["world"]["ranks"]
                last[record["key"], place] = record["status"]
            self.assertEqual(list(last.values()), ["ok"] * 2 * CASES)
        print(", ".join(f"{number} {kind}s" for kind, number in killed.items()), "killed", flush=True)

    @unittest.skipUnless(ASSAY, "no binary that trains")
    def test_training_goes_on_from_its_last_whole_checkpoint(self):
        print(f"seed {SEED}", flush=True)
        self.binary = ASSAY
        chance = random.Random(SEED)
        killed, resumed = {"supervisor": 0, "worker": 0}, 0
        plan = os.path.join(self.folder, "plan.json")
        with open(plan, "w") as file:
            json.dump({"schema": 1, "name": "p", "cases": [
                {"family": "transformer", "model": "gpt2-tiny", "micro_batch": 2, "seq": 32, "threads": 1, "save_every": 2,
                 "protocol": {"max_seconds": "2s", "warmup_seconds": "1ms", "min_samples": 20,
                              "target_relative_ci": 1e-6}}]}, file)
        while sum(killed.values()) < max(2, KILLS // 5):
            self.new_out()
            words = [plan, "--device", "cpu", "--out", self.out]
            if chance.random() < 0.5:
                words += ["--ranks", "2"]
            if victim := self.run_and_kill(chance, words, 3):
                killed[victim] += 1
            last = self.records()[-1]
            self.assertEqual(last["status"], "ok", last["reason"])
            resumed += any(flag.startswith("resumed from step") for flag in last["flags"])
            self.assertRegex(" ".join(sorted(os.listdir(os.path.join(self.out, "checkpoints")))),
                             r"^(\S+\.ckpt) \1\.[ab]$")
        print(f"{killed['worker']} workers and {killed['supervisor']} supervisors killed, {resumed} went on from a "
              "checkpoint", flush=True)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
