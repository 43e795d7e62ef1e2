"""assay watch of one job over two hosts: a watch on each, joined. With the stand-in for torch, and with the real one if this
Python has it, or the one that ASSAY_TORCH_PYTHON names."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(__file__))
import namespaces  # noqa: E402
from cluster_case import main  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "soak"))
from watch_causes_test import JOB, PYTHON, has_torch  # noqa: E402

ASSAY = os.path.realpath(os.environ.get("ASSAY") or ROOT / "build" / "release" / "assay")


class WatchHosts(unittest.TestCase):
    def setUp(self):
        self.hosts = namespaces.Hosts(2)
        self.addCleanup(self.hosts.stop)
        self.folder = tempfile.mkdtemp(prefix="assay-watch-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def seen(self, words_of, **env):
        """Watches words_of(host's number) on each host; what the joined runs say, and their record."""
        folders = [self.path(name) for name in self.hosts.names]
        watches = [subprocess.Popen(self.hosts.on(name, ASSAY, "watch", "--out", folder, "--", *words_of(number)),
                                    cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                    env=self.hosts.environment(**env))
                   for number, (name, folder) in enumerate(zip(self.hosts.names, folders))]
        for process in watches:
            _, errors = process.communicate(timeout=300)
            self.assertEqual(process.returncode, 0, errors)
        done = subprocess.run([ASSAY, "watch", "--join", *folders, "--out", self.path("all")], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(self.path("all/records.jsonl"), encoding="utf-8") as records:
            (record,) = [json.loads(line) for line in records]
        self.assertEqual([rank["host"] for rank in record["ranks"]], self.hosts.names)
        return done.stdout, record

    def test_the_rank_that_others_wait_for_has_its_host(self):
        address = self.hosts.address("h1")
        words = ("sh", "-c", 'RANK=$0 WORLD_SIZE=2 exec "$@"')
        said, _ = self.seen(
            lambda number: [*words, str(number), sys.executable, ROOT / "tests/watch/job.py", "--steps", "80", "--slow-rank",
                            "1", "--late", "0.03"],
            MASTER_ADDR=address, MASTER_PORT="29400", PYTHONPATH=str(ROOT / "tests/watch/standin"), PYTHONDONTWRITEBYTECODE="1")
        self.assertIn("2 ranks", said)
        self.assertIn("the others wait for rank 1 on h2: its backward pass takes longer", said)

    def torchrun(self, cause, **env):
        job = self.path("train.py")
        pathlib.Path(job).write_text(JOB, encoding="utf-8")
        return self.seen(
            lambda number: [PYTHON, "-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", str(number),
                            "--nproc-per-node", "1", "--master-addr", self.hosts.address("h1"), "--master-port", "29400", job],
            CAUSE=cause, LOG=self.path("log"), OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="eth0", **env)

    @unittest.skipUnless(has_torch(), "no torch")
    def test_the_same_by_torchrun(self):
        said, _ = self.torchrun("slow-backward")
        self.assertIn("Change first: the others wait for rank 1 on h2: its backward pass takes longer", said)

    @unittest.skipUnless(has_torch(), "no torch")
    def test_a_slow_link_between_them_is_communication(self):
        for name in self.hosts.names:
            self.hosts.slow_host(name, "400mbit", burst="256k")
        said, _ = self.torchrun("")
        self.assertRegex(said, r"Change first: \d+ % of a step is communication")


if __name__ == "__main__":
    main(namespaces.missing())
