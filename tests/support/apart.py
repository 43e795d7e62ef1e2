"""Hosts of a test that are this machine: kernel host names of their own, by which MPI tells hosts apart."""
import os
import subprocess
import unittest


def apart():
    """What gives a command a kernel host name of its own, $ASSAY_HOST; nothing where that is not allowed."""
    for words in (["unshare", "--uts"], ["unshare", "--user", "--map-root-user", "--uts"]):
        named = [*words, "sh", "-c", 'hostname "$ASSAY_HOST"; exec "$@"', "sh"]
        try:
            done = subprocess.run([*named, "true"], env={**os.environ, "ASSAY_HOST": "try"}, capture_output=True)
        except OSError:
            return []
        if done.returncode == 0 and not done.stderr:
            return named
    return []


APART = apart()
# Open MPI 5 tells hosts apart by their kernels' names in one place and by its own in another.
MPI_NEEDS_NAMES = not APART and ") 5." in subprocess.run(["mpirun", "--version"], capture_output=True, text=True).stdout

with_mpi = unittest.skipIf(MPI_NEEDS_NAMES, "Open MPI 5 needs hosts of different kernel names: no unshare --uts here")
