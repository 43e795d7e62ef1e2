#!/usr/bin/env python3
"""Floors and predicted times of training steps on GPUs, computed from model configurations and hardware sheets.

    gpu_floors.py > docs/gpu-floors.md

Nothing here was measured. A floor is the time of arithmetic and memory traffic at a sheet's rates, one op at a time; a
prediction assumes a fraction of those rates, as stated. Shapes follow workloads/transformer and workloads/resnet, kernels
workloads/ops/cuda; what cuDNN launches for one attention or convolution is a guess.
"""
import argparse
import dataclasses
import json
import math
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
HALF, FULL = 2, 4  # bytes of bf16 and f32

# Fractions of the sheet's rates that a prediction assumes, and why.
BANDWIDTH = 0.85  # published copy and triad: 2.90 to 2.97 of 3.35 TB/s on an H100, 4.01 to 4.15 of 4.8 on an H200
# Wide: inner sizes from 2,048. The best published at 8192 cubed, 0.74 to 0.81 in bf16 and 0.65 in fp8 with fast
# accumulation, is more than the shapes of a model reach.
GEMM_WIDE, GEMM_NARROW = 0.70, 0.60
FP8 = 0.56 / 0.70  # of a fraction in bf16: accumulation is full
CONVOLUTION = 0.40
CONVOLUTION_BANDWIDTH = 0.80
LAUNCH = 1.0e-6  # between kernels of a graph
SMALL = 2.0e-6  # a kernel with almost no work, which combines partial sums or prepares numbers
ATTENTION = {1024: (0.25, 0.20), 2048: (0.33, 0.26), 4096: (0.38, 0.31), 8192: (0.55, 0.45)}  # forward, backward


LOGITS = 4 << 30  # bytes that an LM head holds at once (workloads/nn/step_options.cpp)
MULTIPROCESSORS = 132


@dataclasses.dataclass
class Op:
    """A kernel, plus `small` additional ones with almost no work."""

    kind: str
    flops: float
    bytes: float
    fraction: float  # of peak FLOP/s, in a prediction
    bandwidth: float = BANDWIDTH
    dtype: str = "bf16"  # of its operands, selects the peak
    small: int = 0


def read(folder, name):
    return json.loads((ROOT / "configs" / folder / f"{name}.json").read_text())


def gemm(m, n, k, out=HALF, extra=0):
    """out (m, n) = a (m, k) b (k, n); `extra` elements of bf16 read or written by the epilogue."""
    fraction = GEMM_WIDE if min(n, k) >= 2048 or min(m, n) >= 2048 and k >= 2048 else GEMM_NARROW
    return Op("matrix products", 2.0 * m * n * k, HALF * (m * k + k * n + extra) + out * m * n, fraction)


def linear(rows, inner, outer, epilogue=0, bias=False):
    """Forward, then the gradients of input and weights (f32). The bias gradient reads the output's gradient again."""
    ops = [gemm(rows, outer, inner, extra=epilogue), gemm(rows, inner, outer, extra=epilogue),
           gemm(outer, inner, rows, out=FULL)]
    return ops + [passes("bias gradients", rows * outer, small=1)] * bias


def fp8_linear(rows, inner, outer, epilogue=0, bias=False):
    """The same with 8-bit operands. The input and the output's gradient are rounded from bf16, the weight from its f32
    master, each into a plain and a transposed copy in one pass; GELU is a separate pass."""
    def product(m, n, k, out):
        wide = gemm(m, n, k, out)
        return Op(wide.kind, wide.flops, m * k + k * n + out * m * n, wide.fraction * FP8, dtype="fp8_e4m3")

    def rounding(elements, read):
        return Op("rounding to 8 bits", 0, (read + 2) * elements, 1.0)

    ops = [rounding(rows * inner, HALF), rounding(inner * outer, FULL), rounding(rows * outer, HALF),
           product(rows, outer, inner, HALF), product(rows, inner, outer, HALF), product(outer, inner, rows, FULL)]
    return ops + [passes("activations", 2 * epilogue), passes("activations", 3 * epilogue)] * (1 if epilogue else 0)


def passes(kind, elements, small=0):
    return Op(kind, 0, HALF * elements, 1.0, small=small)


