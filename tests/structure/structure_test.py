"""How the folders of the product depend on each other: no circle of includes, commands that only read flags and print, and
docs/rooms.svg is up to date."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/rooms"))
import picture  # noqa: E402

FOLDERS = ("cli", "harness", "reports", "suites", "workloads")


def room_of(path):
    """The folder that a file counts for: `cli`, or two levels such as `harness/run`, with all folders below."""
    parts = path.split("/")
    return "/".join(parts[:1 if parts[0] == "cli" else 2])


def includes(root):
    """{(folder, included folder): ["file includes file", ...]} of all sources below `root`."""
    found = {}
    for top in FOLDERS:
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".h", ".cuh", ".cpp", ".cu"):
                name = str(path.relative_to(root))
                for included in re.findall(r'^\s*#\s*include\s*"((?:%s)/[^"]+)"' % "|".join(FOLDERS), path.read_text(), re.MULTILINE):
                    if room_of(name) != room_of(included):
                        found.setdefault((room_of(name), room_of(included)), []).append(f"{name} includes {included}")
    return found


def circle(edges):
    """Some circle of `edges`, as a list of folders whose last is its first, or nothing."""
    after = {}
    for start, end in sorted(edges):
        after.setdefault(start, []).append(end)
    done = set()

    def walk(path):
        for end in after.get(path[-1], []):
            if end in path:
                return [*path[path.index(end):], end]
            if end not in done and (found := walk([*path, end])):
                return found
        done.add(path[-1])
        return None

    return next((found for start in sorted(after) if start not in done and (found := walk([start]))), None)


class Includes(unittest.TestCase):
    def test_circles_are_found(self):
        self.assertIsNone(circle({("a", "b"), ("b", "c"), ("a", "c"), ("d", "c")}))
        self.assertEqual(circle({("a", "b"), ("b", "c"), ("c", "b"), ("a", "c")}), ["b", "c", "b"])
        self.assertEqual(circle({("x", "y"), ("a", "b"), ("b", "c"), ("c", "a")}), ["a", "b", "c", "a"])

    def test_no_circle_between_folders(self):
        found = includes(ROOT)
        self.assertGreater(len(found), 100, "the includes of the product were not found")
        if path := circle(found.keys()):
            steps = (line for step in zip(path, path[1:]) for line in found[step][:3])
            self.fail(f"folders include each other in a circle: {' -> '.join(path)}\n" + "\n".join(steps))


class Commands(unittest.TestCase):
    def test_they_only_read_flags_and_print(self):
        for path in sorted((ROOT / "cli").rglob("*.cpp")):
            name, text = str(path.relative_to(ROOT / "cli")), path.read_text()
            with self.subTest(name):
                self.assertLessEqual(len(text.splitlines()), 120, "what it does belongs into a room")
                if name != "launcher.cpp":   # a package's launcher is no command: it becomes the program
                    self.assertFalse(re.findall(r'#include ("harness/process/(?:run|ask)\.h"|<sys/wait\.h>|<spawn\.h>)', text),
                                     "rooms run processes, and trials those of this program")


class Picture(unittest.TestCase):
    def test_the_picture_of_the_rooms_is_that_of_the_cmake_files(self):
        self.assertTrue(picture.PICTURE.read_text() == picture.picture(picture.links_by_target()),
                        f"docs/rooms.svg is not what the CMake files say: run `{picture.COMMAND}` and commit the file")

    def test_nothing_leaves_the_picture(self):
        numbers = [float(x) for x in re.findall(r'\bx="(-?[\d.]+)"', picture.PICTURE.read_text())]
        self.assertGreater(len(numbers), 30)
        self.assertTrue(all(0 <= x <= picture.WIDTH for x in numbers), "make WIDTH larger")

    def test_every_room_is_read(self):
        rooms = picture.links_by_target()
        named = {name for top in FOLDERS for path in (ROOT / top).rglob("CMakeLists.txt")
                 for name in re.findall(r"assay_room\s*\(\s*(assay_\w+)[\s)]", path.read_text())}
        self.assertLessEqual({re.sub("^assay_report_.*", "assay_reports", name) for name in named}, rooms.keys())
        self.assertEqual({name for name, (_, links) in rooms.items() if not links}, {"assay_core"})

    def test_a_new_link_changes_the_picture(self):
        rooms = {"assay_a": ("harness", set()), "assay_b": ("harness", set()), "assay_c": ("cli", {"assay_a"})}
        before = picture.picture(rooms)
        self.assertIn(">c</text>", before)
        rooms["assay_c"] = ("cli", {"assay_a", "assay_b"})
        self.assertEqual(picture.picture(rooms).count("<path"), before.count("<path") + 1)
        # A link that follows from others is not drawn.
        rooms["assay_b"] = ("harness", {"assay_a"})
        self.assertEqual(picture.picture(rooms).count("<path"), before.count("<path") + 1)


if __name__ == "__main__":
    unittest.main()
