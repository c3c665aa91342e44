"""The requirements of the exchange protocols for an export: one function for each protocol.

Each raises AssertionError for an export that breaks a rule, and returns the export's contents.
They use only ctypes and numpy, and nothing of the exporting library.
"""

from __future__ import annotations

import ctypes as c
import math
import re

import arrow_structures
import numpy as np

# ---- DLPack 0.8 to 1.1 ------------------------------------------------------------------------


class Tensor(c.Structure):
    """``DLTensor``."""

    _fields_ = (
        ("data", c.c_void_p),
        ("device_type", c.c_int32),
        ("device_id", c.c_int32),
        ("ndim", c.c_int32),
        ("code", c.c_uint8),
        ("bits", c.c_uint8),
        ("lanes", c.c_uint16),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("byte_offset", c.c_uint64),
    )


DELETER = c.CFUNCTYPE(None, c.c_void_p)


class Managed(c.Structure):
    """``DLManagedTensor``."""

    _fields_ = (("tensor", Tensor), ("context", c.c_void_p), ("deleter", DELETER))


class Versioned(c.Structure):
    """``DLManagedTensorVersioned``."""

    _fields_ = (
        ("major", c.c_uint32),
        ("minor", c.c_uint32),
        ("context", c.c_void_p),
        ("deleter", DELETER),
        ("flags", c.c_uint64),
        ("tensor", Tensor),
    )


_is_valid = c.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = c.c_int, (c.py_object, c.c_char_p)
_get = c.pythonapi.PyCapsule_GetPointer
_get.restype, _get.argtypes = c.c_void_p, (c.py_object, c.c_char_p)

READ_ONLY, IS_COPIED = 1, 2
# The widths that each element code may have.
_WIDTHS = {
    0: (8, 16, 32, 64),
    1: (8, 16, 32, 64),
    2: (16, 32, 64),
    4: (16,),
    5: (64, 128),
    6: (8,),
}


def dlpack(capsule, max_version=None, device=None):
    """Checks a capsule that has not been consumed.

    Returns data, shape, strides, (code, bits) and flags.
    """
    is_versioned = bool(_is_valid(capsule, b"dltensor_versioned"))
    assert is_versioned or _is_valid(capsule, b"dltensor"), capsule
    # A consumer that passes no version receives the old form.
    assert is_versioned == (max_version is not None and max_version >= (1, 0))
    flags = 0
    if is_versioned:
        managed = Versioned.from_address(_get(capsule, b"dltensor_versioned"))
        assert (1, 0) <= (managed.major, managed.minor) <= max(max_version, (1, 0))
        assert managed.major == 1
        flags = managed.flags
        assert flags & ~7 == 0, flags
    else:
        managed = Managed.from_address(_get(capsule, b"dltensor"))
    tensor = managed.tensor
    assert managed.deleter
    assert tensor.ndim >= 0
    assert tensor.lanes == 1
    assert tensor.bits in _WIDTHS[tensor.code]
    if device is not None:
        assert (tensor.device_type, tensor.device_id) == device
    # Without axes both lists may be null; with axes a producer must provide both.
    assert tensor.ndim == 0 or (tensor.shape and tensor.strides)
    shape, strides = tuple(tensor.shape[: tensor.ndim]), tuple(tensor.strides[: tensor.ndim])
    assert all(extent >= 0 for extent in shape)
    size, itemsize = math.prod(shape), tensor.bits // 8
    if size:
        assert tensor.data
        assert (tensor.data + tensor.byte_offset) % min(itemsize, 8) == 0
    else:
        assert not tensor.data
    data = (tensor.data or 0) + tensor.byte_offset
    return data, shape, strides, (tensor.code, tensor.bits), flags


# ---- __cuda_array_interface__, version 3, and __array_interface__ -----------------------------

_TYPESTR = re.compile(r"([<>|])([tbiufcmMOSUV])([1-9][0-9]*)(\[[^\]]+\])?")
_REQUIRED = {"shape", "typestr", "data", "version"}
_OPTIONAL = {"strides", "descr", "mask", "stream"}


def _described(description):
    """Checks the rules that both interfaces share; returns shape, strides and dtype."""
    shape, typestr = description["shape"], description["typestr"]
    assert isinstance(shape, tuple)
    assert all(isinstance(extent, int) and extent >= 0 for extent in shape)
    order, kind, width, unit = _TYPESTR.fullmatch(typestr).groups()
    width = int(width)
    assert (unit is not None) <= (kind in "mM")
    assert kind not in "OUt"
    # The byte order is "|" only for one-byte elements and byte strings.
    assert order != "|" or width == 1 or kind in "SV"
    strides = description.get("strides")
    assert strides is None or isinstance(strides, tuple)
    if strides is None:
        strides = np.empty(shape, [("", "u1", width)]).strides
    assert len(strides) == len(shape)
    assert all(isinstance(stride, int) for stride in strides)
    dtype = np.dtype(typestr)
    if description.get("descr") is not None:
        record = np.lib.format.descr_to_dtype(description["descr"])
        assert record.itemsize == width
        dtype = record if record.names else dtype
    data = description["data"]
    assert isinstance(data, tuple)
    assert len(data) == 2
    assert isinstance(data[0], int)
    assert isinstance(data[1], bool)
    assert description["version"] == 3
    return shape, strides, dtype


