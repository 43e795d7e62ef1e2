"""assay list, and what all subcommands have in common: help, version, errors."""

import datetime
import json
import subprocess
import unittest

from assay_case import AssayCase

FAMILIES = {
    "gemm": ["dtype", "m", "n", "k", "transpose", "cache", "duration", "accumulation", "gpus"],
    "peak": ["dtype", "isa", "threads"],
    "memory": ["op", "bytes", "store", "threads", "gpus"],
    "transfer": ["direction", "memory", "bytes", "by", "gpus"],
    "collective": ["op", "bytes", "dtype", "inplace", "batching", "nvls", "buffers", "p2p", "among"],
    "dataloader": ["kind", "path", "stage", "workers", "cache"],
    "launch": ["op"],
    "command": ["name", "argv", "env", "metric", "unit", "better", "runs", "warmup", "timeout"],
}


class List(AssayCase):
    def listed(self, *words, env=None):
        done = self.assay("list", *words, "--json", env=env)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_all_kinds_unless_one_is_named(self):
        kinds = ["families", "plans", "models", "hardware", "floors", "levels", "codes"]
        self.assertEqual(list(self.listed()), kinds)
        for kind in kinds:
            self.assertEqual(list(self.listed(kind)), [kind])

    def test_floors_levels_and_codes(self):
        self.assertIn(("fleet", "hosts (and GPUs) of one kind against their own median"),
                      [(file["name"], file["description"]) for file in self.listed("floors")["floors"]])
        self.assertLessEqual({"quick", "day"}, {level["name"] for level in self.listed("levels")["levels"]})
        self.assertEqual(self.listed("codes")["codes"], json.loads(self.assay("gate", "--list", "--json").stdout)["codes"])
        for kind in ("floors", "levels", "codes"):
            text = self.assay("list", kind).stdout.splitlines()
            listed = self.listed(kind)[kind]
            self.assertEqual((text[0], len(text)), (kind, len(listed) + 1))
            for line, entry in zip(text[1:], listed):
                self.assertEqual(line.split()[0], entry.get("code", entry.get("name")))

    def test_a_file_of_codes_that_cannot_be_read_is_named(self):
        self.write("c/gate.json", "{")
        env = {"ASSAY_CONFIGS": str(self.dir / "c")}
        self.refused("list", "codes", env=env, says="gate.json")
        self.assertIn("gate.json", self.listed(env=env)["codes"][0]["reason"])
        self.assertIn("gate.json", self.assay("list", env=env).stdout)

    def test_prices_have_dates_and_ages_and_those_of_the_user_come_first(self):
        prices = self.listed("prices")["prices"]
        self.assertLessEqual({"aws", "azure", "gcp", "lambda", "nebius", "oci", "runpod", "vast"},
                             {price["provider"] for price in prices})
        for price in prices:
            self.assertRegex(price["date"], r"^20\d\d-\d\d-\d\d$")
            self.assertGreater(price["usd_per_hour"], 0)
            self.assertIn("SkyPilot", price["source"])
        of_a10 = self.listed("prices", "--hardware", "a10")["prices"]
        self.assertEqual({price["gpu"] for price in of_a10}, {"A10"})
        today = datetime.date.today()
        own = self.write("own.json", {"schema": 1, "source": "contract", "currency": "USD", "prices": [
            {"instance_type": "box", "gpu": "NVIDIA A10", "gpus": 1, "price": 1.5, "date": str(today)},
            {"instance_type": "old", "gpu": "A10", "gpus": 1, "price": 1.5,
             "date": str(today - datetime.timedelta(days=181))}]})
        of_mine = self.listed("prices", "--hardware", "a10", "--prices", own)["prices"]
        self.assertEqual([price["file"] for price in of_mine], 2 * ["own.json"] + [price["file"] for price in of_a10])
        self.assertIn(of_mine[1]["age_days"], (181, 182))
        text = self.assay("list", "prices", "--hardware", "a10", "--prices", own).stdout
        self.assertRegex(text, r"old +1 A10 .* 18[12] days old")
        self.assertRegex(text, r"\d+ of \d+ prices older than 180 days")
        self.assertIn("no price is known", self.assay("list", "prices", "--hardware", "grace").stdout)
        self.refused("list", "prices", "--hardware", "a11", says="a10")
        self.refused("list", "plans", "--hardware", "a10", says="assay list prices")
        self.refused("list", "pricess", says='did you mean "prices"?')

    def test_families_have_these_parameters(self):
        families = {family["name"]: family for family in self.listed("families")["families"]}
        for name, params in FAMILIES.items():
            self.assertIn(name, families)
            self.assertEqual([param["name"] for param in families[name]["params"]], params, name)
            for param in families[name]["params"]:
                self.assertTrue(param["defaults"], (name, param["name"]))
                self.assertTrue(param["help"], (name, param["name"]))
            self.assertTrue(families[name]["summary"])

    def test_plans_are_the_files_in_the_configs(self):
        self.assertLessEqual({"smoke", "quick", "micro"}, {plan["name"] for plan in self.listed("plans")["plans"]})
        self.write("c/plans/mine.json", {"schema": 1, "description": "my own", "cases": []})
        self.write("c/plans/broken.json", "{")
        self.write("c/plans/notes.txt", "not a plan")
        env = {"ASSAY_CONFIGS": str(self.dir / "c")}
        plans = self.listed(env=env)
        self.assertEqual([(plan["name"], plan.get("description")) for plan in plans["plans"]],
                         [("broken", None), ("mine", "my own")])
        self.assertEqual((plans["models"], plans["hardware"]), ([], []))

    def test_text_and_json_name_the_same(self):
        text = self.assay("list").stdout
        for family in self.listed("families")["families"]:
            self.assertIn(family["name"], text)
        self.assertIn("quick", text)

    def test_models_have_their_published_size_and_cost(self):
        models = {model["name"]: model for model in self.listed("models")["models"]}
        for name, parameters in {"resnet50": 25557032, "gpt2-124m": 124439808, "llama-8b": 8030261248,
                                 "llama-160m": 162417408}.items():
            self.assertEqual(models[name]["parameters"], parameters)
            self.assertIn("forward", models[name]["flops"]["formula"])
        self.assertAlmostEqual(models["resnet50"]["flops"]["forward"] / 2e9, 4.09, delta=0.005)
        self.assertEqual(models["llama-1b"]["flops"]["per"], "token")

    def test_an_invalid_model_file_is_named(self):
        self.write("c/models/mine.json", {"schema": 1, "family": "llama", "vocabulary": 8, "positions": 8, "layers": 1,
                                          "width": 8, "heads": 3, "mlp_width": 8, "norm": "rms", "position": "rotary",
                                          "mlp": "silu_gate", "tieed": False})
        env = {"ASSAY_CONFIGS": str(self.dir / "c")}
        self.refused("list", "models", env=env, says=["mine.json: ", "/tieed", 'did you mean "tied"'])
        self.assertIn("/tieed", self.listed(env=env)["models"][0]["reason"])
        self.assertIn("assay estimate MODEL", self.assay("list", "models").stdout)

    def test_bad_words(self):
        self.refused("list", "famlies", says=['unknown kind "famlies"', 'did you mean "families"?'])
        self.refused("list", "plans", "models", says='"models" is not expected here')
        self.refused("list", "--jsn", says='did you mean "--json"?')
        self.refused("list", env={"ASSAY_CONFIGS": "/nowhere"}, says="ASSAY_CONFIGS=/nowhere")


class Root(AssayCase):
    def test_a_full_disk_behind_stdout_is_reported(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([self.binary, "list"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 4)
        self.assertRegex(done.stderr, "^assay: cannot write to .*: No space left")

    def test_version_and_help(self):
        version = self.assay("--version")
        self.assertEqual(version.returncode, 0)
        self.assertRegex(version.stdout, r"^assay v?\d+\.\d+\.\d+")
        for words in (["--help"], ["run", "--help"], ["list", "-h"]):
            done = self.assay(*words)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
            self.assertIn("Usage", done.stdout)

    def test_bad_words(self):
        self.refused(says="no subcommand")
        self.refused("lst", says=['unknown subcommand "lst"', 'did you mean "list"?'])
        self.refused("frobnicate", says="valid: ")
        self.refused("--verson", says='did you mean "--version"?')
        self.refused("run", "--fliter=x", says=["unknown flag --fliter", 'did you mean "--filter"?'])


if __name__ == "__main__":
    unittest.main()
