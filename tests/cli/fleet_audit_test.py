"""assay audit over several hosts, by a script in place of the remote shell that prints each host's audit; and error
counters that grow while a case runs, in a folder in place of the machine."""

import json
import os
import subprocess
import threading
import time
import unittest

from assay_case import AssayCase


def problem(name, severity="fault", **more):
    return {"id": name, "severity": severity, "device": "0000:1b:00.0", "seen": "seen", "meaning": "meaning", "fix": "fix",
            **more}


class FleetAudit(AssayCase):
    def setUp(self):
        super().setUp()
        self.answers = self.dir / "answers"
        self.answers.mkdir()
        self.mark = f"{os.getpid()}-{id(self)}"
        # Like ssh: options, the host, then a line for a shell there, which is kept.
        rsh = self.write("rsh", f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift 2; done
echo "$2" >> {self.answers}/$1.asked
[ -e {self.answers}/$1.sh ] && . {self.answers}/$1.sh
cat {self.answers}/$1.json 2>/dev/null || {{ echo "connect to host $1: No route to host" >&2; exit 255; }}
""")
        rsh.chmod(0o755)
        self.env = {"ASSAY_RSH": str(rsh), "ASSAY_TEST_MARK": self.mark}

    def host(self, name, problems=(), facts=None, **more):
        audit = {"problems": list(problems), "facts": facts or {"driver": "570", "kernel": "6.1"}, "events": [], **more}
        self.write(f"answers/{name}.json", {"schema": 1, "audit": audit})

    def script(self, name, lines):
        self.write(f"answers/{name}.sh", lines)

    def hostfile(self, *names):
        return self.write("hosts", "".join(name + "\n" for name in names))

    def audit(self, *names, words=(), timeout=60):
        return self.assay("audit", "--hostfile", self.hostfile(*names), *words, env=self.env, timeout=timeout)

    def audit_json(self, *names, words=(), code=0):
        done = self.audit(*names, words=["--json", *words])
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        answer = json.loads(done.stdout)
        self.assertEqual(answer["schema"], 1)
        return {host["host"]: host for host in answer["hosts"]}, {one["fact"]: one for one in answer["drift"]}

    def left_behind(self):
        marked = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if f"ASSAY_TEST_MARK={self.mark}".encode() in file.read().split(b"\0"):
                        marked.append(pid)
            except OSError:
                pass
        return marked

    def test_a_banner_before_the_answer_is_skipped_and_shown(self):
        self.host("a1")
        self.host("a2")
        self.script("a1", "echo 'Welcome to a1'\n")
        hosts, _ = self.audit_json("a1", "a2")
        self.assertEqual((hosts["a1"]["state"], hosts["a1"]["banner"]), ("ok", "Welcome to a1"))
        self.assertNotIn("banner", hosts["a2"])
        self.assertIn("a1: Welcome to a1", self.audit("a1", "a2").stdout)

    def test_healthy_hosts_that_are_alike(self):
        for name in ("a1", "a2", "a3"):
            self.host(name)
        done = self.audit("a1", "a2", "a3")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("3 of 3 hosts answered", done.stdout)
        hosts, drift = self.audit_json("a1", "a2", "a3")
        self.assertEqual([host["state"] for host in hosts.values()], ["ok"] * 3)
        self.assertEqual(drift, {})

    def test_a_fault_is_named_with_its_host_and_is_exit_1(self):
        self.host("a1", [problem("swap", "warning", device="")])
        self.host("a2", [problem("xid-fatal", seen="XID 79, 2 times"), problem("governor", "info")])
        self.script("a2", "trap 'exit 1' EXIT\n")  # as audit exits with a fault
        done = self.audit("a1", "a2")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"(?m)^\s*a2 .*xid-fatal 0000:1b:00.0")
        self.assertIn("XID 79, 2 times", done.stdout)
        hosts, _ = self.audit_json("a1", "a2", code=1)
        self.assertEqual([one["id"] for one in hosts["a2"]["problems"]], ["xid-fatal", "governor"])
        self.assertEqual(hosts["a1"]["problems"][0]["severity"], "warning")

    def test_who_differs_from_the_majority(self):
        for name in ("a1", "a2", "a3"):
            self.host(name)
        self.host("a4", facts={"driver": "535", "kernel": "6.1"})
        done = self.audit("a1", "a2", "a3", "a4")
        self.assertEqual(done.returncode, 0)  # a difference is no fault
        self.assertRegex(done.stdout, r"driver +570 \(3\) +a4: 535")
        _, drift = self.audit_json("a1", "a2", "a3", "a4")
        self.assertEqual(drift["driver"], {"fact": "driver", "majority": "570", "count": 3, "tie": False,
                                           "hosts": [{"host": "a4", "value": "535"}]})

    def test_without_a_majority(self):
        self.host("a1")
        self.host("a2", facts={"driver": "535", "kernel": "6.1"})
        self.assertIn("no majority", self.audit("a1", "a2").stdout)

    def test_a_host_that_cannot_be_reached(self):
        self.host("a1")
        done = self.audit("a1", "gone")
        self.assertEqual(done.returncode, 1)
        hosts, _ = self.audit_json("a1", "gone", code=1)
        self.assertEqual(hosts["gone"]["state"], "unreachable")
        self.assertIn("No route to host", hosts["gone"]["error"])
        self.assertEqual(hosts["a1"]["state"], "ok")

    def test_a_host_that_never_answers_is_given_up_and_nothing_is_left(self):
        self.host("a1")
        self.script("stuck", "trap '' TERM\nsetsid sleep 1000 & while :; do sleep 1; done\n")
        start = time.monotonic()
        hosts, _ = self.audit_json("a1", "stuck", words=["--timeout", "1s"], code=1)
        self.assertLess(time.monotonic() - start, 60)
        self.assertEqual(hosts["stuck"]["state"], "unreachable")
        self.assertIn("no answer within 1 s", hosts["stuck"]["error"])
        self.assertEqual(hosts["a1"]["state"], "ok")
        self.assertEqual(self.left_behind(), [])

    def test_answers_that_are_no_audit(self):
        self.host("a1")
        self.write("answers/text.json", "assay: command not found\n")
        self.write("answers/other.json", {"schema": 1})
        self.write("answers/deep.json", "[" * 100_000)
        self.script("loud", "exec yes\n")
        self.script("broken", "echo 'assay: cannot start' >&2; exit 4\n")
        hosts, _ = self.audit_json("a1", "text", "other", "deep", "loud", "broken", code=1)
        self.assertEqual({name: host["state"] for name, host in hosts.items()},
                         {"a1": "ok", "text": "error", "other": "error", "deep": "error", "loud": "unreachable",
                          "broken": "error"})
        self.assertIn("16 MiB", hosts["loud"]["error"])
        self.assertIn("exit code 4: assay: cannot start", hosts["broken"]["error"])
        self.assertEqual(self.left_behind(), [])

    def test_serials_only_if_asked_for(self):
        self.host("a1", gpus=[{"pci": "0000:1b:00.0", "uuid": "GPU-1", "name": "H100", "slot": "3"}])
        hosts, _ = self.audit_json("a1")
        self.assertEqual(hosts["a1"]["gpus"], [{"pci": "0000:1b:00.0", "uuid": "GPU-1", "name": "H100", "slot": "3"}])
        self.assertNotIn("--with-serials", (self.answers / "a1.asked").read_text())
        self.audit_json("a1", words=["--with-serials"])
        self.assertIn("--with-serials", (self.answers / "a1.asked").read_text())

    def test_the_hosts_of_a_slurm_job(self):
        self.host("a1")
        self.host("a2", [problem("gpu-lost")])
        self.write("bin/srun", f"""#!/bin/sh
while [ "$1" != --nodelist ]; do shift; done
cat {self.answers}/$2.json
""").chmod(0o755)
        done = self.assay("audit", "--json", env={"PATH": f"{self.dir}/bin:{os.environ['PATH']}",
                                                            "SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "a[1-2]"})
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([(host["host"], host["state"]) for host in json.loads(done.stdout)["hosts"]],
                         [("a1", "ok"), ("a2", "ok")])

    def test_the_figure_that_a_difference_moves(self):
        for name in ("a1", "a2", "a3"):
            self.host(name)
        self.host("a4", facts={"driver": "535", "kernel": "6.1"})
        records = [{"schema": 2, "key": "gemm/m=64", "family": "gemm", "params": {"m": 64}, "status": "ok",
                    "comparable": True, "ranks": [{"rank": 0, "host": name, "device": "CPU", "median": 1.0}],
                    "metrics": [{"name": "throughput", "value": 5e9 if name == "a4" else 1e10, "unit": "FLOP/s"}]}
                   for name in ("a1", "a2", "a3", "a4")]
        run = {"schema": 2, "id": "r", "started": "2026-01-01T00:00:00Z", "each_host": True,
               "hosts": [{"name": name} for name in ("a1", "a2", "a3", "a4")]}
        self.run_dir(*records, run=run)
        _, drift = self.audit_json("a1", "a2", "a3", "a4", words=["--runs", "r"])
        effect = drift["driver"]["effect"]
        self.assertEqual((effect["metric"], effect["ratio"], effect["differing"], effect["others"]),
                         ("throughput", 0.5, 1, 3))

    def test_bad_requests(self):
        self.refused("env", "--hostfile", "hosts", says="unknown flag --hostfile")
        self.refused("audit", "--runs", "no-run", says="name them in --hostfile")
        self.refused("audit", "--hostfile", self.hostfile("a1"), "--expect", "e.json", says="e.json")
        self.refused("audit", "--expect", "", says="--expect: needs a value")
        self.refused("audit", "--hostfile", "none", says="none")
        self.refused("audit", "--hostfile", self.hostfile("a1"), "--timeout", "0s", says="above 0")
        self.refused("audit", "--hostfile", self.hostfile("a1"), "--timeout", "soon", says="soon")
        self.refused("audit", "--hostfile", self.hostfile("bad host name; rm"), says="hosts:1")
        self.refused("audit", "--hostfile", self.hostfile("a1"), "--runs", "no-run", says="no-run")
        self.assertFalse((self.answers / "a1.asked").exists())


class ErrorsDuringACase(AssayCase):
    """Counters grow while a case sleeps, or not."""

    def setUp(self):
        super().setUp()
        self.counter("sys/class/net/eth0/device/vendor", "0x15b3")
        self.counter("sys/class/net/eth0/carrier_down_count", 3)
        self.counter("sys/devices/system/edac/mc/mc0/ue_count", 0)

    def counter(self, name, value):
        # Replaced at once, so that no reading sees an empty file.
        self.write(f"root/{name}.new", f"{value}\n").replace(self.dir / "root" / name)

    def run_case(self, growing=None):
        """Runs a case of half a second while `growing` counts up; exit code and record."""
        stop = threading.Event()

        def grow():
            value = 3
            while not stop.wait(0.02):
                value += 1
                self.counter(growing, value)

        thread = threading.Thread(target=grow)
        if growing:
            thread.start()
        try:
            done = subprocess.run([os.environ["ASSAY_TESTBED"], "run", "probe", "--set", "probe.op=sleep", "--set",
                                   "probe.seconds=0.5", "--device", "cpu", "--out", "out"], cwd=self.dir, text=True,
                                  capture_output=True, timeout=120,
                                  env={**os.environ, "ASSAY_ROOT": str(self.dir / "root")})
        finally:
            stop.set()
            if growing:
                thread.join()
        records = self.records()
        self.assertEqual(len(records), 1, done.stdout + done.stderr)
        return done, records[0]

    def test_none(self):
        done, record = self.run_case()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("errors", record)
        self.assertNotIn("device_errors", self.by_name(record["checks"]))
        self.assertEqual([flag for flag in record["flags"] if flag.startswith("errors")], [])

    def test_a_link_that_was_lost_is_a_remark(self):
        done, record = self.run_case("sys/class/net/eth0/carrier_down_count")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(record["status"], "ok")
        [error] = record["errors"]
        self.assertEqual((error["device"], error["name"]), ("eth0", "carrier_down"))
        self.assertGreater(error["count"], 0)
        self.assertIn(f"errors: eth0 carrier_down {error['count']}", record["flags"])
        self.assertIn("errors: eth0 carrier_down", self.assay("report", "out").stdout)

    def test_an_uncorrected_error_fails_the_case(self):
        done, record = self.run_case("sys/devices/system/edac/mc/mc0/ue_count")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(record["status"], "failed")
        self.assertIn("mc0 ue", record["reason"])
        self.assertFalse(self.by_name(record["checks"])["device_errors"]["passed"])
        page = self.dir / "page.html"
        self.assertIn("device_errors", self.assay("report", "out", "--html", page).stdout)
        self.assertIn("mc0 ue", page.read_text())


if __name__ == "__main__":
    unittest.main()
