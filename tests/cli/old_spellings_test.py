"""Old spellings work until the version that removes them: the same as the new ones, with one line more on stderr. The table of
cli/old_spellings.cpp is compared with the list of this test, so that no spelling is added, or kept, by chance."""

import json
import os
import pathlib
import re
import shutil
import sys
import unittest

from assay_case import AssayCase

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
from acceptances import write_acceptance  # noqa: E402
from fake_machine import write_machine  # noqa: E402

RUNS = ROOT / "tests/runs"
GOOD = RUNS / "micro-base-1"
STORE = ("--store", "h.db")

# Old spelling: the version that removes it, the words of a command in it, and the same command in the new one.
OLD = {
    "env --audit": ("1.1", ["env", "--json", "--audit"], ["audit", "--json"]),
    "history reanalyse": ("1.1", ["history", "reanalyse", *STORE], ["history", "check", "--again", *STORE]),
    "history merge": ("1.1", ["history", "merge", "h.db", "--store", "new.db"],
                      ["history", "store", "merge", "h.db", "--store", "new.db"]),
    "history alias": ("1.1", ["history", "alias", "a", "b", *STORE], ["history", "store", "alias", "a", "b", *STORE]),
    "history compact": ("1.1", ["history", "compact", "--keep", "30d", *STORE],
                        ["history", "store", "compact", "--keep", "30d", *STORE]),
    "history salvage": ("1.1", ["history", "salvage", "h.db", "--out", "new.db"],
                        ["history", "store", "salvage", "h.db", "--out", "new.db"]),
    "size --budget": ("1.1", ["size", "gpt2-124m", "--tokens", "10B", "--budget", "2000"],
                      ["size", "gpt2-124m", "--tokens", "10B", "--max-usd", "2000"]),
    "size --gpus": ("1.1", ["size", "gpt2-124m", "--tokens", "10B", "--gpus=1..8"],
                    ["size", "gpt2-124m", "--tokens", "10B", "--count=1..8"]),
    "crosscheck --from": ("1.1", ["crosscheck", "--from", "5"], ["crosscheck", "--min-bytes", "5"]),
    "crosscheck --to": ("1.1", ["crosscheck", "--to", "64MiB", "--json"], ["crosscheck", "--max-bytes", "64MiB", "--json"]),
    **{f"{verb} --json FILE": ("1.1", [*verb.split(), *words, "--json", "o.json"], [*verb.split(), *words, "--json=o.json"])
       for verb, words in {
           "accept": ["--resume", "a"],
           "check": [GOOD, "--floors", RUNS / "floors/fail.json"],
           "compare": ["--base", GOOD, "--head", RUNS / "micro-head-1"],
           "diagnose": [GOOD],
           "floors learn": [*(RUNS / f"micro-base-{n}" for n in (1, 2, 3)), "--out", "floors.json", "--same-machine"],
           "history check": STORE,
           "history report": STORE,
           "report": [GOOD]}.items()},
}


class OldSpellings(AssayCase):
    def fresh(self, name):
        """A folder that holds what the commands read."""
        folder = self.dir / name
        folder.mkdir()
        shutil.copy(ROOT / "tests/old/history.db", folder / "h.db")
        return folder

    def ran(self, folder, words, env):
        """Exit code, stdout and lines of stderr without the folder's name and times; and the JSON that it wrote."""
        self.dir, before = folder, self.dir
        try:
            done = self.assay(*words, env={"ASSAY_ROOT": str(before / "machine"), "PATH": "/nowhere", **env})
        finally:
            self.dir = before
        plain = [re.sub(r"\b[\d.]+ m?s\b", "<seconds>", text.replace(str(folder), "<dir>")) for text in (done.stdout, done.stderr)]
        wrote = json.loads((folder / "o.json").read_text()) if (folder / "o.json").exists() else None
        if wrote:
            wrote.pop("seconds", None)
        return (done.returncode, plain[0], wrote), plain[1].splitlines()

    def test_the_table_is_this_list(self):
        rows = re.findall(r'^    \{"([^"]+)", "[^"]+", "([^"]+)"\},$', (ROOT / "cli/old_spellings.cpp").read_text(), re.MULTILINE)
        self.assertEqual(sorted(rows), sorted((old, removed) for old, (removed, _, _) in OLD.items()))

    def test_each_is_the_new_one_with_one_line_more(self):
        write_machine(self.dir / "machine")
        for number, (old, (removed, words, new_words)) in enumerate(OLD.items()):
            with self.subTest(old):
                results = []
                for form, given in (("old", words), ("new", new_words)):
                    folder = self.fresh(f"{number}-{form}")
                    env = {}
                    if old.startswith("accept"):
                        accept, _ = write_acceptance(folder / "acceptance", "healthy")
                        given = [*accept, *given[3:]]
                        env = {"ASSAY_RSH": "/bin/false"}
                    results.append(self.ran(folder, given, env))
                (found, said), (expected, usual) = results
                self.assertEqual(found, expected)
                self.assertEqual(said[1:], usual)
                self.assertTrue(said[0].startswith('assay: write "'), said)
                self.assertIn(f'instead of "{old}", which {removed} removes', said[0])
                if old.endswith("FILE"):
                    self.assertTrue(found[2])

    def test_no_help_names_them(self):
        for old in OLD:
            verb = [word for word in old.split() if word.islower() and not word.startswith("-")]
            names = re.findall(r"(?m)^  (--[\w-]+|[a-z][\w-]+)", self.assay(*verb[:1], "--help").stdout)
            self.assertNotIn(verb[1] if len(verb) > 1 and old.count(" ") == 1 else old.split()[-1], names)

    def test_several_in_one_command_take_one_line(self):
        done = self.assay("size", "gpt2-124m", "--gpus", "8", "--tokens", "10B", "--budget", "2000")
        self.assertEqual((done.returncode, len(done.stderr.splitlines())), (0, 1), done.stderr)
        for part in ('"size --max-usd" instead of "size --budget"', '"size --count" instead of "size --gpus"'):
            self.assertIn(part, done.stderr)

    def test_values_are_no_spellings(self):
        """What follows a flag with a value, and what follows --, stays as it is."""
        self.refused("size", "gpt2-124m", "--tokens", "--budget", says="--tokens")
        self.refused("report", "--", "--json", says="no such")


