"""Finished acceptances of made-up hosts, written as `assay accept` leaves them: `assay accept --resume DIR` judges them again
and runs nothing. Hosts are blamed twice: by members, and in the words of checks, reasons and flags as builds did it that had no
such members."""

import hashlib
import json
import pathlib

GEMM = "gemm/dtype=f32/m=64/n=64/k=64/transpose=nn/cache=cold/duration=burst"
SUM = "collective/op=all_reduce/bytes=8/dtype=f32/inplace=false/batching=batched"
BROADCAST = SUM.replace("all_reduce", "broadcast")
PAIRS = SUM.replace("all_reduce", "pairwise")
THREE, FOUR, SIX = ["a", "b", "c"], ["a", "b", "c", "d"], ["a", "b", "c", "d", "e", "f"]


def record(key, hosts, value=1e9, schema=2, **more):
    name, unit = ("throughput", "FLOP/s") if key.startswith("gemm") else ("busbw", "B/s")
    return {"schema": schema, "key": key, "family": key.split("/")[0], "params": {}, "status": "ok", "reason": "", "device": "cpu",
            "comparable": True, "flags": [], "world": {"ranks": len(hosts), "nodes": len(hosts)},
            "ranks": [{"rank": rank, "host": host, "device": "AMD Zen 5", "median": 1.0} for rank, host in enumerate(hosts)],
            "metrics": [{"name": name, "value": value, "unit": unit, "ci95": None, "better": "higher"}], "checks": [], **more}


def each(values, key=GEMM, **more):
    """A record of each host by itself."""
    return [record(key, [host], value, **more) for host, value in values.items()]


BY_MEMBERS = ("failure", "slow_rank")   # and "culprits" of checks: what older builds said in words alone


def wrong(*detail, culprits=()):
    """`culprits`: pairs of a rank that found something wrong, and of whose message it was (None: not known)."""
    ranks = {rank for rank, _ in culprits}
    return {"status": "failed", "failure": {"kind": "wrong_result", "rank": ranks.pop() if len(ranks) == 1 else None, "host": None},
            "checks": [{"name": "wrong_elements", "passed": False, "value": 1.0, "limit": 0.0, "detail": list(detail),
                        "culprits": [{"rank": rank, "sender": sender} for rank, sender in culprits]}]}


def broke(reason, kind, host=None):
    return {"status": "error", "reason": reason, "failure": {"kind": kind, "rank": None, "host": host}}


def in_words(record):
    """A record as a build wrote it that had none of these members."""
    return {**{name: value for name, value in record.items() if name not in BY_MEMBERS},
            "checks": [{name: value for name, value in check.items() if name != "culprits"} for check in record["checks"]]}


def pairs(hosts, slow=None, **more):
    """Bandwidths of 10 GB/s between all pairs, but for those in `slow`."""
    values = [[None if a == b else (slow or {}).get((a, b), 1e10) for b in hosts] for a in hosts]
    return record(PAIRS, hosts, matrix={"metric": "bandwidth", "unit": "B/s", "better": "higher",
                                        "ranks": list(range(len(hosts))), "values": values},
                  metrics=[{"name": "slowest_pair_bandwidth", "value": min(v for row in values for v in row if v), "unit": "B/s",
                            "ci95": None, "better": "higher"}], **more)


def attempt(hosts, *records, complete=True, error="", lost=None):
    return {"hosts": hosts, "complete": complete, "error": error, "lost": lost or {}, "records": list(records)}


def answer(host, problems=(), gpus=0, **more):
    """What an audit says of a host."""
    return {"host": host, "state": "ok", "error": None, "problems": list(problems), "facts": {}, "events": [],
            "gpus": [{"pci": f"0000:1b:00.{number}", "uuid": f"GPU-{host}{number}", "name": "H100", "slot": None}
                     for number in range(gpus)], **more}


def whole(hosts, **stages):
    """Attempts of every stage in which nothing is wrong, but for those given."""
    return {"host": [attempt(hosts, *each({host: 1e11 for host in hosts}))], "pairs": [attempt(hosts, pairs(hosts))],
            "collectives": [attempt(hosts, record(SUM, hosts), record(BROADCAST, hosts))], **stages}


def blamed(bad, *records, hosts=FOUR):
    """Collectives that blame one host, and were repeated without it."""
    left = [host for host in hosts if host != bad]
    return {"hosts": hosts, "stages": whole(hosts, collectives=[
        attempt(hosts, *records), attempt(left, record(SUM, left), record(BROADCAST, left))])}


