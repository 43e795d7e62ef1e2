"""dali.py FOLDER: images per second of DALI's CPU pipeline with one thread per core: random-resized-crop that decodes
only the crop, antialiased bilinear resize, flip, normalise, NHWC f32."""

import os
import sys

sys.path[0] = os.path.dirname(os.path.abspath(__file__))
from rate import BATCH, CORES, DEVIATION, MEAN, SIZE, rate, report, skip  # noqa: E402

try:
    from nvidia.dali import fn, pipeline_def, types
except ImportError as error:
    skip(f"DALI cannot be imported: {error}")


@pipeline_def(batch_size=BATCH, num_threads=CORES, device_id=None, seed=1, prefetch_queue_depth=2)
def pipeline():
    jpegs, labels = fn.readers.file(file_root=sys.argv[1], random_shuffle=True)
    crops = fn.decoders.image_random_crop(jpegs, device="cpu", output_type=types.RGB, random_area=[0.08, 1.0],
                                          random_aspect_ratio=[3 / 4, 4 / 3])
    resized = fn.resize(crops, size=SIZE, interp_type=types.INTERP_LINEAR, antialias=True)
    samples = fn.crop_mirror_normalize(resized, dtype=types.FLOAT, output_layout="HWC", mirror=fn.random.coin_flip(),
                                       mean=[255 * m for m in MEAN], std=[255 * d for d in DEVIATION])
    return samples, labels


loader = pipeline()
loader.build()
report(rate(loader.run))
