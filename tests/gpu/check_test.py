"""tests/gpu/check without a GPU: what it names exists, a build can be packed, steps that fail, do nothing or time out are
reported, a second call resumes the first, and the whole check runs on the emulation."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["ASSAY"]).parent
EMULATED = BUILD / "emulated"
sys.dont_write_bytecode = True

loader = importlib.machinery.SourceFileLoader("check", str(HERE / "check"))
check = importlib.util.module_from_spec(importlib.util.spec_from_loader("check", loader))
loader.exec_module(check)

# A fake GoogleTest program: the first fault in a process makes every later test fail.
PROGRAM = '''#!{python}
import fnmatch, json, os, sys, time
tests = {tests!r}
flags = dict(word[2:].split("=", 1) if "=" in word else (word[2:], "") for word in sys.argv[1:])
chosen = [t for t in tests if any(fnmatch.fnmatchcase(t, p) for p in flags["gtest_filter"].split(":"))]
if "gtest_list_tests" in flags:
    print("Running main() from somewhere")
    for suite in dict.fromkeys(t.split(".")[0] for t in chosen):
        print(suite + ".")
        for t in chosen:
            if t.startswith(suite + "."):
                print("  " + t.split(".")[1] + "  # GetParam() = x")
    sys.exit(0)
with open({calls!r}, "a") as calls:
    calls.write(" ".join(chosen) + "\\n")
broken = False
for t in chosen:
    print("[ RUN      ] " + t, flush=True)
    broken = broken or tests[t] == "fault"
    if tests[t] == "crash":
        os._exit(139)
    if tests[t] == "slow" and not os.path.exists({calls!r} + ".go"):
        time.sleep(60)
    word = "  FAILED  " if broken else "  SKIPPED " if tests[t] == "skip" else "       OK "
    print("[" + word + "] " + t + (", where GetParam() = x" if broken else "") + " (0 ms)", flush=True)
sys.exit(1 if broken else 0)
'''


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="assay-check-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def program(self, **tests):
        path = self.dir / "program"
        path.write_text(PROGRAM.format(python=sys.executable, calls=str(self.dir / "calls"),
                                       tests={name.replace("__", "."): outcome for name, outcome in tests.items()}))
        path.chmod(0o755)
        return path

    def calls(self):
        return (self.dir / "calls").read_text().splitlines()

    def run_tests(self, program, chosen="*", seconds=60):
        return check.gtests.Tests(str(program), chosen, start=start).run(self.dir / "log", time.monotonic() + seconds)


def start(command, **more):
    return subprocess.Popen(command, start_new_session=True, **more)


class GoogleTests(Folder):
    def test_each_suite_has_a_process(self):
        status = self.run_tests(self.program(A__x="ok", A__y="skip", B__z="ok"))
        self.assertEqual(status, ("passed", "2 of 3 passed, 1 skipped"))
        self.assertEqual(self.calls(), ["A.x A.y", "B.z"])

    def test_victims_of_a_fault_are_distinguished(self):
        status, remark = self.run_tests(self.program(A__x="fault", A__y="ok", B__z="ok"))
        self.assertEqual((status, remark), ("failed", "1 of 3 passed, 2 failed (alone too: A.x)"))

    def test_a_crash_fails_only_its_test(self):
        status, remark = self.run_tests(self.program(A__x="crash", A__y="ok"))
        self.assertEqual((status, remark), ("failed", "1 of 2 passed, 1 failed (alone too: A.x)"))

    def test_no_passed_test_is_a_failure(self):
        program = self.program(A__x="skip")
        self.assertEqual(self.run_tests(program), ("failed", "0 of 1 passed, 1 skipped"))
        self.assertEqual(self.run_tests(program, "*/cuda_*"), ("failed", "no test matches */cuda_*"))
        self.assertEqual(self.run_tests(self.dir / "absent")[0], "failed")

    def test_an_interrupted_call_resumes(self):
        program = self.program(A__x="ok", A__y="slow", B__z="ok")
        status, remark = self.run_tests(program, seconds=1.5)
        self.assertEqual((status, remark), ("timeout", "1 of 3 passed, 2 did not run"))
        (self.dir / "calls.go").touch()
        self.assertEqual(self.run_tests(program), ("passed", "3 of 3 passed"))
        self.assertEqual(self.calls(), ["A.x A.y", "A.y", "B.z"])


class Steps(Folder):
    def test_each_part_fits_into_its_time(self):
        for step in check.steps():
            self.assertLess(step.seconds, check.PART_SECONDS, step.name)
        names = [step.name for step in check.steps()]
        self.assertEqual(len(names), len(set(names)))

    def test_every_filter_matches_tests(self):
        if not EMULATED.exists():
            self.skipTest("a build without CUDA")
        for step in check.steps():
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
                    for step in check.steps() if step.kind == "assay"}
        for entry in json.loads((check.ROOT / "tools/peers/gpu/comparisons.json").read_text()):
            commands[entry["name"]] = [str(BUILD / "assay"), "run", *entry["ours"]["assay"], "--device", "cuda"]
        for name, command in commands.items():
            done = subprocess.run(command + ["--dry-run"], env=environment, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, f"{name}: {done.stderr}")

    def test_comparisons_are_known(self):
        known = {entry["name"] for entry in json.loads((check.ROOT / "tools/peers/gpu/comparisons.json").read_text())}
        named = {step.command[-1] for step in check.steps() if step.kind == "ratios"}
        self.assertLessEqual(named, known)
        # Required comparisons.
        asked = check.asked_for()
        for name, least in (("gemm-bf16", 1), ("gemm-fp8", 1), ("gemm-fp8-fast", 1), ("memory-copy", 1), ("memory-triad", 1),
                            ("memory-copy-torch", 1), ("llama-1b", 1.15), ("gpt2-124m", 1.15), ("resnet50", 1.3), ("llama-1b-fp8", 1.15)):
            self.assertIn(name, named)
            self.assertIn(f"ratio >= {least:.2f}", asked["peer-" + name])
        self.assertIn("mfu >= 0.52 on an H100, mfu >= 0.55 on an H200", asked["peer-llama-1b"])

    def test_the_most_valuable_is_first(self):
        names = [step.name for step in check.steps()]
        order = ["device", "golden", "parity", "gpu-quick", "peer-gemm-bf16", "peer-llama-1b", "peer-llama-1b-fp8", "nccl-2",
                 "trace", "parity-matmul", "memcheck", "gpus-collective"]
        self.assertEqual(sorted(order, key=names.index), order)

    def test_budgets(self):
        self.assertEqual([check.duration(text) for text in ("25m", "90s", "1.5h", "2min")], [1500, 90, 5400, 120])
        for bad in ("25", "m", "-5m", "5s", "25 minutes"):
            done = subprocess.run([sys.executable, HERE / "check", "run", "--out", self.dir, f"--budget={bad}"],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, bad)
            self.assertIn("25m, 90s, 1.5h", done.stderr)


def pack(folder, module=BUILD / "libassay-cuda.so"):
    """Packs this build, with `module` as its CUDA module, into `folder`/bundle."""
    names = check.bundle.FILES + check.bundle.PROGRAMS
    absent = {name for name in names if not (BUILD / name).exists()}
    if not EMULATED.exists():
        raise unittest.SkipTest("a build without CUDA")
    assert absent <= {"peers/babelstream"}, absent  # belongs to the target `peers`
    for name in names:
        (folder / "build" / name).parent.mkdir(parents=True, exist_ok=True)
        own = module if name == "libassay-cuda.so" else BUILD / ("assay" if name in absent else name)
        (folder / "build" / name).symlink_to(own)
    check.bundle.pack(folder / "build", folder / "bundle")


class Bundle(Folder):
    def test_a_build_is_packed_with_its_libraries(self):
        pack(self.dir)
        libraries = {file.name.split(".so")[0] for file in (self.dir / "bundle/lib").iterdir()}
        self.assertLessEqual({"libfmt", "libdnnl", "libhwloc"}, libraries)
        self.assertFalse({"libcublasLt", "libcudnn", "libnccl", "libc", "libstdc++"} & libraries)
        self.assertTrue((self.dir / "bundle/lib/runtime/libstdc++.so.6").exists())
        self.assertTrue((self.dir / "bundle/configs/plans/gpu-quick.json").exists())
        self.assertFalse((self.dir / "bundle/assay").is_symlink())

    def test_a_build_that_lacks_something_is_named(self):
        (self.dir / "build").mkdir()
        with self.assertRaisesRegex(SystemExit, "lacks assay, libassay-cuda.so"):
            check.bundle.pack(self.dir / "build", self.dir / "bundle")

    def test_a_file_is_unpacked_once(self):
        (self.dir / "assay").write_text("x")
        with tarfile.open(self.dir / "b.tar.xz", "w:xz") as archive:
            archive.add(self.dir / "assay", arcname="./assay")
        folder = check.bundle.unpacked(self.dir / "b.tar.xz")
        try:
            self.assertEqual((folder / "assay").read_text(), "x")
            (folder / "mark").touch()
            self.assertEqual(check.bundle.unpacked(self.dir / "b.tar.xz"), folder)
            self.assertTrue((folder / "mark").exists())
        finally:
            for file in folder.iterdir():
                file.unlink()
            folder.rmdir()

    def test_only_a_bundle_brings_libraries(self):
        self.assertEqual(check.bundle.environment_of(self.dir, sys.executable).get("LD_LIBRARY_PATH"),
                         os.environ.get("LD_LIBRARY_PATH"))
        (self.dir / "lib").mkdir()
        for starts in (True, False):  # with the machine's runtime, or only with the bundle's
            (self.dir / "assay").write_text(f"#!/bin/sh\nexit {0 if starts else 1}\n")
            (self.dir / "assay").chmod(0o755)
            folders = check.bundle.environment_of(self.dir, sys.executable)["LD_LIBRARY_PATH"].split(":")
            self.assertEqual(folders[0], str(self.dir / ("lib" if starts else "lib/runtime")))
            self.assertIn(str(self.dir / "lib"), folders)
            self.assertEqual(folders[-1], "/usr/local/cuda/extras/CUPTI/lib64")


class Running(Folder):
    def runner(self, out="out", archive=None):
        return check.Runner(self.dir, self.dir / out, sys.executable, archive)

    def program_step(self, name, *command, seconds=30):
        return check.Step(1, name, seconds, "program", list(command))

    def test_outcomes_are_kept(self):
        runner = self.runner()
        runner.run(self.program_step("good", "true"))
        runner.run(self.program_step("bad", sys.executable, "-c", "print('reason'); raise SystemExit(3)"))
        runner.run(self.program_step("slow", "sleep", "30", seconds=0.2))
        runner.run(self.program_step("absent", "no-such-program"))
        archive = self.dir / "all.tar.gz"
        runner.archive = archive
        runner.run(self.program_step("last", "true"))
        want = {"good": "passed", "bad": "failed", "slow": "timeout", "absent": "skipped", "last": "passed"}
        for again in (self.runner(), self.runner("elsewhere", archive)):
            self.assertEqual({name: result["status"] for name, result in again.results.items()}, want)
            self.assertFalse(again.is_done(self.program_step("slow", "true")))
            self.assertEqual(again.results["bad"]["remark"], "reason")
        self.assertEqual((self.dir / "elsewhere/logs/bad.txt").read_text(), "reason\n")

    def test_comparisons_have_the_configurations_of_a_bundle_and_the_machines_libraries(self):
        (self.dir / "lib").mkdir()
        (self.dir / "assay").write_text("#!/bin/sh\n")
        (self.dir / "assay").chmod(0o755)
        code = "import os; print(os.environ['ASSAY_CONFIGS'], os.environ['LD_LIBRARY_PATH'])"
        runner = self.runner()
        runner.run(check.Step(1, "ratios", 30, "ratios", [sys.executable, "-c", code, "name"]))
        self.assertEqual(runner.results["ratios"]["remark"],
                         f"{self.dir / 'configs'} {os.environ.get('LD_LIBRARY_PATH', '')}".strip())

    def test_comparisons_say_why_there_is_no_ratio(self):
        for verdict, reason, code, want in (("broken", "does not fit: 39 GiB", 1, "failed"), ("skipped", "no torch", 3, "skipped"),
                                            ("unfinished", "no pair yet", 3, "timeout")):
            (self.dir / "out/ratios").mkdir(parents=True, exist_ok=True)
            rows = {"one": [{"name": "one", "verdict": verdict, "reason": reason}]}
            (self.dir / "out/ratios/rows.json").write_text(json.dumps(rows))
            runner = self.runner()
            runner.run(check.Step(1, verdict, 30, "ratios", [sys.executable, "-c", f"raise SystemExit({code})", "one"]))
            self.assertEqual(runner.results[verdict]["status"], want)
            if want != "timeout":
                self.assertEqual(runner.results[verdict]["remark"], f"one: {verdict}: {reason}")

    def test_records_say_how_a_run_went(self):
        assay = self.dir / "assay"
        lines = [{"key": "a", "status": "ok", "reason": ""}, {"key": "b", "status": "skipped", "reason": "no fp8"}]
        assay.write_text(f"#!{sys.executable}\nimport pathlib, sys\nout = pathlib.Path(sys.argv[-1])\n"
                         "out.mkdir(exist_ok=True)\n(out / 'run.json').touch()\n(out / 'words').open('a').write(sys.argv[-2])\n"
                         f"(out / 'records.jsonl').write_text({chr(10).join(map(json.dumps, lines))!r})\n"
                         "sys.exit(3 if len((out / 'words').read_text()) < 6 else 0)\n")
        assay.chmod(0o755)
        step = check.Step(1, "run", 30, "assay", ["{bin}/assay", "run", "--out", "{out}/run"])
        runner = self.runner()
        runner.run(step)
        self.assertEqual(runner.results["run"]["status"], "timeout")
        runner.run(step)
        self.assertEqual(runner.results["run"]["status"], "passed")
        self.assertEqual(runner.results["run"]["remark"], "1 ok, 1 skipped, b: skipped: no fp8")
        self.assertEqual((self.dir / "out/run/words").read_text(), "--out--resume")
        (self.dir / "out/run/records.jsonl").write_text(json.dumps(lines[1]))
        self.assertEqual(check.outcome_of_records(self.dir / "out/run"), (False, "1 skipped, b: skipped: no fp8"))
        slow = lines[0] | {"metrics": [{"name": "step_overhead", "value": 0.01}]}
        (self.dir / "out/run/records.jsonl").write_text(json.dumps(slow))
        self.assertEqual(check.outcome_of_records(self.dir / "out/run"), (True, "1 ok"))
        lacking = lines[0] | {"metrics": [{"name": "step_overhead", "value": None}]}
        (self.dir / "out/run/records.jsonl").write_text(json.dumps(lacking))
        self.assertEqual(check.outcome_of_records(self.dir / "out/run", 0.005), (False, "1 ok, step overhead unknown"))
        unfit = lines[1] | {"reason": "39 GiB are planned", "flags": ["does not fit"]}
        (self.dir / "out/run/records.jsonl").write_text("\n".join(map(json.dumps, (lines[0], unfit))))
        self.assertEqual(check.outcome_of_records(self.dir / "out/run"),
                         (False, "1 ok, 1 skipped, b: skipped: 39 GiB are planned, b must fit"))
        (self.dir / "out/run/records.jsonl").write_text(json.dumps(slow))
        self.assertEqual(check.outcome_of_records(self.dir / "out/run", 0.005), (False, "1 ok, step overhead 1.00 %, above 0.5 %"))
        runner.run(check.Step(1, "several", 30, "program", ["true"], min_gpus=99))
        self.assertEqual(runner.results["several"]["remark"], "needs 99 GPUs")

    def test_without_a_gpu_nothing_is_run(self):
        if not EMULATED.exists() or not (BUILD / "cuda_device_test").exists():
            self.skipTest("a build without CUDA")
        environment = os.environ | {"ASSAY_MODULE_PATH": str(EMULATED), "ASSAY_EMULATION": "no_driver"}
        done = subprocess.run([sys.executable, HERE / "check", "run", "--build", BUILD, "--out", self.dir / "out"],
                              env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("cannot use a GPU here: ", done.stderr)
        self.assertIn("driver", done.stderr)
        self.assertEqual(check.no_gpu(BUILD, os.environ | {"ASSAY_MODULE_PATH": str(EMULATED)}), "")


PEER = """
import sys
sys.path.insert(0, {here!r})
import serve
serve.serve(lambda: dict(value={value}, unit={unit!r}, better="higher", form="x"), dict(torch="2", device="stand-in"), False)
"""


class Whole(Folder):
    """Calls of the whole program, with the steps `self.steps`."""

    def call(self, *words, tick=0.0):
        """One call of the check; its clock, which the budget is measured by, advances `tick` s each time it is read."""
        now = [0.0]

        def clock():
            now[0] += tick
            return now[0]

        printed, run = io.StringIO(), check.run
        with mock.patch.object(check, "steps", lambda: self.steps), contextlib.redirect_stdout(printed), \
                mock.patch.object(sys, "argv", ["check", *map(str, words)]), mock.patch.dict(os.environ, ASSAY_EMULATION=""), \
                mock.patch.object(check, "run", lambda options: run(options, clock)):
            for name in ("SIGTERM", "SIGINT", "SIGHUP"):
                self.addCleanup(signal.signal, getattr(signal, name), signal.getsignal(getattr(signal, name)))
            code = check.main()
        return code, printed.getvalue()


class Summary(Whole):
    """What a check says of steps that did not run, with stand-ins for the build."""

    def setUp(self):
        super().setUp()
        self.program(CudaDevice__KnowsItself="ok").rename(self.dir / "cuda_device_test")
        (self.dir / "assay").touch()

    def check(self, *steps, out="out", words=()):
        self.steps = [check.Step(1, name, 30, "program", list(command), **more) for name, command, more in steps]
        with mock.patch.object(check, "asked_for", lambda: {}):
            return self.call("run", "--build", self.dir, "--out", self.dir / out, *words)

    good, absent = ("good", ["true"], {}), ("absent", ["no-such-program"], {})

    def test_a_required_step_that_could_not_run_is_listed_and_no_success(self):
        code, printed = self.check(self.good, self.absent)
        self.assertEqual(code, 3, printed)
        self.assertIn("not run, though required: absent: no no-such-program here", printed)
        self.assertNotIn("steps left", printed)
        code, printed = self.check(self.good, ("absent", ["true"], {}))  # it is there now
        self.assertEqual(code, 0, printed)

    def test_a_failure_counts_more(self):
        self.assertEqual(self.check(("bad", ["false"], {}), self.absent)[0], 1)

    def test_what_nothing_is_asked_of_and_what_needs_more_gpus_is_listed_only(self):
        code, printed = self.check(self.good, self.absent[:2] + ({"optional": True},), ("several", ["true"], {"min_gpus": 99}))
        self.assertEqual(code, 0, printed)
        self.assertIn("not run: absent: no no-such-program here", printed)
        self.assertIn("not run: several: needs 99 GPUs", printed)

    def test_choices_are_archived_and_can_be_taken_from_an_earlier_archive(self):
        script = ("cd $ASSAY_CACHE/.. && mkdir -p cache/algorithms cache/images && echo chosen > cache/algorithms/gpu.txt && "
                  f"touch cache/images/1 && head -c {check.MAX_ARCHIVED + 1} /dev/zero > trace.json")
        archive = self.dir / "a.tar.gz"
        (self.dir / "out/cache").mkdir(parents=True)
        code, printed = self.check(("search", ["sh", "-c", script], {}), words=("--archive", archive))
        self.assertEqual(code, 0, printed)
        self.assertIn("not in the archive, above 4 MiB: trace.json", printed)
        with tarfile.open(archive) as packed:
            names = set(packed.getnames())
        self.assertIn("./cache/algorithms/gpu.txt", names)
        self.assertFalse({"./cache/images", "./trace.json"} & names)
        look = ("look", ["sh", "-c", "cat $ASSAY_CACHE/algorithms/*"], {})
        self.assertEqual(self.check(look, out="new", words=("--archive", archive))[0], 0)
        code, printed = self.check(look, out="other", words=("--cache", archive))
        self.assertEqual((code, (self.dir / "other/logs/look.txt").read_text()), (0, "chosen\n"), printed)
        self.assertEqual(set(json.loads((self.dir / "other/results.json").read_text())), {"look"})  # and nothing else
        for absent in (self.dir / "nothing.tar.gz", self.dir / "assay"):
            with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()) as said:
                self.check(look, words=("--cache", absent))
            self.assertEqual(ended.exception.code, 2)
            self.assertIn(f"--cache {absent}: no archive of a check", said.getvalue())


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
        self.steps = [self.small(step) for step in check.steps()
                      if step.part <= 9 and (step.kind != "ratios" or step.name in rehearsed)]
        words = ("run", "--bundle", self.dir / "bundle", "--out", self.dir / "out", "--budget", "25m")
        code, printed = self.call(*words, tick=100)  # time for 14 steps, as the clock has it
        self.assertEqual(code, 3, printed)
        first = json.loads((self.dir / "out/results.json").read_text())
        left = [step.name for step in self.steps if step.name not in first]
        self.assertTrue(first and left, printed)
        self.assertEqual(list(first)[:3], ["environment", "nvidia-smi", "device"])
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
