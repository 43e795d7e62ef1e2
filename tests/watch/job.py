"""A made-up training job on the stand-in for torch. Options inject what a diagnosis must find; the loss that it prints does
not depend on them, nor on whether it is watched."""

import argparse
import os
import sys
import time

import torch
from torch.utils.data import DataLoader


class Samples:
    def __init__(self, options):
        self.options = options

    def __len__(self):
        return self.options.steps * self.options.batch

    def __getitem__(self, index):
        if self.options.load:
            time.sleep(self.options.load / self.options.batch)
        if self.options.decode:
            torch.spin(self.options.decode / self.options.batch)
        return (index * 37 % 101) / 101


def main():
    parser = argparse.ArgumentParser()
    for name, default in (("steps", 60), ("batch", 4), ("workers", 0), ("slow-rank", -1), ("save-every", 0),
                          ("skip-barrier", -1), ("parameters", 4)):
        parser.add_argument("--" + name, type=int, default=default)
    for name, default in (("forward", 0.002), ("backward", 0.004), ("load", 0.0), ("decode", 0.0), ("late", 0.0),
                          ("pause", 0.0), ("stop-after", 0.0), ("copy", 0.0)):
        parser.add_argument("--" + name, type=float, default=default)
    parser.add_argument("--late-in", default="backward")
    parser.add_argument("--save", default=os.devnull)
    for name in ("fork", "cuda", "item"):
        parser.add_argument("--" + name, action="store_true")
    options = parser.parse_args()
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if world > 1:
        torch.distributed.init_process_group()
    parameters = [torch.Parameter(0.1 * i) for i in range(options.parameters)]
    if options.cuda:
        parameters = [one.to_cuda() for one in parameters]
    work = torch.cuda.launch if options.cuda else torch.spin
    optimizer = torch.optim.SGD(parameters)
    late = options.late if rank == options.slow_rank else 0.0
    value = 1.0
    if options.fork and os.fork() == 0:
        optimizer.step()   # what a child does is none of the job's steps
        os._exit(0)
    for step, samples in enumerate(DataLoader(Samples(options), options.batch, options.workers)):
        if options.copy:
            torch.cuda.copy(options.copy)
        work(options.forward + (late if options.late_in == "forward" else 0))
        value = sum(one.value for one in parameters) + sum(samples)
        loss = torch.Tensor(value, parameters, options.backward + (late if options.late_in == "backward" else 0))
        if options.cuda:
            loss.to_cuda()
        if world > 1:
            loss.reducer = torch.distributed.distributed_c10d.reduce_gradients
        optimizer.zero_grad()
        loss.backward()
        if options.pause:
            time.sleep(options.pause)
        if options.save_every and step % options.save_every == 0:
            torch.save(Slow(), options.save)
        if world > 1 and step % 10 == 9:
            if rank == options.skip_barrier and step > 30:
                time.sleep(3600)
            torch.distributed.barrier()
        optimizer.step()
        if options.item:
            loss.item()
        if step == 5:
            print("running", flush=True)
    print(f"loss {value!r}", flush=True)
    if world > 1:
        torch.distributed.destroy_process_group()
    if rank == 0 and options.stop_after:
        time.sleep(options.stop_after)


class Slow:
    """Takes a while to be pickled."""

    def __reduce__(self):
        time.sleep(0.03)
        return (int, ())


if __name__ == "__main__":
    sys.exit(main())
