"""assay audit --log: a kernel's log that somebody sends, in every form in which people have them."""

import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from assay_case import AssayCase  # noqa: E402


class AuditLog(AssayCase):
    def audit_log(self, text, *flags, code=None):
        """The audit of a log as JSON, or what was printed if it is none."""
        done = self.assay("audit", "--log", self.write("kernel.log", text), "--json", *flags)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout), done.stderr

    FAULT = "NVRM: Xid (PCI:0000:b3:00): 79, pid=1, GPU has fallen off the bus."

    def test_a_log_that_somebody_sends_is_audited_in_every_form(self):
        entry = {"_TRANSPORT": "kernel", "MESSAGE": self.FAULT, "__REALTIME_TIMESTAMP": "1763608364000000", "_BOOT_ID": "a"}
        for text in (f"[   12.500000] {self.FAULT}", f"kern  :err   : [   12.500000] {self.FAULT}", f"[Thu Nov 20 03:12:44 2025] {self.FAULT}",
                     f"2025-11-20T03:12:44,123456+00:00 {self.FAULT}", f"kern  :err   : 2025-11-20T03:12:44,123456+00:00 {self.FAULT}",
                     json.dumps(entry), f"Panic#1 Part1\n<3>[   12.500000] {self.FAULT}", f"Nov 20 03:12:44 n1 kernel: [   12.5] {self.FAULT}",
                     f"2025-11-20T03:12:44+00:00 n1 kernel: {self.FAULT}", f"Linux version 6.8.0\n{self.FAULT}"):
            with self.subTest(text=text):
                log, errors = self.audit_log(text + "\n", code=1)
                self.assertEqual([(each["id"], each["device"]) for each in log["audit"]["problems"]], [("xid-fatal", "0000:b3:00.0")])
                self.assertEqual(log["log"]["unread"], 0)
        done = subprocess.run([self.binary, "audit", "--log", "-"], input=f"[   12.500000] {self.FAULT}\n",
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done.stderr)
        for part in ("stdin: 1 message of the kernel in 1 line", "not known: 1 message without a date", "audit: 1 fault", "XID 79 12 s after its boot"):
            self.assertIn(part, done.stdout)

    def test_boots_of_a_log_are_told_apart(self):
        boot = "[    0.000000] Linux version 6.8.0\n" + "".join(f"[{i:5d}.000000] x\n" for i in range(1, 6))
        log, _ = self.audit_log(f"{boot}[  900.000000] {self.FAULT}\n{boot}", code=0)
        self.assertEqual(([each["id"] for each in log["audit"]["problems"]], log["log"]["boots"]), (["past-errors"], 2))
        log, _ = self.audit_log(f"{boot}{boot}[  900.000000] {self.FAULT}\n", code=1)
        self.assertEqual([each["id"] for each in log["audit"]["problems"]], ["xid-fatal"])

    def test_a_log_without_a_message_of_the_kernel_is_not_ok(self):
        for text, reason in (("", "is empty"), ("-- No entries --\n", "none is a message of the kernel"), ("hello\nworld\n", "line 1 is \"hello\""),
                             ("Nov 20 03:12:44 n1 sshd[1]: x\n", "none is a message of the kernel")):
            _, errors = self.audit_log(text, code=3)
            self.assertIn(reason, errors)
            self.assertEqual(errors.count("\n"), 1)
        (self.dir / "kern.log.gz").write_bytes(b"\x1f\x8b\x08")
        for path in (str(self.dir), str(self.dir / "none"), str(self.dir / "kern.log.gz")):
            self.assertEqual(self.assay("audit", "--log", path).returncode, 2)
        self.assertEqual(self.assay("audit", "--log", "").returncode, 2)
        self.assertEqual(self.assay("audit", "--log", self.write("log", "x"), "--with-serials").returncode, 2)


if __name__ == "__main__":
    unittest.main()
