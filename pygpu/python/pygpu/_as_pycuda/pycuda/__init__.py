"""`import pycuda` in child processes of a program for which pygpu stands in for PyCUDA.

`multiprocessing` hands `sys.path` on to the interpreters that it spawns, and other commands
inherit `PYTHONPATH`; nothing else would make `import pycuda` mean pygpu there. So the folder of
this package is put on both.
"""

import importlib
import sys
from pathlib import Path


def _serve() -> None:
    # The import system returns what is in sys.modules in the end: pygpu under its second name.
    del sys.modules["pycuda"]
    try:
        from pygpu import install_as_pycuda
    except ModuleNotFoundError as error:
        # Another environment's interpreter inherited the variable, and has a `pycuda` of its own.
        if error.name != "pygpu":
            raise
        here = str(Path(__file__).parents[1])
        sys.path[:] = [folder for folder in sys.path if folder != here]
    else:
        install_as_pycuda()
    importlib.import_module("pycuda")


if __name__ == "pycuda":
    _serve()
