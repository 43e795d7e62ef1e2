"""assay accept on one host: its table and files, a dry run, refusals, resuming; hosts that cannot be reached;
what schedulers take from it."""

import csv
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest
from unittest import mock

from assay_case import AssayCase

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from acceptances import write_acceptance  # noqa: E402
from fake_machine import write_machine  # noqa: E402

CHECKS = ["audit", "host", "pairs", "collectives", "training"]
GEMM = {"family": "gemm", "dtype": "f32", "m": 64, "n": 64, "k": 64}


class Accept(AssayCase):
    def setUp(self):
        super().setUp()
        self.level()
        # The audit of the machine that runs the tests is another matter.
        write_machine(self.dir / "levels/machine", gpus=0)
        healthy = mock.patch.dict(os.environ, {"ASSAY_ROOT": str(self.dir / "levels/machine")})
        healthy.start()
        self.addCleanup(healthy.stop)

    def level(self, name="tiny", seconds="50ms", **members):
        """A level of one small product and one small model; its plans lie beside it."""
        protocol = {"max_seconds": seconds, "warmup_seconds": "1ms", "min_samples": 3}
        self.plan(GEMM, name="levels/product.json", protocol=protocol)
        return self.write(f"levels/{name}.json", {"schema": 1, "host": ["product"], "training": ["product"], **members})

    def accept(self, *words, level="levels/tiny.json", code=(0, 3), env=None, timeout=120):
        device = () if "--device" in words else ("--device", "cpu")
        done = self.assay("accept", *device, *(["--level", level] if level else []), *words, env=env, timeout=timeout)
        self.assertIn(done.returncode, code if isinstance(code, tuple) else (code,), done.stdout + done.stderr)
        return done

    def table(self, out="out"):
        """host -> check -> what accept.json says of it."""
        document = json.loads((self.dir / out / "accept.json").read_text())
        return {host["host"]: {check["name"]: check for check in host["checks"]} for host in document["hosts"]}

    def floors(self, at_least, name="f.json", unit="FLOP/s", **members):
        return self.write(name, {"schema": 1, "floors": [{"key": "gemm/*", "metric": "throughput", "unit": unit, "protocol": {},
                                                          "at_least": at_least, "source": "a test", **members}]})

    def test_one_host_has_every_check_in_every_file(self):
        done = self.accept("--out", "out", "--json=copy.json")
        (host, checks), = self.table().items()
        self.assertEqual(list(checks), CHECKS)
        self.assertEqual(checks["host"]["state"], "pass", checks)
        self.assertEqual(checks["training"]["state"], "pass", checks)
        for name in ("pairs", "collectives"):
            self.assertEqual(checks[name]["state"], "not_run")
            self.assertTrue(checks[name]["evidence"], name)
        self.assertEqual((self.dir / "copy.json").read_text(), (self.dir / "out/accept.json").read_text())
        document = json.loads((self.dir / "copy.json").read_text())
        self.assertEqual((document["schema"], document["level"]), (1, "tiny"))
        self.assertGreater(document["seconds"], 0)
        with open(self.dir / "out/accept.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([(row["host"], row["check"], row["state"]) for row in rows],
                         [(host, name, checks[name]["state"]) for name in CHECKS])
        self.assertIn("<html", (self.dir / "out/accept.html").read_text())
        self.assertIn("1 host", done.stdout.splitlines()[0])
        self.assertIn(host, (self.dir / "out/accept.html").read_text())
        self.assertIn("about", done.stderr)   # its time, beforehand

    def test_a_missed_floor_names_the_figure_and_keeps_evidence(self):
        done = self.accept("--out", "out", "--floors", self.floors("900 TFLOP/s"), code=1)
        (host, checks), = self.table().items()
        self.assertEqual(checks["host"]["state"], "fail")
        self.assertEqual((checks["host"]["floor"], checks["host"]["unit"], checks["host"]["bound"]), (9e14, "FLOP/s", "at_least"))
        self.assertLess(checks["host"]["figure"], 9e14)
        self.assertEqual(checks["training"]["state"], "not_run")   # it is left out
        self.assertEqual(checks["training"]["evidence"], ["it failed in host"])
        # A slow figure is measured once more before it counts.
        self.assertEqual(len(self.records("out/host")), 1)
        self.assertEqual(len(self.records("out/host-2")), 1)
        document, = json.loads((self.dir / "out/accept.json").read_text())["hosts"]
        self.assertEqual(document["failed"]["floors"][0]["metric"], "throughput")
        tar = self.dir / "out" / document["failed"]["evidence"]
        names = subprocess.run(["tar", "-tf", tar], capture_output=True, text=True, check=True).stdout
        self.assertIn(f"{host}/floors.json", names)
        self.assertIn("hosts passed: 0 · failed: 1", done.stdout)
        # NVIDIA's programs are named only where there are GPUs.
        audit, = json.loads((self.dir / "out/audit.json").read_text())["hosts"]
        self.assertEqual("dcgmi" in done.stdout, bool(audit["gpus"]))

    def test_a_floor_that_holds_and_records_of_another_unit(self):
        self.plan(GEMM, {**GEMM, "dtype": "int8"}, name="levels/product.json",
                  protocol={"max_seconds": "50ms", "warmup_seconds": "1ms", "min_samples": 3})
        self.accept("--out", "out", "--floors", self.floors("1 MFLOP/s"))   # int8 counts OP/s
        (checks,) = self.table().values()
        self.assertEqual(checks["host"]["state"], "pass", checks)
        self.assertEqual(checks["host"]["floor"], 1e6)

    def test_required_floors_that_no_case_measures_are_listed_first_and_are_no_pass(self):
        self.level(training=[])
        floors = json.loads(self.floors(1).read_text())["floors"]
        other = {**floors[0], "required": True}
        missing = [({**other, "key": "gemm/dtype=f32/m=4096/*"}, "matched no record; the nearest key is gemm/"),
                   ({**other, "ranks": 32, "nodes": 4}, "none with 32 ranks, 4 nodes"),
                   ({**other, "relative_to": "fleet_median", "at_least": "90%"}, "no median"),
                   ({**other, "protocol": {"cache": "hot"}}, "the floor asks for hot")]
        self.write("f.json", {"schema": 1, "floors": [*floors, *(floor for floor, _ in missing)]})
        done = self.accept("--out", "out", "--floors", "f.json", code=3)
        (checks,) = self.table().values()
        self.assertEqual((checks["host"]["state"], checks["host"]["floor"]), ("pass", 1), checks)
        document = json.loads((self.dir / "out/accept.json").read_text())
        self.assertEqual(document["verdict"], "inconclusive")
        self.assertEqual([(one["floors"], one["key"], one["required"]) for one in document["not_measured"]],
                         [("f", floor["key"], True) for floor, _ in missing])
        for (_, reason), told in zip(missing, document["not_measured"]):
            self.assertIn(reason, told["reason"])
        says = "not measured at this level: 4 floors of f, 4 of them required ("
        shown = " ".join(done.stdout.split())
        self.assertIn(says, shown)
        self.assertLess(shown.index(says), shown.index("next:"))
        self.assertIn("hosts passed: 1 · failed: 0 · inconclusive: 0 · not measured: 4 floors", shown)
        page = (self.dir / "out/accept.html").read_text()
        self.assertIn(says, page)
        self.assertIn('<header class="band warn">', page)   # amber, not green
        # What no case has the key, the ranks or the hosts for is known before anything runs.
        self.assertIn("not measured at this level: 3 floors of f, 3 of them required (", done.stderr)
        done = self.accept("--dry-run", "--floors", "f.json", code=0)
        self.assertIn("not measured at this level: 3 floors of f, 3 of them required (", done.stdout)

    def test_a_floor_that_is_not_required_and_not_measured_is_only_listed(self):
        self.level(training=[])
        done = self.accept("--out", "out", "--floors", self.floors(1, key="gemm/dtype=f64/*"), code=0)
        self.assertIn("not measured at this level: 1 floor of f (gemm/dtype=f64/* throughput)", " ".join(done.stdout.split()))
        [told] = json.loads((self.dir / "out/accept.json").read_text())["not_measured"]
        self.assertFalse(told["required"])

    def test_stages_that_the_level_requires_and_that_did_not_run_are_no_pass(self):
        self.level(training=[], pairs=["product"], collectives={"cuda": ["product"]})
        done = self.accept("--out", "out", code=3)
        document = json.loads((self.dir / "out/accept.json").read_text())
        (host,) = document["hosts"]
        self.assertEqual((document["verdict"], host["state"]), ("inconclusive", "inconclusive"))
        self.assertIn("hosts passed: 0 · failed: 0 · inconclusive: 1", done.stdout)
        self.assertIn('<header class="band warn">', (self.dir / "out/accept.html").read_text())
        for check, why in (("pairs", "it needs two hosts"), ("collectives", "level tiny has no plan for it on cpu")):
            found = self.table()[host["host"]][check]
            self.assertEqual((found["state"], found["required"], found["evidence"]), ("not_run", True, [why]))
            self.assertIn(f"required, but not run: {check}: {why} (all hosts)", " ".join(done.stdout.split()))
            self.assertRegex(done.stderr, rf"(?m)^  {check} +not run, so no host can pass: {why}")
        # A level may say that it does without.
        self.level(training=[], pairs=["product"], collectives=["product"], required=["host", "collectives"],
                   not_run={"collectives": "no"})
        self.assertRegex(self.accept("--dry-run", code=0).stdout, r"pairs +not run: it needs two hosts\n")
        self.level(training=[], pairs=["product"], collectives=["product"], not_run={"collectives": "one host"}, required=["host"])
        self.accept("--out", "without", code=0)

    def test_a_stage_of_which_every_case_is_skipped_is_no_pass(self):
        self.plan({"family": "transfer"}, name="levels/copies.json")   # of GPUs
        self.plan(GEMM, {"family": "transfer", "direction": "d2d", "bytes": 4096}, name="levels/some.json",
                  protocol={"max_seconds": "50ms", "warmup_seconds": "1ms", "min_samples": 3})
        self.level(host=["some"], training=["copies"])
        done = self.accept("--out", "out", code=3)
        (checks,) = self.table().values()
        self.assertEqual((checks["host"]["state"], checks["training"]["state"]), ("pass", "inconclusive"))
        self.assertIn("host: 1 of 2 cases skipped everywhere: transfer/direction=d2d", " ".join(done.stdout.split()))
        self.level(host=["copies"], training=[])
        self.accept("--out", "host", code=3)
        (checks,) = self.table("host").values()
        self.assertEqual(checks["host"]["state"], "inconclusive")
        self.assertIn("every case was skipped: transfer does not run on cpu", " ".join(checks["host"]["evidence"]))

    @unittest.skipUnless("ASSAY_EMULATED" in os.environ, "this build has no emulated GPU")
    def test_copies_between_the_gpus_of_a_host_are_measured(self):
        self.plan({"family": "transfer", "direction": "p2p", "bytes": 4096}, {"family": "launch", "op": "event"},
                  name="levels/copies.json", protocol={"max_seconds": "50ms", "warmup_seconds": "1ms", "min_samples": 3})
        self.level(host=["copies"], training=[])
        floors = self.floors(1, key="transfer/direction=p2p/*", metric="bandwidth", unit="B/s", required=True, device="cuda")
        self.accept("--device", "cuda", "--out", "out", "--floors", floors, code=0,
                    env={"ASSAY_MODULE_PATH": os.environ["ASSAY_EMULATED"], "ASSAY_EMULATION": "devices=2"})
        (checks,) = self.table().values()
        self.assertIn("transfer/direction=p2p", checks["host"]["of"])
        # The others still take a rank for each GPU.
        self.assertEqual(sorted(record["world"]["ranks"] for record in self.records("out/host")), [1, 2])

    def alone_and_together(self, device, members, **env):
        """The evidence of a host whose plan measures every rank alone and all at once."""
        self.plan({"family": "memory", "op": "copy", "bytes": "1MiB", "gpus": ["each", "together"]},
                  name="levels/both.json", protocol={"max_seconds": "50ms", "warmup_seconds": "1ms", "min_samples": 3})
        self.level(host=["both"], training=[], **members)
        self.accept("--device", device, "--out", "out", code=0, env=env)
        (checks,) = self.table().values()
        for record in self.records("out/host"):
            self.assertTrue(all(rank["median"] > 0 for rank in record["ranks"]), record["key"])
        return " ".join(checks["host"]["evidence"])

    @unittest.skipUnless("ASSAY_EMULATED" in os.environ, "this build has no emulated GPU")
    def test_what_the_gpus_of_a_host_reach_alone_and_all_at_once(self):
        said = self.alone_and_together("cuda", {}, ASSAY_MODULE_PATH=os.environ["ASSAY_EMULATED"], ASSAY_EMULATION="devices=3")
        self.assertRegex(said, r"memory/op=copy/\S+ bandwidth: all 3 at once reach \S+ % of what each reaches alone; least GPU")

    @unittest.skipUnless(shutil.which("mpirun"), "no mpirun")
    def test_what_the_ranks_of_a_cpu_host_reach_alone_and_all_at_once(self):
        said = self.alone_and_together("cpu", {"ranks_per_host": {"cpu": 2}})
        self.assertRegex(said, r"bandwidth: all 2 at once reach \S+ % of what each reaches alone; least rank")
        self.assertEqual(sorted("gpus=" in record["key"] for record in self.records("out/host")), [False, True])

    def test_wrong_results_are_a_fault_of_the_host(self):
        self.accept("--out", "out", code=1, env={"ASSAY_INJECT": "bit-flip"})
        (checks,) = self.table().values()
        self.assertEqual(checks["host"]["state"], "fail")
        self.assertIn("wrong result: gemm/", checks["host"]["evidence"][0])
        self.assertFalse((self.dir / "out/host-2").exists())
        self.assertTrue(any("drill" in note for note in json.loads((self.dir / "out/accept.json").read_text())["notes"]))

    def test_a_dry_run_says_what_would_run_and_leaves_nothing(self):
        before = sorted(self.dir.rglob("*"))
        for level in ("quick", "day"):
            done = self.accept("--dry-run", level=level, code=0)
            for word in ("audit", "host", "pairs", "training", "about"):
                self.assertIn(word, done.stdout)
        self.assertEqual(sorted(self.dir.rglob("*")), before)

    def test_the_memory_of_a_host_is_that_of_its_own_ranks(self):
        hosts = self.write("hosts.txt", "".join(f"h{i}\n" for i in range(200)))
        done = self.accept("--dry-run", "--hostfile", hosts, level="day", code=0)
        self.assertIn("about", done.stdout)

    def test_a_file_of_leaf_switches_is_checked_before_anything_runs(self):
        for text, says in (("SwitchName=leaf1 Nodes=other[1-2]\n", "topology.conf: lists 2 hosts, but not "),
                           ("# nothing\n", "topology.conf: no line as in SwitchName=leaf1 Nodes=n[1-8]"),
                           ("SwitchName=leaf1 Nodes=n[1-\n", "topology.conf:1: Nodes=n[1-: ")):
            file = self.write("topology.conf", text)
            self.refused("accept", "--device", "cpu", "--level", "quick", "--topology", file, "--dry-run", says=says)

    def test_a_level_that_does_not_fit_is_refused_and_leaves_no_folder(self):
        self.plan({"family": "memory", "op": "copy", "bytes": "900TiB"}, name="levels/large.json")
        self.level("huge", host=["large"])
        self.refused("accept", "--device", "cpu", "--level", "levels/huge.json", "--out", "out", says="memory")
        self.assertFalse((self.dir / "out").exists())

    def dry_run_over(self, gpus, *words, code=0):
        """A dry run on a login node without a GPU, of hosts whose audits name so many GPUs each."""
        for host, count in gpus.items():
            audit = {"problems": [], "facts": {}, "events": [],
                     "gpus": [{"pci": f"0000:{i:02x}:00.0", "uuid": f"GPU-{i}", "name": "NVIDIA H100 80GB HBM3"} for i in range(count)]}
            self.write(f"answers/{host}.json", {"schema": 1, "audit": audit})
        shell = self.write("rsh", f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift 2; done
cat {self.dir}/answers/$1.json 2>/dev/null || {{ echo "connect to host $1: No route to host" >&2; exit 255; }}
""")
        shell.chmod(0o755)
        hosts = self.write("hosts.txt", "".join(host + "\n" for host in gpus))
        done = self.assay("accept", "--level", "quick", "--hostfile", hosts, "--dry-run", *words, env={
            "ASSAY_RSH": str(shell), "ASSAY_MODULE_PATH": os.environ.get("ASSAY_EMULATED", ""), "ASSAY_EMULATION": "no_driver"})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    @unittest.skipUnless("ASSAY_EMULATED" in os.environ, "this build has no emulated GPU")
    def test_the_hosts_audits_say_what_their_gpus_are(self):
        for words in ((), ("--device", "cuda")):
            done = self.dry_run_over({"n1": 8, "n2": 8, "n3": 7}, *words)
            self.assertIn("8 x NVIDIA H100 80GB HBM3 on each host, as they say", done.stdout)
            self.assertIn("accept-gpu-host", done.stdout)
        cpus = self.dry_run_over({"n1": 8, "n2": 8}, "--device", "cpu")
        self.assertNotIn("accept-gpu-host", cpus.stdout)
        self.assertNotIn("audit of", cpus.stderr)   # nobody is asked

    def test_hosts_without_gpus_are_accepted_by_their_cpus(self):
        done = self.dry_run_over({"n1": 0, "n2": 0, "n3": 1})
        self.assertIn("accept-quick-host", done.stdout)
        done = self.dry_run_over({"n1": 0, "n2": 0}, "--device", "cuda", code=2) if "ASSAY_EMULATED" in os.environ else None
        if done:
            self.assertIn("most hosts have no GPU, by their audits", done.stderr)

    def test_the_time_of_quick_on_this_host(self):
        done = self.accept("--dry-run", level="quick", code=0)
        self.assertNotRegex(done.stdout.splitlines()[-1], r" h ")

    def test_bad_input_is_refused_in_one_line(self):
        self.refused("accept", says=["--level is required", "quick"])
        self.refused("accept", "--level", "quik", says=["quik", "did you mean", "quick"])
        self.refused("accept", "--level", "levels/tiny.json", "--hostfile", "none.txt", says="none.txt")
        self.refused("accept", "--level", "levels/tiny.json", "--floors", "h100-sxn", says=["h100-sxn", "h100-sxm"])
        self.refused("accept", "--level", "levels/tiny.json", "--floors", self.floors(1, unit="B/s"), says="does not fit")
        self.refused("accept", "--level", "levels/tiny.json", "--resume", "levels", says=["--resume levels", "no acceptance"])
        self.refused("accept", "--level", "levels/tiny.json", "--out", "levels", says=["--out levels", "not empty"])
        self.refused("accept", "--level", "levels/tiny.json", "--out", "a", "--resume", "b", says="exclude each other")
        self.refused("accept", "--levl", "quick", says=["--levl", "--level"])
        self.level("typo", hots=["product"])
        self.refused("accept", "--level", "levels/typo.json", says=["hots", "host"])
        self.level("words", required=["hots"], not_run={"burnin": "x"})
        self.refused("accept", "--level", "levels/words.json", lines=2, says=["levels/words.json", "did you mean"])
        # What the level requires is never taken for nothing.
        self.level("words", required=["host", "storage"])
        self.refused("accept", "--level", "levels/words.json", says=["levels/words.json", "storage", "training"])
        self.refused("accept", "--level", "burn-in", says=["unknown level", "burn-in", "day, quick"])
        self.level("plan", pairs=["no-such-plan"])
        self.refused("accept", "--level", "levels/plan.json", says="no-such-plan")
        self.assertEqual(sorted(path.name for path in self.dir.iterdir()), ["f.json", "levels"])

    def test_floors_whose_unit_no_record_has_are_an_error(self):
        floors = self.floors(1, unit="OP/s")
        done = self.accept("--out", "out", "--floors", floors, code=2)
        self.assertIn("does not fit", done.stderr)

    def test_resuming_something_else_is_refused_with_what_differs(self):
        self.accept("--out", "out")
        self.accept("--resume", "out", level=None)   # the same again: nothing left to do
        self.floors(1)
        self.refused("accept", "--device", "cpu", "--resume", "out", "--floors", "f.json", says="it began without floors")
        self.write("hosts.txt", "localhost\nother\n")
        self.refused("accept", "--device", "cpu", "--resume", "out", "--hostfile", "hosts.txt", says=["other hosts", "other"])
        self.level(seconds="51ms")
        self.refused("accept", "--device", "cpu", "--resume", "out", says=["level tiny", "plans have changed"])
        self.level()
        self.write("out/audit.json", "{")
        self.assertIn("assay: out/audit.json: not JSON", self.accept("--resume", "out", level=None, code=2).stderr)

    def test_an_interrupted_acceptance_goes_on_where_it_was(self):
        self.level(seconds="20s", training=[])
        self.write("levels/product.json", {"schema": 1, "protocol": {"max_seconds": "8s", "min_samples": 3, "target_relative_ci": "0.001%"},
                                           "cases": [{**GEMM, "protocol": {"max_seconds": "50ms"}}, {**GEMM, "k": 65}]})
        process = subprocess.Popen([self.binary, "accept", "--device", "cpu", "--level", "levels/tiny.json", "--out", "out"],
                                   cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        end = time.monotonic() + 60
        while not self.records("out/host") and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3, errors)
        self.assertIn("continue with: assay accept --resume out", errors)
        self.assertIsNone(json.loads((self.dir / "out/accept.json").read_text())["verdict"])
        first, = self.records("out/host")
        self.accept("--resume", "out", level=None)
        self.assertEqual(self.records("out/host")[0], first)
        self.assertEqual(len(self.records("out/host")), 2)
        (checks,) = self.table().values()
        self.assertEqual(checks["host"]["state"], "pass")

    def test_a_host_that_cannot_be_reached_fails_and_the_rest_goes_on(self):
        # One that never answers at all is given up by the audit (fleet_audit_test.py), which takes its minute.
        rsh = self.write("rsh", "#!/bin/sh\nexit 255\n")
        os.chmod(rsh, 0o755)
        self.write("hosts.txt", "localhost\nsilent\n")
        self.accept("--out", "out", "--hostfile", "hosts.txt", code=1, timeout=300,
                    env={"ASSAY_RSH": str(rsh), "ASSAY_LAUNCH_LIMIT": "5"})
        table = self.table()
        self.assertEqual(table["silent"]["audit"]["state"], "fail")
        self.assertEqual(table["silent"]["host"]["evidence"], ["it failed in audit"])
        here, = (checks for host, checks in table.items() if host != "silent")
        self.assertEqual(here["host"]["state"], "pass", here)
        self.assertEqual(here["collectives"]["state"], "not_run")


SCONTROL = """#!/bin/sh
# The state of a node is a file: its state, then its reason.
case $1 in
  -o) [ -e "nodes/$4" ] || { echo "Node $4 not found"; exit 1; }
      { read -r state; read -r reason; } < "nodes/$4"
      echo "NodeName=$4 Features=DRAIN State=$state ThreadsPerCore=1${reason:+ Reason=$reason}" ;;
  update) echo "$*" >> calls
      case $3 in state=drain) printf 'IDLE+DRAIN\\n%s [root@now]\\n' "${4#reason=}" ;; *) echo IDLE ;; esac > "nodes/${2#nodename=}" ;;
