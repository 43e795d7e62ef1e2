"""./dev on machines that lack something: what it installs, and what it says if it cannot.

dpkg, apt-get, python, cmake and id are replaced by small scripts, so that nothing is installed here.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ("bash env cat dirname mktemp sort head tail grep sed rm awk nproc printf mkdir touch readlink").split()
PACKAGES = [line.split()[1] for line in (ROOT / "cmake/packages.txt").read_text().splitlines() if line.startswith("apt ")]


class Machine:
    """A fake machine: `installed` maps packages to versions, `candidates` likewise what apt could install."""

    def __init__(self, folder, installed, candidates, root=True, tools=()):
        self.bin, self.log, self.home = folder / "bin", folder / "log", folder / "home"
        self.bin.mkdir()
        self.home.mkdir()
        self.log.write_text("")
        for tool in TOOLS:
            os.symlink(shutil.which(tool), self.bin / tool)
        table = "".join(f"{name}) echo 'installed {version}' ;;" for name, version in installed.items())
        self.script("dpkg-query", f'case ${{!#}} in {table} *) exit 1 ;; esac')
        policy = "".join(f"{name}) echo '  Candidate: {version}' ;;" for name, version in candidates.items())
        self.script("apt-cache", f'case ${{!#}} in {policy} *) echo "  Candidate: 1" ;; esac')
        self.script("apt-get", f'echo "apt-get $*" >>{self.log}')
        self.script("id", f"echo {0 if root else 1000}")
        self.script("cmake", f'[ "$1" = --version ] && echo cmake version 3.25.1 || echo "cmake $*" >>{self.log}')
        fake_pip = f'cat "${{!#}}" >>{self.log}; for w in $(cat "${{!#}}"); do case $w in *==*) mkdir -p "$ASSAY_DEPS/lib/python3.11/site-packages/'
        fake_pip += '$(echo "${w%%==*}" | sed s/-/_/g)-${w##*==}.dist-info" ;; esac; done'
        self.script("python3", f'''case $1 in
          -c) exit 0 ;; --version) echo Python 3.11.2 ;;
          -m) echo "python3 $*" >>{self.log}
              [ "$2" != venv ] || {{ mkdir -p "${{!#}}/bin"; cp "$0" "${{!#}}/bin/python" 2>/dev/null || cat "$0" >"${{!#}}/bin/python"; }}
              [ "$2" != pip ] || {{ {fake_pip}; }} ;;
        esac''')
        os.symlink(shutil.which("chmod"), self.bin / "chmod")
        os.symlink(shutil.which("cp"), self.bin / "cp")
        for tool, version in tools:
            self.script(tool, f"echo {tool} {version}")

    def script(self, name, body):
        path = self.bin / name
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def dev(self, *arguments, script=ROOT / "dev", **environment):
        done = subprocess.run([str(script), *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              env={"PATH": str(self.bin), "HOME": str(self.home), "LC_ALL": "C", **environment})
        self.calls = self.log.read_text().splitlines()
        return done


def everything(**others):
    return {name: "99" for name in PACKAGES} | others


class Dev(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def machine(self, *arguments, **options):
        return Machine(pathlib.Path(self.folder.name), *arguments, **options)

    def installs(self, machine):
        """Calls of apt and pip, and pip's lists of wheels."""
        return " ".join(call for call in machine.calls if " install" in call or " --hash=" in call)

    def test_with_nothing_missing_neither_apt_nor_pip_runs_again(self):
        machine = self.machine(everything(), {})
        self.assertEqual(machine.dev("build").returncode, 0)
        self.assertNotIn("apt-get", " ".join(machine.calls))
        self.assertIn("nvidia-nvtx==", self.installs(machine))
        machine.log.write_text("")
        self.assertEqual(machine.dev("build").returncode, 0)
        self.assertNotIn("pip install", " ".join(machine.calls))

    def test_wheels_are_pinned_by_their_hashes(self):
        machine = self.machine(everything(), {})
        self.assertEqual(machine.dev("build").returncode, 0)
        self.assertRegex(self.installs(machine), r"pip install .*--no-deps --require-hashes -r \S+ nvidia-nvtx==\S+ --hash=sha256:[0-9a-f]{64}")
        # Every wheel of the list has one.
        entries = re.sub("#.*", "", (ROOT / "cmake/packages.txt").read_text())
        hashed = dict(line.split(" ", 1) for line in (ROOT / "cmake/wheels.txt").read_text().splitlines() if "#" not in line)
        self.assertEqual(sorted(hashed), sorted(set(re.findall(r"[\w.-]+==[\w.]+", entries))))
        for hashes in hashed.values():
            self.assertRegex(hashes, r"^--hash=sha256:[0-9a-f]{64}( --hash=sha256:[0-9a-f]{64})*$")

    def test_installs_only_what_is_missing(self):
        installed = everything()
        del installed["libfmt-dev"]
        machine = self.machine(installed, {})
        self.assertEqual(machine.dev("build").returncode, 0)
        install = next(call for call in machine.calls if call.startswith("apt-get install"))
        self.assertTrue(install.endswith(" libfmt-dev"), install)
        self.assertEqual(sum(call.startswith("apt-get update") for call in machine.calls), 1)

    def test_an_old_onednn_is_replaced_by_the_wheel(self):
        machine = self.machine(everything(**{"libdnnl-dev": "2.6.3-1"}), {"libdnnl-dev": "2.6.3-1"})
        self.assertEqual(machine.dev("build").returncode, 0)
        self.assertIn("onednn-devel-cpu-gomp==", self.installs(machine))
        self.assertNotIn("libdnnl-dev", self.installs(machine))

    def test_a_new_onednn_comes_from_the_distribution(self):
        installed = everything()
        del installed["libdnnl-dev"]
        machine = self.machine(installed, {"libdnnl-dev": "3.7.2+ds-2"})
        self.assertEqual(machine.dev("build").returncode, 0)
        self.assertIn("libdnnl-dev", self.installs(machine))
        self.assertNotIn("onednn", self.installs(machine))

    def gpu(self):
        """The environment in which ./dev sees a GPU and no toolkit."""
        gpu = pathlib.Path(self.folder.name) / "sys/bus/pci/devices/0000:1b:00.0"
        gpu.mkdir(parents=True)
        (gpu / "vendor").write_text("0x10de\n")
        (gpu / "class").write_text("0x030200\n")
        return {"ASSAY_SYS": str(gpu.parents[3]), "CUDA_HOME": "/nonexistent"}

    def test_a_gpu_without_a_toolkit_gets_one_from_wheels(self):
        machine, here = self.machine(everything(), {}), self.gpu()
        gpu = next(pathlib.Path(here["ASSAY_SYS"]).glob("bus/pci/devices/*"))
        self.assertEqual(machine.dev("build", **here).returncode, 0)
        for wheel in ["nvidia-cuda-nvcc==13.0", "nvidia-cublas==", "nvidia-cudnn-cu13==", "nvidia-nccl-cu13==",
                      "nvidia-cudnn-frontend=="]:
            self.assertIn(wheel, self.installs(machine))
        machine.log.write_text("")
        self.assertEqual(machine.dev("build", **here).returncode, 0)
        self.assertEqual(self.installs(machine), "")
        # An audio device of the same vendor is not a GPU; and with CUDA off nothing is installed for one.
        (gpu / "class").write_text("0x040300\n")
        shutil.rmtree(machine.home)
        machine.home.mkdir()
        self.assertEqual(machine.dev("build", **here).returncode, 0)
        self.assertNotIn("nvidia-cuda-nvcc", self.installs(machine))

    def test_a_toolkit_is_completed_with_what_the_module_needs(self):
        machine = self.machine(everything(), {}, tools=[("nvcc", "13.0")])
        self.assertEqual(machine.dev("build").returncode, 0)
        for wheel in ["nvidia-cudnn-frontend==", "nvidia-cudnn-cu13==", "nvidia-nccl-cu13=="]:
            self.assertIn(wheel, self.installs(machine))
        self.assertNotIn("nvidia-cuda-nvcc==", self.installs(machine))

    def test_a_toolkit_keeps_its_own_cudnn(self):
        machine = self.machine(everything(), {}, tools=[("nvcc", "12.9")])
        (machine.bin.parent / "include").mkdir()
        (machine.bin.parent / "include/cudnn_graph.h").touch()
        self.assertEqual(machine.dev("build").returncode, 0)
        self.assertNotIn("nvidia-cudnn-cu", self.installs(machine))
        self.assertIn("nvidia-nccl-cu12==", self.installs(machine))

    def test_a_toolkit_is_found_by_cuda_home(self):
        machine = self.machine(everything(), {})
        nvcc = pathlib.Path(self.folder.name) / "cuda/bin/nvcc"
        nvcc.parent.mkdir(parents=True)
        nvcc.write_text("#!/bin/bash\necho release 13.0, V13.0.88\n")
        nvcc.chmod(0o755)
        done = machine.dev("build", **self.gpu() | {"CUDA_HOME": str(nvcc.parents[1])})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nvidia-cudnn-frontend==", self.installs(machine))
        self.assertNotIn("nvidia-cuda-nvcc==", self.installs(machine))

    def test_a_toolkit_that_is_too_old_is_not_used(self):
        machine = self.machine(everything(), {}, tools=[("nvcc", "12.4")])
        done = machine.dev("build", **self.gpu())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("CUDA 12.4 is older than 12.8", done.stderr)
        self.assertIn("nvidia-cuda-nvcc==", self.installs(machine))

    def test_a_command_from_elsewhere_on_path_is_enough(self):
        installed = everything()
        del installed["ninja-build"]
        machine = self.machine(installed, {}, root=False, tools=[("ninja", "1.11.1")])
        self.assertEqual(machine.dev("build").returncode, 0)

    def test_a_compiler_that_is_too_old_is_refused(self):
        installed = everything()
        del installed["g++"]
        machine = self.machine(installed, {}, tools=[("g++", "10.2.1")])
        machine.script("apt-get", f'echo "apt-get $*" >>{machine.log}; echo "echo g++ 12.2.0" >>{machine.bin}/g++')
        (machine.bin / "g++").write_text("#!/bin/bash\necho g++ 10.2.1; exit\n")
        done = machine.dev("build")
        self.assertTrue(self.installs(machine).startswith("apt-get install"))
        self.assertEqual(done.returncode, 1)  # the system's package is no newer
        self.assertIn("g++ is older than 12: put a newer one on PATH", done.stderr)
        (machine.bin / "g++").write_text("#!/bin/bash\n")
        self.assertEqual(machine.dev("build").returncode, 0)

    def test_without_root_the_packages_are_named_in_one_line(self):
        installed = everything()
        del installed["libfmt-dev"], installed["libhwloc-dev"]
        done = self.machine(installed, {}, root=False).dev("build")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("apt-get install libfmt-dev libhwloc-dev", done.stderr)

    def test_a_missing_network_gives_one_line(self):
        installed = everything()
        del installed["libfmt-dev"]
        machine = self.machine(installed, {})
        machine.script("apt-get", "echo 'E: Unable to locate package libfmt-dev' >&2; [ \"$1\" = update ]")
        done = machine.dev("build")
        self.assertEqual(done.returncode, 1)
        self.assertIn("Unable to locate package", done.stderr.splitlines()[-1])
        self.assertNotIn("cmake", " ".join(machine.calls))

    def test_a_browser_is_only_for_tests_and_optional(self):
        installed = everything()
        del installed["chromium"]
        machine = self.machine(installed, {})
        self.assertEqual(machine.dev("build").returncode, 0)
        self.assertNotIn("apt-get", " ".join(machine.calls))
        machine.script("apt-get", "echo 'E: Unable to locate package chromium' >&2; [ \"$1\" = update ]")
        done = machine.dev("test")
        self.assertIn("the tests of the page are skipped", done.stderr)
        self.assertIn("cmake --preset release", " ".join(machine.calls))

    def test_no_install_installs_nothing(self):
        machine = self.machine({}, {})
        self.assertEqual(machine.dev("build", ASSAY_NO_INSTALL="1").returncode, 0)
        self.assertEqual([call for call in machine.calls if not call.startswith("cmake")], [])

    def test_run_means_quick_by_default(self):
        # The fake cmake writes a program that prints its arguments.
        machine = self.machine({}, {})
        root = pathlib.Path(self.folder.name) / "clone"
        shutil.copytree(ROOT / "cmake", root / "cmake")
        shutil.copy(ROOT / "dev", root / "dev")
        (root / "build/release").mkdir(parents=True)
        (root / "build/release/assay").write_text('#!/bin/bash\necho "$*"\nexit 3\n')
        (root / "build/release/assay").chmod(0o755)
        for arguments, expected in [
                ([], "run quick"),
                (["--filter", "gemm"], "run quick --filter gemm"),
                (["--out=x", "--ranks", "1,2"], "run quick --out=x --ranks 1,2"),
                (["micro"], "run micro"),
                (["--out", "x", "gemm", "--set", "gemm.m=64"], "run --out x gemm --set gemm.m=64"),
                (["--resume", "runs/1"], "run --resume runs/1")]:
            done = machine.dev("run", *arguments, ASSAY_NO_INSTALL="1", script=root / "dev")
            self.assertEqual((done.stdout.strip(), done.returncode), (expected, 3))
        here = self.gpu()
        for arguments, expected in [([], "run gpu-quick"), (["--device", "cpu"], "run quick --device cpu"), (["micro"], "run micro")]:
            done = machine.dev("run", *arguments, ASSAY_NO_INSTALL="1", script=root / "dev", **here)
            self.assertEqual(done.stdout.strip(), expected)

    def test_a_few_tests_that_fail_run_again_alone(self):
        machine = self.machine({}, {})
        root = pathlib.Path(self.folder.name) / "clone"
        shutil.copytree(ROOT / "cmake", root / "cmake")
        shutil.copy(ROOT / "dev", root / "dev")
        for tool in ("tee", "tr", "wc", "getconf", "sleep"):
            os.symlink(shutil.which(tool), machine.bin / tool)
        # Fails for `first` of all tests, with an output, and for `alone` of those that run again.
        ctest = """folder=build/$2/Testing/Temporary; mkdir -p $folder
echo "ctest $*" >>{log}
case $* in
  *asan*) exit 0 ;;
  *--rerun-failed*) failed="{alone}" ;;
  *) failed="{first}"; echo "{output}" ;;
esac
[ "$failed" ] || exit 0
for name in $failed; do echo "1:$name"; done >$folder/LastTestsFailed.log
exit 8"""
        for first, alone, output, expected, runs in [
                ("", "", "", 0, 2), ("a b", "", "", 0, 3), ("a b", "b", "", 1, 3), ("a b c d e f", "", "", 1, 2),
                ("a", "", "==1==ERROR: AddressSanitizer: heap-use-after-free", 1, 2),
                ("a", "", "x.cpp:1:2: runtime error: signed integer overflow", 1, 2)]:
            machine.log.write_text("")
            machine.script("ctest", ctest.format(log=machine.log, first=first, alone=alone, output=output))
            done = machine.dev("test", ASSAY_NO_INSTALL="1", script=root / "dev")
            calls = [call for call in machine.calls if call.startswith("ctest ")]
            self.assertEqual((done.returncode, len(calls)), (expected, runs), done.stderr + done.stdout)
            self.assertEqual("passed alone only: " + first in done.stderr, bool(first) and expected == 0, done.stderr)

    def test_usage(self):
        machine = self.machine({}, {})
        for arguments in (["tset"], ["build", "now"], ["fuzz", "nonsense", "5"]):
            done = machine.dev(*arguments)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)
        commands = set(re.findall(r"^  ([a-z]+)  ?", machine.dev("help").stdout, re.M))
        self.assertLessEqual({"run", "test", "build", "peers", "soak", "fuzz", "format", "lint", "help"}, commands)


if __name__ == "__main__":
    unittest.main()
