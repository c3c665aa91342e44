"""Streams and events with numba's methods.

Examples
--------
>>> stream, start, end = cuda.stream(), cuda.event(), cuda.event()
>>> start.record(stream)
>>> end.record(stream)
>>> end.synchronize()
>>> cuda.event_elapsed_time(start, end) >= 0
True
>>> cuda.external_stream(stream.handle).handle == stream.handle
True
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .. import _core
from .._arguments import wrong_type
from .._errors import Error, Unsupported
from ._memory import stream_or_none

if TYPE_CHECKING:
    import asyncio

__all__ = ["default_stream", "event", "event_elapsed_time", "external_stream"]
__all__ += ["legacy_default_stream", "per_thread_default_stream", "stream"]

_DISABLE_TIMING = 2
_DEFAULT_NAMES = {
    0: "<Default CUDA stream>",
    1: "<Legacy default CUDA stream>",
    2: "<Per-thread default CUDA stream>",
}
_local = threading.local()


class Stream:
    """A queue of work over ``stream``, a :class:`pygpu.driver.Stream`, shown as ``name``.

    Functions of this package take a stream; other libraries take one by ``__cuda_stream__``.
    Programs make one by :func:`pygpu.cuda.stream`.

    >>> stream = cuda.stream()
    >>> array = cuda.to_device([1, 2, 3], stream=stream)
    >>> stream.synchronize()
    """

    def __init__(self, stream: _core.Stream, name: str | None = None) -> None:
        self._stream = stream
        self._name = name
        self.external = name is not None and name.startswith("<External")
        self._callbacks = _Callbacks()

    @property
    def handle(self) -> int:
        """The driver's handle."""
        return self._stream.handle

    def __int__(self) -> int:
        return self._stream.handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return self._stream.__cuda_stream__()

    def __repr__(self) -> str:
        try:
            return self._name or f"<CUDA stream {self.handle}>"
        except Error:
            return "<CUDA stream from before a reset>"

    def synchronize(self) -> None:
        """Waits until all work queued so far has run; raises an error if the work failed."""
        self._stream.synchronize()

    @contextlib.contextmanager
    def auto_synchronize(self) -> Iterator[Stream]:
        """Waits for the stream when the ``with`` block ends without an exception."""
        yield self
        self.synchronize()

    def add_callback(self, callback: Callable[[Stream, int, Any], Any], arg: Any = None) -> None:
        """Calls ``callback`` with the stream, the status and ``arg`` after all work queued so far.

        The status is 0, or the driver's number of the failure. The function runs in a thread of
        Python's, after earlier callbacks of this object. Unlike in numba, the function may use the
        device, and later work of the stream does not wait for it. Its exceptions become warnings.
        At exit, the interpreter waits for the function.

        >>> import threading
        >>> stream, done = cuda.stream(), threading.Event()
        >>> stream.add_callback(lambda stream, status, arg: done.set())
        >>> done.wait()
        True
        """
        if not callable(callback):
            raise wrong_type("callback", callback, "a callable is needed")
        mark = _core.Event(_DISABLE_TIMING)
        mark.record(self._stream)
        self._callbacks.add(mark, self, callback, arg)

    def async_done(self) -> asyncio.Future[Stream]:
        """Returns an awaitable whose result is this stream, once all work queued so far has run.

        If the work fails, awaiting raises the failure. An event loop must run in this thread.
        """
        # A program that waits so has imported it; others need not.
        import asyncio

        loop = asyncio.get_running_loop()
        future: asyncio.Future[Stream] = loop.create_future()

        def resolve(status: int) -> None:
            if future.done():
                return
            if status == 0:
                future.set_result(self)
            else:
                future.set_exception(RuntimeError(f"the stream failed with status {status}"))

        self.add_callback(lambda _stream, status, _arg: loop.call_soon_threadsafe(resolve, status))
        return future


