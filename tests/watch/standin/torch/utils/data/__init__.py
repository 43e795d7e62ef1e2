"""Data of the stand-in."""
from torch.utils.data import dataloader
from torch.utils.data.dataloader import DataLoader
