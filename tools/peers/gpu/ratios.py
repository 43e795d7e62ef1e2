"""The ratio table of a GPU: Assay against BabelStream-style kernels and PyTorch, alternating on one machine.

ratios.py --assay PATH --out FOLDER [NAME...]     NAME: comparisons by full name or prefix; default all

comparisons.json has the format of tools/peers/run.py's lists, with four differences: a peer may be {"serve": [...]}, a
program that is set up once and then asked for each figure (serve.py); a comparison without a bound is measured but not
judged; "own" lists figures of ours that are judged by themselves, with bounds by words of the GPU's name; and "small_gpu"
changes words on both sides on GPUs with less memory than it says. If the peer is also Assay, the row shows the cost of a
flag or parameter. Sides alternate (ours peer, peer ours, ...); a row is the median ratio of its pairs with its
order-statistic 95 % interval, and the interval's bound on the unfavourable side decides. A served peer keeps its memory on
the GPU while Assay runs, unless it has "restart": then it ends before Assay's turn and is set up again for its own. A side
that does not fit into the memory that is left is broken, not skipped.

FOLDER contains ratios.json (every figure), rows.json and ratios.md (the table of everything ever compared there), runs/
(Assay's run directories) and peers/ (output of peers). A second call resumes the first, with the form that the peer had
chosen (ASSAY_PEER_FORM). With --minutes it stops in time, between two pairs. Exit codes: 0 all held, 1 one did not hold or
broke, 2 usage, 3 pairs are missing or a comparison with a bound was skipped.
"""

import argparse
import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import run  # noqa: E402

MIN_PAIRS = 6  # the extremes are a 95 % interval of the median
PAIRS = 9  # the second from either end are
SETUP_SECONDS = 1200
SCALES = {"FLOP/s": (1e12, "TFLOP/s"), "B/s": (1e9, "GB/s"), "B": (1e9, "GB"), "1": (1e-2, "%")}


class Served:
    """A peer that is set up once; figure() asks it for another figure."""

    def __init__(self, command, log, form=""):
        self.command, self.rest = command, b""
        log.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(log, "ab") as errors:
                self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0,
                                                env=os.environ | {"ASSAY_PEER_FORM": form})
        except FileNotFoundError as error:
            raise run.Broken(f"{command[0]}: not installed") from error
        self.log = log
        try:
            self.about = self.answer(SETUP_SECONDS).get("ready") or {}
        except BaseException:
            self.close()
            raise

    def answer(self, seconds):
        end = time.monotonic() + seconds
        while b"\n" not in self.rest:
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise run.Broken(f"{self.command[1]}: no answer within {seconds} s")
            got = os.read(self.process.stdout.fileno(), 1 << 16)
            if not got:
                last = self.log.read_text(errors="replace").strip().splitlines() or ["no output"]
                raise run.Broken(f"{self.command[1]}: exit code {self.process.wait()}: {last[-1]}")
            self.rest += got
        line, self.rest = self.rest.split(b"\n", 1)
        try:
            answer = json.loads(line)
        except ValueError:
            return self.answer(seconds)  # output of a library
        if "skip" in answer:
            raise run.Skipped(answer["skip"])
        return answer

    def figure(self):
        self.process.stdin.write(b"run\n")
        return self.answer(run.SIDE_TIMEOUT)

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def ours(side, options, folder):
    """One run of Assay; keeps its directory."""
    if folder.exists():
        shutil.rmtree(folder)  # of an interrupted pair
    folder.parent.mkdir(parents=True, exist_ok=True)
    environment = os.environ | ({"LD_LIBRARY_PATH": options.libraries} if options.libraries else {})
    figure = run.figure_of_run(side, str(options.assay), folder, ["--device", options.device], environment)
    first = json.loads((folder / "records.jsonl").read_text().splitlines()[0])
    return figure | {"gpu": first["ranks"][0]["device"] if first.get("ranks") else ""}


def theirs(side, served, options, folder):
    if served:
        return served.figure()
    return ours(side, options, folder) if "assay" in side else run.measure_command(side)


