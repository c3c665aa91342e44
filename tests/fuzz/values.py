"""Sources of argument values: for each kind, expressions that `prelude` can evaluate.

Every expression creates a new value, so a case does not depend on earlier cases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

NUMERIC = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
OTHER = ["g", "O", "S3", "U2", "V4", "M8[s]", "m8[ns]", ">f4", ">c16", "V0"]
QUOTED = [repr(dtype) for dtype in NUMERIC + OTHER]
RECORDS = ["RECORD", "NESTED", "WITH_OBJECT", "ga.vec.float3"]
SHAPES = ["0", "1", "7", "()", "(0,)", "(1,)", "(7,)", "(2, 3)", "(3, 2)", "(2, 0, 3)"]
SHAPES += ["(2, 3, 4)", "(5, 1)", "(1,) * 33", "(4, 4)", "100"]
VIEWS = ["", "", "", "[::-1]", "[::2]", "[..., ::2]", ".T", ".T[::-1]", "[1:]", "[None]", "[:0]"]

INTEGERS = ["0", "1", "-1", "2", "3", "4", "5", "7", "8", "12", "16", "64", "100", "-2"]
NASTY_INTEGERS = ["255", "256", "2**15", "2**31 - 1", "2**31", "-2**31", "2**32", "2**62"]
NASTY_INTEGERS += ["2**63 - 1", "2**63", "-2**63", "2**64 - 1", "2**64", "10**30", "True"]
NASTY_INTEGERS += ["np.int8(-1)", "np.uint64(2**64 - 1)", "np.int64(-2**63)", "np.bool_(True)"]
FLOATS = ["0.5", "-0.0", "2.0", "1e300", "math.nan", "math.inf", "-math.inf", "1e-320"]
FLOATS += ["np.float16(2)", "np.float32('nan')", "np.float64(3)", "np.longdouble(2)"]
COMPLEX = ["1j", "(2-3j)", "complex('nan+infj')", "np.complex64(1j)", "np.complex128(2)"]
NO_NUMBERS = ["None", "''", "'abc'", "'\\x00'", "'\\udc80'", "b''", "b'abc'", "bytearray(8)", "[]"]
NO_NUMBERS += ["[1, 2]", "()", "(1, 2)", "{}", "set()", "{'x': 1}", "object()", "int", "Ellipsis"]
NO_NUMBERS += ["NotImplemented", "range(3)", "iter([1, 2])", "slice(None)", "lambda *a: None"]
NO_NUMBERS += ["raising", "Liar()", "Thrower()", "np.datetime64('2020')", "np.str_('x')", "np"]
NO_NUMBERS += ["np.void(b'1234')", "memoryview(bytearray(8))", "ga.GPUArray", "KeyError()"]
NO_NUMBERS += ["[[1], [2, 3]]", "'x' * 10000", "np.dtype('f4')", "type('T', (), {})()"]

# Objects with wrong lengths, entries, numbers and descriptions of arrays.
LIARS = [
    "Sequence(2**63 - 1)",
    "Sequence(2**40)",
    "Sequence(-1)",
    "Sequence(1)",
    "Sequence(3, 'abc')",
]
LIARS += ["Sequence(3, fails_at=1)", "Sequence('x')", "LongList([1, 2])", "LongTuple((1, 2))"]
LIARS += ["Sequence(2**63 - 1, [gpu('f4', 3)] * 2)", "LongList([gpu('f4', 3)] * 2)", "Hinted()"]
LIARS += ["Hinted([gpu('f4', 3)] * 2)", "Sequence(2**63 - 1, ['f4', 'i4'])", "LongTuple('Pf')"]
LIARS += ["Index(2**70)", "Index(-1)", "Index(raising)", "Index(1, 2**62)", "Index(3, -9)"]
LIARS += [
    "Index('x')",
    "Index(True)",
    "Interface()",
    "Interface(shape=(-1,))",
    "Interface(shape=3)",
]
LIARS += ["Interface(shape=(2**62,))", "Interface(shape=LongTuple((3,)))", "Interface(typestr=3)"]
LIARS += ["Interface(typestr='<f3')", "Interface(typestr='|O')", "Interface(strides=(2**62,))"]
LIARS += [
    "Interface(strides=(1, 2))",
    "Interface(strides=Sequence(2**63 - 1))",
    "Interface(data=1)",
]
LIARS += [
    "Interface(version='x')",
    "Interface(stream=0)",
    "Interface(stream='x')",
    "Interface(mask=1)",
]
LIARS += ["Interface(descr=[('', 3)])", "Interface(descr=LongList([('', '<f4')]))"]
STREAMS = ["None", "None", "drv.Stream()", "drv.Stream()", "drv.Stream(1)", "drv.Stream(0, -1)"]
STREAMS += ["capturing()", "Streamlike(0, kept_stream.handle)", "Streamlike()"]
STREAMS += ["Streamlike(0, 'x')", "Streamlike('x', 0)", "Streamlike(0, -1)", "Streamlike(0, 2**64)"]
EVENTS = ["drv.Event()", "recorded()", "recorded(drv.Stream())", "drv.Event(2)", "drv.Event(1)"]
ALLOCATORS = ["None", "None", "drv.mem_alloc", "tools.DeviceMemoryPool().allocate", "raising"]
ALLOCATORS += [
    "SubPool().allocate",
    "lambda n: None",
    "lambda n: 'x'",
    "lambda n: 1.5",
    "lambda n: []",
]
ALLOCATORS += ["lambda n: 0", "lambda: 0", "lambda n: freed(drv.mem_alloc(n))", "lambda n: ga"]
ALLOCATORS += ["lambda n: drv.mem_alloc(n // 2 + 1)", "lambda n: gpu('f4', 8)", "lambda n: -1"]
ALLOCATORS += ["lambda n: drv.PointerHolderBase()", "lambda n: Holder('x')", "lambda n: Thrower()"]
ALLOCATORS += ["lambda n: freed(tools.DeviceMemoryPool().allocate(n))", "lambda n: np.zeros(n)"]
ORDERS = ["'C'", "'F'", "'A'", "'K'", "'X'", "''", "None", "3", "'c'", "b'C'"]
FLAGS = ["0", "0", "1", "2", "4", "8", "3", "16", "-1", "2**31", "2**32", "2**64", "None", "'x'"]
TEXT = ["'x'", "''", "'idle'", "'cubin'", "'ptx'", "'fatbin'", "'sm_90'", "'compute_90'", "'\\x00'"]
TEXT += ["'/nowhere/at/all'", "b'x'", "'\\udc80'", "'x' * 100000", "'global'", "'relaxed'"]
TEXT += ["'thread_local'", "'__global__ void f(int *x) { }'", "'this is no C'", "'.version 8.0'"]
INDICES = ["0", "-1", "1", "5", "-9", "2**31", "2**63", "2**64", "-2**63", "...", "None", "()"]
INDICES += ["slice(None)", "slice(1, None)", "slice(None, None, -1)", "slice(None, None, 2)"]
INDICES += [
    "slice(None, None, 0)",
    "slice(2**70, None, -3)",
    "slice('a', 'b')",
    "(0, 0)",
    "(0, ...)",
]
INDICES += ["(..., 0)", "(..., ...)", "(None, 0)", "(slice(None), 0)", "(slice(1), None, slice(2))"]
INDICES += ["slice(None, -2**63, -2**63)", "slice(-2**63, 2**63 - 1, 2**63 - 1)", "True", "1.0"]
INDICES += ["(0,) * 70", "(None,) * 70", "np.int8(0)", "np.array(1)", "np.array([0, 1])", "[0, 1]"]
INDICES += ["'x'", "np.array([True, False])", "Liar()", "Thrower()", "slice(Thrower(), 2)", "'y'"]
AXES = [
    "None",
    "(0, 1)",
    "(1, 0)",
    "(0, 0)",
    "(-1, 0)",
    "(0,)",
    "()",
    "(2, 1, 0)",
    "'ab'",
    "[1, 0]",
]
STRIDES = ["None", "(4,)", "(8,)", "(0,)", "(-4,)", "(12, 4)", "(4, 8)", "(0, 0)", "(2**62,)", "()"]
STRIDES += ["(1, 1)", "('a',)", "(-2**63,)", "(2**64,)", "(3,)", "[8, 4]", "8"]
CONTEXTS = [
    "None",
    "context",
    "drv.Context.get_current()",
    "drv.Device(0).retain_primary_context()",
]
DEVICES = ["drv.Device(0)", "drv.Context.get_device()", "None"]


class Values:
    """Draws expressions for each kind of argument.

    `addresses` allows numbers as raw addresses, which is safe only if the backend checks them
    against the live allocations. `managed` allows memory shared with the host. `kernels` says that
    a compiler is available.
    """

    def __init__(self, random: Random, addresses: bool, managed: bool, kernels: bool) -> None:
        self.random = random
        self.addresses = addresses
        self.managed = managed
        self.kernels = kernels

    def draw(self, kind: str) -> str:
        """Returns an expression for a value of a kind."""
        return getattr(self, f"_{kind}")()

    def _one(self, *lists: list[str]) -> str:
        return self.pick(self.pick(lists))

    def pick(self, choices: Sequence[Any]) -> Any:
        """Returns one of several; three times as fast as `Random.choice`."""
        return choices[int(self.random.random() * len(choices))]

    def _dtype(self) -> str:
        random = self.random
        text = random.choices([NUMERIC, OTHER], [9, 1])[0]
        dtype = repr(self.pick(text)) if random.random() < 0.95 else self.pick(RECORDS)
        odd = ["None", "int", "float", "object", "'nonsense'", "7", "bool", "complex", "str"]
        odd += ["np.float32", "np.generic", "np.dtype('V8')", "np.dtype(('f4', (3,)))", "'i4,i4'"]
        return self.pick(odd) if random.random() < 0.1 else dtype

    def _any_dtype(self) -> str:
        return self._one(QUOTED, RECORDS)

    def _shape(self) -> str:
        odd = [
            "-1",
            "(-1,)",
            "(2, -1)",
            "2**62",
            "(2**40, 2**40)",
            "(1,) * 65",
            "'3'",
            "2.5",
            "None",
        ]
        odd += [
            "(2**31, 0)",
            "(2**63, 1)",
            "[2, 3]",
            "np.array([2, 2])",
            "np.int64(3)",
            "(1,) * 64",
        ]
        odd += [
            "(True,)",
            "iter((2, 3))",
            "(Liar(),)",
            "(None,)",
            "(2, 2.0)",
            "range(3)",
            "(6, -1)",
        ]
        return self.pick(SHAPES if self.random.random() < 0.75 else odd + LIARS[:9] + LIARS[15:22])

    def _host(self) -> str:
        random = self.random
        if random.random() < 0.7:
            dtype, view = repr(self.pick(NUMERIC)), self.pick(VIEWS)
        else:
            dtype, view = self._any_dtype(), self.pick(VIEWS)
        shape = self.pick(SHAPES)
        plain = f"host({dtype}, {shape}){view}"
        if random.random() >= 0.25:
            return plain
        odd = [f"read_only({plain})", f"misaligned({dtype}, 5)", "np.float32(3)", "np.array(5)"]
        odd += [f"np.matrix(host({dtype}, (2, 3)))", f"np.broadcast_to(host({dtype}, 3), (2, 3))"]
        odd += [
            f"zeroed(drv.pagelocked_empty({shape}, {dtype}))",
            f"np.ma.array({plain})",
            "bytearray(64)",
        ]
        odd += ["drv.register_host_memory(drv.aligned_zeros(4096, 'u1'))", f"host({dtype}, 7).data"]
        odd += [
            "tools.PageLockedMemoryPool().allocate(7, 'f4')",
            "b'12345678'",
            "np.rec.array([1])",
        ]
        odd += ["freed_base(drv.pagelocked_empty(8, 'f4'))"]
        if self.managed:
            odd += [
                f"zeroed(drv.managed_empty({shape}, {dtype}))",
                f"drv.managed_zeros({shape}, {dtype})",
            ]
        return self.pick(odd)

    def _array(self) -> str:
        random = self.random
        dtype, shape = repr(self.pick(NUMERIC)), self.pick(SHAPES)
        values = ", SPECIAL" if random.random() < 0.15 else ""
        plain = f"gpu({dtype}, {shape}{values}){self.pick(VIEWS)}"
        if random.random() >= 0.2:
            return plain
        odd = [f"gpu({self._any_dtype()}, {shape})", f"dead({shape}, {dtype})"]
        odd += [f"over(drv.mem_alloc(256), (3, 4), {dtype}, strides={self.pick(STRIDES)})"]
        odd += ["over(drv.mem_alloc(64), (5,), 'f4', strides=(0,))", "SubArray((2, 3), 'f4')"]
        odd += ["ga.GPUArray.__new__(ga.GPUArray)", "SubArray.__new__(SubArray, 3)"]
        odd += [f"gpu('c8', {shape}).real", f"gpu('c16', {shape}).imag", "gpu('f4', (40, 50))"]
        odd += [f"over(tools.DeviceMemoryPool().allocate(256), {shape}, {dtype})"]
        odd += [f"ga.empty((2, 3), {dtype}, {self.pick(ALLOCATORS)})"]
        odd += [f"over(freed(tools.DeviceMemoryPool().allocate(256)), 7, {dtype})"]
        return self.pick(odd)

    def _index_array(self) -> str:
        dtype = self.pick(["i4", "i8", "u1", "u8", "i2", "i4", "i8"])
        return f"gpu({dtype!r}, {self.pick(SHAPES)}){self.pick(VIEWS)}"

    def _arrays(self) -> str:
        count = self.pick([0, 1, 2, 2, 3])
        odd = ["()", "None", "gpu('f4', (2, 3))", "[None]", "['x']", "3", "iter([gpu('f4', 3)])"]
        odd += LIARS[9:13]
        if self.random.random() < 0.15:
            return self.pick(odd)
        return f"[{', '.join(self._array() for _ in range(count))}]"

    def _memory(self) -> str:
        random = self.random
        size = self.pick(["1", "8", "64", "100", "4096"])
        common = [f"drv.mem_alloc({size})", f"tools.DeviceMemoryPool().allocate({size})"]
        common += [f"drv.to_device(host({self._dtype()}, 7))"]
        common += ["drv.mem_alloc_pitch(5, 3, 4)[0]", "gpu('f4', (2, 3)).gpudata"]
        if random.random() >= 0.3:
            return self.pick(common)
        odd = [f"freed({one})" for one in common[:2]]
        odd += ["drv.PointerHolderBase()", "Holder('x')", "Holder(None)", "Holder(raising)"]
        odd += ["Holder(-1)", "Holder(2**64)", "drv.mem_alloc_like(host('f4', (2, 3)))"]
        odd += ["SubPool().allocate(8)", "SubAllocation.__new__(SubAllocation)"]
        if self.managed:
            odd += ["drv.managed_empty(8, 'f4').base"]
        if self.addresses:
            odd += ["int(drv.mem_alloc(64))", "int(kept) + 8", "int(kept)", "Holder(int(kept) + 8)"]
            odd += INTEGERS + NASTY_INTEGERS
        else:
            odd += ["-1", "2**64", "0.5", "-2**63"]
        odd += NO_NUMBERS
        return self.pick(odd)

    def _number(self) -> str:
        return self._one(INTEGERS, NASTY_INTEGERS, FLOATS, COMPLEX, INTEGERS)

    def _operand(self) -> str:
        return self._array() if self.random.random() < 0.6 else self._number()

    def _integer(self) -> str:
        return self._one(INTEGERS, INTEGERS, INTEGERS, NASTY_INTEGERS)

    def _allocator(self) -> str:
        more = ["lambda n: int(kept)", "lambda n: 8", "lambda n: 2**63"] if self.addresses else []
        return self.pick(ALLOCATORS + more)

    def _handle(self) -> str:
        # A stream's handle is a pointer of the driver, so other pointers would be undefined
        # behaviour.
        odd = [*NO_NUMBERS, "drv.Stream()", "kept_stream.handle", "-1", "2**64", "0.5", "64"]
        return self.pick(odd)

    def _bytes(self) -> str:
        return self.pick(["b''", "b'x' * 64", "bytearray(64)", "bytes(64)", "b'x' * 10**5"])

    def _copy(self) -> str:
        return self.pick(["drv.Memcpy2D()", "drv.Memcpy3D()"])

    def _anything(self) -> str:
        kinds = ["array", "host", "memory", "number", "dtype", "shape", "stream", "allocator"]
        kinds += ["index", "text", "event", "nothing", "nothing", "number", "arrays"]
        kinds += ["liar"] * 6
        return self.draw(self.pick(kinds))

    def _liar(self) -> str:
        return self.pick(LIARS)

    def _nothing(self) -> str:
        return self.pick(NO_NUMBERS)


def _fixed(expressions: list[str]) -> Callable[[Values], str]:
    return lambda self: self.pick(expressions)


for _kind, _expressions in {
    "stream": STREAMS,
    "event": EVENTS,
    "order": ORDERS,
    "flag": FLAGS,
    "text": TEXT,
    "index": INDICES,
    "axes": AXES,
    "strides": STRIDES,
    "context": CONTEXTS,
    "device": DEVICES,
    "boolean": ["True", "False", "None", "2", "'x'", "Thrower()", "np.zeros(2)"],
    "name": ["'start'", "'stop'", "'dtype'"],
}.items():
    setattr(Values, f"_{_kind}", _fixed(_expressions))
