"""Checkpoints of one run continue in another, on any number of ranks; those that do not fit are refused in one line."""

import os
import shutil
import subprocess
import unittest

from assay_case import AssayCase

BATCH = 8  # samples of a step, over all ranks


class Checkpoints(AssayCase):
    def train(self, out, code=0, ranks=1, **members):
        """Trains for 10 steps or a few more; the record."""
        entry = {"family": "transformer", "model": "gpt2-tiny", "seq": 32, "threads": 1, "scaling": "strong",
                 "micro_batch": 2, "accumulate": BATCH // 2, "save_every": 4,
                 "protocol": {"max_seconds": "20ms", "warmup_seconds": "1ms"}, **members}
        done, records = self.measure(entry, words=("--ranks", str(ranks)), out=out)
        if done.returncode == 2 and "libopenmpi" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return records[-1]

    def index(self, out):
        found, = (self.dir / out / "checkpoints").glob("*.ckpt")
        return found

    def shards(self, out):
        index = self.index(out)
        return sorted(index.parent.glob(index.name + ".*/rank-*"))

    def refused_from(self, file, *says, **changes):
        sets = {"model": "gpt2-tiny", "seq": 32, "scaling": "strong", "micro_batch": 2, "accumulate": BATCH // 2,
                "from": file, **changes}
        words = [word for name, value in sets.items() for word in ("--set", f"transformer.{name}={value}")]
        self.refused("run", "transformer", *words, says=[str(file), *says])

    def test_one_rank_goes_on_as_two_as_four_and_as_one(self):
        record = self.train("run-0")
        for number, ranks in enumerate((2, 4, 1), 1):
            saved = record["labels"]["checkpoint"]
            record = self.train(f"run-{number}", ranks=ranks, **{"from": str(self.index(f"run-{number - 1}"))})
            self.assertEqual(record["status"], "ok", record["reason"])
            self.assertTrue(record["labels"]["from"].startswith(saved + ", of "), record["labels"]["from"])
            self.assertNotEqual(record["labels"]["checkpoint"], saved)
            for check in ("losses_after_resume_that_differ", "losses_that_do_not_repeat"):
                self.assertTrue(self.by_name(record["checks"])[check]["passed"])
        self.assertIn("of 4 ranks", record["labels"]["from"])
        losses = record["telemetry"]["loss"]["values"]
        straight = self.train("straight", protocol={"min_samples": len(losses), "max_seconds": "1ms",
                                                    "warmup_seconds": 0})["telemetry"]["loss"]["values"]
        self.assertGreater(len(losses), 10)
        for step, (own, other) in enumerate(zip(losses, straight), 1):
            self.assertAlmostEqual(own, other, delta=2e-4 * other, msg=f"step {step}")

    def test_a_run_to_quality_goes_on_with_its_losses(self):
        env = self.mini_model({"value": 2.6})
        entry = {"family": "transformer", "model": "mini", "mode": "quality", "runs": 1, "save_every": 3, "threads": 1}
        done, (one,) = self.measure(entry, out="one", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        done, records = self.measure({**entry, "from": str(self.index("one"))}, out="two", env=env,
                                     words=("--ranks", "2"))
        if done.returncode == 2 and "libopenmpi" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)
        two, = records
        self.assertTrue(two["labels"]["from"].startswith(one["labels"]["checkpoint"] + ", of 1 rank,"))
        losses, others = (record["telemetry"]["loss"]["values"] for record in (one, two))
        step = int(one["labels"]["checkpoint"].split()[1].rstrip(","))
        self.assertEqual(losses[:step], others[:step])
        for own, other in zip(losses[step:], others[step:]):
            self.assertAlmostEqual(own, other, delta=2e-4 * other)
        refused = self.assay("run", "transformer", "--set", "transformer.model=mini", "--set",
                             f"transformer.from={self.index('one')}", env=env)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn('another mode: "quality", not "throughput"', refused.stderr)

    def test_equal_states_have_equal_checksums(self):
        first, second = (self.train(out)["labels"]["checkpoint"] for out in ("a", "b"))
        steps = [int(label.split()[1].rstrip(",")) for label in (first, second)]
        self.assertEqual(steps[0] == steps[1], first == second)
        other = self.train("c", seed=1)["labels"]["checkpoint"]
        self.assertNotEqual(first.split("checksum")[1], other.split("checksum")[1])

    def test_the_key_of_a_case_without_it_is_as_before(self):
        record = self.train("a")
        self.assertNotIn("from", record["params"])
        record = self.train("b", **{"from": "none"})
        self.assertNotIn("from=", record["key"])

    def test_what_does_not_fit_is_refused(self):
        self.train("a")
        index = self.index("a")
        self.refused_from(index, 'another model: "gpt2-tiny", not "gpt2-124m"', model="gpt2-124m")
        self.refused_from(index, 'another global batch: "8", not "16"', "scaling=strong", accumulate=BATCH)
        self.refused_from(index, 'another precision: "f32", not "bf16"', precision="bf16")
        self.refused_from(index, "other data: ", seq=64)
        self.refused_from(self.dir / "none.ckpt", "cannot be opened: No such file")
        self.refused_from(self.shards("a")[0].parent, "is a folder")
        text = index.read_bytes()
        for changed, says in ((text[:-1], "is truncated"), (b"x" * 100, "is not an Assay checkpoint"), (b"", "is empty"),
                              (text[:8] + b"\x09" + text[9:], "has format 9; this build reads 1 to 2"),
                              (text[:50] + b"?" + text[51:], "is damaged (its header)")):
            self.refused_from(self.write("changed.ckpt", changed), says)
        self.refused_from(self.write("alone.ckpt", text), "lacks its file ", "alone.ckpt.", "No such file")
        shard, = self.shards("a")
        os.truncate(shard, shard.stat().st_size - 100)
        self.refused_from(index, "is truncated: ", "rank-0 has ")

    def test_a_flipped_bit_is_found_on_every_rank(self):
        self.train("a")
        shard, = self.shards("a")
        text = bytearray(shard.read_bytes())
        text[5000] ^= 4
        shard.write_bytes(text)
        for ranks in (1, 2):
            record = self.train("b", code=4, ranks=ranks, **{"from": str(self.index("a"))})
            self.assertEqual(record["status"], "error")
            self.assertIn("is damaged (in weights/", record["reason"])
            self.assertEqual(len(record["reason"].splitlines()), 1)

    def test_a_full_disk_ends_the_case_and_leaves_the_last_checkpoint(self):
        self.train("a")
        kept = {path: path.read_bytes() for path in (self.index("a"), *self.shards("a"))}
        blocks = self.shards("a")[0].stat().st_size // 512 - 1   # too few for the next
        run = self.dir / "a"
        lines = (run / "records.jsonl").read_text()
        (run / "records.jsonl").write_text("")
        done = subprocess.run(["sh", "-c", f'ulimit -f {blocks}; exec "$0" run --resume a', self.binary], cwd=self.dir,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 4, done.stderr)
        reason = self.records("a")[-1]["reason"]
        self.assertRegex(reason, "cannot write .*rank-0: File too large")
        self.assertEqual({path: path.read_bytes() for path in (self.index("a"), *self.shards("a"))}, kept)
        self.assertTrue(lines)
        self.assertEqual(self.assay("run", "--resume", "a").returncode, 0)
        shutil.rmtree(run)


if __name__ == "__main__":
    unittest.main()