def positive(figure):
    if not figure["value"] > 0:
        raise run.Broken(f"the figure {figure['value']} is not positive")
    return figure


class OutOfTime(Exception):
    """The next pair would not end in time."""


class Peer:
    """The served peer of a comparison, which runs when it is asked for a figure; nothing if the peer is not served."""

    def __init__(self, entry, options, progress, keep):
        self.entry, self.options, self.progress, self.keep = entry, options, progress, keep
        self.served = None
        self.restarts = entry["peer"].get("restart", False)

    def start(self):
        if self.served or "serve" not in self.entry["peer"]:
            return
        form, begin = self.progress.get("form", ""), time.monotonic()
        self.served = Served(self.entry["peer"]["serve"], self.options.out / "peers" / f"{self.entry['name']}.log", form)
        if form:  # the search for a form takes longer, once
            self.progress["setup"] = max(self.progress.get("setup", 0), time.monotonic() - begin)
        self.progress["form"] = self.served.about.get("form", form)
        self.keep()

    def close(self):
        if self.served:
            self.served.close()
        self.served = None

    def seconds_to_start(self):
        return 0 if self.served else self.progress.get("setup", 0)


def measure(entry, pairs, options, progress, keep, deadline):
    """Adds pairs to progress["pairs"] until there are enough, with keep() after each. Starts none that would end too late."""
    done = progress["pairs"]
    if done:
        progress.setdefault("form", done[-1]["peer"].get("form", ""))
    peer = Peer(entry, options, progress, keep)

    def in_time():
        if time.monotonic() + progress.get("seconds", 0) + peer.seconds_to_start() > deadline:
            raise OutOfTime

    def side(name, folder):
        """The figure, and the seconds that it took without the peer's setup."""
        if name == "ours" and peer.restarts:
            peer.close()
        if name == "peer":
            peer.start()
        begin = time.monotonic()
        figure = ours(entry["ours"], options, folder) if name == "ours" else theirs(
            entry["peer"], peer.served, options, folder.with_name(folder.name + "-peer"))
        return positive(figure), time.monotonic() - begin

    try:
        while len(done) < pairs:
            in_time()
            if not peer.restarts:
                peer.start()
                in_time()
            folder = options.out / "runs" / f"{entry['name']}-{len(done) + 1}"
            order = ("ours", "peer") if len(done) % 2 == 0 else ("peer", "ours")
            measured = {name: side(name, folder) for name in order}
            pair = {name: figure for name, (figure, _) in measured.items()}
            ratio = run.ratio_of(entry, **pair)
            done.append(pair)
            progress["seconds"] = max(progress.get("seconds", 0), sum(seconds for _, seconds in measured.values()))
            keep()
            print(f"{entry['name']}: pair {len(done)} of {pairs}, ratio {ratio:.3f}", file=sys.stderr, flush=True)
    finally:
        peer.close()


def judged(name, bound, values, pairs):
    """What a row says of the ratios, or figures, of the pairs so far."""
    row = {"name": name, "median": statistics.median(values), "ratios": values, "pairs": len(values), "interval": None,
           "required": "", "form": "", "peer": None}
    if len(values) < MIN_PAIRS:
        return row | {"verdict": "unfinished"}
    row["interval"] = run.median_interval(values)
    if len(values) < pairs:
        row["verdict"] = "unfinished"
    elif run.is_judged(bound):
        held, _, row["required"] = run.verdict(bound, row["interval"])
        row["verdict"] = "held" if held else "FAILED"
    else:
        row["verdict"] = "measured"
    return row


def row_of(name, bound, figures, pairs):
    """A row of the table from the pairs so far."""
    row = judged(name, bound, [run.ratio_of(bound, **figure) for figure in figures], pairs)
    return row | {"ours": statistics.median(f["ours"]["value"] for f in figures),
                  "peer": statistics.median(f["peer"]["value"] for f in figures), "unit": figures[0]["ours"]["unit"],
                  "form": figures[-1]["peer"].get("form", "")}


