"""The parameters of tests/architectures/published.json as transformers counts them on torch's meta device, where both are
installed (ASSAY_HF_PYTHON, default: this Python). usage: architectures_test.py [--rewrite]"""
import json
import os
import pathlib
import subprocess
import sys

FILE = pathlib.Path(__file__).resolve().parents[1] / "architectures/published.json"
COUNT = r"""
import json, sys, warnings
warnings.simplefilter("ignore")
import torch, transformers
transformers.logging.set_verbosity_error()
AUTO = {"bert": "AutoModelForMaskedLM", "roberta": "AutoModelForMaskedLM", "vit": "AutoModelForImageClassification"}
counts = {}
for name, config in json.load(sys.stdin).items():
    config = dict(config.get("text_config", config))
    config.pop("quantization_config", None)
    kind = config.pop("model_type")
    made = transformers.AutoConfig.for_model(kind, **config)
    with torch.device("meta"):
        model = getattr(transformers, AUTO.get(kind, "AutoModelForCausalLM")).from_config(made)
    total = sum(each.numel() for each in model.parameters())
    routed = sum(each.numel() for part, each in model.named_parameters() if ".experts." in part)
    experts = config.get("num_local_experts") or config.get("num_experts") or config.get("n_routed_experts") or 1
    used = config.get("num_experts_per_tok", 1)
    counts[name] = [total, total - routed // experts * (experts - used)]
json.dump(counts, sys.stdout)
"""


def main():
    models = json.loads(FILE.read_text(encoding="utf-8"))
    python = os.environ.get("ASSAY_HF_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import torch, transformers"], capture_output=True, check=False).returncode != 0:
        print("skipped: torch and transformers are not installed (ASSAY_HF_PYTHON=PYTHON of a venv that has them)")
        return 77
    given = json.dumps({model["name"]: model["config"] for model in models})
    counts = json.loads(subprocess.run([python, "-c", COUNT], input=given, text=True, capture_output=True, check=True).stdout)
    wrong = [model["name"] for model in models if [model.get("parameters"), model.get("active")] != counts[model["name"]]]
    if "--rewrite" in sys.argv[1:]:
        for model in models:
            model["parameters"], model["active"] = counts[model["name"]]
        FILE.write_text("[\n" + ",\n".join(json.dumps(model) for model in models) + "\n]\n", encoding="utf-8")
        return 0
    for name in wrong:
        print(f"{name}: transformers counts {counts[name]}")
    print(f"{len(models) - len(wrong)} of {len(models)} configurations as transformers counts them")
    return 1 if wrong or len(models) < 30 else 0


if __name__ == "__main__":
    sys.exit(main())
