# Records three steps by torch.profiler, for assay_watch.py: a trace of what ran in them, which the watcher reads when the
# job has ended. They are slower than others, so these steps are marked and count for nothing else.
import functools
import os
import select
import struct
import threading
import time

BEGIN = 10       # of the steps made: the next one warms the profiler up, and those behind it are recorded
STEPS = 3
# As harness/watch/ranks.cpp reads them.
STATE, SECONDS, TEXT, TEXT_BYTES = 32, 40, 128, 512
RUNS, WRITTEN, ABSENT = 1, 2, 3
LOG_LEVEL = "KINETO_LOG_LEVEL"
HOOKS = ("_prepare_profiler", "_enable_profiler")   # what every profiler of torch calls when it begins


class Window:
    """The same steps on every rank, as their numbers choose them. All is done between two steps, by their thread."""

    def __init__(self):
        self.folder = os.environ.get("ASSAY_WATCH_TRACES", "")
        self.ended = not self.folder
        self.thread = None         # that makes the steps
        self.disturbed = False     # whether the step that has begun is slower because of this
        self.why = ""              # the reason if there will be no trace
        self.ours = False          # whether the calls into torch's profiler are ours
        self.profiler = None       # while it is prepared or runs
        self.range = None          # of the step that is recorded
        self.cuda = None           # torch.cuda of a job on a GPU
        self.memory = None
        self.seconds = 0.0         # between steps

    def attach(self):
        """Notices when the job uses a profiler of its own, which must not find ours."""
        if self.ended:
            return
        self.ended = True   # unless all can be set
        from torch.autograd import profiler
        for name, call in [(name, getattr(profiler, name)) for name in HOOKS]:
            setattr(profiler, name, self.noticed(call))
        self.ended = False

    def noticed(self, call):
        @functools.wraps(call)
        def begins(*args, **kwargs):
            if not self.ours:
                self.give_up("the job profiles itself")
            return call(*args, **kwargs)
        return begins

    def before_fork(self):
        if self.profiler is not None and threading.get_ident() == self.thread:
            self.give_up("the job forked while its steps were recorded")

    def step_ended(self, steps, stopped):
        """`steps` of assay_watch.py; `stopped`: whether the watcher looks no more."""
        self.disturbed = False
        if self.ended and self.memory is None and self.why:
            self.memory = steps.memory
            self.say(ABSENT, self.why)
        if self.ended or steps.number < BEGIN:
            return
        self.memory, self.disturbed, self.ours = steps.memory, True, True
        began = time.perf_counter()
        try:
            if stopped or is_closed(steps.connection):
                self.give_up("the watcher has ended")
            elif self.why:
                self.give_up(self.why)
            elif steps.number == BEGIN:
                self.thread = threading.get_ident()
                self.prepare(steps)
            else:
                self.record(steps.number)
        except Exception as error:
            self.give_up(f"{type(error).__name__}: {error}")
        self.ours = False
        self.seconds += time.perf_counter() - began
        if steps.number == BEGIN + 1 + STEPS:
            struct.pack_into("<d", self.memory, SECONDS, self.seconds)

    def prepare(self, steps):
        import torch
        from torch.profiler import ProfilerActivity, profile
        activities = [ProfilerActivity.CPU]
        if any(getattr(one, "is_cuda", False) for group in steps.main.param_groups for one in group["params"]):
            if torch.cuda.is_current_stream_capturing():
                return self.give_up("a CUDA graph was being captured")
            activities.append(ProfilerActivity.CUDA)
            self.cuda = torch.cuda
        self.say(RUNS, "")
        self.profiler = profile(activities=activities, record_shapes=True)
        # Kineto looks at this when it is first used; what it logs would go to the job's stderr.
        chosen = LOG_LEVEL in os.environ
        os.environ.setdefault(LOG_LEVEL, "99")
        try:
            self.profiler.prepare_trace()
        finally:
            if not chosen:
                del os.environ[LOG_LEVEL]

    def record(self, number):
        from torch.profiler import record_function
        if self.cuda is not None and number in (BEGIN + 1, BEGIN + 1 + STEPS):
            # A GPU is behind its host: all that it does of these steps is to lie in them, and nothing else.
            if self.cuda.is_current_stream_capturing():
                return self.give_up("a CUDA graph was being captured")
            self.cuda.synchronize()
        if self.range is None:
            self.profiler.start_trace()
        else:
            self.end_range()
        if number <= BEGIN + STEPS:
            # The name that readers of traces know, with the number that the job's step has.
            self.range = record_function(f"ProfilerStep#{number + 1}")
            self.range.__enter__()
            return
        self.profiler.stop_trace()
        name = f"{os.getpid()}-{os.urandom(4).hex()}.json"
        self.profiler.export_chrome_trace(os.path.join(self.folder, name))
        self.profiler, self.ended = None, True
        self.say(WRITTEN, name)

    def end_range(self):
        ending, self.range = self.range, None
        ending.__exit__(None, None, None)

    def give_up(self, why):
        """Ends it, also in the middle; the job and its own profiler go on as if it had not been."""
        if self.ended:
            return
        self.why = why
        if self.profiler is not None and threading.get_ident() != self.thread:
            return   # torch's profiler can be ended only by the thread that began it, which does so after this step
        self.ended = True
        profiler, self.profiler = self.profiler, None
        try:
            if self.range is not None:
                self.end_range()
                profiler.stop_trace()
            elif profiler is not None:   # only prepared: it is ended by a trace that nobody reads
                self.ours = True
                profiler.start_trace()
                profiler.stop_trace()
        except Exception:
            pass
        self.ours = False
        self.say(ABSENT, why)

    def say(self, state, text):
        if self.memory is None:
            return
        said = text.encode(errors="replace")[:TEXT_BYTES - 1].ljust(TEXT_BYTES, b"\0")
        self.memory[TEXT:TEXT + TEXT_BYTES] = said
        struct.pack_into("<Q", self.memory, STATE, state)


def is_closed(connection):
    """Whether the watcher, which never sends anything, is no longer at its end."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))
