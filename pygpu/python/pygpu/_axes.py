"""numpy's checks of axes."""

from __future__ import annotations

# numpy has them in another place before version 2.
try:
    from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple
except ImportError:  # pragma: no cover
    from numpy.core.numeric import (  # type: ignore[no-redef]
        normalize_axis_index,
        normalize_axis_tuple,
    )

__all__ = ["normalize_axis_index", "normalize_axis_tuple"]
