"""assay compare on run directories made by hand: what it prints and writes, and its exit codes."""

import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from acceptances import ACCEPTANCES, SUM, answer, attempt, broke, each, record, whole, write_acceptance  # noqa: E402
from assay_case import AssayCase  # noqa: E402


class Compare(AssayCase):
    def record(self, value=100.0, half=0.5, key="memory/op=copy", **members):
        interval = None if half is None else [value - half, value + half]
        record = {"schema": 1, "key": key, "family": key.split("/")[0], "params": {"op": key.split("=")[-1]},
                  "protocol": {"cache": "cold"}, "status": "ok",
                  "metrics": [{"name": "bandwidth", "value": value, "unit": "B/s", "ci95": interval,
                               "better": "higher"}]}
        record.update(members)
        return record

    def side(self, name, *runs, **run):
        """Writes one directory per run; a run is a list of records or lines."""
        return [self.run_dir(*records, name=f"{name}{i}", run={"started": f"2026-01-0{i + 1}T00:00:00Z-{name}", **run})
                for i, records in enumerate(runs)]

    def values(self, name, *values, **members):
        """A side whose runs have one case each."""
        return self.side(name, *([self.record(value, **members)] for value in values))

    def compare(self, base, head, *flags):
        return self.assay("compare", "--base", *base, "--head", *head, *flags)

    def document(self, base, head, *flags):
        done = self.compare(base, head, "--json=out.json", *flags)
        return done, self.tables()

    def test_slower_beyond_the_tolerance(self):
        done, tables = self.document(self.values("b", 100, 101, 99), self.values("h", 90, 91, 89))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("slower: 1 · faster: 0 · same: 0 · cannot say: 0", done.stdout)
        self.assertNotIn("\033", done.stdout)
        self.assertEqual(tables["counts"][0]["slower"], 1)
        self.assertEqual(tables["counts"][0]["exit_code"], 1)
        case = tables["cases"][0]
        self.assertEqual(case["case"], "memory/op=copy")
        self.assertAlmostEqual(case["ratio"], (90 * 91 * 89 / (100 * 101 * 99)) ** (1 / 3))
        self.assertEqual(case["verdict"]["verdict"], "slower")
        self.assertEqual(case["base"]["unit"], "B/s")
        self.assertEqual(case["ci95"]["noise"], "between runs")
        self.assertLess(case["ci95"]["high"], 1)

    def test_two_runs_as_arguments_are_base_and_head(self):
        (base,), (head,) = self.values("b", 100), self.values("h", 50)
        named = self.assay("compare", "--base", base, "--head", head)
        done = self.assay("compare", base, head)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (1, named.stdout, named.stderr))
        self.refused("compare", base, says=["two runs are base and head", "--base DIR", "1 run"])
        self.refused("compare", base, head, head, says="3 runs")
        self.refused("compare", base, head, "--head", head, says="--head DIR")
        self.refused("compare", "--base", base, says="--head is required")

    def test_the_user_sets_the_tolerance(self):
        base, head = self.values("b", 100, 101, 99), self.values("h", 90, 91, 89)
        for tolerance in ("20%", "0.2", "20 %"):
            self.assertEqual(self.compare(base, head, "--tolerance", tolerance).returncode, 0)

    def test_faster_and_same_pass(self):
        base = self.values("b", 100, 101, 99)
        self.assertEqual(self.compare(base, self.values("h", 120, 121, 119)).returncode, 0)
        self.assertIn("same: 1", self.compare(base, self.values("s", 100.1, 101.1, 99.1)).stdout)

    def test_lower_is_faster_for_times(self):
        slow = [{"name": "latency", "value": 2.0, "unit": "s", "ci95": [1.99, 2.01], "better": "lower"}]
        quick = [{"name": "latency", "value": 1.0, "unit": "s", "ci95": [0.99, 1.01], "better": "lower"}]
        base, head = self.side("b", [self.record(metrics=slow)]), self.side("h", [self.record(metrics=quick)])
        done, tables = self.document(base, head)
        self.assertEqual(done.returncode, 0)
        self.assertAlmostEqual(tables["cases"][0]["ratio"], 2)
        self.assertEqual(self.compare(head, base).returncode, 1)

    def test_noise_does_not_pass(self):
        done, tables = self.document(self.values("b", 100, 130, 80), self.values("h", 97, 125, 78))
        self.assertEqual(done.returncode, 3)
        self.assertEqual(tables["cases"][0]["verdict"]["verdict"], "cannot say")
        self.assertIn("Cannot say, 1 case", done.stdout)
        # One run per side, with a wide interval or none.
        for half in (20, None):
            done = self.compare(self.values("b", 100, half=half), self.values("h", 99, half=half))
            self.assertEqual(done.returncode, 3)

    def test_one_run_per_side_is_within_run(self):
        base = self.values("b", 100)
        done, tables = self.document(base, self.values("h", 80))
        self.assertEqual(done.returncode, 1)
        self.assertIn("within-run", done.stdout)
        self.assertIn("Use three or more runs per side", " ".join(done.stdout.split()))
        self.assertEqual(tables["cases"][0]["ci95"]["noise"], "within-run")
        # Unmeasured noise between runs may explain 3.35 %, however narrow the samples' interval is.
        done = self.compare(self.values("b", 100, half=0.1), self.values("h", 96.65, half=0.1))
        self.assertEqual(done.returncode, 3)
        self.assertIn("noise between runs may explain it", done.stdout)

    def test_what_was_left_out_is_listed_with_its_reason(self):
        base = self.side("b", [self.record(key=f"memory/op={name}") for name in "abcdefgh"])
        head = self.side("h", [
            self.record(key="memory/op=a"),
            self.record(key="memory/op=b", protocol={"cache": "hot"}),
            self.record(key="memory/op=c", status="skipped", reason="no AMX", metrics=[]),
            self.record(key="memory/op=d", comparable=False, flags=["oversubscribed"]),
            self.record(key="memory/op=e", flags=["injected:slow-rank"]),
            self.record(key="memory/op=f", labels={"implementation": "amx"}),
            self.record(key="memory/op=g", metrics=[{"name": "latency", "value": 1.0, "unit": "s"}]),
            self.record(key="memory/op=new")])
        done, tables = self.document(base, head)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual([row["case"] for row in tables["cases"]], ["memory/op=a"])
        reasons = {row["case"][-1] if row["case"] != "memory/op=new" else "new": row["reason"]
                   for row in tables["left_out"]}
        self.assertEqual(reasons, {
            "b": "different protocol: cache cold / hot", "c": "skipped in head: no AMX",
            "d": "not comparable in head: oversubscribed", "e": "a fault was injected in head",
            "f": "different implementation: not recorded / amx", "g": "bandwidth absent in head", "h": "only in base",
            "new": "only in head"})

    def test_different_machines_are_never_samples_of_one_side(self):
        def on(name, kind, *values):
            return self.side(name, *([self.record(value)] for value in values), labels={"instance_type": kind})
        a, b, c = on("a", "p5.48xlarge", 100, 101, 99), on("b", "p5.48xlarge", 100.1, 101.1, 99.1), on("c", "p4d.24xlarge", 50, 51, 49)
        done, tables = self.document(a, b + c, "--html", "out.html")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual({row["machine"]: (row["head"]["runs"], row["verdict"]["verdict"]) for row in tables["cases"]},
                         {"p5.48xlarge": (3, "same"), "p4d.24xlarge": (3, "slower")})
        ids = re.findall(' id="([^"]*)"', (self.dir / "out.html").read_text())
        self.assertEqual(len(ids), len(set(ids)))
        done = self.compare(a + c, b + on("e", "g6e.xlarge", 5, 6, 7))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr.count("\n"), 1)
        for part in ("p4d.24xlarge (c0 c1 c2)", "g6e.xlarge (e0 e1 e2)", "give one side a single kind"):
            self.assertIn(part, done.stderr)
        self.assertEqual(self.compare(a, c).returncode, 1, "another machine on the other side is what compare is for")
        done, tables = self.document(a + c, b + on("d", "p4d.24xlarge", 40, 41, 39))
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual({row["machine"]: row["verdict"]["verdict"] for row in tables["cases"]},
                         {"p5.48xlarge": "same", "p4d.24xlarge": "slower"})
        self.assertEqual({row["machine"] for row in tables["figures"]}, {"p5.48xlarge", "p4d.24xlarge"})

    def test_a_file_of_prices_that_prices_none_of_the_runs_is_named(self):
        prices = self.write("own.json", {"schema": 1, "source": "me", "date": "2026-01-01",
                                         "prices": [{"instance_type": "p5.48xlarge", "price": 40}]})
        base, head = self.values("b", 100, 101, 99), self.values("h", 100.1, 101.1, 99.1)
        done = self.compare(base, head, "--prices", prices)
        self.assertIn("compare: base: own.json has no price for", done.stderr)
        self.assertIn("the runs name no instance type", done.stderr)
        self.assertIn("report: own.json has no price for", self.assay("report", *base, "--prices", prices).stderr)

    def test_no_comparable_case_is_not_enough_data(self):
        base = self.values("b", 100)
        done = self.compare(base, self.values("h", 100, protocol={"cache": "hot"}))
        self.assertEqual(done.returncode, 3)
        self.assertIn("No case was measured in the same way", done.stdout)
        done = self.compare(base, self.side("e", []))
        self.assertEqual(done.returncode, 3)
        self.assertIn("no finished case in head (e0)", done.stderr)

    def test_a_case_that_no_longer_holds_is_found(self):
        broken = self.record(status="error", reason="killed by signal 9", metrics=[], protocol={})
        other = self.record(key="memory/op=add")
        base = self.side("b", [self.record(), other])
        for head in ([broken, other], [self.record(status="failed", checks=[{"name": "sum", "passed": False}]), other]):
            done = self.compare(base, self.side("h", head))
            self.assertEqual(done.returncode, 1)
            self.assertIn("no longer holds: 1", done.stdout)
        self.assertEqual(self.compare(self.side("h", [broken, other]), base).returncode, 0)

    def test_differences_between_environments_are_listed(self):
        def environment(driver, governor):
            return {"cpu": {"name": "AMD Zen 4", "governors": [governor]}, "libraries": {"onednn": "3.2.0"},
                    "drivers": {"nvidia": driver}, "os": {"kernel": "6.1"}, "load": 1}
        base = self.side("b", [self.record()], environment=environment("550.1", "performance"))
        head = self.side("h", [self.record()], environment=environment("570.2", "powersave"))
        done, tables = self.document(base, head)
        self.assertEqual([(row["field"], row["base"], row["head"]) for row in tables["environment"]],
                         [("environment/drivers/nvidia", ["550.1"], ["570.2"]),
                          ("environment/cpu/governors", [["performance"]], [["powersave"]])])
        self.assertLess(done.stdout.index("governor"), done.stdout.index("memory copy"))
        self.assertIn("Nothing", self.compare(base, self.side("s", [self.record(101)],
                                                              environment=environment("550.1", "performance"))).stdout)

    def test_order_and_duplicates_do_not_matter(self):
        base, head = self.values("b", 100, 101, 99), self.values("h", 90, 91, 89)
        texts = []
        for b, h in ((base, head), (base[::-1] + base, head[1:] + head)):
            done = self.compare(b, h, "--html", "out.html", "--md", "out.md", "--json=out.json")
            texts.append([done.stdout, *((self.dir / f"out.{kind}").read_text() for kind in ("html", "md", "json"))])
        self.assertEqual(texts[0], texts[1])

    def test_a_run_against_itself_is_the_same(self):
        base = self.values("b", 100, half=None)
        done = self.compare(base, base)
        self.assertEqual(done.returncode, 0)
        self.assertIn("both sides are the same runs", done.stdout)

    def test_extreme_figures_stay_numbers(self):
        odd = [self.record(1e-300, half=None), self.record(1e300, key="memory/op=a"), self.record(0, key="memory/op=b"),
               self.record(-5, key="memory/op=c"), self.record(5, half=9, key="memory/op=d"), {"schema": 1},
               self.record(key="memory/op=e", samples={"values": [1.0]}, half=None)]
        other = [self.record(1e300, half=None), self.record(1e-300, key="memory/op=a"),
                 self.record(1, key="memory/op=b"), self.record(1, key="memory/op=c"),
                 self.record(5, half=0, key="memory/op=d"), {"schema": 1},
                 self.record(key="memory/op=e", samples={"values": [2.0]}, half=None)]
        done = self.compare(self.side("b", odd), self.side("h", other), "--json=out.json", "--md", "out.md")
        self.assertIn(done.returncode, (1, 3), done.stderr)
        for text in (done.stdout, (self.dir / "out.md").read_text(), (self.dir / "out.json").read_text()):
            self.assertNotRegex(text.lower(), r"\b(nan|inf)\b")

    def test_hostile_strings_stay_inert(self):
        evil = "\x1b[2J<script>alert(1)</script>|`x`\u202e"
        base = self.side("b", [self.record(key="memory/op=" + evil)], labels={"side": evil})
        head = self.side("h", [self.record(key="memory/op=" + evil, status="error", reason=evil, protocol={evil: evil})],
                         environment={evil: evil, "hostnames": [evil]})
        done = self.compare(base, head, "--md", "out.md", "--html", "out.html")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertNotIn("<script>alert", (self.dir / "out.html").read_text())
        for text in (done.stdout, (self.dir / "out.md").read_text()):
            self.assertNotIn("\033", text)
            self.assertNotIn("\u202e", text)
        self.assertNotIn("<script>", (self.dir / "out.md").read_text())

    def test_broken_lines_are_counted_and_named(self):
        done = self.compare(self.side("b", ["{not json", self.record()]), self.values("h", 100.1))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Unreadable: 1 line", done.stdout)
        self.assertIn("base: b0: records.jsonl line 1", done.stdout)

    def trained(self, throughput):
        return self.record(key="llama/model=tiny", metrics=[
            {"name": "throughput", "value": throughput, "unit": "tokens/s", "ci95": [throughput * 0.99,
                                                                                     throughput * 1.01]}])

    def test_cost_is_listed_next_to_speed(self):
        base, head = self.side("b", [self.trained(1000)]), self.side("h", [self.trained(2000)])
        done, tables = self.document(base, head, "--price", "3.6")
        self.assertEqual(done.returncode, 0, done.stderr)
        # 3.6 USD per hour is 0.001 USD per second: a million tokens cost 1 USD at 1,000 tokens/s, half at 2,000.
        self.assertAlmostEqual(tables["cost"][0]["base"]["value"], 1.0)
        self.assertAlmostEqual(tables["cost"][0]["head"]["value"], 0.5)
        self.assertAlmostEqual(tables["cost"][0]["ratio"], 0.5)

    def test_the_date_of_the_price_is_beside_the_costs(self):
        self.write("prices.json", {"schema": 1, "source": "a quote", "date": "2026-01-01", "currency": "USD", "prices": [
            {"provider": "p", "instance_type": "one", "region": "r", "price": 1.0}]})
        labels = {"instance_type": "one", "provider": "p", "region": "r"}
        done = self.compare(self.side("b", [self.trained(1000)], labels=labels), self.side("h", [self.trained(2000)], labels=labels),
                            "--prices", "prices.json")
        self.assertIn("The oldest of these prices is of 2026-01-01", done.stdout)

    def test_cost_and_speed_of_several_kinds_stand_in_their_ranking_alone(self):
        self.write("prices.json", {"schema": 1, "source": "a quote", "date": "2026-01-01", "currency": "USD", "prices": [
            {"provider": "p", "instance_type": kind, "region": "r", "price": price}
            for kind, price in (("small", 1.0), ("big", 4.0), ("poor", 5.0))]})
        for kind, throughput in (("small", 1000), ("big", 2000), ("poor", 1500)):
            self.side(kind, [self.trained(throughput)], labels={"instance_type": kind, "provider": "p", "region": "r"})
        done, tables = self.document(["small0"], ["big0", "poor0"], "--prices", "prices.json")
        ranked = {row["machine"]: (row["speed"]["value"], row["usd_on_demand"]["value"]) for row in tables["ranking_1"]}
        for kind, speed, usd in (("small", 0.5, 1 / 3.6), ("big", 1, 4 / 7.2), ("poor", 0.75, 5 / 5.4)):
            self.assertAlmostEqual(ranked[kind][0], speed)
            self.assertAlmostEqual(ranked[kind][1], usd)
        # Both kinds of head are held against the only kind of base, and no row or picture mixes kinds or cases.
        self.assertEqual([(row["machine"].split(",")[-1].strip(), round(row["speed"], 9)) for row in tables["cost"]],
                         [("big", 2.0), ("poor", 1.5)])
        self.assertNotIn("pareto", tables)
        figures = {figure["id"].split(", ")[-1]: [point["y"] for curve in figure["curves"] if curve["name"] != "base"
                                                  for point in curve["points"]]
                   for section in json.loads((self.dir / "out.json").read_text())["sections"] for figure in section["figures"]}
        self.assertEqual({name.removeprefix("changes-"): [round(y, 9) for y in ys] for name, ys in figures.items()},
                         {"big": [2.0], "poor": [1.5]})
        self.assertIn("it stays cheapest while big costs more than 2.0 USD/h", done.stdout)

    def test_help_says_what_the_exit_codes_mean(self):
        text = self.assay("compare", "--help").stdout
        self.assertIn("Exit codes: 1", text)
        self.assertLessEqual(max(map(len, text.splitlines())), 100)

    def test_refusals(self):
        b, h = self.values("b", 100)[0], self.values("h", 100)[0]
        self.refused("compare", "--base", b, says="--head")
        self.refused("compare", "--base", "nowhere", "--head", h, says="nowhere")
        self.refused("compare", "--base", b, "--head", h, "--tolerance", "soon", says=["--tolerance", "soon"])
        self.refused("compare", "--base", b, "--head", h, "--tolerance", "3", says=["--tolerance", "3%"])
        self.refused("compare", "--base", b, "--head", h, "--tolerance", "-1%", says="--tolerance")
        self.refused("compare", "--base", b, "--head", h, "--price", "-1", says="--price")
        self.refused("compare", "--base", b, "--head", h, "--md", "no/such/folder/out.md", says="no/such/folder")
        self.refused("compare", "--base", b, "--heads", h, says="--head")
        self.write("foreign/run.json", {"schema": 7})
        self.refused("compare", "--base", b, "--head", "foreign", says=["schema", "7"])