def floor(at_least, **more):
    return {"key": "gemm/*", "metric": "throughput", "unit": "FLOP/s", "protocol": {}, "at_least": at_least, "source": "a test",
            **more}


SLOW_RANK = {"flags": ["slow rank: rank 1 on b took 2.1 times as long as the others"], "slow_rank": {"rank": 1, "ratio": 2.1}}
XID = {"id": "xid-fatal", "severity": "fault", "device": "0000:1b:00.0", "seen": "XID 79 at 2026-01-01T00:00:00Z, 2 times",
       "meaning": "the GPU has fallen off the bus", "fix": "power-cycle the machine"}
SWAP = {"id": "swap", "severity": "warning", "device": "", "seen": "8 GB of swap are used", "meaning": "memory is short", "fix": "x"}

ACCEPTANCES = {
    "healthy": {"hosts": THREE, "stages": whole(THREE), "floors": [floor(1e10)]},
    "slow-host": {"hosts": FOUR, "stages": {
        **whole(THREE), "host": [attempt(FOUR, *each({"a": 1e11, "b": 1.01e11, "c": 1e11, "d": 6e10})),
                                 attempt(["d"], *each({"d": 6.1e10}))]}, "fleet": [floor(0.95, relative_to="fleet_median")]},
    "slow-once": {"hosts": FOUR, "stages": whole(FOUR, host=[
        attempt(FOUR, *each({"a": 1e11, "b": 1.01e11, "c": 1e11, "d": 6e10})), attempt(["d"], *each({"d": 1e11}))]),
        "fleet": [floor(0.95, relative_to="fleet_median")]},
    "wrong-result": {"hosts": THREE, "stages": {
        **whole(["a", "c"]), "host": [attempt(THREE, *each({"a": 1e11, "c": 1e11}), *each({"b": 1e11}, **wrong("row 7")))]}},
    "breaks-on-one": {"hosts": THREE, "stages": {
        **whole(["b", "c"]), "host": [attempt(THREE, *each({"b": 1e11, "c": 1e11}),
                                              *each({"a": None}, **broke("rank 0 was killed by SIGSEGV", "crashed")))]}},
    "breaks-everywhere": {"hosts": THREE, "stages": whole(THREE, host=[
        attempt(THREE, *each({host: None for host in THREE}, **broke("out of memory", "out_of_memory")))])},
    "skipped": {"hosts": THREE, "stages": whole(THREE, host=[
        attempt(THREE, *each({host: None for host in THREE}, status="skipped", reason="no AMX"))])},
    "slow-sender": {"hosts": FOUR, "stages": {
        **whole(["a", "b", "d"]), "host": whole(FOUR)["host"],
        "pairs": [attempt(FOUR, pairs(FOUR, {("c", other): 1e9 for other in "abd"})),
                  attempt(["a", "b", "c"], pairs(["a", "b", "c"], {("c", other): 1.1e9 for other in "ab"}))]}},
    # What is slow is measured again with other partners.
    "slow-link": {"hosts": FOUR, "stages": whole(FOUR, pairs=2 * [attempt(FOUR, pairs(FOUR, {("b", "c"): 2e9, ("c", "b"): 2e9}))])},
    "slow-switch": {"hosts": SIX, "leaves": {host: f"leaf{1 + place // 2}" for place, host in enumerate(SIX)}, "stages": whole(
        SIX, pairs=2 * [attempt(SIX, pairs(SIX, {(a, b): 5e9 for a in SIX for b in SIX if (a in "ef") != (b in "ef")}))])},
    "wrong-sum": blamed("c", record(SUM, FOUR, **wrong("rank 2: element 5 is 7, not 6", culprits=[(2, None)]))),
    "wrong-sender": blamed("c", record(SUM, FOUR, **wrong("rank 0: from c: element 5", "rank 1: from c: element 5",
                                                             culprits=[(0, 2), (1, 2)]))),
    "wrong-everywhere": {"hosts": THREE, "stages": whole(THREE, collectives=[
        attempt(THREE, record(SUM, THREE, **wrong("rank 0: x", "rank 1: x", "rank 2: x",
                                                   culprits=[(0, None), (1, None), (2, None)])))])},
    "lost-host": blamed("b", record(SUM, FOUR, **broke("host b is lost: no heartbeat for 30 s", "lost_host", "b"))),
    "straggler": blamed("b", record(SUM, FOUR, **SLOW_RANK), record(BROADCAST, FOUR, **SLOW_RANK)),
    "no-culprit": {"hosts": THREE, "stages": whole(THREE, collectives=[
        attempt(THREE, record(SUM, THREE, **broke("out of memory", "out_of_memory")))])},
    "not-started": {"hosts": THREE, "stages": {
        **whole(["a", "c"]), "host": [attempt(THREE, *each({"a": 1e11, "c": 1e11}),
                                              lost={"b": "assay: cannot start on b: connect to host b: No route to host"})]}},
    "not-complete": {"hosts": THREE, "stages": whole(THREE, collectives=[
        attempt(THREE, record(SUM, THREE), complete=False, error="assay: run: the disk is full")])},
    "audit": {"hosts": FOUR, "stages": {"host": [attempt(["d"], *each({"d": 1e11}))]}, "audit": {
        "hosts": [answer("a", [XID], 2, events=[{"kind": "xid", "code": 79, "device": "0000:1b:00.0", "count": 2,
                                                 "time": "2026-01-01T00:00:00Z"}]),
                  {**answer("b"), "state": "unreachable", "error": "no route to host"}, answer("c", [SWAP], 2), answer("d", [], 1)],
        "drift": [{"fact": "driver", "majority": "570", "count": 3, "tie": False, "hosts": [{"host": "c", "value": "535"}]}]}},
    "floors": {"hosts": THREE, "stages": whole(THREE), "floors": [
        floor(1e10), floor(1e9, key="gemm/dtype=f64/*", required=True), floor(1e9, key="collective/*", metric="busbw", unit="B/s"),
        floor(1e9, key="peak/*")]},
}


