"""torch_loader.py FOLDER: images per second of torch's DataLoader with torchvision's v2 transforms and one worker per
core, with the faster of its two decoders (Pillow, or torchvision.io on tensors)."""

import os
import sys

sys.path[0] = os.path.dirname(os.path.abspath(__file__))
from rate import BATCH, CORES, DEVIATION, MEAN, SIZE, rate, report, skip  # noqa: E402

try:
    import torch
    from torchvision.datasets import ImageFolder
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import v2
except (ImportError, OSError) as error:
    skip(f"torch and torchvision cannot be imported: {error}")


def dataset(tensors):
    steps = [v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip()]
    steps += [] if tensors else [v2.PILToTensor()]
    steps += [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, DEVIATION)]
    loader = {"loader": lambda path: decode_image(path, ImageReadMode.RGB)} if tensors else {}
    return ImageFolder(sys.argv[1], v2.Compose(steps), **loader)


def measure(tensors):
    images = dataset(tensors)
    # One endless epoch: the comparison excludes the pause between epochs.
    order = torch.utils.data.RandomSampler(images, replacement=True, num_samples=10**7)
    batches = iter(torch.utils.data.DataLoader(images, BATCH, sampler=order, num_workers=CORES))
    return rate(lambda: next(batches))


torch.set_num_threads(1)
report(max(measure(tensors=False), measure(tensors=True)))
