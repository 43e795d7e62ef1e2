"""What a history says to people: the comment of a night, the page's dates, what seems renamed, what an event still holds; and
the settings by which its nights are judged, which it keeps."""

import json
import math
import re
import unittest

from bench_project import RUN, BenchProject, has_git
from history_case import CASES, HistoryCase, date, slower
from prometheus_text import parse_prometheus

URL = "https://git.example/a/b/commit/{commit}"


def hashes(machine, night):
    return f"{night:02}" + "3f9c2ab" * 5


class Comment(HistoryCase):
    def comment(self, *words, verb="check", code=1):
        self.history(verb, *words, "--md", "c.md", code=code)
        return (self.dir / "c.md").read_text()

    def test_a_red_night_says_what_since_when_and_what_to_do(self):
        self.add(range(43), step=slower, commit=hashes, facts=lambda machine, night: {"driver": f"<b>@you {int(night >= 41)}"})
        # The detector needs a few nights; what it says is then of the night of the step.
        for night in range(43, 50):
            self.add([night], step=slower, commit=hashes, facts=lambda machine, night: {"driver": "<b>@you 1"})
        text = self.comment("--commit-url", URL, "--build", "make -j", "--run", "./bench")
        lines = text.splitlines()
        self.assertLessEqual(len(lines), 20)
        [event] = self.open_events(json.loads(self.history("check", "--json", code=1).stdout))
        slow = round(-100 * event["shift"]["value"])
        after, before = hashes("", 41), hashes("", 40)
        self.assertEqual(lines[0].replace("\\", ""),
                         f"**RED** gemm on node1 is {slow} % slower since [{after[:12]}](https://git.example/a/b/commit/{after}) "
                         f"(after [{before[:12]}](https://git.example/a/b/commit/{before})), 8 nights ago · event {event['id']}")
        self.assertRegex(lines[1], r"^- 3 figures: \S+ throughput -\d+ % \(-\d+ % .. -\d+ %\), \S+ throughput -\d+ %, "
                                   r"\S+ throughput -\d+ % [▁-█]{30}$")
        self.assertIn("driver", text)
        self.assertIn(f"`assay history bisect {event['id']} --build 'make -j' --run ./bench`", text)
        self.assertIn(f"`assay history ack {event['id']} --reason WHY`", text)
        self.assertIn("quiet 7 series", lines[-1])
        self.assertIn("at most 1 false alarm in 100 nights", lines[-1])
        # Nothing that a run says mentions or links.
        self.assertNotIn("@you", text)
        self.assertNotIn("<b>", text)
        self.assertEqual(len(re.findall(r"\]\(", text)), 2)
        self.assertTrue(self.comment().startswith("**STILL RED** "))
        self.assertNotIn("](", self.comment())
        for bad in ("https://git.example/a/b", "javascript:{commit}", "https://x/{commit} y"):
            with self.subTest(bad):
                done = self.history("check", "--commit-url", bad, code=2)
                self.assertIn("--commit-url", done.stderr)
                self.assertIn("{commit}", done.stderr)

    def test_prometheus_has_a_gauge_for_each_open_event(self):
        def gauges(*words, code=0):
            return parse_prometheus(self.history("export", "--format", "prometheus", *words, code=code).stdout)

        self.add(range(3), commit=hashes)
        done = self.history("export", "--format", "prometheus", code=3)
        self.assertIn("no series has 15 nights", done.stderr)
        self.assertEqual(parse_prometheus(done.stdout)["assay_history_judged_series"], {(): 0})
        self.add(range(3, 50), step=slower, commit=hashes, facts=lambda machine, night: {"suite": 'a "b"\\'})
        [event] = self.open_events(self.check(code=1))
        found = gauges()
        [(labels, value)] = found["assay_history_open_event"].items()
        self.assertEqual(value, 1)
        change = event["changes"][0]
        self.assertEqual(dict(labels), {"event": event["id"], "kind": "slower", "suite": r'a \"b\"\\', "case": change["case"],
                                        "metric": "throughput", "host": "node1", "commit": hashes("", 41)})
        [(labels, ratio)] = found["assay_history_event_speed_ratio"].items()
        self.assertEqual(labels, (("event", event["id"]),))
        self.assertAlmostEqual(ratio, 1 + event["shift"]["value"])
        self.assertEqual(found["assay_history_newest_night_timestamp_seconds"], {(): 86400 * 49 + 1767225600})
        self.assertEqual(found["assay_history_judged_series"], {(): len(CASES)})
        for words in (["--series", "memory"], ["--machine", "node2"]):
            self.assertNotIn("assay_history_open_event", gauges(*words))
        self.history("ack", event["id"], "--reason", "known")
        self.assertNotIn("assay_history_open_event", gauges())
        (self.dir / "no.db").write_text("no store")
        for store in ("none.db", "no.db"):
            done = self.history("export", "--format", "prometheus", "--out", "f.prom", store=store, code=None)
            self.assertIn(done.returncode, (2, 4))
            self.assertEqual((done.stdout, (self.dir / "f.prom").exists()), ("", False))

    def test_a_suspect_keeps_its_id_and_place(self):
        suspects = set()
        for night in range(26):
            self.add([night], cases=CASES[:2], step=lambda machine, case, night: math.log(0.8) if night >= 22 and case == CASES[0] else 0)
            if night < 22:
                continue
            report = json.loads(self.history("check", "--json", code=None).stdout)
            found = [(one["id"], one["from"]["night"], one["to"]["night"]) for one in report["suspects"]]
            self.assertEqual(len(found) + len(self.open_events(report)), 1, night)
            suspects.update(found)
        self.assertEqual({one[1:] for one in suspects}, {(date(21), date(22))})
        self.assertEqual(len(suspects), 1)

    def test_instructions_tell_the_code_from_the_machine(self):
        for name, instructions in (("code", 1.3e9), ("machine", 1e9)):
            rows = ["time,machine,case,metric,unit,better,value"]
            for night in range(40):
                late = night >= 30
                speed = 1 if not late else 1.4
                rows += [f"{date(night)}T02:00:00Z,n,parse,time,s,lower,{speed * (1 + 0.001 * (night % 5))}",
                         f"{date(night)}T02:00:00Z,n,parse,instructions,1,lower,{instructions if late else 1e9:.0f}"]
            file = self.write(f"{name}.csv", "\n".join(rows) + "\n")
            self.assertEqual(self.assay("import", "csv", file, "--out", f"runs-{name}").returncode, 0)
            self.history("add", f"runs-{name}", store=f"{name}.db")
            self.history("check", "--md", f"{name}.md", store=f"{name}.db", code=1)
            text = (self.dir / f"{name}.md").read_text()
            self.assertIn("instructions as before" if name == "machine" else ": the code", text)
            if name == "code":
                self.assertIn("30 %", text.replace("-23 %", "30 %"))

    def test_a_quiet_night_is_green_and_a_young_store_amber(self):
        self.add(range(10))
        self.assertTrue(self.comment(code=3).startswith("**AMBER** "))
        self.add(range(10, 40))
        text = self.comment(code=0)
        self.assertTrue(text.startswith("**GREEN** nothing became slower"), text)
        self.assertIn("missing 0", text)

    def test_the_page_has_dates_commits_and_all_series_of_an_event(self):
        cases = [f"gemm/n={n}" for n in range(30)]
        self.add(range(50), cases=cases, step=lambda machine, case, night: math.log(0.7) if night >= 41 else 0, commit=hashes)
        self.history("check", "--html", "h.html", code=1)
        page = (self.dir / "h.html").read_text()
        self.assertIn(f'"{date(49)}"'.replace('"', "&quot;"), page)   # a tick of the axis
        self.assertIn(f"{date(45)}, commit {hashes('', 45)[:12]}", page)
        fold = page[page.index("<details><summary>30 entries</summary>"):]
        fold = fold[:fold.index("</details>")]
        for case in cases:
            self.assertIn(f"{case} throughput: -", fold)

    def test_an_open_event_holds_what_is_still_slower(self):
        def step(machine, case, night):
            if case == CASES[0] and night >= 62:
                return 0
            return slower(machine, case, night)

        self.add(range(50), step=step)
        [event] = self.open_events(self.check(code=1))
        self.assertEqual((len(event["series"]), event["back"]), (3, 0))
        self.add(range(50, 85), step=step)
        [later] = self.open_events(self.check(code=1))
        self.assertEqual(later["id"], event["id"])
        self.assertEqual(sorted(later["series"]), [f"node1: imported/{case} throughput" for case in CASES[1:3]])
        self.assertEqual(later["back"], 1)
        self.assertNotEqual(later["subject"], event["subject"], "it names what it holds")

    def test_a_renamed_case_is_asked_about(self):
        self.add(range(30), cases=["c3", "other"])
        self.add(range(30, 33), cases=["parse_v2", "other"])
        report = self.check(code=3)
        self.assertEqual(report["renamed"], [{"from": "imported/c3", "to": "imported/parse_v2",
                                              "command": "assay history store alias imported/c3 imported/parse_v2"}])
        self.assertIn("renamed?", self.comment(code=3))
        done = self.assay(*report["renamed"][0]["command"].split()[1:], "--store", "h.db")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = self.check()
        self.assertEqual((report["renamed"], report["missing"]), ([], 0))
        self.add(range(33, 35), cases=["parse_v2", "other"])
        self.add(range(35, 36), cases=["unlike", "other"], step=lambda machine, case, night: math.log(3) if case == "unlike" else 0)
        self.assertEqual(self.check(code=3)["renamed"], [], "another speed is another case")


