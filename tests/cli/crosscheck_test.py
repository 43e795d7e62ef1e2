"""`assay crosscheck` on the emulated GPU, beside stand-ins that print what nccl-tests and nvbandwidth print."""

import json
import os
import statistics
import sys
import unittest

from assay_case import AssayCase

# Prints the table of nccl-tests 2.13 to 2.17: a bandwidth of $RATE GB/s, or of each of several in turn.
ALL_REDUCE_PERF = '''#!{python}
import os, sys
flags = dict(zip(sys.argv[1::2], sys.argv[2::2]))
low, high, factor, threads = (int(flags[name]) for name in ("-b", "-e", "-f", "-t"))
with open({calls!r}, "a+") as calls:
    calls.write("all_reduce_perf " + " ".join(sys.argv[1:]) + "\\n")
    calls.seek(0)
    turn = len(calls.readlines()) - 1
rates = [float(rate) for rate in os.environ.get("RATE", "1").split(",")]
rate = rates[turn % len(rates)]
if os.environ.get("FAIL"):
    print("node: Test NCCL failure common.cu:1005 'unhandled system error / '")
    sys.exit(3)
print(f"# nThread {{threads}} nGpus 1 minBytes {{low}} maxBytes {{high}} step: {{factor}}(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0")
print("#\\n# Using devices")
for rank in range(threads):
    print(f"#  Rank  {{rank}} Group  0 Pid   4711 on       node device  {{rank}} [0x0{{rank}}] NVIDIA H100 80GB HBM3")
print("#")
print("#                                                              out-of-place                       in-place          ")
print("#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong")
print("#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       ")
wrong = os.environ.get("WRONG", "0")
while low <= high:
    time = low / rate / 1e3
    out = f"  {{time:>7.2f}}  {{rate:>6.2f}}  {{rate:>6.2f}}  {{wrong:>5}}"
    print(f"{{low:>12}}  {{low // 4:>12}}     float     sum      -1{{out}}  {{2 * time:>7.2f}}  {{rate / 2:>6.2f}}  {{rate / 2:>6.2f}}      0")
    low *= factor
print("# Out of bounds values : 0 OK\\n# Avg bus bandwidth    : 1.2345 \\n#\\n")
'''

# Prints the JSON of nvbandwidth 0.6 to 0.8.
NVBANDWIDTH = '''#!{python}
import json, os, sys
words = sys.argv[1:]
tests = words[words.index("-t") + 1:]
with open({calls!r}, "a") as calls:
    calls.write("nvbandwidth " + " ".join(words) + "\\n")
rate = os.environ.get("RATE", "1")
about = {{"CUDA Runtime Version": 13000, "Driver Version": "580.65.06", "git_version": "v0.8", "version": "v0.8"}}
if os.environ.get("FAIL"):
    print(json.dumps({{"nvbandwidth": about | {{"error": "cuInit returned error CUDA_ERROR_NOT_INITIALIZED"}}}}, indent="\\t"))
    sys.exit(0)
cases = []
for test in tests:
    if os.environ.get("LACKS") == test:
        continue
    pairs = test.startswith("device_to_device")
    matrix = [["N/A", rate], [str(float(rate) / 2), "N/A"]] if pairs else [[rate, "77"]]
    cases.append({{"bandwidth_description": "bandwidth (GB/s)", "bandwidth_matrix": matrix, "name": test, "status": "Passed", "sum": 2}})
if os.environ.get("WAIVE"):
    cases = [{{"name": test, "status": "Waived"}} for test in tests]
print("a warning of a library")
print(json.dumps({{"nvbandwidth": about | {{"testcases": cases}}}}, indent="\\t"))
'''

# Notes when our latest run ended: its directory is removed from the folder then.
SEE_OUR_LATEST_RUN = '''
import glob
[folder] = glob.glob({folder!r} + "/assay-crosscheck-*")
with open({folder!r} + "/seen", "a") as seen:
    seen.write(f"{{os.stat(folder).st_mtime_ns}}\\n")
'''

