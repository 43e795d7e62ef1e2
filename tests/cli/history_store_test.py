"""The history's store through the command line: add, merge, alias, compact, export, salvage; kills, several writers at
once, full disks, damaged files, hostile names.
usage: history_store_test.py [KILLS [WRITERS_RUNS]] [TEST...]"""

import csv
import io
import json
import random
import signal
import subprocess
import sys
import time
import unittest

from history_case import HistoryCase

NUMBERS = [int(word) for word in sys.argv[1:3] if word.isdigit()]
KILLS = NUMBERS[0] if NUMBERS else 10
RUNS_PER_WRITER = NUMBERS[1] if len(NUMBERS) > 1 else 12


def record(key, value, metric="time", better="lower", **members):
    return {"schema": 2, "key": key, "family": key.split("/")[0], "params": {}, "status": "ok",
            "protocol": {"hash": "p"}, "samples": {"unit": "s", "values": []},
            "metrics": [{"name": metric, "value": value, "unit": "s", "ci95": [value * 0.99, value * 1.01],
                         "better": better}], **members}


class HistoryStore(HistoryCase):
    def night(self, name, night, *records, host="box", run=None):
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1767236400 + 86400 * night))   # from 2026-01-01, 03:00
        return self.run_dir(*(records or [record("a/x=1", 1 + night), record("b", 2 + night)]), name=name, run={
            "schema": 2, "id": f"id-{name}", "started": started, "finished": started,
            "environment": {"hostnames": [host], "cpu": {"name": "Zen"}}, **(run or {})})

    def exported(self, store="h.db", format="jsonl"):
        return self.history("export", "--format", format, store=store).stdout

    def lines(self, kind, store="h.db"):
        return [line for line in map(json.loads, self.exported(store).splitlines()) if line["kind"] == kind]

    def test_add_says_what_became_of_each_run(self):
        self.night("runs/1", 0)
        self.night("runs/2", 1, record("a/x=1", 3), record("c", 1, comparable=False), record("d", 1, flags=["injected:crash"]))
        added = self.history("add", "runs").stdout
        self.assertEqual(added, "runs/1: added, 2 figures\nruns/2: added, 1 figure, 2 records left out\n")
        before = self.exported()
        self.assertEqual(self.history("add", "runs/2", "runs/1", "runs").stdout,
                         "runs/2: already there, 2 records left out\nruns/1: already there\n")
        self.assertEqual(self.exported(), before)
        self.assertEqual([line["id"] for line in self.lines("run")], ["id-runs/1", "id-runs/2"])

    def test_the_store_may_be_named_by_the_environment(self):
        self.night("r", 0)
        self.history("add", "r", store=None, env={"ASSAY_HISTORY": "there.db"})
        self.assertTrue((self.dir / "there.db").exists())
        done = self.history("add", "r", store=None, env={"ASSAY_HISTORY": ""}, code=2)
        self.assertIn("--store", done.stderr)
        self.assertIn("ASSAY_HISTORY", done.stderr)

    def test_options_of_add(self):
        self.night("r", 0, run={"started": "yesterday"})
        self.assertIn("--at", self.history("add", "r", code=2).stderr)
        self.assertIn("2026-01-31", self.history("add", "r", "--at", "noon", code=2).stderr)
        self.write("env.json", {"schema": 1, "hostnames": ["pod-7"], "cpu": {"name": "Zen 9"}, "load": 3, "gpus": [
            {"name": "H200", "uuid": "GPU-1", "driver": "580"}, {"name": "H200", "uuid": "GPU-2", "driver": "580"}]})
        self.history("add", "r", "--at", "2026-03-01", "--env", "env.json", "--machine-by", "class", "--branch", "topic")
        [run] = self.lines("run")
        self.assertEqual((run["started"], run["machine"], run["branch"]),
                         ("2026-03-01T00:00:00Z", "Zen 9, 2 x H200", "topic"))
        self.assertEqual(run["facts"], {"hostnames": "pod-7", "cpu.name": "Zen 9", "gpu.count": "2", "gpu.name": "H200",
                                        "gpu.driver": "580", "gpu.uuid": "GPU-1; GPU-2"})
        self.assertEqual(run["hardware"], "")   # in a pool it is another each time
        self.night("s", 1)
        self.history("add", "s", "--env", "env.json")
        self.assertTrue(self.lines("run")[0]["hardware"])

    def test_one_bad_run_does_not_keep_the_others_out(self):
        for night in range(3):
            self.night(f"runs/{night}", night)
        self.write("runs/1/run.json", "{")
        done = self.history("add", "runs", code=2)
        self.assertIn("runs/1/run.json", done.stderr)
        self.assertEqual(len(self.lines("run")), 2)
        self.assertIn("no such directory", self.history("add", "runs", "nowhere", code=2).stderr)
        self.write("empty/file", "")
        self.assertIn("holds no run", self.history("add", "empty", code=2).stderr)

    def test_a_verb_that_is_not_there(self):
        self.assertIn('did you mean "merge"', self.history("store", "mrege", code=2, store=None).stderr)
        self.assertIn("add, record", self.history(code=2, store=None).stderr)

    def test_each_host_is_a_machine(self):
        self.run_dir(*(record("a", value, ranks=[{"rank": 0, "host": host}]) for host, value in (("n1", 1), ("n2", 2))), run={
            "schema": 2, "id": "i", "started": "2026-01-01T00:00:00Z", "each_host": True,
            "hosts": [{"name": host, "environment": {"cpu": {"name": "Zen"}}} for host in ("n1", "n2")]})
        self.assertEqual(self.history("add", "r").stdout, "r on n1: added, 1 figure\nr on n2: added, 1 figure\n")
        self.assertEqual([run["machine"] for run in self.lines("run")], ["n1, Zen", "n2, Zen"])

    def test_a_resumed_run_becomes_what_it_is_now(self):
        self.night("r", 0, record("a", 1), run={"finished": None})
        self.history("add", "r")
        self.night("r", 0, record("a", 1), record("b", 1))
        self.assertIn("added, 2 figures", self.history("add", "r").stdout)
        self.assertEqual((len(self.lines("run")), len(self.lines("point"))), (1, 2))

    def test_merge_in_any_order_gives_equal_exports(self):
        for store, nights in (("a", (0, 1, 2)), ("b", (2, 3)), ("c", (5, 4))):
            for night in nights:
                self.night("r", night, run={"id": f"night-{night}"})
                self.history("add", "r", store=store)
        self.night("r", 3, record("a/x=1", 9), record("b", 9), record("c", 9), run={"id": "night-3"})   # it went on
        self.history("add", "r", store="c")
        self.history("store", "merge", "a", "b", "c", store="m1")
        self.history("store", "merge", "c", "a", store="m2")
        self.history("store", "merge", "b", "m1", store="m2")
        self.assertEqual(self.exported("m1"), self.exported("m2"))
        self.assertEqual(self.exported("m1", "csv"), self.exported("m2", "csv"))
        self.assertEqual(len(self.lines("run", "m1")), 6)
        self.assertEqual(len(self.lines("point", "m1")), 13)
        self.assertIn("0 runs taken", self.history("store", "merge", "m2", store="m1").stdout)
        self.assertIn("no such history", self.history("store", "merge", "nothing", store="m1", code=2).stderr)

    def test_alias(self):
        self.night("1", 0, record("old", 1))
        self.night("2", 1, record("new", 1))
        self.history("add", "1", "2")
        self.assertIn('did you mean "old"', self.history("store", "alias", "olde", "new", code=2).stderr)
        self.history("store", "alias", "old", "new")
        self.assertEqual({line["name"] for line in self.lines("series")}, {"new time"})

    def test_compact(self):
        for night in range(30):
            self.night("r", night, run={"id": str(night)})
            self.history("add", "r")
        self.assertIn("give a date", self.history("store", "compact", "--keep", "some", code=2).stderr)
        self.history("store", "compact", "--keep", "10d")
        points = [line for line in self.lines("point") if line["series"] == 1]
        for point, value in zip(points, (6 ** 0.5, 8, 15)):   # the 1st to 4th were nights 0 to 3
            self.assertTrue(point["weekly"])
            self.assertAlmostEqual(point["value"], value)
        self.assertEqual(len(points), 3 + 30 - 18)
        self.history("store", "compact", "--keep", "2026-01-12")
        self.assertEqual([line for line in self.lines("point") if line["series"] == 1], points)

    def test_exported_csv_is_imported_again(self):
        self.night("r", 0, record('a/"x"=1,\n2', 0.1))
        self.history("add", "r")
        self.history("export", "--format", "csv", "--out", "f.csv")
        [row] = csv.DictReader(io.StringIO((self.dir / "f.csv").read_text()))
        self.assertEqual((row["case"], row["machine"], row["better"]), ('a/"x"=1,\n2', "box, Zen", "lower"))
        self.assertAlmostEqual(float(row["high"]), 0.101)
        done = self.assay("import", "csv", "f.csv", "--out", "again")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.history("add", "again", store="g.db")
        self.assertAlmostEqual(self.lines("point", "g.db")[0]["value"], 0.1)

    def test_export_for_otava(self):
        for night in range(3):
            self.night(f"runs/{night}", night)
        self.night("runs/3", 3, record("a/x=1", 4))
        self.history("add", "runs")
        done = self.history("export", "--format", "otava")
        self.assertEqual(done.stdout.splitlines()[0], "time,commit,a/x=1 time,b time")
        self.assertEqual(len(done.stdout.splitlines()), 4)
        self.assertIn("left out 1 run without all of the 2 series", done.stderr)
        self.assertEqual(len(self.history("export", "--format", "otava", "--series", "a*").stdout.splitlines()), 5)
        self.assertIn("no series", self.history("export", "--format", "otava", "--series", "zzz", code=3).stderr)
        # As of `report`: a part of a name, or a pattern of the whole of it, with or without the machine.
        for pattern, columns in (("x=1", 1), ("a/", 1), ("box, Zen: *", 2), ("*: b*", 1), ("b", 2)):
            header = self.history("export", "--format", "otava", "--series", pattern).stdout.splitlines()[0]
            self.assertEqual(len(header.split(",")) - 2, columns, header)
        self.night("r", 0, host="other")
        self.history("add", "r")
        self.assertIn("--machine", self.history("export", "--format", "otava", code=2).stderr)
        self.history("export", "--format", "otava", "--machine", "other*")

    def test_hostile_names_are_inert_and_come_back(self):
        name = "'); DROP TABLE run; --\"\n<script>\u202e\x1b[2J"
        self.night("r", 0, record(name, 1, conditions={name: name}, choices={name: name}), record("x" * 1_000_000, 1),
                   host=name, run={"labels": {name: name, "commit": name}})
        self.history("add", "r", "--branch", name)
        done = self.history("add", "r", "--branch", name)
        [run] = self.lines("run")
        self.assertEqual((run["branch"], run["commit"], run["facts"]["label." + name]), (name, name, name))
        keys = {line["key"]: line for line in self.lines("series")}
        self.assertEqual(set(keys), {name, "x" * 1_000_000})
        self.assertEqual(keys[name]["conditions"], f"{name}={name}")
        self.assertIn({name: name}, [line["choices"] for line in self.lines("point")])
        broken = b"\xff\xfe;'--"
        done = subprocess.run([self.binary, "history", "add", "r", "--store", "g.db", "--branch", broken], cwd=self.dir,
                              capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        [run] = self.lines("run", "g.db")
        self.assertEqual(run["branch"], "\ufffd\ufffd;'--")   # JSON has no other bytes

    def test_newer_stores_and_other_files_are_refused_and_not_touched(self):
        self.night("r", 0)
        self.history("add", "r")
        path = self.dir / "h.db"
        data = bytearray(path.read_bytes())
        data[60:64] = (99).to_bytes(4, "big")   # user_version
        path.write_bytes(data)
        for words in (["add", "r"], ["export", "--format", "csv"], ["store", "merge", "r"], ["store", "compact", "--keep", "9"]):
            self.assertIn("newer assay", self.history(*words, code=2).stderr)
        self.assertEqual(path.read_bytes(), data)
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["h.db", "r"])
        self.write("text", "not a database, but long enough to hold the header of one: " * 4)
        done = self.history("add", "r", store="text", code=4)
        self.assertIn("assay history store salvage text --out NEW", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_damaged_stores(self):
        for night in range(12):
            self.night(f"runs/{night}", night, *(record(f"case/{i}/{'k' * 60}", 1 + i) for i in range(30)))
        self.history("add", "runs")
        path, chance = self.dir / "h.db", random.Random(7)
        whole = path.read_bytes()
        refused = saved = 0
        for trial in range(24):
            data = bytearray(whole)
            if trial % 2:
                data = data[:chance.randrange(len(data))]
            else:
                start = chance.randrange(len(data) - 64)
                data[start:start + 64] = chance.randbytes(64)
            path.write_bytes(data)
            done = self.assay("history", "export", "--format", "csv", "--store", "h.db", "--out", "f.csv")
            self.assertIn(done.returncode, (0, 2, 4), done.stderr)
            if done.returncode:
                refused += 1
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            (self.dir / "new.db").unlink(missing_ok=True)
            done = self.assay("history", "store", "salvage", "h.db", "--out", "new.db")
            self.assertIn(done.returncode, (0, 4), done.stderr)
            self.assertEqual(path.read_bytes(), data)
            if done.returncode == 0 and self.lines("point", "new.db"):
                saved += 1
        self.assertGreater(refused, 5)
        self.assertGreater(saved, 8)

    def test_a_history_that_may_not_be_written_is_read(self):
        for night in range(3):
            self.night(f"runs/{night}", night)
        self.history("add", "runs")
        script = ('mkdir box && cp h.db box && mount --bind box box && mount -o remount,ro,bind box || exit 77; '
                  'for words in "report" "check" "export --format csv" "add runs" "store merge h.db"; do '
                  '"$1" history $words --store box/h.db >>out 2>&1; echo $?; done')
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", self.binary], cwd=self.dir, capture_output=True, text=True)
        if done.returncode == 77 or done.stderr.startswith("unshare:"):
            self.skipTest("no right to mount a file system")
        out = (self.dir / "out").read_text()
        self.assertEqual(done.stdout.split(), ["0", "3", "0", "2", "2"], out)   # 3: too few nights
        self.assertEqual(out.count("assay: box/h.db cannot be written: Read-only file system\n"), 2, out)
        self.assertIn("a/x=1,time,s,lower,", out)

    def test_a_cell_is_no_formula(self):
        header = "time,machine,case,metric,unit,better,value,commit\n"
        self.write("t.csv", header + "2026-01-01T00:00:00Z,=HYPERLINK(1),@SUM(A1),-t,s,lower,5,+c\n")
        self.assertEqual(self.assay("import", "csv", "t.csv", "--out", "r").returncode, 0)
        self.history("add", "r")
        text = self.exported(format="csv")
        [row] = csv.DictReader(io.StringIO(text))
        self.assertEqual((row["machine"], row["metric"], row["commit"]), ("'=HYPERLINK(1)", "'-t", "'+c"))
        self.assertAlmostEqual(float(row["value"]), 5)
        # What it wrote is the same history again.
        self.assertEqual(self.assay("import", "csv", self.write("again.csv", text), "--out", "r2").returncode, 0)
        self.history("add", "r2", store="again.db")
        self.assertEqual([row["machine"] for row in self.lines("run", "again.db")], ["=HYPERLINK(1)"])

    def test_a_run_of_bad_lines_is_ten_lines(self):
        self.night("r", 0, record("a/x=1", 1), *["{\x1b]0;x\x07"] * 100)
        errors = self.history("add", "r").stderr
        self.assertEqual(len(errors.splitlines()), 11, errors)
        self.assertIn("r: and 90 more", errors)
        self.assertNotIn("\x1b", errors)

    def full_disk(self, words, env=None):
        """Runs assay in a file system of 1 MiB; skips the test if it cannot be mounted."""
        disk = self.dir / "disk"
        disk.mkdir(exist_ok=True)
        script = ('mount -t tmpfs -o size=1m none disk || exit 77; cp h.db disk/h.db && "$@"; code=$?; '
                  'cp disk/h.db after.db; exit $code')
        done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", self.binary, *words], cwd=self.dir,
                              capture_output=True, text=True)
        if done.returncode in (1, 77) and "assay" not in done.stderr:
            self.skipTest("no right to mount a file system")
        return done

    def test_a_full_disk_loses_nothing(self):
        self.night("first", 0)
        self.history("add", "first")
        self.night("large", 1, *(record(f"case/{i}/{'k' * 100}", 1) for i in range(8000)))
        before = self.exported()
        done = self.full_disk(["history", "add", "large", "--store", "disk/h.db"])
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("disk is full", done.stderr)
        self.assertEqual(self.exported("after.db"), before)

    def test_kills_while_adding(self):
        """At random moments: every run that was said to be added is there, none is torn, none is double."""
        chance = random.Random(3)
        cases = 200
        for run in range(40):
            self.night(f"runs/{run:02}", run % 28, *(record(f"case/{i}", 1 + i) for i in range(cases)))
        self.history("add", "runs", store="whole.db")
        start = time.monotonic()
        self.history("add", *(f"runs/{run:02}" for run in range(5)), store="five.db")
        seconds = time.monotonic() - start
        expected = self.exported("whole.db")
        said, killed, attempts = set(), 0, 0
        while killed < KILLS:
            attempts += 1
            self.assertLess(attempts, 50 * KILLS, "most processes ended before they were killed")
            some = chance.sample(range(40), 5)
            process = subprocess.Popen([self.binary, "history", "add", *(f"runs/{run:02}" for run in some), "--store", "h.db"],
                                       cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            time.sleep(chance.uniform(0, seconds))
            process.send_signal(signal.SIGKILL)
            said |= {line.split(":")[0] for line in process.communicate()[0].splitlines(keepends=True) if line.endswith("\n")}
            killed += process.returncode == -signal.SIGKILL
            if (self.dir / "h.db").exists() and (self.dir / "h.db").stat().st_size:
                runs = [run["id"].removeprefix("id-") for run in self.lines("run")]
                self.assertEqual(len(runs), len(set(runs)))
                self.assertLessEqual(said, set(runs))
                self.assertEqual(len(self.lines("point")), cases * len(runs))
            if len(said) > 30:   # begin again, so that there is something to lose
                said.clear()
                for path in self.dir.glob("h.db*"):
                    path.unlink()
        print(f"{killed} writers of a history killed", flush=True)
        self.history("add", "runs")
        self.assertEqual(self.exported(), expected)

    def test_writers_at_once(self):
        """Eight processes, each with its own runs and some that all have."""
        for run in range(8 * RUNS_PER_WRITER):
            self.night(f"runs/{run:04}", run % 28)
        for night in range(3):
            self.night(f"shared/{night}", night)
        self.history("add", "runs", "shared", store="whole.db")
        commands = [["history", "add", *(f"runs/{run:04}" for run in range(writer, 8 * RUNS_PER_WRITER, 8)), "shared",
                     "--store", "h.db"] for writer in range(8)]
        # One run per process start, as nightly jobs of many machines do, and several processes at any time.
        processes = [subprocess.Popen(["sh", "-c", 'for run in "$@"; do "$0" history add "$run" --store h.db || exit; done',
                                       self.binary, *command[2:-2]], cwd=self.dir, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True) for command in commands]
        for process in processes:
            self.assertEqual((process.communicate()[1], process.returncode), ("", 0))
        self.assertEqual(self.exported(), self.exported("whole.db"))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *(word for word in sys.argv[1:] if not word.isdigit())])
