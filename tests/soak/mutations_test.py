"""Mutated files for every command that reads files: each ends by itself with an exit code of 0 to 4, within its time and
memory, with plain text and no raw text of an exception. The whole files are read.
usage: mutations_test.py COUNT [SEED [READER]]"""
import collections
import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "support"))
from acceptances import write_acceptance  # noqa: E402
from fake_machine import FakeMachine  # noqa: E402
from mutations import mutated  # noqa: E402

ASSAY = os.environ["ASSAY"]
COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 200
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
ONLY = sys.argv[3] if len(sys.argv) > 3 else ""
SECONDS = 60
MEMORY = 512 << 20
RAW = re.compile(r"terminate called|what\(\)|\[json\.exception|filesystem error|std::|basic_string|vector::|_M_|map::at|stoi|stod|"
                 r"bad_(alloc|function|optional|variant|cast)|Sanitizer|core dumped|Assertion|regex_error|locale::facet|__[a-z]|"
                 r"^assay: not JSON", re.MULTILINE)
CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


class Reader:
    """A command, the files that it reads below its folder, and those of them that are changed. `every`: takes its turn in one
    of so many rounds. `whole`: it takes the files as they are."""

    def __init__(self, name, words, files, change=None, env=None, every=1, whole=True):
        self.name, self.words, self.files, self.env, self.every, self.whole = name, words, files, env or {}, every, whole
        self.change = [path for path in files if re.search(change or ".", path)]


def run_files(name, place):
    """The files of a finished run, to be put at `place`."""
    folder = TESTS / "runs" / name
    return {f"{place}/{part}": (folder / part).read_bytes() for part in ("run.json", "records.jsonl")}


def seeds(target):
    return {path.name: path.read_bytes() for path in sorted((TESTS / "fuzz/seeds" / target).iterdir())}


def files_below(folder, place):
    """Links keep their targets, as text."""
    return {f"{place}/{path.relative_to(folder)}": os.readlink(path) if path.is_symlink() else path.read_bytes()
            for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_symlink() or path.is_file()}


