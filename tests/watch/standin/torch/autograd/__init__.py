"""Backward of the stand-in: the parameters get their gradients in reverse order, each after its part of the work."""

import torch
from torch.autograd import profiler


def backward(loss):
    parameters = list(loss.parameters)
    for parameter in reversed(parameters):
        with profiler.record_function("autograd::engine::evaluate_function: MmBackward0", "cpu_op"):
            (torch.cuda.launch if loss.is_cuda else torch.spin)(loss.work / len(parameters))
        parameter.grad = parameter.value - loss.value / 7
        for hook in list(parameter.hooks.values()):
            hook(parameter)
    if getattr(loss, "reducer", None):
        loss.reducer(parameters)   # as DDP's: in C++, so no function of torch.distributed is called
