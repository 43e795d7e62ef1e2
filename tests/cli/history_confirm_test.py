"""`assay history confirm`: which figure it judges, and how long its events stay open. The nights are made up; what is
confirmed are commands that print figures."""

import json
import math
import re
import unittest

from history_case import CASES, HistoryCase, date, noise, slower

FIRST, OTHER = CASES[0], CASES[1]


def name_of(case):
    return f"node1: imported/{case} throughput"


def lines(**figures):
    """A command that prints a line for each case."""
    unit = {name: value if isinstance(value, tuple) else (value, "FLOP/s", "higher") for name, value in figures.items()}
    return "; ".join(f"echo {name} {value} {one} {better}" for name, (value, one, better) in unit.items())


class Figure(HistoryCase):
    def setUp(self):
        super().setUp()
        self.add(range(42), step=slower)
        self.id = next(one["id"] for one in self.check()["suspects"] if one["series"] == name_of(FIRST))

    def confirm(self, good, bad, *words, code):
        return self.history("confirm", self.id, "--good", good, "--bad", bad, *words, code=code)

    def test_of_many_lines_only_the_suspects_case_counts(self):
        with self.subTest("only another case is slower"):
            done = self.confirm(lines(**{FIRST: 100, OTHER: 100}), lines(**{FIRST: 100, OTHER: 50}), code=0)
            self.assertIn(f"{name_of(FIRST)}: same", done.stdout)
            dismissed = {one["series"]: one["dismissed"] for one in self.check()["suspects"]}
            self.assertEqual(dismissed, {name_of(case): case == FIRST for case in CASES[:3]}, "the others were not measured")
        with self.subTest("another case is faster"):
            done = self.confirm(lines(**{OTHER: 50, FIRST: 100}), lines(**{OTHER: 100, FIRST: 80}), code=1)
            self.assertRegex(done.stdout, rf"{name_of(FIRST)}: slower \(-20\.0 %\)")
            [event] = self.open_events(self.check(code=1))
            self.assertEqual((event["series"], event["confirmed"]), ([name_of(FIRST)], True))
            self.assertAlmostEqual(event["changes"][0]["measured"]["value"], -0.2)
            self.assertEqual(event["changes"][0]["measured"]["night"], date(41))

    def test_a_case_has_the_name_that_the_history_or_its_tool_gives_it(self):
        for name in (f"imported/{FIRST}", f"{FIRST}:throughput"):
            with self.subTest(name):
                self.confirm(lines(**{name: 100}), lines(**{name: 80}), code=1)

    def test_a_json_object_is_taken_by_the_suspects_metric(self):
        def printing(value, **members):
            return "echo '" + json.dumps({"throughput": value, "better": "higher", **members}) + "'"

        self.confirm(printing(100), printing(80), code=1)
        self.confirm(printing(100, case=FIRST, metric="throughput", unit="FLOP/s"), printing(80), "--metric", "throughput",
                     code=1)
        for members in ({"case": OTHER}, {"metric": "latency"}, {"unit": "s"}, {"better": "lower"}):
            with self.subTest(members):
                self.refused_to_judge(printing(100, **members), says=str(list(members)[0]))

    def refused_to_judge(self, command, *words, says=()):
        self.refused("history", "confirm", self.id, "--good", command, "--bad", command, *words, "--store", "h.db", says=says)

    def test_anything_else_is_refused_in_a_line_and_never_timed(self):
        foreign = {"context": {"num_cpus": 2}, "benchmarks": [{"name": FIRST, "real_time": 1.5, "time_unit": "ns"}]}
        (self.dir / "bench.json").write_text(json.dumps(foreign, indent=2))
        for output, says in (("cat bench.json", (FIRST, "real_time")), ("echo done", "done"), ("true", "nothing"),
                             (lines(**{OTHER: 100}), (FIRST, OTHER)),
                             (lines(**{FIRST: (1, "s", "lower")}), ("FLOP/s", "in s")),
                             (lines(**{FIRST: (1, "FLOP/s", "lower")}), "better when higher"),
                             ("echo '{\"latency\": 1, \"better\": \"higher\"}'", "throughput")):
            with self.subTest(output):
                self.refused_to_judge(output, says=says)
        self.refused_to_judge("touch ran", "--metric", "time", says="time")
        self.refused_to_judge("touch ran", "--metric", OTHER, says=(OTHER, FIRST))
        self.refused_to_judge(lines(**{FIRST: 100, OTHER: 100}), "--metric", "unknown", says=FIRST)
        self.assertFalse((self.dir / "ran").exists())
        self.assertFalse([one for one in self.check()["events"]], "nothing was stored")

    def test_an_undecided_one_is_not_stored(self):
        before = self.history("export", "--format", "jsonl").stdout
        one = lines(**{FIRST: 100})
        done = self.confirm(one, f"sleep 1; {one}", "--budget", "100ms", code=3)
        self.assertIn("Undecided: nothing is stored", done.stdout)
        self.assertEqual(self.history("export", "--format", "jsonl").stdout, before)

    def test_two_metrics_of_a_case_are_told_apart(self):
        self.add(range(42), step=slower, metric=("bandwidth", "FLOP/s", "higher"))
        self.refused_to_judge(lines(**{FIRST: 100}), says=f"{FIRST}:throughput")
        self.confirm(lines(**{f"{FIRST}:throughput": 100}), lines(**{f"{FIRST}:throughput": 80}), code=1)

    def test_wall_time_confirms_a_series_in_seconds(self):
        self.add(range(42), step=slower, metric=("seconds", "s", "lower"), store="s.db")
        done = self.history("confirm", "--good", "sleep 0.002", "--bad", "sleep 0.02", "--metric", "time", store="s.db",
                            code=1)
        self.assertIn("slower", done.stdout)