class Acceptances(AssayCase):
    """Two folders of assay accept, before and after an update."""

    def accepted(self, name, values, driver="570.86.15", facts=None, audit=(), together=None, **stages):
        """An acceptance of hosts, each with its figure in the stage host (None: it broke there); `together`: the hosts of the
        others, and their figures by key."""
        hosts = list(values)
        records = []
        for host, value in values.items():
            records += each({host: value}, **({} if value else broke("rank 0 was killed by SIGSEGV", "crashed")))
            records[-1]["metrics"][0]["ci95"] = [0.999 * value, 1.001 * value] if value else None
        answers = [answer(host, facts={"driver": driver, **(facts or {}).get(host, {})}) for host in hosts]
        whole_ones = [host for host, value in values.items() if value]
        if together:
            names, figures = together
            sums = [record(key, names, value) for key, value in figures.items()]
            for one in sums:
                one["metrics"][0]["ci95"] = [0.999 * one["metrics"][0]["value"], 1.001 * one["metrics"][0]["value"]]
            # The last case was slow at first and was measured again.
            slow = json.loads(json.dumps(sums[-1]))
            slow["metrics"][0].update(value=1.0, ci95=[0.999, 1.001])
            stages = {"collectives": [attempt(names, *sums[:-1], slow), attempt(names, sums[-1])], **stages}
        ACCEPTANCES[name] = {"hosts": hosts, "audit": {"hosts": answers, "drift": list(audit)}, "stages": {
            **whole(whole_ones), "host": [attempt(hosts, *records)], **stages}}
        words, out = write_acceptance(self.dir / name, name)
        done = self.assay(*words)
        self.assertIn(done.returncode, (0, 1, 3), done.stdout + done.stderr)
        return out

    def compare(self, base, head, *flags):
        done = self.assay("compare", "--base", base, "--head", head, "--json=out.json", *flags)
        return done, self.tables()

    def steady(self, **others):
        return {**{f"h{n}": 1e11 * (1 + n / 1e4) for n in range(6)}, **others}

    def test_what_moved_on_how_many_hosts_stands_beside_the_driver_that_changed(self):
        base = self.accepted("oct", self.steady())
        head = self.accepted("nov", {host: 0.9 * value for host, value in self.steady().items()}, driver="580.65.06")
        done, tables = self.compare(base, head, "--html", "out.html")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"throughput +10 % slower +all 6 +driver 570\.86\.15 -> 580\.65\.06 on all of them")
        self.assertEqual([(row["host"], row["slower"]) for row in tables["hosts"]], [(f"h{n}", 1) for n in range(6)])
        self.assertEqual(tables["hosts"][0]["changed"], [{"fact": "driver", "base": "570.86.15", "head": "580.65.06"}])
        self.assertEqual(len(tables["moved"][0]["hosts"]), 6)
        self.assertIn("580.65.06", (self.dir / "out.html").read_text())

    def test_equal_acceptances_are_the_same(self):
        base = self.accepted("oct", self.steady())
        done, tables = self.compare(base, base)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("moved", tables)
        self.assertIn("Nothing by more than the tolerance", done.stdout)

    def test_hosts_that_fail_now_come_first_and_hosts_of_one_side_are_named(self):
        base = self.accepted("oct", self.steady(gone=1e11))
        head = self.accepted("nov", self.steady(h4=None, fresh=1e11), facts={"h4": {"kernel": "6.8"}})
        done, tables = self.compare(base, head)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual((tables["moved"][0]["what"], tables["moved"][0]["how"]), ("host h4", "pass -> fail"))
        self.assertIn("kernel absent -> 6.8", done.stdout)
        self.assertEqual(tables["hosts"][0]["host"], "h4")
        self.assertEqual(len(tables["hosts"]), 6)
        self.assertIn("only in base: gone", done.stdout)
        self.assertIn("only in head: fresh", done.stdout)

    def test_what_all_hosts_reach_together_stands_with_both_figures(self):
        hosts = [f"h{n}" for n in range(6)]
        large, other, groups = (SUM.replace("bytes=8", "bytes=67108864").replace("all_reduce", op)
                                for op in ("all_reduce", "broadcast", "groups"))
        base = self.accepted("oct", self.steady(), together=(hosts, {large: 1e10, other: 1e10, groups: 5e9}))
        head = self.accepted("nov", self.steady(), together=(hosts, {large: 8e9, other: 1e10, groups: 6e9}))
        done, tables = self.compare(base, head)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        rows = [(row["case"], row["base"]["value"], row["head"]["value"], row["verdict"]) for row in tables["together"]]
        self.assertEqual([(key, round(a / 1e9, 6), round(b / 1e9, 6), verdict) for key, a, b, verdict in rows[:2]],
                         [(large, 10, 8, "slower"), (groups, 5, 6, "faster")])
        self.assertEqual([(key, verdict) for key, _, _, verdict in rows[2:]], [(other, "same")])
        self.assertRegex(done.stdout, r"(?s)All hosts together.*10 GB/s +8 GB/s")
        self.assertIn("cases slower: 1 · faster: 1", done.stdout)

    def test_stages_of_other_numbers_of_hosts_are_not_compared(self):
        hosts = [f"h{n}" for n in range(6)]
        base = self.accepted("oct", self.steady(), together=(hosts, {SUM: 1e10}))
        head = self.accepted("nov", self.steady(), together=(hosts[:4], {SUM: 5e9}))
        done, tables = self.compare(base, head)
        self.assertNotIn("together", tables)
        self.assertIn("collectives of all hosts are not compared: base 6 hosts, head 4 hosts", done.stdout)

    def test_a_run_and_an_acceptance_or_one_that_is_not_complete_are_not_compared(self):
        base = self.accepted("oct", self.steady())
        self.refused("compare", base, base / "host", says=[f"{base} is an acceptance", f"{base / 'host'} a run"])
        self.refused("compare", "--base", base, base, "--head", base, says="3 acceptances")
        head = self.accepted("nov", self.steady())
        (head / "accept.json").unlink()
        done = self.assay("compare", base, head)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn(f"assay accept --resume {head}", done.stderr)
        (head / "accept.json").write_text("[")
        self.refused("compare", base, head, says="accept.json")


if __name__ == "__main__":
    unittest.main()
