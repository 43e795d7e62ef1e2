"""Kills at random moments. Of workers, of the supervisor and of hosts' agents, of one rank and of two, also while training
writes its checkpoints: no finished record is lost or torn, --resume completes the run, and no process is left. Of commands
that write files: a file is the one before or the whole new one, and the command works when it is repeated.
usage: kills_test.py KILLS [SEED]   KILLS: all together; tests/cli/history_store_test.py kills what adds to a history"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from host_names import with_mpi  # noqa: E402
from hosts import HostsCase  # noqa: E402
from fake_machine import write_machine  # noqa: E402
from testbed import BINARY, TestbedCase, alive, descendants, wait_for, workers  # noqa: E402

KILLS = int(sys.argv[1]) if len(sys.argv) > 1 else 100
RUN_KILLS, AGENT_KILLS, TRAINING_KILLS, EXPORT_KILLS, PACK_KILLS, ACCEPT_KILLS = (
    max(1, int(KILLS * part)) for part in (0.5, 0.12, 0.06, 0.13, 0.13, 0.06))
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
            wait_for(lambda: not alive(family), "the end of the killed supervisor's processes", 60)
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
        while sum(killed.values()) < RUN_KILLS:
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
        while killed["agent"] < AGENT_KILLS:
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
        while sum(killed.values()) < TRAINING_KILLS:
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


RUNS = pathlib.Path(__file__).resolve().parents[1] / "runs"


@unittest.skipUnless(ASSAY, "no binary that judges")
class Files(TestbedCase):
    """Commands that write: each is first run to its end, which shows its time and what it should leave."""

    def setUp(self):
        super().setUp()
        self.chance = random.Random(SEED)
        self.dir = pathlib.Path(self.folder)

    def assay(self, *words, env=None, codes=(0, 1, 3)):
        done = subprocess.run([ASSAY, *map(str, words)], cwd=self.dir, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=300)
        self.assertIn(done.returncode, codes, done.stderr)
        return done

    def timed(self, *words, env=None):
        begin = time.monotonic()
        self.assay(*words, env=env)
        return time.monotonic() - begin

    def killed(self, seconds, *words, env=None):
        """Whether it was killed before its end, at a random moment of that many seconds; nothing of it is left then."""
        process = subprocess.Popen([ASSAY, *map(str, words)], cwd=self.dir, env={**os.environ, **(env or {})},
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.started.append(process)
        time.sleep(self.chance.uniform(0, seconds))
        family = list(descendants(process.pid))
        process.kill()
        process.wait()
        if family:
            wait_for(lambda: not alive(family), "the end of the killed command's processes", 30)
        return process.returncode == -signal.SIGKILL

    def replaced(self, kills, file, *words, old=b"what was there before\n"):
        """Kills what replaces `file`: it is what it was or what it becomes, and both are whole."""
        file = self.dir / file
        seconds = self.timed(*words)
        new, count, attempts = file.read_bytes(), 0, 0
        while count < kills:
            attempts += 1
            self.assertLess(attempts, 50 * kills, "most processes ended before they were killed")
            file.write_bytes(old)
            count += self.killed(1.2 * seconds, *words)
            self.assertIn(file.read_bytes(), (old, new), words)
        # What the killed ones left beside it is in nobody's way.
        self.assay(*words)
        self.assertEqual(file.read_bytes(), new)
        return count

    def test_exports(self):
        runs = [RUNS / name for name in ("micro-base-1", "micro-base-2", "training-1", "gpu", "ranks")]
        self.assay("history", "add", *runs, "--store", "h.db")
        commands = {"x.csv": ["export", "csv", *runs, "--out", "x.csv"], "x.bmf": ["export", "bmf", *runs, "--out", "x.bmf"],
                    "x.prom": ["export", "prometheus", *runs, "--out", "x.prom"], "x.html": ["report", *runs, "--html", "x.html"],
                    "h.jsonl": ["history", "export", "--format", "jsonl", "--store", "h.db", "--out", "h.jsonl"]}
        each = -(-EXPORT_KILLS // len(commands))
        print(f"seed {SEED}:", sum(self.replaced(each, file, *words) for file, words in commands.items()), "exports killed", flush=True)

    def test_packs(self):
        words = ["check", RUNS / "micro-base-1", "--floors", RUNS / "floors/pass.json", "--pack", "p.tar"]
        old = (RUNS.parent / "old/pack/passes.tar").read_bytes()   # only packs are replaced
        print(f"seed {SEED}:", self.replaced(PACK_KILLS, "p.tar", *words, old=old), "packs killed", flush=True)
        self.assay("check", "p.tar")

    def test_acceptances_go_on(self):
        plan = {"schema": 1, "name": "product", "cases": [{"family": "gemm", "dtype": "f32", "m": 64, "n": 64, "k": 64}],
                "protocol": {"max_seconds": "50ms", "warmup_seconds": "1ms", "min_samples": 3}}
        (self.dir / "product.json").write_text(json.dumps(plan))
        (self.dir / "tiny.json").write_text(json.dumps({"schema": 1, "host": ["product"], "training": ["product"]}))
        write_machine(self.dir / "machine", gpus=0)
        env = {"ASSAY_ROOT": str(self.dir / "machine")}
        accept = ["accept", "--device", "cpu", "--level", "tiny.json"]
        seconds = self.timed(*accept, "--out", "whole", env=env)
        count, resumed, attempts = 0, 0, 0
        while count < ACCEPT_KILLS:
            out = f"out-{resumed}"
            attempts += 1
            self.assertLess(attempts, 50 * ACCEPT_KILLS, "most processes ended before they were killed")
            count += self.killed(seconds, *accept, "--out", out, env=env)
            if not (self.dir / out / "state.json").exists():   # killed before it began: it begins again
                continue
            kept = {path: path.read_bytes() for path in (self.dir / out).rglob("records.jsonl")}
            self.assay(*accept, "--resume", out, env=env, codes=(0, 3))
            resumed += 1
            for path, lines in kept.items():   # finished records stay as they were
                whole = lines[:lines.rfind(b"\n") + 1]
                self.assertEqual(path.read_bytes()[:len(whole)], whole)
            tables = [json.loads((self.dir / folder / "accept.json").read_text())["hosts"] for folder in ("whole", out)]
            states = [[(check["name"], check["state"]) for host in hosts for check in host["checks"]] for hosts in tables]
            self.assertEqual(states[0], states[1])
            self.assertEqual(alive(descendants(os.getpid())), [])
        print(f"seed {SEED}: {count} acceptances killed, {resumed} went on", flush=True)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
