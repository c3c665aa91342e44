"""Classic kernels from one source on every backend: ``classic/*.cu``.

The expected values come from numpy, or from arithmetic with Python numbers.
"""

from __future__ import annotations

import binascii
import math
from pathlib import Path

import numpy as np
from classic_kernels import (
    FOLDER,
    OF_32_LANES,
    blocks,
    close,
    gpu,
    kernel,
    kernels,
    random,
)

from pygpu import driver, gpuarray


def test_axpy():
    x, y = random(0).random((2, 10007), np.float32)
    out = gpu(y)
    kernel("axpy")(np.float32(2.5), gpu(x), out, np.int32(x.size), grid=(7, 1), block=(128, 1, 1))
    close(out.get(), 2.5 * x + y)


def test_transpose():
    a = random(1).random((70, 45), np.float32)
    out = gpuarray.empty((45, 70), np.float32)
    kernel("transpose")(
        out,
        gpu(a),
        np.int32(45),
        np.int32(70),
        grid=(blocks(45, 32), blocks(70, 32)),
        block=(32, 8, 1),
    )
    assert (out.get() == a.T).all()


def test_matmul():
    a, b = random(2).random((50, 37), np.float32), random(3).random((37, 70), np.float32)
    c = gpuarray.empty((50, 70), np.float32)
    sizes = map(np.int32, (50, 37, 70))
    kernel("matmul")(
        gpu(a), gpu(b), c, *sizes, grid=(blocks(70, 16), blocks(50, 16)), block=(16, 16, 1)
    )
    close(c.get(), a @ b)


def test_reduce_shared():
    x = random(4).integers(0, 100, 5000).astype(np.float32)
    out = gpuarray.empty(blocks(5000, 512), np.float32)
    kernel("reduce_shared", "reduce")(
        gpu(x), out, np.int32(5000), grid=(out.size, 1), block=(256, 1, 1), shared=1024
    )
    assert out.get().sum() == x.sum()
    assert out.get()[1] == x[512:1024].sum()


def test_reduce_shuffle():
    x = random(5).integers(-1000, 1000, 12345).astype(np.int32)
    out = gpuarray.zeros(1, np.int32)
    kernel("reduce_shuffle", "sum")(gpu(x), out, np.int32(x.size), grid=(5, 1), block=(256, 1, 1))
    assert out.get() == x.sum()


def test_reduce_groups():
    x = random(6).integers(0, 1000, (6, 128)).astype(np.int32)
    out = gpuarray.zeros(6 * 2 + 6 * 16, np.int32)
    kernel("reduce_groups", "sums")(gpu(x), out, grid=(6, 1), block=(128, 1, 1))
    found = out.get()
    assert (found[:6] == x.sum(1)).all()
    assert (found[6:12] == (x % 2).sum(1)).all()
    assert (found[12:] == x.reshape(-1, 8).sum(1)).all()


def test_reduce_last_block():
    x = random(7).random(30011)
    partial, out = gpuarray.empty(20, np.float64), gpuarray.empty(1, np.float64)
    reduce = kernel("reduce_last_block", "reduce")
    for _ in range(3):
        reduce(gpu(x), partial, out, np.uint32(x.size), grid=(20, 1), block=(128, 1, 1))
        close(out.get(), x.sum(), 1e-12)


def test_scan_hillis_steele():
    x = random(8).integers(0, 50, (5, 200)).astype(np.int32)
    out = gpuarray.empty(x.shape, np.int32)
    kernel("scan_hillis_steele", "scan")(
        gpu(x), out, np.int32(200), grid=(5, 1), block=(200, 1, 1), shared=2 * 200 * 4
    )
    assert (out.get() == np.cumsum(x, 1) - x).all()


