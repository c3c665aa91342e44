"""GPU arrays on NVIDIA GPUs, AMD GPUs or the CPU.

The modules have PyCUDA's names: ``pygpu.gpuarray``, ``pygpu.driver``, ``pygpu.autoinit`` and
so on. Importing them does not use a GPU; the first use of a device opens a backend.
"""

import os as _os
from importlib.machinery import EXTENSION_SUFFIXES as _SUFFIXES
from typing import TYPE_CHECKING

from ._array import methods as _array_class  # noqa: F401
from ._core import __version__, backends, build_info, choose_backend, profile
from ._lazy import names as _names

for _name in [__file__.replace("__init__.py", f"gpuarray{_end}") for _end in _SUFFIXES]:
    # An extension module comes before a file of Python with the same name.
    if _os.path.exists(_name):
        raise ImportError(
            f"{_name} is of Theano's package pygpu, which conda installs: remove that package "
            "(`conda remove pygpu`), then install this one again"
        )

if TYPE_CHECKING:
    from ._blocks import checking, fuse
    from ._core import fused
    from ._program.alias import install_as_pycuda
    from ._program.leaks import memory_report
    from ._status import Status
else:
    __getattr__, __dir__ = _names(
        __name__,
        {
            "._blocks": "checking fuse",
            "._core": "fused",
            "._program.alias": "install_as_pycuda",
            "._program.leaks": "memory_report",
            "._status": "Status",
            # PyCUDA's modules import each other, so that programs find these as attributes after
            # they have imported another one. Those that do something at import are not here.
            ".": """
                characterize compiler compyte cumath curandom driver elementwise gpuarray reduction
                scan tools""",
        },
    )

if _os.environ.get("PYGPU_LEAKS"):
    from ._program.leaks import watch as _watch

    _watch()

VERSION = tuple(int(part) for part in __version__.split("."))
VERSION_STATUS = ""
VERSION_TEXT = __version__

__all__ = ["VERSION", "VERSION_STATUS", "VERSION_TEXT", "Status", "__version__", "backends"]
__all__ += ["build_info", "checking", "choose_backend", "fuse", "fused", "install_as_pycuda"]
__all__ += ["memory_report", "profile"]
