"""Tests with several hosts on this machine, reached by a stand-in for a remote shell. An environment variable names a
process's host, and all processes of a test carry its mark, however deep they are."""
import contextlib
import os
import shlex
import signal
import socket

from host_names import HOST_NAME_PREFIX
from testbed import TestbedCase, alive, parents, wait_for

# Like ssh: options, the host, then words for a shell there.
REMOTE_SHELL = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift 2; done
host=$1; shift
[ -e "$0.without.$host" ] && { echo "connect to host $host: No route to host" >&2; exit 255; }
export ASSAY_HOST=$host
[ -e "$0.profile.$host" ] && . "$0.profile.$host"
exec HOST_NAME_PREFIX sh -c "$*"
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class HostsCase(TestbedCase):
    def setUp(self):
        super().setUp()
        self.mark = f"ASSAY_TEST_MARK={os.getpid()}-{id(self)}"
        self.rsh = os.path.join(self.folder, "rsh")
        with open(self.rsh, "w") as file:
            file.write(REMOTE_SHELL.replace("HOST_NAME_PREFIX", shlex.join(HOST_NAME_PREFIX)))
        os.chmod(self.rsh, 0o755)

    def tearDown(self):
        for pid in self.marked():
            with contextlib.suppress(ProcessLookupError):  # it ended with its parent
                os.kill(pid, signal.SIGKILL)
        super().tearDown()

    def marked(self, end=""):
        """All descendants of this test whose command line ends with `end`."""
        found = []
        for pid, row in parents().items():
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if self.mark.encode() in file.read().split(b"\0") and row[2].rstrip().endswith(end):
                        found.append(pid)
            except OSError:
                pass
        return alive(found)

    def hosts(self, *names, **more):
        """The environment of a run on these hosts by remote shell."""
        path = os.path.join(self.folder, "hosts")
        with open(path, "w") as file:
            file.write("\n".join(names) + "\n")
        name, value = self.mark.split("=")
        return {"ASSAY_RSH": self.rsh, "OMPI_MCA_orte_default_hostfile": path, name: value,
                "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **more}

    def profile(self, host, *lines):
        """Commands of the shell that starts a host's processes: its own environment."""
        with open(f"{self.rsh}.profile.{host}", "w") as file:
            file.write("\n".join(lines) + "\n")

    def unplug(self, host):
        """Makes the host unreachable for the remote shell."""
        open(f"{self.rsh}.without.{host}", "w").close()

    def plug_in(self):
        """Makes every host reachable again."""
        for name in os.listdir(self.folder):
            if name.startswith("rsh.without."):
                os.remove(os.path.join(self.folder, name))

    def rank(self, rank, size, port, **more):
        """The environment of one of several hosts that run the same command."""
        name, value = self.mark.split("=")
        return {"ASSAY_HOST": f"host{rank}", "ASSAY_RANK": str(rank), "ASSAY_SIZE": str(size), "ASSAY_TOKEN": "secret",
                "ASSAY_SUPERVISOR": f"127.0.0.1:{port}", name: value, **more}

    def gone(self):
        wait_for(lambda: not self.marked(), "the end of every process")

    @staticmethod
    def environment_of(pid):
        with open(f"/proc/{pid}/environ", "rb") as file:
            return dict(word.split("=", 1) for word in file.read().decode().split("\0") if "=" in word)

    def host_of(self, pid):
        return self.environment_of(pid)["ASSAY_HOST"]
