"""`history record --counts`: what a whole command does, or each of its cases, gives series of its own, judged each night by
itself; where something cannot be counted, that is said and is exit code 3. valgrind is a script here, for both outcomes."""

import csv
import json
import os
import shutil
import subprocess
import unittest

from history_case import HistoryCase, date

VALGRIND = """#!/bin/sh
for word; do
  case "$word" in --log-file=*) log=${word#--log-file=};; --tool=*) tool=${word#--tool=};; --*) ;; *) break;; esac; shift
done
for part in 9 1 2; do   # Assay's own shell, and two processes that it starts
  file=$(echo "$log" | sed "s/%p/$part/")
  if [ $part = 9 ]; then command='/bin/sh -c echo\\ parse' parent=1234; else command='/bin/sh -c part' parent=9; fi
  printf '==%s== Valgrind\\n==%s== Command: %s\\n==%s== Parent PID: %s\\n' $part $part "$command" $part $parent > "$file"
  if [ -z "$UNKNOWN" ] && [ $tool = dhat ]; then
    printf '==%s== Total:     1,000,%s bytes in 1,00%s blocks\\n' $part 00$part $part >> "$file"
    printf '==%s== At t-gmax: %s000 bytes in 5 blocks\\n==%s== At t-end:  7 bytes in 1 blocks\\n' $part $part $part >> "$file"
  elif [ -n "$UNKNOWN" ]; then echo "vex amd64->IR: unhandled instruction bytes: 0x62 0xF1" > "$file"
  else printf '==%s== I   refs:      %s\\n' $part "$COUNT" >> "$file"; fi
done
[ -z "$UNKNOWN" ] || exit 132
[ -z "$PERSONALITY" ] || { cat /proc/self/personality; echo "$PYTHONHASHSEED"; } > "$PERSONALITY"
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

    def test_the_heap_beside_instructions(self):
        def figures(*words, code=0, **env):
            store = str(self.dir / f"{len(words)}{len(env)}.db")
            done = self.record(*words, code=code, ASSAY_HISTORY=store, **env)
            rows = csv.DictReader(self.history("export", "--format", "csv", store=store).stdout.splitlines())
            return done, {row["metric"]: (float(row["value"]), row["unit"]) for row in rows if "whole" in row["case"]}

        heap = {"allocations": (2003, "allocations"), "allocated_bytes": (2000003, "B"), "peak_bytes": (2000, "B")}
        self.assertEqual(figures("--counts", "heap")[1], heap)
        _, found = figures("--counts", "heap", "--counts", "valgrind", COUNT="5")
        self.assertEqual(found, {**heap, "instructions": (10, "instructions")})
        done, found = figures("--counts", "heap", code=3, UNKNOWN="1")
        self.assertEqual(found, {})
        self.assertIn("--counts heap: no allocations were counted: ", done.stderr)
        done = self.record("--counts", "perf", "--counts", "valgrind", code=2)
        self.assertIn("perf and valgrind both count instructions", done.stderr)

    def test_what_is_counted_has_fixed_addresses_and_one_seed_of_hashes(self):
        self.record("--counts", "heap", PERSONALITY=str(self.dir / "seen"))
        flags, seed = (self.dir / "seen").read_text().split()
        allowed = shutil.which("setarch") and subprocess.run(["setarch", "-R", "true"], capture_output=True).returncode == 0
        self.assertEqual((bool(int(flags, 16) & 0x40000), seed), (bool(allowed), "0"))

    def test_google_benchmarks_memory_figures_are_counts(self):
        def night(i, bytes_used):
            self.write("g.json", json.dumps({"context": {"date": "2026-03-01T00:00:00+00:00"}, "benchmarks": [
                {"name": "BM_a", "run_type": "iteration", "iterations": 10, "real_time": 5 + i % 3, "cpu_time": 5, "time_unit": "ns",
                 "allocs_per_iter": 3.0, "max_bytes_used": bytes_used, "total_allocated_bytes": 9000}]}))
            self.history("record", "--at", date(i), "--", "cat g.json", store=None, code=0,
                         env={**self.env, "ASSAY_HISTORY": str(self.dir / "h.db")})
        for i in range(32):
            night(i, 4096 if i < 31 else 4104)
        [event] = self.open_events(self.check(code=1))
        self.assertIn("max_bytes_used", event["series"][0])
        self.assertEqual(event["detail"], "4104 instead of 4096")

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
