"""What people decide about events of `assay history`, confirming suspects, and the templates for CI systems."""

import json
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

from history_case import HistoryCase, date, slower

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
import wheels  # noqa: E402

yaml = wheels.module("yaml")

# Those of a fleet, whose machines' stores are merged; ci_templates_test.py has the others.
TEMPLATES = [pathlib.Path(__file__).resolve().parents[2] / "configs/ci" / name for name in ("github-actions.yml", "gitlab-ci.yml")]


class Decisions(HistoryCase):
    def setUp(self):
        super().setUp()
        self.add(range(50), step=slower)
        [event] = self.open_events(self.check(code=1))
        self.id = event["id"]

    def state(self, code):
        report = self.check(code=code)
        [event] = [one for one in report["events"] if one["id"] == self.id]
        return event["state"], event["decision"]

    def test_acknowledged_by_somebody_for_a_reason(self):
        self.refused("history", "ack", "zzzzzzzz", "--reason", "x", "--store", "h.db", says=("zzzzzzzz", self.id))
        done = self.assay("history", "ack", self.id[:5], "--reason", "rolled back tomorrow", "--store", "h.db",
                          env={"USER": "ann"})
        self.assertEqual(done.returncode, 0, done.stderr)
        state, decision = self.state(0)
        self.assertEqual(state, "acknowledged")
        self.assertRegex(decision, r"^acknowledged by ann at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ: rolled back tomorrow$")
        self.refused("history", "ack", self.id, "--reason", " ", "--store", "h.db", says="--reason")

    def test_muted_until_a_night(self):
        self.history("mute", "gemm", "--until", date(52), "--reason", "known")
        self.assertEqual(self.state(0)[0], "muted")
        self.history("unmute", "gemm")
        self.assertEqual(self.state(1)[0], "open")
        self.history("mute", "node1: *gemm*", "--until", date(52), "--reason", "known")
        self.add(range(50, 53), step=slower)
        self.assertEqual(self.state(0)[0], "muted")
        self.add([53], step=slower)
        self.assertEqual(self.state(1)[0], "open", "a mute expires")
        self.refused("history", "mute", "gemm", "--until", date(3), "--reason", "x", "--store", "h.db", says=date(53))
        self.refused("history", "mute", "gemm", "--until", "soon", "--reason", "x", "--store", "h.db", says="soon")
        self.refused("history", "mute", "gemm", "--reason", "x", "--store", "h.db", says="--until")
        self.refused("history", "mute", "gmem", "--until", date(60), "--reason", "x", "--store", "h.db", says="gmem")
        self.refused("history", "unmute", "gemm*", "--store", "h.db", says="gemm*")

    def test_muting_a_part_does_not_silence_the_rest(self):
        self.history("mute", "gemm/n=1", "--until", date(60), "--reason", "known")
        self.assertEqual(self.state(1)[0], "open")

    def test_expected(self):
        self.history("expect", "memory", "--reason", "smaller caches")
        self.assertEqual(self.state(1)[0], "open")
        self.history("expect", "gemm", "--reason", "smaller tiles")
        self.assertEqual(self.state(0)[0], "expected")
        self.history("expect", "memory", "--until", date(55), "--reason", "until then")

        def later(machine, case, night):
            return slower(machine, case, night) + (math.log(0.7) if night >= 70 and case.startswith("memory") else 0)

        self.add(range(50, 85), step=later)
        report = self.check(code=1)
        self.assertEqual([event["to"]["night"] for event in self.open_events(report)], [date(70)],
                         "what comes after the last night expected alarms")


