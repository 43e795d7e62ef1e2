"""assay check --pack: the same verdict from the archive alone, and every change of it found."""

import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import tarfile
import unittest

from assay_case import AssayCase

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEY = "gemm/dtype=f32/m=8"


def ustar(members):
    """An archive of these files, byte for byte as assay writes it."""
    out = b""
    for name, content in sorted(members.items()):
        head = bytearray(512)
        for at, text in ((0, name), (100, "000644 "), (108, "000000 "), (116, "000000 "), (124, f"{len(content):011o} "),
                         (136, "00000000000 "), (148, " " * 8), (156, "0"), (257, "ustar\x0000"), (329, "000000 "),
                         (337, "000000 ")):
            head[at:at + len(text)] = text.encode()
        head[148:156] = f"{sum(head):06o}\0 ".encode()
        out += bytes(head) + content + bytes(-len(content) % 512)
    return out + bytes(1024) + bytes(-(len(out) + 1024) % 10240)


def with_sums(members):
    members = {name: content for name, content in members.items() if name != "SHA256SUMS"}
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(members.items()))
    return {**members, "SHA256SUMS": sums.encode()}


class Pack(AssayCase):
    def setUp(self):
        super().setUp()
        self.pack = self.dir / "p.tar"

    def record(self, key=KEY, value=2e9, samples=30, **more):
        """2e9 FLOP in samples of a second: an interval of no width around 2 GFLOP/s."""
        return {"schema": 2, "key": key, "family": key.split("/")[0], "status": "ok",
                "ranks": [{"rank": 0, "host": "node-a", "device": "CPU", "median": 1.0}],
                "samples": {"unit": "s", "values": [1.0] * samples, "at": [], "count": samples},
                "metrics": [{"name": "throughput", "value": value, "unit": "FLOP/s", "ci95": [value, value],
                             "better": "higher", "work": 2e9}], **more}

    def floors(self, at_least=1e9, **more):
        self.write("f.json", {"schema": 1, "floors": [
            {"key": "gemm/*", "metric": "throughput", "unit": "FLOP/s", "at_least": at_least, "protocol": {},
             "source": "a test", "required": True, **more}]})

    def packed(self, *runs, code=0, words=()):
        """Packs the runs; the process."""
        done = self.assay("check", *runs, "--floors", "f.json", "--pack", "p.tar", *words)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(sorted(self.dir.glob("*.tmp")), [])
        return done

    def members(self):
        with tarfile.open(self.pack) as archive:
            return {member.name: archive.extractfile(member).read() for member in archive.getmembers()}

    def forge(self, **changed):
        """The pack with other files, its sums fitting."""
        members = self.members()
        for name, content in changed.items():
            members[name] = content if isinstance(content, bytes) else content.encode()
        self.pack.write_bytes(ustar(with_sums(members)))

    def all_forms(self, *words):
        """Exit code, text, JSON and JUnit of a check."""
        done = self.assay("check", *words, "--json=o.json", "--junit", "o.xml")
        return done.returncode, done.stdout, (self.dir / "o.json").read_bytes(), (self.dir / "o.xml").read_bytes()

    def found(self, *says, name="p.tar"):
        """The one line with which a damaged pack is refused."""
        return self.refused("check", name, code=4, says=["p.tar: ", *says])

    def test_the_pack_alone_gives_the_same_verdict(self):
        self.run_dir(self.record(), self.record("gemm/dtype=f32/m=9", labels={"a": "é\x1b<&>"}), "{torn", name="runs/a",
                     run={"started": "2026-01-01T12:00:00Z", "environment": {"hostnames": ["node-a"]}})
        self.run_dir(self.record(), name="b", run={"started": "2026-01-02T12:00:00Z"})
        for at_least, more, code in ((1e9, {}, 0), (3e9, {}, 1), (1e9, {"key": "peak/*", "required": False}, 3)):
            with self.subTest(code=code):
                self.floors(at_least, **more)
                plain = self.all_forms("runs/a", "b", "--floors", "f.json")
                self.assertEqual(plain[0], code)
                packing = self.packed("b", "runs/a", code=code, words=["--json=o.json", "--junit", "o.xml"])
                self.assertEqual(packing.stdout, plain[1])
                self.assertEqual((self.dir / "o.json").read_bytes(), plain[2])
                for name in ("runs", "b", "f.json"):
                    (self.dir / name).rename(self.dir / f"{name}.away")
                self.assertEqual(self.all_forms("p.tar"), plain)
                members = self.members()
                self.assertEqual([members[f"verdict.{form}"] for form in ("txt", "json", "xml")],
                                 [plain[1].encode(), *plain[2:]])
                for name in ("runs", "b", "f.json"):
                    (self.dir / f"{name}.away").rename(self.dir / name)

    def test_the_archive_is_an_ordinary_tar_and_always_the_same(self):
        self.floors()
        self.run_dir(self.record(), name="r", run={"id": "x", "version": "0.1"})
        self.packed("r")
        first = self.pack.read_bytes()
        os.utime(self.dir / "f.json", (1, 1))
        self.packed("r")   # and a pack may be replaced
        self.assertEqual(self.pack.read_bytes(), first)
        listed = subprocess.run(["tar", "tvf", "p.tar", "--numeric-owner"], cwd=self.dir, capture_output=True, text=True,
                                check=True, env={**os.environ, "TZ": "UTC"}).stdout.splitlines()
        self.assertEqual([line.split()[-1] for line in listed], [
            "SHA256SUMS", "floors/f.json", "manifest.json", "runs/1/r/records.jsonl", "runs/1/r/run.json", "verdict.json",
            "verdict.txt", "verdict.xml"])
        for line in listed:
            self.assertRegex(line, r"^-rw-r--r-- 0/0 +\d+ 1970-01-01 00:00 ")
        subprocess.run(["tar", "xf", "../p.tar"], cwd=self.write("un/x", "").parent, check=True)
        subprocess.run(["sha256sum", "--quiet", "--strict", "-c", "SHA256SUMS"], cwd=self.dir / "un", check=True)
        self.assertEqual(self.all_forms("un/runs/1/r", "--floors", "un/floors/f.json"), self.all_forms("p.tar"))
        manifest = json.loads((self.dir / "un/manifest.json").read_text())
        judge = manifest["judged_by"]
        self.assertEqual(judge["sha256"], hashlib.sha256(pathlib.Path(self.binary).read_bytes()).hexdigest())
        self.assertTrue(judge["version"] and judge["build_id"])
        self.assertEqual(manifest["runs"][0], {"folder": "runs/1/r", "id": "x", "version": "0.1", "build_id": "",
                                               "sha256": None})
        self.assertEqual((manifest["injected"], manifest["exit_code"], manifest["floors"]), (False, 0, "floors/f.json"))

    def test_a_measured_run(self):
        done = self.assay("run", "launch", "--set", "launch.op=fork_join", "--out", "m")
        self.assertEqual(done.returncode, 0, done.stderr)
        [record] = self.records("m")
        self.assertGreater(record["metrics"][0]["work"], 0)
        self.assertTrue(record["samples"]["series"])   # more samples than a line holds
        self.floors(None, key="launch/*", metric="latency", unit="s", at_most="1 s")
        self.write("f.json", (self.dir / "f.json").read_text().replace('"at_least": null, ', ""))
        self.packed("m")
        shutil.rmtree(self.dir / "m")
        done = self.assay("check", "p.tar")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "assay: p.tar: every byte as packed; 1 of 1 judged figures computed again from "
                                      "their samples; the same verdict\n")
        manifest = json.loads(self.members()["manifest.json"])
        self.assertEqual(manifest["runs"][0]["sha256"], manifest["judged_by"]["sha256"])   # the same program
        series = next(name for name in self.members() if "/series/" in name)
        samples = json.loads(self.members()[series])
        samples["values"] = [value / 2 for value in samples["values"]]
        self.forge(**{series: json.dumps(samples)})
        self.found("m/records.jsonl line 1: latency is ", "but its samples give")

    def test_every_changed_byte_is_found(self):
        self.floors()
        self.run_dir(self.record())
        self.packed("r")
        whole = self.pack.read_bytes()
        draw = random.Random(19)
        places = {draw.randrange(len(whole)) for _ in range(200)}
        for at in range(0, len(whole), 512):   # each part of each header, contents and padding, and the end
            if whole[at + 257:at + 262] == b"ustar":
                places |= {at + part for part in (0, 99, 100, 108, 116, 124, 136, 148, 154, 155, 156, 157, 257, 263, 265,
                                                  297, 329, 337, 345, 499, 500, 511)}
            places |= {at, at + 511}
        changed = self.dir / "c" / "p.tar"
        changed.parent.mkdir()
        for at in sorted(places):
            with self.subTest(byte=at):
                changed.write_bytes(whole[:at] + bytes([whole[at] ^ draw.randrange(1, 256)]) + whole[at + 1:])
                self.found(name="c/p.tar")
        for size in [*range(512, len(whole), 512), len(whole) - 1]:
            with self.subTest(size=size):
                changed.write_bytes(whole[:size])
                says = self.found(name="c/p.tar")
                if not any(whole[size - 1024:size]):   # only zeros at its end are missing, or a file of zeros is cut
                    continue
                self.assertIn(f"cut short after {size} bytes", says)
        for more in (b"\0" * 512, b"x" * 512, b"x", whole):
            changed.write_bytes(whole + more)
            self.found(name="c/p.tar")

    def test_a_changed_file_is_named(self):
        self.floors()
        self.run_dir(self.record())
        self.packed("r")
        for name, content in self.members().items():
            if name == "SHA256SUMS":
                continue
            members = self.members()
            whole = self.pack.read_bytes()
            members[name] = content.replace(b"1", b"2", 1) if b"1" in content else content + b" "
            self.pack.write_bytes(ustar(members))
            self.found(f'"{name}" is not the file whose SHA-256 stands in SHA256SUMS')
            self.pack.write_bytes(whole)

    def test_forged_files_with_fitting_sums_are_found(self):
        self.floors(3e9)
        self.run_dir(self.record())
        self.packed("r", code=1)
        whole = self.pack.read_bytes()
        members = self.members()
        self.assertEqual(ustar(with_sums(members)), whole)   # what forge() makes is a pack as assay writes it
        verdict = {name: members[name].decode() for name in members if name.startswith("verdict")}
        manifest = members["manifest.json"].decode()
        for changed, says in (
                ({"verdict.txt": verdict["verdict.txt"].replace("FAIL", "PASS")}, "verdict.txt is not what its runs"),
                ({"verdict.json": verdict["verdict.json"].replace('"fail"', '"pass"')}, "verdict.json is not what"),
                ({"verdict.xml": verdict["verdict.xml"].replace("failure", "success")}, "verdict.xml is not what"),
                ({"manifest.json": manifest.replace('"exit_code": 1', '"exit_code": 0')}, "the exit code is not what"),
                ({"floors/f.json": members["floors/f.json"].replace(b"3000000000.0", b"1000000000.0")}, "verdict.json is"),
                ({"manifest.json": manifest.replace('"version": "', '"version": "9')}, "byte "),
                ({"manifest.json": manifest.replace('"sha256"', '"sha255"')}, "byte "),
                ({"more.txt": "x"}, "byte ")):
            with self.subTest(says=says, changed=list(changed)):
                self.pack.write_bytes(whole)
                self.forge(**changed)
                self.found(says)
        # The whole verdict of a better record: figure, verdict and sums fit each other, the samples do not.
        self.run_dir(self.record(value=4e9), name="better/r")
        better = self.assay("check", "better/r", "--floors", "f.json", "--json=o.json", "--junit", "o.xml")
        self.assertEqual(better.returncode, 0)
        self.pack.write_bytes(whole)
        self.forge(**{"runs/1/r/records.jsonl": (self.dir / "better/r/records.jsonl").read_bytes(),
                      "verdict.txt": better.stdout, "verdict.json": (self.dir / "o.json").read_bytes(),
                      "verdict.xml": (self.dir / "o.xml").read_bytes(),
                      "manifest.json": manifest.replace('"exit_code": 1', '"exit_code": 0')})
        self.found("r/records.jsonl line 1: throughput is 4000000000 [4000000000, 4000000000], but its samples give "
                   "2000000000")

    def test_another_build_that_judges_otherwise_is_named(self):
        self.floors()
        self.run_dir(self.record())
        self.packed("r")
        members = self.members()
        own = json.loads(members["manifest.json"])["judged_by"]
        old = members["manifest.json"].decode().replace(own["build_id"], "0123").replace(own["version"], "0.0.1")
        self.forge(**{"manifest.json": old})
        self.assertEqual(self.assay("check", "p.tar").returncode, 0)   # another build, the same verdict
        self.forge(**{"manifest.json": old, "verdict.txt": "PASS, in other words\n"})
        self.found("Assay 0.0.1 (build 0123) judged it", own["version"], own["build_id"], "verdict.txt differs")

    def test_injected_faults(self):
        self.floors()
        self.run_dir(self.record(flags=["injected:slow-rank"], comparable=False))
        self.packed("r", code=1)
        self.assertEqual(self.assay("check", "p.tar").returncode, 1)
        other = self.assay("check", "p.tar", "--injected")
        self.assertEqual(other.returncode, 0, other.stderr)
        self.assertIn("judged by other terms than the packed verdict, which is not compared", other.stderr)
        self.packed("r", words=["--injected"])
        self.assertEqual(self.all_forms("p.tar"), self.all_forms("r", "--floors", "f.json", "--injected"))
        self.assertIn("; the same verdict", self.assay("check", "p.tar", "--injected").stderr)

    def test_other_floors(self):
        self.floors()
        self.run_dir(self.record())
        self.packed("r")
        self.floors(3e9)
        plain = self.all_forms("r", "--floors", "f.json")
        self.assertEqual(plain[0], 1)
        self.assertEqual(self.all_forms("p.tar", "--floors", "f.json"), plain)
        self.assertIn("not compared", self.assay("check", "p.tar", "--floors", "f.json").stderr)
        self.refused("check", "p.tar", "--floors", "nowhere", says="nowhere")

    def test_runs_of_one_name_copies_and_paths(self):
        self.floors()
        for number, folder in enumerate(("a/r", "b/r", "c/r")):
            self.run_dir(self.record(labels={"n": str(number)}), name=folder, run={"started": f"2026-01-0{number + 1}"})
        shutil.copytree(self.dir / "b/r", self.dir / "a/z")
        words = ["c/r", "./b/../b/r/", "a/z", "a/r", "a/r"]
        plain = self.all_forms(*words, "--floors", "f.json")
        self.packed(*words)
        self.assertEqual(self.all_forms("p.tar"), plain)
        self.assertEqual(sorted({name.split("/")[1] + name.split("/")[2] for name in self.members() if name.startswith("runs")}),
                         ["1r", "2z", "3r", "4r"])
        done = subprocess.run([self.binary, "check", "--floors", "../../f.json", "--pack", "../../p2.tar", "."],
                              cwd=self.dir / "c/r", capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("  r/records.jsonl line 1", self.assay("check", "p2.tar").stdout)

    def test_golden_runs(self):
        """Their figures have no `work`: they are taken as recorded, which is said."""
        (self.dir / "f.json").write_bytes((ROOT / "tests/runs/floors/pass.json").read_bytes())
        runs = [ROOT / "tests/runs" / name for name in ("micro-base-1", "fleet", "resumed", "training-1", "ranks", "hostile")]
        plain = self.all_forms(*runs, "--floors", "f.json")
        self.packed(*runs, code=plain[0])
        self.assertEqual(self.all_forms("p.tar"), plain)
        self.assertRegex(self.assay("check", "p.tar").stderr,
                         r"; 0 of \d+ judged figures computed again from their samples \(as recorded: .*throughput")

    def test_what_cannot_be_packed(self):
        self.floors()
        self.run_dir(self.record(value=2.1e9))
        self.refused("check", "r", "--floors", "f.json", "--pack", "p.tar", code=4,
                     says=["r/records.jsonl line 1: throughput is 2100000000 ", "its samples give 2000000000"])
        lost = self.record()
        lost["samples"] = {"values": [], "series": "series/lost.json", "count": 300}
        self.run_dir(lost)
        self.refused("check", "r", "--floors", "f.json", "--pack", "p.tar", code=4, says="series/lost.json")
        lost["samples"]["series"] = "../../f.json"
        self.run_dir(lost)
        self.refused("check", "r", "--floors", "f.json", "--pack", "p.tar", code=2, says="outside the run")
        self.run_dir(self.record(), name="n" * 200)
        self.refused("check", "n" * 200, "--floors", "f.json", "--pack", "p.tar", code=4, says="cannot be put into")
        self.refused("check", "nowhere", "--floors", "f.json", "--pack", "p.tar", says="nowhere")
        self.assertEqual(list(self.dir.glob("p.tar*")), [])

    def test_no_file_of_the_users_is_touched(self):
        self.floors()
        self.run_dir(self.record())
        words = ["check", "r", "--floors", "f.json", "--pack"]
        for name in ("f.json", "r/run.json"):
            before = (self.dir / name).read_bytes()
            self.refused(*words, name, says=[name, "is left as it is"])
            self.assertEqual((self.dir / name).read_bytes(), before)
        (self.dir / "link").symlink_to("nowhere")
        self.refused(*words, "link", says="is left as it is")
        self.refused(*words, "r", says="is left as it is")
        self.refused(*words, "/dev/full", says="is left as it is")
        self.refused(*words, "no/p.tar", says="no folder no")
        self.refused(*words, "-", says="needs a file")
        self.packed("r")
        cut = self.pack.read_bytes()[:2048]
        self.pack.write_bytes(cut)
        self.refused(*words, "p.tar", says="no whole pack")
        self.assertEqual(self.pack.read_bytes(), cut)

    def test_a_full_disk_leaves_nothing_behind(self):
        self.floors()
        self.run_dir(self.record())
        done = subprocess.run(["sh", "-c", 'ulimit -f 4; exec "$0" check r --floors f.json --pack p.tar', self.binary],
                              cwd=self.dir, capture_output=True, text=True)
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertRegex(done.stderr, r"\Aassay: cannot write p\.tar: .*\n\Z")
        self.assertEqual(done.stdout, "")
        self.assertEqual(list(self.dir.glob("p.tar*")) + list(self.dir.glob(".*")), [])
        self.packed("r")
        before = self.pack.read_bytes()
        subprocess.run(["sh", "-c", 'ulimit -f 4; exec "$0" check r --floors f.json --pack p.tar', self.binary],
                       cwd=self.dir, capture_output=True)
        self.assertEqual(self.pack.read_bytes(), before)

    def test_what_is_no_pack(self):
        self.floors()
        self.run_dir(self.record())
        self.packed("r")
        for content in (b"", b"text", b"\0" * 10240, b"x" * 10240):
            self.write("x.tar", content)
            self.refused("check", "x.tar", says="x.tar is neither a run directory nor a pack")
        with tarfile.open(self.dir / "x.tar", "w", format=tarfile.USTAR_FORMAT) as other:
            other.add(self.dir / "f.json", "f.json")
        self.refused("check", "x.tar", says="x.tar is no pack of assay check: it has no manifest.json")
        with tarfile.open(self.dir / "x.tar", "w", format=tarfile.USTAR_FORMAT) as other:
            other.add(self.dir / "f.json", "../f.json")
        self.refused("check", "x.tar", code=4, says='"../f.json" is refused')
        for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT):   # packed again by another program
            members = self.members()
            with tarfile.open(self.dir / "x.tar", "w", format=form) as other:
                for name in sorted(members):
                    self.write("m", members[name])
                    other.add(self.dir / "m", name)
            self.refused("check", "x.tar", code=4, says="x.tar: byte ")
        self.refused("check", "p.tar", "r", "--floors", "f.json", says="a pack is checked alone")
        self.refused("check", "p.tar", "p.tar", says="a pack is checked alone")
        self.refused("check", "p.tar", "--pack", "q.tar", says="is a pack already")
        self.refused("check", "r", "--pack", "p.tar", says="--floors is required")
        self.refused("check", "nowhere.tar", says="--floors is required")

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs root, to mount")
    def test_read_only_media(self):
        self.floors()
        self.run_dir(self.record())
        self.packed("r")
        self.write("media/x", "")
        shutil.copy(self.pack, self.dir / "media")
        done = subprocess.run(
            ["unshare", "-m", "sh", "-ec", 'mount --bind media media && '
             'mount -o remount,bind,ro media && ! touch media/y 2>/dev/null && cd media && exec "$0" check p.tar',
             self.binary], cwd=self.dir, capture_output=True, text=True)
        if done.stderr.startswith(("unshare:", "mount:")):
            self.skipTest("cannot mount here")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, self.assay("check", "p.tar").stdout)

    @unittest.skipUnless(shutil.which("ssh-keygen"), "no ssh-keygen")
    def test_signing_as_the_docs_show(self):
        page = (ROOT / "docs/floors.md").read_text()
        blocks = [block for block in re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL) if "ssh-keygen" in block]
        self.assertEqual(len(blocks), 1)
        self.floors()
        self.run_dir(self.record())
        self.packed("r")
        self.pack.rename(self.dir / "micro.tar")
        env = {**os.environ, "ASSAY": str(pathlib.Path(self.binary).resolve())}
        script = 'set -e; assay() { "$ASSAY" "$@"; }\n'
        done = subprocess.run(["sh", "-c", script + blocks[0]], cwd=self.dir, env=env, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Good \"assay\" signature for acceptance@example.org", done.stdout)
        [verify] = [line for line in blocks[0].splitlines() if "-Y verify" in line]
        changed = bytearray((self.dir / "micro.tar").read_bytes())
        changed[-1] ^= 1
        (self.dir / "micro.tar").write_bytes(changed)
        done = subprocess.run(["sh", "-c", verify], cwd=self.dir, capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
