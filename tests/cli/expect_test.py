"""--expect of audit (one host and several), gate and accept, on machines of files; what accept writes of the fleet's
majority, and that it can be given back."""

import json
import os
import pathlib
import sys
import unittest
from unittest import mock

from assay_case import AssayCase

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import acceptances  # noqa: E402
from fake_machine import BUSES, gpu, write_machine  # noqa: E402

BOUGHT = {"schema": 1, "cpus": {"exactly": 4}, "memory": "900GiB", "gpudirect": True, "mounts": ["/home"], "kernel": "6.8.*",
          "gpus": {"name": "*H100*", "count": {"exactly": 8}, "nvlinks_active": 18, "pcie": "x16 gen5", "driver": "570.*",
                   "vbios": "96.00.*"},
          "rails": [{"board_id": "MT_0000000838", "count": {"exactly": 4}, "rate": "400 Gb/s", "state": "ACTIVE",
                     "pcie": "x16 gen5", "firmware": "28.39.*"}]}
# What is done to a machine that has all of it, the id of the fault, its part, and what the fault says.
LACKS = {
    "a GPU": (lambda m: m.remove_gpu(5), "expected-gpu", "", "gpus.count: expected exactly 8, found 7"),
    "NVLinks": (lambda m: m.nvml(2, nvlinks_active=16), "expected-gpu", gpu(2), "expected 18, found 16"),
    "a VBIOS": (lambda m: m.nvml(3, vbios="95.1"), "expected-gpu", gpu(3), "expected 96.00.*, found 95.1"),
    "lanes": (lambda m: m.write(f"sys/bus/pci/devices/{gpu(1)}/current_link_width", "8"), "expected-gpu", gpu(1),
              "gpus.pcie 0000:2b:00.0: expected x16 gen5, found x8 gen5"),
    "a link": (lambda m: m.port(1, state="1: DOWN"), "expected-nic", "mlx5_1", "rails.state mlx5_1:1: expected ACTIVE, found DOWN"),
    "a rate": (lambda m: m.port(2, rate="200 Gb/sec (4X HDR)"), "expected-nic", "mlx5_2", "expected 400 Gb/s, found 200 Gb/s"),
    "firmware": (lambda m: m.write("sys/class/infiniband/mlx5_3/fw_ver", "28.40.1"), "expected-nic", "mlx5_3", "found 28.40.1"),
    "a port": (lambda m: m.remove("sys/class/infiniband/mlx5_3"), "expected-nic", "",
               "rails: expected exactly 4 of board MT_0000000838, found 3 (mlx5_0:1, mlx5_1:1, mlx5_2:1)"),
    "memory": (lambda m: m.write("proc/meminfo", "MemTotal: 500000000 kB"), "expected-memory", "", "memory: expected 900 GiB"),
    "a mount": (lambda m: m.write("proc/mounts", "/dev/nvme0n1p2 / ext4 rw 0 0"), "expected-disk", "/home", "found not mounted"),
    "a kernel": (lambda m: m.write("proc/sys/kernel/osrelease", "5.15.0"), "expected-system", "", "kernel: expected 6.8.*, found 5.15.0"),
    "GPUDirect": (lambda m: m.remove("sys/module/nvidia_peermem").write("proc/driver/nvidia/version", "x"), "expected-gpu", "",
                  "gpudirect: expected true, found false"),
}


