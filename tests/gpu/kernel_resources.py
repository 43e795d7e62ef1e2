#!/usr/bin/env python3
"""Registers, shared memory and spills of each of our kernels in libassay-cuda.so, and faults in their machine code.

usage: kernel_resources.py MODULE [--cuobjdump FILE] [--record FILE.md]

Prints one line per finding and exits with 1 if there is any:
  a stack frame          registers spilled, or an array with indices unknown at compile time
  arithmetic in double   in a kernel not meant to have it
  narrow accesses        a memory-bound kernel that does not access 16 bytes at once
  few loads in flight    one that waits for a load before issuing independent ones
Needs no GPU. Without cuobjdump and nvdisasm it exits with 77, which ctest counts as a skip.
--record writes the table in workloads/ops/cuda/resources.md.
"""
import argparse
import collections
import os
import re
import shutil
import subprocess
import sys

SKIPPED = 77
# Kernels that may have a stack frame, with the reason. None has one.
STACK_ALLOWED = {}
# Kernels that compute in double by design: the memory suite, like STREAM; sums of squares and of losses, pow() once per
# step, trials, f64 cases.
DOUBLE_ALLOWED = re.compile(r"^memory::|\b(square_sums|piece_sums|finish_norm|add_losses|prepare_step|batch_norm_statistics"
                            r"|batch_norm_parameters|join_parts|compare_arrays)\b|double|fp64|f64")
# Our memory-bound kernels: use vectors, unless their last template argument is 1.
WIDE = re.compile(
    r"\b(norm_forward|norm_backward|activation|activation_gradient|rotary|embedding|sum_tiles|sum_positions"
    r"|cross_entropy|optimizer_step|square_sums|piece_sums|elementwise|batch_norm_\w+|pool_\w+)<(?!.*, 1>)")

# Those that write single numbers.
READS = re.compile(r"\b(square_sums<|piece_sums<|batch_norm_moments<|cross_entropy<\w+, false, )")

# 16-byte loads that a thread has in flight: their number per array times the number of arrays.
AHEAD = {
    r"\bactivation<.*, 2>": 4, r"\bactivation_gradient<.*, [01]>": 4, r"\bactivation_gradient<.*, 2>": 6,
    r"\bbatch_norm_apply<.*, [48]>": 4, r"\bbatch_norm_input<.*, [48]>": 8, r"\bbatch_norm_moments<.*, [48]>": 4,
    r"\bbatch_norm_sums<.*, [48]>": 8, r"\bcross_entropy<": 4, r"\belementwise<.*, 1>": 4, r"\bembedding<.*, [48]>": 2,
    r"\bnorm_backward<": 3, r"\bnorm_forward<": 2, r"\boptimizer_step<0, float,": 8, r"\boptimizer_step<0,": 6,
    r"\brotary<.*, [48]>": 8, r"\bsquare_sums<": 4, r"\bsum_positions<.*, [48]>": 4, r"\bsum_tiles<.*, [48]>": 4}

