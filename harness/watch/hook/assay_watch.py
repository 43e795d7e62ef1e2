# Measures the steps of a PyTorch job from inside its own processes: where a step's time goes, by hooks around what the
# main thread calls. What it finds goes into a page of memory that `assay watch` reads, so that the job never waits for
# the watcher and nothing is lost if the job is killed. Nothing here may fail the job: a hook that cannot be set is
# absent, with its reason.
import faulthandler
import functools
import importlib.util
import json
import mmap
import os
import signal
import socket
import struct
import sys
import threading
import time

from assay_marks import FORWARD, Marks
from assay_window import Window

# As harness/watch/ranks.cpp reads them.
MAGIC = 0x3259535341
STATE_BYTES = 4096
CAPACITY = 16384
STEP = struct.Struct("<13d")
COUNT, COMMAND, ENTERED, NAME = 8, 16, 24, 64
NAME_BYTES = 64
DATA, BACKWARD, COMMUNICATION, OPTIMIZER, CHECKPOINT = range(FORWARD)
BLOCK = 7        # steps of a block with all hooks, and of one with only the step's end: short, as machines drift
BLOCKS = 42      # of which every second has all hooks; from then on all steps have them
COLLECTIVES = ("all_reduce", "reduce", "broadcast", "all_gather", "all_gather_into_tensor", "reduce_scatter",
               "reduce_scatter_tensor", "all_to_all", "all_to_all_single", "gather", "scatter", "barrier", "send", "recv",
               "all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list", "monitored_barrier")

NAN = float("nan")
now = time.perf_counter
this_thread = threading.get_ident


