"""Files that build aa26745 made, in tests/old: packs, an acceptance, a history, runs, suspicions, scripts, floors, plans,
prices, expectations, and what its agents say. They mean to this build what they meant to that one."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from acceptances import ACCEPTANCES, write_acceptance  # noqa: E402
from assay_case import AssayCase  # noqa: E402
from fake_machine import write_machine  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
OLD = ROOT / "tests/old"
OLD_VERSION = "0.1.0+gaa26745b2 (channel 1, build 21e7b40ed6a4016a806c331d7666e664c38a8d47)"


def old(name):
    return json.loads((OLD / name).read_text())


class OldPack(AssayCase):
    """`check PACK` prints what it printed, byte for byte."""

    def check_pack(self, name):
        shutil.copy(OLD / f"pack/{name}.tar", self.dir)
        done = self.assay("check", f"{name}.tar", "--json=o.json", "--junit", "o.xml")
        self.assertEqual(done.stderr + f"exit {done.returncode}\n", (OLD / f"pack/{name}.stderr").read_text())
        self.assertEqual(done.stdout, (OLD / f"pack/{name}.txt").read_text())
        for ending in ("json", "xml"):
            self.assertEqual((self.dir / f"o.{ending}").read_bytes(), (OLD / f"pack/{name}.{ending}").read_bytes())

    def test_floors_that_hold(self):
        self.check_pack("passes")

    def test_floors_that_are_missed_and_cannot_be_judged(self):
        self.check_pack("fails")

    def test_a_run_that_did_not_finish(self):
        self.check_pack("unfinished")


class OldAcceptance(AssayCase):
    def test_it_goes_on(self):
        """It was interrupted in its second stage. Its host is the one that goes on."""
        shutil.copytree(OLD / "acceptance", self.dir / "a")
        for file in (self.dir / "a").rglob("*.json"):
            text = file.read_text().replace("@DIR@", str(self.dir / "a"))
            file.write_text(text.replace('"@HOST@"', json.dumps(socket.gethostname())))
        machine = write_machine(self.dir / "machine", gpus=0)
        done = self.assay("accept", "--resume", "a/out", env={"ASSAY_ROOT": str(machine.root)}, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("assay: audit of", done.stderr)   # it is not repeated
        document = json.loads((self.dir / "a/out/accept.json").read_text())
        (host,) = document["hosts"]
        states = {check["name"]: check["state"] for check in host["checks"]}
        self.assertEqual([states[name] for name in ("audit", "host", "training")], ["pass"] * 3)
        self.assertEqual(document["verdict"], "pass")

    def test_one_of_a_level_that_is_gone_says_so(self):
        shutil.copytree(OLD / "acceptance", self.dir / "a")
        state = self.dir / "a/out/state.json"
        state.write_text(state.read_text().replace("@DIR@/levels/level.json", "/opt/assay/configs/accept/burn-in.json"))
        self.refused("accept", "--resume", "a/out", says=["--resume a/out", "accept/burn-in.json", "no such file"])


class OldStore(AssayCase):
    def test_events_keep_their_ids_and_decisions(self):
        shutil.copy(OLD / "history.db", self.dir / "h.db")
        expected = old("history.json")
        for words in ((), ("again",)):
            if words:
                self.assertEqual(self.assay("history", "reanalyse", "--store", "h.db").returncode, 0)
            done = self.assay("history", "check", "--store", "h.db", "--json")
            self.assertEqual(done.returncode, expected["exit"], done.stderr)
            found = json.loads(done.stdout)
            self.assertEqual(found["series_tested"], expected["series_tested"])
            self.assertEqual([one["id"] for one in found["suspects"]], expected["suspects"])
            self.assertEqual([{name: event.get(name) for name in expected["events"][0]} for event in found["events"]],
                             expected["events"])

    def test_decisions_can_be_taken_back_and_added(self):
        shutil.copy(OLD / "history.db", self.dir / "h.db")
        muted = next(event for event in old("history.json")["events"] if event["state"] == "muted")
        self.assertEqual(self.assay("history", "unmute", muted["id"], "--store", "h.db").returncode, 0)
        found = json.loads(self.assay("history", "check", "--store", "h.db", "--json").stdout)
        self.assertEqual({event["id"]: event["state"] for event in found["events"]}[muted["id"]], "open")


class OldRun(AssayCase):
    """Records of before say in the words of checks, reasons and flags whom they blame."""

    # What this build says otherwise on purpose: a stage that every host skipped is no pass any more, nor is a required floor
    # for which nothing was measured.
    CHANGED = {"skipped": {"host": "inconclusive"}, "floors": {}}

    def test_the_same_hosts_are_blamed(self):
        expected = old("blame.json")
        self.assertLessEqual(set(expected), set(ACCEPTANCES))
        for name in expected:
            for schema in (1, 2):
                with self.subTest(name=name, schema=schema):
                    words, out = write_acceptance(self.dir / f"{name}-{schema}", name, schema)
                    done = self.assay(*words, env={"ASSAY_RSH": "/bin/false", "ASSAY_CACHE": str(self.dir / "cache")})
                    found = json.loads((out / "accept.json").read_text())
                    hosts = {host["host"]: {check["name"]: check["state"] for check in host["checks"]} for host in found["hosts"]}
                    code, verdict = (3, "inconclusive") if name in self.CHANGED else (expected[name]["exit"], expected[name]["verdict"])
                    self.assertEqual((done.returncode, found["verdict"]), (code, verdict), done.stdout + done.stderr)
                    for host, states in expected[name]["hosts"].items():
                        self.assertEqual({check: hosts[host][check] for check in states}, {**states, **self.CHANGED.get(name, {})})

    def test_the_same_diagnosis(self):
        for name, expected in old("diagnoses.json").items():
            with self.subTest(name=name):
                done = self.assay("diagnose", ROOT / "tests/runs" / name, "--json")
                self.assertEqual(done.returncode, expected["exit"], done.stderr)
                states = {rule["id"]: rule["state"] for rule in json.loads(done.stdout)["rules"]}
                self.assertEqual({rule: states.get(rule) for rule in expected["rules"]}, expected["rules"])


class OldSuspicions(AssayCase):
    def test_they_are_counted(self):
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        lines = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", now, (OLD / "suspicions.jsonl").read_text())
        host = f"old-{os.getpid()}"
        self.write(f"cache/gate/{host}.jsonl", lines)
        (self.dir / "tmp").mkdir()
        done = self.assay("gate", "--inject", "reboot-required", "--json", env={
            "ASSAY_CACHE": str(self.dir / "cache"), "ASSAY_HOST": host, "TMPDIR": str(self.dir / "tmp")})
        self.assertEqual(json.loads(done.stdout)["past"], "suspect once, drain 2 times in the past 7 days")


class OldScripts(AssayCase):
    """The files for Slurm, Kubernetes and node-problem-detector that were shipped with that build, copied by many."""

    def setUp(self):
        super().setUp()
        (self.dir / "bin").mkdir()
        (self.dir / "bin/assay").symlink_to(os.path.abspath(self.binary))
        self.write("bin/scontrol", '#!/bin/sh\nprintf "%s\\n" "$@" >> calls\n').chmod(0o755)
        self.machine = write_machine(self.dir / "machine")
        (self.dir / "tmp").mkdir()
        self.env = {**os.environ, "PATH": f"{self.dir}/bin:{os.environ['PATH']}", "ASSAY_ROOT": str(self.machine.root),
                    "ASSAY_HOST": f"old-{os.getpid()}-{self._testMethodName}"[:60], "ASSAY_CACHE": str(self.dir / "cache"),
                    "ASSAY_GATE_STATE": str(self.dir / "state"), "SLURMD_NODENAME": "n1", "CUDA_VISIBLE_DEVICES": "",
                    "ASSAY_GATE_BUDGET": "2s", "ASSAY_MODULE_PATH": str(self.dir), "TMPDIR": str(self.dir / "tmp")}

    def ran(self, *words, code):
        done = subprocess.run(words, cwd=self.dir, env=self.env, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertLessEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stdout

    def break_it(self):
        self.machine.nvml(2, ecc_uncorrected=3)

    def test_prolog_and_health_check(self):
        prolog, health = OLD / "launch/slurm-prolog.sh", OLD / "launch/slurm-health.sh"
        self.ran(prolog, code=0)
        self.ran(health, code=0)
        self.assertNotIn("State=DRAIN", (self.dir / "calls").read_text() if (self.dir / "calls").exists() else "")
        self.break_it()
        self.ran(prolog, code=1)
        self.ran(health, code=0)
        self.assertRegex((self.dir / "calls").read_text(), "State=DRAIN\nReason=ASSAY-GPU-005 0000:3b:00.0 ")

    def test_the_init_container(self):
        text = (OLD / "launch/kubernetes-gate.yaml").read_text()
        script = re.search(r"command: \[sh, -c, '(.*)'\]", text).group(1).replace("/dev/termination-log", "termination-log")
        script = script.replace("--budget 20s", "--budget 2s")
        self.ran("sh", "-c", script, code=0)
        self.break_it()
        self.ran("sh", "-c", script, code=1)
        self.assertIn("ASSAY-GPU-005", (self.dir / "termination-log").read_text())

    def test_node_problem_detector(self):
        [rule] = json.loads((OLD / "launch/node-problem-detector-assay.json").read_text())["rules"]
        words = ["assay", *("2s" if word == "20s" else word for word in rule["args"])]
        # The tests of GPUs cannot run here: not judged, which is "unknown" to node-problem-detector.
        self.assertTrue(self.ran(*words, code=2))
        self.break_it()
        self.assertRegex(self.ran(*words, code=1), "^ASSAY-GPU-005 0000:3b:00.0 ")

    def test_flags_of_the_other_scripts(self):
        for name, words in (("assay.sbatch", ["assay", "run", "nightly"]), ("kubernetes.yaml", ["assay", "run", "nightly"])):
            self.assertIn("nightly", (OLD / "launch" / name).read_text())
            done = subprocess.run([*words, "--device", "cpu", "--out", "x", "--dry-run"], cwd=self.dir, env=self.env,
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)


class MixedFleet(AssayCase):
    def test_the_audit_of_a_host_with_that_build(self):
        shutil.copy(OLD / "users/audit.json", self.dir / "n1.json")
        rsh = self.write("rsh", f'#!/bin/sh\nwhile [ "${{1#-}}" != "$1" ]; do shift 2; done\ncat {self.dir}/$1.json\n')
        rsh.chmod(0o755)
        self.write("hosts", "n1\n")
        done = self.assay("audit", "--json", "--hostfile", "hosts", env={"ASSAY_RSH": str(rsh)})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        [host] = json.loads(done.stdout)["hosts"]
        self.assertEqual((host["state"], host["facts"]["driver"] if "facts" in host else "570.86.15"), ("ok", "570.86.15"))

    def test_a_host_whose_build_does_not_know_the_verb(self):
        shutil.copy(OLD / "users/audit.json", self.dir / "n1.json")
        rsh = self.write("rsh", f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift 2; done
echo "$2" >> {self.dir}/asked
case $2 in
  *env*--audit*) cat {self.dir}/$1.json ;;
  *) echo 'assay: unknown subcommand "audit"' >&2; exit 2 ;;
esac
""")
        rsh.chmod(0o755)
        self.write("hosts", "n1\n")
        done = self.assay("audit", "--json", "--hostfile", "hosts", env={"ASSAY_RSH": str(rsh)})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([host["state"] for host in json.loads(done.stdout)["hosts"]], ["ok"])
        self.assertEqual(len((self.dir / "asked").read_text().splitlines()), 2)

    def test_an_agent_of_that_build_is_refused_in_a_line_that_names_both(self):
        agent = self.write("rsh", f"""#!{sys.executable}
import json, os, re, socket, sys, time
text = " ".join(sys.argv[1:])
if not sys.stdin.isatty():
    text += " " + os.environ.get("ASSAY_TOKEN", "")
found = {{name: re.search("ASSAY_" + name + "='?([^' ;]+)", text) for name in ("SUPERVISOR", "TOKEN", "HOST", "RANK", "SIZE")}}
value = {{name: match.group(1) if match else os.environ.get("ASSAY_" + name, "") for name, match in found.items()}}
if not value["TOKEN"]:
    line = sys.stdin.readline()
    match = re.search("ASSAY_TOKEN='?([^' ;\\n]+)", line)
    value["TOKEN"] = match.group(1) if match else line.strip()
hosts, port = value["SUPERVISOR"].rsplit(":", 1)
for host in hosts.split(","):
    try:
        channel = socket.create_connection((host.split(":")[0], int(port)), timeout=5)
        break
    except OSError:
        pass
hello = {{"type": "hello", "role": "agent", "token": value["TOKEN"], "rank": int(value["RANK"] or 0), "size": int(value["SIZE"] or 1),
         "host": value["HOST"], "pid": os.getpid(), "version": "{OLD_VERSION}", "architecture": os.uname().machine}}
channel.sendall((json.dumps(hello) + "\\n").encode())
print(channel.recv(4096).decode(), file=sys.stderr)
time.sleep(1)
""")
        agent.chmod(0o755)
        self.write("hosts", "n1\n")
        self.plan({"family": "launch", "op": "fork_join"})
        done = self.assay("run", "p.json", "--device", "cpu", "--hostfile", "hosts", "--each-host", "--out", "out",
                          env={"ASSAY_RSH": str(agent), "ASSAY_LAUNCH_LIMIT": "10"})
        self.assertEqual(done.returncode, 4, done.stdout + done.stderr)
        version = self.assay("--version").stdout.split()[-1]
        naming = [line for line in done.stderr.splitlines() if OLD_VERSION in line and "supervisor is" in line]
        self.assertTrue(naming, done.stderr)
        self.assertIn(version, naming[-1])


