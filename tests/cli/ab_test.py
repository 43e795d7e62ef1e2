"""`assay ab`: a decision between two commands."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

from assay_case import AssayCase

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from testbed import wait_for  # noqa: E402


def prints(**members):
    return f"echo '{json.dumps(members)}'"


def rate(mean):
    """Prints a rate around `mean`, with a standard deviation of 2 %."""
    return ("python3 -c 'import json, random; "
            f"print(json.dumps({{\"rate\": {mean} * random.lognormvariate(0, 0.02), \"better\": \"higher\"}}))'")


def alive(mark):
    """Processes whose environment has this mark."""
    found = []
    for place in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in place.read_bytes():
                found.append(int(place.parent.name))
        except OSError:
            pass
    return found


class Ab(AssayCase):
    def ab(self, a, b, *words, code=0, env=None):
        """The JSON of a comparison."""
        done = self.assay("ab", "--a", a, "--b", b, "--json", *words, env=env)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def refused_ab(self, a, b, *words, says=(), code=2, lines=1):
        return self.refused("ab", "--a", a, "--b", b, *words, says=says, code=code, lines=lines)

    def test_figures_without_noise_are_decided_in_a_few_pairs(self):
        for a, b, better, verdict, code in ((100, 110, "higher", "faster", 0), (110, 100, "higher", "slower", 1),
                                            (100, 110, "lower", "slower", 1), (110, 100, "lower", "faster", 0),
                                            (100, 100, "lower", "same", 0), (100, 101, "higher", "same", 0)):
            with self.subTest(a=a, b=b, better=better):
                found = self.ab(prints(tokens=a, better=better), prints(tokens=b, better=better), "--metric", "tokens",
                                code=code)
                self.assertEqual((found["schema"], found["verdict"]), (1, verdict))
                self.assertAlmostEqual(found["ratio"], b / a if better == "higher" else a / b, 9)
                self.assertLess(found["pairs"], 20)
                self.assertLessEqual(found["low"], found["ratio"])
                self.assertGreaterEqual(found["high"], found["ratio"])
                if verdict == "same":
                    self.assertGreaterEqual(found["low"], 0.98)
                    self.assertLessEqual(found["high"], 1.02)
                elif verdict == "faster":
                    self.assertGreater(found["low"], 1)
                else:
                    self.assertLess(found["high"], 1)

    def test_the_json_says_what_was_asked_and_measured(self):
        a, b = prints(value=2, better="lower", unit="ms"), prints(value=1, better="lower", unit="ms")
        found = self.ab(a, b, "--metric", "latency", "--tolerance", "3%", "--error", "1%", "--seed", "5", "--budget", "1m")
        self.assertEqual(set(found), {"schema", "verdict", "ratio", "low", "high", "pairs", "commands", "metric", "tolerance",
                                      "error", "budget", "seed", "seconds", "cases", "one_sided"})
        self.assertEqual([found[name] for name in ("commands", "metric", "tolerance", "error", "budget", "seed")],
                         [{"a": a, "b": b}, "latency", 0.03, 0.01, 60, 5])
        [case] = found["cases"]
        self.assertEqual((case["name"], case["a"], case["b"], case["unit"], case["verdict"], case["pairs"]),
                         ("latency", 2, 1, "ms", "faster", found["pairs"]))

    def test_times_and_figures_with_noise(self):
        self.assertEqual(self.ab("sleep 0.02", "sleep 0.2", code=1)["verdict"], "slower")
        found = self.ab(rate(150), rate(100), "--metric", "rate", code=1)
        self.assertEqual(found["verdict"], "slower")
        self.assertLess(abs(found["ratio"] - 2 / 3), 0.05)

    def test_people_read_a_table(self):
        done = self.assay("ab", "--a", "echo sort 2 s lower", "--b", "echo sort 1 s lower", "--seed", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("sort", "2 s", "1 s", "+100.0 %", "B is faster", "seed 1", "tolerance 2.0 %"):
            self.assertIn(words, done.stdout)

    def order(self, *words):
        """In which order the sides ran."""
        (self.dir / "order").write_text("")
        found = self.ab("echo A >>order; " + prints(x=1, better="lower"), "echo B >>order; " + prints(x=1, better="lower"),
                        "--metric", "x", *words)
        return found["seed"], (self.dir / "order").read_text().split()

    def test_the_order_within_pairs_depends_on_the_seed_only(self):
        orders = [self.order("--seed", seed)[1] for seed in range(1, 5)]
        self.assertEqual(self.order("--seed", 1)[1], orders[0])
        self.assertGreater(len({tuple(one) for one in orders}), 1)
        for one in orders:
            self.assertEqual(one[:2], ["A", "B"])
            pairs = list(zip(one[2::2], one[3::2]))
            self.assertEqual(set(pairs), {("A", "B"), ("B", "A")})
        drawn, order = self.order()
        self.assertEqual(self.order("--seed", drawn), (drawn, order), "what is drawn is recorded")
        self.assertNotEqual(self.order()[0], drawn)

    def test_many_cases_of_lines(self):
        a, b = ("printf '# mine\\ncopy {} B/s higher\\nsort 5 s lower\\n{} 1 s lower\\n'".format(*words)
                for words in ((100, "old"), (80, "new")))
        found = self.ab(a, b, code=1)
        self.assertEqual((found["metric"], found["verdict"], found["one_sided"]), ("lines", "slower", ["old", "new"]))
        self.assertEqual([(one["name"], one["verdict"], round(one["ratio"], 6)) for one in found["cases"]],
                         [("copy", "slower", 0.8), ("sort", "same", 1)])
        self.assertAlmostEqual(found["ratio"], 0.8 ** 0.5, 6)
        for case in found["cases"]:
            self.assertLessEqual(case["pairs"], found["pairs"])
        one = self.ab(a, b, "--metric", "sort")
        self.assertEqual([case["name"] for case in one["cases"]], ["sort"])
        # More cases share the error rate, so each takes more pairs.
        self.assertLess(one["pairs"], self.ab(*["for i in $(seq 500); do echo $i 1 s lower; done"] * 2)["pairs"])
        self.assertEqual(self.ab(a, "sleep 0.05; " + b, "--metric", "time", code=1)["cases"][0]["name"], "time")

    def test_of_lines_only_the_cases_named_count(self):
        """sort is slower; parse and scan are not."""
        a, b = (f"echo sort {value} s lower; echo parse 1 s lower; echo scan 1 s lower" for value in (1, 2))
        found = self.ab(a, b, "--case", "parse", "--case", "scan", code=0)
        self.assertEqual([case["name"] for case in found["cases"]], ["parse", "scan"])
        self.ab(a, b, "--case", "sort", code=1)
        self.refused_ab(a, b, "--case", "parse", "--case", "gone", says=("A", "gone", "sort"))

    def test_every_case_of_a_known_tool_is_judged_in_one_comparison(self):
        def gbench(name, **seconds):
            entries = [{"name": case, "iterations": 9, "real_time": 7, "cpu_time": time, "time_unit": "s"}
                       for case, time in seconds.items()]
            return f"echo starts; cat {self.write(name, {'context': {'num_cpus': 2}, 'benchmarks': entries}).name}"

        a, b = gbench("a.json", parse=1, sort=2), gbench("b.json", parse=1, sort=3)
        found = self.ab(a, b, code=1)
        self.assertEqual([(one["name"], one["verdict"], one["unit"]) for one in found["cases"]],
                         [("parse", "same", "s"), ("sort", "slower", "s")])
        self.assertEqual((found["metric"], found["error"]), ("gbench", 0.05))
        self.assertEqual([one["name"] for one in self.ab(a, b, "--case", "parse", code=0)["cases"]], ["parse"])
        self.assertEqual(self.ab(a, b, "--case", "sort:real_time", code=0)["cases"][0]["name"], "sort:real_time")
        self.assertEqual(self.ab(a, b, "--metric", "gbench:sort:cpu_time", code=1)["verdict"], "slower")
        self.refused_ab(a, b, "--case", "gone", says=("gone", "parse"))
        self.refused_ab(a, "echo hello", says=("B", "gbench"))

    def test_a_case_is_never_timed(self):
        for command in ("true", "echo sort took 2 s"):
            with self.subTest(command):
                self.refused_ab(command, command, "--case", "sort", says=("A: its output", '--case "sort"', "--metric"))
        for metric in ("time", "rate"):
            self.refused_ab("true", "true", "--case", "sort", "--metric", metric, says=("--case", metric))

    def test_samples_of_one_run_count_as_their_median(self):
        found = self.ab("printf 'x 1 s lower\\nx 9 s lower\\nx 2 s lower\\n'", "echo x 2 s lower")
        self.assertEqual((found["verdict"], found["cases"][0]["a"]), ("same", 2))

    def test_wrong_flags(self):
        for words, says in ((("--tolerance", "3"), ["--tolerance", "3%"]), (("--tolerance", "0"), "--tolerance"),
                            (("--tolerance", "-1%"), "--tolerance"), (("--tolerance", "much"), "much"),
                            (("--error", "0"), "--error"), (("--error", "100%"), "--error"),
                            (("--budget", "0"), "--budget"), (("--budget", "-1s"), "--budget"),
                            (("--budget", "5 parsecs"), "parsecs"), (("--seed", "-1"), "--seed"),
                            (("--seed", "x"), "--seed"), (("--toleranc", "1%"), "--tolerance"), (("more",), "more")):
            with self.subTest(words):
                self.refused_ab("touch ran", "touch ran", *words, says=says)
                self.assertFalse((self.dir / "ran").exists())
        self.refused("ab", "--a", "true", says="--b")
        self.refused_ab("", "true", says="--a")
        self.refused_ab("true", " ", says="--b")

    def test_output_without_the_figure(self):
        good = prints(rate=1, better="higher")
        for a, b, says in (("true", good, ["A", "nothing"]), (good, "echo", ["B", "nothing"]),
                           (good, "echo fast", ["B", "fast"]), (good, "echo '[1]'", "B"),
                           (good, prints(rates=1, better="higher"), ['"rate"', '"rates"']),
                           (good, prints(rate="1", better="higher"), "number"), (good, prints(rate=1), "better"),
                           (good, prints(rate=1, better="up"), "better"), (good, prints(rate=0, better="higher"), "above 0"),
                           (good, prints(rate=-1, better="higher"), "above 0"), (good, "echo '{\"rate\": 1e999'", "B"),
                           (good, prints(rate=1, better="lower"), ["lower", "higher"]),
                           (good, prints(rate=1, better="higher", unit="B/s"), "B/s"),
                           (good, "echo x 1 s lower", '"rate"'), (good, "printf '\\377\\0{'", "B"),
                           (good, "python3 -c 'print(\"[\" * 100000)'", "B")):
            with self.subTest(b=b, a=a):
                self.refused_ab(a, b, "--metric", "rate", says=says)
        self.refused_ab("echo x 1 s", "echo x 1 s lower", "--metric", "lines", says=["A", "line 1"])
        self.refused_ab("true", "true", "--metric", "lines", says="A")
        self.refused_ab("echo y 1 s lower; echo x failed wrong sum", "echo y 1 s lower; echo x 1 s lower",
                        says=["x", "has no figure: failed wrong sum"])
        self.refused_ab("echo x 1 s lower", "echo y 1 s lower", says=["x", "y"])
        self.refused_ab("printf 'x 1 s lower\\nx 1 B lower\\n'", "echo x 1 s lower", says="several")

    def test_a_command_that_fails_is_named_with_what_it_said(self):
        self.refused_ab("true", "echo one >&2; echo two >&2; exit 3", says="", code=4, lines=3)
        done = self.assay("ab", "--a", "echo gone >&2; exit 3", "--b", "true", "--json")
        self.assertEqual((done.returncode, done.stdout), (4, ""))
        self.assertEqual(done.stderr.splitlines(), ["assay: ab: A ended with code 3: echo gone >&2; exit 3", "assay: gone"])
        self.assertIn("not found", self.refused_ab("true", "./nowhere", code=4, says="", lines=2))
        self.assertIn("SIGSEGV", self.refused_ab("kill -SEGV $$", "true", code=4))
        # After the warm-up, a missing figure is the command's failure too.
        fickle = "echo >>runs; if [ $(wc -l <runs) -gt 4 ]; then echo; else " + prints(rate=1, better="higher") + "; fi"
        self.refused_ab(fickle, fickle, "--metric", "rate", code=4, says="the last line")

    def test_the_budget(self):
        done = self.assay("ab", "--a", "sleep 60", "--b", "true", "--budget", "0.3s", "--json")
        found = json.loads(done.stdout)
        self.assertEqual((done.returncode, found["verdict"], found["pairs"], found["ratio"], found["low"], found["high"]),
                         (3, "undecided", 0, None, None, None))
        self.assertIn("one pair takes longer than the budget", done.stderr)
        done = self.assay("ab", "--a", "sleep 0.3", "--b", "sleep 0.3", "--budget", "3s")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn("undecided", done.stdout)
        self.assertIn("budget of 3 s", done.stderr)
        # What is known when it ends counts.
        lines = "printf 'slow {} s lower\\nnoisy %d s lower\\n' $(( $(od -An -N2 -tu2 /dev/urandom) + 1 ))"
        found = self.ab(lines.format(1), lines.format(2), "--budget", "5s", "--error", "0.1%", code=1)
        self.assertEqual([one["verdict"] for one in found["cases"]], ["slower", "undecided"])

    def test_nothing_is_left_behind(self):
        mark = f"ASSAY_AB_TEST={os.getpid()}-{time.monotonic_ns()}"
        env = dict([mark.split("=")])
        leaves = "sleep 600 & setsid sh -c 'sleep 601' & " + prints(x=1, better="lower")
        self.assertEqual(self.ab(leaves, leaves, "--metric", "x", env=env)["verdict"], "same")
        self.assertEqual(alive(mark), [])
        hangs = "setsid sleep 602 & trap '' TERM INT; sleep 603 & wait"
        self.assertEqual(self.ab(hangs, "true", "--budget", "0.5s", code=3, env=env)["pairs"], 0)
        self.assertEqual(alive(mark), [])
        for sent in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([self.binary, "ab", "--a", f"touch started; {hangs}", "--b", "true", "--json"],
                                       cwd=self.dir, env={**os.environ, **env}, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.kill)
            wait_for((self.dir / "started").exists, "the command to start")
            (self.dir / "started").unlink()
            process.send_signal(sent)
            out, err = process.communicate(timeout=30)
            self.assertEqual((process.returncode, json.loads(out)["verdict"]), (3, "undecided"), err)
            self.assertIn("interrupted", err)
            self.assertEqual(alive(mark), [])

    def test_commands_get_no_input_and_may_print_much(self):
        for command in ("cat", "head -c 100000000 /dev/zero; head -c 1000000 /dev/zero >&2"):
            found = self.ab(command, command, "--tolerance", "90%")
            self.assertEqual((found["metric"], found["verdict"]), ("time", "same"))
        much = "head -c 100000000 /dev/zero; echo; " + prints(x=1, better="lower")
        self.assertEqual(self.ab(much, much, "--metric", "x")["verdict"], "same")
        self.refused_ab(much, much, "--metric", "lines", says=["A", "too long"])


if __name__ == "__main__":
    unittest.main()
