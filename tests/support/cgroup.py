"""Cgroups of either version that tests make for a program, where they may."""
import contextlib
import os
import pathlib

TOP = pathlib.Path("/sys/fs/cgroup")
PERIOD = 100000   # us


class Cgroup:
    """`path` is None where none can be made, and `why_not` says why. A file whose name ends with ? may be absent."""

    def __init__(self, controller, version_1, version_2):
        self.path, reasons = None, []
        for folder, files in ((TOP, version_2), (TOP / "unified", version_2), (TOP / controller, version_1)):
            path = folder / f"assay-test-{os.getpid()}"
            try:
                path.mkdir()
            except OSError as error:
                reasons.append(str(error))
                continue
            try:
                for file, value in files.items():
                    if (path / file.rstrip("?")).exists():
                        (path / file.rstrip("?")).write_text(str(value))
                    elif not file.endswith("?"):
                        raise OSError(f"no {path / file}")
                self.path = path
                return
            except OSError as error:
                reasons.append(str(error))
                path.rmdir()
        self.why_not = f"no cgroup for {controller} can be made here: " + "; ".join(reasons)

    def enter(self):
        """For `preexec_fn`."""
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def read(self, file):
        """The numbers of a file by their names."""
        return {name: int(value) for name, value in map(str.split, (self.path / file).read_text().splitlines())}

    def remove(self):
        if self.path:
            self.path.rmdir()


def cpu_quota(part):
    """A part of the machine's CPU time."""
    quota = int(part * os.cpu_count() * PERIOD)
    return Cgroup("cpu", {"cpu.cfs_period_us": PERIOD, "cpu.cfs_quota_us": quota}, {"cpu.max": f"{quota} {PERIOD}"})


class MemoryLimit(Cgroup):
    """The kernel ends a process when all of them together take more than this; what it swaps out counts."""

    def __init__(self, limit):
        super().__init__("memory", {"memory.limit_in_bytes": limit, "memory.memsw.limit_in_bytes?": limit},
                         {"memory.max": limit, "memory.swap.max?": 0})

    def kills(self):
        for file in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(FileNotFoundError):
                return self.read(file)["oom_kill"]
        return None
