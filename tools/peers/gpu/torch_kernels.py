"""PyTorch's matrix products and copies on a GPU, as peers of Assay's.

torch_kernels.py matmul  [--dtype bf16|fp16|tf32|f32] [--size N]     torch.matmul into an existing array
torch_kernels.py fp8     [--accumulate fast|full] [--size N]         torch._scaled_mm, e4m3 x e4m3 to bf16
torch_kernels.py copy    [--bytes N]                                 Tensor.copy_, counted 2N
                 [--samples N] [--device cuda|cpu] [--once]

Products try every form that could be the fastest (each library that PyTorch can prefer, each layout of the operands) and
keep the best; a figure is its median over samples of about 50 ms. Operands are random normal numbers. Protocol: serve.py.
"""

import argparse
import pathlib
import statistics
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import serve  # noqa: E402

SAMPLE_SECONDS = 0.05


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernel", choices=("matmul", "fp8", "copy"))
    parser.add_argument("--dtype", choices=("bf16", "fp16", "tf32", "f32"), default="bf16")
    parser.add_argument("--accumulate", choices=("fast", "full"), default="full")
    parser.add_argument("--size", type=int, default=8192)
    parser.add_argument("--bytes", type=int, default=1 << 30)
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--once", action="store_true")
    return parser.parse_args()


class Timer:
    def __init__(self, torch, device):
        self.torch, self.device = torch, device

    def seconds(self, work, samples):
        """Median seconds of one call, over samples of many calls each."""
        work()
        once = self.sample(work, 3)
        calls = max(1, round(SAMPLE_SECONDS / max(once, 1e-7)))
        return statistics.median(self.sample(work, calls) for _ in range(samples))

    def sample(self, work, calls):
        clock = serve.Clock(self.torch, self.device)
        clock.mark()
        for _ in range(calls):
            work()
        clock.mark()
        return clock.seconds()[0] / calls


def laid_out(x, transposed):
    """The same matrix; if `transposed`, stored as its transpose."""
    return x.t().contiguous().t() if transposed else x


def products(torch, options):
    """Forms of the product by name: functions without arguments."""
    n, on = options.size, options.device
    if options.kernel == "fp8":
        a = torch.randn(n, n, device=on).to(torch.float8_e4m3fn)
        b = torch.randn(n, n, device=on).to(torch.float8_e4m3fn).t()  # K contiguous in both: the only supported form
        one = torch.ones((), device=on)
        fast = options.accumulate == "fast"
        return {f"_scaled_mm, {options.accumulate} accumulation": lambda: torch._scaled_mm(
            a, b, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=fast)}
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(options.dtype, torch.float32)
    torch.backends.cuda.matmul.allow_tf32 = options.dtype == "tf32"
    a, b = (torch.randn(n, n, device=on, dtype=dtype) for _ in range(2))
    out = torch.empty(n, n, device=on, dtype=dtype)

    def form(library, x, y):
        def work():
            if library:
                torch.backends.cuda.preferred_blas_library(library)
            torch.matmul(x, y, out=out)
        return work

    libraries = ("cublas", "cublaslt") if on == "cuda" else (None,)
    forms = {}
    for transpose in ("nn", "nt", "tn", "tt"):
        x, y = laid_out(a, transpose[0] == "t"), laid_out(b, transpose[1] == "t")
        for library in libraries:
            forms[" ".join(filter(None, (library, transpose)))] = form(library, x, y)
    return forms


def measured_products(torch, options, timer):
    forms = products(torch, options)
    tried = {name: timer.seconds(work, 3) for name, work in forms.items()}
    best = min(tried, key=tried.get)
    flops = 2 * options.size**3
    about = {"form": best, "tried": {name: flops / seconds for name, seconds in tried.items()}}
    return about, lambda: {"value": flops / timer.seconds(forms[best], options.samples), "unit": "FLOP/s",
                           "better": "higher"}


def measured_copy(torch, options, timer):
    source, target = (torch.randn(options.bytes // 4, device=options.device) for _ in range(2))
    seconds = lambda: timer.seconds(lambda: target.copy_(source), options.samples)  # noqa: E731
    return {"bytes": options.bytes}, lambda: {"value": 2 * options.bytes / seconds(), "unit": "B/s", "better": "higher"}


def main():
    options = arguments()
    torch = serve.torch_on(options.device)
    if options.kernel == "fp8" and not hasattr(torch, "_scaled_mm"):
        serve.skip(f"torch {torch.__version__} has no _scaled_mm")
    torch.manual_seed(1)
    timer = Timer(torch, options.device)
    about, measure = (measured_copy if options.kernel == "copy" else measured_products)(torch, options, timer)
    serve.serve(measure, serve.versions(torch, options.device) | about, options.once)


if __name__ == "__main__":
    main()
