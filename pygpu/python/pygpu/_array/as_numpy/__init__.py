"""Functions of numpy that are made of other operations on the device.

Each has numpy's name, arguments and result. ``gpuarray`` has it as an attribute, and numpy's own
function calls it for a GPUArray. A new one is a function in a module here and its name below.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_NAMES = {
    "conversion": "array asarray load may_share_memory save shares_memory",
    "linear": "cross einsum inner kron norm outer tensordot vdot",
    "numeric": "angle convolve correlate ediff1d fix gradient interp polyval select sinc trapezoid",
    "order": "bincount digitize histogram histogram_bin_edges in1d intersect1d isin lexsort"
    " searchsorted setdiff1d setxor1d union1d unique",
    "shaping": "append argpartition argwhere atleast_1d atleast_2d atleast_3d block"
    " column_stack copyto delete diag diagflat dsplit dstack extract hsplit"
    " insert meshgrid pad partition place putmask resize rot90 squeeze take_along_axis tri vsplit",
    "statistics": "average corrcoef cov median nanargmax nanargmin nancumprod nancumsum nanmax"
    " nanmean nanmedian nanmin nanpercentile nanquantile nanstd nanvar percentile quantile",
}
MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

DIFFERENT = {"dot": "linear", "take": "shaping"}


def function(name: str) -> Callable[..., Any]:
    """Returns one of the functions; its module is imported when a program first asks for it."""
    return getattr(import_module(f".{MODULES[name]}", __name__), name)


def different(name: str) -> Callable[..., Any]:
    """Returns numpy's function where PyCUDA's of that name, which ``gpuarray`` has, differs."""
    return getattr(import_module(f".{DIFFERENT[name]}", __name__), name)
