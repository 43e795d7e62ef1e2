"""points.py RUN: prints reference convergence points (configs/convergence) from a quality run of at least 10 seeds.

  assay run llama --set llama.mode=quality --set llama.runs=12 --out RUN
  python3 tools/convergence/points.py RUN > configs/convergence/llama-tiny.json

A later run of at least 5 seeds fails its check if its mean is too far below that of the points, and warns if it is too
far above. Regenerate points only if the method changes (model, recipe, data), never because convergence became faster.
"""

import json
import pathlib
import sys


def main():
    run = pathlib.Path(sys.argv[1])
    record = json.loads((run / "records.jsonl").read_text().splitlines()[-1])
    environment = json.loads((run / "run.json").read_text())
    points, batches = [], set()
    for path in (run / "mllog").glob("*.log"):
        log = {line["key"]: line for line in (json.loads(text.split(" ", 1)[1]) for text in path.read_text().splitlines())}
        if log["run_stop"]["metadata"]["status"] != "success":
            sys.exit(f"{path}: missed the target")
        points.append({"seed": log["seed"]["value"], "samples": log["run_stop"]["metadata"]["samples_count"]})
        batches.add(log["global_batch_size"]["value"])
    if record["status"] != "ok" or len(points) < 10 or len(batches) != 1:
        sys.exit(f"{run}: {record['status']}, {len(points)} runs; needs at least 10 that reached the target")
    points.sort(key=lambda point: point["seed"])
    rows = ",\n".join("    " + json.dumps(point) for point in points)
    print(f"""{{
  "schema": 1,
  "model": "{record['params']['model']}",
  "description": {json.dumps(record['conditions']['target'])},
  "source": {json.dumps(f"{record['params']['precision']}, {record['device']}, {environment['started'][:10]}")},
  "global_batch": {batches.pop()},
  "points": [
{rows}
  ]
}}""")


main()
