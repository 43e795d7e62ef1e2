"""MLLOG files of quality runs, checked by our own rules and by mlcommons' checker if $MLPERF_PYTHON has it."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

import mllog
from assay_case import AssayCase

ROOT = pathlib.Path(__file__).resolve().parents[2]
RULES = ROOT / "configs" / "mllog" / "rules.yaml"
CHECKER_PYTHON = os.environ.get("MLPERF_PYTHON", sys.executable)


def log(changes=None, drop=()):
    """A valid file of two blocks; `changes` maps line numbers to changed members."""
    settings = {"seed": 1, "global_batch_size": 8, "gradient_accumulation_steps": 1, "train_samples": 64, "eval_samples": 8,
                "opt_name": "adamw", "opt_base_learning_rate": 1e-3, "opt_learning_rate_warmup_steps": 0,
                "opt_weight_decay": 0.1}
    keys = [(key, "x", {}) for key in sorted(mllog.SUBMISSION)] + [("cache_clear", True, {}), ("init_start", None, {})]
    keys += [(key, value, {}) for key, value in settings.items()]
    keys += [("quality_target", 2.0, {"metric": "loss"}), ("init_stop", None, {}), ("run_start", None, {})]
    for samples, quality in ((16, 2.5), (32, 1.9)):
        at = {"samples_count": samples}
        keys += [("block_start", None, {"samples_count": samples - 16}), ("block_stop", None, at), ("eval_start", None, at),
                 ("eval_accuracy", quality, at), ("eval_stop", None, at)]
    keys.append(("run_stop", None, {"samples_count": 32, "status": "success"}))
    lines = []
    for number, (key, value, metadata) in enumerate(keys):
        entry = {"namespace": "", "time_ms": 1000 + number, "event_type": mllog.EVENTS.get(key, mllog.POINT), "key": key,
                 "value": value, "metadata": {"file": "assay", "lineno": number, **metadata}}
        lines.append(entry | (changes or {}).get(number, {}))
    if (changes or {}).get("order"):
        lines = changes["order"](lines)
    return "".join(f":::MLLOG {json.dumps(line)}\n" for line in lines if line["key"] not in drop)


def number_of(key, last=False):
    keys = [entry["key"] for entry in mllog.parse(log())]
    return len(keys) - 1 - keys[::-1].index(key) if last else keys.index(key)


class Validator(unittest.TestCase):
    def test_a_valid_file(self):
        self.assertEqual(mllog.problems(log()), [])
        self.assertAlmostEqual(mllog.run_seconds(log()), 0.011)

    def finds(self, word, text):
        found = mllog.problems(text)
        self.assertTrue(any(word in each for each in found), f"{word!r} not in {found}")

    def test_torn_and_foreign_lines(self):
        self.finds("torn", log()[:-1])
        self.finds("line 1", "hello\n" + log())
        self.finds("members", log({3: {"extra": 1}}))
        self.finds("time or place", log({3: {"time_ms": "soon"}}))

    def test_times_and_kinds(self):
        self.finds("goes back", log({5: {"time_ms": 990}}))
        self.finds("must not be", log({number_of("run_start"): {"event_type": mllog.POINT}}))
        self.finds("no value", log({number_of("run_start"): {"value": 1}}))

    def test_order(self):
        for key in ("cache_clear", "init_stop", "run_start", "block_stop", "eval_accuracy", "run_stop"):
            self.finds("order", log(drop=[key]))
        # No evaluation at the end.
        self.finds("order", log({"order": lambda lines: lines[:-4] + [lines[-1]] + lines[-4:-1]}))
        self.finds("order", log({"order": lambda lines: lines + [lines[-1]]}))
        self.finds("seed: missing", log(drop=["seed"]))
        self.finds("seed: 2 times", log({number_of("opt_weight_decay"): {"key": "seed"}}))

    def test_the_run(self):
        last = len(mllog.parse(log())) - 1
        place = {"file": "assay", "lineno": 0}
        self.finds("status is aborted", log({last: {"metadata": place | {"samples_count": 32, "status": "aborted"}}}))
        self.finds("missed the target", log({number_of("eval_accuracy", last=True): {"value": 2.1}}))
        self.finds("continues", log({number_of("eval_accuracy"): {"value": 1.5}}))
        self.finds("at 31 samples", log({number_of("eval_stop"): {"metadata": place | {"samples_count": 31}}}))
        self.finds("cadence", log({number_of("block_stop"): {"metadata": place | {"samples_count": 24}}}))
        self.finds("of at most 31", log({number_of("train_samples"): {"value": 31}}))


class QualityRuns(AssayCase):
    """Two short runs of a model of a few hundred weights, to a target that it soon reaches."""

    def run_quality(self, target, runs=2):
        done = self.assay("run", "transformer", "--set", "transformer.model=mini", "--set", "transformer.mode=quality",
                          "--set", f"transformer.runs={runs}", "--set", "transformer.threads=1", "--out", "out",
                          env=self.mini_model(target))
        record = self.records()[-1]
        logs = {path: path.read_text() for path in sorted((self.dir / "out" / "mllog").glob("*.log"))}
        return done, record, logs

    def test_files_of_runs_that_reach_the_target(self):
        done, record, logs = self.run_quality({"value": 2.6})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(logs), 2)
        for path, text in logs.items():
            self.assertEqual(mllog.problems(text), [], path.name)
        self.assertEqual(len({each["value"] for text in logs.values() for each in mllog.parse(text) if each["key"] == "seed"}), 2)
        # The record has the same times as the log.
        self.assertEqual(record["status"], "ok", record)
        times = sorted(record["samples"]["values"])
        for ours, logged in zip(times, sorted(map(mllog.run_seconds, logs.values()))):
            self.assertAlmostEqual(ours, logged, delta=0.05 + 0.02 * logged)
        self.check_by_mlcommons(logs)

    def check_by_mlcommons(self, logs):
        try:
            have = subprocess.run([CHECKER_PYTHON, "-c", "import mlperf_logging, yaml"], capture_output=True).returncode == 0
        except OSError:
            have = False
        if not have:
            self.skipTest("mlperf-logging is not installed; our own rules passed")
        for path in logs:
            self.assertEqual(self.checker(path).returncode, 0, self.checker(path).stdout + self.checker(path).stderr)
        # The checker really checks: it refuses a file without its end.
        torn = self.write("torn.log", "".join(logs[path].splitlines(keepends=True)[:-1]))
        self.assertNotEqual(self.checker(torn).returncode, 0)

    def checker(self, path):
        return subprocess.run([CHECKER_PYTHON, "-m", "mlperf_logging.compliance_checker", "--usage", "training", "--ruleset",
                               "5.1.0", "--config", str(RULES), "--werror", "--log_output", str(self.dir / "checker.log"),
                               str(path)], cwd=self.dir, capture_output=True, text=True)

    def test_a_run_that_misses_the_target_is_aborted(self):
        done, record, logs = self.run_quality({"value": 0.01}, runs=1)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(record["status"], "failed")
        (text,) = logs.values()
        self.assertEqual(mllog.problems(text), ["the last evaluation missed the target", "status is aborted"])


if __name__ == "__main__":
    unittest.main()
