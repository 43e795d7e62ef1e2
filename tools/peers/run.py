"""Runs Assay against small independent programs and reports whether it keeps up with them.

Every *.json in this folder lists comparisons on one subject:

  [{"name": "gemm-f32-2048",                      what `./dev peers NAME` selects, by prefix
    "about": "f32 product, 2048 cubed, against a bare oneDNN loop",
    "ours":  {"assay": ["gemm", "--set", "gemm.m=2048"], "metric": "throughput"},
    "peer":  {"command": ["{build}/peers/gemm", "f32", "2048"]},
    "at_least": 0.98,                             bound for ours over the peer's, oriented so that more is better; or
    "at_most": 1.03,                              bound for our cost (a time) over the peer's; or
    "between": [0.9, 1.1],                        bounds for ours over the peer's, not oriented
    "rounds": 15,                                 optional; at least 6, by default 15
    "also": [{"metric": "peak_memory", "at_most": 1}],  optional: other figures of the same runs, each with its own row
    "prepare": [["{python}", "x.py", "{work}"]],  optional: commands that make what the sides need, each run once. If its
                                                  last line is {"skip": "why"} the comparison is skipped; a
                                                  {"note": "..."} is printed below the table
    "needs": {SIDE, "at_least": 1.7},             optional: a figure that the machine must reach for a valid comparison
    "limit": {SIDE, "name": "FMA peak"}}]         optional: the most that this machine allows. With --table it is measured in
                                                  every round too, and the table has our share of it; with "of": NAME, the
                                                  share of that metric of our runs

A side is one of
  {"assay": [...], "metric": NAME}   `assay run` with these arguments in a new folder; the best value of that metric
                                     over the records, which must all be ok
  {"command": [...]}                 any program; the last line of its output is a JSON object
                                     {"value": 1.5e12, "unit": "FLOP/s", "better": "higher"} with its aggregate,
                                     optionally "also": {NAME: {"value": ...}}, or {"skip": "why not here"}
with {build}, {root}, {python} and {work} (a temporary folder of this program) substituted. Both sides may be Assay: one
worker against two. A side that prints {"skip": ...} skips the comparison; a missing program and too little memory are errors.

The sides alternate (ours peer, peer ours, ...), so that drift of the machine affects both. The verdict is based on the
ratios of the rounds: their median and its order-statistic 95 % interval, which assumes no distribution. The interval's
bound on the unfavourable side decides, not the median. Exit code: 0 all held, 1 one did not hold or broke, 2 usage, 3 one
was skipped. --table prints a table in Markdown instead (table.py).
"""

import argparse
import contextlib
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import table  # noqa: E402

ROUNDS = 15
MIN_ROUNDS = 6  # the fewest with a 95 % interval of their median
SIDE_TIMEOUT = 900  # seconds


class Broken(Exception):
    """A side produced no figure."""


class Skipped(Exception):
    """A side cannot run here; the message is the reason."""


def median_interval(values, confidence=0.95):
    """The binomial order-statistic interval of the median: (low, high); at least 6 values."""
    ordered, n = sorted(values), len(values)
    below, cumulated = 0, 0.0
    while cumulated + math.comb(n, below) / 2**n <= (1 - confidence) / 2:
        cumulated += math.comb(n, below) / 2**n
        below += 1
    if below == 0:
        raise ValueError(f"{n} values are too few for an interval")
    return ordered[below - 1], ordered[n - below]


def call(command, environment=None):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SIDE_TIMEOUT, stdin=subprocess.DEVNULL,
                              env=environment)
    except FileNotFoundError as error:
        raise Broken(f"{command[0]}: not built or not installed") from error
    except subprocess.TimeoutExpired as error:
        raise Broken(f"{command[0]}: did not end within {SIDE_TIMEOUT} s") from error
    return done


def last_line(done):
    lines = (done.stderr or done.stdout).strip().splitlines()
    return f"exit code {done.returncode}: {lines[-1] if lines else 'no output'}"


