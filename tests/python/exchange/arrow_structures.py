"""The structs of the Arrow C device data interface through ctypes: reading and forging them."""

from __future__ import annotations

import ctypes as c

_new = c.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = c.py_object, (c.c_void_p, c.c_char_p, c.c_void_p)
_get = c.pythonapi.PyCapsule_GetPointer
_get.restype, _get.argtypes = c.c_void_p, (c.py_object, c.c_char_p)


class Schema(c.Structure):
    pass


class Array(c.Structure):
    pass


RELEASE_SCHEMA = c.CFUNCTYPE(None, c.POINTER(Schema))
RELEASE_ARRAY = c.CFUNCTYPE(None, c.POINTER(Array))
Schema._fields_ = [
    ("format", c.c_char_p),
    ("name", c.c_char_p),
    ("metadata", c.c_void_p),
    ("flags", c.c_int64),
    ("n_children", c.c_int64),
    ("children", c.POINTER(c.POINTER(Schema))),
    ("dictionary", c.POINTER(Schema)),
    ("release", RELEASE_SCHEMA),
    ("private_data", c.c_void_p),
]
Array._fields_ = [
    ("length", c.c_int64),
    ("null_count", c.c_int64),
    ("offset", c.c_int64),
    ("n_buffers", c.c_int64),
    ("n_children", c.c_int64),
    ("buffers", c.POINTER(c.c_void_p)),
    ("children", c.POINTER(c.POINTER(Array))),
    ("dictionary", c.POINTER(Array)),
    ("release", RELEASE_ARRAY),
    ("private_data", c.c_void_p),
]


class DeviceArray(c.Structure):
    _fields_ = [
        ("array", Array),
        ("device_id", c.c_int64),
        ("device_type", c.c_int32),
        ("sync_event", c.POINTER(c.c_void_p)),
        ("reserved", c.c_int64 * 3),
    ]


def opened(capsules):
    """Returns the structs in a pair of capsules, which keep them alive."""
    schema, array = capsules
    return (
        Schema.from_address(_get(schema, b"arrow_schema")),
        DeviceArray.from_address(_get(array, b"arrow_device_array")),
    )


class Forged:
    """An exporter whose structs a test fills in; it counts the releases."""

    # Calling a release function after ctypes has freed it would end the process.
    alive: list[Forged] = []  # noqa: RUF012

    def __init__(self, format=b"i", device=(1, -1)):
        self.alive.append(self)
        self.released = []
        self.keeps = []
        self.schema = self.new_schema(format)
        self.device = DeviceArray(self.new_array(), device[1], device[0])

    def new_schema(self, format, children=()):
        schema = Schema(format, b"")
        self._children(schema, Schema, children)
        schema.release = self._release(RELEASE_SCHEMA, "schema")
        return schema

    def new_array(self, length=0, buffers=(), children=(), null_count=0, offset=0):
        array = Array(length, null_count, offset, len(buffers))
        table = (c.c_void_p * max(len(buffers), 1))(*buffers)
        self.keeps.append(table)
        array.buffers = c.cast(table, c.POINTER(c.c_void_p))
        self._children(array, Array, children)
        array.release = self._release(RELEASE_ARRAY, "array")
        return array

    def _children(self, parent, kind, children):
        table = (c.POINTER(kind) * max(len(children), 1))(*map(c.pointer, children))
        self.keeps += [table, children]
        parent.n_children = len(children)
        parent.children = c.cast(table, c.POINTER(c.POINTER(kind)))

    def _release(self, kind, what):
        def release(structure):
            self.released.append(what)
            structure.contents.release = kind()

        self.keeps.append(kind(release))
        return self.keeps[-1]

    def __arrow_c_device_array__(self, requested_schema=None):
        return (
            _new(c.addressof(self.schema), b"arrow_schema", None),
            _new(c.addressof(self.device), b"arrow_device_array", None),
        )
