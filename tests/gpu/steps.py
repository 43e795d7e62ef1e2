"""The steps of tests/gpu/check, in the order of what one would regret most not to have, and which of them a time is
enough for."""

import collections
import json

import bundle

ROOT = bundle.ROOT
PART_SECONDS = 9 * 60
MIN_SECONDS = 30  # no step is started with less
START_SECONDS = 15  # of a call before its first step: unpacking, restoring the archive, asking for a GPU
MAX_OVERHEAD = 0.005
# What a GPU and its libraries say of themselves, in --out: a folder of them under tests/gpu/dumps is a fixture of tests
# without a GPU.
DUMPS = "dumps"

PARTS = {1: "what the machine is; does it run, is it right", 2: "three models by themselves, which fills the cache",
         3: "12 cases of gpu-quick", 4: "a trace; two ranks on one GPU", 5: "GEMM and memory against their peers",
         6: "every op against its oracle", 7: "Llama-1B against PyTorch's compiled forms",
         8: "GPT-2 124M against PyTorch's compiled forms", 9: "ResNet-50 against PyTorch's compiled forms",
         10: "fp8 against bf16", 11: "the whole plan gpu-quick", 12: "more of two ranks, and every precision",
         13: "gradients, products, sanitizers", 14: "sustained, other peers", 15: "Llama-1B against all forms",
         16: "GPT-2 124M against all forms", 17: "ResNet-50 against all forms", 18: "Llama-1B against eager PyTorch",
         19: "GPT-2 124M against eager PyTorch", 20: "ResNet-50 against eager PyTorch", 21: "several GPUs",
         22: "several GPUs: copies and training"}

# `expected` is the time that the step probably takes, `seconds` its limit. `kind` is where the outcome comes from:
# program (exit code), tests (GoogleTest; `chosen` is its filter), assay (records), ratios. The runner replaces words in
# braces: {minutes} is what is left of the step's time, {gpus} the number of GPUs. `overhead` limits the fraction of
# training time that the harness takes; with fewer than `min_gpus` the step is skipped. The check is complete without a
# step that needs more GPUs than there are and without `optional` ones, whose tools some machines lack or of which
# nothing is asked.
Step = collections.namedtuple("Step", "part name expected seconds kind command chosen environment overhead min_gpus optional",
                              defaults=("", {}, None, 1, False))


def test_steps():
    def tests(part, name, expected, seconds, program, chosen, prefix=(), **environment):
        return Step(part, name, expected, seconds, "tests", [*prefix, "{bin}/" + program], chosen, environment,
                    optional=bool(prefix))

    def sanitizer(tool):  # only of our own kernels, whose names contain the namespace
        return ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", "--report-api-errors", "no",
                "--kernel-name", "kns=assay"]

    on_gpus = "*/cuda_*:QuantizeParity.*:ScaleUpdateParity.*:*CudnnChoice.*"
    own = ":".join(f"*/{suite}Parity.*/cuda_bf16*" for suite in
                   ("Norm", "CrossEntropy", "Embedding", "Rotary", "Activation", "Elementwise", "Optimizer", "GradientNorm"))
    return [
        tests(1, "device", 20, 60, "cuda_device_test", "*"),
        tests(1, "golden", 60, 120, "golden_test", "*/cuda_*"),
        tests(1, "step", 90, 180, "gpu_step_test", "*"),
        tests(1, "nccl-1", 20, 60, "nccl_program", "*", ASSAY_TEST_RANKS="1"),
        tests(6, "parity", 300, 420, "ops_parity_test", on_gpus),
        tests(13, "gradients", 60, 120, "device_gradient_test", "*/cuda_*"),
        tests(13, "parity-matmul", 160, 240, "matmul_parity_test", "*/cuda_*"),
        tests(13, "memcheck", 120, 140, "ops_parity_test", own, sanitizer("memcheck")),
        tests(13, "racecheck", 120, 140, "ops_parity_test", own, sanitizer("racecheck")),
    ]


