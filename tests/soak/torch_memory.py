"""The most bytes that a training step of PyTorch holds at once, as torch's own MemTracker counts them on fake tensors on the CPU.
Reads a JSON list of cases (config, method, recompute, precision, micro_batch, seq, ranks), writes the answers, one a line.
Run by torch_memory_test.py in a Python that has torch, transformers and, for method=lora, peft."""
import functools
import json
import re
import sys
import unittest.mock
import warnings

warnings.simplefilter("ignore")
# pylint: disable=wrong-import-position
import torch
import torch.distributed as dist
import transformers
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
from torch.distributed._tools.mem_tracker import MemTracker
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils import checkpoint

EAGER_ATTENTION = {"gemma2"}  # its scores are capped, which no fused kernel does
AUTO = {"bert": "AutoModelForMaskedLM", "roberta": "AutoModelForMaskedLM"}
LORA_RANK = 16
KEPT = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default, torch.ops._c10d_functional.reduce_scatter_tensor.default}


def untraced():
    """transformers looks at values, which fake tensors lack, to see whether a mask is needed: there is no padding, and no
    sequence is packed."""
    masks = transformers.masking_utils
    masks.is_tracing = lambda *args, **kwargs: False
    masks.find_packed_sequence_indices = lambda *args, **kwargs: None


def model_of(config, dtype):
    config = dict(config)
    kind = config.pop("model_type")
    made = transformers.AutoConfig.for_model(kind, **config)
    for name in vars(made):  # as `assay estimate` counts: no dropout
        if isinstance(getattr(made, name), float) and ("drop" in name or "pdrop" in name):
            setattr(made, name, 0.0)
    auto = getattr(transformers, AUTO.get(kind, "AutoModelForCausalLM"))
    return kind, made, auto.from_config(made, dtype=dtype, attn_implementation="eager" if kind in EAGER_ATTENTION else "sdpa").train()


def inputs_of(kind, made, case):
    batch = case["micro_batch"]
    ids = torch.randint(0, made.vocab_size, (batch, case["seq"]))
    more = {} if kind in ("bert", "roberta") else {"use_cache": False}
    return {"input_ids": ids, "labels": ids, **more}


def with_adapters(model):
    import peft  # pylint: disable=import-outside-toplevel
    kinds = (torch.nn.Linear, transformers.pytorch_utils.Conv1D)
    names = [name for name, part in model.named_modules() if isinstance(part, kinds) and re.search(r"\.\d+\.", name)]
    # Adapters are made in f32, to which peft would cast them; moving a module replaces its tensors, and fake ones refuse.
    with unittest.mock.patch.object(torch.nn.Module, "to", lambda module, *args, **kwargs: module):
        return peft.get_peft_model(model, peft.LoraConfig(r=LORA_RANK, target_modules=names), autocast_adapter_dtype=False)


@functools.cache
def mesh_of(ranks):
    """Of a group that sends nothing."""
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    return dist.init_device_mesh("cpu", (ranks,))


def shard(model, layers, mesh, bf16):
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if bf16 else MixedPrecisionPolicy()
    for layer in layers:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(model, mesh=mesh, mp_policy=policy)


def layers_of(model):
    lists = [part for part in model.modules() if isinstance(part, torch.nn.ModuleList)]
    return max(lists, key=lambda part: sum(each.numel() for each in part.parameters()))


def keeps_every_second_product():
    """The contexts of a layer that is computed again but for what torchtitan's selective recomputation keeps: every second
    matrix product without a bias, what attention gives, and what a reduce-scatter does."""
    aten = torch.ops.aten
    products = {"forward": 0, "again": 0}

    def policy(context, op, *_args, **_kwargs):
        if op is aten.mm.default:
            part = "again" if context.is_recompute else "forward"
            products[part] += 1
            kept = products[part] % 2 == 1
        else:
            kept = op in KEPT
        return checkpoint.CheckpointPolicy.MUST_SAVE if kept else checkpoint.CheckpointPolicy.PREFER_RECOMPUTE

    return checkpoint.create_selective_checkpoint_contexts(policy)


class Tracker(MemTracker):
    """MemTracker, which would hook the gradients of frozen parameters too."""

    def _track_module_params_and_buffers(self, module, install_grad_hooks=True):
        return super()._track_module_params_and_buffers(module, install_grad_hooks=False)


def peak(case):
    sharded, bf16 = case["ranks"] > 1, case["precision"] == "bf16"
    mesh = mesh_of(case["ranks"]) if sharded else None
    with FakeTensorMode():
        kind, made, model = model_of(case["config"], torch.bfloat16 if bf16 and not sharded else torch.float32)
        if case["method"] == "lora":
            model = with_adapters(model)
        if case["recompute"] != "none":
            contexts = {"context_fn": keeps_every_second_product} if case["recompute"] == "selective" else {}
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False, **contexts})
        if sharded:
            shard(model, layers_of(model), mesh, bf16)
        optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], foreach=True)
        inputs = inputs_of(kind, made, case)
        tracker = FSDPMemTracker(model, optimizer) if sharded else Tracker()
        tracker.track_inputs(tuple(inputs.values())) if sharded else tracker.track_external(model, optimizer)
        with tracker:
            for _ in range(2):
                # The first step makes the optimizer's state, and what DTensor keeps of each operation's shapes.
                tracker._peak_mem.clear()
                tracker._peak_mem_snap.clear()
                tracker.reset_mod_stats()
                model(**inputs).loss.backward()
                optimizer.step()
                optimizer.zero_grad()
        snapshot = tracker.get_tracker_snapshot("peak")
    (parts,) = [parts for device, parts in snapshot.items() if device.type == "cpu"]
    named = {str(getattr(part, "value", part)): size for part, size in parts.items() if size}
    return {"total": parts["Total"], "parts": named}


def main():
    transformers.logging.set_verbosity_error()
    untraced()
    for case in json.load(sys.stdin):
        try:
            answer = peak(case)
        except Exception as problem:  # pylint: disable=broad-exception-caught
            answer = {"problem": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
