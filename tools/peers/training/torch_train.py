"""PyTorch's training step on this CPU, as a peer of Assay's.

torch_train.py compile MODEL PRECISION         fills torch.compile's cache for later processes
torch_train.py choose MODEL PRECISION FOLDER   runs every form once (eager and compiled, each with the standard allocator
                                               and with jemalloc without decay) and stores the figures in FOLDER
torch_train.py run MODEL PRECISION FOLDER      a few steps of the form that `choose` found fastest, and the lowest peak
                                               memory of any form
torch_train.py step MODEL PRECISION FORM       the process in which the others run a form

MODEL: resnet50 (16 images of 224 px), gpt2-124m, llama-160m (4 x 512 tokens). PRECISION: f32; bf16 (autocast, f32 masters).
Optimizers, decay, clipping and label smoothing are those of configs/recipes. Throughput is items over the wall time of
the timed steps, after a warm-up; peak memory is that of the process.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

sys.dont_write_bytecode = True
BATCH = {"resnet50": (16, 0), "gpt2-124m": (4, 512), "llama-160m": (4, 512)}
STEPS = {"resnet50": (2, 5), "gpt2-124m": (2, 2), "llama-160m": (2, 2)}  # warm-up, timed
# Recommended by PyTorch's tuning guide; turning decay off makes the difference.
MALLOC_CONF = "oversize_threshold:1,background_thread:true,metadata_thp:auto,dirty_decay_ms:-1,muzzy_decay_ms:-1"


def jemalloc():
    """Path of the library, or None."""
    places = ("lib*/libjemalloc.so.2", "lib*/*/libjemalloc.so.2")
    return next((str(path) for place in places for path in sorted(pathlib.Path("/usr").glob(place))), None)


def notes_of(name, precision, folder):
    return folder / f"torch-{name}-{precision}.json"


def peak_memory():
    """Peak resident bytes of this process."""
    for line in pathlib.Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise KeyError("VmHWM")


def step(name, precision, form):
    """Figures of this process."""
    threads = int(os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0))))  # before OpenMP binds this thread
    try:
        import torch
        import torch_models
    except (ImportError, OSError) as error:
        return {"skip": f"torch cannot be imported: {error}"}
    warm_up, steps = STEPS[name]
    torch.manual_seed(1)
    torch.set_num_threads(threads)
    samples, seq = BATCH[name]
    model = torch_models.make(name)
    inputs, targets = torch_models.batch(model, samples, seq)
    optimizer, clip = torch_models.optimizer(model, 0.00625 if name == "resnet50" else 6e-4)
    loss_of = torch.compile(model) if form == "compiled" else model

    def one():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            loss = loss_of(inputs, targets)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    for _ in range(warm_up):
        one()
    begin = time.perf_counter()
    times = []
    for _ in range(steps):
        loss = one()
        times.append(time.perf_counter())
    items = steps * samples * max(seq, 1)
    return {"value": items / (times[-1] - begin), "unit": "img/s" if seq == 0 else "tokens/s", "better": "higher",
            "steps": [b - a for a, b in zip([begin, *times], times)], "loss": loss, "threads": threads,
            "torch": torch.__version__, "also": {"peak_memory": {"value": peak_memory(), "unit": "B", "better": "lower"}}}


def start(name, precision, form, allocator="plain"):
    """Runs one form in a new process and returns its figure."""
    environment = dict(os.environ, OMP_PROC_BIND="close", OMP_PLACES="cores")
    if allocator == "jemalloc":
        environment |= {"LD_PRELOAD": jemalloc(), "MALLOC_CONF": MALLOC_CONF}
    done = subprocess.run([sys.executable, __file__, "step", name, precision, form], env=environment,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"{name} {precision} {form} {allocator}: {(done.stderr.strip().splitlines() or ['no output'])[-1]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def choose(name, precision, folder):
    figures = {}
    for form in ("eager", "compiled"):
        for allocator in ("plain", "jemalloc"):
            if allocator == "jemalloc" and not jemalloc():
                continue
            figure = start(name, precision, form, allocator)
            if "skip" in figure:
                return figure
            figures[f"{form} {allocator}"] = figure
    notes_of(name, precision, folder).write_text(json.dumps(figures))
    words = [f"{form} {figure['value']:.4g} {figure['unit']}, peak {figure['also']['peak_memory']['value'] / 2**30:.2f} GiB"
             for form, figure in figures.items()]
    missing = "" if jemalloc() else "; no libjemalloc2 here"
    return {"note": f"PyTorch {figure['torch']}, {name} {precision}: {'; '.join(words)}{missing}"}


def run(name, precision, folder):
    figures = json.loads(notes_of(name, precision, folder).read_text())
    fastest = max(figures, key=lambda form: figures[form]["value"])
    figure = start(name, precision, *fastest.split())
    lowest = min(other["also"]["peak_memory"]["value"] for other in [*figures.values(), figure])
    figure["also"]["peak_memory"]["value"] = lowest
    return figure | {"form": fastest}


def main():
    command, name, precision, *rest = sys.argv[1:]
    if name not in BATCH or precision not in ("f32", "bf16"):
        sys.exit(__doc__)
    if command == "step":
        figure = step(name, precision, *rest)
    elif command == "compile":
        figure = start(name, precision, "compiled")
    else:
        figure = {"choose": choose, "run": run}[command](name, precision, pathlib.Path(*rest))
    print(json.dumps(figure))


if __name__ == "__main__":
    main()
