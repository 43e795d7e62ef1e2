"""Whether "Steady" tells quiet runs from disturbed ones, beside an independent reader of /proc/stat, and whether clean runs
of the plan `quick` are free of bad findings.
usage: steady_test.py RUNS [CLASS...]"""
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../cli"))
from assay_case import AssayCase  # noqa: E402

RUNS = int(sys.argv.pop(1)) if len(sys.argv) > 1 and sys.argv[1].isdigit() else 1
CPUS = sorted(os.sched_getaffinity(0))
QUIET = 0.04   # CPUs that others use; a record is disturbed from 0.05
PROTOCOL = {"max_seconds": "3s", "min_samples": 20, "target_relative_ci": 1e-6}
MEMORY = {"family": "memory", "op": "triad", "bytes": "4MiB", "protocol": PROTOCOL}
TRAINING = {"family": "transformer", "model": "gpt2-tiny", "micro_batch": 8, "seq": 64, "threads": 1, "protocol": PROTOCOL}
CASES = [TRAINING, MEMORY, *([{**TRAINING, "ranks": 2}] if len(CPUS) > 1 else [])]


def busy_seconds():
    """CPU time since boot that all processes used on this process's CPUs, or that the hypervisor took there."""
    with open("/proc/stat") as file:
        lines = dict(line.split(maxsplit=1) for line in file)
    ticks = 0
    for cpu in CPUS:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, lines[f"cpu{cpu}"].split()[:8])
        ticks += user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK")


def waited_seconds():
    """CPU time of this process's children, and of theirs, that have ended and were waited for."""
    times = os.times()
    return times.children_user + times.children_system


class Steady(AssayCase):
    def watch(self, case):
        """Runs a case; how many CPUs others would have used in its timed window if all that they used during the run
        fell into it, its record, and the answer "Steady"."""
        others = busy_seconds() - waited_seconds()
        done, [record] = self.measure(case)
        others = busy_seconds() - waited_seconds() - others
        self.assertEqual(done.returncode, 0, done.stderr)
        return others / record["outside_cpu"]["seconds"], record, self.report_of("out")["answers"]["steady"]

    def test_quiet_runs_are_not_amber(self):
        quiet, seen = 0, []
        for _ in range(3 * RUNS):
            others, record, steady = self.watch(CASES[quiet % len(CASES)])
            seen.append(f"{others:.3f}")
            if others >= QUIET:
                continue
            self.assertEqual(steady["state"], "good", f"others used {others:.3f} CPUs, but {steady['text']}")
            quiet += 1
            if quiet == RUNS:
                print("CPUs used by others:", *seen, flush=True)
                return
        self.skipTest(f"this machine was never quiet for long: others used less than {QUIET} CPUs in {quiet} runs, "
                      f"not in {RUNS} ({', '.join(seen)})")

    def beside_loops(self, code):
        """Runs a case beside busy loops on half of the CPUs: their process ids, how many CPUs still others used,
        and what watch() returns."""
        half = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(max(1, len(CPUS) // 2))]
        try:
            watched = self.watch(MEMORY)
            waited = waited_seconds()
        finally:
            for loop in half:
                loop.kill()
                loop.wait()
        rest = watched[0] - (waited_seconds() - waited) / watched[1]["outside_cpu"]["seconds"]
        return {loop.pid for loop in half}, rest, *watched

    def test_busy_loops_on_half_of_the_cpus_are_amber_and_named(self):
        loops = {"constant": "while True: pass",
                 "bursts": "import time\nwhile True:\n  end = time.monotonic() + 0.3\n  while time.monotonic() < end: pass\n"
                           "  time.sleep(0.3)"}
        for name, code in loops.items():
            with self.subTest(name):
                for attempt in range(3):
                    pids, rest, others, record, steady = self.beside_loops(code)
                    self.assertGreater(others, 0.02 * len(CPUS))
                    self.assertGreater(record["outside_cpu"]["cpus"], 0.02 * len(CPUS))
                    self.assertEqual(steady["state"], "warn")
                    named = pids & {process["pid"] for process in record["outside_cpu"]["processes"]}
                    if named or rest < 0.2 * len(CPUS):
                        break
                else:
                    self.skipTest("others kept the CPUs so busy that the loops were not among the busiest processes")
                self.assertTrue(named, record["outside_cpu"])
                self.assertTrue(any(f"pid {pid}:" in steady["text"] for pid in named), steady["text"])
                self.assertIn("Only lower bounds: memory triad", steady["text"])
                page = (self.dir / "out/report.html").read_text()
                self.assertIn('<header class="band warn">', page)
                self.assertIn(f"pid {min(named)}:", page)


class Quick(AssayCase):
    def test_clean_runs_have_no_bad_finding(self):
        for number in range(RUNS):
            disturbed = []
            for _ in range(3):
                start = time.monotonic()
                done = self.assay("run", "quick", "--device", "cpu", "--out", f"quick-{number}-{len(disturbed)}", timeout=900)
                self.assertEqual(done.returncode, 0, done.stderr)
                out = f"quick-{number}-{len(disturbed)}"
                rules = self.diagnosis(out)
                steady = self.report_of(out)["answers"]["steady"]
                print(f"quick in {time.monotonic() - start:.0f} s; steady: {steady['text']};",
                      {name: rule["state"] for name, rule in rules.items() if rule["state"] != "not_judged"}, flush=True)
                bad = [rule["evidence"] for rule in rules.values() if rule["state"] == "bad"]
                if not bad:
                    break
                self.assertEqual(steady["state"], "warn", f"an undisturbed run: {bad}")
                disturbed.append(steady["text"])
            else:
                self.skipTest(f"this machine is too busy: {disturbed}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