COPIES = ["device_to_device_memcpy_read_ce", "device_to_host_memcpy_ce", "host_to_device_memcpy_ce"]


class Crosscheck(AssayCase):
    def tools(self, *names):
        for name in names:
            text = {"all_reduce_perf": ALL_REDUCE_PERF, "nvbandwidth": NVBANDWIDTH}[name]
            path = self.write(f"bin/{name}", text.format(python=sys.executable, calls=str(self.dir / "calls")))
            path.chmod(0o755)

    def crosscheck(self, *words, gpus=1, code=0, env=None):
        done = self.assay("crosscheck", "--pairs", 6, *words, timeout=240, env={
            "PATH": str(self.dir / "bin"), "ASSAY_MODULE_PATH": os.environ["EMULATION"],
            "ASSAY_EMULATION": f"devices={gpus}", **(env or {})})
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done

    def calls(self):
        return (self.dir / "calls").read_text().splitlines()

    def test_each_size_has_the_ratio_of_its_pairs(self):
        self.tools("all_reduce_perf", "nvbandwidth")
        done = self.crosscheck("--json", "--min-bytes", "64KiB", "--max-bytes", "1MiB", "--tolerance", "1e9", gpus=2)
        told = json.loads(done.stdout)
        self.assertEqual((told["schema"], told["tolerance"]), (1, 1e9))
        self.assertEqual([(tool["name"], tool["path"]) for tool in told["tools"]],
                         [(name, str(self.dir / "bin" / name)) for name in ("all_reduce_perf", "nvbandwidth")])
        self.assertEqual([(row["test"], row["bytes"]) for row in told["rows"]],
                         [("all_reduce", 1 << 16), ("all_reduce", 1 << 20), *((test, 1 << 20) for test in COPIES)])
        for row in told["rows"]:
            self.assertEqual((row["state"], row["unit"], len(row["ratios"])), ("within", "B/s", 6))
            self.assertEqual(row["ratio"], statistics.median(row["ratios"]))
            self.assertEqual((row["low"], row["high"]), (min(row["ratios"]), max(row["ratios"])))
            # GPU 0's copies, not GPU 1's; the slowest pair; the time, which is printed in microseconds with two digits
            rate = 0.5e9 if row["test"] == COPIES[0] else 1e9
            self.assertAlmostEqual(row["theirs"] / rate, 1, delta=1e-3)
            self.assertAlmostEqual(statistics.median(row["theirs"] * ratio for ratio in row["ratios"]) / row["ours"], 1,
                                   delta=1e-9)
        self.assertTrue(any("emulated GPU" in remark for remark in told["remarks"]), told["remarks"])
        self.assertEqual(self.calls().count("all_reduce_perf -b 65536 -e 1048576 -f 16 -t 2 -g 1"), 6)
        self.assertEqual(len(self.calls()), 12)

    def test_the_sides_alternate_in_who_goes_first(self):
        self.tools("nvbandwidth")
        with (self.dir / "bin/nvbandwidth").open("a") as tool:
            tool.write(SEE_OUR_LATEST_RUN.format(folder=str(self.dir)))
        self.crosscheck("--min-bytes", "1MiB", "--max-bytes", "1MiB", "--tolerance", "1e9", env={"TMPDIR": str(self.dir)})
        seen = (self.dir / "seen").read_text().split()
        self.assertEqual([seen.index(run) for run in seen], [0, 0, 2, 2, 4, 4])

    def test_what_is_beyond_the_tolerance_is_named(self):
        self.tools("nvbandwidth")
        done = self.crosscheck("--min-bytes", "1MiB", "--max-bytes", "1MiB", env={"RATE": "1e6"}, code=1)
        self.assertRegex(done.stdout, r"nvbandwidth host_to_device_memcpy_ce +1 MiB +.*beyond")
        self.assertIn("within 2.0 %: 0 · beyond: 2 · unclear: 0", done.stdout)
        self.assertRegex(done.stdout, r"all_reduce_perf is not on the PATH; to get it: .*github.com/NVIDIA/nccl-tests")
        self.assertIn("nvbandwidth: pair 6 of 6", done.stderr)

    def test_an_interval_that_reaches_over_the_tolerance_is_unclear(self):
        self.tools("all_reduce_perf")
        done = self.crosscheck("--min-bytes", "4KiB", "--max-bytes", "4KiB", env={"RATE": "1e-6,10"}, gpus=2, code=3)
        self.assertRegex(done.stdout, r"all_reduce_perf +4 KiB +.*unclear")

    def test_a_tool_that_fails_is_named(self):
        few = ("--min-bytes", "1MiB", "--max-bytes", "1MiB")
        for name, gpus, env, says in (
                ("all_reduce_perf", 2, {"FAIL": "1"}, "ended with code 3: node: Test NCCL failure"),
                ("all_reduce_perf", 2, {"WRONG": "7"}, "all_reduce_perf: 7 wrong elements at 1048576 bytes"),
                ("all_reduce_perf", 2, {"WRONG": "nan"}, "all_reduce_perf: nan wrong elements at 1048576 bytes"),
                ("nvbandwidth", 1, {"FAIL": "1"}, "nvbandwidth: cuInit returned error CUDA_ERROR_NOT_INITIALIZED")):
            with self.subTest(says):
                for file in (self.dir / "bin").glob("*"):
                    file.unlink()
                self.tools(name)
                done = self.crosscheck(*few, gpus=gpus, env=env, code=4)
                self.assertIn(says, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_nothing_to_compare(self):
        done = self.crosscheck("--json", code=3)
        told = json.loads(done.stdout)
        self.assertEqual(([tool["path"] for tool in told["tools"]], told["rows"]), ([None, None], []))
        for source in ("https://github.com/NVIDIA/nccl-tests", "https://github.com/NVIDIA/nvbandwidth"):
            self.assertIn(source, done.stderr)
        self.tools("all_reduce_perf", "nvbandwidth")
        done = self.crosscheck("--max-bytes", "64KiB", code=3)
        self.assertIn("all_reduce_perf was not run: an all-reduce takes two GPUs, and one is visible", done.stderr)
        self.assertIn("nvbandwidth was not run: its sizes are whole MiB", done.stderr)
        done = self.crosscheck(env={"ASSAY_EMULATION": "no_driver"}, code=3)
        self.assertIn("nvbandwidth was not run: no NVIDIA driver is loaded", done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertFalse((self.dir / "calls").exists())
        done = self.crosscheck("--min-bytes", "1MiB", "--max-bytes", "1MiB", env={"WAIVE": "1"}, code=3)
        self.assertIn("nvbandwidth: no figure of host_to_device_memcpy_ce at 1 MiB", done.stderr)

    def test_a_test_that_the_tool_does_not_answer_is_no_agreement(self):
        self.tools("nvbandwidth")
        done = self.crosscheck("--min-bytes", "1MiB", "--max-bytes", "1MiB", "--tolerance", "1e9", code=3,
                               env={"LACKS": "device_to_host_memcpy_ce"})
        self.assertIn("nvbandwidth: no figure of device_to_host_memcpy_ce at 1 MiB", done.stdout)
        self.assertRegex(done.stdout, r": 1 · beyond: 0 · unclear: 0 · not compared: 1")

    def test_usage(self):
        for words, says in ((("--pairs", "5"), "crosscheck: --pairs"), (("--tolerance", "0"), "must be above 0"),
                            (("--tolerance", "two"), "--tolerance: "), (("--min-bytes", "6"), "--min-bytes 6: must be a multiple of 4"),
                            (("--min-bytes", "1MiB", "--max-bytes", "1KiB"), "--max-bytes 1KiB: must be from 1MiB"), (("--jsn",), "--json")):
            with self.subTest(words):
                self.refused("crosscheck", *words, says=says)


if __name__ == "__main__":
    unittest.main()
