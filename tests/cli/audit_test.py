"""assay audit on folders of a machine's files: a healthy one has no problem, and each of many faults is found by its
id and device, alone of its severity."""

import json
import os
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from assay_case import AssayCase  # noqa: E402
from fake_machine import DRIVER, UPTIME, bridge_config, gpu, write_machine  # noqa: E402

GPU = gpu(2)
PCI = f"sys/bus/pci/devices/{GPU}"
NIC = "sys/class/infiniband/mlx5_1"
PORT = f"{NIC}/ports/1"


def writes(path, text):
    return lambda machine: machine.write(path, text)


def says(*messages):
    return lambda machine: machine.kernel_says(*messages)


def reports(**members):
    return lambda machine: machine.nvml(2, **members)


def xid(number, text="pid=1"):
    return says(f"NVRM: Xid (PCI:{GPU[:-2]}): {number}, {text}")


def rails(machine):
    """Two GPUs and two ports below one switch, twice: mlx5_0 and mlx5_1 are compute ports, mlx5_2 and mlx5_3 are not."""
    machine.root_port("18", gpu(0), gpu(1), "0000:10:00.0", "0000:11:00.0")
    return machine.root_port("98", gpu(4), gpu(5)).root_port("99", "0000:12:00.0", "0000:13:00.0")


def all_ports(**members):
    return lambda machine: [machine.port(index, **members) for index in range(4)]


OFF_BUS = ("NVRM: The NVIDIA GPU {0}", "NVRM: (PCI ID: 10de:2330) installed in this system has",
           "NVRM: fallen off the bus and is not responding to commands.")


def off_bus(*separators):
    """The report of three lines, as one message with these between its lines."""
    return says(OFF_BUS[0].format(GPU) + separators[0] + OFF_BUS[1] + separators[-1] + OFF_BUS[2])


def syslog(text, days_ago):
    moment = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() - days_ago * 86400))
    return writes("var/log/kern.log", f"{moment} node01 kernel: [   12.000000] {text}")


def many(name, state, count):
    def change(machine):
        for pid in range(1000, 1000 + count):
            machine.process(pid, name, state)
    return change


def sets_mtime(path, seconds):
    def change(machine):
        machine.write(path)
        os.utime(machine.root / path, (time.time() + seconds,) * 2)
    return change


TORCH = "usr/local/lib/python3.12/dist-packages"


def torch(version, cuda, nccl=None):
    def change(machine):
        machine.write(f"{TORCH}/torch/version.py", f"__version__ = '{version}'\ncuda: Optional[str] = {cuda!r}")
        if nccl:
            machine.write(f"{TORCH}/nvidia_nccl_cu12-{nccl}.dist-info/METADATA")
            machine.write("usr/lib/x86_64-linux-gnu/libnccl.so.2.27.3")
    return change


