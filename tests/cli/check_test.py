"""assay check: verdicts on finished runs, refusals, and the files it writes."""

import fnmatch
import itertools
import json
import os
import pathlib
import re
import unittest
import xml.etree.ElementTree as xml

from assay_case import AssayCase

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs" / "floors"
KEY = "gemm/dtype=bf16/m=8192/n=8192/k=8192/transpose=nn/cache=cold/duration=burst"
EVIL = "\x1b[2J<script>alert('1')</script>&\"]]>\u202e\ufffe\x00|`x`"


class Check(AssayCase):
    def record(self, key=KEY, value=8.12e14, ci95=(7.89e14, 8.3e14), metric="throughput", unit="FLOP/s", host=None, **more):
        ranks = [{"rank": 0, "host": host, "device": "NVIDIA H100", "median": 1.0}] if host else []
        return {"schema": 1, "key": key, "family": key.split("/")[0], "ranks": ranks, "status": "ok",
                "metrics": [{"name": metric, "value": value, "unit": unit, "ci95": ci95 and list(ci95)}], **more}

    def floor(self, **members):
        floor = {"key": "gemm/dtype=bf16/*", "metric": "throughput", "unit": "FLOP/s", "at_least": 7e14, "protocol": {},
                 "source": "a test", "required": True, **members}
        return {name: value for name, value in floor.items() if value is not None}

    def floors(self, *floors, name="f.json", **members):
        self.write(name, {"schema": 1, "floors": list(floors), **members})
        return name

    def check(self, *dirs, floors="f.json", code=0, words=()):
        done = self.assay("check", *dirs, "--floors", floors, *words)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertNotIn("\033", done.stdout)
        return done.stdout

    def test_pass_prints_a_line_with_the_figure_and_its_place(self):
        self.run_dir(self.record())
        self.floors(self.floor())
        out = self.check("r")
        self.assertIn("PASS  gemm/dtype=bf16/* throughput 812 TFLOP/s >= 700 TFLOP/s [789, 830]  r/records.jsonl", out)
        self.assertIn("line 1 /metrics/0/value", " ".join(out.split()))
        self.assertIn("passed: 1 · failed: 0 · inconclusive: 0 · not judged: 0", out)

    def test_fail_inconclusive_and_both(self):
        self.run_dir(self.record(value=6e14, ci95=(5.9e14, 6.1e14), host="node-7"), name="slow")
        self.run_dir(self.record(value=7e14, ci95=(6.9e14, 7.1e14), host="node-8"), name="near")
        self.floors(self.floor())
        out = self.check("slow", code=1)
        self.assertIn("FAIL  gemm/dtype=bf16/* throughput 600 TFLOP/s < 700 TFLOP/s [590, 610]", out)
        self.assertIn("14 % below the floor; host node-7, NVIDIA H100", out)
        self.assertIn("source of the limit: a test", out)
        out = self.check("near", code=3)
        self.assertIn("INCONCLUSIVE  gemm/dtype=bf16/*", out)
        out = self.check("near", "slow", code=1)
        self.assertIn("(worst of 2)", out)
        self.assertIn("node-8", out)

    def test_a_ceiling(self):
        self.run_dir(self.record("memory/op=latency", 9e-8, (8.8e-8, 9.2e-8), "latency", "s"))
        ceiling = dict(key="memory/op=latency*", metric="latency", unit="s", at_least=None)
        self.floors(self.floor(**ceiling, at_most=1e-7))
        self.assertIn("latency 90 ns <= 100 ns [88, 92]", self.check("r"))
        self.floors(self.floor(**ceiling, at_most="85 ns"))
        self.assertIn("latency 90 ns > 85 ns", self.check("r", code=1))
        self.floors(self.floor(**ceiling, at_most=9.1e-8))
        self.check("r", code=3)

    def test_without_an_interval_the_value_decides_and_the_output_says_so(self):
        self.run_dir(self.record(ci95=None))
        self.floors(self.floor())
        self.assertIn("no interval: the value alone decides", self.check("r"))

    def test_missing_and_skipped(self):
        self.run_dir(self.record(), self.record("peak/x=1", metrics=[], status="skipped", reason="no AMX"))
        self.floors(self.floor(), self.floor(key="gem/*", required=False))
        self.assertIn('NOT JUDGED  gem/* throughput >= 700 TFLOP/s\n- matched no record; unknown family "gem"; '
                      'did you mean "gemm"?', self.check("r"))
        self.floors(self.floor(key="gem/*", required=False))
        self.check("r", code=3)
        self.floors(self.floor(), self.floor(key="gemm/dtype=fp16/*"))
        self.assertIn("required, but matched no record; the nearest key is", self.check("r", code=1))
        self.floors(self.floor(key="peak/*"))
        self.assertIn("required, but skipped: no AMX", self.check("r", code=1))

    def test_failed_and_injected_records_never_pass(self):
        wrong = self.record(status="failed", checks=[{"name": "wrong_elements", "passed": False}])
        self.floors(self.floor())
        self.run_dir(wrong)
        self.assertIn("its answer is wrong: wrong_elements", self.check("r", code=1))
        self.run_dir(self.record(flags=["injected:bit-flip"]))
        self.assertIn("injected faults", self.check("r", code=1))
        self.run_dir(self.record(comparable=False, flags=["oversubscribed"]))
        self.assertIn("not comparable: oversubscribed", self.check("r", code=1))
        # Only the last attempt counts, even if an earlier one was good.
        self.run_dir(self.record(), self.record(status="error", reason="out of memory", attempt=2, metrics=[]))
        self.assertIn("broke: out of memory", self.check("r", code=1))

    def test_another_protocol_is_refused(self):
        self.run_dir(self.record(protocol={"cache": "hot", "min_samples": 30}))
        self.floors(self.floor(protocol={"cache": "cold", "min_samples": 30.0}))
        out = self.check("r", code=1)
        self.assertIn("different protocol: cache is hot, the floor asks for cold", " ".join(out.split()))
        self.assertNotIn("min_samples is", out)
        self.floors(self.floor(protocol={"cache": "hot"}))
        self.check("r")

    def test_floors_of_other_hardware_judge_nothing(self):
        def on(device, host="a"):
            return self.record(device="cuda", ranks=[{"rank": 0, "host": host, "device": device, "median": 1.0}])
        self.floors(self.floor(required=False), hardware=["*H100*HBM3", "*H100*SXM*"])
        for device in ("NVIDIA H100 80GB HBM3", "nvidia h100 sxm5"):
            self.run_dir(on(device))
            self.check("r")
        self.run_dir(on("NVIDIA H200"), on("NVIDIA H200"))
        self.refused("check", "r", "--floors", "f.json",
                     says=["floors f (f.json) are for *H100*HBM3, *H100*SXM*, and not for NVIDIA H200; shipped for that: h200-sxm"])
        # A shipped file: a GPU that is faster than the one it is for does not pass by it.
        self.refused("check", "r", "--floors", "h100-sxm", "--pack", "p.tar", says=["floors h100-sxm", "not for NVIDIA H200"])
        self.assertFalse((self.dir / "p.tar").exists())
        # Beside one that they are for, the other is not judged by them.
        for device, seen in (("NVIDIA H200", "NVIDIA H200"), ("", "the record names none")):
            self.run_dir(on("NVIDIA H100 SXM5"), on(device, "b"))
            self.assertIn(f"other hardware: {seen}, the floor is for *H100*HBM3, *H100*SXM*", " ".join(self.check("r").split()))
        self.floors(self.floor(), hardware=[""])
        self.refused("check", "r", "--floors", "f.json", says=["/hardware/0", "is empty"])

    def test_what_a_required_floor_lacks_fails_in_a_pack_as_in_the_folder(self):
        self.run_dir(self.record(host="a"), run={"id": "1", "started": "2026-01-01T00:00:00Z"})
        self.floors(self.floor(), self.floor(key="gemm/dtype=fp16/*"))
        out = self.check("r", code=1)
        self.check("r", code=1, words=["--pack", "p.tar"])
        packed = self.assay("check", "p.tar")
        self.assertEqual((packed.returncode, packed.stdout), (1, out), packed.stderr)
        self.floors(self.floor(key="gemm/dtype=fp16/*", required=False))
        out = self.check("r", code=3)
        self.check("r", code=3, words=["--pack", "p.tar"])
        packed = self.assay("check", "p.tar")
        self.assertEqual((packed.returncode, packed.stdout), (3, out), packed.stderr)

    def test_a_required_floor_is_not_met_by_half_of_a_run(self):
        plan = {"plan": {"cases": [{"key": KEY}, {"key": KEY.replace("nn", "nt")}, {"key": "peak/x=1"}]}}
        self.run_dir(self.record(), run=plan)
        self.floors(self.floor())
        out = " ".join(self.check("r", code=3).split())
        self.assertIn("INCONCLUSIVE", out)
        self.assertIn("required, but r did not finish: 1 case of its plan with no record", out)
        self.floors(self.floor(required=False))
        self.check("r")
        self.floors(self.floor())
        self.run_dir(self.record(), run={**plan, "finished": "2026-01-01T00:00:00Z"})
        self.check("r")
        self.run_dir(self.record(), self.record(KEY.replace("nn", "nt")), run=plan)
        self.check("r")

    def test_special_characters_in_keys_are_literal(self):
        key = "dataloader/kind=image/path=/data/a?[b]{c}.*(d)/stage=all"
        self.run_dir(self.record(key, 2e3, None, unit="img/s"))
        loader = dict(unit="img/s", at_least=1000)
        for pattern in (key, "dataloader/*/stage=all", "*[b]*", "dataloader/kind=image/path=/data/a?*"):
            self.floors(self.floor(key=pattern, **loader))
            self.check("r")
        for pattern in ("dataloader/kind=image/path=/data/a[?][b]*", "dataloader/kind=imag?/*", "dataloader"):
            self.floors(self.floor(key=pattern, **loader))
            self.check("r", code=1)

    def test_a_unit_other_than_the_records_is_an_error_in_the_file(self):
        self.run_dir(self.record("dataloader/kind=token", 2e3, None, unit="tokens/s"))
        self.floors(self.floor(key="dataloader/*", unit="img/s"))
        self.refused("check", "r", "--floors", "f.json", says=["f.json", "/floors/0/unit", "img/s", "tokens/s", "line 1"])

    def test_all_errors_in_a_file_are_reported_at_once(self):
        self.run_dir(self.record())
        self.floors(self.floor(unit="TFLOP/s"), self.floor(atleast=1, at_least=None), self.floor(source=""),
                    self.floor(source=None), self.floor(at_most=1), self.floor(at_least=-1), self.floor(at_least="x"),
                    self.floor(key=3), self.floor(key="ok/*", required="no"), self.floor(key="a/*"), self.floor(key="a/*"))
        self.refused("check", "r", "--floors", "f.json", lines=11, says=[
            "/floors/0/unit", "FLOP/s", "/floors/1/atleast", 'did you mean "at_least"', "/floors/2/source: is empty",
            '/floors/3: "source" is missing', "/floors/4: has both", "/floors/5/at_least", "/floors/6/at_least",
            "/floors/7/key", "/floors/8/required", "/floors/10: is the same floor as /floors/9"])
        for text, says in (("", "empty"), ("[]", "object"), ('{"schema":1,"floors":[]}', "empty list"),
                           ('{"schema":9,"floors":[]}', "schema"), ('{"schema":1', "f.json:1"),
                           ('{"schema":1,"floors":[],"floors":[]}', "twice")):
            self.write("f.json", text)
            self.refused("check", "r", "--floors", "f.json", says=["f.json", says])
        self.refused("check", "r", "--floors", "h100", says="h100-sxm")
        self.refused("check", "r", "--floors", "nowhere.json", says="nowhere.json")
        self.refused("check", "nowhere", "--floors", "fleet", says="nowhere")
        self.refused("check", "r", says="--floors")
        self.refused("check", "r", "--floors", "fleet", "--junt", "x", says="--junit")

    def test_comments_are_allowed(self):
        self.run_dir(self.record())
        self.write("f.json", '// mine\n{"schema": 1, /* one */ "floors": [%s]}' % json.dumps(self.floor()))
        self.check("r")

    def test_no_records_and_bad_lines(self):
        self.run_dir()
        self.floors(self.floor())
        self.assertIn("no finished case", self.check("r", code=3, words=["--junit", "o.xml"]))
        self.assertEqual(xml.parse(self.dir / "o.xml").find("testsuite").get("skipped"), "1")
        self.run_dir("{not json", self.record(), '{"schema": 1, "key": ')
        out = self.check("r")
        self.assertIn("records.jsonl line 1", out)
        self.assertIn("records.jsonl line 3", out)

    def test_json_is_in_base_units(self):
        self.run_dir(self.record(host="a"))
        self.floors(self.floor(at_least="700 TFLOP/s"))
        self.check("r", words=["--json=o.json"])
        document = json.loads((self.dir / "o.json").read_text())
        self.assertEqual(document["verdict"], "pass")
        self.assertEqual(document["counts"], {"pass": 1, "fail": 0, "inconclusive": 0, "not_judged": 0})
        floor = document["floors"][0]
        self.assertEqual((floor["at_least"], floor["unit"], floor["verdict"]), (7e14, "FLOP/s", "pass"))
        self.assertEqual(floor["counts"]["pass"], 1)
        record = floor["records"][0]
        self.assertEqual((record["value"], record["ci95"], record["limit"]), (8.12e14, [7.89e14, 8.3e14], 7e14))
        self.assertEqual((record["run"], record["line"], record["pointer"]), ("r", 1, "/metrics/0/value"))
        self.assertEqual((record["hosts"], record["culprit"]), (["a"], "host a, NVIDIA H100"))

    def test_order_and_copies_do_not_matter(self):
        for number, host in enumerate("abcd"):
            self.run_dir(self.record(host=host, value=8e14 - number * 1e13), name=host,
                         run={"started": f"2026-01-0{number + 1}T00:00:00Z"})
        self.run_dir(self.record(host="a"), name="a", run={"started": "2026-01-01T00:00:00Z"})
        self.run_dir(self.record(host="a"), name="z/a", run={"started": "2026-01-01T00:00:00Z"})
        self.floors(self.floor(), self.floor(relative_to="fleet_median", at_least=0.97))
        seen = set()
        for dirs in itertools.chain(itertools.permutations("abcd"), [("z/a", "b", "c", "d", "a", "a/")]):
            out = self.check(*dirs, words=["--json=o.json", "--junit", "o.xml"])
            seen.add((out, (self.dir / "o.json").read_bytes(), (self.dir / "o.xml").read_bytes()))
        self.assertEqual(len(seen), 1)

    def junit(self, path):
        """Checks what both Jenkins' and Ant's schemas require."""
        root = xml.parse(path).getroot()
        self.assertEqual(root.tag, "testsuites")
        for suite in root:
            self.assertEqual(suite.tag, "testsuite")
            cases = suite.findall("testcase")
            for name, count in (("tests", len(cases)), ("failures", len(suite.findall("testcase/failure"))),
                                ("errors", 0), ("skipped", len(suite.findall("testcase/skipped")))):
                self.assertEqual(int(suite.get(name)), count)
            self.assertTrue(suite.get("name") and suite.get("hostname"))
            self.assertGreaterEqual(float(suite.get("time")), 0)
            if suite.get("timestamp"):
                self.assertRegex(suite.get("timestamp"), r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$")
            for case in cases:
                self.assertTrue(case.get("name") and case.get("classname"))
                self.assertGreaterEqual(float(case.get("time")), 0)
                tags = [child.tag for child in case]
                self.assertIn(tags, (["system-out"], ["failure", "system-out"], ["skipped", "system-out"]))
                for child in case:
                    if child.tag in ("failure", "skipped"):
                        self.assertTrue(child.get("message"))
        return root

    def test_junit(self):
        self.run_dir(self.record(seconds=2.5, host="node-7"), run={"started": "2026-01-01T12:00:00.123Z"})
        self.floors(self.floor(), self.floor(at_least=9e14, note="<&>"), self.floor(key="x/*", required=False),
                    self.floor(key="*", at_least=8e14))
        self.assay("check", "r", "--floors", "f.json", "--junit", "o.xml")
        self.floors(self.floor(), self.floor(key=KEY, at_least=9e14), self.floor(key="x/*", required=False),
                    self.floor(key="*", at_least=8e14))
        self.check("r", code=1, words=["--junit", "o.xml"])
        suite = self.junit(self.dir / "o.xml")[0]
        self.assertEqual((suite.get("hostname"), suite.get("timestamp")), ("node-7", "2026-01-01T12:00:00"))
        cases = suite.findall("testcase")
        self.assertEqual([case[0].tag for case in cases], ["system-out", "failure", "skipped", "skipped"])
        self.assertEqual(cases[0].get("time"), "2.500")
        self.assertIn("9.8 % below the floor", cases[1][0].get("message"))
        self.assertIn("not judged: matched no record", cases[2][0].get("message"))
        self.assertIn("inconclusive: ", cases[3][0].get("message"))

    def test_hostile_strings_stay_inert(self):
        key = "gemm/x=" + EVIL
        self.run_dir(self.record(key, 1, None, host=EVIL, flags=[EVIL], labels={"a": EVIL}),
                     self.record(key + "2", status="skipped", reason=EVIL, metrics=[]),
                     name="r<b>&", run={"environment": {"hostnames": [EVIL]}, "started": EVIL})
        self.floors(self.floor(key="gemm/*", source=EVIL), self.floor(key=key, protocol={EVIL: EVIL}, required=False),
                    self.floor(key="*", labels={"a": "*" + EVIL}), self.floor(key=EVIL, note=EVIL),
                    description=EVIL)
        out = self.check("r<b>&", code=1, words=["--json=o.json", "--junit", "o.xml"])
        for bad in ("\033", "\u202e", "\x00"):
            self.assertNotIn(bad, out)
            self.assertNotIn(bad, (self.dir / "o.xml").read_text())
        self.junit(self.dir / "o.xml")
        self.assertNotIn("<script>", (self.dir / "o.xml").read_text())
        json.loads((self.dir / "o.json").read_text())

    def test_long_keys_wrap(self):
        self.run_dir(self.record("gemm/" + "x" * 300))
        self.floors(self.floor(key="gemm/" + "x" * 300), self.floor(key="gemm/" + "y" * 300, required=False))
        self.check("r")

    def test_a_fleet_names_the_slow_host(self):
        for host, value in (("a", 8e14), ("b", 8.1e14), ("c", 7.9e14), ("d", 7e14)):
            self.run_dir(self.record(value=value, ci95=(value - 1e12, value + 1e12), host=host), name=host)
        out = self.check("a", "b", "c", "d", floors="fleet", code=1)  # 7e14 is 88 % of the median, 7.95e14
        self.assertIn("FAIL  gemm/* throughput 700 TFLOP/s < 755 TFLOP/s [699, 701]", out)
        self.assertIn("host d, NVIDIA H100", out)
        self.check("a", "b", "c", floors="fleet")
        self.check("a", "b", floors="fleet", code=3)

    def test_a_real_run(self):
        done = self.assay("run", "launch", "--set", "launch.op=fork_join", "--out", "real")
        self.assertEqual(done.returncode, 0, done.stderr)
        floor = self.floor(key="launch/*", metric="latency", unit="s", at_least=None, at_most="1 s", device="cpu")
        self.floors(floor)
        self.assertIn("PASS  launch/* (device cpu) latency", self.check("real"))
        self.floors({**floor, "at_most": "0.01 ns"})
        self.assertIn("FAIL", self.check("real", code=1))

    def test_the_fp8_floors_are_for_fast_accumulation_alone(self):
        """Their sources set fast accumulation: a healthy GPU is slower with full accumulation, which must not fail."""
        def product(accumulation, value):
            ranks = [{"rank": 0, "host": "a", "device": "NVIDIA H100 80GB HBM3" if name == "h100-sxm" else "NVIDIA H200", "median": 1.0}]
            key = KEY.replace("bf16", "fp8_e4m3") + f"/accumulation={accumulation}/gpus=each"
            return self.record(key, value, (0.99 * value, 1.01 * value), device="cuda", protocol={"data": "normal"}, ranks=ranks)
        for name, below in (("h100-sxm", 1.15e15), ("h200-sxm", 1.16e15)):
            for records, verdict in (([product("full", 1.1e15)], "not judged"),
                                     ([product("full", 1.1e15), product("fast", 1.29e15)], "pass"),
                                     ([product("full", 1.3e15), product("fast", below)], "fail")):
                self.run_dir(*records)
                self.assay("check", "r", "--floors", name, "--json=o.json")
                [floor] = [f for f in json.loads((self.dir / "o.json").read_text())["floors"] if "fp8" in f["key"]]
                self.assertEqual(floor["verdict"], verdict, floor)

    def test_shipped_floors_are_clean_and_match_keys(self):
        """Expands each floor's family with --set to the values in its pattern, which must match a resulting key."""
        table = {"gemm": "dtype m n k transpose cache duration accumulation gpus", "memory": "op bytes store threads gpus", "peak": "dtype isa threads",
                 "transfer": "direction memory bytes by gpus", "collective": "op bytes dtype inplace batching nvls p2p buffers",
                 "resnet": "model mode", "transformer": "model mode", "llama": "model mode"}
        self.run_dir(self.record("none/x=1"))
        names = sorted(path.stem for path in CONFIGS.glob("*.json"))
        self.assertLessEqual({"a100-sxm-80gb", "fleet", "h100-sxm", "h200-sxm"}, set(names))
        for name in names:
            self.check("r", floors=name, code=3 if name == "fleet" else 1, words=["--json=o.json"])
            for floor in json.loads((self.dir / "o.json").read_text())["floors"]:
                pattern, family = floor["key"], floor["key"].split("/")[0]
                self.assertIn(family, table)
                self.assertRegex(floor["source"], "https://|^learned from ", "a publication, or records")
                pairs = [part.split("=", 1) for part in pattern.split("/")[1:] if "=" in part]
                order = table[family].split()
                places = [order.index(param) for param, _ in pairs]
                self.assertEqual(places, sorted(places), pattern)
                sets = [word for param, value in pairs for word in ("--set", f"{family}.{param}={value.rstrip('*')}")]
                if floor.get("ranks"):  # 8 GiB may not fit in memory here
                    sets = [word.replace("8589934592", "65536") for word in sets]
                    pattern = pattern.replace("8589934592", "65536")
                device = floor.get("device", "cpu")
                if device == "cuda" and "ASSAY_EMULATED" not in os.environ:
                    continue  # this build has no GPU's parameters
                listed = self.assay("run", family, *sets, "--device", device, "--dry-run",
                                    env={"ASSAY_MODULE_PATH": os.environ["ASSAY_EMULATED"]} if device == "cuda" else {})
                self.assertEqual(listed.returncode, 0, listed.stderr)
                keys = [word for word in re.split(r"\s+", listed.stdout) if word.startswith(family + "/")]
                self.assertTrue(fnmatch.filter(keys, pattern.replace("[", "[[]")), (pattern, keys))


if __name__ == "__main__":
    unittest.main()
