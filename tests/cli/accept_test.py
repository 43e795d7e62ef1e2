"""assay accept on one host: its table and files, a dry run, refusals, resuming; hosts that never answer."""

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
        self.assertIn(host, done.stdout)
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
        self.assertLess(shown.index(says), shown.index("audit"))
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
            self.assertIn("gpu-quick", done.stdout)
        cpus = self.dry_run_over({"n1": 8, "n2": 8}, "--device", "cpu")
        self.assertNotIn("gpu-quick", cpus.stdout)
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
        self.write("levels/product.json", {"schema": 1, "protocol": {"max_seconds": "20s", "min_samples": 3, "target_relative_ci": "0.001%"},
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

    def test_a_host_that_never_answers_fails_and_the_rest_goes_on(self):
        rsh = self.write("rsh", "#!/bin/sh\nexec sleep 600\n")
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


if __name__ == "__main__":
    unittest.main()
