"""Features of the language, tested with kernels in ``classic/*.cu`` on every backend."""

from __future__ import annotations

import math

import numpy as np
from classic_kernels import FOLDER, close, gpu, kernel, kernels, random
from processes import run_python

from pygpu import driver, gpuarray


def test_struct_arguments():
    camera = np.zeros(
        (),
        np.dtype(
            [("kind", "i1"), ("scale", "f8"), ("position", "f4", 3), ("pixels", "i2", 3)],
            align=True,
        ),
    )
    camera["kind"], camera["scale"] = 5, 0.25
    camera["position"], camera["pixels"] = (1, 2, 3), (10, -20, 30)
    particles = np.zeros(40, [("where", "f4", 3), ("id", "i4")])
    particles["where"], particles["id"] = random(25).integers(0, 100, (40, 3)), np.arange(40)
    out = gpuarray.empty(40, np.float64)
    data = gpu(particles.view(np.uint8))
    kernel("struct_arguments", "project")(
        camera, data, out, np.int32(40), grid=(1, 1), block=(64, 1, 1)
    )
    moved = particles["where"].astype(np.float64) - (1, 2, 3)
    assert (out.get() == 0.25 * (moved * (10, -20, 30)).sum(1) + np.arange(40) + 5).all()


def test_templates():
    x = random(26).integers(-500, 500, 333).astype(np.int32)
    module = kernels("templates")
    for name, dtype in (("reductions_int", np.int32), ("reductions_double", np.float64)):
        out = gpuarray.empty(2, dtype)
        module.get_function(name)(
            gpu(x.astype(dtype)), out, np.int32(333), grid=(1, 1), block=(64, 1, 1)
        )
        assert out.get().tolist() == [x.sum(), x.max()]
    data = gpu(x)
    module.get_function("cubes")(data, np.int32(333), np.int32(7), grid=(1, 1), block=(64, 1, 1))
    assert (data.get() == x**3 + 7).all()


def test_dynamic_shared():
    x = random(29).integers(0, 1000, 60).astype(np.int32)
    out = gpuarray.empty(60, np.float32)
    kernel("dynamic_shared", "mixed")(
        gpu(x), out, np.int32(60), grid=(1, 1), block=(60, 1, 1), shared=60 * (8 + 4 + 2)
    )
    back = x[::-1]
    assert (out.get() == back * 0.5 + back + 0.25 + back * 3).all()


PRINTING = """
import numpy as np
from pygpu import autoinit, driver, gpuarray
from pygpu.compiler import SourceModule
say = SourceModule(open({file!r}).read()).get_function("say")
say(gpuarray.to_gpu(np.float32([1.5, 250])), np.intp(0), grid=(2, 1), block=(8, 1, 1))
driver.Context.synchronize()
"""


def test_print():
    kernels("print")
    result = run_python(PRINTING.format(file=str(FOLDER / "print.cu")))
    lines = [f"block {i} of 2: x = 1.50, text, 2.5e+02, c, %, 1234567890123" for i in range(2)]
    assert sorted(result.stdout.splitlines()) == lines


def test_early_return():
    x = random(30).integers(0, 100, 150).astype(np.int32)
    out = gpuarray.to_gpu(np.full(150, -1, np.int32))
    kernel("early_return", "sums")(gpu(x), out, np.int32(150), grid=(3, 1), block=(64, 1, 1))
    totals = np.repeat([x[:64].sum(), x[64:128].sum(), x[128:].sum()], 64)[:150]
    assert (out.get() == np.where(x % 2, -1, totals + x)).all()


def collatz(x):
    steps = 0
    while x != 1:
        if x % 2:
            x = 3 * x + 1
        else:
            x //= 2
            if x % 4 == 0:
                x //= 4
                steps += 2
        steps += 1
    return steps


def test_divergence():
    x = random(31).integers(1, 5000, 128).astype(np.uint32)
    steps, votes = gpuarray.empty(128, np.int32), gpuarray.empty(128, np.int32)
    kernel("divergence", "collatz")(gpu(x), steps, votes, grid=(2, 1), block=(64, 1, 1))
    expected = np.array([collatz(int(it)) for it in x])
    assert (steps.get() == expected).all()
    for warp in range(4):
        own = expected[32 * warp : 32 * warp + 32]
        seen = [
            int(own[lane ^ 5]) + (lane % 2) * int((own[1:16:2] > 50).sum()) for lane in range(16)
        ]
        seen += [int((own[16:] > 100).any()) * 1000 + int((own[16:] > 1).all())] * 16
        assert votes.get()[32 * warp : 32 * warp + 32].tolist() == seen[1:] + seen[:1]