class _Callbacks:
    """Callbacks, each of which a thread calls after its event; the thread ends with the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[tuple[_core.Event, Stream, Callable[..., Any], Any]] = deque()
        self._thread: threading.Thread | None = None

    def add(self, *entry: Any) -> None:
        with self._lock:
            self._waiting.append(entry)
            # A forked child has none of its parent's threads.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="pygpu stream callbacks")
                self._thread.start()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                mark, stream, callback, arg = self._waiting.popleft()
            status = 0
            try:
                mark.synchronize()
            except Error as error:
                status = int(error.status)
            try:
                callback(stream, status, arg)
            except Exception as error:
                warnings.warn(f"a stream's callback failed: {error!r}", stacklevel=1)
            # Nothing of the entry outlives its turn.
            del mark, stream, callback, arg


class _Named(Stream):
    """A default stream under the number that stands for it."""

    def __init__(self, stream: _core.Stream, number: int) -> None:
        super().__init__(stream, _DEFAULT_NAMES[number])
        self._number = number

    def __int__(self) -> int:
        return self._number


def stream() -> Stream:
    """Returns a new stream of the current device; the default stream waits for it."""
    return Stream(_core.Stream())


def default_stream() -> Stream:
    """Returns the default stream of the current device, as a new object."""
    return Stream(_core.Stream.from_handle(0), _DEFAULT_NAMES[0])


def legacy_default_stream() -> Stream:
    """Returns the default stream under the number 1, as a new object."""
    return _Named(_core.Stream.from_handle(1), 1)


def per_thread_default_stream() -> Stream:
    """Returns the default stream of this thread under the number 2, as a new object.

    On the host, this package makes a stream for each thread.
    """
    try:
        return _Named(_core.Stream.from_handle(2), 2)
    except Unsupported:
        if not hasattr(_local, "stream"):
            _local.stream = _core.Stream()
        return _Named(_local.stream, 2)


def external_stream(ptr: int) -> Stream:
    """Returns another library's stream by its handle ``ptr``, valid while that stream exists."""
    if not isinstance(ptr, int):
        raise wrong_type("ptr", ptr, "an int is needed")
    return Stream(_core.Stream.from_handle(ptr), f"<External CUDA stream {ptr}>")


def raw(stream: Any) -> Any:
    """Returns a stream argument as the driver module takes it."""
    return stream._stream if isinstance(stream, Stream) else stream_or_none(stream)


def order_behind_default(stream: Any) -> None:
    """Orders later work of a stream after earlier work of the default stream."""
    mark = _core.Event(_DISABLE_TIMING)
    _core.Stream.from_handle(raw(stream)).wait_for_event(mark.record())


class Event:
    """A mark in a stream's work, over ``event``, a :class:`pygpu.driver.Event`.

    >>> start, end = event(), event()
    >>> start.record()
    >>> end.wait(stream())
    >>> end.record()
    >>> end.synchronize()
    >>> end.query(), start.elapsed_time(end) >= 0
    (True, True)
    """

    def __init__(self, event: _core.Event) -> None:
        self._event = event

    @property
    def handle(self) -> int:
        """The driver's handle."""
        return self._event.handle

    def query(self) -> bool:
        """Returns True once all work before the mark has run, and for an event never recorded."""
        return self._event.query()

    def record(self, stream: Any = 0) -> None:
        """Records the event in ``stream``: it marks the work queued there so far."""
        self._event.record(raw(stream))

    def synchronize(self) -> None:
        """Waits until all work before the mark has run; raises an error if the work failed."""
        self._event.synchronize()

    def wait(self, stream: Any = 0) -> None:
        """Orders later work of ``stream`` after the event; the call does not block."""
        waiting = _core.Stream.from_handle(0 if raw(stream) is None else raw(stream))
        waiting.wait_for_event(self._event)

    def elapsed_time(self, evtend: Event) -> float:
        """Returns the milliseconds to ``evtend``; both must have timing and have occurred."""
        return self._event.time_till(evtend._event)


def event(timing: bool = True) -> Event:
    """Returns a new event, whose time is recorded only if ``timing`` is True."""
    return Event(_core.Event(0 if timing else _DISABLE_TIMING))


def event_elapsed_time(evtstart: Event, evtend: Event) -> float:
    """Returns the milliseconds between two past events with timing, ``evtstart``, ``evtend``."""
    return evtstart.elapsed_time(evtend)
