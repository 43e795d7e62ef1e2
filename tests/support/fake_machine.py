"""A healthy GPU server as a folder of the kernel's files, for ASSAY_ROOT, and changes to it."""
import json
import os
import pathlib
import shutil
import struct
import time

DRIVER = "570.86.15"
BUSES = ("1b", "2b", "3b", "4b", "9b", "ab", "bb", "cb")
UPTIME = 86400


def gpu(index):
    return f"0000:{BUSES[index]}:00.0"


def bridge_config(redirects):
    """4096 bytes of a bridge's configuration, whose ACS capability redirects peer-to-peer traffic or not."""
    config = bytearray(b"\x86\x80\x52\x34" + b"\x01" * 252 + bytes(4096 - 256))
    struct.pack_into("<IHH", config, 0x100, 0x000d | 1 << 16, 0x5f, 0x1d if redirects else 0)
    config[-1] = 1
    return bytes(config)


class FakeMachine:
    def __init__(self, folder, gpus=8):
        self.root = pathlib.Path(folder)
        self.gpus = gpus
        self.boot = int(time.time()) - UPTIME
        self.devices = {gpu(i): {"pci": gpu(i), "uuid": f"GPU-{i:08x}", "name": "NVIDIA H100 80GB HBM3",
                                 "serial": f"165000000{i}", "ecc": True, "mig": False, "persistence": True,
                                 "power_limit": 700, "default_power_limit": 700, "remap_pending": 0,
                                 "remap_failures": 0, "ecc_uncorrected": 0, "ecc_corrected": 0, "rows_remapped": 0,
                                 "nvlink_errors": 0, "pcie_replays": 0, "temperature": 40, "throttle_reasons": 0}
                        for i in range(gpus)}
        self.space = {place: {"bytes": 1e12, "free": 5e11, "inodes": 1e6, "free_inodes": 5e5}
                      for place in ("/", "/scratch", "/home")}
        self._host()
        self._devices()
        self.write_json()

    def write(self, path, content=""):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content) if isinstance(content, bytes) else path.write_text(content + "\n")
        return self

    def link(self, path, target):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def remove(self, path):
        path = self.root / path
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        return self

    def root_port(self, bus, *addresses):
        """Puts devices below a root port of their own, as the kernel's tree shows it."""
        port = f"sys/devices/pci0000:{bus}/0000:{bus}:01.0"
        for address in addresses:
            folder = self.root / "sys/bus/pci/devices" / address
            (self.root / port).mkdir(parents=True, exist_ok=True)
            folder.rename(self.root / port / address)
            self.link(f"sys/bus/pci/devices/{address}", f"../../../../{port}/{address}")
        return self

    def without_driver(self, device="0x2330"):
        """No GPU has a driver; `device` is their PCI id."""
        self.remove("proc/driver/nvidia")
        for address in self.devices:
            self.remove(f"sys/bus/pci/devices/{address}/driver")
            self.write(f"sys/bus/pci/devices/{address}/device", device)
        self.devices = {}
        return self.write_json()

    def port(self, index, **members):
        """Changes files of a port of InfiniBand."""
        for name, text in members.items():
            self.write(f"sys/class/infiniband/mlx5_{index}/ports/1/{name}", text)
        return self

    def remove_gpu(self, index, everywhere=True):
        """Takes a GPU off the bus; with `everywhere` the driver does not know it either."""
        self.remove(f"sys/bus/pci/devices/{gpu(index)}")
        if everywhere:
            self.remove(f"proc/driver/nvidia/gpus/{gpu(index)}")
            del self.devices[gpu(index)]
            self.write_json()
        return self

    def nvml(self, index, **members):
        """Changes what the management library reports of a GPU."""
        self.devices[gpu(index)].update(members)
        return self.write_json()

    def statfs(self, place, **members):
        self.space.setdefault(place, {}).update(members)
        return self.write_json()

    def kernel_says(self, *messages, ago=3600):
        """Appends messages to the kernel's log of this boot."""
        with open(self.root / "dev/kmsg", "a") as log:
            for message in messages:
                log.write(f"3,100,{int((UPTIME - ago) * 1e6)},-;{message}\n")
        return self

    def process(self, pid, name, state="S"):
        self.write(f"proc/{pid}/comm", name[:15])
        return self.write(f"proc/{pid}/stat", f"{pid} ({name[:15]}) {state} 1 1 1 0 -1 4194560" + " 0" * 40)

    def write_json(self):
        self.write("nvml.json", json.dumps({"driver_version": DRIVER, "cuda_version": "12.8",
                                            "devices": list(self.devices.values())}))
        return self.write("statfs.json", json.dumps(self.space))

    def _host(self):
        cpus = range(4)
        self.write("proc/cpuinfo", "".join(
            f"processor\t: {i}\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Platinum 8480+\n"
            "flags\t\t: avx2 fma avx512f\n\n" for i in cpus))
        self.write("proc/stat", f"cpu  100 0 0 900 0 0 0 0 0 0\nbtime {self.boot}")
        for path, text in {
                "proc/meminfo": "MemTotal: 1000000000 kB\nMemAvailable: 900000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB",
                "proc/loadavg": "0.05 0.10 0.10 1/95 100", "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=UUID=1 iommu=pt",
                "proc/self/status": "Name:\tassay\nCpus_allowed_list:\t0-3",
                "proc/self/limits": "Max locked memory         unlimited            unlimited            bytes\n"
                                    "Max open files            1048576              1048576              files",
                "proc/sys/kernel/hostname": "node01", "proc/sys/kernel/osrelease": "6.8.0-45-generic",
                "proc/sys/kernel/numa_balancing": "0", "proc/sys/vm/overcommit_memory": "0",
                "proc/mounts": "/dev/nvme0n1p2 / ext4 rw,relatime 0 0\n/dev/nvme1n1 /scratch xfs rw 0 0\n"
                               "filer:/home /home nfs4 rw 0 0",
                "etc/fstab": "# disks\nUUID=1 / ext4 defaults 0 1\n/dev/nvme1n1 /scratch xfs defaults 0 2\n"
                             "filer:/home /home nfs4 defaults 0 0",
                "etc/os-release": 'PRETTY_NAME="Ubuntu 24.04.1 LTS"', "run/systemd/timesync/synchronized": "",
                "sys/devices/system/cpu/online": "0-3", "sys/devices/system/cpu/present": "0-3",
                "sys/devices/system/cpu/offline": "", "sys/devices/system/cpu/smt/active": "0",
                "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
                "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
                "sys/class/dmi/id/sys_vendor": "Supermicro", "sys/class/dmi/id/product_name": "SYS-821GE-TNHR",
                "sys/class/dmi/id/bios_version": "2.1", "sys/class/nvme/nvme0/state": "live",
                "sys/devices/system/edac/mc/mc0/ce_count": "0", "sys/devices/system/edac/mc/mc0/ue_count": "0",
                "dev/kmsg": "6,1,100,-;Linux version 6.8.0-45-generic"}.items():
            self.write(path, text)
        for i in cpus:
            folder = f"sys/devices/system/cpu/cpu{i}"
            self.write(f"{folder}/topology/physical_package_id", str(i // 2))
            self.write(f"{folder}/topology/thread_siblings_list", str(i))
            self.write(f"{folder}/cpufreq/scaling_governor", "performance")
        for node in (0, 1):
            self.write(f"sys/devices/system/node/node{node}/cpulist", f"{2 * node}-{2 * node + 1}")
            self.write(f"sys/devices/system/node/node{node}/meminfo", f"Node {node} MemTotal:  500000000 kB")
        self.process(500, "nv-fabricmanager")

    def _device(self, pci, vendor, device, kind, driver, node, speed="32.0"):
        folder = f"sys/bus/pci/devices/{pci}"
        for name, text in {"vendor": vendor, "device": device, "class": kind, "current_link_width": "16",
                           "max_link_width": "16", "current_link_speed": f"{speed} GT/s PCIe",
                           "max_link_speed": f"{speed} GT/s PCIe", "numa_node": str(node)}.items():
            self.write(f"{folder}/{name}", text)
        self.link(f"{folder}/driver", f"../../../../bus/pci/drivers/{driver}")

    def _devices(self):
        self.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  "
                   f"{DRIVER}  Release Build  (dvs-builder)")
        self.write(f"usr/lib/x86_64-linux-gnu/libcuda.so.{DRIVER}")
        self.write("sys/module/nvidia_peermem/refcnt", "0")
        self.write("sys/bus/pci/devices/0000:00:01.0/class", "0x060400")
        self.write("sys/bus/pci/devices/0000:00:01.0/config", bridge_config(False))
        self._device("0000:c1:00.0", "0x10de", "0x22a3", "0x068000", "nvidia-nvswitch", 0)
        for i in range(self.gpus):
            node = i * 2 // max(self.gpus, 1)
            self._device(gpu(i), "0x10de", "0x2330", "0x030200", "nvidia", node)
            self.write(f"sys/bus/pci/devices/{gpu(i)}/config", b"\xde\x10\x30\x23" + b"\x01" * 60)
            self.write(f"sys/bus/pci/devices/{gpu(i)}/iommu_group/type", "identity")
            self.write(f"proc/driver/nvidia/gpus/{gpu(i)}/information",
                       f"Model: \t\t NVIDIA H100 80GB HBM3\nGPU UUID: \t GPU-{i:08x}\nDevice Minor: \t {i}")
        for i in range(4):
            pci = f"0000:{16 + i:02x}:00.0"
            self._device(pci, "0x15b3", "0x1021", "0x020700", "mlx5_core", i // 2)
            folder = f"sys/class/infiniband/mlx5_{i}"
            self.link(f"{folder}/device", f"../../../bus/pci/devices/{pci}")
            for name, text in {"fw_ver": "28.39.1002", "board_id": "MT_0000000838", "ports/1/state": "4: ACTIVE",
                               "ports/1/phys_state": "5: LinkUp", "ports/1/rate": "400 Gb/sec (4X NDR)",
                               "ports/1/link_layer": "InfiniBand", "ports/1/counters/link_downed": "0",
                               "ports/1/counters/symbol_error": "0"}.items():
                self.write(f"{folder}/{name}", text)
        self._device("0000:05:00.0", "0x8086", "0x1592", "0x020000", "ice", 0, speed="16.0")
        self.link("sys/class/net/eth0/device", "../../../bus/pci/devices/0000:05:00.0")
        for name, text in {"operstate": "up", "flags": "0x1003", "type": "1", "speed": "100000",
                           "carrier_up_count": "1", "carrier_down_count": "1"}.items():
            self.write(f"sys/class/net/eth0/{name}", text)


def write_machine(folder, gpus=8, **changes):
    """Writes a healthy machine; `changes` are paths (as "sys/...") with their new content, None removes one."""
    machine = FakeMachine(folder, gpus)
    for path, content in changes.items():
        machine.remove(path) if content is None else machine.write(path, content)
    return machine


if __name__ == "__main__":
    import sys
    os.makedirs(sys.argv[1], exist_ok=True)
    write_machine(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 8)
