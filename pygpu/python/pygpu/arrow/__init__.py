"""Device buffers and columns for Apache Arrow, with the names of ``pyarrow.cuda``.

The module works on every backend, with ``pyarrow`` from PyPI, whose packages do not have CUDA. Only
the functions that return objects of ``pyarrow`` import it: :meth:`CudaBuffer.copy_to_host`,
:func:`serialize_record_batch` and a few more.

Columns are exchanged without a copy by the Arrow C device data interface: arrays, columns and
record batches have ``__arrow_c_device_array__``, and :func:`from_device_array` reads it.
"""

from ._buffer import Context, CudaBuffer
from ._column import DeviceColumn, DeviceRecordBatch
from ._exchange import from_device_array
from ._host import HostBuffer, IpcMemHandle, new_host_buffer
from ._messages import (
    BufferReader,
    BufferWriter,
    Message,
    read_message,
    read_record_batch,
    serialize_record_batch,
)

__all__ = ["BufferReader", "BufferWriter", "Context", "CudaBuffer", "DeviceColumn"]
__all__ += ["DeviceRecordBatch", "HostBuffer", "IpcMemHandle", "Message", "from_device_array"]
__all__ += ["new_host_buffer", "read_message", "read_record_batch", "serialize_record_batch"]
