"""Golden outputs: what the program prints, kept in tests/golden/outputs without what differs from run to run."""

import difflib
import json
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "golden"
SHOWN = 60
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def rewriting():
    """Whether this test was started to rewrite the goldens."""
    return "--rewrite" in sys.argv


def added():
    """The members in added.txt: (kind of document, path, reason)."""
    lines = [line for line in (FOLDER / "added.txt").read_text().splitlines() if line and not line.startswith("#")]
    return [(*line.split(maxsplit=1)[0].split(":", 1), line.split(maxsplit=1)[1]) for line in lines]


def without(value, path):
    """Takes the member of this path out of a document; whether it was there."""
    name, *rest = path
    places = (range(len(value)) if isinstance(value, list) else
              [key for key in value if name in ("*", key)] if isinstance(value, dict) else [])
    if rest:
        return any([without(value[place], rest) for place in places])
    for place in list(places):
        del value[place]
    return bool(places)


def pretty(value, pad=""):
    """JSON with its members in their order, a line for each object or list that is short."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + len(pad) <= 140 or not isinstance(value, (dict, list)) or not value:
        return flat
    inner = pad + " "
    if isinstance(value, dict):
        lines = [f"{inner}{json.dumps(name, ensure_ascii=False)}: {pretty(each, inner)}" for name, each in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{pad}}}"
    return "[\n" + ",\n".join(inner + pretty(each, inner) for each in value) + f"\n{pad}]"


class Goldens:
    """Compares outputs with their goldens, in a test."""

    def __init__(self, test, words):
        self.test = test
        self.words = words   # what differs from run to run -> what stands for it
        self.seen = set()

    def text(self, text):
        for word in sorted(self.words, key=len, reverse=True):
            text = text.replace(word, self.words[word])
        return TIME.sub("<time>", text)

    def json(self, kind, text):
        """A document without what was added, and without what differs from run to run."""
        document = json.loads(self.text(text))
        for of, path, _ in added():
            if of == kind and without(document, path.strip("/").split("/")):
                self.seen.add((of, path))
        return document

    def check_added(self, *kinds):
        """Each line of added.txt about these kinds of document names a member that was seen."""
        for kind, path, reason in added():
            if kind in kinds:
                self.test.assertTrue(reason)
                self.test.assertIn((kind, path), self.seen, "added.txt names a member that no output has")

    def check(self, name, found):
        """Compares a text, or a document, with the file of this name."""
        found = (found if isinstance(found, str) else pretty(found)).rstrip("\n") + "\n"
        file = FOLDER / "outputs" / name
        if rewriting():
            file.write_text(found)
            return
        expected = file.read_text() if file.exists() else ""
        if expected != found:
            lines = list(difflib.unified_diff(expected.splitlines(), found.splitlines(), f"outputs/{name}", "now", n=2, lineterm=""))
            left_out = [f"... and {len(lines) - SHOWN} lines more"] if len(lines) > SHOWN else []
            self.test.fail("\n".join([*lines[:SHOWN], *left_out,
                                      f"if this is intended: python3 {sys.argv[0]} --rewrite, with ASSAY set"]))
