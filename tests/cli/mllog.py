"""Validates the MLLOG file of a successful quality run, more strictly than mlcommons' checker with
configs/mllog/rules.yaml: the order of all lines, times that never decrease, evaluations at fixed intervals, and an end
at the first evaluation that reaches the target."""

import json
import re

START, END, POINT = "INTERVAL_START", "INTERVAL_END", "POINT_IN_TIME"
EVENTS = {"init_start": START, "init_stop": END, "run_start": START, "run_stop": END, "block_start": START,
          "block_stop": END, "eval_start": START, "eval_stop": END}
SUBMISSION = {"submission_benchmark", "submission_org", "submission_division", "submission_status", "submission_platform"}
SETTINGS = {"seed", "global_batch_size", "gradient_accumulation_steps", "train_samples", "eval_samples", "opt_name",
            "opt_base_learning_rate", "opt_learning_rate_warmup_steps", "opt_weight_decay", "quality_target"}
# One letter per line: submission, cache, init start and stop, settings, run start, block, evaluation, run stop.
LETTERS = {"cache_clear": "c", "init_start": "i", "init_stop": "I", "run_start": "r", "block_start": "b", "block_stop": "B",
           "eval_start": "e", "eval_accuracy": "a", "eval_stop": "E", "run_stop": "R"}
ORDER = re.compile("s+cih+Ir(bBeaE)+R")


def parse(text):
    """The lines as objects. Raises ValueError at the first invalid line."""
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith(":::MLLOG "):
            raise ValueError(f"line {number}: does not begin with ':::MLLOG '")
        entry = json.loads(line[len(":::MLLOG "):])
        if set(entry) != {"namespace", "time_ms", "event_type", "key", "value", "metadata"}:
            raise ValueError(f"line {number}: has the members {sorted(entry)}")
        if not isinstance(entry["time_ms"], int) or not {"file", "lineno"} <= set(entry["metadata"]):
            raise ValueError(f"line {number}: time or place in the source is missing")
        lines.append(entry)
    return lines


def problems(text):
    """Descriptions of what is wrong; empty if nothing is."""
    if not text.endswith("\n"):
        return ["the last line is torn"]
    try:
        lines = parse(text)
    except ValueError as error:
        return [str(error)]
    found = []
    for before, after in zip(lines, lines[1:]):
        if after["time_ms"] < before["time_ms"]:
            found.append(f"{after['key']}: time goes back by {before['time_ms'] - after['time_ms']} ms")
    for line in lines:
        if line["event_type"] != EVENTS.get(line["key"], POINT):
            found.append(f"{line['key']}: must not be {line['event_type']}")
        if line["key"] in EVENTS and line["value"] is not None:
            found.append(f"{line['key']}: an interval has no value")
    order = "".join("s" if line["key"] in SUBMISSION else LETTERS.get(line["key"], "h") for line in lines)
    if not ORDER.fullmatch(order):
        return [*found, f"order of the lines: {order}"]
    for names, letter in ((SUBMISSION, "s"), (SETTINGS, "h")):
        keys = [line["key"] for line, each in zip(lines, order) if each == letter]
        found += [f"{name}: missing" for name in sorted(names - set(keys))]
        found += [f"{key}: {keys.count(key)} times" for key in sorted(set(keys)) if keys.count(key) > 1]
    return found + problems_of_the_run(lines) if not found else found


def problems_of_the_run(lines):
    found = []
    value = {line["key"]: line["value"] for line in lines}
    target = next(line for line in lines if line["key"] == "quality_target")
    lower_is_better = target["metadata"].get("metric") == "loss"
    samples, lengths, qualities = 0, set(), []
    for line in lines:
        count = line["metadata"].get("samples_count")
        if line["key"] == "block_stop":
            lengths.add(count - samples)
            samples = count
        elif line["key"] in ("block_start", "eval_start", "eval_accuracy", "eval_stop", "run_stop") and count != samples:
            found.append(f"{line['key']}: at {count} samples, after {samples}")
        if line["key"] == "eval_accuracy":
            qualities.append(line["value"])
    if len(lengths) != 1 or min(lengths) <= 0 or min(lengths) % value["global_batch_size"]:
        found.append(f"evaluations are not at a fixed cadence of whole steps: {sorted(lengths)}")
    if samples > value["train_samples"]:
        found.append(f"{samples} samples, of at most {value['train_samples']}")
    reached = [q <= target["value"] if lower_is_better else q >= target["value"] for q in qualities]
    if True in reached[:-1]:
        found.append(f"continues after evaluation {reached.index(True) + 1} reached the target")
    if not reached[-1]:
        found.append("the last evaluation missed the target")
    if lines[-1]["metadata"].get("status") != "success":
        found.append(f"status is {lines[-1]['metadata'].get('status')}")
    return found


def run_seconds(text):
    """Seconds from run_start to run_stop."""
    at = {line["key"]: line["time_ms"] for line in parse(text)}
    return (at["run_stop"] - at["run_start"]) / 1000
