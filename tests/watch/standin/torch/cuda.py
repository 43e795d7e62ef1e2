"""An asynchronous device of the stand-in: work is launched and done later, in order; a host that asks for a result waits.
Nothing is computed. There is one stream."""

import torch

_idle_at = 0.0    # when the device has done all that was launched
capturing = False


def is_available():
    return True


def is_current_stream_capturing():
    return capturing


def launch(seconds, name="gemm_kernel", category="kernel"):
    global _idle_at
    began = max(_idle_at, torch.clock())
    _idle_at = began + seconds
    torch.autograd.profiler.add(name, category, began, seconds, device=0)


def copy(seconds):
    launch(seconds, "Memcpy HtoD (Pageable -> Device)", "gpu_memcpy")


def synchronize():
    torch.wait_until(_idle_at)


class Stream:
    def synchronize(self):
        synchronize()


class Event:
    def __init__(self, enable_timing=False):
        self.at = None

    def record(self):
        if capturing:
            raise RuntimeError("an event in a graph")
        self.at = max(_idle_at, torch.clock())

    def query(self):
        if capturing:
            raise RuntimeError("a query during capture")
        return torch.clock() >= self.at

    def synchronize(self):
        torch.wait_until(self.at)

    def elapsed_time(self, later):
        if torch.clock() < later.at:
            raise RuntimeError("not ready")
        return 1e3 * (later.at - self.at)


class Properties:
    name, total_memory, uuid = "NVIDIA H100 80GB HBM3", 80_000_000_000, "0000000-stand-in"
    pci_domain_id, pci_bus_id, pci_device_id = 0, 0x1b, 0


def get_device_properties(device):
    return Properties()
