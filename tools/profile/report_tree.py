#!/usr/bin/env python3
"""Time and memory of reports over many runs: makes a tree of runs, runs reports on it and prints one line for each.

    report_tree.py --assay build/cpu/assay                   1,000 runs of 200 records of 20 samples
    report_tree.py --assay build/cpu/assay --runs 50         a short form
    report_tree.py --assay build/cpu/assay --from DIR        with the records of an existing run

Asserts nothing, since results depend on load. Targets: 10 s and 1 GB on two cores, 200 ms for one run.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time


def made_up(key_count):
    """Templates of records, for record_of()."""
    records = []
    for i in range(key_count):
        family = ("gemm", "memory", "collective", "llama")[i % 4]
        params = {"gemm": {"dtype": "bf16", "m": 256 * (i + 1), "n": 1024, "k": 1024, "transpose": "nn", "cache": "cold",
                           "duration": "burst"},
                  "memory": {"op": "triad", "bytes": 1 << (12 + i // 4 % 20), "store": "auto", "threads": i},
                  "collective": {"op": "all_reduce", "bytes": 8 << (i // 4 % 25), "dtype": "f32", "inplace": False,
                                 "batching": "batched"},
                  "llama": {"model": "llama-160m", "mode": "throughput", "precision": "bf16", "micro_batch": i,
                            "accumulate": 1, "seq": 512, "checkpointing": "none", "scaling": "weak", "threads": "all",
                            "path": "generated", "save_every": 0, "runs": 5, "seed": 0}}[family]
        key = "/".join([family] + [f"{name}={value}" for name, value in params.items()])
        metrics = {"gemm": [("throughput", "FLOP/s", 4e11)], "memory": [("bandwidth", "B/s", 4e10)],
                   "collective": [("busbw", "B/s", 5e9), ("algbw", "B/s", 5e9), ("latency", "s", 1e-4)],
                   "llama": [("throughput", "tokens/s", 400.0), ("step_time", "s", 5.0), ("model_flops", "FLOP/s", 3e11),
                             ("peak_memory", "B", 4e9), ("planned_memory", "B", 4e9)]}[family]
        records.append({"key": key, "family": family, "params": params, "metrics": metrics})
    return records


def record_of(shape, rng, samples, host):
    noise = rng.lognormvariate(0, 0.02)
    values = [1e-3 * noise * rng.lognormvariate(0, 0.01) for _ in range(samples)]
    return {
        "schema": 1, "key": shape["key"], "family": shape["family"], "params": shape["params"],
        "protocol": {"form": "repeat", "data": "normal", "cache": "cold", "batching": "batched", "timer": "steady_clock",
                     "warmup_seconds": 0.1, "min_samples": 30, "max_samples": 0, "max_seconds": 3.0,
                     "target_relative_ci": 0.01, "isa": "avx512_core", "hash": "f961295ddf35c745"},
        "seed": 0, "attempt": 1, "world": {"ranks": 1, "nodes": 1},
        "ranks": [{"rank": 0, "host": host, "device": "AMD Zen 4", "median": values[0]}], "device": "cpu",
        "labels": {"implementation": "brgemm:avx512_core", "isa": "avx512_core", "threads": "2",
                   "libraries": "oneDNN 3.2.0; OpenBLAS 0.3.21 (Cooperlake)"},
        "status": "ok", "reason": "", "comparable": True, "flags": [],
        "samples": {"unit": "s", "values": values, "at": [0.1 + 0.01 * i for i in range(samples)], "series": None,
                    "count": samples, "repetitions": 1, "stopped_by": "time", "disturbed": [1], "first_touch": [values[0]]},
        "metrics": [{"name": name, "value": value * noise, "unit": unit, "ci95": [value * noise * 0.99, value * noise * 1.01],
                     "better": "higher", "of_peak": None, "reference": None} for name, unit, value in shape["metrics"]],
        "checks": [{"name": "relative_error", "passed": True, "value": 4e-7, "limit": 2e-6, "detail": []},
                   {"name": "wrong_elements", "passed": True, "value": 0.0, "limit": 0.0, "detail": []}],
        "spans": {"setup": 1.572878434, "measure": 0.394018306, "verify": 0.008332552},
        "telemetry": {name: {"unit": unit, "at": [0.1006, 0.3545], "values": [value, value]} for name, unit, value in
                      (("clock", "Hz", 3.6e9), ("involuntary_switches", "1/s", 242.0), ("resident", "B", 2e8),
                       ("resident_peak", "B", 2e8), ("steal", "1", 0.0), ("utilisation", "1", 1.0))},
        "started": "2026-01-01T00:00:00Z", "seconds": 2.003936911}


def make_tree(folder, runs, records, samples, machines, like):
    shapes = made_up(records)
    for i in range(runs):
        rng = random.Random(i)
        run = folder / f"run-{i:04}"
        run.mkdir()
        host = f"host-{i % machines}"
        plan = [{"key": shape["key"], "family": shape["family"], "params": shape["params"], "ranks": 1, "seed": 0,
                 "protocol": {"max_seconds": 1.0}} for shape in shapes]
        (run / "run.json").write_text(json.dumps(
            {"schema": 1, "started": f"2026-01-{i // 40 + 1:02}T00:{i % 40:02}:00Z", "plan": {"name": "made", "cases": plan},
             "environment": {"hostnames": [host], "cpu": {"name": "AMD Zen 4", "usable_cores": 2}}}, indent=2))
        lines = like or [record_of(shape, rng, samples, host) for shape in shapes]
        text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines) + "\n"
        (run / "records.jsonl").write_text(text)


def measured(words):
    """Wall and CPU seconds, peak megabytes, exit code and standard error."""
    start = time.monotonic()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = child.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    return (time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3, child.returncode, errors)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--assay", required=True, type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--records", type=int, default=200)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--machines", type=int, default=1)
    parser.add_argument("--from", dest="like", type=pathlib.Path, help="a run directory whose records to repeat")
    parser.add_argument("--keep", type=pathlib.Path, help="make the tree here, or reuse it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="assay-reports-") as temporary:
        folder = options.keep or pathlib.Path(temporary)
        if not options.keep or not options.keep.exists():
            folder.mkdir(exist_ok=True)
            like = options.like and (options.like / "records.jsonl").read_text().splitlines()
            make_tree(folder, options.runs, options.records, options.samples, options.machines, like)
        dirs = sorted(str(path) for path in folder.iterdir() if (path / "run.json").exists())
        size = sum((pathlib.Path(d) / "records.jsonl").stat().st_size for d in dirs)
        print(f"{len(dirs)} runs, {size / 1e6:.0f} MB of records")
        floors = folder / "floors.json"
        floors.write_text(json.dumps({"schema": 1, "floors": [
            {"key": "gemm/*", "metric": "throughput", "unit": "FLOP/s", "at_least": 1e11, "source": "made up",
             "required": True}]}))
        half = len(dirs) // 2
        out = pathlib.Path(temporary)
        for name, words in (("report", ["report", *dirs]),
                            ("report --md --json", ["report", *dirs, "--md", out / "a.md", f"--json={out / 'a.json'}"]),
                            ("compare", ["compare", "--base", *dirs[:half], "--head", *dirs[half:]]),
                            ("check", ["check", *dirs, "--floors", floors]),
                            ("report of one run", ["report", dirs[0], "--md", out / "one.md"])):
            wall, cpu, megabytes, code, errors = measured([options.assay, *words])
            print(f"{name}: {wall:.2f} s, {cpu:.2f} s of CPU time, {megabytes:.0f} MB, exit {code}"
                  + (f" ({errors.splitlines()[0]})" if errors else ""), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
