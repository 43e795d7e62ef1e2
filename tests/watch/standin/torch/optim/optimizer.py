"""Hooks around the step of every optimizer, as torch.optim.optimizer has them."""

import functools

_pre, _post = {}, {}


def _register(hooks, hook):
    from torch import Handle
    return Handle(hooks, hook)


def register_optimizer_step_pre_hook(hook):
    return _register(_pre, hook)


def register_optimizer_step_post_hook(hook):
    return _register(_post, hook)


def _with_hooks(step):
    @functools.wraps(step)
    def wrapper(self, *args, **kwargs):
        from torch.autograd.profiler import record_function
        with record_function(f"Optimizer.step#{type(self).__name__}.step"):
            for hook in list(_pre.values()):
                hook(self, args, kwargs)
            result = step(self, *args, **kwargs)
            for hook in list(_post.values()):
                hook(self, args, kwargs)
        return result
    return wrapper


class Optimizer:
    def __init__(self, parameters, lr=0.01):
        self.param_groups = [{"params": list(parameters), "lr": lr}]

    def zero_grad(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    @_with_hooks
    def step(self, closure=None):
        loss = closure() if closure else None
        self.update()
        return loss
