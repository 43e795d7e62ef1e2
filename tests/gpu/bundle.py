"""A build in one folder, or one file, that a machine without our libraries can run; and where the machine has its own."""

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
# Test programs of a build folder whose GPU tests run here.
PROGRAMS = ["cuda_device_test", "ops_parity_test", "matmul_parity_test", "device_gradient_test", "golden_test",
            "gpu_step_test", "nccl_program", "peers/babelstream"]
# The CPU's module too: tests follow the losses of the CPU.
FILES = ["assay", "libassay-cuda.so", "libassay-cpu.so"]
# Left to the machine: CUDA's are large and belong to its driver, glibc's to its kernel and loader.
FROM_THE_MACHINE = ("libcublas", "libcudnn", "libnccl", "libcupti", "libcuda.", "libcudart", "libnvidia", "libnvrtc",
                    "ld-linux", "libc.so", "libm.so", "libdl.so", "libpthread.so", "librt.so", "libresolv.so")
# The compiler's own, which a machine mostly has: ours only where its are too old, or its other libraries may miss them.
RUNTIME = ("libstdc++", "libgcc_s", "libgomp")
# Where toolkits keep libraries that the loader may not know of.
TOOLKIT = ("/usr/local/cuda/lib64", "/usr/local/cuda/lib", "/usr/local/cuda/extras/CUPTI/lib64")


def needed_libraries(binary):
    """Paths of the shared libraries that `binary` loads, those of the machine's own left out."""
    listing = subprocess.run(["ldd", binary], capture_output=True, text=True).stdout
    for line in listing.splitlines():
        words = line.split()
        if "=>" not in words or words[0].startswith(FROM_THE_MACHINE):
            continue
        if not words[2].startswith("/"):
            sys.exit(f"check: {binary} needs {words[0]}, which is not found here")
        yield pathlib.Path(words[2])


def fill(build, to):
    """Puts the build's programs, modules, libraries and configurations into the folder `to`; how many it holds."""
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
    """To a folder, or to one file where `to` ends in .tar.xz (a fifth of the size)."""
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
    """The folder of a bundle; a file is unpacked once, into the machine's folder for temporary files."""
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
    """Folders of CUDA's libraries in a Python environment: where a machine may have them and nowhere else."""
    code = ("import site, sys\n"
            "print('\\n'.join({*site.getsitepackages(), site.getusersitepackages(), *filter(None, sys.path)}))")
    try:
        places = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60).stdout.splitlines()
    except (OSError, subprocess.TimeoutExpired):
        return []
    return sorted(folder for place in places for folder in glob.glob(glob.escape(place) + "/nvidia/*/lib"))


def environment_of(programs, python):
    """What Assay's own programs run with; PyTorch keeps the machine's. A build that was made here knows its libraries."""
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