def test_barriers_in_loops():
    x = random(32).integers(0, 1000, (3, 128)).astype(np.int32)
    x[1] = np.arange(128)
    data, rounds = gpu(x), gpuarray.empty(3, np.int32)
    kernel("barriers_in_loops", "sort")(data, rounds, grid=(3, 1), block=(128, 1, 1))
    assert (data.get() == np.sort(x, 1)).all()
    assert rounds.get()[1] == 1
    assert rounds.get()[0] > 10


def test_counting_barriers():
    x = random(33).integers(0, 100, (5, 90)).astype(np.int32)
    x[0] += 1
    out = gpuarray.empty((5, 3), np.int32)
    kernel("counting_barriers", "count")(gpu(x), out, grid=(5, 1), block=(90, 1, 1))
    assert (out.get() == np.stack([(x % 2).sum(1), (x > 0).all(1), (x > 90).any(1)], 1)).all()


def test_half_precision():
    x, y = random(48).standard_normal((2, 1000)).astype(np.float16)
    module = kernels("half_precision")
    out = gpu(y)
    module.get_function("axpy")(
        np.float16(1.25), gpu(x), out, np.int32(1000), grid=(8, 1), block=(128, 1, 1)
    )
    # In double precision the product and the sum are exact.
    assert (out.get() == (np.float64(1.25) * x + y.astype(np.float64)).astype(np.float16)).all()
    out, sums = gpuarray.empty(1000, np.float16), gpuarray.empty(500, np.float32)
    module.get_function("pairs")(
        gpu(x), gpu(y), out, sums, np.int32(500), grid=(4, 1), block=(128, 1, 1)
    )
    half = (x + y) * np.float16(0.5)
    assert (out.get() == half).all()
    root = np.sqrt(np.abs(x[::2]))
    close(sums.get(), half[::2].astype(np.float32) + half[1::2] + root, 1e-6)


def test_bfloat16():
    x = random(49).standard_normal(500).astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
    out = gpuarray.empty(500, np.uint16)
    kernel("bfloat16", "scale")(
        gpu((x >> 16).astype(np.uint16)),
        out,
        np.float32(1.7),
        np.int32(500),
        grid=(4, 1),
        block=(128, 1, 1),
    )
    product = (x.view(np.float32) * np.float32(1.7)).view(np.uint32)
    rounded = (product + np.uint32(0x7FFF) + (product >> 16 & 1)) >> 16
    assert (out.get() == rounded).all()


def test_recursion():
    call = kernel("recursion", "call")
    # Only a few nested calls: a GPU thread has 1 KiB of stack.
    a, b = np.uint32([0, 1, 2, 2, 1]), np.uint32([5, 4, 2, 1, 3])
    out = gpuarray.empty(5, np.uint32)
    call(gpu(a), gpu(b), out, np.int32(0), grid=(1, 1), block=(5, 1, 1))
    assert out.get().tolist() == [6, 6, 7, 5, 5]
    a, b = random(51).integers(1, 10**6, (2, 5)).astype(np.uint32)
    call(gpu(a), gpu(b), out, np.int32(1), grid=(1, 1), block=(5, 1, 1))
    assert (out.get() == np.gcd(a, b)).all()


