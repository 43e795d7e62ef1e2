"""A small project with 44 commits, three of which change its speed: two commands a night find them. ASSAY_SEEDS=20 repeats
it with other commits and other noise, and asks for 57 of 60."""

import json
import os
import random
import re
import unittest

from bench_project import RUN, BenchProject, has_git
from history_case import date

COMMITS, ONE_A_NIGHT = 44, 20
CASES = {"parse/64": 800, "parse/4096": 51000, "sort": 1200, "copy": 90}
STEPS = (("parse/4096", 1.25), ("sort", 1.07), ("copy", 0.9))


@unittest.skipUnless(has_git(), "no git")
class Project(BenchProject):
    def make(self, seed):
        """The commits, oldest first, and the numbers of those that change a speed."""
        choice = random.Random(seed)
        changing = [choice.randrange(begin, begin + 6) for begin in (22, 30, 37)]
        costs, commits = dict(CASES), []
        for n in range(COMMITS):
            if n in changing:
                case, factor = STEPS[changing.index(n)]
                costs[case] = round(costs[case] * factor)
            commits.append(self.commit({**costs, "unused": n}, f"change {n}", night=n))
        return commits, changing

    def nights(self, seed, commits, found):
        """Measures and judges each night; found(night, number of the newest commit, report) sees what a check says."""
        newest = 0
        for night in range(COMMITS):
            newest = night if night < ONE_A_NIGHT else newest + 2
            if newest >= COMMITS:
                return
            self.git("checkout", "-q", commits[newest])
            self.in_repo("history", "record", "--store", "h.db", "--at", date(night), "--", RUN,
                         env={"NOISE_SEED": f"{seed} {night}"})
            if night >= 15:
                done = self.in_repo("history", "check", "--store", "h.db", "--new", "--confirm", "--build", "true", "--run",
                                    RUN, "--budget", "1m", "--json", code=None)
                self.assertIn(done.returncode, (0, 1), done.stderr)
                found(night, newest, json.loads(done.stdout), done.returncode)

    def one_seed(self, seed):
        """How many of the steps were found the same night at their commit, and what else was."""
        commits, changing = self.make(seed)
        right, wrong = set(), []

        def look(night, newest, report, code):
            for event in report["events"]:
                if not event["new"] or event["state"] != "open":
                    continue
                first, last = commits.index(event["from"]["commit"]), commits.index(event["to"]["commit"])
                at = [n for n in changing if first < n <= last and STEPS[changing.index(n)][0] in event["series"][0]]
                if at and (event["kind"] == "faster" or (event["culprit"] or "").startswith(commits[at[0]][:12])):
                    right.add(at[0])
                    self.assertEqual(code, 1 if event["kind"] == "slower" else 0)
                else:
                    wrong.append((night, event["kind"], event["subject"], event["culprit"], report["tonight"]))

        self.nights(seed, commits, look)
        return len(right), wrong

    def test_two_commands_a_night_find_the_commits(self):
        seeds = int(os.environ.get("ASSAY_SEEDS", "1"))
        right, wrong = 0, []
        for seed in range(1, seeds + 1):
            if seed > 1:
                self.doCleanups()
                self.setUp()
            found, others = self.one_seed(seed)
            right += found
            wrong += [(seed, *one) for one in others]
        print(f"{right} of {3 * seeds} steps, {len(wrong)} other events: {wrong}")
        self.assertGreaterEqual(right, 3 if seeds == 1 else 57 * seeds // 20)
        self.assertLessEqual(len(wrong), 0 if seeds == 1 else 3)


@unittest.skipUnless(has_git(), "no git")
class Builds(BenchProject):
    """A few commits of the project, built side by side or one after the other."""

    def pr(self, *words, code, budget="1m"):
        return self.in_repo("history", "check", "--pr", "main", "--build", "true", "--run", f"{RUN} --benchmark_filter={{cases}}",
                            "--budget", budget, *words, code=code)

    def test_a_change_is_judged_against_where_it_left_main(self):
        self.commit(CASES, "begin", night=0)
        for night in range(2):   # a history, for the names of the cases
            self.in_repo("history", "record", "--store", "h.db", "--at", date(night), "--", RUN)
        self.git("checkout", "-q", "-b", "topic")
        base = self.git("rev-parse", "HEAD")
        self.commit({**CASES, "sort": 1800, "new": 5}, "ping @team, see http://x.y/z", night=1)
        self.git("checkout", "-q", "main")
        self.commit({**CASES, "copy": 10}, "main goes on", night=2)
        self.git("checkout", "-q", "topic")
        done = self.pr("--store", "h.db", "--json", "--md", "c.md", code=1)
        report = json.loads(done.stdout)
        self.assertEqual({one["name"]: one["verdict"] for one in report["cases"]},
                         {**{name: "same" for name in CASES}, "sort": "slower"})
        self.assertEqual((report["base"]["commit"], report["not_measured"]), (base, []))
        comment = (self.repo / "c.md").read_text()
        self.assertLessEqual(len(comment.splitlines()), 20)
        self.assertIn("RED", comment)
        self.assertNotIn("@team", comment)
        self.assertNotIn("http://x.y", comment)
        with self.subTest("without a history every case is measured, also a new one is named"):
            report = json.loads(self.pr("--json", code=1).stdout)
            self.assertEqual(report["one_sided"], ["new"])
        with self.subTest("what the budget cuts is named"):
            report = json.loads(self.pr("--store", "h.db", "--json", code=3, budget="1ms").stdout)
            self.assertEqual(sorted(report["not_measured"]), sorted(CASES))
        self.git("checkout", "-q", "main")
        self.assertIn("no commit", self.pr(code=2).stderr)

    def test_past_commits_are_measured_the_newest_first_by_halves(self):
        commits = [self.commit({"sort": 100 + n, "broken": n}, f"change {n}", night=n // 2) for n in range(7)]
        words = ("history", "backfill", "--store", "h.db", "--build", "! grep -q '\"broken\": 3' costs.json", "--run", RUN)
        done = self.in_repo(*words, "--commits", f"{commits[0]}..HEAD", code=3)
        self.assertIn("5 commits measured, 0 there already, 1 failed", done.stdout)
        self.assertIn(commits[3][:12], done.stderr)
        self.assertIn("count as one night", done.stderr)
        runs, _ = self.runs()
        self.assertEqual({one["commit"]: one["started"][:10] for one in runs},
                         {commits[n]: date(n // 2) for n in (1, 2, 4, 5, 6)})
        again = self.in_repo(*words, "--commits", f"{commits[0]}..HEAD", code=3)
        self.assertIn("0 commits measured, 5 there already, 1 failed", again.stdout)
        for bad in ("HEAD", f"{commits[0]}...HEAD", f"HEAD..{commits[0]}", "gone..HEAD"):
            with self.subTest(bad):
                self.in_repo(*words, "--commits", bad, code=2)
        self.git("clone", "-q", "--depth", "1", f"file://{self.repo}", str(self.dir / "shallow"))
        self.repo = self.dir / "shallow"
        self.assertIn("fetch --unshallow", self.in_repo(*words, "--commits", f"{commits[0]}..HEAD", code=2).stderr)

    def test_without_the_commands_nothing_is_read(self):
        self.commit(CASES, "begin")
        self.in_repo("history", "record", "--store", "h.db", "--", RUN)
        self.assertIn("--build", self.in_repo("history", "check", "--confirm", "--store", "h.db", code=2).stderr)


if __name__ == "__main__":
    unittest.main()
