"""The wheels of cmake/packages.txt, which ./dev installs into $ASSAY_DEPS."""
import importlib
import os
import pathlib
import sys

FOLDER = pathlib.Path(os.environ.get("ASSAY_DEPS") or pathlib.Path.home() / ".cache/assay/deps/venv")
PACKAGES = sorted(FOLDER.glob("lib/python3*/site-packages"))
sys.path += map(str, PACKAGES)


def module(name):
    """A module of a wheel, or of this Python; None if neither has it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def find(path):
    """A file of a wheel, by its path in it; None if it is not there."""
    return next((folder / path for folder in PACKAGES if (folder / path).exists()), None)
