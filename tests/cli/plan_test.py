"""Plans through the command line: --dry-run, --set, --filter, --ranks, and invalid plans."""

import re
import subprocess
import unittest

from assay_case import AssayCase

GEMM = {"family": "gemm", "dtype": "f32", "m": 64, "n": 64, "k": 64, "transpose": "nn", "cache": "cold", "duration": "burst"}


class DryRun(AssayCase):
    def keys(self, *words):
        done = self.assay("run", *words, "--dry-run", "--device", "cpu")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [line.split()[0] for line in done.stdout.splitlines() if "=" in line.split()[0]]

    def test_prints_cases_with_bytes_flops_and_time(self):
        plan = self.plan({**GEMM, "m": [64, 128]})
        done = self.assay("run", plan, "--dry-run", "--device", "cpu")
        head, *rows, total, places, seat = done.stdout.splitlines()
        self.assertEqual(head.split(), ["case", "ranks", "memory", "bytes", "flops", "time"])
        self.assertEqual(len(rows), 2)
        self.assertTrue(rows[1].startswith("gemm/dtype=f32/m=128/n=64/k=64/transpose=nn/cache=cold/duration=burst "))
        self.assertIn("1.05 MFLOP", rows[1])   # 2 * 128 * 64 * 64
        self.assertRegex(total, r"^plan p on cpu: 2 cases, about .*, .* of memory at most")
        self.assertEqual(places.split(), ["ranks", "rank", "host", "NUMA", "GPU", "CPUs"])
        self.assertRegex(seat, r"^ +1 +0 +\S+ +(\d+|-) +- +\d+[-,\d]*$")
        self.assertEqual(list(self.dir.iterdir()), [plan])   # nothing ran, nothing was written

    def test_lists_and_ranges_multiply(self):
        plan = self.plan({**GEMM, "m": {"from": 16, "to": 256, "factor": 4}, "k": [1, 2]},
                         {"family": "memory", "op": ["copy", "triad"], "bytes": ["64KiB", "1MB"], "store": "plain", "threads": 1})
        keys = self.keys(plan)
        self.assertEqual(len(keys), 3 * 2 + 2 * 2)
        self.assertIn("memory/op=triad/bytes=1000000/store=plain/threads=1", keys)

    def test_comments_are_allowed(self):
        self.assertEqual(len(self.keys(self.write("c.json", """// why
            {"schema": 1, /* no name */ "cases": [{"family": "launch"}]}"""))), 3)

    def test_flags_change_the_plan(self):
        plan = self.plan(GEMM, {**GEMM, "m": 32}, {"family": "launch"})
        self.assertEqual([re.search("n=(.*?)/", key)[1] for key in self.keys(plan, "--set", "gemm.n=8,16", "--filter", "^gemm/.*m=32")],
                         ["8", "16"])
        keys = self.keys(plan, "--set", "gemm.n=8,16,gemm.m=64", "--filter", "^gemm/")
        self.assertEqual({(re.search("m=(.*?)/", key)[1], re.search("n=(.*?)/", key)[1]) for key in keys}, {("64", "8"), ("64", "16")})
        done = self.assay("run", plan, "--dry-run", "--device", "cpu", "--ranks", "1,2,4", "--filter", "launch")
        words = [line.split() for line in done.stdout.splitlines()]
        self.assertEqual([word[1] for word in words if "=" in word[0]], ["1"] * 3 + ["2"] * 3 + ["4"] * 3)
        self.assertEqual([word[:2] for word in words if word[0].isdigit()],
                         [["1", "0"], *(["2", str(i)] for i in range(2)), *(["4", str(i)] for i in range(4))])

    def test_hosts_and_worlds(self):
        # Families that communicate run on 1, 2, 4, ... hosts; the others with one rank.
        hosts = self.write("hosts.txt", "n1 slots=2\nn2 slots=2  # two more\nn3 slots=1\n")
        words = ["run", "launch", "collective", "--set", "collective.op=all_reduce", "--set", "collective.bytes=8",
                 "--dry-run", "--device", "cpu"]
        done = self.assay(*words, "--hostfile", hosts)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = [line.split() for line in done.stdout.splitlines()]
        self.assertEqual({row[1] for row in rows if row[0].startswith("collective/")}, {"2", "4", "5"})
        self.assertEqual({row[1] for row in rows if row[0].startswith("launch/")}, {"1"})
        self.assertEqual([row[2] for row in rows if row[0] == "5"], ["n1", "n1", "n2", "n2", "n3"])
        self.assertIn("assumed to be like this one", done.stdout)
        self.refused(*words, "--hostfile", hosts, "--ranks", "1,6", says=["--ranks 6 is beyond the 5 slots of --hostfile", "n1 2, n2 2, n3 1"])

    def test_bad_hostfiles_are_named(self):
        for text, says in (("n1 slots=two\n", ":1: slots=two: must be"), ("n1\nn2 slot=2\n", ":2: "), ("# none\n", "names no host")):
            self.refused("run", "launch", "--dry-run", "--hostfile", self.write("h.txt", text), says=says)
        self.refused("run", "launch", "--hostfile", "/nowhere/h", says="cannot read /nowhere/h: No such file")

    def test_a_plan_for_gpus_is_refused_with_the_nearest_choice(self):
        self.refused("run", "gpu-quick", "--device", "cpu", says=['"gpu-quick" is for GPUs', "assay run quick"])
        self.assertFalse((self.dir / "runs").exists())

    def test_a_model_is_run_whole_or_in_slices_by_memory(self):
        def dry(*words):
            done = self.assay("run", *words, "--device", "cpu", "--dry-run")
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout
        text = dry("llama-tiny")
        self.assertRegex(text, r"(?m)^llama/model=llama-tiny/")
        self.assertRegex(text, r"(?m)^llama-tiny: whole, as the whole needs \S+ \S+ and this machine has ")
        words = ["run", "gpt2-355m", "micro_batch=1", "seq=128", "--device", "cpu", "--dry-run"]
        done = subprocess.run(["sh", "-c", 'ulimit -v 4718592; exec "$0" "$@"', self.binary, *words], cwd=self.dir,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^slice/model=gpt2-355m/.*micro_batch=1/")
        self.assertRegex(done.stdout, r"(?m)^gpt2-355m: in slices \(family slice\), which need \S+ \S+, as the whole needs ")
        self.refused("run", "llama-1c", "--dry-run", says='did you mean "llama-1b"')

    def test_targets_are_plans_families_and_files(self):
        self.assertEqual(self.keys("launch"), self.keys(self.plan({"family": "launch"})))
        self.assertEqual(len(self.keys("launch", "launch")), 3)   # named twice, run once
        for plan in ("smoke", "quick", "micro"):
            self.assertTrue(self.keys(plan), plan)

    def test_gpu_parameters_do_not_reach_cpu_keys(self):
        self.assertEqual(self.keys(self.plan({**GEMM, "accumulation": ["full", "fast"]})), self.keys(self.plan(GEMM)))

    def test_ranks_on_cpus_work_together_unless_each_is_to_work_alone(self):
        alone, together = self.keys(self.plan({**GEMM, "gpus": ["each", "together"]}))
        self.assertEqual([together], self.keys(self.plan(GEMM)))
        self.assertEqual(alone, together + "/gpus=each")


class BadPlan(AssayCase):
    def bad(self, *entries, **kw):
        return self.refused("run", self.plan(*entries), "--dry-run", "--device", "cpu", **kw)

    def test_files(self):
        self.refused("run", "none.json", says=["none.json", "no such file"])
        self.refused("run", self.write("empty.json", ""), says=["empty.json", "empty"])
        self.refused("run", self.write("blank.json", "\n \n"), says="empty")
        self.refused("run", self.write("text.json", "hello"), says="text.json:1:")
        self.refused("run", self.write("half.json", '{"schema":1,\n "cases":['), says="half.json:2:")
        self.refused("run", self.write("bytes.json", bytes(range(256))), says="bytes.json:1:")
        self.refused("run", self.write("deep.json", "[" * 200000), says="deeper")
        self.refused("run", self.write("twice.json", '{"schema":1,"schema":1}'), says="twice")
        self.refused("run", self.write("tail.json", '{"schema":1,"cases":[{"family":"launch"}]} {}'), says="tail.json:1:")
        self.refused("run", self.dir, says="is a folder")
        self.refused("run", self.write("list.json", "[]"), says="must be an object")
        self.refused("run", self.write("two.json", {"schema": 2}), says=["/schema", "schema 2"])
        self.refused("run", self.write("none.json", {"schema": 1}), says='"cases" is missing')
        self.refused("run", self.write("nil.json", {"schema": 1, "cases": []}), says="/cases")

    def test_names(self):
        self.bad({"family": "gem"}, says=["/cases/0/family", 'did you mean "gemm"?'])
        self.bad({"family": "gemm", "mm": 1}, says=["/cases/0/mm", 'did you mean "m"?'])
        self.bad({**GEMM, "dtype": "bf61"}, says=["/cases/0/dtype", 'did you mean "bf16"?'])
        self.refused("run", self.plan(GEMM, casess=1), says=["/casess", 'did you mean "cases"?'])
        self.refused("run", "quik", says=['"quik"', 'did you mean "quick"?'])
        self.refused("run", "memroy", says='did you mean "memory"?')
        self.refused("run", says="nothing to run")

    def test_values(self):
        for value in (0, -1, "64", 1.5, None, True, [], [[1]], 2**63, 1e300):
            self.bad({**GEMM, "m": value}, says="/cases/0/m")
        self.bad({**GEMM, "m": {}}, says=['/cases/0/m: "from" is missing', "factor"], lines=3)
        for value in (0, -4096, "-1MiB", "64Mib/s", "1e3", "0", "NaN", 1.5):
            self.bad({"family": "memory", "bytes": value}, says="/cases/0/bytes")
        for value in (0, -1, "2", 1.5, []):
            self.bad({"family": "launch", "ranks": value}, says="/cases/0/ranks")
        self.bad({"family": "launch", "protocol": {"max_seconds": "1 fortnight"}}, says="/cases/0/protocol/max_seconds")
        self.bad({"family": "launch", "timeout": "-1s"}, says="/cases/0/timeout")

    def test_all_errors_in_a_file_are_reported_at_once(self):
        self.bad({"family": "gem"}, {**GEMM, "m": 0}, {"family": "memory", "byte": 1}, 7, lines=4,
                 says=["/cases/0/family", "/cases/1/m", "/cases/2/byte", "/cases/3"])

    def test_beyond_memory(self):
        text = self.bad({"family": "memory", "op": "copy", "bytes": "1PiB"}, says=["needs", "of memory; this machine has"])
        self.assertGreaterEqual(int(re.search(r"\((\d+) bytes\) of memory", text)[1]), 2 * 2**50)
        self.bad({**GEMM, "m": 10**9, "n": 10**9}, says="of memory")
        self.bad({**GEMM, "m": 2**62}, says="/cases/0/m")

    def test_too_many_cases(self):
        size = {"from": 1, "to": 1000, "step": 1}
        self.bad({**GEMM, "m": size, "n": size}, says=["1000000 cases", "100000"])
        self.bad({**GEMM, "m": {"from": 1, "to": 2**30, "step": 1}, "n": size, "k": size}, says="1073741824000000 cases")

    def test_flags(self):
        plan = self.plan(GEMM)
        for words, says in [
            (["--set", "gemm"], "--set gemm"),
            (["--set", "gem.m=1"], 'did you mean "gemm"?'),
            (["--set", "gemm.q=1"], 'no parameter "q"'),
            (["--set", "gemm.dtype=f23"], 'did you mean "f32"?'),
            (["--set", "gemm.m=0"], "--set gemm.m=0"),
            (["--set", "gemm.m="], "empty"),
            (["--set", "launch.op=fork_join"], "nothing to run is of the family"),
            (["--filter", "("], "not a regular expression"),
            (["--filter", "m=65/"], "m=64/"),
            (["--ranks", "0"], "--ranks"),
            (["--ranks", "1,x"], "--ranks"),
            (["--ranks", "1,,2"], "--ranks"),
            (["--device", "gpu"], 'did you mean "cpu"?'),
            (["--timeout", "0"], "--timeout"),
            (["--timeout", "soon"], "--timeout"),
            (["--label", "x"], "K=V"),
            (["--inject", "chrash"], 'did you mean "crash"?'),
            (["--resume", "x", "--out", "y"], "--resume"),
        ]:
            self.refused("run", plan, *words, "--dry-run", says=says)


if __name__ == "__main__":
    unittest.main()