def sha256(text):
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()


def write_acceptance(folder, name, schema=2, words=True, edit=lambda value: value):
    """Writes one of them below `folder`, in words or by members; the words of the command that judges it again, and the folder
    it writes to. `edit` changes a record, an attempt or an audit before it is written."""
    folder, case = pathlib.Path(folder), ACCEPTANCES[name]
    out = folder / "out"

    def write(path, value):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value) + "\n")
        return path

    def file_of_floors(name, floors):
        return write(folder / "levels" / f"{name}.json", {"schema": 1, "floors": floors}) if floors else None

    plans = [write(folder / "levels" / f"{plan}.json", {"schema": 1, "name": plan, "cases": [entry]}) for plan, entry in (
        ("sum", {"family": "collective", "op": "all_reduce", "bytes": 8}), ("product", {"family": "gemm", "m": 64, "n": 64, "k": 64}),
        ("pairwise", {"family": "collective", "op": "pairwise", "bytes": 8}))]   # in the order of their stages' names
    fleet, floors = file_of_floors("fleet", case.get("fleet")), file_of_floors("floors", case.get("floors"))
    level = write(folder / "levels/tiny.json", {"schema": 1, "host": ["product"], "pairs": ["pairwise"], "collectives": ["sum"],
                                                **({"fleet": "fleet"} if fleet else {})})
    files = [level, *plans, *([fleet] if fleet else [])]
    hostfile = write(folder / "hosts", "".join(host + "\n" for host in case["hosts"]))
    stages = {}
    for stage, attempts in case["stages"].items():
        for number, each_attempt in enumerate(attempts, 1):
            kept = edit({name: value for name, value in each_attempt.items() if name != "records"})
            records = [edit({**(in_words(one) if words else one), "schema": schema}) for one in each_attempt["records"]]
            kept["dir"] = stage if number == 1 else f"{stage}-{number}"
            write(out / kept["dir"] / "run.json", {
                "schema": schema, "id": f"id-{kept['dir']}", "started": f"2026-01-01T00:0{number}:00Z", "each_host": stage == "host",
                **({"finished": f"2026-01-01T00:0{number}:30Z"} if kept["complete"] else {})})
            write(out / kept["dir"] / "records.jsonl", "".join(json.dumps(one) + "\n" for one in records))
            stages.setdefault(stage, []).append({**kept, "done": True})
    write(out / "audit.json", edit({"schema": 1, **case.get("audit", {"hosts": [answer(host) for host in case["hosts"]], "drift": []})}))
    write(out / "state.json", {
        "state": "assay accept 1", "level": str(level), "level_hash": sha256("".join(sha256(file.read_bytes()) for file in files)),
        "floors": str(floors or ""), "floors_hash": sha256(floors.read_bytes()) if floors else "", "hostfile": str(hostfile),
        "device": "cpu", "started": "2026-01-01T00:00:00Z", "hosts": case["hosts"], "with_serials": False, "audited": True,
        "seconds": 60, "stages": stages, **({"leaves": case["leaves"]} if "leaves" in case else {})})
    return ("accept", "--device", "cpu", "--resume", str(out)), out
