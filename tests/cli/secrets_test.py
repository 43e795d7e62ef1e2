"""Secrets in arguments, variables, labels, logs, imported files, host answers and the kernel's log appear in nothing
that assay prints or writes. Beside each secret stands a word that is none, which must arrive."""

import json
import os
import pathlib
import sys
import tarfile
import unittest

from assay_case import AssayCase

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from fake_machine import gpu, write_machine  # noqa: E402

LONG = "aB3dE6gH9jK2mN5pQ8sT1vW4xY7z"
HEX = "0123456789abcdef0123456789abcdef012345"
# Forty ways in which a secret stands in a text: {} is where, and the secret, which begins with its number.
FORMS = [(form, secret.format(f"{number:02}")) for number, (form, secret) in enumerate([
    ("--api-key={}", "h{}unter"), ("--api-key {}", "h{}unter"), ("--token {}", "h{}unter"), ("--token={}", "h{}unter"),
    ("--password {}", "h{}unter"), ("--client-secret={}", "h{}unter"), ("API_KEY={}", "h{}unter"),
    ("HF_TOKEN={}", "h{}unter"), ("WANDB_API_KEY={}", "h{}unter"), ("AWS_SECRET_ACCESS_KEY={}", "h{}unter/x+y"),
    ("PGPASSWORD={}", "h{}unter"), ("token={}", "Zq{}kfLw02"), ("key={}", "Zq{}kfLw02"), ("key: {}", "Zq{}kfLw02"),
    ("secret={}", "h{}unter"), ("secret: {}", "h{}unter"), ("password={}", "h{}unter"), ("passwd: {}", "h{}unter"),
    ("apiKey: '{}'", "h{}unter"), ('"token": "{}"', "Zq{}kfLw02"), ('"password": "{}"', "h{} unter"),
    ('"api_key":"{}"', "h{}unter"), ("Authorization: Bearer {}", "h{}unter"), ("authorization: Basic {}", "dXN{}lcjpw"),
    ("x-api-key: {}", "h{}unter"), ("sent Bearer {} there", "Zq{}kfLw02"), ("https://user:{}@host/x", "h{}unter"),
    ("https://{}@host", "h{}unter"), ("postgres://me:{}@db:5432/x", "h{}unter"), ("got {} back", "AKIA{}ABCDEFGHIJKLMN"),
    ("got {} back", "ghp_{}" + LONG), ("got {} back", "gho_{}" + LONG), ("got {} back", "github_pat_{}_" + LONG),
    ("got {} back", "hf_{}" + LONG), ("got {} back", "xoxb-{}-" + LONG), ("got {} back", "sk-ant-{}-" + LONG),
    ("got {} back", "AIza{}" + LONG), ("got {} back", "eyJ{}" + LONG + ".eyJ" + LONG + "." + LONG),
    ("wandb: key {}", "{}" + HEX), ("-----BEGIN RSA PRIVATE KEY-----{}-----END RSA PRIVATE KEY-----", "MII{}" + LONG)])]
WITNESS = "plain{}word"


def text_of(number, source):
    form, secret = FORMS[number]
    return WITNESS.format(source) + " " + form.format(secret)


def texts(source):
    """A text with each secret and the witness of its source."""
    return [text_of(number, source) for number in range(len(FORMS))]


