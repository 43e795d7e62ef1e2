"""`assay import kineto`: traces of the PyTorch profiler become a run that report, diagnose and compare take. The traces are
made here, in the form of torch.profiler's export_chrome_trace."""

import gzip
import json
import os
import resource
import sys
import time
import unittest

from assay_case import AssayCase

BASE_NS = 1_790_000_000_000_000_000


def event(category, name, start, duration, tid=1, **args):
    """A range, in microseconds."""
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": start, "dur": duration, "args": args}


def kernel(name, start, duration, stream=7, **args):
    return event("kernel", name, start, duration, stream, device=0, stream=stream, correlation=1, **args)


def gpu_events(steps=6, late=0, mm=400, fused=False, copy=20):
    """Steps of 1000 us: a copy, a multiplication, an all-reduce that ends at 900, the host until the end."""
    events = []
    for i in range(steps):
        start = 1000 * i
        events += [event("user_annotation", f"ProfilerStep#{i + 3}", start, 1000),
                   event("cuda_runtime", "cudaLaunchKernel", start + 5, 4, correlation=1),
                   event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", start, copy, 7, device=0, stream=7),
                   kernel("void gemm<float, 128>(float*)", start + 100, mm + late),
                   kernel("fused_add_relu" if fused else "add_kernel", start + 100 + mm + late, 50)]
        begin = start + 150 + mm + late
        events.append(kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", begin, start + 900 - begin, 9,
                             **{"Collective name": "allreduce", "Process Group Name": "0", "Seq": i}))
    return events


