"""The references by which kernels read and write arrays as surfaces, as for textures."""

from __future__ import annotations

from typing import Any

from .. import _core
from .._errors import LogicError
from .texture_arrays import Array, check_textures, opened, whole
from .textures import SURFACE_MARK, made_of_module, reference_bytes


class SurfaceReference:
    """A variable of a module, from ``Module.get_surfref``, by which kernels access an array.

    Without a module it is a surface object for kernels that take one. Raises ``Unsupported`` if the
    device does not support surfaces.

    >>> module = compiler.SourceModule('''
    ... surface<void, cudaSurfaceType2DLayered> image;
    ... __global__ void fill() {
    ...     surf2DLayeredwrite(7.0f, image, threadIdx.x * 4, threadIdx.y, 0);
    ... }''')
    >>> array = driver.np_to_array(np.zeros((2, 3), np.float32), "C", allowSurfaceBind=True)
    >>> module.get_surfref("image").set_array(array)
    >>> module.get_function("fill")(block=(3, 1, 1))
    >>> rows = np.empty((2, 3), np.float32)
    >>> copy = driver.Memcpy3D()
    >>> copy.set_src_array(array)
    >>> copy.set_dst_host(rows)
    >>> copy.width_in_bytes = copy.dst_pitch = 12
    >>> copy.height, copy.depth = 2, 1
    >>> copy()
    >>> rows
    array([[7., 7., 7.],
           [0., 0., 0.]], dtype=float32)
    >>> module.get_surfref("image").get_array() is array
    True
    """

    def __init__(self) -> None:
        check_textures("SurfaceReference")
        self._module: Any = None
        self._name = ""
        self._states: dict[str, tuple[Array, Any]] = {}

    @classmethod
    def _of_module(cls, module: Any, name: str) -> SurfaceReference:
        reference_bytes(module, name, "surface", SURFACE_MARK)
        reference = cls()
        reference._module, reference._name = module, name
        reference._states = made_of_module(module)
        return reference

    def set_array(self, array: Array, flags: int = 0) -> None:
        """Sets the ``array``, which needs ``array3d_flags.SURFACE_LDST``; ``flags`` is 0."""
        made = _core.surface_of_array(opened("array", array))
        if whole("flags", flags):
            raise LogicError(f"flags is {flags}; 0 is allowed")
        if self._module is not None:
            self._module._bind(self._name, made)
        self._states[self._name] = (array, made)

    def _bound(self) -> tuple[Array, Any]:
        try:
            return self._states[self._name]
        except KeyError:
            raise LogicError("no array is bound to the surface reference") from None

    def get_array(self) -> Array:
        """Returns the array."""
        return self._bound()[0]

    @_core.YieldingProperty
    def object(self) -> int:
        """The number of the surface object, for a ``cudaSurfaceObject_t`` parameter."""
        return self._bound()[1].value
