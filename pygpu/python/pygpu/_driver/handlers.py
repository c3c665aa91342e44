"""Host arrays as a kernel's arguments, copied to the device before it runs or back afterwards."""

from __future__ import annotations

from typing import Any

from .. import _core
from .memory import memcpy_dtoh, memcpy_htod


class ArgumentHandler:
    """Stands for an array in host memory among a kernel's arguments: the base of :class:`In`,
    :class:`Out`, :class:`InOut` and of a program's own handlers.

    A subclass's ``pre_call`` is called before the kernel is launched; its ``post_call``, if it has
    one, once the kernel has run. The argument of both is the stream of the call, or None.

    Parameters
    ----------
    ary : numpy.ndarray or buffer
        The array, which is the attribute ``array``. The kernel's argument is new device memory of
        its size, :meth:`get_device_alloc`.

    Examples
    --------
    >>> class Zeros(driver.ArgumentHandler):
    ...     def pre_call(self, stream):
    ...         memory = self.get_device_alloc()
    ...         driver.memset_d8(memory, 0, self.array.nbytes)
    >>> handler = Zeros(np.ones(3, np.float32))
    >>> handler.pre_call(None)
    >>> driver.from_device_like(handler.get_device_alloc(), handler.array)
    array([0., 0., 0.], dtype=float32)
    """

    # True if the array receives data.
    _writes = False
    # True if the call copies, which the graph of a captured kernel would not repeat.
    _copies = False

    def __init__(self, ary: Any) -> None:
        self.array = ary
        self.dev_alloc: Any = None

    def get_device_alloc(self) -> Any:
        """Returns the device memory that the kernel gets, which the first call allocates."""
        if self.dev_alloc is None:
            try:
                nbytes = self.array.nbytes
            except AttributeError:
                raise TypeError(
                    f"could not determine array length of '{type(self.array)}': "
                    "unsupported array type or not an array; numpy.array(x, dtype) makes one"
                ) from None
            _core.host_memory_size("ary", self.array, self._writes)
            self.dev_alloc = _core.mem_alloc_ordered(nbytes)
        return self.dev_alloc

    def pre_call(self, stream: Any) -> None:
        """Called before the launch.

        Parameters
        ----------
        stream : Stream or None
            The stream of the call.
        """


class In(ArgumentHandler):
    """An array in host memory that a kernel reads.

    Parameters
    ----------
    ary : numpy.ndarray or buffer
        The array, contiguous.

    Examples
    --------
    >>> from pygpu import compiler
    >>> module = compiler.SourceModule(
    ...     "__global__ void twice(float *x) { x[threadIdx.x] *= 2; }"
    ... )
    >>> twice = module.get_function("twice")
    >>> twice(driver.In(np.ones(3, np.float32)), block=(3, 1, 1))
    >>> driver.In(np.ones(3, np.float32)).pre_call(None)  # what a call does first
    """

    _copies = True

    def pre_call(self, stream: Any) -> None:
        """Copies the array to the device.

        Parameters
        ----------
        stream : Stream or None
            The stream of the call, which the copy does not wait for.
        """
        memcpy_htod(self.get_device_alloc(), self.array)


class Out(ArgumentHandler):
    """An array in host memory that a kernel writes. Elements that it does not write become zero.

    Parameters
    ----------
    ary : numpy.ndarray or buffer
        The array, contiguous.

    Examples
    --------
    >>> from pygpu import compiler
    >>> module = compiler.SourceModule(
    ...     "__global__ void set_two(float *x) { x[threadIdx.x] = 2; }"
    ... )
    >>> set_two = module.get_function("set_two")
    >>> a = np.zeros(3, np.float32)
    >>> set_two(driver.Out(a), block=(3, 1, 1))
    >>> a
    array([2., 2., 2.], dtype=float32)
    """

    _writes = True
    _copies = True

    def pre_call(self, stream: Any) -> None:
        """Fills the device memory with zeros.

        Parameters
        ----------
        stream : Stream or None
            The stream of the call.

        Examples
        --------
        >>> handler = driver.Out(np.ones(3, np.float32))
        >>> handler.pre_call(None)
        >>> handler.post_call(None)
        >>> handler.array
        array([0., 0., 0.], dtype=float32)
        """
        memory = self.get_device_alloc()
        _core.fill_memory(memory, 0, 1, self.array.nbytes, stream)

    def post_call(self, stream: Any) -> None:
        """Copies the result to the array.

        Parameters
        ----------
        stream : Stream or None
            The stream of the call.
        """
        memcpy_dtoh(self.array, self.get_device_alloc())


class InOut(In, Out):
    """An array in host memory that a kernel reads and writes.

    Parameters
    ----------
    ary : numpy.ndarray or buffer
        The array, contiguous.

    Examples
    --------
    >>> from pygpu import compiler
    >>> module = compiler.SourceModule(
    ...     "__global__ void twice(float *x) { x[threadIdx.x] *= 2; }"
    ... )
    >>> a = np.ones(3, np.float32)
    >>> module.get_function("twice")(driver.InOut(a), block=(3, 1, 1))
    >>> a
    array([2., 2., 2.], dtype=float32)
    >>> driver.InOut(a).post_call(None)  # what a call does afterwards
    """