def readers(scratch):
    configs, old = TESTS.parent / "configs", TESTS / "old"
    runs = ["micro-base-1", "training-1", "gpu", "fleet", "ranks", "each-host", "hostile", "cluster", "fault-hang"]
    floors = {"f.json": (TESTS / "runs/floors/pass.json").read_bytes()}
    prices = {"p.csv": (TESTS / "runs/prices/own.csv").read_bytes()}
    model = {"config.json": (TESTS / "models/llama-3.2-1b/config.json").read_bytes()}
    sheet = {"h100.json": (configs / "hardware/h100-sxm.json").read_bytes()}
    store = {"h.db": (old / "history.db").read_bytes()}
    for name in runs:
        run = run_files(name, "r")
        yield Reader(f"report {name}", ["report", "r", "--json"], run)
        yield Reader(f"report page {name}", ["report", "r", "--html", "x.html", "--md", "x.md", "--nccl-table"], run, every=4)
    base = run_files("micro-base-1", "a")
    yield Reader("compare", ["compare", "--base", "a", "--head", "b", "--json"], {**base, **run_files("micro-head-1", "b")}, "^b")
    yield Reader("report prices", ["report", "a", "--prices", "p.csv", "--json"], {**base, **prices}, "p.csv")
    yield Reader("report floors", ["report", "a", "--floors", "f.json"], {**base, **floors}, "f.json")
    yield Reader("check", ["check", "a", "--floors", "f.json", "--json", "--junit", "x.xml"], {**base, **floors})
    yield Reader("check and pack", ["check", "a", "--floors", "f.json", "--pack", "p.tar"], {**base, **floors}, "^a")
    for name in ("passes", "fails", "unfinished"):
        yield Reader(f"check pack {name}", ["check", "p.tar", "--json"], {"p.tar": (old / "pack" / f"{name}.tar").read_bytes()})
    yield Reader("diagnose", ["diagnose", "r", "--json"], run_files("training-1", "r"))
    yield Reader("diagnose rules", ["diagnose", "r", "--rules", "rules.json", "--json"],
                 {**run_files("training-1", "r"), "rules.json": (configs / "diagnosis/rules.json").read_bytes()}, "rules")
    for form in ("prometheus", "csv", "gbench", "bmf"):
        yield Reader(f"export {form}", ["export", form, "a", "--out", "-"], base)
    yield Reader("project", ["project", "r", "--ranks", "8,64", "--json"], run_files("ranks", "r"))
    yield Reader("floors learn", ["floors", "learn", "a", "b", "c", "--out", "x.json", "--same-machine"], {
        **base, **run_files("micro-base-2", "b"), **run_files("micro-base-3", "c")}, "^b")
    yield Reader("reference", ["reference", "add", "a", "--name", "mine"], {**base, "configs/hardware/l4.json": sheet["h100.json"]}, "^a",
                 {"ASSAY_CONFIGS": "configs"})

    yield Reader("history add", ["history", "add", "runs", "--store", "h.db"],
                 {**run_files("micro-base-1", "runs/1"), **run_files("micro-head-1", "runs/2"), **store}, "runs/1")
    yield Reader("history add env", ["history", "add", "a", "--store", "n.db", "--env", "env.json"],
                 {**base, "env.json": json.dumps(json.loads(base["a/run.json"])["environment"]).encode()}, "env")
    for words in (["check", "--json"], ["check", "--again"], ["report", "--md", "-"], ["export", "--format", "csv"],
                  ["export", "--format", "jsonl"], ["export", "--format", "otava"]):
        yield Reader(f"history {' '.join(words)}", ["history", *words, "--store", "h.db"], store)
    yield Reader("history add to", ["history", "add", "a", "--store", "h.db"], {**base, **store}, "h.db")
    yield Reader("history merge", ["history", "store", "merge", "other.db", "--store", "h.db"], {**store, "other.db": store["h.db"]},
                 "other")
    yield Reader("history salvage", ["history", "store", "salvage", "h.db", "--out", "s.db"], store)
    yield Reader("history compact", ["history", "store", "compact", "--keep", "10d", "--store", "h.db"], store)

    formats = {"gbench": ["gbench", "gbench-aggregates"], "pytest-benchmark": ["pytest"], "nccl-tests": ["nccl-table", "nccl-json",
               "nccl-log"], "rccl-tests": ["nccl-table"], "superbench": ["superbench"], "nvbandwidth": ["nvbandwidth"],
               "bmf": ["bmf"], "asv": ["asv"], "hyperfine": ["hyperfine"], "otava": ["otava"], "csv": ["csv"], "lines": ["lines"]}
    foreign = seeds("foreign")
    for form, names in formats.items():
        for name in names:
            yield Reader(f"import {form} {name}", ["import", form, "f", "--out", "o"], {"f": foreign[name]})
    results, rules = foreign["superbench-rules"].split(b"\n---\n", 1)
    yield Reader("import rules", ["import", "superbench", "f", "--rules", "rules.yaml", "--out", "o"],
                 {"f": results, "rules.yaml": rules}, "rules")
    yield Reader("import metric", ["import", "lines", "f", "--metric", "loss", "--better", "lower", "--out", "o"],
                 {"f": b"step 1 loss: 3.5\n{\"loss\": 2.5}\nloss=1\n"})
    for name, content in seeds("kernel_log").items():
        yield Reader(f"audit log {name}", ["audit", "--log", "kern.log", "--json"], {"kern.log": content}, every=3, whole=False)

    machine = files_below(FakeMachine(scratch / "machine").root, "m")
    root = {"ASSAY_ROOT": "m"}
    for name, content in seeds("expectation").items():
        for command in ("audit", "env"):
            yield Reader(f"{command} expect {name}", [command, "--expect", "e.json", "--json"], {"e.json": content, **machine},
                         "^e.json", root, every=3, whole=False)
    yield Reader("audit", ["audit", "--json"], machine, env=root)
    yield Reader("env", ["env", "--json"], machine, env=root)
    yield Reader("gate", ["gate", "--budget", "1s", "--json"], machine, env={**root, "ASSAY_CACHE": "cache"}, every=10)
    yield Reader("gate floors", ["gate", "--budget", "1s", "--json", "--floors", "f.json"], {**machine, **floors}, "^f.json",
                 {**root, "ASSAY_CACHE": "cache"}, every=3)
    yield Reader("gate policy", ["gate", "--budget", "1s", "--json", "--policy", "p.json"],
                 {"p.json": b'{"nic-down":"drain","suspect":{"times":3,"within":"7d","then":"drain"},"at_most":"5% in 1h"}', **machine},
                 "^p.json", {**root, "ASSAY_CACHE": "cache"}, every=3)
    yield Reader("hosts", ["run", "launch", "--hostfile", "hosts", "--ranks", "2", "--dry-run"],
                 {"hosts": b"# two\nn[1-4] slots=8\n10.0.0.1:4\n[fe80::1]:2\nlocalhost\n"})
    yield Reader("audit hosts", ["audit", "--hostfile", "hosts", "--timeout", "1s"], {"hosts": b"n1\nlocalhost slots=2\n"},
                 env={**root, "ASSAY_RSH": "/bin/false"}, every=10)

    for name, content in seeds("plan").items():
        yield Reader(f"plan {name}", ["run", "./p.json", "--dry-run", "--device", "cpu"], {"p.json": content}, every=2, whole=False)
    plan = {"schema": 1, "name": "p", "cases": [{"family": "gemm", "m": 64, "n": 64, "k": 64}], "protocol": {
        "max_seconds": "10ms", "warmup_seconds": "1ms", "min_samples": 3}}
    (scratch / "p.json").write_text(json.dumps(plan))
    done = subprocess.run([ASSAY, "run", "./p.json", "--device", "cpu", "--out", "r"], cwd=scratch,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    yield Reader("resume", ["run", "--resume", "r", "--timeout", "1"], files_below(scratch / "r", "r"), "run.json|records.jsonl", every=5)
    for name, content in seeds("model").items():
        yield Reader(f"estimate {name}", ["estimate", "./config.json", "--set", "micro_batch=1,seq=128", "--json"],
                     {"config.json": content}, every=2, whole=False)
    yield Reader("estimate hardware", ["estimate", "./config.json", "--hardware", "./h100.json", "--json"], {**model, **sheet}, "h100")
    size = ["size", "./config.json", "--tokens", "1e9", "--count", "8", "--hardware", "./h100.json", "--json"]
    yield Reader("size", size, {**model, **sheet}, every=2)
    yield Reader("size prices", [*size, "--prices", "p.csv"], {**model, **sheet, **prices}, "p.csv")
    yield Reader("size from", [*size, "--from", "r"], {**model, **sheet, **run_files("training-1", "r")}, "^r", every=2)

    plans = {"product.json": b'{"schema":1,"name":"p","cases":[{"family":"gemm","m":64,"n":64,"k":64}]}',
             "fleet.json": (configs / "floors/fleet.json").read_bytes()}
    level = {"level.json": b'{"schema":1,"host":["product"],"pair_share":"60%","required":["host"],"fleet":"fleet"}'}
    yield Reader("accept level", ["accept", "--device", "cpu", "--level", "level.json", "--dry-run"], {**plans, **level})
    for name in ("healthy", "audit", "slow-sender", "floors"):
        folder = scratch / name
        words, _ = write_acceptance(folder, name)
        # The state names files by their whole paths.
        yield Reader(f"accept {name}", [*words[:-1], "out", "--json"], files_below(folder / "out", "out"), None,
                     {"ASSAY_RSH": "/bin/false", "ASSAY_LAUNCH_LIMIT": "2", **root}, every=2)
    hosts = [{"host": host, "state": "pass"} for host in "abc"]
    table = {"accept.json": json.dumps({"schema": 1, "verdict": "pass", "hosts": hosts}).encode()}
    accepted = {f"{side}/{path}": content for side in ("base", "head")
                for path, content in {**files_below(scratch / "healthy/out", "."), **table}.items()}
    accepted = {path.replace("/./", "/"): content for path, content in accepted.items()}
    yield Reader("compare acceptances", ["compare", "--base", "base", "--head", "head", "--json"], accepted,
                 "^head/(accept|audit|state|host/)")
    yield Reader("ab", ["ab", "--a", "cat a", "--b", "cat b", "--budget", "300ms", "--json"],
                 {"a": b"solve 2 s lower\n", "b": b"solve 2.5 s lower\n"}, "^b", every=10)
    yield Reader("list", ["list", "hardware", "--json"], files_below(configs, "configs"), "hardware/l4", {"ASSAY_CONFIGS": "configs"},
                 every=5)


class Mutations(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="assay-test-")
        self.addCleanup(folder.cleanup)
        self.scratch = pathlib.Path(folder.name)
        resource.setrlimit(resource.RLIMIT_AS, (16 << 30, resource.getrlimit(resource.RLIMIT_AS)[1]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        self.codes, self.largest, self.slowest, self.problems = collections.Counter(), (0, ""), (0.0, ""), []

    def lay_out(self, folder, reader, changes):
        folder.mkdir()
        for path, content in {**reader.files, **changes}.items():
            path = folder / path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(content) if isinstance(content, str) else path.write_bytes(content)

    def run_it(self, folder, reader):
        """The exit code, what it printed, its seconds, and its peak memory in bytes."""
        environment = {**os.environ, "HOME": str(folder), "TMPDIR": str(folder), "ASSAY_HOST": f"mutations-{os.getpid()}", **{
            name: str(folder / value) if name in ("ASSAY_ROOT", "ASSAY_CACHE", "ASSAY_CONFIGS") else value
            for name, value in reader.env.items()}}
        begin = time.monotonic()
        with open(folder / ".out", "wb+") as out, open(folder / ".err", "wb+") as err:
            process = subprocess.Popen([ASSAY, *reader.words], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=err, start_new_session=True)
            signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
            signal.alarm(SECONDS)
            status, usage = os.wait4(process.pid, 0)[1:]
            signal.alarm(0)
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0), err.seek(0)
            return process.returncode, out.read(), err.read(), time.monotonic() - begin, usage.ru_maxrss << 10

    def problem(self, reader, changes, code, out, err, seconds, memory):
        """What is wrong with this ending; None if nothing is."""
        try:
            texts = [out.decode(), err.decode()]
        except UnicodeDecodeError as error:
            return f"prints what is not UTF-8: {error}"
        raw = [found.group() for found in map(RAW.search, texts[1:]) if found]
        # What is for programs may hold anything.
        shown = texts[1:] if "--json" in reader.words or "export" in reader.words else texts
        control = [repr(found.group()) for found in map(CONTROL.search, shown) if found]
        if code not in range(5):
            return f"ended with {code} after {seconds:.1f} s"
        if raw or control:
            return f"prints {raw or control}"
        if memory > MEMORY:
            return f"took {memory >> 20} MiB"
        if code in (2, 4) and not texts[1].strip():
            return f"says nothing with exit code {code}"
        if code in (2, 4) and changes and not any(pathlib.Path(path).stem in "".join(texts) for path in changes):
            return f"does not name {', '.join(changes)}"
        if len(texts[1].splitlines()) > 200:
            return f"prints {len(texts[1].splitlines())} lines of errors"
        if "--json" in reader.words and texts[0]:
            try:
                json.loads(texts[0])
            except ValueError as error:
                return f"prints what is not JSON: {error}"
        return None

    def once(self, reader, changes):
        """Runs it in a fresh folder; the exit code. What is wrong is kept, with its files."""
        folder = self.scratch / "here"
        self.lay_out(folder, reader, changes)
        ended = self.run_it(folder, reader)
        problem = self.problem(reader, changes, *ended)
        if not changes and not problem and reader.whole and ended[0] not in (0, 1, 3):
            problem = f"does not take whole files: exit code {ended[0]}"
        self.codes[ended[0]] += 1
        self.slowest = max(self.slowest, (ended[3], reader.name))
        self.largest = max(self.largest, (ended[4], reader.name))
        if problem:
            kept = tempfile.mkdtemp(prefix="assay-mutation-")
            shutil.copytree(folder, kept, symlinks=True, dirs_exist_ok=True)
            self.problems.append(f"{reader.name}: {problem}\n  cd {kept} && assay {' '.join(reader.words)}   # changed: "
                                 f"{', '.join(changes) or 'nothing'}; {reader.env}\n  {ended[2][-300:].decode(errors='replace')}")
            print(self.problems[-1], flush=True)
        shutil.rmtree(folder)

    def test_whole_files_are_read(self):
        for reader in readers(self.scratch):
            if ONLY in reader.name and (reader.every == 1 or COUNT > 1000):
                self.once(reader, {})
        self.assertFalse(self.problems)

    def test_every_command_that_reads_files(self):
        chance = random.Random(SEED)
        all_readers = [reader for reader in readers(self.scratch) if ONLY in reader.name]
        others = [content for reader in all_readers for path, content in reader.files.items()
                  if path in reader.change and isinstance(content, bytes)]
        turn, done, begin = 0, 0, time.monotonic()
        order = list(all_readers)
        chance.shuffle(order)
        while done < COUNT:
            for number, reader in enumerate(order):
                if done == COUNT:
                    break
                if (turn + number) % reader.every and not ONLY:
                    continue
                path = chance.choice([path for path in reader.change if isinstance(reader.files[path], bytes)])
                content = reader.files[path]
                self.once(reader, {path: mutated(chance, content, chance.choice([content, chance.choice(others)]))})
                done += 1
            turn += 1
        seconds = time.monotonic() - begin
        print(f"{done} mutated inputs of {len(all_readers)} readers, seed {SEED}, in {seconds:.0f} s ({done / seconds:.1f} per s); exit codes",
              ", ".join(f"{code}: {number}" for code, number in sorted(self.codes.items())),
              f"; longest {self.slowest[0]:.1f} s ({self.slowest[1]}), most memory {self.largest[0] >> 20} MiB ({self.largest[1]})", flush=True)
        self.assertFalse(self.problems, f"{len(self.problems)} of {done}")
        self.assertGreater(self.codes[0], 0, "nothing was read")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