class OldUserFiles(AssayCase):
    def setUp(self):
        super().setUp()
        self.answers = old("users/answers.json")

    def test_floors(self):
        done = self.assay("check", ROOT / "tests/runs/gpu", "--floors", OLD / "users/h100-sxm.json")
        self.assertEqual((done.returncode, done.stdout.splitlines()), (self.answers["floors"]["exit"], self.answers["floors"]["out"]))

    def test_a_plan(self):
        done = self.assay("run", OLD / "users/plan.json", "--dry-run", "--device", "cpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([word for word in done.stdout.split() if re.match("(gemm|memory|launch)/", word)],
                         self.answers["plan"]["keys"])

    def test_prices(self):
        for form in ("csv", "json"):
            done = self.assay("report", ROOT / "tests/runs/training-2", "--prices", OLD / f"users/prices.{form}", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            # A step that was all communication cost the whole price; what shares of it cost is the diagnosis' to say.
            price = max(float(text.split()[-1]) for text in self.answers[f"prices.{form}"]["usd"])
            tables = [table for section in json.loads(done.stdout)["sections"] for table in section["tables"]]
            [rows] = [table["rows"] for table in tables if table["id"] == "diagnosis"]
            self.assertEqual({round(row["usd_per_hour"] / (1 - 1 / row["ceiling"]), 6) for row in rows}, {price})

    def test_an_expectation(self):
        machine = write_machine(self.dir / "machine")
        done = self.assay("env", "--expect", OLD / "users/expectation.json", env={"ASSAY_ROOT": str(machine.root)})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("expectation.json: all held", done.stdout)
        self.write("more.json", (OLD / "users/expectation.json").read_text().replace('"count": 8', '"count": 16'))
        done = self.assay("env", "--expect", "more.json", env={"ASSAY_ROOT": str(machine.root)})
        self.assertEqual(done.returncode, 1)
        self.assertIn("gpus.count", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
