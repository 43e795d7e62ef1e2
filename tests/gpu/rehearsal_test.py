"""tests/gpu/check without a GPU: what it names exists, what 9, 25 and 45 minutes give by the declared times, and the whole
check on the emulation."""

import json
import os
import pathlib
import subprocess
import sys
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from check_support import BUILD, EMULATED, HERE, Folder, Whole, check, pack  # noqa: E402


class Steps(Folder):
    def test_each_part_fits_into_its_time(self):
        every = check.plan.steps()
        for step in every:
            self.assertLess(step.seconds, check.plan.PART_SECONDS, step.name)
            self.assertLessEqual(step.expected, step.seconds, step.name)
        for part in check.plan.PARTS:
            expected = [step.expected for step in every if step.part == part]
            self.assertTrue(expected, part)
            self.assertLessEqual(sum(expected) + check.plan.START_SECONDS, check.plan.PART_SECONDS, part)
        self.assertLessEqual({step.part for step in every}, set(check.plan.PARTS))
        names = [step.name for step in every]
        self.assertEqual(len(names), len(set(names)))

    def test_every_filter_matches_tests(self):
        if not EMULATED.exists():
            self.skipTest("a build without CUDA")
        for step in check.plan.steps():
            program = BUILD / step.command[-1].removeprefix("{bin}/")
            if step.kind != "tests" or not program.exists():
                continue
            for part in step.chosen.split(":"):
                tests = check.gtests.Tests(str(program), part, environment=os.environ | {"ASSAY_TEST_RANKS": "1"}).list()
                self.assertTrue(tests, f"{step.name}: {part}")

    def test_every_run_expands_on_the_emulation(self):
        if not EMULATED.exists():
            self.skipTest("a build without CUDA")
        environment = {**os.environ, "ASSAY_MODULE_PATH": str(EMULATED), "ASSAY_EMULATION": "devices=4"}
        commands = {step.name: [word.format(bin=BUILD, out=self.dir, gpus=4) for word in step.command]
                    for step in check.plan.steps() if step.kind == "assay"}
        for entry in json.loads((check.ROOT / "tools/peers/gpu/comparisons.json").read_text()):
            commands[entry["name"]] = [str(BUILD / "assay"), "run", *entry["ours"]["assay"], "--device", "cuda"]
        for name, command in commands.items():
            done = subprocess.run(command + ["--dry-run"], env=environment, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, f"{name}: {done.stderr}")

    def test_comparisons_are_known(self):
        known = {entry["name"] for entry in json.loads((check.ROOT / "tools/peers/gpu/comparisons.json").read_text())}
        named = {step.command[-1] for step in check.plan.steps() if step.kind == "ratios"}
        self.assertLessEqual(named, known)
        # Required comparisons.
        asked = check.plan.asked_for()
        for name, least in (("gemm-bf16", 1), ("gemm-fp8", 1), ("gemm-fp8-fast", 1), ("memory-copy", 1), ("memory-triad", 1),
                            ("memory-copy-torch", 1), ("llama-1b", 1.15), ("gpt2-124m", 1.15), ("resnet50", 1.3), ("llama-1b-fp8", 1.15)):
            self.assertIn(name, named)
            self.assertIn(f"ratio >= {least:.2f}", asked["peer-" + name])
        self.assertIn("mfu >= 0.52 on an H100, mfu >= 0.55 on an H200", asked["peer-llama-1b"])

    def test_what_one_would_regret_most_is_first(self):
        names = [step.name for step in check.plan.steps()]
        order = ["environment", "gpu-dump", "nccl-log", "device", "golden", "step", "nccl-1", "llama-1b", "gpt2-124m", "resnet50", "gpu-quick-first",
                 "trace", "nccl-2", "peer-gemm-bf16", "parity", "peer-llama-1b", "peer-gpt2-124m", "peer-resnet50",
                 "peer-llama-1b-fp8", "gpu-quick", "parity-matmul", "memcheck", "peer-llama-1b-any", "gpus-collective"]
        self.assertEqual(sorted(order, key=names.index), order)

    def test_the_first_cases_of_gpu_quick(self):
        if not EMULATED.exists():
            self.skipTest("a build without CUDA")
        command = [BUILD / "assay", "run", "gpu-quick", "--device", "cuda", "--dry-run", "--filter", check.plan.FIRST_CASES]
        done = subprocess.run(command, env=os.environ | {"ASSAY_MODULE_PATH": str(EMULATED)}, capture_output=True, text=True)
        self.assertIn("plan gpu-quick on cuda: 12 cases", done.stdout, done.stderr)

    def test_what_comes_next(self):
        def step(name, expected):
            return check.plan.Step(1, name, expected, expected, "program", [])

        long, short = step("long", 300), step("short", 60)
        for seconds, steps, want in ((400, [long, short], long), (200, [long, short], short), (200, [long], long),
                                     (check.plan.MIN_SECONDS - 1, [long, short], None), (400, [], None)):
            self.assertEqual(check.plan.next_step(steps, seconds), want)

    def test_budgets(self):
        self.assertEqual([check.duration(text) for text in ("25m", "90s", "1.5h", "2min")], [1500, 90, 5400, 120])
        for bad in ("25", "m", "-5m", "5s", "25 minutes"):
            done = subprocess.run([sys.executable, HERE / "check", "run", "--out", self.dir, f"--budget={bad}"],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, bad)
            self.assertIn("25m, 90s, 1.5h", done.stderr)


