"""Three years of nights of SERIES series in one store: its size, and checks of it.
usage: history_scale_test.py [SERIES] [NIGHTS]"""

import json
import math
import os
import pathlib
import random
import resource
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from history_case import HistoryCase, date  # noqa: E402

NUMBERS = [int(sys.argv.pop(1)) for word in list(sys.argv[1:3]) if word.isdigit()]
SERIES = NUMBERS[0] if NUMBERS else 10_000
NIGHTS = NUMBERS[1] if len(NUMBERS) > 1 else 3 * 365
STEP = NIGHTS - 20
MAX_BYTES = 2**30 / (10_000 * 3 * 365)   # of a figure
AT_ONCE = 16   # nights
MAX_ADD_MIB = 200


class Scale(HistoryCase):
    def spent(self, what, *words, code=0):
        """Runs assay; prints what it took of CPU and memory."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = self.assay(*words, timeout=7200)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.assertEqual(done.returncode, code, done.stdout[-2000:] + done.stderr[-2000:])
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if what:
            print(f"{what}: {seconds:.1f} CPU seconds, at most {after.ru_maxrss / 2**20:.2f} GiB", flush=True)
        return done, seconds

    def lines(self):
        """Of each series its record before and after the figure, and the logarithm of its level."""
        for number in range(SERIES):
            key = f"family{number % 20}/n={number}"
            head = json.dumps({"schema": 2, "key": key, "family": key.split("/")[0], "status": "ok", "protocol": {"hash": "p"},
                               "ranks": [{"rank": 0, "host": f"node{number % 7}", "device": "cpu"}]})[:-1]
            yield (head + ', "metrics": [{"name": "throughput", "unit": "FLOP/s", "better": "higher", "value": ', "}]}\n",
                   math.log(1e9) + number % 13)

    def test_three_years(self):
        lines, noise, added = list(self.lines()), random.Random(1), 0.0
        for first in range(0, NIGHTS + 1, AT_ONCE):
            nights = range(first, min(first + AT_ONCE, NIGHTS))
            for night in nights:
                folder = self.dir / "runs" / f"{night:04}"
                folder.mkdir(parents=True)
                moment = f"{date(night)}T02:00:00Z"
                (folder / "run.json").write_text(json.dumps({
                    "schema": 2, "id": f"r{night}", "started": moment, "finished": moment, "git": {"commit": f"{night:040x}"},
                    "environment": {"hostnames": ["node"], "os": {"kernel": f"6.{night // 100}"}}}))
                slow = -0.1 if night >= STEP else 0
                (folder / "records.jsonl").write_text("".join(
                    f"{head}{math.exp(level + noise.gauss(0, 0.01) + (slow if number % 20 == 3 else 0))!r}{tail}"
                    for number, (head, tail, level) in enumerate(lines)))
            if nights:
                added += self.spent("", "history", "add", "runs", "--store", "h.db")[1]
                shutil.rmtree(self.dir / "runs")
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**10
        print(f"{NIGHTS} nights added: {added:.1f} CPU seconds, at most {most:.0f} MiB", flush=True)
        self.assertLessEqual(most, MAX_ADD_MIB, "what is added at once is bounded")
        self.spent("all nights analysed", "history", "check", "--store", "h.db", "--json=h.json", "--html", "h.html",
                   code=1)
        size = sum(os.path.getsize(path) for path in self.dir.glob("h.db*"))
        print(f"store: {size / 2**20:.0f} MiB, {size / (SERIES * NIGHTS):.1f} bytes a figure; page: "
              f"{os.path.getsize(self.dir / 'h.html') / 1e6:.2f} MB", flush=True)
        self.assertLessEqual(size, MAX_BYTES * SERIES * NIGHTS)
        self.assertLessEqual(os.path.getsize(self.dir / "h.html"), 2e6)
        report = json.loads((self.dir / "h.json").read_text())
        self.assertEqual((report["series"], report["missing"], report["night"]), (SERIES, 0, date(NIGHTS - 1)))
        [event] = self.open_events(report)
        self.assertEqual((event["subject"], event["to"]["night"]), ("family3 on node", date(STEP)))
        slower = {name for name in event["series"] if "family3/" in name}
        self.assertEqual(len(slower), SERIES // 20)
        self.assertLessEqual(len(event["series"]), 1.01 * SERIES // 20, "chance adds few")
        self.spent("the same again", "history", "check", "--store", "h.db", "--json=again.json", code=1)
        again = json.loads((self.dir / "again.json").read_text())
        for one in (report, again):
            for event in one["events"]:
                del event["new"]
        self.assertEqual(again, report)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
