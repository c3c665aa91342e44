"""The names of PyCUDA's extension module, which some programs import: those of the driver."""

from typing import TYPE_CHECKING, Any

from .driver import __all__ as __all__

if TYPE_CHECKING:
    from .driver import *  # noqa: F403
else:

    def __getattr__(name: str) -> Any:
        """Asks the driver, which makes some of its names when they are used."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import driver

        return getattr(driver, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
