"""Random numbers on the device, with the names of ``pycuda.curandom``.

The generators are pygpu's own implementations of the published algorithms. XORWOW and MRG32k3a have
cuRAND's seeds, sequences and bits. Unlike in PyCUDA, the number of states is the same on every
device. The same seeds therefore make the same arrays on every backend, but other arrays than in
PyCUDA.

Examples
--------
>>> generator = XORWOWRandomNumberGenerator(seed_getter_unique)
>>> generator.gen_uniform((2, 3), "float32").shape
(2, 3)
>>> generate_scramble_constants32(7).dtype, generate_scramble_constants64(7).dtype
(dtype('uint32'), dtype('uint64'))
>>> len({*seed_getter_uniform(4).get().tolist()})
1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core, _curand
from ._array import DType, OnStream, Shape
from ._array import random_generators as _generators
from ._array.creation import empty, full, to_gpu
from ._core import GPUArray
from ._curand import _get_direction_vectors as _get_direction_vectors
from ._curand import _get_scramble_constants32 as _get_scramble_constants32
from ._curand import _get_scramble_constants64 as _get_scramble_constants64
from ._curand import get_curand_version as get_curand_version
from ._lazy import names as _names

__all__ = ["MRG32k3aRandomNumberGenerator", "ScrambledSobol32RandomNumberGenerator"]
__all__ += ["ScrambledSobol64RandomNumberGenerator", "Sobol32RandomNumberGenerator"]
__all__ += ["Sobol64RandomNumberGenerator", "XORWOWRandomNumberGenerator", "direction_vector_set"]
__all__ += ["generate_direction_vectors", "generate_scramble_constants32"]
__all__ += ["generate_scramble_constants64", "get_curand_version", "rand", "seed_getter_uniform"]
__all__ += ["seed_getter_unique"]


if TYPE_CHECKING:
    from ._driver.enumerations import direction_vector_set
else:
    _get, __dir__ = _names(__name__, {"._driver.enumerations": "direction_vector_set"})

    def __getattr__(name: str) -> Any:
        """Makes ``md5_code``, which few programs use, at its first use."""
        if name != "md5_code":
            return _get(name)
        text = globals()[name] = _generators.md5_code()
        return text


def rand(
    shape: Shape, dtype: DType = np.float32, stream: OnStream = None, *, seed: int | None = None
) -> GPUArray:
    """Returns a new array of ``shape`` of random numbers, generated on the device on ``stream``.

    If ``dtype`` is float32 or float64, the numbers are uniform in [0, 1); for int32 and uint32 they
    are any integers. Raises ``NotImplementedError`` for other dtypes. Philox4x32-10 generates the
    numbers from ``seed``. The default seed comes from numpy's global generator, so
    ``np.random.seed`` makes the numbers repeatable. PyCUDA returns other numbers.

    >>> bool((rand((3, 4)).get() < 1).all())
    True
    """
    dtype = np.dtype(dtype)
    if dtype.type not in (np.float32, np.float64, np.int32, np.uint32):
        allowed = "float32, float64, int32 and uint32"
        raise NotImplementedError(f"dtype is {dtype}; allowed are {allowed}")
    result = empty(shape, dtype)
    if seed is None:
        seed = int(np.random.randint(2**63 - 1, dtype=np.int64))  # noqa: NPY002
    seed = _generators._not_negative("seed", seed, 2**63)
    _core.random_fill_from_seed(result, seed, stream)
    return result


def seed_getter_uniform(n: int) -> GPUArray:
    """Returns ``n`` copies of one random seed; each state is another sequence of that seed."""
    import random  # with its hashes, for this function alone

    return full([n], random.randint(0, 2**31 - 1), np.int32)


def seed_getter_unique(n: int) -> GPUArray:
    """Returns ``n`` random seeds, drawn by numpy's global generator."""
    return to_gpu(np.random.randint(0, 2**31 - 1, n, np.int32))  # noqa: NPY002


def generate_direction_vectors(count: int, direction: Any = None) -> GPUArray:
    """Returns the direction vectors of Sobol's first ``count`` dimensions, one in a row.

    ``direction`` is a ``direction_vector_set``, by default ``VECTOR_32``: 32 or 64 bits, and
    scrambled or not. S. Joe and F. Y. Kuo's table (new-joe-kuo-6.21201) has 21,201 dimensions;
    PyCUDA repeats 20,000. Random lower triangular matrices, other ones than cuRAND's, scramble the
    vectors.

    >>> vectors = generate_direction_vectors(2).get()
    >>> [hex(number) for number in vectors[1, :3]]
    ['0x80000000', '0xc0000000', '0xa0000000']
    """
    if direction is None:
        direction = _curand.direction_vector_set.VECTOR_32
    bits, scrambled = _curand._bits_of(direction)
    words = _core.random_direction_vectors(bits, count, scrambled)
    return to_gpu(words.view(f"u{bits // 8}").reshape(count, bits))


def generate_scramble_constants32(count: int) -> GPUArray:
    """Returns the constants of the digital shifts of the first ``count`` dimensions, as uint32."""
    return to_gpu(_core.random_scramble_constants(32, count))