def test_global_variables():
    module = kernels("global_variables")
    use, change = module.get_function("use"), module.get_function("change")
    out = gpuarray.empty(8, np.float32)
    use(out, grid=(1, 1), block=(8, 1, 1))
    i = np.arange(8)
    offsets = np.array([[1, 2], [3, 4]])[i // 2 % 2, i % 2]
    assert (out.get() == (i % 4 + 0.5) * 7 + offsets).all()
    driver.memcpy_htod(module.get_global("table")[0], np.float32([10, 20, 30, 40]))
    change(np.int32(-2), grid=(1, 1), block=(1, 1, 1))
    use(out, grid=(1, 1), block=(8, 1, 1))
    assert (out.get() == (i % 4 + 1) * -20 + offsets).all()
    address, size = module.get_global("counter")
    count = np.zeros(1, np.uint64)
    driver.memcpy_dtoh(count, address)
    assert (size, count[0]) == (8, 16)


def test_atomic_loop():
    arrays = [
        gpu(np.ones(1)), gpu(np.uint32([0, 3])), gpu(np.int32([0, 0])),
        gpu(np.uint32([0, 0, 0xFFFFFFFF])), gpuarray.zeros(1, np.int32),
        gpuarray.zeros(1, np.int32),
    ]  # fmt: skip
    kernel("atomic_loop", "all")(*arrays, grid=(4, 1), block=(50, 1, 1))
    product, wrapping, extremes, bits, lock, guarded = (it.get().tolist() for it in arrays)
    assert product == [3]
    assert wrapping == [200 % 7, (3 - 200) % 7]
    assert extremes == [-50, 199 * 3]
    # Lanes 0 to 7 occur seven times, the others six times.
    assert bits == [0xFF, 0xFFFFFFFF, 0xFFFF0000]
    assert (lock, guarded) == ([0], [200])


def test_three_dimensions():
    nx, ny, nz = 11, 7, 5
    out = gpuarray.empty((nz, ny, nx), np.int32)
    kernel("three_dimensions", "indices")(
        out, *map(np.int32, (nx, ny, nz)), grid=(3, 4, 2), block=(4, 2, 3)
    )
    z, y, x = np.mgrid[:nz, :ny, :nx]
    block = (z // 3 * 4 + y // 2) * 3 + x // 4
    assert (out.get() == block * 1000 + (z % 3 * 2 + y % 2) * 4 + x % 4).all()


def test_vectors():
    module = kernels("vectors")
    x = random(52).integers(0, 256, (100, 16), np.uint8)
    out = gpuarray.empty(x.shape, np.uint8)
    module.get_function("swap")(gpu(x), out, np.int32(100), grid=(2, 1), block=(64, 1, 1))
    assert (out.get() == x[:, ::-1]).all()
    a, b = random(53).random((90, 2)), random(54).random((90, 3), np.float32)
    out = gpuarray.empty(90, np.float64)
    module.get_function("lengths")(gpu(a), gpu(b), out, np.int32(90), grid=(2, 1), block=(64, 1, 1))
    close(out.get(), np.hypot(*a.T) + np.sqrt((b.astype(np.float64) ** 2).sum(1)), 1e-6)


def test_device_memory():
    out = gpuarray.empty(40, np.int32)
    kernel("device_memory", "lists")(out, np.int32(12), grid=(1, 1), block=(40, 1, 1))
    # The list goes from the last number to the first: 11 * 3^11 + ... + 0.
    weight = sum(k * 3**k for k in range(12))
    expected = (np.arange(1, 41, dtype=np.int64) * weight).astype(np.int32)
    assert (out.get() == expected).all()


def philox(counter, key):
    """Returns a block of Philox4x32-10, as its authors define it."""
    a, b, c, d = counter
    for _ in range(10):
        x, y = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = (y >> 32) ^ b ^ key[0], y % 2**32, (x >> 32) ^ d ^ key[1], x % 2**32
        key = (key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32
    return a, b, c, d


def test_random_numbers():
    module = kernels("random_numbers")
    words = gpuarray.empty((4, 6), np.uint32)
    module.get_function("philox")(words, np.uint64(0), grid=(1, 1), block=(4, 1, 1))
    assert words.get().ravel()[:4].tolist() == list(philox((0, 0, 0, 0), (0, 0)))
    assert words.get().ravel()[12:16].tolist() == list(philox((3, 0, 0, 0), (0, 0)))
    words = gpuarray.empty((2000, 20), np.uint32)
    uniform, normal = (
        gpuarray.empty(words.shape, np.float32),
        gpuarray.empty(words.shape, np.float32),
    )
    module.get_function("draw")(
        words, uniform, normal, np.uint64(1234), np.int32(20), grid=(20, 1), block=(100, 1, 1)
    )
    # The numbers that the vendor's library draws from this seed.
    first = [0x253D5E15, 0x6F558604, 0xDEE6DAF2, 0x7485B394, 0xDB6A6A85, 0x95195C6B]
    assert words.get()[0, :6].tolist() == first
    assert len(np.unique(words.get())) > 39990
    u, z = uniform.get().astype(np.float64), normal.get().astype(np.float64)
    assert u.min() > 0
    assert u.max() <= 1
    # The moments are within six standard deviations.
    n = u.size
    assert abs(u.mean() - 0.5) < 6 * math.sqrt(1 / 12 / n)
    assert abs(z.mean()) < 6 / math.sqrt(n)
    assert abs((z * z).mean() - 1) < 6 * math.sqrt(2 / n)
