"""assay gate as root: nothing that an ordinary user can plant is used, and tests compute as nobody. A planted thing belongs
to user 4321, or lies where he can write."""
import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import unittest

from assay_case import AssayCase

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import fake_machine  # noqa: E402

CONFIGS = pathlib.Path(__file__).resolve().parents[2] / "configs"
SOMEBODY = 4321
NOBODY = "65534"


def give(path):
    os.chown(path, SOMEBODY, SOMEBODY, follow_symlinks=False)


@unittest.skipUnless(os.geteuid() == 0, "only root relies on nobody else's files, and can give files to others")
class GateOfRoot(AssayCase):
    def setUp(self):
        super().setUp()
        self.host = f"root-{os.getpid()}-{self._testMethodName}"[:60]
        self.env = {"ASSAY_CACHE": str(self.dir / "cache"), "ASSAY_HOST": self.host}
        self.machine = None
        self.memory = self.dir / "cache/gate" / f"{self.host}.jsonl"

    def gate(self, *words, budget="20s", **env):
        return self.assay("gate", "--budget", budget, *words, env={**self.env, **env}, timeout=120)

    def drill(self, **env):
        """A gate of a made-up machine that is healthy but for a remark."""
        done = self.gate("--inject", "reboot-required", "--json", **env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def started(self, process):
        """The processes of a gate by their pids: itself and those below it."""
        children, found = {}, {}
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit():
                    parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                    children.setdefault(parent, []).append(int(entry.name))
            except OSError:
                pass
        waiting = [process.pid]
        while waiting:
            pid = waiting.pop()
            found[pid] = pathlib.Path("/proc", str(pid))
            waiting += children.get(pid, [])
        return found

    def start(self, *words, **env):
        gate = subprocess.Popen([self.binary, "gate", *words], cwd=self.dir, env={**os.environ, **self.env, **env},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def end():
            gate.kill()
            gate.communicate()
        self.addCleanup(end)
        return gate

    # --- programs, variables, libraries ------------------------------------------------------------------------------

    def test_programs_in_path_are_not_run(self):
        for name in ("journalctl", "dmesg", "ldconfig", "nvidia-smi", "mpirun", "rm", "sh", "python3", "assay"):
            self.write(f"bin/{name}", f"#!/bin/sh\n/bin/echo {name} >> {self.dir}/used\n").chmod(0o755)
        self.gate("--json", budget="2s", PATH=f"{self.dir}/bin:{os.environ['PATH']}")
        self.assertFalse((self.dir / "used").exists(), "a planted program was run")

    def test_children_get_no_variable_that_loads_or_tunes(self):
        planted = self.write("planted/libnvidia-ml.so.1", "")
        hostile = {"LD_LIBRARY_PATH": str(planted.parent), "LD_BIND_NOT": "1", "GLIBC_TUNABLES": "glibc.malloc.check=0",
                   "PYTHONPATH": str(planted.parent), "OPENSSL_CONF": str(planted), "OMP_NUM_THREADS": "1",
                   "OPENBLAS_CORETYPE": "x", "CUDA_INJECTION64_PATH": str(planted), "NCCL_NET_PLUGIN": str(planted),
                   "CUDA_HOME": str(planted.parent), "HWLOC_PLUGINS_PATH": str(planted.parent)}
        gate = self.start("--inject", "disk-hung", "--budget", "60s", "--json", **hostile)
        end = time.monotonic() + 30
        while len(self.started(gate)) < 2 and gate.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.3)   # the child has its own program by then
        processes = self.started(gate)
        self.assertGreater(len(processes), 1)
        for pid, place in processes.items():
            variables = dict(one.split("=", 1) for one in (place / "environ").read_text().split("\0") if "=" in one)
            # LD_LIBRARY_PATH may have the driver's folders.
            self.assertFalse({name for name, value in hostile.items() if value in variables.get(name, "")}, pid)
            self.assertEqual(variables["PATH"], "/usr/sbin:/usr/bin:/sbin:/bin")
        gate.send_signal(signal.SIGTERM)
        answer = json.loads(gate.communicate(timeout=30)[0])
        self.assertIn("as root, not taken from the environment: GLIBC_TUNABLES, LD_BIND_NOT, LD_LIBRARY_PATH", answer["notes"])

    def test_libraries_in_the_working_folder_are_not_loaded(self):
        for name in ("libz.so.1", "libssl.so.3", "libcrypto.so.3", "libfmt.so.9", "libfmt.so.10", "libgomp.so.1", "libdnnl.so.2",
                     "libdnnl.so.3", "libnvidia-ml.so.1", "libopenblas.so.0", "libassay-cuda.so", "libassay-mpi.so"):
            self.write(name, "no library")
        self.drill()

    def test_modules_of_others_are_refused(self):
        give(self.write("modules/libassay-cuda.so", "x").parent)
        done = self.gate(ASSAY_MODULE_PATH=str(self.dir / "modules"))
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("modules belongs to user 4321, and root relies on nothing that others can change", done.stderr)

    # --- files -------------------------------------------------------------------------------------------------------

    def test_configuration_of_others_is_refused(self):
        configs = self.dir / "configs"
        shutil.copytree(CONFIGS, configs)
        self.drill(ASSAY_CONFIGS=str(configs))
        for path, change, text in ((configs, give, "configs belongs to user 4321"), (configs / "plans/gate.json", give, "gate.json belongs to"),
                                   (configs / "gate.json", lambda path: path.chmod(0o666), "others may write to")):
            with self.subTest(path=path.name):
                change(path)
                done = self.gate("--exit-style", "npd", ASSAY_CONFIGS=str(configs))
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertRegex(done.stdout, f"the configuration: .*{text}")
                os.chown(path, 0, 0)
                path.chmod(0o755 if path.is_dir() else 0o644)
        self.drill(ASSAY_CONFIGS=str(configs))

    def test_policies_and_expectations_of_others_are_refused_and_nothing_is_counted_in_their_folders(self):
        for flag, content in (("--policy", {"xid-fatal": "ok"}), ("--expect", {"schema": 1})):
            file = self.write("theirs.json", content)
            give(file)
            done = self.gate(flag, "theirs.json")
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertRegex(done.stderr, f"gate: {flag} theirs.json: .*belongs to user 4321")
        shared = self.dir / "shared"
        shared.mkdir()
        give(shared)
        self.write("policy.json", {"reboot-required": "drain", "at_most": "1 in 1h", "shared": str(shared)})
        done = self.assay("gate", "--reset-fuse", "--policy", "policy.json", env=self.env)
        self.assertEqual(done.returncode, 4, done.stdout)
        self.assertIn("belongs to user 4321", done.stderr)
        self.assertEqual(list(shared.iterdir()), [])

    def test_floors_of_others_are_refused(self):
        floors = self.write("place/floors.json", {"schema": 1, "floors": [
            {"key": "gemm/*", "metric": "throughput", "unit": "FLOP/s", "at_least": 1, "source": "x"}]})
        linked = self.dir / "linked.json"
        linked.symlink_to(floors)
        for name, plant in (("file", lambda: give(floors)), ("folder", lambda: give(floors.parent)),
                            ("open folder", lambda: floors.parent.chmod(0o777)), ("link", lambda: give(linked))):
            with self.subTest(plant=name):
                plant()
                done = self.gate("--floors", "linked.json")
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertRegex(done.stderr, "gate: --floors linked.json: .*(belongs to user 4321|others may write)")
                for path in (floors, floors.parent, linked):
                    os.chown(path, 0, 0, follow_symlinks=False)
                floors.parent.chmod(0o755)
        # A file in the working folder that is named like floors of ours.
        give(self.write("h100-sxm", "planted"))
        self.assertRegex(self.gate("--floors", "h100-sxm").stderr, "h100-sxm belongs to user 4321")
        self.assertEqual(self.gate("--floors", "linked.json", "--inject", "reboot-required").returncode, 0)

    # --- what is kept ------------------------------------------------------------------------------------------------

    def suspect(self, **env):
        """A gate of a machine with a hot GPU, whose suspicion is kept."""
        if not self.machine:
            self.machine = fake_machine.FakeMachine(self.dir / "machine").nvml(3, temperature=95)
        return json.loads(self.gate("--json", budget="2s", ASSAY_ROOT=str(self.machine.root), CUDA_VISIBLE_DEVICES="", **env).stdout)

    def test_suspicions_are_kept_where_only_root_can_write(self):
        os.umask(os.umask(0))
        answer = self.suspect()
        self.assertNotIn("not kept", " ".join(answer["notes"]))
        self.assertEqual(stat.S_IMODE(self.memory.parent.stat().st_mode), 0o700)
        self.assertEqual(stat.S_IMODE(self.memory.stat().st_mode), 0o600)
        self.assertEqual(self.suspect()["past"], "suspect once in the past 7 days")

    def test_planted_states_are_neither_read_nor_written(self):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = json.dumps({"time": now, "verdict": "drain", "findings": []}) + "\n"
        elsewhere = self.dir / "elsewhere"
        plants = {
            "a file": lambda: give(self.memory), "a folder": lambda: give(self.memory.parent),
            "the cache": lambda: give(self.memory.parent.parent), "an open folder": lambda: self.memory.parent.chmod(0o777),
            "a sticky folder": lambda: self.memory.parent.chmod(0o1777),
            "an open cache": lambda: self.memory.parent.parent.chmod(0o777),
            "a link": lambda: (self.memory.rename(elsewhere), self.memory.symlink_to(elsewhere), give(self.memory)),
            "a link to a folder": lambda: (self.memory.parent.rename(elsewhere), self.memory.parent.symlink_to(elsewhere),
                                           give(self.memory.parent))}
        for name, plant in plants.items():
            with self.subTest(plant=name):
                for old in (self.dir / "cache", elsewhere):
                    shutil.rmtree(old, ignore_errors=True)
                    old.unlink(missing_ok=True)
                self.write(self.memory.relative_to(self.dir), line)
                plant()
                answer = self.suspect()
                self.assertIsNone(answer["past"], answer)
                notes = " ".join(answer["notes"])
                self.assertRegex(notes, "past verdicts are not known: .*(belongs to user 4321|others may write)")
                self.assertIn("what was found is not kept: ", notes)
                self.assertIn("gpu-hot", [one["id"] for one in answer["findings"]], "what was found is shown all the same")
                self.assertEqual(self.memory.read_text(), line, "what lay there was changed")

    def test_a_temporary_folder_of_others_is_not_used(self):
        (self.dir / "tmp").mkdir(mode=0o777)
        give(self.dir / "tmp")
        gate = self.start("--inject", "disk-hung", "--budget", "60s", "--json", TMPDIR=str(self.dir / "tmp"))
        end = time.monotonic() + 30
        while len(self.started(gate)) < 2 and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(list((self.dir / "tmp").iterdir()), [])
        gate.send_signal(signal.SIGTERM)
        self.assertIn("as root, not taken from the environment: TMPDIR", json.loads(gate.communicate(timeout=30)[0])["notes"])

    def test_nobody_else_can_hold_a_gate_up(self):
        planted = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(planted.close)
        planted.bind("\0assay-gate-" + self.host)
        self.drill()
        self.assertFalse(pathlib.Path("/run/assay-gate-" + self.host).exists(), "its lock is left")

    # --- nobody ------------------------------------------------------------------------------------------------------

    def test_tests_compute_as_nobody(self):
        # A test that hangs, so that it can be looked at.
        gate = self.start("--inject", "test-hung", "--budget", "60s", "--json")
        wanted, users, end = (NOBODY,) * 8 + ("0" * 16,), set(), time.monotonic() + 30
        while wanted not in users and gate.poll() is None and time.monotonic() < end:
            for place in self.started(gate).values():
                try:
                    if b"worker" in (place / "cmdline").read_bytes().split(b"\0")[1:2]:
                        lines = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
                        users.add((*lines["Uid"].split(), *lines["Gid"].split(), *lines["Groups"].split(), lines["CapEff"].strip()))
                except OSError:
                    pass
            time.sleep(0.02)
        gate.send_signal(signal.SIGTERM)
        out, errors = gate.communicate(timeout=30)
        why = [note for note in json.loads(out)["notes"] if note.startswith("tests compute as root: ")]
        if why:
            self.skipTest(why[0])
        self.assertIn(wanted, users, out + errors)   # before it has bound itself to its CPUs, a worker is root's
        self.assertFalse(self.started(gate)[gate.pid].exists())

    def test_what_nobody_computes_is_right(self):
        """An answer that is wrong by a drill is the only thing that is wrong."""
        answer = json.loads(self.gate("--inject", "wrong-product", "--json", budget="30s").stdout)
        self.assertEqual([(test["test"], test["state"]) for test in answer["tests"]], [("gemm", "wrong")], answer)

    def test_where_nobody_cannot_read_tests_compute_as_root(self):
        configs = self.dir / "configs"
        shutil.copytree(CONFIGS, configs)
        configs.chmod(0o700)
        answer = json.loads(self.gate("--json", budget="4s", ASSAY_CONFIGS=str(configs)).stdout)
        self.assertIn(f"tests compute as root: {configs}/gate.json: Permission denied", answer["notes"])


if __name__ == "__main__":
    unittest.main()