class Steps:
    """The steps of this process. One main thread makes them; what other threads call is not timed."""

    def __init__(self):
        self.on = False            # the hooks around the parts
        self.thread = threading.main_thread().ident
        self.parts = [0.0] * 5
        self.inner = 0.0           # time of the timed calls inside of the current one
        self.backwards = 0
        self.last_gradient = 0.0   # when the last parameter had its gradient, and `inner` then
        self.inner_then = 0.0
        self.splits = False        # whether what follows in backward is waiting for others
        self.main = None           # the optimizer whose step ends a step
        self.optimizer_began = self.optimizer_inner = self.backward_ended = 0.0
        self.began = None          # when the last step ended
        self.cpu = self.ready = 0.0
        self.schedule = -1         # of the kernel's scheduler, about this thread
        self.number = 0            # of steps made
        self.count = 0             # of steps written: those on a GPU are some behind
        self.entered = 0
        self.memory = None
        self.connection = None
        self.absent = {}
        self.loaders = {}
        self.marks = None          # of a job on a GPU
        self.part = FORWARD        # in which the main thread is
        self.syncs = 0             # calls that wait for the GPU, and the time in them
        self.synced = 0.0
        self.syncing = False
        self.autocast = None
        self.window = Window()     # of steps that are recorded

    # ---- what the watcher sees

    def connect(self, torch):
        """Gives the watcher the memory that steps are written to. Called at the first step or collective."""
        address = os.environ.get("ASSAY_WATCH", "")
        pages = os.memfd_create("assay-steps")
        stacks = os.memfd_create("assay-stacks")
        os.ftruncate(pages, STATE_BYTES + CAPACITY * STEP.size)
        self.memory = mmap.mmap(pages, STATE_BYTES + CAPACITY * STEP.size)
        struct.pack_into("<Q", self.memory, 0, MAGIC)
        hello = json.dumps(self.hello(torch, self.stack_signal(stacks))).encode()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.settimeout(1)
        connection.connect("\0" + address)
        socket.send_fds(connection, [hello], [pages, stacks])
        os.close(pages)
        self.connection = connection   # open as long as the process: its end tells the watcher

    def stack_signal(self, file):
        """A signal upon which the stack is written to the file, even if the interpreter is stuck; 0: none is free."""
        if threading.current_thread() is not threading.main_thread():
            return 0   # which alone may set a signal
        for number in range(signal.SIGRTMAX - 2, signal.SIGRTMIN + 2, -1):
            if signal.getsignal(number) == signal.SIG_DFL:
                # When the interpreter ends it puts back what was there before; the default would end the process.
                signal.signal(number, signal.SIG_IGN)
                faulthandler.register(number, file=file, all_threads=False, chain=False)
                return number
        return 0

    def hello(self, torch, stack_signal):
        said = {"pid": os.getpid(), "rank": number_of("RANK"), "world": number_of("WORLD_SIZE"),
                "local_rank": number_of("LOCAL_RANK"), "threads": torch.get_num_threads(),
                "torch": str(torch.__version__), "python": sys.version.split()[0], "cpus": len(os.sched_getaffinity(0)),
                "stack_signal": stack_signal, "absent": self.absent, "loaders": list(self.loaders.values())[:8],
                "cuda": False, "parameters": 0, "dtype": self.autocast or ""}
        if self.main is not None:
            parameters = [one for group in self.main.param_groups for one in group["params"]]
            said["parameters"] = len(parameters)
            said["cuda"] = any(getattr(one, "is_cuda", False) for one in parameters)
            said["dtype"] = self.autocast or str(getattr(parameters[0], "dtype", "")) if parameters else ""
            if said["cuda"]:
                self.watch_gpu(torch, parameters[0].device, said)
        return said

    def watch_gpu(self, torch, device, said):
        """Sets the hooks that only a job on a GPU needs, and says which GPU that is."""
        try:
            about = torch.cuda.get_device_properties(device)
            said["gpu"] = {"name": str(about.name), "memory": int(about.total_memory)}
            if hasattr(about, "uuid"):
                said["gpu"]["uuid"] = f"GPU-{about.uuid}".replace("GPU-GPU-", "GPU-")
            if hasattr(about, "pci_bus_id"):
                said["gpu"]["pci"] = "%04x:%02x:%02x.0" % (getattr(about, "pci_domain_id", 0), about.pci_bus_id,
                                                           getattr(about, "pci_device_id", 0))
            matmul = torch.backends.cuda.matmul   # torch 2.9 has a new name, beside which reading the old one may fail
            tf32 = matmul.fp32_precision == "tf32" if hasattr(matmul, "fp32_precision") else matmul.allow_tf32
            if said["dtype"] == "torch.float32" and tf32:
                said["dtype"] = "torch.tf32"
        except Exception as error:
            self.absent["gpu"] = f"{type(error).__name__}: {error}"[:200]
        try:
            for owner, name in ((torch.cuda, "synchronize"), (torch.cuda.Stream, "synchronize"),
                                (torch.cuda.Event, "synchronize"), (torch.Tensor, "item"), (torch.Tensor, "cpu"),
                                (torch.Tensor, "tolist")):
                setattr(owner, name, self.synchronising(getattr(owner, name), owner is torch.Tensor))
        except Exception as error:
            self.absent["syncs"] = f"{type(error).__name__}: {error}"[:200]
        try:
            if not torch.cuda.is_current_stream_capturing():
                self.marks = Marks(torch.cuda)
        except Exception as error:
            self.absent["gpu_parts"] = f"{type(error).__name__}: {error}"[:200]
        said["gpu_parts"] = self.marks is not None

    def enter(self, part):
        """The main thread goes into another part; which it leaves."""
        left, self.part = self.part, part
        if self.marks is not None:
            try:
                if self.marks.cuda.is_current_stream_capturing():
                    self.marks = None   # an event would become part of the graph
                else:
                    self.marks.enter(part)
            except Exception:
                self.marks = None
        return left

    def synchronising(self, call, of_tensor):
        @functools.wraps(call)
        def timed(*args, **kwargs):
            if self.syncing or not self.on or this_thread() != self.thread:
                return call(*args, **kwargs)
            if of_tensor and not (args and args[0].is_cuda):
                return call(*args, **kwargs)
            self.syncing = True   # one may call another
            began = now()
            try:
                return call(*args, **kwargs)
            finally:
                self.syncing = False
                self.synced += now() - began
                self.syncs += 1
        return timed

    # ---- steps

    def optimizer_begins(self, optimizer, *_):
        if self.main is None:
            self.main = optimizer
            self.watch_gradients(optimizer)
        self.optimizer_inner = self.inner
        if self.on and this_thread() == self.thread:
            self.enter(OPTIMIZER)
        self.optimizer_began = now()

    def optimizer_ended(self, optimizer, *_):
        end = now()
        if self.on and this_thread() == self.thread:
            if self.backward_ended > self.optimizer_began:   # forward and backward were the optimizer's closure
                self.optimizer_began, self.optimizer_inner = self.backward_ended, self.inner
            took = end - self.optimizer_began
            self.parts[OPTIMIZER] += took - (self.inner - self.optimizer_inner)
            self.inner = self.optimizer_inner + took
            self.enter(FORWARD)
        if optimizer is self.main:
            self.step_ended(end)

    def step_ended(self, end):
        cpu, ready = time.thread_time(), self.ready_seconds()
        if self.began is None:
            import torch
            self.thread = this_thread()
            if self.memory is None and not self.try_connect(torch):
                return
            self.began = end
            ready = self.ready_seconds()
        else:
            self.number += 1
            parts = 2.0 if self.window.disturbed else 1.0 if self.on else 0.0
            told = (cpu - self.cpu, ready - self.ready, parts, self.backwards, self.synced, self.syncs)
            if not self.told_by_gpu((end, told)):
                self.write(end, end - self.began, self.parts, told)
        self.began, self.cpu, self.ready = end, cpu, ready
        self.parts = [0.0] * 5
        self.backwards = self.syncs = 0
        self.synced = 0.0
        block = self.number // BLOCK
        stopped = self.memory[COMMAND] != 0
        self.on = (block >= BLOCKS or block % 2 == 0) and not stopped
        self.window.step_ended(self, stopped)

    def write(self, end, seconds, parts, told):
        STEP.pack_into(self.memory, STATE_BYTES + (self.count % CAPACITY) * STEP.size, end, seconds, *parts, *told)
        self.count += 1
        struct.pack_into("<Q", self.memory, COUNT, self.count)

    def told_by_gpu(self, host):
        """Whether the step that has ended is written by what a GPU says of it, now or later."""
        if self.marks is None:
            return False
        try:
            if self.marks.cuda.is_current_stream_capturing():
                self.marks = None
                return False
            self.marks.end_step(host)
            for seconds, parts, (end, told) in self.marks.ended():
                self.write(end, seconds, parts, told)
            return True
        except Exception:
            self.marks = None
            return False

    def ready_seconds(self):
        """How long this thread has been ready to run and had no CPU; NaN where the kernel does not tell."""
        if self.schedule < 0:
            return NAN
        return 1e-9 * int(os.pread(self.schedule, 80, 0).split()[1])

    def try_connect(self, torch):
        try:
            self.schedule = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            pass
        try:
            self.connect(torch)
            return True
        except Exception:
            # Nobody listens, or in another network: from now on the job is as if it were not watched.
            self.began = None
            self.main = self   # never an optimizer
            return False

    def watch_gradients(self, optimizer):
        """In a job of several ranks, backward goes on in C++ when the last gradient is there, and waits for others. The
        parameter that comes last is found in the first backward, and only it is watched afterwards."""
        if (number_of("WORLD_SIZE") or 1) < 2:
            return
        try:
            parameters = [one for group in optimizer.param_groups for one in group["params"] if one.requires_grad]
            if any(type(one).__name__ == "DTensor" for one in parameters):
                # FSDP2 calls Python's collectives inside of backward, where they are timed one by one: what is left is
                # its own. On a GPU these only launch.
                if any(getattr(one, "is_cuda", False) for one in parameters):
                    self.absent["own_backward"] = "its parameters are DTensors (FSDP2) on a GPU"
                return
            self.candidates = [(one, one.register_post_accumulate_grad_hook(self.gradient_is_there))
                               for one in parameters]
        except Exception as error:
            self.absent["own_backward"] = str(error)[:200]

    candidates = ()
    last_parameter = None

    def gradient_is_there(self, parameter):
        self.last_gradient = now()
        if self.splits and self.part == BACKWARD:   # on a thread of autograd, for which the main thread waits
            self.enter(COMMUNICATION)
        self.inner_then = self.inner
        self.last_parameter = parameter

    def settle_on_last_parameter(self):
        for parameter, handle in self.candidates:
            if parameter is not self.last_parameter:
                handle.remove()
        self.candidates = ()
        self.splits = True

    def backward(self, call):
        @functools.wraps(call)
        def timed(*args, **kwargs):
            if not self.on or this_thread() != self.thread:
                return call(*args, **kwargs)
            outer, self.inner, self.last_gradient = self.inner, 0.0, 0.0
            left = self.enter(BACKWARD)
            began = now()
            try:
                return call(*args, **kwargs)
            finally:
                ended = now()
                self.enter(left)
                waited = 0.0
                if self.last_gradient >= began:
                    if self.candidates:
                        self.settle_on_last_parameter()
                    if self.splits:
                        waited = max(0.0, ended - self.last_gradient - (self.inner - self.inner_then))
                self.parts[COMMUNICATION] += waited
                self.parts[BACKWARD] += ended - began - self.inner - waited
                self.inner = outer + ended - began
                self.backwards += 1
                self.backward_ended = ended
        return timed

    def timed(self, call, part):
        @functools.wraps(call)
        def timed(*args, **kwargs):
            if not self.on or this_thread() != self.thread:
                return call(*args, **kwargs)
            outer, self.inner = self.inner, 0.0
            left = self.enter(part)
            began = now()
            try:
                return call(*args, **kwargs)
            finally:
                took = now() - began
                self.enter(left)
                self.parts[part] += took - self.inner
                self.inner = outer + took
        return timed

    def collective(self, call, name):
        inside = self.timed(call, COMMUNICATION)
        said = name.encode()[:NAME_BYTES - 1].ljust(NAME_BYTES, b"\0")

        @functools.wraps(call)
        def entered(*args, **kwargs):
            if self.memory is not None and this_thread() == self.thread:
                self.entered += 1
                struct.pack_into("<Q", self.memory, ENTERED, self.entered)
                self.memory[NAME:NAME + NAME_BYTES] = said
            return inside(*args, **kwargs)
        return entered

    def forget(self):
        """In a forked child: it is not the rank, whatever it calls."""
        self.on = False
        self.thread = None
        self.marks = None
        self.window.ended = True
        self.main = self
        self.began = None
        self.memory = None
        if self.schedule >= 0:
            os.close(self.schedule)
            self.schedule = -1
        if self.connection is not None:
            os.close(self.connection.detach())
            self.connection = None


