"""assay report of several machines: which is the fastest, which the cheapest, and what is too close to tell."""

import csv
import json
import re
import unittest

from assay_case import AssayCase

# The speed of each machine relative to p5.48xlarge, and its price per hour.
MACHINES = {"p5.48xlarge": (1, 55.04), "p4de.24xlarge": (0.55, 27.45), "a3-megagpu-8g": (1.08, 87.83)}


class Ranking(AssayCase):
    def machine(self, kind, number=0, factor=1.0, **record):
        speed = 20_000 * MACHINES[kind][0] * factor
        training = {"schema": 2, "key": "llama/model=x", "family": "llama", "params": {"model": "x"}, "status": "ok",
                    "device": "cuda", "metrics": [{"name": "throughput", "value": speed, "unit": "tokens/s"},
                                                  {"name": "mfu", "value": 0.4, "unit": "1"}], **record}
        product = {**training, "key": "gemm/m=1", "family": "gemm", "params": {"m": 1},
                   "metrics": [{"name": "throughput", "value": speed * 1e9, "unit": "FLOP/s"}]}
        return self.run_dir(training, product, name=f"{kind}-{number}", run={
            "started": "2026-11-20T00:00:00Z", "labels": {"instance_type": kind},
            "environment": {"hostnames": [f"{kind}-{number}"], "gpus": [{"name": kind}] * 8}})

    def machines(self, factors):
        return [self.machine(kind, number, factor) for kind in MACHINES for number, factor in enumerate(factors)]

    def prices(self, currency="USD"):
        return self.write("prices.json", {"schema": 1, "source": "contract", "date": "2026-11-14", "currency": currency,
                                          "prices": [{"instance_type": kind, "gpu": "x", "gpus": 8, "price": price}
                                                     for kind, (_, price) in MACHINES.items()]})

    def ranked(self, runs):
        done = self.assay("report", *runs, "--prices", self.prices(), "--json=out.json", "--html", "out.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads((self.dir / "out.json").read_text())["ranking"], done.stdout

    def test_three_machines_end_in_two_sentences_and_a_table(self):
        ranking, out = self.ranked(self.machines([0.99, 1, 1.01]))
        for text in (out, (self.dir / "out.html").read_text(), " ".join(ranking["sentences"])):
            self.assertIn("Fastest: a3-megagpu-8g, 8.0 % ahead of p5.48xlarge.", text)
            self.assertIn("p4de.24xlarge, 9.3 % below p5.48xlarge; it stays cheapest while p5.48xlarge costs more than "
                          "49.9 USD/h.", text)
        self.assertIn("The oldest of these prices is of 2026-11-14, 6 days old.", out)
        self.assertNotIn("instance_type=p5", (self.dir / "out.html").read_text())   # the name says it
        found = {one["machine"]: one for one in ranking["machines"]}
        self.assertEqual({name: one["machines"] for name, one in found.items()}, {name: 3 for name in MACHINES})
        for name, (speed, price) in MACHINES.items():
            training, product = found[name]["cases"]
            self.assertAlmostEqual(training["speed"]["value"], 20_000 * speed, delta=3)
            self.assertLess(training["speed"]["low"], training["speed"]["value"])
            self.assertAlmostEqual(training["relative"]["value"], speed / 1.08)
            self.assertAlmostEqual(training["usd_per_million"]["on_demand"], price / 3600 * 1e6 / (20_000 * speed), places=3)
            self.assertAlmostEqual(training["mfu"], 0.4)
            self.assertIsNone(product["mfu"])
        # The machines of a case stand below each other.
        self.assertEqual([(row["case"], row["machine"]) for row in self.tables()["cost_summary"]],
                         [(case, kind) for case in ("llama/model=x", "gemm/m=1") for kind in MACHINES])

    def test_the_sides_of_compare_have_the_same_table(self):
        runs = {kind: [self.machine(kind, number, factor) for number, factor in enumerate((0.99, 1, 1.01))]
                for kind in ("p5.48xlarge", "a3-megagpu-8g")}
        base, head = runs.values()
        ranking, _ = self.ranked([*base, *head])
        tables = self.tables()
        done = self.assay("compare", "--base", *base, "--head", *head, "--prices", self.prices(), "--json=out.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Fastest: a3-megagpu-8g, 8.0 % ahead of p5.48xlarge.", done.stdout)
        self.assertEqual(self.tables()["ranking_1"], tables["ranking_1"])
        self.assertEqual(json.loads((self.dir / "out.json").read_text())["ranking"], ranking)
        # One kind of machine on both sides has no ranking.
        self.assay("compare", "--base", base[0], "--head", base[1], "--json=out.json")
        self.assertNotIn("ranking_1", self.tables())

    def test_a_users_own_command_ranks_machines(self):
        """By the figure that it prints, or by its time; never one against the other."""
        def commands(kind, rate, seconds, **record):
            def of(name, metrics):
                return {"schema": 2, "key": f"command/name={name}", "family": "command", "params": {"name": name},
                        "status": "ok", "device": "cpu", "metrics": metrics, **record}
            wall = {"name": "wall_time", "value": seconds, "unit": "s", "better": "lower"}
            return self.run_dir(of("finetune", [{"name": "rate", "value": rate, "unit": "tokens/s", "better": "higher"}, wall]),
                                of("build", [wall]), name=kind, run={
                                    "started": "2026-11-20T00:00:00Z", "labels": {"instance_type": kind},
                                    "environment": {"hostnames": [kind], "gpus": [{"name": kind}] * 8}})
        runs = [commands("p5.48xlarge", 2000, 50), commands("p4de.24xlarge", 1000, 40)]
        ranking, out = self.ranked(runs)
        found = {one["machine"]: {case["case"]: case for case in one["cases"]} for one in ranking["machines"]}
        self.assertEqual(ranking["not_ranked"], [])
        fast, slow = found["p5.48xlarge"], found["p4de.24xlarge"]
        self.assertAlmostEqual(slow["command/name=finetune"]["relative"]["value"], 0.5)   # a rate: more is better
        self.assertAlmostEqual(fast["command/name=build"]["relative"]["value"], 0.8)      # a time: less is better
        self.assertAlmostEqual(fast["command/name=finetune"]["usd_per_million"]["on_demand"], 55.04 / 3600 * 1e6 / 2000, places=6)
        self.assertEqual(fast["command/name=build"]["per"], "run")
        self.assertAlmostEqual(fast["command/name=build"]["usd_per_million"]["on_demand"], 55.04 / 3600 * 50, places=6)
        self.assertIn("finetune", out)
        # A machine on which the command failed has no place, and the reason is said.
        runs[1] = commands("p4de.24xlarge", 1000, 40, status="failed", reason="ended with code 3")
        ranking, out = self.ranked(runs)
        self.assertEqual([one["cases"] for one in ranking["machines"]], [[], []])
        self.assertIn("failed", " ".join(ranking["not_ranked"]))

    def assert_of_one_kind(self, unit, figures, text):
        """No figure of this unit lies further than 2 % from that of a kind, whose machines differ by 1 %."""
        # An EFLOP of the product takes a thousand times as long as a million tokens.
        known = [20_000 * speed if unit == "tokens/s" else times * price / 3600 * 1e6 / (20_000 * speed)
                 for speed, price in MACHINES.values() for times in (1, 1000)]
        self.assertTrue(figures, text)
        for figure in figures:
            self.assertTrue(any(abs(figure / one - 1) < 0.02 for one in known), (unit, figure, text))

    def test_no_figure_is_of_several_kinds(self):
        def quantities(node):
            if isinstance(node, dict) and {"value", "unit"} <= node.keys():
                yield node["value"], node["unit"]
            for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
                yield from quantities(child)

        of = {kind: [self.machine(kind, number, factor) for number, factor in enumerate((0.99, 1, 1.01))] for kind in MACHINES}
        p5, p4de, a3 = of.values()
        files = ["--prices", self.prices(), "--json=out.json", "--html", "out.html", "--md", "out.md"]
        for words in (["report", *p5, *p4de, *a3], ["report", *p5, *p4de], ["report", *a3, *p5],
                      ["compare", "--base", *p5, "--head", *p4de, *a3], ["compare", "--base", *p4de, *a3, "--head", *p5]):
            with self.subTest(words):
                done = self.assay(*words, *files)
                self.assertIn(done.returncode, (0, 1), done.stderr)
                found = list(quantities(json.loads((self.dir / "out.json").read_text())))
                for unit in ("tokens/s", "USD"):
                    self.assert_of_one_kind(unit, [value for value, one in found if one == unit], "JSON")
                for name, text in (("terminal", done.stdout), *((name, (self.dir / name).read_text()) for name in ("out.html", "out.md"))):
                    self.assert_of_one_kind("tokens/s", [float(one.replace(",", "")) for one in re.findall(
                        r"(?<!– )\b([\d,.]+) tokens/s(?! – )", text)], name)
                if words[0] == "report":
                    self.assay("export", "csv", *words[1:], "--out", "out.csv")
                    with open(self.dir / "out.csv", newline="") as file:
                        rows = list(csv.DictReader(file))
                    self.assert_of_one_kind("tokens/s", [float(row["value"]) for row in rows if row["unit"] == "tokens/s"], "CSV")

    def test_steps_and_what_to_change_name_the_machine(self):
        waiting = {"spans": {"forward": 0.05, "data_wait": 0.05}, "metrics": [
            {"name": "throughput", "value": 1e4, "unit": "tokens/s"}, {"name": "step_time", "value": 0.1, "unit": "s"}]}
        runs = [self.machine(kind, **waiting) for kind in ("p5.48xlarge", "a3-megagpu-8g")]
        for given, names in ((runs, [" – p5.48xlarge", " – a3-megagpu-8g"]), (runs[:1], [""])):
            done = self.assay("report", *given, "--html", "out.html", "--json=out.json")
            page = (self.dir / "out.html").read_text()
            for name in names:
                case = "train x" + name
                self.assertIn(f">{case}</a><td><svg", page)   # the bar of its step
                self.assertRegex(done.stdout, rf"(?m)^data-starved +bad +{case} ")
            self.assertRegex(done.stdout, rf"Limit +train x({'|'.join(names)}): 50 % of a step waits for data")

    def test_one_machine_each_is_called_a_tie(self):
        _, out = self.ranked(self.machines([1]))
        self.assertIn("Fastest: a tie of a3-megagpu-8g and p5.48xlarge", out)
        self.assertIn("one machine each: below 15 % is no finding", out)
        self.assertIn("while p5.48xlarge costs more than 49.9 USD/h", out)

    def test_a_machine_that_failed_or_lacks_a_case_is_named(self):
        runs = [self.machine("p5.48xlarge"), self.machine("a3-megagpu-8g"),
                self.machine("p4de.24xlarge", status="failed", reason="wrong losses")]
        ranking, out = self.ranked(runs)
        self.assertIn("Not ranked: p4de.24xlarge: failed", out)
        self.assertEqual([len(one["cases"]) for one in ranking["machines"] if one["machine"] == "p4de.24xlarge"], [0])

    def test_runs_of_one_machine_have_no_ranking(self):
        runs = [self.machine("p5.48xlarge", number) for number in range(2)]
        done = self.assay("report", *runs, "--json=out.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("ranking", json.loads((self.dir / "out.json").read_text()))
        self.assertNotIn("Which machine?", done.stdout)

    def test_the_bill_and_only_one_section(self):
        runs = self.machines([1])
        done = self.assay("report", *runs, "--prices", self.prices(), "--tokens", "100M", "--only", "ranking", "--json=out.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        (bill,) = [table for section in json.loads((self.dir / "out.json").read_text())["sections"]
                   for table in section["tables"] if table["id"] == "ranking_bill_1"]
        for row in bill["rows"]:
            speed, price = MACHINES[row["machine"]]
            self.assertAlmostEqual(row["seconds"]["value"], 1e8 / (20_000 * speed), places=3)
            self.assertAlmostEqual(row["usd_on_demand"]["value"], price * 1e8 / (20_000 * speed) / 3600, places=3)
        self.assertNotIn("The figures that matter", done.stdout)
        for words, said in ((["--only", "rankin"], "did you mean"), (["--tokens", "0"], "at least 1")):
            done = self.assay("report", *runs, *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(said, done.stderr)

    def test_two_currencies_are_refused_wherever_prices_are_read(self):
        runs = self.machines([1])
        euros = {"instance_type": "p4de.24xlarge", "gpu": "x", "gpus": 8, "price": 25, "currency": "EUR"}
        contract = {"schema": 1, "source": "contract", "date": "2026-11-14", "currency": "USD"}
        table = "InstanceType,AcceleratorName,AcceleratorCount,Price,Currency,Source,Date\n"
        files = {
            self.prices("EUR"): "prices.json: /currency",
            self.write("mixed.json", {**contract, "prices": [{**euros, "instance_type": "p5.48xlarge", "currency": "USD"},
                                                             euros]}): "mixed.json: /prices/1/currency",
            self.write("mixed.csv", table + "p5.48xlarge,x,8,55.04,USD,contract,2026-11-14\n"
                                            "p4de.24xlarge,x,8,25,EUR,contract,2026-11-14\n"): "mixed.csv: line 3"}
        for file, place in files.items():
            for words in (["report", *runs, "--json=out.json"], ["compare", *runs[:2]],
                          ["size", "llama-1b", "--tokens", "1B", "--count", "8"], ["project", *runs, "--ranks", "16"],
                          ["diagnose", *runs], ["export", "csv", *runs, "--out", "out.csv"], ["list", "prices"]):
                with self.subTest(place, command=words[0]):
                    self.refused(*words, "--prices", file, says=[place, '"EUR"', "costs are in USD; convert the price"])
        self.assertFalse((self.dir / "out.json").exists())


if __name__ == "__main__":
    unittest.main()
