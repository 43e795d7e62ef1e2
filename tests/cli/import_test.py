"""`assay import`: files as other tools write them become runs that report, compare and check take."""

import json
import shutil
import unittest

from assay_case import AssayCase

NCCL_TABLE = """# nThread 1 nGpus 8 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
  1073741824     268435456     float     sum      -1   4000.0  268.44  469.76      0   4100.0  261.89  458.30    N/A
  2147483648     536870912     float     sum      -1   8000.0  268.44  469.76      3   8200.0  261.89  458.30      0
# Out of bounds values : 0 OK
"""


class Import(AssayCase):
    def imported(self, format, *files, code=0):
        done = self.assay("import", format, *files, "--out", "run")
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def figures(self, out="run"):
        return {(record["key"].removeprefix("imported/"), metric["name"]): (metric["value"], metric["unit"], metric["better"])
                for record in self.records(out) for metric in record["metrics"]}

    def statuses(self, out="run"):
        return {record["key"].removeprefix("imported/"): (record["status"], record["reason"]) for record in self.records(out)}

    @staticmethod
    def check(name, passed, value):
        return {"name": name, "passed": passed, "value": value, "limit": 0, "detail": []}

    def not_ok(self, out="run"):
        return json.loads((self.dir / out / "run.json").read_text())["not_ok"]

    def test_gbench(self):
        times = [10, 11, 12, 13, 14, 15, 16]
        entries = [{"name": "BM_copy/8", "run_name": "BM_copy/8", "run_type": "iteration", "real_time": time, "cpu_time": 1,
                    "time_unit": "us", "iterations": 5, "bytes_per_second": 2e9} for time in times]
        self.write("g.json", {"context": {"date": "2026-01-31T13:00:00+01:00", "host_name": "box"}, "benchmarks": [
            *entries, {**entries[0], "run_type": "aggregate", "name": "BM_copy/8_mean", "real_time": 99}]})
        self.imported("gbench", "g.json")
        self.assertEqual(self.figures(), {("BM_copy/8", "cpu_time"): (1e-6, "s", "lower"), ("BM_copy/8", "real_time"): (13e-6, "s", "lower"),
                                          ("BM_copy/8", "bytes_per_second"): (2e9, "B/s", "higher")})
        [record] = self.records("run")
        self.assertEqual(len(record["samples"]["values"]), 7)
        self.assertIsNotNone(record["metrics"][1]["ci95"])
        run = json.loads((self.dir / "run/run.json").read_text())
        self.assertEqual((run["started"], run["environment"]["hostnames"], run["source"]),
                         ("2026-01-31T12:00:00Z", ["box"], {"format": "gbench", "file": "g.json"}))
        self.assertIn("imported/BM_copy/8", self.assay("report", "run").stdout)

    def test_what_export_writes_as_gbench_is_read_back(self):
        record = {"schema": 2, "key": "memory/op=copy", "family": "memory", "params": {}, "status": "ok", "metrics": [],
                  "samples": {"unit": "s", "values": [0.001, 0.002, 0.004], "count": 3}}
        self.run_dir(record)
        self.assay("export", "gbench", "r", "--out", "g.json")
        self.imported("gbench", "g.json")
        value, unit, better = self.figures()["memory/op=copy", "real_time"]
        self.assertAlmostEqual(value, 0.002, 12)
        self.assertEqual((unit, better), ("s", "lower"))

    def test_pytest_benchmark(self):
        self.write("p.json", {"machine_info": {"node": "box"}, "commit_info": {"id": "abc"}, "datetime": "2026-01-31T12:00:00.123456",
                              "benchmarks": [{"fullname": "t.py::a", "stats": {"data": [1, 2, 4]}},
                                             {"name": "b", "stats": {"median": 0.5}}]})
        self.imported("pytest-benchmark", "p.json")
        self.assertEqual(self.figures(), {("t.py::a", "time"): (2, "s", "lower"), ("b", "time"): (0.5, "s", "lower")})
        self.assertEqual(json.loads((self.dir / "run/run.json").read_text())["git"]["commit"], "abc")

    def test_nccl_tests_as_a_table_and_as_json(self):
        self.write("all_reduce.txt", NCCL_TABLE)
        self.imported("nccl-tests", "all_reduce.txt")
        name = "all_reduce/float/sum/bytes=1073741824/"
        figures = self.figures()
        self.assertEqual({key: figures[key] for key in figures if key[0].startswith(name)},
                         {(name + "out_of_place", "busbw"): (469.76e9, "B/s", "higher"),
                          (name + "out_of_place", "algbw"): (268.44e9, "B/s", "higher"),
                          (name + "in_place", "busbw"): (458.30e9, "B/s", "higher"),
                          (name + "in_place", "algbw"): (261.89e9, "B/s", "higher")})
        self.assertEqual([(record["status"], record["checks"]) for record in self.records("run")], [
            ("ok", [self.check("wrong_elements", True, 0)]), ("ok", []),
            ("failed", [self.check("wrong_elements", False, 3)]), ("ok", [self.check("wrong_elements", True, 0)])])
        half = {"time": 4000, "alg_bw": 1.5, "bus_bw": 2.5, "nwrong": 0}
        self.write("j.json", {"config": {}, "results": [{"size": 8, "type": "float", "redop": "sum", "out_of_place": half,
                                                         "in_place": {**half, "nwrong": 1}}]})
        self.assertEqual(self.assay("import", "nccl-tests", "j.json", "--out", "json").returncode, 0)
        self.assertEqual(self.figures("json")["j/float/sum/bytes=8/out_of_place", "busbw"], (2.5e9, "B/s", "higher"))
        self.assertEqual(self.statuses("json"), {"j/float/sum/bytes=8/out_of_place": ("ok", ""),
                                                 "j/float/sum/bytes=8/in_place": ("failed", "1 wrong elements")})

    def test_superbench_has_a_machine_per_line(self):
        self.write("s.jsonl", '{"node": "a", "kernel-launch/event_time:0": 0.005, "mem-bw/h2d_bw": 26, "x/return_code": 0}\n'
                              '{"node": "b", "mem-bw/h2d_bw": 24}\n')
        self.imported("superbench", "s.jsonl")
        self.assertEqual(self.figures("run/000001"), {("kernel-launch/event_time:0", "value"): (0.005, "1", "lower"),
                                                      ("mem-bw/h2d_bw", "value"): (26, "1", "higher")})
        done = self.assay("report", "run/000001", "run/000002")
        self.assertIn("2 runs of 2 machines", done.stdout)

    def test_csv_makes_a_run_per_time_and_machine_that_compare_takes(self):
        rows = [f"2026-01-0{day}T00:00:00Z,box,a,rate,items/s,higher,{value},c{day},13"
                for day, value in ((1, 100), (2, 101), (3, 99), (4, 50), (5, 51), (6, 49))]
        self.write("t.csv", "time,machine,case,metric,unit,better,value,commit,fact.driver\n" + "\n".join(rows) + "\n")
        done = self.imported("csv", "t.csv")
        self.assertEqual(done.stdout.splitlines()[0], "run/000001: 1 cases of 2026-01-01T00:00:00Z")
        run = json.loads((self.dir / "run/000002/run.json").read_text())
        self.assertEqual((run["git"]["commit"], run["labels"]), ("c2", {"driver": "13"}))
        runs = [f"run/00000{number}" for number in range(1, 7)]
        done = self.assay("compare", "--base", *runs[:3], "--head", *runs[3:])
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("slower", done.stdout)

    def test_what_export_writes_as_csv_is_read_back(self):
        metric = {"name": "bandwidth", "value": 2e9, "unit": "B/s", "better": "higher", "ci95": None, "of_peak": None, "reference": None}
        self.run_dir({"schema": 2, "key": "memory/op=copy", "family": "memory", "params": {}, "status": "ok",
                      "started": "2026-01-31T00:00:00Z", "metrics": [metric]})
        self.assay("export", "csv", "r", "--out", "f.csv")
        self.imported("csv", "f.csv")
        self.assertEqual(self.figures(), {("memory/op=copy", "bandwidth"): (2e9, "B/s", "higher")})
        # A case that was imported is called so once.
        self.assay("export", "csv", "run", "--out", "g.csv")
        self.assay("import", "csv", "g.csv", "--out", "again")
        self.assertEqual(self.records("again")[0]["key"], "imported/memory/op=copy")

    def test_lines(self):
        self.write("l.txt", "# mine\nsort 1.5 s lower\nsort 1.7 s lower\nsort 1.6 s lower\nrate 3e6 items/s higher\n")
        self.imported("lines", "l.txt")
        self.assertEqual(self.figures(), {("sort", "value"): (1.6, "s", "lower"), ("rate", "value"): (3e6, "items/s", "higher")})

    def test_what_failed_broke_or_was_skipped_is_a_record_of_that_status(self):
        def entry(name, **members):
            return {"name": name, "run_name": name, "run_type": "iteration", "iterations": 5, "real_time": 2.0, "time_unit": "us",
                    **members}
        self.write("g.json", {"context": {"host_name": "box"}, "benchmarks": [
            entry("good"), entry("wrong", error_occurred=True, error_message="wrong result", iterations=0, real_time=0),
            entry("once"), entry("once", error_occurred=True, error_message="lost it"), entry("mute", error_occurred=True),
            entry("gpu", skipped=True, skip_message="no GPU here", iterations=0, real_time=0), entry("never", iterations=0),
            entry("timeless", real_time=None)]})
        done = self.imported("gbench", "g.json")
        self.assertEqual(self.statuses(), {
            "good": ("ok", ""), "wrong": ("error", "wrong result"), "once": ("error", "lost it"),
            "mute": ("error", "it says no more than that an error occurred"), "gpu": ("skipped", "no GPU here"),
            "never": ("error", "it ran no iteration"), "timeless": ("error", "it has no time")})
        self.assertIn("run: 7 cases", done.stdout)
        self.assertIn("6 not ok: 1 skipped, 5 error; the first imported/wrong: wrong result", done.stdout)
        self.assertEqual(self.not_ok(), 6)
        self.assertIn("skipped: no GPU here", self.assay("report", "run").stdout)
        self.write("p.json", {"benchmarks": [{"name": "a", "stats": {"median": 1}}, {"name": "b"}, {"name": "c", "has_error": True}]})
        self.assay("import", "pytest-benchmark", "p.json", "--out", "p")
        self.assertEqual({name: status for name, (status, _) in self.statuses("p").items()}, {"a": "ok", "b": "error", "c": "error"})

    def test_superbench_return_codes(self):
        self.write("s.jsonl", '{"node": "a", "gemm/return_code": 3, "bw/return_code": 0, "bw/h2d": 26, "bw/d2h": NaN, "bw/name": "x"}\n')
        done = self.imported("superbench", "s.jsonl")
        self.assertEqual(self.statuses(), {
            "gemm/return_code": ("error", "return code 3"), "bw/return_code": ("ok", ""), "bw/h2d": ("ok", ""),
            "bw/d2h": ("error", "it has no figure: null or NaN")})
        self.assertEqual([record["checks"] for record in self.records("run")][:2],
                         [[self.check("return_code", False, 3)], [self.check("return_code", True, 0)]])
        self.assertIn("s.jsonl: not read: 1 of its parts, the first line 1: bw/name is text", done.stderr)

    def test_a_failure_of_the_whole_nccl_test_is_not_lost(self):
        row = "    8    2    float    sum    -1    10.0    1.00    2.00    {}    10.0    1.00    2.00    {}\n"
        for log, status, says in (
                (row.format("N/A", "N/A") + "# Out of bounds values : 5 FAILED\n", "failed", "5 values out of bounds"),
                (row.format(0, 0) + "n1: Test NCCL failure common.cu:961 'unhandled cuda error'\n", "error", "unhandled cuda error"),
                (row.format(0, 0) + "# Avg bus bandwidth    : 1.2 FAILED\n", "failed", "Avg bus bandwidth"),
                ("n1: Test CUDA failure common.cu:1 'out of memory'\n", "error", "out of memory"),
                (row.format(7, 7), "failed", "7 wrong elements"),  # every row is wrong
                (row.format("4.1943e+06", "nan"), "failed", "wrong elements")):
            with self.subTest(log):
                self.write("ar.log", log)
                self.assertEqual(self.assay("import", "nccl-tests", "ar.log", "--out", "x").returncode, 0)
                for record in self.records("x"):
                    self.assertEqual(record["status"], status)
                    self.assertIn(says, record["reason"])
                shutil.rmtree(self.dir / "x")
        self.write("ar.log", row.format(0, 0) + "  16    4    float    sum    -1    10.0    1.0 n1: lost\n# Out of bounds values : 0 OK\n")
        done = self.imported("nccl-tests", "ar.log")
        self.assertIn("not read: 1 of its parts, the first line 2: 16", done.stderr)
        self.assertEqual(self.not_ok(), 0)
        self.write("old.log", row.format("2e-07", "0e+00"))  # the largest error of versions before 2.13
        self.assay("import", "nccl-tests", "old.log", "--out", "old")
        self.assertEqual([(record["status"], record["checks"]) for record in self.records("old")], [("ok", [])] * 2)
        results = {"results": [{"size": 8, "type": "float", "redop": "sum", "out_of_place": {"alg_bw": 1, "bus_bw": 1}}, {}],
                   "out_of_bounds": {"count": 2, "okay": False}}
        self.write("j.json", results)
        done = self.assay("import", "nccl-tests", "j.json", "--out", "json")
        self.assertEqual([record["status"] for record in self.records("json")], ["failed"])
        self.assertIn("results/1: has no size", done.stderr)

    def test_csv_and_lines_have_a_status(self):
        self.write("t.csv", "time,machine,case,metric,unit,better,value,status,reason\n"
                            "2026-01-01T00:00:00Z,m,a,rate,1,higher,5,ok,\n2026-01-01T00:00:00Z,m,b,rate,1,higher,,error,died\n"
                            "2026-01-01T00:00:00Z,m,c,rate,1,higher,4,failed,wrong\n2026-01-01T00:00:00Z,m,d,rate,1,higher,,,\n")
        done = self.imported("csv", "t.csv")
        self.assertEqual(self.statuses(), {"a": ("ok", ""), "b": ("error", "died"), "c": ("failed", "wrong")})
        self.assertIn("the first line 5: d has no value", done.stderr)
        self.write("f", "time,machine,case,metric,unit,better,value,status\nt,m,c,x,s,lower,1,good\n")
        self.refused("import", "csv", "f", "--out", "none", says="ok, failed, error or skipped")
        self.write("l.txt", "sort 1.5 s lower\nsolve failed wrong result\nload skipped\n")
        self.assay("import", "lines", "l.txt", "--out", "lines")
        self.assertEqual(self.statuses("lines"), {"sort": ("ok", ""), "solve": ("failed", "wrong result"), "load": ("skipped", "")})

    def test_what_export_writes_of_failures_is_read_back(self):
        self.run_dir({"schema": 2, "key": "a", "family": "a", "status": "error", "reason": "killed", "metrics": [], "params": {}},
                     {"schema": 2, "key": "b", "family": "b", "status": "ok", "comparable": False, "params": {}, "metrics": [
                         {"name": "bandwidth", "value": 2e9, "unit": "B/s", "better": "higher"}]})
        self.assay("export", "csv", "r", "--out", "f.csv")
        self.imported("csv", "f.csv")
        self.assertEqual(self.statuses(), {"a": ("error", "killed"), "b": ("ok", "")})
        self.assertFalse(self.records("run")[1]["comparable"])

    def test_entries_without_a_name_are_counted(self):
        self.write("g.json", {"benchmarks": [{"name": "a_mean", "run_name": "a", "run_type": "aggregate", "real_time": 1}, {}]})
        done = self.imported("gbench", "g.json", code=3)
        self.assertIn("1 of its parts, the first benchmarks/1: has no name", done.stderr)

    def test_an_environment_tells_machines_apart_and_compare_names_what_differs(self):
        def gbench(name, **context):
            self.write(f"{name}.json", {"context": {"date": "2026-01-01T00:00:00Z", "host_name": "ci", "num_cpus": 8, **context},
                                        "benchmarks": [{"name": "a", "cpu_time": 5, "real_time": 5}]})
            self.assertEqual(self.assay("import", "gbench", f"{name}.json", "--out", name).returncode, 0)
        gbench("release", library_build_type="release", compiler="gcc 14")
        gbench("debug", library_build_type="debug", compiler="gcc 14")
        text = self.assay("compare", "--base", "release", "--head", "debug").stdout
        self.assertRegex(text, r"build_type +release +debug")
        self.assertNotIn("gcc 14", text)
        for day, cpu in ((1, "AMD EPYC 7763"), (2, "Intel Xeon 8370C")):
            self.write("p.json", {"datetime": f"2026-01-0{day}T00:00:00Z", "machine_info": {"node": f"ci{day}", "cpu": {"brand_raw": cpu}},
                                  "commit_info": {"id": "abc", "branch": "main"}, "benchmarks": [{"name": "a", "stats": {"median": 1}}]})
            self.assay("import", "pytest-benchmark", "p.json", "--out", f"p{day}")
            self.assay("history", "add", f"p{day}", "--machine-by", "class", "--store", "h.db")
        exported = self.assay("history", "export", "--format", "jsonl", "--store", "h.db", "--out", "-").stdout
        runs = [json.loads(line) for line in exported.splitlines() if '"kind":"run"' in line]
        self.assertEqual({run["machine"] for run in runs}, {"AMD EPYC 7763", "Intel Xeon 8370C"})
        self.assertEqual({run["branch"] for run in runs}, {"main"})

    def test_directions_are_guessed_printed_and_can_be_said(self):
        figures = {"bert/steptime_train:0": 100, "nccl-lat:default/busbw:0": 10, "x/odd": 5}
        for side, factor in (("base", 1), ("head", 1.3)):
            for i in range(3):
                self.write(f"{side}{i}.jsonl", {"node": "n", **{
                    name: value * (1 + i / 1000) * (1 / factor if "busbw" in name else factor) for name, value in figures.items()}})
        def directions(*flags):
            shutil.rmtree(self.dir / "base", ignore_errors=True), shutil.rmtree(self.dir / "head", ignore_errors=True)
            for side in ("base", "head"):
                done = self.assay("import", "superbench", *(f"{side}{i}.jsonl" for i in range(3)), "--out", side, *flags)
                self.assertEqual(done.returncode, 0, done.stderr)
            compared = self.assay("compare", "--base", *(f"base/00000{i}" for i in (1, 2, 3)), "--head", *(f"head/00000{i}" for i in (1, 2, 3)))
            return done.stdout, compared.stdout
        text, compared = directions()
        self.assertIn("guessed: lower is better for steptime_train\n", text)
        self.assertIn("guessed: higher is better for busbw, odd\n", text)
        self.assertIn("slower: 2 · faster: 1", compared)
        text, compared = directions("--better", "odd=lower")
        self.assertNotIn("odd", text.split("guessed", 1)[1])
        self.assertIn("slower: 3 · faster: 0", compared)
        self.write("rules.yaml", "superbench:\n  rules:\n    r:\n      function: variance\n      criteria: lambda x:x>0.05\n"
                                 "      metrics:\n        - x/.*\n")
        self.assertIn("slower: 3 · faster: 0", directions("--rules", "rules.yaml")[1])
        for flags, says in ((("--better", "none=lower"), "no metric or case"), (("--better", "odd=up"), "higher or lower"),
                            (("--better", "lower"), "needs a name"), (("--commit-key", "x"), "is for gbench")):
            self.refused("import", "superbench", "base0.jsonl", "--out", "none", *flags, says=says)

    def test_worlds_of_nccl_tests_are_never_the_same_case(self):
        def log(name, last, host):
            self.write(f"{name}.log", "# Collective test starting: all_reduce_perf\n# Using devices\n"
                       "#  Rank  0 Group  0 Pid 1 on worker-1 device  0 [0x8d] NVIDIA H100\n"
                       f"#  Rank {last} Group  0 Pid 2 on {host} device  7 [0xb7] NVIDIA H100\n" + NCCL_TABLE.replace(" 3 ", " 0 "))
            self.assertEqual(self.assay("import", "nccl-tests", f"{name}.log", "--out", name).returncode, 0)
        log("r8", 7, "worker-1")
        log("r16", 15, "worker-0")
        record = self.records("r16")[0]
        self.assertEqual((record["world"], record["ranks"][1]["host"], record["key"]),
                         ({"ranks": 16, "nodes": 2}, "worker-0", "imported/all_reduce/float/sum/bytes=1073741824/out_of_place"))
        run = json.loads((self.dir / "r16/run.json").read_text())
        self.assertEqual((run["environment"]["hostnames"], len(run["environment"]["gpus"])), (["worker-0", "worker-1"], 8))
        text = self.assay("compare", "--base", "r8", "--head", "r16").stdout
        self.assertIn("No case was measured in the same way", text)
        figure = self.assay("report", "r16").stdout.split("The figures that matter")[1].split("Suites")[0]
        self.assertIn("bytes=2147483648", figure)

    def test_a_log_of_a_launcher_is_read_and_its_other_lines_counted(self):
        lines = [f"[1,0]<stdout>:{line}" for line in NCCL_TABLE.splitlines()]
        first, second = lines[4].split("4000.0")
        lines[4:5] = [first + "worker-0:21:35 [0] NCCL INFO Channel 00/02 : 0 1", "[1,0]<stdout>:  4000.0" + second, "[1,0]<stdout>:hello"]
        self.write("all_reduce.log", "\n".join(lines) + "\n")
        done = self.imported("nccl-tests", "all_reduce.log")
        self.assertEqual(self.figures()["all_reduce/float/sum/bytes=1073741824/in_place", "busbw"], (458.30e9, "B/s", "higher"))
        self.assertIn("not read: 1 of its parts, the first line 7: hello", done.stderr)

    def test_times_are_utc_and_those_that_cannot_be_read_are_refused(self):
        self.write("g.json", '{"context": {\n "date": "tomorrow"},\n "benchmarks": [{"name": "a", "cpu_time": 1}]}')
        self.refused("import", "gbench", "g.json", "--out", "none", says="g.json: line 2: the time \"tomorrow\"")
        header = "time,machine,case,metric,unit,better,value\n"
        self.write("t.csv", header + "2026-01-31T00:30:00+01:00,m,a,rate,1,higher,5\nsoon,m,a,rate,1,higher,5\n")
        self.refused("import", "csv", "t.csv", "--out", "none", says="t.csv: line 3: the time \"soon\"")
        self.write("t.csv", header + "2026-01-31T00:30:00+01:00,m,a,rate,1,higher,5\n")
        self.imported("csv", "t.csv")
        self.assertEqual(json.loads((self.dir / "run/run.json").read_text())["started"], "2026-01-30T23:30:00Z")
        self.write("j.json", {"start_time": "2026-07-01 03:00:00", "results": [
            {"size": 8, "out_of_place": {"alg_bw": 1, "bus_bw": 1}}]})
        done = self.assay("import", "nccl-tests", "j.json", "--out", "j")
        self.assertIn("no zone", done.stderr)
        self.assertEqual(json.loads((self.dir / "j/run.json").read_text())["started"], "2026-07-01T03:00:00Z")

    def test_other_formats(self):
        for format, text, figure in (
                ("bmf", {"a": {"latency": {"value": 5}}}, (("a", "latency"), (5, "1", "lower"))),
                ("hyperfine", {"results": [{"command": "a", "times": [1, 2, 3]}]}, (("a", "time"), (2, "s", "lower"))),
                ("asv", {"results": {"a.time_b": 0.5}}, (("a.time_b", "time"), (0.5, "s", "lower"))),
                ("nvbandwidth", {"nvbandwidth": {"testcases": [
                    {"name": "h2d", "status": "Passed", "bandwidth_description": "bandwidth (GB/s)", "bandwidth_matrix": [["5"]]}]}},
                 (("h2d/row=0/column=0", "bandwidth"), (5e9, "B/s", "higher"))),
                ("nvbandwidth", "Running h2d.\nCPU(row) -> GPU(column) bandwidth (GB/s)\n   0\n 0 5.00\n\nSUM h2d 5.00\n",
                 (("h2d/row=0/column=0", "bandwidth"), (5e9, "B/s", "higher"))),
                ("rccl-tests", NCCL_TABLE, (("f/float/sum/bytes=1073741824/in_place", "busbw"), (458.30e9, "B/s", "higher"))),
                ("otava", "time,a_latency\n2026-01-01,5\n", (("a_latency", "value"), (5, "1", "lower")))):
            with self.subTest(format):
                self.write("f", text)
                out = f"{format}-{isinstance(text, str)}"
                done = self.assay("import", format, "f", "--out", out)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(self.figures(out)[figure[0]], figure[1])

    def test_a_machine_twice_in_a_file_is_two_runs(self):
        self.write("s.jsonl", '{"node": "a", "x/rate": 1}\n{"node": "a", "x/rate": 2}\n')
        done = self.imported("superbench", "s.jsonl")
        self.assertEqual([self.figures(f"run/00000{i}")["x/rate", "value"][0] for i in (1, 2)], [1, 2])
        self.assertIn("a comes more than once", done.stderr)

    def test_nan_is_unknown(self):
        self.write("g.json", '{"benchmarks": [{"name": "a \\" NaN", "real_time": 2, "time_unit": "s", "ratio": NaN, "speed": -Infinity},'
                             ' {"name": "b", "real_time": NaN}]}')
        self.imported("gbench", "g.json")
        self.assertEqual(self.statuses(), {'a " NaN': ("ok", ""), "b": ("error", "it has no time")})

    def test_what_no_longer_holds_fails_compare_history_and_check(self):
        def run(day, name, *entries):
            self.write(f"{name}.json", {"context": {"date": f"2026-01-0{day}T00:00:00Z", "host_name": "box"}, "benchmarks": [
                {"name": "good", "real_time": 2.0, "time_unit": "us"}, *entries]})
            self.assertEqual(self.assay("import", "gbench", f"{name}.json", "--out", name).returncode, 0)
        for day, name in ((1, "b1"), (2, "b2"), (3, "b3")):
            run(day, name, {"name": "solve", "real_time": 3.0 + day / 1000, "time_unit": "us"})
        run(4, "h", {"name": "solve", "error_occurred": True, "error_message": "wrong result"})
        done = self.assay("compare", "--base", "b1", "b2", "b3", "--head", "h")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("no longer holds: 1", done.stdout)
        self.assertIn("error: wrong result", done.stdout)
        for name in ("b1", "b2", "b3", "h"):
            self.assay("history", "add", name, "--store", "h.db")
        done = self.assay("history", "check", "--store", "h.db")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("broke: 1", done.stdout)
        self.write("f.json", {"schema": 1, "floors": [{"key": "imported/solve", "metric": "real_time", "unit": "s", "at_most": 1,
                                                       "required": True, "source": "a test"}]})
        done = self.assay("check", "h", "--floors", "f.json")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("broke: wrong result", done.stdout)

    def test_a_test_that_broke_before_its_first_row_takes_its_cases_with_it(self):
        self.write("ar.log", NCCL_TABLE)
        self.imported("nccl-tests", "ar.log")
        self.write("ar.log", "n1: Test NCCL failure common.cu:961 'unhandled cuda error'\n")
        self.assay("import", "nccl-tests", "ar.log", "--out", "head")
        done = self.assay("compare", "--base", "run", "--head", "head")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("no longer holds: 3", done.stdout)

    def test_mistakes_are_named_with_their_place_and_nothing_is_written(self):
        header = "time,machine,case,metric,unit,better,value\n"
        for format, text, says in (
                ("csv", "time,machine,case,metric,unit,bettr,value\n", ["f: line 1", "better"]),
                ("csv", "time,machine,case\n", ["f: line 1", "metric"]),
                ("csv", header + "t,m,c,x,s,lower\n", ["f: line 2", "6 fields for 7 columns"]),
                ("csv", header + "t,m,c,x,s,up,1\n", ["f: line 2", "higher or lower"]),
                ("csv", header + "t,m,c,x,s,lower,many\n", ["f: line 2: value", "many"]),
                ("lines", "a 1 s lower\nb 2 s\n", ["f: line 2"]), ("lines", "a nan s lower\n", ["f: line 1: value"]),
                ("gbench", "[]", ["f: ", "Google Benchmark"]), ("gbench", "{", ["f: not JSON", ":1:2"]),
                ("pytest-benchmark", "{}", ["f: ", "/benchmarks"]), ("nccl-tests", "hello\n", ["f: "]),
                ("superbench", "{}\n", ["f: line 1", "node"])):
            with self.subTest(text):
                self.write("f", text)
                done = self.assay("import", format, "f", "--out", "none")
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                for words in says:
                    self.assertIn(words, done.stderr)
                self.assertFalse((self.dir / "none").exists())
        self.write("f", header)
        self.assertEqual(self.assay("import", "csv", "f", "--out", "none").returncode, 3)
        self.refused("import", "csv", "nowhere", "--out", "none", says="nowhere")
        self.refused("import", "cvs", "f", "--out", "none", says="csv")


if __name__ == "__main__":
    unittest.main()
