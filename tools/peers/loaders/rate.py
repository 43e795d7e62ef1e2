"""Shared by the peers' scripts: the available cores, and samples over the wall time of a window."""

import json
import os
import sys
import time

CORES = len(os.sched_getaffinity(0))
BATCH = 32
SIZE = 224
MEAN = [0.485, 0.456, 0.406]
DEVIATION = [0.229, 0.224, 0.225]


def skip(reason):
    print(json.dumps({"skip": reason}))
    sys.exit()


def rate(next_batch, warmup_batches=16, seconds=4):
    for _ in range(warmup_batches):
        next_batch()
    images, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        next_batch()
        images += BATCH
    return images / (time.perf_counter() - start)


def report(value):
    print(json.dumps({"value": value, "unit": "img/s", "better": "higher"}))
