"""A peer that stays: it is set up once (torch.compile takes minutes), then measures each time it is asked.

Commands come in as lines on stdin, answers go out as lines of JSON on stdout: {"ready": {...}} or {"skip": "why"} once
set up; then for every "run" a figure {"value", "unit", "better", ...}. It ends with its input. A program run by hand
with --once measures once and prints the figure alone.
"""

import json
import sys


def serve(measure, about, once):
    """Calls `measure()`, which returns a figure, as often as asked."""
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
    """PyTorch, ready for the device; skips where there is none."""
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
    """Seconds between marks on the device's own clock: events on a GPU, so that no mark waits for the work."""

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
