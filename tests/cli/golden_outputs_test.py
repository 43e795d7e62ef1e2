"""Golden outputs: the audit, the gate, an acceptance and every help text say what they have always said. A change that adds
a member to a JSON document adds a line to tests/golden/added.txt; what is changed on purpose is written anew by
  ASSAY=build/release/assay python3 tests/cli/golden_outputs_test.py --rewrite [CLASS]
"""

import concurrent.futures
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import goldens  # noqa: E402
from acceptances import ACCEPTANCES, write_acceptance  # noqa: E402
from assay_case import AssayCase  # noqa: E402
from audit_test import FAULTS, GPU, WARNINGS, reports, says, xid  # noqa: E402
from fake_machine import write_machine  # noqa: E402

BATCH = 4   # commands at a time: most of their time is waiting
OURS = ("PATH", "HOME", "ASAN_OPTIONS", "UBSAN_OPTIONS")   # variables that the program may see


class GoldenCase(AssayCase):
    def setUp(self):
        super().setUp()
        self.dir = self.dir.resolve()
        (self.dir / "tmp").mkdir()
        self.goldens = goldens.Goldens(self, {str(self.dir): "<dir>"})

    def ask(self, *words, **variables):
        """Exit code, output and errors of a command that sees none of this machine's settings."""
        done = subprocess.run([os.path.abspath(self.binary), *map(str, words)], cwd=self.dir, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120,
                              env={**{name: os.environ[name] for name in OURS if name in os.environ}, "LC_ALL": "C",
                                   "TMPDIR": str(self.dir / "tmp"), "ASSAY_CACHE": str(self.dir / "cache"), **variables})
        return done.returncode, done.stdout, done.stderr

    def batch(self, function, items):
        with concurrent.futures.ThreadPoolExecutor(BATCH) as pool:
            return list(pool.map(function, items))


class Repaired:
    """A healthy machine that is what it was after each change, since writing and removing hundreds of files takes long."""

    def __init__(self, folder):
        self.machine = write_machine(folder)
        self.known = copy.deepcopy((self.machine.devices, self.machine.space))
        self.healthy = self.content()

    def content(self):
        """Folders (None), targets of links, contents of files."""
        return {path: os.readlink(path) if path.is_symlink() else None if path.is_dir() else path.read_bytes()
                for path in sorted(self.machine.root.rglob("*"))}

    def __enter__(self):
        return self.machine

    def __exit__(self, *_):
        now = self.content()
        for path in sorted(now, reverse=True):
            if path not in self.healthy or type(now[path]) is not type(self.healthy[path]):
                path.rmdir() if now.pop(path) is None else path.unlink()
        for path, content in self.healthy.items():
            if path in now and now[path] == content:
                continue
            if content is None:
                path.mkdir()
            elif isinstance(content, bytes):
                path.write_bytes(content)
            else:
                path.unlink(missing_ok=True)
                path.symlink_to(content)
        self.machine.devices, self.machine.space = copy.deepcopy(self.known)


def differences(healthy, other, path=""):
    """What a document says otherwise than another one: its values by their paths."""
    if isinstance(healthy, dict) and isinstance(other, dict):
        return {where: value for name in [*healthy, *(name for name in other if name not in healthy)]
                for where, value in differences(healthy.get(name, "(absent)"), other.get(name, "(absent)"),
                                                f"{path}/{name}").items()}
    if isinstance(healthy, list) and isinstance(other, list) and len(healthy) == len(other):
        return {where: value for place, pair in enumerate(zip(healthy, other))
                for where, value in differences(*pair, f"{path}/{place}").items()}
    return {} if healthy == other else {path: other}


