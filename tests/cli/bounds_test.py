"""What a machine's parts allow, from its files: a bare-metal machine, one with an empty channel, one at powersave, a virtual
one; and the one screen that a run ends with."""

import json
import pathlib
import struct
import sys
import tempfile
import unittest

from assay_case import AssayCase

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from fake_machine import FakeMachine  # noqa: E402


def metric(name, value, unit, better="higher"):
    return {"name": name, "value": value, "unit": unit, "better": better, "ci95": None, "of_peak": None, "reference": None}


def record(key, *metrics, **members):
    params = dict(part.split("=") for part in key.split("/")[1:])
    return {"schema": 2, "key": key, "family": key.split("/")[0], "params": params, "status": "ok", "device": "cpu",
            "metrics": list(metrics), "world": {"ranks": 1, "nodes": 1}, "conditions": {}, "choices": {}, "labels": {},
            **members}


TRIAD = record("memory/op=triad/bytes=1073741824/store=auto/threads=all", metric("bandwidth", 4.2e11, "B/s"),
               choices={"page_size": "2MiB", "threads": "4"}, labels={"level": "memory", "store": "nontemporal"})
CLOCK = {"clock": {"unit": "Hz", "at": [0, 1], "values": [1.9e9, 1.9e9]}}
GEMM = record("gemm/dtype=f32/m=2048/n=2048/k=2048", metric("throughput", 1e11, "FLOP/s"), telemetry=CLOCK,
              choices={"isa": "avx512_core", "threads": "4"})
PEAK = record("peak/dtype=f32/isa=auto/threads=all", metric("throughput", 4e11, "FLOP/s"), choices={"isa": "avx512", "threads": "4"})


