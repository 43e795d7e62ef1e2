"""Tests with several hosts on this machine: each gets its own kernel host name, by which MPI distinguishes hosts."""
import os
import subprocess
import unittest


def host_name_prefix():
    """The prefix that runs a command under the kernel host name $ASSAY_HOST; empty if that is not permitted."""
    for words in (["unshare", "--uts"], ["unshare", "--user", "--map-root-user", "--uts"]):
        named = [*words, "sh", "-c", 'hostname "$ASSAY_HOST"; exec "$@"', "sh"]
        try:
            done = subprocess.run([*named, "true"], env={**os.environ, "ASSAY_HOST": "try"}, capture_output=True)
        except OSError:
            return []
        if done.returncode == 0 and not done.stderr:
            return named
    return []


HOST_NAME_PREFIX = host_name_prefix()
# Open MPI 5 distinguishes hosts by kernel host names in one place and by its own names in another.
MPI_NEEDS_NAMES = (not HOST_NAME_PREFIX and
                   ") 5." in subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout)

with_mpi = unittest.skipIf(MPI_NEEDS_NAMES, "Open MPI 5 needs different kernel host names, which needs unshare --uts")