def measure_command(side):
    done = call(side["command"])
    if done.returncode:
        raise Broken(f"{side['command'][0]}: {last_line(done)}")
    try:
        figure = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise Broken(f"{side['command'][0]}: its last line is not JSON") from error
    if "skip" in figure:
        raise Skipped(figure["skip"])
    return figure


def does_not_fit(record):
    """Whether a case was skipped for lack of memory, by the flag of that name (docs/records.md)."""
    return record["status"] == "skipped" and "does not fit" in record.get("flags", [])


def figure_of_run(side, binary, out, options=(), environment=None):
    """Runs Assay into the folder `out`: the best value of the side's metric, and the others under "also"."""
    done = call([binary, "run", *side["assay"], *options, "--out", str(out)], environment)
    if done.returncode:
        raise Broken(f"assay run {' '.join(side['assay'])}: {last_line(done)}")
    best = {}
    for line in (out / "records.jsonl").read_text().splitlines():
        record = json.loads(line)
        if does_not_fit(record):  # what holds the memory, such as a peer, is part of the comparison
            raise Broken(f"{record['key']}: {record['reason']}")
        if record["status"] == "skipped":
            raise Skipped(f"{record['key']}: {record['reason']}")
        if record["status"] != "ok":
            raise Broken(f"{record['key']}: {record['status']}: {record['reason']}")
        for metric in record["metrics"]:
            if metric["value"] is not None:
                figures = [metric, best.get(metric["name"], metric)]
                best[metric["name"]] = (max if metric["better"] == "higher" else min)(figures, key=lambda m: m["value"])
    if side["metric"] not in best:
        raise Broken(f"assay run {' '.join(side['assay'])}: no metric {side['metric']}")
    return best[side["metric"]] | {"also": best}


def measure_assay(side, binary, work):
    with tempfile.TemporaryDirectory(dir=work) as folder:
        return figure_of_run(side, binary, pathlib.Path(folder) / "run")


def measure(side, binary, work):
    figure = measure_assay(side, binary, work) if "assay" in side else measure_command(side)
    if not figure["value"] > 0:
        raise Broken(f"the figure {figure['value']} is not positive")
    return figure


def prepare(commands, prepared):
    """Runs the commands that did not run yet; `prepared` keeps their notes."""
    for command in commands:
        if tuple(command) in prepared:
            continue
        done = call(command)
        if done.returncode:
            raise Broken(f"{command[1]}: {last_line(done)}")
        answer = {}
        with contextlib.suppress(IndexError, ValueError):
            answer = json.loads(done.stdout.strip().splitlines()[-1])
        if "skip" in answer:
            raise Skipped(answer["skip"])
        prepared[tuple(command)] = answer.get("note")


def check_needs(needs, binary, work):
    """Skips the comparison if the machine does not reach the required figure."""
    value = measure(needs, binary, work)["value"]
    if value < needs["at_least"]:
        raise Skipped(f"{needs['metric']} is {value:.2f}, below {needs['at_least']:.2f}")


def ratio_of(entry, ours, peer):
    """Ours over the peer's, or the inverse, oriented as the entry's bound requires."""
    if (ours["unit"], ours["better"]) != (peer["unit"], peer["better"]):
        raise Broken(f"units differ: {ours['unit']} ({ours['better']}) and {peer['unit']} ({peer['better']})")
    ratio = ours["value"] / peer["value"]
    if "at_least" in entry and ours["better"] == "lower" or "at_most" in entry and ours["better"] == "higher":
        ratio = 1 / ratio
    return ratio


def share_of(limit, ours, value):
    """The side's figure, or its metric "of", over the limit."""
    try:
        figure = ours["also"][limit["of"]] if "of" in limit else ours
    except KeyError as missing:
        raise Broken(f"no metric {limit['of']} to hold against the {limit['name']}") from missing
    if figure["unit"] != value["unit"]:
        raise Broken(f"units differ: {figure['unit']} and {value['unit']} of the {limit['name']}")
    return figure["value"] / value["value"]


