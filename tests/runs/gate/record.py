"""Records what short runs of the plan `gate` measure on this machine, for the replays of tests/unit/gate: gates of three
repetitions, alone and beside busy CPUs. usage: ASSAY=BINARY record.py GATES [clean|busy]"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
REPETITIONS, SAMPLES = 3, 40


def repetition(folder, name):
    subprocess.run([os.environ["ASSAY"], "run", "gate", "--out", name], cwd=folder, check=True, capture_output=True)
    for line in (pathlib.Path(folder) / name / "records.jsonl").read_text().splitlines():
        record = json.loads(line)
        samples, outside = record["samples"], record.get("outside_cpu")
        if samples["series"]:   # too many for the line
            samples = json.loads((pathlib.Path(folder) / name / samples["series"]).read_text())
        yield record["key"], {"samples": [float(f"{value:.4g}") for value in samples["values"][:SAMPLES]],
                              "outside": round(outside["cpus"] + outside["steal"], 3) if outside else None}


def gate(folder, number):
    by_case = {}
    for i in range(REPETITIONS):
        for key, one in repetition(folder, f"{number}-{i}"):
            by_case.setdefault(key, []).append(one)
    return [{"case": key, "repetitions": ones} for key, ones in by_case.items()]


def main(gates, kinds):
    for kind in kinds:
        spins = os.cpu_count() if kind == "busy" else 0
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(spins)]
        try:
            with tempfile.TemporaryDirectory() as folder:
                rows = [row for number in range(gates) for row in gate(folder, number)]
        finally:
            for one in busy:
                one.kill()
        lines = ",\n".join("  " + json.dumps(row) for row in rows)
        (HERE / f"{kind}.json").write_text('{\n "schema": 1,\n "gates": [\n' + lines + "\n ]\n}\n")


main(int(sys.argv[1]), sys.argv[2:] or ["clean", "busy"])