esac
"""
KUBECTL = """#!/bin/sh
case $1 in get) read -r state < "nodes/$3"; echo "$state" ;; *) echo "$*" >> calls ;; esac
"""


class Schedulers(AssayCase):
    """What a finished acceptance of made-up hosts leaves for schedulers."""

    def judged(self, name, *words, code=1):
        resume, out = write_acceptance(self.dir, name)
        done = self.assay(*resume, *words)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return out, done

    def drain(self, out, *words, code=0, path=None):
        done = subprocess.run(["/bin/sh", out / "drain.sh", *words], cwd=self.dir, capture_output=True, text=True, timeout=60,
                              env={"PATH": path or f"{self.dir}/bin:/usr/bin:/bin"})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def program(self, name, text):
        self.write(f"bin/{name}", text).chmod(0o755)
        (self.dir / "nodes").mkdir(exist_ok=True)

    def calls(self):
        calls = self.dir / "calls"
        text = calls.read_text() if calls.exists() else ""
        calls.unlink(missing_ok=True)
        return text.splitlines()

    def test_lists_of_hosts_by_verdict(self):
        out, done = self.judged("audit")
        self.assertEqual([(out / name).read_text() for name in ("passed.txt", "failed.txt", "unsure.txt")], ["", "a,b,c\n", "d\n"])
        self.assertIn(f"next: sh {out}/drain.sh · {out}/evidence · {out}/accept.html", done.stdout)
        out, done = self.judged("healthy", code=0)
        self.assertEqual((out / "passed.txt").read_text(), "a\nb\nc\n")
        self.assertEqual((out / "failed.txt").read_text(), "")
        self.assertNotIn("drain.sh", done.stdout)

    def test_slurm_drains_and_gives_back_only_what_it_drained(self):
        out, _ = self.judged("audit")
        self.program("scontrol", SCONTROL)
        for host, text in (("a", "IDLE\n"), ("b", "DOWN+DRAIN\nfan broke\n"), ("c", "IDLE\n"), ("d", "IDLE\n")):
            self.write(f"nodes/{host}", text)
        self.assertIn("b: left alone, drained already: fan broke", self.drain(out))
        first = self.calls()
        self.assertEqual(first, ["update nodename=a state=drain reason=assay: GPU 0 (0000:1b:00.0), failed in audit",
                                 "update nodename=c state=drain reason=assay: failed in audit"])
        self.drain(out)   # again: nothing is left to do
        self.assertEqual(self.calls(), [])
        self.drain(out, "undo", "c")
        self.assertEqual(self.calls(), ["update nodename=c state=resume"])
        self.drain(out, "undo")
        self.assertEqual(self.calls(), ["update nodename=a state=resume"])
        (self.dir / "nodes/a").unlink()
        self.assertIn("a: Node a not found", self.drain(out, code=1))
        self.assertEqual(len(self.calls()), 1)   # the others are drained all the same
        self.assertIn("usage", self.drain(out, "back", code=2))

    def test_kubernetes_cordons(self):
        out, _ = self.judged("audit")
        self.program("kubectl", KUBECTL)
        for host, text in (("a", ","), ("b", "true,"), ("c", "true,assay: failed in audit")):
            self.write(f"nodes/{host}", text)
        only = f"{self.dir}/bin"
        self.assertIn("b: left alone", self.drain(out, path=only))
        self.assertEqual(self.calls(), [
            "cordon a", "annotate --overwrite node a assay/drained=assay: GPU 0 (0000:1b:00.0), failed in audit"])
        self.drain(out, "undo", path=only)
        self.assertEqual(self.calls(), ["uncordon c", "annotate node c assay/drained-"])
        (self.dir / "bin/kubectl").unlink()
        self.assertIn("neither scontrol nor kubectl", self.drain(out, code=4, path=only))

    def test_only_hosts_that_passed(self):
        out, _ = self.judged("slow-sender")
        self.level = self.dir / "levels/tiny.json"
        words = ("accept", "--device", "cpu", "--level", self.level, "--dry-run")
        for command in (words, ("run", "gemm", "--each-host", "--dry-run")):
            for hosts in ((), ("--hostfile", self.write("hosts.txt", "d\nb\nx\nc\n"))):
                shown = self.assay(*command, *hosts, "--only-passed", out)
                self.assertEqual(shown.returncode, 0, shown.stderr)
                if command == words:
                    self.assertIn("(--only-passed): d, b\n" if hosts else "passed.txt: a, b, d\n", shown.stdout)
        self.refused(*words, "--only-passed", self.dir, says=["--only-passed", "no finished acceptance there"])
        self.refused(*words, "--only-passed", self.judged("audit")[0], says="no host passed")
        self.refused("accept", "--level", "quick", "--again", "b", says="--resume")
        self.refused("accept", "--resume", out, "--device", "cpu", "--again", "bb", says=["bb", "not among"])

    def test_a_drill_of_one_host_again(self):
        shell = self.write("rsh", "#!/bin/sh\necho no route >&2\nexit 255\n")
        shell.chmod(0o755)
        resume, out = write_acceptance(self.dir, "slow-sender")
        self.assertEqual(self.assay(*resume).returncode, 1)
        done = self.assay(*resume, "--again", "c", env={"ASSAY_RSH": str(shell), "ASSAY_LAUNCH_LIMIT": "5"}, timeout=120)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        hosts = {host["host"]: host for host in json.loads((out / "accept.json").read_text())["hosts"]}
        self.assertEqual([hosts[name]["state"] for name in "abcd"], ["pass", "pass", "fail", "pass"])
        self.assertIn("pairs: ", hosts["c"]["before"][0])
        self.assertIn("no route", " ".join(hosts["c"]["checks"][0]["evidence"]))
        self.assertIn("a, a partner of c in again-1, did not pass there", " ".join(done.stdout.split()))
        self.assertEqual((out / "again-1/audit.json").exists(), True)

    def test_floors_of_other_hardware_are_refused_before_anything_is_written(self):
        write_machine(self.dir / "machine", gpus=0)
        self.plan(GEMM, name="levels/product.json")
        level = self.write("levels/tiny.json", {"schema": 1, "host": ["product"]})
        with mock.patch.dict(os.environ, {"ASSAY_ROOT": str(self.dir / "machine")}):
            done = self.refused("accept", "--device", "cpu", "--level", level, "--floors", "h100-sxm", "--out", "out", lines=2,
                                says=["floors h100-sxm", "are for *H100 80GB HBM3*", "and not for"])
        self.assertFalse((self.dir / "out").exists())


if __name__ == "__main__":
    unittest.main()
