"""assay size: which machines hold a model, ranges of time and cost, what is said without records, bad input."""

import json
import os
import pathlib
import re
import socket
import unittest

from assay_case import AssayCase

TESTS = pathlib.Path(__file__).resolve().parents[1]
MODELS = TESTS / "models"
PUBLISHED = {each["name"]: each for each in json.loads((TESTS / "architectures/published.json").read_text(encoding="utf-8"))}
LLAMA_7B = MODELS / "llama-2-7b" / "config.json"
PRICES = {"schema": 1, "source": "an offer", "date": "2026-01-31", "currency": "USD", "prices": [
    {"instance_type": "a", "gpu": "A100-80GB", "gpus": 8, "price": 16},
    {"instance_type": "h", "gpu": "H100", "gpus": 8, "price": 40}]}


def trained(ranks, tokens_per_second, model="llama-2-7b", seq=4096, device="NVIDIA H100 80GB HBM3", **members):
    """A record of a training of `ranks` ranks, 5 % either way."""
    return {"schema": 2, "key": f"llama/model={model}/precision=bf16/seq={seq}", "family": "llama",
            "params": {"model": model, "precision": "bf16", "seq": seq}, "world": {"ranks": ranks}, "status": "ok",
            "device": "cuda", "ranks": [{"rank": rank, "host": "n", "device": device} for rank in range(ranks)],
            "metrics": [{"name": "throughput", "value": tokens_per_second, "unit": "tokens/s",
                         "ci95": [tokens_per_second / 1.05, tokens_per_second * 1.05]}], **members}


