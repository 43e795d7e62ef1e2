"""tests/gpu/check without a GPU: what it names exists, a build is packed, steps that fail or take too long are said,
and a second call goes on where the first ended."""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["ASSAY"]).parent

loader = importlib.machinery.SourceFileLoader("check", str(HERE / "check"))
spec = importlib.util.spec_from_loader("check", loader)
check = importlib.util.module_from_spec(spec)
sys.dont_write_bytecode = True
loader.exec_module(check)


class Check(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="assay-check-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def test_each_part_fits_into_its_time(self):
        for part in {step[0] for step in check.steps()}:
            seconds = [step[2] for step in check.steps() if step[0] == part]
            self.assertLess(max(seconds), check.PART_SECONDS)
        names = [step[1] for step in check.steps()]
        self.assertEqual(len(names), len(set(names)))

    def test_every_run_expands_on_the_emulation(self):
        if not (BUILD / "emulated" / "libassay-cuda.so").exists():
            self.skipTest("a build without CUDA")
        environment = {**os.environ, "ASSAY_MODULE_PATH": str(BUILD / "emulated")}
        for part, name, _, command in check.steps():
            if command[:2] != ["{bin}/assay", "run"]:
                continue
            words = [word.format(bin=BUILD, out=self.dir, python=sys.executable) for word in command]
            done = subprocess.run(words + ["--dry-run"], env=environment, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, f"part {part}, {name}: {done.stderr}")

    def test_comparisons_are_known(self):
        known = {entry["name"] for entry in json.loads((HERE.parent / "peers/gpu/comparisons.json").read_text())}
        asked = {command[-1] for _, name, _, command in check.steps() if name.startswith("peer-")}
        self.assertLessEqual(asked, known)

    def test_programs_are_those_of_a_build(self):
        if not (BUILD / "libassay-cuda.so").exists():
            self.skipTest("a build without CUDA")
        for name in check.FILES + [program for program in check.PROGRAMS if not program.startswith("peers/")]:
            self.assertTrue((BUILD / name).exists(), name)

    def test_a_build_is_packed_with_its_libraries(self):
        if not (BUILD / "libassay-cuda.so").exists():
            self.skipTest("a build without CUDA")
        check.pack(BUILD, self.dir / "bundle")
        self.assertTrue((self.dir / "bundle/assay").exists())
        self.assertTrue((self.dir / "bundle/configs/plans/gpu-quick.json").exists())
        self.assertTrue(any(file.name.startswith("libfmt") for file in (self.dir / "bundle/lib").iterdir()))
        self.assertFalse(any(file.name.startswith("libcublas") for file in (self.dir / "bundle/lib").iterdir()))

    def test_a_second_call_goes_on(self):
        programs = self.dir / "programs"
        programs.mkdir()
        runner = check.Runner(programs, self.dir / "out", sys.executable)
        runner.run(1, "good", 30, ["true"])
        runner.run(1, "bad", 30, [sys.executable, "-c", "print('reason'); raise SystemExit(3)"])
        runner.run(1, "slow", 0.2, ["sleep", "30"])
        runner.run(2, "absent", 30, ["no-such-program"])
        results = check.Runner(programs, self.dir / "out", sys.executable).results
        self.assertEqual({name: result["status"] for name, result in results.items()},
                         {"good": "passed", "bad": "failed", "slow": "timeout", "absent": "skipped"})
        self.assertEqual(results["bad"]["remark"], "reason")
        self.assertEqual((self.dir / "out/logs/bad.txt").read_text(), "reason\n")


if __name__ == "__main__":
    unittest.main()
