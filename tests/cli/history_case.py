"""Made-up nights for the tests of `assay history`: imported as a table, and added to a history."""

import datetime
import json
import math
import random

from assay_case import AssayCase

FIRST = datetime.date(2026, 1, 1)
CASES = [f"gemm/n={n}" for n in range(6)] + [f"memory/op={op}" for op in ("copy", "scale", "add", "triad")]
COLUMNS = ["time", "machine", "case", "metric", "unit", "better", "value", "commit"]


def date(night):
    return str(FIRST + datetime.timedelta(days=night))


def noise(machine, case, night, sigma=0.01):
    return random.Random(f"{machine} {case} {night}").gauss(0, sigma)


class HistoryCase(AssayCase):
    def add(self, nights, machines=("node1",), cases=CASES, step=None, facts=None, commit=None, shuffle=False,
            store="h.db", metric=("throughput", "FLOP/s", "higher"), at=None):
        """Imports made-up nights and adds them: step(machine, case, night) is the logarithm of a change of speed,
        facts(machine, night) the facts of a run, at the date that `history add` is told."""
        names = sorted({name for machine in machines for night in nights for name in (facts(machine, night) if facts else {})})
        rows = []
        blocks = [(night, machine) for night in nights for machine in machines]
        if shuffle:
            random.Random(1).shuffle(blocks)
        for night, machine in blocks:
            known = facts(machine, night) if facts else {}
            for case in cases:
                speed = noise(machine, case, night) + (step(machine, case, night) if step else 0)
                value = 1e12 * math.exp(speed) if metric[2] == "higher" else 1e-3 * math.exp(-speed)
                rows.append([f"{date(night)}T02:00:00Z", machine, case, *metric, repr(value),
                             commit(machine, night) if commit else "", *(known.get(name, "") for name in names)])
        header = COLUMNS + [f"fact.{name}" for name in names]
        self.imports = getattr(self, "imports", 0) + 1
        file = self.write(f"in-{self.imports}.csv", "".join(",".join(row) + "\n" for row in [header, *rows]))
        done = self.assay("import", "csv", file, "--out", f"runs-{self.imports}")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.assay("history", "add", f"runs-{self.imports}", "--store", store, *(["--at", at] if at else []))
        self.assertEqual(done.returncode, 0, done.stderr)

    def history(self, *words, store="h.db", code=0, env=None):
        done = self.assay("history", *words, *(["--store", store] if store else []), env=env)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def check(self, *words, store="h.db", code=0):
        done = self.history("check", *words, "--json", store=store, code=code)
        return json.loads(done.stdout)

    def open_events(self, report):
        return [event for event in report["events"] if event["state"] == "open" and event["kind"] == "slower"]


def slower(machine, case, night):
    """A fifth slower in three series from night 41 on."""
    return math.log(0.8) if night >= 41 and case in CASES[:3] else 0