class Sleeping(check.Runner):
    """Steps that only take their declared times, on the made-up clock `clock`, and have pieces: what was done is kept."""

    def outcome(self, step, seconds):
        if int(self.words["gpus"]) < step.min_gpus:
            return "skipped", f"needs {step.min_gpus} GPUs"
        file = self.out / "slept.json"
        slept = json.loads(file.read_text()) if file.exists() else {}
        taken = min(step.expected - slept.get(step.name, 0), seconds)
        self.clock.now += taken
        file.write_text(json.dumps(slept | {step.name: slept.get(step.name, 0) + taken}))
        choices = self.out / check.CHOICES[0] / check.CHOICES[1]
        choices.mkdir(parents=True, exist_ok=True)
        self.clock.found_choices = sorted(path.name for path in choices.iterdir())
        (choices / step.name).touch()
        done = slept.get(step.name, 0) + taken >= step.expected
        return ("passed", "") if done else ("timeout", "resumes")


class TimeGiven(Whole):
    """What a time on GPUs gives, in calls of nine minutes at most, each on another machine that has only the archive."""

    def spend(self, minutes):
        self.steps, self.now, self.found_choices = check.plan.steps(), 0.0, []
        left, number, results = 60 * minutes, 0, {}
        with mock.patch.object(check, "Runner", Sleeping), mock.patch.object(Sleeping, "clock", self, create=True), \
                mock.patch.object(check, "no_gpu", self.starts), mock.patch.object(check, "gpu_count", lambda: 1):
            while left >= 60:
                number, began, budget = number + 1, self.now, min(left, check.plan.PART_SECONDS)
                out = self.dir / f"{minutes}-{number}"
                code, printed = self.call("run", "--build", self.dir, "--out", out, "--budget", f"{budget}s", "--archive",
                                          self.dir / f"{minutes}.tar.gz", clock=lambda: self.now)
                self.assertEqual(code, 3, printed)
                self.assertLessEqual(self.now - began, budget)
                before, results = results, json.loads((out / "results.json").read_text())
                for name, result in before.items():
                    if result["status"] == "passed":
                        self.assertEqual(results[name], result)  # not run again
                if number > 1:
                    self.assertTrue(self.found_choices)  # of the earlier machines
                left -= budget
        passed = [name for name, result in results.items() if result["status"] == "passed"]
        begun = [name for name, result in results.items() if result["status"] == "timeout"]
        print(f"{minutes} minutes, {number} calls: {', '.join(passed)}; begun: {', '.join(begun) or 'nothing'}")
        return passed, begun

    def starts(self, *_):
        self.now += check.plan.START_SECONDS
        return ""

    def test_what_9_25_and_45_minutes_give(self):
        (self.dir / "assay").touch()
        right = ["environment", "gpu-dump", "nvidia-smi", "nccl-log", "device", "golden", "step", "nccl-1"]
        own = ["llama-1b", "gpt2-124m", "resnet50"]
        kernels = ["peer-gemm-bf16", "peer-gemm-fp8", "peer-memory-copy", "peer-memory-triad"]
        more = ["gpu-quick-first", "trace", "nccl-2", *kernels, "parity"]
        passed, _ = self.spend(9)
        self.assertEqual(passed[:len(right) + 2], right + own[:2])
        passed, begun = self.spend(25)
        self.assertLessEqual({*right, *own, *more}, {*passed, *begun})
        self.assertLessEqual({*right, *own, *more} - {"parity"}, set(passed))
        passed, begun = self.spend(45)
        self.assertLessEqual({*right, *own, *more, "peer-llama-1b", "peer-gpt2-124m"}, set(passed))


PEER = """
import sys
sys.path.insert(0, {here!r})
import serve
serve.serve(lambda: dict(value={value}, unit={unit!r}, better="higher", form="x"), dict(torch="2", device="stand-in"), False)
"""


