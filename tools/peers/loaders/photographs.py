"""photographs.py FOLDER: the two photographs of scikit-learn's wheel, unmodified in FOLDER/shipped, and encoded like the
generated set (quality 95, no chroma subsampling) in FOLDER/encoded."""

import importlib.util
import json
import pathlib
import shutil
import sys

folder = pathlib.Path(sys.argv[1])
found = importlib.util.find_spec("sklearn")
try:
    from PIL import Image
except ImportError:
    found = None
if not found:
    print(json.dumps({"skip": "the wheels scikit-learn and pillow are not installed"}))
    sys.exit()
photographs = sorted((pathlib.Path(found.origin).parent / "datasets" / "images").glob("*.jpg"))
if not photographs:
    sys.exit("scikit-learn's wheel carries no photographs")
for name in ("shipped", "encoded"):
    (folder / name).mkdir(parents=True)
for photograph in photographs:
    shutil.copy(photograph, folder / "shipped")
    Image.open(photograph).save(folder / "encoded" / photograph.name, quality=95, subsampling=0)
