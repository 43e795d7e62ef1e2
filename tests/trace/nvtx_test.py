"""NVTX ranges as a tool sees them: from a small program, and from `assay run` with cases that pass, fail and throw.

Arguments: the injected library, the span program, the testbed.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from collections import defaultdict

ASSAY, PROGRAM, LIBRARY = sys.argv.pop(), sys.argv.pop(), sys.argv.pop()
NAMES = {1: "run", 2: "case", 3: "sample", 4: "phase", 5: "layer", 6: "communication", 7: "data"}


class Range:
    def __init__(self, category, payload, registered, name, depth, parent):
        self.category, self.payload, self.registered, self.name = category, payload, registered, name
        self.depth, self.parent = depth, parent

    def ancestors(self):
        return [self.parent] + self.parent.ancestors() if self.parent else []


def ranges_of(log, test):
    """Ranges in order of their start; every pop must match a push of its thread, and all must be in our domain."""
    stacks, found, categories = defaultdict(list), [], {}
    for line in log.read_text().splitlines():
        kind, domain, *rest = line.split("\t")
        test.assertEqual(domain, "assay")
        if kind == "category":
            categories[int(rest[0])] = rest[1]
        elif kind == "push":
            thread, category, payload, registered, name = rest
            stack = stacks[thread]
            test.assertNotEqual(payload, "none", name)
            found.append(Range(int(category), int(payload), registered == "1", name, len(stack), stack[-1] if stack else None))
            stack.append(found[-1])
        else:
            test.assertTrue(stacks[rest[0]], "a pop without a push")
            stacks[rest[0]].pop()
    test.assertEqual(categories, NAMES)
    return found, {thread: stack for thread, stack in stacks.items() if stack}


class Nvtx(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_under_the_tool(self, *command):
        environment = os.environ | {"NVTX_INJECTION64_PATH": LIBRARY, "ASSAY_NVTX_LOG": str(self.folder / "log")}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, timeout=120)
        return done, [ranges_of(log, self) for log in sorted(self.folder.glob("log.*"))]

    def test_names_nesting_category_payload_and_balance(self):
        done, logs = self.run_under_the_tool(PROGRAM, "spans")
        self.assertEqual(done.returncode, 0, done.stderr)
        (found, open_at_the_end), = logs
        self.assertEqual(open_at_the_end, {})
        self.assertEqual([(r.depth, NAMES[r.category], r.name, r.payload) for r in found], [
            (0, "run", "run", 0), (0, "data", "decode", 3), (1, "case", "case that fails", 7), (2, "phase", "setup", 0)] + [
            entry for i in range(2) for entry in [
                (1, "case", "case that holds", 8), (2, "phase", "measure", 0), (3, "layer", "layer", -5000000000),
                (4, "communication", "all_reduce", 64), (5, "sample", "sample", i)]])
        self.assertTrue(all(r.registered for r in found))

    def test_a_run_shows_cases_phases_and_samples_also_of_those_that_fail(self):
        done, logs = self.run_under_the_tool(
            ASSAY, "run", "probe", "--set", "probe.op=ok,fail,throw,setup-throw", "--out", str(self.folder / "run"))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertTrue(logs, "the tool saw no process: " + done.stderr)
        found = [one for log, _ in logs for one in log]
        for _, open_at_the_end in logs:
            # A worker may be killed while it waits for its next case: an open range then encloses no case.
            for stack in open_at_the_end.values():
                self.assertTrue(all(NAMES[r.category] == "run" for r in stack), [r.name for r in stack])

        def inside(case, category):
            return [r.name for r in found if NAMES[r.category] == category and r.parent is not None and case in r.ancestors()]
        cases = {r.name.split("op=")[1].split("/")[0]: r for r in found if NAMES[r.category] == "case"}
        self.assertEqual(set(cases), {"ok", "fail", "throw", "setup-throw"})
        self.assertTrue(all(r.name.startswith("probe/") for r in cases.values()))
        for op in ("ok", "fail"):
            self.assertLessEqual({"setup", "warm-up", "measure", "verify"}, set(inside(cases[op], "phase")), op)
            self.assertGreaterEqual(len(inside(cases[op], "sample")), 1)
        self.assertEqual(inside(cases["setup-throw"], "phase"), ["setup"])
        self.assertIn("measure", inside(cases["throw"], "phase"))
        self.assertEqual(inside(cases["throw"], "sample"), [])
        self.assertEqual({r.name for r in found if NAMES[r.category] == "run"}, {"run"})
        self.assertTrue(all(NAMES[r.parent.category] == "run" for r in cases.values()), "a case is inside its run")
        samples = [r for r in found if NAMES[r.category] == "sample"]
        self.assertTrue(all(NAMES[r.parent.category] == "phase" for r in samples), "a sample is inside its phase")
        self.assertEqual([r.payload for r in samples if cases["ok"] in r.ancestors()][:1], [0])


if __name__ == "__main__":
    unittest.main()
