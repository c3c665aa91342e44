"""Descriptors of shared arrays: their fields, JSON, pickles, and forged descriptors."""

from __future__ import annotations

import json
import os
import pickle

import numpy as np
import pytest
from device import BACKEND
from shared_arrays import rounds, shared
from tables import each_row

from pygpu import ipc

# ---- descriptors --------------------------------------------------------------------------------

RECORD = np.dtype([("a", "<i2"), ("b", "<f8", (2, 3)), ("c", [("x", "u1"), ("y", "<f4")])])


@each_row(
    "view",
    [
        lambda a: a,
        lambda a: a[3:15:2],
        lambda a: a[::-1],
        lambda a: a[5:5],
        lambda a: a[2:18].reshape(4, 4).T,
        lambda a: a[7:8].reshape(()),
        lambda a: a[:20].reshape(4, 5)[::-2, ::-1],
    ],
)
@each_row("dtype", ["<f4", "u1", "<c16", "?"])
def test_a_descriptor_says_what_the_array_is(view, dtype):
    host = np.arange(24).astype(dtype)
    a = view(shared(host))
    expected = view(host)
    with a.ipc_handle() as descriptor:
        assert (descriptor.shape, descriptor.dtype) == (expected.shape, expected.dtype)
        if expected.size:
            assert descriptor.strides == expected.strides
            start = expected.__array_interface__["data"][0] - host.__array_interface__["data"][0]
            assert (descriptor.offset, descriptor.nbytes) == (start, host.nbytes)
        assert (descriptor.vendor, descriptor.device) == (BACKEND, 0)
        assert len(descriptor.handle) == 64
        for other in (
            ipc.Descriptor.from_json(descriptor.to_json()),
            ipc.Descriptor.from_dict(descriptor.to_dict()),
            pickle.loads(pickle.dumps(descriptor)),
            ipc.loads(pickle.dumps(descriptor)),
        ):
            assert other == descriptor
            assert hash(other) == hash(descriptor)
        assert repr(descriptor).startswith("Descriptor(dtype=")
        # In the exporting process this opens the same memory.
        with ipc.open(descriptor) as again:
            np.testing.assert_array_equal(again.get(), expected)
            assert not expected.size or again.ptr == a.ptr


def test_records_and_other_dtypes_keep_their_names():
    aligned = np.dtype({"names": ["a", "b"], "formats": ["i1", "f8"], "offsets": [0, 8]})
    for dtype in (RECORD, aligned, np.dtype("<i8")):
        array = ipc.empty(3, dtype)
        with array.ipc_handle() as descriptor:
            assert ipc.Descriptor.from_json(descriptor.to_json()).dtype == dtype
            assert ipc.loads(pickle.dumps(descriptor)).dtype == dtype


def test_a_descriptor_cannot_be_changed_and_its_parts_are_checked():
    with ipc.empty((3, 4), "f4").ipc_handle() as descriptor:
        with pytest.raises(AttributeError):
            descriptor.offset = 3
        parts = descriptor.to_dict()
        wrong = {
            "version": (2, "1", None),
            "vendor": ("metal", 3, None),
            "device": (-1, "0", True, 2**40, 1.0),
            "handle": ([1] * 63, [1] * 65, [256] * 64, [-1] * 64, "ab" * 32, None, [0.5] * 64),
            "nbytes": (47, -1, 2**70, "48", None),
            "dtype": (
                "O",
                "f3",
                "U4",
                "float",
                "",
                None,
                3,
                [],
                [["a"]],
                [["a", "O"]],
                "<M8[x]",
                "<M8[2]",
            ),
            "shape": ([3, 5], [3], [-3, -4], [2**62, 2**62], [1] * 65, None, "34", [3.0, 4]),
            "strides": ([16, 5], [-16, 4], [2**63, 4], [16], [16, 4, 1], None, [True, 4]),
            "offset": (4, -4, 2**64, None, "0"),
        }
        assert set(wrong) == set(parts)
        for name, values in wrong.items():
            for value in values:
                with pytest.raises((ValueError, TypeError)):
                    ipc.Descriptor.from_json(json.dumps(parts | {name: value}))
            with pytest.raises(ValueError, match=name):
                ipc.Descriptor.from_dict({key: parts[key] for key in parts if key != name})
        for text in ("", "[]", "3", "{", "null", "[" * 100_000, json.dumps(parts | {"more": 1})):
            with pytest.raises((ValueError, TypeError)):
                ipc.Descriptor.from_json(text)


