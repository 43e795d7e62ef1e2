"""What the GPU code takes for granted of NVIDIA's libraries, held against the real ones without a GPU: the symbols that it
uses or looks up, NVML's numbers and types, CUPTI's records, and whether PyTorch's wheels alone have all libraries.

Each test is skipped, with the reason, where a package is missing. Packages are those beside ASSAY_DEPS, those of the Python in
ASSAY_WHEELS, and the libraries and headers that the build uses (ASSAY_CUDA_LIBRARIES, ASSAY_CUPTI_HEADERS)."""

import ctypes
import glob
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import bundle  # noqa: E402

ROOT = bundle.ROOT
BUILD = pathlib.Path(os.environ["ASSAY"]).parent
MODULE = BUILD / "libassay-cuda.so"
# The library of each prefix of a symbol.
LIBRARIES = {"cublasLt": "libcublasLt.so", "cudnn": "libcudnn.so", "nvrtc": "libnvrtc.so", "nccl": "libnccl.so", "cupti": "libcupti.so"}
# Newer ones than the oldest library that we accept have: without them, something is left out.
OPTIONAL = {"ncclResetDebugInit", "ncclCommWindowRegister", "ncclCommWindowDeregister"}


def pythons():
    """Interpreters of environments that may have NVIDIA's wheels."""
    found = [os.environ.get("ASSAY_WHEELS"), os.environ.get("ASSAY_DEPS", "") + "/bin/python", sys.executable]
    return [python for python in found if python and os.access(python, os.X_OK)]


def packages(python):
    """The folders in which that Python looks for packages."""
    return subprocess.run([python, "-c", "import sys; print('\\n'.join(sys.path[1:]))"], capture_output=True,
                          text=True).stdout.splitlines()


def library_sets():
    """{where: {library: path}}: the build's libraries, and those of each environment with wheels."""
    def named(files):
        return {name: file for file in files for name in LIBRARIES.values() if re.match(re.escape(name) + r"(\.\d+)?$", os.path.basename(file))}

    built = [file for file in os.environ.get("ASSAY_CUDA_LIBRARIES", "").split(":") if file]
    built += [str(file) for folder in {os.path.dirname(file) for file in built}
              for pattern in ("libcupti.so", "../extras/CUPTI/lib64/libcupti.so") for file in glob.glob(folder + "/" + pattern)]
    sets = {"the build's": named(built)}
    for python in pythons():
        sets[python] = named(file for folder in bundle.cuda_of_python(python) for file in sorted(glob.glob(folder + "/lib*.so*")))
    return {where: found for where, found in sets.items() if found}


def symbols(file, *options):
    done = subprocess.run(["nm", "-D", *options, file], capture_output=True, text=True, check=True)
    return {line.split()[-1].split("@")[0] for line in done.stdout.splitlines() if line.strip()}


def looked_up(prefix, *folders):
    """Names that begin with the prefix, in quotes in the sources of these folders: what they look up at run time."""
    text = "".join(file.read_text() for folder in folders for file in sorted((ROOT / folder).rglob("*"))
                   if file.suffix in (".cpp", ".h"))
    return set(re.findall(rf'(?:find|find_symbol)\((?:\w+, )*"({prefix}\w+)"', text)) | set(
        re.findall(rf'find\("{prefix}\w+",\s*"({prefix}\w+)"', text))


class Symbols(unittest.TestCase):
    def setUp(self):
        if not shutil.which("nm"):
            self.skipTest("no nm (binutils) here")
        self.sets = library_sets()
        if not self.sets:
            self.skipTest("no libraries of CUDA here")

    def test_every_symbol_is_exported_by_the_real_libraries(self):
        if not MODULE.exists():
            self.skipTest("a build without CUDA")
        wanted = symbols(MODULE, "--undefined-only") | looked_up("cupti", "harness/trace") | looked_up("nccl", "harness/comm")
        by_library = {name: {symbol for symbol in wanted if symbol.startswith(prefix)} for prefix, name in LIBRARIES.items()}
        self.assertGreaterEqual(len(by_library["libcupti.so"]), 8)
        self.assertLessEqual(OPTIONAL, by_library["libnccl.so"])
        compared = set()
        for where, files in self.sets.items():
            for name, file in files.items():
                with self.subTest(where=where, library=name):
                    missing = by_library[name] - symbols(file, "--defined-only")
                    self.assertFalse(missing, f"{file} has no {', '.join(sorted(missing))}")
                    compared.add(name)
        print("compared with the real", ", ".join(sorted(compared)))
        self.assertLessEqual({"libcublasLt.so", "libnvrtc.so"}, compared)


