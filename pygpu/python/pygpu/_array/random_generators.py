"""Base classes of the random number generators of :mod:`pygpu.curandom`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .. import _core
from .._arguments import gpu_array, whole
from .._core import GPUArray
from . import DType, OnStream, Shape
from .creation import empty, to_gpu


def _not_negative(name: str, value: Any, end: int = 1 << 64) -> int:
    number = whole(name, value)
    if not 0 <= number < end:
        raise ValueError(f"{name} is {number}; whole numbers from 0 to {end - 1} are allowed")
    return number


def _expect(name: str, value: Any, dtype: Any, shape: tuple[int, ...]) -> GPUArray:
    """Returns ``value`` if it is a GPUArray of this dtype and shape."""
    wanted = f"a GPUArray of {np.dtype(dtype)} of shape {shape} is needed"
    if not isinstance(value, GPUArray):
        raise TypeError(f"{name} is of type {type(value).__name__}; {wanted}")
    if value.dtype != dtype or value.shape != shape:
        raise TypeError(f"{name} is of {value.dtype} and shape {value.shape}; {wanted}")
    return value


class RandomNumberGenerator:
    """The base of all generators: states on the device, from which arrays are filled.

    A generator has ``n = block_count * generators_per_block`` states on every device. Element ``e``
    of an array, in memory order, comes from state ``e % n``. So the same seeds make the same
    numbers on every backend, bit for bit. Uniform numbers are in (0, 1], as in cuRAND.

    Work is queued on ``stream``, by default the array's. An array with gaps is written through a
    copy. A dtype that is not allowed raises ``NotImplementedError``.
    """

    _kind: ClassVar[str]
    has_box_muller: ClassVar[bool]

    def __init__(self, words: Callable[[int, int], np.ndarray]) -> None:
        count, _, bits = _core.random_generator(self._kind)
        self.generators_per_block = 256
        self.block_count = count // self.generators_per_block
        self.generator_bits = bits
        self._states = to_gpu(words(count, bits))

    @_core.YieldingProperty
    def state_type(self) -> str:
        """The name of the state's structure in ``curand_kernel.h``."""
        others = {"Xorwow": "curandStateXORWOW", "Mrg32k3a": "curandStateMRG32k3a"}
        return others.get(self._kind, f"curandState{self._kind}")

    @_core.YieldingProperty
    def state(self) -> Any:
        """The memory of the states, from which kernels with ``curand_kernel.h`` may draw."""
        return self._states.gpudata

    def _fill(
        self, data: Any, distribution: str, allowed: Any, *numbers: float, stream: OnStream = None
    ) -> None:
        gpu_array("data", data)
        first, second = (*numbers, 0.0, 0.0)[:2]
        if data.dtype.type not in allowed:
            names = ", ".join(np.dtype(it).name for it in allowed)
            raise NotImplementedError(f"data is of dtype {data.dtype}; allowed are {names}")
        _core.random_fill(self._kind, self._states, data, distribution, first, second, stream)

    def fill_uniform(self, data: GPUArray, stream: OnStream = None) -> None:
        """Fills ``data`` with uniform numbers: in (0, 1], or any value of an integer type.

        The dtype is float32, float64, int32 or uint32; generators of 64 bits also fill int64 and
        uint64. The work is queued on ``stream``.
        """
        gpu_array("data", data)
        wide = (np.int64, np.uint64) if self.generator_bits == 64 else ()
        allowed = (np.float32, np.float64, np.int32, np.uint32, *wide)
        distribution = "uniform" if data.dtype.kind == "f" else "bits"
        self._fill(data, distribution, allowed, stream=stream)

    def fill_normal(self, data: GPUArray, stream: OnStream = None) -> None:
        """Fills ``data`` (float32 or float64) with standard normal numbers, on ``stream``."""
        self._fill(data, "normal", (np.float32, np.float64), stream=stream)

    def fill_log_normal(
        self, data: GPUArray, mean: float, stddev: float, stream: OnStream = None
    ) -> None:
        """Fills ``data`` (float32 or float64) with exponentials of normal numbers, on ``stream``.

        ``mean`` and ``stddev`` are the mean and the standard deviation of the normal numbers.
        """
        kinds = (np.float32, np.float64)
        self._fill(data, "log_normal", kinds, float(mean), float(stddev), stream=stream)

    def fill_poisson(
        self, data: GPUArray, lambda_value: float | None = None, stream: OnStream = None
    ) -> None:
        """Fills ``data`` (uint32) with Poisson numbers of mean ``lambda_value``, on ``stream``.

        If the mean is omitted, each element of ``data`` is the mean of the number that replaces it;
        ``data`` can then also be float32 or float64.
        """
        if lambda_value is None:
            kinds = (np.float32, np.float64, np.uint32)
            self._fill(data, "poisson_of_element", kinds, stream=stream)
        else:
            self._fill(data, "poisson", (np.uint32,), float(lambda_value), stream=stream)

    def gen_uniform(self, shape: Shape, dtype: DType, stream: OnStream = None) -> GPUArray:
        """Returns an array of ``shape`` and ``dtype`` by :meth:`fill_uniform` on ``stream``."""
        result = empty(shape, dtype)
        self.fill_uniform(result, stream)
        return result

    def gen_normal(self, shape: Shape, dtype: DType, stream: OnStream = None) -> GPUArray:
        """Returns an array of ``shape`` and ``dtype`` by :meth:`fill_normal` on ``stream``."""
        result = empty(shape, dtype)
        self.fill_normal(result, stream)
        return result

    def gen_log_normal(
        self, shape: Shape, dtype: DType, mean: float, stddev: float, stream: OnStream = None
    ) -> GPUArray:
        """Returns an array; arguments are as in :meth:`gen_normal` and :meth:`fill_log_normal`."""
        result = empty(shape, dtype)
        self.fill_log_normal(result, mean, stddev, stream)
        return result

    def gen_poisson(
        self, shape: Shape, dtype: DType, lambda_value: float, stream: OnStream = None
    ) -> GPUArray:
        """Returns an array; arguments are as in :meth:`gen_normal` and :meth:`fill_poisson`."""
        result = empty(shape, dtype)
        self.fill_poisson(result, lambda_value, stream)
        return result

    def _jump(self, jump: str, amounts: np.ndarray, stream: OnStream) -> None:
        words = self._states.get(stream=stream)
        self._states.set(_core.random_skip(self._kind, words, jump, amounts), stream=stream)

    def _skip(self, jump: str, i: Any, stream: OnStream) -> None:
        self._jump(jump, np.array([_not_negative("i", i)], np.uint64), stream)

    def _skip_array(self, jump: str, i: Any, stream: OnStream) -> None:
        count = self.block_count * self.generators_per_block
        gpu_array("i", i)
        if i.dtype.kind not in "iu" or i.size != count:
            needed = f"{count} integers are needed, one for each state"
            raise TypeError(f"i.dtype is {i.dtype} and i.size {i.size}; {needed}")
        amounts = i.get(stream=stream).reshape(-1)
        if amounts.min() < 0:
            raise ValueError(f"i has the element {amounts.min()}; a state cannot move back")
        self._jump(jump, amounts.astype(np.uint64), stream)

    def call_skip_ahead(self, i: int, stream: OnStream = None) -> None:
        """Advances all states by ``i`` draws. PyCUDA advances only the first block's states.

        A draw has 32 bits, or 64 bits if ``generator_bits`` is 64. The call copies the states to
        the host on ``stream``, waits for them, advances them there, and copies them back.
        """
        self._skip("draws", i, stream)

    def call_skip_ahead_array(self, i: GPUArray, stream: OnStream = None) -> None:
        """Like :meth:`call_skip_ahead` on ``stream``; ``i`` has a number for each state."""
        self._skip_array("draws", i, stream)


