"""Writes cmake/wheels.txt: the SHA-256 of each wheel that cmake/packages.txt names, from the package index.
usage: hashes.py"""
import json
import pathlib
import re
import urllib.request

CMAKE = pathlib.Path(__file__).resolve().parents[2] / "cmake"
PYTHONS = (11, 12, 13, 14)   # 3.N
SYSTEMS = ("x86_64", "aarch64")


def fits(name):
    """Whether the wheel of this file name is for one of these Pythons on Linux."""
    python, abi, systems = name.removesuffix(".whl").split("-")[-3:]
    if systems != "any" and not any("linux" in one and "musl" not in one and one.endswith(SYSTEMS) for one in systems.split(".")):
        return False
    for tag in python.split("."):
        number = int(tag[3:]) if re.fullmatch(r"cp3\d+", tag) else None
        if tag == "py3" or (number in PYTHONS and abi in (tag, "none")) or (abi == "abi3" and number and number <= max(PYTHONS)):
            return True
    return False


def hashes_of(wheel):
    name, version = wheel.split("==")
    request = urllib.request.Request(f"https://pypi.org/simple/{re.sub('[-_.]+', '-', name).lower()}/",
                                     headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        files = json.load(answer)["files"]
    found = {file["hashes"]["sha256"] for file in files if file["filename"].endswith(".whl")
             and file["filename"].split("-")[1] == version and fits(file["filename"])}
    if not found:
        raise SystemExit(f"{wheel}: no wheel for Linux")
    return sorted(found)


def main():
    file = CMAKE / "wheels.txt"
    head = [line for line in file.read_text().splitlines() if line.startswith("#")]
    text = re.sub(r"#.*", "", (CMAKE / "packages.txt").read_text())
    wheels = sorted(set(re.findall(r"[\w.-]+==[\w.]+", text)))
    lines = [" ".join([wheel, *(f"--hash=sha256:{one}" for one in hashes_of(wheel))]) for wheel in wheels]
    file.write_text("\n".join(head + lines) + "\n")


if __name__ == "__main__":
    main()
