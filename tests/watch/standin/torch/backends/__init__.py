"""Settings of the stand-in."""
from torch.backends import cuda
