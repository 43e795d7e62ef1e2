"""Drives the testbed binary: each run in its own folder, waiting by polling."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

BINARY = os.environ.get("ASSAY_TESTBED") or os.path.join(os.path.dirname(__file__), "../../build/cpu/assay-testbed")


def wait_for(condition, what, seconds=30):
    """The first true value of condition(); fails the test if there is none in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"timed out after {seconds} s waiting for {what}")


def parents():
    """pid -> (parent, state, command line) for every process."""
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as stat, open(f"/proc/{name}/cmdline", "rb") as command:
                state, parent = stat.read().rsplit(")", 1)[1].split()[:2]
                table[int(name)] = (int(parent), state, command.read().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            pass
    return table


def descendants(pid):
    table, found, front = parents(), {}, [pid]
    while front:
        front = [child for child, row in table.items() if row[0] in front]
        found.update((child, table[child]) for child in front)
    return {child: row for child, row in found.items() if row[1] != "Z"}


def workers(pid, binary=BINARY):
    """Ranks, without their launcher: another program (Open MPI 5: prterun) whose command line ends like theirs."""
    return [child for child, row in descendants(pid).items()
            if row[2].rstrip().endswith("worker") and os.path.basename(row[2].split()[0]) == os.path.basename(binary)]


def alive(pids):
    table = parents()
    return [pid for pid in pids if pid in table and table[pid][1] != "Z"]


class TestbedCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="assay-test-")
        self.out = os.path.join(self.folder, "run")
        self.started = []

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, *words):
        return [BINARY, "run", *words]

    def run_assay(self, *words, env=None, before=None, timeout=90):
        return subprocess.run(self.command(*words), cwd=self.folder, capture_output=True, text=True, timeout=timeout,
                              env={**os.environ, **(env or {})}, preexec_fn=before, errors="replace")

    def start(self, *words, env=None):
        process = subprocess.Popen(self.command(*words), cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env={**os.environ, **(env or {})})
        self.started.append(process)
        return process

    def records(self, out=None):
        path = os.path.join(out or self.out, "records.jsonl")
        if not os.path.exists(path):
            return []
        with open(path) as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def by_op(self, out=None):
        return {record["params"]["op"]: record for record in self.records(out)}

    def run_json(self):
        with open(os.path.join(self.out, "run.json")) as file:
            return json.load(file)

    def probe(self, *ops, **params):
        words = ["probe", "--set", "probe.op=" + ",".join(ops)]
        for name, value in params.items():
            words += ["--set", f"probe.{name}={value}"]
        return words

    def phase_reached(self, process, name="measure"):
        """Waits until a worker runs; enough if its phase never ends."""
        return wait_for(lambda: workers(process.pid), "a worker")


def main():
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