class Size(AssayCase):
    def size(self, *words, model=LLAMA_7B, code=0, tokens="1e11"):
        done = self.assay("size", model, "--tokens", tokens, *words, "--json", timeout=600)
        self.assertEqual((done.returncode, done.stderr), (code, ""))
        return json.loads(done.stdout)

    @staticmethod
    def of(read, hardware, gpus):
        return next(each for each in read["ranked"] if (each["hardware"], each["gpus"]) == (hardware, gpus))

    def text_of(self, *words):
        """What is printed, each line break a space."""
        return " ".join(self.assay("size", *words).stdout.split())

    def contains(self, ends, value):
        self.assertLessEqual(ends["low"], value)
        self.assertGreaterEqual(ends["high"], value)

    def test_ranges_contain_published_runs(self):
        read = self.size("--set", "seq=4096", "--hardware", "a100-sxm-80gb,h100-sxm", "--count", "8..64")
        self.assertEqual({each["basis"] for each in read["ranked"]}, {"sheet"})
        for hardware, tokens in {"a100-sxm-80gb": 3760, "h100-sxm": 9600}.items():
            for gpus in (8, 64):
                self.contains(self.of(read, hardware, gpus)["items_per_gpu_second"], tokens)
        # The same figures in hours and USD.
        one = self.of(read, "h100-sxm", 8)
        steps = 1e11 / (one["micro_batch"] * one["accumulate"] * 4096 * 8)
        self.assertAlmostEqual(one["hours"]["low"], steps * one["step_seconds"]["low"] / 3600 * (
            1 + 8 * read["allowances"]["restarts"]["per_gpu_hour"]["low"] * 1.5), delta=1e-6 * one["hours"]["low"])
        self.assertAlmostEqual(one["usd"]["low"], 23.6 * one["hours"]["low"], places=3)
        self.assertEqual((one["price"]["machine"], one["price"]["date"]), ("gpu-h100-sxm_8gpu-128vcpu-1600gb", "2025-08-25"))
        self.assertIsNone(one["assay_over_pytorch"])
        self.assertLessEqual(one["total_bytes"], one["memory_bytes"])

    def measured_here(self, host=None, device=None, training=True, name="here"):
        """A run with rates of this machine: 4e11 FLOP/s in bf16, 5e10 B/s, and a training at an eighth of that rate."""
        host = host or os.environ.get("ASSAY_HOST") or socket.gethostname()
        rank = {"rank": 0, "host": host, "device": device or "a CPU"}
        shared = {"schema": 2, "world": {"ranks": 1}, "status": "ok", "device": "cpu", "ranks": [rank]}
        metric = lambda name, value, unit: {"name": name, "value": value, "unit": unit}
        records = [
            {**shared, "key": "gemm/dtype=bf16/m=2048/n=2048/k=2048", "family": "gemm",
             "params": {"dtype": "bf16", "m": 2048, "n": 2048, "k": 2048}, "metrics": [metric("throughput", 4e11, "FLOP/s")]},
            {**shared, "key": "memory/op=read/bytes=134217728/threads=all", "family": "memory",
             "params": {"op": "read", "bytes": 134217728, "threads": "all"}, "metrics": [metric("bandwidth", 5e10, "B/s")]}]
        if training:
            records.append({**shared, "key": "transformer/model=gpt2-tiny/precision=bf16", "family": "transformer",
                            "params": {"model": "gpt2-tiny", "precision": "bf16", "seq": 128},
                            "metrics": [metric("throughput", 2e4, "tokens/s"), metric("model_flops", 5e10, "FLOP/s")]})
        return self.run_dir(*records, name=name)

    def test_here_is_this_machine_by_its_own_rates(self):
        read = self.size("--hardware", "here", "--from", self.measured_here(), model="gpt2-124m", tokens="1e9")
        one, = read["ranked"]
        self.assertEqual((one["hardware"], one["gpus"], one["basis"]), ("here", 1, "sheet"))
        self.assertIsNone(one["step_seconds"]["high"])
        expected = one["expected"]["step_seconds"]
        # Between all of the rate and an eighth of it; the value is the geometric mean.
        self.assertAlmostEqual(expected["high"] / expected["low"], 8, places=6)
        self.assertAlmostEqual(expected["value"] / expected["low"], 8 ** 0.5, places=6)
        self.assertLessEqual(one["step_seconds"]["low"], expected["low"])
        self.assertLessEqual(one["total_bytes"], one["memory_bytes"])
        self.assertTrue(any("reached 400 GFLOP/s in bf16" in remark for remark in read["remarks"]), read["remarks"])
        # Another number of GPUs than this machine has, and a model that no machine of one process holds.
        read = self.size("--hardware", "here", "--count", "1,8", "--from", "here", model="gpt2-124m", tokens="1e9")
        self.assertEqual([(each["gpus"], each["reason"]) for each in read["rejected"]], [(8, "this machine has 1")])

    def test_here_says_what_it_does_not_know(self):
        self.measured_here(training=False)
        read = self.size("--hardware", "here", "--from", "here", model="gpt2-124m", tokens="1e9")
        self.assertIsNone(read["ranked"][0]["expected"])
        self.assertTrue(any("no training in bf16" in remark for remark in read["remarks"]), read["remarks"])
        self.measured_here(host="elsewhere", name="theirs")
        for words, code, text in [
                ([], 2, "--hardware here: needs the rates"),
                (["--last"], 2, "runs/ holds 0 runs"),
                (["--last", "--from", "here"], 2, "give one of them"),
                (["--from", "here", "--hardware", "here,"], 2, "unknown hardware sheet"),
                (["--from", "theirs"], 3, "only of elsewhere; measure this machine"),
                (["--from", "here", "--set", "precision=f32"], 3, "or --set precision=bf16, which was measured")]:
            with self.subTest(words=words):
                hardware = [] if "--hardware" in words else ["--hardware", "here"]
                done = self.assay("size", "gpt2-124m", "--tokens", "1e9", *hardware, *words)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(text, done.stderr)

    def test_the_order_is_what_published_runs_make_likely(self):
        words = ["--set", "seq=4096", "--hardware", "a100-sxm-80gb,h100-sxm,h200-sxm", "--count", "8,64"]
        read = self.size(*words)
        self.assertEqual([each["likely_place"] for each in read["ranked"]], [1, 2, 3, 4, 5, 6])
        self.assertEqual(sorted({each["gpus"] for each in read["ranked"]}), [8, 64])
        usd = [each["expected"]["usd"]["value"] for each in read["ranked"]]
        self.assertEqual(usd, sorted(usd))
        for each in read["ranked"]:
            expected = each["expected"]
            for ends, bounds in ((expected, each["items_per_gpu_second"]), (expected["hours"], each["hours"]),
                                 (expected["usd"], each["usd"])):
                self.contains(ends, ends["value"])
                self.assertGreaterEqual(ends["value"], bounds["low"] or 0)
                self.assertLessEqual(ends["value"], bounds["high"] or ends["value"])
            self.assertIn("published runs like it make likely; the nearest: ", expected["source"])
            self.assertAlmostEqual(expected["usd_per_million"]["value"] * 1e5, expected["usd"]["value"], places=3)
            self.assertAlmostEqual(expected["usd"]["value"], expected["hours"]["value"] * each["price"]["usd_per_hour"], places=3)
        # What fms-fsdp measured is likely.
        self.contains(self.of(read, "a100-sxm-80gb", 64)["expected"], 3760)
        self.contains(self.of(read, "h100-sxm", 8)["expected"], 9600)

    def test_a_table_has_a_row_for_each_count_and_pages_have_it_too(self):
        words = [LLAMA_7B, "--tokens", "1e11", "--set", "seq=4096", "--hardware", "a100-sxm-80gb,h100-sxm", "--count", "8,64"]
        done = self.assay("size", *words, "--html", "p.html", "--md", "p.md")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        table = re.findall(r"(?m)^(?:hardware|a100-sxm-80gb|h100-sxm) +(?:GPUs|\d).*", done.stdout)
        self.assertEqual(len(table), 5)
        self.assertLessEqual(max(map(len, table)), 120)
        for gpus in ("8", "64"):
            for hardware in ("a100-sxm-80gb", "h100-sxm"):
                self.assertRegex(done.stdout, rf"(?m)^{hardware} +{gpus} +[1-4] ")
        self.assertRegex(done.stdout, r"Likely cheapest: (a100-sxm-80gb|h100-sxm) x (8|64), USD \S+ \(\S+ to \S+\); then ")
        markdown = (self.dir / "p.md").read_text()
        self.assertEqual(len(re.findall(r"(?m)^\| (?:a100-sxm-80gb|h100-sxm) \|", markdown)), 4)
        self.assertIn("USD/M tokens", markdown)
        page = (self.dir / "p.html").read_text()
        self.assertIn("Likely cheapest", page)
        self.assertIn("<title>", page)
        # More than fit a screen: the best of each hardware, and how many are left out.
        done = self.assay("size", LLAMA_7B, "--tokens", "1e11", "--set", "seq=4096", "--count", "1..1024", "--md", "q.md", timeout=600)
        left_out = int(re.search(r"(\d+) numbers of GPUs are left out", " ".join(done.stdout.split()))[1])
        rows = len(re.findall(r"(?m)^\| [a-z]\S+ \| \d", (self.dir / "q.md").read_text()))
        self.assertGreater(left_out, 10)
        self.assertGreater(rows, left_out)

    def test_what_is_chosen_is_what_estimate_says(self):
        read = self.size("--set", "seq=4096", "--hardware", "h100-sxm", "--count", "8")
        one = read["ranked"][0]
        for samples, code in ((one["micro_batch"], 0), (2 * one["micro_batch"], 1)):
            sets = f"seq=4096,precision=bf16,dp=8,zero={one['layout']['zero']},micro_batch={samples}," \
                   f"checkpointing={one['checkpointing']}"
            done = self.assay("estimate", LLAMA_7B, "--set", sets, "--hardware", "h100-sxm", "--json")
            self.assertEqual(done.returncode, code, done.stderr)
            if code == 0:
                self.assertEqual(json.loads(done.stdout)["total_bytes"], one["total_bytes"])

    def test_records_are_the_best_basis(self):
        run = self.run_dir(trained(8, 8 * 9000), trained(8, 1, seq=2048), trained(8, 1, model="llama-3-8b"))
        read = self.size("--set", "seq=4096", "--hardware", "a100-sxm-80gb,h100-sxm", "--count", "8..16", "--from", run)
        one = self.of(read, "h100-sxm", 8)
        self.assertEqual(one["basis"], "records")
        self.assertAlmostEqual(one["items_per_gpu_second"]["low"], 9000 / 1.05, places=6)
        self.assertAlmostEqual(one["items_per_gpu_second"]["high"], 9000 * 1.05, places=6)
        more = self.of(read, "h100-sxm", 16)
        self.assertAlmostEqual(more["items_per_gpu_second"]["low"], 0.47 * 9000 / 1.05, places=6)
        self.assertIn("measured on 8", more["source"])
        # Another machine lies within the ratios of the sheets: peaks 312 / 989, links 3 / 4.5.
        other = self.of(read, "a100-sxm-80gb", 8)
        self.assertEqual(other["basis"], "anchor")
        self.assertAlmostEqual(other["items_per_gpu_second"]["low"], 9000 / 1.05 * 312 / 989, places=3)
        self.assertAlmostEqual(other["items_per_gpu_second"]["high"], 9000 * 1.05 * 3 / 4.5, places=3)
        slow = self.run_dir(trained(8, 1, status="failed"), name="slow")
        self.refused("size", LLAMA_7B, "--tokens", "1e9", "--set", "seq=4096", "--from", slow, code=3,
                     says=["--from: no figure that counts of llama-2-7b in bf16 at seq 4096", "slow"])

    def test_a_slice_is_a_record(self):
        run = self.run_dir(trained(1, 1, family="slice", metrics=[
            {"name": "predicted_throughput", "value": 8000, "unit": "tokens/s", "ci95": [7000, 9000]}]))
        one = self.size("--set", "seq=4096", "--hardware", "h100-sxm", "--count", "8", "--from", run)["ranked"][0]
        self.assertEqual(one["basis"], "records")
        self.assertAlmostEqual(one["items_per_gpu_second"]["high"], 9000, places=6)
        self.assertAlmostEqual(one["items_per_gpu_second"]["low"], 0.47 * 7000, places=6)

    def test_an_anchor_reaches_the_other_machine(self):
        """fms-fsdp measured 2.55 x between the two; the peaks alone would say 3.17 x."""
        read = self.size("--set", "seq=4096", "--hardware", "a100-sxm-80gb,h100-sxm", "--count", "64", "--anchor",
                         "a100-sxm-80gb=3760")
        own, other = self.of(read, "a100-sxm-80gb", 64), self.of(read, "h100-sxm", 64)
        self.assertEqual((own["basis"], other["basis"]), ("anchor", "anchor"))
        self.assertAlmostEqual(own["items_per_gpu_second"]["low"], 3760, places=6)
        self.assertAlmostEqual(own["items_per_gpu_second"]["high"], 3760, places=6)
        self.contains(other["items_per_gpu_second"], 9600)
        self.assertLess(other["items_per_gpu_second"]["high"], 3760 * 3.18)

    def test_a_price_of_ones_own_is_never_lost(self):
        own = {**PRICES, "prices": [{"instance_type": "p5.48xlarge", "price": 40.00}, {"instance_type": "box", "price": 1},
                                    {"instance_type": "p4de.24xlarge", "gpus": 8, "price": 20}]}
        words = ["--set", "seq=4096", "--hardware", "h100-sxm,a100-sxm-80gb", "--count", "8", "--prices", self.write("own.json", own)]
        read = self.size(*words)
        self.assertEqual({each["hardware"]: each["price"]["usd_per_hour"] for each in read["ranked"]},
                         {"h100-sxm": 40, "a100-sxm-80gb": 20})
        self.assertEqual(len(read["remarks"]), 1, read["remarks"])
        self.assertIn("/prices/1 (box)", read["remarks"][0])
        self.assertIn("/prices/1 (box)", self.text_of(LLAMA_7B, "--tokens", "1e11", *words))

    def test_only_ranges_that_do_not_overlap_are_ordered(self):
        anchors = ["--anchor", "a100-sxm-80gb=3760", "--anchor", "h100-sxm=9600"]
        prices = self.write("own.json", PRICES)
        words = ["--set", "seq=4096", "--hardware", "a100-sxm-80gb,h100-sxm", "--count", "8", "--prices", prices]
        read = self.size(*words, *anchors)
        # USD per token: 16 / 3760 and 40 / 9600 differ by 2 %, the allowances by 15 %.
        self.assertEqual([each["place"] for each in read["ranked"]], [1, 1])
        self.assertEqual([len(each["not_ordered_with"]) for each in read["ranked"]], [1, 1])
        text = self.text_of(LLAMA_7B, "--tokens", "1e11", *words, *anchors)
        self.assertIn("not surely ordered, as their bounds overlap", text)
        self.assertIn("price of 2026-01-31", text)
        dear = json.loads(json.dumps(PRICES))
        dear["prices"][1]["price"] = 400
        self.write("own.json", dear)
        read = self.size(*words, *anchors)
        self.assertEqual([(each["hardware"], each["place"]) for each in read["ranked"]],
                         [("a100-sxm-80gb", 1), ("h100-sxm", 2)])
        self.assertEqual(read["ranked"][1]["not_ordered_with"], [])
        # It costs as much as the first where price x hours do.
        even, first, second = read["break_even"][0], *read["ranked"]
        self.assertEqual((even["hardware"], even["now"]), ("h100-sxm", 400))
        self.assertAlmostEqual(even["usd_per_hour"]["low"] * second["hours"]["high"], first["usd"]["low"], places=3)
        self.assertAlmostEqual(even["usd_per_hour"]["high"] * second["hours"]["low"], first["usd"]["high"], places=3)
        text = self.text_of(LLAMA_7B, "--tokens", "1e11", *words, *anchors)
        self.assertIn("a100-sxm-80gb x 8 is cheaper than h100-sxm x 8", text)
        self.assertRegex(text, r"h100-sxm x 8, now USD 400\.00 an hour, is surely cheaper below USD \S+, dearer above USD ")

    def test_without_records_the_sheet_is_a_lower_bound(self):
        text = self.text_of("gpt2-tiny", "--tokens", "1M", "--hardware", "a30,l40s", "--count", "1")
        self.assertIn("a lower bound from a30's sheet; no upper one: nothing like it is published", text)
        self.assertIn("expected: unknown; nothing like it is published", text)
        self.assertIn("Assay over PyTorch: unknown", text)
        self.assertRegex(text, r"a30 x 1: at least \S+ h, no price is known")
        self.assertRegex(text, r"an hour, price of 2025-08-25, \d+ days old: check it\)")
        self.assertIn("CheckFreq", text)
        read = self.size("--hardware", "l40s", "--count", "1", model="gpt2-tiny", tokens="1M")
        self.assertIsNone(read["ranked"][0]["hours"]["high"])
        self.assertIsNone(read["ranked"][0]["items_per_gpu_second"]["low"])
        self.assertEqual(read["items"], 1e6)

    def test_pytorch_stands_beside_where_it_was_measured(self):
        sheet = self.write("sheet/box.json", {
            "schema": 1, "description": "a box", "kind": "cpu", "match": ["box"], "peak": {"bf16": 1e12},
            "memory_bytes": 64 << 30, "sources": {"peak": "made up here", "memory_bytes": "made up here"}})
        one = self.size("--hardware", sheet, "--count", "1", model="gpt2-124m")["ranked"][0]
        self.assertEqual(one["assay_over_pytorch"]["value"], 1.52)
        self.assertIn("docs/beside-others.md", one["assay_over_pytorch"]["source"])

    def test_what_does_not_hold_it_says_by_how_much_and_what_would(self):
        read = self.size("--hardware", "t4,h100-sxm", "--count", "1", "--set", "seq=4096", code=1)
        self.assertEqual(read["ranked"], [])
        reasons = {each["hardware"]: each for each in read["rejected"]}
        self.assertIn("has no peak in bf16", reasons["t4"]["reason"])
        self.assertIn("does not hold it: short by ", reasons["h100-sxm"]["reason"])
        short = reasons["h100-sxm"]["short_by_bytes"]
        done = self.assay("estimate", LLAMA_7B, "--set", "seq=4096,precision=bf16,micro_batch=1,checkpointing=full",
                          "--hardware", "h100-sxm", "--json")
        self.assertEqual(json.loads(done.stdout)["short_by_bytes"], short)
        words = next(would for would in read["would_fit"] if would.startswith("h100-sxm x ")).split("--count ")
        fits = self.size("--hardware", "h100-sxm", "--count", words[1], "--set", "seq=4096")
        self.assertEqual(len(fits["ranked"]), 1)
        text = self.text_of(LLAMA_7B, "--tokens", "1e9", "--hardware", "h100-sxm", "--count", "1")
        self.assertIn("nothing fits", text)
        self.assertIn("What would - h100-sxm x ", text)

    def test_what_ranks_cannot_divide_needs_more_memory(self):
        read = self.size("--set", "precision=fp8,seq=4096", "--hardware", "h100-sxm", "--count", "8", code=1)
        needed = 80000000000 + read["rejected"][0]["short_by_bytes"]
        self.assertEqual(read["would_fit"], ["a precision that ranks divide, such as bf16 (fp8 they do not), or "
                                             f"hardware with {needed / 2**30:.0f} GiB for each rank"])
        self.assertIn("ranks do not divide fp8", read["rejected"][0]["reason"])

    def test_methods_and_layouts_by_formula(self):
        def of(sets, hardware="h100-sxm", count="8", code=0, model="llama-8b"):
            done = self.assay("size", model, "--tokens", "1e9", "--set", sets, "--hardware", hardware, "--count", count, "--json")
            self.assertEqual((done.returncode, done.stderr), (code, ""))
            return json.loads(done.stdout)
        # By formula and exactly the same: layout, micro-batch, FLOPs.
        (exact,), (formula,) = of("seq=2048")["ranked"], of("seq=2048,method=full")["ranked"]
        for name in ("layout", "micro_batch", "checkpointing", "step_seconds"):
            self.assertEqual(formula[name], exact[name])
        self.assertLess(abs(formula["total_bytes"] / exact["total_bytes"] - 1), 0.03)
        # Adapters fit where full training does not, and need fewer FLOPs.
        self.assertEqual(of("seq=2048", "rtx-4090", "1", code=1)["ranked"], [])
        self.assertEqual(len(of("seq=2048,method=qlora", "rtx-4090", "1")["ranked"]), 1)
        adapters = of("seq=2048,method=lora")["ranked"][0]
        self.assertGreater(adapters["items_per_gpu_second"]["high"], 1.3 * exact["items_per_gpu_second"]["high"])
        self.assertIsNotNone(adapters["expected"])
        # A fixed layout is kept, and what is chosen is what estimate says.
        chosen = of("seq=4096,tp=4,pp=2,accumulate=8", count="16")["ranked"][0]
        self.assertEqual({name: chosen["layout"][name] for name in ("dp", "tp", "pp")}, {"dp": 2, "tp": 4, "pp": 2})
        sets = (f"seq=4096,accumulate=8,tp=4,pp=2,dp=2,sp=true,zero={chosen['layout']['zero']},"
                f"micro_batch={chosen['micro_batch']},checkpointing={chosen['checkpointing']}")
        told = self.assay("estimate", "llama-8b", "--set", sets, "--hardware", "h100-sxm", "--json")
        self.assertEqual(json.loads(told.stdout)["total_bytes"], chosen["total_bytes"])
        text = self.assay("size", "llama-8b", "--tokens", "1e9", "--set", "tp=4,pp=2,accumulate=8", "--hardware", "h100-sxm",
                          "--count", "16").stdout
        self.assertIn("tp 4, pp 2, zero ", text)
        self.assertIn("memory by formula", text)
        self.assertTrue(of("method=full,tp=1,seq=4096,offload=none", "rtx-4090", "1", code=1)["would_fit"])
        self.refused("size", "llama-8b", "--tokens", "1e9", "--set", "tp=4,pp=2,accumulate=8", "--count", "12", says=["use 16"])

    def config(self, name, **more):
        return self.write(f"{name}/config.json", PUBLISHED[name]["config"] | more)

    def as_estimated(self, model, one, sets=""):
        """What `assay estimate` says of the layout of a row."""
        layout = dict(one["layout"], sp="true" if one["layout"]["tp"] > 1 else "false")
        offload = one["offload"]["of"] if one["offload"] else "none"
        words = ",".join(f"{name}={value}" for name, value in layout.items())
        done = self.assay("estimate", model, "--set", f"{words},offload={offload},micro_batch={one['micro_batch']},accumulate="
                          f"{one['accumulate']},checkpointing={one['checkpointing']}{sets}", "--hardware", one["hardware"], "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_experts_are_divided_before_weights_are_gathered(self):
        path = self.config("mixtral-8x7b")
        one, = self.size("--hardware", "h100-sxm", "--count", "64", "--set", "seq=4096", model=path)["ranked"]
        self.assertGreater(one["layout"]["ep"], 1)
        self.assertLess(one["layout"]["zero"], 3)
        told = self.as_estimated(path, one, ",seq=4096")
        self.assertEqual((told["total_bytes"], told["communication"]), (one["total_bytes"], one["communication"]))
        sent = {each["group"]: each for each in one["communication"]}
        self.assertEqual(sent["ep"]["link"], "NVLink 4" if one["layout"]["ep"] * one["layout"]["tp"] <= 8 else "between hosts")
        # A step is no shorter than its messages.
        known = sum(each["seconds_at_least"] for each in sent.values() if each["seconds_at_least"] and each["group"] != "dp")
        self.assertGreaterEqual(one["step_seconds"]["low"], known)
        self.assertEqual(self.size("--hardware", "h100-sxm", "--count", "64", "--set", "ep=8", model=path)["ranked"][0]["layout"]["ep"], 8)
        text = self.text_of(path, "--tokens", "1e9", "--hardware", "h100-sxm", "--count", "8", "--set", "ep=8,method=lora")
        self.assertIn("ep 8, zero ", text)
        self.assertRegex(text, r"a rank sends in a step: ep \S+ \S+ over NVLink 4, at least ")
        for sets, count, says in (("ep=3", "8", ["ep=3: must divide 8 experts", "use ep=1, or dp=2"]), ("ep=8", "12", ["multiple of 8", "use 16"]),
                                  ("ep=0", "8", ["ep=0: must be from 1"]), ("ep=8,cp=3,seq=4098", "8", ["multiple of 24", "use 24"])):
            self.refused("size", path, "--tokens", "1e9", "--count", count, "--set", sets, says=says)
        self.refused("size", "llama-8b", "--tokens", "1e9", "--count", "8", "--set", "ep=2", says=["no experts", "use ep=1"])

    def test_sequences_are_divided_where_tensors_and_recomputation_do_not_suffice(self):
        path = self.config("llama-3.1-8b")
        words = ["--hardware", "h100-sxm", "--set", "seq=131072,method=full,offload=none", "--count"]
        chosen = {count: self.size(*words, str(count), model=path)["ranked"][0] for count in (8, 64)}
        self.assertEqual({one["layout"]["cp"] for one in chosen.values()}, {1})
        long = self.config("mistral-nemo-12b")
        words[3] = "seq=1024000,method=full,offload=none"
        one, = self.size(*words, "64", model=long)["ranked"]
        self.assertGreater(one["layout"]["cp"], 1)
        self.assertEqual(one["checkpointing"], "full")
        told = self.as_estimated(long, one, ",seq=1024000")
        self.assertEqual((told["total_bytes"], told["communication"]), (one["total_bytes"], one["communication"]))
        self.assertIn("cp", [each["group"] for each in one["communication"]])
        self.refused("size", path, "--tokens", "1e9", "--count", "8", "--set", "cp=3,seq=4096", says=["cp=3", "use cp=2"])
        self.refused("size", path, "--tokens", "1e9", "--count", "9", "--set", "cp=2,seq=4096", says=["multiple of 2", "use 10"])

    def test_offload_is_the_last_resort_and_has_its_time(self):
        words = ["--hardware", "h100-sxm", "--set", "method=full,seq=4096"]
        alone, = self.size(*words, "--count", "1", model="llama-8b")["ranked"]
        offload = alone["offload"]
        self.assertEqual((offload["of"], offload["link"]), ("optimizer", "PCIe 5 x16"))
        self.assertAlmostEqual(offload["seconds_at_least"], offload["bytes"] / 6.4e10, places=6)
        self.assertGreaterEqual(alone["step_seconds"]["low"], offload["seconds_at_least"])
        self.assertEqual((alone["step_seconds"]["high"], alone["expected"], alone["likely_place"]), (None, None, None))
        self.assertIn("with what offload sends over PCIe 5 x16; no upper one", alone["source"])
        told = self.as_estimated("llama-8b", alone, ",seq=4096")
        self.assertEqual((told["total_bytes"], told["ranks"][0]["host_bytes"]), (alone["total_bytes"], offload["host_bytes"]))
        # Not where something fits without, and behind all that have a figure.
        ranked = self.size(*words, "--count", "1,8", model="llama-8b")["ranked"]
        self.assertEqual([(each["gpus"], each["offload"] is None) for each in ranked], [(8, True), (1, False)])
        self.assertEqual(self.size("--hardware", "h100-sxm", "--set", "method=full,seq=4096,offload=none", "--count", "1", model="llama-8b",
                                   code=1)["ranked"], [])
        small, = self.size("--hardware", "rtx-4090", "--set", "method=full,seq=4096", "--count", "1", model="llama-8b")["ranked"]
        self.assertEqual(small["offload"]["of"], "weights")
        # An own speed is of steps that do not offload.
        alone, = self.size(*words, "--count", "1", "--anchor", "h100-sxm=9000", model="llama-8b")["ranked"]
        self.assertEqual(alone["basis"], "sheet")
        # Without a rate of PCI Express only if asked for.
        self.size("--hardware", "gh200-96gb", "--set", "method=full,seq=4096", "--count", "1", model="llama-8b", code=1)
        text = self.text_of("llama-8b", "--tokens", "1e9", "--hardware", "h100-sxm", "--count", "1", "--set", "method=full")
        self.assertRegex(text, r"offload optimizer: \S+ GiB of a rank in the host's memory, \S+ GiB a step over PCIe 5 x16, at least ")
        # What is planned exactly says that more can be tried.
        read = self.size("--hardware", "h100-sxm", "--count", "1", model="llama-8b", code=1)
        self.assertTrue(any("--set method=full" in would for would in read["would_fit"]), read["would_fit"])

    def test_budget_and_deadline(self):
        words = ["--set", "seq=4096", "--hardware", "h100-sxm", "--count", "8..64", "--anchor", "h100-sxm=10000"]
        # 1e11 tokens at 8e4 a second are 347 h on 8, 43 h on 64 GPUs, before allowances.
        read = self.size(*words, "--deadline", "95")
        self.assertEqual(sorted((each["gpus"], each["meets_deadline"]) for each in read["ranked"]), [(32, None), (64, True)])
        self.assertIn("beyond the deadline", read["rejected"][0]["reason"])
        read = self.size(*words, "--deadline", "40", code=1)
        self.assertEqual((read["ranked"], read["would_fit"]), ([], ["h100-sxm x 64: --deadline 44"]))
        self.size(*words, "--deadline", "44")
        read = self.size(*words, "--max-usd", "1000", code=1)   # 8,196 USD whatever the number
        self.assertIn("costs at least USD 8,19", read["rejected"][0]["reason"])
        self.size(*words, "--max-usd", read["would_fit"][0].split("--max-usd ")[1])
        self.assertEqual({each["within_budget"] for each in self.size(*words, "--max-usd", "30000")["ranked"]}, {True})
        text = self.text_of(LLAMA_7B, "--tokens", "1e11", *words, "--max-usd", "8600")
        self.assertIn("; may exceed the budget", text)
        text = self.text_of(LLAMA_7B, "--tokens", "1e11", "--set", "seq=4096", "--hardware", "h100-sxm", "--count",
                          "1..8", "--max-usd", "5")
        self.assertRegex(text, r"- h100-sxm x 1: does not hold it.* - h100-sxm x 2 to 8: costs at least USD ")
        # Without a price nothing can be said of the cost.
        self.size("--hardware", "a30", "--count", "1", "--max-usd", "5", model="gpt2-tiny", tokens="1e6", code=3)

    def test_not_enough_is_known(self):
        read = self.size("--hardware", "epyc-7763", model="gpt2-tiny", code=3)
        self.assertEqual({each["judged"] for each in read["rejected"]}, {False})

    def test_bad_input(self):
        def refused(*words, says, tokens="1e9", model="gpt2-tiny"):
            self.refused("size", model, "--tokens", tokens, *words, says=says)
        refused("--hardware", "h100-sxn", says='did you mean "h100-sxm"')
        refused("--hardware", "h100-sxm,", says="unknown hardware sheet")
        for tokens in ("0", "-5", "1e300"):
            refused(says=["--tokens", "at least 1"], tokens=tokens)
        refused(says=["--tokens", "many"], tokens="many")
        refused("--count", "64..1", says=["64..1 is reversed", "did you mean 1..64"])
        refused("--count", "0", says="from 1 to 16384")
        refused("--count", "1..x", says="--count")
        refused("--max-usd", "0", says=["--max-usd", "above 0"])
        refused("--deadline", "-1", says=["--deadline", "above 0"])
        refused("--deadline", "soon", says="--deadline")
        refused("--anchor", "h100-sxm", says="must be MACHINE=TOKENS_PER_S")
        refused("--anchor", "h100-sx=3", says='did you mean "h100-sxm"')
        refused("--anchor", "h100-sxm=0", says="above 0")
        refused("--anchor", "h100-sxm=fast", says="--anchor h100-sxm=fast")
        refused("--prices", "none.json", says="none.json")
        refused("--prices", self.write("bad.json", {**PRICES, "prices": [{"instance_type": "a", "price": -1}]}),
                says=["/prices/0", "above 0"])
        refused("--set", "zero=1", says=["cannot be set here", "valid: accumulate, chunks, cp, ep, "])
        refused("--set", "seqs=64", says='did you mean "seq"')
        refused("--set", "seq=100000", says="beyond the model's")
        refused(says='did you mean "gpt2-tiny"', model="gpt2-tinny")
        self.refused("size", "gpt2-tiny", says="--tokens is required")

    def test_a_misspelt_member_of_what_was_published_is_refused(self):
        env = self.mini_model(1)
        path = self.dir / "configs/sizing/published.json"
        path.write_text(path.read_text().replace('"tokens_per_gpu"', '"tokens_per_gqu"', 1))
        self.refused("size", "gpt2-tiny", "--tokens", "1e9", "--count", "1", env=env, lines=2,
                     says=["published.json: /training/0"])


if __name__ == "__main__":
    unittest.main()
