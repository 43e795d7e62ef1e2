"""The tensors of `assay estimate --set engine=torch` against what torch's own memory tracker counts: of 11 architectures
{full, LoRA, FSDP2} x {none, full recomputation}, selective recomputation on one rank and under FSDP2, LoRA under FSDP2; the same of
capped scores. Needs torch, transformers and peft (ASSAY_HF_PYTHON, default: this Python).
usage: torch_memory_test.py [--rewrite]: writes every fourth of torch's figures to tests/architectures/torch.json, which a unit
test holds the planner against."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ASSAY = os.environ.get("ASSAY", "assay")
FILE = HERE.parent / "architectures/torch.json"
FROZEN = 4
MAX_MEDIAN, MAX_WORST = 0.03, 0.08
DENSE = {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "vocab_size": 8000, "max_position_embeddings": 2048}
ENCODER = {"intermediate_size": 2048}
CONFIGS = [
    {"model_type": "llama", **DENSE, "num_key_value_heads": 2, "intermediate_size": 1792},
    {"model_type": "mistral", **DENSE, "num_key_value_heads": 2, "intermediate_size": 1792, "sliding_window": 256},
    {"model_type": "qwen2", **DENSE, "num_key_value_heads": 2, "intermediate_size": 2560, "tie_word_embeddings": True},
    {"model_type": "qwen3", **DENSE, "num_key_value_heads": 4, "intermediate_size": 1536, "head_dim": 128},
    {"model_type": "gemma", **DENSE, "num_key_value_heads": 1, "intermediate_size": 4096, "head_dim": 128, "vocab_size": 16000},
    {"model_type": "gemma3_text", **DENSE, "num_key_value_heads": 4, "intermediate_size": 3072, "head_dim": 128,
     "sliding_window": 4096},
    {"model_type": "phi3", **DENSE, "num_key_value_heads": 8, "intermediate_size": 1408, "pad_token_id": 0, "sliding_window": 2048},
    {"model_type": "gpt_neox", **DENSE, **ENCODER},
    {"model_type": "gpt2", "n_embd": 512, "n_layer": 4, "n_head": 8, "vocab_size": 8000, "n_positions": 1024},
    {"model_type": "bert", **DENSE, **ENCODER},
    {"model_type": "roberta", **DENSE, **ENCODER, "max_position_embeddings": 2050, "pad_token_id": 1},
]
LATER_CONFIGS = [
    {"model_type": "gemma2", **DENSE, "num_key_value_heads": 4, "intermediate_size": 3072, "head_dim": 64, "sliding_window": 256},
]
METHODS = [("full", 1), ("lora", 1), ("full", 8)]
RECOMPUTED = ("none", "full", "selective")
FEW_CLASSES = 1000  # so that layers, not the loss, have the peak


def cases():
    all_cases = []

    def add(index, config, method, ranks, recompute):
        number = len(all_cases)
        all_cases.append({"config": config, "method": method, "recompute": recompute, "ranks": ranks,
                          "precision": "f32" if number % 5 == 3 else "bf16",
                          "micro_batch": 1 + (number + index) % 3,
                          "seq": 512})

    for index, config in enumerate(CONFIGS):
        for method, ranks in METHODS:
            for recompute in ("none", "full"):
                add(index, config, method, ranks, recompute)
    for index, config in enumerate(CONFIGS + LATER_CONFIGS):
        few = {**config, "vocab_size": FEW_CLASSES}
        add(index, few, "full", 1, "selective")
        add(index, few, "full", 8, "selective")
        add(index, few, "lora", 8, RECOMPUTED[index % 3])
    for index, config in enumerate(LATER_CONFIGS):
        few = {**config, "vocab_size": FEW_CLASSES}
        add(index, few, "full", 1, "none")
        add(index, few, "full", 8, "full")
        add(index, few, "lora", 1, RECOMPUTED[index % 3])
    return all_cases


def planned(case, folder):
    file = pathlib.Path(folder) / "config.json"
    file.write_text(json.dumps(case["config"]), encoding="utf-8")
    settings = (f"engine=torch,micro_batch={case['micro_batch']},seq={case['seq']},precision={case['precision']},"
                f"method={case['method']},checkpointing={case['recompute']},dp={case['ranks']},"
                f"zero={3 if case['ranks'] > 1 else 0}")
    told = subprocess.run([ASSAY, "estimate", str(file), "--set", settings, "--json"], capture_output=True, text=True, check=False)
    if told.returncode != 0:
        raise SystemExit(f"{case}: {told.stderr}")
    return json.loads(told.stdout)["torch"]["tensor_bytes"]


def main():
    python = os.environ.get("ASSAY_HF_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import torch, transformers, peft"], capture_output=True, check=False).returncode != 0:
        print("skipped: torch, transformers and peft are not installed (ASSAY_HF_PYTHON=PYTHON of a venv that has them)")
        return 77
    asked = cases()
    lines = subprocess.run([python, str(HERE / "torch_memory.py")], input=json.dumps(asked), text=True, capture_output=True,
                           check=True).stdout
    answers = [json.loads(line) for line in lines.splitlines()]
    if "--rewrite" in sys.argv[1:]:
        frozen = [{**case, "tensor_bytes": answer["total"]} for case, answer in zip(asked, answers)][::FROZEN]
        FILE.write_text("[\n" + ",\n".join(json.dumps(case) for case in frozen) + "\n]\n", encoding="utf-8")
        return 0
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        for case, answer in zip(asked, answers):
            name = (f"{case['config']['model_type']:<12}{'fsdp2' if case['ranks'] > 1 else '':<6}{case['method']:<5}"
                    f"{case['recompute']:<10}{case['precision']:<5}")
            if "problem" in answer:
                print(f"{name} {answer['problem']}")
                errors.append(float("inf"))
                continue
            ours = planned(case, folder)
            errors.append(ours / answer["total"] - 1)
            print(f"{name} torch {answer['total'] / 2**20:9.1f} MiB, planned {ours / 2**20:9.1f} MiB, {100 * errors[-1]:+6.1f} %")
    sizes = [abs(error) for error in errors]
    median, worst = statistics.median(sizes), max(sizes)
    print(f"{len(errors)} configurations: median {100 * median:.1f} %, worst {100 * worst:.1f} %")
    return 1 if median > MAX_MEDIAN or worst > MAX_WORST or len(errors) < 105 else 0


if __name__ == "__main__":
    sys.exit(main())