def generate_scramble_constants64(count: int) -> GPUArray:
    """Returns the constants of the digital shifts of the first ``count`` dimensions, as uint64."""
    return to_gpu(_core.random_scramble_constants(64, count).view(np.uint64))


class XORWOWRandomNumberGenerator(_generators.PseudoRandomNumberGenerator):
    """G. Marsaglia's XORWOW: a period of 2**192 - 2**32, sequences 2**67 draws apart.

    ``seed_getter`` takes a number and returns a GPUArray of as many int32 seeds, random ones by
    default; ``seed``, not in PyCUDA, is one seed for all. Each state skips ``offset`` draws.

    >>> generator = XORWOWRandomNumberGenerator(seed_getter_uniform)
    >>> generator.gen_normal((2, 3), "float32").shape
    (2, 3)
    """

    _kind = "Xorwow"


class MRG32k3aRandomNumberGenerator(_generators.PseudoRandomNumberGenerator):
    """P. L'Ecuyer's MRG32k3a: a period near 2**191, subsequences 2**76 draws apart.

    Seed 0 is the published state, of six times 12345. Arguments are as in
    :class:`XORWOWRandomNumberGenerator`.

    >>> generator = MRG32k3aRandomNumberGenerator(lambda count: gpuarray.zeros(count, "int32"))
    >>> float(generator.gen_uniform(1, "float64").get()[0].round(9))
    0.127011122
    >>> generator.gen_normal((2, 3), "float32").shape, generator.gen_poisson(4, "uint32", 9).dtype
    ((2, 3), dtype('uint32'))
    >>> generator.gen_log_normal(4, "float64", mean=0, stddev=1).size
    4
    >>> a, b = gpuarray.empty(4, "float32"), gpuarray.empty(4, "uint32")
    >>> generator.fill_uniform(a)
    >>> generator.fill_normal(a)
    >>> generator.fill_log_normal(a, 0, 1)
    >>> generator.fill_poisson(b, 9)
    >>> generator.call_skip_ahead(10)
    >>> generator.call_skip_ahead_sequence(1)
    >>> generator.call_skip_ahead_subsequence(1)
    >>> ones = gpuarray.ones(generator.block_count * generator.generators_per_block, "uint32")
    >>> generator.call_skip_ahead_array(ones)
    >>> generator.call_skip_ahead_sequence_array(ones)
    >>> generator.call_skip_ahead_subsequence_array(ones)
    """

    _kind = "Mrg32k3a"

    def call_skip_ahead_subsequence(self, i: int, stream: OnStream = None) -> None:
        """Like :meth:`call_skip_ahead` on ``stream``, by ``i`` subsequences of 2**76 draws."""
        self._skip("subsequences", i, stream)

    def call_skip_ahead_subsequence_array(self, i: GPUArray, stream: OnStream = None) -> None:
        """Like :meth:`call_skip_ahead_subsequence` on ``stream``, a number per state in ``i``."""
        self._skip_array("subsequences", i, stream)


class Sobol32RandomNumberGenerator(_generators.QuasiRandomNumberGenerator):
    """Sobol's 32-bit sequence: state ``d`` generates coordinate ``d`` of one point after another.

    ``dir_vector`` has 32 direction vectors of uint32 for each state
    (:func:`generate_direction_vectors`); the first point is number ``offset``.

    >>> generator = Sobol32RandomNumberGenerator(offset=1)
    >>> generator.gen_uniform(3, "float32").get().tolist()
    [0.5, 0.5, 0.5]
    """

    _kind = "Sobol32"


class Sobol64RandomNumberGenerator(_generators.QuasiRandomNumberGenerator):
    """Sobol's 64-bit sequence: state ``d`` generates coordinate ``d`` of one point after another.

    ``dir_vector`` has 64 direction vectors of uint64 for each state
    (:func:`generate_direction_vectors`); the first point is number ``offset``. A 32-bit integer is
    the upper half of a number; in PyCUDA it is the lower half.

    >>> Sobol64RandomNumberGenerator(offset=1).generator_bits
    64
    """

    _kind = "Sobol64"


class ScrambledSobol32RandomNumberGenerator(_generators.ScrambledQuasiRandomNumberGenerator):
    """Sobol's 32-bit sequence, scrambled: the points are different and spread as evenly.

    ``scramble_vector`` has a uint32 for each state (:func:`generate_scramble_constants32`). It is
    combined with the numbers by exclusive or. ``dir_vector`` and ``offset`` are as in
    :class:`Sobol32RandomNumberGenerator`.

    >>> ScrambledSobol32RandomNumberGenerator().gen_normal((2, 3), "float32").shape
    (2, 3)
    """

    _kind = "ScrambledSobol32"


class ScrambledSobol64RandomNumberGenerator(_generators.ScrambledQuasiRandomNumberGenerator):
    """Sobol's 64-bit sequence, scrambled: the points are different and spread as evenly.

    ``scramble_vector`` has a uint64 for each state (:func:`generate_scramble_constants64`). It is
    combined with the numbers by exclusive or. ``dir_vector`` and ``offset`` are as in
    :class:`Sobol64RandomNumberGenerator`.

    >>> ScrambledSobol64RandomNumberGenerator().gen_normal((2, 3), "float32").shape
    (2, 3)
    """

    _kind = "ScrambledSobol64"
