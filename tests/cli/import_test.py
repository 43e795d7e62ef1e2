"""`assay import`: files as other tools write them become runs that report, compare and check take."""

import json
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

    def test_gbench(self):
        times = [10, 11, 12, 13, 14, 15, 16]
        entries = [{"name": "BM_copy/8", "run_name": "BM_copy/8", "run_type": "iteration", "real_time": time, "cpu_time": 1,
                    "time_unit": "us", "iterations": 5, "bytes_per_second": 2e9} for time in times]
        self.write("g.json", {"context": {"date": "2026-01-31T13:00:00+01:00", "host_name": "box"}, "benchmarks": [
            *entries, {**entries[0], "run_type": "aggregate", "name": "BM_copy/8_mean", "real_time": 99}]})
        self.imported("gbench", "g.json")
        self.assertEqual(self.figures(), {("BM_copy/8", "real_time"): (13e-6, "s", "lower"),
                                          ("BM_copy/8", "bytes_per_second"): (2e9, "B/s", "higher")})
        [record] = self.records("run")
        self.assertEqual(len(record["samples"]["values"]), 7)
        self.assertIsNotNone(record["metrics"][0]["ci95"])
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
        self.assertEqual(self.figures(), {(name + "out_of_place", "busbw"): (469.76e9, "B/s", "higher"),
                                          (name + "out_of_place", "algbw"): (268.44e9, "B/s", "higher"),
                                          (name + "in_place", "busbw"): (458.30e9, "B/s", "higher"),
                                          (name + "in_place", "algbw"): (261.89e9, "B/s", "higher"),
                                          **{(name.replace("1073741824", "2147483648") + "in_place", metric): (value, "B/s", "higher")
                                             for metric, value in (("busbw", 458.30e9), ("algbw", 261.89e9))}},
                         "a row with wrong elements is no figure")
        half = {"time": 4000, "alg_bw": 1.5, "bus_bw": 2.5, "nwrong": 0}
        self.write("j.json", {"config": {}, "results": [{"size": 8, "type": "float", "redop": "sum", "out_of_place": half,
                                                         "in_place": {**half, "nwrong": 1}}]})
        self.assertEqual(self.assay("import", "nccl-tests", "j.json", "--out", "json").returncode, 0)
        self.assertEqual(self.figures("json")["j/float/sum/bytes=8/out_of_place", "busbw"], (2.5e9, "B/s", "higher"))
        self.assertEqual(len(self.figures("json")), 2)

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

    def test_lines(self):
        self.write("l.txt", "# mine\nsort 1.5 s lower\nsort 1.7 s lower\nsort 1.6 s lower\nrate 3e6 items/s higher\n")
        self.imported("lines", "l.txt")
        self.assertEqual(self.figures(), {("sort", "value"): (1.6, "s", "lower"), ("rate", "value"): (3e6, "items/s", "higher")})

    def test_mistakes_are_named_with_their_place_and_nothing_is_written(self):
        header = "time,machine,case,metric,unit,better,value\n"
        for format, text, says in (
                ("csv", "time,machine,case,metric,unit,bettr,value\n", ["f: line 1", "better"]),
                ("csv", "time,machine,case\n", ["f: line 1", "metric"]),
                ("csv", header + "t,m,c,x,s,lower\n", ["f: line 2", "6 fields for 7 columns"]),
                ("csv", header + "t,m,c,x,s,up,1\n", ["f: line 2", "higher or lower"]),
                ("csv", header + "t,m,c,x,s,lower,many\n", ["f: line 2: value", "many"]),
                ("lines", "a 1 s lower\nb 2 s\n", ["f: line 2"]), ("lines", "a nan s lower\n", ["f: line 1: value"]),
                ("gbench", "[]", ["f: ", "Google Benchmark"]), ("gbench", "{", ["f: not JSON"]),
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
