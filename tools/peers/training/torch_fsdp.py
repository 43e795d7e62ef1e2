"""FSDP2 (fully_shard) of PyTorch over gloo on this CPU, as a peer of Assay's zero=3.

torch_fsdp.py run RANKS    a few steps of llama-160m in f32, 2 x 512 tokens on each of RANKS processes of one thread

Each block is sharded by itself, then the rest; the optimizer and its clipping are those of configs/recipes. Peak memory is
the largest process's, throughput that of all ranks together. A world that hangs is ended after LIMIT seconds.
"""

import importlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
SAMPLES, SEQ = 2, 512   # of each rank
WARM_UP, STEPS = 1, 2
LIMIT = 600


def rank_main(rank, ranks, port):
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    import torch_models
    import torch_train

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    mesh = init_device_mesh("cpu", (ranks,))
    torch.manual_seed(1)
    model = torch_models.make("llama-160m")
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    torch.manual_seed(2 + rank)
    inputs, targets = torch_models.batch(model, SAMPLES, SEQ)
    optimizer, clip = torch_models.optimizer(model, 6e-4)

    def one():
        loss = model(inputs, targets)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    for _ in range(WARM_UP):
        one()
    dist.barrier()
    begin = time.perf_counter()
    for _ in range(STEPS):
        loss = one()
    dist.barrier()
    seconds = time.perf_counter() - begin
    peak = torch.tensor([float(torch_train.peak_memory())], dtype=torch.float64)
    dist.all_reduce(peak, op=dist.ReduceOp.MAX)
    if rank == 0:
        print(json.dumps({"value": peak.item(), "unit": "B", "better": "lower", "loss": loss, "torch": torch.__version__,
                          "also": {"throughput": {"value": STEPS * ranks * SAMPLES * SEQ / seconds, "unit": "tokens/s",
                                                  "better": "higher"}}}))
    dist.destroy_process_group()


def run(ranks):
    try:
        importlib.import_module("torch.distributed.fsdp").fully_shard
    except (ImportError, OSError, AttributeError) as error:
        return {"skip": f"torch has no fully_shard here: {error}"}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    with tempfile.TemporaryFile("w+") as said:
        world = [subprocess.Popen([sys.executable, __file__, "rank", str(rank), str(ranks), str(port)], env=environment,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, text=True)
                 for rank in range(ranks)]
        try:
            until = time.monotonic() + LIMIT
            figures = [each.communicate(timeout=max(1, until - time.monotonic()))[0] for each in world]
        except subprocess.TimeoutExpired:
            sys.exit(f"torch_fsdp.py: {ranks} ranks over gloo did not end within {LIMIT} s")
        finally:
            for each in world:
                each.kill()
        if any(each.returncode for each in world):
            said.seek(0)
            sys.exit((said.read().strip().splitlines() or ["torch_fsdp.py: no output"])[-1])
    return json.loads(figures[0].strip().splitlines()[-1])


def main():
    command, *rest = sys.argv[1:] or [""]
    if command == "rank" and len(rest) == 3:
        rank_main(*map(int, rest))
    elif command == "run" and len(rest) == 1:
        print(json.dumps(run(int(rest[0]))))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
