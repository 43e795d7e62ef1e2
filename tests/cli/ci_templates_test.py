"""The workflows in configs/ci for GitHub and GitLab: what a linter would look for, and their shell, run step by step beside
stand-ins: a bare repository, and a curl and a gh that are scripts here."""

import os
import pathlib
import re
import subprocess
import sys
import time
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


def gitlab_jobs(text):
    """The jobs of a GitLab pipeline, each with what it extends; and its variables."""
    whole = yaml.safe_load(text)
    keys = ("variables", "stages", "include", "workflow", "default")
    jobs = {name: {**whole.get(job.get("extends"), {}), **job} for name, job in whole.items()
            if name not in keys and not name.startswith(".")}
    return jobs, whole.get("variables", {}), whole


@unittest.skipUnless(yaml, "no yaml for this Python")
class GitlabLint(unittest.TestCase):
    KEYS = {"stage", "rules", "script", "before_script", "after_script", "artifacts", "allow_failure", "resource_group", "timeout",
            "extends", "needs", "parallel", "tags"}

    def problems(self, text):
        jobs, variables, whole = gitlab_jobs(text)
        found = []
        for name, job in jobs.items():
            found += [f"{name} has {key}" for key in set(job) - self.KEYS]
            if job.get("extends") and job["extends"] not in whole:
                found.append(f"{name} extends {job['extends']}")
            if job.get("stage", "test") not in whole.get("stages", ["build", "test", "deploy"]):
                found.append(f"{name} is of no stage")
            if not job.get("rules") or not job.get("script"):
                found.append(f"{name} has no rules or no script")
            for other in job.get("needs", []):
                if other["job"] not in jobs:
                    found.append(f"{name} needs {other['job']}")
            lines = [line for part in ("before_script", "script", "after_script") for line in job.get(part, [])]
            if not all(isinstance(line, str) for line in lines):
                found.append(f"{name}: a line that YAML takes for something else")
                continue
            shell = "\n".join(lines)
            if subprocess.run(["bash", "-n"], input=shell, text=True, capture_output=True).returncode:
                found.append(f"{name}: no shell")
            judges = "history check" in shell
            if judges and job.get("allow_failure", {}).get("exit_codes") != [3]:
                found.append(f"{name}: exit code 3 is not amber")
            known = set(variables) | set(re.findall(r"^\s*(?:export )?(\w+)=", shell, re.M)) | {"PWD", "PATH", "ASSAY_TOKEN", "EVENT", "REASON"}
            known |= {key for one in job.get("parallel", {}).get("matrix", []) for key in one}
            for used in re.findall(r"\$\{?([A-Za-z_]\w*)", shell):
                if used not in known and not used.startswith(("CI_", "GITLAB_")):
                    found.append(f"{name}: nothing sets {used}")
            if "merge_request_event" in str(job["rules"]) and ("ASSAY_TOKEN" in shell or "ASSAY_REMOTE" in shell):
                found.append(f"{name}: a merge request has the token")
        return found

    def test_the_pipelines_are_clean(self):
        files = sorted((ROOT / "configs/ci").glob("gitlab-*.yml"))
        self.assertEqual(len(files), 2)
        for file in files:
            with self.subTest(file.name):
                self.assertEqual(self.problems(file.read_text()), [])

    def test_what_is_wrong_is_found(self):
        good = (ROOT / "configs/ci/gitlab-benchmark.yml").read_text()
        for old, new in (("extends: .assay", "extends: .asay"), ("exit_codes: [3]", "exit_codes: [1]"), ("      fi\n", ""),
                         ("stage: test", "stage: tests"), ("  script:\n    - git fetch", "  scripts:\n    - git fetch"),
                         ('"$judged"', '"$juged"'), ('    - cd .assay/history', '    - cd: .assay/history'),
                         ("git fetch -q origin", 'git fetch -q "$ASSAY_REMOTE"')):
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
        self.script(self.dir / "stand-ins/curl", f'case "$*" in *PRIVATE-TOKEN*) cp comment.md {self.dir}/body; exit;; esac\n'
                    f'while [ "$1" != -o ]; do shift; done\ncp {self.dir}/assay.tar.gz "$2"')
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
                env={**os.environ, **self.git_env, "CI": "true", "GITHUB_EVENT_NAME": "schedule", "GITHUB_REPOSITORY": "a/b", "GITHUB_SERVER_URL": "https://github.example",
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

    def gitlab(self, name, code=0, **env):
        """Runs the shell of a job of gitlab-benchmark.yml, as a runner does; what it said."""
        if name == "speed-nightly":
            time.sleep(1.1)  # a history keeps whole seconds: within one, nights have no order
        jobs, variables, _ = gitlab_jobs((ROOT / "configs/ci/gitlab-benchmark.yml").read_text())
        job = jobs[name]
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", "\n".join(job["before_script"] + job["script"])], cwd=self.repo,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240,
            env={**os.environ, **self.git_env, "CI": "true", **variables, "ASSAY_REMOTE": str(self.dir / "origin.git"),
                 "PATH": f"{self.dir}/stand-ins:{os.environ['PATH']}", "CI_PROJECT_URL": "https://git.example/a/b",
                 "CI_API_V4_URL": "https://git.example/api", "CI_PROJECT_ID": "7", "CI_COMMIT_SHA": "c", "CI_COMMIT_BRANCH": "main",
                 "CI_DEFAULT_BRANCH": "main", "GITLAB_USER_LOGIN": "ann", "BUILD": "true", "BENCH": "./bench.py",
                 "BENCH_CASES": "./bench.py --benchmark_filter={cases}", **env})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_gitlab_nights_begin_amber_keep_their_history_and_take_an_acknowledgement(self):
        def store():
            self.git("fetch", "-q", "origin", "assay-history")
            (self.dir / "kept.db").write_bytes(subprocess.run(["git", "show", "FETCH_HEAD:history.db"], cwd=self.repo,
                                                              capture_output=True, check=True).stdout)
            return "kept.db"

        self.commit({"sort": 1000}, "begin")
        self.git("push", "-q", "origin", "main")
        for night in (1, 2):
            self.gitlab("speed-nightly", code=3)
            store()
            self.assertEqual(len(self.git("log", "--format=%h", "FETCH_HEAD").split()), night)
        with self.subTest("a benchmark that fails is red, its night is kept, and a comment says what broke"):
            self.assertIn("the benchmark failed", self.gitlab("speed-nightly", code=1, BENCH="exit 3", ASSAY_TOKEN="t"))
            self.assertIn("broke", (self.dir / "body").read_text())
        with self.subTest("acknowledged by hand"):
            [event] = [one for one in self.check(store=store(), code=1)["events"] if one["kind"] == "broke"]
            self.gitlab("speed-acknowledge", EVENT=event["id"][:5], REASON="known; touch x")
            [event] = [one for one in self.check(store=store(), code=3)["events"] if one["kind"] == "broke"]
            self.assertIn("acknowledged by ann", event["decision"])
            self.assertFalse((self.repo / "x").exists())
        with self.subTest("a history that is lost is red, and not written over"):
            self.git("push", "-q", "-f", "origin", "main:assay-history")
            self.gitlab("speed-nightly", code=1)
            self.assertEqual(self.git("ls-remote", "origin", "assay-history").split()[0], self.git("rev-parse", "main"))

    def test_a_gitlab_merge_request_is_measured_without_rights(self):
        base = self.commit({"sort": 1000}, "begin")
        self.git("push", "-q", "origin", "main")
        self.git("checkout", "-q", "-b", "topic")
        self.commit({"sort": 1500}, "slower @you")
        self.gitlab("speed-merge-request", code=1, CI_MERGE_REQUEST_DIFF_BASE_SHA=base)
        self.assertIn("RED", (self.repo / "speed.md").read_text())
        self.commit({"sort": 1000}, "as before", night=1)
        self.gitlab("speed-merge-request", CI_MERGE_REQUEST_DIFF_BASE_SHA=base)
        self.assertIn("GREEN", (self.repo / "speed.md").read_text())

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
