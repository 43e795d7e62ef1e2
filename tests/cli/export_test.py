"""`assay export`: each format is read back by an independent parser, with hostile names in it."""

import csv
import gzip
import io
import json
import pathlib
import re
import unittest

from assay_case import AssayCase
from prometheus_text import parse_prometheus

RUNS = pathlib.Path(__file__).resolve().parents[1] / "runs"
HOSTILE = 'memory/op="x\\",b=\u001b[31m,c=<i>'


def metric(name, value, unit, **members):
    return {"name": name, "value": value, "unit": unit, "better": "higher", "ci95": None, "of_peak": None,
            "reference": None, **members}


class Export(AssayCase):
    def record(self, key="memory/op=copy", **members):
        return {"schema": 2, "key": key, "family": "memory", "params": {"op": "copy"}, "status": "ok", "device": "cpu",
                "started": "2026-01-31T00:00:00Z", "world": {"ranks": 1, "nodes": 1},
                "ranks": [{"rank": 0, "host": "node-a", "device": "CPU"}],
                "metrics": [metric("bandwidth", 2e9, "B/s", ci95=[1.9e9, 2.1e9]), metric("latency", None, "s")],
                "samples": {"unit": "s", "values": [0.001, 0.002, 0.004], "count": 3, "repetitions": 5}, **members}

    def export(self, format, *records):
        self.run_dir(*(records or [self.record()]), run={"started": "2026-01-31T00:00:00Z", "git": {"commit": "abc"}})
        done = self.assay("export", format, "r", "--out", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_prometheus(self):
        text = self.export("prometheus", self.record(), self.record(HOSTILE),
                           self.record("memory/op=bad", status="failed"), self.record("memory/op=none", status="skipped"),
                           self.record("memory/op=checked", checks=[{"name": "bits", "passed": True, "value": 0, "limit": 0, "detail": []}],
                                       metrics=[metric("planned_bytes", 5, "B")]),
                           self.record("memory/op=elsewhere", ranks=[{"rank": 0, "host": "node-b", "device": "CPU"}]))
        series = parse_prometheus(text)
        case = (("case", "memory/op=copy"), ("device", "cpu"), ("ranks", "1"), ("host", "node-a"))
        self.assertEqual(series["assay_bandwidth_bytes_per_second"][case], 2e9)
        # What was not checked and did not break is not said to be right.
        self.assertEqual({dict(labels)["case"]: ok for labels, ok in series["assay_case_ok"].items()},
                         {"memory/op=bad": 0, "memory/op=checked": 1})
        self.assertEqual(len(series["assay_bandwidth_bytes_per_second"]), 3)
        self.assertEqual(list(series["assay_planned_bytes"].values()), [5])
        self.assertNotIn("assay_latency_seconds", series)
        hosts = ("node-a", "node-b")
        self.assertEqual(series["assay_run_timestamp_seconds"], {(("host", host),): 1769817600 for host in hosts})
        for host in hosts:
            self.assertEqual(series["assay_finding"][(("rule", "data-starved"), ("host", host))], 0)

    def test_the_dashboard_asks_for_what_prometheus_is_given(self):
        images = self.record("dataloader/kind=image/stage=all", family="dataloader", metrics=[metric("throughput", 9e2, "img/s")])
        self.run_dir(images, run={"started": "2026-01-31T00:00:00Z"})
        done = self.assay("export", "prometheus", "r", *(RUNS / name for name in ("gpu", "training-1", "micro-base-1")), "--out", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        series = {name: [dict(labels) for labels in one] for name, one in parse_prometheus(done.stdout).items()}
        board = json.loads((RUNS.parents[1] / "configs/grafana/assay.json").read_text())
        queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
        queries += [variable["query"]["query"] for variable in board["templating"]["list"] if variable["type"] == "query"]
        asked = [found for query in queries for found in re.findall(r"(assay_\w+)(?:\{([^}]*)\}|, *(\w+)\))?", query)]
        self.assertGreaterEqual(len(asked), len(queries))
        for name, matchers, label in asked:
            self.assertTrue(name in series, name)
            wanted = {match[0]: match[1] for match in re.findall(r'(\w+)=~"([^"]*)"', matchers)} | ({label: ".*"} if label else {})
            wanted = {key: ".*" if value == "$host" else value for key, value in wanted.items()}
            self.assertTrue(any(set(wanted) <= set(labels) and all(re.fullmatch(value, labels[key]) for key, value in wanted.items())
                                for labels in series[name]), (name, wanted))

    def test_the_dashboard_has_the_shape_that_grafana_provisions(self):
        board = json.loads((RUNS.parents[1] / "configs/grafana/assay.json").read_text())
        self.assertGreaterEqual(board["schemaVersion"], 36, "data sources by uid")
        self.assertTrue(board["title"])
        self.assertRegex(board["uid"], "^[A-Za-z0-9_-]{1,40}$")
        self.assertIsNone(board.get("id"), "Grafana gives it")
        variables = {one["name"]: one for one in board["templating"]["list"]}
        self.assertEqual((variables["datasource"]["type"], variables["datasource"]["query"]), ("datasource", "prometheus"))
        source = {"type": "prometheus", "uid": "${datasource}"}
        cells = set()
        for panel in board["panels"]:
            self.assertTrue(panel["title"])
            self.assertIn(panel["type"], ("stat", "timeseries", "table"))
            self.assertEqual(panel["datasource"], source)
            references = [target["refId"] for target in panel["targets"]]
            self.assertTrue(references and len(set(references)) == len(references))
            place = panel["gridPos"]
            taken = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
            self.assertTrue(taken and max(x for x, _ in taken) < 24 and not taken & cells, panel["title"])
            cells |= taken
        self.assertEqual(len({panel["id"] for panel in board["panels"]}), len(board["panels"]))
        for variable in board["templating"]["list"]:
            if variable["type"] == "query":
                self.assertEqual(variable["datasource"], source)
        names = set(re.findall(r"\$\{?(\w+)", json.dumps([board["panels"], board["templating"]]))) - {"__all"}
        self.assertLessEqual(names, set(variables), "a variable that nothing defines")

    def test_csv(self):
        text = self.export("csv", self.record(), self.record("=cmd|' /C calc'!A0,\"q\""),
                           self.record("memory/op=none", status="skipped", metrics=[]))
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        self.assertEqual([row["metric"] for row in rows], ["bandwidth", "latency", "bandwidth", "latency", ""])
        first = rows[0]
        self.assertEqual((first["time"], first["case"], first["unit"], first["better"], float(first["value"]), float(first["low"]),
                          first["commit"], first["status"]),
                         ("2026-01-31T00:00:00Z", "memory/op=copy", "B/s", "higher", 2e9, 1.9e9, "abc", "ok"))
        self.assertEqual(rows[1]["value"], "")
        self.assertEqual(rows[2]["case"], "'=cmd|' /C calc'!A0,\"q\"", "no formula")

    def test_csv_has_what_a_case_costs(self):
        """36 USD an hour are 1 USD in 100 s, in which 1e4 tokens per second are a million."""
        step = self.record("transformer/model=gpt2-tiny", family="transformer", params={"model": "gpt2-tiny"},
                           metrics=[metric("throughput", 1e4, "tokens/s"), metric("step_time", 0.1, "s", better="lower")])
        rows = self.export("csv", step)
        self.assertEqual({row["usd"] for row in csv.DictReader(io.StringIO(rows, newline=""))}, {""})
        done = self.assay("export", "csv", "r", "--price", "36", "--out", "c.csv")
        self.assertEqual(done.returncode, 0, done.stderr)
        for row in csv.DictReader(io.StringIO((self.dir / "c.csv").read_text(), newline="")):
            self.assertEqual((float(row["usd"]), row["usd_per"], row["price_basis"]), (1, "million tokens", "--price"))
        self.assertEqual(self.assay("import", "csv", "c.csv", "--out", "again").returncode, 0)

    def test_gbench(self):
        document = json.loads(self.export("gbench", self.record(), self.record(HOSTILE)))
        mine = [one for one in document["benchmarks"] if one["run_name"] == "memory/op=copy"]
        self.assertEqual([one["real_time"] for one in mine if one["run_type"] == "iteration"], [1e6, 2e6, 4e6])
        aggregates = {one["aggregate_name"]: one for one in mine if one["run_type"] == "aggregate"}
        self.assertEqual(aggregates["median"]["real_time"], 2e6)
        self.assertEqual(aggregates["median"]["name"], "memory/op=copy_median")
        self.assertEqual({one["time_unit"] for one in mine}, {"ns"})
        self.assertEqual({one["iterations"] for one in mine}, {5})

    def test_gbench_has_a_case_of_one_time_and_names_those_without(self):
        none = {"unit": "s", "values": [], "count": 0}
        self.run_dir(self.record("imported/a", samples=none, metrics=[metric("cpu_time", 5e-6, "s", better="lower")]),
                     self.record("imported/rate", samples=none, metrics=[metric("busbw", 5e9, "B/s")]))
        done = self.assay("export", "gbench", "r", "--out", "-")
        entries = [(one["name"], one["real_time"]) for one in json.loads(done.stdout)["benchmarks"] if one["run_type"] == "iteration"]
        self.assertEqual(entries, [("imported/a", 5000)])
        self.assertIn("no place for some cases; left out: imported/rate", done.stderr)

    def test_gbench_has_what_failed_and_what_was_skipped(self):
        document = json.loads(self.export("gbench", self.record(status="error", reason="killed"),
                                          self.record("memory/op=none", status="skipped", reason="no AMX")))
        self.assertEqual([(one.get("error_message"), one.get("skip_message"), one["iterations"]) for one in document["benchmarks"]],
                         [("killed", None, 0), (None, "no AMX", 0)])

    def test_bmf(self):
        document = json.loads(self.export("bmf", self.record(), self.record(HOSTILE)))
        self.assertEqual(document["memory/op=copy"],
                         {"bandwidth": {"value": 2e9, "lower_value": 1.9e9, "upper_value": 2.1e9}})
        self.assertEqual(len(document), 2)
        self.assertFalse(any("\u001b" in name for name in document))

    def test_bmf_says_which_cases_it_has_no_place_for(self):
        self.run_dir(self.record(), self.record("memory/op=bad", status="failed", reason="wrong sum"),
                     self.record("memory/op=none", status="skipped", reason="no AMX"))
        done = self.assay("export", "bmf", "r", "--out", "-")
        self.assertEqual((done.returncode, list(json.loads(done.stdout))), (0, ["memory/op=copy"]))
        for words in ("memory/op=bad: failed, wrong sum", "memory/op=none: skipped, no AMX"):
            self.assertIn(words, done.stderr)

    def test_trace(self):
        trace = b'{"traceEvents": [{"name": "step \u00fc", "ph": "X", "ts": 1, "dur": 2, "pid": 0, "tid": 0}' + b", {}" * 9999 + b"]}"
        self.run_dir(self.record())
        self.write("r/trace.json", trace)
        done = self.assay("export", "trace", "r", "--out", "trace.json.gz")
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        packed = (self.dir / "trace.json.gz").read_bytes()
        self.assertEqual(gzip.decompress(packed), trace)
        self.assertLess(len(packed), len(trace) / 10)
        json.loads(gzip.decompress(packed))

    def test_a_trace_is_of_one_run_that_has_one(self):
        self.run_dir(self.record())
        self.refused("export", "trace", "r", "--out", "-", says=["r/trace.json", "--trace"])
        self.write("r/trace.json", "{}")
        self.run_dir(self.record(), name="other", run={"started": "2026-02-01T00:00:00Z"})
        self.refused("export", "trace", "r", "other", "--out", "-", says="one run directory")

    def test_the_newest_run_counts_and_the_file_is_replaced(self):
        for day, value in ((1, 1e9), (2, 3e9)):
            self.run_dir(self.record(metrics=[metric("bandwidth", value, "B/s")]), name=f"r{day}",
                         run={"started": f"2026-01-0{day}T00:00:00Z"})
        self.write("out.prom", "old")
        done = self.assay("export", "prometheus", "r2", "r1", "--out", "out.prom")
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        series = parse_prometheus((self.dir / "out.prom").read_text())
        self.assertEqual(list(series["assay_bandwidth_bytes_per_second"].values()), [3e9])
        self.assertEqual([path.name for path in self.dir.glob("out.prom*")], ["out.prom"])

    def test_refusals(self):
        self.run_dir(self.record())
        self.refused("export", "excel", "r", "--out", "-", says="prometheus")
        self.refused("export", "csv", "r", says="--out")
        self.refused("export", "csv", "nowhere", "--out", "-", says="nowhere")
        self.run_dir(name="empty")
        self.assertEqual(self.assay("export", "csv", "empty", "--out", "-").returncode, 3)


if __name__ == "__main__":
    unittest.main()