class Audit(GoldenCase):
    def audit(self, machine, *words):
        return self.ask("audit", *words, ASSAY_ROOT=str(machine.root))

    def document(self, machine):
        code, out, errors = self.audit(machine, "--json")
        self.assertEqual(errors, "")
        document = self.goldens.json("audit", out)
        return code, {name: "<build>" if name in ("assay", "libraries") else value for name, value in document.items()}

    def test_machines_with_one_fault(self):
        code, healthy = self.document(write_machine(self.dir / "healthy"))
        usual = healthy["audit"]["problems"]
        found = {"healthy": {"exit": code, "document": healthy}}
        table = [row for row in FAULTS + WARNINGS if row[1] != "/volume/1999"]   # that machine has 2000 mounts
        machine = Repaired(self.dir / "machine")
        for name, device, change in table:
            with machine as broken:
                change(broken)
                code, document = self.document(broken)
            audit, spoilers = document["audit"], differences(healthy["findings"], document["findings"], "/findings")
            self.assertEqual(list(audit), list(healthy["audit"]))
            found.setdefault(f"{name} {device}".strip(), []).append({
                "exit": code, "problems": [each for each in audit["problems"] if each not in usual],
                **({"without": [each["id"] for each in usual if each not in audit["problems"]]}
                   if any(each not in audit["problems"] for each in usual) else {}),
                **({"events": audit["events"]} if audit["events"] else {}),
                **differences(healthy["audit"]["facts"], audit["facts"], "/facts"), **spoilers})
        self.goldens.check_added("audit")
        self.goldens.check("audit.json", found)

    def test_texts(self):
        machine = write_machine(self.dir / "healthy")
        text = "$ healthy\n%s\n" % self.audit(machine)[1]
        for change in (xid(79, "GPU has fallen off the bus."), reports(ecc_uncorrected=3, temperature=91),
                       says("Out of memory: Killed process 77 (python) total-vm:1kB"), lambda m: m.statfs("/scratch", free=0)):
            change(machine)
        code, out, _ = self.audit(machine)
        text = re.sub(r"(?m)^(  (libraries|assay) +).*", r"\1<build>", text + f"$ several problems\n{out}exit {code}\n")
        self.goldens.check("audit.txt", self.goldens.text(text))


class Fleet(GoldenCase):
    """The audit of several hosts, whose answers a script prints in place of the remote shell."""

    def setUp(self):
        super().setUp()
        self.rsh = self.write("rsh", f"""#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift 2; done
cat {self.dir}/$1.json 2>/dev/null || {{ echo "connect to host $1: No route to host" >&2; exit 255; }}
""")
        self.rsh.chmod(0o755)

    def host(self, name, *changes):
        machine = write_machine(self.dir / f"machine-{name}")
        for change in changes:
            change(machine)
        self.write(f"{name}.json", self.ask("audit", "--json", ASSAY_ROOT=str(machine.root))[1])

    def test_a_fleet(self):
        for name in ("a1", "a2", "a3"):
            self.host(name)
        self.host("bad", xid(79, "GPU has fallen off the bus."), reports(temperature=91))
        self.host("other", lambda m: m.write("proc/sys/kernel/osrelease", "6.8.0-40-generic").remove_gpu(2))
        self.write("text.json", "assay: command not found\n")
        self.write("empty.json", {"schema": 1})
        # What agents of other builds may send: members that are unknown, and others that are missing.
        self.write("forms.json", {"schema": 1, "audit": {"problems": [
            {"id": "from-later", "severity": "terrible", "area": "GPU", "device": GPU, "seen": "x", "meaning": "y", "fix": "z"},
            {"id": "short", "severity": "fault"}], "facts": {"driver": 7}}})
        self.write("hosts", "\n".join(["a1", "a2", "a3", "bad", "other", "text", "empty", "forms", "gone"]) + "\n")
        words = ("audit", "--hostfile", "hosts")
        code, out, errors = self.ask(*words, "--json", ASSAY_RSH=str(self.rsh))
        self.assertEqual(errors, "")
        found = {"exit": code, "document": self.goldens.json("fleet", out)}
        self.goldens.check_added("fleet")
        code, out, _ = self.ask(*words, ASSAY_RSH=str(self.rsh))
        self.goldens.check("fleet.json", found)
        self.goldens.check("fleet.txt", self.goldens.text(f"{out}exit {code}\n"))


