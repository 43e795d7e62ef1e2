"""Makes the golden files: PyTorch's results in float64 for small models, so that the test does not need PyTorch.

make_golden.py [NAME...]     writes NAME.golden next to cases.json for those cases (default: all); needs torch 2

A case in cases.json names a model config in Assay's format and says how to train it. A golden file is the line
"assay-golden 1", then for each tensor one line

  NAME DTYPE ERROR SIZE...

and its elements, row-major, little-endian. ERROR is the L2 norm of PyTorch's own float32 error in that tensor: the
largest of several runs, because rounding differs between runs. Runs vary the order of the samples, the number of
threads, and PyTorch's implementations (oneDNN or not, blockwise attention or not).

  inputs/ids, type_ids, lengths, targets, images   i32, f32
  weights/NAME          f32: the initial weights, the same for every precision
  loss                  f64: of the first step
  gradients/NAME        f64: of the first step, before clipping
  losses                f64: of 10 optimizer steps on that batch, each before its update
  rows, trained_rows    f64: each row's loss in evaluation (no smoothing, running statistics), before and after the steps
  running_mean/NAME, running_variance/NAME   f64: after the steps
"""

import json
import pathlib
import sys

import numpy
import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from golden_models import Store, resnet, transformer

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STEPS, RUNS = 10, 16


def inputs_of(case, config, generator):
    """The number of valid targets is a power of two, so that dividing by it is exact in any type."""
    samples, seq = case["samples"], case.get("seq", 0)

    def integers(top, *shape):
        return torch.randint(top, shape, generator=generator)

    if not seq:
        return {"images": torch.randn((samples, config["image"], config["image"], 3), generator=generator),
                "targets": integers(config["classes"], samples)}
    batch = {"ids": integers(config["vocabulary"], samples, seq), "targets": integers(config["vocabulary"], samples, seq)}
    if config.get("token_types"):
        batch["type_ids"] = integers(config["token_types"], samples, seq)
    lengths = torch.full((samples,), seq)
    if "lengths" in case:
        lengths = batch["lengths"] = torch.tensor(case["lengths"])
    inside = (torch.arange(seq) < lengths[:, None]).flatten().nonzero().flatten()
    chosen = inside[torch.randperm(len(inside), generator=generator)[: case["valid"]]]
    keep = torch.zeros(samples * seq, dtype=torch.bool).index_fill(0, chosen, True)
    batch["targets"] = batch["targets"].where(keep.view(samples, seq), -100)
    return batch


def optimizer_of(case, weights):
    o = dict(case["optimizer"])
    kind, decay = o.pop("kind"), o.pop("weight_decay")
    groups = [{"params": [w for w in weights if w.dim() > 1], "weight_decay": decay},
              {"params": [w for w in weights if w.dim() <= 1], "weight_decay": 0.0}]
    if kind == "sgd":
        return torch.optim.SGD(groups, lr=o["learning_rate"], momentum=o["momentum"])
    return torch.optim.AdamW(groups, lr=o["learning_rate"], betas=(o["beta1"], o["beta2"]), eps=o["epsilon"])


def train(case, model, config, store, batch, dtype, order):
    """Returns all tensors to compare, by their names in the file; rows are in the order of the samples."""
    batch = {name: value[order] for name, value in batch.items()}
    if "images" in batch:
        batch["images"] = batch["images"].to(dtype)
    targets = batch["targets"].flatten()
    store = store.copy(dtype)
    weights = list(store.weights.values())
    optimizer = optimizer_of(case, weights)
    back = torch.argsort(order)
    found = {}

    def rows():
        with torch.no_grad():
            losses = F.cross_entropy(model(store, config, batch, training=False), targets, reduction="none")
        return losses.view(batch["targets"].shape)[back].flatten()

    found["rows"] = rows()
    losses = []
    for step in range(STEPS):
        loss = F.cross_entropy(model(store, config, batch), targets, label_smoothing=case.get("smoothing", 0.0))
        optimizer.zero_grad()
        loss.backward()
        losses.append(loss.detach())
        if step == 0:
            found["loss"] = loss.detach().view(1)
            found |= {f"gradients/{name}": w.grad.clone() for name, w in store.weights.items()}
        if case.get("max_norm"):
            torch.nn.utils.clip_grad_norm_(weights, case["max_norm"])
        optimizer.step()
    found["losses"] = torch.stack(losses)
    found["trained_rows"] = rows()
    return found | store.running


def write(path, tensors):
    """tensors: name -> (value, error)."""
    with open(path, "wb") as file:
        file.write(b"assay-golden 1\n")
        for name, (value, error) in tensors.items():
            array = numpy.ascontiguousarray(value.detach().numpy())
            kind = {"int64": "i32", "float32": "f32", "float64": "f64"}[str(array.dtype)]
            array = array.astype({"i32": "<i4", "f32": "<f4", "f64": "<f8"}[kind])
            file.write(f"{name} {kind} {error:.6g} {' '.join(map(str, array.shape))}\n".encode() + array.tobytes())


def make(case):
    config = json.loads((ROOT / case["model"]).read_text())
    model = resnet if "image" in config else transformer
    generator = torch.Generator().manual_seed(case["seed"])
    batch = inputs_of(case, config, generator)
    store = Store(case["seed"] + 1)
    model(store, config, batch)  # makes the weights
    store.running.clear()
    model(store, config, batch, training=False)
    exact = train(case, model, config, store, batch, torch.float64, torch.arange(case["samples"]))
    errors = dict.fromkeys(exact, 0.0)
    for draw in range(RUNS):
        torch.set_num_threads(1 + draw % 2)
        attention = SDPBackend.MATH if draw // 2 % 2 else SDPBackend.FLASH_ATTENTION
        order = torch.randperm(case["samples"], generator=generator)
        with sdpa_kernel([attention, SDPBackend.MATH]), torch.backends.mkldnn.flags(enabled=draw // 4 % 2 == 0):
            found = train(case, model, config, store, batch, torch.float32, order)
        for name, value in found.items():
            errors[name] = max(errors[name], float((value.double() - exact[name]).norm()))
    tensors = {f"inputs/{name}": (value, 0.0) for name, value in batch.items()}
    tensors |= {f"weights/{name}": (value, 0.0) for name, value in store.weights.items()}
    tensors |= {name: (value, errors[name]) for name, value in exact.items()}
    path = HERE / f"{case['name']}.golden"
    write(path, tensors)
    print(f"{path.name}: {sum(w.numel() for w in store.weights.values())} parameters, {path.stat().st_size} bytes, "
          f"losses {exact['losses'][0]:.4f} to {exact['losses'][-1]:.4f}")


def main():
    cases = json.loads((HERE / "cases.json").read_text())["cases"]
    for case in cases:
        if not sys.argv[1:] or case["name"] in sys.argv[1:]:
            make(case)


main()
