"""The table of `./dev peers --table`, in Markdown: a heading that says which machine, commit and libraries, a row for each
comparison, and what is missing. docs/beside-others.md has such a table for each machine.

--table=FILE writes it after each comparison, and all figures into FILE.json. A second call with the same FILE keeps the
comparisons that were judged, measures those that are missing, were skipped or broke, and may name others. It refuses figures of
another machine, commit or library.
"""

import datetime
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import textwrap

WIDTH = 128
HEADER = "| what; peer | rounds | Assay over the peer | bound | share of the machine's limit | verdict |\n|---|---|---|---|---|---|"
LIBRARIES = {"onednn": "oneDNN", "openblas": "OpenBLAS", "turbojpeg": "libjpeg-turbo", "mpi": ""}
WHEELS = {"torch": "PyTorch", "torchvision": "torchvision", "nvidia-dali-cuda130": "DALI"}
FEATURES = {"avx2": "AVX2", "avx_vnni": "AVX-VNNI", "avx512f": "AVX-512", "avx512_vnni": "AVX-512 VNNI",
            "avx512_bf16": "AVX-512 BF16", "amx_tile": "AMX"}
VERDICTS = {"held": "held", "FAILED": "did not hold"}


def fail(message, code):
    print(f"peers: {message}", file=sys.stderr)
    sys.exit(code)


def size(count):
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.3g} {unit}"
        count /= 1024


def machine_of(environment):
    """What figures depend on, of the JSON of `assay env`."""
    cpu = environment["cpu"]
    features = [name for flag, name in FEATURES.items() if flag in cpu["isa"]]
    caches = [f"L{cache['level']} {cache['count']} x {size(cache['bytes'])}" for cache in cpu["caches"] if cache["level"] > 1]
    memory = environment["memory"]["total_bytes"]
    parts = [f"{cpu['brand'] or cpu['name']} (family {cpu['family']}, model {cpu['model']})", f"{cpu['usable_cores']} cores",
             ", ".join(features) or "no AVX2", ", ".join(caches) or "caches unknown", f"{size(memory)} of memory",
             f"virtual ({environment['virtual_machine']})" if environment["virtual_machine"] else "not virtual",
             environment["os"]["name"]]
    return {"title": f"{cpu['name']}, {cpu['usable_cores']} cores", "machine": "; ".join(parts)}