Kernel = collections.namedtuple("Kernel", "arch name registers shared stack wide doubles ahead")


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def demangled(names):
    out = subprocess.run(["c++filt"], input="\n".join(names), check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(zip(names, out.splitlines()))


def short(name):
    """The name as in its source: without namespaces and parameters."""
    name = re.sub(r"\(anonymous namespace\)::", "", name)
    name = re.sub(r"\((assay::[\w:]+)\)(\d+)", r"\2", name)  # an enumerator as a template argument
    name = re.sub(r"\b(assay|ops|cuda|functors|std)::", "", name)
    depth, end = 0, len(name)
    for i, c in enumerate(name):
        if c == "<":
            depth += 1
        elif c == ">":
            depth -= 1
        elif c == "(" and depth == 0 and i > 0:
            end = i
            break
    return re.sub(r"^void ", "", name[:end])


def architecture(line):
    found = re.search(r"arch = (sm_\w+)", line)
    return found.group(1) if found else None


class LoadsAhead:
    """The maximum number of consecutive 16-byte loads before the first instruction that uses one of their results."""

    def __init__(self):
        self.max, self.now, self.loaded = 0, 0, set()

    def add(self, kind, operands):
        numbers = [int(n) for n in re.findall(r"\bR(\d+)\b", operands)]
        if re.match(r"LDG\..*128", kind):
            self.loaded.update(range(numbers[0], numbers[0] + 4))
            self.now += 1
            self.max = max(self.max, self.now)
            return
        writes_first = re.match(r"\s*U?R\d+", operands)
        if self.loaded & set(numbers[1:] if writes_first and not kind.startswith("ST") else numbers):
            self.now, self.loaded = 0, set()


def machine_code(cuobjdump, module):
    """For each (arch, kernel): its kinds of instructions, and its LoadsAhead."""
    kinds, ahead = collections.defaultdict(set), collections.defaultdict(LoadsAhead)
    arch = kernel = None
    process = subprocess.Popen([cuobjdump, "-sass", module], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if "arch =" in line:
            arch = architecture(line)
        elif "Function :" in line:
            kernel = line.split("Function :")[1].strip()
        elif kernel:
            found = re.match(r"\s+/\*[0-9a-f]+\*/\s+(?:@!?\w+\s+)?([A-Z][A-Z0-9_.]*)([^;]*)", line)
            if found:
                kinds[arch, kernel].add(found.group(1))
                ahead[arch, kernel].add(*found.groups())
    if process.wait() != 0:
        sys.exit(f"cuobjdump -sass {module} failed")
    return kinds, ahead


def kernels_of(cuobjdump, module):
    kinds, ahead = machine_code(cuobjdump, module)
    rows, arch, kernel = [], None, None
    for line in run(cuobjdump, "--dump-resource-usage", module).splitlines():
        arch = architecture(line) or arch
        if found := re.match(r"\s*Function (\S+?):?\s*$", line):
            kernel = found.group(1)
        elif kernel and (found := re.search(r"REG:(\d+) STACK:(\d+) SHARED:(\d+)", line)):
            registers, stack, shared = map(int, found.groups())
            rows.append((arch, kernel, registers, shared, stack))
            kernel = None
    names = demangled(sorted({row[1] for row in rows}))
    kernels = []
    for arch, mangled, registers, shared, stack in rows:
        name = names[mangled]
        if "assay::" not in name:  # a library's
            continue
        code = kinds[arch, mangled]
        wide = {kind.split(".")[0] for kind in code if re.match(r"(LDG|STG)\..*128", kind)}
        doubles = {kind.split(".")[0] for kind in code} & {"DADD", "DMUL", "DFMA", "DSETP", "DMNMX"}
        kernels.append(
            Kernel(arch, short(name), registers, shared, stack, wide, doubles, ahead[arch, mangled].max))
    return sorted(kernels, key=lambda k: (k.arch, k.name))


def findings(kernels):
    for k in kernels:
        place = f"{k.arch} {k.name}"
        if k.stack and not any(re.search(pattern, k.name) for pattern in STACK_ALLOWED):
            yield f"{place}: a stack frame of {k.stack} bytes"
        if k.doubles and not DOUBLE_ALLOWED.search(k.name):
            yield f"{place}: arithmetic in double ({', '.join(sorted(k.doubles))})"
        missing = {"LDG", "STG"} - k.wide - ({"STG"} if READS.search(k.name) else set())
        if WIDE.search(k.name) and missing:
            yield f"{place}: no {' and no '.join(sorted(missing))} of 16 bytes"
        least = next((n for pattern, n in AHEAD.items() if re.search(pattern, k.name)), 0)
        if k.ahead < least:
            yield f"{place}: {k.ahead} loads of 16 bytes in flight, not {least}"


def record(kernels, path):
    lines = ["# Our kernels", "",
             "Written by `tests/gpu/kernel_resources.py MODULE --record` from the machine code; the CI fails if a kernel"
             " has a stack frame.",
             "Registers per thread; static shared memory per block in bytes, from sm_90 on including 1,024 for the system."]
    for arch in sorted({k.arch for k in kernels}):
        lines += ["", f"## {arch}", "", "| kernel | registers | shared | stack | 16-byte accesses |",
                  "|---|---:|---:|---:|---|"]
        for k in kernels:
            if k.arch == arch:
                wide = {"LDG": "read", "STG": "write"}
                accesses = " and ".join(wide[kind] for kind in sorted(k.wide))
                lines.append(f"| `{k.name}` | {k.registers} | {k.shared} | {k.stack} | {accesses} |")
    with open(path, "w", encoding="utf-8") as out:
        out.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module")
    parser.add_argument("--cuobjdump", default="")
    parser.add_argument("--record")
    options = parser.parse_args()
    tool = shutil.which(options.cuobjdump or "cuobjdump")
    if not tool:
        print("skipped: no cuobjdump (./dev installs it with the wheel nvidia-cuda-cuobjdump)")
        return SKIPPED
    os.environ["PATH"] = os.path.dirname(os.path.abspath(tool)) + os.pathsep + os.environ["PATH"]
    if not shutil.which("nvdisasm"):
        print("skipped: no nvdisasm next to cuobjdump (the wheel nvidia-cuda-nvdisasm)")
        return SKIPPED
    kernels = kernels_of(tool, options.module)
    if not kernels:
        print(f"{options.module} contains no kernels of Assay")
        return 1
    if options.record:
        record(kernels, options.record)
    wrong = list(findings(kernels))
    print("\n".join(wrong + [f"{len(kernels)} kernels, {len(wrong)} findings"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
