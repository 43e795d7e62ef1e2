"""Optimizers of the stand-in."""

from torch.optim import optimizer
from torch.optim.optimizer import Optimizer


class SGD(Optimizer):
    def update(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.value -= group["lr"] * parameter.grad