class Confirm(HistoryCase):
    """The nights are made up; what is confirmed are commands that print a figure."""

    def setUp(self):
        super().setUp()
        self.add(range(42), step=slower)
        [self.suspect, *_] = [one["id"] for one in self.check()["suspects"]]

    def printing(self, value):
        return f'echo "{{\\"value\\": $(awk -v s=$$ \'BEGIN {{ srand(s); print {value} * (1 + 0.01 * rand()) }}\'), \\"better\\": \\"higher\\"}}"'

    def confirm(self, good, bad, *words, code):
        return self.history("confirm", *words, "--good", self.printing(good), "--bad", self.printing(bad), "--metric", "value",
                            code=code)

    def test_a_slower_build_opens_the_event_tonight(self):
        done = self.confirm(100, 80, code=1)
        self.assertRegex(done.stdout, r": slower \(-(19|20)\.\d %\)")
        report = self.check(code=1)
        [event] = self.open_events(report)
        self.assertTrue(event["confirmed"])
        # One series was measured; the others of that night are suspects as before, until the nights confirm them.
        self.assertEqual(len(event["series"]), 1)
        self.assertEqual(len(report["suspects"]), 2)
        # It stays one event when the nights confirm it.
        self.add(range(42, 50), step=slower)
        [later] = self.open_events(self.check(code=1))
        self.assertEqual((later["id"], len(later["series"])), (event["id"], 3))

    def test_equal_builds_dismiss_the_suspect(self):
        self.confirm(100, 100, self.suspect, code=0)
        report = self.check()
        self.assertEqual({one["dismissed"] for one in report["suspects"] if one["id"] == self.suspect}, {True})
        self.assertIn(("dismissed", self.suspect), [(event["state"], event["id"]) for event in report["events"]])

    def test_what_a_run_says_it_measured_is_shown_and_not_run(self):
        said = "touch ran; echo \x1b[31m'x'"
        self.add(range(42), step=slower, store="said.db", facts=lambda machine, night: {"label.command": said})
        words = ("history", "confirm", "--store", "said.db")
        shown = shlex.quote(said).replace("'\"'\"'", "'\\''").replace("\x1b", "\\x1b")
        self.refused(*words, says=(f"--good {shown}", f"--bad {shown}"))
        self.assertNotIn("--good 'touch", self.refused(*words, "--good", "true", says=f"--bad {shown}"))
        self.assertNotIn("--bad 'touch", self.refused(*words, "--bad", "true", says=f"--good {shown}"))
        self.assertFalse((self.dir / "ran").exists())

    def test_an_id_that_several_suspects_begin_with(self):
        cases = [f"sort/n={n}" for n in range(20)]   # more suspects than first digits
        self.add(range(42), cases=cases, store="many.db", step=lambda machine, case, night: math.log(0.8) if night >= 41 else 0)
        ids = sorted(one["id"] for one in self.check(store="many.db")["suspects"])
        [first, second] = next(pair for pair in zip(ids, ids[1:]) if pair[0][0] == pair[1][0])
        self.refused("history", "confirm", first[0], "--store", "many.db", "--good", "true", "--bad", "true",
                     says=("several", first, second))

    def test_flags_out_of_range_and_output_without_the_figure(self):
        words = ("history", "confirm", "--store", "h.db", "--good", "touch ran", "--bad", "touch ran")
        for flag, value in (("--false-alarms", "0"), ("--false-alarms", "600%"), ("--tolerance", "60%"), ("--tolerance", "0"),
                            ("--budget", "0")):
            with self.subTest(flag=flag, value=value):
                self.refused(*words, flag, value, says=("history confirm", flag.strip("-").replace("-", " ").split()[0]))
                self.assertFalse((self.dir / "ran").exists())
        self.refused(*words, "--metric", "rate", says="history confirm: A: its output has no figure \"rate\"")
        # After the warm-up, a missing figure is the command's failure.
        fickle = "echo >>runs; if [ $(wc -l <runs) -gt 4 ]; then echo; else echo '{\"rate\": 1, \"better\": \"higher\"}'; fi"
        self.refused("history", "confirm", "--store", "h.db", "--good", fickle, "--bad", fickle, "--metric", "rate", code=4,
                     says="history confirm: ")

    def test_what_cannot_be_confirmed(self):
        self.confirm(100, 80, "--budget", "1ms", code=3)
        self.refused("history", "confirm", "zzz", "--store", "h.db", "--good", "true", "--bad", "true", says="zzz")
        self.refused("history", "confirm", "--store", "h.db", "--good", "true", says="--bad")
        self.refused("history", "confirm", "--store", "h.db", "--good", "exit 7", "--bad", "true", code=4, says="exit 7")
        self.add(range(20), store="quiet.db")
        self.history("confirm", "--good", "true", "--bad", "true", store="quiet.db", code=3)


