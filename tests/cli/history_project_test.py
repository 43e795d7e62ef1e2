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


if __name__ == "__main__":
    unittest.main()