class Nvml(unittest.TestCase):
    def setUp(self):
        self.facts = BUILD / "nvml_facts"
        files = [pathlib.Path(folder) / "pynvml.py" for python in pythons() for folder in packages(python)]
        self.file = next((file for file in files if file.exists()), None)
        if not self.file:
            self.skipTest("no nvidia-ml-py here")
        self.assertTrue(self.facts.exists(), "nvml_facts is not built")
        spec = importlib.util.spec_from_file_location("pynvml", self.file)
        self.nvml = importlib.util.module_from_spec(spec)
        with mock.patch.dict(sys.modules, pynvml=self.nvml):  # it looks itself up there
            spec.loader.exec_module(self.nvml)

    def test_numbers_and_types(self):
        lines = subprocess.run([self.facts], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertGreater(len(lines), 60)
        for line in lines:
            *name, ours = line.split()
            if len(name) == 1:
                real = getattr(self.nvml, name[0])
            elif name[1] == "size":
                real = ctypes.sizeof(getattr(self.nvml, name[0]))
            else:
                kind, member = name[0].split(".")
                real = getattr(getattr(self.nvml, kind), member).offset
            self.assertEqual(int(ours), real, " ".join(name))

    def test_functions(self):
        ours, text = looked_up("nvml", "harness/machine"), self.file.read_text()
        self.assertGreater(len(ours), 50)
        ours -= {"nvmlInit_v2"}  # the binding calls nvmlInitWithFlags instead
        self.assertFalse({name for name in ours if f'"{name}"' not in text})


class Cupti(unittest.TestCase):
    MEMBERS = {"Kernel9": ("start", "end", "streamId", "correlationId", "name"),
               "Memcpy6": ("copyKind", "start", "end", "streamId", "correlationId"),
               "Memset4": ("start", "end", "streamId", "correlationId")}

    def test_later_records_have_the_members_at_the_same_offsets(self):
        places = [os.environ.get("ASSAY_CUPTI_HEADERS", "")]
        places += [place for python in pythons() for folder in packages(python) for place in glob.glob(folder + "/nvidia/*/include")]
        places = [pathlib.Path(place) for place in places if place and (pathlib.Path(place) / "cupti_activity.h").exists()]
        compiler = shutil.which("g++") or shutil.which("clang++")
        if not places or not compiler:
            self.skipTest("no headers of CUPTI here" if compiler else "no compiler here")
        for place in places:
            text = (place / "cupti_activity.h").read_text()
            checks = []
            for ours, members in self.MEMBERS.items():
                kind, first = ours[:-1], int(ours[-1])
                later = {int(number) for number in re.findall(rf"\bCUpti_Activity{kind}(\d+);", text)}
                self.assertTrue([number for number in later if number >= first], f"{place}: {kind}")
                checks += [f"static_assert(offsetof(CUpti_Activity{ours}, {member}) == offsetof(CUpti_Activity{kind}{number}, {member}));"
                           for number in later if number > first for member in members]
            with tempfile.TemporaryDirectory() as folder:
                source = pathlib.Path(folder) / "offsets.cpp"
                source.write_text("#include <cstddef>\n#include <cupti.h>\n" + "\n".join(checks))
                includes = {place, pathlib.Path(os.environ.get("ASSAY_CUPTI_HEADERS") or place)}
                done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", *(f"-I{folder}" for folder in includes), source],
                                      capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, f"{place}: {done.stderr}")


class Wheels(unittest.TestCase):
    """The libraries of a Python environment with PyTorch are enough: no toolkit."""

    def test_every_library_is_found_in_the_wheels(self):
        if not MODULE.exists():
            self.skipTest("a build without CUDA")
        ready = [python for python in pythons()
                 if {"libcublasLt.so", "libcudnn.so", "libnvrtc.so", "libnccl.so", "libcupti.so"} <= set(library_sets().get(python, {}))]
        if not ready:
            self.skipTest("no Python here has the wheels that PyTorch needs: nvidia-cublas, -cudnn, -cuda-nvrtc, -nccl, -cuda-cupti")
        for python in ready:
            with tempfile.TemporaryDirectory() as folder:
                programs = pathlib.Path(folder)  # as unpacked from a bundle, whose module knows no place of a toolkit
                (programs / "lib").mkdir()
                shutil.copy2(BUILD / "assay", programs / "assay")
                environment = bundle.environment_of(programs, python)
                listed = subprocess.run(["ldd", MODULE], env=environment, capture_output=True, text=True).stdout
                found = dict(re.findall(r"(lib(?:cublasLt|cudnn|nvrtc|nccl)\S*) => (\S+)", listed))
                self.assertEqual(len(found), 4, listed)
                own = bundle.cuda_of_python(python)
                for name, path in found.items():
                    self.assertIn(os.path.dirname(path), own, name)
                # The folders in which trace/cuda/cupti.cpp looks, beside the cuBLASLt that was loaded.
                beside = os.path.dirname(found[next(name for name in found if name.startswith("libcublasLt"))])
                self.assertTrue([file for place in ("", "/../../cuda_cupti/lib") for file in glob.glob(beside + place + "/libcupti.so.*")])
                print(f"{python}: {len(found)} libraries and CUPTI from wheels alone")


if __name__ == "__main__":
    unittest.main()
