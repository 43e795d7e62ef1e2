"""README.md, CONTRIBUTING.md and docs/: commands in `sh` blocks run, JSON is valid, links resolve, and the README and lines stay short."""

import json
import os
import pathlib
import re
import subprocess
import unittest

from assay_case import AssayCase

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
README_LINES = 150
COLUMNS = 140


def name_of(page):
    return str(page.relative_to(ROOT))


def commands(text):
    """The lines of `sh` blocks that call assay, each with its exit code: 0, or that of a comment `# exit 1`."""
    for language, block in FENCE.findall(text):
        for line in block.splitlines() if language == "sh" else []:
            if line.startswith("assay "):
                code = re.search(r"# exit (\d)", line)
                yield line, int(code.group(1)) if code else 0


def files(text):
    """Blocks that follow a line ending in "`NAME.json`:" or "`NAME.csv`:", by name."""
    return {f"{name}.{kind}": content for name, kind, content in
            re.findall(r"`([\w-]+)\.(json|csv)`:\n\n```\2\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)}


def anchors(page):
    """The anchors of a page's headings."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


class Docs(AssayCase):
    def test_the_rules_of_watched_jobs_and_traces_are_those_of_the_tables(self):
        tables = re.findall(r"^\| rule \|.*?(?=^#|\Z|^[A-Z])", (ROOT / "docs/watch.md").read_text(), re.MULTILINE | re.DOTALL)
        told = {rule for table in tables for row in re.findall(r"^\|((?: ?`[a-z-]+`,?)+) \|", table, re.MULTILINE)
                for rule in re.findall(r"[a-z-]+", row)}
        sources = [*(ROOT / "harness/watch").glob("*.cpp"), ROOT / "harness/kineto/diagnosis.cpp"]
        found = {rule for source in sources
                 for rule in re.findall(r'found\.push_back\(\s*\{[^"]*"([a-z-]+)"(?: : "[a-z-]+")?', source.read_text())}
        found |= {rule for source in sources
                  for rule in re.findall(r'found\.push_back\(\s*\{[^"]*"[a-z-]+" : "([a-z-]+)"', source.read_text())}
        self.assertGreater(len(found), 10)
        self.assertEqual(found, told)

    def test_commands_run(self):
        for folder in ("tests", "configs"):
            (self.dir / folder).symlink_to(ROOT / folder)
        found = 0
        no_gpu = not pathlib.Path(self.binary).with_name("libassay-cuda.so").exists()
        for page in PAGES:
            text = page.read_text()
            for name, content in files(text).items():
                self.write(name, content)
            for line, code in commands(text):
                found += 1
                if no_gpu and "--device cuda" in line:
                    code = 2   # this build cannot measure GPUs
                with self.subTest(page=name_of(page), command=line):
                    done = subprocess.run(["sh", "-c", f'assay() {{ "$ASSAY" "$@"; }}\n{line}'], cwd=self.dir,
                                          env={**os.environ, "ASSAY": str(pathlib.Path(self.binary).resolve())},
                                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
                    self.assertEqual(done.returncode, code, done.stderr)
                    self.assertFalse((self.dir / "runs").exists(), "commands that measure belong in `text` blocks")
        self.assertGreater(found, 0)

    def test_examples_of_prices_are_used(self):
        examples = files((ROOT / "docs" / "running.md").read_text())
        for name, usd, spot, date in (("contract.json", 40, [12.5, 18], "2026-11-01"),
                                      ("aws-2026-11-01.csv", 55.04, [15.2, 15.2], "2026-11-01")):
            with self.subTest(name):
                self.write(name, examples[name])
                done = self.assay("list", "prices", "--prices", name, "--hardware", "h100-sxm", "--json")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                first = json.loads(done.stdout)["prices"][0]
                self.assertEqual((first["file"], first["instance_type"], first["gpus"]), (name, "p5.48xlarge", 8))
                self.assertEqual((first["usd_per_hour"], list(first["spot_usd_per_hour"].values()), first["date"]),
                                 (usd, spot, date))
                done = self.assay("report", str(ROOT / "tests/runs/gpu"), "--prices", name, "--json")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f'"value": {float(usd)}', done.stdout.replace(":", ": ").replace(":  ", ": "))

    def test_json_is_valid(self):
        for page in PAGES:
            for language, block in FENCE.findall(page.read_text()):
                if language == "json":
                    with self.subTest(name_of(page)):
                        json.loads(block)

    def test_links_resolve(self):
        for page in PAGES:
            for link in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text())):
                if re.match(r"[a-z]+:", link):
                    continue
                path, _, anchor = link.partition("#")
                target = (page.parent / path) if path else page
                with self.subTest(page=name_of(page), link=link):
                    self.assertTrue(target.exists())
                    if anchor:
                        self.assertIn(anchor, anchors(target))

    def test_lines_are_short(self):
        for page in PAGES:
            if page.name == "history-detector.md":   # printed by tools/history
                continue
            for line in FENCE.sub("", page.read_text()).splitlines():
                # Only a table may need more, where it is no page for those who change the code.
                if not line.startswith("|") or page.name in ("design.md", "CONTRIBUTING.md"):
                    with self.subTest(page=name_of(page), line=line):
                        self.assertLessEqual(len(line), COLUMNS)

    def test_readme_has_a_line_for_each_verb(self):
        verbs = set(re.findall(r"^  ([a-z]+)  ", self.assay("--help").stdout, re.MULTILINE))
        self.assertIn("run", verbs)
        readme = (ROOT / "README.md").read_text()
        [block] = [block for language, block in FENCE.findall(readme) if language == "text" and block.startswith("measure ")]
        self.assertEqual(set(re.findall(r"\bassay ([a-z]+)", block)), verbs)

    def test_readme_is_short(self):
        self.assertLessEqual(len((ROOT / "README.md").read_text().splitlines()), README_LINES)


if __name__ == "__main__":
    unittest.main()
