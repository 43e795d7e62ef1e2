"""tests/gpu/check without a GPU: steps that fail, do nothing or time out are reported, a second call resumes the first, and a
build can be packed."""

import contextlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import time
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from check_support import BUILD, EMULATED, HERE, Folder, Whole, check, pack  # noqa: E402


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
        return check.plan.Step(1, name, seconds, seconds, "program", list(command))

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
        runner.run(check.plan.Step(1, "ratios", 30, 30, "ratios", [sys.executable, "-c", code, "name"]))
        self.assertEqual(runner.results["ratios"]["remark"],
                         f"{self.dir / 'configs'} {os.environ.get('LD_LIBRARY_PATH', '')}".strip())

    def test_comparisons_say_why_there_is_no_ratio(self):
        for verdict, reason, code, want in (("broken", "does not fit: 39 GiB", 1, "failed"), ("skipped", "no torch", 3, "skipped"),
                                            ("unfinished", "no pair yet", 3, "timeout")):
            (self.dir / "out/ratios").mkdir(parents=True, exist_ok=True)
            rows = {"one": [{"name": "one", "verdict": verdict, "reason": reason}]}
            (self.dir / "out/ratios/rows.json").write_text(json.dumps(rows))
            runner = self.runner()
            runner.run(check.plan.Step(1, verdict, 30, 30, "ratios", [sys.executable, "-c", f"raise SystemExit({code})", "one"]))
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
        step = check.plan.Step(1, "run", 30, 30, "assay", ["{bin}/assay", "run", "--out", "{out}/run"])
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
        runner.run(check.plan.Step(1, "several", 30, 30, "program", ["true"], min_gpus=99))
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


class Summary(Whole):
    """What a check says of steps that did not run, with stand-ins for the build."""

    def setUp(self):
        super().setUp()
        self.program(CudaDevice__KnowsItself="ok").rename(self.dir / "cuda_device_test")
        (self.dir / "assay").touch()

    def check(self, *steps, out="out", words=()):
        self.steps = [check.plan.Step(1, name, 30, 30, "program", list(command), **more) for name, command, more in steps]
        with mock.patch.object(check.plan, "asked_for", lambda: {}):
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


if __name__ == "__main__":
    unittest.main()
