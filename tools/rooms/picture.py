#!/usr/bin/env python3
"""Draws docs/rooms.svg: the rooms of the product, and which links which, as the CMake files say.
usage: tools/rooms/picture.py    rewrites the picture; tests/structure fails if it is not what this would write"""
import html
import math
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs/rooms.svg"
COMMAND = "python3 tools/rooms/picture.py"
FOLDERS = {"cli": "#f3d9b1", "reports": "#d9c9ec", "suites": "#f6c9c9", "workloads": "#c5e3c4", "harness": "#c6dcf2", "module": "#ffffff"}
WIDTH, BOX, LAYER, TOP, MARGIN = 1350, 24, 72, 52, 12
GAP = 10        # between neighbours of a layer
LETTER = 7.8   # width of a letter of a box's name


def links_by_target(root=ROOT):
    """{target: (top folder, {targets of Assay that it links})} of every room, suite and module. All suites are one, and so
    are the rooms of reports, but for documents of a history."""
    files = [path for top in FOLDERS if (root / top).is_dir() for path in sorted((root / top).rglob("CMakeLists.txt"))]
    rooms, every_suite, every_report = {}, set(), set()
    for path in [*files, root / "cmake/AssayCuda.cmake"]:
        text = re.sub(r"#[^\n]*", "", path.read_text())
        folder = path.relative_to(root).parts[0]
        for kind, words in re.findall(r"\b(assay_room|assay_suite|assay_module|target_link_libraries)\s*\(([^()]*)\)", text):
            name, *rest = words.split()
            rest = rest[rest.index("LINKS"):] if "LINKS" in rest else rest if kind == "target_link_libraries" else []
            links = {word for word in rest if re.fullmatch(r"assay_\w+", word)}
            links |= {"suites"} if "${suites}" in rest else set()
            if kind == "assay_suite" or "${name}" in name:
                every_suite |= links
            elif name.startswith("assay_report_"):
                every_report |= {link for link in links if not link.startswith("assay_report_")}
            elif kind == "target_link_libraries":
                if name in rooms:
                    rooms[name][1].update(links)
            else:
                rooms[f"libassay-{name}.so" if kind == "assay_module" else name] = \
                    ("module" if kind == "assay_module" else folder, links)
    rooms["suites"] = ("suites", every_suite)
    rooms["assay_reports"] = ("reports", every_report)
    return {name: (folder, links & rooms.keys()) for name, (folder, links) in rooms.items()}


def reduced(links):
    """Without the links that follow from others."""
    reach = {}

    def below(room):
        if room not in reach:
            reach[room] = set()   # a circle, which CMake allows among static libraries, ends here
            reach[room] = links[room].union(*(below(other) for other in links[room]))
        return reach[room]

    return {room: {other for other in below_it if not any(other in below(via) for via in below_it - {other})}
            for room, below_it in links.items()}


def layers_of(links):
    """Every room above all that it links, and one point in each layer that a link passes: (layers, edges)."""
    height = {}

    def of(room):
        if room not in height:
            height[room] = 0
            height[room] = max((of(other) + 1 for other in links[room]), default=0)
        return height[room]

    layers = [[] for _ in range(max(map(of, sorted(links))) + 1)]
    for room in sorted(links):
        layers[height[room]].append(room)
    edges = []
    for room in sorted(links):
        for other in sorted(links[room]):
            path = [room, *((room, other, level) for level in range(height[room] - 1, height[other], -1)), other]
            for point in path[1:-1]:
                layers[point[2]].append(point)
            edges.append(path)
    return layers, edges


def width(point):
    return LETTER * len(shown(point)) + 16 if isinstance(point, str) else 12


def shown(name):
    return name.removeprefix("assay_")


def placed(layers, edges):
    """The x of each point: neighbours near each other, and few crossings."""
    near = {point: [] for layer in layers for point in layer}
    for path in edges:
        for a, b in zip(path, path[1:]):
            near[a].append(b)
            near[b].append(a)
    level = {point: height for height, layer in enumerate(layers) for point in layer}
    x = {point: (i + 0.5) * WIDTH / len(layer) for layer in layers for i, point in enumerate(layer)}

    def spread(layer, wish):
        """The order of the wishes, and places as near to them as widths allow."""
        layer.sort(key=lambda point: (wish[point], str(point)))
        left, right = MARGIN, WIDTH - MARGIN
        low, high = {}, {}
        for point in layer:
            low[point] = max(wish[point], left + width(point) / 2)
            left = low[point] + width(point) / 2 + GAP
        for point in reversed(layer):
            high[point] = min(low[point], right - width(point) / 2)
            right = high[point] - width(point) / 2 - GAP
        return high

    def crossings():
        count = 0
        for height, layer in enumerate(layers):
            lines = [(x[point], x[other]) for point in layer for other in near[point] if level[other] == height + 1]
            count += sum((a - c) * (b - d) < 0 for i, (a, b) in enumerate(lines) for c, d in lines[:i])
        return count

    best = None
    for sweep in range(60):
        up = sweep % 2 == 0
        for layer in (layers if up else layers[::-1]):
            wish = {}
            for point in layer:
                sides = [x[other] for other in near[point] if (level[other] < level[point]) == up or sweep % 6 > 3]
                wish[point] = math.fsum(sides) / len(sides) if sides else x[point]
            x.update(spread(layer, wish))
        length = math.fsum(abs(x[a] - x[b]) for path in edges for a, b in zip(path, path[1:]))
        score = (crossings(), round(length))
        if best is None or score < best[0]:
            best = (score, dict(x))
    return best[1]


def picture(rooms):
    """The SVG of `rooms`, as links_by_target() gives them; equal rooms give equal bytes."""
    layers, edges = layers_of(reduced({name: links for name, (_, links) in rooms.items()}))
    x = placed(layers, edges)
    y = {point: TOP + (len(layers) - 1 - height) * LAYER for height, layer in enumerate(layers) for point in layer}
    bottom = TOP + len(layers) * LAYER - LAYER + BOX + MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{bottom}" viewBox="0 0 {WIDTH} {bottom}"'
           ' font-family="sans-serif" font-size="13">',
           f"<!-- {COMMAND} writes this file from the CMake files -->",
           "<title>The rooms of Assay; each links those that its lines lead down to, and all below them</title>",
           f'<rect width="{WIDTH}" height="{bottom}" fill="#ffffff"/>']
    left = MARGIN
    for folder, colour in FOLDERS.items():
        label = "module, loaded at run time" if folder == "module" else folder + "/"
        out.append(f'<rect x="{left}" y="12" width="14" height="14" fill="{colour}" stroke="#555"/>'
                   f'<text x="{left + 20}" y="24">{label}</text>')
        left += 44 + round(LETTER * len(label))
    for path in edges:
        line = f"M{round(x[path[0]])} {y[path[0]]}"
        for upper, lower in zip(path, path[1:]):
            start, end, gap = y[upper] + BOX, y[lower], (LAYER - BOX) // 2
            line += f"V{start}C{round(x[upper])} {start + gap} {round(x[lower])} {end - gap} {round(x[lower])} {end}"
        out.append(f'<path d="{line}" fill="none" stroke="#777"/>')
    for name, (folder, _) in sorted(rooms.items()):
        wide, label = round(width(name)), html.escape(shown(name))
        out.append(f'<rect x="{round(x[name]) - wide // 2}" y="{y[name]}" width="{wide}" height="{BOX}" rx="4"'
                   f' fill="{FOLDERS[folder]}" stroke="#555"/>'
                   f'<text x="{round(x[name])}" y="{y[name] + 17}" text-anchor="middle">{label}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(picture(links_by_target()))