class PseudoRandomNumberGenerator(RandomNumberGenerator):
    """A generator whose states have different seeds, or are far apart in one sequence."""

    has_box_muller = True

    def __init__(
        self,
        seed_getter: Callable[[int], GPUArray] | None = None,
        offset: int = 0,
        *,
        seed: int | None = None,
    ) -> None:
        start = _not_negative("offset", offset)
        if seed is not None and seed_getter is not None:
            raise ValueError("seed and seed_getter are given; one of them is needed")
        one = None if seed is None else _not_negative("seed", seed, 2**31)

        def words(count: int, _: int) -> np.ndarray:
            if one is not None:
                seeds = np.full(count, one, np.int32)
            elif seed_getter is None:
                seeds = np.random.randint(0, 2**31 - 1, count, np.int32)  # noqa: NPY002
            else:
                given = seed_getter(count)
                size = (count,) if not isinstance(given, GPUArray) else given.shape
                seeds = _expect("seed", given, np.int32, size).get().reshape(-1)
                if seeds.size != count:
                    raise TypeError(f"seed.size is {seeds.size}; {count} is needed")
            return _core.random_seeded(self._kind, seeds.view(np.uint32), start)

        super().__init__(words)

    def call_skip_ahead_sequence(self, i: int, stream: OnStream = None) -> None:
        """Like :meth:`call_skip_ahead` on ``stream``, by ``i`` sequences.

        A sequence has 2**67 draws (XORWOW) or 2**127 (MRG32k3a).
        """
        self._skip("sequences", i, stream)

    def call_skip_ahead_sequence_array(self, i: GPUArray, stream: OnStream = None) -> None:
        """Like :meth:`call_skip_ahead_sequence` on ``stream``; ``i`` has a number per state."""
        self._skip_array("sequences", i, stream)


