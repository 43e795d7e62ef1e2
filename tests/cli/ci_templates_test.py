"""The workflows in configs/ci for GitHub: what a linter would look for, and their shell, run step by step beside stand-ins for
GitHub: a bare repository, and a curl and a gh that are scripts here."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

from bench_project import BenchProject, has_git

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import wheels  # noqa: E402

yaml = wheels.module("yaml")
WORKFLOWS = sorted((ROOT / "configs/ci").glob("github-*.yml"))
# What GitHub's expressions may name in these files.
CONTEXTS = re.compile(r"(steps\.[\w-]+\.outputs\.\w+|github\.(token|actor|event\.pull_request\.(number|head\.sha|base\.sha)|"
                      r"event\.workflow_run\.(event|id|head_sha))|inputs\.\w+|matrix\.\w+|runner\.temp|!cancelled\(\))"
                      r"( == '[\w-]*')?")


def steps_of(workflow):
    for name, job in workflow["jobs"].items():
        for step in job["steps"]:
            yield name, step


@unittest.skipUnless(yaml, "no yaml for this Python")
class Lint(unittest.TestCase):
    def problems(self, text):
        """What is wrong with a workflow."""
        workflow, found = yaml.safe_load(text), []
        # YAML 1.1 reads `on` as true.
        if not (workflow.get("on") or workflow.get(True)):
            found.append("no trigger")
        if "permissions" not in workflow:
            found.append("no permissions")
        for name, job in workflow["jobs"].items():
            needs = job.get("needs", [])
            for other in [needs] if isinstance(needs, str) else needs:
                if other not in workflow["jobs"]:
                    found.append(f"{name} needs {other}")
            if "runs-on" not in job:
                found.append(f"{name} runs nowhere")
            ids = []
            for step in job["steps"]:
                if ("run" in step) == ("uses" in step):
                    found.append(f"a step of {name} that neither runs nor uses")
                if "${{" in step.get("run", ""):
                    found.append(f"an expression in run: {step['name']}")
                if "uses" in step and not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"]):
                    found.append(f"not pinned: {step['uses']}")
                for output in re.findall(r"steps\.([\w-]+)\.", str({**step, "run": ""})):
                    if output not in ids:
                        found.append(f"no step {output} before")
                ids.append(step.get("id"))
                if "run" in step and subprocess.run(["bash", "-n"], input=step["run"], text=True, capture_output=True).returncode:
                    found.append(f"no shell: {step['name']}")
        for expression in re.findall(r"\$\{\{(.*?)\}\}", text):
            if not CONTEXTS.fullmatch(expression.strip()):
                found.append(f"unknown expression {expression}")
        return found

    def test_the_workflows_are_clean(self):
        self.assertGreaterEqual(len(WORKFLOWS), 5)
        for workflow in WORKFLOWS:
            with self.subTest(workflow.name):
                self.assertEqual(self.problems(workflow.read_text()), [])

    def test_what_is_wrong_is_found(self):
        good = (ROOT / "configs/ci/github-nightly.yml").read_text()
        for old, new in (("@11bd71901bbe5b1630ceea73d27597364c9af683", "@v4"), ('sh -c "$BUILD"', 'sh -c "${{ github.event }}"'),
                         ("steps.check.outputs", "steps.chek.outputs"), ("permissions:\n  contents: write\n", ""),
                         ("          fi\n", ""), ("runs-on: ubuntu-latest", "timeout: 1"),
                         ("github.token", "github.tokn"), ("uses: actions", "use: actions")):
            with self.subTest(new):
                self.assertIn(old, good)
                self.assertTrue(self.problems(good.replace(old, new)))


@unittest.skipUnless(yaml and has_git(), "no yaml for this Python, or no git")
class Steps(BenchProject):
    def setUp(self):
        super().setUp()
        self.temp = self.dir / "temp"
        (self.dir / "stand-ins").mkdir()
        package = self.dir / "package/assay-1"
        package.mkdir(parents=True)
        self.script(package / "assay", f'exec "{pathlib.Path(self.binary).resolve()}" "$@"')
        subprocess.run(["tar", "-czf", self.dir / "assay.tar.gz", "-C", package.parent, "assay-1"], check=True)
        self.script(self.dir / "stand-ins/curl", f'while [ "$1" != -o ]; do shift; done\ncp {self.dir}/assay.tar.gz "$2"')
        self.script(self.dir / "stand-ins/gh",
                    f'case "$*" in *head.sha*) echo measured-head; exit;; esac\n'
                    f'for word; do case "$word" in body=@*) cp "${{word#body=@}}" {self.dir}/body;; esac; done')
        self.git("init", "-q", "--bare", str(self.dir / "origin.git"), cwd=self.dir)
        self.git("remote", "add", "origin", str(self.dir / "origin.git"))

    def script(self, path, text):
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def workflow(self, name, values=None, code=0, **env):
        """Runs the shell of a workflow's steps until one fails; what the steps said."""
        import shutil
        shutil.rmtree(self.temp, ignore_errors=True)
        self.temp.mkdir()
        self.git("worktree", "prune")
        workflow, said, outputs, failed = yaml.safe_load((ROOT / f"configs/ci/{name}.yml").read_text()), "", {}, 0
        path = f"{self.dir}/stand-ins:{os.environ['PATH']}"
        known = {"github.token": "t", **(values or {})}

        def filled(text):
            return re.sub(r"\$\{\{ (.*?) \}\}", lambda match: {**known, **outputs}[match[1]], str(text))

        for job, step in steps_of(workflow):
            condition = re.fullmatch(r"\$\{\{ (\S+) == '(\w+)' \}\}", step.get("if", ""))
            if "run" not in step or failed or (condition and outputs.get(condition[1]) != condition[2]):
                continue
            files = {what: self.temp / f"file-{what}" for what in ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
            for file in files.values():
                file.write_text("")
            done = subprocess.run(
                ["bash", "-e", "-c", step["run"]], cwd=self.repo, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=120,
                env={**os.environ, **self.git_env, "CI": "true", "GITHUB_EVENT_NAME": "schedule", "GITHUB_REPOSITORY": "a/b",
                     "GITHUB_SHA": "c", "RUNNER_TEMP": str(self.temp), "PATH": path, **workflow["env"], **env,
                     **{name: filled(value) for name, value in step.get("env", {}).items()},
                     **{what: str(file) for what, file in files.items()}})
            said += done.stdout + done.stderr
            failed = done.returncode
            for line in files["GITHUB_PATH"].read_text().split():
                path = f"{line}:{path}"
            for line in files["GITHUB_OUTPUT"].read_text().split():
                outputs[f"steps.{step['id']}.outputs.{line.split('=')[0]}"] = line.split("=")[1]
        self.assertEqual(failed, code, said)
        return said

    def test_nights_begin_amber_keep_their_history_and_take_an_acknowledgement(self):
        self.commit({"sort": 1000}, "begin")
        self.git("push", "-q", "origin", "main")
        env = {"BUILD": "true", "BENCH": "./bench.py"}
        for night in (1, 2):
            said = self.workflow("github-nightly", **env)
            self.assertIn("::warning::", said)
            self.git("fetch", "-q", "origin", "assay-history")
            self.assertEqual(len(self.git("log", "--format=%h", "FETCH_HEAD").split()), night)
        with self.subTest("a benchmark that fails is red, and its night is kept"):
            said = self.workflow("github-nightly", code=1, **{**env, "BENCH": "exit 3"})
            self.assertIn("the benchmark failed", said)
        with self.subTest("a history that is lost is red"):
            self.git("push", "-q", "-f", "origin", "main:assay-history")
            self.workflow("github-nightly", code=1, **env)
        with self.subTest("without its history nothing is acknowledged"):
            asked = {"inputs.event": "nothing; touch x", "inputs.reason": "r", "github.actor": "ann"}
            self.assertIn("no such history", self.workflow("github-acknowledge", asked, code=2))
            self.assertFalse((self.repo / "x").exists())

    def test_a_pull_request_is_measured_without_rights_and_commented_without_trust(self):
        base = self.commit({"sort": 1000}, "begin")
        self.git("push", "-q", "origin", "main")
        self.git("checkout", "-q", "-b", "topic")
        self.commit({"sort": 1500}, "slower @you")
        said = self.workflow("github-pull-request", {"github.event.pull_request.base.sha": base,
                                                     "github.event.pull_request.number": "7"}, code=1,
                             BUILD="true", BENCH="./bench.py --benchmark_filter={cases}")
        comment = (self.temp / "speed/comment.md").read_text()
        self.assertIn("RED", comment, said)
        for number, text, code, posted in (("7", comment, 0, True), ("7; rm x", comment, 1, False), ("", comment, 1, False),
                                           ("7", "@all see http://evil.example [x](y) <img>" + "x" * 9000, 0, True)):
            with self.subTest(number=number, text=text[:20]):
                (self.dir / "body").unlink(missing_ok=True)
                values = {"github.event.workflow_run.head_sha": "measured-head"}
                speed = self.dir / "speed"
                speed.mkdir(exist_ok=True)
                (speed / "number").write_text(number + "\n")
                (speed / "comment.md").write_text(text)
                self.comment(values, speed, code)
                self.assertEqual((self.dir / "body").exists(), posted)
                if posted:
                    body = (self.dir / "body").read_text()
                    self.assertLessEqual(len(body), 7000)
                    for mark in ("@", "://", "](", "<"):
                        self.assertNotIn(mark, body)

    def comment(self, values, speed, code):
        """The comment's step, beside the artifact that was downloaded."""
        workflow = yaml.safe_load((ROOT / "configs/ci/github-pull-request-comment.yml").read_text())
        [run] = [step["run"] for _, step in steps_of(workflow) if "run" in step]
        done = subprocess.run(["bash", "-e", "-c", run], cwd=self.dir, capture_output=True, text=True, timeout=60,
                              env={**os.environ, "PATH": f"{self.dir}/stand-ins:{os.environ['PATH']}", "GITHUB_REPOSITORY": "a/b",
                                   "MEASURED": values["github.event.workflow_run.head_sha"], "RUNNER_TEMP": str(self.dir)})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
