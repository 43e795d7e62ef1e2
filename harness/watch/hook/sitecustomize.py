# Python imports this by itself in each process of a watched job: `assay watch` puts this folder into PYTHONPATH. It waits
# for torch to be imported, and then does what the user's own sitecustomize would have done. It must work in every Python 3
# and never fail.
import os
import sys


def _attach(here):
    if sys.version_info < (3, 8) or not os.environ.get("ASSAY_WATCH"):
        return
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        import assay_watch
        assay_watch.wait_for_torch()
    except Exception:
        pass
    finally:
        sys.dont_write_bytecode = written
        # The job finds the modules that it would find without us.
        sys.path[:] = [entry for entry in sys.path if entry != here]


def _chain(here):
    import importlib.machinery
    import importlib.util
    # Python has asked for "sitecustomize": from here on it is the user's.
    spec = importlib.machinery.PathFinder.find_spec(
        "sitecustomize", [entry for entry in sys.path if os.path.abspath(entry or ".") != here])
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_here = os.path.dirname(os.path.abspath(__file__))
_attach(_here)
_chain(_here)
