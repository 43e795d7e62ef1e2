"""A small project with a benchmark, in Git: what it measures is written in its sources, with noise, so that tests know
which commit changed what. The benchmark prints Google Benchmark's JSON."""

import os
import shutil
import subprocess

from history_case import HistoryCase, date

BENCH = '''#!/usr/bin/env python3
import json, math, os, pathlib, random, re, sys
costs = json.loads((pathlib.Path(__file__).parent / "costs.json").read_text())
wanted = re.compile(next((word.split("=", 1)[1] for word in sys.argv if word.startswith("--benchmark_filter=")), "."))
noise = random.Random(os.environ.get("NOISE_SEED"))
sigma = float(os.environ.get("NOISE", "0.01"))
times = {name: cost * math.exp(noise.gauss(0, sigma)) for name, cost in costs.items()}
all = [{"name": name, "run_name": name, "run_type": "iteration", "iterations": 100, "time_unit": "ns",
        "real_time": 1.01 * time, "cpu_time": time} for name, time in times.items()]
all = [one for one in all if wanted.search(one["name"])]
text = json.dumps({"context": {"num_cpus": 4, "mhz_per_cpu": 2400, "library_build_type": "release"},
                   "benchmarks": all}, indent=1)
out = next((word.split("=", 1)[1] for word in sys.argv if word.startswith("--benchmark_out=")), None)
pathlib.Path(out).write_text(text) if out else print(text)
'''
RUN = "./bench.py"


class BenchProject(HistoryCase):
    def setUp(self):
        super().setUp()
        self.repo = self.dir / "repo"
        self.repo.mkdir()
        self.git_env = {"HOME": str(self.dir), "GIT_CONFIG_NOSYSTEM": "1", "CI": "",
                        **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}}
        self.git("init", "-q", "-b", "main", ".")
        (self.repo / "bench.py").write_text(BENCH)
        (self.repo / "bench.py").chmod(0o755)
        (self.repo / ".gitignore").write_text("*.db\n*.json-out\n__pycache__\n")

    def git(self, *words, env=None, cwd=None):
        done = subprocess.run(["git", *words], cwd=cwd or self.repo, env={**os.environ, **self.git_env, **(env or {})},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def commit(self, costs, subject, night=0):
        """Commits what each case costs, in ns, at noon of a day; its hash."""
        self.write("repo/costs.json", costs)
        moment = {f"GIT_{who}_DATE": f"{date(night)}T12:00:00Z" for who in ("AUTHOR", "COMMITTER")}
        self.git("add", "-A", env=moment)
        self.git("commit", "-q", "--allow-empty", "-m", subject, env=moment)
        return self.git("rev-parse", "HEAD")

    def in_repo(self, *words, code=0, env=None, timeout=300):
        """Runs assay in the repository."""
        done = subprocess.run([self.binary, *map(str, words)], cwd=self.repo,
                              env={**os.environ, **self.git_env, **(env or {})}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=timeout)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def runs(self, store="h.db"):
        """The runs of a store, and its series."""
        import json
        lines = [json.loads(line) for line in self.in_repo("history", "export", "--format", "jsonl", "--store", store).stdout.splitlines()]
        return [one for one in lines if one["kind"] == "run"], [one for one in lines if one["kind"] == "series"]


def has_git():
    return bool(shutil.which("git"))