class Nights(HistoryCase):
    """25 nights whose noise is 4 %, and a step of a fifth in two cases on the 26th: more nights are needed to see it."""

    def setUp(self):
        super().setUp()
        self.next = 26
        self.add(range(26), step=self.noisy)
        self.id = next(one["id"] for one in self.check()["suspects"] if one["series"] == name_of(FIRST))
        self.history("confirm", self.id, "--good", lines(**{FIRST: 100}), "--bad", lines(**{FIRST: 80}), code=1)

    slow = (FIRST, OTHER)

    def noisy(self, machine, case, night):
        return 3 * noise(machine, case, night) + (math.log(0.8) if night >= 25 and case in self.slow else 0)

    def nights(self, count, code, states, **more):
        """Adds nights one by one; the states of the confirmed event after each."""
        found = []
        for night in range(self.next, self.next + count):
            self.add([night], step=self.noisy, at=date(night), **more)
            done = self.assay("history", "check", "--store", "h.db", "--json")
            [event] = [one for one in json.loads(done.stdout)["events"] if one["id"] == self.id]
            self.assertTrue(event["confirmed"])
            found.append((done.returncode, event["state"]))
        self.next += count
        self.assertEqual(found[-len(states):], [(code, state) for state in states])
        return event

    def test_it_stays_open_while_the_measured_figure_is_off(self):
        self.slow = (FIRST,)
        event = self.nights(12, 1, ["open"] * 12)
        self.assertEqual(event["series"], [name_of(FIRST)], "the other one was not measured, and is back")
        self.check("--new", code=0)
        with self.subTest("a night of luck"):
            self.slow = ()
            self.nights(1, 1, ["open"])
            self.slow = (FIRST,)
            self.nights(1, 1, ["open"])
        with self.subTest("the figures are back"):
            self.slow = ()
            event = self.nights(8, 0, ["recovered"] * 3)
            self.assertLessEqual(event["closed"], date(self.next - 1))
        with self.subTest("and so for a new analysis"):
            self.history("check", "--again")
            self.history("check", code=0)

    def test_what_was_not_measured_does_not_hold_it(self):
        self.slow = (OTHER,)
        self.nights(2, 0, ["recovered"])
        # After its fourth night, the other's step alarms by itself.
        self.add([self.next], step=self.noisy, at=date(self.next))
        [event] = self.open_events(self.check(code=1))
        self.assertIn(name_of(OTHER), event["series"])

    def test_it_waits_for_figures(self):
        """The series stops: nobody knows whether it is back."""
        self.slow = (FIRST,)
        others = [case for case in CASES if case != FIRST]
        event = self.nights(6, 1, ["open"] * 6, cases=others)
        self.assertEqual(event["series"], [name_of(FIRST)])

    def test_it_follows_a_renamed_case(self):
        renamed = [f"{case}-new" if case == FIRST else case for case in CASES]
        self.slow = (f"{FIRST}-new",)
        self.add([26], step=self.noisy, cases=renamed)
        self.next = 27
        self.history("store", "alias", f"imported/{FIRST}", f"imported/{FIRST}-new")
        self.assertEqual(self.nights(3, 1, ["open"] * 3, cases=renamed)["series"], [name_of(f"{FIRST}-new")])
        self.slow = ()
        self.nights(6, 0, ["recovered"], cases=renamed)

    def test_a_speed_up_is_open_until_it_is_gone(self):
        self.slow = ()
        self.add(range(26), step=lambda machine, case, night: 3 * noise(machine, case, night) +
                 (math.log(1.25) if night == 25 and case == FIRST else 0), store="f.db")
        [id] = [one["id"] for one in self.check(store="f.db")["suspects"] if one["series"] == name_of(FIRST)]
        self.history("confirm", id, "--good", lines(**{FIRST: 80}), "--bad", lines(**{FIRST: 100}), store="f.db")
        self.assertEqual([(one["kind"], one["state"]) for one in self.check(store="f.db")["events"]], [("faster", "open")])
        self.add(range(26, 32), step=self.noisy, store="f.db")
        self.assertEqual([one["state"] for one in self.check(store="f.db")["events"]], ["recovered"])

    def test_compacting_does_not_close_it(self):
        self.slow = (FIRST,)
        self.nights(12, 1, ["open"])
        self.history("store", "compact", "--keep", "5d")
        report = self.check(code=1)
        self.assertEqual([(one["id"], one["state"]) for one in report["events"]], [(self.id, "open")])
        self.history("ack", self.id, "--reason", "known")
        self.check(code=3)   # no series has 15 nights now


if __name__ == "__main__":
    unittest.main()