def compare(entry, rounds, binary, work):
    """The figures of each round, [{"ours": figure, "peer": figure}], and our shares of the limit, if it has one:
    {"name", and "shares" or, if it cannot be measured here, "reason"}."""
    figures, limit = [], entry.get("limit")
    shares = {"name": limit["name"], "shares": []} if limit else None
    for number in range(rounds):
        order = ("ours", "peer") if number % 2 == 0 else ("peer", "ours")
        figures.append({name: measure(entry[name], binary, work) for name in order})
        if limit and "reason" not in shares:
            try:
                shares["shares"].append(share_of(limit, figures[-1]["ours"], measure(limit, binary, work)))
            except Skipped as why:
                shares = {"name": limit["name"], "reason": str(why)}
        ratio = ratio_of(entry, **figures[-1])
        progress = f"{entry['name']}: round {number + 1} of {rounds}, ratio {ratio:.3f}"
        print(f"\r\033[K{progress}" if sys.stderr.isatty() else progress, file=sys.stderr,
              end="" if sys.stderr.isatty() else "\n", flush=True)
    if sys.stderr.isatty():
        print("\r\033[K", file=sys.stderr, end="")
    return figures, shares


def also(metric, figures):
    """The figures of another metric from the runs of a round."""
    try:
        return {name: figure["also"][metric] for name, figure in figures.items()}
    except KeyError as missing:
        raise Broken(f"no metric {metric} on both sides") from missing


def is_judged(entry):
    """Whether it has a bound."""
    return bool({"at_least", "at_most", "between"} & set(entry))


def verdict(entry, interval):
    """Whether it held, the bound of the interval that decided, and the requirement."""
    low, high = interval
    if "between" in entry:
        lower, upper = entry["between"]
        nearer = low if low / lower < upper / high else high
        return lower <= low and high <= upper, nearer, f"{lower:.2f} .. {upper:.2f}"
    if "at_least" in entry:
        return low >= entry["at_least"], low, f">= {entry['at_least']:.2f}"
    return high <= entry["at_most"], high, f"<= {entry['at_most']:.2f}"


def row_of(entry, figures):
    """The verdict on the figures of the rounds."""
    ratios = [ratio_of(entry, **both) for both in figures]
    interval = median_interval(ratios)
    held, decisive, required = verdict(entry, interval)
    last = {name: {key: value for key, value in figure.items() if key != "also"} for name, figure in figures[-1].items()}
    return {"verdict": "held" if held else "FAILED", "median": statistics.median(ratios), "interval": interval,
            "decisive": decisive, "required": required, "rounds": len(ratios), "ratios": ratios, **last}


def judge(entry, rounds, binary, work, prepared):
    """The entry's rows of the table, at least one."""
    row = {"name": entry["name"], "about": entry.get("about", "")}
    rows = []
    try:
        prepare(entry.get("prepare", []), prepared)
        if "needs" in entry:
            check_needs(entry["needs"], binary, work)
        figures, shares = compare(entry, rounds, binary, work)
        rows.append(row | row_of(entry, figures))
        if shares and "shares" in shares:
            shares |= {"median": statistics.median(shares["shares"]), "interval": median_interval(shares["shares"])}
        if shares:
            rows[-1]["limit"] = shares
        for other in entry.get("also", []):
            row = row | {"name": f"{entry['name']}:{other['metric']}"}
            rows.append(row | row_of(other, [also(other["metric"], both) for both in figures]))
    except Skipped as why:
        rows.append(row | {"verdict": "skipped", "reason": str(why)})
    except Broken as why:
        rows.append(row | {"verdict": "broken", "reason": str(why)})
    return rows


