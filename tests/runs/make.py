"""Golden runs: what report, compare and check say about the runs in this folder, kept in expected/.

  ASSAY=build/release/assay python3 tests/runs/make.py

rewrites all expectations with that binary; `git diff` then shows what changed. Do so only for an intended change.

The runs began as real ones, made short, with their samples cut and their hosts renamed. Edited by hand: micro-* (quiet
samples and figures are made up on both sides; head has slower, faster, broken, missing and incomparable cases), cluster
and fleet (hosts counted as machines of their own, one of them slow), resumed (attempts and damaged lines), hostile (names
and figures made to break readers), gpu (invented figures).
"""

import hashlib
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
MICRO = [f"micro-{side}-{number}" for side in ("base", "head") for number in (1, 2, 3)]
BASE, HEAD = MICRO[:3], MICRO[3:]
FAULTS = [f"fault-{name}" for name in ("crash", "hang", "oom", "slow-rank", "slow-link", "wrong-sum", "bit-flip")]
RUNS = [*MICRO, "fault-none", *FAULTS, "training-1", "training-2", "ranks", "cluster", "each-host", "fleet", "gpu",
        "resumed", "hostile"]


def commands():
    """Name and words of every command, without its --json."""
    yield from ((f"report-{run}", ["report", run]) for run in RUNS if run not in [*MICRO[1:], "training-2"])
    yield "report-micro", ["report", *BASE]
    yield "report-sides", ["report", "micro-base-1", "micro-head-1", "--price", "3"]
    yield "report-worlds", ["report", "training-1", "cluster", "ranks", "fault-none"]
    yield "report-priced", ["report", "gpu", "--prices", "prices/own.json"]
    yield "report-training-2", ["report", "training-2", "--prices", "prices/own.csv"]
    yield "report-injected", ["report", *FAULTS, "--injected"]
    yield "report-odd", ["report", "hostile", "resumed", "fleet"]
    yield "report-nothing", ["report", "nowhere"]
    for name, base, head, *words in (
            ("micro", BASE, HEAD), ("micro-tolerant", BASE, HEAD, "--tolerance", "30%"),
            ("single", BASE[:1], HEAD[:1]), ("same", BASE[:2], BASE[2:]),
            ("training", ["training-1"], ["training-2"], "--price", "3"),
            ("training-gpu", ["training-2"], ["gpu"], "--prices", "prices/own.json"),
            ("drill", ["fault-none"], FAULTS), ("drill-injected", ["fault-none"], FAULTS, "--injected"),
            ("hosts", ["each-host"], ["fleet"]), ("hostile", ["hostile"], ["hostile", "fault-none"]),
            ("resumed", ["fault-none"], ["resumed"]), ("strangers", ["gpu"], ["ranks"])):
        yield f"compare-{name}", ["compare", "--base", *base, "--head", *head, *words]
    for floors, *runs in (
            ("pass", "micro-base-1"), ("pass", *MICRO), ("fail", "micro-base-1"), ("fail", "resumed", "hostile"),
            ("fail", *FAULTS), ("cannot-say", "micro-base-1"), ("hosts", "fleet"), ("hosts", *MICRO, "fleet"),
            ("narrow", "training-1"), ("narrow", "ranks", "cluster", "gpu"), ("wrong-unit", "micro-base-1")):
        yield f"check-{floors}-{runs[0]}-{len(runs)}", ["check", *runs, "--floors", f"floors/{floors}.json"]
    yield "check-injected", ["check", *FAULTS, "--floors", "floors/pass.json", "--injected"]
    yield "check-gpu", ["check", "gpu", "--floors", "h100-sxm"]
    yield "check-fleet", ["check", "fleet", "ranks", "cluster", "--floors", "fleet"]


# Members whose strings are prose: there must be one, but its words may change.
PROSE = {"title", "headline", "texts", "items", "reason", "remark", "what", "warnings", "culprit", "label", "series",
         "stands_for", "rule", "seen", "effect", "fix", "text", "evidence"}
# Members that name a case or a file, or are prose if there is none.
NAME_OR_PROSE = {"peak", "gemm"}
# Objects whose keys come from records.
FROM_RECORDS = {"labels", "words"}
RENAMED = {"mend": "fix"}
TABLES = {"rows", "records", "figures"}
ABSENT = "(absent)"


def series(values):
    """Summarises numbers: how many, how many known, and a sum that depends on each and on their order."""
    known = [(place, value) for place, value in enumerate(values, 1) if value is not None]
    return [len(values), len(known), math.fsum((place + 0.5) * value for place, value in known)]


def points(all_points):
    """Summarises the points of a curve."""
    axes = {axis: series([point.get(axis) for point in all_points]) for axis in ("x", "y")}
    ranges = [end for point in all_points for end in point.get("range") or [None, None]]
    return {**axes, **({"range": series(ranges)} if any(end is not None for end in ranges) else {})}