def optimizer(parameters, moments):
    """The norm reads gradients; the update reads and writes masters and moments, reads gradients, writes a bf16 copy."""
    return [Op("optimizer", 0, FULL * parameters, 1.0, small=1),
            Op("optimizer", 0, parameters * (FULL * (3 + 2 * moments) + HALF), 1.0, small=1)]


def norm(rows, width, residual):
    """Forward, then backward, where each block writes a row of sums (f32) for the parameters' gradients."""
    threads = math.ceil(width / 8 / 32) * 32
    partial = 2 * MULTIPROCESSORS * max(1, 1024 // threads) * width * FULL // HALF
    return [passes("norms", (4 if residual else 2) * rows * width),
            passes("norms", (4 if residual else 3) * rows * width + 2 * partial, small=1)]


def head(rows, width, vocabulary):
    """Logits in blocks of rows, each followed by its gradients; all but the first add to the weight's gradient. A
    vocabulary that is not a multiple of 8 is padded to a multiple of 64."""
    columns = vocabulary if vocabulary % 8 == 0 else math.ceil(vocabulary / 64) * 64
    blocks = math.ceil(rows / (LOGITS // (HALF * vocabulary)))
    ops = []
    for block in range(blocks):
        ops += linear(rows / blocks, width, columns)
        if block > 0:
            ops[-1].bytes += FULL * columns * width
        ops += [passes("cross-entropy", 2 * rows / blocks * columns, small=1)]
    return ops


def attention(batch, seq, heads, kv, head_dim):
    """Forward; backward by a plan that accumulates dq in f32 in any order, between small kernels that prepare it and a
    pass that rounds it. Gradients of shared keys and values are summed afterwards. (The traffic of a deterministic plan,
    16 bits per score, is not counted: that plan is chosen only if it is faster.)"""
    rows = batch * seq
    product = 2.0 * 0.5 * batch * heads * seq * seq * head_dim
    forward, backward = ATTENTION[seq]
    q, k = rows * heads * head_dim, rows * kv * head_dim
    ops = [Op("attention", 2 * product, HALF * (2 * q + 2 * k), forward),
           Op("attention", 5 * product, HALF * (3 * q + 4 * k) + FULL * q, backward, small=1),
           Op("attention", 0, (FULL + HALF) * q, 1.0)]
    return ops + [passes("attention", 2 * q + 2 * k)] * (kv < heads)


def transformer(model, batch, seq, block_linear=linear):
    width, heads, layers = model["width"], model["heads"], model["layers"]
    kv, head_dim = model.get("kv_heads", heads), model.get("head_dim", width // heads)
    hidden, vocabulary, rows = model["mlp_width"], model["vocabulary"], batch * seq
    gated, rotary, bias = model["mlp"] == "silu_gate", model["position"] == "rotary", model["bias"]
    ops = []
    for layer in range(layers):
        ops += block_linear(rows, width, (heads + 2 * kv) * head_dim, bias=bias)
        ops += block_linear(rows, heads * head_dim, width, bias=bias)
        if gated:
            ops += block_linear(rows, width, 2 * hidden) + block_linear(rows, hidden, width)
            ops += [passes("activations", 3 * rows * hidden), passes("activations", 5 * rows * hidden)]
        else:
            ops += block_linear(rows, width, hidden, rows * hidden, bias=bias)
            ops += block_linear(rows, hidden, width, bias=bias)
        ops += norm(rows, width, layer > 0) + norm(rows, width, True)
        if rotary:
            ops += [passes("rotary", 2 * rows * (heads + kv) * head_dim)] * 2
        ops += attention(batch, seq, heads, kv, head_dim)
    ops += head(rows, width, vocabulary)  # always in bf16
    ops += norm(rows, width, True)
    # One multiprocessor sorts tokens; then rows of dy are summed, tile sums combined, positions summed.
    ops += [passes("embedding", 3 * rows * width), passes("embedding", 3 * rows * width, small=2)]
    if not rotary:
        ops += [passes("embedding", rows * width)]
    ops += optimizer(model["parameters"], 2)
    weights = layers * (width * (heads + 2 * kv) * head_dim + heads * head_dim * width +
                        (3 if gated else 2) * width * hidden)
    training = 6.0 * rows * (weights + width * vocabulary) + 3 * layers * 2.0 * batch * heads * seq * seq * head_dim
    return ops, training


def resnet(model, batch):
    ops, forward = [], 0.0

    def conv(c, k, size, window, stride, first=False, norm=True, residual=False):
        nonlocal forward
        out = size // stride
        flops = 2.0 * batch * out * out * k * c * window * window
        forward += flops
        x, y, w = batch * size * size * c, batch * out * out * k, k * c * window * window
        for kind in ["forward", "weights"] + ([] if first else ["data"]):
            ops.append(Op("convolutions", flops, HALF * (x + y + w), CONVOLUTION, CONVOLUTION_BANDWIDTH))
            if kind == "weights":  # cuDNN writes 16 bits, which are then widened
                ops.append(Op("convolutions", 0, (HALF + FULL) * w, 1.0))
            if first:  # three channels are padded to eight
                ops.append(passes("convolutions", x + x / c * 8))
        # Forward: moments, then the output. Backward: sums, then dx, each reading x and dy. With a residual the first
        # reads two gradients (one in the last block) and y, and writes the residual's gradient, which the second reads.
        if norm:
            extra = 1 if residual else 0
            ops.extend([passes("batch norm", y, small=1), passes("batch norm", (2 + extra) * y)])
            ops.extend([passes("batch norm", (2 + 3 * extra) * y, small=1), passes("batch norm", 3 * y)])
        return out

    size = model["image"]
    pixels = batch * 3 * size * size
    ops += [Op("input", 0, 2 * FULL * pixels, 1.0), Op("input", 0, (FULL + HALF) * pixels, 1.0)]  # copied, then rounded
    size = conv(3, 64, size, 7, 2, first=True)
    ops += [passes("pooling", batch * size * size * 64 * 1.375), passes("pooling", batch * size * size * 64 * 1.375)]
    size //= 2
    ops += [passes("pooling", 3 * batch * size * size * 64)]  # sums both gradients of the pool's output
    channels = 64
    for stage, blocks in enumerate(model["stages"]):
        inner = model["width"] * 2**stage
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            conv(channels, inner, size, 1, 1)
            out = conv(inner, inner, size, 3, stride)
            conv(inner, 4 * inner, out, 1, 1, residual=True)
            if block == 0:
                conv(channels, 4 * inner, size, 1, stride)
            channels, size = 4 * inner, out
    ops += [passes("pooling", batch * size * size * channels)] * 2
    ops += linear(batch, channels, model["classes"], bias=True)
    ops += [passes("cross-entropy", 2 * batch * model["classes"], small=1)]
    forward += 2.0 * batch * channels * model["classes"]
    ops += optimizer(model["parameters"], 1)
    stem = 2.0 * batch * (model["image"] // 2) ** 2 * 64 * 3 * 49
    return ops, 3 * forward - stem


def sums_of(ops, sheet):
    """{kind: [FLOP, bytes, floor in s, predicted in s, kernels]} on one GPU, in order of first appearance."""
    bandwidth = sheet["memory_bandwidth"]
    kinds = {}
    for op in ops:
        peak = sheet["peak"][op.dtype]
        floor = max(op.flops / peak, op.bytes / bandwidth)
        predicted = max(op.flops / (peak * op.fraction), op.bytes / (bandwidth * op.bandwidth)) + LAUNCH
        predicted += op.small * (LAUNCH + SMALL)
        sums = kinds.setdefault(op.kind, [0.0, 0.0, 0.0, 0.0, 0])
        for i, value in enumerate((op.flops, op.bytes, floor, predicted, 1 + op.small)):
            sums[i] += value
    return kinds


def report(name, shape, ops, training, items, unit, sheets, target, dtype="bf16"):
    """A section: a row per kind of op, with the floor and the prediction of each of `sheets` side by side."""
    kinds = {gpu: sums_of(ops, sheet) for gpu, sheet in sheets.items()}
    totals = {gpu: [sum(column) for column in zip(*rows.values())] for gpu, rows in kinds.items()}

    def row(title, sums):
        flops, moved, _, _, kernels = next(iter(sums.values()))
        times = "".join(f" {floor * 1e3:.2f} | {predicted * 1e3:.2f} |" for _, _, floor, predicted, _ in sums.values())
        print(f"| {title} | {kernels} | {flops / 1e12:.2f} | {moved / 1e9:.1f} |{times}")

    print(f"\n## {name}, {shape}, {dtype}\n")
    print("| ops | kernels | TFLOP | GB |" + "".join(f" {gpu} floor, ms | predicted, ms |" for gpu in sheets))
    print("|---|---:|---:|---:|" + "---:|---:|" * len(sheets))
    for kind in next(iter(kinds.values())):
        row(kind, {gpu: rows[kind] for gpu, rows in kinds.items()})
    row("**step**", totals)
    print()
    for gpu, sheet in sheets.items():
        roof = sheet["peak"]["fp8_e4m3" if dtype == "fp8" else dtype]  # of MFU
        for label, seconds in (("at the floor", totals[gpu][2]), ("predicted", totals[gpu][3])):
            print(f"- {gpu} {label}: {items / seconds:,.0f} {unit}, MFU {training / seconds / roof:.1%} (computed, not measured)")
    print(f"- target: {target}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hardware", nargs="+", default=["h100-sxm", "h200-sxm"])
    names = parser.parse_args().hardware
    sheets = {name.split("-")[0].upper(): read("hardware", name) for name in names}
    rates = "; ".join(f"{gpu}: {sheet['peak']['bf16'] / 1e12:.0f} TFLOP/s in bf16 and {sheet['peak']['fp8_e4m3'] / 1e12:.0f} in fp8, dense, "
                      f"{sheet['memory_bandwidth'] / 1e12:.2f} TB/s" for gpu, sheet in sheets.items())
    attention = ", ".join(f"{f:.0%} and {b:.0%} at {t}" for t, (f, b) in ATTENTION.items() if t <= 2048)
    print(f"""# Floors and predicted times of a training step on a GPU

**Every figure on this page is computed; none was measured.** `tools/profile/gpu_floors.py` prints it from the models'
configurations and {" and ".join(f"`configs/hardware/{name}.json`" for name in names)}
({rates}).

The floor of a step is the sum over its kernels of the longer of FLOPs over peak and bytes over bandwidth: nothing
overlaps, and caches keep nothing between kernels. A prediction assumes fractions of those rates: {BANDWIDTH:.0%} of the
bandwidth; in matrix products with inner sizes from 2,048 {GEMM_WIDE:.0%} of the peak in bf16 and {GEMM_WIDE * FP8:.0%} in fp8, in narrower
ones {GEMM_NARROW:.0%} and {GEMM_NARROW * FP8:.0%} (the best published at 8192 cubed is above that); {CONVOLUTION:.0%} in convolutions (or {CONVOLUTION_BANDWIDTH:.0%} of the bandwidth); in causal
attention {attention} tokens (forward, backward); {LAUNCH * 1e6:.0f} us between kernels in a graph, and {SMALL * 1e6:.0f} us for a
small one that combines partial sums. Kernels are those of the captured step, but what cuDNN launches for one attention or
convolution is a guess. Bias gradients are a pass over memory here; they are free if cuBLASLt's fused sums turn out faster.
FLOPs are those executed; MFU counts the model's FLOPs, with half the square for causal attention. In fp8 the linear layers
of blocks multiply at the fp8 rate.""")
    model = read("models", "resnet50")
    ops, training = resnet(model, 256)
    report("ResNet-50", "256 images", ops, training, 256, "img/s", sheets, "1.3 x the best form of PyTorch in the same run")
    model = read("models", "gpt2-124m")
    ops, training = transformer(model, 64, 1024)
    report("GPT-2 124M", "64 sequences of 1,024", ops, training, 64 * 1024, "tokens/s", sheets,
           "1.15 x the best form of PyTorch in the same run")
    model = read("models", "llama-1b")
    ops, training = transformer(model, 8, 2048)
    report("Llama-1B", "8 sequences of 2,048", ops, training, 8 * 2048, "tokens/s", sheets,
           "1.15 x the best form of PyTorch in the same run; MFU 52 % on an H100, 55 % on an H200")
    ops, training = transformer(model, 8, 2048, fp8_linear)
    report("Llama-1B", "8 sequences of 2,048", ops, training, 8 * 2048, "tokens/s", sheets,
           "1.15 x bf16; MFU is of the fp8 peak, which LM head and attention, in bf16, cannot reach", "fp8")


if __name__ == "__main__":
    main()