def print_table(rows):
    print(f"{'comparison':<34} {'ratio':>7} {'95 % bound':>11} {'required':>12}  {'rounds':>6}  verdict")
    for row in rows:
        if "median" not in row:
            print(f"{row['name']:<34} {'-':>7} {'-':>11} {'-':>12}  {'-':>6}  {row['verdict']}: {row['reason']}")
            continue
        print(f"{row['name']:<34} {row['median']:>7.3f} {row['decisive']:>11.3f} {row['required']:>12}  {row['rounds']:>6}  "
              f"{row['verdict']}")


def load(folder):
    entries = []
    for path in sorted(folder.glob("*.json")):
        try:
            entries += json.loads(path.read_text())
        except ValueError as error:
            sys.exit(f"peers: {path}: {error}")
    for entry in entries:
        for bound in [entry, *entry.get("also", [])]:
            if len({"at_least", "at_most", "between"} & set(bound)) != 1:
                sys.exit(f"peers: {entry['name']}: needs exactly one of at_least, at_most and between")
    return entries


def select(entries, names):
    for name in names:
        if not any(entry["name"].startswith(name) for entry in entries):
            print(f"peers: no comparison begins with '{name}'; there are: "
                  f"{', '.join(entry['name'] for entry in entries)}", file=sys.stderr)
            sys.exit(2)
    return [entry for entry in entries if not names or any(entry["name"].startswith(name) for name in names)]


def fill(part, places):
    """Substitutes the places in every string of a declaration, at any depth."""
    if isinstance(part, dict):
        return {key: fill(value, places) for key, value in part.items()}
    if isinstance(part, list):
        return [fill(value, places) for value in part]
    if isinstance(part, str):
        for name, value in places.items():
            part = part.replace("{" + name + "}", value)
    return part


def main():
    parser = argparse.ArgumentParser(prog="./dev peers", description="Assay against small independent programs")
    parser.add_argument("names", nargs="*", help="comparisons, by prefix of their name (default: all)")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parents[1] / "build" / "release")
    parser.add_argument("--peers", type=pathlib.Path, default=HERE, help="folder of the lists")
    parser.add_argument("--rounds", type=int, help=f"for every comparison, at least {MIN_ROUNDS} (default: {ROUNDS})")
    parser.add_argument("--table", metavar="FILE", help="print a table in Markdown, with our share of what the machine allows; "
                        "--table=FILE also writes it, after each comparison, and resumes what it has")
    parser.add_argument("--json", type=pathlib.Path, help="write every ratio and figure to this file")
    parser.add_argument("--list", action="store_true")
    # A bare --table would take the name that follows for its file.
    options = parser.parse_args(["--table=" if word == "--table" else word for word in sys.argv[1:]])
    if options.rounds is not None and options.rounds < MIN_ROUNDS:
        parser.error(f"--rounds {options.rounds}: at least {MIN_ROUNDS}")
    lists = load(options.peers)
    entries = select(lists, options.names)
    if options.list:
        for entry in entries:
            print(f"{entry['name']:<34} {entry.get('about', '')}")
        return 0
    build = options.build.resolve()
    answer = None
    if options.table is not None:
        answer = table.Table(options.table, str(build / "assay"), [entry["name"] for entry in lists],
                             {entry["name"] for entry in entries})
    rows, prepared = [], {}
    with tempfile.TemporaryDirectory(prefix="assay-peers.") as work:
        places = {"build": str(build), "root": str(HERE.parents[1]), "python": sys.executable, "work": work}
        for entry in entries:
            found = answer.finished(entry["name"]) if answer else None
            if not found:
                rounds = max(options.rounds or entry.get("rounds", ROUNDS), MIN_ROUNDS)
                asked = entry if answer else {name: part for name, part in entry.items() if name != "limit"}
                found = judge(fill(asked, places), rounds, str(build / "assay"), work, prepared)
                if answer:
                    answer.add(entry["name"], found, prepared.values())
            rows += found
    if answer:
        answer.end()
    else:
        print_table(rows)
        for note in filter(None, prepared.values()):
            print(note)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    verdicts = {row["verdict"] for row in rows}
    return 1 if verdicts & {"FAILED", "broken"} else 3 if "skipped" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