class Json(AssayCase):
    """--json prints, --json=FILE writes a file, and the word after it is never its own if it is a folder."""

    # Commands that are quick, with what they read.
    COMMANDS = (["list", "levels"], ["env"], ["audit"], ["check", GOOD, "--floors", RUNS / "floors/pass.json"],
                ["compare", "--base", GOOD, "--head", GOOD], ["diagnose", GOOD], ["report", GOOD], ["estimate", "gpt2-124m"],
                ["size", "gpt2-124m", "--tokens", "10B"], ["gate", "--list"], ["history", "report", "--store", "h.db"], ["history", "check", "--store", "h.db"],
                ["floors", "learn", GOOD, "--out", "floors.json"], ["crosscheck"],
                ["ab", "--a", "echo x 1 s lower", "--b", "echo x 1 s lower", "--metric", "lines", "--seed", "1"])

    def test_every_command_prints_or_writes(self):
        machine = write_machine(self.dir / "machine")
        shutil.copy(ROOT / "tests/old/history.db", self.dir / "h.db")
        env = {"ASSAY_ROOT": str(machine.root)}
        for words in self.COMMANDS:
            with self.subTest(words):
                text, printed, written, dash = (self.assay(*words, *more, env=env) for more in
                                                ([], ["--json"], ["--json=o.json"], ["--json=-"]))
                self.assertEqual({text.returncode, printed.returncode, dash.returncode}, {written.returncode}, printed.stderr)
                document = json.loads(printed.stdout)
                again = json.loads((self.dir / "o.json").read_text())
                if words[0] != "ab":
                    self.assertEqual(again, document)
                    self.assertEqual(written.stdout, text.stdout)
                self.assertEqual(json.loads(dash.stdout).keys(), document.keys())
                self.assertEqual((printed.stderr == text.stderr, written.stderr == text.stderr), (True, True))
                (self.dir / "o.json").unlink()

    def test_every_help_that_has_it_says_the_same(self):
        def texts(*words):
            text = self.assay(*words, "--help").stdout
            yield words, text
            for section in re.findall(r"(?ms)^(?:Measure|Judge|Understand|Plan|Files|Subcommands):\n(.*?)(?:\n\n|\Z)", text):
                for name in re.findall(r"(?m)^  ([a-z][\w-]*) ", section):
                    if name != "bench":
                        yield from texts(*words, name)

        found = {" ".join(words): re.findall(r"(?m)^  --json.*", text) for words, text in texts()}
        found = {words: lines for words, lines in found.items() if lines}
        self.assertEqual({line for lines in found.values() for line in lines}, {next(iter(found.values()))[0]})
        self.assertRegex(next(iter(found.values()))[0], r"^  --json\[=FILE\] ")
        self.assertEqual(set(found) - {" ".join(map(str, words[:2])).split(" --")[0].split(" /")[0] for words in self.COMMANDS} -
                         {words[0] for words in self.COMMANDS}, {"accept", "project"})

    def test_a_folder_after_it_is_a_run(self):
        for verb in ("report", "diagnose"):
            before, after = self.assay(verb, GOOD, "--json"), self.assay(verb, "--json", GOOD)
            self.assertEqual((before.returncode, before.stdout, before.stderr), (after.returncode, after.stdout, after.stderr))
        # A word that is no folder is the file of before, and a run is missing.
        self.refused("report", "--json", "nowhere", says="name run directories", lines=2)
        self.assertFalse((self.dir / "nowhere").exists())

    def test_where_it_was_a_switch_the_next_word_is_no_file(self):
        self.assertEqual(list(json.loads(self.assay("list", "--json", "plans").stdout)), ["plans"])
        done = self.assay("estimate", "--json", "gpt2-124m")
        self.assertEqual((json.loads(done.stdout)["model"], done.stderr), ("gpt2-124m", ""))
        self.refused("list", "plans", "--json", "o.json", says=['"o.json" is not expected here', "--json=FILE writes a file"])

    def test_a_file_that_cannot_be_written(self):
        self.refused("report", GOOD, "--json=nowhere/o.json", says=["report: ", "nowhere"])
        self.refused("list", "plans", "--json=nowhere/o.json", says=["list: ", "nowhere"])


if __name__ == "__main__":
    unittest.main()
