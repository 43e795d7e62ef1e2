"""A small stand-in for PyTorch, pure Python, with the parts that the hook of `assay watch` holds on to, so that its tests
need no wheels of 5 GB. tests/soak/watch_torch_test.py compares these parts with the real torch. Work is made of sleeps
and loops: nothing is computed but a loss that depends on every step."""

import pickle
import time

__version__ = "0.0-standin"
_threads = 1


def get_num_threads():
    return _threads


def set_num_threads(count):
    global _threads
    _threads = count


def spin(seconds):
    """Keeps the CPU busy."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


class Tensor:
    def __init__(self, value=0.0, parameters=(), work=0.0):
        self.value, self.parameters, self.work = value, parameters, work
        self.requires_grad, self.is_cuda, self.grad = bool(parameters), False, None

    def backward(self):
        autograd.backward(self)

    def item(self):
        return self.value


class Parameter(Tensor):
    def __init__(self, value=0.0):
        super().__init__(value)
        self.requires_grad = True
        self.hooks = {}

    def register_post_accumulate_grad_hook(self, hook):
        return Handle(self.hooks, hook)


class Handle:
    def __init__(self, hooks, hook):
        self.hooks, self.key = hooks, object()
        hooks[self.key] = hook

    def remove(self):
        self.hooks.pop(self.key, None)


def save(what, path):
    with open(path, "wb") as file:
        pickle.dump(what, file)


from torch import autograd, distributed, optim, utils  # noqa: E402,F401
