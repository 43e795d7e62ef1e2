"""What the command-line tests share: running the binary that $ASSAY names, in a folder of the test's own."""

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
        """Runs assay in the test's folder; stdout, stderr and returncode as text."""
        return subprocess.run([self.binary, *map(str, words)], cwd=self.dir, env={**os.environ, **(env or {})},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)

    def write(self, name, content):
        """A file in the test's folder: text, bytes, or anything that becomes JSON."""
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def plan(self, *entries, name="p.json", **members):
        return self.write(name, {"schema": 1, "name": "p", "cases": list(entries), **members})

    def mini_model(self, target):
        """A model of a few hundred weights and a folder of configurations whose only quality recipe is its own: it soon
        reaches a loss of 2.6. What the environment must say."""
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
        """The command ends with `code`, nothing on stdout, `lines` lines on stderr that hold every word of `says`."""
        done = self.assay(*words, env=env)
        told = done.stderr
        self.assertEqual(done.returncode, code, told)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(told.splitlines()), lines, told)
        for line in told.splitlines():
            self.assertTrue(line.startswith("assay: "), told)
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word, told)
        return told
