"""The packing step of `./dev package`: equal folders give equal files, and the lists name all that is carried."""
import functools
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/package"))
import pack  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 1700000000
NAME = "assay-1.2.3-linux-x86_64"


@functools.cache
def owned_library():
    """A library here that a Debian package owns."""
    for line in subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout.splitlines():
        path = pathlib.Path(line.rpartition("=> ")[2])
        if path.name.startswith("libc.so.6") and pack.debian_owner(path):
            return path
    return None


@unittest.skipUnless(all(map(shutil.which, ("tar", "xz", "dpkg-query"))) and owned_library(), "no Debian here, or no xz")
class Pack(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="assay-pack-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def stage(self, place, names, umask, mtime):
        """A staging folder, written in this order by a user with this umask at this time."""
        folder = self.dir / place / NAME
        before = os.umask(umask)
        try:
            for name in names:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(name.encode() * 1000)
                (folder / name).chmod(0o777 & ~umask if name in ("assay", "bin/assay") else 0o666 & ~umask)
                os.utime(folder / name, (mtime, mtime))
            shutil.copy(ROOT / "LICENSE", folder)
            (folder / "lib").mkdir(exist_ok=True)
            shutil.copy(owned_library(), folder / "lib/libc-2.so")
            (folder / "lib/libc.so.6").symlink_to("libc-2.so")
            carried = folder.with_name(NAME + ".carried")
            lines = [f"lib/libc.so.6\t{owned_library()}", "bin/assay\tlibc6"]
            carried.write_text("\n".join(lines if umask else lines[::-1]) + "\n")
        finally:
            os.umask(before)
        if umask and os.geteuid() == 0:
            os.chown(folder / "assay", 4321, 4321)
        return folder, carried

    def test_equal_folders_give_equal_files(self):
        names = ["assay", "bin/assay", "lib/assay/libassay-cpu.so", "share/a.json", "share/b.json"]
        first = pack.pack(*self.stage("1", names, 0o022, 1000), SECONDS)
        second = pack.pack(*self.stage("2", names[::-1], 0o002, 2000000000), SECONDS)
        for one, two in zip(first, second):
            self.assertEqual(one.name, two.name)
            self.assertEqual(one.read_bytes(), two.read_bytes(), one.name)
        listed = subprocess.run(["tar", "-tvf", first[0]], capture_output=True, text=True, env={**os.environ, "TZ": "UTC"}).stdout
        for line in listed.splitlines():
            mode, owner, _, date = line.split()[:4]
            self.assertIn(mode, ("drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--", "lrwxr-xr-x"))
            self.assertEqual((owner, date), ("0/0", "2023-11-14"))
        sums = subprocess.run(["sha256sum", "-c", first[2].name], cwd=first[2].parent, capture_output=True, text=True)
        self.assertEqual((sums.returncode, sums.stdout.count(": OK")), (0, 2), sums.stderr)

    def test_what_is_carried_is_listed(self):
        folder, carried = self.stage("1", ["assay", "bin/assay"], 0o022, 1000)
        document = pack.spdx(folder, carried, SECONDS)
        self.assertEqual((document["spdxVersion"], document["creationInfo"]["created"]), ("SPDX-2.3", "2023-11-14T22:13:20Z"))
        files = {file["fileName"]: file for file in document["files"]}
        self.assertEqual(set(files), {"./assay", "./bin/assay", "./LICENSE", "./lib/libc-2.so"})
        for name, file in files.items():
            sums = {one["algorithm"]: one["checksumValue"] for one in file["checksums"]}
            self.assertEqual(sums["SHA256"], hashlib.sha256((folder / name).read_bytes()).hexdigest())
            self.assertIn("SHA1", sums)   # which SPDX 2.3 requires
        packages = {one["name"]: one for one in document["packages"]}
        self.assertEqual((packages["assay"]["versionInfo"], packages["assay"]["licenseDeclared"]), ("1.2.3", "Apache-2.0"))
        libc = packages["libc6"]
        self.assertEqual(libc["licenseDeclared"], "LGPL-2.1-or-later")
        self.assertEqual(libc["versionInfo"], pack.output_of("dpkg-query", "-W", "-f=${Version}", "libc6"))
        self.assertRegex(libc["externalRefs"][0]["referenceLocator"], "^pkg:deb/debian/libc6@")
        relations = {(one["spdxElementId"], one["relationshipType"], one["relatedSpdxElement"]) for one in document["relationships"]}
        for relation in (("SPDXRef-DOCUMENT", "DESCRIBES", packages["assay"]["SPDXID"]),
                         (libc["SPDXID"], "CONTAINS", files["./lib/libc-2.so"]["SPDXID"]),
                         (files["./bin/assay"]["SPDXID"], "STATIC_LINK", libc["SPDXID"])):
            self.assertIn(relation, relations)
        identities = [one["SPDXID"] for one in document["packages"] + document["files"]]
        self.assertEqual(len(identities), len(set(identities)))
        self.assertLessEqual({end for relation in relations for end in (relation[0], relation[2])}, {*identities, "SPDXRef-DOCUMENT"})
        json.dumps(document)

    def test_a_library_of_unknown_origin_stops_it(self):
        folder, carried = self.stage("1", ["assay", "bin/assay"], 0o022, 1000)
        carried.write_text(f"lib/libc.so.6\t{self.dir}/libmine.so\n")
        with self.assertRaisesRegex(SystemExit, "libmine.so is of no Debian package and no wheel"):
            pack.spdx(folder, carried, SECONDS)


if __name__ == "__main__":
    unittest.main()