class Secrets(AssayCase):
    def setUp(self):
        super().setUp()
        self.checked = set()
        self.arrived = ""

    def write(self, name, content):
        """What the test itself writes is not searched."""
        path = super().write(name, content)
        self.checked.add(path)
        return path

    def check(self, *words, code=None, env=None, timeout=60):
        """Runs assay and searches all that it printed and wrote."""
        done = self.assay(*words, env=env, timeout=timeout)
        if code is not None:
            self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}")
        self.search(" ".join(map(str, words[:3])), done.stdout + done.stderr)
        for path in self.dir.rglob("*"):
            if path in self.checked or not path.is_file():
                continue
            self.checked.add(path)
            if not path.name.endswith(("-wal", "-shm", ".db")):
                self.search(f"{words[0]}: {path.name}", path.read_bytes().decode("utf-8", "replace"))
        for path in self.dir.glob("*.db*"):
            self.search(f"{words[0]}: {path.name}", path.read_bytes().decode("latin-1"))
        return done

    def search(self, where, text):
        for form, secret in FORMS:
            for form_of_secret in {secret, json.dumps(secret)[1:-1], secret.replace("+", "&#43;")}:
                self.assertNotIn(form_of_secret, text, f"{where}: {form}")
        self.arrived += text

    def has_arrived(self, *sources):
        for source in sources:
            self.assertIn(WITNESS.format(source), self.arrived)

    def old_run(self, name="old", **more):
        """A run as a build without masks wrote it."""
        def record(number):
            return {"schema": 2, "key": f"gemm/m={number}", "family": "gemm", "status": "failed" if number else "ok",
                    "device": "cpu", "reason": text_of(number, "reason"), "log": "\n".join(texts("log")),
                    "labels": {f"note{number}": text_of(number, "label"), "api_key": "h77unter"},
                    "flags": [text_of(number, "flag")], "started": "2026-01-31T00:00:00Z",
                    "conditions": {"types": "f32"}, "ranks": [{"rank": 0, "host": "node-a", "device": "CPU", "uuid": "GPU-1"}],
                    "checks": [{"name": "c", "passed": number == 0, "value": 0, "limit": 0, "detail": [text_of(number, "check")]}],
                    "metrics": [{"name": "throughput", "value": 1e9, "unit": "FLOP/s", "better": "higher",
                                 "ci95": [1e9, 1e9]}]}
        # A key of wandb or in PEM is recognised by the text around it, so that it must be in one word with it.
        words = [word for text in texts("argv") for word in ([text] if "wandb:" in text or "-----" in text else text.split(" "))]
        return self.run_dir(*(record(number) for number in range(len(FORMS))), name=name, run={
            "schema": 2, "id": f"id-{name}", "started": "2026-01-31T00:00:00Z", "finished": "2026-01-31T01:00:00Z",
            "argv": ["assay", "run", *words], "labels": {f"note{n}": text for n, text in enumerate(texts("runlabel"))},
            "environment": {"hostnames": ["node-a"], "cpu": {"name": "CPU " + text_of(6, "cpu")}},
            "findings": [{"id": "swap", "severity": "warning", "seen": text, "effect": "e", "fix": "f"} for text in texts("finding")],
            **more})

    def test_the_search_finds_what_is_not_masked(self):
        for number, (_, secret) in enumerate(FORMS):
            with self.assertRaises(AssertionError):
                self.search("control", f"{secret} of {number}")
        self.assertEqual((len(FORMS), len({secret for _, secret in FORMS})), (40, 40))

    def test_measuring(self):
        labels = [word for number, text in enumerate(texts("label")) for word in ("--label", f"note{number}={text}")]
        variables = {f"DNNL_X{number}": text for number, text in enumerate(texts("variable"))}
        variables |= {"DNNL_API_TOKEN": FORMS[0][1], "MY_PASSWORD": FORMS[1][1], "HF_TOKEN": FORMS[2][1],
                      "HTTPS_PROXY": f"http://user:{FORMS[3][1]}@proxy"}
        plan = self.plan({"family": "gemm", "dtype": "f32", "m": 32, "n": 32, "k": 32},
                         protocol={"max_seconds": "20ms", "min_samples": 3})
        self.check("run", plan, "--device", "cpu", "--out", "out", *labels, "--label", f"password={FORMS[4][1]}",
                   "--label", f"key={FORMS[12][1]}", code=0, env=variables)
        self.check("report", "out", "--html", "out.html", "--md", "out.md", "--json=out.json", code=0)
        self.has_arrived("label", "variable")
        self.check("run", "--resume", "out", "--label", "password=h77unter", env=variables)
        self.check("bench", "gemm", "--set", "m=32", "--set", "n=32", "--set", "k=32", "--benchmark_out=bench.json",
                   f"--benchmark_context=note={text_of(11, 'context')}", env=variables)

    def test_a_case_whose_key_would_hold_a_secret_is_refused(self):
        plan = self.plan({"family": "dataloader", "data": "/x/password=h77unter"})
        done = self.check("run", plan, "--device", "cpu", "--out", "out")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertFalse((self.dir / "out").exists())

    def test_reports_packs_and_exports_of_old_runs(self):
        self.old_run()
        self.old_run("old2")
        self.write("f.json", {"schema": 1, "floors": [{
            "key": "gemm/*", "metric": "throughput", "unit": "FLOP/s", "at_least": 1e8, "protocol": {},
            "source": " ".join(texts("source")), "required": True}]})
        self.check("report", "old", "--html", "r.html", "--md", "r.md", "--json=r.json", "--floors", "f.json")
        self.check("report", "old", "old2", "--json")
        self.check("compare", "old", "old2", "--html", "c.html", "--md", "c.md", "--json=c.json")
        self.check("diagnose", "old", "--json=d.json")
        self.check("check", "old", "--floors", "f.json", "--json=k.json", "--junit", "k.xml")
        done = self.check("check", "old", "--floors", "f.json", "--pack", "p.tar")
        self.assertRegex(done.stderr, r"p\.tar: holds the names of 1 host \(node-a\), 1 UUID and 1600 lines of logs; "
                                      r"\d{3,} values are masked")
        self.check("check", "p.tar", "--json")
        for format in ("prometheus", "csv", "gbench", "bmf"):
            self.check("export", format, "old", "--out", f"export.{format}")
            self.check("export", format, "old", "--out", "-", code=0)
        self.check("project", "old", "--ranks", "8")
        self.check("floors", "learn", "old", "old2", "--out", "learnt.json")
        self.has_arrived("reason", "log", "flag", "argv", "runlabel", "cpu", "finding", "check", "source")
        names = tarfile.open(self.dir / "p.tar").getnames()
        self.assertIn("runs/1/old/records.jsonl", names)

    def test_imports_and_histories(self):
        self.write("g.json", {"context": {"date": "2026-01-31T13:00:00+01:00", "host_name": "box", "note": text_of(1, "context"),
                                          "db_password": "h77unter", "argv": texts("contexts")},
                              "benchmarks": [{"name": f"BM_{n}", "run_type": "iteration", "real_time": 1, "cpu_time": 1,
                                              "time_unit": "us", "iterations": 5, "error_occurred": True, "label": text,
                                              "error_message": text} for n, text in enumerate(texts("message"))]})
        rows = ["time,machine,case,metric,unit,better,value,commit,status,reason,fact.note,fact.api_key"]
        for night in range(3):
            for n, text in enumerate(texts("row")):
                cell = '"' + text.replace('"', '""') + '"'
                rows.append(f"2026-01-0{night + 1}T02:00:00Z,m1,{cell if n < 1 else f'c{n}'},speed,1/s,higher,{n + 1},"
                            f"abc,{'ok' if n % 2 else 'failed'},{cell},{'' if n else cell},h77unter")
        self.write("t.csv", "\n".join(rows) + "\n")
        self.write("l.txt", "".join(f"case{n} failed {text}\ncase{n}b 3 s lower {text}\n" for n, text in enumerate(texts("line"))))
        self.check("import", "gbench", "g.json", "--out", "g")
        self.check("import", "csv", "t.csv", "--out", "t", code=0)
        self.check("import", "lines", "l.txt", "--out", "l")
        self.check("import", "lines", "l.txt", "--metric", text_of(0, "metric"), "--out", "x")
        self.has_arrived("context", "message", "row", "line", "metric")
        self.write("env.json", {"schema": 1, "note": text_of(6, "env"), "db_password": "h77unter"})
        self.check("history", "add", "g", "t", "--store", "h.db", "--env", "env.json", code=0)
        for verb in (["check"], ["report", "--html", "h.html", "--json=h.json"], ["export", "--format", "jsonl"],
                     ["export", "--format", "csv", "--out", "e.csv"], ["export", "--format", "otava"], ["check", "--json"]):
            self.check("history", *verb, "--store", "h.db")
        self.check("history", "expect", "*", "--reason", " ".join(texts("why")), "--store", "h.db")
        self.check("history", "mute", "*", "--until", "2026-12-31", "--reason", " ".join(texts("why")), "--store", "h.db")
        self.check("history", "report", "--store", "h.db", "--json")
        self.has_arrived("env", "why")

    def test_commands_and_errors(self):
        command = "; ".join(f"echo '{text}'" for text in texts("side") if "'" not in text)
        self.check("ab", "--a", command, "--b", command + " ", "--budget", "200ms", "--json=ab.json")
        self.check("ab", "--a", "true", "--b", command + " >&2; exit 1", "--budget", "1s")
        self.has_arrived("side")
        for number in range(len(FORMS)):
            word = text_of(number, "word")
            self.check("report", word)
            self.check("run", "--plan" if number % 2 else word, word)
            self.check(*FORMS[number][0].format(FORMS[number][1]).split(" "))
        for verb in ("ab", "accept", "audit", "bench", "check", "compare", "crosscheck", "diagnose", "env", "estimate",
                     "export", "floors", "gate", "history", "import", "list", "project", "reference", "report", "run", "size"):
            self.check(verb, f"--api-key={FORMS[0][1]}")
        self.has_arrived("word")

    def test_the_machine(self):
        machine = write_machine(self.dir / "machine", gpus=2)
        machine.kernel_says(*(f"NVRM: Xid (PCI:{gpu(n % 2)[:-2]}): 79, pid=1, name={text}" for n, text in enumerate(texts("kernel"))))
        machine.write("proc/cmdline", "iommu=pt " + " ".join(texts("cmdline")))
        machine.write("etc/nccl.conf", "".join(f"NCCL_X{n}={text}\n" for n, text in enumerate(texts("conf"))))
        self.checked.update((self.dir / "machine").rglob("*"))
        root = {"ASSAY_ROOT": str(self.dir / "machine")}
        self.check("audit", env=root)
        self.check("audit", "--json=a.json", env=root, code=1)
        self.check("env", "--json", env=root)
        self.check("gate", "--budget", "2s", "--json=gate.json", env={**root, "ASSAY_CACHE": str(self.dir / "cache")})
        self.check("gate", "--budget", "2s", "--exit-style", "nagios", env={**root, "ASSAY_CACHE": str(self.dir / "cache")})
        self.check("audit", "--log", self.write("k.log", "".join(
            f"[ {n}.5] NVRM: Xid (PCI:{gpu(0)[:-2]}): 79, {text}\n" for n, text in enumerate(texts("sent")))), "--json=sent.json")
        self.has_arrived("kernel", "sent")
        self.write("levels/product.json", {"schema": 1, "name": "p", "cases": [{"family": "gemm", "dtype": "f32", "m": 32, "n": 32, "k": 32}],
                                           "protocol": {"max_seconds": "20ms", "min_samples": 3}})
        level = self.write("levels/tiny.json", {"schema": 1, "host": ["product"], "training": []})
        done = self.check("accept", "--device", "cpu", "--level", level, "--out", "acc", env=root, code=1)
        self.assertRegex(done.stderr, r"evidence/\S+\.tar: holds the names of [12] hosts? \(.*\), \d+ UUIDs? and "
                                      r"\d+ lines of logs; \d\d+ values are masked")

    def test_hosts(self):
        answer = {"schema": 1, "audit": {"facts": {"driver": "570"}, "events": [], "problems": [
            {"id": "swap", "severity": "warning", "device": "d", "seen": text, "meaning": "m", "fix": "f"} for text in texts("seen")]}}
        self.write("answer.json", answer)
        self.write("banner.txt", "\n".join(texts("banner")) + "\n")
        self.write("errors.txt", "\n".join(texts("stderr")) + "\n")
        rsh = self.write("rsh", f"#!/bin/sh\nfor last; do :; done\ncase \"$*\" in *a2*) cat {self.dir}/errors.txt >&2; exit 255;; esac\n"
                                f"cat {self.dir}/banner.txt {self.dir}/answer.json\n")
        rsh.chmod(0o755)
        self.write("hosts", "".join(f"# {text}\n" for text in texts("note")) + "a1\na2\n")
        self.check("audit", "--hostfile", "hosts", env={"ASSAY_RSH": str(rsh)})
        self.check("audit", "--hostfile", "hosts", "--json=hosts.json", env={"ASSAY_RSH": str(rsh)})
        self.has_arrived("seen", "banner", "stderr")
        for number in range(len(FORMS)):
            self.check("audit", "--hostfile", self.write("bad", text_of(number, "host") + " slots=x\n"))


if __name__ == "__main__":
    unittest.main()
