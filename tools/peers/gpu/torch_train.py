"""PyTorch's training step on a GPU, as a peer of Assay's.

torch_train.py MODEL [--form eager|compiled|compiled-bf16|fastest] [--batch N] [--seq N] [--steps N]
               [--warm-up N] [--device cuda|cpu] [--tiny] [--once]

MODEL: resnet50, gpt2-124m, llama-1b, llama-160m (tools/peers/training/torch_models.py). Fused AdamW (clipped at 1, as in
configs/recipes) or fused SGD with momentum, in f32; channels-last images and cuDNN's own search; flash or cuDNN attention,
whichever is faster at the model's sizes. The vocabulary of gpt2-124m is padded to 50304, as is usual in training.
Language models in two precisions, whichever is faster: autocast to bf16 with f32 parameters, which keeps the residual
stream in f32; and bf16 parameters with f32 masters (as torchtitan's mixed precision), which keeps it in bf16. ResNet-50
under autocast only, where its activations are bf16 anyway.
Forms: eager; compiled (torch.compile); compiled-bf16: the faster of compiled with and without CUDA graphs, with bf16
parameters where there are two precisions, since these are usually the fastest; fastest: the fastest over a few steps of
eager, compiled and, in the precision that was faster so far, with CUDA graphs (mode reduce-overhead) and, with --search,
max-autotune. ASSAY_PEER_FORM names it if it is known already.
A figure is items over the wall time of the steps, on a GPU at least four seconds after a few warm-up steps, with the
device idle before and after. It includes the median step by events and PyTorch's peak reserved memory. Protocol:
serve.py. --tiny: sizes for a test of this program.
"""

import argparse
import contextlib
import math
import os
import pathlib
import statistics
import sys
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "training")]
import serve  # noqa: E402

BATCH = {"resnet50": (256, 0), "gpt2-124m": (64, 1024), "llama-1b": (8, 2048), "llama-160m": (32, 1024)}
CHANGES = {"gpt2-124m": {"vocabulary": 50304}}  # a multiple of 128
TINY = {"resnet50": {"blocks": (1, 1, 1, 1), "classes": 10},
        "gpt2-124m": {"layers": 2, "width": 64, "heads": 4, "positions": 32, "vocabulary": 128},
        "llama-1b": {"layers": 2, "width": 64, "heads": 4, "kv_heads": 2, "mlp": 128, "vocabulary": 128},
        "llama-160m": {"layers": 2, "width": 64, "heads": 4, "kv_heads": 4, "mlp": 128, "vocabulary": 128}}
MODES = {"eager": None, "compiled": "default", "compiled with CUDA graphs": "reduce-overhead",
         "compiled by search": "max-autotune"}
BF16 = ", bf16 parameters"  # ends the name of a form
MIN_SECONDS = 4.0  # of a figure on a GPU
WARM_UP_AGAIN = 3  # steps before each figure, since the other side used the GPU meanwhile


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=BATCH)
    parser.add_argument("--form", choices=("eager", "compiled", "compiled-bf16", "fastest"), default="fastest")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--seq", type=int)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--warm-up", type=int, default=8)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--search", action="store_true", help="try max-autotune too: minutes of compilation")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--once", action="store_true")
    return parser.parse_args()


