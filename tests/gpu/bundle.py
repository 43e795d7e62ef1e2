"""Packs a build into a folder or file that runs on machines without our libraries, and finds a machine's own ones."""

import glob
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Test programs whose GPU tests run on the machine.
PROGRAMS = ["cuda_device_test", "ops_parity_test", "matmul_parity_test", "device_gradient_test", "golden_test",
            "gpu_step_test", "gpu_dump", "nccl_program", "peers/babelstream"]
# The CPU module too: tests compare with the CPU's losses.
FILES = ["assay", "libassay-cuda.so", "libassay-cpu.so"]
# Taken from the machine: CUDA's are large and match its driver, glibc's match its kernel and loader.
FROM_THE_MACHINE = ("libcublas", "libcudnn", "libnccl", "libcupti", "libcuda.", "libcudart", "libnvidia", "libnvrtc",
                    "ld-linux", "libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "libresolv.so")
# The compiler's, which most machines have: ours are used only if theirs are too old, as their other libraries may need
# theirs.
RUNTIME = ("libstdc++", "libgcc_s", "libgomp")
# Where toolkits keep libraries outside the loader's path.
TOOLKIT = ("/usr/local/cuda/lib64", "/usr/local/cuda/lib", "/usr/local/cuda/extras/CUPTI/lib64")


def needed_libraries(binary):
    """Paths of the shared libraries that `binary` loads, except those taken from the machine."""
    listing = subprocess.run(["ldd", binary], capture_output=True, text=True).stdout
    for line in listing.splitlines():
        words = line.split()
        if "=>" not in words or words[0].startswith(FROM_THE_MACHINE):
            continue
        if not words[2].startswith("/"):
            sys.exit(f"check: {binary} needs {words[0]}, which is not found here")
        yield pathlib.Path(words[2])


def fill(build, to):
    """Copies the build's programs, modules, libraries and configurations to `to`; returns the number of binaries."""
    missing = [name for name in FILES + PROGRAMS if not (build / name).exists()]
    if missing:
        sys.exit(f"check: {build} lacks {', '.join(missing)}: cmake --preset cuda && cmake --build build/cuda --target all peers")
    (to / "lib/runtime").mkdir(parents=True, exist_ok=True)
    for name in FILES + PROGRAMS:
        (to / name).parent.mkdir(exist_ok=True)
        shutil.copy2(build / name, to / name)
        subprocess.run(["strip", "--strip-unneeded", to / name], check=False)
        for library in needed_libraries(build / name):
            shutil.copy2(library, to / "lib" / ("runtime" if library.name.startswith(RUNTIME) else "") / library.name)
    shutil.copytree(ROOT / "configs", to / "configs", dirs_exist_ok=True)
    return len(FILES + PROGRAMS)


def pack(build, to):
    """Packs into a folder, or into one file if `to` ends in .tar.xz (a fifth of the size)."""
    if to.name.endswith(".tar.xz"):
        with tempfile.TemporaryDirectory(prefix="assay-pack-") as folder:
            count = fill(build, pathlib.Path(folder))
            to.parent.mkdir(parents=True, exist_ok=True)
            with tarfile.open(to, "w:xz", preset=3) as archive:
                archive.add(folder, arcname=".")
        size = to.stat().st_size
    else:
        count = fill(build, to)
        size = sum(file.stat().st_size for file in to.rglob("*") if file.is_file())
    print(f"{to}: {count} programs and modules, {size / 2**20:.1f} MiB")


def unpacked(bundle):
    """A bundle's folder; a file is unpacked once, into the machine's temporary folder."""
    if not bundle.is_file():
        return bundle.resolve()
    with open(bundle, "rb") as file:
        digest = hashlib.file_digest(file, "sha256") if hasattr(hashlib, "file_digest") else hashlib.sha256(file.read())
    folder = pathlib.Path(tempfile.gettempdir()) / f"assay-check-{os.getuid()}-{digest.hexdigest()[:12]}"
    if not folder.exists():
        new = pathlib.Path(tempfile.mkdtemp(prefix="assay-check-"))
        with tarfile.open(bundle) as archive:
            archive.extractall(new, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        new.replace(folder)
    return folder


def cuda_of_python(python):
    """Folders of CUDA's libraries in a Python environment, the only place where some machines have them."""
    code = ("import site, sys\n"
            "print('\\n'.join({*site.getsitepackages(), site.getusersitepackages(), *filter(None, sys.path)}))")
    try:
        places = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60).stdout.splitlines()
    except (OSError, subprocess.TimeoutExpired):
        return []
    return sorted(folder for place in places for folder in glob.glob(glob.escape(place) + "/nvidia/*/lib"))


def environment_of(programs, python):
    """The environment of Assay's programs; PyTorch keeps the machine's. A build made here finds its libraries itself."""
    own = {**os.environ, "ASSAY_SOURCE_ROOT": str(ROOT)}
    if not (programs / "lib").is_dir():
        return own
    folders = [str(programs / "lib"), *cuda_of_python(python), os.environ.get("LD_LIBRARY_PATH", ""), *TOOLKIT]
    own |= {"LD_LIBRARY_PATH": ":".join(filter(None, folders)), "ASSAY_CONFIGS": str(programs / "configs")}
    try:
        starts = subprocess.run([programs / "assay", "list", "families"], env=own, capture_output=True).returncode == 0
    except OSError:
        starts = False
    return own if starts else own | {"LD_LIBRARY_PATH": f"{programs / 'lib/runtime'}:{own['LD_LIBRARY_PATH']}"}