class QuasiRandomNumberGenerator(RandomNumberGenerator):
    """A generator of points that cover space evenly. Each state generates one coordinate."""

    has_box_muller = False

    def __init__(self, dir_vector: GPUArray | None = None, offset: int = 0) -> None:
        self._set_up(dir_vector, offset, False)

    def _set_up(
        self,
        dir_vector: GPUArray | None,
        offset: int,
        scrambled: bool,
        scramble_vector: GPUArray | None = None,
    ) -> None:
        start = _not_negative("offset", offset)

        def words(count: int, bits: int) -> np.ndarray:
            dtype = np.dtype(f"u{bits // 8}")
            if dir_vector is None:
                vectors = _core.random_direction_vectors(bits, count, scrambled)
            else:
                vectors = _expect("dir_vector", dir_vector, dtype, (count, bits)).get()
            if not scrambled:
                shifts = None
            elif scramble_vector is None:
                shifts = _core.random_scramble_constants(bits, count)
            else:
                shifts = _expect("scramble_vector", scramble_vector, dtype, (count,)).get()
                shifts = shifts.view(np.uint32)
            flat = np.ascontiguousarray(vectors).reshape(-1).view(np.uint32)
            return _core.random_points(bits, flat, shifts, start)

        RandomNumberGenerator.__init__(self, words)


class ScrambledQuasiRandomNumberGenerator(QuasiRandomNumberGenerator):
    """A quasi-random generator with scrambled points, which cover space just as evenly."""

    def __init__(
        self,
        dir_vector: GPUArray | None = None,
        scramble_vector: GPUArray | None = None,
        offset: int = 0,
    ) -> None:
        self._set_up(dir_vector, offset, True, scramble_vector)


# PyCUDA's ``rand`` hashes the position of a thread by R. Rivest, "The MD5 Message-Digest Algorithm"
# (RFC 1321), of one block of 64 bytes without padding.

# The words of the block, as PyCUDA has them; the program declares `seed`, `i` and `n`.
_WORDS = (
    *(f"{name}.{axis}" for name in ("threadIdx", "blockIdx") for axis in "xyz"),
    *("seed", "i", "n"),
    *(f"{name}.{axis}" for name in ("blockDim", "gridDim") for axis in "xyz"),
    "0",
)
_START = {"a": 0x67452301, "b": 0xEFCDAB89, "c": 0x98BADCFE, "d": 0x10325476}
# Of each round: the function; the first word, and the step to the next one; the rotations.
_ROUNDS = (
    ("({b} & {c} | ~{b} & {d})", 0, 1, (7, 12, 17, 22)),
    ("({b} & {d} | {c} & ~{d})", 1, 5, (5, 9, 14, 20)),
    ("({b} ^ {c} ^ {d})", 5, 3, (4, 11, 16, 23)),
    ("({c} ^ ({b} | ~{d}))", 0, 7, (6, 10, 15, 21)),
)


def md5_code() -> str:
    """Returns statements that declare ``a``, ``b``, ``c`` and ``d``, and hash into them."""
    lines = [f"unsigned int {name} = {start:#x}u;" for name, start in _START.items()]
    for number, (function, first, step, rotations) in enumerate(_ROUNDS):
        for place in range(16):
            names = dict(zip("abcd", "abcd"[-place % 4 :] + "abcd"[: -place % 4], strict=True))
            a, b, s = names["a"], names["b"], rotations[place % 4]
            word = _WORDS[(first + step * place) % 16]
            constant = int(abs(math.sin(16 * number + place + 1)) * 2**32)
            lines += [
                f"{a} += {function.format(**names)} + (unsigned int)({word}) + {constant:#x}u;",
                f"{a} = ({a} << {s} | {a} >> {32 - s}) + {b};",
            ]
    lines += [f"{name} += {start:#x}u;" for name, start in _START.items()]
    return "\n".join(["", *lines, ""])
