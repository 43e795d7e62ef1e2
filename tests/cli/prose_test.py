"""No text that is for people decides anything: with every detail, reason, remark and line of stderr replaced by x, each judge
says the same of the same hosts and devices."""

import json
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from acceptances import ACCEPTANCES, write_acceptance  # noqa: E402
from assay_case import AssayCase  # noqa: E402
from fake_machine import write_machine  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = ROOT / "tests/runs"

# What people read, by the name of its member.
PROSE = {"reason", "log", "detail", "error", "lost", "seen", "meaning", "fix", "effect", "text", "stderr"}
# The flags of records that programs read (harness/record/flags.h): these whole ones, and what begins others. They are
# identifiers, and listed in docs/records.md; what follows a colon is text.
FLAGS = {"oversubscribed", "shared GPU", "hosts are one machine", "emulated GPU: not a measurement",
         "ASSAY_ROOT: the machine described is a folder of files", "does not fit", "timed out"}
BEGINNINGS = ("memory beyond the plan", "injected:", "GPU slowed down", "slow rank")


def flag_without_text(flag):
    if flag in FLAGS or flag.startswith("injected:"):
        return flag
    return next((f"{word}: x" for word in BEGINNINGS if flag.startswith(word)), "x")


def x(value):
    """x in place of every text in it."""
    if isinstance(value, str):
        return "x" if value else value
    if isinstance(value, list):
        return [x(each) for each in value]
    return {name: x(each) for name, each in value.items()} if isinstance(value, dict) else value


