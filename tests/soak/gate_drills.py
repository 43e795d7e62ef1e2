"""The drills of assay gate: every problem that can be injected, how often it is found by its name, and how long that takes; and
how often sound machines are drained. The answer is a page in Markdown (docs/gate-drills.md); exit code 1 if a fault was missed or
a sound machine drained.
usage: gate_drills.py [--tries N] [--sound N] [--at-once N] [--out FILE] (ASSAY names the program)"""
import argparse
import collections
import concurrent.futures
import datetime
import itertools
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import fake_machine  # noqa: E402

BINARY = os.path.abspath(os.environ.get("ASSAY") or os.path.join(os.path.dirname(__file__), "../../build/release/assay"))
WHERE = {"gpu": "needs a GPU", "job": "among hosts: tests/cluster/gate_test.py"}


class Drills:
    def __init__(self, folder, options):
        self.folder, self.options, self.numbers = pathlib.Path(folder), options, itertools.count(1)

    def assay(self, *words, **env):
        """The exit code, standard output and seconds of a command on a host of its own, since a host has one gate at a time."""
        begin = time.monotonic()
        done = subprocess.run([BINARY, *map(str, words)], cwd=self.folder, capture_output=True, text=True, timeout=600, env={
            **os.environ, "ASSAY_CACHE": str(self.folder / "cache"), "ASSAY_HOST": f"drill-{os.getpid()}-{next(self.numbers)}", **env})
        return done.returncode, done.stdout or done.stderr, time.monotonic() - begin

    def answer(self, *words, **env):
        code, text, seconds = self.assay("gate", "--json", *words, **env)
        if code not in (0, 1, 3):
            sys.exit(f"gate {' '.join(map(str, words))}: exit {code}: {text}")
        return json.loads(text), seconds

    def floors(self):
        """Floors at ten times of what this machine reaches now: each figure is slow against them."""
        code, text, _ = self.assay("run", "gate", "--out", "learn")
        if code:
            sys.exit(f"run gate: exit {code}: {text}")
        floors = []
        for line in (self.folder / "learn/records.jsonl").read_text().splitlines():
            record = json.loads(line)
            metric = record["metrics"][0]
            higher = metric["better"] == "higher"
            floors.append({"key": record["key"], "metric": metric["name"], "unit": metric["unit"], "source": "a drill",
                           "at_least" if higher else "at_most": metric["value"] * 10 if higher else metric["value"] / 10})
        (self.folder / "floors.json").write_text(json.dumps({"schema": 1, "floors": floors}))
        return "floors.json"

    def drill(self, row, floors):
        """(found by its name, verdict, seconds) of each try. What hangs takes its whole budget, so that is kept short."""
        words = ["--inject", row["id"], "--budget", "8s" if row["id"].endswith("-hung") else "20s"]
        tries = []
        for _ in range(self.options.tries):
            answer, seconds = self.answer(*words, *(["--floors", floors] if row["id"].startswith("slow-") else []))
            tries.append((row["id"] in [one["id"] for one in answer["findings"]], answer["verdict"], seconds))
        return tries

    def sound(self, pool):
        """Verdicts of gates of sound machines: this one, and machines of files without and with 8 GPUs."""
        machines = [("this machine, budget 5 s", ["--budget", "5s"], {})]
        for gpus in (0, 8):
            root = fake_machine.FakeMachine(self.folder / f"machine-{gpus}", gpus).root
            machines.append((f"a machine of files, {gpus} GPUs, budget 2 s", ["--budget", "2s"], {"ASSAY_ROOT": str(root)}))
        return [(name, collections.Counter(pool.map(lambda _: self.answer(*words, **env)[0]["verdict"], range(self.options.sound))))
                for name, words, env in machines]


def machine():
    model = [line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    return f"{model[0] if model else platform.machine()}, {os.cpu_count()} CPUs"


def page(rows, found, sound, options):
    how = (f"Made by `./dev drills --tries {options.tries} --sound {options.sound} --at-once {options.at_once} --out "
           f"docs/gate-drills.md` on {datetime.date.today()}, {machine()}. The faults of an audit are files of a made-up machine "
           "(`configs/gate-faults.json`), those of tests are injected into the test (`assay gate --inject NAME`). Seconds are those of "
           "the whole command; what hangs takes its budget, here 8 s.")
    lines = ["# Drills of the gate", "", *textwrap.wrap(how, 120), "",
             "| code | fault | test | found | verdict | median s | longest s |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        tries = found.get(row["id"])
        if not tries:
            continue
        seconds = [one[2] for one in tries]
        verdicts = ", ".join(sorted({one[1] for one in tries}))
        lines.append(f"| {row['code']} | `{row['id']}` | {row['test']} | {sum(one[0] for one in tries)} of {len(tries)} | {verdicts} | "
                     f"{statistics.median(seconds):.1f} | {max(seconds):.1f} |")
    lines += ["", "## Not drilled", "", "| code | fault | why |", "|---|---|---|"]
    for row in rows:
        if row["id"] not in found:
            why = WHERE["gpu"] if row["test"].startswith("gpu-") else WHERE.get(row["test"])
            lines.append(f"| {row['code']} | `{row['id']}` | {why or 'no drill causes it'} |")
    lines += ["", "## Sound machines", "", "| machine | gates | drained | others |", "|---|---|---|---|"]
    for name, verdicts in sound:
        others = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items() if verdict != "drain")
        lines.append(f"| {name} | {sum(verdicts.values())} | {verdicts['drain']} | {others} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--sound", type=int, default=100)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--out", default="-")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="assay-drills-") as folder:
        drills = Drills(folder, options)
        rows = json.loads(drills.assay("gate", "--list", "--json")[1])["codes"]
        tried = [row for row in rows if row["injectable"] and not row["test"].startswith("gpu-")]
        floors = drills.floors()
        with concurrent.futures.ThreadPoolExecutor(options.at_once) as pool:
            found = dict(zip((row["id"] for row in tried), pool.map(lambda row: drills.drill(row, floors), tried)))
            sound = drills.sound(pool)
        text = page(rows, found, sound, options)
    if options.out == "-":
        print(text, end="")
    else:
        pathlib.Path(options.out).write_text(text)
    missed = [name for name, tries in found.items() if not all(one[0] for one in tries)]
    drained = [name for name, verdicts in sound if verdicts["drain"]]
    print(f"{len(found)} faults, {options.tries} tries each: missed: {', '.join(missed) or 'none'}; sound machines drained: "
          f"{', '.join(drained) or 'none'}", file=sys.stderr)
    return 1 if missed or drained else 0


if __name__ == "__main__":
    sys.exit(main())