def test_a_pickle_runs_nothing_but_the_descriptors_own(tmp_path):
    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "evil"),))

    for data in (pickle.dumps(Evil()), pickle.dumps([1]), b"", b"cos\nsystem\n.", b"\x80\x05N."):
        with pytest.raises(ValueError, match="pickle"):
            ipc.loads(data)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_cannot_change_what_was_checked(protocol):
    with shared(np.arange(8, dtype=np.float32)).ipc_handle() as descriptor:
        data = pickle.dumps(descriptor, protocol)
        assert ipc.loads(data) == descriptor
        assert ipc.loads(memoryview(data)) == descriptor
        # The state that a pickle may set on the constructed object.
        state = pickle.dumps({"offset": 2**40, "_export": 1}, 0)[:-1]
        forged = data[:-1] + state + b"b."
        for read in (ipc.loads, pickle.loads):
            with pytest.raises(ValueError, match="descriptor"):
                read(forged)


def test_a_pickle_with_endless_parts_ends_at_once():
    with shared(np.arange(8, dtype=np.float32)).ipc_handle() as descriptor:
        restore, (text,) = descriptor.__reduce__()
        endless = []
        for _ in range(200):
            endless = [endless, endless]

        class Forged:
            def __init__(self, *parts):
                self.parts = parts

            def __reduce__(self):
                return restore, self.parts

        parts = json.loads(text)
        for wrong in (endless, parts | {"version": endless}, parts | {"dtype": endless}):
            for read in (ipc.loads, pickle.loads):
                with pytest.raises((ValueError, TypeError), match="pickle"):
                    read(pickle.dumps(Forged(wrong)))
    # An object with a memo number for which the unpickler would allocate 16 GiB.
    for kept in (b"]r\xff\xff\xff\x3f.", b"]p1073741823\n."):
        with pytest.raises(ValueError, match="pickle"):
            ipc.loads(kept)


def test_mutated_descriptors_are_errors_or_descriptors():
    generator = np.random.default_rng(14)
    with shared(np.arange(64, dtype=np.float32))[4:40:3].ipc_handle() as descriptor:
        text, data = descriptor.to_json().encode(), pickle.dumps(descriptor)
        for original, read in (
            (text, ipc.Descriptor.from_json),
            (data, ipc.loads),
            (json.dumps(descriptor_column(descriptor)).encode(), ipc.Column.from_json),
        ):
            kinds = generator.integers(0, 3, rounds())
            for kind in kinds:
                mutated = bytearray(original)
                at = int(generator.integers(len(mutated)))
                if kind == 0:
                    mutated[at] = int(generator.integers(256))
                elif kind == 1:
                    del mutated[at : at + int(generator.integers(1, 9))]
                else:
                    mutated[at:at] = mutated[: int(generator.integers(1, 9))]
                try:
                    result = read(bytes(mutated))
                except (ValueError, TypeError):
                    continue
                part = getattr(result, "data", result)
                steps = [(n - 1) * s for n, s in zip(part.shape, part.strides)]
                low = part.offset + sum(step for step in steps if step < 0)
                end = part.offset + sum(step for step in steps if step > 0) + part.dtype.itemsize
                assert part.size == 0 or (low >= 0 and end <= part.nbytes), part


def descriptor_column(descriptor):
    part = descriptor.to_dict()
    for name in ("version", "shape", "strides", "offset"):
        del part[name]
    return {"data": part | {"length": 5, "offset": 2}, "mask": None}


@pytest.mark.parametrize("data", [None, 3, "text", ["a"]])
def test_a_pickle_that_is_no_bytes_is_named(data):
    with pytest.raises(TypeError, match=rf"data is of type {type(data).__name__}"):
        ipc.loads(data)


@pytest.mark.parametrize("given", [b"x", "x", "{" * 100])
def test_what_is_no_json_is_shown(given):
    with pytest.raises(ValueError, match=r"the descriptor is b?'[x{]{1,60}', which is not JSON"):
        ipc.open(given)
