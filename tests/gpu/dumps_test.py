"""What tests/gpu/check brings home from a GPU's first minute, made here on the emulation, and every such folder under
tests/gpu/dumps: files that tests without a GPU can take for the real thing."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from check_support import BUILD, EMULATED, HERE, check  # noqa: E402

MIN_CALLS = 50
ATTRIBUTES = {"1": "threads of a block", "10": "threads of a warp", "16": "multiprocessors", "75": "compute capability"}


class Dumps(unittest.TestCase):
    def setUp(self):
        if not EMULATED.exists():
            self.skipTest("a build without CUDA")
        folder = tempfile.TemporaryDirectory(prefix="assay-dumps-")
        self.addCleanup(folder.cleanup)
        self.out = pathlib.Path(folder.name)
        self.made = self.out / check.plan.DUMPS
        self.made.mkdir()
        (self.out / "script").write_text("cuda_version 13000\npower 300000\ngpm 1\nfield_185 refused\n")
        self.environment = os.environ | {"ASSAY_MODULE_PATH": str(EMULATED), "ASSAY_NVML_SCRIPT": str(self.out / "script"),
                                         "LD_LIBRARY_PATH": str(BUILD / "nvml"), "ASSAY_CACHE": str(self.out / "cache")}

    def step(self, name):
        return next(step for step in check.plan.steps() if step.name == name)

    def words(self, step):
        places = {"bin": str(BUILD), "out": str(self.out)}
        return ([word.format(**places) for word in step.command],
                self.environment | {name: value.format(**places) for name, value in step.environment.items()})

    def call(self, command, environment):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        return done.stdout

    def dump(self):
        """The files as the steps of the check write them."""
        command, environment = self.words(self.step("gpu-dump"))
        self.call(command, environment)
        step = self.step("nccl-log")
        command, environment = self.words(step)
        self.call(command + ["--gtest_filter=" + step.chosen], environment | {"ASSAY_EMULATION": "devices=2"})
        step = self.step("gpu-quick-first")
        _, environment = self.words(step)
        self.call([BUILD / "assay", "run", "gemm", "--device", "cuda", "--set", "gemm.m=64", "--set", "gemm.n=64", "--set",
                   "gemm.k=64", "--set", "gemm.dtype=bf16,fp8_e4m3", "--out", self.out / "run"], environment)

    def look_at(self, folder):
        cuda = json.loads((folder / "cuda_attributes.json").read_text())
        self.assertGreater(cuda["memory"], 0)
        for number, what in ATTRIBUTES.items():
            self.assertIsInstance(cuda["attributes"][number], int, what)
        self.assertGreater(len(cuda["attributes"]), 100)
        self.assertEqual({type(value) for value in cuda["attributes"].values()} - {int, str}, set())
        cudnn = json.loads((folder / "cudnn_device.json").read_text())
        self.assertTrue(cudnn["deviceName"])
        self.assertGreaterEqual(cudnn["deviceVer"], 700)
        nvml = json.loads((folder / "nvml.json").read_text())
        self.assertNotIn("error", nvml)
        self.assertGreaterEqual(len(nvml["calls"]), MIN_CALLS)
        self.assertEqual(nvml["calls"]["name"], 0)
        self.assertTrue(all(code == "absent" or 0 <= code < 1000 for code in nvml["calls"].values()), nvml)
        products = [json.loads(line) for line in (folder / "cublaslt.jsonl").read_text().splitlines()]
        self.assertTrue(products)
        for product in products:
            self.assertEqual(product["count"] > 0, product["status"] == "CUBLAS_STATUS_SUCCESS", product)
            self.assertEqual(product["first"].startswith("cublasLt algorithm "), product["count"] > 0, product)
        self.assertEqual(len(list(folder.glob("nccl.*.log"))), 2)  # ranks
        self.call([BUILD / "comm_test", "--gtest_filter=NcclLog.WholeLogsOfRealRanks"], os.environ | {"ASSAY_NCCL_LOGS": str(folder)})

    def test_on_the_emulation(self):
        self.dump()
        self.look_at(self.made)
        nvml = json.loads((self.made / "nvml.json").read_text())
        self.assertEqual((nvml["driver"], nvml["cuda"], nvml["calls"]["power"]), ("999.1", 13000, 0))
        self.assertEqual(nvml["calls"]["vbios"] in (0, "absent"), True)
        self.assertIn(3, nvml["calls"].values())  # NVML_ERROR_NOT_SUPPORTED is a code like any other
        self.assertEqual(json.loads((self.made / "cudnn_device.json").read_text())["deviceVer"], 900)
        self.assertTrue(any("64x64x64" in line for line in (self.made / "cublaslt.jsonl").read_text().splitlines()))

    def test_without_a_driver_it_says_so(self):
        command, environment = self.words(self.step("gpu-dump"))
        done = subprocess.run(command, env=environment | {"ASSAY_EMULATION": "no_driver", "ASSAY_NVML_SCRIPT": "/dev/null"},
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^gpu_dump: .+")

    def test_those_of_real_gpus(self):
        folders = sorted(folder for folder in (HERE / "dumps").glob("*") if folder.is_dir())
        if not folders:
            self.skipTest("tests/gpu/dumps has none yet: no GPU has run the check")
        for folder in folders:
            with self.subTest(folder=folder.name):
                self.look_at(folder)
                xml.etree.ElementTree.parse(folder / "nvidia-smi.xml")


if __name__ == "__main__":
    unittest.main()
