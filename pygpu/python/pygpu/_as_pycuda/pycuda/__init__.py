"""`import pycuda` in the children of a program that `python -m pygpu run` started.

`multiprocessing` hands `sys.path` on to the interpreters that it spawns, and nothing else that
would make `import pycuda` mean pygpu there. So `run` puts the folder of this package on it.
"""

import importlib
import sys

from pygpu import install_as_pycuda

if __name__ == "pycuda":
    # The import system returns what is in sys.modules in the end: pygpu under its second name.
    del sys.modules[__name__]
    install_as_pycuda()
    importlib.import_module(__name__)
