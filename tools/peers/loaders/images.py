"""images.py ASSAY LINK: makes Assay generate its images and links LINK to their folder, for all peers to read."""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

assay, link = sys.argv[1:]
if "ASSAY_CACHE" not in os.environ:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    os.environ["ASSAY_CACHE"] = os.path.join(base, "assay")
with tempfile.TemporaryDirectory() as folder:
    out = pathlib.Path(folder) / "run"
    subprocess.run([assay, "run", "dataloader", "--set", "dataloader.stage=read", "--set", "dataloader.workers=1",
                    "--out", str(out)], check=True, stdout=subprocess.DEVNULL)
    record = json.loads((out / "records.jsonl").read_text().splitlines()[0])
# "generated HASH": find the folder whose manifest has this hash.
want = record["protocol"]["data_set"].split()[1]
for manifest in sorted(pathlib.Path(os.environ["ASSAY_CACHE"]).glob("*/SHA256SUMS")):
    if hashlib.sha256(manifest.read_bytes()).hexdigest().startswith(want):
        pathlib.Path(link).symlink_to(manifest.parent)
        sys.exit()
sys.exit(f"no set with the hash {want} in {os.environ['ASSAY_CACHE']}")
