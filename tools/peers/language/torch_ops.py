"""The PyTorch peer of language_ops: torch_ops.py DTYPE linear|attention [SECONDS].

The same work at the same sizes: GPT-2-124m's products on 2,048 tokens, each forward (with bias) and for both gradients;
or causal attention on 4 x 512 tokens, 12 heads of 64, forward and backward, with operands in one fused row. Prints FLOPs
over the sum of the medians, as language_ops does; cycles through all the work."""

import json
import os
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError as error:
    print(json.dumps({"skip": str(error)}))
    sys.exit()

TOKENS = 2048
SIZES = [(768, 2304), (768, 768), (768, 3072), (3072, 768)]


def linear(dtype):
    for inputs, outputs in SIZES:
        x, dy = torch.randn(TOKENS, inputs, dtype=dtype), torch.randn(TOKENS, outputs, dtype=dtype)
        w, bias = torch.randn(outputs, inputs, dtype=dtype), torch.randn(outputs, dtype=dtype)
        flops = 2 * TOKENS * inputs * outputs
        yield flops, lambda x=x, w=w, bias=bias: F.linear(x, w, bias)
        yield flops, lambda dy=dy, w=w: dy @ w
        yield flops, lambda dy=dy, x=x: (dy.t() @ x, dy.sum(0))


def attention(dtype, batch=4, seq=512, heads=12, dim=64):
    row = torch.randn(batch, seq, 3, heads, dim, dtype=dtype, requires_grad=True)
    q, k, v = (row[:, :, i].transpose(1, 2) for i in range(3))
    dout = torch.randn(batch, heads, seq, dim, dtype=dtype)
    product = batch * heads * seq * seq * dim  # for the half of the square that is not masked

    def forward():
        with torch.no_grad():
            F.scaled_dot_product_attention(q, k, v, is_causal=True)

    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    yield 2 * product, forward
    yield 5 * product, lambda: torch.autograd.grad(out, (q, k, v), dout, retain_graph=True)


def main():
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[sys.argv[1]]
    work = list({"linear": linear, "attention": attention}[sys.argv[2]](dtype))
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 5
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    times = [[] for _ in work]
    for _, run in work:
        run()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not times[0]:
        for (_, run), taken in zip(work, times):
            start = time.perf_counter()
            run()
            taken.append(time.perf_counter() - start)
    total = sum(sorted(taken)[len(taken) // 2] for taken in times)
    print(json.dumps({"value": sum(flops for flops, _ in work) / total, "unit": "FLOP/s", "better": "higher"}))


main()