# The cases of gpu-quick that say most about a GPU in the least time: no training, no host's work, nothing sustained.
FIRST_CASES = "|".join(("gemm/dtype=(bf16|tf32|fp8_e4m3)/m=8192/.*/transpose=nn/.*/duration=burst", "gemm/.*/m=64/",
                        "memory/op=(read|copy|triad|latency)/bytes=1073741824",
                        "transfer/direction=(h2d|d2h)/memory=pinned/bytes=1073741824", "launch/op=graph$"))


def assay_steps():
    run = ["{bin}/assay", "run", "--device", "cuda"]

    def assay(part, name, expected, seconds, *words, **more):
        return Step(part, name, expected, seconds, "assay", [*run, *words, "--out", "{out}/" + name], **more)

    def sets(family, **parameters):
        return [word for name, value in parameters.items() for word in ("--set", f"{family}.{name}={value}")]

    asked = {"environment": {"ASSAY_HEURISTICS_LOG": "{out}/" + DUMPS + "/cublaslt.jsonl"}}
    whole = {"overhead": MAX_OVERHEAD, **asked}
    steps = [
        assay(2, "llama-1b", 150, 240, "llama",
              *sets("llama", model="llama-1b", precision="bf16,fp8", micro_batch=8, seq=2048), **whole),
        assay(2, "gpt2-124m", 80, 120, "transformer",
              *sets("transformer", model="gpt2-124m", precision="bf16", micro_batch=64, seq=1024), **whole),
        assay(2, "resnet50", 130, 180, "resnet", *sets("resnet", model="resnet50", precision="bf16", micro_batch=256), **whole),
        assay(3, "gpu-quick-first", 110, 150, "gpu-quick", "--filter", FIRST_CASES, **asked),
        assay(4, "trace", 60, 100, "llama", "--trace", *sets("llama", model="llama-160m", precision="bf16")),
        # nccl_program's ranks share the GPU like Assay's; it ends or is stopped with all of them.
        Step(4, "nccl-2", 50, 90, "tests", ["{bin}/nccl_program"], "*", {"ASSAY_TEST_RANKS": "2", "ASSAY_SHARE_GPU": "1"}),
        assay(11, "gpu-quick", 440, 520, "gpu-quick", **asked),
        assay(12, "share-gpu-collective", 80, 200, "collective", "--ranks", "2", "--share-gpu",
              *sets("collective", bytes="8,64KiB,16MiB")),
        assay(12, "share-gpu-training", 60, 150, "llama", "--ranks", "1,2", "--share-gpu", *sets("llama", model="llama-tiny")),
        assay(14, "gemm-sustained", 120, 240, "gemm", *sets("gemm", dtype="bf16,fp8_e4m3", duration="sustained", m=8192, n=8192, k=8192)),
    ]
    for family, model in (("resnet", "resnet-tiny"), ("transformer", "gpt2-tiny"), ("llama", "llama-tiny")):
        precision = "f32,tf32,bf16,fp16" + ("" if family == "resnet" else ",fp8")
        steps.append(assay(12, "train-" + model, 100, 150, family, *sets(family, model=model, precision=precision)))
    several, ranks = {"min_gpus": 2}, ["--ranks", "{gpus}"]
    steps += [Step(21, "nccl-gpus", 40, 60, "tests", ["{bin}/nccl_program"], "*", {"ASSAY_TEST_RANKS": "{gpus}"}, **several),
              assay(21, "gpus-collective", 240, 300, "gpu-collective", *ranks, **several),
              assay(21, "gpus-memory", 80, 120, "memory", *ranks,
                    *sets("memory", op="copy,triad", bytes="1GiB", gpus="each,together"), **several),
              assay(22, "gpus-host", 80, 120, "transfer", *ranks,
                    *sets("transfer", direction="h2d,d2h", memory="pinned", bytes="1GiB", gpus="each,together"), **several),
              assay(22, "gpus-p2p", 80, 120, "transfer",  # by one rank, which sees every GPU
                    *sets("transfer", direction="p2p,p2p_staged,p2p_write,p2p_both,p2p_all", memory="device", bytes="1GiB"), **several),
              assay(22, "gpus-training", 160, 240, "llama", "--ranks", "1,{gpus}",
                    *sets("llama", model="llama-160m", precision="bf16", micro_batch=16, seq=1024), **several)]
    return steps