class Rehearsal(Whole):
    """A whole check on the emulation, from pack to report: each step as it is, but with less to do."""

    def small(self, step):
        if step.kind == "tests":
            tests = check.gtests.Tests(step.command[-1].format(bin=BUILD), step.chosen,
                                       environment=os.environ | {"ASSAY_TEST_RANKS": "1"}).list()
            return step._replace(command=[step.command[-1]], chosen=next(iter(tests.values()))[0])
        if step.kind == "assay":
            flags = [word for word in step.command if word in ("--share-gpu", "--trace")]
            own = ["--ranks", "2", self.plan(family="collective", op="all_reduce", bytes=8)] if "--share-gpu" in flags else [
                self.plan(family="llama", model="llama-tiny", micro_batch=1, seq=16)]
            return step._replace(command=["{bin}/assay", "run", "--device", "cuda", *own, *flags, "--out", "{out}/" + step.name])
        if step.kind == "ratios":
            return step._replace(command=[*step.command[:-1], "--comparisons", str(self.dir / "comparisons.json"), step.command[-1]])
        return step

    def plan(self, **case):
        path = self.dir / f"{case['family']}.json"
        path.write_text(json.dumps({"schema": 1, "protocol": {"max_seconds": 0.02, "warmup_seconds": 0, "min_samples": 3},
                                    "cases": [case]}))
        return str(path)

    def comparisons(self):
        """The shipped comparisons that are rehearsed, with the same bounds but one, and stand-ins as peers."""
        kept = []
        for entry in json.loads((check.ROOT / "tools/peers/gpu/comparisons.json").read_text()):
            metric, unit, value, case = "bandwidth", "B/s", 1, {"family": "memory", "op": "copy", "bytes": 4096}
            if entry["name"].startswith("llama-1b"):
                metric, unit, value = "throughput", "tokens/s", 1e12
                case = {"family": "llama", "model": "llama-tiny", "micro_batch": 1, "seq": 16}
            elif entry["name"] != "memory-copy":
                continue
            (self.dir / f"{entry['name']}.py").write_text(
                PEER.format(here=str(check.ROOT / "tools/peers/gpu"), value=value, unit=unit))
            own = {"assay": [self.plan(**case)], "metric": metric}
            peer = {"serve": ["{python}", str(self.dir / f"{entry['name']}.py")]}
            entry |= {"ours": own, "peer": peer if "serve" in entry["peer"] or "command" in entry["peer"] else own, "pairs": 6}
            kept.append({name: value for name, value in entry.items() if name != "also"})
        (self.dir / "comparisons.json").write_text(json.dumps(kept))
        return {"peer-" + entry["name"] for entry in kept}

    def test_from_pack_to_report(self):
        pack(self.dir, EMULATED / "libassay-cuda.so")
        rehearsed = self.comparisons()
        self.steps = [self.small(step) for step in check.plan.steps()
                      if (step.part <= 10 or step.name.startswith("share-gpu")) and (
                          step.kind != "ratios" or step.name in rehearsed)]
        words = ("run", "--bundle", self.dir / "bundle", "--out", self.dir / "out", "--budget", "25m")
        code, printed = self.call(*words, tick=100)  # time for 14 steps, as the clock has it
        self.assertEqual(code, 3, printed)
        first = json.loads((self.dir / "out/results.json").read_text())
        left = [step.name for step in self.steps if step.name not in first]
        self.assertTrue(first and left, printed)
        self.assertEqual(list(first)[:5], ["environment", "gpu-dump", "nvidia-smi", "nccl-log", "device"])
        self.assertRegex(printed, r"peer-llama-1b-fp8 +left +ratio >= 1.15")
        self.assertIn(f"{len(left)} steps left: the same command goes on with them", printed)

        code, printed = self.call(*words)
        results = json.loads((self.dir / "out/results.json").read_text())
        self.assertEqual(set(results), {step.name for step in self.steps})
        self.assertEqual({name: results[name] for name in first}, first)  # not run again
        bad = {name: result["remark"] for name, result in results.items() if result["status"] not in ("passed", "skipped")}
        self.assertEqual(code, 1, printed)  # the stand-in of PyTorch is faster than the emulation, and fp8 no faster than itself
        self.assertLessEqual({"peer-llama-1b"}, set(bad))
        self.assertLessEqual(set(bad), {"peer-llama-1b", "peer-llama-1b-fp8"}, bad)
        self.assertRegex(bad["peer-llama-1b"], r"^llama-1b 0\.000 >= 1\.15; ")
        self.assertRegex(results["peer-memory-copy"]["remark"], r"^memory-copy \d+\.\d+ >= 1\.00$")
        page = (self.dir / "out/report.html").read_text()
        self.assertIn("not yet validated on hardware", page)
        self.assertIn("shared GPU", page)
        self.assertIn("| llama-1b-fp8 |", (self.dir / "out/ratios/ratios.md").read_text())
        self.assertIn(f"report: {self.dir / 'out/report.html'}", printed)


if __name__ == "__main__":
    unittest.main()
