"""Prometheus' text format 0.0.4 as its specification gives it; what promtool or a scraper would refuse is a ValueError."""

import re

LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"


def parse_prometheus(text):
    """{name: {labels: value}}. HELP and TYPE once, before the samples of their name, which stand together."""
    if text and not text.endswith("\n"):
        raise ValueError("the last line does not end")
    series, current, said = {}, None, {}
    for line in text.splitlines():
        if line.startswith("#"):
            found = re.fullmatch(rf"# (HELP|TYPE) ({NAME}) (.+)", line)
            if not found or (found[1] == "TYPE" and found[3] not in ("gauge", "counter", "histogram", "summary", "untyped")):
                raise ValueError(line)
            kinds = said.setdefault(found[2], [])
            if found[1] in kinds or found[2] in series:
                raise ValueError("twice, or behind its samples: " + line)
            kinds.append(found[1])
            continue
        found = re.fullmatch(rf"({NAME})(?:\{{((?:{LABEL})(?:,{LABEL})*)\}})? ([-+]?[0-9.]+(?:e[-+]?[0-9]+)?)", line)
        if not found or said.get(found[1]) != ["HELP", "TYPE"]:
            raise ValueError(line)
        if found[1] != current and found[1] in series:
            raise ValueError("not together: " + line)
        current = found[1]
        labels = tuple(re.findall(r'([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"', found[2] or ""))
        if len(dict(labels)) != len(labels) or labels in series.setdefault(found[1], {}):
            raise ValueError("twice: " + line)
        series[found[1]][labels] = float(found[3])
    return series