def test_scan_blelloch():
    x = random(9).integers(0, 50, 16 * 256).astype(np.int32)
    data, sums = gpu(x), gpuarray.empty(16, np.int32)
    module = kernels("scan_blelloch")
    scan, add = module.get_function("scan"), module.get_function("add")
    bytes_of = lambda n: 4 * (n + n // 32)  # noqa: E731
    scan(data, sums, np.int32(256), grid=(16, 1), block=(128, 1, 1), shared=bytes_of(256))
    scan(sums, np.intp(0), np.int32(16), grid=(1, 1), block=(8, 1, 1), shared=bytes_of(16))
    add(data, sums, np.int32(256), grid=(16, 1), block=(128, 1, 1))
    assert (data.get() == np.cumsum(x) - x).all()


def test_scan_look_back():
    x = random(10).integers(0, 50, 50 * 256 - 77).astype(np.uint32)
    out, states = gpuarray.empty(x.shape, np.uint32), gpuarray.zeros(50, np.uint64)
    kernel("scan_look_back", "scan")(
        gpu(x),
        out,
        states,
        gpuarray.zeros(1, np.uint32),
        np.int32(x.size),
        grid=(50, 1),
        block=(256, 1, 1),
    )
    assert (out.get() == np.cumsum(x)).all()


def test_histogram_shared():
    x = (random(11).random(40000) ** 3 * 256).astype(np.uint8)
    bins = gpuarray.zeros(256, np.uint32)
    kernel("histogram_shared", "histogram")(
        gpu(x), np.int32(x.size), bins, grid=(6, 1), block=(192, 1, 1)
    )
    assert (bins.get() == np.bincount(x, minlength=256)).all()


def test_histogram_match():
    x = random(12).integers(0, 9, 1000).astype(np.int32)
    bins = gpuarray.zeros(9, np.int32)
    kernel("histogram_match", "histogram")(
        gpu(x), np.int32(1000), bins, grid=(8, 1), block=(128, 1, 1)
    )
    assert (bins.get() == np.bincount(x)).all()


def test_stencil_1d():
    x = random(13).integers(0, 1000, 4 * 128 + 6).astype(np.int32)
    out = gpuarray.empty(4 * 128, np.int32)
    kernel("stencil_1d", "stencil")(
        gpu(x), out, grid=(4, 1), block=(128, 1, 1), shared=4 * (128 + 6)
    )
    assert (out.get() == np.convolve(x, np.ones(7, np.int32), "valid")).all()


def test_stencil_3d():
    a = random(14).random((9, 21, 37), np.float32)
    out = gpuarray.zeros(a.shape, np.float32)
    nz, ny, nx = a.shape
    kernel("stencil_3d", "laplacian")(
        gpu(a),
        out,
        *map(np.int32, (nx, ny, nz)),
        grid=(blocks(nx - 2, 16), blocks(ny - 2, 8)),
        block=(16, 8, 1),
    )
    expected = np.zeros_like(a)
    c = slice(1, -1)
    expected[c, c, c] = a[:-2, c, c] + a[2:, c, c] + a[c, :-2, c] + a[c, 2:, c]
    expected[c, c, c] += a[c, c, :-2] + a[c, c, 2:] - 6 * a[c, c, c]
    close(out.get(), expected)


def test_bitonic_shared():
    k = random(15).integers(0, 10000, (4, 512)).astype(np.int32)
    keys, values = gpu(k), gpu(np.tile(np.arange(512, dtype=np.int32), (4, 1)))
    kernel("bitonic_shared", "sort")(keys, values, np.int32(512), grid=(4, 1), block=(256, 1, 1))
    assert (keys.get() == np.sort(k, 1)).all()
    assert (np.take_along_axis(k, values.get(), 1) == keys.get()).all()


def test_bitonic_global():
    x = random(16).standard_normal(2048).astype(np.float32)
    data, step = gpu(x), kernel("bitonic_global", "step")
    k = 2
    while k <= x.size:
        j = k // 2
        while j > 0:
            step(data, np.int32(j), np.int32(k), grid=(8, 1), block=(256, 1, 1))
            j //= 2
        k *= 2
    assert (data.get() == np.sort(x)).all()


def test_radix_sort():
    x = random(17).integers(0, 2**32, (3, 256), np.uint32)
    data = gpu(x)
    kernel("radix_sort", "sort")(data, grid=(3, 1), block=(256, 1, 1))
    assert (data.get() == np.sort(x, 1)).all()


def test_nbody():
    p = random(18).random((150, 4), np.float32)
    out = gpuarray.empty(p.shape, np.float32)
    kernel("nbody", "forces")(
        gpu(p), out, np.int32(150), grid=(blocks(150, 64), 1), block=(64, 1, 1), shared=64 * 16
    )
    r = p[None, :, :3].astype(np.float64) - p[:, None, :3]
    s = p[None, :, 3] / ((r * r).sum(2) + 1e-2) ** 1.5
    close(out.get()[:, :3], (r * s[:, :, None]).sum(1), 1e-4)
    assert (out.get()[:, 3] == 0).all()


def test_life():
    a = random(19).integers(0, 2, (40, 53), np.uint8)
    now, then, life = gpu(a), gpuarray.empty(a.shape, np.uint8), kernel("life")
    for _ in range(10):
        life(
            now,
            then,
            np.int32(53),
            np.int32(40),
            grid=(blocks(53, 16), blocks(40, 4)),
            block=(16, 4, 1),
        )
        now, then = then, now
        around = sum(
            np.roll(a, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)
        )
        a = ((around == 3) | ((around == 2) & (a == 1))).astype(np.uint8)
    assert (now.get() == a).all()


def test_mandelbrot():
    out = gpuarray.empty((40, 60), np.int32)
    numbers = [*map(np.float64, (-2.2, -1.2, 0.05, 0.06)), np.int32(80)]
    kernel("mandelbrot")(
        out,
        np.int32(60),
        np.int32(40),
        *numbers,
        grid=(blocks(60, 16), blocks(40, 16)),
        block=(16, 16, 1),
    )
    found = out.get()
    for row in range(0, 40, 3):
        for column in range(60):
            cx, cy = -2.2 + column * 0.05, -1.2 + row * 0.06
            x = y = 0.0
            k = 0
            while k < 80 and x * x + y * y <= 4:
                x, y, k = x * x - y * y + cx, 2 * x * y + cy, k + 1
            assert found[row, column] == k, (row, column)


def test_random_walk():
    seeds = random(20).integers(1, 2**32, 300, np.uint32)
    positions = gpuarray.zeros((300, 2), np.int32)
    kernel("random_walk", "walk")(
        positions, gpu(seeds), np.int32(300), np.int32(200), grid=(3, 1), block=(128, 1, 1)
    )
    state, expected = seeds.copy(), np.zeros((300, 2), np.int32)
    for _ in range(200):
        state ^= state << 13
        state ^= state >> 17
        state ^= state << 5
        direction = state >> 30
        expected[:, 0] += (direction == 0).astype(np.int32) - (direction == 1)
        expected[:, 1] += (direction == 2).astype(np.int32) - (direction == 3)
    assert (positions.get() == expected).all()


def test_fft():
    x = (random(21).random((5, 256)) + 1j * random(22).random((5, 256))).astype(np.complex64)
    data = gpu(x)
    kernel("fft")(data, grid=(5, 1), block=(128, 1, 1))
    close(data.get(), np.fft.fft(x), 1e-3)


def test_conjugate_gradient():
    # The second-difference matrix of 200 points.
    n = 200
    matrix = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1) + 0.1 * np.eye(n)
    rows, columns = np.nonzero(matrix)
    starts = gpu(np.searchsorted(rows, np.arange(n + 1)).astype(np.int32))
    values, columns = gpu(matrix[rows, columns]), gpu(columns.astype(np.int32))
    module = kernels("conjugate_gradient")
    multiply, dot, advance, turn = map(module.get_function, ("multiply", "dot", "advance", "turn"))
    right = random(23).random(n)
    x, r, p, q = (
        gpuarray.zeros(n, np.float64),
        gpu(right),
        gpu(right),
        gpuarray.empty(n, np.float64),
    )
    numbers = [gpuarray.empty(1, np.float64) for _ in range(3)]
    new, old, slope = numbers
    one, many = (
        {"grid": (1, 1), "block": (256, 1, 1)},
        {"grid": (blocks(n, 64), 1), "block": (64, 1, 1)},
    )
    size = np.int32(n)
    dot(r, r, old, size, **one)
    for _ in range(60):
        multiply(starts, columns, values, p, q, size, **many)
        dot(p, q, slope, size, **one)
        advance(x, r, p, q, old, slope, size, **many)
        dot(r, r, new, size, **one)
        turn(p, r, new, old, size, **many)
        new, old = old, new
    close(x.get(), np.linalg.solve(matrix, right), 1e-6)


