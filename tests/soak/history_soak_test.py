"""Sixty nights of real runs, each a few seconds long. From night 41 on something else computes on every CPU: the history
must find that, in at least three series, and nothing before."""

import datetime
import json
import os
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from history_case import FIRST, HistoryCase, date  # noqa: E402

NIGHTS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 60
CAUSE = 41


class Nights(HistoryCase):
    def night(self, number):
        out = f"runs/{number:02}"
        done = self.assay("run", "p.json", "--device", "cpu", "--out", out, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.history("add", out, "--at", f"{date(number)}T02:00:00Z")

    def test_a_competitor_is_found(self):
        # Samples longer than the scheduler's slices, so that the median sample shares its CPUs.
        self.plan({"family": "gemm", "dtype": "f32", "m": [1024, 2048], "n": 2048, "k": 1024},
                  {"family": "transformer", "model": "gpt2-tiny", "micro_batch": 8, "seq": 128},
                  {"family": "resnet", "model": "resnet-tiny", "micro_batch": 32},
                  protocol={"max_seconds": "300ms", "warmup_seconds": "20ms", "min_samples": 5})
        for number in range(CAUSE):
            self.night(number)
        self.assertEqual(self.open_events(self.check()), [])
        burners = [subprocess.Popen(["taskset", "-c", str(cpu), sys.executable, "-c", "while True: pass"])
                   for cpu in sorted(os.sched_getaffinity(0))]
        found = None
        try:
            for number in range(CAUSE, NIGHTS):
                self.night(number)
                done = self.assay("history", "check", "--store", "h.db", "--json")
                if number == CAUSE:
                    suspects = [one["series"] for one in json.loads(done.stdout)["suspects"] if one["same_night"]]
                    print(f"{len(suspects)} series suspected that night", flush=True)
                if done.returncode == 1 and found is None:
                    found = number
                    print(f"found on night {number}", flush=True)
        finally:
            for burner in burners:
                burner.kill()
                burner.wait()
        self.assertEqual(done.returncode, 1, done.stderr)
        events = self.open_events(json.loads(done.stdout))
        large = {change["case"] for event in events for change in event["changes"] if change["shift"]["value"] <= -0.2}
        print(f"{len(large)} cases at least a fifth slower", flush=True)
        self.assertGreaterEqual(len(large), 3)
        self.assertGreaterEqual(len(suspects), 3)
        self.assertEqual(events[0]["causes"][0]["fact"], "outside_cpu")
        self.assertIn("python", events[0]["causes"][0]["after"])
        self.assertLessEqual(abs((datetime.date.fromisoformat(events[0]["to"]["night"]) - FIRST).days - CAUSE), 1)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