# id of the problem, its device, the change to a healthy machine
FAULTS = [
    ("gpu-missing", GPU, lambda m: m.remove(f"proc/driver/nvidia/gpus/{GPU}")),
    ("gpu-missing", GPU, lambda m: m.remove_gpu(2, everywhere=False)),
    ("gpu-count", "", lambda m: m.remove_gpu(2)),
    ("gpu-lost", GPU, writes(f"{PCI}/config", b"\xff" * 64)),
    ("gpu-lost", GPU, reports(lost=True)),
    ("gpu-init-failed", GPU, says(f"NVRM: GPU {GPU}: RmInitAdapter failed! (0x22:0x56:0x8f)")),
    ("ecc-uncorrected", GPU, reports(ecc_uncorrected=3)),
    ("remap-pending", GPU, reports(remap_pending=1)),
    ("remap-failure", GPU, reports(remap_failures=1)),
    ("xid-fatal", GPU, xid(79, "GPU has fallen off the bus.")),
    ("xid-fatal", GPU, xid(48, "DBE (double bit error)")),
    ("xid-fatal", GPU, xid(154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)")),
    ("xid-fatal", GPU, xid(149, "NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000)")),
    ("xid-fatal", GPU, xid(145, "RLW_SRC_TRACK\n FATAL XC1 i0 Link 15 (0x00000001)")),
    *[("xid-fatal", GPU, xid(number)) for number in (167, 169, 171, 172)],
    ("gpu-lost", GPU, off_bus("\\x0a")),
    ("gpu-lost", GPU, off_bus("\n ")),
    ("gpu-lost", GPU, says(*[line.format(GPU) for line in OFF_BUS])),
    ("gpu-no-driver", GPU, lambda m: m.without_driver()),
    ("sxid-fatal", "0000:c1:00.0", says("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Fatal, Link 32 egress")),
    ("aer-fatal", GPU, says(f"{GPU}: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer")),
    ("aer-fatal", GPU, writes(f"{PCI}/aer_dev_fatal", "Undefined 1\nTOTAL_ERR_FATAL 1")),
    ("hardware-error", "", says("{1}[Hardware Error]: event severity: fatal")),
    ("memory-uncorrected", "mc0", writes("sys/devices/system/edac/mc/mc0/ue_count", "2")),
    ("memory-uncorrected", "mc1", says("EDAC MC1: 1 UE memory read error on CPU_SrcID#0_MC#1_Chan#0_DIMM#0")),
    ("nic-health", "0000:11:00.0", says("mlx5_core 0000:11:00.0: poll_health:800: device's health compromised - reached miss count")),
    ("fabric-down", "", all_ports(state="1: DOWN", phys_state="2: Polling")),
    ("fabric-down", "", lambda m: all_ports(state="2: INIT")(rails(m))),
    ("fabric-down", "", lambda m: rails(m).port(0, state="1: DOWN").port(1, state="1: DOWN")),
    ("fabric-down", "", lambda m: m.write("etc/nccl.conf", "NCCL_IB_HCA==mlx5_3:1").port(3, state="1: DOWN")),
    ("fabric-down", "", writes("etc/nccl.conf", "NCCL_IB_HCA=rocep")),
    ("fabric-down", "", lambda m: rails(m).write("etc/nccl.conf", "NCCL_IB_HCA==").port(0, state="1: DOWN").port(1, state="1: DOWN")),
    ("rail-down", "mlx5_1", lambda m: rails(m).port(1, state="1: DOWN")),
    ("rail-down", "mlx5_3", lambda m: m.write("etc/nccl.conf", "NCCL_IB_HCA=mlx5_2,mlx5_3").port(3, state="2: INIT")),
    ("nic-link-lost", "mlx5_1", lambda m: m.write(f"{PORT}/state", "1: DOWN").write(f"{PORT}/counters/link_downed", "1")),
    ("nic-link-lost", "eth0", writes("sys/class/net/eth0/operstate", "down")),
    ("disk-full", "/scratch", lambda m: m.statfs("/scratch", free=0)),
    ("inodes-full", "/scratch", lambda m: m.statfs("/scratch", free_inodes=0)),
    ("read-only", "/scratch", writes("proc/mounts", "/dev/nvme0n1p2 / ext4 rw 0 0\n/dev/nvme1n1 /scratch xfs ro 0 0\n"
                                     "filer:/home /home nfs4 rw 0 0")),
    ("mount-stuck", "/home", lambda m: m.statfs("/home", stuck=True)),
    ("mount-stuck", "/volume/1999", lambda m: m.statfs("/volume/1999", stuck=True).write("proc/mounts", "\n".join(
        ["/dev/nvme0n1p2 / ext4 rw 0 0", "/dev/nvme1n1 /scratch xfs rw 0 0", "filer:/home /home nfs4 rw 0 0"] +
        [f"filer:/{i} /volume/{i} nfs4 rw 0 0" for i in range(2000)]))),
    ("disk-lost", "nvme0", writes("sys/class/nvme/nvme0/state", "dead")),
    ("disk-lost", "nvme1", says("nvme nvme1: Removing after probe failure status: -19")),
    ("disk-lost", "sdb1", says("md/raid10:md2: Disk failure on sdb1, disabling device.")),
    ("disk-lost", "nvme0n1p1", says("md/raid1:md1: Disk failure on nvme0n1p1 detected, failing array.")),
    ("disk-lost", "nvme2n1", says("block nvme2n1: no available path - failing I/O")),
    ("clock-wrong", "", sets_mtime("var/log/syslog", 90 * 86400)),
    ("clock-wrong", "", writes("sys/class/rtc/rtc0/since_epoch", "1000000000")),
    ("fabric-manager", "", lambda m: m.remove("proc/500")),
    ("fabric-manager-version", "", writes("var/lib/dpkg/status", "Package: nvidia-fabricmanager-570\n"
                                          "Status: install ok installed\nVersion: 570.124.06-1")),
    ("driver-library-mismatch", "", lambda m: m.remove(f"usr/lib/x86_64-linux-gnu/libcuda.so.{DRIVER}").write(
        "usr/lib/x86_64-linux-gnu/libcuda.so.570.124.06")),
]

WARNINGS = [
    ("rows-remapped", GPU, reports(rows_remapped=9)),
    ("ecc-corrected", GPU, reports(ecc_corrected=5000)),
    ("nvlink-errors", GPU, reports(nvlink_errors=1)),
    ("pcie-replays", GPU, reports(pcie_replays=5000)),
    ("gpu-hot", GPU, reports(temperature=91)),
    ("gpu-link-width", GPU, writes(f"{PCI}/current_link_width", "8")),
    ("gpu-slot", GPU, writes("sys/bus/pci/devices/max_link_speed", "16.0 GT/s PCIe")),
    ("gpu-ecc", GPU, reports(ecc=False)),
    ("gpu-mig", GPU, reports(mig=True)),
    ("gpu-power-limit", GPU, reports(power_limit=500)),
    ("gpu-clocks", GPU, reports(throttle_reasons=2)),
    ("gpu-throttled", GPU, reports(throttle_reasons=0x40)),
    ("no-management-library", "", lambda m: m.remove("nvml.json")),
    ("xid-hardware", GPU, xid(94, "Contained")),
    ("xid-hardware", GPU, xid(149, "NETIR_LINK_EVT  Nonfatal XC0 i0 Link 01 (0x021425c6 0x00000000)")),
    ("xid-hardware", GPU, xid(146, "TLW_RX Non-Fatal XC0 i0 Link 03 (0x00000001)")),
    ("xid-hardware", GPU, xid(160)),
    ("xid-unknown", GPU, xid(999)),
    ("gpu-driver", GPU, lambda m: m.without_driver(device="0x26b1")),
    ("xid-application", GPU, xid(31, "MMU Fault")),
    ("sxid", "0000:c1:00.0", says("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Non-fatal, Link 30 LTSSM Fault Up")),
    ("past-errors", GPU, syslog(f"NVRM: Xid (PCI:{GPU[:-2]}): 79, GPU has fallen off the bus.", 3)),
    ("past-errors", GPU, says(f"NVRM: Xid (PCI:{GPU[:-2]}): 95, Uncontained",
                              f"NVRM: Xid (PCI:{GPU[:-2]}): 154, GPU recovery action changed from 0x1 (GPU Reset Required) "
                              "to 0x0 (None)")),
    ("aer-nonfatal", GPU, says(f"{GPU}: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer")),
    ("aer-corrected", GPU, says(*[f"{GPU}: PCIe Bus Error: severity=Corrected, type=Physical Layer"] * 12)),
    ("machine-check", "", says("mce: [Hardware Error]: Machine check events logged")),
    ("memory-corrected", "mc0", writes("sys/devices/system/edac/mc/mc0/ce_count", "7")),
    ("thermal-events", "", says("CPU3: Package temperature above threshold, cpu clock throttled (total events = 1)")),
    ("link-events", "eth0", says("ice 0000:05:00.0 eth0: NIC Link is Down")),
    ("link-events", "mlx5_1", says("mlx5_core 0000:11:00.0 mlx5_1: Port: 1 Link DOWN")),
    ("link-events", "eth0", says("ice 0000:05:00.0 eth0: NIC LINK is down")),
    ("nic-power", "0000:11:00.0", says("mlx5_core 0000:11:00.0: mlx5_pcie_event:299:(pid 268269): Detected insufficient power on the "
                                       "PCIe slot (27W).")),
    ("nic-missing", "", writes("etc/nccl.conf", "NCCL_IB_HCA==mlx5_0,mlx5_1,mlx5_4")),
    ("nic-command", "0000:11:00.0", says("mlx5_core 0000:11:00.0: mlx5_cmd_out_err:838:(pid 2): ACCESS_REG(0x805) op_mod(0x1) failed, "
                                         "status bad operation(0x2)")),
    ("slot-power", "0000:00:01.0", says("pcieport 0000:00:01.0: pciehp: Slot(3): Power fault")),
    ("slot-down", "0000:00:01.0", says("pcieport 0000:00:01.0: pciehp: Slot(3): Link Down")),
    ("peermem-context", "", says("nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing")),
    ("nccl-segfault", "", says("python[7188]: segfault at 7ff8 ip 00007f0c sp 00007f0d error 4 in libnccl.so.2.27.3[7f00+8000000]")),
    ("file-limit", "", says("VFS: file-max limit 1000000 reached")),
    ("nic-errors", "mlx5_1 port 1", writes(f"{PORT}/hw_counters/packet_seq_err", "700")),
    ("nic-errors", "mlx5_1 port 1", lambda m: all_ports(**{"hw_counters/out_of_sequence": "3000"})(m) and m.port(
        1, **{"hw_counters/out_of_sequence": "900000"})),
    ("nic-slow", "mlx5_1", lambda m: rails(m).port(1, rate="200 Gb/sec (2X NDR)")),
    ("link-flaps", "mlx5_1 port 1", writes(f"{PORT}/counters/link_downed", "2")),
    ("link-flaps", "eth0", writes("sys/class/net/eth0/carrier_down_count", "9")),
    ("nic-errors", "mlx5_1 port 1", writes(f"{PORT}/counters/symbol_error", "500")),
    ("nic-timeout", "eth0", says("NETDEV WATCHDOG: eth0 (ice): transmit queue 3 timed out")),
    ("nic-cable", "0000:11:00.0", says("mlx5_core 0000:11:00.0: Port module event[error]: module 0, Cable error, High Temperature")),
    ("nic-down", "mlx5_1", writes(f"{PORT}/state", "1: DOWN")),
    ("nic-down", "", lambda m: all_ports(state="1: DOWN")([m.root_port(f"{32 + i}", gpu(i)) for i in range(8)][0])),
    ("nic-slow", "mlx5_1", writes(f"{PORT}/rate", "200 Gb/sec (4X HDR)")),
    ("nic-pcie", "mlx5_1", writes("sys/bus/pci/devices/0000:11:00.0/current_link_speed", "8.0 GT/s PCIe")),
    ("nic-firmware", "MT_0000000838", writes(f"{NIC}/fw_ver", "28.38.1900")),
    ("bond-degraded", "bond0", writes("proc/net/bonding/bond0", "MII Status: up\n\nSlave Interface: eth1\nMII Status: down")),
    ("oom-kill", "", says("Out of memory: Killed process 77 (python) total-vm:1kB")),
    ("oom-cgroup", "", says("Memory cgroup out of memory: Killed process 77 (python) total-vm:1kB")),
    ("hung-task", "", says("INFO: task python:77 blocked for more than 122 seconds.")),
    ("cpu-lockup", "", says("watchdog: BUG: soft lockup - CPU#3 stuck for 26s! [python:77]")),
    ("kernel-oops", "", says("BUG: unable to handle page fault for address: ffff")),
    ("disk-errors", "nvme1n1", says("I/O error, dev nvme1n1, sector 8 op 0x0:(READ) flags 0x0")),
    ("disk-errors", "nvme1", says("nvme nvme1: I/O 258 (I/O Cmd) QID 4 timeout, aborting")),
    ("filesystem-errors", "nvme0n1p2", says("EXT4-fs (nvme0n1p2): Remounting filesystem read-only")),
    ("mount-stalled", "filer", says("nfs: server filer not responding, still trying")),
    ("mount-missing", "/home", writes("proc/mounts", "/dev/nvme0n1p2 / ext4 rw 0 0\n/dev/nvme1n1 /scratch xfs rw 0 0")),
    ("disk-nearly-full", "/home", lambda m: m.statfs("/home", free=0)),
    ("raid-degraded", "md0", writes("proc/mdstat", "md0 : active raid1 sdb1[1]\n      976630336 blocks [2/1] [_U]")),
    ("kernel-log-unreadable", "", lambda m: m.remove("dev/kmsg")),
    ("acs-redirect", "", writes("sys/bus/pci/devices/0000:00:01.0/config", bridge_config(True))),
    ("iommu-translates", GPU, writes(f"{PCI}/iommu_group/type", "DMA-FQ")),
    ("no-gpudirect-rdma", "", lambda m: m.remove("sys/module/nvidia_peermem").write(
        "proc/driver/nvidia/version", f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {DRIVER}  x")),
    ("gpu-far-from-nic", gpu(7), lambda m: [m.write(f"sys/bus/pci/devices/0000:{n}:00.0/numa_node", "0") for n in (12, 13)]),
    ("topology-file-missing", "/etc/topo.xml", writes("etc/nccl.conf", "NCCL_TOPO_FILE=/etc/topo.xml")),
    ("imex", "", writes("etc/nvidia-imex/nodes_config.cfg", "10.0.0.1")),
    ("memory-low", "", writes("proc/meminfo", "MemTotal: 1000000000 kB\nMemAvailable: 9000000 kB")),
    ("memory-uneven", "", writes("sys/devices/system/node/node1/meminfo", "Node 1 MemTotal: 400000000 kB")),
    ("cpus-offline", "", lambda m: m.write("sys/devices/system/cpu/offline", "3").write("sys/devices/system/cpu/online", "0-2")),
    ("clock-unsynchronised", "", lambda m: m.remove("run/systemd/timesync/synchronized")),
    ("memlock", "", writes("proc/self/limits", "Max locked memory         65536                65536                bytes\n"
                           "Max open files            1048576              1048576              files")),
    ("processes-blocked", "", many("python", "D", 9)),
    ("zombies", "", many("python", "Z", 60)),
    ("reboot-required", "", writes("run/reboot-required", "*** System restart required ***")),
    ("swap", "", writes("proc/meminfo", "MemTotal: 1000000000 kB\nMemAvailable: 900000000 kB\nSwapTotal: 9000000 kB\n"
                        "SwapFree: 1000000 kB")),
    ("numa-balancing", "", writes("proc/sys/kernel/numa_balancing", "1")),
    ("huge-pages", "", writes("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]")),
    ("governor", "", writes("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave")),
    ("torch-needs-newer-driver", "", torch("2.9.0+cu130", "13.0")),
    ("torch-without-cuda", "", torch("2.9.0+cpu", None)),
    ("torch-nccl", "", torch("2.9.0+cu128", "12.8", nccl="2.21.5")),
]


class Audit(AssayCase):
    def machine(self, name="m", **changes):
        return write_machine(self.dir / name, **changes)

    def audit(self, machine, *words, code=None):
        done = self.assay("audit", "--json", *words, env={"ASSAY_ROOT": str(machine.root)})
        self.assertEqual(done.stderr, "")
        document = json.loads(done.stdout)
        faults = [each for each in document["audit"]["problems"] if each["severity"] == "fault"]
        self.assertEqual(done.returncode, (1 if faults else 0) if code is None else code, done.stdout)
        return document

    def test_a_healthy_machine_has_no_problem(self):
        document = self.audit(self.machine(), code=0)
        problems = document["audit"]["problems"]
        self.assertEqual([each for each in problems if each["severity"] != "info"], [])
        self.assertEqual(document["schema"], 1)
        self.assertEqual(document["hostnames"], ["node01"])
        self.assertEqual(len(document["gpus"]), 8)
        facts = document["audit"]["facts"]
        self.assertEqual(facts["driver"], DRIVER)
        self.assertEqual(facts["kernel"], "6.8.0-45-generic")
        self.assertEqual(facts["gpus NVIDIA H100 80GB HBM3"], "8")
        self.assertEqual(facts["nic firmware mlx5_0"], "28.39.1002")
        self.assertEqual(facts["sysctl vm.overcommit_memory"], "0")
        self.assertEqual(facts["kernel command line"], "iommu=pt")
        self.assertEqual(document["audit"]["events"], [])

    def check_table(self, table, severities):
        for number, (name, device, change) in enumerate(table):
            with self.subTest(name=name, device=device):
                machine = self.machine(f"m{number}")
                change(machine)
                problems = self.audit(machine)["audit"]["problems"]
                found = {(each["id"], each["device"]): each for each in problems}
                self.assertIn((name, device), found)
                each = found[name, device]
                self.assertIn(each["severity"], severities)
                self.assertTrue(each["seen"] and each["meaning"] and each["fix"], each)
                faults = {other["id"] for other in problems if other["severity"] == "fault"}
                self.assertEqual(faults, {name} if each["severity"] == "fault" else set())

    def test_each_fault_is_found_and_no_other(self):
        self.assertGreaterEqual(len({name for name, _, _ in FAULTS + WARNINGS}), 40)
        self.check_table(FAULTS, ("fault",))

    def test_each_warning_is_found_and_is_no_fault(self):
        self.check_table(WARNINGS, ("warning", "info"))

    def test_an_event_says_when_where_and_what(self):
        machine = self.machine()
        machine.kernel_says(*[f"NVRM: Xid (PCI:{GPU[:-2]}): 79, GPU has fallen off the bus."] * 2, ago=7200)
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(machine.boot + UPTIME - 7200))
        audit = self.audit(machine)["audit"]
        self.assertEqual(audit["problems"][0]["seen"], f"XID 79 at {at}, 2 times")
        self.assertIn("fallen off the bus", audit["problems"][0]["meaning"])
        self.assertEqual([[each[name] for name in ("time", "first", "count", "kind", "device", "code")] for each in audit["events"]],
                         [[at, at, 2, "xid", GPU, 79]])
        text = self.assay("audit", env={"ASSAY_ROOT": str(machine.root)})
        self.assertEqual(text.returncode, 1)
        for part in ("audit: 1 fault,", f"fault    xid-fatal {GPU}: XID 79 at {at}, 2 times", "so: the GPU has fallen",
                     "fix: power-cycle", "2 messages of the kernel in the last 7 days", f"last {at}"):
            self.assertIn(part, text.stdout)

    def test_a_problem_says_since_when(self):
        machine = self.machine().kernel_says("I/O error, dev sda, sector 8", ago=7200).kernel_says("I/O error, dev sda, sector 9")
        first, last = (time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(machine.boot + UPTIME - ago)) for ago in (7200, 3600))
        seen = {each["id"]: each["seen"] for each in self.audit(machine)["audit"]["problems"]}["disk-errors"]
        self.assertEqual(seen, f'"I/O error, dev sda, sector 9" at {last}, 2 times since {first}')

    # What comes from a machine with thousands of messages before and after the one that counts.
    def check_flood(self, write, **options):
        aer = "pcieport 0000:3a:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"
        others = [f"NVRM: Xid (PCI:0000:{i % 200:02x}:00): 13, Graphics Exception {i}" for i in range(3000)]
        fault = f"NVRM: Xid (PCI:{GPU[:-2]}): 79, GPU has fallen off the bus."
        for place in ("first", "last"):
            with self.subTest(place=place):
                flood = [aer] * 6000 + others
                write([fault, *flood] if place == "first" else [*flood, fault])
                done = self.assay("audit", "--json", **options)
                self.assertEqual(done.returncode, 1, done.stderr)
                audit = json.loads(done.stdout)["audit"]
                self.assertIn(("xid-fatal", GPU), [(each["id"], each["device"]) for each in audit["problems"]])
                counts = {each["kind"]: each["count"] for each in audit["events"] if each["device"] in (GPU, "0000:3a:01.0")}
                self.assertEqual(counts, {"xid": 1, "aer": 6000})
                self.assertEqual(sum(each["count"] for each in audit["events"]), 9001)

    def test_a_flood_hides_no_fault_in_kmsg(self):
        machine = self.machine()
        self.check_flood(lambda lines: machine.write("dev/kmsg").kernel_says(*lines), env={"ASSAY_ROOT": str(machine.root)})

    def test_a_flood_hides_no_fault_in_files(self):
        machine = self.machine()
        at = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(time.time() - 3600))
        # Longer than what is read at once.
        rest = f"{at} node01 sshd[1]: {'x' * 1000}\n" * 6000
        self.check_flood(lambda lines: machine.write("var/log/kern.log", rest + "\n".join(
            f"{at} node01 kernel: [   12.000000] {line}" for line in lines)), env={"ASSAY_ROOT": str(machine.root)})

    def journal(self, text):
        """A journalctl that prints this."""
        self.write("journal", text)
        program = pathlib.Path(self.write("bin/journalctl", f"#!/bin/sh\nexec cat {self.dir}/journal\n"))
        program.chmod(0o755)
        return {"PATH": f"{program.parent}:{os.environ['PATH']}"}

    def problems_of_journal(self, text):
        done = self.assay("audit", "--json", env=self.journal(text))
        return [(each["id"], each["device"]) for each in json.loads(done.stdout)["audit"]["problems"]]

    def test_a_flood_hides_no_fault_in_the_journal(self):
        at = time.time() - 30   # since the boot
        aer = "kernel: pcieport 0000:3a:01.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"
        flood = "".join(f"{at + i / 1e3:.6f} n1 {aer}\n" for i in range(9000, 0, -1))
        fault = "{:.6f} n1 kernel: NVRM: Xid (PCI:0000:b3:00): 79, GPU has fallen off the bus.\n"
        for text in (flood + fault.format(at), fault.format(at + 10) + flood):
            self.assertIn(("xid-fatal", "0000:b3:00.0"), self.problems_of_journal(text))

    def test_the_lines_of_a_message_in_the_journal_are_one(self):
        at, lines = time.time() - 30, [line.format("0000:b3:00.0") for line in OFF_BUS]
        one = f"{at:.6f} n1 kernel: " + ("\n" + " " * 27).join(lines)
        several = "\n".join(f"{at - i / 1e4:.6f} n1 kernel: {line}" for i, line in enumerate(reversed(lines)))
        for text in (one, several):
            self.assertIn(("gpu-lost", "0000:b3:00.0"), self.problems_of_journal(text + "\n"))

    def test_what_is_cut_off_the_journal_is_said(self):
        flags = self.journal(f"{time.time() - 60:.6f} n1 kernel: x\n")
        with open(self.dir / "bin/journalctl", "a") as program:
            program.write("exit 1\n")
        text = (self.dir / "bin/journalctl").read_text().replace("exec ", "")
        (self.dir / "bin/journalctl").write_text(text)
        problems = json.loads(self.assay("audit", "--json", env=flags).stdout)["audit"]["problems"]
        self.assertIn("journal", {each["id"]: each["seen"] for each in problems}["kernel-log-cut"])

    def check_quiet(self, *changes):
        for number, change in enumerate(changes):
            with self.subTest(number=number):
                machine = self.machine(f"q{number}")
                change(machine)
                self.assertEqual([each for each in self.audit(machine, code=0)["audit"]["problems"] if each["severity"] != "info"], [])

    def test_links_that_are_as_they_should_be_are_no_problem(self):
        def storage(machine):   # another network on the same cards, not beside a GPU, and a second port that is not plugged in
            rails(machine).port(2, rate="25 Gb/sec (1X EDR)", link_layer="Ethernet").port(3, state="1: DOWN", phys_state="3: Disabled")

        def second_ports(machine):
            for index in (0, 2):
                machine.port(index, state="1: DOWN")
                link = machine.root / f"sys/class/infiniband/mlx5_{index}/device"
                link.unlink()
                folder = machine.root / f"sys/bus/pci/devices/0000:1{index}:00.0"
                folder.rename(folder.with_name(f"0000:1{index + 1}:00.1"))
                machine.link(f"sys/class/infiniband/mlx5_{index}/device", f"../../../bus/pci/devices/0000:1{index + 1}:00.1")

        self.check_quiet(all_ports(rate="200 Gb/sec (2X NDR)"), all_ports(rate="100 Gb/sec (2X HDR)"),
                         all_ports(rate="25 Gb/sec (1X EDR)", link_layer="Ethernet"), rails, storage, second_ports,
                         lambda m: m.write("etc/nccl.conf", "NCCL_IB_HCA=^mlx5_3").port(3, state="1: DOWN"),
                         lambda m: m.write("etc/nccl.conf", "NCCL_IB_HCA=mlx5_0:1,mlx5_1").port(2, state="1: DOWN"),
                         lambda m: m.write("etc/nccl.conf", "NCCL_IB_HCA=^mlx5").root_port("18", "0000:10:00.0"),
                         all_ports(**{"hw_counters/out_of_sequence": "50000"}),
                         says("mlx5_core 0000:10:00.0: Port module event: module 0, Cable plugged",
                              "mlx5_core 0000:10:00.1: Port module event: module 1, Cable unplugged"))

    def test_ports_are_facts(self):
        facts = self.audit(rails(self.machine()))["audit"]["facts"]
        self.assertEqual([facts[f"nic {name} mlx5_0"] for name in ("state", "rate", "width")], ["4: ACTIVE", "400 Gb/sec", "4X NDR"])
        self.assertEqual((facts["nic rate eth0"], facts["nics for gpus"]), ("100 Gbit/s", "2 x 400 Gb/sec (4X NDR)"))

    def test_events_older_than_a_week_are_left_out(self):
        machine = self.machine()
        syslog(f"NVRM: Xid (PCI:{GPU[:-2]}): 79, GPU has fallen off the bus.", 8)(machine)
        self.assertEqual(self.audit(machine, code=0)["audit"]["events"], [])

    def test_a_container_with_some_gpus_misses_none(self):
        for number, change in enumerate(({".dockerenv": ""}, {"proc/mounts": "tmpfs /proc/driver/nvidia tmpfs ro 0 0"})):
            machine = self.machine(f"m{number}", **change)
            machine.remove("proc/500").remove(f"proc/driver/nvidia/gpus/{GPU}")
            del machine.devices[GPU]
            machine.write_json()
            self.audit(machine, code=0)

    def test_the_folder_must_exist(self):
        for words in (["env"], ["audit"], ["run", "quick"]):
            self.refused(*words, env={"ASSAY_ROOT": str(self.dir / "none")}, says=["ASSAY_ROOT=", "none", "no such folder"])
        path = self.write("file", "")
        self.refused("env", env={"ASSAY_ROOT": str(path)}, says="no such folder")

    def test_a_bad_nvml_file_is_refused(self):
        machine = self.machine()
        for content, part in (("{", "nvml.json"), ('{"devices": [{"pci": "x", "ecc": 1}]}', "/devices/0/ecc"),
                              ('{"device": []}', "devices"), ('{"devices": [{}]}', "pci")):
            machine.write("nvml.json", content)
            self.refused("audit", env={"ASSAY_ROOT": str(machine.root)}, says=part)

    def test_hostile_files_break_nothing(self):
        machine = self.machine()
        noise = bytes(range(256)) * 40
        for path in ("dev/kmsg", "var/log/kern.log", "var/log/messages.1", "proc/mounts", "proc/mdstat", "etc/fstab",
                     "etc/nccl.conf", "proc/500/stat", "var/lib/dpkg/status", f"{PCI}/config", f"{PORT}/rate",
                     f"{TORCH}/torch/version.py", "proc/net/bonding/bond0", "proc/stat", "proc/meminfo", "proc/cpuinfo"):
            machine.write(path, noise)
        self.audit(machine)
        machine.kernel_says("NVRM: Xid (PCI:): 79,", "NVRM: Xid (", "NVRM: Xid (PCI:0000:1b:00): ", "EXT4-fs error ((",
                            "NVRM: Xid (PCI:0000:1b:00): 99999999999999999999, x", "mlx5_core : Link down", "EDAC MC UE  UE ")
        self.audit(machine)

    def test_records_say_so_and_are_not_comparable(self):
        machine = self.machine()
        done, records = self.measure({"family": "memory", "op": "triad", "bytes": "1MiB"}, env={"ASSAY_ROOT": str(machine.root)},
                                     protocol={"max_seconds": "50ms", "min_samples": 3})
        self.assertEqual(done.returncode, 0, done.stderr)
        for record in records:
            self.assertIs(record["comparable"], False)
            self.assertRegex(" ".join(record["flags"]), "ASSAY_ROOT")
        run = json.loads((self.dir / "out/run.json").read_text())
        self.assertEqual(run["environment"]["hostnames"], ["node01"])

    def test_this_machine(self):
        done = self.assay("audit", "--json")
        self.assertIn(done.returncode, (0, 1), done.stderr)
        audit = json.loads(done.stdout)["audit"]
        self.assertEqual(audit["facts"]["kernel"], os.uname().release)
        for each in audit["problems"]:
            self.assertIn(each["severity"], ("fault", "warning", "info"))


if __name__ == "__main__":
    unittest.main()
