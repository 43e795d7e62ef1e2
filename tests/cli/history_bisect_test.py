"""`assay history bisect`: the commands that it prints find the commit, in a repository made here."""

import math
import os
import pathlib
import shutil
import subprocess
import unittest

from history_case import HistoryCase, date

COMMITS = 6
UNITS = {"higher": ("throughput", "1/s", "higher"), "lower": ("seconds", "s", "lower")}


@unittest.skipUnless(shutil.which("git"), "no git")
class Bisect(HistoryCase):
    def setUp(self):
        super().setUp()
        (self.dir / "bin").mkdir()
        (self.dir / "bin/assay").symlink_to(pathlib.Path(self.binary).resolve())
        self.env = {**os.environ, "PATH": f"{self.dir}/bin:{os.environ['PATH']}", "HOME": str(self.dir),
                    "GIT_CONFIG_NOSYSTEM": "1", **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER")
                                                   for what in ("NAME", "EMAIL")}}

    def sh(self, script, cwd, code=0):
        done = subprocess.run(["sh", "-c", script], cwd=cwd, env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def repository(self, name, bench):
        """bench(n) is the script bench.sh of commit n; the commits, oldest first."""
        repo = self.dir / name / "repo"
        repo.mkdir(parents=True)
        self.sh("git init -q .", repo)
        commits = []
        for n in range(COMMITS):
            (repo / "bench.sh").write_text(f"# {n}\n{bench(n)}\n")
            self.sh(f"git add . && git commit -qm {n}", repo)
            commits.append(self.sh("git rev-parse HEAD", repo).strip())
        return repo, commits

    def found(self, name, repo, commits, *words):
        """The number of the commit that the printed commands find."""
        script = self.history("bisect", *words, "--build", "true", store=f"{name}.db").stdout
        out = self.sh(f"set -e\n{script}", repo)
        [line] = [line for line in out.splitlines() if line.endswith("is the first bad commit")]
        return commits.index(line.split()[0])

    def test_a_step_of_either_direction_and_unit(self):
        """Commit 3 changes the speed; the history knows only the first and the last. Another case becomes slower with
        commit 1."""
        for better in ("higher", "lower"):
            for speed in (0.8, 1.25):
                for nights in (1, 9):
                    name = f"{better}-{speed}-{nights}"
                    with self.subTest(name):
                        def bench(n):
                            figure = 100 * (speed if n >= 3 else 1) ** (1 if better == "higher" else -1)
                            return f"echo parse {figure} {UNITS[better][1]} {better}; echo sort {10 + n} s lower"

                        repo, commits = self.repository(name, bench)
                        self.add(range(40 + nights), cases=["parse"], store=f"{name}.db", metric=UNITS[better],
                                 step=lambda machine, case, night: math.log(speed) if night >= 40 else 0,
                                 commit=lambda machine, night: commits[-1 if night >= 40 else 0])
                        report = self.check(store=f"{name}.db", code=1 if nights > 1 and speed < 1 else 0)
                        [one] = report["suspects"] if nights == 1 else report["events"]
                        self.assertEqual(one["direction"], "slower" if speed < 1 else "faster")
                        self.assertEqual((one["from"]["commit"], one["to"]["commit"]), (commits[0], commits[-1]))
                        metric = ["--metric", "parse"] if speed == 0.8 and nights > 1 else []
                        self.assertEqual(self.found(name, repo, commits, one["id"][:6], "--run", "sh bench.sh", *metric), 3)

    def test_a_case_that_broke(self):
        """Its command fails from commit 2 on."""
        repo, commits = self.repository("broke", lambda n: f"exit {1 if n >= 2 else 0}")
        for night in range(20):
            status = "failed" if night == 19 else "ok"
            moment = f"{date(night)}T02:00:00Z"
            record = {"schema": 2, "key": "gemm/n=1", "family": "gemm", "status": status, "reason": "wrong sum",
                      "protocol": {"hash": "p"}, "ranks": [{"rank": 0, "host": "node1"}],
                      "metrics": [{"name": "throughput", "value": 1e12, "unit": "FLOP/s"}]}
            self.run_dir(record, name=f"b/{night:02}", run={
                "schema": 2, "id": f"b{night}", "started": moment, "finished": moment,
                "git": {"commit": commits[-1 if night == 19 else 0]}, "environment": {"hostnames": ["node1"]}})
        self.assay("history", "add", "b", "--store", "broke.db")
        [event] = self.check(store="broke.db", code=1)["events"]
        self.assertEqual(self.found("broke", repo, commits, event["id"], "--run", "sh bench.sh"), 2)

    def test_without_two_commits_there_is_nothing_to_bisect(self):
        self.add(range(49), step=lambda machine, case, night: math.log(0.8) if night >= 40 else 0)
        [event] = self.open_events(self.check(code=1))
        self.refused("history", "bisect", event["id"], "--store", "h.db", code=3, says=event["id"])


if __name__ == "__main__":
    unittest.main()