class Templates(HistoryCase):
    """The files for CI systems: they parse, and each command of theirs does what it should."""

    @unittest.skipUnless(yaml, "no yaml for this Python")
    def test_they_are_yaml_with_the_jobs_measure_and_judge(self):
        self.assertEqual(len(TEMPLATES), 2)
        for template in TEMPLATES:
            with self.subTest(template.name):
                parsed = yaml.safe_load(template.read_text())
                jobs = parsed.get("jobs", parsed)
                self.assertIn("measure", jobs)
                self.assertIn("measure", json.dumps(jobs["judge"]["needs"]))

    def test_their_commands_run(self):
        self.add(range(20), store="history.db")
        self.add([20], store="one-night.db")
        tonight = self.dir / "runs-2"
        for template in TEMPLATES:
            with self.subTest(template.name):
                folder = self.dir / template.stem
                (folder / "history").mkdir(parents=True)
                (folder / "run").symlink_to(tonight)
                for place in (folder, folder / "history"):
                    (place / "history.db").write_bytes((self.dir / "history.db").read_bytes())
                commands = re.findall(r"assay (?:run|history) .*", re.sub(r"^ *#.*$", "", template.read_text(), flags=re.M))
                self.assertGreaterEqual(len(commands), 4)
                for command in commands:
                    command = command.split("||")[0].strip().replace("${{ matrix.machine }}", "node1")
                    if command.startswith("assay run"):
                        command += " --dry-run"
                    if command.startswith("assay history store merge tonight/"):
                        (folder / "tonight/tonight-node1").mkdir(parents=True)
                        (folder / "tonight.db").rename(folder / "tonight/tonight-node1/tonight.db")
                    # The nights are not tonight, so the check finds them stale.
                    code = 3 if "--max-age" in command else 0
                    done = subprocess.run(["sh", "-c", f'assay() {{ "$ASSAY" "$@"; }}\n{command}'], cwd=folder,
                                          env={**os.environ, "ASSAY": str(pathlib.Path(self.binary).resolve()), "PLAN": "quick",
                                               "MACHINE": "node1", "GITHUB_SHA": "c1", "CI_COMMIT_SHA": "c1",
                                               "GITHUB_SERVER_URL": "https://github.example", "GITHUB_REPOSITORY": "a/b",
                                               "CI_PROJECT_URL": "https://gitlab.example/a/b"},
                                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
                    self.assertEqual(done.returncode, code, command + done.stdout + done.stderr)
                    if code == 3:
                        self.assertIn("newest night", done.stderr)
                        self.assertIn("21", json.dumps(self.nights(folder)))

    def nights(self, folder):
        store = folder / "history.db" if "gitlab" in folder.name else folder / "history/history.db"
        done = self.assay("history", "report", "--store", store, "--since", date(0))
        return re.findall(r"gemm/n=0 throughput +(\d+)", done.stdout)

    def test_a_lost_or_empty_history_is_never_green(self):
        self.add([20], store="tonight.db")
        self.write("empty.db", "")
        for store in ("lost.db", "empty.db"):
            with self.subTest(store):
                done = self.assay("history", "store", "merge", "tonight.db", "--store", store)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.history("check", store=store, code=3)


if __name__ == "__main__":
    unittest.main()