def number_of(name):
    """An environment variable as a number; None without one."""
    try:
        return int(os.environ[name])
    except (KeyError, ValueError):
        return None


def attach(torch):
    """Sets every hook that this torch allows."""
    steps = Steps()
    os.register_at_fork(before=steps.window.before_fork, after_in_child=steps.forget)

    def layer(name, put):
        try:
            put()
        except Exception as error:
            steps.absent[name] = f"{type(error).__name__}: {error}"[:200]

    def optimizers():
        from torch.optim import optimizer
        optimizer.register_optimizer_step_pre_hook(steps.optimizer_begins)
        optimizer.register_optimizer_step_post_hook(steps.optimizer_ended)

    def backward():
        torch.autograd.backward = steps.backward(torch.autograd.backward)

    def loaders():
        from torch.utils.data import dataloader
        iterator = dataloader._BaseDataLoaderIter
        iterator.__next__ = steps.timed(iterator.__next__, DATA)
        begin = dataloader.DataLoader.__iter__

        @functools.wraps(begin)
        def seen(loader):
            steps.loaders[id(loader)] = {"workers": int(loader.num_workers), "batch": loader.batch_size or 0}
            return begin(loader)
        dataloader.DataLoader.__iter__ = steps.timed(seen, DATA)

    def collectives():
        import torch.distributed as distributed
        if not distributed.is_available():
            return
        from torch.distributed import distributed_c10d
        for name in COLLECTIVES:
            call = getattr(distributed_c10d, name, None)
            if call is None:
                continue
            wrapped = steps.collective(call, name)
            for module in (distributed_c10d, distributed):
                if getattr(module, name, None) is call:
                    setattr(module, name, wrapped)
        work = distributed_c10d.Work
        work.wait = steps.timed(work.wait, COMMUNICATION)

    def checkpoints():
        torch.save = steps.timed(torch.save, CHECKPOINT)

    def autocast():
        from torch.amp import autocast_mode
        enter = autocast_mode.autocast.__enter__

        @functools.wraps(enter)
        def entered(context):
            if steps.autocast is None and getattr(context, "_enabled", False):
                steps.autocast = str(getattr(context, "fast_dtype", ""))
            return enter(context)
        autocast_mode.autocast.__enter__ = entered

    for name, put in (("steps", optimizers), ("backward", backward), ("data_wait", loaders),
                      ("collectives", collectives), ("checkpoints", checkpoints),
                      ("autocast", autocast), ("window", steps.window.attach)):
        layer(name, put)


class _Waiting:
    """Finds nothing by itself: it notices that torch is being imported."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "torch":
            return None
        if _Waiting not in sys.meta_path:
            return None
        sys.meta_path.remove(_Waiting)
        spec = importlib.util.find_spec("torch")
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            try:
                del spec.loader.exec_module
                attach(module)
            except Exception:
                pass
        try:
            spec.loader.exec_module = exec_module
        except Exception:
            pass
        return spec


def wait_for_torch():
    sys.meta_path.insert(0, _Waiting)
