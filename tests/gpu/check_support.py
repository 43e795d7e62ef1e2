"""What the tests of tests/gpu/check share: the program as a module, a fake GoogleTest program, a packed build, and calls on
a made-up clock."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["ASSAY"]).parent
EMULATED = BUILD / "emulated"
sys.dont_write_bytecode = True

loader = importlib.machinery.SourceFileLoader("check", str(HERE / "check"))
check = importlib.util.module_from_spec(importlib.util.spec_from_loader("check", loader))
loader.exec_module(check)

# A fake GoogleTest program: the first fault in a process makes every later test fail.
PROGRAM = '''#!{python}
import fnmatch, json, os, sys, time
tests = {tests!r}
flags = dict(word[2:].split("=", 1) if "=" in word else (word[2:], "") for word in sys.argv[1:])
chosen = [t for t in tests if any(fnmatch.fnmatchcase(t, p) for p in flags["gtest_filter"].split(":"))]
if "gtest_list_tests" in flags:
    print("Running main() from somewhere")
    for suite in dict.fromkeys(t.split(".")[0] for t in chosen):
        print(suite + ".")
        for t in chosen:
            if t.startswith(suite + "."):
                print("  " + t.split(".")[1] + "  # GetParam() = x")
    sys.exit(0)
with open({calls!r}, "a") as calls:
    calls.write(" ".join(chosen) + "\\n")
broken = False
for t in chosen:
    print("[ RUN      ] " + t, flush=True)
    broken = broken or tests[t] == "fault"
    if tests[t] == "crash":
        os._exit(139)
    if tests[t] == "slow" and not os.path.exists({calls!r} + ".go"):
        time.sleep(60)
    word = "  FAILED  " if broken else "  SKIPPED " if tests[t] == "skip" else "       OK "
    print("[" + word + "] " + t + (", where GetParam() = x" if broken else "") + " (0 ms)", flush=True)
sys.exit(1 if broken else 0)
'''


def start(command, **more):
    return subprocess.Popen(command, start_new_session=True, **more)


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="assay-check-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def program(self, **tests):
        path = self.dir / "program"
        path.write_text(PROGRAM.format(python=sys.executable, calls=str(self.dir / "calls"),
                                       tests={name.replace("__", "."): outcome for name, outcome in tests.items()}))
        path.chmod(0o755)
        return path

    def calls(self):
        return (self.dir / "calls").read_text().splitlines()

    def run_tests(self, program, chosen="*", seconds=60):
        return check.gtests.Tests(str(program), chosen, start=start).run(self.dir / "log", time.monotonic() + seconds)


def pack(folder, module=BUILD / "libassay-cuda.so"):
    """Packs this build, with `module` as its CUDA module, into `folder`/bundle."""
    names = check.bundle.FILES + check.bundle.PROGRAMS
    absent = {name for name in names if not (BUILD / name).exists()}
    if not EMULATED.exists():
        raise unittest.SkipTest("a build without CUDA")
    assert absent <= {"peers/babelstream"}, absent  # belongs to the target `peers`
    for name in names:
        (folder / "build" / name).parent.mkdir(parents=True, exist_ok=True)
        own = module if name == "libassay-cuda.so" else BUILD / ("assay" if name in absent else name)
        (folder / "build" / name).symlink_to(own)
    check.bundle.pack(folder / "build", folder / "bundle")


class Whole(Folder):
    """Calls of the whole program, with the steps `self.steps`."""

    def call(self, *words, clock=None, tick=0.0):
        """One call of the check; its clock, which the budget is measured by, advances `tick` s each time it is read, or is
        `clock`."""
        now = [0.0]

        def ticking():
            now[0] += tick
            return now[0]

        printed, run = io.StringIO(), check.run
        with mock.patch.object(check.plan, "steps", lambda: self.steps), contextlib.redirect_stdout(printed), \
                mock.patch.object(sys, "argv", ["check", *map(str, words)]), mock.patch.dict(os.environ, ASSAY_EMULATION=""), \
                mock.patch.object(check, "run", lambda options: run(options, clock or ticking)):
            for name in ("SIGTERM", "SIGINT", "SIGHUP"):
                self.addCleanup(signal.signal, getattr(signal, name), signal.getsignal(getattr(signal, name)))
            code = check.main()
        return code, printed.getvalue()
