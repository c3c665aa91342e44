"""Generators of random numbers: published values, statistics, jumps, and bad input."""

from __future__ import annotations

import functools
import hashlib
import math

import numpy as np
import pytest
from device import BACKEND, TEST_ALL
from processes import run_python

from pygpu import _core, curandom, driver, gpuarray
from pygpu.compiler import SourceModule

PSEUDO = [curandom.XORWOWRandomNumberGenerator, curandom.MRG32k3aRandomNumberGenerator]
QUASI = [
    curandom.Sobol32RandomNumberGenerator,
    curandom.ScrambledSobol32RandomNumberGenerator,
    curandom.Sobol64RandomNumberGenerator,
    curandom.ScrambledSobol64RandomNumberGenerator,
]
REAL = [np.float32, np.float64]


@pytest.fixture(scope="module", autouse=True)
def direction_vectors_are_computed_once():
    """Every new quasi-random generator needs the same million words."""
    compute = functools.cache(_core.random_direction_vectors)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_core, "random_direction_vectors", compute)
        yield


def seeds(count):
    return gpuarray.to_gpu(np.arange(7, 7 + count, dtype=np.int32))


def fresh(kind, offset=0):
    return kind(seeds, offset) if kind in PSEUDO else kind(offset=offset)


@functools.cache
def shared(kind):
    """Returns a generator for tests that work in any state; deterministic if the test runs
    alone."""
    return fresh(kind)


def states_of(generator):
    return generator.block_count * generator.generators_per_block


def drawn(generator, draws, dtype, distribution="uniform"):
    """Returns `draws` numbers of each state, one row per draw."""
    count = states_of(generator)
    numbers = getattr(generator, f"gen_{distribution}")(draws * count, dtype).get()
    return numbers.reshape(draws, count)


# -- published values -----------------------------------------------------------------------


def xorwow_step(v):
    t = v[0] ^ v[0] >> 2
    return [*v[1:], (v[4] ^ v[4] << 4 ^ t ^ t << 1) & 0xFFFFFFFF]