def without_prose(value):
    """A document with x in place of what is for people."""
    if isinstance(value, list):
        return [without_prose(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: [flag_without_text(flag) for flag in each] if name == "flags" and isinstance(each, list) else
            {**each, "reason": "x"} if name == "ended" and isinstance(each, dict) else
            x(each) if name in PROSE else without_prose(each) for name, each in value.items()}


def only(document, *names, path=""):
    """The members of these names, wherever they are: their values by their paths, without prose."""
    places = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    return {where: found for place, each in places for where, found in
            ({f"{path}/{place}": without_prose(each)} if place in names else only(each, *names, path=f"{path}/{place}")).items()}


class Prose(AssayCase):
    def copies(self, *names):
        """Runs as they are, and without prose."""
        kept, bare = [], []
        for name in names:
            for folder, edit, to in (("kept", lambda value: value, kept), ("bare", without_prose, bare)):
                out = self.dir / folder / name
                shutil.copytree(RUNS / name, out)
                to.append(out)
                run, lines = out / "run.json", out / "records.jsonl"
                run.write_text(json.dumps(edit(json.loads(run.read_text()))))
                lines.write_text("".join(self.edited(line, edit) for line in lines.read_text().splitlines(keepends=True)))
        self.assertNotEqual([(one / "records.jsonl").read_text() for one in kept],
                            [(one / "records.jsonl").read_text() for one in bare])
        return kept, bare

    @staticmethod
    def edited(line, edit):
        try:
            return json.dumps(edit(json.loads(line))) + "\n"
        except json.JSONDecodeError:   # cut short by a kill
            return line

    def same(self, words, names, *members):
        """Both copies of these runs have the same exit code, and the same members of these names in the JSON."""
        answers = []
        for dirs in self.copies(*names):
            out = dirs[0].parent / "answer.json"
            sides = ("--base", dirs[0], "--head", dirs[1]) if words == ("compare",) else dirs
            done = self.assay(*words, *sides, "--json", out, timeout=300)
            self.assertTrue(out.exists(), done.stdout + done.stderr)
            answers.append((done.returncode, only(json.loads(out.read_text()), *members)))
            shutil.rmtree(dirs[0].parent)
        self.assertEqual(*answers)
        self.assertTrue(answers[0][1], "nothing was compared")


class Acceptances(Prose):
    MEMBERS = ("verdict", "host", "name", "state", "figure", "floor", "unit", "culprit", "required", "gpus", "gpu_uuids")

    def judged(self, name, **how):
        words, out = write_acceptance(self.dir / f"{name}-{len(how)}", name, words=False, **how)
        done = self.assay(*words, env={"ASSAY_RSH": "/bin/false"})
        document = json.loads((out / "accept.json").read_text())
        return done.returncode, only(document, *self.MEMBERS), sorted(file.name for file in out.glob("evidence/*"))

    def test_every_acceptance(self):
        for name in ACCEPTANCES:
            with self.subTest(name):
                self.assertEqual(self.judged(name), self.judged(name, edit=self.bare))

    @staticmethod
    def bare(value):
        """Of an attempt, `lost` has hosts as its names."""
        lost = value.get("lost") if isinstance(value, dict) else None
        return {**without_prose(value), **({"lost": dict.fromkeys(lost, "x")} if isinstance(lost, dict) else {})}

    def test_members_and_words_blame_the_same_hosts(self):
        for name in ACCEPTANCES:
            with self.subTest(name):
                words, out = write_acceptance(self.dir / f"{name}-words", name)
                done = self.assay(*words, env={"ASSAY_RSH": "/bin/false"})
                in_words = only(json.loads((out / "accept.json").read_text()), *self.MEMBERS)
                self.assertEqual((done.returncode, in_words), self.judged(name)[:2])


class Runs(Prose):
    FAULTS = tuple(f"fault-{name}" for name in ("bit-flip", "crash", "hang", "none", "oom", "slow-link", "slow-rank", "wrong-sum"))

    def test_diagnoses(self):
        for name in (*self.FAULTS, "micro-base-1", "training-1", "cluster", "each-host", "gpu", "resumed"):
            with self.subTest(name):
                self.same(("diagnose",), [name], "id", "state")

    def test_checks(self):
        floors = next(iter(sorted((RUNS / "floors").glob("*.json"))))
        for name in (*self.FAULTS, "micro-base-1", "gpu", "each-host"):
            with self.subTest(name):
                self.same(("check", "--floors", floors), [name], "verdict", "outcome", "state", "key", "value", "limit")

    def test_reports(self):
        for name in (*self.FAULTS, "micro-base-1", "training-1", "cluster", "each-host", "gpu", "resumed"):
            with self.subTest(name):
                self.same(("report",), [name], "verdict", "state")

    def test_comparisons(self):
        self.same(("compare",), ["micro-base-1", "micro-head-1"], "verdict", "key", "ratio")
        self.same(("compare",), ["fault-none", "fault-slow-rank"], "verdict", "key", "ratio")

    def test_histories(self):
        answers = []
        for dirs in self.copies("micro-base-1", "micro-base-2", "micro-base-3", "micro-head-1", "fault-crash"):
            store = dirs[0].parent / "h.db"
            self.assertEqual(self.assay("history", "add", "--store", store, *dirs).returncode, 0)
            done = self.assay("history", "check", "--store", store, "--json", "-")
            answers.append((done.returncode, only(json.loads(done.stdout), "id", "state", "kind", "series_tested", "missing")))
        self.assertEqual(*answers)


class Audits(Prose):
    def test_a_fleet(self):
        machine = write_machine(self.dir / "machine")
        machine.nvml(2, ecc_uncorrected=3)
        answer = json.loads(self.assay("env", "--audit", "--json", env={"ASSAY_ROOT": str(machine.root)}).stdout)
        rsh = self.write("rsh", f'#!/bin/sh\nwhile [ "${{1#-}}" != "$1" ]; do shift 2; done\ncat {self.dir}/$1.json\n')
        rsh.chmod(0o755)
        self.write("hosts", "n1\nn2\n")
        answers = []
        for edit in (lambda value: value, without_prose):
            for host in ("n1", "n2"):
                self.write(f"{host}.json", edit(answer))
            done = self.assay("env", "--audit", "--json", "--hostfile", "hosts", env={"ASSAY_RSH": str(rsh)})
            answers.append((done.returncode, only(json.loads(done.stdout), "host", "state", "id", "severity", "device", "area")))
        self.assertEqual(*answers)
        self.assertIn("ecc-uncorrected", json.dumps(answers[0][1]))


if __name__ == "__main__":
    unittest.main()