def own_row(name, own, figures, pairs):
    """A row about a figure of ours; the bound is that of the first model whose name is part of the GPU's."""
    sides = [figure["ours"] for figure in figures]
    try:
        values = [side["also"][own["metric"]]["value"] for side in sides]
    except KeyError as missing:
        raise run.Broken(f"no metric {own['metric']}") from missing
    least = next((least for model, least in own["at_least"].items() if model in sides[-1].get("gpu", "")), None)
    row = judged(name, {} if least is None else {"at_least": least}, values, pairs)
    return row | {"ours": row["median"], "unit": sides[0]["also"][own["metric"]]["unit"]}


def rows_of(entry, state, pairs):
    if "reason" in state:
        return [{"name": entry["name"], "verdict": state["verdict"], "reason": state["reason"]}]
    figures = state.get("pairs", [])
    if not figures:
        return [{"name": entry["name"], "verdict": "unfinished", "reason": "no pair yet"}]
    rows = [row_of(entry["name"], entry, figures, pairs)]
    for other in entry.get("also", []):
        name = f"{entry['name']}:{other['metric']}"
        try:
            rows.append(row_of(name, other, [run.also(other["metric"], pair) for pair in figures], pairs))
        except run.Broken as why:
            rows.append({"name": name, "verdict": "broken", "reason": str(why)})
    for own in entry.get("own", []):
        name = f"{entry['name']}:{own['metric']}"
        try:
            rows.append(own_row(name, own, figures, pairs))
        except run.Broken as why:
            rows.append({"name": name, "verdict": "broken", "reason": str(why)})
    return rows


def scaled(value, unit):
    if value is None:
        return ""
    by, name = SCALES.get(unit, (1, unit))
    return f"{value / by:.4g} {name}"


def table(entries, rows, state):
    about = next((pair["peer"] for entry in entries for pair in state.get(entry["name"], {}).get("pairs", [])
                  if "torch" in pair["peer"]), None)
    lines = ["# Assay against its peers", "", "Ratios are ours over the peer's, from pairs that alternate on this machine; "
             "the interval is the 95 % order-statistic interval of the median.", ""]
    if about:
        lines += [f"{about['device']}, PyTorch {about['torch']}, CUDA {about.get('cuda')}, cuDNN {about.get('cudnn')}.", ""]
    lines += ["| comparison | ours | peer | form of the peer | ratio | 95 % interval | required | pairs | verdict |",
              "|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        if "median" not in row:
            lines.append(f"| {row['name']} | | | | | | | | {row['verdict']}: {row['reason']} |")
            continue
        interval = "too few pairs" if row["interval"] is None else "{:.3f} .. {:.3f}".format(*row["interval"])
        ratio = "" if row["peer"] is None else f"{row['median']:.3f}"  # none: a figure of ours by itself
        lines.append(f"| {row['name']} | {scaled(row['ours'], row['unit'])} | {scaled(row['peer'], row['unit'])} | {row['form']} | "
                     f"{ratio} | {interval} | {row['required']} | {row['pairs']} | {row['verdict']} |")
    return "\n".join(lines + ["", *(f"- {entry['name']}: {entry['about']}" for entry in entries), ""])


def gpu_bytes():
    """The memory of the smallest GPU that nvidia-smi lists; 0 if it lists none."""
    with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired):
        done = subprocess.run(["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"], capture_output=True,
                              text=True, timeout=60)
        return min((int(line) << 20 for line in done.stdout.splitlines()), default=0)
    return 0


def sized(entry, bytes_of_gpu):
    """The comparison as it is on a GPU of that memory: "small_gpu" replaces words of both sides below "bytes"."""
    small = entry.get("small_gpu")
    if not small or bytes_of_gpu >= small["bytes"]:
        return entry
    words = small["words"]
    sides = {name: {key: [words.get(word, word) for word in value] if isinstance(value, list) else value
                    for key, value in entry[name].items()} for name in ("ours", "peer")}
    return entry | sides | {"about": small["about"]}


def load(options):
    """The comparisons as they are on this machine's GPU."""
    memory = gpu_bytes()
    return [sized(entry, memory) for entry in json.loads(options.comparisons.read_text())]


def pairs_of(entry, options):
    return options.pairs or entry.get("pairs", PAIRS)


