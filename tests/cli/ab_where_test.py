"""`ab --where`, `history confirm` and a night's confirmations name the functions whose own time differs most, or say why not.
perf is a script here, which profiles by what the command is."""

import json
import os
import unittest

from bench_project import RUN, BenchProject, has_git
from history_case import date

PERF = """#!/bin/sh
verb=$1
case "$verb" in
record)
  [ -z "$REFUSED" ] || { echo "Error: No permission to enable cpu-clock:u event." >&2; exit 255; }
  while [ "$1" != -o ]; do shift; done
  file=$2
  while [ "$1" != -- ]; do shift; done
  shift
  "$@" > "$file.out" || exit
  if grep -Eq 'slow|"cpu_time": 1[34][0-9][0-9][.]' "$file.out"; then echo slow > "$file"; else echo fast > "$file"; fi;;
report)
  echo "# Overhead  Symbol"
  if grep -q slow "$3"; then printf '    60.50%%  [.] main\\n    19.00%%  [.] std::string::append(char const*)\\n     0.20%%  [.] tiny\\n     9.00%%  [.] 0x0000a1\\n'
  else printf '    77.50%%  [.] main\\n     2.00%%  [.] std::string::append(char const*)\\n     0.50%%  [.] tiny\\n'; fi;;
esac
"""
FOUND = "main 77.5 % -> 60.5 %, std::string::append(char const*) 2 % -> 19 %"


@unittest.skipUnless(has_git(), "no git")
class Where(BenchProject):
    def setUp(self):
        super().setUp()
        (self.dir / "bin").mkdir()
        program = self.dir / "bin/perf"
        program.write_text(PERF)
        program.chmod(0o755)
        self.env = {"PATH": f"{self.dir / 'bin'}:{os.environ['PATH']}"}

    def test_ab(self):
        words = ("ab", "--a", "echo fast 100 s lower", "--b", "echo slow; echo fast 150 s lower", "--metric", "fast", "--where")
        done = self.assay(*words, env=self.env)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(f"own time of functions, A -> B: {FOUND}\n", done.stderr)
        done = self.assay(*words, env={**self.env, "REFUSED": "1"})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("not known: Error: No permission to enable cpu-clock:u event.", done.stderr)

    def test_confirm_and_a_night(self):
        commits = [self.commit({"sort": 1000 if n < 25 else 1400, "copy": 500, "n": n}, f"change {n}", night=n) for n in range(27)]
        for night, commit in enumerate(commits[:26]):
            self.git("checkout", "-q", commit)
            self.in_repo("history", "record", "--store", "h.db", "--at", date(night), "--", RUN, env={"NOISE_SEED": str(night)})
        (self.repo / "copy.db").write_bytes((self.repo / "h.db").read_bytes())
        words = ("history", "check", "--new", "--confirm", "--build", "true", "--run", RUN, "--budget", "1m", "--json", "--md", "c.md")
        report = json.loads(self.in_repo(*words, "--store", "h.db", code=1, env=self.env).stdout)
        lines = [line for line in report["tonight"] if "own time" in line]
        self.assertEqual(len(lines), sum("confirmed slower" in line for line in report["tonight"]), report["tonight"])
        self.assertTrue(lines and all(f"own time of functions: {FOUND}." in line for line in lines), lines)
        self.assertIn("std::string::append", (self.repo / "c.md").read_text())
        done = self.in_repo("history", "confirm", "--store", "copy.db", "--good", "echo fast; echo sort:cpu_time 1 s lower; echo sort:real_time 1 s lower",
                            "--bad", "echo slow; echo sort:cpu_time 2 s lower; echo sort:real_time 2 s lower", code=None, env=self.env)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(f"own time of functions: {FOUND}\n", done.stdout)


if __name__ == "__main__":
    unittest.main()
