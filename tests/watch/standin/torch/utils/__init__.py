"""Data of the stand-in."""
from torch.utils import data
