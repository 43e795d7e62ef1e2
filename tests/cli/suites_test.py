"""`assay run` with memory, collective and launch: records, checks, faults and exit codes."""

import unittest

from assay_case import AssayCase

QUICK = {"max_seconds": 0.1, "warmup_seconds": 0.01, "min_samples": 6}


class Suites(AssayCase):
    def run_plan(self, entry, *words):
        return self.measure(entry, words=words, protocol=QUICK)

    def test_memory_keys_figures_and_what_does_not_apply(self):
        done, records = self.run_plan({"family": "memory", "op": ["read", "triad", "latency"], "bytes": "64KiB",
                                       "store": ["nontemporal", "auto"], "threads": "core"})
        self.assertEqual(done.returncode, 0, done.stderr)
        status = {record["key"]: record["status"] for record in records}
        self.assertEqual(status["memory/op=read/bytes=65536/store=nontemporal/threads=core"], "skipped")
        self.assertEqual(status["memory/op=triad/bytes=65536/store=auto/threads=core"], "ok")
        triad = next(r for r in records if "op=triad" in r["key"] and "store=auto" in r["key"])
        self.assertIn(triad["labels"]["store"], ("plain", "nontemporal"))
        self.assertEqual(triad["protocol"]["cache"], "hot")
        self.assertGreater(triad["metrics"][0]["value"], 0)

    def test_memory_a_flipped_bit_fails(self):
        done, records = self.run_plan({"family": "memory", "op": "copy", "bytes": "64KiB"}, "--inject", "bit-flip")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(records[0]["status"], "failed")
        self.assertEqual(records[0]["checks"][0]["value"], 1)

    def test_launch(self):
        done, records = self.run_plan({"family": "launch"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(records), 3)
        for record in records:
            self.assertIn(record["status"], ("ok", "skipped"))

    def test_collective_one_rank_has_no_bus_bandwidth(self):
        done, records = self.run_plan({"family": "collective", "op": ["all_reduce", "send_recv"], "bytes": 1000,
                                       "dtype": "bf16", "inplace": [False, True]})
        self.assertEqual(done.returncode, 0, done.stderr)
        for record in records:
            if record["params"]["op"] == "send_recv" and record["params"]["inplace"]:
                self.assertEqual((record["status"], record["reason"]), ("skipped", "send_recv has no in-place form"))
                continue
            figures = self.metrics(record)
            self.assertIsNone(figures["busbw"])
            self.assertGreater(figures["algbw"], 0)

    def test_collective_a_wrong_sum_names_its_rank(self):
        done, records = self.run_plan({"family": "collective", "op": "all_reduce", "bytes": 4096}, "--ranks", "2",
                                      "--inject", "wrong-sum")
        if done.returncode == 2 and "libopenmpi" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 1, done.stderr)
        check = records[0]["checks"][0]
        self.assertEqual((check["name"], check["passed"], check["value"]), ("wrong_elements", False, 1))
        self.assertTrue(check["detail"][0].startswith("rank 1: element 512 is "), check["detail"])


if __name__ == "__main__":
    unittest.main()
