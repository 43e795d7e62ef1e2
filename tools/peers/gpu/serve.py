"""A served peer: it is set up once (torch.compile takes minutes), then measures on request.

Commands are lines on stdin, answers lines of JSON on stdout: {"ready": {...}} or {"skip": "why"} after the setup, then a
figure {"value", "unit", "better", ...} for every "run". It ends with its input. For use by hand, --once measures once and
prints only the figure.
"""

import json
import sys


def serve(measure, about, once):
    """Calls `measure()`, which returns a figure, on request."""
    if once:
        print(json.dumps(about | measure()), flush=True)
        return
    print(json.dumps({"ready": about}), flush=True)
    for line in sys.stdin:
        if line.strip() != "run":
            sys.exit(f"unknown command {line.strip()!r}: there is 'run'")
        print(json.dumps(about | measure()), flush=True)


def skip(reason):
    print(json.dumps({"skip": reason}), flush=True)
    sys.exit(0)


def torch_on(device):
    """Imports PyTorch; skips if it is missing or does not see the device."""
    try:
        import torch
    except (ImportError, OSError) as error:
        skip(f"torch cannot be imported: {error}")
    if device == "cuda" and not torch.cuda.is_available():
        skip(f"torch {torch.__version__} sees no GPU")
    return torch


def versions(torch, device):
    about = {"torch": torch.__version__, "device": "cpu"}
    if device == "cuda":
        about |= {"device": torch.cuda.get_device_name(), "cuda": torch.version.cuda,
                  "cudnn": torch.backends.cudnn.version()}
    return about


class Clock:
    """Seconds between marks on the device's clock: events on a GPU, so that marks do not wait for the work."""

    def __init__(self, torch, device):
        self.torch, self.device, self.marks = torch, device, []

    def mark(self):
        if self.device == "cuda":
            event = self.torch.cuda.Event(enable_timing=True)
            event.record()
            self.marks.append(event)
        else:
            import time

            self.marks.append(time.perf_counter())

    def seconds(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()
            return [a.elapsed_time(b) / 1e3 for a, b in zip(self.marks, self.marks[1:])]
        return [b - a for a, b in zip(self.marks, self.marks[1:])]