class Training:
    """A model with its optimizer and one batch; step() is one training step in the form of `mode`."""

    def __init__(self, torch, options):
        import torch_models

        self.torch, self.device = torch, options.device
        samples, seq = BATCH[options.model]
        samples, seq = options.batch or (2 if options.tiny else samples), options.seq or (seq and 16 if options.tiny else seq)
        self.items, self.unit = samples * max(seq, 1), "tokens/s" if seq else "img/s"
        changes = TINY[options.model] if options.tiny else CHANGES.get(options.model, {})
        if options.model.startswith("llama"):
            changes = changes | {"seq": seq}
        torch.manual_seed(1)
        self.model = torch_models.make(options.model, self.device, **changes)
        self.batch = torch_models.batch(self.model, samples, seq, self.device, 32 if options.tiny else 224)
        self.weights = list(self.model.parameters())
        self.masters = self.weights  # what the optimizer updates
        self.make_optimizer = lambda: torch_models.optimizer(self.model, 0.1 if seq == 0 else 3e-4, self.masters)
        self.optimizer, self.clip = self.make_optimizer()
        self.precisions = ["", BF16] if seq else [""]
        self.about = {"model": options.model, "batch": samples, "seq": seq,
                      "parameters": sum(w.numel() for w in self.weights)}
        self.backends = []
        if self.device == "cuda" and seq:
            self.backends = self.faster_attention(samples, seq)
            self.about["attention"] = self.backends[0].name

    def loss_in(self, form):
        mode = MODES[form.removesuffix(BF16)]
        return self.model if mode is None else self.torch.compile(self.model, mode=mode)

    def set_precision(self, form):
        """Parameters in bf16, updated from f32 masters, or in f32: for another form, with a new optimizer."""
        bf16 = form.endswith(BF16)
        if bf16 == (self.masters is not self.weights):
            return
        values = [master.detach().clone() for master in self.masters]
        for weight, value in zip(self.weights, values):
            weight.grad = None
            weight.data = value.bfloat16() if bf16 else value
        self.masters = values if bf16 else self.weights
        self.optimizer, self.clip = self.make_optimizer()

    def autocast(self):
        enabled = self.masters is self.weights
        return self.torch.autocast(self.device, dtype=self.torch.bfloat16, enabled=enabled)

    def update(self):
        """The optimizer's step and what belongs to it."""
        if self.masters is not self.weights:
            for master in self.masters:
                master.grad = self.torch.empty_like(master) if master.grad is None else master.grad
            self.torch._foreach_copy_([master.grad for master in self.masters], [weight.grad for weight in self.weights])
        if self.clip:
            self.torch.nn.utils.clip_grad_norm_(self.masters, self.clip, foreach=True)
        self.optimizer.step()
        if self.masters is not self.weights:
            with self.torch.no_grad():
                self.torch._foreach_copy_(self.weights, self.masters)
        for weight in self.weights:
            weight.grad = None

    def faster_attention(self, samples, seq):
        """The fastest backend of scaled_dot_product_attention, forward and backward together."""
        from torch.nn.attention import SDPBackend, sdpa_kernel

        torch, block = self.torch, self.model.blocks[0]
        width = block.proj.in_features
        dim = width // block.heads if hasattr(block, "heads") else block.head_dim
        heads, kv_heads = width // dim, (block.qkv.out_features - width) // 2 // dim

        def values(count):  # in the model's layout
            return torch.randn(samples, seq, count, dim, device=self.device, dtype=torch.bfloat16, requires_grad=True)

        q, k, v, gradient = (values(count) for count in (heads, kv_heads, kv_heads, heads))

        def once():
            y = torch.nn.functional.scaled_dot_product_attention(
                q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True, enable_gqa=kv_heads != heads)
            torch.autograd.grad(y, (q, k, v), gradient.transpose(1, 2))

        seconds, reasons = {}, {}
        for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
            try:
                with sdpa_kernel(backend):
                    for _ in range(3):
                        once()
                    clock = serve.Clock(torch, self.device)
                    clock.mark()
                    for _ in range(10):
                        once()
                    clock.mark()
                seconds[backend] = clock.seconds()[0]
            except RuntimeError as error:
                reasons[backend.name] = str(error).splitlines()[0]
        if not seconds:
            sys.exit(f"no fused attention runs: {reasons}")
        self.about["attention_tried"] = {backend.name: taken / 10 for backend, taken in seconds.items()} | reasons
        return [min(seconds, key=seconds.get)]

    def attention(self):
        if not self.backends:
            return contextlib.nullcontext()
        from torch.nn.attention import sdpa_kernel

        return sdpa_kernel(self.backends)

    def step(self, loss_of, form):
        if "graphs" in form or "search" in form:
            self.torch.compiler.cudagraph_mark_step_begin()
        with self.autocast(), self.attention():
            loss = loss_of(*self.batch)
        loss.backward()
        self.update()
        return loss.detach()

    def synchronize(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def measure(self, loss_of, form, steps):
        if self.device == "cuda":
            clock = serve.Clock(self.torch, self.device)
            clock.mark()
            for _ in range(WARM_UP_AGAIN):
                self.step(loss_of, form)
                clock.mark()
            steps = max(steps, math.ceil(MIN_SECONDS / statistics.median(clock.seconds())))
        self.synchronize()
        clock = serve.Clock(self.torch, self.device)
        begin = time.perf_counter()
        clock.mark()
        for _ in range(steps):
            loss = self.step(loss_of, form)
            clock.mark()
        self.synchronize()
        wall = time.perf_counter() - begin
        figure = {"value": steps * self.items / wall, "unit": self.unit, "better": "higher", "form": form, "steps": steps,
                  "median_step": statistics.median(clock.seconds()), "loss": loss.item(), "also": {},
                  "precision": "autocast to bf16, f32 parameters" if self.masters is self.weights else
                  "bf16 parameters, f32 masters"}
        if self.device == "cuda":
            figure["also"]["peak_memory"] = {"value": self.torch.cuda.max_memory_reserved(), "unit": "B", "better": "lower"}
            figure["peak_allocated"] = self.torch.cuda.max_memory_allocated()
        return figure


def ready(training, form, options):
    """The loss in this form, compiled and warmed up, after the memory of other forms was freed."""
    training.torch.compiler.reset()
    training.set_precision(form)
    training.optimizer.zero_grad(set_to_none=True)
    if training.device == "cuda":
        training.torch.cuda.empty_cache()
        training.torch.cuda.reset_peak_memory_stats()
    loss_of = training.loss_in(form)
    for _ in range(options.warm_up):
        training.step(loss_of, form)
    return loss_of


def fastest(training, first, then, options):
    """The fastest form over a few steps, its loss ready to run, and each form's figure or the reason why it failed: of
    the modes `first` in every precision, and of the modes `then`, which take long to compile, in the fastest so far."""
    tried, best, last, loss_of = {}, None, None, None

    def attempt(form):
        nonlocal best, last, loss_of
        loss_of, last = None, form  # frees the previous form
        try:
            loss_of = ready(training, form, options)
            tried[form] = training.measure(loss_of, form, max(options.steps // 2, 2))["value"]
        except Exception as error:  # noqa: BLE001: another form may work where the compiler fails
            tried[form] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
            return
        if best is None or tried[form] > tried[best]:
            best = form

    for mode in first:
        for precision in training.precisions:
            attempt(mode + precision)
    for mode in then:
        attempt(mode + (BF16 if best and best.endswith(BF16) else ""))
    if best is None:
        sys.exit(f"no form runs: {tried}")
    if best != last:
        loss_of = None
        loss_of = ready(training, best, options)
    return best, loss_of, tried


def modes(training, options):
    """The modes that `options.form` means, for fastest(); leaves `training` only the precisions that it means."""
    first = {"fastest": ["eager", "compiled"], "compiled-bf16": ["compiled"]}.get(options.form, [options.form])
    graphs = ["compiled with CUDA graphs"] * (options.device == "cuda") + ["compiled by search"] * options.search
    if options.form == "compiled-bf16":
        training.precisions = training.precisions[-1:]
    return first, graphs if options.form in ("fastest", "compiled-bf16") else []


def main():
    options = arguments()
    torch = serve.torch_on(options.device)
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.benchmark = True
    training = Training(torch, options)
    first, then = modes(training, options)
    known = os.environ.get("ASSAY_PEER_FORM")
    if known in [mode + precision for mode in first + then for precision in training.precisions]:
        form, loss_of, tried = known, ready(training, known, options), {}
    else:
        form, loss_of, tried = fastest(training, first, then, options)
    about = serve.versions(torch, options.device) | training.about | {"form": form} | ({"tried": tried} if tried else {})
    serve.serve(lambda: training.measure(loss_of, form, options.steps), about, options.once)


if __name__ == "__main__":
    main()
