"""A profiler of the stand-in. Of the thread that began it, it takes down what the stand-in says that it does, and what its
device does."""

import os
import threading

import torch

_events, _thread = None, None


def _prepare_profiler(config, activities):
    pass


def _enable_profiler(config, activities):
    global _events, _thread
    if _events is not None:
        raise RuntimeError("Profiler is already enabled on this thread")
    _events, _thread = [], threading.get_ident()


def _disable_profiler():
    global _events
    if _events is None:
        raise RuntimeError("Can't disable Kineto profiler when it's not running")
    events, _events = _events, None
    return events


def add(name, category, began, seconds, **args):
    if _events is not None and (category in ("kernel", "gpu_memcpy") or threading.get_ident() == _thread):
        _events.append({"ph": "X", "cat": category, "name": name, "pid": os.getpid(), "tid": 1, "ts": 1e6 * began,
                        "dur": 1e6 * seconds, "args": args})


if os.environ.get("STANDIN_OLD_PROFILER"):
    del _prepare_profiler


class record_function:
    def __init__(self, name, category="user_annotation"):
        self.name, self.category = name, category

    def __enter__(self):
        self.began = torch.clock()
        return self

    def __exit__(self, *_):
        add(self.name, self.category, self.began, torch.clock() - self.began)


class profile:
    def __init__(self, enabled=True):
        self.events = None

    def _prepare_trace(self):
        _prepare_profiler(None, None)

    def _start_trace(self):
        _enable_profiler(None, None)

    def __enter__(self):
        self._prepare_trace()
        self._start_trace()
        return self

    def __exit__(self, *_):
        # Traces list ranges before what runs in them.
        self.events = sorted(_disable_profiler(), key=lambda one: (one["ts"], -one["dur"]))