class Gate(GoldenCase):
    """What each problem that can be injected makes of the verdict, in a machine of files that the gate writes itself."""

    def gate(self, *words):
        """The host's name differs from gate to gate, since only one runs on a host at a time."""
        name = f"golden-{os.getpid()}-{abs(hash(words))}"
        code, out, errors = self.ask("gate", *words, ASSAY_HOST=name)
        self.assertEqual(errors, "")
        text = self.goldens.text(out.replace(name, "<host>"))
        return code, re.sub(r"(?m)^[\d.]+ m?s(?= of )|(?<= seconds=)[\d.]+", "<seconds>", text)

    def listed(self):
        return json.loads(self.gate("--list", "--json")[1])["codes"]

    def test_every_problem_of_files(self):
        names = [code["id"] for code in self.listed() if code["injectable"] and code["test"] == "audit"
                 and not code["id"].startswith("audit-")]
        self.assertGreaterEqual(len(names), 80)

        def injected(name):
            code, out = self.gate("--inject", name, "--json")
            document = self.goldens.json("gate", out)
            document["seconds"] = "<seconds>"
            for test in document["tests"]:
                test["seconds"] = "<seconds>"
            again, text = self.gate("--inject", name)
            self.assertEqual(again, code)
            return {"exit": code, **document}, f"$ --inject {name}\n{text}"

        found = self.batch(injected, names)
        self.goldens.check_added("gate")
        self.goldens.check("gate.json", dict(zip(names, (document for document, _ in found))))
        self.goldens.check("gate.txt", "\n".join(text for _, text in found))

    def test_every_problem_of_tests(self):
        """Those that need no figure: wrong and slow ones take what a busy machine may not give, and are in gate_test.py."""
        names = [code["id"] for code in self.listed() if code["injectable"] and not code["test"].startswith("gpu-")
                 and (code["test"] != "audit" or code["id"].startswith("audit-"))
                 and (code["test"] == "disk" or not code["id"].startswith(("wrong-", "slow-")))]
        self.assertGreaterEqual(len(names), 8)

        def injected(name):
            """Its finding; what hangs takes its whole budget."""
            code, out = self.gate("--inject", name, "--json", "--budget", "8s" if name.endswith("-hung") else "60s")
            document = self.goldens.json("gate", out)
            for each in document["findings"]:
                text = re.sub("assay-gate-[^/]*", "assay-gate", each["text"])
                each["text"] = re.sub(r"[\d.]+(e[-+]\d+)?", "N", text)
            return {"exit": code, "verdict": document["verdict"], "findings": document["findings"],
                    "states": [(test["test"], test["state"]) for test in document["tests"]]}

        self.goldens.check("gate-tests.json", dict(zip(names, self.batch(injected, names))))

    def test_the_list(self):
        self.goldens.check("gate-list.json", self.goldens.json("gate-list", self.gate("--list", "--json")[1]))
        self.goldens.check_added("gate-list")
        self.goldens.check("gate-list.txt", self.gate("--list")[1])

    def test_styles(self):
        text = ""
        for style in ("npd", "nagios"):
            for words in (("--inject", "ecc-uncorrected"), ("--inject", "gpu-hot"), ("--inject", "reboot-required"),
                          ("--inject", "ecc-uncorrected", "--gpus", "1"), ("--inject", "xid-unknown", "--gpus", "0,5"),
                          ("--inject", "gpu-hot", "--budget", "50ms"), ("--floors", "nowhere.json")):
                code, out = self.gate(*words, "--exit-style", style)
                text += f"$ --exit-style {style} {' '.join(words)}\n{out}exit {code}\n"
        self.goldens.check("gate-styles.txt", text)


