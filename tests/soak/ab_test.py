"""`assay ab` of a command with itself, beside other load that comes and goes: faster or slower is wrong, and comes in at most
5 of 100 comparisons.
usage: ab_test.py COMPARISONS [BUDGET [SEED]]"""

import json
import math
import os
import random
import subprocess
import sys
import tempfile
import unittest

COMPARISONS = int(sys.argv[1]) if len(sys.argv) > 1 else 400
BUDGET = sys.argv[2] if len(sys.argv) > 2 else "10s"
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 31)
ASSAY = os.path.abspath(os.environ["ASSAY"])
ERROR = 0.05
# They compute, fill memory, start processes, write files, or wait; each takes at most 0.3 s on an idle machine.
COMMANDS = ["python3 -c 'sum(i * i for i in range(200000))'", "python3 -c 'b = bytearray(20000000); bytes(b)'",
            "for i in 1 2 3 4 5 6 7 8; do /bin/true; done", "seq 20000 >file; sort -R file >sorted; sync file", "sleep 0.02"]
LOAD = """
import random, time
random.seed({seed})
while True:
    end = time.monotonic() + random.expovariate(4)
    while time.monotonic() < end:
        sum(range(10000))
    time.sleep(random.expovariate(4))
"""


def max_wrong(count):
    """The smallest number that as many trials exceed with less than 1 %, if each is wrong with probability ERROR."""
    tail, wrong = 1.0, -1
    while tail >= 0.01:
        wrong += 1
        tail -= math.comb(count, wrong) * ERROR ** wrong * (1 - ERROR) ** (count - wrong)
    return wrong


class SameCommand(unittest.TestCase):
    def load(self, seed):
        process = subprocess.Popen([sys.executable, "-c", LOAD.format(seed=seed)])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def test_is_rarely_called_faster_or_slower(self):
        print(f"seed {SEED}", flush=True)
        for number in range(max(2, os.cpu_count())):
            self.load(SEED + number)
        counts = {"same": 0, "undecided": 0, "faster": 0, "slower": 0}
        pairs = 0
        with tempfile.TemporaryDirectory(prefix="assay-test-") as folder:
            for number in range(COMPARISONS):
                command = COMMANDS[number % len(COMMANDS)]
                done = subprocess.run([ASSAY, "ab", "--a", command, "--b", command, "--budget", BUDGET, "--tolerance", "5%",
                                       "--seed", str(SEED + number), "--json"], cwd=folder, capture_output=True, text=True,
                                      timeout=120)
                self.assertIn(done.returncode, (0, 1, 3), done.stderr)
                found = json.loads(done.stdout)
                counts[found["verdict"]] += 1
                pairs += found["pairs"]
        wrong = counts["faster"] + counts["slower"]
        print(f"{COMPARISONS} comparisons of {pairs} pairs: {counts}, {wrong} wrong, at most {max_wrong(COMPARISONS)}", flush=True)
        self.assertGreater(pairs, COMPARISONS)
        self.assertLessEqual(wrong, max_wrong(COMPARISONS))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
