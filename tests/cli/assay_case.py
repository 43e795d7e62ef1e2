"""What the command-line tests share: running the binary $ASSAY in a temporary folder, and reading what it wrote."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest


class AssayCase(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.binary = os.environ["ASSAY"]
        folder = tempfile.TemporaryDirectory(prefix="assay-test-")
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def assay(self, *words, env=None, timeout=60):
        """Runs assay in the test's folder; the finished process, its output as text."""
        return subprocess.run([self.binary, *map(str, words)], cwd=self.dir, env={**os.environ, **(env or {})},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)

    def write(self, name, content):
        """Writes a file in the test's folder: text, bytes, or anything else as JSON."""
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def plan(self, *entries, name="p.json", **members):
        return self.write(name, {"schema": 1, "name": "p", "cases": list(entries), **members})

    def run_dir(self, *records, name="r", run=None):
        """Writes a run directory: records, or lines as they are, and members of run.json."""
        self.write(f"{name}/run.json", {"schema": 1, **(run or {})})
        lines = [line if isinstance(line, str) else json.dumps(line) for line in records]
        self.write(f"{name}/records.jsonl", "".join(line + "\n" for line in lines))
        return name

    def records(self, out="out"):
        """The records of a run directory; none if there is no such directory."""
        path = self.dir / out / "records.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def measure(self, *entries, words=(), device="cpu", out="out", env=None, timeout=600, **members):
        """Runs a plan of these entries in a new directory; the finished process and the records."""
        shutil.rmtree(self.dir / out, ignore_errors=True)
        done = self.assay("run", self.plan(*entries, **members), "--device", device, "--out", out, *words, env=env,
                          timeout=timeout)
        records = self.records(out)
        if done.returncode in (0, 1):
            self.assertTrue(records, done.stderr)
        return done, records

    def report_of(self, *words, env=None):
        """A report's JSON."""
        done = self.assay("report", *words, "--json", env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def diagnosis(self, *words, code=0):
        """What `assay diagnose` says of each rule, by its id."""
        done = self.assay("diagnose", *words, "--json")
        self.assertEqual(done.returncode, code, done.stderr)
        return {rule["id"]: rule for rule in json.loads(done.stdout)["rules"]}

    def tables(self, path="out.json"):
        """The rows of every table in a report's JSON, by the table's id."""
        sections = json.loads((self.dir / path).read_text())["sections"]
        return {table["id"]: table["rows"] for section in sections for table in section["tables"]}

    @staticmethod
    def by_name(members):
        """Metrics or checks of a record by name."""
        return {member["name"]: member for member in members}

    @classmethod
    def metrics(cls, record):
        return {name: metric["value"] for name, metric in cls.by_name(record["metrics"]).items()}

    def generated_images(self):
        """The images that Assay generates and caches; generated now if necessary."""
        cache = os.environ.get("ASSAY_CACHE") or pathlib.Path(
            os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "assay"
        sets = sorted(pathlib.Path(cache).glob("images-*/SHA256SUMS"))
        if not sets:
            done, _ = self.measure({"family": "dataloader", "kind": "image", "stage": "read", "workers": 1},
                                   out="generated", protocol={"max_seconds": "100ms", "min_samples": 3})
            self.assertEqual(done.returncode, 0, done.stderr)
            sets = sorted(pathlib.Path(cache).glob("images-*/SHA256SUMS"))
        return sorted(sets[-1].parent.glob("*/*.jpg"))

    def image_folder(self, count, name="images"):
        """A folder of `count` images in two classes."""
        for number, image in enumerate(self.generated_images()[:count]):
            target = self.dir / name / f"class-{number % 2}"
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(image, target / f"{number:03}.jpg")
        return self.dir / name

    def mini_model(self, target):
        """Copies the configs and adds a model of a few hundred weights that soon reaches a loss of 2.6; the environment
        that selects the copy."""
        shutil.copytree(pathlib.Path(__file__).resolve().parents[2] / "configs", self.dir / "configs")
        self.write("configs/models/mini.json", {
            "schema": 1, "family": "transformer", "vocabulary": 16, "positions": 16, "layers": 1, "width": 16, "heads": 2,
            "mlp_width": 32, "norm": "layer", "position": "learned", "mlp": "gelu_tanh", "bias": True, "tied": True,
            "causal": True})
        self.write("configs/recipes/mini.json", {
            "schema": 1, "optimizer": {"name": "adamw", "weight_decay": 0.1},
            "schedule": {"decay": "constant", "base": 1e-2, "warmup_steps": 0},
            "batch": {"micro_batch": 16, "seq": 16}, "data": {"chains": 2},
            "quality": {"target": target, "evaluate_every": 64, "evaluation_samples": 64, "max_samples": 12800}})
        return {"ASSAY_CONFIGS": str(self.dir / "configs")}

    def refused(self, *words, code=2, says=(), lines=1, env=None):
        """Expects exit code `code`, nothing on stdout, and `lines` lines on stderr that contain all of `says`."""
        done = self.assay(*words, env=env)
        errors = done.stderr
        self.assertEqual(done.returncode, code, errors)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(errors.splitlines()), lines, errors)
        for line in errors.splitlines():
            self.assertTrue(line.startswith("assay: "), errors)
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word, errors)
        return errors
