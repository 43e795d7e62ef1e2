"""Kills at random moments, of workers and of the supervisor: no finished record is lost or torn, --resume completes the
run, and no process is left. usage: kills_test.py KILLS [SEED]"""
import json
import os
import random
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from testbed import TestbedCase, alive, descendants, wait_for, workers  # noqa: E402

KILLS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
CASES = 12


class Kills(TestbedCase):
    def lines(self):
        """The whole lines of the records so far."""
        path = os.path.join(self.out, "records.jsonl")
        if not os.path.exists(path):
            return []
        with open(path, "rb") as file:
            return [line for line in file.read().split(b"\n")[:-1]]

    def kill_one(self, chance, process):
        """Kills a worker or the supervisor after a random while; what was killed, or None when the run was over."""
        time.sleep(chance.uniform(0, 0.8))
        victims = workers(process.pid)
        supervisor = chance.random() < 0.5 or not victims
        if process.poll() is not None:
            return None
        family = list(descendants(process.pid))
        os.kill(process.pid if supervisor else chance.choice(victims), signal.SIGKILL)
        if supervisor:
            process.wait(timeout=30)
            wait_for(lambda: not alive(family), "the end of the killed supervisor's processes", 10)
        return "supervisor" if supervisor else "worker"

    def test_nothing_is_lost(self):
        print(f"seed {SEED}", flush=True)
        chance = random.Random(SEED)
        killed = {"supervisor": 0, "worker": 0}
        while sum(killed.values()) < KILLS:
            self.out = os.path.join(self.folder, f"run-{sum(killed.values())}")
            words = self.probe("ok", n=",".join(map(str, range(CASES)))) + ["--out", self.out]
            if chance.random() < 0.3:
                words += ["--ranks", "2"]
            while True:
                process = self.start(*words)
                victim = self.kill_one(chance, process)
                before = self.lines()
                process.communicate(timeout=120)
                if victim:
                    killed[victim] += 1
                for line in before:
                    json.loads(line)
                self.assertEqual(self.lines()[:len(before)], before)   # what was finished stays as it was
                if not os.path.exists(os.path.join(self.out, "run.json")):
                    continue   # killed before the directory was there: the same command starts it
                done = self.run_assay("--resume", self.out)
                self.assertEqual(done.returncode, 0, done.stderr)
                break
            last = {}
            for record in self.records():
                last[record["key"]] = record["status"]
            self.assertEqual(list(last.values()), ["ok"] * CASES)
        print(f"{killed['worker']} workers and {killed['supervisor']} supervisors killed", flush=True)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