class Expectations(AssayCase):
    def setUp(self):
        super().setUp()
        self.write("node.json", BOUGHT)
        # Like ssh: options, the host, then a line for a shell there. Each host has a machine of its own.
        rsh = self.write("rsh", f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift 2; done
[ -d {self.dir}/$1 ] || {{ echo "no route to $1" >&2; exit 255; }}
export ASSAY_ROOT={self.dir}/$1
exec sh -c "$2"
""")
        rsh.chmod(0o755)
        self.env = {"ASSAY_RSH": str(rsh), "ASSAY_CACHE": str(self.dir / "cache"),
                    "ASSAY_HOST": f"expect-{os.getpid()}-{self._testMethodName}"[:60]}

    def machine(self, name="here"):
        machine = write_machine(self.dir / name)
        for index in range(len(BUSES)):
            machine.nvml(index, vbios="96.00.74.00.01", nvlinks_active=18)
        return machine

    def here(self, *words, code, name="here"):
        done = self.assay(*words, "--expect", "node.json", env={**self.env, "ASSAY_ROOT": str(self.dir / name)}, timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def hosts(self, *names):
        return self.write("hosts", "".join(f"{name}\n" for name in names))

    def fleet(self, *names, expect="node.json", code):
        done = self.assay("audit", "--hostfile", self.hosts(*names), "--expect", expect, "--json", env=self.env, timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return {host["host"]: [one for one in host["problems"] if one["id"].startswith("expected-")]
                for host in json.loads(done.stdout)["hosts"]}


class Audit(Expectations):
    def test_a_machine_as_bought_holds_and_its_inventory_does(self):
        self.machine()
        answer = json.loads(self.here("audit", "--json", code=0).stdout)
        self.assertEqual(answer["expect"], {"file": "node.json", "held": True, "shortfalls": []})
        inventory = answer["audit"]["inventory"]
        self.assertEqual((inventory["gpus"]["count"], inventory["rails"][0]["count"]), ({"exactly": 8}, {"exactly": 4}))
        self.write("node.json", inventory)
        self.here("audit", code=0)
        self.assertEqual(answer["audit"]["facts"]["nvlinks NVIDIA H100 80GB HBM3"], "18")

    def test_everything_that_is_lacking_is_a_fault_that_names_the_part(self):
        for number, (lack, (change, kind, part, says)) in enumerate(LACKS.items()):
            with self.subTest(lack):
                change(self.machine(f"m{number}"))
                answer = json.loads(self.here("audit", "--json", code=1, name=f"m{number}").stdout)
                faults = [one for one in answer["audit"]["problems"] if one["id"].startswith("expected-")]
                self.assertEqual([(one["id"], one["severity"], one["device"]) for one in faults], [(kind, "fault", part)])
                self.assertIn(says, faults[0]["seen"])
                self.assertFalse(answer["expect"]["held"])
                self.assertEqual(len(answer["expect"]["shortfalls"]), 1)

    def test_what_cannot_be_read_is_not_judged(self):
        machine = self.machine().remove("sys/class/infiniband/mlx5_0/fw_ver")
        machine.devices[gpu(4)].pop("vbios")
        machine.write_json()
        done = self.here("audit", code=3)
        self.assertIn("node.json: all that was judged held", done.stdout)
        self.assertIn("not judged: rails.firmware mlx5_0:1: expected 28.39.*, found unknown", done.stdout)
        answer = json.loads(self.here("audit", "--json", code=3).stdout)
        self.assertEqual([one["device"] for one in answer["expect"]["not_judged"]], [gpu(4), "mlx5_0"])
        machine.remove_gpu(7)
        self.here("audit", code=1)

    def test_bad_files_name_the_place_and_the_nearest_member(self):
        self.machine()
        self.write("node.json", {"schema": 1, "gpus": {"nvlinks": 18, "pcie": "x16gen5"}, "rails": [{"boardid": "x", "count": {"exact": 8}}]})
        for words in (("audit",), ("audit", "--hostfile", self.hosts("here")), ("gate",), ("accept", "--level", "quick", "--device", "cpu")):
            done = self.here(*words, code=2)
            for text in ("node.json", "/gpus/nvlinks", "nvlinks_active", "/gpus/pcie", "/rails/0/boardid", "board_id", "/rails/0/count/exact"):
                self.assertIn(text, done.stderr, words)

    def test_several_hosts(self):
        self.machine("a1")
        self.machine("a2").port(1, rate="200 Gb/sec (4X HDR)")
        self.assertEqual(self.fleet("a1", code=0), {"a1": []})
        found = self.fleet("a1", "a2", code=1)
        self.assertEqual(found["a1"], [])
        self.assertEqual([(one["device"], one["host"]) for one in found["a2"]], [("mlx5_1", "a2")])
        self.machine("a3").remove("sys/class/infiniband/mlx5_0/fw_ver")
        self.assertEqual([one["id"] for one in self.fleet("a1", "a3", code=3)["a3"]], ["expected-unread"])
        # A file of another tool is read on each host.
        self.write("nhc.conf", "# all\n * || check_hw_ib 400\n * || check_ps_service sshd\n")
        self.assertIn("check_ps_service sshd", self.fleet("a1", expect="nhc.conf", code=3)["a1"][0]["seen"])

    def test_a_host_whose_build_does_not_compare_is_not_judged(self):
        self.machine("a1")
        (self.dir / "rsh").write_text("#!/bin/sh\n" 'echo \'{"schema":1,"audit":{"problems":[],"facts":{}}}\'\n')
        self.assertEqual([one["seen"] for one in self.fleet("a1", code=3)["a1"]], ["its build does not know --expect"])


class Gate(Expectations):
    def test_a_lack_drains_and_what_cannot_be_read_is_not_judged(self):
        machine = self.machine()
        words = ("gate", "--profile", "health", "--json")
        self.assertEqual(json.loads(self.here(*words, code=0).stdout)["verdict"], "ok")
        machine.remove("sys/class/infiniband/mlx5_0/fw_ver")
        answer = json.loads(self.here(*words, code=3).stdout)
        self.assertEqual(answer["verdict"], "not_judged")
        self.assertIn("rails.firmware mlx5_0:1: expected 28.39.*, found unknown", " ".join(answer["notes"]))
        machine.port(1, state="1: DOWN")
        answer = json.loads(self.here(*words, code=1).stdout)
        self.assertIn(("ASSAY-NET-018", "mlx5_1"), [(one["code"], one["device"]) for one in answer["findings"]])


class Accept(Expectations):
    def accept(self, *words, hosts=("a1", "a2", "a3"), out, code):
        protocol = {"max_seconds": "50ms", "warmup_seconds": "1ms", "min_samples": 3}
        self.plan({"family": "gemm", "dtype": "f32", "m": 64, "n": 64, "k": 64}, name="levels/product.json", protocol=protocol)
        self.write("levels/tiny.json", {"schema": 1, "host": ["product"]})
        done = self.assay("accept", "--device", "cpu", "--level", "levels/tiny.json", "--hostfile", self.hosts(*hosts), "--out", out,
                          *words, env=self.env, timeout=300)
        self.assertIn(done.returncode, code, done.stdout + done.stderr)
        document = json.loads((self.dir / out / "accept.json").read_text())
        checks = {host["host"]: {one["name"]: one for one in host["checks"]} for host in document["hosts"]}
        return done, document, checks

    def test_what_most_hosts_have_can_be_given_back(self):
        for name in ("a1", "a2", "a3"):
            self.machine(name)
        done, document, _ = self.accept(out="first", code=(0, 1, 3))
        expect = json.loads((self.dir / "first/expect.json").read_text())
        self.assertEqual((expect["gpus"]["nvlinks_active"], expect["rails"][0]["firmware"]), (18, "28.39.1002"))
        self.assertFalse([note for note in document["notes"] if "expect.json" in note])
        self.assertEqual({name: check["audit"]["state"] for name, check in self.accept("--expect", "first/expect.json", out="again", code=(0, 1, 3))[2].items()},
                         {"a1": "pass", "a2": "pass", "a3": "pass"})
        self.machine("a4").port(2, state="1: DOWN")
        _, document, checks = self.accept("--expect", "first/expect.json", hosts=("a1", "a4"), out="lacking", code=(1,))
        self.assertEqual((checks["a1"]["audit"]["state"], checks["a4"]["audit"]["state"]), ("pass", "fail"))
        self.assertIn("mlx5_2:1: expected ACTIVE, found DOWN", " ".join(checks["a4"]["audit"]["evidence"]))
        # Resumed, it is the same expectation; another is refused.
        self.write("other.json", {"schema": 1})
        done = self.assay("accept", "--device", "cpu", "--resume", "lacking", "--expect", "other.json", env=self.env)
        self.assertEqual(done.returncode, 2)
        self.assertIn("other.json is not what it began with", done.stderr)

    def judged(self, name, values, floors=(), odd=None):
        """The states of the stage host in an acceptance of these figures, and its folder."""
        inventory = {"schema": 1, "cpu": {"model": "X"}, "kernel": "6.8"}
        audit = {"hosts": [acceptances.answer(host, inventory={**inventory, **(odd or {}).get(host, {})}) for host in values]}
        hosts = list(values)
        stages = acceptances.whole(hosts, host=[acceptances.attempt(hosts, *acceptances.each(values))])
        case = {"hosts": hosts, "stages": stages, "audit": audit, **({"floors": floors} if floors else {})}
        with mock.patch.dict(acceptances.ACCEPTANCES, {name: case}):
            words, _ = acceptances.write_acceptance(self.dir / name, name)
        done = self.assay(*words, env=self.env)
        self.assertIn(done.returncode, (0, 1, 3), done.stderr)
        document = json.loads((self.dir / name / "out/accept.json").read_text())
        return {host["host"]: host["checks"][1]["state"] for host in document["hosts"]}, document["notes"], done.stderr

    def test_what_most_hosts_reach_can_be_given_back(self):
        values = {"a": 1e11, "b": 1.01e11, "c": 0.99e11, "d": 1.005e11}
        _, _, said = self.judged("first", values)
        self.assertIn("floors.json: 1 floor of 1 case", said)
        floors = json.loads((self.dir / "first/out/floors.json").read_text())["floors"]
        self.assertEqual(self.judged("again", values, floors)[0], {host: "pass" for host in values})
        self.assertEqual(self.judged("slow", {**values, "c": 6e10}, floors)[0], {**{host: "pass" for host in values}, "c": "fail"})
        # Of hosts of two kinds, those of the more frequent kind; of two halves, none.
        other = {"cpu": {"model": "Y"}}
        _, notes, _ = self.judged("kinds", {**values, "e": 5e10}, odd={"e": other})
        self.assertIn("not of e (cpu.model Y)", " ".join(notes))
        kinds = json.loads((self.dir / "kinds/out/floors.json").read_text())["floors"]
        self.assertEqual([one["at_least"] for one in kinds], [one["at_least"] for one in floors])
        _, notes, said = self.judged("halves", values, odd={"c": other, "d": other})
        self.assertIn("cpu.model: no value has a majority: 2 hosts X, 2 hosts Y", " ".join(notes))
        self.assertIn("no floors.json: no kind of host has a majority", said)

    def test_ties_and_hosts_of_another_kind_are_said(self):
        self.machine("a1")
        self.machine("a2").write("proc/sys/kernel/osrelease", "6.9.0").remove_gpu(7)
        _, document, _ = self.accept(hosts=("a1", "a2"), out="out", code=(1, 3))
        notes = " ".join(document["notes"])
        self.assertIn("not in expect.json: kernel: no value has a majority: 1 host 6.8.0-45-generic, 1 host 6.9.0", notes)
        self.assertIn("hosts of several kinds, and none has a majority", notes)
        self.assertNotIn("kernel", json.loads((self.dir / "out/expect.json").read_text()))
        self.assertFalse((self.dir / "out/floors.json").exists())

    def test_what_cannot_be_read_is_inconclusive(self):
        self.machine("a1").remove("sys/class/infiniband/mlx5_0/fw_ver")
        _, _, checks = self.accept("--expect", "node.json", hosts=("a1",), out="out", code=(3,))
        self.assertEqual(checks["a1"]["audit"]["state"], "inconclusive")


if __name__ == "__main__":
    unittest.main()
