"""`assay history record`: a command's figures in the store, with where they come from."""

import json
import math
import shutil
import socket
import unittest

from bench_project import RUN, BenchProject, has_git
from history_case import HistoryCase

COSTS = {"parse/64": 800, "sort": 1200}
PYTEST = {"machine_info": {"node": "elsewhere", "cpu": {"count": 2}}, "commit_info": {"id": "f00d", "branch": "topic"},
          "benchmarks": [{"fullname": "test_a.py::test_a", "stats": {"data": [1e-3, 1.1e-3, 1.2e-3]}}]}
ASV = {"commit_hash": "f00d", "env_name": "e", "date": 1700000000000, "params": {"machine": "elsewhere"}, "python": "3.11",
       "result_columns": ["result"], "results": {"suite.time_a": [[0.5]]}}
HYPERFINE = {"results": [{"command": "sleep 0", "times": [0.1, 0.2], "exit_codes": [0, 0]}]}


@unittest.skipUnless(has_git(), "no git")
class Record(BenchProject):
    def setUp(self):
        super().setUp()
        self.head = self.commit(COSTS, "first")

    def record(self, *command, words=(), code=0, env=None):
        return self.in_repo("history", "record", "--store", "h.db", *words, "--", *command, code=code, env=env)

    def refused_record(self, *command, words=(), says=()):
        done = self.record(*command, words=words, code=2)
        errors = [line for line in done.stderr.splitlines() if line.startswith("assay: ")]
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word, errors[-1])
        self.assertEqual(self.runs()[0], [], "nothing was added")
        return errors[-1]

    def cases(self):
        return {(one["key"], one["metric"]) for one in self.runs()[1]}

    def test_a_benchmark_is_added_with_its_sources_and_its_machine(self):
        done = self.record("python3", "bench.py", words=["--machine-by", "host"])
        self.assertIn(f"added 4 figures of 2 cases, commit {self.head[:12]}", done.stdout)
        [run], _ = self.runs()
        self.assertEqual((run["commit"], run["branch"], run["machine"]), (self.head, "", socket.gethostname()))
        self.assertEqual(run["facts"]["num_cpus"], "4")
        self.assertEqual(run["facts"]["git.dirty"], "false")
        self.assertIn("cpu.name", run["facts"])
        self.assertTrue(any(name.startswith("packages.") for name in run["facts"]) or not shutil.which("pip"), run["facts"])
        if shutil.which("c++"):
            self.assertIn("compiler", run["facts"])
        self.assertEqual(self.cases(), {(f"imported/{case}", metric) for case in COSTS for metric in ("cpu_time", "real_time")})

    def test_equal_figures_of_two_runs_are_two_runs_and_those_of_a_dated_file_one(self):
        for _ in range(2):
            self.record("echo 'parse 12 ms lower'")
        self.assertEqual(len(self.runs()[0]), 2)
        self.write("repo/old.json", {"context": {"date": "2026-01-31T02:00:00+00:00"}, "benchmarks": [
            {"name": "copy", "run_type": "iteration", "real_time": 5, "cpu_time": 5, "time_unit": "ns"}]})
        added = [self.record("cat old.json").stdout for _ in range(2)]
        self.assertEqual(len(self.runs()[0]), 3)
        self.assertIn("already there", added[1])
        for night in ("2026-02-01", "2026-02-02"):   # what --at says counts more than the date in the file
            added = [self.record("cat old.json", words=["--at", night]).stdout for _ in range(2)]
            self.assertIn("already there", added[1])
        self.assertEqual(len(self.runs()[0]), 5)

    def test_branch_dirty_files_and_labels(self):
        self.git("checkout", "-q", "-b", "topic")
        self.write("repo/costs.json", {**COSTS, "sort": 1300})
        done = self.record(RUN, words=["--label", "image=sha256:12"])
        self.assertIn("--branch topic", done.stderr)
        [run], _ = self.runs()
        self.assertEqual((run["branch"], run["facts"]["git.dirty"], run["facts"]["image"]), ("topic", "true", "sha256:12"))
        self.record(RUN, words=["--branch", "main", "--at", "2026-01-01"])
        self.assertEqual({one["branch"] for one in self.runs()[0]}, {"topic", ""})

    def test_in_ci_the_job_names_the_branch_and_machines_are_classes(self):
        self.git("checkout", "-q", "--detach")
        self.record(RUN, env={"CI": "true", "GITHUB_HEAD_REF": "fix-7"})
        [run], _ = self.runs()
        self.assertEqual(run["branch"], "fix-7")
        self.assertNotIn(socket.gethostname(), run["machine"])
        self.record(RUN, words=["--at", "2026-01-02"], env={"CI": "true", "GITHUB_EVENT_NAME": "schedule",
                                                            "GITHUB_REF_TYPE": "branch", "GITHUB_REF_NAME": "develop"})
        self.assertEqual({one["branch"] for one in self.runs()[0]}, {"fix-7", ""})

    def test_every_format_is_recognised_on_stdout_or_in_a_file_that_was_written(self):
        for name, document, key in (("pytest", PYTEST, "imported/test_a.py::test_a"), ("asv", ASV, "imported/suite.time_a"),
                                    ("hyperfine", HYPERFINE, "imported/sleep 0")):
            self.write(f"repo/{name}.in", json.dumps(document))
            for how, command in (("stdout", f"echo 2 tests; cat {name}.in; echo done"),
                                 ("file", f"cp {name}.in {name}.json; echo done"),
                                 ("named", f"sh -c 'cp {name}.in odd'")):
                with self.subTest(name=name, how=how):
                    for db in self.repo.glob("h.db*"):
                        db.unlink()
                    self.record(command, words=["--file", "odd"] if how == "named" else [])
                    self.assertEqual({one["key"] for one in self.runs()[1]}, {key})
        with self.subTest("a folder of the tool"):
            self.record("mkdir -p .benchmarks/x && cp pytest.in .benchmarks/x/0001.json")
            self.assertIn("imported/test_a.py::test_a", {one["key"] for one in self.runs()[1]})
        for tool, text, key in (
                ("nvbandwidth", "nvbandwidth Version: v0.8\nRunning h2d.\nCPU(row) -> GPU(column) bandwidth (GB/s)\n  0\n 0 5\n",
                 "imported/h2d/row=0/column=0"),
                ("nccl-tests", "# Collective test starting: all_reduce_perf\n# size count type redop root time algbw busbw #wrong\n"
                               " 8 2 float sum -1 5.0 1.0 1.5 0\n", "imported/all_reduce/float/sum/bytes=8/out_of_place")):
            with self.subTest(tool):
                self.write("repo/printed", text)
                self.record("cat printed")
                self.assertIn(key, {one["key"] for one in self.runs()[1]})
        with self.subTest("lines"):
            self.record("echo parse 3 ms lower; echo sort failed wrong order")
            self.assertIn("imported/parse", {one["key"] for one in self.runs()[1]})

    def test_a_file_that_was_there_before_does_not_count(self):
        self.write("repo/old.json", HYPERFINE)
        self.refused_record("ls old.json", says=("no figure", "old.json", "--file", "lines"))
        self.refused_record("true", words=["--file", "old.json"], says="old.json was not written")

    def test_wrong_output_is_refused_with_what_to_do(self):
        self.refused_record("echo Hello", says=("Hello", "--metric", "Google Benchmark"))
        self.refused_record("printf 'parse 3 ms lower\\nsort 4 ms lowr\\n'", says=("line 2", "lowr"))
        self.refused_record("echo speed: 4.1 GB/s", words=["--metric", "sped"], says=("sped", "speed"))
        self.record("echo noise; echo speed: 4.1 GB/s", words=["--metric", "speed"])
        self.assertEqual(self.cases(), {("imported/speed", "value")})

    def test_a_command_that_fails_keeps_what_it_measured(self):
        self.record(RUN, words=["--at", "2026-01-01"])
        with self.subTest("in the middle of its JSON"):
            done = self.record(f"{RUN} | head -n 20; exit 3", words=["--at", "2026-01-02"], code=1)
            self.assertIn("ended with code 3", done.stderr)
            self.assertIn("ends early", done.stderr)
            run = self.runs()[0][-1]
            self.assertEqual([case for case, why in self.broken(run)], ["imported/sort"])
            self.assertIn("ended with code 3", self.broken(run)[0][1])
        with self.subTest("before it printed anything"):
            self.record("exit 4", words=["--at", "2026-01-03"], code=1)
            self.assertEqual([case for case, why in self.broken(self.runs()[0][-1])], ["imported/parse/64", "imported/sort"])
        with self.subTest("another suite has no part in it"):
            done = self.record("exit 4", words=["--at", "2026-01-04", "--name", "other"], code=1)
            self.assertIn("nothing was added", done.stderr)

    @staticmethod
    def broken(run):
        return sorted(tuple(one.split(": ", 1)) for one in run["broken"])

    def test_with_check_it_judges(self):
        done = self.record(RUN, words=["--check"], code=3)
        self.assertIn("no series has 15 nights", done.stderr + done.stdout)

    def test_a_store_from_the_future_is_refused_before_anything_runs(self):
        import sqlite3
        self.record(RUN)
        database = sqlite3.connect(self.repo / "h.db")
        database.execute("PRAGMA user_version = 99")
        database.commit()
        database.close()
        done = self.record("touch ran", code=2)
        self.assertIn("newer assay", done.stderr)
        self.assertFalse((self.repo / "ran").exists())

    def test_without_git_it_says_so(self):
        done = self.in_repo("history", "record", "--store", "h.db", "--", "echo parse 1 s lower",
                            env={"GIT_CEILING_DIRECTORIES": str(self.dir), "GIT_DIR": str(self.dir / "none")})
        self.assertIn("no commit is known", done.stderr)


class Screen(HistoryCase):
    def test_what_check_prints_fits_a_screen(self):
        """30 machines, each of which becomes slower on a night of its own."""
        machines = [f"node{n:02}" for n in range(30)]
        self.add(range(30), machines=machines,
                 step=lambda machine, case, night: math.log(0.7) if night >= 14 + int(machine[4:]) // 2 else 0)
        done = self.history("check", "--html", "h.html", code=1)
        self.assertLessEqual(len(done.stdout.splitlines()), 40, done.stdout)
        self.assertIn("more", done.stdout)
        self.assertIn("slower:", done.stdout)
        self.assertLess(len(done.stdout), 10000)
        events = json.loads(self.history("check", "--json", code=1).stdout)["events"]
        self.assertGreater(len(events), 10)
        page = (self.dir / "h.html").read_text()
        for event in events:
            self.assertIn(event["id"], page)


if __name__ == "__main__":
    unittest.main()