def short(text):
    """Shortens a long text to its beginning and a hash."""
    return text if len(text) <= 48 else f"{text[:24]}~{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def leaves(value, path=""):
    """All members of nested objects by their paths; lists are kept whole."""
    if value and isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}/{short(name)}" if path else short(name))
    else:
        yield path, value


def column(cells):
    """A single value if all cells are equal; cells by row number if some are absent."""
    if all(type(cell) is type(cells[0]) and cell == cells[0] for cell in cells):
        return {"all": cells[0]}
    filled = {str(row): cell for row, cell in enumerate(cells) if cell != ABSENT}
    return filled if len(filled) < len(cells) else cells


def columns(rows):
    """Turns rows into columns, which take a third of the space."""
    flat = [dict(leaves(row)) for row in rows]
    names = dict.fromkeys(name for row in flat for name in row)
    return {"rows": len(rows), **{name: column([row.get(name, ABSENT) for row in flat]) for name in names}}


def canonical(value, member="", prose=False):
    """The parts of a JSON document that must not change: keys, ids, numbers, units, statuses."""
    if isinstance(value, dict):
        fixed = {RENAMED.get(name, name): inner for name, inner in value.items()}
        return {name: canonical(inner, name, member not in FROM_RECORDS and name in PROSE)
                for name, inner in fixed.items()}
    if isinstance(value, list):
        if member == "points":
            return points(value)
        inner = [canonical(one, member, prose) for one in value]
        return columns(inner) if member in TABLES and len(inner) > 1 and "curves" not in inner[0] else inner
    if isinstance(value, str):
        if prose or (member in NAME_OR_PROSE and "/" not in value):
            return "..." if value else ""
        return short(value)
    if isinstance(value, float):
        return float(f"{value:.11g}")
    return value


def answer(binary, words):
    """Runs a command in this folder; the canonical form of its JSON, and its exit code."""
    with tempfile.TemporaryDirectory(prefix="assay-test-") as folder:
        path = pathlib.Path(folder) / "out.json"
        done = subprocess.run([binary, *words, "--json", path], cwd=HERE, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=300)
        document = json.loads(path.read_text()) if path.exists() else None
    # The reports of single runs cover what is listed per record.
    if words[0] == "report" and len(words) > 2 and document:
        document["sections"] = [one for one in document["sections"] if one["id"] not in ("method", "samples")]
    return {"command": words, "exit": done.returncode, "document": canonical(document)}


def differences(expected, found, path=""):
    """Yields where two canonical forms differ: JSON path, expected value, found value."""
    if isinstance(expected, list) and isinstance(found, dict) and set(found) == {"all"}:
        found = len(expected) * [found["all"]]
    elif isinstance(found, list) and isinstance(expected, dict) and set(expected) == {"all"}:
        expected = len(found) * [expected["all"]]
    numbers = [isinstance(one, (int, float)) and not isinstance(one, bool) for one in (expected, found)]
    if all(numbers):
        if not math.isclose(expected, found, rel_tol=1e-9):
            yield path, expected, found
    elif isinstance(expected, dict) and isinstance(found, dict):
        for name in [*expected, *(name for name in found if name not in expected)]:
            inner = f"{path}/{name}"
            if name not in expected or name not in found:
                yield inner, expected.get(name, ABSENT), found.get(name, ABSENT)
            else:
                yield from differences(expected[name], found[name], inner)
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            yield f"{path} (length)", len(expected), len(found)
        for place, (left, right) in enumerate(zip(expected, found)):
            yield from differences(left, right, f"{path}/{place}")
    elif expected != found:
        yield path, expected, found


def pretty(value, indent=0):
    """JSON with one line per column of a table, for readable diffs."""
    flat = json.dumps(value)
    if len(flat) <= 150 or not isinstance(value, (dict, list)):
        return flat
    if "curves" in value or isinstance(value, list) and not any(isinstance(one, (dict, list)) for one in value):
        return flat
    pad = " " * min(indent + 1, 4)
    if isinstance(value, dict):
        inner = [f"{pad}{json.dumps(name)}: {pretty(one, indent + 1)}" for name, one in value.items()]
        return "{\n" + ",\n".join(inner) + "}"
    return "[\n" + ",\n".join(pad + pretty(one, indent + 1) for one in value) + "]"


def expectation(name):
    return HERE / "expected" / f"{name}.json"


def main():
    binary = pathlib.Path(os.environ["ASSAY"]).resolve()
    for old in (HERE / "expected").glob("*.json"):
        old.unlink()
    expectation("any").parent.mkdir(exist_ok=True)
    for name, words in commands():
        expectation(name).write_text(pretty(answer(binary, words)) + "\n")


if __name__ == "__main__":
    sys.exit(main())
