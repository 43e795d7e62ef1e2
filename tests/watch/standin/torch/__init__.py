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


clock = time.perf_counter


def wait_until(end):
    """Without keeping the CPU busy."""
    if end > clock():
        time.sleep(end - clock())


def spin(seconds):
    """Keeps the CPU busy."""
    with autograd.profiler.record_function("aten::mm", "cpu_op"):
        end = clock() + seconds
        while clock() < end:
            pass


class Tensor:
    def __init__(self, value=0.0, parameters=(), work=0.0):
        self.value, self.parameters, self.work = value, parameters, work
        self.requires_grad, self.is_cuda, self.grad = bool(parameters), False, None
        self.device, self.dtype = "cpu", "torch.float32"

    def to_cuda(self):
        self.is_cuda, self.device = True, "cuda:0"
        return self

    def backward(self):
        autograd.backward(self)

    def item(self):
        if self.is_cuda:
            cuda.synchronize()
        return self.value

    def cpu(self):
        self.item()
        return self

    def tolist(self):
        return [self.item()]


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


from torch import amp, autograd, backends, cuda, distributed, optim, profiler, utils  # noqa: E402,F401
