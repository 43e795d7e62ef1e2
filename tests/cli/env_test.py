"""assay env: its text, --json, and --expect with met, unmet and invalid expectations. usage: env_test.py ASSAY"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ASSAY = sys.argv.pop(1)


def env(*arguments):
    return subprocess.run([ASSAY, "env", *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL)


class Env(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def expect(self, content, *arguments):
        path = self.folder / "expect.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return env("--expect", str(path), *arguments)

    def test_text_says_what_the_machine_is(self):
        done = env()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for word in ("CPU", "memory", "caches", "libraries", "place"):
            self.assertRegex(done.stdout, rf"(?m)^  {word} +\S")
        self.assertRegex(done.stdout, r"finding|nothing here")

    def test_json_holds_the_machine_and_its_findings(self):
        done = env("--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        answer = json.loads(done.stdout)
        self.assertEqual(answer["schema"], 1)
        self.assertEqual(answer["cpu"]["cpus"], os.cpu_count())
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self.assertAlmostEqual(answer["memory"]["total_bytes"] / total, 1, places=2)
        self.assertEqual(answer["hostnames"], [os.uname().nodename])
        self.assertEqual(answer["os"]["kernel"], os.uname().release)
        for finding in answer["findings"]:
            self.assertIn(finding["severity"], ("warning", "info"))
            self.assertTrue(finding["id"] and finding["seen"] and finding["fix"], finding)
        ids = [finding["id"] for finding in answer["findings"]]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertNotIn("expect", answer)

    def test_names_a_busy_process(self):
        spin = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            answer = json.loads(env("--json").stdout)
        finally:
            spin.kill()
            spin.wait()
        self.assertIn("other-load", [finding["id"] for finding in answer["findings"]])

    def test_a_lowered_limit_is_found(self):
        done = subprocess.run(["bash", "-c", 'ulimit -n 64; exec "$0" env --json', ASSAY], capture_output=True, text=True)
        self.assertIn("open-files", [finding["id"] for finding in json.loads(done.stdout)["findings"]])

    def test_an_nhc_file_is_an_expectation(self):
        done = self.expect(" * || check_hw_mem_free 1mb\n * || check_fs_mount -f /nowhere\n", "--json")
        self.assertEqual(done.returncode, 1, done.stderr)
        answer = json.loads(done.stdout)["expect"]
        self.assertEqual([each["what"] for each in answer["shortfalls"]], ["mounts /nowhere"])
        self.assertEqual(answer["not_taken_over"], ["expect.json:1: check_hw_mem_free 1mb"])
        # What is asked and was not looked at may not hold.
        done = self.expect("* || check_ps_service sshd\n")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("not taken over: expect.json:1: check_ps_service sshd", done.stdout)

    def test_expectations_that_hold(self):
        done = self.expect({"schema": 1, "cpu": {"cores": 1, "model": "*"}, "memory": "1MiB", "numa_nodes": 0})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("all held", done.stdout)

    def test_every_shortfall_is_listed_with_exit_1(self):
        done = self.expect({"schema": 1, "cpu": {"cores": 100000, "model": "*abacus*"}, "memory": "100TiB",
                            "gpus": {"count": 1000}})
        self.assertEqual(done.returncode, 1)
        for what in ("cpu.cores: expected 100000, found", "cpu.model: expected *abacus*", "memory: expected 100 TiB",
                     "gpus.count: expected 1000"):
            self.assertIn(what, done.stdout)

    def test_shortfalls_in_json(self):
        done = self.expect({"schema": 1, "memory": "100TiB"}, "--json")
        self.assertEqual(done.returncode, 1)
        answer = json.loads(done.stdout)["expect"]
        self.assertFalse(answer["held"])
        self.assertEqual([each["what"] for each in answer["shortfalls"]], ["memory"])

    def test_bad_files_are_exit_2_and_print_nothing(self):
        for content in ("", "[]", "{", '{"schema":2}', '{"schema":1,"cpu":{"cors":2}}', '{"schema":1,"memory":-1}',
                        '{"schema":1,"memory":"many"}', '{"schema":1,"gpus":{"count":1.5}}', '{"cpu":{"cores":1}}'):
            with self.subTest(content):
                done = self.expect(content)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("expect.json", done.stderr)
        for path in (self.folder / "missing.json", self.folder):
            done = env("--expect", str(path))
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(str(path), done.stderr)

    def test_all_errors_in_a_file_are_reported_at_once(self):
        done = self.expect({"schema": 1, "cpu": {"cors": 2, "isa": "avx2"}, "memroy": 1})
        self.assertEqual(done.returncode, 2)
        for part in ("/cpu/cors", "cores", "/cpu/isa", "/memroy", "memory"):
            self.assertIn(part, done.stderr)

    def test_bad_flags(self):
        for arguments in (("--jsno",), ("--expect",), ("--expect", ""), ("now",)):
            done = env(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
