"""assay report: the cost of results by shipped prices, price files and --price; refusals."""

import json
import unittest

from assay_case import AssayCase

CATALOGUE = "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice\n"


class CostReport(AssayCase):
    def priced(self, name="r", run=None, **members):
        """Writes a run of one training case."""
        record = {"schema": 1, "key": "llama/model=x", "family": "llama", "params": {"model": "x"}, "status": "ok",
                  "metrics": [{"name": "throughput", "value": 1000, "unit": "tokens/s", "ci95": [800, 1250]}]}
        record.update(members)
        return self.run_dir(record, name=name, run={"started": "2026-01-10T00:00:00Z", **(run or {})})

    def costs(self, *words):
        done = self.assay("report", *words, "--json=out.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.tables().get("cost", []), done.stdout

    def own(self, **price):
        entry = {"instance_type": "box", "price": 7.2, "source": "quote", "date": "2026-01-01", **price}
        return self.write("own.json", {"schema": 1, "prices": [{k: v for k, v in entry.items() if v is not None}]})

    def test_price_of_the_whole_machine(self):
        # 7.2 USD per hour, 1000 s per million tokens: 2 USD; at 1250 and 800 tokens/s 1.6 and 2.5 USD.
        rows, out = self.costs(self.priced(), "--price", "7.2")
        self.assertEqual(len(rows), 1)
        self.assertAlmostEqual(rows[0]["usd"]["value"], 2)
        self.assertAlmostEqual(rows[0]["usd"]["ci95"][0], 1.6)
        self.assertAlmostEqual(rows[0]["usd"]["ci95"][1], 2.5)
        self.assertEqual((rows[0]["per"], rows[0]["interval"], rows[0]["stands_for"], rows[0]["basis"]),
                         ("million tokens", "within-run", "one run", "--price"))
        self.assertIn("Cost per result", out)
        self.assertIn("2.0 USD", out)

    def test_without_a_price_says_how_to_give_one(self):
        rows, out = self.costs(self.priced())
        self.assertEqual(rows, [])
        self.assertIn("the run names no instance type", out)
        self.assertIn("--price USD_PER_HOUR", out)

    def test_shipped_prices_side_by_side_with_their_age(self):
        self.priced(run={"labels": {"instance_type": "p5.48xlarge", "region": "us-east-1"},
                          "environment": {"gpus": [{"name": "NVIDIA H100 80GB HBM3"}] * 8}}, device="cuda")
        rows, out = self.costs("r")
        self.assertEqual([row["basis"] for row in rows], ["on demand", "spot", "owned"])
        self.assertAlmostEqual(rows[0]["usd"]["value"], 55.04 / 3.6)
        for row in rows:
            self.assertTrue(row["source"] and row["date"] and row["warnings"])
        self.assertIn("more than 90 days older than the run", out)
        self.assertIn("1 of 8 GPUs used", out)

    def test_the_price_of_gpus_that_a_run_on_a_cpu_had_not(self):
        self.priced(run={"labels": {"instance_type": "p5.48xlarge"}})
        rows, out = self.costs("r")
        self.assertIn("the price is for 8 x H100, the run used none", rows[0]["warnings"])
        self.assertIn("the price is for 8 x H100, the run used none", out)

    def test_own_file_wins(self):
        self.priced(run={"labels": {"instance_type": "p5.48xlarge"}})
        self.own(instance_type="p5.48xlarge")
        rows, _ = self.costs("r", "--prices", "own.json")
        self.assertEqual([row["basis"] for row in rows], ["on demand"])
        self.assertAlmostEqual(rows[0]["usd"]["value"], 2)
        self.assertEqual(rows[0]["source"], "quote")
        self.assertEqual(rows[0]["warnings"], [])

    def test_a_catalogue_is_read_unchanged(self):
        self.write("gcp.csv", CATALOGUE + "a3-highgpu-8g,208.0,1872.0,,,,us-east4,us-east4-a,9.46,2.16\n"
                                          ",,,X100,8.0,X100,us-east4,us-east4-a,78.37,700.0\n")
        self.priced(run={"labels": {"instance_type": "a3-highgpu-8g", "region": "us-east4"},
                         "environment": {"gpus": [{"name": "NVIDIA X100 80GB"}] * 8}})
        rows, out = self.costs("r", "--prices", "gcp.csv")
        self.assertEqual([row["basis"] for row in rows], ["on demand", "spot"])
        self.assertAlmostEqual(rows[0]["price"]["value"], 87.83)
        self.assertIsNone(rows[1]["usd"]["value"])
        self.assertIn("placeholder 700.0", out)
        self.assertIn("its age is unknown", out)

    def test_a_placeholder_given_by_the_user_is_a_warning(self):
        rows, out = self.costs(self.priced(), "--price", "700")
        self.assertIsNotNone(rows[0]["usd"]["value"])
        self.assertIn("unknown price", out)

    def test_hostile_strings_stay_inert(self):
        evil = "\x1b[2J<script>alert(1)</script>\u202e|`x`"
        self.priced(run={"labels": {"instance_type": evil}})
        quoted = evil.replace('"', '""')
        self.write("own.csv", f'InstanceType,Price,Source,Date,Region\n"{quoted}",7.2,"{quoted}",2026-01-01,"{quoted}"\n')
        done = self.assay("report", "r", "--prices", "own.csv", "--md", "out.md")
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in (done.stdout, (self.dir / "out.md").read_text()):
            self.assertNotIn("\033", text)
            self.assertNotIn("\u202e", text)
        self.assertNotIn("<script>", (self.dir / "out.md").read_text())

    def test_equal_input_gives_equal_bytes(self):
        for host in "abc":
            self.priced(host, run={"environment": {"hostnames": [host]}})
        files = []
        for order in ("abc", "cabb"):
            self.assay("report", *order, "--price", "3", "--json=out.json")
            document = json.loads((self.dir / "out.json").read_text())
            files.append([s for s in document["sections"] if s["id"].startswith("cost")])
        self.assertEqual(files[0], files[1])
        self.assertEqual(files[0][1]["tables"][0]["rows"][0]["interval"], "between machines")

    def test_a_price_in_the_environment_counts_where_no_flag_is_given(self):
        self.priced()
        with_variable = lambda *words: self.assay("report", "r", *words, "--json=out.json", env={"ASSAY_PRICE": "7.2"})
        self.assertEqual(with_variable().returncode, 0)
        [row] = self.tables()["cost"]
        self.assertAlmostEqual(row["usd"]["value"], 2)
        self.assertIn("ASSAY_PRICE", json.dumps(row))
        with_variable("--price", "3.6")
        self.assertAlmostEqual(self.tables()["cost"][0]["usd"]["value"], 1)
        done = self.assay("report", "r", env={"ASSAY_PRICE": "much"})
        self.assertEqual(done.returncode, 2)
        self.assertIn('ASSAY_PRICE: "much"', done.stderr)

    def test_flags_without_a_valid_price(self):
        self.priced()
        for price in ("abc", "-1", "0", "nan", "inf", "", "12 EUR"):
            self.refused("report", "r", "--price", price, says="price")
        self.own()
        self.refused("report", "r", "--price", "1", "--prices", "own.json", says=["--prices", "--price"])
        self.refused("report", "r", "--prices", "nowhere.json", says="nowhere.json")
        self.refused("report", "r", "--prices", "r", says="r")
        self.refused("report", "r", "--pric", "1", says="--price")

    def test_files_without_a_valid_price(self):
        self.priced()
        for entry, says in (({"price": -1}, "/prices/0/price"), ({"price": 0}, "/prices/0/price"),
                            ({"price": None}, "price"), ({"source": None}, "source"), ({"date": None}, "date"),
                            ({"date": "soon"}, "/prices/0/date"), ({"currency": "EUR"}, "USD"),
                            ({"regoin": "x"}, "region")):
            self.own(**entry)
            self.refused("report", "r", "--prices", "own.json", says=["own.json", says])
        self.write("nan.json", '{"schema": 1, "prices": [{"instance_type": "box", "price": NaN}]}')
        self.refused("report", "r", "--prices", "nan.json", says="nan.json")
        self.write("own.csv", "InstanceType,Price,Source,Date\nbox,-1,q,2026-01-01\nbox,,q,2026-01-01\n")
        self.refused("report", "r", "--prices", "own.csv", says=["own.csv: line 2", "own.csv: line 3"], lines=2)
        self.write("own.csv", "InstanceType,Price\nbox,1\n")
        self.refused("report", "r", "--prices", "own.csv", says=["Source", "Date"], lines=2)
        self.write("own.csv", CATALOGUE + 'box,1,"2\n')
        self.refused("report", "r", "--prices", "own.csv", says="line 2")
        self.write("binary.csv", b"\xff\xfe\x00")
        self.refused("report", "r", "--prices", "binary.csv", says="binary.csv")
        self.write("empty.json", "")
        self.refused("report", "r", "--prices", "empty.json", says="empty")


if __name__ == "__main__":
    unittest.main()