def xorwow_numbers(seed, sequence, offset, count):
    """Yields Marsaglia's recurrence with the seeds and sequences that cuRAND documents."""
    low = (seed ^ 0xAAD26B49) * 1099087573
    high = 0xF7DCEFDD * 2591861531
    state = [
        word & 0xFFFFFFFF
        for word in (
            123456789 + low,
            362436069 ^ low & 0xFFFFFFFF,
            521288629 + high,
            88675123 ^ high & 0xFFFFFFFF,
            5783321 + low,
        )
    ]
    # Each row is the state after one step from a state with a single bit set.
    matrix = np.zeros((160, 160), np.float32)
    for bit in range(160):
        unit = [0] * 5
        unit[bit // 32] = 1 << bit % 32
        after = xorwow_step(unit)
        matrix[bit] = [after[k // 32] >> k % 32 & 1 for k in range(160)]
    for _ in range(67):
        matrix = matrix @ matrix % 2
    bits = np.array([state[k // 32] >> k % 32 & 1 for k in range(160)], np.float32)
    for _ in range(sequence):
        bits = bits @ matrix % 2
    state = [sum(int(bits[32 * j + k]) << k for k in range(32)) for j in range(5)]
    weyl = 6615241 + low + high
    numbers = []
    for _ in range(offset + count):
        state = xorwow_step(state)
        weyl += 362437
        numbers.append(state[4] + weyl & 0xFFFFFFFF)
    return numbers[offset:]


def test_xorwow():
    generator = fresh(PSEUDO[0], offset=3)
    numbers = drawn(generator, 4, np.uint32)
    for sequence in (0, 1, 5):
        expected = xorwow_numbers(7 + sequence, sequence, 3, 4)
        assert numbers[:, sequence].tolist() == expected


M1, M2 = 4294967087, 4294944443


def mrg_numbers(sequence, count):
    """Yields L'Ecuyer's recurrence, advanced by `sequence` subsequences of 2^76 numbers."""
    matrices = (
        ([[0, 1, 0], [0, 0, 1], [-810728, 1403580, 0]], M1),
        ([[0, 1, 0], [0, 0, 1], [-1370589, 0, 527612]], M2),
    )
    states = []
    for rows, modulus in matrices:
        matrix = np.array(rows, object)
        for _ in range(76):
            matrix = matrix.dot(matrix) % modulus
        vector = np.array([12345] * 3, object)
        for _ in range(sequence):
            vector = matrix.dot(vector) % modulus
        states.append(list(vector))
    (s, t), numbers = states, []
    for _ in range(count):
        s = [*s[1:], (1403580 * s[1] - 810728 * s[0]) % M1]
        t = [*t[1:], (527612 * t[2] - 1370589 * t[0]) % M2]
        numbers.append(((s[2] - t[2]) % M1 or M1) / (M1 + 1))
    return numbers


def test_mrg32k3a():
    generator = curandom.MRG32k3aRandomNumberGenerator(lambda n: gpuarray.zeros(n, np.int32))
    numbers = drawn(generator, 5, np.float64)
    # The first numbers of the published package, for the seed 12345.
    published = [0.127011122, 0.318527565, 0.309186016, 0.825846863, 0.221629916]
    np.testing.assert_allclose(numbers[:, 0], published, atol=6e-10)
    for sequence in (0, 1, 6):
        np.testing.assert_allclose(numbers[:, sequence], mrg_numbers(sequence, 5), rtol=1e-15)


# Rows of the table new-joe-kuo-6.21201: dimension, degree, polynomial, initial numbers.
TABLE = [
    (2, 1, 0, [1]),
    (3, 2, 1, [1, 3]),
    (4, 3, 1, [1, 3, 1]),
    (5, 3, 2, [1, 1, 1]),
    (6, 4, 1, [1, 1, 3, 3]),
    (7, 4, 4, [1, 3, 5, 13]),
    (8, 5, 2, [1, 1, 5, 5, 17]),
    (10000, 17, 36335,
     [1, 3, 7, 5, 13, 27, 127, 65, 115, 731, 1147, 283, 91, 14205, 2457, 57083, 35815]),
    (21201, 18, 131059,
     [1, 1, 7, 11, 15, 7, 37, 239, 337, 245, 1557, 3681, 7357, 9639, 27367, 26869, 114603, 86317]),
]  # fmt: skip


def direction_vectors(degree, inner, numbers, bits):
    m = list(numbers)
    for k in range(degree, bits):
        value = m[k - degree] ^ m[k - degree] << degree
        for j in range(1, degree):
            if inner >> degree - 1 - j & 1:
                value ^= m[k - j] << j
        m.append(value)
    return [number << bits - 1 - k for k, number in enumerate(m)]


@pytest.mark.parametrize("bits", [32, 64])
def test_direction_vectors(bits):
    names = curandom.direction_vector_set
    vectors = curandom.generate_direction_vectors(21201, names[f"VECTOR_{bits}"]).get()
    assert vectors.dtype == f"u{bits // 8}"
    assert vectors[0].tolist() == [1 << bits - 1 - k for k in range(bits)]
    for dimension, *row in TABLE:
        assert vectors[dimension - 1].tolist() == direction_vectors(*row, bits)
    scrambled = curandom.generate_direction_vectors(50, names[f"SCRAMBLED_VECTOR_{bits}"]).get()
    # Scrambling does not move the leading digits.
    for mine, plain in zip(scrambled.tolist(), vectors.tolist()):
        assert [a.bit_length() for a in mine] == [b.bit_length() for b in plain]
    assert (scrambled != vectors[:50]).mean() > 0.8


@pytest.mark.parametrize("kind", QUASI)
def test_quasi_random_points(kind):
    generator = fresh(kind)
    bits = generator.generator_bits
    dtype = np.dtype(f"u{bits // 8}")
    points = drawn(generator, 16, dtype)
    # Each dimension has one point in each sixteenth, in Gray code order.
    assert (np.arange(16) == np.sort(points >> dtype.type(bits - 4), axis=0).T).all()
    if "Scrambled" not in kind.__name__:
        fractions = [0, 0.5, 0.75, 0.25, 0.375, 0.875, 0.625, 0.125]
        assert (points[:8, 0] / 2.0**bits).tolist() == fractions
        assert (points[:4, 1] / 2.0**bits).tolist() == [0, 0.5, 0.25, 0.75]


# -- statistics -----------------------------------------------------------------------------


def kolmogorov(numbers, cumulated):
    """Returns the Kolmogorov-Smirnov statistic times the square root of the sample size."""
    x = np.sort(np.asarray(numbers, float).ravel())
    expected = np.vectorize(cumulated)(x)
    steps = np.arange(x.size + 1) / x.size
    distance = max((steps[1:] - expected).max(), (expected - steps[:-1]).max())
    return distance * math.sqrt(x.size)


def normal_cdf(x):
    return 0.5 * math.erfc(-x / math.sqrt(2))


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        (kind, dtype)
        for number, kind in enumerate(PSEUDO + QUASI)
        for place, dtype in enumerate(REAL)
        if TEST_ALL or kind in PSEUDO or number % len(REAL) == place
    ],
)
def test_distributions(kind, dtype):
    # Beyond the first points, the dimensions of Sobol's sequence differ.
    generator = fresh(kind, offset=987654321)
    count = 3 * states_of(generator)
    uniform = generator.gen_uniform(count, dtype).get()
    assert uniform.dtype == dtype
    assert uniform.min() >= 0
    assert uniform.max() <= 1
    normal = generator.gen_normal(count + 1, dtype).get()
    sample = np.random.default_rng(1).permutation(count)[:20000]
    # One sample in a thousand exceeds this bound; quasi-random numbers are more even.
    assert kolmogorov(uniform[sample], lambda x: x) < 1.95
    assert kolmogorov(normal[sample], normal_cdf) < 1.95
    assert abs(normal.mean(dtype="f8")) < 4 / math.sqrt(count)
    assert abs(normal.var(dtype="f8") - 1) < 6 / math.sqrt(count)
    logarithm = np.log(generator.gen_log_normal(count, dtype, 1.5, 0.25).get())
    assert kolmogorov((logarithm[sample] - 1.5) / 0.25, normal_cdf) < 1.95


@pytest.mark.parametrize("kind", PSEUDO)
def test_pseudo_random_numbers_are_independent(kind):
    generator = fresh(kind)
    words = generator.gen_uniform(400_000, np.uint32).get()
    # At each position all bytes are equally frequent: chi-squared with 255 degrees of
    # freedom.
    for place in range(4):
        found = np.bincount(words >> 8 * place & 255, minlength=256)
        chi = ((found - words.size / 256) ** 2 / (words.size / 256)).sum()
        assert 180 < chi < 340
    values = words / 2.0**32 - 0.5
    for distance in (1, 2, 256, states_of(generator)):
        products = values[:-distance] * values[distance:]
        assert abs(products.mean()) < 4 / 12 / math.sqrt(products.size)
    normal = generator.gen_normal(200_000, np.float64).get()
    assert abs((normal[::2] * normal[1::2]).mean()) < 4 / math.sqrt(1e5)


def poisson_probabilities(mean, count):
    numbers = np.arange(count)
    logarithms = numbers * math.log(mean) - mean - np.vectorize(math.lgamma)(numbers + 1.0)
    return np.exp(logarithms)


@pytest.mark.parametrize("mean", [0.3, 13.0, 63.9, 64.0, 900.0])
@pytest.mark.parametrize("kind", [PSEUDO[0], QUASI[0]])
def test_poisson(kind, mean):
    generator = fresh(kind, offset=987654321)
    numbers = generator.gen_poisson(100_000, np.uint32, mean).get()
    found = np.bincount(numbers)
    expected = poisson_probabilities(mean, found.size) * numbers.size
    usual = expected > 10
    chi = ((found - expected)[usual] ** 2 / expected[usual]).sum()
    assert chi < usual.sum() + 5 * math.sqrt(2 * usual.sum()) + 5


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint32])
def test_poisson_of_elements(dtype):
    means = np.where(np.arange(60_000) % 2, 10, 0).astype(dtype)
    data = gpuarray.to_gpu(means)
    shared(PSEUDO[0]).fill_poisson(data)
    numbers = data.get()
    assert numbers.dtype == dtype
    assert not numbers[::2].any()
    assert abs((numbers[1::2] == 9).mean() - poisson_probabilities(10, 10)[9]) < 0.01


def test_extreme_parameters():
    generator = shared(PSEUDO[0])
    assert (generator.gen_poisson(100, np.uint32, 1e30).get() == 2**32 - 1).all()
    assert not generator.gen_poisson(100, np.uint32, 0.0).get().any()
    assert np.isinf(generator.gen_log_normal(100, np.float32, 1e6, 1.0).get()).all()
    assert not generator.gen_log_normal(100, np.float64, -1e6, 1.0).get().any()
    odd = gpuarray.to_gpu(np.array([np.nan, -3, np.inf] * 50, np.float64))
    generator.fill_poisson(odd)
    assert odd.get().tolist() == [0, 0, np.inf] * 50  # For any drawn numbers.


# -- order ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PSEUDO + QUASI)
def test_a_fill_goes_on_where_the_last_one_ended(kind):
    count = states_of(fresh(kind))
    whole = fresh(kind).gen_uniform(3 * count, np.uint32).get()
    parts = fresh(kind)
    halves = [parts.gen_uniform(size, np.uint32).get() for size in (count, 2 * count)]
    assert np.array_equal(np.concatenate(halves), whole)
    # If fewer elements than states are filled, the other states do not advance.
    few = fresh(kind)
    first = few.gen_uniform(10, np.uint32).get()
    second = few.gen_uniform(count, np.uint32).get()
    assert np.array_equal(first, whole[:10])
    assert np.array_equal(second[:10], whole[count : count + 10])
    assert np.array_equal(second[10:], whole[10:count])


@pytest.mark.parametrize("kind", [PSEUDO[0], QUASI[0]])
def test_arrays_with_gaps_are_filled_as_arrays_without(kind):
    expected = fresh(kind).gen_uniform(60, np.float32).get().reshape(20, 3)
    whole = gpuarray.zeros((20, 6), np.float32)
    fresh(kind).fill_uniform(whole[:, ::2])
    found = whole.get()
    assert np.array_equal(found[:, ::2], expected)
    assert not found[:, 1::2].any()


def test_a_fill_that_is_refused_draws_nothing():
    generator, other = fresh(PSEUDO[0]), fresh(PSEUDO[0])
    with pytest.raises(driver.Error):
        generator.fill_uniform(gpuarray.broadcast_to(gpuarray.zeros(1, np.float32), (5,)))
    assert np.array_equal(
        generator.gen_uniform(9, np.float32).get(), other.gen_uniform(9, np.float32).get()
    )


@pytest.mark.parametrize("kind", PSEUDO + QUASI)
def test_skipping_equals_drawing(kind):
    count = states_of(fresh(kind))
    whole = fresh(kind).gen_uniform(6 * count, np.uint32).get().reshape(6, count)
    skipped = fresh(kind)
    skipped.call_skip_ahead(3)
    assert np.array_equal(skipped.gen_uniform(count, np.uint32).get(), whole[3])
    assert np.array_equal(fresh(kind, offset=5).gen_uniform(count, np.uint32).get(), whole[5])
    each = np.arange(count) % 5
    skipped = fresh(kind)
    skipped.call_skip_ahead_array(gpuarray.to_gpu(each.astype(np.uint32)))
    assert np.array_equal(
        skipped.gen_uniform(count, np.uint32).get(), whole[each, np.arange(count)]
    )
    # One large jump equals two jumps of half the size.
    one, two = fresh(kind), fresh(kind)
    one.call_skip_ahead(1 << 31)
    two.call_skip_ahead(1 << 30)
    two.call_skip_ahead(1 << 30)
    assert np.array_equal(
        one.gen_uniform(99, np.uint32).get(), two.gen_uniform(99, np.uint32).get()
    )


def test_skipping_sequences():
    def same(n):
        return gpuarray.zeros(n, np.int32)

    for kind, name in zip(PSEUDO, ("sequence", "subsequence")):
        expected = kind(same).gen_uniform(50, np.uint32).get()[3:]
        skipped = kind(same)
        getattr(skipped, f"call_skip_ahead_{name}")(3)
        assert np.array_equal(skipped.gen_uniform(47, np.uint32).get(), expected)
        skipped = kind(same)
        each = gpuarray.zeros(states_of(skipped), np.int64) + 3
        getattr(skipped, f"call_skip_ahead_{name}_array")(each)
        assert np.array_equal(skipped.gen_uniform(47, np.uint32).get(), expected)
    # 2^51 subsequences of 2^76 numbers make up one sequence.
    one, other = PSEUDO[1](same), PSEUDO[1](same)
    one.call_skip_ahead_sequence(1)
    other.call_skip_ahead_subsequence(1 << 51)
    assert np.array_equal(
        one.gen_uniform(9, np.uint32).get(), other.gen_uniform(9, np.uint32).get()
    )


def test_views_and_streams():
    expected = fresh(PSEUDO[0]).gen_normal((4, 6), np.float32).get()
    for make in (
        lambda: gpuarray.zeros((4, 12), np.float32)[:, ::2],
        lambda: gpuarray.zeros(25, np.float32)[1:].reshape(4, 6),
    ):
        data = make()
        fresh(PSEUDO[0]).fill_normal(data, stream=driver.Stream())
        assert np.array_equal(data.get(), expected)
    # The columns of a Fortran-order array are filled one after another, in memory order.
    data = gpuarray.zeros((6, 4), np.float32, order="F")
    fresh(PSEUDO[0]).fill_normal(data)
    assert np.array_equal(data.get().T, expected)
    wide = gpuarray.zeros((2, 8), np.float32)
    fresh(PSEUDO[0]).fill_uniform(wide[:, 2:5])
    assert not wide.get()[:, [0, 1, 5, 6, 7]].any()
    assert wide.get()[:, 2:5].all()


def test_sizes_about_a_round_of_the_states():
    count = states_of(shared(PSEUDO[0]))
    for distribution, dtype in (("normal", np.float32), ("normal", np.float64)):
        longest = fresh(PSEUDO[0])
        longest = getattr(longest, f"gen_{distribution}")(2 * count + 600, dtype).get()
        for size in (0, 1, 513, 2 * count - 1, 2 * count + 1):
            found = getattr(fresh(PSEUDO[0]), f"gen_{distribution}")(size, dtype).get()
            assert np.array_equal(found, longest[:size])


# Numbers of every kind, whose bits are compared.
PROGRAM = """
import sys
import numpy as np
import pygpu.autoinit
from pygpu import curandom, gpuarray

def numbers():
    quasi = ("Sobol32", "ScrambledSobol32", "Sobol64", "ScrambledSobol64")
    for kind in ("XORWOW", "MRG32k3a", *quasi):
        make = getattr(curandom, kind + "RandomNumberGenerator")
        if kind in ("XORWOW", "MRG32k3a"):
            generator = make(lambda n: gpuarray.to_gpu(np.arange(n, dtype=np.int32)))
        else:
            generator = make()
        for dtype in (np.float32, np.float64):
            yield generator.gen_uniform(40_001, dtype)
            yield generator.gen_normal(40_001, dtype)
            yield generator.gen_log_normal(20_001, dtype, 0.5, 2.0)
        yield generator.gen_uniform(20_001, np.uint32)
        for mean in (0.5, 30.0, 64.0, 1e5):
            yield generator.gen_poisson(20_001, np.uint32, mean)
    np.random.seed(5)
    for dtype in (np.float32, np.float64, np.int32, np.uint32):
        yield curandom.rand(10_003, dtype)

np.savez(sys.argv[1], *[array.get() for array in numbers()])
"""


@pytest.mark.skipif(BACKEND == "host", reason="the host is what others are compared with")
def test_every_backend_returns_the_same_bits(tmp_path):
    for backend in (BACKEND, "host"):
        run_python(PROGRAM, str(tmp_path / f"{backend}.npz"), PYGPU_BACKEND=backend)
    with np.load(tmp_path / f"{BACKEND}.npz") as mine, np.load(tmp_path / "host.npz") as host:
        for name in host:
            assert mine[name].tobytes() == host[name].tobytes(), (name, mine[name], host[name])


def test_rand_repeats_with_numpys_seed():
    found = []
    for seed in (3, 3, 4):
        np.random.seed(seed)  # noqa: NPY002
        found.append(curandom.rand(1000).get())
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


# -- bad input ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PSEUDO)
@pytest.mark.parametrize(
    ("getter", "said"),
    [
        (lambda n: np.zeros(n, np.int32), "ndarray"),
        (lambda n: gpuarray.zeros(n, np.float32), "float32"),
        (lambda n: gpuarray.zeros(n - 1, np.int32), "seed.size"),
    ],
)
def test_wrong_seeds(kind, getter, said):
    with pytest.raises(TypeError, match=said):
        kind(getter)


def test_wrong_vectors():
    good = curandom.generate_direction_vectors(states_of(shared(QUASI[0])))
    for vectors in (good.get(), good[1:], good.astype(np.uint64), good.astype(np.int32)):
        with pytest.raises(TypeError, match="dir_vector"):
            curandom.Sobol32RandomNumberGenerator(vectors)
    shifts = curandom.generate_scramble_constants32(good.shape[0])
    for wrong in (shifts.get(), shifts[1:], shifts.astype(np.int64)):
        with pytest.raises(TypeError, match="scramble_vector"):
            curandom.ScrambledSobol32RandomNumberGenerator(good, wrong)
    given = curandom.ScrambledSobol32RandomNumberGenerator(good, shifts).gen_uniform(99, np.uint32)
    plain = curandom.Sobol32RandomNumberGenerator(good).gen_uniform(99, np.uint32)
    assert np.array_equal(given.get(), plain.get() ^ shifts.get()[:99])
    with pytest.raises(ValueError, match="21201 dimensions"):
        curandom.generate_direction_vectors(21202)
    with pytest.raises(ValueError, match="7"):
        curandom.generate_direction_vectors(3, 7)


def test_wrong_arrays_and_numbers():
    generator = shared(PSEUDO[0])
    for fill in (generator.fill_uniform, generator.fill_normal, generator.fill_poisson):
        with pytest.raises(NotImplementedError, match="complex64"):
            fill(gpuarray.zeros(3, np.complex64))
        with pytest.raises(TypeError, match="data"):
            fill(np.zeros(3, np.float32))
    with pytest.raises(NotImplementedError, match="int64"):
        generator.gen_uniform(3, np.int64)
    with pytest.raises(NotImplementedError, match="float32"):
        generator.gen_poisson(3, np.float32, 2.0)
    for mean in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="mean"):
            generator.gen_poisson(3, np.uint32, mean)
    with pytest.raises(ValueError, match="deviation"):
        generator.gen_log_normal(3, np.float32, 0.0, math.nan)
    for offset in (-1, 1 << 64):
        with pytest.raises(ValueError, match="offset"):
            curandom.XORWOWRandomNumberGenerator(offset=offset)
        with pytest.raises(ValueError, match="i is"):
            generator.call_skip_ahead(offset)
    for wrong in (gpuarray.zeros(3, np.int32), gpuarray.zeros(states_of(generator), np.float32)):
        with pytest.raises(TypeError, match="integers are needed"):
            generator.call_skip_ahead_array(wrong)
    with pytest.raises(ValueError, match="cannot move back"):
        generator.call_skip_ahead_array(gpuarray.zeros(states_of(generator), np.int32) - 1)


def compressed(words):
    """Computes RFC 1321 (MD5) over one block, from its definition and tables."""
    state = [0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476]
    a, b, c, d = state
    for step in range(64):
        if step < 16:
            mixed, word = b & c | ~b & d, step
        elif step < 32:
            mixed, word = d & b | ~d & c, (5 * step + 1) % 16
        elif step < 48:
            mixed, word = b ^ c ^ d, (3 * step + 5) % 16
        else:
            mixed, word = c ^ (b | ~d), 7 * step % 16
        by = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]][step // 16]
        sum_ = (a + mixed + int(2**32 * abs(math.sin(step + 1))) + words[word]) & 0xFFFFFFFF
        turned = sum_ << by[step % 4] | sum_ >> (32 - by[step % 4])
        a, b, c, d = d, (b + turned) & 0xFFFFFFFF, b, c
    return [(x + y) & 0xFFFFFFFF for x, y in zip(state, (a, b, c, d), strict=True)]


def test_pycudas_hash():
    padded = np.frombuffer(b"abc\x80" + bytes(52) + (24).to_bytes(8, "little"), "<u4")
    digest = np.array(compressed(list(map(int, padded))), "<u4").tobytes()
    assert digest == hashlib.md5(b"abc").digest()
    text = f"""
    __global__ void hash(unsigned int *out, unsigned int seed, int n)
    {{
        const int i = 3 * (threadIdx.x + blockIdx.x * blockDim.x) - 5;
        {curandom.md5_code}
        unsigned int *own = out + 4 * (threadIdx.x + blockIdx.x * blockDim.x);
        own[0] = a; own[1] = b; own[2] = c; own[3] = d;
    }}"""
    out = gpuarray.zeros((12, 4), np.uint32)
    function = SourceModule(text).get_function("hash")
    function(out, np.uint32(77), np.int32(9), block=(4, 1, 1), grid=(3, 1))
    for thread, found in enumerate(out.get()):
        x, block = thread % 4, thread // 4
        i = (3 * thread - 5) % 2**32
        words = [x, 0, 0, block, 0, 0, 77, i, 9, 4, 1, 1, 3, 1, 1, 0]
        assert found.tolist() == compressed(words)


@pytest.mark.parametrize("kind", PSEUDO)
def test_a_seed_is_that_of_every_state(kind):
    one = kind(seed=7).gen_uniform(5, np.float64).get()
    getter = kind(lambda count: gpuarray.full([count], 7, np.int32))
    np.testing.assert_array_equal(one, getter.gen_uniform(5, np.float64).get())
    assert (one != kind(seed=8).gen_uniform(5, np.float64).get()).any()
    for wrong in (-1, 2**31):
        with pytest.raises(ValueError, match="seed is"):
            kind(seed=wrong)
    with pytest.raises(ValueError, match="one of them"):
        kind(curandom.seed_getter_uniform, seed=1)


def test_rand_repeats_its_seed():
    first, second = (curandom.rand(9, np.float32, seed=5).get() for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert (first != curandom.rand(9, np.float32, seed=6).get()).any()
    with pytest.raises(ValueError, match="seed is -1"):
        curandom.rand(9, seed=-1)
