"""What assay writes and reads: devices, FIFOs, links, several writers, closed and full streams, files that cannot be
read."""

import json
import os
import pathlib
import stat
import subprocess
import threading
import unittest

from assay_case import AssayCase

RUNS = pathlib.Path(__file__).resolve().parents[1] / "runs"
GOOD = RUNS / "micro-base-1"
FLOORS = RUNS / "floors"
SOMEBODY = 4321


class Targets(AssayCase):
    """FILE of --out, --json and the like. The tests may run as root, so devices and links are the test's own."""

    def csv(self):
        return self.assay("export", "csv", GOOD, "--out", "-").stdout

    def device(self, name, minor):
        try:
            os.mknod(self.dir / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
            os.close(os.open(self.dir / name, os.O_WRONLY))
        except OSError as error:
            self.skipTest(f"no device nodes here: {error}")
        return name

    def test_devices_stay_devices(self):
        null, full = self.device("null", 3), self.device("full", 7)
        for words in (["export", "csv", GOOD, "--out", null], ["report", GOOD, "--json", null],
                      ["check", GOOD, "--floors", FLOORS / "pass.json", "--junit", null],
                      ["compare", "--base", GOOD, "--head", GOOD, "--html", null]):
            self.assertIn(self.assay(*words).returncode, (0, 3), words)
        self.refused("export", "csv", GOOD, "--out", full, code=4, says=["cannot write full", "No space left"])
        (self.dir / "link").symlink_to("null")
        self.assertEqual(self.assay("report", GOOD, "--md", "link").returncode, 0)
        for name in (null, full):
            self.assertTrue(stat.S_ISCHR(os.stat(self.dir / name).st_mode), name)
        self.assertTrue((self.dir / "link").is_symlink())

    def test_names_are_echoed_without_what_a_terminal_obeys(self):
        name = "a\x1b]0;x\x07\n\u009b\u202eb"
        self.write(name + ".json", "{")
        for words in (["report", name], ["history", "report", "--store", name], ["check", GOOD, "--floors", name + ".json"],
                      ["import", "csv", name + ".json", "--out", "x"], ["run", name + ".json"], ["reference", "add", name, "--name", "x"],
                      ["audit", "--log", name], ["compare", "--base", name, "--head", GOOD], ["--" + name], ["list", "--" + name]):
            done = self.assay(*words)
            self.assertIn(done.returncode, (2, 3, 4), words)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            for mark in ("\x1b", "\x07", "\u009b", "\u202e"):
                self.assertNotIn(mark, done.stdout + done.stderr, words)

    def test_a_full_disk_is_4_and_names_the_file(self):
        script = """mkdir disk && mount -t tmpfs -o size=16k none disk && head -c 64k /dev/zero >disk/filler 2>/dev/null
            mountpoint -q disk || exit 77
            for words in "run launch --set launch.op=fork_join --out disk/run" "export csv $2 --out disk/x.csv" \\
                         "history add $2 --store disk/h.db" "report $2 --json=disk/r.json"; do
              "$1" $words 2>&1 >/dev/null; echo "code $?"; done; ls disk"""
        done = subprocess.run(["unshare", "--mount", "bash", "-c", script, "bash", self.binary, str(GOOD)], cwd=self.dir,
                              capture_output=True, text=True, timeout=120)
        if done.returncode == 77 or done.stderr.startswith("unshare:"):
            self.skipTest("no mounts here: " + done.stderr)
        self.assertEqual([line for line in done.stdout.splitlines() if line.startswith("code")], ["code 4"] * 4, done.stdout)
        for part in ("disk/run", "disk/x.csv", "disk/h.db", "disk/r.json"):
            self.assertIn(part, done.stdout)

    def test_a_fifo_is_written_to(self):
        os.mkfifo(self.dir / "pipe")
        read = []
        reader = threading.Thread(target=lambda: read.append((self.dir / "pipe").read_text()))
        reader.start()
        self.assertEqual(self.assay("export", "csv", GOOD, "--out", "pipe").returncode, 0)
        reader.join()
        self.assertEqual(read, [self.csv()])
        self.assertTrue((self.dir / "pipe").is_fifo())

    def test_what_is_open_already_is_continued(self):
        (self.dir / "out").symlink_to("/proc/self/fd/1")   # as /dev/stdout is
        self.assertEqual(self.assay("export", "csv", GOOD, "--out", "out").stdout, self.csv())
        log = self.write("log", "before\n")
        with open(log, "ab") as append:
            subprocess.run([self.binary, "export", "csv", GOOD, "--out", "out"], cwd=self.dir, stdout=append, check=True)
        self.assertEqual(log.read_text(), "before\n" + self.csv())
        self.assertTrue((self.dir / "out").is_symlink())

    def test_links_planted_by_others(self):
        victim = self.write("victim", "precious")
        (self.dir / "figures.csv.tmp").symlink_to(victim)
        self.assertEqual(self.assay("export", "csv", GOOD, "--out", "figures.csv").returncode, 0)
        self.assertEqual(victim.read_text(), "precious")
        if os.geteuid() != 0:
            self.skipTest("only root can give a link to somebody else")
        planted = self.dir / "planted.csv"
        planted.symlink_to(victim)
        os.lchown(planted, SOMEBODY, SOMEBODY)
        self.assertEqual(self.assay("export", "csv", GOOD, "--out", "planted.csv").returncode, 0)
        self.assertEqual(victim.read_text(), "precious")
        self.assertFalse(planted.is_symlink())
        self.assertEqual(planted.read_text(), self.csv())

    def test_links_of_ones_own(self):
        (self.dir / "real").mkdir()
        (self.dir / "latest.csv").symlink_to("real/figures.csv")
        for _ in range(2):   # made, then replaced
            self.assertEqual(self.assay("export", "csv", GOOD, "--out", "latest.csv").returncode, 0)
        self.assertTrue((self.dir / "latest.csv").is_symlink())
        self.assertEqual((self.dir / "real/figures.csv").read_text(), self.csv())
        self.assertEqual(os.listdir(self.dir / "real"), ["figures.csv"])

    def test_writers_of_one_file_do_not_mix(self):
        texts = []
        for runs in ([GOOD, RUNS / "training-1"], [RUNS / "gpu"]):
            texts.append(self.assay("report", *runs, "--json").stdout)
        for _ in range(4):
            writers = [subprocess.Popen([self.binary, "report", *runs, "--json=one.json"], cwd=self.dir,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                       for runs in ([GOOD, RUNS / "training-1"], [RUNS / "gpu"], [RUNS / "gpu"])]
            for writer in writers:
                self.assertEqual((writer.communicate()[1], writer.returncode), (b"", 0))
            self.assertIn((self.dir / "one.json").read_text(), texts)
        self.assertEqual(os.listdir(self.dir), ["one.json"])

    def test_what_can_be_no_file(self):
        (self.dir / "folder").mkdir()
        for verb in (["export", "csv", GOOD, "--out"], ["report", GOOD, "--html"]):
            for name, says in (("folder", "it is a folder"), ("nowhere/f", "No such file"), ("/proc/self/exe", "open")):
                self.refused(*verb, name, says=[name.split("/")[0], says])
        self.assertEqual(os.listdir(self.dir), ["folder"])

    @unittest.skipUnless(os.geteuid() == 0, "mounting a file system needs root")
    def test_an_import_that_a_full_disk_cut_can_be_repeated(self):
        rows = ["time,machine,case,metric,unit,better,value"]
        for night in range(1, 9):
            rows += [f"2026-01-0{night}T00:00:00Z,m,case/{n},time,s,lower,{n + 1}" for n in range(40)]
        self.write("in.csv", "\n".join(rows) + "\n")
        (self.dir / "small").mkdir()
        script = """mount -t tmpfs -o size=160k none small || exit 77
            "$0" import csv in.csv --out small/imported; echo $?; ls -A small
            mount -o remount,size=8m small; "$0" import csv in.csv --out small/imported >/dev/null; echo $?; ls small/imported"""
        done = subprocess.run(["unshare", "--mount", "bash", "-c", script, self.binary], cwd=self.dir, capture_output=True,
                              text=True)
        if done.returncode == 77 or done.stderr.startswith("unshare:"):
            self.skipTest("no mounts here: " + done.stderr)
        self.assertEqual(done.stdout.splitlines()[-10:], ["4", "0", *(f"{n:06}" for n in range(1, 9))], done.stdout)
        self.assertRegex(done.stderr, r"\Aassay: cannot write .*: No space left on device\n\Z")


class Streams(AssayCase):
    """What becomes of stdout and stderr never costs a result."""

    def ends(self, script, *words):
        """Runs assay as "$@" in a shell; its exit code."""
        return subprocess.run(["bash", "-c", script, "bash", self.binary, *map(str, words)], cwd=self.dir,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    UNWRITABLE = ('"$@" 2>/dev/full', '"$@" 2>&-', '(trap "" PIPE; "$@" 2> >(exec 0<&-; sleep 1))',
                  '"$@" 0<&- 2>&-')

    def test_a_remark_that_cannot_be_written_changes_nothing(self):
        self.run_dir("{broken", name="bad", run={"started": "2026-01-01T00:00:00Z"})
        for script in self.UNWRITABLE:
            for code, words in ((2, ["report", "nowhere"]), (2, ["rport"]), (3, ["report", "bad"]),
                                (0, ["ab", "--a", "true", "--b", "true", "--budget", "1s", "--metric", "time"])):
                if words[0] == "ab" and script != self.UNWRITABLE[0]:
                    continue
                with self.subTest(script=script, words=words):
                    done = self.ends(script, *words)
                    self.assertIn(done.returncode, (code, 3) if words[0] == "ab" else (code,), done.stderr)

    def test_a_run_stores_everything(self):
        plan = self.plan({"family": "launch", "op": ["fork_join", "handoff_spin", "handoff_block"],
                          "protocol": {"max_seconds": "20ms", "min_samples": 3, "warmup_seconds": "1ms"}})
        scripts = ['"$@" 2>/dev/full', '"$@" 2>&-', '"$@" 2>&1 | head -1; exit ${PIPESTATUS[0]}', '"$@" >&-',
                   '"$@" 2>&1 | true; exit ${PIPESTATUS[0]}']
        for number, script in enumerate(scripts):
            with self.subTest(script):
                done = self.ends(script, "run", plan, "--out", f"out-{number}")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual([record["status"] for record in self.records(f"out-{number}")], ["ok"] * 3)
                self.assertTrue(json.loads((self.dir / f"out-{number}/run.json").read_text())["finished"])
        done = self.ends('"$@" >/dev/full', "run", plan, "--out", "full")
        self.assertEqual((done.returncode, len(self.records("full"))), (4, 3))
        self.assertIn("cannot write to standard output: No space left", done.stderr)

    def test_a_document_that_could_not_be_written_is_no_success(self):
        for words in (["report", GOOD], ["report", GOOD, "--json"], ["list"], ["--help"], ["env"],
                      ["export", "csv", GOOD, "--out", "-"]):
            with self.subTest(words):
                done = self.ends('"$@" >/dev/full', *words)
                self.assertEqual(done.returncode, 4, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertEqual(self.ends('"$@" >&-', *words).returncode, 4)
                reader, writer = os.pipe()
                os.close(reader)
                done = subprocess.run([self.binary, *map(str, words)], stdout=writer, stderr=subprocess.PIPE)
                os.close(writer)
                self.assertEqual((done.returncode, done.stderr), (4, b""))
        # A judgement weighs more.
        done = self.ends('"$@" >/dev/full', "check", GOOD, "--floors", FLOORS / "fail.json")
        self.assertEqual(done.returncode, 1, done.stderr)

    def test_what_is_stored_does_not_depend_on_stdout(self):
        for number in range(300):   # more lines than a stream's buffer holds
            self.run_dir(name=f"runs/{number:03}", run={"id": f"{number}", "started": "2026-01-01T00:00:00Z",
                                                        "environment": {"hostnames": ["box"]}})
        done = self.ends('"$@" >/dev/full', "history", "add", "runs", "--store", "h.db")
        self.assertEqual(done.returncode, 4, done.stderr)
        lines = self.assay("history", "export", "--format", "jsonl", "--store", "h.db").stdout.splitlines()
        self.assertEqual(len([line for line in lines if json.loads(line)["kind"] == "run"]), 300)

    def test_no_remark_goes_another_way(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        for folder in ("cli", "harness", "reports", "suites", "workloads"):
            for source in (root / folder).rglob("*.cpp"):
                self.assertNotRegex(source.read_text(), r"print\(\s*stderr|std::cerr", f"{source}: say() never throws")


class Unreadable(AssayCase):
    """What cannot be read is named, and is no run without records."""

    BROKEN = {"a folder": lambda path: path.mkdir(), "a FIFO": os.mkfifo,
              "a device": lambda path: path.symlink_to("/dev/zero"),
              "symbolic links": lambda path: path.symlink_to(path.name),
              "line 1 is longer": lambda path: (path.touch(), os.truncate(path, 1 << 36))}

    def bad_run(self, why, name="bad"):
        for part in ("run.json", "records.jsonl"):
            self.write(f"{name}/{part}", (GOOD / part).read_bytes())
        (self.dir / name / "records.jsonl").unlink()
        self.BROKEN[why](self.dir / name / "records.jsonl")
        return name

    def test_a_run_that_cannot_be_read_is_an_error_everywhere(self):
        for number, why in enumerate(self.BROKEN):
            bad = self.bad_run(why, name=f"bad{number}")
            commands = [["report", bad, GOOD], ["check", bad, GOOD, "--floors", FLOORS / "pass.json"],
                        ["compare", "--base", GOOD, "--head", bad], ["diagnose", bad, GOOD],
                        ["export", "csv", GOOD, bad, "--out", "x.csv"], ["floors", "learn", GOOD, bad, "--out", "f.json"]]
            if number == 0:
                commands.append(["check", bad, GOOD, "--floors", FLOORS / "pass.json", "--pack", "p.tar"])
            for words in commands:
                with self.subTest(why=why, words=words):
                    self.refused(*words, code=4, says=[f"{bad}/records.jsonl", why])
        self.assertEqual([name for name in os.listdir(self.dir) if not name.startswith("bad")], [])

    def test_without_records_it_is_no_run(self):
        self.write("bad/run.json", (GOOD / "run.json").read_bytes())
        self.refused("check", "bad", GOOD, "--floors", FLOORS / "pass.json", says=["bad", "records.jsonl"])

    def test_no_permission(self):
        if os.geteuid() != 0:
            self.skipTest("root makes the files of somebody else")
        self.bad_run("a folder")
        (self.dir / "bad/records.jsonl").rmdir()
        self.write("bad/records.jsonl", "").chmod(0o600)
        for name in ("open", "shut"):
            for part in ("run.json", "records.jsonl"):
                self.write(f"nights/{name}/{part}", (GOOD / part).read_bytes())
        (self.dir / "nights/shut").chmod(0o700)
        self.dir.chmod(0o777)

        def as_somebody():
            os.setgroups([])
            os.setgid(SOMEBODY)
            os.setuid(SOMEBODY)

        def assay(*words):
            return subprocess.run([self.binary, *map(str, words)], cwd=self.dir, capture_output=True, text=True,
                                  preexec_fn=as_somebody)
        try:
            if assay("report", GOOD).returncode != 0:
                self.skipTest("another user cannot read the source tree")
        except (OSError, subprocess.SubprocessError) as error:
            self.skipTest(f"another user cannot start it: {error}")
        done = assay("check", "bad", GOOD, "--floors", FLOORS / "pass.json")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("bad/records.jsonl: Permission denied", done.stderr)
        done = assay("history", "add", "nights", "--store", "h.db")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("nights/shut/run.json: Permission denied", done.stderr)
        self.assertIn("nights/open: added", done.stdout)

    def test_history_names_it_and_adds_the_others(self):
        self.write("runs/good/run.json", (GOOD / "run.json").read_bytes())
        self.write("runs/good/records.jsonl", (GOOD / "records.jsonl").read_bytes())
        self.bad_run("a device", name="runs/bad")
        done = self.assay("history", "add", "runs", "--store", "h.db")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertRegex(done.stdout, r"\Aruns/good: added, \d+ figures\n\Z")
        self.assertIn("runs/bad/records.jsonl", done.stderr)

    def test_series(self):
        name = "r"
        samples = {"unit": "s", "values": [], "series": "series/x.json", "count": 300}
        record = {"schema": 2, "key": "a", "family": "a", "status": "ok", "samples": samples,
                  "metrics": [{"name": "time", "value": 1.0, "unit": "s", "better": "lower"}]}
        self.run_dir(record, name=name)
        os.mkdir(self.dir / "r/series")
        os.mkfifo(self.dir / "r/series/x.json")
        self.run_dir(record, name="gone")
        self.refused("compare", "--base", "gone", "--head", "r", code=4, says=["r/series/x.json", "a FIFO"])
        self.assertIn(self.assay("compare", "--base", "gone", "--head", "gone").returncode, (0, 3))
        (self.dir / "r/series/x.json").unlink()
        self.write("r/series/x.json", b'{"schema": 2, "values": [1, "x"]}')
        self.refused("compare", "--base", "gone", "--head", "r", code=2, says="r/series/x.json: values")
        samples["series"] = "../gone/run.json"
        self.run_dir(record, name="outside")
        self.refused("compare", "--base", "gone", "--head", "outside", code=2, says=["outside: series", "lies outside the run"])

    def test_inputs_named_by_the_user(self):
        os.mkfifo(self.dir / "pipe")
        os.mkdir(self.dir / "folder")
        (self.dir / "zero").symlink_to("/dev/zero")
        for name, why in (("pipe", "a FIFO"), ("folder", "folder"), ("zero", "a device")):
            for words in (["check", GOOD, "--floors", name], ["run", f"./{name}", "--out", "o"],
                          ["report", GOOD, "--prices", name], ["import", "csv", name, "--out", "o"],
                          ["diagnose", GOOD, "--rules", name], ["run", "launch", "--hostfile", name, "--out", "o"]):
                with self.subTest(words):
                    self.refused(*words, says=name)
        self.assertFalse((self.dir / "o").exists())
        # A shell's <(...) is open already.
        done = subprocess.run(["bash", "-c", '"$0" check "$1" --floors <(cat "$2")', self.binary, GOOD, FLOORS / "pass.json"],
                              cwd=self.dir, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, self.assay("check", GOOD, "--floors", FLOORS / "pass.json").returncode, done.stderr)


if __name__ == "__main__":
    unittest.main()
