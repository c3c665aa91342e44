"""Devices, contexts, memory, copies and textures of ``driver``.

Programs import ``pycuda._driver``, PyCUDA's extension module: the names of ``driver`` are also
attributes here.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..driver import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        """Returns a name of ``driver``, which makes some of its names at their first use."""
        if name.startswith("__") and name != "__all__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from .. import driver  # driver imports the modules of this package

        return getattr(driver, name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__getattr__("__all__")})
