"""Programs and forked children are started and waited for in one room, harness/process, whose loop ends them and reads them."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("cli", "harness", "reports", "suites", "workloads")
CALL = re.compile(r"(?<![\w.>])(?:::)?(v?fork|waitpid|waitid|wait[34]|posix_spawnp?|popen|system)\s*\(")


def calls(text):
    code = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', re.sub(r"//.*", "", text))
    return [call.group(1) for call in CALL.finditer(code)]


class OneRoom(unittest.TestCase):
    def test_calls_are_found(self):
        self.assertEqual(calls("const pid_t pid = ::fork();\nif (waitpid(pid, &status, 0) < 0) {\n"), ["fork", "waitpid"])
        self.assertEqual(calls('ask_system(mounts); files.system(1); say("::fork()");  // fork()\n'), [])

    def test_no_other_room_starts_or_awaits_processes(self):
        seen = {}
        for folder in FOLDERS:
            for path in sorted((ROOT / folder).rglob("*")):
                if path.suffix in (".h", ".cpp", ".cu", ".cuh"):
                    found = calls(path.read_text())
                    if found:
                        seen[str(path.relative_to(ROOT).parent)] = found
        self.assertEqual(list(seen), ["harness/process"], seen)


if __name__ == "__main__":
    unittest.main()
