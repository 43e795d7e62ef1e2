#!/usr/bin/env python3
"""Scores the detector on labelled series that you have: F1, precision and recall at a margin, as the Turing Change Point
Dataset (TCPD) defines them, beside Apache Otava's if its wheel is installed.

    labelled.py --changes build/release/history_changes --tcpd CLONE_OF_TCPD
    labelled.py --changes ... --series FILE.json      [{"name": "a", "values": [1, 2], "changes": [[1]]}, ..]

`changes` has a list for each person who labelled the series. "alarms" are the detector's alarms and their ends, "levels" the
steps between the levels that it sees at the end, whether they alarmed or not: the segmentation that TCPD asks for. Only series of one dimension count. --half takes every
second series by name, so that one half can stay unseen while the detector is changed."""

import argparse
import importlib.util
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path


def read_tcpd(folder):
    labels = json.loads((folder / "annotations.json").read_text())
    series = []
    for name in sorted(labels):
        file = folder / "datasets" / name / f"{name}.json"
        if not file.exists():
            print(f"left out: {name}: no {file} (`make` in TCPD downloads it)", file=sys.stderr)
            continue
        data = json.loads(file.read_text())
        if data["n_dim"] == 1:
            values = [math.nan if value is None else value for value in data["series"][0]["raw"]]
            series.append({"name": name, "values": values, "changes": list(labels[name].values())})
    return series


def matched(labels, found, margin):
    """How many labels have a place within the margin; each place counts for one."""
    left, count = set(found), 0
    for label in sorted(labels):
        near = [(abs(place - label), place) for place in left if abs(place - label) <= margin]
        if near:
            left.remove(min(near)[1])
            count += 1
    return count


def score(people, found, margin):
    """van den Burg & Williams 2020: precision against the labels of all, recall as the mean over people. The start is
    in every set."""
    found = set(found) | {0}
    people = [set(labels) | {0} for labels in people]
    precision = matched(set().union(*people), found, margin) / len(found)
    recall = statistics.mean(matched(labels, found, margin) / len(labels) for labels in people)
    return 2 * precision * recall / (precision + recall), precision, recall


def logarithms(values):
    """A series with values that are not above 0 has no logarithm: it is scaled to a usual deviation of 5 %."""
    known = [value for value in values if math.isfinite(value)]
    if min(known) > 0:
        return [math.log(value) for value in values]
    middle = statistics.median(known)
    spread = statistics.median(abs(value - middle) for value in known) or statistics.pstdev(known) or 1
    return [0.05 * (value - middle) / spread for value in values]


def by_assay(command, series):
    lines = "".join(f"s{i} {' '.join(map(repr, logarithms(one['values'])))}\n" for i, one in enumerate(series))
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    return [[int(word) for word in line.split()[1:]] for line in done.stdout.splitlines()]


def by_otava(series):
    from otava.analysis import compute_change_points, fill_missing
    found = []
    for one in series:
        values = [None if math.isnan(value) else value for value in one["values"]]
        fill_missing(values)
        found.append([point.index for point in compute_change_points(values)[0]])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--changes", required=True, help="the program history_changes")
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("--tcpd", type=Path, help="a clone of TCPD")
    given.add_argument("--series", type=Path, help="a JSON list of series with their labels")
    parser.add_argument("--margin", type=int, default=5)
    parser.add_argument("--half", choices=["first", "second"])
    options = parser.parse_args()
    series = read_tcpd(options.tcpd) if options.tcpd else json.loads(options.series.read_text())
    series.sort(key=lambda one: one["name"])
    if options.half:
        series = series[options.half == "second"::2]
    if not series:
        sys.exit("labelled.py: no series of one dimension")
    found = {"no change": [[] for _ in series], "alarms": by_assay([options.changes], series),
             "levels": by_assay([options.changes, "--levels"], series)}
    if importlib.util.find_spec("otava"):
        found["otava"] = by_otava(series)
    print("| series |" + "".join(f" {name} |" for name in found) + "\n|---|" + "---|" * len(found))
    scores = {name: [score(one["changes"], places, options.margin) for one, places in zip(series, all_places)]
              for name, all_places in found.items()}
    for i, one in enumerate(series):
        print(f"| {one['name']} |" + "".join(f" {scores[name][i][0]:.3f} |" for name in found))
    for k, what in enumerate(("F1", "precision", "recall")):
        print(f"| **{what}** |" + "".join(f" {statistics.mean(s[k] for s in scores[name]):.3f} |" for name in found))
    print("| changes |" + "".join(f" {sum(map(len, found[name]))} |" for name in found))


if __name__ == "__main__":
    main()