def report(options, state, entries):
    """Writes the table of everything in this folder; prints and returns the rows of `entries`."""
    def rows(names):
        return {name: rows_of(known[name], state.get(name, {}), pairs_of(known[name], options)) for name in names}

    known = {entry["name"]: entry for entry in load(options)}
    everything = rows([name for name in known if name in state])
    replace(options.out / "rows.json", json.dumps(everything, indent=1) + "\n")
    replace(options.out / "ratios.md", table([known[name] for name in everything], sum(everything.values(), []), state))
    selected = sum(rows([entry["name"] for entry in entries]).values(), [])
    print(table(entries, selected, state))
    return selected


def replace(path, text):
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--assay", type=pathlib.Path, help="the program")
    parser.add_argument("--libraries", help="LD_LIBRARY_PATH for that program only")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="of Assay's side")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with PyTorch")
    parser.add_argument("--pairs", type=int, help=f"at least {MIN_PAIRS}; default the comparison's own, else {PAIRS}")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop in time; a later call resumes")
    parser.add_argument("--comparisons", type=pathlib.Path, default=HERE / "comparisons.json")
    parser.add_argument("--dry-run", action="store_true", help="print the commands without running them")
    options = parser.parse_args()
    if options.pairs is not None and options.pairs < MIN_PAIRS:
        parser.error(f"--pairs {options.pairs}: at least {MIN_PAIRS}")
    if not options.dry_run and not (options.assay and options.out):
        parser.error("--assay and --out are needed")
    if options.assay and not options.dry_run and not os.access(options.assay, os.X_OK):
        parser.error(f"--assay {options.assay}: no such program")
    return parser, options


def chosen(parser, options):
    try:
        entries = load(options)
    except (OSError, ValueError) as error:
        parser.error(f"--comparisons {options.comparisons}: {error}")
    for name in options.names:
        if not any(entry["name"].startswith(name) for entry in entries):
            parser.error(f"no comparison begins with '{name}'; there are: {', '.join(entry['name'] for entry in entries)}")
    if options.names:
        whole = {entry["name"] for entry in entries}
        entries = [entry for entry in entries
                   if any(entry["name"] == name if name in whole else entry["name"].startswith(name) for name in options.names)]
    build = options.assay.resolve().parent if options.assay else "BUILD"
    places = {"python": options.python, "here": str(HERE), "build": str(build), "root": str(HERE.parents[2])}
    return run.fill(entries, places)


def main():
    parser, options = arguments()
    entries = chosen(parser, options)
    if options.dry_run:
        for entry in entries:
            print(f"{entry['name']}: {entry['about']}")
            for name in ("ours", "peer"):
                side = entry[name]
                words = side.get("serve") or side.get("command")
                if not words:
                    words = [str(options.assay or "assay"), "run", *side["assay"], "--device", options.device]
                print(f"  {name}: {' '.join(words)}{' (served)' if 'serve' in side else ''}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))  # also ends the running side
    deadline = time.monotonic() + 60 * options.minutes
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "ratios.json"
    state = json.loads(path.read_text()) if path.exists() else {}

    def keep():
        replace(path, json.dumps(state, indent=1) + "\n")

    missing = False
    for entry in entries:
        progress = state.setdefault(entry["name"], {"pairs": []})
        if progress.setdefault("about", entry["about"]) != entry["about"]:  # pairs of another size, from another GPU
            progress = state[entry["name"]] = {"pairs": [], "about": entry["about"]}
        for why in ("verdict", "reason"):
            progress.pop(why, None)  # retry what was skipped or broken
        try:
            measure(entry, pairs_of(entry, options), options, progress, keep, deadline)
        except OutOfTime:
            missing = True
            break
        except run.Skipped as why:
            progress |= {"verdict": "skipped", "reason": str(why)}
            missing = missing or run.is_judged(entry)
        except run.Broken as why:
            progress |= {"verdict": "broken", "reason": str(why)}
        keep()
    keep()
    rows = report(options, state, entries)
    if any(row["verdict"] in ("FAILED", "broken") for row in rows):
        return 1
    return 3 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