class Bounds(AssayCase):
    def machine(self, populated=16, channels=16, speed=4800, governor="performance", hypervisor=False):
        """Two sockets of a Xeon 8480+, as EDAC and SMBIOS show 8 channels of each."""
        fake = FakeMachine(tempfile.mkdtemp(dir=self.dir), gpus=0)
        for channel in range(channels):
            folder = f"sys/devices/system/edac/mc/mc{channel // 2}"
            fake.write(f"{folder}/max_location", "channel 1 slot 1 ")
            if channel >= channels - populated:
                fake.write(f"{folder}/dimm{channel}/dimm_location", f"channel {channel % 2} slot 0")
                fake.write(f"{folder}/dimm{channel}/size", "32768")
                dimm = bytearray(b"\x11" + b"\x01" * 91)
                struct.pack_into("<H", dimm, 0x0c, 32767)
                struct.pack_into("<H", dimm, 0x20, speed)
                fake.write(f"sys/firmware/dmi/entries/17-{channel}/raw", bytes(dimm))
        for cpu in range(4):
            folder = f"sys/devices/system/cpu/cpu{cpu}/cpufreq"
            fake.write(f"{folder}/scaling_governor", governor).write(f"{folder}/cpuinfo_max_freq", "3800000")
            fake.write(f"{folder}/scaling_driver", "intel_cpufreq")
        if hypervisor:
            info = (fake.root / "proc/cpuinfo").read_text().strip()
            fake.write("proc/cpuinfo", info.replace("avx2", "hypervisor avx2"))
            fake.write("sys/class/dmi/id/sys_vendor", "QEMU")
        return fake

    def environment(self, **changes):
        done = self.assay("env", "--json", env={"ASSAY_ROOT": str(self.machine(**changes).root)})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def report(self, *records, **changes):
        self.run_dir(*records, run={"environment": self.environment(**changes)})
        done = self.assay("report", "r", "--json=out.json", "--html", "out.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        document = json.loads((self.dir / "out.json").read_text())
        parts = {row["part"]: row for row in self.tables()["parts"]}
        return document, parts, self.tables()["figures"]

    def test_bare_metal_has_the_channels_at_their_configured_rate(self):
        document, parts, [triad] = self.report(TRIAD)
        self.assertEqual(parts["memory"]["allows"], "614 GB/s")
        self.assertIn("16 channels x 4800 MT/s", parts["memory"]["source"])
        self.assertAlmostEqual(triad["of_peak"], 4.2e11 / (16 * 4.8e9 * 8))
        self.assertEqual((triad["usual"]["low"], triad["usual"]["high"]), (0.67, 0.9))
        self.assertEqual(document["answers"]["normal"]["state"], "good")
        self.assertIn("of_peak", json.dumps(triad))
        self.assertIn("<path class=usual", (self.dir / "out.html").read_text())
        # Slower DIMMs than the sheet's.
        _, parts, _ = self.report(TRIAD, speed=4400)
        self.assertEqual(parts["memory"]["allows"], "563 GB/s")

    def test_an_empty_channel_lowers_the_bound_and_is_what_to_change(self):
        _, parts, [triad] = self.report(TRIAD, populated=15)
        self.assertIn("15 of 16 channels have DIMMs", parts["memory"]["source"])
        self.assertAlmostEqual(triad["of_peak"], 4.2e11 / (15 * 4.8e9 * 8))
        rule = self.diagnosis("r")["empty-channel"]
        self.assertEqual((rule["state"], rule["evidence"][0]["value"]), ("warn", 1 / 16))
        self.assertAlmostEqual(rule["ceiling"], 16 / 15)
        self.assertIn("at most 1.07 x", self.assay("diagnose", "r").stdout)

    def test_a_controller_without_any_dimm_is_seen(self):
        self.assertEqual(self.environment(populated=14)["memory"]["channels"],
                         {"all": 16, "populated": 14, "transfers_per_second": 4.8e9})

    def test_powersave_is_what_to_change_and_the_figure_no_praise(self):
        document, _, figures = self.report(GEMM, PEAK, governor="powersave")
        product = next(row for row in figures if "gemm" in row["case"])
        self.assertAlmostEqual(product["of_peak"], 0.25, msg="the peak was measured after the product")
        self.assertEqual(document["answers"]["normal"]["state"], "warn")
        self.assertIn("25 % (usual: 64 %", document["answers"]["normal"]["text"])
        rule = self.diagnosis("r")["governor"]
        self.assertEqual((rule["state"], rule["ceiling"]), ("bad", 2.0))
        text = self.assay("report", "r").stdout
        self.assertRegex(text, r"(?m)^gemm f32 2048 .*\blow$")
        self.assertEqual(self.diagnosis("r")["empty-channel"]["state"], "not_judged")
        _, _, figures = self.report(GEMM, PEAK)
        self.assertEqual(self.diagnosis("r")["governor"]["state"], "quiet")

    def test_a_product_below_its_usual_share_says_whether_another_form_was_faster(self):
        tried = {"form": "packed", "tried_plain": "90000000000", "tried_packed": "100000000000"}
        for labels, said in ((tried, "no other of the 2 forms tried was faster (the slowest: 90 % of its rate)"),
                             (tried | {"form": "plain"}, "the packed form was 1.11 times as fast in the trial")):
            document, _, _ = self.report(GEMM | {"labels": labels}, PEAK)
            self.assertIn(f"100 %): {said}", document["answers"]["normal"]["text"])
            self.assertIn(said, " ".join(self.assay("report", "r").stdout.split()))

    def test_a_virtual_machine_says_what_is_hidden(self):
        document, parts, [triad] = self.report(TRIAD, hypervisor=True, populated=15)
        self.assertEqual(parts["memory"]["allows"], "–")
        self.assertIn("channels unknown: the hypervisor (KVM) hides them", parts["memory"]["source"])
        self.assertEqual(triad["of_peak"], "–")
        self.assertEqual(document["answers"]["normal"]["state"], "unknown")
        self.assertIn("the hypervisor (KVM) hides the memory channels", document["answers"]["normal"]["text"])
        self.assertIn("memory triad", " ".join(document["answers"]["normal"]["evidence"]))
        self.assertEqual(self.diagnosis("r", code=0)["empty-channel"]["state"], "not_judged")

    def test_a_figure_without_a_scale_is_a_strip_of_its_samples(self):
        samples = {"unit": "s", "values": [1e-6, 2e-6, 1e-6], "at": [0, 1, 2], "count": 3}
        launch = record("launch/op=fork_join", metric("latency", 1e-6, "s", "lower"), samples=samples)
        self.report(launch)
        page = (self.dir / "out.html").read_text()
        self.assertIn('<path class=strip d="M0 10L500 1L1000 10" />', page)
        self.assertNotIn("<rect class=p0", page)


class OneScreen(AssayCase):
    CASES = [{"family": "peak", "dtype": ["f32", "f64"], "threads": ["core", "all"]},
             {"family": "gemm", "dtype": ["f32", "f64"], "m": [32, 64], "n": [32, 64], "k": [32, 64]},
             {"family": "launch"}]

    def run_plan(self, *words):
        done, records = self.measure(*self.CASES, words=words, protocol={"max_seconds": "1ms", "min_samples": 3})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, records

    def test_a_run_ends_with_forty_lines_and_all_with_every_table(self):
        out, records = self.run_plan()
        self.assertGreater(len(records), 20)
        self.assertLessEqual(len(out.splitlines()), 40)
        for word in ("Right", "Steady", "Normal", "Limit", "The figures that matter", "of peak", "report.html"):
            self.assertIn(word, out)
        self.assertNotIn("Suites", out)
        out, _ = self.run_plan("--all")
        self.assertGreater(len(out.splitlines()), 40)
        self.assertIn("Suites", out)


if __name__ == "__main__":
    unittest.main()