class Settings(HistoryCase):
    def states(self):
        self.add(range(44), step=lambda machine, case, night: math.log(0.8) if night // 9 % 2 else 0,
                 facts=lambda machine, night: {"power": "saving" if night // 9 % 2 else "full", "rack": "7"})

    def test_what_splits_the_series_is_kept(self):
        self.states()
        self.history("check", "--split-by", "powr", code=2)   # what is no fact is not kept
        self.assertTrue(self.history("report", "--split-by", "power").stdout)   # looks, and keeps nothing
        self.assertTrue(json.loads(self.history("report", "--json").stdout)["events"])
        self.assertEqual(self.check("--split-by", "power")["events"], [])
        for words in ([], ["--split-by", "power"], ["--new"]):
            self.assertEqual(self.check(*words)["events"], [], words)
        self.assertIn("(power=saving)", self.history("report").stdout + self.history("report", "--series", "n=0").stdout)
        for given in ("rack", "none"):
            done = self.history("check", "--split-by", given, code=2)
            self.assertIn("judged with --split-by power since its first check", done.stderr)
            self.assertIn("--again", done.stderr)
        # A merged copy knows it too.
        self.assertEqual(self.assay("history", "store", "merge", "h.db", "--store", "copy.db").returncode, 0)
        self.assertEqual(self.check(store="copy.db")["events"], [])
        self.history("check", "--again", "--split-by", "none")
        self.assertTrue(json.loads(self.assay("history", "check", "--store", "h.db", "--json").stdout)["events"])


@unittest.skipUnless(has_git(), "no git")
class Commits(BenchProject):
    def measured(self, commits, count):
        """All on one day, and not in their order."""
        order = list(range(count))
        order[3], order[9] = order[9], order[3]
        for n in order:
            self.git("checkout", "-q", commits[n])
            self.in_repo("history", "record", "--store", "h.db", "--at", f"{date(0)}T{n // 4:02}:{n % 4}0:00Z", "--branch", "main",
                         "--", RUN, env={"NOISE_SEED": str(n), "NOISE": "0.004"})
        self.git("checkout", "-q", "main")

    def test_commits_of_a_day_are_judged_in_their_order(self):
        commits = [self.commit({"sort": 1000 if n < 20 else 1300, "copy": 500, "unused": n}, f"change {n}") for n in range(30)]
        self.measured(commits, 30)
        done = self.in_repo("history", "check", "--store", "h.db", code=3)
        self.assertIn("1 night with runs of several commits (up to 30)", done.stdout)
        words = ("history", "check", "--store", "h.db", "--json", "--md", "c.md", "--html", "h.html")
        report = json.loads(self.in_repo(*words, "--order", "commit", code=1).stdout)
        [event] = self.open_events(report)
        self.assertEqual((event["from"]["commit"], event["to"]["commit"]), (commits[19], commits[20]))
        self.assertEqual((event["from"]["night"], event["to"]["night"], report["night"]), (date(0),) * 3)
        self.assertIn("sort", event["subject"])
        self.assertIn(commits[20][:12], (self.repo / "c.md").read_text())
        for name in ("c.md", "h.html"):
            self.assertNotIn("1970-", (self.repo / name).read_text())
        # Kept: the next check asks for it no more, and the event is the same when another commit comes.
        again = json.loads(self.in_repo(*words, code=1).stdout)
        self.assertEqual([(one["id"], one["new"]) for one in self.open_events(again)], [(event["id"], False)])
        more = self.commit({"sort": 1300, "copy": 500, "unused": 99}, "one more", night=1)
        self.in_repo("history", "record", "--store", "h.db", "--at", date(1), "--", RUN, env={"NOISE": "0.004"})
        [later] = self.open_events(json.loads(self.in_repo(*words, "--new").stdout))
        self.assertEqual((later["id"], later["to"]["commit"]), (event["id"], commits[20]))
        self.assertIn(more[:12], self.in_repo("history", "check", "--store", "h.db", code=1).stdout)
        with self.subTest("mutes are for days"):
            self.in_repo("history", "mute", "*sort*", "--until", date(1), "--reason", "r", "--store", "h.db")
            self.assertEqual(self.in_repo(*words).returncode, 0)
        with self.subTest("elsewhere, and of a shallow clone"):
            self.assertIn("--order commit", self.history("check", store="repo/h.db", code=2).stderr)
            self.git("clone", "-q", "--depth", "1", f"file://{self.repo}", str(self.dir / "shallow"))
            (self.dir / "shallow/h.db").write_bytes((self.repo / "h.db").read_bytes())
            self.repo = self.dir / "shallow"
            self.assertIn("--unshallow", self.in_repo("history", "check", "--store", "h.db", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