def test_string_search():
    text = "".join(random(24).choice(list("ab"), 3000)).encode()
    pattern = b"abba"
    module = kernels("string_search")
    driver.memcpy_htod(module.get_global("pattern")[0], np.frombuffer(pattern, np.uint8))
    positions, count = gpuarray.zeros(3000, np.int32), gpuarray.zeros(1, np.int32)
    module.get_function("search")(
        gpu(np.frombuffer(text, np.uint8)), np.int32(3000), np.int32(4), positions, count,
        grid=(blocks(3000, 128), 1), block=(128, 1, 1),
    )  # fmt: skip
    expected = [i for i in range(3000) if text[i : i + 4] == pattern]
    assert sorted(positions.get()[: int(count.get()[0])]) == expected


def test_convolution():
    a, weights = random(27).random((6, 150), np.float32), random(28).random(17, np.float32)
    module = kernels("convolution")
    driver.memcpy_htod(module.get_global("coefficients")[0], weights)
    out = gpuarray.empty(a.shape, np.float32)
    module.get_function("rows")(gpu(a), out, np.int32(150), grid=(3, 6), block=(64, 1, 1))
    close(out.get(), [np.convolve(row, weights, "same") for row in a])


def test_blur():
    a = random(34).integers(0, 256, (20, 30, 4), np.uint8)
    out = gpuarray.empty(a.shape, np.uint8)
    kernel("blur")(
        gpu(a),
        out,
        np.int32(30),
        np.int32(20),
        np.int32(2),
        grid=(blocks(30, 8), blocks(20, 8)),
        block=(8, 8, 1),
    )
    for y, x in ((0, 0), (10, 10), (19, 29), (5, 28)):
        window = a[max(0, y - 2) : y + 3, max(0, x - 2) : x + 3].reshape(-1, 4).astype(np.int32)
        assert (out.get()[y, x] == window.sum(0) // len(window)).all()


def test_sobel():
    a = random(35).integers(0, 100, (24, 31)).astype(np.float32)
    out = gpuarray.empty(a.shape, np.float32)
    kernel("sobel")(gpu(a), out, np.int32(31), np.int32(24), grid=(2, 3), block=(16, 8, 1))
    gx = a[:-2, 2:] + 2 * a[1:-1, 2:] + a[2:, 2:] - a[:-2, :-2] - 2 * a[1:-1, :-2] - a[2:, :-2]
    gy = a[2:, :-2] + 2 * a[2:, 1:-1] + a[2:, 2:] - a[:-2, :-2] - 2 * a[:-2, 1:-1] - a[:-2, 2:]
    close(out.get(), np.pad(np.hypot(gx, gy), 1), 1e-6)


def test_compaction():
    x = random(36).integers(0, 1000, 5001).astype(np.int32)
    out, count = gpuarray.zeros(5001, np.int32), gpuarray.zeros(1, np.int32)
    kernel("compaction", "filter")(
        gpu(x), out, count, np.int32(5001), np.int32(700), grid=(4, 1), block=(128, 1, 1)
    )
    assert (np.sort(out.get()[: int(count.get()[0])]) == np.sort(x[x > 700])).all()


def test_monte_carlo():
    count = gpuarray.zeros(1, np.uint64)
    kernel("monte_carlo", "inside")(count, np.uint32(100000), grid=(8, 1), block=(128, 1, 1))
    assert abs(4 * int(count.get()[0]) / 100000 - math.pi) < 1e-3


def test_black_scholes():
    stock, strike, years = (
        random(37).random((3, 500)) * [[50], [60], [5]] + [[10], [10], [0.2]]
    ).astype(np.float32)
    call, put = gpuarray.empty(500, np.float32), gpuarray.empty(500, np.float32)
    kernel("black_scholes", "prices")(
        call, put, gpu(stock), gpu(strike), gpu(years),
        np.float32(0.02), np.float32(0.3), np.int32(500), grid=(4, 1), block=(128, 1, 1),
    )  # fmt: skip
    cdf = np.vectorize(lambda x: math.erfc(-x / math.sqrt(2)) / 2)
    s, k, t = (it.astype(np.float64) for it in (stock, strike, years))
    d1 = (np.log(s / k) + (0.02 + 0.045) * t) / (0.3 * np.sqrt(t))
    d2, discounted = d1 - 0.3 * np.sqrt(t), k * np.exp(-0.02 * t)
    close(call.get(), s * cdf(d1) - discounted * cdf(d2), 1e-4)
    close(put.get(), discounted * cdf(-d2) - s * cdf(-d1), 1e-4)


def test_floyd_warshall():
    n = 40
    d = random(38).integers(1, 1000, (n, n)).astype(np.int32)
    d[random(39).random((n, n)) < 0.8] = 100000
    np.fill_diagonal(d, 0)
    data, step = gpu(d), kernel("floyd_warshall", "step")
    for k in range(n):
        step(data, np.int32(n), np.int32(k), grid=(blocks(n, 32), n), block=(32, 1, 1))
        d = np.minimum(d, d[:, k : k + 1] + d[k])
    assert (data.get() == d).all()


def test_jacobi():
    a = np.zeros((34, 34), np.float32)
    a[0] = 1
    now, then, sweep = gpu(a), gpu(a), kernel("jacobi", "sweep")
    changes = []
    for _ in range(20):
        largest = gpuarray.zeros(1, np.int32)
        sweep(now, then, largest, np.int32(34), grid=(2, 4), block=(16, 8, 1))
        now, then = then, now
        changes.append(largest.get().view(np.float32)[0])
        b = a.copy()
        b[1:-1, 1:-1] = (a[1:-1, :-2] + a[1:-1, 2:] + a[:-2, 1:-1] + a[2:, 1:-1]) * np.float32(0.25)
        close(changes[-1], np.abs(b - a).max(), 1e-6)
        a = b
    close(now.get(), a, 1e-6)


def test_gauss():
    a, b = random(40).standard_normal((5, 20, 20)), random(41).standard_normal((5, 20))
    x = gpuarray.empty((5, 20), np.float64)
    kernel("gauss", "solve")(
        gpu(a), gpu(b), x, np.int32(20), grid=(5, 1), block=(20, 1, 1), shared=20 * 21 * 8
    )
    close(x.get(), np.linalg.solve(a, b[:, :, None])[:, :, 0], 1e-9)


def test_merge():
    a, b = (
        np.sort(random(seed).integers(0, 300, n)).astype(np.int32)
        for seed, n in ((42, 500), (43, 333))
    )
    out = gpuarray.empty(833, np.int32)
    kernel("merge")(
        gpu(a), np.int32(500), gpu(b), np.int32(333), out, grid=(4, 1), block=(128, 1, 1)
    )
    assert (out.get() == np.sort(np.concatenate([a, b]))).all()


def test_kmeans():
    points, centres = random(44).random((700, 2), np.float32), random(45).random((6, 2), np.float32)
    labels, counts = gpuarray.empty(700, np.int32), gpuarray.zeros(6, np.int32)
    sums = gpuarray.zeros((6, 2), np.float64)
    kernel("kmeans", "assign")(
        gpu(points), gpu(centres), labels, sums, counts, np.int32(700), np.int32(6),
        grid=(6, 1), block=(128, 1, 1), shared=48,
    )  # fmt: skip
    apart = points[:, None] - centres
    nearest = (apart * apart).sum(2, dtype=np.float32).argmin(1)
    assert (labels.get() == nearest).all()
    assert (counts.get() == np.bincount(nearest, minlength=6)).all()
    close(sums.get(), [points[nearest == c].sum(0, dtype=np.float64) for c in range(6)], 1e-12)


def test_crc32():
    text = random(46).integers(0, 256, (100, 37), np.uint8)
    sums = gpuarray.empty(100, np.uint32)
    kernel("crc32")(gpu(text), np.int32(37), np.int32(100), sums, grid=(2, 1), block=(64, 1, 1))
    assert sums.get().tolist() == [binascii.crc32(line.tobytes()) for line in text]


def test_edit_distance():
    a, b = "kitten sitting on a mat", "sitting kittens at a mall"
    row = list(range(len(b) + 1))
    for i, x in enumerate(a):
        last, row[0] = row[0], i + 1
        for j, y in enumerate(b):
            last, row[j + 1] = row[j + 1], min(last + (x != y), row[j] + 1, row[j + 1] + 1)
    result = gpuarray.empty(1, np.int32)
    texts = [gpu(np.frombuffer(it.encode(), np.int8)) for it in (a, b)]
    kernel("edit_distance", "distance")(
        texts[0],
        np.int32(len(a)),
        texts[1],
        np.int32(len(b)),
        result,
        grid=(1, 1),
        block=(129, 1, 1),
    )
    assert result.get() == row[-1]


def test_breadth_first():
    n = 300
    edges = random(47).integers(0, n, (500, 2))
    adjacency = np.zeros((n, n), bool)
    adjacency[edges[:, 0], edges[:, 1]] = adjacency[edges[:, 1], edges[:, 0]] = True
    rows, neighbours = np.nonzero(adjacency)
    starts = gpu(np.searchsorted(rows, np.arange(n + 1)).astype(np.int32))
    neighbours = gpu(neighbours.astype(np.int32))
    expected = np.full(n, -1)
    expected[0] = 0
    levels = gpu(expected.astype(np.int32))
    frontier, size, level = gpuarray.zeros(n, np.int32), 1, 0
    expand = kernel("breadth_first", "expand")
    while size:
        found, count = gpuarray.zeros(n, np.int32), gpuarray.zeros(1, np.int32)
        expand(
            starts, neighbours, levels, frontier, np.int32(size), found, count, np.int32(level),
            grid=(blocks(size, 32), 1), block=(32, 1, 1),
        )  # fmt: skip
        reached = adjacency[expected == level].any(0) & (expected < 0)
        frontier, size, level = found, int(count.get()[0]), level + 1
        expected[reached] = level
        assert size == reached.sum()
    assert (levels.get() == expected).all()


def test_julia():
    out = gpuarray.empty((30, 40), np.int32)
    c = np.complex64(-0.8 + 0.156j)
    kernel("julia")(
        out, np.int32(40), np.int32(30), c, np.int32(50), grid=(10, 1), block=(128, 1, 1)
    )
    i, j = np.mgrid[:30, :40]
    z = (3.0 * j / 40 - 1.5 + 1j * (3.0 * i / 30 - 1.5)).astype(np.complex128)
    steps = np.zeros(z.shape, int)
    for _ in range(50):
        inside = np.abs(z) <= 2
        steps += inside
        z[inside] = z[inside] ** 2 + c
    # Near the border of the set the results depend on rounding.
    assert (out.get() != steps).mean() < 0.02
    assert (out.get()[steps < 8] == steps[steps < 8]).all()


def test_spheres():
    table = np.zeros((8, 4), np.float32)
    table[:3] = [[10, 10, 20, 6], [20, 12, 30, 12], [5, 25, 15, 4]]
    module = kernels("spheres")
    driver.memcpy_htod(module.get_global("spheres")[0], table)
    out = gpuarray.empty((32, 32), np.float32)
    module.get_function("trace")(
        out, np.int32(32), np.int32(32), np.int32(3), grid=(4, 4), block=(8, 8, 1)
    )
    y, x = np.mgrid[:32, :32]
    expected = np.full((32, 32), np.inf)
    for cx, cy, cz, radius in table[:3].astype(np.float64):
        left = radius**2 - (x - cx) ** 2 - (y - cy) ** 2
        depth = np.where(left < 0, np.inf, cz - np.sqrt(np.maximum(left, 0)))
        expected = np.minimum(expected, depth)
    close(out.get(), expected, 1e-5)


def test_segmented():
    x = random(50).integers(-100, 100, 256).astype(np.int32)
    sums, running = gpuarray.empty(256, np.int32), gpuarray.empty(256, np.int32)
    kernel("segmented", "segments")(gpu(x), sums, running, grid=(2, 1), block=(128, 1, 1))
    assert (sums.get() == np.repeat(x.reshape(-1, 8).sum(1), 8)).all()
    assert (running.get() == np.cumsum(x.reshape(-1, 32), 1).ravel()).all()


def test_every_kernel_is_run():
    tests = [Path(__file__), Path(__file__).with_name("test_language.py")]
    text = "".join(path.read_text() for path in tests)
    names = {path.stem for path in FOLDER.glob("*.cu")}
    assert [name for name in sorted(names) if f"def test_{name}()" not in text] == []
    assert names >= OF_32_LANES
    assert len(names) >= 40
