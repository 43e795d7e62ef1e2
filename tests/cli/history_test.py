"""`assay history` from imported nights to checks: events, their causes, exit codes, files, branches."""

import json
import math
import re
import sqlite3
import unittest
import xml.etree.ElementTree

from history_case import CASES, HistoryCase, date, noise, slower


def driver(machine, night):
    return {"driver": "581" if night >= 41 else "580", "kernel": "6.1"}


class Check(HistoryCase):
    def test_a_step_is_one_event_with_its_cause(self):
        found = None
        self.add(range(41), step=slower, facts=driver, commit=lambda machine, night: f"c{night}")
        self.assertEqual(self.check()["events"], [])
        for night in range(41, 48):
            self.add([night], step=slower, facts=driver, commit=lambda machine, night: f"c{night}")
            done = self.assay("history", "check", "--store", "h.db", "--json")
            report = json.loads(done.stdout)
            if done.returncode == 1:
                found = night
                break
            self.assertEqual(done.returncode, 0, "suspects fail nothing")
            if night == 41:
                self.assertEqual(sorted(suspect["series"] for suspect in report["suspects"]),
                                 [f"node1: imported/{case} throughput" for case in CASES[:3]])
                self.assertTrue(all(suspect["same_night"] for suspect in report["suspects"]))
        self.assertIsNotNone(found)
        [event] = self.open_events(report)
        self.assertEqual((event["from"]["night"], event["to"]["night"]), (date(40), date(41)))
        self.assertEqual((event["from"]["commit"], event["to"]["commit"]), ("c40", "c41"))
        self.assertEqual(sorted(event["series"]), [f"node1: imported/{case} throughput" for case in CASES[:3]])
        self.assertAlmostEqual(event["shift"]["value"], -0.2, delta=0.03)
        self.assertLess(event["shift"]["low"], -0.2)
        self.assertEqual({cause["fact"] for cause in event["causes"]}, {"driver", "commit"})
        self.assertIn("cannot be told apart", event["blame"])
        self.assertIn("driver", event["blame"])
        # Only the first check of an event is news.
        self.check("--new", code=0)
        self.check(code=1)
        commands = self.history("bisect", event["id"], "--build", "make", "--run", "./bench").stdout
        self.assertIn("git bisect start c41 c40", commands)
        self.assertIn("assay ab", commands)

    def test_a_count_is_an_event_the_same_night(self):
        rows = [",".join(["time", "machine", "case", "metric", "unit", "better", "value", "commit"])]
        for night in range(31):
            for case, metric, value in (("parse", "instructions", 123456789012 if night < 30 else 123580246789),
                                        ("parse", "allocations", 0 if night < 30 else 5), ("sort", "allocations", 7)):
                rows.append(f"{date(night)}T02:00:00Z,node1,{case},{metric},1,lower,{value},c{night}")
        file = self.write("counts.csv", "\n".join(rows) + "\n")
        self.assertEqual(self.assay("import", "csv", file, "--out", "runs").returncode, 0)
        self.history("add", "runs")
        report = self.check(code=1)
        events = {event["detail"]: event for event in self.open_events(report)}
        both = [event for event in events.values() if len(event["series"]) == 2]
        self.assertEqual(len(both), 1, events)  # one gap, one event
        self.assertEqual((both[0]["from"]["commit"], both[0]["to"]["commit"]), ("c29", "c30"))
        self.assertEqual(both[0]["detail"], "5 instead of 0")
        self.assertIn("5 instead of 0", self.history("check", code=1).stdout)
        self.assertIn("123580246789", self.history("report", "--series", "parse").stdout)
        exported = self.history("export", "--format", "csv").stdout
        self.assertIn("123456789012", exported)
        self.assertIn("instructions,1,lower,123580246789,", exported)

    def test_known_states_split_by_a_fact(self):
        def power(machine, night):
            return {"power": "saving" if night // 9 % 2 else "full"}

        def state(machine, case, night):
            return math.log(0.8) if night // 9 % 2 else 0

        self.add(range(44), step=state, facts=power)
        # Apart, neither state has changed, and the state of tonight is all that was expected.
        report = self.check("--split-by", "power")
        self.assertEqual((report["events"], report["missing"]), ([], 0))
        self.assertIn("imported/gemm/n=0 throughput (power=saving)",
                      self.history("report", "--split-by", "power", "--series", "n=0").stdout)
        done = self.assay("history", "report", "--store", "h.db", "--split-by", "powr")
        self.assertEqual(done.returncode, 2)
        self.assertIn('--split-by: no run has the fact "powr"; did you mean "power"?', done.stderr)

    def test_new_fails_once(self):
        self.add(range(50), step=slower)
        self.check("--new", code=1)
        self.check("--new", code=0)

    def test_clean_nights_are_quiet(self):
        self.add(range(60), machines=("node1", "node2"))
        report = self.check()
        self.assertEqual(report["events"], [])
        self.assertEqual((report["missing"], report["false_alarms_per_night"]), (0, 0.01))
        self.assertGreaterEqual(report["series_tested"], 2 * len(CASES))
        self.assertLess(report["detectable"]["gemm"], 0.1)
        self.assertGreater(report["detectable"]["gemm"], 0.01)

    def test_what_is_detectable_is_above_the_tolerance(self):
        self.add(range(40), cases=CASES[:3])
        for tolerance in (0.02, 0.1):
            with self.subTest(tolerance):
                found = self.check("--tolerance", str(tolerance))["detectable"]["gemm"]
                self.assertGreater(found, tolerance)
                self.assertLess(found, tolerance + 0.03)

    def test_the_third_machine_exonerates_the_rest(self):
        machines = ("node1", "node2", "node3")

        def step(machine, case, night):
            return math.log(0.96) if night >= 50 and machine != "node3" and case.startswith("gemm") else 0

        def facts(machine, night):
            later = night >= 50
            return {"driver": "581" if later and machine != "node3" else "580", "kernel": "6.2" if later else "6.1",
                    "clock_mhz": "1800" if later and machine != "node3" else "1980"}

        self.add(range(75), machines=machines, step=step, facts=facts)
        report = self.check(code=1)
        [event] = self.open_events(report)
        self.assertEqual(len(report["events"]), 1)
        self.assertEqual(event["machines"], ["node1", "node2"])
        self.assertTrue(all("gemm" in series for series in event["series"]))
        [cause] = event["causes"]
        self.assertEqual((cause["fact"], cause["before"], cause["after"]), ("driver", "580", "581"))
        self.assertAlmostEqual(cause["p"], 1 / 3)
        [exonerated] = event["exonerated"]
        self.assertEqual((exonerated["fact"], exonerated["exonerated_by"]), ("kernel", ["node3"]))
        self.assertEqual([one["fact"] for one in event["mediators"]], ["clock_mhz"])

    def test_no_alarm_for_what_is_no_change(self):
        def outliers(machine, case, night):
            return math.log(0.7) if case == CASES[0] and night in (40, 41, 42) else 0

        with self.subTest("three nights"):
            self.add(range(60), step=outliers, store="outliers.db")
            self.assertEqual(self.open_events(self.check(store="outliers.db")), [])
        with self.subTest("ten nights without runs"):
            self.add([*range(40), *range(50, 60)], store="gap.db")
            self.assertEqual(self.check(store="gap.db")["events"], [])

    def test_nights_at_once_in_any_order_are_nights_one_by_one(self):
        def machines_step(machine, case, night):
            return slower(machine, case, night) if machine == "node2" else 0

        for night in range(40, 50):
            self.add(range(40) if night == 40 else [night - 1], machines=("node1", "node2"), step=machines_step,
                     store="nightly.db")
            self.assay("history", "check", "--store", "nightly.db")
        self.add([49], machines=("node1", "node2"), step=machines_step, store="nightly.db")
        self.add(range(25, 50), machines=("node2", "node1"), step=machines_step, shuffle=True, store="once.db")
        self.add(range(25), machines=("node1", "node2"), step=machines_step, shuffle=True, store="once.db")

        def events(store):
            report = self.check(store=store, code=1)
            for event in report["events"]:
                del event["new"]
            return report

        nightly, once = events("nightly.db"), events("once.db")
        self.assertEqual(nightly, once)
        self.history("check", "--again", store="nightly.db")
        self.assertEqual(events("nightly.db"), once)

    def test_a_damaged_analysis_is_made_again(self):
        self.add(range(50), step=slower)
        self.check(code=1)
        before = self.check(code=1)
        store = sqlite3.connect(self.dir / "h.db")
        [(whole,)] = store.execute("SELECT bytes FROM cache")
        damaged = [b"", whole[:len(whole) // 2], whole + b"x"]
        damaged += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:] for at in range(0, len(whole), 1 + len(whole) // 7)]
        for content in damaged:
            store.execute("UPDATE cache SET bytes = ?", (content,))
            store.commit()
            self.assertEqual(self.check(code=1), before)
            self.assertEqual(store.execute("SELECT bytes FROM cache").fetchall(), [(whole,)])
        store.close()

    def test_it_is_over_when_the_figures_are_back(self):
        def step(machine, case, night):
            return slower(machine, case, night) if night < 52 else 0

        self.add(range(50), step=step)
        [event] = self.open_events(self.check(code=1))
        self.add(range(50, 70), step=step)
        report = self.check()
        [after] = [one for one in report["events"] if one["kind"] == "slower"]
        self.assertEqual((after["id"], after["state"]), (event["id"], "recovered"))


class MachineSwap(HistoryCase):
    def swapped(self, report):
        return [event for event in report["events"] if event["kind"] == "hardware_replaced"]

    def test_another_machine_takes_over(self):
        """node9 is a quarter slower than node1, whose series end: no alarm, and nothing is missing."""
        self.add(range(40), commit=lambda machine, night: f"c{night}")
        id = None
        for nights, young in (([40], True), ([41], True), (range(42, 47), True), (range(47, 62), False)):
            self.add(nights, machines=("node9",), step=lambda machine, case, night: math.log(0.75),
                     commit=lambda machine, night: f"c{night}")
            report = self.check()
            [event] = self.swapped(report)
            self.assertEqual(report["events"], [event])
            self.assertEqual((event["state"], event["subject"]), ("noted", "node9 in place of node1"))
            self.assertEqual((event["from"]["night"], event["from"]["commit"]), (date(39), "c39"))
            self.assertEqual((event["to"]["night"], event["to"]["commit"]), (date(40), "c40"))
            self.assertEqual(event["machines"], ["node9", "node1"])
            self.assertEqual(len(event["series"]), len(CASES))
            self.assertAlmostEqual(event["shift"]["value"], -0.25, delta=0.02)
            self.assertIn(id, (None, event["id"]))
            id = event["id"]
            self.assertEqual((report["missing"], report["silent"]), (0, []))
            self.assertEqual(len(report["replaced"]), len(CASES) if young else 0, "for a week")

    def test_hosts_that_become_one_class(self):
        self.add(range(40), machines=("node1", "node2", "node3"))
        self.add([40], machines=("zen4",))
        done = self.history("check", "--json=h.json")
        self.assertIn("30 of last week's 30 series arrived, 30 of them on another machine", done.stdout)
        self.assertIn("zen4 in place of node1, node2, node3", done.stdout)
        report = json.loads((self.dir / "h.json").read_text())
        [event] = self.swapped(report)
        self.assertEqual((len(event["series"]), len(report["replaced"])), (10, 30))

    def test_what_the_new_machine_does_not_run_is_missing(self):
        self.add(range(40))
        self.add([40], machines=("node9",), cases=CASES[:7])
        report = self.check(code=3)
        self.assertEqual((len(self.swapped(report)), report["missing"], len(report["replaced"])), (1, 3, 7))
        self.assertEqual(len(report["silent"]), 3)
        self.add([40], machines=("node9",), cases=CASES[7:9])
        self.assertEqual(self.check()["missing"], 1)

    def test_a_machine_that_is_only_silent_is_missing(self):
        """Of two machines one stops. A third that runs other cases, and one that began long before, explain nothing."""
        self.add(range(40), machines=("node1", "node2"))
        self.add(range(30, 41), machines=("node3",))
        self.add([40], machines=("node2",))
        self.add([40], machines=("node4",), cases=["sort/n=1", CASES[0]])
        report = self.check(code=3)
        self.assertEqual((self.swapped(report), report["missing"], report["replaced"]), ([], 10, []))
        # In repair: nobody misses it until that is over.
        self.history("mute", "node1: *", "--until", date(42), "--reason", "in repair")
        self.assertEqual(self.check()["missing"], 0)
        self.add(range(41, 44), machines=("node2", "node3"))
        self.assertEqual(self.check(code=3)["missing"], 12, "node4 has run nothing since, either")

    def test_an_open_event_of_the_old_machine_still_fails(self):
        self.add(range(50), step=slower)
        self.add([50], machines=("node9",))
        report = self.check(code=1)
        self.assertEqual([event["kind"] for event in report["events"]], ["slower", "hardware_replaced"])

    def test_it_came_back(self):
        self.add(range(40))
        self.add(range(40, 43), machines=("node9",))
        self.assertEqual(len(self.swapped(self.check())), 1)
        self.add(range(43, 45), machines=("node1", "node9"))
        [event] = self.swapped(self.check())
        self.assertEqual(event["state"], "withdrawn")


class Choices(HistoryCase):
    def test_a_library_that_falls_back_is_an_event_with_that_cause(self):
        """Runs by hand: two of six cases are measured with another instruction set from night 30 on."""
        for night in range(40):
            records = []
            for n in range(6):
                fell = night >= 30 and n < 2
                value = 1e12 * math.exp(noise("node1", n, night) + (math.log(0.6) if fell else 0))
                records.append({"schema": 2, "key": f"gemm/n={n}", "family": "gemm", "params": {"n": n}, "status": "ok",
                                "protocol": {"form": "repeat", "hash": "p"}, "device": "cpu",
                                "world": {"ranks": 1, "nodes": 1}, "ranks": [{"rank": 0, "host": "node1", "device": "cpu"}],
                                "choices": {"implementation": "onednn", "isa": "avx2" if fell else "avx512"},
                                "metrics": [{"name": "throughput", "value": value, "unit": "FLOP/s", "better": "higher"}]})
            moment = f"{date(night)}T02:00:00Z"
            self.run_dir(*records, name=f"runs/{night:02}",
                         run={"schema": 2, "id": f"r{night}", "started": moment, "finished": moment,
                              "git": {"commit": f"c{night}"}, "environment": {"hostnames": ["node1"]}})
        self.assay("history", "add", "runs", "--store", "h.db")
        [event] = self.open_events(self.check(code=1))
        self.assertEqual(len(event["series"]), 2)
        first, second = event["causes"]
        self.assertEqual((first["fact"], first["before"], first["after"]), ("choice.isa", "avx512", "avx2"))
        self.assertAlmostEqual(first["p"], 1 / 15)
        self.assertEqual((second["fact"], second["p"]), ("commit", 1))

    def test_a_case_that_no_longer_holds(self):
        def run(night, status):
            moment = f"{date(night)}T02:00:00Z"
            record = {"schema": 2, "key": "gemm/n=1", "family": "gemm", "status": status, "reason": "wrong sum" if status == "failed" else "",
                      "protocol": {"hash": "p"}, "ranks": [{"rank": 0, "host": "node1"}],
                      "metrics": [{"name": "throughput", "value": 1e12, "unit": "FLOP/s"}]}
            self.run_dir(record, name=f"b/{night:02}", run={"schema": 2, "id": f"b{night}", "started": moment, "finished": moment,
                                                            "environment": {"hostnames": ["node1"]}})
        for night in range(20):
            run(night, "failed" if night == 19 else "ok")
        self.assay("history", "add", "b", "--store", "h.db")
        report = self.check(code=1)
        [event] = report["events"]
        self.assertEqual((event["kind"], event["state"], event["to"]["run"]), ("broke", "open", "b19"))
        self.assertIn("wrong sum", event["detail"])
        self.check("--new", code=0)


class ExitCodes(HistoryCase):
    def test_lost_empty_young_and_stale(self):
        self.refused("history", "check", "--store", "none.db", code=3, says="none.db")
        self.add(range(10))
        self.history("check", code=3)
        self.add(range(10, 40))
        self.history("check")
        self.history("check", "--max-age", "10000")
        done = self.history("check", "--max-age", "0", code=3)
        self.assertIn(date(39), done.stderr)
        self.add([40], cases=CASES[:7])
        done = self.history("check", code=3)
        self.assertIn("7 of last week's 10 series", done.stderr)
        self.assertEqual(self.check(code=3)["missing"], 3)
        self.add([41], cases=CASES[:8])
        self.history("check")

    def test_an_alarm_counts_more_than_missing_series(self):
        self.add(range(50), step=slower)
        self.add([50], step=slower, cases=CASES[:5])
        self.history("check", code=1)

    def test_usage(self):
        self.add(range(3))
        self.refused("history", "check", "--store", "h.db", "--tolerance", "much", says="--tolerance")
        self.refused("history", "check", "--store", "h.db", "--false-alarms", "60%", says="--false-alarms")
        self.refused("history", "report", "--store", "h.db", "--since", "2026-13-01", says="2026-13-01")
        self.refused("history", "bisect", "abc", "--store", "h.db", says="abc")
        self.refused("history", "report", "--store", "none.db", says="none.db")


class Blind(HistoryCase):
    """Of ten series, the first ones are so noisy that a night may be half or twice as fast."""

    def noisy(self, count):
        return lambda machine, case, night: 100 * noise(machine, case, night) if case in CASES[:count] else 0

    def shown(self, *words, code=0):
        done = self.history("check", *words, "--html", "b.html", "--md", "b.md", "--json=b.json", code=code)
        band = re.search(r'class="band (\w+)"', (self.dir / "b.html").read_text()).group(1)
        return done, band, json.loads((self.dir / "b.json").read_text())

    def test_a_store_that_sees_little_is_amber_and_says_so(self):
        self.add(range(40), step=self.noisy(9))
        done, band, report = self.shown()
        self.assertEqual(band, "warn")
        line = "blind: in 9 of 10 series no step below 100 % alarms within 14 nights"
        for text in (done.stdout, (self.dir / "b.md").read_text(), (self.dir / "b.html").read_text()):
            self.assertIn(line, text)
        self.assertLessEqual(len((self.dir / "b.md").read_text().splitlines()), 20)
        self.assertEqual(report["blind"], {"series": 9, "of": 10, "young": 0, "step": 1})
        self.assertGreater(report["detectable"]["gemm"], 1)
        self.assertIn(line, self.shown("--strict", "--junit", "b.xml", code=3)[0].stderr)
        suite = xml.etree.ElementTree.parse(self.dir / "b.xml").getroot()
        skipped = {case.get("name"): case.find("skipped") is not None for case in suite.iter("testcase")}
        self.assertEqual(skipped, {"gemm": True, "memory": True, "enough to say": True})

    def test_a_few_noisy_series_are_named_and_the_rest_is_green(self):
        self.add(range(40), step=self.noisy(4))
        done, band, report = self.shown("--strict")
        self.assertEqual((band, report["blind"]["series"]), ("good", 4))
        self.assertIn("blind: in 4 of 10 series", done.stdout)

    def test_series_with_few_nights_are_blind_too(self):
        self.add(range(40), cases=CASES[:3])
        self.assertEqual(self.shown()[1], "good")
        self.add(range(34, 40), cases=CASES[3:])
        done, band, report = self.shown()
        self.assertEqual((band, report["blind"]), ("warn", {"series": 7, "of": 10, "young": 7, "step": 1}))
        self.assertIn("(7 have fewer than 15 nights)", done.stdout)
        self.shown("--strict", code=3)

    def test_an_alarm_counts_more(self):
        def step(machine, case, night):
            return (math.log(0.5) if night >= 32 and case == CASES[9] else 0) + self.noisy(9)(machine, case, night)

        self.add(range(40), step=step)
        self.assertEqual(self.shown("--strict", code=1)[1], "bad")

    def test_a_branch(self):
        for count, band, verdict in ((9, "warn", None), (4, "good", "not slower")):
            with self.subTest(count):
                store = f"{count}.db"
                self.add(range(60), step=self.noisy(count), store=store)
                self.add([60], step=self.noisy(count), facts=lambda machine, night: {"branch": "topic"}, store=store)
                done = self.history("check", "--branch", "topic", "--html", "b.html", "--json=b.json", store=store)
                self.assertIn(f'class="band {band}"', (self.dir / "b.html").read_text())
                self.assertIn(f"blind: in {count} of 10 series", done.stdout)
                report = json.loads((self.dir / "b.json").read_text())
                self.assertEqual(report["verdict"], verdict)
                self.assertEqual([one["verdict"] for one in report["changes"]].count("undecided"), count)
                self.check("--branch", "topic", "--strict", store=store, code=3 if verdict is None else 0)


class Files(HistoryCase):
    def test_every_format(self):
        hostile = "<script>alert(1)</script>|`x`"
        self.add(range(50), step=slower, machines=("node1", hostile),
                 facts=lambda machine, night: {"driver": hostile + ("2" if night >= 41 else "1")})
        done = self.history("check", "--html", "h.html", "--md", "h.md", "--json=h.json", "--junit", "h.xml", code=1)
        page = (self.dir / "h.html").read_text()
        self.assertNotIn("<script>alert", page)
        self.assertIn("data-chart", page)
        self.assertLess(len(page), 2_000_000)
        markdown = (self.dir / "h.md").read_text()
        self.assertLessEqual(len(markdown.splitlines()), 20)
        self.assertNotIn("<script>", markdown)
        self.assertTrue(markdown.startswith("**RED** "), markdown)
        report = json.loads((self.dir / "h.json").read_text())
        self.assertEqual(report["schema"], 1)
        for name in ("events", "suspects", "series_tested", "missing", "false_alarms_per_night", "detectable"):
            self.assertIn(name, report)
        [event] = self.open_events(report)
        for name in ("id", "state", "kind", "series", "from", "to", "shift", "causes"):
            self.assertIn(name, event)
        self.assertEqual(set(event["shift"]), {"value", "low", "high"})
        self.assertEqual(set(event["from"]), {"run", "night", "commit"})
        suites = xml.etree.ElementTree.parse(self.dir / "h.xml").getroot()
        self.assertEqual((suites.get("tests"), suites.get("failures")), ("4", "2"))   # a test per machine and family
        for text in (done.stdout, page, markdown):
            self.assertIn("at most 1 false alarm in 100 nights", text)
        self.assertIn("Detectable within 14 nights", done.stdout)
        self.assertIn("Not covered", done.stdout)

    def test_report_shows_the_series_asked_for(self):
        self.add(range(50), step=slower)
        done = self.history("report", "--series", "memory", "--since", date(30), "--html", "r.html")
        self.assertIn("memory/op=triad", done.stdout)
        self.assertNotIn("gemm/n=1", done.stdout)
        self.assertIn("memory/op=triad", (self.dir / "r.html").read_text())
        self.history("report", "--series", "nothing", code=3)
        self.history("check", code=1)
        for words, count in (([], 1), (["--series", "memory"], 0), (["--series", "gemm/n=1"], 1), (["--since", date(45)], 0)):
            self.history("report", *words, "--json=r.json", "--md", "r.md")
            self.assertEqual(len(json.loads((self.dir / "r.json").read_text())["events"]), count, words)
            self.assertEqual("RED" in (self.dir / "r.md").read_text(), count == 1, words)

    def test_twice_gives_equal_bytes(self):
        self.add(range(50), step=slower)
        first = self.history("check", "--json", code=1)
        second = self.history("check", "--json", code=1)
        third = self.history("check", "--json", code=1)
        self.assertNotEqual(first.stdout, second.stdout, "the event is new only once")
        self.assertEqual(second.stdout, third.stdout)


class Branch(HistoryCase):
    def test_a_branch_is_compared_and_changes_nothing(self):
        self.add(range(60))

        def on_branch(machine, night):
            return {"branch": "topic"}

        self.add(range(60, 63), facts=on_branch, step=lambda machine, case, night: math.log(0.6) if case == CASES[0] else 0)
        before = self.check()
        self.assertEqual(before["night"], date(59))
        report = self.check("--branch", "topic", code=1)
        self.assertEqual([one["series"] for one in report["changes"] if one["verdict"] == "slower"],
                         [f"node1: imported/{CASES[0]} throughput"])
        self.assertEqual(self.check(), before)
        self.check("--branch", "other", code=3)
        self.refused("history", "check", "--store", "h.db", "--branch", "topic", "--junit", "junit.xml", says=("--junit", "--branch"))

    def test_a_branch_without_a_change_is_quiet(self):
        self.add(range(60))
        self.add(range(60, 61), facts=lambda machine, night: {"branch": "topic"})
        report = self.check("--branch", "topic")
        self.assertEqual({one["verdict"] for one in report["changes"]}, {"same"})


if __name__ == "__main__":
    unittest.main()
