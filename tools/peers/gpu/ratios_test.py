"""The ratio table with fake peers and a fake Assay of known figures; PyTorch scripts on the CPU if PyTorch is there."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import ratios  # noqa: E402
import torch_train  # noqa: E402

ASSAY = '''#!{python}
import json, pathlib, sys
arguments = sys.argv
here = pathlib.Path(__file__).parent
out = pathlib.Path(arguments[arguments.index("--out") + 1])
out.mkdir(parents=True)
value = float(arguments[2])
log = here / "order"
log.write_text((log.read_text() if log.exists() else "") + "A")
metrics = [dict(name="throughput", value=value, unit="tokens/s", better="higher"),
           dict(name="peak_memory", value=30, unit="B", better="lower"),
           dict(name="mfu", value=0.53, unit="1", better="higher")]
ranks = [dict(device="NVIDIA H100 80GB HBM3")]
record = dict(key="k", status="ok", reason="", flags=[], metrics=metrics, ranks=ranks)
if (here / "held").exists() and "large" in arguments:
    record |= dict(status="skipped", reason="39 GiB are planned, 20 GiB are free", flags=["does not fit"])
(out / "records.jsonl").write_text(json.dumps(record) + "\\n")
'''
PEER = '''
import pathlib, sys
sys.path.insert(0, {here!r})
import serve
log = pathlib.Path({folder!r}) / "order"
print("output of a library")
def measure():
    log.write_text((log.read_text() if log.exists() else "") + "B")
    return dict(value={value}, unit="tokens/s", better="higher", form="x", also=dict(peak_memory=dict(value=60, unit="B", better="lower")))
with (pathlib.Path({folder!r}) / "starts").open("a") as starts:
    starts.write("x")
{before}
held = pathlib.Path({folder!r}) / "held"  # while it lives, so does its memory
held.touch()
serve.serve(measure, dict(torch="2.11", device="fake", cuda="13.0", cudnn=9, form="x"), False)
held.unlink()
'''


class Table(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        assay = self.path / "assay"
        assay.write_text(ASSAY.replace("{python}", sys.executable))
        assay.chmod(0o755)

    def entry(self, name, mine, peers, before="", words=(), restart=False, **more):
        program = self.path / f"{name}.py"
        program.write_text(PEER.format(here=str(HERE), folder=str(self.path), value=peers, before=before))
        return {"name": name, "about": f"about {name}", "ours": {"assay": [str(mine), *words], "metric": "throughput"},
                "peer": {"serve": ["{python}", str(program)]} | ({"restart": True} if restart else {})} | more

    def drive(self, entries, *more, out="out", env=None):
        (self.path / "list.json").write_text(json.dumps(entries))
        command = [sys.executable, str(HERE / "ratios.py"), "--assay", str(self.path / "assay"), "--out", str(self.path / out),
                   "--comparisons", str(self.path / "list.json"), "--pairs", "6", *more]
        return subprocess.run(command, capture_output=True, text=True, env=os.environ | (env or {}))

    def rows(self, out="out"):
        lines = (self.path / out / "ratios.md").read_text().splitlines()
        return {cells[1].strip(): [cell.strip() for cell in cells[2:-1]]
                for cells in (line.split("|") for line in lines if line.startswith("| ")) if cells[1].strip() != "comparison"}

    def test_sides_alternate_and_the_interval_decides(self):
        done = self.drive([self.entry("fast", 120, 100, at_least=1.15, also=[{"metric": "peak_memory"}])])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.path / "order").read_text(), "ABBAABBAABBA")
        self.assertEqual((self.path / "starts").read_text(), "x")  # the peer is started once
        rows = self.rows()
        self.assertEqual(rows["fast"][3:], ["1.200", "1.200 .. 1.200", ">= 1.15", "6", "held"])
        self.assertEqual(rows["fast:peak_memory"][3:], ["0.500", "0.500 .. 0.500", "", "6", "measured"])
        self.assertIn("fake, PyTorch 2.11", (self.path / "out" / "ratios.md").read_text())
        self.assertTrue((self.path / "out" / "runs" / "fast-6" / "records.jsonl").exists())
        done = self.drive([self.entry("slow", 110, 100, at_least=1.15)], out="other")
        self.assertEqual((done.returncode, self.rows("other")["slow"][-1]), (1, "FAILED"))

    def test_a_peer_that_restarts_holds_no_memory_while_assay_runs(self):
        done = self.drive([self.entry("large", 120, 100, words=["large"], restart=True, at_least=1.15)])
        self.assertEqual((done.returncode, self.rows()["large"][-1]), (0, "held"), done.stderr)
        self.assertEqual((self.path / "order").read_text(), "ABBAABBAABBA")
        self.assertEqual((self.path / "starts").read_text(), "xxx")  # once for two of its figures in a row
        self.assertEqual(json.loads((self.path / "out/ratios.json").read_text())["large"]["form"], "x")

    def test_what_does_not_fit_beside_a_peer_is_broken(self):
        done = self.drive([self.entry("large", 120, 100, words=["large"], at_least=1.15), self.entry("small", 120, 100, at_least=1.15)])
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(self.rows()["large"][-1], "broken: k: 39 GiB are planned, 20 GiB are free")
        self.assertEqual(self.rows()["small"][-1], "held")

    def test_both_sides_are_smaller_on_a_small_gpu(self):
        entry = self.entry("large", 120, 100, words=["batch=8"],
                           small_gpu={"bytes": 100e9, "words": {"batch=8": "batch=4", "8": "4"}, "about": "about four"})
        entry["peer"]["serve"].append("8")
        smi = self.path / "nvidia-smi"
        path = {"PATH": f"{self.path}:{os.environ['PATH']}"}
        for mebibytes, batch, about in (("81559", "4", "about four"), ("143771", "8", "about large"), ("[N/A]", "4", "about four")):
            smi.write_text(f"#!/bin/sh\necho '{mebibytes}'\n")
            smi.chmod(0o755)
            done = self.drive([entry], "--dry-run", env=path)
            self.assertEqual(done.returncode, 0, done.stderr)
            first, ours, peer = done.stdout.splitlines()
            self.assertEqual((first, ours.split("batch=")[1][0], peer.split()[-2]), (f"large: {about}", batch, batch))
        done = self.drive([entry], env=path)
        self.assertEqual(done.returncode, 0, done.stderr)
        smi.write_text("#!/bin/sh\necho 143771\n")
        done = self.drive([entry], env=path)  # pairs of another size are no pairs of this one
        self.assertEqual((self.path / "order").read_text(), "ABBAABBAABBA" * 2)
        self.assertIn("- large: about large", (self.path / "out/ratios.md").read_text())

    def test_a_figure_of_ours_is_judged_by_the_bound_of_its_gpu(self):
        for bounds, verdict, required in (({"H100": 0.52, "H200": 0.55}, "held", ">= 0.52"), ({"H100": 0.54}, "FAILED", ">= 0.54"),
                                          ({"B200": 0.9}, "measured", "")):
            with self.subTest(bounds):
                done = self.drive([self.entry("fast", 120, 100, own=[{"metric": "mfu", "at_least": bounds}])], out=verdict)
                self.assertEqual(done.returncode, 1 if verdict == "FAILED" else 0, done.stderr)
                self.assertEqual(self.rows(verdict)["fast:mfu"], ["53 %", "", "", "", "0.530 .. 0.530", required, "6", verdict])
        done = self.drive([self.entry("fast", 120, 100, own=[{"metric": "nothing", "at_least": {}}])], out="absent")
        self.assertEqual((done.returncode, self.rows("absent")["fast:nothing"][-1]), (1, "broken: no metric nothing"))

    def test_a_full_name_selects_one_comparison(self):
        entries = [self.entry("one", 2, 1), self.entry("one-more", 2, 1), self.entry("two", 2, 1)]
        self.assertEqual(self.drive(entries, "one").returncode, 0)
        self.assertEqual(set(self.rows()), {"one"})
        self.assertEqual(self.drive(entries, "tw").returncode, 0)
        self.assertEqual(set(self.rows()), {"one", "two"})  # the folder's table has both
        self.assertEqual(set(json.loads((self.path / "out/rows.json").read_text())), {"one", "two"})

    def test_libraries_are_for_the_program_only(self):
        record = 'import os; (pathlib.Path({0!r}) / "{1}").write_text(os.environ.get("LD_LIBRARY_PATH", "") + os.environ.get("ASSAY_PEER_FORM", ""))'
        assay = self.path / "assay"
        assay.write_text(assay.read_text() + record.format(str(self.path), "ours") + "\n")
        state = {"one": {"pairs": [{"ours": {"value": 3, "unit": "tokens/s", "better": "higher"},
                                    "peer": {"value": 1, "unit": "tokens/s", "better": "higher", "form": "eager"}}]}}
        (self.path / "out").mkdir()
        (self.path / "out" / "ratios.json").write_text(json.dumps(state))
        done = self.drive([self.entry("one", 2, 1, before=record.format(str(self.path), "theirs"))], "--libraries", "/nowhere")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.path / "ours").read_text(), "/nowhere")
        self.assertEqual((self.path / "theirs").read_text(), "eager")  # the earlier form

    def test_resumes(self):
        entries = [self.entry("one", 2, 1, at_least=1), self.entry("two", 2, 1, at_least=1)]
        done = self.drive(entries, "--minutes", "0")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("unfinished", self.rows()["one"][-1])
        state = {"one": {"pairs": [{"ours": {"value": 3, "unit": "tokens/s", "better": "higher"},
                                    "peer": {"value": 1, "unit": "tokens/s", "better": "higher"}}]}}
        (self.path / "out" / "ratios.json").write_text(json.dumps(state))
        done = self.drive(entries)
        self.assertEqual(done.returncode, 0, done.stderr)
        values = [pair["ours"]["value"] for pair in
                  json.loads((self.path / "out" / "ratios.json").read_text())["one"]["pairs"]]
        self.assertEqual(values, [3, 2, 2, 2, 2, 2])

    def test_skipped_and_broken_comparisons_do_not_stop_the_rest(self):
        done = self.drive([self.entry("absent", 1, 1, before="serve.skip('no GPU')", at_least=1),
                           self.entry("broken", 1, 1, before="raise SystemExit('gone')", at_least=1),
                           self.entry("there", 1, 1, at_least=1)])
        self.assertEqual(done.returncode, 1)
        rows = self.rows()
        self.assertEqual(rows["absent"][-1], "skipped: no GPU")
        self.assertRegex(rows["broken"][-1], "broken: .*exit code 1: gone")
        self.assertEqual(rows["there"][-1], "held")

    def test_a_bound_that_was_not_judged_is_told_by_the_exit_code(self):
        absent = self.entry("absent", 1, 1, before="serve.skip('no GPU')")
        self.assertEqual(self.drive([absent | {"at_least": 1}]).returncode, 3)
        self.assertEqual(self.drive([absent], out="other").returncode, 0)  # nothing is asked of it

    def test_assay_against_itself(self):
        entry = self.entry("cost", 95, 0)
        entry["peer"] = {"assay": ["100"], "metric": "throughput"}
        done = self.drive([entry])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.path / "order").read_text(), "A" * 12)
        self.assertEqual(self.rows()["cost"][3:], ["0.950", "0.950 .. 0.950", "", "6", "measured"])
        self.assertTrue((self.path / "out" / "runs" / "cost-6-peer" / "records.jsonl").exists())

    def test_usage(self):
        entries = [self.entry("gemm", 1, 1)]
        self.assertEqual(self.drive(entries, "--pairs", "5").returncode, 2)
        done = self.drive(entries, "gmem")
        self.assertEqual(done.returncode, 2)
        self.assertIn("gemm", done.stderr)

    def test_the_shipped_list_is_valid(self):
        done = subprocess.run([sys.executable, str(HERE / "ratios.py"), "--dry-run"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        names = [entry["name"] for entry in json.loads((HERE / "comparisons.json").read_text())]
        self.assertEqual(len(set(names)), len(names))
        for name in names:
            self.assertIn(f"{name}: ", done.stdout)
        self.assertNotIn("{", done.stdout)

    def test_scaled(self):
        self.assertEqual(ratios.scaled(7.5e14, "FLOP/s"), "750 TFLOP/s")
        self.assertEqual(ratios.scaled(1234.0, "img/s"), "1234 img/s")

    def test_the_compiled_forms_are_sought_in_bf16_only(self):
        options = types.SimpleNamespace(form="compiled-bf16", search=False, warm_up=1, steps=2)
        tried = []
        training = types.SimpleNamespace(precisions=["", torch_train.BF16],
                                         measure=lambda loss, form, steps: tried.append(form) or {"value": len(tried)})
        with mock.patch.object(torch_train, "ready", lambda *_: object()):
            for device, want in (("cuda", ["compiled, bf16 parameters", "compiled with CUDA graphs, bf16 parameters"]),
                                 ("cpu", ["compiled, bf16 parameters"])):
                tried.clear()
                options.device = device
                training.precisions = ["", torch_train.BF16]
                self.assertEqual(torch_train.fastest(training, *torch_train.modes(training, options), options)[0], want[-1])
                self.assertEqual(tried, want)
            training.precisions, options.form, options.device = [""], "compiled-bf16", "cuda"  # ResNet-50
            self.assertEqual(torch_train.modes(training, options), (["compiled"], ["compiled with CUDA graphs"]))
            self.assertEqual(training.precisions, [""])


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed here")
class Scripts(unittest.TestCase):
    def figure(self, *command):
        done = subprocess.run([sys.executable, str(HERE / command[0]), *command[1:], "--device", "cpu", "--once"],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.strip().splitlines()[-1])

    def test_training(self):
        for model, unit in (("resnet50", "img/s"), ("gpt2-124m", "tokens/s"), ("llama-1b", "tokens/s")):
            figure = self.figure("torch_train.py", model, "--tiny", "--form", "eager", "--steps", "3", "--warm-up", "1")
            self.assertEqual((figure["unit"], figure["steps"]), (unit, 3))
            bf16 = "eager, bf16 parameters"  # of language models: the faster of both precisions counts
            self.assertEqual(set(figure["tried"]), {"eager"} if model == "resnet50" else {"eager", bf16})
            self.assertTrue(all(isinstance(value, float) for value in figure["tried"].values()), figure["tried"])
            self.assertEqual(figure["form"], max(figure["tried"], key=figure["tried"].get))
            self.assertGreater(figure["value"], 0)
            self.assertGreater(figure["median_step"], 0)

    def test_parameters_in_bf16_train_like_those_in_f32(self):
        def loss(form):
            command = [sys.executable, str(HERE / "torch_train.py"), "llama-1b", "--tiny", "--form", "eager", "--device", "cpu",
                       "--once", "--steps", "20", "--warm-up", "1"]
            done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"ASSAY_PEER_FORM": form})
            self.assertEqual(done.returncode, 0, done.stderr)
            figure = json.loads(done.stdout.strip().splitlines()[-1])
            self.assertEqual((figure["form"], figure["precision"].startswith("bf16")), (form, form != "eager"))
            return figure["loss"]

        wide, narrow = loss("eager"), loss("eager, bf16 parameters")
        self.assertLess(wide, 4.8)  # it learns its batch: the first loss is ln(128), 4.85
        self.assertAlmostEqual(narrow / wide, 1, delta=0.02)

    def test_models_have_the_right_parameter_counts(self):
        sys.path.insert(0, str(HERE.parent / "training"))
        import torch_models

        for name, count in torch_models.PARAMETERS.items():
            kind, sizes = torch_models.MODELS[name]
            with torch_models.torch.device("meta"):
                model = kind(**sizes)
            self.assertEqual(sum(weight.numel() for weight in model.parameters()), count, name)

    @unittest.skipUnless(importlib.util.find_spec("torchvision"), "torchvision is not installed here")
    def test_resnet_equals_torchvisions(self):
        sys.path.insert(0, str(HERE.parent / "training"))
        import torch_models
        from torchvision.models import resnet50

        mine, theirs = torch_models.make("resnet50"), resnet50()
        theirs.load_state_dict(mine.state_dict())
        images = torch_models.torch.randn(1, 3, 64, 64)
        with torch_models.torch.no_grad():
            difference = (mine.eval().logits(images) - theirs.eval()(images)).abs().max().item()
        self.assertLess(difference, 1e-6)

    def test_kernels(self):
        figure = self.figure("torch_kernels.py", "matmul", "--dtype", "f32", "--size", "64", "--samples", "2")
        self.assertEqual((figure["unit"], set(figure["tried"])), ("FLOP/s", {"nn", "nt", "tn", "tt"}))
        self.assertEqual(figure["form"], max(figure["tried"], key=figure["tried"].get))
        figure = self.figure("torch_kernels.py", "copy", "--bytes", "1048576", "--samples", "2")
        self.assertEqual((figure["unit"], figure["bytes"]), ("B/s", 1048576))


if __name__ == "__main__":
    unittest.main()