class Kineto(AssayCase):
    def trace(self, name, events, rank=None, world=2, **head):
        about = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}], "host_name": "box",
                 "baseTimeNanoseconds": BASE_NS, **head}
        if rank is not None:
            about["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world, "pg_config": [{"pg_name": "0"}]}
        text = json.dumps({**about, "traceEvents": events, "traceName": name}, indent=1)
        if name.endswith(".gz"):
            (self.dir / name).write_bytes(gzip.compress(text.encode()))
        else:
            self.write(name, text)
        return name

    def imported(self, *files, out="run", code=0, options=()):
        done = self.assay("import", "kineto", *files, "--out", out, *options, timeout=1200)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def refused(self, *files, options=()):
        done = self.imported(*files, out="refused", code=2, options=options)
        self.assertFalse((self.dir / "refused").exists())
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        return done.stderr

    def test_two_ranks_on_gpus(self):
        one = self.trace("one.json.gz", gpu_events(late=200), rank=1)
        zero = self.trace("zero.json", gpu_events(), rank=0)
        out = self.imported(one, zero, options=("--name", "finetune")).stdout
        self.assertIn("finetune · 2 ranks · 6 steps of 1 ms", out)
        self.assertIn("Change first: the others wait for rank 1", out)
        self.assertIn("allreduce of group 0: 1.0 x 150 us to transfer, 200 us for the last rank (1 in 100 %)", out)
        [record] = self.records("run")
        self.assertEqual((record["key"], record["family"], record["device"], record["world"]),
                         ("command/name=finetune", "command", "cuda", {"ranks": 2, "nodes": 1}))
        self.assertEqual([(rank["rank"], rank["host"], rank["device"]) for rank in record["ranks"]],
                         [(0, "box", "NVIDIA H100 80GB HBM3"), (1, "box", "NVIDIA H100 80GB HBM3")])
        spans = record["spans"]
        for name, seconds in {"rank 0 compute": 450e-6, "rank 0 exposed_communication": 350e-6, "rank 0 exposed_copies": 20e-6,
                              "rank 0 gpu_idle:step": 180e-6, "rank 1 compute": 650e-6, "rank 1 exposed_communication": 150e-6}.items():
            self.assertAlmostEqual(spans[name], seconds, 9, name)
        self.assertAlmostEqual(sum(seconds for name, seconds in spans.items() if not name.startswith("rank")), 1e-3, 9)
        # Two kernels, a copy and a collective.
        self.assertAlmostEqual(next(one["value"] for one in record["metrics"] if one["name"] == "launches"), 4)
        self.assertIn("imbalance: ", record["labels"]["diagnosis_1"])
        run = json.loads((self.dir / "run/run.json").read_text())
        self.assertEqual(run["source"], {"format": "kineto", "files": ["zero.json", "one.json.gz"]})
        self.assertEqual(run["trace"]["uses"][0]["name"], "void gemm<float, 128>(float*)")
        self.assertAlmostEqual(run["trace"]["uses"][0]["seconds"], 500e-6, 9)

        report = self.assay("report", "run").stdout
        for text in ("What the GPUs do in a step", "The heaviest kernels of a step", "void gemm<float, 128>(float*)",
                     "Collectives of a step", "rank 1 in 100 %"):
            self.assertIn(text, report)
        rules = {rule["id"]: rule["state"] for rule in json.loads(self.assay("diagnose", "run", "--json").stdout)["rules"]}
        self.assertEqual((rules["imbalance"], rules["data-starved"]), ("bad", "quiet"))
        self.assertEqual(self.assay("report", "run", "--html", "page.html").returncode, 0)
        self.assertIn("gpu_step_bars", (self.dir / "page.html").read_text())

    def test_a_file_is_one_rank(self):
        file = self.trace("own.json", gpu_events())
        self.assertIn("own.json: is given twice", self.refused(file, file))

    def test_compare_names_what_changed(self):
        self.imported(self.trace("a.json", gpu_events()), out="a")
        self.imported(self.trace("b.json", gpu_events(mm=500, fused=True)), out="b")
        done = self.assay("compare", "a", "b", "--json=c.json")
        self.assertNotEqual(done.returncode, 2, done.stderr)
        sections = json.loads((self.dir / "c.json").read_text())["sections"]
        tables = {table["id"]: table["rows"] for section in sections for table in section["tables"]}
        parts = {row["part"]: row["change"]["value"] for row in tables["job_parts"]}
        self.assertAlmostEqual(parts["compute"], 100e-6, 9)
        self.assertAlmostEqual(parts["exposed_communication"], -100e-6, 9)
        self.assertNotIn(0, [row["change"]["value"] for row in tables["job_kernels"]])
        uses = {row["name"]: (row["what"], round(1e6 * row["change"]["value"])) for row in tables["job_kernels"]}
        self.assertEqual(uses["void gemm<float, 128>(float*)"], ("changed", 100))
        self.assertEqual((uses["fused_add_relu"], uses["add_kernel"]), (("appeared", 50), ("disappeared", -50)))
        # The same steps: nothing is slower, and the table says so.
        same = self.assay("compare", "a", "a").stdout
        self.assertIn("Where the steps changed", same)

    def test_kernels_have_their_roofline(self):
        """A product of 4096 x 4096 matrices in bf16 is 2 x 4096^3 FLOPs on 3 x 2 x 4096^2 bytes; the sheet of an H100 has
        989 TFLOP/s and 3.35 TB/s, so 200 us are 69 % of what it allows."""
        shapes = {"Input Dims": [[4096, 4096], [4096, 4096]], "Input type": ["c10::BFloat16", "c10::BFloat16"],
                  "Concrete Inputs": ["", ""]}
        events = []
        for i in range(4):
            start = 1000 * i
            events += [event("user_annotation", f"ProfilerStep#{i}", start, 1000),
                       event("cpu_op", "aten::mm", start + 10, 20, **{"External id": i + 10}, **shapes),
                       event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", start, 100, 7, device=0, stream=7),
                       event("kernel", "nvjet_tst_128x256", start + 100, 200, 7, device=0, correlation=500 + i,
                             **{"External id": i + 10}),
                       event("kernel", "relu", start + 300, 600, 7, device=0, correlation=600 + i, **{"External id": 99})]
        done = self.imported(self.trace("shapes.json", events))
        self.assertIn("200 us of a step in 1.0 x nvjet_tst_128x256: 687 TFLOP/s in bf16, 1,365 FLOP/B, 69 % of what its peak "
                      "allows", done.stdout)
        uses = json.loads((self.dir / "run/run.json").read_text())["trace"]["uses"]
        work = {use["name"]: use.get("work") for use in uses}
        self.assertIsNone(work["relu"])
        self.assertAlmostEqual(work["nvjet_tst_128x256"]["flops"], 2 * 4096**3, -3)
        self.assertAlmostEqual(work["nvjet_tst_128x256"]["bytes"], 6 * 4096**2, -3)
        self.assertAlmostEqual(work["nvjet_tst_128x256"]["least"], 2 * 4096**3 / 989e12, 9)
        self.assertEqual(self.assay("report", "run", "--json=r.json").returncode, 0)
        tables = {table["id"]: table["rows"] for section in json.loads((self.dir / "r.json").read_text())["sections"]
                  for table in section["tables"]}
        rows = {row["name"]: row for row in tables["kernels"]}
        self.assertAlmostEqual(rows["nvjet_tst_128x256"]["rate"]["value"] / 1e12, 687.19, 1)
        self.assertAlmostEqual(rows["nvjet_tst_128x256"]["of_roof"], 0.6948, 3)
        self.assertEqual(rows["nvjet_tst_128x256"]["bound"], "peak")
        self.assertEqual(rows["relu"]["rate"], "–")
        # The copies are as much of a step for the import as for the diagnosis of its run.
        self.assertIn("for 10 % of a step the GPU only copies", done.stdout)
        rules = {rule["id"]: rule["state"] for rule in json.loads(self.assay("diagnose", "run", "--json").stdout)["rules"]}
        self.assertEqual((rules["copy-bound"], rules["launch-bound"]), ("warn", "warn"))

        bare = [{**one, "args": {key: value for key, value in one["args"].items() if key not in shapes}} for one in events]
        done = self.imported(self.trace("bare.json", bare), out="bare")
        self.assertIn("bare.json: it has no shapes of operators, so no FLOP/s: profile(record_shapes=True) records them", done.stdout)
        self.assertNotIn("FLOP/B", done.stdout + self.assay("report", "bare").stdout)

    def test_a_job_on_cpus(self):
        engine = "autograd::engine::evaluate_function: MmBackward0"
        events = []
        for i in range(4):
            start = 1000 * i
            events += [event("user_annotation", f"ProfilerStep#{i}", start, 1000),
                       event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start, 200),
                       event("cpu_op", "aten::mm", start + 250, 100), event("cpu_op", engine, start + 400, 300),
                       event("user_annotation", "Optimizer.step#AdamW.step", start + 800, 100)]
        done = self.imported(self.trace("c.json", events))
        self.assertIn("20 % of a step waits for data", done.stdout)
        self.assertIn("DataLoader(num_workers=2)", done.stdout)
        [record] = self.records("run")
        self.assertEqual(record["device"], "cpu")
        for name, seconds in {"data_wait": 200e-6, "backward": 300e-6, "optimizer": 100e-6, "forward": 400e-6}.items():
            self.assertAlmostEqual(record["spans"][name], seconds, 9, name)
        self.assertIn("The heaviest operators of a step", self.assay("report", "run").stdout)

    def test_what_cannot_be_read_is_refused_with_its_file(self):
        good = self.trace("good.json", gpu_events(), rank=0)
        self.write("empty.json", "")
        self.write("cut.json", (self.dir / good).read_text()[:-200])
        self.write("text.json", "hello")
        (self.dir / "cut.json.gz").write_bytes(gzip.compress((self.dir / good).read_bytes())[:-50])
        self.trace("stepless.json", [event("user_annotation", "train", 0, 5)])
        for file, text in {"empty.json": "empty.json: is empty", "cut.json": "cut.json: was cut off at line",
                           "text.json": "text.json: line 1, column 1", "cut.json.gz": "cut.json.gz: was cut off: its gzip stream",
                           "stepless.json": "stepless.json: has no range ProfilerStep#N", "nosuch.json": "nosuch.json"}.items():
            self.assertIn(text, self.refused(file))
        self.assertIn('did you mean "train"?', self.refused("stepless.json", options=("--step", "trains")))
        self.trace("twin.json", gpu_events(), rank=0)
        self.assertIn("twin.json: is of rank 0, as good.json is", self.refused(good, "twin.json"))
        self.trace("later.json", gpu_events(), rank=1, baseTimeNanoseconds=BASE_NS + 10**12)
        self.assertIn("later.json: is of another job than good.json", self.refused(good, "later.json"))
        self.assertIn("--step is for kineto, not for csv", self.assay("import", "csv", good, "--out", "x", "--step", "a").stderr)

    def test_memory_is_a_small_part_of_a_trace(self):
        # As in real traces each kernel has its launch, and two events that join them. 60 MiB in CI; ASSAY_KINETO_MB asks for more.
        size = int(os.environ.get("ASSAY_KINETO_MB", "60")) << 20
        args = json.dumps({"External id": 513, "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": 4711,
                           "registers per thread": 32, "shared memory": 1024, "blocks per SM": 0.25, "warps per SM": 0.5,
                           "grid": [1, 2, 3], "block": [128, 1, 1], "est. achieved occupancy %": 25})
        steps = number = 0
        with (self.dir / "big.json").open("w") as file:
            file.write('{"baseTimeNanoseconds": 1, "traceEvents": [\n')
            while file.tell() < size:
                if number % 1000 == 0:
                    file.write(json.dumps(event("user_annotation", f"ProfilerStep#{steps}", number * 10, 10000)) + ",\n")
                    steps += 1
                for name, start in (("gemm_kernel_" + "x" * 60, 0), ("elementwise_kernel", 5), ("ncclDevKernel_AllReduce", 8)):
                    at = number * 10 + start
                    file.write(f'{{"ph": "X", "cat": "kernel", "name": "{name}", "pid": 0, "tid": 7, "ts": {at}.125, '
                               f'"dur": 1.875, "args": {args}}},\n'
                               f'{{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": {at}, '
                               '"dur": 1.5, "args": {"External id": 513, "cbid": 211, "correlation": 4711}},\n'
                               f'{{"ph": "s", "id": 4711, "pid": 1, "tid": 1, "ts": {at}, "cat": "ac2g", "name": "ac2g"}},\n'
                               f'{{"ph": "f", "id": 4711, "pid": 0, "tid": 7, "ts": {at}, "cat": "ac2g", "name": "ac2g", "bp": "e"}},\n')
                number += 1
            file.write(json.dumps(kernel("last", number * 10, 1)) + "\n]}\n")
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        start = time.monotonic()
        done = self.imported("big.json")
        seconds = time.monotonic() - start
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss  # KiB, the most of any child
        print(f"{size >> 20} MiB: {memory >> 10} MiB of memory, {seconds / size * 2**30:.0f} s a GiB", file=sys.stderr)
        self.assertLess(before, 60_000)
        self.assertLess(memory, 60_000 + 45 * (size >> 20))
        self.assertIn(f"{steps} steps of 10 ms", done.stdout)
        [record] = self.records("run")
        self.assertAlmostEqual(record["spans"]["exposed_communication"], 1.875e-3, 4)


if __name__ == "__main__":
    unittest.main()
