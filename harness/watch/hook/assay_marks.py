# Measures the parts of a step on a GPU, for assay_watch.py: by events in its stream, which are read later.
import collections

FORWARD = 5      # the last of the parts, all that is no other; the numbers of the others are assay_watch.py's
MARKS = 64       # of a step at most: what is called more often within one is part of what surrounds it


class Marks:
    """Where the parts of a step begin on a GPU: events in its stream, read when the GPU has passed them. The host runs
    ahead of the GPU, so its own clock tells only when it has launched something."""

    def __init__(self, cuda):
        self.cuda = cuda
        self.free = []
        self.open = [(self.event(), FORWARD)]
        self.pending = collections.deque()   # steps that the GPU has not ended

    def event(self):
        event = self.free.pop() if self.free else self.cuda.Event(enable_timing=True)
        event.record()
        return event

    def enter(self, part):
        if len(self.open) < MARKS and part != self.open[-1][1]:
            self.open.append((self.event(), part))

    def end_step(self, host):
        """`host`: what the host knows of this step."""
        last = self.event()
        self.pending.append((self.open, last, host))
        self.open = [(last, FORWARD)]

    def ended(self):
        """The steps that the GPU has ended since: seconds, seconds by part, what the host knows."""
        while self.pending and self.pending[0][1].query():
            marks, last, host = self.pending.popleft()
            parts = [0.0] * 6
            for (event, part), (after, _) in zip(marks, marks[1:] + [(last, None)]):
                parts[part] += 1e-3 * event.elapsed_time(after)
            self.free.extend(event for event, _ in marks)   # the last one begins the next step
            yield sum(parts), parts[:FORWARD], host
