"""Shared by tests of several hosts: a folder, records, and the processes of a run, found by that folder."""
import os
import signal
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from testbed import BINARY, TestbedCase, wait_for  # noqa: E402,F401

BINARY_PATH = os.path.realpath(BINARY)


def processes_with(text):
    """pid -> command line of every process whose environment or command line holds `text`; zombies have neither."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ, open(f"/proc/{pid}/cmdline", "rb") as command:
                line = command.read()
                if text.encode() in environ.read() or text.encode() in line:
                    found[int(pid)] = line.replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            pass
    return found


class ClusterCase(TestbedCase):
    """Runs of this test carry its folder in their environment as ASSAY_CACHE, wherever they were started."""

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        # One per test: Open MPI's daemons remove a folder in which others on this machine may be creating theirs.
        temporary = os.path.join(self.folder, "tmp")
        os.mkdir(temporary)
        self.mark = {"ASSAY_CACHE": os.path.join(self.folder, "cache"), "TMPDIR": temporary}

    def tearDown(self):
        left = self.left()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        super().tearDown()

    def left(self):
        return processes_with(self.mark["ASSAY_CACHE"])

    def nothing_left(self, seconds=30):
        try:
            wait_for(lambda: not self.left(), "the end of every process", seconds)
        except AssertionError:
            self.fail(f"processes are left: {self.left()}")

    def worlds(self, out=None):
        """[(ranks, nodes, hosts by rank)] of the records that are ok, by size."""
        rows = [(record["world"]["ranks"], record["world"]["nodes"],
                 [rank["host"] for rank in sorted(record["ranks"], key=lambda rank: rank["rank"])])
                for record in self.records(out) if record["status"] == "ok"]
        return sorted(rows)

    def steps(self, count, seconds=0.5):
        """A run of `count` cases that take `seconds` each."""
        return self.probe("sleep", seconds=seconds, n=",".join(str(i) for i in range(count)))

    def complete(self, count, out=None):
        """Every case has exactly one record that is ok."""
        done = [record["params"]["n"] for record in self.records(out) if record["status"] == "ok"]
        self.assertEqual(sorted(done), list(range(count)))


def main(why_not):
    """Runs the tests, or prints the reason and exits as skipped (77, for ctest)."""
    if why_not:
        print(f"skipped: {why_not}")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