def peer_steps():
    ratios = ["{python}", str(ROOT / "tools/peers/gpu/ratios.py"), "--assay", "{bin}/assay", "--libraries", "{libraries}",
              "--python", "{python}", "--out", "{out}/ratios", "--minutes", "{minutes}"]
    parts = ((5, 60, 200, ("gemm-bf16", "gemm-fp8", "memory-copy", "memory-triad")), (7, 500, 520, ("llama-1b",)),
             (8, 480, 520, ("gpt2-124m",)), (9, 420, 520, ("resnet50",)), (10, 360, 400, ("llama-1b-fp8",)),
             (14, 80, 240, ("gemm-fp8-fast", "memory-copy-torch")), (14, 150, 240, ("trace-cost",)), (15, 520, 530, ("llama-1b-any",)),
             (16, 520, 530, ("gpt2-124m-any",)), (17, 500, 530, ("resnet50-any",)), (18, 400, 520, ("llama-1b-eager",)),
             (19, 400, 520, ("gpt2-124m-eager",)), (20, 400, 520, ("resnet50-eager",)))
    asked = asked_for()
    return [Step(part, "peer-" + name, expected, seconds, "ratios", [*ratios, name], optional=not asked["peer-" + name])
            for part, expected, seconds, names in parts for name in names]


def steps():
    """In the order in which they run."""
    # NCCL writes a log of its own to each rank, since two ranks share the GPU: that is what the parser must read.
    log = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,ENV,NET,P2P,SHM,NVLS,TUNING",
           "NCCL_DEBUG_FILE": "{out}/" + DUMPS + "/nccl.%p.log", "ASSAY_TEST_RANKS": "2", "ASSAY_SHARE_GPU": "1"}
    first = [Step(1, "environment", 5, 60, "program", ["{bin}/assay", "env", "--json"]),
             Step(1, "gpu-dump", 5, 60, "program", ["{bin}/gpu_dump", "{out}/" + DUMPS]),
             Step(1, "nvidia-smi", 5, 60, "program", ["nvidia-smi", "-q", "-x", "-f", "{out}/" + DUMPS + "/nvidia-smi.xml"],
                  optional=True),
             Step(1, "nccl-log", 20, 60, "tests", ["{bin}/nccl_program"], "NcclCommunicator.KeepsTheContract", log)]
    return sorted(first + test_steps() + assay_steps() + peer_steps(), key=lambda step: step.part)


def asked_for():
    """What is asked of each comparison by the step's name, in words: "ratio >= 1.15, mfu >= 0.52 on an H100"."""
    asked = {}
    for entry in json.loads((ROOT / "tools/peers/gpu/comparisons.json").read_text()):
        words = [f"ratio >= {entry['at_least']:.2f}"] if "at_least" in entry else []
        for own in entry.get("own", []):
            words += [f"{own['metric']} >= {least:.2f} on an {gpu}" for gpu, least in own["at_least"].items()]
        asked["peer-" + entry["name"]] = ", ".join(words)
    return asked


def next_step(left_over, seconds):
    """What to start with `seconds` left, of the steps `left_over` in their order: the first that they are probably enough
    for; else the first, as far as it comes, since every step that has more than one piece resumes. None: too little time."""
    if seconds < MIN_SECONDS or not left_over:
        return None
    return next((step for step in left_over if step.expected <= seconds), left_over[0])


def listing():
    """The text of `check list`."""
    asked, lines = asked_for(), []
    every = steps()
    for part, title in PARTS.items():
        own = [step for step in every if step.part == part]
        lines.append(f"part {part}: {title}, about {sum(step.expected for step in own) / 60:.1f} min")
        lines += [f"     {step.name:24} {step.expected:>4} s, at most {step.seconds:>4} s  {' '.join(step.command)} "
                  f"{step.chosen}".rstrip() + (f"  [{asked[step.name]}]" if asked.get(step.name) else "") for step in own]
    return "\n".join(lines)
