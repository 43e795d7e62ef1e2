"""`history record --counts`: the instructions of a whole command, or of each of its cases, are series of their own, judged each night by itself; where
they cannot be counted, that is said and is exit code 3. valgrind is a script here, for both outcomes."""

import csv
import json
import os
import unittest

from history_case import HistoryCase, date

VALGRIND = """#!/bin/sh
for word; do case "$word" in --log-file=*) log=${word#--log-file=};; --*) ;; *) break;; esac; shift; done
for part in 1 2; do
  file=$(echo "$log" | sed "s/%p/$part/")
  if [ -n "$UNKNOWN" ]; then echo "vex amd64->IR: unhandled instruction bytes: 0x62 0xF1" > "$file"
  else printf '==%s== Cachegrind, a cache profiler\\n==%s== \\n==%s== I   refs:      %s\\n' $part $part $part "$COUNT" > "$file"; fi
done
[ -z "$UNKNOWN" ] || exit 132
exec "$@" > /dev/null
"""

# Takes a million instructions for each name in what it prints, which the stand-in for valgrind counts from there.
BENCH = """#!/bin/sh
for name in parse/64 sort+stable gone; do
  if echo "$name" | grep -Eq "$1" || [ -n "$EVERY" ]; then
    if [ $name = gone ]; then echo "gone failed it crashed"; else echo "$name ${#name} ms lower"; ran="$ran$name"; fi
  fi
done
[ -z "$LOG" ] || echo "==1== I   refs:      ${#ran},000,000" > "$LOG"
"""
VALGRIND_OF_BENCH = """#!/bin/sh
for word; do case "$word" in --log-file=*) log=${word#--log-file=};; --*) ;; *) break;; esac; shift; done
LOG=$log.1 exec "$@"
"""


class Counts(HistoryCase):
    def setUp(self):
        super().setUp()
        (self.dir / "bin").mkdir()
        program = self.dir / "bin/valgrind"
        program.write_text(VALGRIND)
        program.chmod(0o755)
        self.env = {"PATH": f"{self.dir / 'bin'}:{os.environ['PATH']}", "CI": ""}

    def record(self, *words, code=0, **env):
        return self.history("record", *words, "--", "echo parse 12 ms lower", store=None, code=code,
                            env={**self.env, "ASSAY_HISTORY": str(self.dir / "h.db"), **env})

    def test_under_valgrind(self):
        for night in range(32):
            # 0.2 % more from night 30 on; the time is the same.
            self.record("--at", date(night), "--counts", "valgrind", COUNT="1,002,000,000" if night >= 30 else "1,000,000,000")
            if night == 30:
                report = self.check(code=1)
                [event] = self.open_events(report)
                self.assertTrue(event["new"])
                self.assertEqual(event["detail"], "2004000000 instead of 2000000000")   # both processes
                self.assertIn("whole_command instructions", event["series"][0])
        exported = self.history("export", "--format", "csv").stdout
        self.assertIn("imported/whole_command,instructions,instructions,lower,2000000000,", exported)
        self.record("--at", date(32), "--counts", "valgrind", "--name", "suite", COUNT="5")
        self.assertIn("imported/suite,instructions", self.history("export", "--format", "csv").stdout)

    def test_a_program_that_valgrind_cannot_run_keeps_its_figures_and_is_said(self):
        done = self.record("--counts", "valgrind", code=3, UNKNOWN="1")
        self.assertIn("AVX-512", done.stderr)
        self.assertIn("no instructions were counted", done.stderr)
        series = [json.loads(line) for line in self.history("export", "--format", "jsonl").stdout.splitlines()]
        self.assertEqual([one["name"] for one in series if one["kind"] == "series"], ["imported/parse value"])

    def test_without_valgrind_and_without_a_counter(self):
        (self.dir / "bin/valgrind").unlink()
        # With a valgrind or a counter of this machine they are there, else it is said why not.
        for how in ("valgrind", "perf"):
            store = str(self.dir / f"{how}.db")
            done = self.record("--counts", how, code=None, ASSAY_HISTORY=store)
            self.assertIn(done.returncode, (0, 3))
            self.assertEqual(done.returncode == 3, "no instructions were counted: " in done.stderr)
            self.assertEqual(done.returncode == 0, "instructions" in self.history("export", "--format", "csv", store=store).stdout)
        self.assertIn("--counts", self.record("--counts", "guess", code=2).stderr)

    def test_each_case_in_a_run_of_its_own(self):
        (self.dir / "bin/valgrind").write_text(VALGRIND_OF_BENCH)
        self.write("bench.sh", BENCH).chmod(0o755)

        def instructions(store, how="valgrind", code=0, **env):
            done = self.history("record", "--counts", how, "--", "./bench.sh {cases}", store=None, code=code,
                                env={**self.env, **env, "ASSAY_HISTORY": str(self.dir / store)})
            rows = csv.DictReader(self.history("export", "--format", "csv", store=store).stdout.splitlines())
            return done, {row["case"]: float(row["value"]) for row in rows if row["metric"] == "instructions"}

        _, found = instructions("a.db")
        self.assertEqual(found, {"imported/parse/64": 8e6, "imported/sort+stable": 11e6})
        with self.subTest("a command that does not choose is not counted"):
            done, found = instructions("b.db", code=3, EVERY="1")
            self.assertEqual(found, {})
            self.assertIn("parse/64: the command ran 2 cases instead of it", done.stderr)
        with self.subTest("without counts all cases run"):
            self.history("record", "--", "./bench.sh {cases}", store=None, env={**self.env, "ASSAY_HISTORY": str(self.dir / "c.db")})
            self.assertEqual(len(self.history("export", "--format", "csv", store="c.db").stdout.splitlines()), 3)
        with self.subTest("by this machine's counter, or why not"):
            done, found = instructions("d.db", how="perf", code=None)
            self.assertEqual((done.returncode, len(found)) if found else (3, "parse/64: " in done.stderr),
                             (0, 2) if found else (done.returncode, True))


if __name__ == "__main__":
    unittest.main()
