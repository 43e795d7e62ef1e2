"""The HTML page in a browser without a network: no console messages, drawn pictures, keyboard, narrow, dark, printed, and
without scripts. Screenshots are kept in $ASSAY_SCREENSHOTS (build/.../screenshots)."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import browser as chromium

for folder in ("../support", "../cli"):
    sys.path.insert(0, os.path.join(os.path.dirname(__file__), folder))
import accept_test  # noqa: E402
import ranking_test  # noqa: E402
import wheels  # noqa: E402
from history_case import CASES, HistoryCase, slower  # noqa: E402

PROGRAM = chromium.find()
# How many pixels each canvas has painted.
PAINTED = """[...document.querySelectorAll('canvas')].map(canvas => {
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let painted = 0;
  for (let i = 3; i < data.length; i += 4) painted += data[i] > 0;
  return painted;
})"""
# The accessibility checker, a wheel of cmake/packages.txt.
AXE = wheels.find("axe_core_python/axe.min.js")
RUNS = pathlib.Path(__file__).resolve().parents[1] / "runs"
SIZES = {"wide": {"width": 1280, "height": 800}, "telephone": {"width": 390, "height": 844}}
EVIL = '</script><script>window.evil=1</script><img src=x onerror="window.evil=1">"\'`{{}}\u2028\u202e\x1b[31m'


@unittest.skipUnless(PROGRAM, "no Chromium here (package chromium; $CHROMIUM names another)")
class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="assay-page-")
        cls.addClassCleanup(folder.cleanup)
        cls.dir = pathlib.Path(folder.name)
        cls.shots = pathlib.Path(os.environ.get("ASSAY_SCREENSHOTS", cls.dir / "screenshots"))
        cls.shots.mkdir(parents=True, exist_ok=True)
        cls.sample = cls.dir / "sample.html"
        cls.sample.write_bytes(subprocess.run([os.environ["SAMPLE_PAGE"]], check=True, capture_output=True).stdout)
        cls.pages = {"sample": cls.sample, **{name: cls.report(name, *words) for name, words in {
            "micro": [RUNS / "micro-base-1", RUNS / "micro-base-2"],
            "training": [RUNS / "training-1", "--price", "3"],
            "gpu": [RUNS / "gpu", "--floors", "h100-sxm"],
            "hosts": [RUNS / "fleet"]}.items()}}
        cls.pages["machines"] = cls.machines()
        cls.pages["size"] = cls.written("size", "size", "llama-8b", "--tokens", "1B", "--count", "8,64", "--hardware", "h100-sxm,h200-sxm")
        cls.pictured = list(cls.pages)
        cls.pages["compare"] = cls.written("compare", "compare", "--base", *RUNS.glob("micro-base-*"), "--head", *RUNS.glob("micro-head-*"))
        cls.pages["acceptance"] = cls.acceptance()
        cls.pages["history"] = cls.history()
        cls.browser = chromium.Browser(PROGRAM)
        cls.addClassCleanup(cls.browser.close)

    @classmethod
    def written(cls, name, *words):
        """The page that a command writes, whatever it answers (0, 1 or 3)."""
        out = cls.dir / f"{name}.html"
        done = subprocess.run([os.environ["ASSAY"], *map(str, words), "--html", out], capture_output=True, text=True)
        if done.returncode not in (0, 1, 3):
            raise RuntimeError(done.stderr)
        return out

    @classmethod
    def report(cls, name, *words):
        return cls.written(name, "report", *words)

    @classmethod
    def machines(cls):
        """Three kinds of machines, three of each, with prices."""
        made = ranking_test.Ranking()
        made.setUp()
        out = cls.report("machines", *[made.dir / run for run in made.machines([0.97, 1, 1.03])], "--prices", made.prices())
        made.doCleanups()
        return out

    @classmethod
    def acceptance(cls):
        """An acceptance of this host that misses a floor."""
        made = accept_test.Accept()
        made.setUp()
        made.accept("--out", "out", "--floors", made.floors("900 TFLOP/s"), code=1)
        out = (made.dir / "out/accept.html").rename(cls.dir / "acceptance.html")
        made.doCleanups()
        return out

    @classmethod
    def history(cls):
        """A step with causes and a flaky series on one machine, another machine's replacement, and a branch of suspects."""
        made = HistoryCase()
        made.setUp()

        def step(machine, case, night):
            return slower(machine, case, night) + (-0.4 if case == CASES[8] and night % 40 in (30, 31, 32, 33, 34) else 0) + (
                -0.3 if case == CASES[9] and night == 63 else 0)

        def facts(machine, night):
            return {"driver": "581" if night >= 41 else "580", "kernel": "6.1", "clock_mhz": "1800" if night >= 41 else "1980"}

        made.add(range(64), step=step, facts=facts, commit=lambda machine, night: f"c{night}")
        made.add(range(50), machines=("node2",), facts=facts)
        made.add(range(50, 64), machines=("node3",), facts=facts)
        out = cls.dir / "history.html"
        made.history("check", "--html", out, code=1)
        made.doCleanups()
        return out

    def setUp(self):
        self.page = self.browser.page()
        self.addCleanup(self.page.close)

    def opened(self, path, **view):
        self.page.view(**view)
        self.page.open(path)
        if view.get("scripts", True):
            self.page.settle()
        return self.page

    def assert_quiet(self):
        self.assertEqual(self.page.troubles, [])
        self.assertEqual([url for url in self.page.requests if not url.startswith(("file:", "data:"))], [])

    def assert_fits(self, width):
        self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), width)

    def test_draws_every_picture_without_console_messages(self):
        page = self.opened(self.sample)
        painted = page.run(PAINTED)
        self.assertEqual(len(painted), page.run("document.querySelectorAll('figure:has(canvas)').length"))
        self.assertGreater(len(painted), 0)
        self.assertGreater(min(painted), 1000)
        self.assertTrue(page.run("[...document.querySelectorAll('canvas')].every(c => c.getAttribute('aria-label').length > 20)"))
        self.assert_quiet()

    def test_curves_have_the_points_of_their_table(self):
        page = self.opened(self.sample)
        counts = page.run("[...document.querySelectorAll('figure:has(canvas)')].map(f => "
                          "[f.querySelectorAll('tbody tr:has(td)').length, "
                          "f.querySelector('canvas').chart.data.datasets.reduce((n, s) => n + s.data.length, 0)])")
        for rows, points in counts:
            self.assertEqual(rows, points)

    def test_fits_every_width_in_light_dark_and_print(self):
        for name, view in {"light": {}, "dark": {"dark": True}, "narrow": {"width": 400},
                           "narrow-dark": {"width": 400, "dark": True}, "print": {"width": 720, "media": "print"}}.items():
            page = self.opened(self.sample, **view)
            self.assert_fits(view.get("width", 1200))
            self.assertGreater(min(page.run(PAINTED)), 1000)
            page.screenshot(self.shots / f"sample-{name}.png")
        self.page.pdf(self.shots / "sample.pdf")
        self.assert_quiet()

    def test_every_page_fits_a_telephone_and_paper(self):
        # A browser shrinks what it prints to two thirds, if that makes it fit.
        for width, view in ((390, SIZES["telephone"]), (720 * 1.5, {"width": 720, "media": "print"})):
            for name, path in self.pages.items():
                with self.subTest(page=name, **view):
                    page = self.opened(path, **view)
                    page.screenshot(self.shots / f"{name}-first-{view.get('media', 'telephone')}.png", whole=False)
                    self.assert_fits(width)

    def test_colours_follow_the_reader(self):
        page = self.opened(self.sample)
        ink = "document.querySelector('canvas').chart.options.plugins.ranges.ink"
        paper = "getComputedStyle(document.body).backgroundColor"
        light = page.run(ink), page.run(paper)
        page.view(dark=True)
        page.settle()
        dark = page.run(ink), page.run(paper)
        self.assertNotEqual(light[0], dark[0])
        self.assertNotEqual(light[1], dark[1])
        page.view(dark=True, media="print")
        page.settle()
        self.assertEqual(page.run(paper), light[1])
        self.assertEqual(page.run(ink), "#000000")

    def test_the_first_picture_is_seen_without_scrolling(self):
        for name in self.pictured:
            for size, view in SIZES.items():
                page = self.opened(self.pages[name], **view)
                page.screenshot(self.shots / f"{name}-{size}.png")
                # Its first three bars, or all if there are fewer.
                bottom = page.run("[...document.querySelectorAll('.bars tr')].slice(0, 3).at(-1).getBoundingClientRect().bottom")
                self.assertLessEqual(bottom, view["height"], (name, size))

    def test_a_history_shows_its_events_first_and_the_chart_of_each(self):
        for name, view in {**SIZES, "dark": {"width": 1280, "dark": True}, "print": {"width": 720, "media": "print"}}.items():
            with self.subTest(name):
                page = self.opened(self.pages["history"], **view)
                page.screenshot(self.shots / f"history-{name}.png")
                self.assert_fits(view["width"])
                [event] = page.run("[...document.querySelectorAll('#events tbody tr')].map(r => r.textContent)")
                self.assertIn("slower", event)
                [painted] = page.run(PAINTED)
                self.assertGreater(painted, 1000)
                self.assertEqual(page.run("document.querySelector('canvas').chart.data.datasets.length"), 3)
        page = self.opened(self.pages["history"], **SIZES["wide"])
        self.assertLessEqual(page.run("document.querySelector('#events tbody tr').getBoundingClientRect().bottom"), 800)
        self.assert_quiet()

    def test_a_cut_answer_opens(self):
        page = self.opened(self.sample, **SIZES["telephone"])
        answer = "document.querySelectorAll('.answers summary')[1]"
        closed = page.run(f"{answer}.offsetHeight")
        page.run(f"{answer}.focus()")
        page.press("Enter")
        self.assertGreater(page.run(f"{answer}.offsetHeight"), closed)
        text = f"{answer}.firstElementChild"
        self.assertEqual(page.run(f"{text}.scrollHeight"), page.run(f"{text}.clientHeight"))
        page.view(width=720, media="print")
        self.assertTrue(page.run("[...document.querySelectorAll('.answers summary > span')].every(s => s.offsetHeight > 0 && "
                                 "(getComputedStyle(s).webkitLineClamp === 'none' || getComputedStyle(s).display === 'inline'))"))

    @unittest.skipUnless(AXE, "no axe (wheel axe-core-python, in $ASSAY_DEPS)")
    def test_axe_finds_no_violation_of_wcag_aa(self):
        rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
        for name, path in self.pages.items():
            for size, dark in (("wide", False), ("telephone", True), ("wide", True), ("telephone", False))[:4 if name == "sample" else 2]:
                with self.subTest(page=name, size=size, dark=dark):
                    page = self.opened(path, dark=dark, **SIZES[size])
                    page.run(AXE.read_text() + ";0")
                    found = page.run("axe.run(document, {runOnly: %s, resultTypes: ['violations']}).then(r => ({checked: r.passes.length, "
                                     "wrong: r.violations.map(v => [v.id, v.nodes.length, v.nodes[0].html.slice(0, 200), "
                                     "v.nodes[0].failureSummary])}))" % json.dumps(rules))
                    self.assertGreater(found["checked"], 10)
                    self.assertEqual(found["wrong"], [])

    def test_without_scripts_every_figure_is_in_a_table(self):
        page = self.opened(self.sample, scripts=False)
        page.screenshot(self.shots / "sample-no-scripts.png")
        page.send("Emulation.setScriptExecutionDisabled", value=False)   # for queries; the page's own did not run
        self.assertFalse(page.run("document.documentElement.classList.contains('scripts')"))
        self.assertEqual(page.run("[...document.querySelectorAll('canvas')].filter(c => c.offsetHeight > 0).length"), 0)
        self.assertTrue(page.run("[...document.querySelectorAll('table')].every(t => t.offsetHeight > 0)"))
        self.assertEqual(page.run("document.querySelectorAll('button').length"), 0)
        self.assert_quiet()

    def test_tables_are_sorted_with_the_keyboard(self):
        page = self.opened(self.sample)
        column = "[...document.querySelector('.box table').tBodies[0].rows].map(r => r.cells[1].textContent)"
        sorted_as = "document.querySelector('.box table').tHead.rows[0].cells[1].getAttribute('aria-sort')"
        first = page.run(column)
        page.run("document.querySelector('.box table').tHead.rows[0].cells[0].querySelector('button').focus()")
        page.press("Tab")
        seen = []
        for key in ("Enter", "Enter", "Enter"):
            page.press(key)
            seen.append((page.run(sorted_as), page.run(column)))
        self.assertEqual([way for way, _ in seen], ["ascending", "descending", "none"])
        # Cells are sorted by value, not by text (2 GFLOP/s after 900 MFLOP/s); those without a value come last.
        self.assertEqual(seen[0][1], ["900 MFLOP/s", "2 GFLOP/s", "412 GFLOP/s", "–"])
        self.assertEqual(seen[1][1], ["412 GFLOP/s", "2 GFLOP/s", "900 MFLOP/s", "–"])
        self.assertEqual(seen[2][1], first)
        self.assertEqual(page.run("document.getElementById('page-status').textContent"), "in the original order")

    def test_the_first_tab_skips_to_the_figures(self):
        page = self.opened(self.sample)
        page.press("Tab")
        self.assertEqual(page.run("document.activeElement.className"), "skip")
        self.assertGreaterEqual(page.run("document.activeElement.getBoundingClientRect().top"), 0)

    def test_arrow_keys_walk_along_the_points(self):
        page = self.opened(self.sample)
        page.run("document.querySelector('canvas').focus()")
        page.press("ArrowRight")
        self.assertEqual(page.run("document.querySelector('canvas').chart.tooltip.opacity"), 1)
        status = page.run("document.getElementById('page-status').textContent")
        self.assertIn(page.run("document.querySelector('figure:has(canvas) tbody td:nth-of-type(2)').textContent.trim()"), status)
        page.press("Escape")
        self.assertEqual(page.run("document.querySelector('canvas').chart.getActiveElements().length"), 0)
        self.assert_quiet()

    def test_links_lead_somewhere(self):
        page = self.opened(self.sample)
        dead = page.run("[...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.getAttribute('href').slice(1))"
                        ".filter(id => !document.getElementById(id))")
        self.assertEqual(dead, [])
        self.assertGreater(page.run("document.querySelectorAll('tbody a[href^=\"#\"]').length"), 0)
        self.assertEqual(page.run("(ids => ids.length - new Set(ids).size)([...document.querySelectorAll('[id]')].map(e => e.id))"), 0)

    def test_hostile_strings_of_a_run_are_harmless(self):
        run = self.dir / EVIL.replace("/", "_").replace("\x1b", "")[:60]
        run.mkdir()
        (run / "run.json").write_text(json.dumps({
            "schema": 1, "plan": {"name": EVIL}, "labels": {EVIL: EVIL}, "findings": [{"severity": "warning", "seen": EVIL}],
            "environment": {"cpu": {"brand": EVIL}, "hostname": EVIL, "hosts": [EVIL], "libraries": {EVIL: EVIL}}}))
        records = [{"schema": 1, "key": f"gemm/dtype={EVIL}/m={i}", "family": "gemm", "params": {"dtype": EVIL, "m": i},
                    "protocol": {"cache": EVIL}, "labels": {EVIL: EVIL}, "flags": [EVIL], "status": status, "reason": EVIL,
                    "ranks": [{"rank": 0, "host": EVIL, "device": EVIL}],
                    "samples": {"unit": "s", "values": [1e-3, 2e-3, 3e-3], "at": [0, 1, 2]},
                    "metrics": [{"name": "throughput", "value": 1e9, "unit": "FLOP/s", "ci95": [0.9e9, 1.1e9]},
                                {"name": EVIL, "value": 1, "unit": EVIL}],
                    "checks": [{"name": EVIL, "passed": status == "ok", "detail": [EVIL]}]}
                   for i, status in enumerate(("ok", "failed", "error", "skipped"))]
        (run / "records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        out = self.dir / "evil.html"
        done = subprocess.run([os.environ["ASSAY"], "report", str(run), "--html", str(out)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        page = self.opened(out, width=400)
        self.assertIsNone(page.run("window.evil"))
        self.assertEqual(page.run("document.querySelectorAll('img, iframe, object, svg:not(.bars svg)').length"), 0)
        self.assertIn("</script><script>window.evil", page.run("document.body.textContent"))
        self.assert_fits(400)
        self.assert_quiet()


if __name__ == "__main__":
    if not PROGRAM:
        print("skipped: no Chromium here (package chromium; $CHROMIUM names another)")
    result = unittest.main(exit=False, verbosity=1).result
    # 77: skipped, as ctest counts it.
    sys.exit(1 if not result.wasSuccessful() else 77 if not PROGRAM else 0)