class Accept(GoldenCase):
    """Finished acceptances of several hosts, which are judged again."""

    def judged(self, name):
        folder = self.dir / name
        words, out = write_acceptance(folder, name)
        code, text, errors = self.ask(*words, ASSAY_RSH="/bin/false")
        self.assertNotRegex(errors, "assay: (host|pairs|collectives)", "something ran")
        document = self.goldens.json("accept", (out / "accept.json").read_text().replace(str(folder), "<dir>"))
        document["seconds"] = "<seconds>"
        kept = {f"{file.name}: {name}": text for file in sorted(out.glob("evidence/*")) for name, text in self.members(file)}
        text = re.sub(r"\b[\d.]+ m?s\b", "<seconds>", text.replace(str(folder), "<dir>"))
        return ({"exit": code, **document, **({"evidence": kept} if kept else {})},
                f"$ {name}\n{text}exit {code}\n", f"# {name}\n{(out / 'accept.csv').read_text()}")

    def members(self, archive):
        """What is sent to a vendor: the lines of short texts; of the records only how many there are."""
        with tarfile.open(archive) as members:
            for member in members.getmembers():
                text = members.extractfile(member).read().decode()
                yield member.name, len(text.splitlines()) if member.name.endswith(".jsonl") else self.goldens.text(text).splitlines()

    def test_every_acceptance(self):
        found = self.batch(self.judged, ACCEPTANCES)
        self.goldens.check_added("accept")
        documents = dict(zip(ACCEPTANCES, (document for document, _, _ in found)))
        usual = {check["name"]: check for check in documents["healthy"]["hosts"][0]["checks"]}
        for name, document in documents.items():
            for host in document["hosts"] if name != "healthy" else ():
                host["checks"] = [check["name"] if check == usual.get(check["name"]) else check for check in host["checks"]]
        self.goldens.check("accept.json", documents)
        self.goldens.check("accept.txt", self.goldens.text("\n".join(text for _, text, _ in found)))
        self.goldens.check("accept.csv", self.goldens.text("\n".join(table for name, (_, _, table) in zip(ACCEPTANCES, found)
                                                                     if name in ("floors", "slow-host", "audit"))))


def subcommands(text):
    """The commands that a help text lists, in groups."""
    groups = re.findall(r"(?ms)^(?:Measure|Judge|Understand|Plan|Files|Subcommands):\n(.*?)(?:\n\n|\Z)", text)
    return [name for group in groups for name in re.findall(r"(?m)^  ([a-z][\w-]*) ", group)]


class Help(GoldenCase):
    # Started by other commands, and listed in no help.
    HIDDEN = ("worker", "agent", "each-host", "remote-shell", "gate-test")

    @staticmethod
    def plain(text):
        """Without what versions of CLI11 and Google Benchmark lay out differently."""
        text = re.sub(r"\n {20,}", " ", text)   # descriptions that begin below their flag
        lines = [re.sub(r" \[(\S*)\](?= |$)", r"=\1", line) if line.startswith("  -") else line for line in text.splitlines()]
        lines = [re.sub(r"(?<=\S) +", " ", line).rstrip() for line in lines if "[--benchmark_" not in line]
        return "".join(line + "\n" for line in lines if line)

    def help(self, *words):
        code, out, errors = self.ask(*words, "--help")
        self.assertEqual((code, errors), (0, ""), words)
        return [(words, self.plain(out)), *(each for name in subcommands(out) for each in self.help(*words, name))]

    def test_every_help_text(self):
        texts = [*self.help(), *(each for name in self.HIDDEN for each in self.help(name))]
        self.assertGreaterEqual(len(texts), 40)
        self.goldens.check("help.txt", "\n".join(f"$ assay {' '.join([*words, '--help'])}\n{text}" for words, text in texts))


if __name__ == "__main__":
    unittest.main(argv=[word for word in sys.argv if word != "--rewrite"])
