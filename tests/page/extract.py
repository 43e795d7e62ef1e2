"""extract.py PAGE SOURCE OUT: the files that a page of docs/ shows, as a tree that CMake can build.

A code block is the file named in the line before it: "`suites/sum/sum.cpp`:". A line that the page adds to a file
("`cli/catalogue.cpp`, one line:") goes after that file's first line of the same kind."""

import pathlib
import re
import sys


def blocks(text):
    """(path, whether it is one added line, code) of every named code block."""
    pattern = re.compile(r"^`([\w./]+)`(, one line)?:\n\n```\w+\n(.*?)^```$", re.M | re.S)
    return [(path, bool(added), code) for path, added, code in pattern.findall(text)]


def with_line(source, line):
    kind = re.match(r"\s*\w+\(", line).group(0)
    return re.sub(rf"(?m)^({re.escape(kind)}.*)$", lambda first: f"{first.group(1)}\n{line.rstrip()}", source, count=1)


def main(page, source, out):
    for path, added, code in blocks(pathlib.Path(page).read_text()):
        if added:
            code = with_line((pathlib.Path(source) / path).read_text(), code)
        file = pathlib.Path(out) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if not file.exists() or file.read_text() != code:
            file.write_text(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
