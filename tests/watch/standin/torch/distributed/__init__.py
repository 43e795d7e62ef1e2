"""Collectives of the stand-in."""

from torch.distributed import distributed_c10d
from torch.distributed.distributed_c10d import (Work, all_reduce, barrier, broadcast, destroy_process_group,  # noqa: F401
                                                init_process_group, is_initialized)


def is_available():
    return True
