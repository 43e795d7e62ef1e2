"""Nights of a program that does not change, counted by valgrind while all around it varies: three instruction sets, an
environment of up to 4 KiB, paths of 10 to 200 characters. No night may be an event; 0.2 % more instructions, and two more
strings beside 400, are events the same night."""

import os
import random
import shutil
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from history_case import HistoryCase, date

NIGHTS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 100   # each set needs 15
ISAS = ("avx2", "avx512", "generic")

# Its work depends on the instruction set that it is told, and on MORE.
PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
int main() {
  const char* isa = std::getenv("ASSAY_ISA");
  const char* more = std::getenv("MORE");
  long steps = 2000000;
  steps *= !std::strcmp(isa, "generic") ? 4 : !std::strcmp(isa, "avx2") ? 2 : 1;
  if (more) steps += steps / 500;
  volatile double sum = 0;
  for (long i = 0; i < steps; ++i) sum = sum + 0.5;
  std::vector<std::string*> kept;
  kept.reserve(500);
  for (int i = 0; i < 400 + (more ? 2 : 0); ++i) kept.push_back(new std::string(100, 'x'));
  std::printf("work %ld s lower\n", 1 + steps % 2);
}
"""


@unittest.skipUnless(shutil.which("valgrind") and shutil.which("c++"), "no valgrind or no compiler")
class CountedNights(HistoryCase):
    def record(self, night, isa, **more):
        draw = random.Random(night)
        folder = self.dir / "/".join("d" * draw.randrange(4, 40) for _ in range(draw.randrange(1, 5)))
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(self.dir / "program", folder / "program")
        padding = {f"PADDING{i}": "p" * draw.randrange(0, 1024) for i in range(4)}
        self.history("record", "--at", date(night), "--counts", "valgrind", "--counts", "heap", "--label", f"isa={isa}",
                     "--", str(folder / "program"), store=None,
                     env={**padding, "ASSAY_HISTORY": str(self.dir / "h.db"), "ASSAY_ISA": isa, "CI": "", **more})
        shutil.rmtree(self.dir / folder.relative_to(self.dir).parts[0])

    def test_no_event_without_a_change_and_one_the_same_night(self):
        self.write("program.cpp", PROGRAM)
        self.assertEqual(os.system(f"c++ -O1 -o {self.dir}/program {self.dir}/program.cpp"), 0)
        for night in range(NIGHTS):
            self.record(night, random.Random(f"isa {night}").choice(ISAS))
        report = self.check("--split-by", "isa")
        self.assertEqual((report["events"], report["suspects"]), ([], []))
        self.record(NIGHTS, "avx2", MORE="1")
        found = {series for event in self.open_events(self.check(code=1)) for series in event["series"]}
        for metric in ("instructions", "allocations", "allocated_bytes"):
            self.assertTrue(any(f"whole_command {metric}" in series for series in found), found)


if __name__ == "__main__":
    unittest.main()
