"""`assay run dataloader`: the user's own folders, shards and token files; caches, workers, damaged files."""

import io
import os
import struct
import subprocess
import tarfile
import unittest

from assay_case import AssayCase

QUICK = {"max_seconds": 0.2, "warmup_seconds": 0.01, "min_samples": 6}


class Dataloader(AssayCase):
    def run_plan(self, entry, *words):
        return self.measure({"family": "dataloader", **entry}, words=words, protocol=QUICK)

    def one(self, entry, *words, code=0, status="ok"):
        done, records = self.run_plan(entry, *words)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        self.assertEqual([record["status"] for record in records], [status], records)
        return records[0]

    def check(self, record, name):
        return self.by_name(record["checks"])[name]

    def metric(self, record, name):
        return self.by_name(record["metrics"])[name]

    def shard(self, images, name="train-000.tar"):
        path = self.dir / name
        with tarfile.open(path, "w") as tar:
            for number, image in enumerate(images):
                for ending, content in ((".jpg", image.read_bytes()), (".cls", str(number % 2).encode())):
                    member = tarfile.TarInfo(f"sample{number:05}{ending}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
        return path

    # --- bad paths ---------------------------------------------------------------------------------------------------

    def refuse(self, path, *says):
        self.refused("run", "dataloader", "--set", f"dataloader.path={path}", "--device", "cpu", "--out", "out",
                     says=[str(path), *says])
        self.assertFalse((self.dir / "out").exists())

    def test_paths_without_data_give_one_line(self):
        self.refuse(self.dir / "missing", "no such file or folder")
        empty = self.dir / "empty"
        empty.mkdir()
        self.refuse(empty, "holds no images")
        self.write("texts/class-0/readme.txt", "no picture")
        self.refuse(self.dir / "texts", "holds no images")
        self.refuse(self.write("notes.txt", "no picture"), "neither a folder nor a .tar shard")
        # Any file could hold tokens, but without a name that says so it is a mistake and not a skip.
        self.refuse(self.write("archive.zip", b"x" * 8192), "neither a folder nor a .tar shard")
        self.refuse(self.write("shards/a.tar", b"\0" * 10240), "a.tar")
        self.refuse(self.write("half.tar", b"not a tar" * 100), "half.tar")
        self.refused("run", "dataloader", "--set", "dataloader.path=", "--out", "out", says="empty")

    def test_a_missing_path_is_reported_once_for_both_kinds(self):
        plan = self.plan({"family": "dataloader", "kind": ["image", "token"], "stage": ["read", "all"], "path": "gone",
                          "workers": [1, 2]})
        self.refused("run", plan, "--device", "cpu", "--out", "out", says=["gone", "and 7 more cases"])

    def test_an_unreadable_folder(self):
        folder = self.image_folder(2)
        self.dir.chmod(0o755)
        folder.chmod(0)
        self.addCleanup(folder.chmod, 0o755)
        # Root can read everything, so become another user.
        other = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        try:
            done = subprocess.run([self.binary, "run", "dataloader", "--set", f"dataloader.path={folder}", "--device",
                                   "cpu", "--dry-run"], cwd="/", capture_output=True, text=True, timeout=60, **other)
        except PermissionError:
            self.skipTest("another user cannot run this build")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn(f"{folder}: cannot read this folder: Permission denied", done.stderr)

    def test_bad_token_files(self):
        def refuse(path, says):
            self.refused("run", "dataloader", "--set", "dataloader.kind=token", "--set", f"dataloader.path={path}",
                         "--device", "cpu", "--out", "out", says=[str(path), says])
        refuse(self.dir / "gone.bin", "no such file")
        refuse(self.write("empty.bin", b""), "empty")
        refuse(self.write("odd.bin", b"x" * 8193), "not a whole number of uint16 tokens")
        refuse(self.write("short.bin", b"x" * 200), "fewer than one window")
        refuse(self.write("shard.tar", b"x" * 10240), "shard.tar")

    # --- runs --------------------------------------------------------------------------------------------------------

    def test_every_stage_of_a_folder_with_one_and_two_workers(self):
        folder = self.image_folder(48)
        done, records = self.run_plan({"path": str(folder), "stage": ["read", "decode", "augment", "batch", "all"],
                                       "workers": [1, 2]})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(records), 10)
        for record in records:
            self.assertEqual(record["status"], "ok", record)
            self.assertTrue(all(check["passed"] for check in record["checks"]), record["checks"])
            figure = self.metric(record, "throughput")
            self.assertEqual(figure["unit"], "img/s")
            self.assertGreater(figure["value"], 0)
            self.assertEqual(record["conditions"]["images"], "48")
            self.assertEqual(record["protocol"]["form"], "window")
            reads = record["params"]["stage"] in ("read", "all")
            self.assertEqual(record["protocol"]["cache"], "warm" if reads else "none")
            self.assertFalse([flag for flag in record["flags"] if "page cache" in flag], record["flags"])
        self.assertIn("pixel_error_levels", [check["name"] for check in records[-1]["checks"]])

    def test_shards(self):
        images = self.generated_images()
        (self.dir / "shards").mkdir()
        self.shard(images[:20], "shards/train-000.tar")
        self.shard(images[20:40], "shards/train-001.tar")
        record = self.one({"path": str(self.dir / "shards"), "stage": "all", "workers": 2})
        self.assertEqual(record["conditions"]["images"], "40")
        record = self.one({"path": str(self.dir / "shards" / "train-001.tar"), "stage": "read", "workers": 1})
        self.assertEqual(record["conditions"]["images"], "20")

    def test_a_truncated_shard_fails_and_is_named(self):
        path = self.shard(self.generated_images()[:20])
        path.write_bytes(path.read_bytes()[:-40000])
        record = self.one({"path": str(path), "stage": "read", "workers": 1}, code=1, status="failed")
        self.assertIn("train-000.tar", self.check(record, "damaged_archives")["detail"][0])

    def test_cold_reads_come_from_the_disk_or_are_skipped(self):
        folder = self.image_folder(16)
        done, records = self.run_plan({"path": str(folder), "stage": ["read", "decode"], "workers": 1, "cache": "cold"})
        self.assertEqual(done.returncode, 0, done.stderr)
        read, decode = records
        self.assertEqual((decode["status"], read["params"]["stage"]), ("skipped", "read"))
        self.assertIn("no cache to be cold", decode["reason"])
        if read["status"] == "ok":
            self.assertEqual((read["protocol"]["cache"], read["protocol"]["cold_by"]), ("cold", "O_DIRECT"))
        else:
            self.assertIn("cold reads are not possible", read["reason"])

    def test_tokens(self):
        for name, form, width in (("text.bin", "<H", 2), ("text.u32.bin", "<I", 4)):
            path = self.write(name, b"".join(struct.pack(form, i * 7919 % 50257) for i in range(65537)))
            done, records = self.run_plan({"kind": "token", "path": str(path), "stage": ["read", "decode", "batch", "all"],
                                           "workers": 2})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual([record["status"] for record in records], ["ok", "skipped", "ok", "ok"], records)
            self.assertEqual(records[3]["protocol"]["token_bytes"], str(width))
            self.assertEqual(self.metric(records[3], "throughput")["unit"], "tokens/s")
            self.assertTrue(self.check(records[3], "wrong_tokens")["passed"])

    def test_a_path_of_the_other_kind_is_skipped(self):
        folder = self.image_folder(2)
        record = self.one({"kind": "token", "path": str(folder), "stage": "all", "workers": 1}, status="skipped")
        self.assertIn("holds images, not tokens", record["reason"])
        tokens = self.write("text.bin", b"x" * 8192)
        record = self.one({"path": str(tokens), "stage": "all", "workers": 1}, status="skipped")
        self.assertIn("holds tokens, not images", record["reason"])

    # --- damage ------------------------------------------------------------------------------------------------------

    def damaged(self, count, broken):
        folder = self.image_folder(count)
        for image in sorted(folder.glob("*/*.jpg"))[:broken]:
            image.write_bytes(image.read_bytes()[:1000])
        return folder

    def test_damage_under_the_limit_is_counted_named_and_skipped(self):
        folder = self.damaged(120, 1)
        record = self.one({"path": str(folder), "stage": "all", "workers": 2})
        check = self.check(record, "corrupt_images_share")
        self.assertTrue(check["passed"])
        self.assertAlmostEqual(check["value"], 1 / 120)
        self.assertEqual(check["limit"], 0.01)
        self.assertEqual(check["detail"], ["class-0/000.jpg: truncated: no end-of-image marker"])

    def test_damage_over_the_limit_fails(self):
        folder = self.damaged(60, 3)
        (folder / "class-1" / "empty.jpg").touch()
        for stage in ("decode", "all"):
            record = self.one({"path": str(folder), "stage": stage, "workers": 2}, code=1, status="failed")
            check = self.check(record, "corrupt_images_share")
            self.assertFalse(check["passed"])
            self.assertAlmostEqual(check["value"], 4 / 61)
            self.assertEqual(len(check["detail"]), 4)
            self.assertIn("class-1/empty.jpg: empty file", check["detail"])

    def test_no_usable_image(self):
        folder = self.damaged(4, 4)
        record = self.one({"path": str(folder), "stage": "all", "workers": 1}, code=4, status="error")
        self.assertIn("cannot be used", record["reason"])

    def test_injected_damage_is_found(self):
        record = self.one({"path": str(self.image_folder(20)), "stage": "all", "workers": 1}, "--inject",
                          "corrupt-image", code=1, status="failed")
        self.assertEqual(len(self.check(record, "corrupt_images_share")["detail"]), 1)


if __name__ == "__main__":
    unittest.main()
