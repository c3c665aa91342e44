"""Inline PTX: the same programs on an NVIDIA GPU, on the host and on the fake CUDA driver."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import ptx_floats
import ptx_instructions
import pytest
from device import BACKEND

from pygpu import driver, gpuarray
from pygpu.compiler import SourceModule

pytestmark = pytest.mark.skipif(BACKEND == "hip", reason="AMD's assembly is not PTX")

THREADS, BLOCKS = 256, 4
ROWS = THREADS * BLOCKS
TYPES = {"h": "unsigned short", "r": "unsigned int", "l": "unsigned long long", "f": "float"}
BITS = {"h": 16, "r": 32, "l": 64, "f": 32}
SPECIAL = [0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
SPECIAL += [1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 0x7F800000, 0x7FC00000, 0x00800000]
SPECIAL += [0x00000001, 0x80000001, 0x3F800000, 0xBFC00000, 0x3F000000, 0x4B000001, 0x4F000000]


def operand(rng: random.Random) -> int:
    kind = rng.randrange(5)
    if kind == 0:
        return rng.randrange(80)
    if kind == 1:
        return rng.choice(SPECIAL)
    if kind == 2:
        # Floats of ordinary size.
        return ptx_floats.bits_of(rng.choice((-1, 1)) * 2.0 ** rng.uniform(-12, 36))
    return rng.getrandbits(64) if kind == 3 else (1 << 64) - (1 << rng.randrange(64))


def value(letter: str, place: int) -> str:
    """Returns an operand of the type that its constraint requires."""
    text = f"({TYPES['r' if letter == 'f' else letter]})in[{place}]"
    return f'"{letter}"({f"__uint_as_float({text})" if letter == "f" else text})'


@pytest.mark.parametrize(
    "cases",
    [
        [case for kind in ptx_instructions.INTEGERS for case in ptx_instructions.of_type(*kind)],
        ptx_instructions.of_words() + ptx_instructions.of_bits(),
        ptx_instructions.conversions(),
        ptx_floats.of_floats(),
    ],
    ids=["integers", "bits", "conversions", "floats"],
)
def test_instructions(cases):
    lines = []
    for number, (text, to, types, _) in enumerate(cases):
        values = [value(letter, place) for place, letter in enumerate(types)]
        result = "__float_as_uint(d)" if to == "f" else "d"
        lines.append(
            f'{{ {TYPES[to]} d; asm("{text}" : "={to}"(d) : {", ".join(values)});'
            f" out[{number} * {ROWS}] = {result}; }}"
        )
    kernel = SourceModule(
        "__global__ void all(unsigned long long *out, const unsigned long long *in) {\n"
        "const int row = blockIdx.x * blockDim.x + threadIdx.x;\nin += 4 * row;\nout += row;\n"
        + "\n".join(lines)
        + "\n}"
    ).get_function("all")
    rng = random.Random(len(cases))
    operands = [[operand(rng) for _ in range(4)] for _ in range(ROWS)]
    results = np.zeros((len(cases), ROWS), np.uint64)
    kernel(
        driver.Out(results),
        driver.In(np.array(operands, np.uint64)),
        block=(THREADS, 1, 1),
        grid=(BLOCKS, 1),
    )
    for (text, to, types, expected), found in zip(cases, results.tolist()):
        for row, result in zip(operands, found):
            own = [value & ((1 << BITS[letter]) - 1) for value, letter in zip(row, types)]
            wanted = expected(*own)
            is_nan = to == "f" and wanted is not None and wanted & 0x7FFFFFFF > 0x7F800000
            if is_nan:
                assert result & 0x7FFFFFFF > 0x7F800000, (text, list(map(hex, own)))
            elif wanted is not None:
                assert result == wanted, (text, list(map(hex, own)), hex(result), hex(wanted))


@pytest.fixture(scope="module")
def programs():
    return SourceModule(Path(__file__).with_name("inline_ptx.cu").read_text())


def integers(array: np.ndarray) -> list[int]:
    return [int.from_bytes(row.tobytes(), "little") for row in array]


def test_carries(programs):
    rng = np.random.default_rng(7)
    a, b = rng.integers(0, 1 << 32, (2, 64, 8), np.uint32)
    a[:8], b[4:12] = 0xFFFFFFFF, 0xFFFFFFFF
    a[8:16, 1:7] = 0
    outputs = [np.zeros((64, 8), np.uint32) for _ in range(3)] + [np.zeros(64, np.uint64)]
    kernel = programs.get_function("numbers")
    kernel(*map(driver.Out, outputs), driver.In(a), driver.In(b), block=(64, 1, 1))
    sums, differences, products = map(integers, outputs[:3])
    for i, (x, y) in enumerate(zip(integers(a), integers(b))):
        assert sums[i] == (x + y) % (1 << 256)
        assert differences[i] == (x - y) % (1 << 256)
        low = (1 << 128) - 1
        assert products[i] == (x & low) * (y & low)
        word = (1 << 64) - 1
        total = (x & word) * (y & word) + (x >> 64 & word) + (y >> 64 & word) * (1 << 64)
        assert int(outputs[3][i]) == total >> 64 & word


def test_branches(programs):
    a, b = np.random.default_rng(3).integers(0, 1 << 20, (2, 96), np.uint32) * np.uint32(12)
    out = np.zeros(96, np.uint32)
    programs.get_function("branches")(driver.Out(out), driver.In(a), driver.In(b), block=(96, 1, 1))
    assert (out == np.gcd(a, b) + np.gcd(b, a + 1)).all()


def test_warps(programs):
    out = np.zeros((64, 16), np.int32)
    programs.get_function("warps")(driver.Out(out), block=(64, 1, 1))
    for t, row in enumerate(out.tolist()):
        lane = t % 32
        down = lane % 8 + 2 < 8
        expected = [t ^ 5, t - 3 if lane >= 3 else t, int(lane >= 3), t + 2 * down, int(down)]
        expected += [t // 4 * 4 + 1, -(1 << 21), int(t < 32), 2]
        expected += [100 * (32 - lane) + lane, 65, 1, lane]
        assert row[:13] == expected


def test_memory(programs):
    values = np.random.default_rng(4).integers(-1000, 1000, 128, np.int32)
    out = np.zeros(256, np.int32)
    kernel = programs.get_function("memory")
    kernel(driver.Out(out), driver.In(values), block=(64, 1, 1), shared=256)
    words = values.reshape(64, 2).sum(1)
    t = np.arange(64)
    first = 4 * (t // 8) + 4
    expected = sum((k + 1) * words[first + k] for k in range(4))
    assert (out[:64] == expected).all()
    # A signed byte of 128 or more is negative.
    assert (out[64:128] == t + 500 - ((128 + t) % 256 - 256)).all()
    pairs = out[128:].view(np.float32).reshape(64, 2)
    assert (pairs == np.stack([t + 0.5, -t], 1)).all()


def test_atomics(programs):
    out = np.zeros(16 + 256, np.int32)
    out[3] = 1000
    device = gpuarray.to_gpu(out)
    programs.get_function("atomics")(device, block=(64, 1, 1), grid=(4, 1))
    found = device.get()
    assert found[:6].tolist() == [256, -sum(range(256)), 250, 7, -1, 256 % 10]
    assert found[6:7].view(np.float32)[0] == 128
    assert found[7] in range(1, 257)
    assert found[8:10].view(np.int64)[0] == 0
    assert found[11] == 77
    assert (found[16:] == 1).all()


@pytest.mark.parametrize(
    ("instruction", "function", "bound"),
    [
        ("rcp.approx.f32", lambda x: 1 / x, 1e-6),
        ("sqrt.approx.f32", np.sqrt, 1e-6),
        ("rsqrt.approx.f32", lambda x: 1 / np.sqrt(x), 1e-6),
        ("ex2.approx.f32", np.exp2, 1e-6),
        ("lg2.approx.f32", np.log2, 1e-5),
        ("sin.approx.f32", np.sin, 1e-5),
        ("cos.approx.f32", np.cos, 1e-5),
        ("tanh.approx.f32", np.tanh, 1e-3),
    ],
)
def test_approximations(instruction, function, bound):
    x = np.linspace(0.1, 3, 128, dtype=np.float32)
    out = np.zeros_like(x)
    kernel = SourceModule(
        "__global__ void k(float *out, const float *x) {"
        f' asm("{instruction} %0, %1;" : "=f"(out[threadIdx.x]) : "f"(x[threadIdx.x])); }}'
    ).get_function("k")
    kernel(driver.Out(out), driver.In(x), block=(128, 1, 1))
    expected = function(x.astype(np.float64))
    assert np.abs(out - expected).max() <= bound * (1 + np.abs(expected)).max()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ('asm("frobnicate.u32 %0, 1;" : "=r"(x[0]));', "frobnicate"),
        ('asm("add.u32 %0, 1, 2" : "=q7"(x[0]));', "q7"),
    ],
)
def test_wrong_statements(statement, message):
    with pytest.raises(driver.CompileError) as caught:
        SourceModule(f"__global__ void k(int *x) {{ {statement} }}")
    if BACKEND == "host":
        assert "kernel.cu:" in str(caught.value)
        assert message in str(caught.value)
