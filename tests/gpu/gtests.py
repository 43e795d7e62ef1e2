"""Runs GoogleTest programs on a GPU: each suite in its own process, since a kernel's fault breaks all later tests of its
process, and each failed test again alone, to distinguish real failures from their victims.

Outcomes come from the program's own output lines, so a killed program still reports how far it got. It is a failure if
the filter selects no test or none passes: a mistyped filter, or a GPU that could not be opened, would otherwise look
like success."""

import os
import pathlib
import re
import signal
import subprocess
import time

LINE = re.compile(r"^\[\s*(RUN|OK|FAILED|SKIPPED)\s*\] ([^\s,(]+)")
ALONE = 12  # maximum number of tests to run again alone


def listed(text):
    """{suite: [test]} from the output of --gtest_list_tests."""
    suites, suite = {}, None
    for line in text.splitlines():
        name = line.split("#")[0].rstrip()
        if name.endswith(".") and not name.startswith(" "):
            suite = name
        elif suite and name.startswith("  "):
            suites.setdefault(suite, {})[suite + name.strip()] = None  # once, even if several ranks print it
    return {suite: list(tests) for suite, tests in suites.items()}


def outcomes(text):
    """{test: 'OK' | 'FAILED' | 'SKIPPED' | 'RUN'} from a program's output; RUN: it did not finish."""
    found = {}
    for line in text.splitlines():
        match = LINE.match(line)
        if match and "." in match[2]:
            found[match[2]] = match[1]
    return found


class Tests:
    """One program and filter. run() appends to a log and returns (status, remark); tests that passed according to the log
        are not run again, so an interrupted call resumes. `start` starts a process like subprocess.Popen, as the leader of a
        process group."""

    def __init__(self, program, chosen, prefix=(), environment=None, start=subprocess.Popen):
        self.program, self.chosen, self.prefix = program, chosen, list(prefix)
        self.environment, self.start = environment, start

    def list(self):
        command = [self.program, "--gtest_list_tests", f"--gtest_filter={self.chosen}"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise OSError(f"exit code {done.returncode}: {(done.stderr.strip().splitlines() or ['no output'])[-1]}")
        return listed(done.stdout)

    def call(self, tests, log, end):
        """Runs these tests in one process until `end`; their outcomes, and the exit code, or None after a timeout."""
        before = log.stat().st_size if log.exists() else 0
        with open(log, "ab") as file:
            process = self.start([*self.prefix, self.program, f"--gtest_filter={':'.join(tests)}"], stdout=file,
                                 stderr=subprocess.STDOUT, env=self.environment)
            code = wait(process, end)
        with open(log, "rb") as file:
            file.seek(before)
            return outcomes(file.read().decode(errors="replace")), code

    def run(self, log, end):
        try:
            suites = self.list()
        except (OSError, subprocess.TimeoutExpired) as error:
            return "failed", f"{pathlib.Path(self.program).name} cannot list its tests: {error}"
        everything = [test for tests in suites.values() for test in tests]
        if not everything:
            return "failed", f"no test matches {self.chosen}"
        before = outcomes(log.read_text(errors="replace")) if log.exists() else {}
        found = {test: before[test] for test in everything if before.get(test) in ("OK", "SKIPPED")}
        odd, late = [], False
        for suite, tests in suites.items():
            rest = [test for test in tests if test not in found]
            while rest and not late:
                got, code = self.call(rest, log, end)
                found |= got
                late = code is None
                left = [test for test in rest if test not in got]
                broken = [test for test, outcome in got.items() if outcome == "RUN"]
                if broken and not late:
                    found |= {test: "FAILED" for test in broken}  # the process died in it
                elif code not in (0, None) and "FAILED" not in got.values():
                    odd.append(f"{suite}* ended with exit code {code}")
                if len(left) == len(rest):
                    break  # the program does not even start
                rest = left
            if late:
                break
        failed = [test for test, outcome in found.items() if outcome == "FAILED"]
        alone = [test for test in failed[:ALONE] if not late and self.fails_alone(test, log, end)]
        return verdict(everything, found, failed, alone, odd, late)

    def fails_alone(self, test, log, end):
        if time.monotonic() > end:
            return True
        got, code = self.call([test], log, end)
        return got.get(test) != "OK" or code != 0


def verdict(everything, found, failed, alone, odd, late):
    counts = {name: sum(outcome == name for outcome in found.values()) for name in ("OK", "SKIPPED")}
    missing = len(everything) - counts["OK"] - counts["SKIPPED"] - len(failed)
    words = [f"{counts['OK']} of {len(everything)} passed"]
    if counts["SKIPPED"]:
        words.append(f"{counts['SKIPPED']} skipped")
    if failed:
        words.append(f"{len(failed)} failed" + (f" (alone too: {', '.join(alone)})" if alone else f": {', '.join(failed[:3])}"))
    if missing:
        words.append(f"{missing} did not run")
    words += odd
    if failed or odd or (not late and (missing or not counts["OK"])):
        return "failed", ", ".join(words)
    return "timeout" if late else "passed", ", ".join(words)


def wait(process, end):
    """The exit code, or None if it had to be stopped at `end`."""
    try:
        return process.wait(timeout=max(0.1, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        stop(process)
        return None


def stop(process, timeout=8):
    """Ends a process and its group: by SIGTERM, so that a run can be resumed, then by SIGKILL."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sent)
        except ProcessLookupError:
            pass
        try:
            process.wait(timeout=timeout)
            if sent == signal.SIGKILL:
                return
        except subprocess.TimeoutExpired:
            continue
        timeout = 1  # the leader has exited; kill the rest of its group soon