def versions_of(environment):
    libraries = environment["libraries"]
    found = [f"{name} {libraries[key]}".strip() for key, name in LIBRARIES.items() if libraries.get(key)]
    for wheel, name in WHEELS.items():
        try:
            found.append(f"{name} {importlib.metadata.version(wheel)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def subject_of(binary):
    """Which machine, commit and libraries."""
    try:
        done = subprocess.run([binary, "env", "--json"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        environment = json.loads(done.stdout)
        build = environment["assay"]
        commit = (build["commit"] or "unknown")[:8] + (" with changes" if build["dirty"] else "")
        return {**machine_of(environment), "commit": commit, "software": versions_of(environment)}
    except (OSError, ValueError, KeyError, TypeError) as error:
        fail(f"{binary} env --json does not describe this machine: {type(error).__name__}: {error}", 1)


def cell(text):
    return " ".join(str(text).replace("|", "\\|").split())


def range_text(median, interval, places):
    return f"{median:.{places}f} ({interval[0]:.{places}f} to {interval[1]:.{places}f})"


def share_text(limit):
    if not limit:
        return "–"
    if "reason" in limit:
        return f"unknown: {limit['reason']}"
    return f"{range_text(limit['median'], limit['interval'], 2)} of the {limit['name']}"


def row_text(row):
    what, _, peer = row["about"].partition(" against ")
    what = what.rstrip(",")
    if ":" in row["name"]:  # another metric of the same runs
        what += ", " + row["name"].partition(":")[2]
    cells = [f"{what}; {peer}" if peer else what or row["name"]]
    if "median" in row:
        cells += [row["rounds"], range_text(row["median"], row["interval"], 3), row["required"], share_text(row.get("limit")),
                  VERDICTS[row["verdict"]]]
    else:
        cells += ["–", "–", "–", "–", f"{row['verdict']}: {row['reason']}"]
    return f"| {' | '.join(map(cell, cells))} |"


def is_finished(rows):
    return all(row["verdict"] in VERDICTS for row in rows)


class Table:
    """The table of the comparisons `asked`, and of those that an earlier call wrote into the file; `names` is the order. Without
    a path it is only printed."""

    def __init__(self, path, binary, names, asked):
        self.path = pathlib.Path(path) if path else None
        self.figures = pathlib.Path(f"{path}.json") if path else None
        self.subject = subject_of(binary)
        self.rows, self.notes, self.dates = {}, [], []
        if self.figures and self.figures.exists():
            self.resume()
        elif self.path and self.path.exists():
            fail(f"{self.path}: there already, without {self.figures.name}, so not a table to resume: name another file", 2)
        self.names = [name for name in names if name in asked or name in self.rows]
        self.all = len(names)
        self.dates = sorted({*self.dates, datetime.date.today().isoformat()})
        print("\n".join([self.heading(), HEADER, *self.lines()]), flush=True)

    def resume(self):
        try:
            kept = json.loads(self.figures.read_text())
            earlier, self.rows, self.notes, self.dates = (kept[name] for name in ("subject", "rows", "notes", "dates"))
            self.rows = {name: rows for name, rows in self.rows.items() if is_finished(rows)}
            different = [name for name in self.subject if earlier[name] != self.subject[name]]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            fail(f"{self.figures}: not the figures of a table: {type(error).__name__}: {error}", 2)
        if different:
            name = different[0]
            fail(f"{self.figures}: its {name} is '{earlier[name]}', not '{self.subject[name]}': name another file", 2)

    def finished(self, name):
        """The rows of a comparison that an earlier call has judged."""
        return self.rows.get(name)

    def add(self, name, rows, notes):
        self.rows[name] = rows
        self.notes += [note for note in notes if note and note not in self.notes]
        print("\n".join(map(row_text, rows)), flush=True)
        self.write()

    def end(self):
        print(f"\n{self.closing()}")
        self.write()

    def heading(self):
        dates = self.dates if len(self.dates) == 1 else [self.dates[0], self.dates[-1]]
        about = f"{self.subject['machine']}. Assay at commit {self.subject['commit']}; {self.subject['software']}."
        return "\n".join([f"## {self.subject['title']}, {' to '.join(dates)}", "", textwrap.fill(about, WIDTH), ""])

    def lines(self):
        return [row_text(row) for name in self.names if name in self.rows for row in self.rows[name]]

    def closing(self):
        """What is in the table, and what is not."""
        broken = [name for name in self.names if any(row["verdict"] == "broken" for row in self.rows.get(name, []))]
        missing = [name for name in self.names if name not in self.rows]
        asked = f"all {self.all} comparisons" if len(self.names) == self.all else f"{len(self.names)} of {self.all} comparisons"
        skipped = [name for name in self.names if any(row["verdict"] == "skipped" for row in self.rows.get(name, []))]
        if skipped:
            asked += f", of which {len(skipped)} {'was' if len(skipped) == 1 else 'were'} skipped"
        lost = [f"{', '.join(names)} {word}" for names, word in ((broken, "broke"), (missing, "not measured yet")) if names]
        said = f"Not complete, {asked}: {'; '.join(lost)}." if lost else f"Complete: {asked}."
        return "\n\n".join(textwrap.fill(text, WIDTH, break_on_hyphens=False) for text in [said, *self.notes])

    def write(self):
        if not self.path:
            return
        kept = {"subject": self.subject, "dates": self.dates, "notes": self.notes, "rows": self.rows}
        text = "\n".join([self.heading(), HEADER, *self.lines(), "", self.closing(), ""])
        for path, content in ((self.figures, json.dumps(kept, indent=1) + "\n"), (self.path, text)):
            part = path.with_name(path.name + ".part")
            part.write_text(content)
            os.replace(part, path)  # a call that is killed leaves a whole table
