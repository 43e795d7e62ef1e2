"""Which lines of the readers (readers.txt) the inputs reach that every build replays (the seeds of the fuzz targets and their
mutations), and a corpus if there is one, by the target fuzz_coverage of a build. Prints a row per source and the share of
all; exit code 1 if that is below 85 %.
usage: coverage.py BUILD [CORPUS]"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

LEAST = 0.85
MUTATIONS = 50   # as in CMakeLists.txt
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def replay(build, *words):
    done = subprocess.run([build / "fuzz_coverage", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          errors="replace")
    if done.returncode != 0:
        sys.exit(f"coverage: {words[0]} broke (exit code {done.returncode}):\n{done.stderr[-1000:]}")


def lines_of(data):
    """Source below the root -> line -> whether it was run, as one data file of gcov says."""
    with tempfile.TemporaryDirectory() as folder:
        text = subprocess.run(["gcov", "--json-format", "--stdout", data], cwd=folder, capture_output=True, text=True, check=True).stdout
    found = {}
    for document in text.splitlines():
        parsed = json.loads(document)
        for file in parsed["files"]:
            path = pathlib.Path(os.path.normpath(os.path.join(parsed["current_working_directory"], file["file"])))
            if path.is_relative_to(ROOT):
                lines = found.setdefault(str(path.relative_to(ROOT)), {})
                for line in file["lines"]:
                    lines[line["line_number"]] = lines.get(line["line_number"], False) or line["count"] > 0
    return found


def main():
    build, corpus = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "none").resolve()
    readers = [line for line in (HERE / "readers.txt").read_text().splitlines() if line and not line.startswith("#")]
    for data in build.rglob("*.gcda"):
        data.unlink()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        inputs = [(seeds.name, *filter(os.path.isdir, (seeds, corpus / seeds.name))) for seeds in sorted((HERE / "seeds").iterdir())]
        inputs.append(("--mutations", str(MUTATIONS), HERE / "seeds", build / "broke"))
        list(pool.map(lambda words: replay(build, *words), inputs))
        found = list(pool.map(lines_of, sorted(build.rglob("*.gcda"))))
    covered, total = 0, 0
    for reader in readers:
        lines = {}
        for one in found:
            for line, run in one.get(reader, {}).items():
                lines[line] = lines.get(line, False) or run
        if not lines:
            sys.exit(f"coverage: {reader} was not run, or not compiled for coverage")
        missed = [line for line, run in sorted(lines.items()) if not run]
        covered, total = covered + len(lines) - len(missed), total + len(lines)
        print(f"{reader:50} {len(lines) - len(missed):5} of {len(lines):4} lines {1 - len(missed) / len(lines):6.1%}   "
              f"{' '.join(map(str, missed[:12]))}{' ...' if len(missed) > 12 else ''}")
    print(f"readers covered by the corpus: {covered} of {total} lines, {covered / total:.1%} (at least {LEAST:.0%})")
    return 0 if covered >= LEAST * total else 1


if __name__ == "__main__":
    sys.exit(main())