def cuda_array_interface(description):
    """Checks ``__cuda_array_interface__``.

    Returns address, shape, strides, dtype and whether it is read-only.
    """
    assert isinstance(description, dict)
    assert set(description) >= _REQUIRED
    assert set(description) <= _REQUIRED | _OPTIONAL
    shape, strides, dtype = _described(description)
    address, is_read_only = description["data"]
    # Exactly the zero-size arrays have the null address.
    assert (address == 0) == (0 in shape)
    stream = description.get("stream")
    # None: nothing to wait for; 1 and 2: the default streams; 0 would be ambiguous.
    assert stream is None or (isinstance(stream, int) and 0 < stream < 1 << 64)
    mask = description.get("mask")
    assert mask is None or hasattr(mask, "__cuda_array_interface__")
    return address, shape, strides, dtype, is_read_only


def array_interface(description):
    """Checks ``__array_interface__``; returns the same as :func:`cuda_array_interface`."""
    shape, strides, dtype = _described(description)
    assert description.get("offset", 0) == 0
    return description["data"][0], shape, strides, dtype, description["data"][1]


# ---- Arrow's C data interface and C device data interface, version 1 --------------------------

# Types without children have two buffers, validity and values; strings have offsets in between.
_PRIMITIVE = re.compile(r"[cCsSiIlLefgb]|t[dt][DmsunM]|ts[smun]:.*|tD[smun]|w:[0-9]+")
_FLAGS = 1 | 2 | 4


def arrow_schema(schema):
    """Checks a type and its children."""
    assert schema.release
    assert schema.format
    assert schema.flags & ~_FLAGS == 0
    assert schema.n_children >= 0
    for index in range(schema.n_children):
        arrow_schema(schema.children[index].contents)
    if schema.dictionary:
        arrow_schema(schema.dictionary.contents)


def _arrow_array(schema, array):
    assert array.release
    assert array.length >= 0
    assert array.offset >= 0
    assert -1 <= array.null_count <= array.length
    assert array.n_children == schema.n_children
    assert bool(array.dictionary) == bool(schema.dictionary)
    buffers = [array.buffers[index] for index in range(array.n_buffers)]
    if _PRIMITIVE.fullmatch(schema.format.decode()):
        assert len(buffers) == 2
        # The validity buffer is optional; the values buffer only without elements.
        assert buffers[0] or array.null_count == 0
        assert buffers[1] or array.length == 0
    for buffer in buffers:
        assert (buffer or 0) % 8 == 0 or array.length
    for index in range(array.n_children):
        _arrow_array(schema.children[index].contents, array.children[index].contents)
    return buffers


def arrow(capsules, device):
    """Checks a pair of capsules; returns format, length, offset and addresses of the buffers."""
    schema, structure = arrow_structures.opened(capsules)
    arrow_schema(schema)
    buffers = _arrow_array(schema, structure.array)
    is_host = device[0] == 1
    assert structure.device_type == device[0]
    assert structure.device_id == (-1 if is_host else device[1])
    assert not (is_host and structure.sync_event)
    assert list(structure.reserved) == [0, 0, 0]
    return schema.format.decode(), structure.array.length, structure.array.offset, buffers


# ---- PEP 3118 ---------------------------------------------------------------------------------


def buffer(exporter):
    """Checks a buffer; returns a view of it."""
    view = memoryview(exporter)
    assert view.ndim >= 0
    assert len(view.shape) == len(view.strides) == view.ndim
    assert view.itemsize == np.asarray(view).dtype.itemsize
    assert view.nbytes == math.prod(view.shape) * view.itemsize
    assert not view.suboffsets
    steps = np.empty(view.shape, f"V{view.itemsize}").strides
    is_packed = all(n == 1 or own == it for n, own, it in zip(view.shape, view.strides, steps))
    assert view.c_contiguous == is_packed or view.nbytes == 0
    return view


# ---- __cuda_stream__ --------------------------------------------------------------------------


def cuda_stream(stream):
    """Checks ``__cuda_stream__``; returns the handle."""
    pair = stream.__cuda_stream__()
    assert isinstance(pair, tuple)
    version, handle = pair
    assert type(version) is int
    assert version == 0
    assert type(handle) is int
    assert 0 <= handle < 1 << 64
    return handle
